//! Bundles: what can stand in them, and what is said about mistakes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::{HookError, HookRegistry, OnError, TOOL_POST, TOOL_PRE, data};
use amplifier_modules::bundle::{
    Bundle, BundleError, BundleInput, BundleScope, BundleStack, BundleWatcher, SandboxConfig, WriteAccess, load,
    load_hosted,
};
use amplifier_modules::transport::RemoteHooks;
use amplifier_modules::{HookEnvironment, SandboxRequest, Scope};
use amplifier_process::sandbox::Sandbox;
use futures::future::BoxFuture;

/// Every line of the text without the spaces that make it readable here.
fn yaml(text: &str) -> String {
    let lines: Vec<&str> = text.lines().skip_while(|line| line.trim().is_empty()).collect();
    let indent = lines.first().map_or(0, |line| line.len() - line.trim_start().len());
    lines.iter().map(|line| format!("{}\n", line.get(indent..).unwrap_or_default())).collect()
}

fn problem(text: &str) -> String {
    match Bundle::parse(&yaml(text), Path::new("bundle.yaml")) {
        Ok(bundle) => panic!("it is fine: {bundle:?}"),
        Err(error) => error.to_string(),
    }
}

/// A fleet with one service, which denies.
struct Fleet;

impl RemoteHooks for Fleet {
    fn call<'a>(
        &'a self,
        service: &'a str,
        event: &'a str,
        request: Vec<u8>,
        limit: Duration,
    ) -> BoxFuture<'a, Result<Vec<u8>, HookError>> {
        assert_eq!((service, event, limit), ("policy", "tool:pre", Duration::from_secs(5)));
        let request: serde_json::Value = serde_json::from_slice(&request).unwrap();
        assert_eq!((&request["hook"], &request["data"]["tool_name"]), (&"policy".into(), &"Bash".into()));
        Box::pin(async { Ok(br#"{"action": "deny", "reason": "no"}"#.to_vec()) })
    }
}

#[tokio::test]
async fn a_service_of_a_fleet_needs_a_fleet() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bundle.yaml");
    fs::write(&file, "hooks:\n  - nats: policy\n    on: tool:pre\n    timeout: 5\n").unwrap();
    let (hooks, bundle) = (HookRegistry::new(), load(&file).unwrap());
    let host = HookEnvironment::new(Scope::new(folder.path()).unwrap());
    let refused = bundle.register(&hooks, &host).unwrap_err().to_string();
    assert!(refused.contains("services of a fleet are not available here"), "{refused}");
    let _registered = bundle.register(&hooks, &host.remote_hooks(Arc::new(Fleet))).unwrap();
    let outcome = hooks.emit(TOOL_PRE, data! { "tool_name": "Bash" }).await;
    assert_eq!(outcome.denial().unwrap().reason.as_deref(), Some("no"));
}

#[test]
fn a_bundle_holds_hooks_of_all_kinds() {
    let bundle = Bundle::parse(
        &yaml(
            r#"
            session:
              injection_budget_per_turn: 500
              over_budget: drop
            hooks:
              - rule: no-destructive-shell
                on: tool:pre
                when: tool_name == "Bash" && shell(tool_input.command).destructive
                deny: "{{ shell(tool_input.command).why }}"
              - command: ./hooks/lint.sh
                on: [tool:post]
                timeout: 5
              - worker: [python3, hooks/policy.py]
                on: "tool:*"
                on_error: deny
                role: gate
              - http: http://127.0.0.1:9000/hook
                on: tool:pre
                enabled: false
            "#,
        ),
        Path::new("bundle.yaml"),
    )
    .unwrap();
    let names: Vec<String> = bundle.hooks().map(|entry| entry.shown_name()).collect();
    let expected = ["no-destructive-shell", "./hooks/lint.sh", "python3", "http://127.0.0.1:9000/hook"];
    assert_eq!(names, expected);
}

#[test]
fn a_failing_hook_denies_at_gating_events_unless_its_bundle_or_its_role_says_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let hooks = registered(
        folder.path(),
        r#"
        hooks:
          - { rule: rule, on: "*", deny: x }
          - { command: "true", name: command, on: "*" }
          - { worker: [cat], name: worker, on: "*" }
          - { http: "http://127.0.0.1:1/", name: http, on: "*" }
          - { command: "true", name: lax, on: "*", on_error: continue }
          - { command: "true", name: strict, on: "*", on_error: deny }
          - { command: "true", name: observer, on: "*", role: observer }
          - { module: hooks-todo-reminder, name: module }
        "#,
    )
    .unwrap();
    let at = |event: &str| -> BTreeMap<String, OnError> {
        let hooks = hooks.list_handlers_of(event).unwrap().into_iter();
        hooks.map(|hook| (hook.name.to_string(), hook.on_error)).collect()
    };
    let by_default = ["rule", "command", "worker", "http"];
    for event in
        ["session:start", "prompt:submit", "provider:request", "decision:tool_resolution", "tool:pre", "agent:spawn"]
    {
        let found = at(event);
        assert!(by_default.iter().all(|name| found[*name] == OnError::Deny), "{event}: {found:?}");
    }
    for event in ["session:end", "provider:response", "tool:post", "agent:complete", "my:event"] {
        let found = at(event);
        assert!(by_default.iter().all(|name| found[*name] == OnError::Continue), "{event}: {found:?}");
    }
    for event in ["tool:pre", "tool:post"] {
        let found = at(event);
        let stated = (found["lax"], found["strict"], found["observer"]);
        assert_eq!(stated, (OnError::Continue, OnError::Deny, OnError::Continue), "{event}");
    }
    assert_eq!(at("provider:request")["module"], OnError::Deny);
}

#[test]
fn mistakes_are_told_with_the_place_and_a_suggestion() {
    let table = [
        (
            "
            hooks:
              - rule: guard
                on: tool:pre
                wen: tool_name == 'Bash'
                deny: no
            ",
            "bundle.yaml:4:5: unknown key `wen`; did you mean `when`?\n 4 |     wen: tool_name == 'Bash'\n   |     ^",
        ),
        (
            "
            hooks:
              - command: ./lint.sh
            ",
            "bundle.yaml:2:5: `on` is missing: name the events of the hook; `amplifier events` lists all\n \
             2 |   - command: ./lint.sh\n   |     ^",
        ),
        (
            "
            hooks:
              - on: tool:pre
            ",
            "bundle.yaml:2:5: missing kind of hook: expected one of `module`, `rule`, `command`, `worker`, `http`, `nats` and `wasm`\n \
             2 |   - on: tool:pre\n   |     ^",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(problem(text), expected);
    }
    let value = |key: &str| problem(&format!("hooks:\n  - rule: a\n    on: tool:pre\n    deny: no\n    {key}\n"));
    let told = |key: &str| value(key).lines().next().unwrap().to_owned();
    assert_eq!(told("priority: high"), "bundle.yaml:5:15: invalid `priority` `high`: expected a whole number");
    assert_eq!(told("on_error: denny"), "bundle.yaml:5:15: unknown value `denny`; did you mean `deny`?");
    assert_eq!(told("deny: twice"), "bundle.yaml:5:5: duplicate key `deny`; remove one of them");
    let case = "tests:\n  - name: x\n    event: tool:pre\n    expect: { decision: denied }\n";
    assert!(problem(case).starts_with("bundle.yaml:2:5: unknown decision `denied`; did you mean `deny`?"));
    let first = |text: &str| problem(text).lines().next().unwrap().to_owned();
    assert_eq!(
        first("- a\n"),
        "bundle.yaml:1:1: expected keys with values, such as `key: value`; a bundle begins with a key, such as `hooks:`"
    );
    assert_eq!(first("hooks:\n  rule: a\n"), "bundle.yaml:2:3: expected a list, whose items begin with `- `");
    let documents = "hooks: []\n---\nhooks: []\n";
    assert_eq!(first(documents), "bundle.yaml:3:1: a bundle is one document; remove the `---` before this");
    assert!(problem("hooks: [").starts_with("bundle.yaml:1:"), "{}", problem("hooks: ["));
    assert!(problem("hooks:\n  - rule: x\n    on: tool:pre\n    deny: y\n    on_error: perhaps\n").contains(":5:"));
}

#[test]
fn bundles_include_others_and_never_without_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("team.yaml", "session: { injection_size_limit: 50 }\nhooks:\n  - rule: a\n    on: tool:pre\n    deny: no\n");
    write("mine.yaml", "includes: [team.yaml]\nhooks:\n  - rule: b\n    on: tool:pre\n    deny: no\n");
    let loaded = load(&folder.path().join("mine.yaml")).unwrap();
    let names: Vec<String> = loaded.hooks.iter().map(|placed| placed.entry.shown_name()).collect();
    assert_eq!((names, loaded.session.injection_size_limit), (vec!["a".to_owned(), "b".to_owned()], Some(50)));

    write("other.yaml", "includes: [team.yaml]\nsession: { injection_size_limit: 60 }\n");
    write("both.yaml", "includes: [mine.yaml, other.yaml, ./team.yaml]\n");
    let loaded = load(&folder.path().join("both.yaml")).unwrap();
    let names: Vec<String> = loaded.hooks.iter().map(|placed| placed.entry.shown_name()).collect();
    assert_eq!(names, ["a", "b"], "what is included in several ways counts once");
    assert_eq!((loaded.files.len(), loaded.session.injection_size_limit), (4, Some(60)));

    write("team.yaml", "includes: [mine.yaml]\n");
    let error = load(&folder.path().join("mine.yaml")).unwrap_err();
    assert!(error.message.ends_with("includes this file: a cycle of includes"), "{error}");
    write("mine.yaml", "includes: [gone.yaml]\n");
    let error = load(&folder.path().join("mine.yaml")).unwrap_err();
    assert_eq!((error.line, error.column), (1, 12));
}

/// A registry with the hooks of a bundle, in a folder that is the workspace, too.
fn registered(folder: &Path, text: &str) -> Result<HookRegistry, BundleError> {
    let file = folder.join("bundle.yaml");
    std::fs::write(&file, yaml(text)).unwrap();
    let hooks = HookRegistry::new();
    let scope = Scope::new(folder).unwrap();
    load(&file)?.register(&hooks, &HookEnvironment::new(scope))?;
    Ok(hooks)
}

#[tokio::test]
async fn hooks_of_all_kinds_answer_where_their_conditions_hold() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("lint.sh"),
        "cat >/dev/null; echo '{\"action\": \"inject_context\", \"context_injection\": \"line 1\"}'",
    )
    .unwrap();
    let worker = "import json, sys\nfor line in sys.stdin:\n    id = json.loads(line)['id']\n    print(json.dumps({'id': id, 'result': {'user_message': 'seen'}}), flush=True)\n";
    std::fs::write(folder.path().join("policy.py"), worker).unwrap();
    let hooks = registered(
        folder.path(),
        r#"
        hooks:
          - rule: production-guard
            on: tool:pre
            when: tool_name == "Write" && path_matches(tool_input.file_path, ["production/**"])
            ask: "Write to {{ tool_input.file_path }}?"
            options: [Allow once, Deny]
          - command: sh lint.sh
            name: lint
            on: [tool:pre, tool:post]
            when: tool_name == "Write"
          - worker: [python3, policy.py]
            name: policy
            on: "tool:*"
          - rule: off
            on: tool:pre
            deny: never
            enabled: false
        "#,
    )
    .unwrap();
    let roles: Vec<_> = hooks.list_handlers().iter().map(|hook| (hook.name.to_string(), hook.on_error)).collect();
    let expected = [
        ("production-guard", OnError::Deny),
        ("lint", OnError::Deny),
        ("lint", OnError::Continue),
        ("policy", OnError::DenyGating),
    ];
    assert_eq!(roles, expected.map(|(name, on_error)| (name.to_owned(), on_error)));

    let write = |path: &str| data! { "tool_name": "Write", "tool_input": { "file_path": path } };
    let outcome = hooks.emit("tool:pre", write("./docs/../production/a")).await.unwrap();
    assert_eq!(outcome.decision.as_str(), "ask_user");
    assert_eq!(outcome.approvals()[0].prompt, "Write to ./docs/../production/a?");
    assert_eq!(outcome.injections()[0].value.text, "line 1");
    assert_eq!(outcome.messages()[0].value.text, "seen");

    let outcome = hooks.emit("tool:pre", data! { "tool_name": "Read", "tool_input": {} }).await.unwrap();
    assert_eq!((outcome.decision.as_str(), outcome.injections().len(), outcome.messages().len()), ("continue", 0, 1));
}

#[test]
fn a_hook_that_cannot_be_made_is_pointed_at_and_none_is_registered() {
    let folder = tempfile::tempdir().unwrap();
    let problem = |text: &str| registered(folder.path(), text).unwrap_err();
    let error = problem(
        r#"
        hooks:
          - rule: fine
            on: tool:pre
            deny: no
          - rule: guard
            on: tool:pre
            when: tool_nam == "Bash"
            deny: no
        "#,
    );
    assert_eq!((error.line, error.column, error.text.as_str()), (7, 11, "    when: tool_nam == \"Bash\""));
    assert_eq!(error.help.as_deref(), Some("did you mean `tool_name`?"));
    let error = problem("hooks:\n  - rule: x\n    on: nonsense\n    deny: no\n");
    assert!(error.message.contains("`nonsense`") && error.to_string().contains("amplifier events"), "{error}");
}

#[tokio::test]
async fn a_confined_program_is_started_by_the_launcher_of_the_host_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        "hooks:\n  - command: 'echo \"$LAUNCHED\" >&2; exit 2'\n    on: tool:pre\n    confine: { write: workspace }\n";
    let error = registered(folder.path(), text).unwrap_err();
    assert_eq!((error.line, error.column), (2, 5));
    assert_eq!(error.message, "it cannot be confined: sandboxing is not available in this program");

    let bundle = load(&folder.path().join("bundle.yaml")).unwrap();
    let host = HookEnvironment::new(Scope::new(folder.path()).unwrap());
    let (hooks, confined) = (HookRegistry::new(), SandboxConfig { network: false, write: WriteAccess::Workspace });
    let make = move |request: &SandboxRequest<'_>| {
        assert_eq!(request.confine, Some(&confined));
        Ok(Sandbox::through(["env", "LAUNCHED=by env"]))
    };
    bundle.register(&hooks, &host.sandbox(make)).unwrap();
    let outcome = hooks.emit("tool:pre", data! { "tool_name": "Read", "tool_input": {} }).await.unwrap();
    assert_eq!(outcome.denial().map(|denial| denial.reason()), Some("by env"));
}

#[test]
fn a_time_for_answers_that_makes_no_sense_is_told() {
    for (given, shown) in [("-5", "-5"), ("0", "0"), (".nan", "NaN"), (".inf", "inf")] {
        let text = format!("session:\n  approval_timeout: {given}\n");
        let error = amplifier_modules::bundle::Bundle::parse(&text, std::path::Path::new("b.yaml")).unwrap_err();
        let expected = format!("invalid `approval_timeout` `{shown}`: expected seconds above zero");
        assert_eq!((error.line, error.message), (2, expected));
    }
}

#[test]
fn what_is_wrong_under_a_key_is_told_where_the_key_stands() {
    let folder = tempfile::tempdir().unwrap();
    let place = |text: &str| {
        let error = registered(folder.path(), text).map(drop).unwrap_err();
        (error.line, error.column, error.text)
    };
    let expected = |line: usize, column: usize, text: &str| (line, column, text.to_owned());
    let rule = "
        hooks:
          - rule: a
            on: tool:pre
            when: tool_nam == 'Bash'
            deny: no
        ";
    assert_eq!(place(rule), expected(4, 11, "    when: tool_nam == 'Bash'"));
    let template = "
        hooks:
          - on: tool:pre
            rule: a
            # Not yet.

            deny: '{{ nobody }}'
        ";
    assert_eq!(place(template), expected(6, 15, "    deny: '{{ nobody }}'"));
    let braces = "
        hooks:
          - { rule: a, on: tool:pre, deny: x, when: nobody }
        ";
    assert_eq!(place(braces).1, 45);
    let event = "
        hooks:
          - rule: a
            deny: x
            on: 'tool pre'
          - rule: b
            deny: x
            on: tool:pre
        ";
    assert_eq!(place(event), expected(4, 5, "    on: 'tool pre'"));
    let option = "
        hooks:
          - module: hooks-bash-guard
            priority: 3
            config:
              destructive: perhaps
        ";
    assert_eq!(place(option), expected(4, 5, "    config:"));
    let misfit = "
        hooks:
          - command: ./lint.sh
            on: tool:pre
            workers: 3
        ";
    assert_eq!(place(misfit), expected(4, 5, "    workers: 3"));
}

#[test]
fn a_part_of_an_expression_is_found_however_yaml_writes_it() {
    let folder = tempfile::tempdir().unwrap();
    for (value, line, column) in [
        ("prompt == 'x' && nobody", 4, 28),
        ("\"prompt == \\\"x\\\" && nobody\"", 4, 31),
        ("'prompt == ''x'' && nobody'", 4, 31),
        (">\n      prompt == 'x'\n      && nobody", 6, 10),
        ("|\n      nobody", 5, 7),
    ] {
        let text = format!("hooks:\n  - rule: a\n    on: prompt:submit\n    when: {value}\n    deny: no\n");
        let error = registered(folder.path(), &text).map(drop).unwrap_err();
        assert_eq!(
            (error.line, error.column, error.message.as_str()),
            (line, column, "unknown name `nobody`"),
            "{text}"
        );
    }
}

#[test]
fn an_event_that_nobody_emits_has_to_be_declared() {
    let folder = tempfile::tempdir().unwrap();
    let told = |head: &str, on: &str| {
        let text = format!("{head}hooks:\n  - rule: a\n    on: {on}\n    deny: no\n");
        registered(folder.path(), &text).map(drop).map_err(|error| error.to_string().lines().next().unwrap().to_owned())
    };
    let refused = told("", "deploy:start").unwrap_err();
    let expected =
        ":3:5: unknown event `deploy:start`; declare an event of another program in the bundle: `events: [NAME]`";
    assert!(refused.ends_with(expected), "{refused}");
    assert!(told("", "tool:prre").unwrap_err().ends_with("unknown event `tool:prre`; did you mean `tool:pre`?"));
    assert!(told("", "'deploy:*'").unwrap_err().contains("no known event matches `deploy:*`"));
    for on in ["deploy:start", "'deploy:*'", "[tool:pre, deploy:start]", "tool:error", "'*'", "'*:start'"] {
        assert_eq!(told("events: [deploy:start]\n", on), Ok(()), "{on}");
    }
    let known = told("events: [tool:pre]\n", "tool:pre").unwrap_err();
    assert!(known.contains(":1:10: `tool:pre` is a known event: remove it from `events`"), "{known}");
    // Declared in one file of a bundle, an event is known in all.
    std::fs::write(folder.path().join("team.yaml"), "events: [deploy:start]\n").unwrap();
    assert_eq!(told("includes: [team.yaml]\n", "deploy:start"), Ok(()));
}

#[test]
fn a_mistake_in_a_rule_is_told_by_the_key_that_the_bundle_has() {
    let folder = tempfile::tempdir().unwrap();
    for (key, needed) in [("ask_timeout: 5", "ask"), ("inject_role: user", "inject")] {
        let text = format!("hooks:\n  - rule: a\n    on: tool:pre\n    deny: no\n    {key}\n");
        let error = registered(folder.path(), &text).map(drop).unwrap_err();
        let name = key.split(':').next().unwrap();
        let expected = format!("rule error: `{name}` needs `{needed}`, which is missing");
        assert_eq!((error.line, error.message), (5, expected));
    }
}

#[test]
fn values_that_would_do_something_else_than_they_seem_to_are_told() {
    let entry = |text: &str| problem(&format!("hooks:\n  - {{ on: tool:pre, {text} }}\n"));
    let case = |text: &str| problem(&format!("tests:\n  - {{ name: x, {text} }}\n"));
    let told = [
        (entry("command: ' '"), "`command` is empty: name a program"),
        (entry("worker: ['']"), "`worker` is empty: name a program"),
        (entry("worker: cat, workers: 0"), "invalid `workers`: expected 1 to 64"),
        (entry("worker: cat, workers: 100000"), "invalid `workers`: expected 1 to 64"),
        (entry("command: cat, timeout: 1e300"), "invalid `timeout`: expected a finite number of seconds above zero"),
        (entry("rule: '', deny: no"), "`rule` is empty: expected a name, which approval requests and records show"),
        (entry("command: cat, name: ''"), "`name` is empty: expected a name, which approval requests and records show"),
        (case("event: tool:pre, expect: {}"), "`expect` is empty: add `decision`, `by`, `says` or `data`"),
        (case("event: tool:pre, expect: { data: { a: 1 } }"), "invalid JSON Pointer `a` in `expect`: begin with `/`"),
        (
            case("event: tool pre, expect: { decision: deny }"),
            "invalid event name `tool pre`: contains a space or a control character; expected the form `tool:pre`",
        ),
    ];
    for (told, expected) in told {
        let first = told.lines().next().unwrap();
        assert!(first.starts_with("bundle.yaml:2:") && first.ends_with(expected), "{told}");
    }
    let folder = tempfile::tempdir().unwrap();
    let question = "hooks:\n  - { rule: a, on: tool:pre, ask: ' ' }\n";
    let error = registered(folder.path(), question).map(drop).unwrap_err();
    assert_eq!(error.message, "rule error: `ask` is empty: expected the prompt of the approval request");
}

#[test]
fn every_hook_has_the_keys_that_all_have() {
    let folder = tempfile::tempdir().unwrap();
    let kinds = [
        "module: hooks-todo-display",
        "rule: a\n    on: tool:pre\n    deny: no",
        "rule: b\n    on: tool:pre\n    inject: x",
        "command: 'true'\n    on: tool:pre",
        "worker: cat\n    on: tool:pre",
        "http: http://127.0.0.1:1/\n    on: tool:pre",
    ];
    let keys = [
        "name: n",
        "priority: 5",
        "timeout: 2",
        "on_error: deny",
        "role: observer",
        "ephemeral: true",
        "enabled: true",
    ];
    for (kind, key) in kinds.iter().flat_map(|kind| keys.map(|key| (kind, key))) {
        let text = format!("hooks:\n  - {kind}\n    {key}\n");
        assert!(registered(folder.path(), &text).is_ok(), "{text}");
    }
}

#[tokio::test]
async fn a_hook_under_patterns_that_overlap_hears_an_event_once() {
    let folder = tempfile::tempdir().unwrap();
    for on in [
        "[tool:pre, tool:pre]",
        "['tool:*', tool:pre]",
        "[tool:pre, 'tool:*']",
        "['tool:*', '*:pre']",
        "['*', 'tool:*', '*:pre', tool:pre]",
    ] {
        let text = format!("hooks:\n  - rule: a\n    on: {on}\n    ask: Sure?\n");
        let hooks = registered(folder.path(), &text).unwrap();
        let outcome = hooks.emit(TOOL_PRE, data! { "tool_name": "Bash", "tool_input": {} }).await;
        assert_eq!(outcome.approvals().len(), 1, "{on}");
    }
    let aliases = "hooks:\n  - rule: a\n    on: [tool:error, error:tool, 'tool:*']\n    message: Oh\n";
    let hooks = registered(folder.path(), aliases).unwrap();
    let outcome = hooks.emit("error:tool", data! { "tool_name": "Bash", "error": "x" }).await.unwrap();
    assert_eq!(outcome.messages().len(), 1);
    let apart = "hooks:\n  - rule: a\n    on: [tool:pre, tool:post, 'session:*']\n    message: Oh\n";
    let heard: Vec<String> =
        registered(folder.path(), apart).unwrap().list_handlers().iter().map(|hook| hook.event.to_string()).collect();
    assert_eq!(heard.len(), 3, "{heard:?}");
}

#[tokio::test]
async fn a_server_is_called_by_its_address_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    for (address, name) in [
        ("http://127.0.0.1:1/auth", "http://127.0.0.1:1/auth"),
        ("http://policy.example", "http://policy.example"),
        ("http://user:pw@127.0.0.1:1/auth?token=abc", "http://127.0.0.1:1/auth"),
        ("http://token@127.0.0.1:1/#abc", "http://127.0.0.1:1/"),
        ("http:user:pw@127.0.0.1:1/auth", "http://127.0.0.1:1/auth"),
        ("http://user:pw@127.0.0.1:port/", "http"),
        ("mailto:user@example.org?token=abc", "http"),
    ] {
        let text = format!("hooks:\n  - http: '{address}'\n    on: tool:pre\n    on_error: deny\n");
        let bundle = load_hosted(BundleInput::Text(&text, Path::new("bundle.yaml"))).unwrap();
        assert_eq!(bundle.hooks[0].entry.shown_name(), name);
        match registered(folder.path(), &text) {
            Ok(hooks) if name.contains(":1/") => {
                let outcome = hooks.emit(TOOL_PRE, data! { "tool_name": "Bash", "tool_input": {} }).await;
                let said = format!("{outcome:?}");
                let is_told = ["pw", "token", "abc"].iter().any(|secret| said.contains(secret));
                assert!(said.contains(name) && !is_told, "{said}");
            }
            Ok(_) => {}
            Err(error) => assert!(error.message.contains("invalid address of hook `http`"), "{error}"),
        }
    }
}

#[test]
fn a_text_is_loaded_as_a_file_is() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("more.yaml"), "hooks: [{ rule: more, on: 'tool:pre', deny: no }]").unwrap();
    let text = "includes: [more.yaml]\nhooks: [{ rule: own, on: 'tool:pre', deny: no }]";
    let loaded = load_hosted(BundleInput::Text(text, &folder.path().join("bundle.yaml"))).unwrap();
    let names: Vec<String> = loaded.hooks.iter().map(|placed| placed.entry.shown_name()).collect();
    assert_eq!(names, ["more", "own"]);
    assert_eq!(loaded.files, [folder.path().join("more.yaml"), folder.path().join("bundle.yaml")]);
}

#[test]
fn a_relative_name_means_the_same_folder_whatever_becomes_of_the_process() {
    let text = "providers: [{ provider: scripted, script: a.json }]\nhooks: [{ command: ./guard.sh, on: 'tool:pre' }]";
    let here = std::env::current_dir().unwrap();
    for (name, folder) in [("bundle.yaml", here.clone()), ("sub/bundle.yaml", here.join("sub"))] {
        let loaded = load_hosted(BundleInput::Text(text, Path::new(name))).unwrap();
        let placed = &loaded.hooks[0];
        assert_eq!((placed.folder(), placed.file.as_path()), (folder.as_path(), Path::new(name)));
        assert_eq!(loaded.providers[0].script.as_deref().map(Path::new), Some(folder.join("a.json").as_path()));
        assert_eq!(loaded.named_files(&here, &here).unwrap().into_iter().collect::<Vec<_>>(), [here.join(name)]);
    }
}

#[test]
fn a_host_brings_modules_of_its_own_and_registers_them_in_their_place() {
    let text = "hooks:\n  - { rule: first, on: 'tool:pre', deny: no }\n  - module: own_module\n    config: { n: 1 }\n  - { rule: last, on: 'tool:pre', deny: no }\n";
    let source = BundleInput::Text(text, Path::new("bundle.yaml"));
    // For whoever brings none, it is a mistake, as it was.
    let refused = Bundle::parse(text, Path::new("bundle.yaml")).unwrap_err().to_string();
    assert!(
        refused.starts_with("bundle.yaml:3:5: unknown module `own_module`; see `amplifier hooks modules`"),
        "{refused}"
    );

    let loaded = load_hosted(source).unwrap();
    let (hooks, host) = (HookRegistry::new(), HookEnvironment::new(Scope::new(".").unwrap()));
    let levels = BundleStack::new([(BundleScope::Explicit, loaded.clone())], &[]);
    let watcher = BundleWatcher::new(&hooks, host.clone(), || panic!("nothing is read anew"));
    let mut version = watcher.prepare(levels.clone()).unwrap();
    let foreign: Vec<Option<&str>> = version.hooks().iter().map(|hook| hook.host_module()).collect();
    assert_eq!(foreign, [None, Some("own_module"), None]);

    let own = version.register().unwrap().unwrap();
    assert_eq!(own.definition().entry.config.as_ref().unwrap()["n"], 1);
    hooks.hook(TOOL_PRE).named("own").run(|_| ());
    assert!(version.register().unwrap().is_none());
    let names = |hooks: &HookRegistry| -> Vec<String> {
        hooks.list_handlers().iter().map(|hook| hook.name.to_string()).collect()
    };
    assert_eq!(names(&hooks), ["first", "own", "last"]);
    drop(version);
    assert_eq!(names(&hooks), ["own"], "what is not put in force leaves nothing");

    // All at once, none stays.
    let problem = "bundle.yaml:3:5: module `own_module` is not available in this program\n 3 |   - module: own_module\n   |     ^";
    assert_eq!(loaded.register(&hooks, &host).unwrap_err().to_string(), problem);
    assert_eq!(watcher.register(levels).unwrap_err().to_string(), problem);
    assert_eq!(names(&hooks), ["own"]);
}

#[test]
fn what_only_our_modules_can_do_is_refused_for_those_of_a_host() {
    for setting in ["when: 'true'", "ephemeral: true", "on: tool:pre"] {
        let text = format!("hooks: [{{ module: own_module, {setting} }}]");
        let error = load_hosted(BundleInput::Text(&text, Path::new("bundle.yaml"))).unwrap_err().to_string();
        assert!(
            error.contains("applies to built-in modules only") || error.contains("does not apply to modules"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn an_error_of_the_sandbox_is_no_finding_of_the_linter() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.py"), "import os\n").unwrap();
    let bundle = "\
hooks:
  - module: hooks-linter
    config: { linters: [{ name: x, files: '*.py', command: [cat, '{file}'], exit_codes: [1, 125] }] }
";
    fs::write(folder.path().join("bundle.yaml"), bundle).unwrap();
    let broken = "echo 'amplifier: cannot confine the program: no namespaces' >&2; exit 1";
    let host = HookEnvironment::new(Scope::new(folder.path()).unwrap())
        .sandbox(move |_| Ok(Sandbox::through(["sh", "-c", broken])));
    let hooks = HookRegistry::new();
    load(&folder.path().join("bundle.yaml")).unwrap().register(&hooks, &host).unwrap();
    let input = data! { "file_path": "a.py", "content": "import os\n" };
    let data = data! { "tool_name": "Write", "tool_input": input, "tool_result": {}, "success": true };
    let report = hooks.emit(TOOL_POST, data).await.report();
    assert!(report.injections.is_empty(), "{:?}", report.injections);
    let told: Vec<&str> = report.messages.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(told, ["the linter `x` failed: amplifier: cannot confine the program: no namespaces"]);
}
