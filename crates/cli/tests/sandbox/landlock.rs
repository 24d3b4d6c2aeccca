//! Landlock, where there are no namespaces.

use std::process::Command;

use super::{Place, Ran, is_possible};

/// The options that ask for Landlock.
const OPTIONS: [&str; 1] = ["--landlock"];

fn run(place: &Place, script: &str) -> Ran {
    Ran::new(place.command(&OPTIONS, script).output().unwrap())
}

#[test]
fn protected_files_cannot_be_changed_and_hidden_ones_not_be_read() {
    if !is_possible(&OPTIONS) {
        return;
    }
    let place = Place::new();
    let ways = [
        "echo x >protected/rule",
        "echo x >>protected/inner/rule",
        ": >protected/rule",
        "truncate -s 0 protected/rule",
        "rm -f protected/rule",
        "mv protected/rule free/",
        "mv protected free/",
        "echo x >protected/new",
        "mkdir protected/new",
        "ln -s x protected/new",
        "ln protected/rule free/link && echo x >free/link",
        "echo x >free/new && mv free/new protected/rule",
        "ln -s $PWD/protected free/link && echo x >free/link/rule",
        "cat protected/key",
        "cat /proc/self/cwd/protected/key",
        "cp protected/key free/",
        "unshare -Urm mount --bind protected free",
        "echo x >/dev/pts/ptmx",
    ];
    for way in ways {
        let ran = run(&place, way);
        assert_ne!(ran.code, Some(0), "{way}: {ran:?}");
        assert!(!ran.out.contains("secret"), "{way}: {ran:?}");
        place.check_unchanged();
    }
}

#[test]
fn ordinary_work_goes_on_beside_protected_files() {
    if !is_possible(&OPTIONS) {
        return;
    }
    let place = Place::new();
    let script = "cat protected/rule protected/inner/rule; ls protected; cd free && mkdir a && echo x >a/b && mv a/b c && ln c d && rm d && \
                  cat c && f=$(mktemp -p .) && rm $f && echo >/dev/null && head -c1 /dev/zero | wc -c && bash -c 'sleep 300 & kill $!' && echo ended";
    assert_eq!(run(&place, script).fine(), "rule\nrule\ninner\nkey\nrule\nx\n1\nended\n");
    assert_eq!(run(&place, "grep NoNewPrivs /proc/self/status").fine(), "NoNewPrivs:\t1\n");
}

/// The folders above protected ones get no rule, because that would hold for the protected ones as well.
#[test]
fn nothing_new_can_be_made_directly_in_a_folder_above_a_protected_one() {
    if !is_possible(&OPTIONS) {
        return;
    }
    let place = Place::new();
    let ran = run(&place, "echo x >new");
    assert_eq!((ran.code, ran.error.contains("Permission denied")), (Some(1), true), "{ran:?}");
}

#[test]
fn processes_outside_cannot_be_read_or_signalled() {
    if !is_possible(&OPTIONS) {
        return;
    }
    let place = Place::new();
    let mut victim = Command::new("sleep").arg("300").env("SECRET", "of-the-victim").spawn().unwrap();
    let id = victim.id();
    for file in ["environ", "mem", "root/", "cwd/", "fd/0"] {
        let ran = run(&place, &format!("ls -d /proc/{id}/{file} && cat /proc/{id}/{file}"));
        assert_ne!(ran.code, Some(0), "{file}: {ran:?}");
        assert!(!ran.out.contains("of-the-victim"), "{file}: {ran:?}");
    }
    let ran = run(&place, &format!("kill -9 {id}"));
    // Before version 6 of Landlock, signals are not held back.
    if victim.try_wait().unwrap().is_none() {
        assert!(ran.error.contains("Operation not permitted"), "{ran:?}");
    }
    victim.kill().unwrap();
    victim.wait().unwrap();
}

#[test]
fn what_landlock_cannot_do_is_refused() {
    let place = Place::new();
    for options in [
        &["--landlock", "--no-network"][..],
        &["--landlock", "--nothing-writable"],
        &["--landlock", "--temporary", "/mnt"],
    ] {
        let ran = Ran::new(place.command(options, "echo ran").output().unwrap());
        assert_eq!((ran.code, ran.out.as_str()), (Some(125), ""), "{ran:?}");
    }
}

#[test]
fn a_second_mount_is_protected_here_too() {
    if !is_possible(&OPTIONS) || !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    let script = "unshare -Urm bash -c 'mkdir free/second free/up; mount --bind protected free/second; mount --rbind . free/up; \
                  ${LAUNCH/confined/confined --landlock} bash -c \"echo x >free/second/rule; cat free/second/key; echo x >free/up/protected/rule; cat free/up/protected/key; \
                  rm -rf free/second free/up/protected\"'";
    let ran = place.run_around(script);
    place.check_unchanged();
    assert!(!ran.out.contains("secret") && ran.error.contains("Permission denied"), "{ran:?}");
}
