//! A log whose process changes its folder. Alone in its file, because all tests of a process share the current folder.

#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;

use amplifier_audit::{Folder, Log, SigningKey, Verifier};

#[test]
fn a_log_at_a_relative_path_stays_the_same_when_the_process_changes_its_folder() {
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
