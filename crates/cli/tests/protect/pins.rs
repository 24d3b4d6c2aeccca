//! Hooks start from the bytes that were looked at.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::{bash, does, is_possible, place};

const HOOK: &str = "hooks:\n  - command: sh guard.sh\n    name: guard\n    on: tool:pre\n    when: tool_name == 'Glob'\n    on_error: continue\n";

#[test]
fn a_hook_whose_folder_commands_can_change_does_not_run_after_a_change() {
    let place = place();
    place.write("workspace/guard.sh", "echo as it was >&2; exit 2\n");
    place.write("workspace/bundle.yaml", HOOK);
    place.make_pipe("workspace/began");
    place.make_pipe("workspace/go");
    let (began, go) = (place.at("workspace/began"), place.at("workspace/go"));
    let guard = place.at("workspace/guard.sh");
    let saving = std::thread::spawn(move || {
        fs::read(began).unwrap();
        fs::write(&guard, "exit 0\n").unwrap();
        fs::write(go, "go").unwrap();
    });
    let bundle = place.at("workspace/bundle.yaml").display().to_string();
    let glob = ("Glob", json!({ "pattern": "*" }));
    let calls = [glob.clone(), bash("echo > began; cat go"), glob];
    let (said, _) = does(&place, &["--bundle", &bundle], &calls);
    saving.join().unwrap();
    assert_eq!(said[0], "Denied by hook guard: as it was");
    assert!(
        said[2].contains("guard.sh` has other content: commands can change its folder, so the hook did not run"),
        "{said:?}"
    );
}

#[test]
fn without_a_sandbox_no_changed_file_of_a_hook_is_taken_over() {
    let place = place();
    fs::create_dir(place.at("hooks")).unwrap();
    place.write("hooks/guard.sh", "echo as it was >&2; exit 2\n");
    place.write("hooks/bundle.yaml", HOOK);
    let guard = place.at("hooks/guard.sh").display().to_string();
    // By a way that the analysis of commands does not see through.
    let attack = bash(&format!(
        "python3 -c 'import base64; open(bytes.fromhex(\"{}\").decode(), \"w\").write(\"exit 0\")'",
        hex(&guard)
    ));
    let bundle = place.at("hooks/bundle.yaml").display().to_string();
    let calls = [attack, ("Glob", json!({ "pattern": "*" }))];
    let (said, _) = does(&place, &["--bundle", &bundle, "--confinement", "off"], &calls);
    assert_eq!(fs::read_to_string(&guard).unwrap(), "exit 0");
    assert!(said[1].contains("Denied by hook guard: ") && said[1].contains("guard.sh` has other content"), "{said:?}");
    assert!(is_possible(&[]) || !said.is_empty());
}

/// A script is swapped back and forth while a session starts it: what runs is what was trusted, or nothing.
#[test]
fn a_trusted_script_that_is_swapped_never_runs_in_its_other_version() {
    const STARTS: usize = 40;
    if !is_possible(&[]) {
        return;
    }
    let place = place();
    fs::create_dir(place.at("workspace/.amplifier")).unwrap();
    place.write("workspace/.amplifier/guard.sh", "echo trusted >&2; exit 2\n");
    place.write("workspace/.amplifier/bundle.yaml", HOOK);
    place.amplifier(&["hooks", "trust", "--yes"]).fine();
    place.make_pipe("workspace/began");
    let is_over = Arc::new(AtomicBool::new(false));
    let swapping = std::thread::spawn({
        let (is_over, began) = (is_over.clone(), place.at("workspace/began"));
        let (guard, new) = (place.at("workspace/.amplifier/guard.sh"), place.at("workspace/.amplifier/new.sh"));
        move || {
            let mut swaps = 0;
            fs::read(began).unwrap();
            while !is_over.load(Ordering::Relaxed) {
                // The trusted version is there for most of the time, so that many starts get past the first look.
                for version in ["other", "trusted", "trusted", "trusted"] {
                    fs::write(&new, format!("echo {version} >&2; exit 2\n")).unwrap();
                    fs::rename(&new, &guard).unwrap();
                    swaps += 1;
                }
            }
            swaps
        }
    });
    let globs = (0..STARTS).map(|_| ("Glob", json!({ "pattern": "*" })));
    let calls: Vec<_> = [bash("echo > began")].into_iter().chain(globs).collect();
    let (said, _) = does(&place, &[], &calls);
    is_over.store(true, Ordering::Relaxed);
    let swaps = swapping.join().unwrap();
    assert!(swaps >= STARTS, "{swaps}");
    let said = &said[1..];
    assert_eq!(said.len(), STARTS);
    let is_trusted = |said: &&String| *said == "Denied by hook guard: trusted";
    let is_refusal = |said: &&String| said.contains("has other content") || said.contains("changed during");
    let odd: Vec<_> = said.iter().filter(|said| !is_trusted(said) && !is_refusal(said)).collect();
    assert!(odd.is_empty(), "{odd:?}");
    assert!(said.iter().any(|said| is_trusted(&said)), "{said:?}");
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}
