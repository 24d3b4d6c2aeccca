//! Bundles of projects, without a terminal: nothing of them runs that was not trusted.

#![cfg(unix)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use crate::common::{Place, Ran, Running};
use serde_json::{Value, json};

const BUNDLE: &str = "hooks:\n  - command: sh ./note.sh\n    name: note\n    on: prompt:submit\n";

/// A place whose project has a bundle with a program that leaves a trace.
fn place(bundle: &str) -> Place {
    let place = Place::with(json!([{ "text": "Done." }]));
    fs::create_dir(place.at("workspace/.amplifier")).unwrap();
    place.write("workspace/.amplifier/bundle.yaml", bundle);
    place.write("workspace/.amplifier/note.sh", "cat >/dev/null; touch noted\n");
    place
}

/// Does a task; says whether the program of the project ran, and what was said on standard error.
fn noted(place: &Place) -> (bool, String) {
    let Ran { code, out, error } = place.run(&["Do it"]);
    assert_eq!((code, out.as_str()), (0, "Done.\n"), "{error}");
    (fs::remove_file(place.at("workspace/noted")).is_ok(), error)
}

fn file(place: &Place, name: &str) -> String {
    place.at("workspace").canonicalize().unwrap().join(".amplifier").join(name).display().to_string()
}

/// What the audit log holds about bundles of projects.
fn recorded(place: &Place) -> Vec<(String, String)> {
    let shown = place.amplifier(&["audit", "show", "--kind", "policy_change", "--json"]).fine();
    let change = |line: &str| serde_json::from_str::<Value>(line).unwrap()["body"]["change"].clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let changes = shown.lines().map(change).filter(|change| change.is_object());
    changes.map(|change| (text(&change["decision"]), text(&change["digest"]))).collect()
}

/// The digest of what is trusted.
fn digest(place: &Place) -> String {
    let listed = place.amplifier(&["hooks", "trusted", "--json"]).fine();
    serde_json::from_str::<Value>(&listed).unwrap()["digest"].as_str().unwrap().to_owned()
}

#[test]
fn nothing_of_a_project_runs_until_it_is_trusted_and_its_absence_is_told() {
    let place = place(BUNDLE);
    let bundle = file(&place, "bundle.yaml");
    let warning = format!(
        "▲ warning  trust: none of the hooks of this project run, because its bundle `{bundle}` is not trusted; to review \
         and trust the bundle: amplifier hooks trust\n"
    );
    assert_eq!(noted(&place), (false, warning));

    let trusted = place.amplifier(&["hooks", "trust", "--yes"]).fine();
    assert!(trusted.contains("  hook note\n    command: sh ./note.sh\n"), "{trusted}");
    assert!(trusted.contains(&format!("  file {}\n    sha256: ", file(&place, "note.sh"))), "{trusted}");
    let digest = digest(&place);
    assert!(trusted.ends_with(&format!("{bundle} is trusted: {digest}\n")), "{trusted}");
    assert_eq!(noted(&place), (true, String::new()));

    let untrusted = place.amplifier(&["hooks", "untrust"]).fine();
    assert_eq!(untrusted, format!("{bundle} is no longer trusted.\n"));
    assert!(!noted(&place).0);
    assert_eq!(place.amplifier(&["hooks", "trusted"]).fine(), "No trusted bundles.\n");
    let again = format!("amplifier: `{bundle}` is not trusted; see `amplifier hooks trusted`");
    place.amplifier(&["hooks", "untrust"]).check_failed(&again);

    let decisions = recorded(&place);
    let expected = ["not used", "trusted", "used", "taken back", "not used"];
    assert_eq!(decisions, expected.map(|decision| (decision.to_owned(), digest.clone())));
    place.check_sealed(3);
}

#[test]
fn whatever_changes_has_to_be_trusted_again_and_is_named() {
    let place = place(BUNDLE);
    place.amplifier(&["hooks", "trust", "--yes"]).fine();
    let check = |changed: &str, difference: &str| {
        let (ran, said) = noted(&place);
        let expected =
            format!("is not the version that you trusted: `{}` {difference}; to review", file(&place, changed));
        assert!(!ran && said.contains(&expected), "{said}");
    };
    place.write("workspace/.amplifier/note.sh", "cat >/dev/null; touch noted ../other\n");
    check("note.sh", "has other content");
    place.amplifier(&["hooks", "trust", "--yes"]).fine();
    assert_eq!(noted(&place), (true, String::new()));

    place.write("workspace/.amplifier/bundle.yaml", &BUNDLE.replace('\n', "\r\n"));
    check("bundle.yaml", "has other content");
    place.write("workspace/.amplifier/bundle.yaml", BUNDLE);
    fs::rename(place.at("workspace/.amplifier/note.sh"), place.at("elsewhere.sh")).unwrap();
    symlink(place.at("elsewhere.sh"), place.at("workspace/.amplifier/note.sh")).unwrap();
    check("note.sh", "points elsewhere");
}

#[test]
fn programs_see_json_alone_on_standard_output() {
    let place = place(BUNDLE);
    let Ran { code, out, error } = place.run(&["--json", "Do it"]);
    assert_eq!(code, 0);
    assert!(out.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{out}");
    assert!(error.contains("amplifier hooks trust") && !place.at("workspace/noted").exists(), "{error}");
}

#[test]
fn a_bundle_that_is_named_needs_no_trust_and_counts_once() {
    let place = place(BUNDLE);
    let bundle = file(&place, "bundle.yaml");
    let Ran { code, error, .. } = place.run(&["Do it", "--bundle", ".amplifier/bundle.yaml"]);
    assert_eq!((code, error.as_str(), place.at("workspace/noted").exists()), (0, "", true));
    let listed = place.amplifier(&["hooks", "list", "--json", "--bundle", &bundle]).fine();
    let hooks: Vec<(Value, Value)> = listed
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|hook| (hook["name"].clone(), hook["level"].clone()))
        .collect();
    let own = |name: &str| (json!(name), json!("built in"));
    assert_eq!(
        hooks,
        [(json!("note"), json!("named")), own("confirm"), own("session-bundles"), own("session-bundles")]
    );
}

#[test]
fn all_levels_are_listed_with_where_each_hook_comes_from() {
    let place = place(BUNDLE);
    let rule = |name: &str| format!("hooks:\n  - rule: {name}\n    on: prompt:submit\n    when: false\n    deny: no\n");
    place.write("home/bundle.yaml", &rule("note"));
    place.write("mine.yaml", &rule("mine"));
    let list = || {
        place.amplifier(&["hooks", "list", "prompt:submit", "--bundle", &place.at("mine.yaml").display().to_string()])
    };
    let names = |listed: &str| -> Vec<(String, String)> {
        let columns = |line: &str| {
            let (rest, level) = line.rsplit_once("  ").unwrap();
            (rest[21..41].trim().to_owned(), level.to_owned())
        };
        listed.lines().skip(1).map(columns).collect()
    };
    let expected = |hooks: &[(&str, &str)]| -> Vec<(String, String)> {
        hooks.iter().map(|(name, level)| ((*name).to_owned(), (*level).to_owned())).collect()
    };
    let listed = list();
    assert!(listed.error.starts_with("warning: none of the hooks of this project run, "), "{}", listed.error);
    assert_eq!(names(&listed.out), expected(&[("note", "user"), ("mine", "named")]));
    place.amplifier(&["hooks", "trust", "--yes"]).fine();
    let all = [("note", "user"), ("note (project)", "project"), ("mine", "named")];
    assert_eq!(names(&list().fine()), expected(&all));
}

#[test]
fn the_doctor_says_which_bundles_are_used() {
    let place = place(BUNDLE);
    place.write("home/bundle.yaml", "");
    let about = || {
        let doctor = crate::common::Running::start(place.scripted(&["doctor", "--json"])).end();
        let report: Value = serde_json::from_str(&doctor.out).unwrap();
        let findings = report["findings"].as_array().unwrap().clone();
        let found = findings.into_iter().find(|finding| finding["what"] == "bundles").unwrap();
        (found["ok"].as_bool().unwrap(), found["about"].as_str().unwrap().to_owned())
    };
    let (user, project) = (place.at("home/bundle.yaml").display().to_string(), file(&place, "bundle.yaml"));
    let first = format!("{user}: 0 hooks (user); {project}: ");
    let unused = |why: &str| format!("{first}not used: {why} (project); run `amplifier hooks trust`");
    assert_eq!(about(), (true, unused("not trusted")));
    place.amplifier(&["hooks", "trust", "--yes"]).fine();
    assert_eq!(about(), (true, format!("{first}1 hook (project, trusted)")));
    place.write("workspace/.amplifier/note.sh", "");
    assert_eq!(about(), (true, unused("changed since it was trusted")));
    place.write("home/trust.json", "{");
    assert!(!about().0);
}

#[test]
fn a_bundle_that_cannot_be_trusted_stops_nothing_and_runs_nothing() {
    let place = place(BUNDLE);
    place.amplifier(&["hooks", "trust", "--yes"]).fine();
    let check = |problem: &str| {
        let (ran, said) = noted(&place);
        assert!(!ran && said.contains("cannot be trusted: ") && said.contains(problem), "{said}");
        let refused = place.amplifier(&["hooks", "trust", "--yes"]);
        assert!(refused.code == 1 && refused.error.contains(problem), "{}", refused.error);
    };
    place.write("workspace/.amplifier/bundle.yaml", "hooks: [");
    check("bundle.yaml:1:");
    fs::remove_file(place.at("workspace/.amplifier/bundle.yaml")).unwrap();
    place.make_pipe("workspace/.amplifier/bundle.yaml");
    check("it is not a regular file");
    fs::remove_file(place.at("workspace/.amplifier/bundle.yaml")).unwrap();
    place.write("workspace/.amplifier/bundle.yaml", BUNDLE);
    fs::remove_file(place.at("workspace/.amplifier/note.sh")).unwrap();
    place.make_pipe("workspace/.amplifier/note.sh");
    check("note.sh` cannot be pinned: the file is a pipe");
    fs::remove_file(place.at("workspace/.amplifier/note.sh")).unwrap();
    place.write("home/trust.json", "{ \"version\": 1");
    check("is damaged, so nothing is trusted");
}

#[test]
fn text_of_a_bundle_cannot_steer_a_terminal() {
    let place =
        place("hooks:\n  - rule: \"x\\e[2J\\u202e\"\n    on: tool:pre\n    deny: \"\\r\\n/trusted\\e]0;x\\a\"\n");
    let shown = place.amplifier(&["hooks", "trust", "--yes"]).fine();
    assert!(
        shown.contains(
            "  hook x␛[2J\\u{202e}\n    rule: x␛[2J\\u{202e}\n    on: tool:pre\n    deny: ␍␊/trusted␛]0;x␇\n"
        ),
        "{shown}"
    );
    assert!(!shown.contains(['\x1b', '\r', '\x07', '\u{202e}']));
}

#[test]
fn without_a_terminal_trust_needs_to_be_agreed_to() {
    let place = place(BUNDLE);
    let asked = place.amplifier(&["hooks", "trust"]);
    let nobody = "amplifier: not trusted: no terminal to ask on; review the content above, then run this in a terminal or with --yes\n";
    assert_eq!((asked.code, asked.error.as_str()), (2, nobody));
    assert!(asked.out.contains("command: sh ./note.sh") && asked.out.contains("sha256"), "{}", asked.out);
    let other = place.at("other.yaml").display().to_string();
    let usage = format!(
        "amplifier: only `.amplifier/bundle.yaml` of a project needs trust; use `{other}` with --bundle {other}"
    );
    place.amplifier(&["hooks", "trust", &other, "--yes"]).check_usage(&usage);
    fs::remove_file(place.at("workspace/.amplifier/bundle.yaml")).unwrap();
    let none = format!("amplifier: `{}` not found; create one with `amplifier init`", file(&place, "bundle.yaml"));
    place.amplifier(&["hooks", "trust"]).check_failed(&none);
    assert_eq!(noted(&place), (false, String::new()));
}

#[test]
fn tests_of_a_project_run_when_it_is_named_or_trusted() {
    let place = place(&format!(
        "{BUNDLE}tests:\n  - name: it goes on\n    event: prompt:submit\n    data: {{ prompt: x }}\n    expect: {{ decision: continue }}\n"
    ));
    let bundle = file(&place, "bundle.yaml");
    let refused = format!(
        "amplifier: the bundle of this project is not trusted; run `amplifier hooks trust`, or name the file: {bundle}"
    );
    place.amplifier(&["hooks", "test"]).check_unchecked(&refused);
    assert!(!place.at("workspace/noted").exists());
    let passed = "test it goes on ... ok\n\n1 passed; 0 failed\n";
    assert_eq!(place.amplifier(&["hooks", "test", &bundle]).fine(), passed);
    place.amplifier(&["hooks", "trust", "--yes"]).fine();
    assert_eq!(place.amplifier(&["hooks", "test"]).fine(), passed);
}

#[test]
fn a_bundle_to_begin_with_passes_its_tests_and_is_written_once() {
    let place = Place::with(json!([
        { "text": "I clean up.", "tools": [{ "name": "Bash", "input": { "command": "rm -rf ." } }] },
        { "when": "Denied by hook no-destructive-shell", "text": "Then not." },
        { "text": "Done." },
    ]));
    let written = place.amplifier(&["init"]).fine();
    let bundle = file(&place, "bundle.yaml");
    assert!(written.starts_with(&format!("{bundle}\n")) && written.ends_with("amplifier hooks trust\n"), "{written}");
    let tested = place.amplifier(&["hooks", "test", &bundle]).fine();
    assert!(tested.ends_with("\n6 passed; 0 failed\n"), "{tested}");
    let taken = format!("amplifier: `{bundle}` already exists; edit or remove the file");
    place.amplifier(&["init"]).check_failed(&taken);
    place.amplifier(&["hooks", "trust", "--yes"]).fine();
    let ran = place.run(&["Clean up"]);
    assert_eq!((ran.code, ran.out.as_str()), (3, "I clean up.\nThen not.\n"));

    let user = place.at("home/bundle.yaml").display().to_string();
    assert!(place.amplifier(&["init", "--user"]).fine().starts_with(&format!("{user}\n")));
    place.amplifier(&["hooks", "untrust"]).fine();
    let ran = place.run(&["Clean up"]);
    assert_eq!((ran.code, ran.out.as_str()), (3, "I clean up.\nThen not.\n"));

    fs::remove_dir_all(place.at("workspace/.amplifier")).unwrap();
    symlink(place.at("home"), place.at("workspace/.amplifier")).unwrap();
    let link = format!(
        "amplifier: `{}` is a link; remove the link, or write the bundle by hand",
        bundle.trim_end_matches("/bundle.yaml")
    );
    place.amplifier(&["init"]).check_failed(&link);
}

#[test]
fn a_project_whose_path_is_no_text_is_refused_for_that() {
    let place = Place::with(json!([]));
    let project = place.at("workspace").join(OsStr::from_bytes(b"proj\xff"));
    fs::create_dir_all(project.join(".amplifier")).unwrap();
    fs::write(project.join(".amplifier/bundle.yaml"), BUNDLE).unwrap();
    for arguments in [vec!["hooks", "trust", "--yes"], vec!["hooks", "try", "prompt:submit"]] {
        let mut command = place.command(&arguments);
        command.current_dir(&project);
        let error = Running::start(command).end().error;
        assert!(error.contains("cannot be trusted: ") && error.contains("the path is not UTF-8"), "{error}");
        assert!(!error.contains("trust store"), "{error}");
    }
}

#[test]
fn commands_that_hide_what_they_run_are_marked_in_every_form() {
    let hidden = [
        "for f in h.d/*.sh; do sh $f; done",
        r#"[sh, -c, "for f in h.d/*.sh; do sh $f; done"]"#,
        r#"[env, A=1, bash, -c, "for f in h.d/*.sh; do sh $f; done"]"#,
        "make lint",
        "[make, lint]",
        "[npm, run, lint]",
        r#"[python3, -c, "import policy"]"#,
        r#"[node, -e, "require('./policy')"]"#,
    ];
    let mark = "    !: this command cannot be analysed: ";
    let shown = |hook: &str| {
        let place = place(&format!("hooks:\n  - {hook}\n    on: tool:post\n"));
        place.amplifier(&["hooks", "trust", "--yes"]).fine()
    };
    for command in hidden {
        for kind in ["command", "worker"] {
            let text = shown(&format!("{kind}: {command}\n    name: one"));
            assert!(text.contains(mark), "{kind}: {command}: {text}");
        }
        if command.starts_with('[') {
            let linter = format!("{{ files: \"*.py\", command: {command} }}");
            let hook = format!("module: hooks-linter\n    config: {{ linters: [{linter}] }}");
            let text = place(&format!("hooks:\n  - {hook}\n")).amplifier(&["hooks", "trust", "--yes"]).fine();
            assert!(text.contains(mark), "{command}: {text}");
        }
    }
    for command in ["./note.sh", "[python3, policy.py]", "[sh, -c, ./note.sh]"] {
        let text = shown(&format!("command: {command}\n    name: one"));
        assert!(!text.contains(mark), "{command}: {text}");
    }
}
