//! Trust in a project's bundle: what it pins, and what is seen when something changes.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use amplifier_core::{HookRegistry, OverBudget, SessionConfig, data};
use amplifier_modules::bundle::{ApprovalMode, BundleScope, BundleStack, Confirm, LoadedBundle, load, load_pinned};
use amplifier_modules::trust::{BundlePins, Difference, FileChange, TrustError, TrustStatus, TrustStore};
use amplifier_modules::{HookEnvironment, Scope};

/// A project with a bundle, and a store elsewhere.
struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    fn new(bundle: &str) -> Self {
        let project = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(project.at(".amplifier")).unwrap();
        project.write(".amplifier/bundle.yaml", bundle);
        project
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.at(path), text).unwrap();
    }

    fn load(&self) -> LoadedBundle {
        load_pinned(&self.at(".amplifier/bundle.yaml")).unwrap()
    }

    fn pin(&self) -> BundlePins {
        self.load().pin().unwrap()
    }

    fn store(&self) -> TrustStore {
        TrustStore::new(self.at("data/trust.json"))
    }

    fn trust(&self) {
        self.store().trust(&self.pin()).unwrap();
    }

    /// The names of what is pinned, without the folder of the project.
    fn pinned(&self) -> Vec<String> {
        let root = self.at("");
        let name = |file: &PathBuf| file.strip_prefix(&root).unwrap_or(file).display().to_string();
        self.pin().files.keys().map(name).collect()
    }

    /// What the store says about the bundle as it is now.
    #[track_caller]
    fn check(&self, expected: &[(&str, Difference)]) {
        let change =
            |(file, difference): &(&str, Difference)| FileChange { file: self.at(file), difference: *difference };
        let expected = match expected {
            [] => TrustStatus::Trusted,
            changes => TrustStatus::Changed(changes.iter().map(change).collect()),
        };
        assert_eq!(self.store().status(&self.pin()).unwrap(), expected);
    }
}

fn command(line: &str) -> String {
    format!("hooks:\n  - command: {}\n    name: program\n    on: tool:pre\n", serde_json::to_string(line).unwrap())
}

#[test]
fn nothing_is_trusted_until_it_is_and_then_only_as_it_was() {
    let project = Project::new(&command("./lint.sh"));
    project.write(".amplifier/lint.sh", "exit 0\n");
    assert_eq!(project.store().status(&project.pin()).unwrap(), TrustStatus::Unknown);
    project.trust();
    project.check(&[]);

    project.write(".amplifier/lint.sh", "exit 1\n");
    project.check(&[(".amplifier/lint.sh", Difference::Content)]);
    project.write(".amplifier/lint.sh", "exit 0\r\n");
    project.check(&[(".amplifier/lint.sh", Difference::Content)]);
    project.write(".amplifier/lint.sh", "exit 0\n");
    project.check(&[]);
    fs::set_permissions(project.at(".amplifier/lint.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    project.check(&[(".amplifier/lint.sh", Difference::Mode)]);
    fs::remove_file(project.at(".amplifier/lint.sh")).unwrap();
    project.check(&[(".amplifier/lint.sh", Difference::Gone)]);

    assert!(project.store().untrust(&project.at(".amplifier/bundle.yaml")).unwrap().is_some());
    assert_eq!(project.store().status(&project.pin()).unwrap(), TrustStatus::Unknown);
}

#[test]
fn line_endings_and_comments_of_a_bundle_are_content() {
    let bundle = command("true");
    let project = Project::new(&bundle);
    project.trust();
    for other in [bundle.replace('\n', "\r\n"), format!("{bundle}# harmless\n"), format!("\u{feff}{bundle}")] {
        project.write(".amplifier/bundle.yaml", &other);
        project.check(&[(".amplifier/bundle.yaml", Difference::Content)]);
    }
    project.write(".amplifier/bundle.yaml", &bundle);
    project.check(&[]);
}

#[test]
fn what_a_bundle_includes_is_pinned_with_what_that_names() {
    let project = Project::new("includes: [more/team.yaml]\n");
    fs::create_dir(project.at(".amplifier/more")).unwrap();
    project.write(".amplifier/more/team.yaml", &command("./guard.sh"));
    project.write(".amplifier/more/guard.sh", "exit 0\n");
    let names = [".amplifier/bundle.yaml", ".amplifier/more/guard.sh", ".amplifier/more/team.yaml"];
    assert_eq!(project.pinned(), names);
    project.trust();
    project.write(".amplifier/more/team.yaml", &command("./other.sh"));
    let changes = [(".amplifier/more/team.yaml", Difference::Content), (".amplifier/more/guard.sh", Difference::Gone)];
    project.check(&changes);
}

#[test]
fn every_file_that_a_line_can_mean_is_pinned() {
    let lines = [
        "./run.sh",
        "run.sh",
        "sh run.sh --fast",
        "FOO=bar sh -c './run.sh'",
        "python3 -c 'import os; os.system(\"./run.sh\")'",
        "cat <run.sh|sh",
        "sh $(pwd)/run.sh",
        "sh \"$PWD/run.sh\"",
        "cd ..; cd .amplifier; sh ./run.sh",
        "cd ../.amplifier && ./run.sh",
        "env -S./run.sh",
        "tool --script=run.sh",
        "tool @run.sh",
        "a:run.sh",
        "./../.amplifier/./run.sh",
        "`echo run.sh`",
        "r\\un.sh",
        "'r'un\".sh\"",
        "[ -f run.sh ] && . ./run.sh",
    ];
    for line in lines {
        let project = Project::new(&command(line));
        project.write(".amplifier/run.sh", "exit 0\n");
        assert_eq!(project.pinned(), [".amplifier/bundle.yaml", ".amplifier/run.sh"], "{line}");
    }
    let project = Project::new(&command("sh \"my hooks/the one.sh\""));
    fs::create_dir(project.at(".amplifier/my hooks")).unwrap();
    project.write(".amplifier/my hooks/the one.sh", "exit 0\n");
    assert_eq!(project.pinned(), [".amplifier/bundle.yaml", ".amplifier/my hooks/the one.sh"]);
}

#[test]
fn lists_variables_and_options_of_modules_are_looked_through_too() {
    let bundle = r"
hooks:
  - worker: [python3, policy.py, ../shared.json]
    on: tool:pre
    env: { BASH_ENV: ./env.sh }
    files: [helper.py]
  - module: hooks-production-guard
    config: { paths: [list.txt] }
  - command: ./off.sh
    on: tool:pre
    enabled: false
";
    let project = Project::new(bundle);
    for file in ["policy.py", "helper.py", "env.sh", "list.txt", "off.sh", "other.py"] {
        project.write(&format!(".amplifier/{file}"), "");
    }
    project.write("shared.json", "{}");
    let names = [
        ".amplifier/bundle.yaml",
        ".amplifier/env.sh",
        ".amplifier/helper.py",
        ".amplifier/list.txt",
        ".amplifier/policy.py",
        "shared.json",
    ];
    assert_eq!(project.pinned(), names);
}

#[test]
fn a_file_that_was_named_and_not_there_is_new_when_it_is() {
    let project = Project::new(&command("test -f extra.sh && . ./extra.sh"));
    project.trust();
    project.write(".amplifier/extra.sh", "exit 0\n");
    project.check(&[(".amplifier/extra.sh", Difference::New)]);
}

#[test]
fn a_link_is_pinned_with_where_it_leads_and_what_is_there() {
    let project = Project::new(&command("./lint.sh"));
    for file in ["one.sh", "two.sh"] {
        project.write(file, "exit 0\n");
    }
    let link = project.at(".amplifier/lint.sh");
    symlink("../one.sh", &link).unwrap();
    project.trust();
    assert_eq!(project.pin().files[&link].leads_to, Some(project.at("one.sh")));

    fs::remove_file(&link).unwrap();
    symlink("../two.sh", &link).unwrap();
    project.check(&[(".amplifier/lint.sh", Difference::Link)]);
    fs::remove_file(&link).unwrap();
    project.write(".amplifier/lint.sh", "exit 0\n");
    project.check(&[(".amplifier/lint.sh", Difference::Link)]);
    fs::remove_file(&link).unwrap();
    symlink("../one.sh", &link).unwrap();
    project.check(&[]);
    project.write("one.sh", "exit 1\n");
    project.check(&[(".amplifier/lint.sh", Difference::Content)]);
}

#[tokio::test]
async fn a_folder_that_is_turned_elsewhere_while_a_session_runs_is_noticed() {
    let project = Project::new(&command("sh hooks/guard.sh"));
    for folder in ["good", "bad"] {
        fs::create_dir(project.at(folder)).unwrap();
    }
    project.write("good/guard.sh", "exit 0\n");
    project.write("bad/guard.sh", &format!("touch {}\n", project.at("proof").display()));
    let link = project.at(".amplifier/hooks");
    symlink("../good", &link).unwrap();
    project.trust();
    let mut loaded = project.load();
    loaded.pin().unwrap();
    let hooks = HookRegistry::new();
    loaded.register(&hooks, &HookEnvironment::new(Scope::new(project.at("")).unwrap())).unwrap();
    assert_eq!(decided(&hooks).await.0, "continue");
    fs::remove_file(&link).unwrap();
    symlink("../bad", &link).unwrap();
    let (decision, why) = decided(&hooks).await;
    assert!(decision == "deny" && why.contains("good/guard.sh` points elsewhere since"), "{decision} {why}");
    assert!(!project.at("proof").exists());
    project.check(&[("bad/guard.sh", Difference::New), ("good/guard.sh", Difference::Gone)]);
}

#[test]
fn what_cannot_be_looked_through_is_not_trusted() {
    let check = |bundle: &str, problem: &str| {
        let project = Project::new(bundle);
        for number in 0..70 {
            fs::create_dir_all(project.at(&format!(".amplifier/folder{number}"))).unwrap();
        }
        let error = project.load().pin().unwrap_err().to_string();
        assert!(error.ends_with(problem), "{error}");
    };
    let too_much = |what: &str| {
        let begin = "cannot find all files that hook `program` uses";
        format!("{begin}: {what}; move the commands to a script, and refer to that script")
    };
    let words = |word: &str, count| command(&(0..count).map(|number| format!("{word}{number} ")).collect::<String>());
    check(&command(&"x".repeat(70_000)), &too_much("a text of 70000 bytes; the limit is 65536"));
    check(&words("word", 5_000), &too_much("more than 4000 words"));
    let folders = "more than 64 folders to search";
    check(&words("folder", 70), &too_much(folders));
    let folder = command("true") + "    files: [folder1]\n";
    check(&folder, "folder1` cannot be pinned: the path is a folder; name its files");
}

#[test]
fn a_bundle_that_is_a_link_is_trusted_for_its_own_place_alone() {
    let other = Project::new(&command("./lint.sh"));
    let project = Project::new("");
    let file = project.at(".amplifier/bundle.yaml");
    fs::remove_file(&file).unwrap();
    symlink(other.at(".amplifier/bundle.yaml"), &file).unwrap();
    project.store().trust(&other.pin()).unwrap();
    assert_eq!(project.store().status(&project.pin()).unwrap(), TrustStatus::Unknown);
    project.trust();
    project.check(&[]);
    other.write(".amplifier/bundle.yaml", "");
    project.check(&[(".amplifier/bundle.yaml", Difference::Content)]);
}

#[test]
fn pipes_and_devices_are_refused_at_once_and_what_the_system_makes_up_is_left_alone() {
    let project = Project::new(&command("sh ./pipe"));
    assert!(Command::new("mkfifo").arg(project.at(".amplifier/pipe")).status().unwrap().success());
    let refused = project.load().pin().unwrap_err();
    let expected = format!("`{}` cannot be pinned: the file is a pipe", project.at(".amplifier/./pipe").display());
    assert_eq!(refused.to_string(), expected);
    fs::remove_file(project.at(".amplifier/pipe")).unwrap();
    symlink("/dev/zero", project.at(".amplifier/pipe")).unwrap();
    assert!(matches!(project.load().pin(), Err(TrustError::Pin { .. })));

    let project = Project::new(&command("cat /dev/zero /proc/self/maps /dev/stdin 2>/dev/null"));
    assert_eq!(project.pinned(), [".amplifier/bundle.yaml"]);

    let bundle = project.at(".amplifier/bundle.yaml");
    fs::remove_file(&bundle).unwrap();
    assert!(Command::new("mkfifo").arg(&bundle).status().unwrap().success());
    let error = load_pinned(&bundle).unwrap_err();
    assert_eq!(error.message, "the file cannot be read: it is not a regular file");
    fs::remove_file(&bundle).unwrap();
    symlink("/dev/zero", &bundle).unwrap();
    assert_eq!(load_pinned(&bundle).unwrap_err().message, "the file cannot be read: it is not a regular file");
}

#[test]
fn a_large_program_is_hashed_and_one_without_an_end_refused() {
    let project = Project::new(&command("./large"));
    let large = fs::File::create(project.at(".amplifier/large")).unwrap();
    large.set_len(64 << 20).unwrap();
    project.trust();
    project.check(&[]);
    let zeros = "3b6a07d0d404fab4e23b6d34bc6696a6a312dd92821332385e5af7c01c421351";
    assert_eq!(project.pin().files[&project.at(".amplifier/large")].sha256.to_string(), zeros);
    large.set_len(1 << 40).unwrap();
    assert!(project.load().pin().unwrap_err().to_string().ends_with("the file is larger than 4096 MiB"));
}

#[test]
fn a_bundle_cannot_come_to_more_files_than_there_is_time_for() {
    let project = Project::new("includes: [a.yaml, b.yaml]\n");
    for (file, next) in [("a", "b"), ("b", "c")] {
        let includes = format!("includes: [{}]\n", vec![format!("{next}.yaml"); 128].join(", "));
        project.write(&format!(".amplifier/{file}.yaml"), &includes);
    }
    project.write(".amplifier/c.yaml", "");
    let error = load_pinned(&project.at(".amplifier/bundle.yaml")).unwrap_err();
    assert_eq!(error.message, "too many files: a bundle has at most 256");
}

#[test]
fn a_damaged_store_trusts_nothing_and_is_not_written_over() {
    let project = Project::new(&command("true"));
    project.trust();
    let file = project.at("data/trust.json");
    let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(&project.at("data"))), (0o600, 0o700));
    let whole = fs::read_to_string(&file).unwrap();
    let digest = project.pin().digest().to_string();
    let table = [
        (whole[..whole.len() / 2].to_owned(), "EOF while parsing"),
        (String::new(), "EOF while parsing"),
        (whole.replace("\"version\": 1", "\"version\": 2"), "unknown version 2; this program supports 1"),
        (whole.replace(&digest, &"0".repeat(64)), "a digest does not match its files"),
        (whole.replace("trusted_at", "at"), "unknown field `at`"),
    ];
    for (text, why) in table {
        fs::write(&file, &text).unwrap();
        let error = project.store().status(&project.pin()).unwrap_err();
        assert!(matches!(error, TrustError::Damaged { .. }) && error.to_string().contains(why), "{error}");
        assert!(project.store().trust(&project.pin()).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    fs::write(&file, &whole).unwrap();
    project.check(&[]);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let error = project.store().status(&project.pin()).unwrap_err();
    assert!(error.to_string().contains("other users can write to the file"), "{error}");
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    let projects: Vec<Project> = (0..16).map(|_| Project::new(&command("true"))).collect();
    let store = projects[0].store();
    std::thread::scope(|scope| {
        for project in &projects {
            scope.spawn(|| store.trust(&project.pin()).unwrap());
        }
    });
    let mut expected: Vec<PathBuf> = projects.iter().map(|project| project.at(".amplifier/bundle.yaml")).collect();
    expected.sort();
    assert_eq!(store.list().unwrap().into_keys().collect::<Vec<_>>(), expected);
}

/// What comes of an event.
async fn decided(hooks: &HookRegistry) -> (String, String) {
    let outcome = hooks.emit("tool:pre", data! { "tool_name": "Bash", "tool_input": {} }).await.unwrap();
    let why = match &outcome.decision {
        amplifier_core::Decision::Deny(denial) => denial.reason().to_owned(),
        _ => String::new(),
    };
    (outcome.decision.as_str().to_owned(), why)
}

#[tokio::test]
async fn a_program_that_changed_since_does_not_run_and_what_it_was_asked_about_is_denied() {
    for kind in ["command", "worker"] {
        let bundle = format!("hooks:\n  - {kind}: [sh, ./guard.sh]\n    name: guard\n    on: tool:pre\n");
        let project = Project::new(&bundle);
        project.write(".amplifier/guard.sh", "exit 0\n");
        let mut loaded = project.load();
        loaded.pin().unwrap();
        let hooks = HookRegistry::new();
        loaded.register(&hooks, &HookEnvironment::new(Scope::new(project.at("")).unwrap())).unwrap();
        // A worker that runs already is what it was when it started.
        if kind == "command" {
            assert_eq!(decided(&hooks).await.0, "continue");
        }

        let proof = project.at("proof");
        project.write(".amplifier/guard.sh", &format!("touch {}\n", proof.display()));
        let (decision, why) = decided(&hooks).await;
        let expected = format!("`{}` has other content since", project.at(".amplifier/guard.sh").display());
        assert!(decision == "deny" && why.starts_with(&expected), "{kind}: {decision} {why}");
        assert!(!proof.exists());
    }
}

#[test]
fn a_program_that_changes_between_the_look_and_the_registering_is_noticed() {
    let project = Project::new(&command("./guard.sh"));
    project.write(".amplifier/guard.sh", "exit 0\n");
    let mut loaded = project.load();
    loaded.pin().unwrap();
    // The bundle was read once; what stands there now does not count.
    project.write(".amplifier/bundle.yaml", "hooks: nonsense");
    let hooks = HookRegistry::new();
    let host = HookEnvironment::new(Scope::new(project.at("")).unwrap());
    assert_eq!(loaded.register(&hooks, &host).unwrap().len(), 1);

    let hooks = HookRegistry::new();
    project.write(".amplifier/guard.sh", "exit 1\n");
    let error = loaded.register(&hooks, &host).unwrap_err();
    assert!(error.message.contains("has other content since the bundle was trusted"), "{error}");
    assert_eq!(hooks.list_handlers(), []);
}

/// A bundle of a level.
fn level(level: BundleScope, text: &str) -> (BundleScope, LoadedBundle) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bundle.yaml");
    fs::write(&file, text).unwrap();
    (level, load(&file).unwrap())
}

#[test]
fn hooks_of_all_levels_are_registered_in_order_and_none_takes_the_place_of_another() {
    let rule = |name: &str| format!("hooks:\n  - rule: {name}\n    on: tool:pre\n    deny: no\n");
    let bundles = [
        level(BundleScope::Explicit, &rule("guard")),
        level(
            BundleScope::Project,
            &(rule("guard") + "    enabled: false\n  - rule: confirm\n    on: tool:pre\n    deny: no\n"),
        ),
        level(BundleScope::User, &rule("guard")),
    ];
    let levels = BundleStack::new(bundles, &["confirm"]);
    let hooks = HookRegistry::new();
    levels.register(&hooks, &HookEnvironment::new(Scope::new(".").unwrap())).unwrap();
    let listed: Vec<_> =
        hooks.list_handlers().iter().map(|hook| (hook.name.to_string(), levels.scope_of(&hook.name))).collect();
    let expected = [
        ("guard", BundleScope::User),
        ("confirm (project)", BundleScope::Project),
        ("guard (named)", BundleScope::Explicit),
    ];
    assert_eq!(listed, expected.map(|(name, level)| (name.to_owned(), Some(level))));
    assert_eq!(levels.scope_of("confirm"), None);
}

#[test]
fn a_project_can_only_make_settings_stricter() {
    let settings = |size: &str, policy: &str| {
        let size = if size.is_empty() { String::new() } else { format!("injection_size_limit: {size}, ") };
        let policy = if policy.is_empty() { String::new() } else { format!("over_budget: {policy}") };
        format!("session: {{ {size}{policy} }}\n")
    };
    let check = |user: &str, project: &str, named: &str, expected: (usize, OverBudget)| {
        let text = |both: &str| {
            let (size, policy) = both.split_once(' ').unwrap();
            settings(size, policy)
        };
        let bundles = [
            level(BundleScope::User, &text(user)),
            level(BundleScope::Project, &text(project)),
            level(BundleScope::Explicit, &text(named)),
        ];
        let mut config = SessionConfig::default();
        BundleStack::new(bundles, &[]).apply(&mut config);
        assert_eq!((config.injection_size_limit, config.over_budget), (Some(expected.0), expected.1));
    };
    check(" ", " ", " ", (10_240, OverBudget::Warn));
    check("50000 drop", " ", " ", (50_000, OverBudget::Drop));
    check(" ", "50000 drop", " ", (10_240, OverBudget::Drop));
    check("500 drop", "900 warn", " ", (500, OverBudget::Drop));
    check("500 warn", "100 truncate", " ", (100, OverBudget::Truncate));
    check("500 drop", " ", "900 warn", (500, OverBudget::Drop));
    check(" ", "300 ", "900 truncate", (300, OverBudget::Truncate));
}

#[test]
fn nobody_loosens_a_managed_bundle() {
    let rule = "hooks:\n  - rule: guard\n    on: tool:pre\n    deny: no\n";
    let loose = "session: { injection_size_limit: 90000, over_budget: warn, confirm: off, forbid_modes: [ask] }\ntools: { only: [Read, Bash] }\n";
    let strict = "session: { injection_size_limit: 500, over_budget: drop, confirm: writes, mode: plan }\ntools: { only: [Read] }\n";
    let levels = BundleStack::new(
        [
            level(BundleScope::Managed, &format!("{strict}{rule}")),
            level(BundleScope::Fleet, &format!("session: {{ confirm: commands }}\n{rule}")),
            level(BundleScope::User, &format!("{loose}{rule}    enabled: false\n")),
            level(BundleScope::Explicit, &format!("{loose}{rule}")),
        ],
        &[],
    );
    let mut config = SessionConfig::default();
    levels.apply(&mut config);
    assert_eq!((config.injection_size_limit, config.over_budget), (Some(500), OverBudget::Drop));
    assert_eq!(levels.tools().only, Some(vec!["Read".to_owned()]));
    let managed = levels.managed_settings();
    assert_eq!((managed.confirm, managed.mode), (Some(Confirm::Writes), Some(ApprovalMode::Plan)));
    assert!(managed.forbid_modes.is_empty());
    let hooks = HookRegistry::new();
    levels.register(&hooks, &HookEnvironment::new(Scope::new(".").unwrap())).unwrap();
    let names: Vec<_> = hooks.list_handlers().iter().map(|hook| hook.name.to_string()).collect();
    assert_eq!(names, ["guard", "guard (fleet)", "guard (named)"]);
}

#[test]
fn what_trust_pins_is_what_tools_must_not_change() {
    let bundle = "hooks:\n  - command: sh -c 'cd tools && sh ./check.sh'\n    name: check\n    on: tool:pre\n    env: { RULES: rules.json }\n\
                  \x20 - module: hooks-linter\n    config: { linters: [{ files: '*.py', command: [sh, lint.sh, '{file}'] }] }\n\
                  \x20 - module: hooks-production-guard\n    config: { paths: [live.env] }\n";
    let project = Project::new(bundle);
    fs::create_dir_all(project.at(".amplifier/tools")).unwrap();
    for file in [".amplifier/tools/check.sh", ".amplifier/rules.json", "lint.sh"] {
        project.write(file, "exit 0\n");
    }
    let mut loaded = project.load();
    let pinned: Vec<PathBuf> = loaded.pin().unwrap().files.into_keys().collect();
    let named = loaded.named_files(&project.at(""), &project.at("")).unwrap();
    let mut named: Vec<PathBuf> = named.iter().map(|file| file.canonicalize().unwrap()).collect();
    named.sort();
    named.dedup();
    assert_eq!(named, pinned);
    assert_eq!(pinned.len(), 4, "{pinned:?}");
    // A pattern for what the agent does is no part of the hook.
    project.write(".amplifier/live.env", "");
    assert!(loaded.pin().unwrap().files.keys().any(|file| file.ends_with("live.env")));
    assert!(
        !loaded.named_files(&project.at(""), &project.at("")).unwrap().iter().any(|file| file.ends_with("live.env"))
    );
}
