//! An approval covers the file that the person was shown, and no other.

#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use amplifier_agent::Session;
use amplifier_agent::provider::{Script, ScriptedProvider, ScriptedResponse};
use amplifier_agent::tool::{self, Workspace};
use amplifier_core::{
    ApprovalAnswer as Given, ApprovalError, ApprovalRequestEntry, ApprovalRules, ApprovalSystem, AuditEntry,
    COMPARED_WITH, EventData, EventEntry, HookRegistry, HookResult, IntentEntry, MemoryAudit, OpenRequest, TOOL_PRE,
};
use serde_json::{Value, json};

type Act = Arc<dyn Fn(&Path) + Send + Sync>;

/// A person who does something in the workspace before every answer, and then allows what was asked.
#[derive(Clone)]
struct Person {
    folder: PathBuf,
    act: Act,
    asked: Arc<Mutex<Vec<Arc<OpenRequest>>>>,
}

impl ApprovalSystem for Person {
    async fn request_approval(&self, request: Arc<OpenRequest>) -> Result<Given, ApprovalError> {
        self.asked.lock().unwrap().push(request);
        (self.act)(&self.folder);
        Ok("Allow".into())
    }
}

/// The outcome of one model response.
struct Came {
    folder: tempfile::TempDir,
    /// The results that the model read.
    results: Vec<String>,
    asked: Vec<Arc<OpenRequest>>,
    audit: MemoryAudit,
}

impl Came {
    fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.folder.path().join(name)).ok()
    }
}

/// Runs one turn in which the model calls these tools. The workspace has a file `notes.txt`. Every call is asked about, unless rules allow it.
async fn turn(
    calls: &[(&str, Value)],
    hooks: HookRegistry,
    rules: &str,
    act: impl Fn(&Path) + Send + Sync + 'static,
) -> Came {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("notes.txt"), "one\ntwo\nthree\n").unwrap();
    let first =
        calls.iter().fold(ScriptedResponse::text(""), |answer, (tool, input)| answer.calling(tool, input.clone()));
    let provider = Arc::new(ScriptedProvider::new(Script::new([first, ScriptedResponse::text("Done.")])));
    hooks.hook(TOOL_PRE).named("guard").run(|_| HookResult::ask("Change it?"));
    let act: Act = Arc::new(act);
    let person = Person { folder: folder.path().to_owned(), act, asked: Arc::default() };
    let audit = MemoryAudit::new();
    let session = Session::builder(provider)
        .hooks(hooks)
        .tools(tool::standard(&Workspace::new(folder.path()).unwrap()))
        .approvals(person.clone())
        .approval_rules(ApprovalRules::from_json(rules).unwrap())
        .recorder(audit.clone())
        .start()
        .await
        .unwrap();
    session.prompt("go").await;
    let history = session.history();
    let results = history.iter().filter(|message| message.tool_call_id.is_some());
    let results = results.map(|message| message.content.clone()).collect();
    session.end("complete").await.unwrap();
    let asked = person.asked.lock().unwrap().clone();
    Came { folder, results, asked, audit }
}

fn write(path: &str) -> (&'static str, Value) {
    ("Write", json!({ "file_path": path, "content": "mine\n" }))
}

fn edit(old: &str, new: &str) -> (&'static str, Value) {
    ("Edit", json!({ "file_path": "notes.txt", "old_string": old, "new_string": new }))
}

fn refused(path: &str) -> String {
    format!("`{path}` changed after the approval was requested, so nothing was written; read it again")
}

fn save(name: &'static str, text: &'static str) -> impl Fn(&Path) + Send + Sync {
    move |folder| fs::write(folder.join(name), text).unwrap()
}

#[tokio::test]
async fn nothing_is_written_to_a_file_that_changed_after_the_person_was_asked() {
    let edits = json!([{ "old_string": "one", "new_string": "1" }, { "old_string": "two", "new_string": "2" }]);
    let multi_edit = ("MultiEdit", json!({ "file_path": "notes.txt", "edits": edits }));
    for call in [write("notes.txt"), edit("two", "2"), multi_edit] {
        let came = turn(&[call], HookRegistry::new(), "{}", save("notes.txt", "a day's work, one two\n")).await;
        assert!(came.results[0].contains(&refused("notes.txt")), "{:?}", came.results);
        assert_eq!(came.file("notes.txt").unwrap(), "a day's work, one two\n");
    }
}

#[tokio::test]
async fn a_file_that_is_new_to_the_person_is_not_written_over_another_one() {
    let came = turn(&[write("new.txt")], HookRegistry::new(), "{}", save("new.txt", "theirs\n")).await;
    assert!(came.results[0].contains(&refused("new.txt")), "{:?}", came.results);
    assert_eq!(came.file("new.txt").unwrap(), "theirs\n");
    assert_eq!(came.asked[0].preview.summary.as_deref(), Some("new file"));
}

#[tokio::test]
async fn a_file_that_is_gone_after_the_person_was_asked_is_not_made_again() {
    for call in [write("notes.txt"), edit("two", "2")] {
        let gone = |folder: &Path| fs::remove_file(folder.join("notes.txt")).unwrap();
        let came = turn(&[call], HookRegistry::new(), "{}", gone).await;
        assert!(came.results[0].contains(&refused("notes.txt")), "{:?}", came.results);
        assert_eq!(came.file("notes.txt"), None);
    }
}

#[tokio::test]
async fn a_link_that_leads_elsewhere_after_the_person_was_asked_is_not_followed() {
    let (a, b) = ("a.txt", "b.txt");
    let turned = move |folder: &Path| {
        let link = folder.join("link");
        fs::remove_file(&link).ok();
        std::os::unix::fs::symlink(b, link).unwrap();
    };
    let hooks = HookRegistry::new();
    // Both files are empty, so that their contents are the same version.
    hooks.hook(TOOL_PRE).named("prepare").priority(-1).run(move |event| {
        let root = event.text_at("/tool_input/content").map(PathBuf::from).unwrap();
        for file in [a, b] {
            fs::write(root.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink(a, root.join("link")).unwrap();
        HookResult::proceed()
    });
    // The hook learns from the input where the workspace is.
    let folder = tempfile::tempdir().unwrap();
    let workspace = Workspace::new(folder.path()).unwrap();
    let input = json!({ "file_path": "link", "content": folder.path().to_str().unwrap() });
    let provider = Arc::new(ScriptedProvider::new(Script::new([
        ScriptedResponse::text("").calling("Write", input),
        ScriptedResponse::text("Done."),
    ])));
    hooks.hook(TOOL_PRE).named("guard").run(|_| HookResult::ask("Change it?"));
    let person = Person { folder: folder.path().to_owned(), act: Arc::new(turned), asked: Arc::default() };
    let session = Session::builder(provider).hooks(hooks).tools(tool::standard(&workspace)).approvals(person);
    let session = session.start().await.unwrap();
    session.prompt("go").await;
    let result = session.history().into_iter().find(|message| message.tool_call_id.is_some()).unwrap().content;
    assert!(result.contains(&refused(b)), "{result}");
    assert_eq!(fs::read_to_string(folder.path().join(a)).unwrap(), "");
    assert_eq!(fs::read_to_string(folder.path().join(b)).unwrap(), "");
    session.end("complete").await.unwrap();
}

#[tokio::test]
async fn a_file_that_stays_as_it_was_shown_is_changed() {
    let came = turn(&[write("notes.txt")], HookRegistry::new(), "{}", |_| ()).await;
    assert_eq!(came.file("notes.txt").unwrap(), "mine\n", "{:?}", came.results);
    let came = turn(&[edit("two", "2")], HookRegistry::new(), "{}", |_| ()).await;
    assert_eq!(came.file("notes.txt").unwrap(), "one\n2\nthree\n", "{:?}", came.results);
    let came = turn(&[write("deep/new.txt")], HookRegistry::new(), "{}", |_| ()).await;
    assert_eq!(came.file("deep/new.txt").unwrap(), "mine\n", "{:?}", came.results);
}

#[tokio::test]
async fn the_preview_is_of_the_file_that_hooks_have_chosen() {
    let hooks = HookRegistry::new();
    hooks
        .hook(TOOL_PRE)
        .named("elsewhere")
        .priority(10)
        .run(|_| HookResult::set("tool_input", json!({ "file_path": "other.txt", "content": "other\n" })));
    let came = turn(&[write("notes.txt")], hooks.clone(), "{}", save("notes.txt", "not asked about\n")).await;
    assert_eq!(came.asked[0].preview.compared_with.as_ref().unwrap().path, "other.txt");
    assert_eq!(came.file("other.txt").unwrap(), "other\n", "{:?}", came.results);

    let came = turn(&[write("notes.txt")], hooks, "{}", save("other.txt", "theirs\n")).await;
    assert!(came.results[0].contains(&refused("other.txt")), "{:?}", came.results);
    assert_eq!(came.file("other.txt").unwrap(), "theirs\n");
}

#[tokio::test]
async fn several_edits_of_one_file_that_were_all_allowed_are_all_made() {
    let calls = [edit("one", "1"), edit("two", "2"), edit("three", "3")];
    let came = turn(&calls, HookRegistry::new(), "{}", |_| ()).await;
    assert_eq!(came.file("notes.txt").unwrap(), "1\n2\n3\n", "{:?}", came.results);
    assert_eq!(came.asked.len(), 3);

    // Content that the user did not see is not overwritten, even after an approved edit.
    let came = turn(&[edit("one", "1"), write("notes.txt")], HookRegistry::new(), "{}", |_| ()).await;
    let written = came.file("notes.txt").unwrap();
    let other = came.results.iter().find(|result| result.contains("changed after the approval")).unwrap();
    assert!(
        other.contains(&refused("notes.txt")) && ["1\ntwo\nthree\n", "mine\n"].contains(&written.as_str()),
        "{written}"
    );
}

#[tokio::test]
async fn without_a_question_files_are_written_as_they_are_found() {
    let came = turn(&[write("notes.txt")], HookRegistry::new(), r#"{ "guard:*": "allow" }"#, |_| ()).await;
    assert_eq!((came.asked.len(), came.file("notes.txt").unwrap().as_str()), (0, "mine\n"));
    let records = came.audit.records();
    let seen = records.iter().filter_map(|record| match &record.entry {
        AuditEntry::Intent(IntentEntry { digest, .. }) if record.event == TOOL_PRE.name() => *digest,
        _ => None,
    });
    let data = records.iter().find_map(|record| match &record.entry {
        AuditEntry::Event(EventEntry { data, .. }) if record.event == TOOL_PRE.name() => {
            data.to_map().map(EventData::from)
        }
        _ => None,
    });
    assert_eq!(seen.collect::<Vec<_>>(), [data.unwrap().digest().unwrap()]);
}

#[tokio::test]
async fn the_digest_of_a_request_covers_what_its_preview_was_compared_with() {
    let came = turn(&[write("notes.txt")], HookRegistry::new(), "{}", |_| ()).await;
    let request = &came.asked[0];
    let compared_with = request.preview.compared_with.as_ref().unwrap();
    assert_eq!(request.preview.summary.as_deref(), Some("+1 −3"));
    let version = "sha256:b6285c57e8797db5d4c51c80d6f11938afda9b11c6a003549709189e9b4b92a2";
    assert_eq!(compared_with.version, version);
    assert_eq!(request.data[COMPARED_WITH], json!(compared_with));
    assert_eq!(request.digest, request.data.digest().unwrap());

    // Whoever reads the record computes the same: the data of the event, and what the request says that it was compared with.
    let (mut event, mut requested, mut intent) = (None, None, None);
    for record in came.audit.records().into_iter().filter(|record| record.event == TOOL_PRE.name()) {
        match record.entry {
            AuditEntry::Event(EventEntry { data, .. }) => event = data.to_map().map(EventData::from),
            AuditEntry::ApprovalRequest(ApprovalRequestEntry { digest, compared_with, .. }) => {
                requested = Some((digest, compared_with))
            }
            AuditEntry::Intent(IntentEntry { digest, .. }) => intent = digest,
            _ => {}
        }
    }
    let ((digest, compared_with), mut data): (_, EventData) = (requested.unwrap(), event.unwrap());
    assert_ne!(digest, data.digest().unwrap());
    data.insert(COMPARED_WITH, json!(compared_with.unwrap()));
    assert_eq!((digest, intent), (data.digest().unwrap(), Some(digest)));
}
