//! Pinned files: what runs is what was checked.

use std::fs;
use std::os::unix::fs::PermissionsExt;
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
