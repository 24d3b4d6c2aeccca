//! `amplifier hooks validate`: all mistakes of all files, for people and programs.

use crate::common::{Place, Ran};
use serde_json::{Value, json};

fn place(files: &[(&str, &str)]) -> Place {
    let place = Place::with(json!([]));
    files.iter().for_each(|(name, text)| place.write(&format!("workspace/{name}"), text));
    place
}

const MANY: &str = "\
hooks:
  - rule: first
    on: tool:prre
    deny: no
  - rule: second
    on: tool:pre
    wen: x
    priority: high
    deny: '{{ tool_nam }}'
  - rule: third
    on: session:end
    when: tool_name == 3
    deny: no
tests:
  - name: x
    event: tool:pre
    expect: { by: forth }
";

#[test]
fn every_mistake_of_a_file_is_told_in_its_order() {
    let place = place(&[("b.yaml", MANY)]);
    let ran = place.amplifier(&["hooks", "validate", "b.yaml"]);
    let told: Vec<&str> = ran.error.lines().filter(|line| line.starts_with("error: ")).collect();
    let expected = [
        "error: b.yaml:3:5: unknown event `tool:prre`; did you mean `tool:pre`?",
        "error: b.yaml:7:5: unknown key `wen`; did you mean `when`?",
        "error: b.yaml:8:15: invalid `priority` `high`: expected a whole number",
        "error: b.yaml:9:15: unknown name `tool_nam`; did you mean `tool_name`?",
        "error: b.yaml:12:11: unknown field `tool_name` of `session:end`; it is a field of `tool:pre`, `tool:post`, `error:tool`",
        "error: b.yaml:13:5: `deny` has no effect at `session:end`; the event reports what has happened; use `message`, or an \
         earlier event, such as `tool:pre`",
        "error: b.yaml:15:5: unknown hook `forth` in `expect`; the hooks are first, second, third",
    ];
    assert_eq!((ran.code, told.as_slice()), (1, &expected[..]));
    assert_eq!(ran.out, "b.yaml: 3 hooks in 1 file, 7 mistakes\n");
}

#[test]
fn several_files_are_checked_and_what_they_share_is_told_once() {
    let fine = "includes: [team.yaml]\nhooks: []\n";
    let team = "hooks:\n  - rule: team\n    on: tool:pre\n    when: tool_name == 'bash'\n    deny: no\n";
    let place = place(&[("a.yaml", fine), ("b.yaml", fine), ("team.yaml", team)]);
    let ran = place.amplifier(&["hooks", "validate", "a.yaml", "b.yaml", "gone.yaml"]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.error.matches("unknown tool `bash`").count(), 1, "{ran:?}");
    assert!(ran.error.contains("error: gone.yaml: the file cannot be read: "), "{ran:?}");
    let counts = "a.yaml: 1 hook in 2 files, 1 mistake\nb.yaml: 1 hook in 2 files, no mistakes\ngone.yaml: 0 hooks in 0 files, 1 mistake\n";
    assert_eq!(ran.out, counts);
}

#[test]
fn a_bundle_of_a_project_is_checked_without_trust_and_runs_nothing() {
    let place = Place::with(json!([]));
    std::fs::create_dir(place.at("workspace/.amplifier")).unwrap();
    place.write("workspace/.amplifier/bundle.yaml", "hooks:\n  - command: touch ran\n    on: tool:pre\n");
    let ran = place.amplifier(&["hooks", "validate"]);
    assert_eq!((ran.code, ran.error.as_str()), (0, ""));
    assert!(ran.out.ends_with(".amplifier/bundle.yaml: 1 hook in 1 file, no mistakes\n"), "{ran:?}");
    assert!(!place.at("workspace/.amplifier/ran").exists());
}

const WARNED: &str = "hooks:\n  - command: ./gone.sh\n    on: tool:pre\n";

#[test]
fn warnings_fail_only_if_they_are_denied() {
    let place = place(&[("b.yaml", WARNED)]);
    let validate = |flags: &[&str]| place.amplifier(&[&["hooks", "validate", "b.yaml"], flags].concat());
    let ran = validate(&[]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "b.yaml: 1 hook in 1 file, no mistakes, 1 warning\n"));
    assert_eq!(validate(&["--deny-warnings"]).code, 1);
}

#[test]
fn programs_read_one_object_per_mistake() {
    let place = place(&[
        ("a.yaml", "hooks: []\n"),
        ("b.yaml", "hooks:\n  - rule: a\n    on: tool:pre\n    wen: x\n    deny: no\n"),
    ]);
    let expected = json!({
        "severity": "error", "code": "unknown-key", "message": "unknown key `wen`", "help": "did you mean `when`?",
        "file": "b.yaml", "line": 4, "column": 5,
    });
    for format in [&["--json"][..], &["--format", "json"]] {
        let Ran { code, out, error } = place.amplifier(&[&["hooks", "validate", "a.yaml", "b.yaml"], format].concat());
        let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((code, error.as_str(), lines.as_slice()), (1, "", std::slice::from_ref(&expected)));
    }
    assert_eq!(place.amplifier(&["hooks", "validate", "a.yaml", "--json"]).fine(), "");
}

#[test]
fn continuous_integration_reads_junit_and_sarif() {
    let broken = "hooks:\n  - rule: a\n    on: tool:pre\n    when: tool_name == '<&>'\n    deny: '{{ x }}'\n";
    let place = place(&[("a b.yaml", "hooks: []\n"), ("b.yaml", broken)]);
    let ran = place.amplifier(&["hooks", "validate", "a b.yaml", "b.yaml", "--format", "junit"]);
    let expected = "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuites name=\"amplifier hooks validate\" tests=\"3\" failures=\"1\">
  <testsuite name=\"amplifier hooks validate\" tests=\"3\" failures=\"1\">
    <testcase classname=\"a b.yaml\" name=\"a b.yaml\"/>
    <testcase classname=\"b.yaml\" name=\"b.yaml:4:24: unknown-tool\">
      <system-out>warning: b.yaml:4:24: unknown tool `&lt;&amp;&gt;`; ";
    assert!(ran.out.starts_with(expected), "{}", ran.out);
    let failure = "<failure type=\"expression\" message=\"unknown name `x`\">error: b.yaml:5:15: unknown name `x`; ";
    assert!(ran.code == 1 && ran.out.contains(failure), "{}", ran.out);

    let ran = place.amplifier(&["hooks", "validate", "a b.yaml", "b.yaml", "--format", "sarif"]);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    let run = &report["runs"][0];
    assert_eq!(
        (ran.code, &report["version"], &run["tool"]["driver"]["name"]),
        (1, &json!("2.1.0"), &json!("amplifier"))
    );
    let results: Vec<_> = run["results"].as_array().unwrap().iter().collect();
    let place = json!({ "artifactLocation": { "uri": "b.yaml" }, "region": { "startLine": 5, "startColumn": 15 } });
    assert_eq!((results.len(), &results[0]["level"], &results[1]["level"]), (2, &json!("warning"), &json!("error")));
    assert_eq!(results[1]["locations"][0]["physicalLocation"], place);
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert!(results.iter().all(|result| rules.contains(&json!({ "id": result["ruleId"] }))));
}

#[test]
fn conditions_that_are_fine_are_not_told() {
    let conditions = [
        "tool_name in ['Write', 'Edit', 'MultiEdit'] && !in_workspace(tool_input.file_path)",
        "tool_name == 'Bash' || tool_name.startsWith('mcp__') && tool_input.anything.deep > 3",
        "tool_name == 'mcp__tickets__search' && tool_input.querry == 'x' && tool_input.limit > 5",
        "tool_name == 'Bash' && shell(tool_input.command).commands.exists(c, c.program == 'rm' && 'x' in c.arguments)",
        "tool_name == 'Bash' && tool_input.command.matches(r'\\bgit\\s+push\\b') && tool_input.timeout > 5",
        "data.my_field == 1 && data['other'] == 2 && size(data) > 3",
        "has(tool_input.path) ? tool_input.path == 'x' : tool_name != 'Read'",
        "session_count('tool:pre', 'Bash') > 20 && turn() > 1 && weekday() in ['monday', 'friday'] && hour() >= 22",
        "tool_input.file_path == null || tool_input.todos.all(t, t.status != 'pending')",
        "event == 'tool:pre' && session_id != '' && tool_call_id != null && has_secret(tool_input)",
        "path_matches(tool_input.file_path, ['**/.env', '/etc/**', 'src/*.rs'])",
        "!(tool_name == 'Bash') && (tool_name == 'Read' || tool_name == 'Grep')",
    ];
    let mut text = "hooks:\n".to_owned();
    for (number, condition) in conditions.iter().enumerate() {
        text += &format!("  - rule: r{number}\n    on: tool:pre\n    when: >\n      {condition}\n    deny: no\n");
    }
    text += "  - rule: after\n    on: [tool:post, 'session:*']\n    when: tool_result.output.contains('x') && success && duration_ms > 5\n    message: '{{ tool_result.exit_code }}'\n";
    text += "  - rule: own\n    on: deploy:start\n    when: data.stage == 'live' && tool_name == 'mcp__x__y'\n    deny: no\nevents: [deploy:start]\n";
    let place = place(&[("b.yaml", &text)]);
    let ran = place.amplifier(&["hooks", "validate", "b.yaml", "--deny-warnings"]);
    assert_eq!((ran.code, ran.error.as_str()), (0, ""));
}
