//! Sessions on disk: listed, found, resumed, forked and exported, also after a crash and on a full disk.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::sessions::{Notes, Place, Wait, said, scripted};
use amplifier_agent::provider::ScriptedResponse;
use amplifier_agent::tool::Tool;
use amplifier_agent::{Session, SessionError, SessionExport, Store, StoreError, StoredSession, TurnEnd};
use amplifier_core::testing::EventRecorder;
use amplifier_core::{HookRegistry, HookResult, Message, SESSION_FORK, SESSION_RESUME, SESSION_START};
use serde_json::{Value, json};

fn answers<const COUNT: usize>(texts: [&str; COUNT]) -> [ScriptedResponse; COUNT] {
    texts.map(ScriptedResponse::text)
}

fn failure(result: Result<Session, SessionError>) -> String {
    match result {
        Ok(session) => panic!("session `{}` has begun", session.id()),
        Err(error) => error.to_string(),
    }
}

/// A session of two turns that has ended.
async fn stored(place: &Place) -> String {
    let session = place.session(answers(["One.", "Two."])).system("Be brief.").start().await.unwrap();
    session.prompt("first").await;
    session.prompt("second").await;
    let id = session.id().to_owned();
    session.end("complete").await.unwrap();
    id
}

const STORED: [&str; 5] = ["system: Be brief.", "user: first", "assistant: One.", "user: second", "assistant: Two."];

fn exported(place: &Place, id: &str) -> Vec<(u64, String)> {
    let SessionExport { messages, .. } = place.store().export(id).unwrap();
    messages.iter().map(|(turn, message)| (*turn, said(std::slice::from_ref(message)).remove(0))).collect()
}

/// Every file of a session, and what is in it.
fn files(place: &Place, id: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(place.sessions().join(id)).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

#[tokio::test]
async fn sessions_are_listed_and_found() {
    let place = Place::new();
    assert_eq!(place.store().list().unwrap(), []);
    let unknown = |id: &str| format!("unknown session `{id}`; run `amplifier sessions list` to list the sessions");
    assert_eq!(place.store().find("last").unwrap_err().to_string(), unknown("last"));

    let first = stored(&place).await;
    let second = place.session(answers(["Hi."])).start().await.unwrap();
    second.prompt("  an \u{1b}[31mother\n prompt  ").await;
    let listed = place.store().list().unwrap();
    let StoredSession { created, updated, mount_plan, .. } = listed[1].clone();
    let expected = StoredSession {
        id: first.clone(),
        parent: None,
        title: "first".to_owned(),
        name: None,
        provider: "scripted".to_owned(),
        model: "script".to_owned(),
        turns: 2,
        ended: Some("complete".to_owned()),
        created: created.clone(),
        updated: updated.clone(),
        mount_plan,
    };
    assert_eq!(listed[1], expected);
    assert!(created < updated, "{created} {updated}");
    let tools = json!(["Echo", "Task"]);
    let plan = json!({ "orchestrator": "loop-streaming", "provider": "scripted", "model": "script", "tools": tools });
    assert_eq!(listed[1].mount_plan, plan);
    let told = (listed[0].id.as_str(), listed[0].title.as_str(), listed[0].ended.as_deref());
    assert_eq!(told, (second.id(), "an [31mother prompt", None));

    let store = place.store();
    assert_eq!(store.find(&first).unwrap(), listed[1]);
    assert_eq!(store.find("last").unwrap(), listed[0]);
    let common = first.chars().zip(second.id().chars()).take_while(|(a, b)| a == b).count();
    assert_eq!(store.find(&first[..=common]).unwrap(), listed[1]);
    assert_eq!(store.find(&first[first.len() - 6..]).unwrap(), listed[1]);
    let ambiguous = store.find(&first[..common]).unwrap_err().to_string();
    let part = &first[..common];
    let expected =
        format!("ambiguous session id `{part}`: 2 sessions match: `{first}`, `{}`; give more characters", second.id());
    assert_eq!(ambiguous, expected);
    for id in ["x", "", "..", "../data"] {
        assert_eq!(store.find(id).unwrap_err().to_string(), unknown(id));
    }
}

#[tokio::test]
async fn the_session_that_was_used_last_is_the_last() {
    let place = Place::new();
    let first = stored(&place).await;
    let second = stored(&place).await;
    assert_eq!(place.store().find("last").unwrap().id, second);
    let session = place.session(answers(["Three."])).resume(&first).await.unwrap();
    session.prompt("third").await;
    assert_eq!(place.store().find("last").unwrap().id, first);
}

#[tokio::test]
async fn all_of_an_id_is_no_beginning_of_another() {
    let place = Place::new();
    let id = stored(&place).await;
    let copy = format!("{id}-copy");
    fs::create_dir(place.sessions().join(&copy)).unwrap();
    for (name, content) in files(&place, &id) {
        fs::write(place.file(&copy, &name), content).unwrap();
    }
    assert_eq!(place.store().find(&id).unwrap().id, id);
    assert_eq!(place.store().find(&copy).unwrap().id, copy, "the name of the folder counts");
}

#[tokio::test]
async fn only_their_owner_can_read_them() {
    let place = Place::new();
    let id = stored(&place).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = place.sessions().join(&id);
    assert_eq!([mode(&place.sessions()), mode(&folder)], [0o700; 2]);
    let modes: BTreeMap<String, u32> =
        files(&place, &id).into_keys().map(|name| (name.clone(), mode(&folder.join(name)))).collect();
    let expected = [("messages.jsonl".to_owned(), 0o600), ("session.json".to_owned(), 0o600)];
    assert_eq!(modes, BTreeMap::from(expected));
}

#[tokio::test]
async fn a_session_goes_on_after_its_end() {
    let place = Place::new();
    let id = stored(&place).await;
    let hooks = HookRegistry::new();
    let events = EventRecorder::new();
    events.register(&hooks, "session:*").unwrap();
    let builder = place.session(answers(["Three."])).system("Another one.").hooks(hooks);
    let session = builder.resume(&id[..20]).await.unwrap();
    assert_eq!((session.id(), said(&session.history())), (&*id, STORED.map(str::to_owned).to_vec()));
    assert_eq!(events.names(), ["session:start", "session:resume"]);
    assert_eq!(events.events()[0].1.text("source"), Some("resume"));
    assert_eq!(events.events()[1].1.get("messages_count"), Some(&json!(5)));
    assert_eq!(place.store().find(&id).unwrap().ended, None);

    assert_eq!(session.prompt("third").await, TurnEnd::Answered("Three.".to_owned()));
    session.end("user_exit").await.unwrap();
    let about = place.store().find(&id).unwrap();
    assert_eq!((about.turns, about.title.as_str(), about.ended.as_deref()), (3, "first", Some("user_exit")));
    let turns: Vec<u64> = exported(&place, &id).into_iter().map(|(turn, _)| turn).collect();
    assert_eq!(turns, [0, 1, 1, 2, 2, 3, 3]);
}

#[tokio::test]
async fn without_a_store_nothing_is_resumed() {
    let none = "no session store is configured";
    assert_eq!(failure(Session::builder(scripted([])).resume("last").await), none);
    assert_eq!(failure(Session::builder(scripted([])).fork("last", None).await), none);
}

#[tokio::test]
async fn a_line_that_a_crash_cut_off_is_taken_away() {
    let place = Place::new();
    let id = stored(&place).await;
    let whole = place.messages(&id);
    let mut file = OpenOptions::new().append(true).open(place.file(&id, "messages.jsonl")).unwrap();
    file.write_all(br#"{"turn":3,"message":{"role":"us"#).unwrap();

    assert_eq!(exported(&place, &id).len(), 5, "it can be read as it is");
    let session = place.session(answers(["Three."])).resume(&id).await.unwrap();
    assert_eq!(said(&session.history()), STORED);
    session.prompt("third").await;
    let lines = r#"{"turn":3,"message":{"role":"user","content":"third"}}
{"turn":3,"message":{"role":"assistant","content":"Three."}}
"#;
    assert_eq!(place.messages(&id), whole + lines);
}

/// A crash while a tool runs: the future of the turn is dropped, and so is the session.
async fn crashed(place: &Place) -> String {
    let (wait, mut begins) = Wait::new();
    let tools: [Arc<dyn Tool>; 1] = [Arc::new(wait)];
    let call = ScriptedResponse::text("").calling("Echo", json!({ "text": "hi" })).calling("Wait", json!({}));
    let session = place.session([call]).tools(tools).start().await.unwrap();
    tokio::select! {
        _ = session.prompt("go") => panic!("nobody let it finish"),
        _ = begins.recv() => session.id().to_owned(),
    }
}

#[tokio::test]
async fn a_call_without_a_result_gets_one() {
    let place = Place::new();
    let id = crashed(&place).await;
    let before = ["user: go", "assistant:  [call-1 Echo] [call-2 Wait]"];
    let session = place.session(answers(["Fine."])).resume(&id).await.unwrap();
    let closed = |call| format!("result of {call}: The session ended before this was done.");
    let mut expected = before.map(str::to_owned).to_vec();
    expected.extend([closed("call-1"), closed("call-2")]);
    assert_eq!(said(&session.history()), expected);
    assert_eq!(session.prompt("and?").await, TurnEnd::Answered("Fine.".to_owned()));
    drop(session);
    let again = place.session([]).resume(&id).await.unwrap();
    expected.extend(["user: and?".to_owned(), "assistant: Fine.".to_owned()]);
    assert_eq!(said(&again.history()), expected, "nothing stands there twice");
}

#[tokio::test]
async fn a_missing_result_is_put_where_it_belongs() {
    let place = Place::new();
    let id = crashed(&place).await;
    // As if the session had gone on without one.
    let mut file = OpenOptions::new().append(true).open(place.file(&id, "messages.jsonl")).unwrap();
    let result = json!({ "turn": 1, "message": Message::tool_result("call-1", "hi") });
    let prompt = json!({ "turn": 2, "message": Message::user("and?") });
    write!(file, "{result}\n{prompt}\n").unwrap();
    let expected = [
        "user: go",
        "assistant:  [call-1 Echo] [call-2 Wait]",
        "result of call-1: hi",
        "result of call-2: The session ended before this was done.",
        "user: and?",
    ];
    for builder in [place.session([]), place.session([])] {
        assert_eq!(said(&builder.resume(&id).await.unwrap().history()), expected);
    }
    let fork = place.session([]).fork(&id, None).await.unwrap();
    assert_eq!(said(&fork.history()), expected);
    let messages: Vec<String> = exported(&place, &id).into_iter().map(|(_, message)| message).collect();
    let in_order = [expected[0], expected[1], expected[2], expected[4], expected[3]];
    assert_eq!(messages, in_order, "in the order in which they were written");
}

#[tokio::test]
async fn messages_tell_what_a_lost_session_json_told() {
    for damage in [None, Some(""), Some("{ \"id\": \"…")] {
        let place = Place::new();
        let id = stored(&place).await;
        let path = place.file(&id, "session.json");
        let before = place.store().find(&id).unwrap();
        match damage {
            None => fs::remove_file(&path).unwrap(),
            Some(text) => fs::write(&path, text).unwrap(),
        }
        let listed = place.store().list().unwrap();
        let [found] = &listed[..] else { panic!("{listed:?}") };
        let known = (found.id.as_str(), found.title.as_str(), found.turns, &found.created[..19]);
        assert_eq!(known, (id.as_str(), "first", 2, &before.created[..19]));

        let session = place.session(answers(["Three."])).resume(&id).await.unwrap();
        assert_eq!(said(&session.history()), STORED);
        session.prompt("third").await;
        let about: StoredSession = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!((about.turns, about.title.as_str(), about.provider.as_str()), (3, "first", "scripted"));
        let aside = fs::read_to_string(place.file(&id, "session.json.damaged")).ok();
        assert_eq!(aside.as_deref(), damage, "what was left of it is kept");
    }
}

#[tokio::test]
async fn a_session_of_which_nothing_is_left_hides_no_other() {
    let place = Place::new();
    let id = stored(&place).await;
    let lost = place.file("lost", "session.json");
    fs::create_dir(lost.parent().unwrap()).unwrap();
    fs::write(&lost, "").unwrap();
    let mut listed: Vec<_> = place.store().list().unwrap().into_iter().map(|one| (one.id, one.turns)).collect();
    listed.sort();
    assert_eq!(listed, [(id, 2), ("lost".to_owned(), 0)]);
}

#[tokio::test]
async fn a_crash_between_a_message_and_the_count_loses_no_turn() {
    let place = Place::new();
    let id = stored(&place).await;
    let path = place.file(&id, "session.json");
    let mut about: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    about["turns"] = json!(1);
    fs::write(&path, about.to_string()).unwrap();
    assert_eq!(said(&place.session([]).fork(&id, Some(2)).await.unwrap().history()), STORED);
    let session = place.session(answers(["Three."])).resume(&id).await.unwrap();
    session.prompt("third").await;
    assert_eq!(exported(&place, &id)[5..], [(3, "user: third".to_owned()), (3, "assistant: Three.".to_owned())]);
}

#[tokio::test]
async fn a_damaged_line_is_an_error_that_says_where() {
    let place = Place::new();
    let id = stored(&place).await;
    let path = place.file(&id, "messages.jsonl");
    let mut lines: Vec<String> = place.messages(&id).lines().map(str::to_owned).collect();
    lines[2] = lines[2].replace("\"content\":\"One.\"", "\"content\":1");
    let text = lines.join("\n") + "\n";
    fs::write(&path, &text).unwrap();
    let problem = format!(
        "invalid line 3 in `{}`: invalid type: integer `1`, expected a string; repair or remove the line",
        path.display()
    );
    assert_eq!(place.store().export(&id).unwrap_err().to_string(), problem);
    assert_eq!(failure(place.session([]).resume(&id).await), problem);
    assert_eq!(failure(place.session([]).fork(&id, None).await), problem);
    assert_eq!(place.messages(&id), text, "it is left as it is");
    assert_eq!(place.store().list().unwrap().len(), 1, "and does not hide the others");
}

#[tokio::test]
async fn a_session_branches_off_after_a_turn() {
    let place = Place::new();
    let id = stored(&place).await;
    let before = files(&place, &id);
    let hooks = HookRegistry::new();
    let events = EventRecorder::new();
    events.register(&hooks, "session:*").unwrap();
    let builder = place.session(answers(["Another."])).system("Another one.").hooks(hooks);
    let fork = builder.fork(&id, Some(1)).await.unwrap();
    assert_eq!(said(&fork.history()), STORED[..3]);
    assert_eq!(events.names(), ["session:start", "session:fork"]);
    let forked = &events.events()[1].1;
    assert_eq!((forked.text("parent_session_id"), forked.get("turn")), (Some(&*id), Some(&json!(1))));
    fork.prompt("other").await;

    let about = place.store().find(fork.id()).unwrap();
    assert_eq!((about.parent.as_deref(), about.turns, about.title.as_str()), (Some(&*id), 2, "first"));
    let ours = [(2, "user: other".to_owned()), (2, "assistant: Another.".to_owned())];
    assert_eq!(exported(&place, fork.id())[3..], ours);
    assert_eq!(files(&place, &id), before, "the other one is untouched");

    let again = place.session([]).fork(fork.id(), Some(1)).await.unwrap();
    assert_eq!(said(&again.history()), STORED[..3], "turns from before the fork count");
    let too_late = format!("session `{id}` has 2 turns, not 3");
    assert_eq!(failure(place.session([]).fork(&id, Some(3)).await), too_late);
    let from_the_start = place.session([]).fork(&id, Some(0)).await.unwrap();
    assert_eq!(said(&from_the_start.history()), STORED[..1]);
    assert_eq!(place.store().find(from_the_start.id()).unwrap().title, "");
}

#[tokio::test]
async fn a_session_that_runs_can_be_forked() {
    let place = Place::new();
    let session = place.session(answers(["One.", "Two."])).start().await.unwrap();
    session.prompt("first").await;
    let fork = place.session(answers(["Zwei."])).fork(session.id(), None).await.unwrap();
    futures::join!(session.prompt("second"), fork.prompt("zweitens"));
    assert_eq!(said(&session.history()), STORED[1..]);
    let expected = ["user: first", "assistant: One.", "user: zweitens", "assistant: Zwei."];
    assert_eq!(said(&fork.history()), expected);
}

/// A session that was shortened before its second turn's answer.
async fn shortened(place: &Place) -> String {
    let session = place.session(answers(["One.", "They talked.", "Two."])).system("Be brief.").start().await.unwrap();
    session.prompt("first").await;
    session.compact().await.unwrap();
    session.prompt("second").await;
    session.id().to_owned()
}

#[tokio::test]
async fn everything_is_exported_and_forked_also_what_compaction_took_out() {
    let place = Place::new();
    let id = shortened(&place).await;
    let summary = "user: Summary of the conversation so far:\n\nThey talked.";
    let expected = [
        (0, "system: Be brief."),
        (1, "user: first"),
        (1, "assistant: One."),
        (1, summary),
        (2, "user: second"),
        (2, "assistant: Two."),
    ]
    .map(|(turn, message)| (turn, message.to_owned()));
    assert_eq!(exported(&place, &id), expected);

    let fork = place.session([]).fork(&id, None).await.unwrap();
    let resumed = place.session([]).resume(&id).await.unwrap();
    assert_eq!(fork.history(), resumed.history());
    let history = said(&fork.history());
    assert_eq!((&*history[0], history.contains(&summary.to_owned())), ("system: Be brief.", true));
    assert!(!history.contains(&"user: first".to_owned()), "it stays shortened");
    assert_eq!(exported(&place, fork.id()), expected);
    assert_eq!(place.store().find(fork.id()).unwrap().title, "first");
}

#[tokio::test]
async fn an_export_is_jsonl_for_programs_and_markdown_for_people() {
    let place = Place::new();
    let hooks = HookRegistry::new();
    hooks.hook(SESSION_START).named("style").run(|_| HookResult::inject("Mind the style guide."));
    let call = ScriptedResponse::text("Look:").calling("Echo", json!({ "text": "```\ncode\n```\n" }));
    let session = place.session([call, ScriptedResponse::text("")]).hooks(hooks).start().await.unwrap();
    session.prompt("show me").await;
    let id = session.id().to_owned();
    session.end("complete").await.unwrap();

    let export = place.store().export(&id).unwrap();
    let lines: Vec<Value> = export.jsonl().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let session = json!({ "session": export.session });
    let messages = export.messages.iter().map(|(turn, message)| json!({ "turn": turn, "message": message }));
    assert_eq!(lines, std::iter::once(session).chain(messages).collect::<Vec<_>>());
    assert_eq!(lines[2], json!({ "turn": 1, "message": { "role": "user", "content": "show me" } }));

    let created = &export.session.created;
    let expected = format!(
        "# show me\n\nSession `{id}`, begun {created}, scripted/script, 1 turns.\n\
         \n## Hook style\n\nMind the style guide.\n\
         \n## User\n\nshow me\n\
         \n## Assistant\n\nLook:\n\n**Echo**\n\n```json\n{{\n  \"text\": \"```\\ncode\\n```\\n\"\n}}\n```\n\
         \n## Tool\n\n````\n```\ncode\n```\n````\n\
         \n## Assistant\n\n"
    );
    let fences = expected.replacen("```json", "````json", 1).replacen("}\n```\n", "}\n````\n", 1);
    assert_eq!(export.markdown(), fences);
}

#[tokio::test]
async fn two_sessions_at_once_do_not_mix() {
    let place = Place::new();
    let one = place.session(answers(["1", "2", "3"])).start().await.unwrap();
    let other = place.session(answers(["a", "b", "c"])).start().await.unwrap();
    for _ in 0..3 {
        futures::join!(one.prompt("number"), other.prompt("letter"));
    }
    for session in [one, other] {
        let id = session.id().to_owned();
        let history = said(&session.history());
        session.end("complete").await.unwrap();
        assert_eq!(exported(&place, &id).into_iter().map(|(_, message)| message).collect::<Vec<_>>(), history);
        assert_eq!(said(&place.session([]).resume(&id).await.unwrap().history()), history);
    }
}

#[tokio::test]
async fn nobody_goes_on_with_a_session_that_somebody_uses() {
    let place = Place::new();
    let session = place.session(answers(["One."])).start().await.unwrap();
    let id = session.id().to_owned();
    let in_use = format!("session `{id}` is in use; end it there, or fork it");
    assert_eq!(failure(place.session([]).resume(&id).await), in_use);
    session.end("complete").await.unwrap();
    let resumed = place.session([]).resume(&id).await.unwrap();
    assert_eq!(failure(place.session([]).resume(&id).await), in_use);
    drop(resumed);
    place.session([]).resume(&id).await.unwrap();
}

#[tokio::test]
async fn nothing_is_left_of_a_session_that_a_hook_does_not_allow() {
    let place = Place::new();
    let id = stored(&place).await;
    let before = files(&place, &id);
    let log = place.open_log();
    let refusing = |event: &str| {
        let hooks = HookRegistry::new();
        hooks.hook(event).named("guard").run(|_| HookResult::deny("closed")).unwrap();
        place.session([]).hooks(hooks).audit(log.clone())
    };
    let denied = "the session does not start: Denied by hook guard: closed";
    assert_eq!(failure(refusing(SESSION_START.as_str()).start().await), denied);
    assert_eq!(failure(refusing(SESSION_START.as_str()).resume(&id).await), denied);
    assert_eq!(failure(refusing(SESSION_RESUME.as_str()).resume(&id).await), denied);
    assert_eq!(failure(refusing(SESSION_FORK.as_str()).fork(&id, None).await), denied);
    assert_eq!(place.store().list().unwrap().len(), 1);
    assert_eq!(files(&place, &id), before);
    place.check_log(log, 3);
}

#[tokio::test]
async fn a_session_that_cannot_be_stored_does_not_start() {
    let place = Place::new();
    let file = place.sessions();
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "not a folder").unwrap();
    let error = failure(place.session([]).start().await);
    assert!(error.starts_with(&format!("`{}/", file.display())), "{error}");
    assert!(matches!(place.store().list(), Err(StoreError::Io { .. })));
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_shown_and_the_turn_goes_on() {
    let place = Place::new();
    let (notes, _news) = Notes::new();
    let hooks = HookRegistry::new();
    hooks.on(SESSION_START, {
        let sessions = place.sessions();
        move |event| {
            let folder = sessions.join(event.text("session_id").unwrap());
            fs::create_dir_all(&folder).unwrap();
            symlink("/dev/full", folder.join("messages.jsonl")).unwrap();
        }
    });
    let session = place.session(answers(["One.", "Two."])).hooks(hooks).observer(notes.clone()).start().await.unwrap();
    assert_eq!(session.prompt("first").await, TurnEnd::Answered("One.".to_owned()));
    assert_eq!(session.prompt("second").await, TurnEnd::Answered("Two.".to_owned()));
    let told = "the conversation cannot be stored: No space left on device (os error 28); every new message retries";
    assert_eq!(notes.all(), [told, "text: One.", "text: Two."], "once is enough");
    assert_eq!(said(&session.history()), STORED[1..]);
    session.end("complete").await.unwrap();
}

const FULL_DISK: &str = "TEST_OF_A_FULL_DISK";

#[test]
fn a_full_disk_leaves_no_half_line_and_nothing_is_missing_when_there_is_room_again() {
    if std::env::var_os(FULL_DISK).is_some() {
        return on_a_full_disk();
    }
    // A file may grow to a few KiB only, which is a full disk for one process. The shell can ignore the signal for it.
    let name = "store::a_full_disk_leaves_no_half_line_and_nothing_is_missing_when_there_is_room_again";
    let shell = "trap '' XFSZ; ulimit -S -f 8; exec \"$0\" --exact \"$1\" --nocapture";
    let test = std::env::current_exe().unwrap();
    let output = Command::new("sh").args(["-c", shell]).arg(test).arg(name).env(FULL_DISK, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[tokio::main(flavor = "current_thread")]
async fn on_a_full_disk() {
    let place = Place::new();
    let (notes, _news) = Notes::new();
    let session = place.session(answers(["One.", "Two.", "They talked.", "Three."])).observer(notes.clone());
    let session = session.start().await.unwrap();
    session.prompt("first").await;
    let before = place.messages(session.id());
    let large = "large ".repeat(4000);
    assert_eq!(session.prompt(&large).await, TurnEnd::Answered("Two.".to_owned()));
    session.compact().await.unwrap();
    assert_eq!(place.messages(session.id()), before, "no half line is left");

    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize);
    let room = rustix::process::Rlimit { current: limit.maximum, ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Fsize, room).unwrap();
    session.prompt("third").await;
    let notes: Vec<_> = notes.all().into_iter().filter(|note| !note.starts_with("text:")).collect();
    let expected = [
        "the conversation cannot be stored: File too large (os error 27); every new message retries",
        "compacting the conversation",
        "the conversation is stored again; no message is missing",
    ];
    assert_eq!(notes, expected);
    let large = format!("user: {large}");
    let summary = "user: Summary of the conversation so far:\n\nThey talked.";
    let expected = [
        (1, "user: first"),
        (1, "assistant: One."),
        (2, &large),
        (2, "assistant: Two."),
        (2, summary),
        (3, "user: third"),
        (3, "assistant: Three."),
    ];
    assert_eq!(exported(&place, session.id()), expected.map(|(turn, message)| (turn, message.to_owned())));
    let id = session.id().to_owned();
    let history = session.history();
    drop(session);
    assert_eq!(place.session([]).resume(&id).await.unwrap().history(), history);
}

#[tokio::test]
async fn a_folder_that_is_gone_is_shown_and_the_turn_goes_on() {
    let place = Place::new();
    let (notes, _news) = Notes::new();
    let session = place.session(answers(["One."])).observer(notes.clone()).start().await.unwrap();
    fs::remove_dir_all(place.sessions()).unwrap();
    assert_eq!(session.prompt("first").await, TurnEnd::Answered("One.".to_owned()));
    let notes = notes.all();
    assert!(notes[0].starts_with("the conversation cannot be stored: No such file or directory"), "{notes:?}");
    assert_eq!(notes[1..], ["text: One."]);
    assert!(Store::new(place.sessions()).list().unwrap().is_empty());
}

#[tokio::test]
async fn a_session_is_named_while_somebody_works_in_it_and_keeps_its_name() {
    let place = Place::new();
    let session = place.session(answers(["One.", "Two."])).start().await.unwrap();
    session.prompt("first").await;
    let id = session.id().to_owned();
    place.store().name(&id, " The\u{1b} first\n session ").unwrap();
    session.prompt("second").await;
    session.end("complete").await.unwrap();
    let named = place.store().find(&id).unwrap();
    assert_eq!(
        (named.name.as_deref(), named.shown_title(), named.title.as_str()),
        (Some("The first session"), "The first session", "first")
    );
    let resumed = place.session(answers(["Three."])).resume(&id).await.unwrap();
    place.store().name(&id, "Another").unwrap();
    resumed.prompt("third").await;
    resumed.end("complete").await.unwrap();
    assert!(place.store().export(&id).unwrap().markdown().starts_with("# Another\n"));

    place.store().name(&id, "").unwrap();
    place.store().name(&id, " ").unwrap();
    assert_eq!(place.store().find(&id).unwrap().shown_title(), "first");
    let unknown = place.store().name(&id[..8], "Short").unwrap_err();
    assert!(matches!(unknown, StoreError::Unknown { .. }), "{unknown}");
}
