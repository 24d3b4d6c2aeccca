//! A process that changes its folder.

use std::sync::Arc;

use amplifier_agent::provider::{Script, ScriptedProvider, ScriptedResponse};
use amplifier_agent::{Session, Store};

const ALONE: &str = "TEST_OF_ANOTHER_FOLDER";

#[tokio::test]
async fn a_session_goes_on_in_its_store_when_the_process_changes_its_folder() {
    // All tests of a process share the current folder, so this one runs in a process of its own.
    if std::env::var_os(ALONE).is_none() {
        let name = "elsewhere::a_session_goes_on_in_its_store_when_the_process_changes_its_folder";
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        let output = alone.args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        return assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }
    let place = tempfile::tempdir().unwrap();
    let elsewhere = place.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::env::set_current_dir(place.path()).unwrap();
    let answers = ["One.", "Two."].map(ScriptedResponse::text);
    let session = Session::builder(Arc::new(ScriptedProvider::new(Script::new(answers)))).store(Store::new("sessions"));
    let session = session.start().await.unwrap();
    session.prompt("first").await;
    std::env::set_current_dir(&elsewhere).unwrap();
    session.prompt("second").await;
    session.end("complete").await.unwrap();

    let stored = Store::new(place.path().join("sessions")).find("last").unwrap();
    assert_eq!((stored.turns, stored.ended.as_deref()), (2, Some("complete")));
    assert_eq!(std::fs::read_dir(elsewhere).unwrap().count(), 0);
}
