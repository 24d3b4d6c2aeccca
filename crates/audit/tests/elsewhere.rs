//! A log whose process changes its folder.

use std::fs;

use amplifier_audit::{Folder, Log, SigningKey, Verifier};

const ALONE: &str = "TEST_OF_ANOTHER_FOLDER";

#[test]
fn a_log_at_a_relative_path_stays_the_same_when_the_process_changes_its_folder() {
    // All tests of a process share the current folder, so this one runs in a process of its own.
    if std::env::var_os(ALONE).is_none() {
        let name = "elsewhere::a_log_at_a_relative_path_stays_the_same_when_the_process_changes_its_folder";
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        let output = alone.args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        return assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }
    let place = tempfile::tempdir().unwrap();
    let (here, there) = (place.path().join("here"), place.path().join("there"));
    for folder in [&there, &here] {
        fs::create_dir(folder).unwrap();
        std::env::set_current_dir(folder).unwrap();
        Log::at("audit", "audit.key").open().unwrap().close().unwrap();
    }
    let others =
        || (fs::read(there.join("audit/seg-000001.jsonl")).unwrap(), fs::read(there.join("audit.key")).unwrap());
    let before = others();

    let log = Log::at("audit", "audit.key").open().unwrap();
    let folder = Folder::new("audit");
    std::env::set_current_dir(&there).unwrap();
    log.seal_blocking("s", "complete").unwrap();
    log.rotate_key(SigningKey::generate().unwrap()).unwrap();
    log.close().unwrap();

    for report in [Verifier::new().storage(&folder), Verifier::new().folder(here.join("audit"))] {
        let report = report.unwrap();
        assert!(report.is_sound() && report.sealed == 1, "{report}");
    }
    Log::at(here.join("audit"), here.join("audit.key")).open().unwrap();
    assert_eq!(others(), before);
}
