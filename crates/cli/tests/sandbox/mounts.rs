//! Protected files at other places, and while others change them.

use std::fs;

use super::{Place, Ran, is_possible, make_pipe, start};

/// Ways to write to or to read what is protected, after the same folder was mounted again as `free/second`.
const WAYS: &str = "echo x >free/second/RULE; echo x >>free/second/RULE; rm -f free/second/RULE; mv free/second/RULE free/moved; \
                    echo x >free/second/NEW; mv free/second free/third; cat free/second/KEY; \
                    unshare -Urm bash -c 'umount -l free/second; mount -o remount,bind,rw free/second; echo x >free/second/RULE'; true";

/// Makes mounts in namespaces of their own, as a container or an ordinary system has them, and lets a confined shell try.
fn attack(place: &Place, mounts: &str, rule: &str, key: &str, new: &str) -> Ran {
    let ways = WAYS.replace("RULE", rule).replace("KEY", key).replace("NEW", new);
    fs::write(place.at("ways.sh"), ways).unwrap();
    place.run_around(&format!("unshare -Urm bash -c 'set -e; mkdir -p free/second; {mounts}; $LAUNCH bash ways.sh'"))
}

#[test]
fn a_second_mount_of_a_protected_folder_is_protected_too() {
    if !is_possible(&[]) {
        return;
    }
    for (mounts, inside) in [
        // The folder itself, one above it, one inside it, and one that is mounted twice.
        ("mount --bind protected free/second", ""),
        ("mount --rbind . free/second", "protected/"),
        ("mount --bind protected/inner free/second", "-"),
        ("mount --bind protected free/second; mount --bind protected free/second", ""),
        (
            "mount -t tmpfs none free; mkdir free/second free/other; mount --bind protected free/other; mount --bind free/other free/second",
            "",
        ),
    ] {
        let place = Place::new();
        let (rule, key) = match inside {
            "-" => ("rule".to_owned(), "none".to_owned()),
            folder => (format!("{folder}rule"), format!("{folder}key")),
        };
        let ran = attack(&place, mounts, &rule, &key, &format!("{}new", inside.trim_start_matches('-')));
        place.check_unchanged();
        assert!(!ran.out.contains("secret"), "{mounts}: {ran:?}");
        assert!(ran.error.matches("Read-only file system").count() >= 3, "{mounts}: {ran:?}");
        assert_eq!(fs::read_dir(place.at("protected/inner")).unwrap().count(), 1, "{mounts}");
    }
}

/// The attack itself works.
#[test]
fn a_second_mount_leads_around_a_protection_of_paths_alone() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    let script = "unshare -Urm bash -c 'mkdir free/second; mount --bind protected free/second; mount --bind protected protected; \
                  mount -o remount,bind,ro protected; echo x >protected/rule; echo x >free/second/rule'";
    place.run_around(script);
    assert_eq!(place.read("protected/rule"), "x\n");
}

#[test]
fn the_layers_of_an_overlay_are_protected_too() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    // Overlays need a file system that can hold their marks.
    let script = "unshare -Urm bash -c 'mount -t tmpfs none free && cd free && mkdir low up work protected && echo rule >up/rule && \
                  echo rule >low/old && mount -t overlay overlay -o userxattr,lowerdir=$PWD/low,upperdir=$PWD/up,workdir=$PWD/work protected || exit 9; \
                  ${LAUNCH/--read-only*--hidden/--read-only $PWD/protected --hidden} bash -c \"echo x >up/rule; echo x >protected/rule; echo x >low/old\"; \
                  cat protected/rule protected/old up/rule low/old'";
    let ran = place.run_around(script);
    if ran.code == Some(9) {
        eprintln!("NOT TESTED: this system allows no overlays in namespaces");
        return;
    }
    assert_eq!(ran.error.matches("Read-only file system").count(), 3, "{ran:?}");
    assert_eq!(ran.fine(), "rule\nrule\nrule\nrule\n");
}

#[test]
fn processes_and_terminals_that_are_mounted_elsewhere_are_hidden() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    let script = "unshare -Urm bash -c 'mkdir free/proc free/pts; mount --rbind /proc free/proc && mount --rbind /dev/pts free/pts || exit 9; \
                  ls free/proc | grep -c version; $LAUNCH bash -c \"ls free/proc free/pts | grep -c [0-9v]\"'";
    let ran = place.run_around(script);
    assert_eq!(ran.out, "1\n0\n", "{ran:?}");
}

#[test]
fn a_file_in_a_protected_folder_that_is_replaced_meanwhile_stays_protected() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    make_pipe(&place.at("free/go"));
    let script = "echo began; cat free/go; echo x >protected/rule; echo x >protected/inner/rule; rm -f protected/rule; mv protected/new free; \
                  cat protected/rule";
    let (mut child, mut out, line) = start(place.command(&[], script));
    assert_eq!(line, "began");
    for file in ["protected/rule", "protected/inner/rule"] {
        fs::write(place.at("protected/new"), "rule 2\n").unwrap();
        fs::rename(place.at("protected/new"), place.at(file)).unwrap();
    }
    fs::write(place.at("free/go"), "").unwrap();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut out, &mut rest).unwrap();
    child.wait().unwrap();
    assert_eq!(rest, "rule 2\n");
    assert_eq!(place.read("protected/rule") + &place.read("protected/inner/rule"), "rule 2\nrule 2\n");
}

#[test]
fn a_folder_and_files_in_it_can_be_hidden_together() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    let hidden = place.at("protected/inner");
    let (folder, file) = (hidden.display().to_string(), hidden.join("rule").display().to_string());
    let options = ["--hidden", &file, "--hidden", &folder, "--hidden", "/no/such/file"];
    let ran =
        Ran::new(place.command(&options, "ls protected/inner; cat protected/inner/rule; echo ran").output().unwrap());
    assert_eq!(ran.fine(), "ran\n");
}

/// The owner of a folder can open it again, and then finds what is mounted in it.
#[test]
fn a_mount_in_a_folder_that_its_owner_has_closed_is_protected_too() {
    for options in ["", "--landlock"] {
        if !is_possible(&[]) || !is_possible(&options.split_whitespace().collect::<Vec<_>>()) {
            continue;
        }
        let place = Place::new();
        let script = format!(
            "unshare -Urm bash -c 'set -e; mkdir -p closed/second; mount --bind . closed/second; chmod 000 closed; \
             unshare -U --map-user=1000 --map-group=1000 ${{LAUNCH/confined/confined {options}}} bash -c \"ls closed; chmod 700 closed; \
             echo x >closed/second/protected/rule; rm -rf closed/second/protected; cat closed/second/protected/key; echo ran\"'"
        );
        let ran = place.run_around(&script);
        place.check_unchanged();
        assert!(ran.error.contains("ls: cannot open directory"), "it was open: {ran:?}");
        assert!(ran.out.contains("ran") && !ran.out.contains("secret"), "{options}: {ran:?}");
    }
}

/// The launcher mounts terminals of its own after it has made files read-only, and puts `/dev/null` in the place of what is hidden.
#[test]
fn nothing_is_started_if_the_check_finds_that_a_protection_did_not_take_effect() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    for (option, path, problem) in [
        ("--read-only", "/dev/pts", "can still be written to, though it was made read-only"),
        ("--hidden", "/dev/null", "can still be read, though it was hidden"),
    ] {
        let ran = Ran::new(place.command(&[option, path], "echo ran").output().unwrap());
        assert_eq!((ran.code, ran.out.as_str()), (Some(125), ""), "{ran:?}");
        assert_eq!(ran.error, format!("amplifier: cannot confine the program: `{path}` {problem}\n"));
    }
}
