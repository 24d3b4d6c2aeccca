//! `hooks-status-context`.

use std::path::Path;
use std::process::Command;

use crate::common::Run;
use crate::modules::{Modules, calls, check_problems, echo};

const NAME: &str = "hooks-status-context";

fn git(folder: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=Anna", "-c", "user.email=anna@example.com", "-c", "init.defaultBranch=main"]);
    let done = git.args(arguments).current_dir(folder).env_remove("GIT_DIR").output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// The texts of hooks in each model call, as lines.
fn told(run: &Run) -> Vec<Vec<String>> {
    let of_hook = |message: &&amplifier_core::Message| message.metadata.contains_key("hook_name");
    let lines = |message: &amplifier_core::Message| message.content.lines().map(str::to_owned).collect();
    run.requests.iter().map(|request| request.messages.iter().find(of_hook).map_or_else(Vec::new, lines)).collect()
}

const HEAD: &str = "The state of things now (do not mention this note):";

#[tokio::test]
async fn the_first_call_of_a_turn_is_told_about_everything_and_nothing_is_kept() {
    let modules = Modules::new(calls(&[echo("a")])).bundle("hooks:\n  - module: hooks-status-context\n");
    let workspace = modules.workspace.path().canonicalize().unwrap();
    let run = modules.world.run(&["go"]).await;
    let expected = [
        HEAD.to_owned(),
        "time: Thursday, 1970-01-01 00:00 UTC".to_owned(),
        format!("session: {}", run.session),
        format!("working folder: {}", workspace.display()),
        format!("platform: {} {}", std::env::consts::OS, std::env::consts::ARCH),
    ];
    // There is no repository, so nothing is said about one.
    assert_eq!(told(&run), [expected.to_vec(), Vec::new()]);
    assert!(!run.history.iter().any(|message| message.metadata.contains_key("hook_name")));
}

#[tokio::test]
async fn git_is_asked_for_real_with_every_call() {
    let bundle = "hooks:\n  - module: hooks-status-context\n    config: { every: call, time: false, session: false, folder: false, \
                  platform: false, files: 2 }\n";
    let modules = Modules::new(calls(&[echo("a")])).bundle(bundle);
    let folder = modules.workspace.path();
    git(folder, &["init", "--quiet"]);
    std::fs::write(folder.join("a.txt"), "a").unwrap();
    git(folder, &["add", "."]);
    git(folder, &["commit", "--quiet", "--message", "first"]);
    let clean = vec![HEAD.to_owned(), "git: main, nothing changed".to_owned()];
    let (changed, file) = (folder.to_owned(), "a.txt");
    modules
        .world
        .hooks
        .hook("tool:post")
        .run(move |_| {
            for name in [file, "b.txt", "c\nd.txt"] {
                std::fs::write(changed.join(name), "changed").unwrap();
            }
        })
        .unwrap();
    let run = modules.world.run(&["go"]).await;
    let dirty = [HEAD, "git: main, 3 files changed", "   M a.txt", "  ?? b.txt", "  … and 1 more"];
    assert_eq!(told(&run), [clean, dirty.map(str::to_owned).to_vec()]);
}

#[tokio::test]
async fn a_program_that_the_repository_names_does_not_run() {
    let bundle = "hooks:\n  - module: hooks-status-context\n    config: { time: false, session: false, folder: false, platform: false }\n";
    let modules = Modules::new(calls(&[])).bundle(bundle);
    let folder = modules.workspace.path();
    git(folder, &["init", "--quiet"]);
    let mark = folder.join("ran");
    // Files go through filters when they are compared.
    std::fs::write(folder.join("a.txt"), "a").unwrap();
    git(folder, &["add", "a.txt"]);
    git(folder, &["config", "filter.a=b.clean", &format!("touch '{}'; cat", mark.display())]);
    git(folder, &["config", "filter.a=b.required", "true"]);
    std::fs::write(folder.join(".gitattributes"), "* filter=a=b\n").unwrap();
    std::fs::write(folder.join("a.txt"), "b").unwrap();
    git(folder, &["config", "core.fsmonitor", &format!("touch '{}'; false", mark.display())]);
    let run = modules.world.run(&["go"]).await;
    let changes = ["  AM a.txt", "  ?? .gitattributes", "  ?? bundle.yaml"];
    let expected = [&[HEAD, "git: No commits yet on main, 3 files changed"][..], &changes].concat();
    assert_eq!(told(&run), [expected]);
    assert!(!mark.exists());
}

#[test]
fn bad_options_are_told() {
    check_problems(
        NAME,
        &[
            ("{ every: hour }", "`every`: unknown variant `hour`, expected `turn` or `call`"),
            ("{ git_timeout: 0 }", "`git_timeout` is 0: give seconds, above zero"),
            (
                "{ git: false, time: false, session: false, folder: false, platform: false }",
                "everything is disabled; enable at least one option",
            ),
        ],
    );
}
