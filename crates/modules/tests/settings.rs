//! What a bundle says about the session, its schema, and bundles that change while they are used.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use amplifier_audit::Durability;
use amplifier_core::{EXECUTION_START, HookRegistry, OverBudget, Placement, TOOL_POST, TOOL_PRE, data};
use amplifier_modules::bundle::{
    self, ApprovalChannel, ApprovalMode, BundleCheck, BundleError, BundleInput, BundleScope, BundleSource, BundleStack,
    BundleWatcher, MistakeCode, Orchestrator, load, load_hosted, schema,
};
use amplifier_modules::{HookEnvironment, MODULES, Scope, ToolSchema};
use serde_json::{Value, json};

fn host(folder: &Path) -> HookEnvironment {
    HookEnvironment::new(Scope::new(folder).unwrap())
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

#[test]
fn settings_tools_and_models_come_from_all_files() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "team.yaml",
        "session: { orchestrator: loop-basic, audit: record, approvals: server, approval_timeout: 30, over_budget: drop }\n\
         tools:\n  only: [Read, Grep, Bash]\n  mcp:\n    files: { command: server, args: [--stdio] }\n    \
         own: { command: ./bin/server }\n\
         providers:\n  - provider: openai\n    model: llama\n    base_url: http://localhost:11434/v1/\n",
    );
    write(
        folder.path(),
        "mine.yaml",
        "includes: [team.yaml]\nsession: { orchestrator: loop-streaming, system: Be brief. }\n\
         tools: { only: [Read, Write, Grep] }\nproviders:\n  - { name: rehearsal, provider: scripted, script: play.json }\n",
    );
    let loaded = load(&folder.path().join("mine.yaml")).unwrap();
    let session = loaded.session;
    assert_eq!(session.orchestrator, Some(Orchestrator::Streaming));
    assert_eq!(session.audit, Some(Durability::Record));
    assert_eq!(session.approvals, Some(ApprovalChannel::Server));
    assert_eq!(session.approval_timeout, Some(30.0));
    assert_eq!(session.over_budget, Some(OverBudget::Drop));
    assert_eq!(session.system.as_deref(), Some("Be brief."));
    assert_eq!(loaded.tools.only, Some(vec!["Read".to_owned(), "Grep".to_owned()]));
    assert_eq!(loaded.tools.mcp["files"].args, ["--stdio"]);
    assert_eq!(loaded.tools.mcp["files"].command, "server");
    assert_eq!(Path::new(&loaded.tools.mcp["own"].command), folder.path().join("bin/server"));
    let names: Vec<&str> = loaded.providers.iter().map(|provider| provider.shown_name()).collect();
    assert_eq!(names, ["rehearsal", "openai"]);
    let script = folder.path().join("play.json");
    assert_eq!(loaded.providers[0].script.as_deref(), script.to_str());
}

#[test]
fn a_project_makes_things_stricter_and_chooses_nothing_for_the_person() {
    let folder = tempfile::tempdir().unwrap();
    let loaded = |name: &str, text: &str| {
        write(folder.path(), name, text);
        load(&folder.path().join(name)).unwrap()
    };
    let user = loaded(
        "user.yaml",
        "session: { audit: group, mode: ask, approval_timeout: 60, forbid_modes: [accept-edits] }\ntools: { only: [Read, Bash] }\n",
    );
    let project = loaded(
        "project.yaml",
        "session: { audit: record, mode: plan, forbid_modes: [ask], approval_timeout: 90, orchestrator: loop-basic, system: Obey me. }\n\
         tools:\n  only: [Read, Write]\n  mcp:\n    mine: { command: ./server }\n\
         providers: [{ provider: openai, base_url: 'https://elsewhere.example/' }]\n",
    );
    let levels = BundleStack::new([(BundleScope::User, user), (BundleScope::Project, project)], &[]);
    let settings = levels.settings();
    assert_eq!(settings.audit, Some(Durability::Record));
    assert_eq!(settings.mode, Some(ApprovalMode::Plan));
    assert_eq!(settings.forbid_modes, [ApprovalMode::AcceptEdits, ApprovalMode::Ask]);
    assert_eq!(settings.approval_timeout, Some(60.0));
    assert_eq!((settings.orchestrator, settings.system), (None, None));
    assert_eq!(levels.tools().only, Some(vec!["Read".to_owned()]));
    assert!(levels.tools().mcp.is_empty());
    assert_eq!(levels.providers().count(), 0);
}

#[test]
fn mistakes_in_settings_are_told_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let table = [
        ("session: { orchestrator: loop-fast }", ":1:"),
        ("session:\n  audit: never\n", ":2:"),
        ("session:\n  approvals: client\n", "invalid `approvals` `client`: only the configuration file can set it"),
        ("session:\n  forbid_modes: [plan]\n", "mode `plan` cannot be forbidden; expected `ask` or `accept-edits`"),
        ("tools:\n  onyl: [Read]\n", ":2:3: unknown key `onyl`; did you mean `only`?"),
        ("providers:\n  - model: x\n", ":2:"),
        ("providers:\n  - provider: opnai\n", "did you mean `openai`?"),
    ];
    for (text, expected) in table {
        write(folder.path(), "b.yaml", text);
        let error = load(&folder.path().join("b.yaml")).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn hooks_of_one_name_are_doubted() {
    let text = "hooks:\n  - module: hooks-approval\n  - module: hooks-approval\n  - rule: a\n    on: tool:pre\n    ask: Sure?\n  \
                - command: 'true'\n    on: tool:pre\n    name: a\n  - { rule: a, on: tool:pre, deny: no, enabled: false }\n  \
                - module: ./own.py\n  - module: ./own.py\n";
    let warnings = load_hosted(BundleInput::Text(text, Path::new("b.yaml"))).unwrap().warnings();
    let told: Vec<(usize, usize, &str)> =
        warnings.iter().map(|doubt| (doubt.line, doubt.column, doubt.message.as_str())).collect();
    let problem =
        |name| format!("duplicate hook name `{name}`: approval rules apply to both hooks; give each its own `name`");
    assert_eq!(told, [(3, 5, problem("hooks-approval").as_str()), (9, 5, problem("a").as_str())]);
}

#[tokio::test]
async fn how_long_an_injection_stays_can_be_said_of_any_hook() {
    let folder = tempfile::tempdir().unwrap();
    let answer = r#"echo "{\"action\":\"inject_context\",\"context_injection\":\"x\"}""#;
    write(
        folder.path(),
        "b.yaml",
        &format!("hooks:\n  - command: '{answer}'\n    on: tool:post\n    ephemeral: true\n"),
    );
    let hooks = HookRegistry::new();
    load(&folder.path().join("b.yaml")).unwrap().register(&hooks, &host(folder.path())).unwrap();
    let outcome = hooks.emit(TOOL_POST, data! { "tool_name": "Write" }).await;
    let answers: Vec<Placement> = outcome.injections().iter().map(|injection| injection.value.placement).collect();
    assert_eq!(answers, [Placement::NextCall]);
}

const SCHEMA: &str = "../../schema/bundle.schema.json";

#[test]
fn the_schema_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(SCHEMA);
    let text = format!("{:#}\n", schema());
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap_or_default()).unwrap_or_default();
    assert!(written == schema(), "write it anew: UPDATE_SCHEMAS=1 cargo test -p amplifier-modules --test all settings");
}

/// An editor marks what the program refuses, and nothing that it takes.
#[test]
fn the_schema_agrees_with_the_program() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let takes = [
        json!({}),
        json!({ "includes": ["team.yaml"], "session": { "audit": "record", "over_budget": "drop" } }),
        json!({ "hooks": [{ "rule": "a", "on": "tool:pre", "deny": "no", "priority": -5, "on_error": "deny" }] }),
        json!({ "hooks": [{ "module": "hooks-production-guard", "config": { "paths": ["prod/**"], "ask": false } }] }),
        json!({ "hooks": [{ "command": ["./lint.sh", "-v"], "on": ["tool:post"], "timeout": 2.5, "ephemeral": true }] }),
        json!({ "providers": [{ "provider": "openai", "base_url": "http://localhost/" }] }),
    ];
    let refuses = [
        json!({ "hook": [] }),
        json!({ "session": { "audit": "never" } }),
        json!({ "hooks": [{ "on": "tool:pre" }] }),
        json!({ "hooks": [{ "rule": "a", "command": "b", "on": "tool:pre", "deny": "no" }] }),
        json!({ "hooks": [{ "rule": "a", "on": "tool:pre", "dney": "no" }] }),
        json!({ "hooks": [{ "module": 3 }] }),
        json!({ "hooks": [{ "module": "hooks-production-guard", "config": { "pahts": [] } }] }),
        json!({ "tools": { "mcp": { "a": { "args": [] } } } }),
    ];
    for (text, is_fine) in takes.iter().map(|text| (text, true)).chain(refuses.iter().map(|text| (text, false))) {
        assert_eq!(validator.is_valid(text), is_fine, "the schema, about {text}");
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "team.yaml", "");
        write(folder.path(), "b.yaml", &text.to_string());
        let registered = load(&folder.path().join("b.yaml"))
            .and_then(|loaded| loaded.register(&HookRegistry::new(), &host(folder.path())));
        assert_eq!(registered.is_ok(), is_fine, "the program, about {text}");
    }
}

/// Who writes a bundle for a host that brings modules of its own, such as those of Python, sees no mistake where there is none.
#[test]
fn the_schema_takes_modules_that_a_host_brings() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for name in ["hooks-path-guard", "my_package.guard:mount", "./guard.py"] {
        let text = json!({ "hooks": [{ "module": name, "config": { "anything": [1] }, "priority": 5 }] });
        assert!(validator.is_valid(&text), "the schema, about {text}");
        assert!(load_hosted(BundleInput::Text(&text.to_string(), Path::new("b.yaml"))).is_ok(), "a host, about {text}");
        assert!(!validator.is_valid(&json!({ "hooks": [{ "module": name, "rule": "two" }] })));
    }
}

#[test]
fn the_schema_offers_every_module() {
    let schema = schema();
    let named = schema.pointer("/$defs/HookEntry/properties/module/anyOf/0/enum").unwrap().clone();
    assert_eq!(named, json!(MODULES.iter().map(|module| module.name).collect::<Vec<_>>()));
}

/// A bundle in a file.
struct Watched {
    file: PathBuf,
    need_not_be_there: bool,
    versions: Arc<Mutex<usize>>,
}

impl BundleSource for Watched {
    fn load(&self) -> Result<BundleStack, BundleError> {
        let is_loaded = self.file.exists() || !self.need_not_be_there;
        let there = is_loaded.then(|| bundle::load(&self.file)).transpose()?;
        Ok(BundleStack::new(there.map(|bundle| (BundleScope::Explicit, bundle)), &[]))
    }

    fn expected(&self) -> Vec<PathBuf> {
        self.need_not_be_there.then(|| self.file.clone()).into_iter().collect()
    }

    fn changed(&self, _: &BundleStack) {
        *self.versions.lock().unwrap() += 1;
    }
}

impl Watched {
    fn new(file: PathBuf) -> Self {
        Self { file, need_not_be_there: false, versions: Arc::default() }
    }
}

fn watch(hooks: &HookRegistry, folder: &Path, source: impl BundleSource) -> BundleWatcher {
    let levels = source.load().unwrap();
    let watcher = BundleWatcher::new(hooks, host(folder), source);
    watcher.register(levels).unwrap();
    watcher.watch();
    watcher
}

/// What a turn that begins tells the person.
async fn told(hooks: &HookRegistry) -> Vec<String> {
    let outcome = hooks.emit(EXECUTION_START, data! { "prompt": "x" }).await;
    outcome.messages().iter().map(|message| message.value.text.to_string()).collect()
}

/// How many hooks look for changes.
const FOLLOWERS: usize = 2;

const CHANGED: &str = "a bundle has changed: its hooks are active from now on";

async fn is_denied(hooks: &HookRegistry) -> Option<String> {
    let outcome = hooks.emit(TOOL_PRE, data! { "tool_name": "Bash", "tool_input": { "command": "ls" } }).await;
    outcome.flat().reason
}

#[tokio::test]
async fn a_bundle_is_read_anew_when_it_changes_and_a_broken_one_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let rule = |text: &str| format!("hooks:\n  - rule: guard\n    on: tool:pre\n    deny: {text}\n");
    write(folder.path(), "b.yaml", &rule("one"));
    let hooks = HookRegistry::new();
    let file = folder.path().join("b.yaml");
    watch(&hooks, folder.path(), Watched::new(file));
    assert!(told(&hooks).await.is_empty());
    assert_eq!(is_denied(&hooks).await.as_deref(), Some("one"));

    write(folder.path(), "b.yaml", &rule("two"));
    assert_eq!(told(&hooks).await, [CHANGED]);
    assert_eq!(is_denied(&hooks).await.as_deref(), Some("two"));
    assert_eq!(hooks.list_handlers_of(TOOL_PRE).len(), 1);

    write(folder.path(), "b.yaml", "hooks:\n  - rule: guard\n    on: tool:pre\n    dney: three\n");
    let mistake = told(&hooks).await.remove(0);
    assert!(mistake.contains("did you mean `deny`?"), "{mistake}");
    assert!(told(&hooks).await.is_empty(), "a mistake is told once");
    assert_eq!(is_denied(&hooks).await.as_deref(), Some("two"));

    std::fs::remove_file(folder.path().join("b.yaml")).unwrap();
    assert!(told(&hooks).await[0].contains("cannot be read"));
    assert_eq!(is_denied(&hooks).await.as_deref(), Some("two"));

    write(folder.path(), "b.yaml", "hooks: []\n");
    assert_eq!(told(&hooks).await, [CHANGED]);
    assert_eq!(is_denied(&hooks).await, None);
}

#[tokio::test]
async fn a_mistake_in_a_file_that_is_new_to_the_bundle_can_be_mended_there() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "b.yaml", "");
    let hooks = HookRegistry::new();
    let file = folder.path().join("b.yaml");
    watch(&hooks, folder.path(), Watched::new(file));
    write(folder.path(), "more.yaml", "hoks: []\n");
    write(folder.path(), "b.yaml", "includes: [more.yaml]\n");
    assert_eq!(told(&hooks).await.len(), 1);
    write(folder.path(), "more.yaml", "hooks:\n  - rule: guard\n    on: tool:pre\n    deny: now\n");
    assert_eq!(told(&hooks).await, [CHANGED]);
    assert_eq!(is_denied(&hooks).await.as_deref(), Some("now"));
}

#[tokio::test]
async fn a_session_follows_its_bundle_and_the_person_is_told() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "b.yaml", "");
    let (hooks, file) = (HookRegistry::new(), folder.path().join("b.yaml"));
    let source = Watched::new(file);
    let versions = source.versions.clone();
    let watcher = watch(&hooks, folder.path(), source);
    assert!(told(&hooks).await.is_empty());
    let guard = "hooks:\n  - rule: guard\n    on: tool:pre\n    deny: x\n";
    write(folder.path(), "b.yaml", guard);
    assert_eq!(told(&hooks).await, [CHANGED]);
    assert_eq!(is_denied(&hooks).await.as_deref(), Some("x"));
    write(folder.path(), "b.yaml", "hooks: [");
    let messages = told(&hooks).await;
    assert!(
        messages[0].starts_with("a bundle has changed and cannot be used, so the old version stays"),
        "{messages:?}"
    );
    assert_eq!(*versions.lock().unwrap(), 1);
    assert_eq!(is_denied(&hooks).await.as_deref(), Some("x"));
    assert!(watcher.reload_blocking().error.is_some(), "whoever asks is told again");
    write(folder.path(), "b.yaml", guard);
    assert_eq!(told(&hooks).await, [CHANGED], "that a mistake is mended is told");

    watcher.unregister();
    assert!(hooks.list_handlers().is_empty());
}

/// The clock stands still unless everything waits, so that nobody waits for the time that a disk has.
#[tokio::test(start_paused = true)]
async fn a_disk_that_does_not_answer_keeps_no_session_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("b.yaml");
    let guard = |reason: &str| format!("hooks:\n  - rule: guard\n    on: tool:pre\n    deny: {reason}\n");
    write(folder.path(), "b.yaml", &guard("old"));
    let (answer, disk) = std::sync::mpsc::channel::<()>();
    let (disk, named) = (Mutex::new(disk), file.clone());
    let load = move || {
        disk.lock().unwrap().recv().unwrap();
        Ok(BundleStack::new([(BundleScope::Explicit, bundle::load(&named)?)], &[]))
    };
    let hooks = HookRegistry::new();
    let before = BundleStack::new([(BundleScope::Explicit, bundle::load(&file).unwrap())], &[]);
    let watcher = BundleWatcher::new(&hooks, host(folder.path()), load);
    watcher.register(before).unwrap();
    watcher.watch();
    write(folder.path(), "b.yaml", &guard("new"));
    let begin = || hooks.emit(EXECUTION_START, data! { "prompt": "x" });
    let outcome = begin().await;
    let report = outcome.reports().next().unwrap();
    assert_eq!((report.hook, report.answer_or_failure().as_str()), ("session-bundles", "timed_out"));
    assert_eq!(is_denied(&hooks).await.as_deref(), Some("old"));

    answer.send(()).unwrap();
    let begun = std::time::Instant::now();
    while is_denied(&hooks).await.as_deref() != Some("new") {
        begin().await;
        assert!(begun.elapsed() < std::time::Duration::from_secs(60));
    }
}

/// A worker that denies everything with the number of its process.
const WORKER: &str = r#"while read -r line; do
  id=${line#*\"id\":}
  printf '{"id":%s,"result":{"action":"deny","reason":"process %s"}}\n' "${id%%,*}" "$$"
done
"#;

#[tokio::test]
async fn a_hook_that_did_not_change_goes_on_where_another_one_did() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "worker.sh", WORKER);
    let bundle = |seconds: u32, text: &str| {
        format!(
            "hooks:\n  - worker: [sh, worker.sh]\n    on: tool:pre\n    timeout: {seconds}\n  - rule: guard\n    on: prompt:submit\n    deny: {text}\n"
        )
    };
    write(folder.path(), "b.yaml", &bundle(10, "one"));
    let hooks = HookRegistry::new();
    let watcher = watch(&hooks, folder.path(), Watched::new(folder.path().join("b.yaml")));
    let first = is_denied(&hooks).await.unwrap();
    assert!(first.starts_with("process "), "{first}");

    write(folder.path(), "b.yaml", &bundle(10, "two"));
    assert_eq!(told(&hooks).await, [CHANGED]);
    let prompt = hooks.emit("prompt:submit", data! { "prompt": "x" }).await.unwrap();
    assert_eq!(prompt.flat().reason.as_deref(), Some("two"));
    assert_eq!(is_denied(&hooks).await.unwrap(), first, "its entry is the same");
    assert_eq!(hooks.list_handlers().len(), 2 + FOLLOWERS);

    write(folder.path(), "b.yaml", &bundle(11, "two"));
    assert_eq!(told(&hooks).await, [CHANGED]);
    let second = is_denied(&hooks).await.unwrap();
    assert_ne!(second, first, "its entry is another one");

    write(folder.path(), "worker.sh", &format!("# new\n{WORKER}"));
    assert!(told(&hooks).await.is_empty(), "only bundles are looked at");
    let reload = watcher.reload_blocking();
    assert_eq!((reload.began, reload.kept), (vec!["sh".to_owned()], vec!["guard".to_owned()]));
    assert_ne!(is_denied(&hooks).await.unwrap(), second, "its program is another one");
    assert!(watcher.reload_blocking().stack.is_none());
}

#[tokio::test]
async fn what_a_module_counts_is_not_lost_when_another_hook_changes() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = |text: &str| {
        format!(
            "hooks:\n  - module: hooks-metrics\n    config: {{ file: metrics.prom }}\n  - rule: guard\n    on: tool:pre\n    deny: {text}\n"
        )
    };
    write(folder.path(), "b.yaml", &bundle("one"));
    let hooks = HookRegistry::new();
    watch(&hooks, folder.path(), Watched::new(folder.path().join("b.yaml")));
    is_denied(&hooks).await.unwrap();
    write(folder.path(), "b.yaml", &bundle("two"));
    assert_eq!(told(&hooks).await, [CHANGED]);
    is_denied(&hooks).await.unwrap();
    let end = data! { "session_id": "s", "reason": "complete", "duration_ms": 1, "stats": {} };
    hooks.emit("session:end", end).await.unwrap();
    let metrics = std::fs::read_to_string(folder.path().join("metrics.prom")).unwrap();
    assert!(metrics.contains("amplifier_events_total{event=\"tool:pre\"} 2\n"), "{metrics}");
}

#[tokio::test]
async fn a_bundle_that_is_expected_counts_as_soon_as_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let hooks = HookRegistry::new();
    let file = folder.path().join("later.yaml");
    watch(&hooks, folder.path(), Watched { need_not_be_there: true, ..Watched::new(file) });
    assert!(told(&hooks).await.is_empty());
    write(folder.path(), "later.yaml", "hoks: []\n");
    assert!(told(&hooks).await[0].contains("did you mean `hooks`?"));
    assert!(told(&hooks).await.is_empty(), "a mistake is told once");
    write(folder.path(), "later.yaml", "hooks:\n  - rule: guard\n    on: tool:pre\n    deny: now\n");
    assert_eq!(told(&hooks).await, [CHANGED]);
    assert_eq!(is_denied(&hooks).await.as_deref(), Some("now"));
    assert!(told(&hooks).await.is_empty());
}

#[test]
fn a_tool_that_is_not_there_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let known = ["Read", "Bash"].map(|name| ToolSchema::new(name, json!({ "type": "object" })));
    let host = HookEnvironment::new(Scope::new(folder.path()).unwrap());
    let check = |text: &str| {
        write(folder.path(), "b.yaml", text);
        let found = BundleCheck::load(&folder.path().join("b.yaml")).finish(&host, &known).into_iter();
        let mut found = found.map(|found| found.error).filter(|error| error.code == MistakeCode::UnknownTool);
        let told =
            |error: BundleError| (error.line, error.column, format!("{}; {}", error.message, error.help.unwrap()));
        found.next().map_or(Ok(()), |error| Err(told(error)))
    };
    assert_eq!(check("tools: { only: [Read, mcp__files__list] }\n"), Ok(()));
    assert_eq!(check("tools: { mcp: {} }\n"), Ok(()));
    let told = |line, column, text: &str| Err((line, column, text.to_owned()));
    let expected = told(4, 7, "unknown tool `Bsah`; did you mean `Bash`?");
    assert_eq!(check("tools:\n  only:\n    - Read\n    - Bsah\n"), expected);
    let expected = told(1, 17, "unknown tool `Compiler`; expected one of Read, Bash, or `mcp__SERVER__TOOL`");
    assert_eq!(check("tools: { only: [Compiler] }\n"), expected);
    write(folder.path(), "inner.yaml", "tools: { only: [Raed] }\n");
    assert_eq!(check("includes: [inner.yaml]\n"), told(1, 17, "unknown tool `Raed`; did you mean `Read`?"));
}

#[test]
fn every_mistake_in_the_config_of_a_module_is_reported_at_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = "\
hooks:
  - module: hooks-approval
    config:
      defalt: deny
      rules:
        - { tool: bash, pattern: x, field: command, action: deny }
        - { tool: Write, pattern: ./infra, action: ask }
        - { tool: Edit, pattern: x, action: forbid }
";
    write(folder.path(), "bundle.yaml", bundle);
    let tools = ["Bash", "Write", "Edit"].map(|name| ToolSchema::new(name, json!({})));
    let found = BundleCheck::load(&folder.path().join("bundle.yaml")).finish(&host(folder.path()), &tools);
    let lines: Vec<usize> = found.iter().map(|found| found.error.line).collect();
    assert_eq!(lines, [4, 6, 7, 8], "{found:#?}");
    // A bundle without mistakes has none, whatever its modules need to run.
    write(folder.path(), "bundle.yaml", "hooks:\n  - module: hooks-approval\n    config: { default: deny }\n");
    assert!(BundleCheck::load(&folder.path().join("bundle.yaml")).finish(&host(folder.path()), &tools).is_empty());
}
