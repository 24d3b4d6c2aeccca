//! Commands whose text does not show the programs they run.

use crate::bundle::OneOrMany;
use crate::shell;

/// Programs that run commands from files that their command line does not name.
pub(crate) const RUNNERS: [&str; 40] = [
    "ant",
    "bazel",
    "bmake",
    "bun",
    "bundle",
    "bunx",
    "cargo",
    "cmake",
    "composer",
    "docker",
    "go",
    "gmake",
    "gradle",
    "gradlew",
    "grunt",
    "gulp",
    "hatch",
    "invoke",
    "just",
    "make",
    "mise",
    "mvn",
    "mvnw",
    "ninja",
    "nox",
    "npm",
    "npx",
    "pdm",
    "pipenv",
    "pipx",
    "pnpm",
    "podman",
    "poetry",
    "pre-commit",
    "rake",
    "task",
    "tox",
    "uv",
    "uvx",
    "yarn",
];

/// Programs that run text in a language of their own.
const INTERPRETERS: [&str; 19] = [
    "python",
    "pypy",
    "node",
    "nodejs",
    "deno",
    "perl",
    "ruby",
    "php",
    "lua",
    "luajit",
    "tclsh",
    "wish",
    "osascript",
    "rscript",
    "guile",
    "julia",
    "groovy",
    "elixir",
    "scala",
];

/// Programs whose first argument is program text.
const TEXT_FIRST: [&str; 4] = ["awk", "gawk", "mawk", "nawk"];

/// Returns the reason for which a command hides the programs it runs; `None` if its text shows them. Several words are a program with arguments, one
/// is a shell line.
///
/// ```
/// use amplifier_modules::trust::opaque_reason;
///
/// let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
/// assert_eq!(opaque_reason(&words(&["python3", "policy.py"])), None);
/// assert!(opaque_reason(&words(&["sh", "-c", "for f in hooks/*; do sh $f; done"])).is_some());
/// ```
#[must_use]
pub fn opaque_reason(command: &[String]) -> Option<String> {
    let command = match command {
        [line] => OneOrMany::One(line.clone()),
        words => OneOrMany::Many(words.to_vec()),
    };
    match shell::commands(&command.to_line()) {
        Err(why) => Some(why),
        Ok(commands) => commands.iter().find_map(|command| opaque_command_reason(&command.plain)),
    }
}

pub(crate) fn opaque_command_reason(command: &str) -> Option<String> {
    let mut words = command.split_whitespace();
    let program = words.next()?;
    // `python3.12` and `Rscript` as well.
    let name = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_ascii_lowercase();
    if RUNNERS.contains(&name.as_str()) || matches!(program, "source" | ".") {
        return Some(format!("`{program}` runs commands from other files"));
    }
    if TEXT_FIRST.contains(&name.as_str()) {
        return Some(format!("the text that `{program}` runs is not analysed"));
    }
    if !INTERPRETERS.contains(&name.as_str()) {
        return None;
    }
    match words.find(|argument| !is_harmless(argument)) {
        None => Some(format!("`{program}` runs its input")),
        Some(option) if option.starts_with('-') => Some(format!("the code of `{program} {option}` is not analysed")),
        Some(file) if file.contains(['*', '?', '[', '…']) => {
            Some(format!("`{program}` runs files that a pattern finds"))
        }
        Some(_) => None,
    }
}

/// `true` for options that do not select the program text, such as `-u` in `python3 -u FILE`.
fn is_harmless(argument: &str) -> bool {
    let Some(letters) = argument.strip_prefix('-') else { return false };
    !letters.is_empty() && letters.chars().all(|letter| "uBEIsSOvwWT".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_opaque(command: &[&str]) -> bool {
        opaque_reason(&command.iter().map(|&word| word.to_owned()).collect::<Vec<_>>()).is_some()
    }

    #[test]
    fn what_hides_what_it_runs_is_found_in_every_form() {
        let hidden: [&[&str]; 36] = [
            &["for f in h.d/*.sh; do sh $f; done"],
            &["sh", "-c", "for f in h.d/*.sh; do sh $f; done"],
            &["bash", "-c", "for f in h.d/*.sh; do sh $f; done"],
            &["/bin/bash", "-ec", "sh h.d/*.sh"],
            &["env", "A=1", "sh", "-c", "for f in h.d/*; do . $f; done"],
            &["env", "-i", "bash", "-c", "$HOOK"],
            &["nice", "sh", "-c", "eval \"$(cat x)\""],
            &["timeout", "5", "make", "lint"],
            &["sh", "-c", "cd sub && make lint"],
            &["bash", "-c", "bash -c 'npm run lint'"],
            &["sh", "-c", "echo 'it is' && python3 -c 'import x'"],
            &["make lint"],
            &["make", "lint"],
            &["make"],
            &["/usr/bin/make", "lint"],
            &["npm run lint"],
            &["npm", "run", "lint"],
            &["yarn", "lint"],
            &["npx", "eslint", "."],
            &["cargo", "xtask", "check"],
            &["uv", "run", "policy.py"],
            &["python3", "-c", "import policy"],
            &["python3 -c 'import policy'"],
            &["python3.12", "-m", "policy"],
            &["python3", "-um", "policy"],
            &["python3", "-"],
            &["python3"],
            &["python3 hooks/*.py"],
            &["node", "-e", "require('./x')"],
            &["node", "--eval", "require('./x')"],
            &["perl", "-e", "do './x'"],
            &["ruby", "-e", "load 'x'"],
            &["awk", "BEGIN { system(\"./x\") }"],
            &["fish", "-c", "./x"],
            &["source", "./x"],
            &["eval", "$X"],
        ];
        for command in hidden {
            assert!(is_opaque(command), "{command:?}");
        }
    }

    #[test]
    fn what_says_what_it_runs_is_not_marked() {
        let plain: [&[&str]; 9] = [
            &["./lint.sh"],
            &["./lint.sh --all && ./more.sh"],
            &["python3", "policy.py", "--strict"],
            &["python3 -u policy.py"],
            &["python3", "-I", "-B", "policy.py"],
            &["node", "policy.mjs"],
            &["ruff", "check", "*.py"],
            &["sh", "-c", "ruff check . && ./lint.sh"],
            &["env", "A=1", "./lint.sh"],
        ];
        for command in plain {
            let words: Vec<_> = command.iter().map(|&word| word.to_owned()).collect();
            assert_eq!(opaque_reason(&words), None, "{command:?}");
        }
    }
}
