//! Built-in modules, switched on in a bundle, through whole turns: linter, guards, notifications, cost, rate limits, metrics.

mod bash_guard;
mod changed;
mod cost;
mod linter;
mod metrics;
mod notify;
mod production_guard;
mod rate_limit;
mod server;
mod session_rules;

use std::path::{Path, PathBuf};

use amplifier_agent::provider::{Script, ScriptedResponse};
use amplifier_agent::tool::{Workspace, standard};
use amplifier_core::HookRegistry;
use amplifier_modules::bundle::{BundleScope, BundleStack, BundleWatcher, load};
use amplifier_modules::{HookEnvironment, MODULES, Scope};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{Run, World};

/// A workspace, and beside it a folder with a bundle.
struct Setup {
    folder: TempDir,
}

impl Setup {
    /// A bundle of this text, without the spaces that make it readable here.
    fn new(bundle: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("workspace")).unwrap();
        let setup = Self { folder };
        setup.rewrite(bundle);
        setup
    }

    /// Another version of the bundle.
    fn rewrite(&self, bundle: &str) {
        let lines: Vec<&str> = bundle.lines().skip_while(|line| line.trim().is_empty()).collect();
        let indent = lines.first().map_or(0, |line| line.len() - line.trim_start().len());
        let text: String = lines.iter().map(|line| format!("{}\n", line.get(indent..).unwrap_or_default())).collect();
        std::fs::write(self.file(), text).unwrap();
    }

    fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    fn write(&self, file: &str, text: &str) {
        let file = self.workspace().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    fn read(&self, file: &str) -> Option<String> {
        std::fs::read_to_string(self.workspace().join(file)).ok()
    }

    fn scope(&self) -> Scope {
        Scope::new(self.workspace()).unwrap()
    }

    /// A world with the hooks of the bundle and the tools of an agent.
    fn world(&self, script: Script) -> World {
        self.world_in(self.scope(), script)
    }

    fn world_in(&self, scope: Scope, script: Script) -> World {
        let world = World::new(script);
        load(&self.file()).unwrap().register(&world.hooks, &HookEnvironment::new(scope)).unwrap();
        self.with_tools(world)
    }

    /// The same, where changes of the bundle are picked up.
    fn followed(&self, script: Script) -> World {
        let world = World::new(script);
        let file = self.file();
        let load = move || Ok(BundleStack::new([(BundleScope::Explicit, load(&file)?)], &[]));
        let levels = load().unwrap();
        let watcher = BundleWatcher::new(&world.hooks, HookEnvironment::new(self.scope()), load);
        watcher.register(levels).unwrap();
        watcher.watch();
        self.with_tools(world)
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("bundle.yaml")
    }

    fn with_tools(&self, world: World) -> World {
        let tools = standard(&Workspace::new(self.workspace()).unwrap());
        tools.into_iter().fold(world, World::tool)
    }

    /// One call of a tool, in a turn in which a person answers this, and what the model reads as its result.
    async fn call(&self, answers: &[&'static str], tool: &str, input: Value) -> (Run, String) {
        let script =
            Script::new([ScriptedResponse::text("I do it.").calling(tool, input), ScriptedResponse::text("Done.")]);
        let run = self.world(script).person(answers).run(&["Do it"]).await;
        let result = run.requests[1].messages.iter().find(|message| message.role == amplifier_core::Speaker::Tool);
        let result = result.unwrap().content.clone();
        (run, result)
    }
}

/// The error for an invalid bundle, without the position.
fn problem(module: &str, config: &str) -> String {
    let bundle = format!("hooks:\n  - module: {module}\n    config: {config}\n");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bundle.yaml");
    std::fs::write(&file, bundle).unwrap();
    let loaded = load(&file).unwrap();
    let host = HookEnvironment::new(Scope::new(folder.path()).unwrap());
    let error = loaded.register(&HookRegistry::new(), &host).expect_err(config).to_string();
    let first = error.lines().next().unwrap();
    let (_, said) = first.split_once(&format!("`config` of `{module}`: ")).expect(first);
    said.to_owned()
}

/// Checks what is said about each of these mistakes.
fn check_problems(module: &str, table: &[(&str, &str)]) {
    for (config, expected) in table {
        assert_eq!(problem(module, config), *expected, "{config}");
    }
}

/// The texts of the messages to the person.
fn told(run: &Run) -> Vec<&str> {
    run.messages.iter().map(|message| message.text.as_str()).collect()
}

/// The questions to the person.
fn asked(run: &Run) -> Vec<&str> {
    run.questions.iter().map(|question| question.prompt.as_str()).collect()
}

/// A script in which the tool `Echo` is called so often, one call an answer.
fn echoes(times: usize) -> Script {
    let echo = |_| ScriptedResponse::text("Once more.").calling("Echo", json!({ "text": "hello" }));
    Script::new((0..times).map(echo).chain([ScriptedResponse::text("Done.")]))
}

/// Runs a test of this program once more, with another environment; it is told so by the variable `AGAIN`.
fn again(test: &str, command: &[&str], path: &Path) -> std::process::Output {
    let this = std::env::current_exe().unwrap();
    let mut words: Vec<&std::ffi::OsStr> = command.iter().map(std::ffi::OsStr::new).collect();
    let rest = [this.as_os_str(), "--exact".as_ref(), test.as_ref(), "--nocapture".as_ref()];
    words.extend(rest);
    let old = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::env::join_paths([path.to_owned()].into_iter().chain(std::env::split_paths(&old))).unwrap();
    let output =
        std::process::Command::new(words[0]).args(&words[1..]).env("AGAIN", path).env("PATH", paths).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("1 passed"), "{text}");
    output
}

/// A program in a folder of its own.
fn program(folder: &Path, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Every property in a schema that has no description, by its path.
fn undescribed(schema: &Value, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    let Value::Object(schema) = schema else { return found };
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if property["description"].as_str().is_none_or(str::is_empty) {
            found.push(format!("{path}.{name}"));
        }
    }
    for (name, inner) in schema {
        found.extend(undescribed(inner, &format!("{path}/{name}")));
    }
    found
}

#[test]
fn every_option_of_every_module_is_described_and_modules_are_in_order() {
    for module in MODULES {
        assert_eq!(undescribed(&module.schema(), module.name), [""; 0]);
    }
    assert!(MODULES.is_sorted_by_key(|module| module.name));
}

/// The YAML of a text.
fn examples(text: &str) -> Vec<String> {
    let blocks = text.split("```yaml\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn every_example_of_the_documentation_can_be_used() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/modules.md");
    let mut documented = String::new();
    for example in examples(&std::fs::read_to_string(page).unwrap()) {
        // The environment of a test holds no secrets.
        let setup = Setup::new(&example.replace("${CHAT_TOKEN}", "secret"));
        setup.world(Script::default());
        documented.push_str(&example);
    }
    for module in MODULES {
        assert!(documented.contains(&format!("module: {}\n", module.name)), "{} has no example", module.name);
    }
}

/// The one in the guide has all that can stand in a bundle.
#[test]
fn the_bundle_of_the_guide_is_one() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/bundles.md");
    let text = examples(&std::fs::read_to_string(page).unwrap()).remove(0);
    let bundle = amplifier_modules::bundle::Bundle::parse(&text, Path::new("bundles.md")).unwrap();
    assert_eq!((bundle.hooks().count(), bundle.providers.len(), bundle.tests().count()), (6, 2, 1));
}
