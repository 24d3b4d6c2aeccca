//! Rules, as a person writes them: what they answer, and what they refuse.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amplifier_core::testing::ManualClock;
use amplifier_core::{EventData, HookRegistry, OnError, TOOL_PRE, data};
use amplifier_modules::{Condition, Rule, RuleError, RuleOptions, Scope, Span, Template};
use jiff::tz::TimeZone;
use serde_json::{Value, json};

/// A workspace with `src`, `production`, and links into and out of it.
fn workspace() -> (tempfile::TempDir, Scope) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("work");
    for inside in ["src", "production"] {
        std::fs::create_dir_all(root.join(inside)).unwrap();
    }
    std::fs::create_dir(folder.path().join("outside")).unwrap();
    for (link, to) in
        [("src/harmless", "../production"), ("src/away", "../../outside"), ("here", "."), ("loop", "loop")]
    {
        std::os::unix::fs::symlink(to, root.join(link)).unwrap();
    }
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(22 * 3600));
    let scope = Scope::new(&root).unwrap().clock(clock).time_zone(TimeZone::UTC).shell(analyse);
    (folder, scope)
}

fn analyse(command: &str) -> Value {
    json!({
        "analysable": true, "programs": [command.split(' ').next()], "writes": [], "network": [],
        "destructive": command.starts_with("rm"), "readonly": command == "ls", "why": "",
    })
}

fn scope() -> Scope {
    workspace().1
}

fn write(path: &str) -> EventData {
    data! { "tool_name": "Write", "tool_input": { "file_path": path, "content": "x" } }
}

fn bash(command: &str) -> EventData {
    data! { "tool_name": "Bash", "tool_input": { "command": command } }
}

fn rule(options: Value) -> Result<Rule, RuleError> {
    Rule::new(serde_json::from_value(options).unwrap(), Arc::new(scope()))
}

/// What differs from "go on" in the flat form.
fn answer(rule: &Rule, event: &str, data: &EventData) -> Value {
    let flat = rule.answer(event, data).unwrap().into_flat(data);
    let (Value::Object(flat), Value::Object(plain)) =
        (json!(flat), json!(amplifier_core::FlatResult::<Value>::default()))
    else {
        panic!("the flat form is an object");
    };
    flat.into_iter().filter(|(key, value)| plain[key] != *value).collect()
}

#[track_caller]
fn check(options: Value, data: &EventData, expected: Value) {
    assert_eq!(answer(&rule(options).unwrap(), "tool:pre", data), expected);
}

#[track_caller]
fn holds(source: &str, data: &EventData) -> bool {
    Condition::compile(source).unwrap().holds("tool:pre", data, &scope()).unwrap()
}

#[track_caller]
fn fails(source: &str, data: &EventData) -> String {
    Condition::compile(source).unwrap().holds("tool:pre", data, &scope()).unwrap_err().to_string()
}

#[track_caller]
fn refused(source: &str) -> String {
    Condition::compile(source).unwrap_err().to_string()
}

#[test]
fn a_rule_answers_what_it_says() {
    check(
        json!({"when": "tool_name == 'Bash' && tool_input.command.contains('rm -rf')", "deny": "no `{{ tool_input.command }}`"}),
        &bash("rm -rf /"),
        json!({"action": "deny", "reason": "no `rm -rf /`"}),
    );
    check(json!({"when": "tool_name == 'Bash'", "deny": "no"}), &write("a"), json!({}));
    check(
        json!({"deny": "nothing runs today"}),
        &write("a"),
        json!({"action": "deny", "reason": "nothing runs today"}),
    );
    check(
        json!({
            "ask": "Allow write to {{ tool_input.file_path }}?", "options": ["Allow once", {"label": "Never here", "effect": "deny_always"}],
            "timeout": 60, "default": "deny", "reason": "{{ event }} is guarded",
        }),
        &write("a.txt"),
        json!({
            "action": "ask_user", "approval_prompt": "Allow write to a.txt?", "approval_timeout": 60.0, "reason": "tool:pre is guarded",
            "approval_options": ["Allow once", {"label": "Never here", "effect": "deny_always"}],
        }),
    );
    check(
        json!({"inject": "{{ size(tool_input.content) }} characters", "role": "user", "append_to_last_tool_result": true}),
        &write("a"),
        json!({
            "action": "inject_context", "context_injection": "1 characters", "context_injection_role": "user",
            "ephemeral": true, "append_to_last_tool_result": true,
        }),
    );
    check(
        json!({"message": "{{ tool_name }} runs", "level": "warning"}),
        &bash("ls"),
        json!({"user_message": "Bash runs", "user_message_level": "warning"}),
    );
    check(
        json!({"deny": "no", "message": "blocked", "level": "error"}),
        &bash("ls"),
        json!({"action": "deny", "reason": "no", "user_message": "blocked", "user_message_level": "error"}),
    );
}

#[test]
fn modify_changes_what_it_names_and_keeps_the_rest() {
    let data = data! { "tool_name": "Bash", "tool_input": { "command": "ls", "timeout": 5, "list": [1, 2] } };
    let changed =
        |tool_input: Value| json!({"action": "modify", "data": {"tool_name": "Bash", "tool_input": tool_input}});
    check(
        json!({"modify": {"set": {"/tool_input/timeout": "{{ tool_input.timeout * 2 }}"}}}),
        &data,
        changed(json!({"command": "ls", "timeout": 10, "list": [1, 2]})),
    );
    check(
        json!({"modify": {"set": {"/tool_input/env/deep/LANG": "C", "/tool_input/list/-": {"was": ["{{ tool_name }}!"]}}}}),
        &data,
        changed(
            json!({"command": "ls", "timeout": 5, "list": [1, 2, {"was": ["Bash!"]}], "env": {"deep": {"LANG": "C"}}}),
        ),
    );
    check(
        json!({"modify": {"remove": ["/tool_input/timeout", "/tool_input/list/0", "/tool_input/absent/x", "/absent"]}}),
        &data,
        changed(json!({"command": "ls", "list": [2]})),
    );
    check(
        json!({"modify": {"remove": ["/tool_input"], "set": {"/a~1b": null}}}),
        &data,
        json!({"action": "modify", "data": {"tool_name": "Bash", "a/b": null}}),
    );
    check(json!({"modify": {"set": {"/tool_input/timeout": 5}}, "message": "changed"}), &data, json!({}));
    let nowhere = rule(json!({"modify": {"set": {"/tool_name/x": 1}}})).unwrap().answer("tool:pre", &data);
    assert_eq!(
        nowhere.unwrap_err().to_string(),
        "invalid position `/tool_name/x` in the event's data: a value on the way is not an object"
    );
    for pointer in
        ["/tool_input/list/7", "/tool_input/list/01", "/tool_input/list/x", "/tool_input/list/18446744073709551616"]
    {
        assert!(
            rule(json!({"modify": {"set": {pointer: 1}}})).unwrap().answer("tool:pre", &data).is_err(),
            "{pointer}"
        );
    }
}

#[test]
fn what_is_set_is_never_cut() {
    let content = "\u{1b}[0m é\r\n".repeat(1000);
    let data = data! { "tool_input": { "content": content } };
    for template in ["{{ tool_input.content }}", "{{ tool_input.content + '' }}{{ '' }}"] {
        check(json!({"modify": {"set": {"/tool_input/content": template}}}), &data, json!({}));
    }
}

#[test]
fn redact_replaces_secrets_and_is_silent_without_one() {
    let options = json!({"modify": {"redact": ["/tool_result/text", "/tool_result/password"]}, "message": "a secret was removed"});
    let data = data! { "tool_result": { "text": "password=hunter2-is-long", "password": "tiger", "other": 1 } };
    let answer = answer(&rule(options.clone()).unwrap(), "tool:post", &data);
    let result = &answer["data"]["tool_result"];
    assert!(result["text"].as_str().unwrap().contains("[redacted kind="), "{result}");
    assert!(result["password"].as_str().unwrap().starts_with("[redacted kind="), "{result}");
    assert_eq!((&result["other"], &answer["user_message"]), (&json!(1), &json!("a secret was removed")));
    check(options, &data! { "tool_result": { "text": "nothing" } }, json!({}));
}

#[test]
fn fields_that_do_not_go_together_are_refused() {
    let check = |options: Value, expected: &str| assert_eq!(rule(options).unwrap_err().to_string(), expected);
    let cases = [
        (json!({"deny": "a", "ask": "b"}), "`ask` conflicts with `deny`: a rule has one action, so write two rules"),
        (json!({"deny": "a", "timeout": 1}), "`timeout` needs `ask`, which is missing"),
        (json!({"deny": "a", "reason": "b"}), "`reason` conflicts with `deny`, whose text is the reason"),
        (json!({"message": "a", "reason": "b"}), "`reason` needs `ask`, `modify` or `inject`"),
        (json!({"deny": "a", "level": "info"}), "`level` needs `message`, which is missing"),
        (json!({"ask": "a", "timeout": -1}), "`timeout` is `-1`: expected seconds, 0 or more"),
        (
            json!({"ask": "a", "options": ["Maybe"]}),
            "`options` has the unknown option `Maybe`; write `{ label: Maybe, effect: allow_once }`",
        ),
        (json!({"ask": "a", "options": ["Deny"]}), "`options` never allow the operation: use `deny` instead"),
        (
            json!({"inject": "a", "ephemeral": false, "append_to_last_tool_result": true}),
            "`ephemeral` cannot be false with `append_to_last_tool_result`: results are not rewritten",
        ),
        (json!({"modify": {}}), "`modify` changes nothing: expected `set`, `remove` or `redact`"),
        (json!({"modify": {"remove": ["x"]}}), "`modify.remove` has the invalid pointer `x`: begin with `/`"),
        (json!({"modify": {"redact": "/timestamp"}}), "`modify.redact` cannot change `/timestamp`"),
        (json!({"modify": {"set": {"": 1}}}), "`modify.set.` has the invalid pointer ``: begin with `/`"),
        (json!({"when": "true"}), "missing action: expected `deny`, `ask`, `modify`, `inject` or `message`"),
    ];
    for (options, expected) in cases {
        check(options, &format!("rule error: {expected}"));
    }
    let unknown = serde_json::from_value::<RuleOptions>(json!({"dney": "x"})).unwrap_err().to_string();
    assert!(unknown.starts_with("unknown field `dney`"), "{unknown}");
}

#[test]
fn errors_point_at_the_place() {
    let error = rule(json!({"when": "event != '' && tool_nam == 'Bash'", "deny": "no"})).unwrap_err();
    assert_eq!(
        error.to_string(),
        "rule error: unknown name `tool_nam` at column 16: did you mean `tool_name`?\n  \
         event != '' && tool_nam == 'Bash'\n                 ^^^^^^^^\n  in `when`"
    );
    assert_eq!((error.field_name(), error.span()), (Some("when"), Some(Span { offset: 15, length: 8 })));

    let error = rule(json!({"deny": "größe {{ size(promt) }}"})).unwrap_err();
    assert_eq!(error.span(), Some(Span { offset: 16, length: 5 }));
    assert_eq!(
        error.to_string(),
        "rule error: unknown name `promt` at column 15: did you mean `prompt`?\n  \
         größe {{ size(promt) }}\n                ^^^^^\n  in `deny`"
    );
    let error = rule(json!({"modify": {"set": {"/tool_input/x": ["{{ 1 + }}"]}}})).unwrap_err();
    assert_eq!(error.field_name(), Some("modify.set./tool_input/x"));
}

#[test]
fn unknown_names_and_functions_are_found_when_compiled() {
    let cases = [
        ("path_match(prompt, ['a'])", "unknown function `path_match` at column 1: did you mean `path_matches`?"),
        (
            "'ü' == 'ü' && prompt.startswith('a')",
            "unknown function `startswith` at column 22: did you mean `startsWith`?",
        ),
        ("shell(prompt).destructve", "unknown field `destructve` of `shell` at column 15: did you mean `destructive`?"),
        (
            "my_own_field == 1",
            "unknown name `my_own_field` at column 1: a field of your own events is `data.my_own_field`",
        ),
        ("env.HOME == ''", "unknown name `env` at column 1"),
        ("hour(1) == 2", "`hour` takes 0 arguments, not 1 at column 1"),
        ("[1].exists(x)", "unknown name `x` at column 12"),
        ("[1].exists(x, y)", "unknown name `y` at column 15"),
        ("matches(prompt, '(')", "invalid regular expression: unclosed group at column 17"),
        ("path_matches(prompt, ['a/[b'])", "invalid path pattern `a/[b`: unclosed character class"),
        ("path_matches(prompt, [1])", "patterns are a text or a list of texts at column 22"),
        ("b'a' == b'a'", "bytes are not supported at column 1: write a text"),
        ("has(prompt)", "syntax error, `has` takes a field of something"),
        ("1 +", "syntax error"),
        ("prompt ? 1", "syntax error, the expression is incomplete at column 1"),
        ("'ü日' == )", "syntax error, this `)` closes nothing at column 9"),
        ("tool_name == 'open", "syntax error, this text is never closed at column 14: end it with `'`"),
        ("tool_name = 'a'", "syntax error, unknown operator `=` at column 11: write `==`"),
        ("tool_name === 'a'", "syntax error, unknown operator `===` at column 11: write `==`"),
        ("tool_name <> 'a'", "syntax error, unknown operator `<>` at column 11: write `!=`"),
        ("prompt == 'a & b' & prompt == 'c'", "syntax error, unknown operator `&` at column 19: write `&&`"),
        ("prompt == 'a' | prompt == 'c'", "syntax error, unknown operator `|` at column 15: write `||`"),
        ("prompt == 'a' and prompt == 'c'", "syntax error, unknown operator `and` at column 15: write `&&`"),
        ("prompt == 'a' or prompt == 'c'", "syntax error, unknown operator `or` at column 15: write `||`"),
        ("not prompt", "syntax error, unknown operator `not` at column 1: write `!`"),
        ("size(prompt > 1", "syntax error, this `(` is never closed at column 5"),
        ("size(prompt] > 1", "syntax error, this `]` does not close `(` at column 12"),
        ("prompt prompt", "syntax error, `prompt` does not belong here at column 8"),
        ("prompt ==", "syntax error, the expression ends too early at column 10: something is missing after `==`"),
        ("", "the expression is empty"),
        ("timestamp('x') == 1", "unknown function `timestamp`"),
    ];
    for (source, expected) in cases {
        let error = refused(source);
        assert!(error.starts_with(expected), "{source}: {error}");
    }
}

#[test]
fn expressions_mean_what_cel_says() {
    let data = data! {
        "tool_name": "Edit", "tool_input": { "n": 3, "list": ["a", "b", "ä"], "nested": { "x": [1, 2.5, null] }, "yes": true },
        "prompt": "Grüße", "session_id": "s1", "own": 7,
    };
    for source in [
        "tool_name in ['Write', 'Edit']",
        "tool_input.n + 1 == 4 && tool_input.n * 2.0 == 6 && -tool_input.n == -3 && 7 % 4 == 3 && 7 / 2 == 3",
        "tool_input.list.exists(x, x == 'b') && tool_input.list.all(x, size(x) == 1)",
        "tool_input.list.exists_one(x, x == 'ä') && tool_input.list.filter(x, x > 'a').size() == 2",
        "tool_input.list.map(x, x + '!') == ['a!', 'b!', 'ä!'] && [1, 2, 3].map(x, x > 1, x * x) == [4, 9]",
        "[[1, 2], [3]].all(xs, xs.exists(x, x > 1))",
        "tool_input.nested.x[1] == 2.5 && tool_input['n'] == 3 && 'n' in tool_input",
        "{'a': {'b': 1}}.a.b == 1 && tool_input.all(key, key != 'q')",
        "prompt.matches('^Gr..e$') && prompt.size() == 5 && prompt.contains('ü') && prompt.endsWith('e')",
        "event == 'tool:pre' && session_id == 's1' && data.own == 7 && data['own'] == 7 && size(data) > 4",
        "tool_input.yes ? true : false",
        "int('12') == 12 && string(12) == '12' && 'ABC'.lowerAscii() == 'abc'",
        "hour() == 22 && minute() == 0 && weekday() == 'thursday' && date() == '1970-01-01'",
        "workspace().startsWith('/')",
        "true || 1 < 'a'",
        "1 < 'a' || true",
        "shell('rm x').destructive && shell('ls').readonly && 'rm' in shell('rm x').programs",
        "9223372036854775807 < 18446744073709551615u",
    ] {
        assert!(holds(source, &data), "{source}");
    }
}

#[test]
fn what_is_missing_is_null() {
    let data = data! { "tool_name": "Bash", "tool_input": { "nothing": null } };
    for (source, expected) in [
        ("tool_input.path == 'a'", false),
        ("tool_input.path != 'a'", true),
        ("tool_input.path == null", true),
        ("tool_input.size > 3", false),
        ("tool_input.size <= 3", false),
        ("tool_input.a.b.c == 'x'", false),
        ("tool_input.path.startsWith('a')", false),
        ("tool_input.path.matches('.*')", false),
        ("path_matches(tool_input.path, ['**'])", false),
        ("in_workspace(tool_input.path)", false),
        ("has_secret(tool_input.path)", false),
        ("shell(tool_input.command).readonly", false),
        ("size(tool_input.path) == 0", true),
        ("tool_input.path in ['a']", false),
        ("'a' in tool_input.list", false),
        ("tool_input.list.exists(x, true)", false),
        ("tool_input.force", false),
        ("!tool_input.force", true),
        ("has(tool_input.path)", false),
        ("has(tool_input.nothing)", true),
        ("has(tool_input.a.b)", false),
        ("has(data.tool_name)", true),
        ("has(data.absent)", false),
        ("prompt == null", true),
        ("[1][5] == null", true),
    ] {
        assert_eq!(holds(source, &data), expected, "{source}");
    }
}

#[test]
fn what_cannot_be_answered_is_a_failure_that_keeps_secrets() {
    let data = data! { "tool_input": { "text": "hunter2" } };
    assert_eq!(
        fails("tool_input.text > 3", &data),
        "the expression cannot be evaluated: `>` does not work with text and a number at column 17, in `tool_input.text > 3`"
    );
    for source in [
        "tool_input.text",
        "tool_input.text.size",
        "tool_input.text + 1 == 2",
        "1 / 0 == 1",
        "9223372036854775807 * 9223372036854775807 == 0",
        "tool_input.text && true",
        "matches('a', tool_input.text + '(')",
        "in_workspace('a\u{0}b')",
        "int(tool_input.text) == 1",
    ] {
        let error = fails(source, &data);
        assert!(
            error.starts_with("the expression cannot be evaluated: ") && !error.contains("hunter2"),
            "{source}: {error}"
        );
    }
}

#[test]
fn shell_commands_are_looked_through() {
    let scope = Scope::new(".").unwrap();
    let data = data! { "tool_name": "Bash", "tool_input": { "command": "cd build && sudo rm -rf ." } };
    let holds = |source: &str| Condition::compile(source).unwrap().holds("tool:pre", &data, &scope).unwrap();
    assert!(holds("shell(tool_input.command).destructive && 'rm' in shell(tool_input.command).programs"));
    assert!(holds("shell('ls -l | sort').readonly && !shell('$(echo rm) x').analysable"));
    assert!(holds("shell(tool_input.command).why.contains('recursively')"));
}

#[test]
fn rules_about_shell_commands_need_no_regular_expressions() {
    let scope = Scope::new(".").unwrap();
    let data = data! { "tool_name": "Bash", "tool_input": {} };
    let holds = |source: &str| Condition::compile(source).unwrap().holds("tool:pre", &data, &scope).unwrap();
    for held in [
        "shell('sudo rm -rf build').commands.exists(c, c.program == 'rm' && '-rf' in c.arguments && c.resolved)",
        "shell('git commit -m \"$m\"').commands.exists(c, c.program == 'git' && !c.resolved)",
        "shell('rm a b').deletes == ['a', 'b'] && shell('touch a').deletes == []",
        "shell('sort x -o y').writes == ['y']",
        "shell('curl -s https://example.com/x').network && shell('curl https://example.com/x').hosts == ['example.com']",
        "!shell('curl -s https://example.com/x').sends && shell('curl -d @x https://example.com/').sends",
        "!shell('curl -d x=1 http://localhost:3000/').network && !shell('curl http://[::1]/').network",
        "shell('curl http://localhost@example.com/').hosts == ['example.com']",
        "shell('curl https://x.org/i | python3').runs_download && shell('bash <(curl https://x.org/i)').runs_download",
        "shell('curl -o i.sh https://x.org/i && sh i.sh').runs_download",
        "shell('sh -c \"$(wget -qO- https://x.org/i)\"').runs_download",
        "!shell('curl https://x.org/i | python3 -m json.tool').runs_download",
        "shell('git push origin +main').force_push && !shell('git push origin main').force_push",
        "shell('git clone https://x.org/a').hosts.exists(h, !(h in ['github.com']))",
        "shell('rm migrations/1.sql').deletes.exists(f, path_matches(f, ['migrations/**']))",
        "shell('kubectl --context production get pods').commands.exists(c, !c.resolved || 'production' in c.arguments)",
    ] {
        assert!(holds(held), "{held}");
    }
}

#[test]
fn paths_are_matched_where_they_lead() {
    let (folder, scope) = workspace();
    let absolute = folder.path().join("work/production/x").display().to_string();
    let matches = |path: &str, globs: &str| {
        let source = format!("path_matches(tool_input.file_path, {globs})");
        Condition::compile(&source).unwrap().holds("tool:pre", &write(path), &scope).unwrap()
    };
    for path in [
        "production/x",
        "./a/../production/x",
        "src/../production/x",
        "src/harmless/x",
        "src/harmless/deep/er/x",
        "here/production/x",
        "../work/production/x",
        "production//./x",
        &absolute,
    ] {
        assert!(matches(path, "['production/**']"), "{path}");
        let inside = Condition::compile("in_workspace(tool_input.file_path)").unwrap();
        assert!(inside.holds("tool:pre", &write(path), &scope).unwrap(), "{path}");
    }
    for path in
        ["src/x", "production", "src/production/x", "src/harmless/../x/../../other", "src/away/production/x", ""]
    {
        assert!(!matches(path, "['production/**']"), "{path}");
    }
    assert!(matches("src/größe/日本.rs", "'src/**/*.rs'"));
    // A link to a missing file, past a link to a folder: the tool creates `secrets/new`.
    std::fs::create_dir_all(folder.path().join("work/secrets/sub")).unwrap();
    std::os::unix::fs::symlink("secrets/sub", folder.path().join("work/short")).unwrap();
    std::os::unix::fs::symlink("short/../new", folder.path().join("work/innocent")).unwrap();
    assert!(matches("innocent", "['secrets/**']"));
    assert!(matches("/etc/passwd", "['/etc/*', 'x']"));
    assert!(!matches("src/deep/x.rs", "['src/*.rs']"));
    // A name stands for a file and for everything in a folder.
    assert!(matches("production/deep/x", "'production'") && matches("production", "'production'"));
    assert!(!matches("production-2/x", "'production'") && !matches("production/deep/x", "'production/*'"));
    assert!(matches("src/x.rs", "[tool_input.content + '.rs', 'src/' + tool_input.content + '.rs']"));
    for path in ["../outside/x", "src/away/x", "/etc/passwd", "../work-2/x", "src/../../x", ".."] {
        let outside = Condition::compile("!in_workspace(tool_input.file_path)").unwrap();
        assert!(outside.holds("tool:pre", &write(path), &scope).unwrap(), "{path}");
    }
    let circle = Condition::compile("in_workspace(tool_input.file_path)").unwrap();
    let error = circle.holds("tool:pre", &write("loop/x"), &scope).unwrap_err().to_string();
    assert!(error.contains("the path cannot be resolved"), "{error}");
}

#[test]
fn secrets_are_found_in_texts_and_under_names() {
    let data =
        data! { "prompt": "my key is AKIAIOSFODNN7EXAMPLQ", "tool_input": { "password": "x1" }, "response": "fine" };
    assert!(holds("has_secret(prompt) && has_secret(tool_input) && !has_secret(response)", &data));
}

#[test]
fn templates_show_what_is_there_and_no_more() {
    let render =
        |text: &str, data: &EventData| Template::compile(text).unwrap().render("tool:pre", data, &scope()).unwrap();
    let data = data! {
        "prompt": "a\u{1b}[31m\u{202e}b\n日本", "tool_input": { "n": 1.5, "o": { "k": [true, null] } }, "response": "é".repeat(3000),
    };
    assert_eq!(render("<{{ prompt }}>", &data), "<a[31mb\n日本>");
    assert_eq!(render("{{tool_input.n}} {{ tool_input.o }} {{ tool_name }}", &data), r#"1.5 {"k":[true,null]} null"#);
    assert_eq!(render("{{ '{{' }} } {{ \"}}\" }} { {{ {'a': {'b': 1}}.a.b }}", &data), "{{ } }} { 1");
    assert_eq!(render("{{ r'\\' }}{{ 'it\\'s }}' }}", &data), "\\it's }}");
    assert_eq!(render("{{ response }}", &data), format!("{}…", "é".repeat(2000)));
    assert_eq!(render("", &data), "");
    for text in ["{{ prompt", "{{ '}}' ", "{{ }}", "{{}}", "a {{ prompt }} {{ x y }}"] {
        assert!(Template::compile(text).is_err(), "{text}");
    }
}

#[test]
fn hostile_expressions_are_refused_when_compiled() {
    let deep = |open: &str, close: &str, times: usize| format!("{}1{} == 1", open.repeat(times), close.repeat(times));
    let brackets = "brackets are nested deeper than 24";
    let cases = [
        (deep("(", ")", 10_000), "the expression has 20006 bytes, 2048 are allowed"),
        (deep("(", ")", 900), brackets),
        (deep("[", "]", 900), brackets),
        ("(".repeat(2000), brackets),
        (format!("{}1", "true ? 1 : ".repeat(180)), "the expression is nested too deeply"),
        (format!("1{} == 1", "+1".repeat(900)), "the expression is nested too deeply"),
        (format!("prompt{}", ".a".repeat(900)), "the expression is nested too deeply"),
        (format!("prompt{}", "[0]".repeat(600)), "the expression is nested too deeply"),
        ("x".repeat(1 << 20), "the expression has 1048576 bytes, 2048 are allowed"),
        ("prompt.matches('(a{1000}){1000}')".into(), "the regular expression is too large: use smaller counts"),
        (format!("prompt.matches('{}')", "(".repeat(1000)), "invalid regular expression"),
        (format!("'''{}", "'(".repeat(900)), ""),
        (format!("r'\\'{}", "(".repeat(1500)), ""),
        (format!("//'\n{}", "(".repeat(2000)), "the expression is nested too deeply"),
        (format!("''' ' ''' + {}", "[".repeat(1900)), "the expression is nested too deeply"),
        (format!("//'\n{}1", "1?1:".repeat(500)), "the expression is nested too deeply"),
        ("\u{0}".into(), "syntax error"),
        ("\u{202e}prompt".into(), "syntax error"),
    ];
    for (source, expected) in cases {
        let error = refused(&source);
        assert!(error.starts_with(expected), "{}: {error}", source.chars().take(40).collect::<String>());
        assert!(error.len() < 1000, "{error}");
    }
    for harmless in [format!("{}true", "!".repeat(2000)), format!("true{}", " && true".repeat(250)), deep("(", ")", 24)]
    {
        assert!(holds(&harmless, &EventData::new()), "{harmless}");
    }
}

#[test]
fn hostile_evaluations_run_out_of_budget() {
    let tens = "[1,2,3,4,5,6,7,8,9,10]";
    let loops = |depth: usize| {
        let opened: String = (0..depth).map(|at| format!("{tens}.all(x{at}, ")).collect();
        format!("{opened}true{}", ")".repeat(depth))
    };
    let doubled = |times: usize| format!("[prompt]{}.size() == 1", ".map(x, x + x)".repeat(times));
    let pairs = |times: usize| format!("[0]{}.size() == 1", ".map(x, [x, x, x, x, x, x, x, x])".repeat(times));
    let data = data! {
        "prompt": "a".repeat(1 << 20), "tool_input": { "list": (0..100_000).collect::<Vec<_>>(), "regex": "(a?){30}a{30}" },
        "response": "a".repeat(64 << 20),
    };
    let begin = Instant::now();
    for source in [
        loops(20),
        doubled(40),
        pairs(40),
        "tool_input.list.all(x, tool_input.list.all(y, x + y >= 0))".into(),
        "tool_input.list.all(x, prompt.matches('b$') || true)".into(),
        "tool_input.list.all(x, in_workspace(string(x)))".into(),
        "response.matches('(a+)+b')".into(),
        "[response] == [response]".into(),
        "size(data) > 0 && false || [data, data] == []".into(),
        "tool_input.list.exists(x, matches(prompt, tool_input.regex + string(x)))".into(),
    ] {
        let error = fails(&source, &data);
        assert!(error.contains("budget exceeded"), "{source}: {error}");
    }
    // Generous, because tests share machines; each takes some milliseconds when optimised.
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    assert!(holds("tool_input.list.all(x, x >= 0) && !prompt.matches('(a+)+b') && response.contains('a')", &data));
}

#[tokio::test]
async fn a_rule_is_a_hook_and_its_failure_denies() {
    let hooks = HookRegistry::new();
    let rule = rule(json!({"when": "tool_input.size > 3", "ask": "Really?"})).unwrap();
    hooks.hook(TOOL_PRE).named("size").on_error(OnError::Deny).handler(rule);
    let asked = hooks.emit(TOOL_PRE, data! { "tool_name": "Write", "tool_input": { "size": 4 } }).await;
    assert_eq!(asked.flat().approval_prompt.as_deref(), Some("Really?"));
    let failed = hooks.emit(TOOL_PRE, data! { "tool_name": "Write", "tool_input": { "size": "4" } }).await;
    assert_eq!(json!(failed.flat().action), json!("deny"));
}

#[test]
fn the_schema_knows_every_field() {
    let schema = serde_json::to_value(schemars::schema_for!(RuleOptions)).unwrap();
    let mut fields: Vec<_> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        [
            "append_to_last_tool_result",
            "ask",
            "default",
            "deny",
            "ephemeral",
            "inject",
            "level",
            "message",
            "modify",
            "options",
            "reason",
            "role",
            "timeout",
            "when"
        ]
    );
    assert_eq!(schema["additionalProperties"], json!(false));
}

/// The hooks of rules that deny when these conditions hold, each named by its condition.
fn counting(scope: Scope, event: &str, conditions: &[&str]) -> HookRegistry {
    let hooks = HookRegistry::new();
    let scope = Arc::new(scope);
    for condition in conditions {
        let options = serde_json::from_value(json!({ "when": condition, "deny": condition })).unwrap();
        let rule = Rule::new(options, scope.clone()).unwrap();
        hooks.hook(event).named(*condition).on_error(OnError::Deny).handler(rule).unwrap();
    }
    scope.count(&hooks);
    hooks
}

fn call(session: &str, tool: &str) -> EventData {
    data! { "session_id": session, "tool_name": tool, "tool_input": {} }
}

#[tokio::test]
async fn a_rule_knows_what_has_happened_in_its_session() {
    let condition = "session_count('tool:pre', tool_name) > 2";
    let hooks = counting(scope(), "tool:pre", &[condition]);
    let denied =
        async |session: &str, tool: &str| hooks.emit(TOOL_PRE, call(session, tool)).await.flat().reason.is_some();
    assert!(!denied("one", "Bash").await);
    assert!(!denied("one", "Bash").await);
    assert!(!denied("one", "Write").await, "another tool");
    assert!(!denied("two", "Bash").await, "another session");
    assert!(denied("one", "Bash").await);
    assert!(denied("one", "Bash").await, "what is denied counts, too");

    // Delegating gets nobody around it.
    let child = data! { "session_id": "child", "mount_plan": { "parent_session_id": "one" }, "source": "startup" };
    hooks.emit("session:start", child).await.unwrap();
    assert!(denied("child", "Bash").await);

    // The counts end with the session.
    let end = data! { "session_id": "one", "reason": "complete", "duration_ms": 1, "stats": {} };
    hooks.emit("session:end", end).await.unwrap();
    assert!(!denied("one", "Bash").await);
}

#[tokio::test]
async fn a_rule_knows_the_turn_and_how_long_the_session_lasts() {
    let clock = ManualClock::new();
    let conditions =
        ["turn() > 1", "session_minutes() >= 30", "session_count('prompt:submit') == 2 && size(prompt) > 1"];
    let hooks = counting(scope().clock(clock.clone()), "prompt:submit", &conditions);
    let session = |fields: Value| {
        let mut data = EventData::from(fields.as_object().unwrap().clone());
        data.insert("session_id", "s");
        data
    };
    hooks.emit("session:start", session(json!({ "mount_plan": {}, "source": "startup" }))).await.unwrap();
    let prompt = async |text: &str| {
        let outcome = hooks.emit("prompt:submit", session(json!({ "prompt": text }))).await.unwrap();
        outcome.flat().reason
    };
    assert_eq!(prompt("a").await, None);
    assert_eq!(prompt("a").await.as_deref(), Some("turn() > 1"));
    clock.advance(Duration::from_secs(30 * 60));
    let hooks = counting(scope().clock(clock.clone()), "prompt:submit", &conditions[1..2]);
    hooks.emit("session:start", session(json!({ "mount_plan": {}, "source": "startup" }))).await.unwrap();
    let prompt = async || hooks.emit("prompt:submit", session(json!({ "prompt": "a" }))).await.unwrap().flat().reason;
    clock.advance(Duration::from_secs(30 * 60 - 1));
    assert_eq!(prompt().await, None);
    clock.advance(Duration::from_secs(1));
    assert_eq!(prompt().await.as_deref(), Some("session_minutes() >= 30"));
}

#[test]
fn what_nobody_counts_is_a_failure_and_not_nothing() {
    let scope = scope();
    for source in ["session_count('tool:pre') > 3", "turn() > 3", "session_minutes() > 3"] {
        let failed = Condition::compile(source).unwrap().holds("tool:pre", &bash("ls"), &scope).unwrap_err();
        assert!(failed.to_string().contains("` is not counted"), "{failed}");
    }
}

#[test]
fn what_is_counted_has_to_be_written_out() {
    let cases = [
        ("session_count(event)", "`session_count` needs the name of an event at column 1: write `session_count("),
        ("session_count()", "`session_count` takes an event and an optional tool at column 1"),
        ("session_count('tool:per')", "unknown event `tool:per` at column 15: did you mean `tool:pre`?"),
        ("session_count('tool:*')", "invalid event name `tool:*`"),
        ("turn(1)", "`turn` takes 0 arguments, not 1"),
    ];
    for (source, expected) in cases {
        let error = refused(source);
        assert!(error.starts_with(expected), "{source}: {error}");
    }
}
