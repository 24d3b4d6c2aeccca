//! The files that decide about the guard, and the attempts of an agent to change them.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use amplifier_guard::HookOutput;
use amplifier_guard::daemon::{Daemon, DaemonOptions};
use serde_json::{Value, json};

use crate::daemon::{Place, check_denied, receive};

/// Everyday work of coding agents, as the shell analysis is tested with it.
const HARMLESS: &str = include_str!("../../modules/tests/shell/harmless.txt");
/// Days of agents in three projects.
const DAYS: [&str; 3] = [
    include_str!("../../host/tests/day/gateway.txt"),
    include_str!("../../host/tests/day/service.txt"),
    include_str!("../../host/tests/day/workspace.txt"),
];

impl Place {
    async fn command(&self, command: &str) -> HookOutput {
        self.tool("t-1", "Bash", json!({ "command": command })).await
    }

    /// A repository with settings, links and files.
    async fn with_settings() -> Self {
        let place = Self::started("hooks: []\n").await;
        let repo = place.repo();
        for folder in [".claude/skills/pdf", "evil/.claude", "src", "sub/deep", ".github/hooks", ".github/workflows"] {
            fs::create_dir_all(repo.join(folder)).unwrap();
        }
        for file in [".claude/settings.json", "evil/.claude/settings.json", "opencode.json", "src/a.rs", "x.json"] {
            fs::write(repo.join(file), "{}").unwrap();
        }
        symlink(repo.join(".claude"), repo.join("link")).unwrap();
        place
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_cannot_change_settings_from_another_folder_by_a_pattern_or_a_link() {
    let place = Place::with_settings().await;
    let mut missed = Vec::new();
    for command in [
        "cd .claude && echo {} > settings.json",
        "cd .claude; printf x > settings.local.json",
        "(cd .claude && touch settings.json)",
        "pushd .claude && cp ../x.json settings.json",
        "D=.cla; cd ${D}ude && echo {} > settings.json",
        "cd \"$X\" && echo {} > settings.json",
        "cd \"$X\" && echo {} > \"$F\"",
        "cd $(cat where) && tar xf ../a.tar",
        "cd \"$X\" && mv a .claude",
        "echo {} > .cl*/settings.json",
        "rm .cl*/*.json",
        "rm *.json",
        "rm */.claude/settings.json",
        "cp x.json link/settings.json",
        "cp x.json l*k/settings.json",
        "cd link && rm settings.json",
        "ln -s .claude other",
        "ln -sfn evil/.claude .claude",
        "mv evil/.claude .",
        "mv evil .claude",
        "rm -rf .claude",
        "chmod -R a-r .claude",
        "cp -r evil/. .",
        "cp -r evil/.claude sub",
        "tar xf a.tar -C .claude",
        "python3 -c \"open('.claude/settings.json', 'w')\"",
        "python3 -c \"import os; os.chdir('.claude'); open('settings.json', 'w')\"",
        "node -e 'require(\"fs\").writeFileSync(\".claude/\" + \"settings.json\", \"\")'",
        "python3 <<'X'\nimport os\nos.chdir('.claude')\nX",
        "cd .claude && python3 ../x.py",
        "cd .claude && pytest",
        "pytest -q .claude",
        "eslint .claude",
        "mypy .claude --strict",
        "cd .claude && psql -f x.sql app",
        "./tool --output=.claude/settings.json",
        "echo {} > sub/.claude/settings.json",
        "mkdir -p sub/.claude && cd sub/.claude && echo {} > settings.json",
        "tee sub/deep/.gemini/settings.json < x.json",
        "cp x.json .mcp.json",
        "echo {} > sub/opencode.json",
        "echo BASH_ENV=x > .gemini/.env",
        "echo {} > .CLAUDE/Settings.json",
        "echo {} > src/../.claude/settings.json",
        "rm -rf .github",
        "rm .github/hooks/x.json",
        "eval \"$(cat x)\" .claude",
        "$(echo rm) -r .claude",
        "echo {} > ~/.claude/settings.json",
        "cat x.json | tee $HOME/.codex/config.toml",
        "cd .claude/skills/pdf; tee ../../settings.json < x.json",
        "cp x.json $(echo .claude)/settings.json",
        "F=$(printf .cla; printf ude); echo {} > $F/settings.json",
        "find . -name settings.json -delete",
        "find . -name 'set*.json' -exec rm {} +",
        "find .claude -type f -delete",
        "rsync -a evil/ ./",
        "sed -i s/a/b/ .claude/*",
        "rm -rf .cl*",
        "mv .c* x",
        "vim -es .claude/*",
        "mv .github .x",
        "unlink .cl?ude/settings.json",
        "cd -P .claude && rm settings.json",
        "builtin cd .claude && rm settings.json",
        "env -C .claude tee settings.json < x.json",
        "(set -- .claude; cd $1; echo {} > settings.json)",
        "echo {} > .claude$(:)/settings.json",
        "echo {} > .clau''de/settings.json",
        "echo {} > $'.cla\\x75de/settings.json'",
        "tee .{claude,x}/settings.json < x.json",
        "tee .clau{de/settings.json,x} < x.json",
        "cp {x,.claude/settings}.json",
        "mkdir e; echo {} > e/settings.json; mv e .claude",
        "mkdir e; echo {} > e/settings.json; cp -r e .claude",
        "cd; cd guard && echo program=/tmp/x > start",
        "cd \"$X\" && echo > bundle.yaml",
        "ln -s $PWD/.claude x",
        "(cd .claude; ln -sf ../x.json settings.json)",
        "(cd .claude; ln -sf ../e/settings.json)",
        "cd .claude && git init && git pull https://example.com/a",
        "find . -name .claude -exec rm -rf {} +",
        "echo .claude | xargs rm -rf",
        "make -C .claude",
        "chmod 000 .claude",
        "rmdir .claude",
        "set -- .claude; rm -rf \"$1\"",
        "$(true); cd .cl*; echo {} > settings.json",
        "cd .cl*; echo {} > settings.json; : $((",
        "a=amplifier; $a hooks trust; $b",
        "$(which amplifier) hooks trust",
        "python3 -c 'import os; os.system(\"amplifier hooks trust\")'",
    ] {
        let output = place.command(command).await;
        if output.code != 2 || !output.stderr.contains("Denied by hook protect-policy") {
            missed.push(command);
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
    for (tool, input) in [
        ("mcp__shell__run", json!({ "cmd": "cd .claude && rm settings.json" })),
        ("mcp__shell__run", json!({ "script": "amplifier hooks trust" })),
    ] {
        check_denied(&place.tool("t-1", tool, input).await, "Denied by hook protect-policy");
    }
    let input = json!({ "sessionId": "s-cp", "cwd": place.repo(), "toolName": "write_bash", "toolArgs": { "input": "rm -rf .claude" } });
    let stream = place.send("copilot", "preToolUse", 20_000, input.to_string().as_bytes()).await;
    check_denied(&receive(stream).await.unwrap(), "Denied by hook protect-policy");
    // The folder of a command is in its input, or unknown.
    let input = json!({ "command": "echo {} > settings.json", "workdir": ".claude" });
    check_denied(&place.tool("t-1", "Bash", input).await, "Denied by hook protect-policy");
    let mut payload = place.payload("PreToolUse", json!({ "session_id": "s-cx", "turn_id": "t", "tool_name": "Bash" }));
    for (command, code) in [("echo {} > settings.json", 2), ("echo {} > ../out.json", 0), ("cargo build", 0)] {
        payload["tool_input"] = json!({ "command": command });
        let stream = place.send("codex", "PreToolUse", 20_000, payload.to_string().as_bytes()).await;
        assert_eq!(receive(stream).await.unwrap().code, code, "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ordinary_commands_run_beside_settings() {
    let place = Place::with_settings().await;
    let mut denied = Vec::new();
    let own = [
        "mkdir -p .github/workflows && cp x.json .github/workflows/ci.json",
        "python3 .claude/skills/pdf/fill.py in.pdf",
        "cd .claude/skills/pdf && python3 fill.py",
        "cd sub && cargo fmt && git commit -am x",
        "cd \"$(git rev-parse --show-toplevel)\" && echo x > out.txt",
        "cd $(mktemp -d) && git clone https://example.com/a",
        "for f in $(git ls-files '*.rs'); do sed -i 's/a/b/' \"$f\"; done",
        "grep -rl foo src | xargs sed -i 's/foo/bar/'",
        "rm -rf node_modules/* build",
        "rm -rf src/*.rs",
        "python3 -c \"db.cursor().execute('x')\"",
        "cp x.json ..",
        "cp -r src lib",
        "mv src lib",
        "ln -s ../repo/src lib",
        "npx prettier --write .",
        "git checkout -b x",
        "ls .claude",
        "curl -o out.json https://example.com",
        "cp README.md .claude/",
        "echo x > \"$OUT/report.txt\"",
        "find . -name '*.pyc' -delete",
        "sed -i s/a/b/ $(git ls-files '*.rs')",
        "a=~/x; ls ~ ~/src; echo 'a ~ b'",
        "rm -rf old && mv packages/a packages/b",
    ];
    for folder in ["old/.vscode", "packages/a/.vscode"] {
        fs::create_dir_all(place.repo().join(folder)).unwrap();
        fs::write(place.repo().join(folder).join("settings.json"), "{}").unwrap();
    }
    let days = DAYS.iter().flat_map(|day| day.lines()).filter_map(|line| line.strip_prefix("$ "));
    let collected = HARMLESS.lines().filter(|line| !line.is_empty()).chain(days);
    let commands = own.into_iter().chain(collected);
    for command in commands {
        let output = place.command(&command.replace('⏎', "\n").replace("\\n", "\n")).await;
        // `protect` decides only without a sandbox.
        if output.code != 0 && !output.stderr.starts_with("Denied by hook protect:") {
            denied.push(format!("{command}: {}", output.stderr));
        }
    }
    assert!(denied.is_empty(), "{denied:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn file_tools_find_protected_paths_at_any_depth_of_their_input() {
    let place = Place::with_settings().await;
    let repo = place.repo();
    let edit = |path: &str| json!({ "edits": [{ "file_path": "src/a.rs" }, { "file_path": path }] });
    for (name, input) in [
        ("Write", json!({ "file_path": "sub/.claude/settings.json", "content": "" })),
        ("Write", json!({ "file_path": repo.join("sub/deep/.codex/config.toml"), "content": "" })),
        ("Write", json!({ "file_path": "link/settings.json", "content": "" })),
        ("Write", json!({ "file_path": "~/.claude/settings.json", "content": "" })),
        ("Write", json!({ "file_path": ".mcp.json", "content": "" })),
        ("Write", json!({ "file_path": ".gemini/.env", "content": "" })),
        ("Write", json!({ "file_path": ".claude", "content": "" })),
        ("MultiEdit", edit(".claude/settings.local.json")),
        ("NotebookEdit", json!({ "notebook_path": ".claude/settings.json", "new_source": "" })),
        ("mcp__files__write", json!({ "files": [{ "to": { "name": ".claude/settings.json" } }] })),
        ("mcp__files__write", json!({ "uri": format!("file://{}/.claude/settings.json", repo.display()) })),
        ("mcp__files__write", json!({ "uri": format!("file://{}/%2Eclaude/settings.json", repo.display()) })),
        ("Read", json!({ "file_path": place.folder.path().join("guard/start") })),
    ] {
        check_denied(&place.tool("t-1", name, input).await, "Denied by hook protect-files");
    }
    for (name, input) in [
        ("Write", json!({ "file_path": "src/b.rs", "content": ".claude/settings.json" })),
        ("Write", json!({ "file_path": ".claude/skills/pdf/SKILL.md", "content": "a\nb" })),
        ("MultiEdit", edit("src/b.rs")),
        ("Read", json!({ "file_path": ".claude/settings.json" })),
        ("mcp__git__commit", json!({ "message": "change\n.claude/settings.json", "uri": "https://example.com/../a" })),
    ] {
        let output = place.tool("t-2", name, input).await;
        assert_eq!(output.code, 0, "{output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_programs_understand_differently_is_denied() {
    let place = Place::with_settings().await;
    fs::create_dir_all(place.folder.path().join("elsewhere/deep")).unwrap();
    symlink(place.folder.path().join("elsewhere/deep"), place.repo().join("away")).unwrap();
    // For the system, the file is in `elsewhere`; for a program that looks at the text, in the repository.
    for path in ["away/../.claude/settings.json", "away/../notes.md"] {
        let output = place.tool("t-1", "Write", json!({ "file_path": path, "content": "" })).await;
        check_denied(&output, "Denied by hook protect-files");
    }
    for (path, expected) in [
        ("src/\n/../.claude/settings.json".to_owned(), "line break"),
        ("src/\0".to_owned(), "control character"),
        (format!(".claude/{}settings.json", "./".repeat(3000)), "longer than the paths of the system"),
    ] {
        for (tool, field) in [("Write", "file_path"), ("NotebookEdit", "notebook_path"), ("mcp__f__w", "path")] {
            check_denied(&place.tool("t-2", tool, json!({ field: path })).await, expected);
        }
    }
    let output = place.tool("t-3", "Write", json!({ "file_path": "sub/../notes.md", "content": "" })).await;
    assert_eq!(output.code, 0, "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_programs_of_the_guard_are_protected_where_they_are_installed() {
    let mut place = Place::new("hooks: []\n");
    let bin = place.folder.path().canonicalize().unwrap().join("bin");
    fs::create_dir(&bin).unwrap();
    for name in ["amplifier", "amplifier-hook"] {
        fs::write(bin.join(name), "program").unwrap();
    }
    symlink(&bin, place.repo().join("tools")).unwrap();
    let options = DaemonOptions { program: Some(bin.join("amplifier")), ..place.options(Duration::from_secs(600)) };
    place.daemon = Some(tokio::spawn(Daemon::open(options).await.unwrap().unwrap().run()));
    let hook = bin.join("amplifier-hook");
    check_denied(&place.tool("t-1", "Write", json!({ "file_path": hook, "content": "" })).await, "protect-files");
    for command in [
        format!("cp /bin/true {}", hook.display()),
        format!("rm -rf {}", bin.display()),
        format!("cd {} && rm amplifier-hook", bin.display()),
        "rm tools/amplifier-*".to_owned(),
        format!("find {} -name 'amp*' -delete", bin.display()),
        format!("chmod -x {}", hook.display()),
        "cp tools/amplifier x".to_owned(),
        "ln -s ../bin/amplifier x".to_owned(),
        "/usr/bin/ampl* hooks trust; $X".to_owned(),
    ] {
        check_denied(&place.command(&command).await, "Denied by hook protect-policy");
    }
    assert_eq!(place.command(&format!("ls -l {}", hook.display())).await.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ambiguous_name_of_a_tool_is_checked_under_every_possible_name() {
    let rules = "hooks:\n  - rule: no-delete\n    on: tool:pre\n    when: tool_name == \"mcp__my-files__delete-all\"\n    deny: nothing is deleted\n";
    let place = Place::started(rules).await;
    let mut payload = json!({ "sessionId": "s", "cwd": place.repo(), "toolName": "", "toolArgs": {} });
    for (name, code) in [("my-files-delete-all", 2), ("my-files-list", 0)] {
        payload["toolName"] = name.into();
        let stream = place.send("copilot", "preToolUse", 20_000, payload.to_string().as_bytes()).await;
        assert_eq!(receive(stream).await.unwrap().code, code, "{name}");
    }
    assert!(place.records(&["mcp__my__files-list", "\"event\""]) > 0);
    payload["toolName"] = "a-".repeat(20).into();
    let stream = place.send("copilot", "preToolUse", 20_000, payload.to_string().as_bytes()).await;
    check_denied(&receive(stream).await.unwrap(), "more than 16 possible names");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_an_ambiguous_tool_is_applied_if_all_names_agree() {
    let rules = "hooks:\n  - rule: set\n    on: tool:pre\n    when: tool_name.startsWith(\"mcp__\") && tool_name != \"mcp__b-c__d\"\n    modify: { set: { /tool_input/a: 2 } }\n";
    let place = Place::started(rules).await;
    for (name, expected) in [("a-b-c", Some(2)), ("b-c-d", None)] {
        let payload = json!({ "sessionId": "s", "cwd": place.repo(), "toolName": name, "toolArgs": { "a": 1 } });
        let stream = place.send("copilot", "preToolUse", 20_000, payload.to_string().as_bytes()).await;
        let output = receive(stream).await.unwrap();
        let stdout: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(stdout["modifiedArgs"]["a"].as_u64(), expected, "{output:?}");
        assert_eq!(output.code == 0, expected.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_with_too_many_parts_is_denied() {
    let place = Place::started("hooks: []\n").await;
    let keys: serde_json::Map<String, Value> = (0..10_001).map(|key| (key.to_string(), json!(1))).collect();
    check_denied(&place.tool("t-1", "Any", keys.into()).await, "at most 10000 are checked");
    let items = json!({ "items": vec![0; 10_001] });
    check_denied(&place.tool("t-2", "Any", items).await, "at most 10000 are checked");
    let large = json!({ "file_path": "a", "content": "x".repeat((16 << 20) + 1) });
    check_denied(&place.tool("t-3", "Write", large).await, "at most 16777216 are checked");
    let prompt = json!({ "prompt": "x".repeat((16 << 20) + 1) });
    check_denied(&place.call("UserPromptSubmit", prompt).await, "at most 16777216 are checked");
    let files: String = (0..501).map(|file| format!("*** Add File: {file}\n+x\n")).collect();
    let mut payload = place.payload(
        "PreToolUse",
        json!({ "session_id": "s-cx", "turn_id": "t", "tool_name": "apply_patch", "tool_use_id": "c" }),
    );
    payload["tool_input"] = json!({ "command": format!("*** Begin Patch\n{files}*** End Patch\n") });
    let stream = place.send("codex", "PreToolUse", 20_000, payload.to_string().as_bytes()).await;
    check_denied(&receive(stream).await.unwrap(), "more than 500 files");
}
