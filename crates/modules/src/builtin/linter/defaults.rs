//! Well-known linters, used if they are on the `PATH`.

use std::ffi::OsStr;
use std::time::Duration;

use amplifier_process::files::is_executable;

use super::everywhere;
use super::launcher::LinterLauncher;
use super::run::Linter;

/// Program, files, arguments. None of these linters runs code of the project, and all are silent about a good file.
const LINTERS: [(&str, &[&str], &[&str]); 5] = [
    ("actionlint", &[".github/workflows/*.yml", ".github/workflows/*.yaml"], &["-no-color", "-oneline", "{file}"]),
    ("hadolint", &["Dockerfile", "*.dockerfile"], &["--no-color", "--", "{file}"]),
    (
        "ruff",
        &["*.py", "*.pyi"],
        &["check", "--quiet", "--no-cache", "--force-exclude", "--output-format", "concise", "--", "{file}"],
    ),
    ("shellcheck", &["*.sh", "*.bash"], &["--color=never", "--format=gcc", "--", "{file}"]),
    ("yamllint", &["*.yaml", "*.yml"], &["--format", "parsable", "--", "{file}"]),
];

/// Returns `true` if a folder of the `PATH` has the program.
pub(super) fn is_on_path(program: &str, path: Option<&OsStr>) -> bool {
    path.is_some_and(|path| {
        std::env::split_paths(path).any(|folder| folder.join(program).metadata().is_ok_and(|file| is_executable(&file)))
    })
}

pub(super) fn on_path(path: Option<&OsStr>, launcher: &LinterLauncher) -> Result<Vec<Linter>, String> {
    let linter = |(program, files, arguments): &(&str, &[&str], &[&str])| {
        let files: Vec<String> = files.iter().map(|&file| file.to_owned()).collect();
        Ok(Linter {
            name: (*program).to_owned(),
            files: everywhere(&files)?,
            command: [*program].iter().chain(*arguments).map(|&word| word.to_owned()).collect(),
            timeout: Duration::from_secs(20),
            exit_codes: vec![1],
            launcher: launcher.clone(),
            held: None,
            is_reported_missing: false.into(),
        })
    };
    LINTERS.iter().filter(|(program, ..)| is_on_path(program, path)).map(linter).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::{LinterLauncher, on_path};

    #[test]
    fn only_programs_on_the_path_are_used() {
        let folder = tempfile::tempdir().unwrap();
        for (name, mode) in [("ruff", 0o755), ("shellcheck", 0o644)] {
            let file = folder.path().join(name);
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        }
        let found = on_path(Some(folder.path().as_os_str()), &LinterLauncher::Unconfined).unwrap();
        let names: Vec<&str> = found.iter().map(|linter| linter.name.as_str()).collect();
        assert_eq!(names, ["ruff"]);
        // Without it, ruff reports files that the project excludes, because they are named.
        assert!(found[0].command.contains(&"--force-exclude".to_owned()));
        let looked_at = ["a.py", "src/deep/b.pyi", "c.sh"].map(|file| found[0].files.is_match(Path::new(file)));
        assert_eq!(looked_at, [true, true, false]);
        assert!(on_path(None, &LinterLauncher::Unconfined).unwrap().is_empty());
    }
}
