//! The number of approval requests in a day of ordinary work.
//!
//! A session replays the tool calls of a day. A scripted person answers each request about an ordinary operation with the widest rule that is offered,
//! and denies each request about an operation that loses or sends something. Commands do not run; files are written.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "a test may fail loudly"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use amplifier_agent::provider::ToolSpec;
use amplifier_agent::tool::{Tool, ToolError, ToolOutput, Workspace, standard};
use amplifier_core::{
    ApprovalAnswer, ApprovalError, ApprovalSystem, ChosenRule, Effect, Map, OpenRequest, RuleOffer, RuleScope,
};
use amplifier_host::{Config, Home, Overrides, SessionBuilder};
use futures::future::BoxFuture;
use serde_json::{Value, json};

/// Days of work. The first is the one that the rules were tuned with, then also `storefront`; `fleet` was never used to tune them.
const WORKSPACE: &str = include_str!("day/workspace.txt");
const SERVICE: &str = include_str!("day/service.txt");
const GATEWAY: &str = include_str!("day/gateway.txt");
const STOREFRONT: &str = include_str!("day/storefront.txt");
const FLEET: &str = include_str!("day/fleet.txt");

/// The calls of a day, by task.
struct Day {
    tasks: Vec<Vec<Value>>,
    grave: BTreeSet<String>,
    /// The files that exist in the morning.
    files: BTreeSet<String>,
    calls: usize,
}

impl Day {
    fn read(text: &str) -> Self {
        let mut day = Self { tasks: vec![Vec::new()], grave: BTreeSet::new(), files: BTreeSet::new(), calls: 0 };
        let mut versions: BTreeMap<&str, usize> = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let is_grave = line.starts_with('!');
            let call = match line.trim_start_matches("! ").split_once(' ') {
                None => {
                    day.tasks.push(Vec::new());
                    continue;
                }
                Some(("$", command)) => {
                    let command = command.replace("\\n", "\n");
                    if is_grave {
                        day.grave.insert(command.clone());
                    }
                    json!({ "name": "Bash", "input": { "command": command } })
                }
                Some(("read", path)) => {
                    day.files.insert(path.to_owned());
                    json!({ "name": "Read", "input": { "file_path": path } })
                }
                Some(("write", path)) => {
                    versions.insert(path, 0);
                    json!({ "name": "Write", "input": { "file_path": path, "content": "line 0\n" } })
                }
                Some(("edit", path)) => {
                    if !versions.contains_key(path) {
                        day.files.insert(path.to_owned());
                    }
                    let version = versions.entry(path).or_default();
                    *version += 1;
                    let (before, after) = (format!("line {}", *version - 1), format!("line {version}"));
                    json!({ "name": "Edit", "input": { "file_path": path, "old_string": before, "new_string": after } })
                }
                Some((word, _)) => panic!("unknown word `{word}`"),
            };
            day.calls += 1;
            day.tasks.last_mut().unwrap().push(call);
        }
        day.tasks.retain(|calls| !calls.is_empty());
        day
    }

    /// Creates a repository with the files of the morning.
    fn prepare(&self, folder: &Path) {
        for file in &self.files {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "line 0\n").unwrap();
        }
        for arguments in [vec!["init", "-q"], vec!["add", "-A"], vec!["commit", "-q", "-m", "morning"]] {
            let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"];
            let status = Command::new("git").args(identity).args(arguments).current_dir(folder).status().unwrap();
            assert!(status.success());
        }
    }

    fn script(&self) -> Value {
        let task = |calls: &Vec<Value>| {
            let calls = calls.iter().map(|call| json!({ "tools": [call] }));
            calls.chain([json!({ "text": "Done." })]).collect::<Vec<_>>()
        };
        json!({ "answers": self.tasks.iter().flat_map(task).collect::<Vec<_>>() })
    }
}

/// A person who allows ordinary operations as widely as offered.
#[derive(Clone, Default)]
struct Person {
    grave: BTreeSet<String>,
    /// Never allows writes in the whole workspace.
    keeps_folders: bool,
    asked: Arc<Mutex<Vec<String>>>,
    asked_grave: Arc<Mutex<BTreeSet<String>>>,
}

impl ApprovalSystem for Person {
    async fn request_approval(&self, request: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        let command = request.data.text_at("/tool_input/command").unwrap_or_default();
        if self.grave.contains(command) {
            self.asked_grave.lock().unwrap().insert(command.to_owned());
            return Ok(ApprovalAnswer::from("Deny"));
        }
        let is_sensible = |offer: &&RuleOffer| {
            offer.scope == RuleScope::Session
                && !(self.keeps_folders && offer.operations.iter().any(|operation| operation == "write **"))
        };
        let offer = request.offers.iter().rfind(is_sensible);
        let rule = offer.map(|offer| ChosenRule { operations: offer.operations.clone(), scope: offer.scope });
        let chosen = rule.as_ref().map_or("once".to_owned(), |rule| rule.operations.join(" + "));
        self.asked.lock().unwrap().push(format!("{} -> {chosen}", request.prompt));
        let option = |effect| request.options.iter().find(|option| option.effect == effect).unwrap();
        Ok(match rule {
            Some(rule) => ApprovalAnswer::from(&*option(Effect::AllowAlways).label).with_rule(rule),
            None => ApprovalAnswer::from(&*option(Effect::AllowOnce).label),
        })
    }
}

/// `Bash`, which records its commands instead of running them.
struct RecordingBash {
    spec: ToolSpec,
    ran: Arc<Mutex<Vec<String>>>,
}

impl Tool for RecordingBash {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn run(&self, input: Map) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        self.ran.lock().unwrap().push(input["command"].as_str().unwrap().to_owned());
        Box::pin(async { Ok(ToolOutput::default()) })
    }
}

struct Replay {
    ordinary: Vec<String>,
    grave: BTreeSet<String>,
    ran: Vec<String>,
}

async fn replay(day: &Day, mode: &str, keeps_folders: bool) -> Replay {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("work");
    fs::create_dir(&workspace).unwrap();
    day.prepare(&workspace);
    let script = folder.path().join("script.json");
    fs::write(&script, day.script().to_string()).unwrap();
    let home = Home::at(folder.path().join("home"));
    let overrides = Overrides {
        script: Some(script),
        workspace: Some(workspace.clone()),
        mode: Some(mode.to_owned()),
        confinement: Some("off".to_owned()),
        ..Overrides::default()
    };
    let config = Config::load(&overrides, &home).unwrap();
    let person = Person { grave: day.grave.clone(), keeps_folders, ..Person::default() };
    let mut parts = SessionBuilder::new(&config, &home).build().await.unwrap().approvals(person.clone());
    let tools = standard(&Workspace::new(&workspace).unwrap());
    let spec = tools.iter().map(|tool| tool.spec()).find(|spec| spec.name == "Bash").unwrap();
    let ran = Arc::new(Mutex::new(Vec::new()));
    let bash: Arc<dyn Tool> = Arc::new(RecordingBash { spec, ran: ran.clone() });
    parts.builder = parts.builder.tools([bash]);
    let session = parts.builder.start().await.unwrap();
    for task in &day.tasks {
        let end = session.prompt("Go on.").await;
        assert_eq!(end.status(), "success", "{:?} {end:?}", task.first());
    }
    let ordinary = person.asked.lock().unwrap().clone();
    let grave = person.asked_grave.lock().unwrap().clone();
    let ran = ran.lock().unwrap().clone();
    Replay { ordinary, grave, ran }
}

/// Checks that every grave operation was requested, and returns the requests about ordinary ones.
async fn ordinary_requests(text: &str, mode: &str, keeps_folders: bool) -> Vec<String> {
    let day = Day::read(text);
    let Replay { ordinary, grave, ran } = replay(&day, mode, keeps_folders).await;
    assert_eq!(grave, day.grave);
    assert!(ran.iter().all(|command| !day.grave.contains(command)));
    let commands = day.tasks.iter().flatten().filter(|call| call["name"] == "Bash").count();
    assert_eq!(ran.len(), commands - day.grave.len(), "every ordinary command runs");
    println!("{} calls in mode {mode}: {} requests\n  {}", day.calls, ordinary.len(), ordinary.join("\n  "));
    ordinary
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_of_two_hundred_calls_needs_at_most_eight_answers() {
    assert!(Day::read(WORKSPACE).calls >= 200);
    assert!(ordinary_requests(WORKSPACE, "ask", false).await.len() <= 8);
    // A person who never allows the whole workspace answers for each file at its top.
    assert!(ordinary_requests(WORKSPACE, "ask", true).await.len() <= 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_with_accepted_edits_needs_at_most_three_answers() {
    assert!(ordinary_requests(WORKSPACE, "accept-edits", false).await.len() <= 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_days_need_few_answers_and_ask_about_every_grave_operation() {
    for (day, most, most_with_edits) in [(SERVICE, 9, 6), (GATEWAY, 6, 4), (STOREFRONT, 16, 14), (FLEET, 10, 8)] {
        assert!(ordinary_requests(day, "ask", false).await.len() <= most);
        assert!(ordinary_requests(day, "accept-edits", false).await.len() <= most_with_edits);
    }
}
