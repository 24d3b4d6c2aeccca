//! The folder in which programs of hooks run, and the files that their commands name.

use serde_json::{Value, json};

use crate::common::Place;

const CALL: &str = r#"{"tool_name": "Bash", "tool_input": {"command": "ls"}}"#;

/// A workspace, and a bundle in another folder with this hook at `tool:pre`.
fn place(hook: &str) -> (Place, String) {
    let place = Place::with(json!([
        { "tools": [{ "name": "Bash", "input": { "command": "ls" } }] },
        { "text": "Done." },
    ]));
    std::fs::create_dir(place.at("policies")).unwrap();
    place.write("policies/bundle.yaml", &format!("hooks:\n  - {hook}\n    name: own\n    on: tool:pre\n"));
    let file = place.at("policies/bundle.yaml").display().to_string();
    (place, file)
}

/// The reason for which the hook denies, or the text of its failure.
fn reason(place: &Place, bundle: &str) -> String {
    let ran = place.amplifier(&["hooks", "try", "tool:pre", "--data", CALL, "--json", "--bundle", bundle]);
    let tried: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!(tried["denied_by"], "own", "{tried}");
    tried["reason"].as_str().unwrap().to_owned()
}

#[test]
fn commands_and_workers_run_in_the_workspace_in_sessions_tests_and_trials() {
    let worker = "import json, os, sys\nfor line in sys.stdin:\n    result = {'action': 'deny', 'reason': 'in ' + os.getcwd()}\n    \
                  print(json.dumps({'id': json.loads(line)['id'], 'result': result}), flush=True)\n";
    for hook in ["command: ./where.sh", "command: [sh, where.sh]", "worker: [python3, where.py]"] {
        let (place, file) = place(hook);
        place.write("policies/where.sh", "#!/bin/sh\necho in $(pwd) >&2; exit 2\n");
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(place.at("policies/where.sh"), executable).unwrap();
        place.write("policies/where.py", worker);
        let expected = format!("in {}", place.at("workspace").canonicalize().unwrap().display());
        assert_eq!(reason(&place, &file), expected, "{hook}");
        let ran = place.run(&["List it", "--bundle", &file]);
        assert!(ran.error.contains(&expected), "{hook}: {ran:?}");
        let bundle = place.read("policies/bundle.yaml");
        let test = |says: &str, files: &str| {
            let test = format!(
                "tests:\n  - name: one\n    event: tool:pre\n    data: {CALL}\n    expect: {{ says: {says} }}\n{files}"
            );
            place.write("policies/bundle.yaml", &format!("{bundle}{test}"));
            place.amplifier(&["hooks", "test", &file])
        };
        assert!(test(&format!("'{expected}'"), "").fine().ends_with("\n1 passed; 0 failed\n"), "{hook}");
        // A test with files has a workspace of its own.
        let ran = test("in /", "    files: { a.txt: one }\n");
        assert_eq!(ran.code, 0, "{hook}: {ran:?}");
        assert_eq!(test(&format!("'{expected}'"), "    files: { a.txt: one }\n").code, 1, "{hook}");
    }
}

#[test]
fn files_of_the_bundle_are_not_replaced_by_files_of_the_workspace() {
    let hooks = [
        "command: sh own.sh",
        "command: sh ./own.sh",
        "command: [sh, own.sh]",
        "command: [sh, -c, 'sh ./own.sh']",
        "command: [bash, -euo, pipefail, -c, './own.sh']",
        "command: ./own.sh",
        "command: [./own.sh]",
        "command: [env, A=1, ./own.sh]",
        "command: 'A=1 ./own.sh'",
        "command: 'A=\"$PWD\" ./own.sh'",
        "command: 'true && ./own.sh'",
        "command: 'cat | ./own.sh'",
        "command: 'if [ -f own.sh ]; then . ./own.sh; fi'",
        "command: '(./own.sh)'",
        "command: '{ ./own.sh; }'",
        "command: 'run() { ./own.sh; }; run'",
        "command: 'case x in a/b) ;; x) ./own.sh;; esac'",
        "command: 'for file in own.sh; do sh \"$file\"; done'",
        "command: 'echo \"$(cat text.txt)\" >&2; exit 2'",
        "command: 'echo `cat text.txt` >&2; exit 2'",
        "command: 'cat < text.txt >&2; exit 2'",
        "command: 'cat ''text.txt'' >&2; exit 2'",
        "command: 'bash -c \"cat text.txt >&2; exit 2\"'",
        "command: 'bash -c \"./own.sh $PWD\"'",
        "command: 'bash -c \"echo $(cat text.txt) >&2; exit 2\"'",
        "command: 'eval \"./own.sh $PWD\"'",
        "command: eval './own.sh a' b",
        "command: 'timeout 20 ./own.sh'",
        "command: timeout -s KILL 20 sh -c './own.sh a'",
        "command: echo a | xargs sh -c './own.sh a >&2; exit 2' || exit 2",
        "command: [timeout, '20', sh, -c, './own.sh a']",
        "command: 'dd status=none if=text.txt >&2; exit 2'",
        "command: 'sh folder/own.sh'",
        "command: [sh, folder/../own.sh]",
        "command: [python3, own.py]",
        "command: 'cat \"$TEXT\" >&2; exit 2'\n    env: { TEXT: text.txt }",
        "command: |\n      cat <<END >/dev/null\n      ./own.sh\n      END\n      ./own.sh",
    ];
    let (place, file) = place("command: x");
    let script = |who: &str| format!("#!/bin/sh\necho {who} >&2; exit 2\n");
    for (folder, who) in [("policies", "the bundle"), ("workspace", "the agent")] {
        std::fs::create_dir(place.at(&format!("{folder}/folder"))).unwrap();
        for name in ["own.sh", "folder/own.sh"] {
            place.write(&format!("{folder}/{name}"), &script(who));
            let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(place.at(&format!("{folder}/{name}")), executable).unwrap();
        }
        place.write(&format!("{folder}/text.txt"), &format!("{who}\n"));
        place.write(
            &format!("{folder}/own.py"),
            &format!("import sys\nsys.exit(print({who:?}, file=sys.stderr) or 2)\n"),
        );
    }
    for hook in hooks {
        place.write("policies/bundle.yaml", &format!("hooks:\n  - {hook}\n    name: own\n    on: tool:pre\n"));
        assert_eq!(reason(&place, &file), "the bundle", "{hook}");
    }
}

#[test]
fn a_program_that_is_missing_in_the_bundle_is_not_taken_from_the_workspace() {
    for hook in [
        "command: ./gone.sh",
        "command: [./gone.sh]",
        "command: sh gone.sh",
        "command: timeout 20 ./gone.sh",
        "worker: [sh, gone.sh]",
    ] {
        let (place, file) = place(hook);
        place.write("workspace/gone.sh", "#!/bin/sh\nexit 0\n");
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(place.at("workspace/gone.sh"), executable).unwrap();
        let reason = reason(&place, &file);
        assert!(reason.contains("failed") || reason.contains("policies/gone.sh: No such file"), "{hook}: {reason}");
    }
}

#[test]
fn other_words_name_files_of_the_workspace() {
    let (place, file) = place("command: 'cat notes.txt >&2; echo more >> log.txt; exit 2'");
    place.write("workspace/notes.txt", "of the workspace");
    // The result of a redirection does not depend on the files of the bundle.
    place.write("policies/log.txt", "");
    assert_eq!(reason(&place, &file), "of the workspace");
    assert_eq!((place.read("workspace/log.txt").as_str(), place.read("policies/log.txt").as_str()), ("more\n", ""));
}

#[test]
fn python_imports_nothing_from_the_workspace() {
    for hook in ["command: [python3, own.py]", "command: [python3, -m, own]", "command: [python3, -c, 'import own']"] {
        let (place, file) = place(hook);
        place.write("policies/own.py", "import sys\ntry:\n    import other\nexcept ImportError:\n    print('none', file=sys.stderr)\nsys.exit(2)\n");
        place.write("workspace/own.py", "import sys\nprint('the agent', file=sys.stderr)\nsys.exit(2)\n");
        place.write("workspace/other.py", "import sys\nprint('the agent', file=sys.stderr)\nsys.exit(2)\n");
        let reason = reason(&place, &file);
        assert!(!reason.contains("the agent"), "{hook}: {reason}");
    }
}

#[test]
fn validate_warns_about_commands_that_load_code_from_the_workspace() {
    let check = |hook: &str, expected: Option<&str>| {
        let (place, file) = place(hook);
        place.write("policies/own.sh", "#!/bin/sh\n");
        place.write("policies/own.mjs", "");
        let ran = place.amplifier(&["hooks", "validate", "--json", &file]);
        let found: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let found = found.iter().filter(|found| found["code"] == "workspace-code");
        let messages: Vec<&str> = found.map(|found| found["message"].as_str().unwrap()).collect();
        let expected = expected.map(|what| format!("{what} from the workspace, which the agent can write"));
        assert_eq!(messages, expected.iter().map(String::as_str).collect::<Vec<_>>(), "{hook}");
        assert_eq!(ran.code, 0, "{hook}: {ran:?}");
    };
    check("command: make lint", Some("`make` loads code"));
    check("command: [npm, run, lint]", Some("`npm` loads code"));
    check("command: 'true && npx eslint .'", Some("`npx` loads code"));
    check("command: eslint .", Some("`eslint` loads code"));
    check("worker: [node, -e, 'require(\"./x\")']", Some("`node` loads code"));
    check("command: 'echo a | xargs -n1 ./other.sh'", Some("`./other.sh` is run"));
    check("command: 'bash other.d/*.sh'", Some("the command cannot be analysed, and may load code"));
    check("command: sh own.sh", None);
    check("command: 'timeout 5 sh own.sh'", None);
    check("worker: [node, own.mjs]", None);
    check("command: [python3, -m, json.tool]", None);
    check("command: 'ruff check \"$AMPLIFIER_PATH\" >&2 || exit 2'", None);
    check("command: 'grep -q rm && echo no >&2 && exit 2; exit 0'", None);
}
