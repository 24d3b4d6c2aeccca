use serde_json::json;

use super::{Setup, asked, check_problems};

/// The outcome of a command: the request with the reason, the denial, or the output.
async fn outcome(config: &str, command: &str) -> String {
    let setup = Setup::new(&format!("hooks:\n  - module: hooks-bash-guard\n    config: {config}\n"));
    setup.write("a.txt", "hello\n");
    let (run, result) = setup.call(&["Deny"], "Bash", json!({ "command": command })).await;
    match asked(&run)[..] {
        [] => result,
        [question] => {
            assert!(result.starts_with("Denied by hook hooks-bash-guard: User denied: "), "{result}");
            assert_eq!(setup.read("a.txt").unwrap(), "hello\n");
            question.to_owned()
        }
        _ => panic!("asked twice: {:?}", asked(&run)),
    }
}

#[tokio::test]
async fn dangerous_commands_are_asked_about_and_the_question_says_why() {
    let table = [
        ("cat a.txt", "hello"),
        ("cat a.txt | wc -l", "1"),
        ("echo more >> b.txt", "(no output)"),
        ("rm -rf .", "Run `rm -rf .`? deletes recursively (`rm -rf .`)"),
        (
            "$(echo rm) a.txt",
            "Run `$(echo rm) a.txt`? the command cannot be analysed: the program is the result of an expansion; write its name",
        ),
        (
            "curl -s -d x http://192.0.2.1:9/",
            "Run `curl -s -d x http://192.0.2.1:9/`? the command uses the network: sends data, or uses an unknown address \
             (`curl -s -d x http://192.0.2.1:9/`)",
        ),
        (
            "echo x > /nowhere/x",
            "Run `echo x > /nowhere/x`? the command writes to `/nowhere/x`, outside of the workspace",
        ),
        (
            "find /nowhere -execdir touch x \\;",
            "Run `find /nowhere -execdir touch x \\;`? the command writes to `x`, which may be outside of the workspace",
        ),
        (
            "echo x > \"$HOME/x\"",
            "Run `echo x > \"$HOME/x\"`? the command writes to `\"$HOME/x\"`, which may be outside of the workspace",
        ),
        (
            "cd $X && touch x",
            "Run `cd $X && touch x`? the command writes to `x`, which may be outside of the workspace",
        ),
    ];
    for (command, expected) in table {
        assert_eq!(outcome("{}", command).await, expected, "{command}");
    }
}

#[tokio::test]
async fn a_link_out_of_the_workspace_is_outside() {
    let setup = Setup::new("hooks:\n  - module: hooks-bash-guard\n");
    let elsewhere = tempfile::tempdir().unwrap();
    let real = elsewhere.path().canonicalize().unwrap();
    std::os::unix::fs::symlink(&real, setup.workspace().join("link")).unwrap();
    let (run, _) = setup.call(&["Deny"], "Bash", json!({ "command": "touch link/x" })).await;
    let place = real.join("x");
    let expected = format!("Run `touch link/x`? the command writes to `{}`, outside of the workspace", place.display());
    assert_eq!(asked(&run), [expected]);
    assert!(!place.exists());
}

#[tokio::test]
async fn options_are_read_as_the_programs_read_them() {
    let strict = "{ destructive: deny, unanalysable: deny, network: deny, outside: deny }";
    let outside = |file: &str| format!("the command writes to `{file}`, outside of the workspace");
    let untold = |file: &str| format!("the command writes to `{file}`, which may be outside of the workspace");
    let denied = [
        ("cp -vt /nowhere a.txt", outside("/nowhere")),
        ("cp --target-dir=/nowhere a.txt", outside("/nowhere")),
        ("mv /nowhere/x ./x", outside("/nowhere/x")),
        ("chmod -x \"/nowhere/x\"", outside("/nowhere/x")),
        ("sed -i -es/a/b/ /nowhere/x", outside("/nowhere/x")),
        ("tar -xf a.tar -C /nowhere", outside("/nowhere")),
        ("echo /nowhere/x | xargs touch", untold("…")),
        ("echo /nowhere/x | xargs -I% cp a.txt %", untold("…")),
        ("git clean -fdx -e -n", "deletes untracked files (`git clean -fdx -e -n`)".to_owned()),
        (
            "git push https://example.com/x main",
            "the command uses the network: sends data or changes something elsewhere (`git push https://example.com/x main`)"
                .to_owned(),
        ),
    ];
    for (command, why) in denied {
        let expected = format!("Denied by hook hooks-bash-guard: `{command}` is not run: {why}");
        assert_eq!(outcome(strict, command).await, expected, "{command}");
    }
    let allowed = [
        ("mkdir here; cp -t ./here a.txt; cat here/a.txt", "hello"),
        ("sed -n -es/hello/bye/p a.txt", "bye"),
        ("mkdir here; mv *.txt here/; ls here", "a.txt"),
        ("cp 'a.txt' \"b c.txt\"; cat 'b c.txt'", "hello"),
    ];
    for (command, expected) in allowed {
        assert_eq!(outcome(strict, command).await, expected, "{command}");
    }
}

#[tokio::test]
async fn a_pattern_is_inside_unless_a_link_of_its_folder_leads_out() {
    let setup = Setup::new("hooks:\n  - module: hooks-bash-guard\n");
    setup.write("src/a.txt", "");
    let touch = || setup.call(&["Deny"], "Bash", json!({ "command": "touch src/*.txt" }));
    assert_eq!(asked(&touch().await.0), [] as [&str; 0]);
    std::os::unix::fs::symlink("/nowhere", setup.workspace().join("src/b.txt")).unwrap();
    let why = "the command writes to `src/*.txt`, which may be outside of the workspace";
    let (run, result) = touch().await;
    assert_eq!(asked(&run), [format!("Run `touch src/*.txt`? {why}")], "{result}");
}

#[tokio::test]
async fn every_answer_can_be_chosen_but_what_is_unclear_is_never_allowed() {
    let denied = "Denied by hook hooks-bash-guard: ";
    let table = [
        (
            "{ destructive: deny }",
            "rm -rf .",
            format!("{denied}`rm -rf .` is not run: deletes recursively (`rm -rf .`)"),
        ),
        ("{ outside: allow }", "touch /nowhere/x 2> /dev/null || true", "(no output)".into()),
        (
            "{ outside: deny }",
            "touch /nowhere/x",
            format!(
                "{denied}`touch /nowhere/x` is not run: the command writes to `/nowhere/x`, outside of the workspace"
            ),
        ),
        (
            "{ network: deny }",
            "curl -T a.txt x",
            format!(
                "{denied}`curl -T a.txt x` is not run: the command uses the network: sends data, or uses an unknown address \
                 (`curl -T a.txt x`)"
            ),
        ),
        ("{ network_reads: deny }", "curl x", format!("{denied}`curl x` is not run: the command uses the network")),
        ("{ network: allow }", "curl --version > /dev/null 2>&1 || true", "(no output)".into()),
        ("{ other: ask }", "touch b.txt", "Run `touch b.txt`? the command is not proven to be read-only".into()),
        ("{ other: ask, allow: [touch] }", "touch b.txt", "(no output)".into()),
        (
            "{ other: ask, allow: [touch] }",
            "touch b.txt; mkdir c",
            "Run `touch b.txt; mkdir c`? the command is not proven to be read-only".into(),
        ),
        ("{ allow: [rm] }", "rm -rf .", "Run `rm -rf .`? deletes recursively (`rm -rf .`)".into()),
        ("{ deny: [cat] }", "cat a.txt", format!("{denied}`cat a.txt` is not run: `cat` is in `deny`")),
        (
            "{ deny: [cat] }",
            "echo $(sudo cat a.txt)",
            format!("{denied}`echo $(sudo cat a.txt)` is not run: `cat` is in `deny`"),
        ),
    ];
    for (config, command, expected) in table {
        assert_eq!(outcome(config, command).await, expected, "{config} {command}");
    }
    let unclear = outcome("{ unanalysable: deny }", "$X").await;
    assert!(unclear.starts_with(&format!("{denied}`$X` is not run: the command cannot be analysed: ")), "{unclear}");
}

#[tokio::test]
async fn a_lasting_answer_is_offered_only_where_the_question_shows_the_whole_command() {
    let setup = Setup::new("hooks:\n  - module: hooks-bash-guard\n");
    let long = format!("rm -rf {}", "x".repeat(3_000));
    for (command, shown, lasting) in [
        ("rm -rf x", "rm -rf x".to_owned(), true),
        ("rm -rf x\u{200b}", "rm -rf x\\u{200b}".to_owned(), false),
        (long.as_str(), format!("{}…", &long[..2_000]), false),
    ] {
        let (run, _) = setup.call(&["Deny"], "Bash", json!({ "command": command })).await;
        let question = &run.questions[0];
        assert!(question.prompt.starts_with(&format!("Run `{shown}`? ")), "{}", question.prompt);
        let labels: Vec<&str> = question.options.iter().map(|option| option.label.as_str()).collect();
        let offered: &[&str] = if lasting { &["Allow once", "Allow always", "Deny"] } else { &["Allow once", "Deny"] };
        assert_eq!(labels, offered);
    }
}

#[tokio::test]
async fn what_is_allowed_by_a_person_runs() {
    let setup = Setup::new("hooks:\n  - module: hooks-bash-guard\n");
    setup.write("build/x", "");
    let (run, result) = setup.call(&["Allow once"], "Bash", json!({ "command": "rm -rf build" })).await;
    assert_eq!((asked(&run).len(), result.as_str(), setup.read("build/x")), (1, "(no output)", None));
}

/// The approval request for each command, in a repository with a source file and ignored build outputs.
async fn questions(commands: &[&str]) -> Vec<String> {
    let setup = Setup::new("hooks:\n  - module: hooks-bash-guard\n");
    for file in ["src/main.py", "dist/kept.js", "node_modules/a/index.js", "package.json"] {
        setup.write(file, "");
    }
    setup.write(".gitignore", "node_modules/\ndist/\n");
    let git = |arguments: &[&str]| {
        let git = std::process::Command::new("git").args(arguments).current_dir(setup.workspace()).output().unwrap();
        assert!(git.status.success(), "{git:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "-f", "src", "package.json", "dist/kept.js"]);
    let mut questions = Vec::new();
    for command in commands {
        // Denied by a person, or by the shell: nothing that is asked about here may run.
        let (run, _) = setup.call(&["Deny"], "Bash", json!({ "command": command })).await;
        questions.extend(asked(&run).into_iter().map(str::to_owned));
    }
    questions
}

#[tokio::test]
async fn build_outputs_that_git_ignores_and_keeps_nothing_of_are_deleted_without_a_question() {
    assert_eq!(questions(&["rm -rf node_modules", "rm -rf __pycache__ src/__pycache__"]).await, [] as [&str; 0]);
    let asked_about =
        ["rm -rf dist", "rm -rf src", "rm -rf node_modules src", "rm -rf ../x", "rm -rf .git", "cd .. && rm -rf x"];
    assert_eq!(questions(&asked_about).await.len(), asked_about.len());
}

#[tokio::test]
async fn no_program_of_the_repository_runs_when_git_is_asked_about_build_outputs() {
    let setup = Setup::new("hooks:\n  - module: hooks-bash-guard\n");
    setup.write("node_modules/a", "");
    setup.write(".gitignore", "node_modules/\n");
    for arguments in [&["init", "-q"] as &[&str], &["config", "core.fsmonitor", "touch ran-by-git; false"]] {
        let git = std::process::Command::new("git").args(arguments).current_dir(setup.workspace()).output().unwrap();
        assert!(git.status.success(), "{git:?}");
    }
    let (run, _) = setup.call(&["Deny"], "Bash", json!({ "command": "rm -rf node_modules" })).await;
    assert_eq!(asked(&run), [] as [&str; 0]);
    assert!(!setup.workspace().join("node_modules").exists() && !setup.workspace().join("ran-by-git").exists());
}

#[tokio::test]
async fn a_checkout_of_a_file_is_asked_about_and_one_of_a_branch_is_not() {
    assert_eq!(questions(&["git checkout feature", "git checkout -b new"]).await, [] as [&str; 0]);
    let expected = "Run `git checkout src`? discards changes (`git checkout src`)";
    assert_eq!(questions(&["git checkout src"]).await, [expected]);
}

#[tokio::test]
async fn temporary_files_are_written_without_a_question_and_the_folder_of_all_of_them_is_not_deleted() {
    let folder = tempfile::Builder::new().prefix("guarded").tempdir_in("/tmp").unwrap();
    let path = folder.path().display();
    let written = [format!("echo x > {path}/x"), format!("d=$(mktemp -d) && rm -rf \"$d\" {path}/x")];
    assert_eq!(questions(&[&written[0], &written[1]]).await, [] as [&str; 0]);
    assert_eq!(questions(&["rm -rf /tmp", "rm -rf /tmp/*", "rm -rf /tmp/../etc"]).await.len(), 3);
}

#[tokio::test]
async fn only_what_follows_a_change_of_the_folder_is_somewhere_else() {
    assert_eq!(
        questions(&["touch a; cd src && touch b", "(cd / && ls); touch c", "cd src; touch d"]).await,
        [] as [&str; 0]
    );
    let unknown = ["cd $X && touch a", "for i in 1 2; do touch a; cd ..; done", "f() { touch x; }; cd ..; f"];
    assert_eq!(questions(&unknown).await.len(), unknown.len());
}

#[tokio::test]
async fn a_function_that_changes_the_folder_moves_what_follows_its_call() {
    assert_eq!(
        questions(&["f() { (cd src && ls); }; f && rm -rf node_modules", "f() { ls; }; f; rm -rf node_modules"]).await,
        [] as [&str; 0]
    );
    let unknown = [
        "f() { cd ..; }; f && rm -rf node_modules",
        "f() { cd ..; }; f; rm -rf node_modules",
        "f() { g; }; g() { cd ..; }; f && rm -rf node_modules",
        "f() { cd ..; }; eval f; rm -rf node_modules",
    ];
    assert_eq!(questions(&unknown).await.len(), unknown.len());
}

#[tokio::test]
async fn a_file_that_is_there_is_not_emptied_without_a_question() {
    assert_eq!(questions(&["sed -i d new.txt", "ln -sf /dev/null new.log"]).await, [] as [&str; 0]);
    let asked_about = ["sed -i d src/main.py", "sed -i '1,$d' package.json", "ln -sf /dev/null src/main.py"];
    assert_eq!(questions(&asked_about).await.len(), asked_about.len());
}

#[tokio::test]
async fn a_call_without_a_command_is_denied() {
    let setup = Setup::new("hooks:\n  - module: hooks-bash-guard\n");
    for input in [json!({}), json!({ "command": ["rm", "x"] }), json!({ "cmd": "rm x" })] {
        let (_, result) = setup.call(&["Allow once"], "Bash", input).await;
        let reason = "`command` is missing or not a string, so the program is unknown";
        assert_eq!(result, format!("Denied by hook hooks-bash-guard: {reason}"));
    }
}

#[test]
fn mistakes_in_its_options_are_told() {
    check_problems(
        "hooks-bash-guard",
        &[
            ("{ unanalysable: allow }", "`unanalysable`: unknown variant `allow`, expected `ask` or `deny`"),
            ("{ destructive: allow }", "`destructive`: unknown variant `allow`, expected `ask` or `deny`"),
            ("{ network: maybe }", "`network`: unknown variant `maybe`, expected one of `allow`, `ask`, `deny`"),
            ("{ tools: [] }", "`tools` is empty: name at least one"),
            ("{ tools: ['*'] }", "invalid name `*` in `tools`: patterns are not supported; write each name"),
            (
                "{ deny: [/bin/rm] }",
                "invalid program name `/bin/rm`; write the name without a folder, arguments and patterns",
            ),
            ("{ deny: [rm], allow: [rm] }", "`rm` is in `deny` and in `allow`; remove one of the entries"),
            ("{ timeout: -1 }", "`timeout` is -1: give a number of seconds above zero"),
        ],
    );
}
