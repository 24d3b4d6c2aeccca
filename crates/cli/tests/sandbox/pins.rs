//! Pinned files: what runs is what was checked.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::{Place, Ran, is_possible, make_pipe, start};

const TEXT: &str = "amplifier: a pinned file has changed: `";

/// The options that pin a file to what it is now.
fn pin(file: &Path) -> Vec<String> {
    let hash = Sha256::digest(fs::read(file).unwrap());
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    vec!["--pinned".to_owned(), hash, file.display().to_string()]
}

fn words(options: &[String]) -> Vec<&str> {
    options.iter().map(String::as_str).collect()
}

#[test]
fn the_checked_bytes_run_whatever_happens_to_the_file() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    let script = place.at("free/hook.py");
    fs::write(place.at("free/helper.py"), "name = 'helper'\n").unwrap();
    fs::write(&script, "#!/usr/bin/env python3\nimport helper\nprint('began', flush=True)\nopen('free/go').read()\nprint(helper.name, len(open(__file__).read().splitlines()))\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    make_pipe(&place.at("free/go"));
    let pins = pin(&script);
    let (mut child, mut out, line) = start(place.command(&words(&pins), "exec free/hook.py"));
    assert_eq!(line, "began");
    // In place, so that it is the same file.
    fs::write(&script, "evil\n").unwrap();
    fs::write(place.at("free/go"), "").unwrap();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut out, &mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(rest, "helper 5\n");
    let ran = Ran::new(place.command(&words(&pins), "exec free/hook.py").output().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (Some(123), ""), "{ran:?}");
    assert_eq!(ran.error, format!("{TEXT}{}`\n", script.display()));
}

#[test]
fn a_pinned_file_that_is_missing_or_changed_is_refused_at_every_level() {
    for level in [&[][..], &["--landlock"], &["--session"]] {
        if !is_possible(level) {
            continue;
        }
        let place = Place::new();
        let file = place.at("free/hook.sh");
        fs::write(&file, "echo ran\n").unwrap();
        let pins = pin(&file);
        let run = || {
            let options = [level, &words(&pins)].concat();
            Ran::new(place.command(&options, "bash free/hook.sh").output().unwrap())
        };
        assert_eq!(run().fine(), "ran\n");
        fs::write(&file, "echo evil\n").unwrap();
        let refused = run();
        assert_eq!((refused.code, refused.out.as_str()), (Some(123), ""), "{level:?}: {refused:?}");
        fs::remove_file(&file).unwrap();
        let refused = run();
        assert_eq!((refused.code, refused.error.starts_with(TEXT)), (Some(123), true), "{level:?}: {refused:?}");
    }
}

#[test]
fn a_pinned_file_cannot_be_written_from_inside() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    let file = place.at("free/hook.sh");
    fs::write(&file, "echo ran\n").unwrap();
    let ran =
        Ran::new(place.command(&words(&pin(&file)), "echo evil >free/hook.sh; cat free/hook.sh").output().unwrap());
    assert_eq!(ran.fine(), "echo ran\n");
    assert_eq!(fs::read_to_string(&file).unwrap(), "echo ran\n");
}

#[test]
fn in_a_protected_folder_the_checked_bytes_stay_when_other_files_take_their_places() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    let files = ["protected/hook.sh", "protected/inner/hook.sh", "protected/inner/deep/er/hook.sh", "protected/link"];
    fs::create_dir_all(place.at("protected/inner/deep/er")).unwrap();
    for file in &files[..3] {
        fs::write(place.at(file), "trusted\n").unwrap();
    }
    symlink("inner/hook.sh", place.at("protected/link")).unwrap();
    make_pipe(&place.at("free/go"));
    let pins: Vec<String> = files.iter().flat_map(|file| pin(&place.at(file))).collect();
    let script = format!("echo began; cat free/go; cat {}; cd protected; cat hook.sh", files.join(" "));
    let (mut child, mut out, line) = start(place.command(&words(&pins), &script));
    assert_eq!(line, "began");
    fs::write(place.at("free/other"), "other\n").unwrap();
    let replace = |file: &str| {
        fs::copy(place.at("free/other"), place.at("free/new")).unwrap();
        fs::rename(place.at("free/new"), place.at(file)).unwrap();
    };
    files.iter().for_each(|file| replace(file));
    fs::remove_file(place.at("protected/hook.sh")).unwrap();
    replace("protected/hook.sh");
    // The folders themselves are replaced, too.
    fs::rename(place.at("protected/inner/deep"), place.at("free/deep")).unwrap();
    fs::create_dir_all(place.at("protected/inner/deep/er")).unwrap();
    replace("protected/inner/deep/er/hook.sh");
    fs::write(place.at("free/go"), "").unwrap();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut out, &mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(rest, "trusted\n".repeat(5));
    let refused = Ran::new(place.command(&words(&pins), "cat protected/hook.sh").output().unwrap());
    assert_eq!((refused.code, refused.out.as_str()), (Some(123), ""), "{refused:?}");
}

#[test]
fn beside_a_pinned_file_all_else_in_a_protected_folder_is_as_it_was() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    fs::write(place.at("protected/hook.sh"), "echo ran\n").unwrap();
    fs::set_permissions(place.at("protected/hook.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::set_permissions(place.at("protected"), fs::Permissions::from_mode(0o711)).unwrap();
    symlink("rule", place.at("protected/link")).unwrap();
    symlink("nowhere", place.at("protected/dangling")).unwrap();
    make_pipe(&place.at("protected/pipe"));
    let _socket = UnixListener::bind(place.at("protected/socket")).unwrap();
    let pins = pin(&place.at("protected/hook.sh"));
    let list = "cd protected; stat -c '%n %A %N' . * inner/*; cat rule link inner/rule; sh hook.sh";
    let expected =
        Ran::new(std::process::Command::new("bash").args(["-c", list]).current_dir(place.at("")).output().unwrap());
    // A hidden file is a device.
    let expected = expected.fine().replace("key -rw-r--r--", "key crw-rw-rw-");
    let seen = Ran::new(place.command(&words(&pins), list).output().unwrap());
    assert_eq!(seen.fine(), expected);
    let attacks = [
        "cat protected/key",
        "echo evil >protected/hook.sh",
        "echo evil >protected/rule",
        "echo evil >protected/inner/rule",
        "echo evil >protected/inner/new",
        "echo evil >protected/new",
        "rm -f protected/rule",
        "mv protected/inner free/inner",
        "mv protected free/protected",
        "chmod 777 protected/hook.sh",
        "umount protected",
        "umount protected/rule",
    ];
    for attack in attacks {
        let ran = Ran::new(place.command(&words(&pins), attack).output().unwrap());
        assert!(ran.code != Some(0) && ran.out.is_empty(), "{attack}: {ran:?}");
    }
    assert_eq!((place.read("protected/rule"), place.read("protected/inner/rule")), ("rule\n".into(), "rule\n".into()));
    assert!(!place.at("protected/new").exists() && !place.at("protected/inner/new").exists());
}

#[test]
fn a_pinned_file_is_found_in_a_folder_with_very_many_files() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    for number in 0..2_001 {
        fs::write(place.at(&format!("protected/inner/{number}")), "").unwrap();
    }
    fs::write(place.at("protected/inner/hook.sh"), "ls protected/inner | wc -l\n").unwrap();
    let pins = pin(&place.at("protected/inner/hook.sh"));
    let ran = Ran::new(place.command(&words(&pins), "sh protected/inner/hook.sh").output().unwrap());
    assert_eq!(ran.fine().trim(), "2003");
    let ran = Ran::new(place.command(&words(&pins), "echo evil >protected/inner/hook.sh").output().unwrap());
    assert_ne!(ran.code, Some(0));
}
