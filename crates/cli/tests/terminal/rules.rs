//! Rules that an answer creates: seen before they are chosen, and revocable.

use serde_json::{Value, json};

use crate::common::Place;
use crate::terminal::Terminal;

fn write(path: &str) -> Value {
    json!({ "tools": [{ "name": "Write", "input": { "file_path": path, "content": "x\n" } }] })
}

fn done() -> Value {
    json!({ "text": "Done." })
}

#[test]
fn an_answer_allows_writes_below_a_folder_for_this_session() {
    let place = Place::with(json!([write("src/a.txt"), write("src/b/c.txt"), write("docs/d.txt"), done()]));
    let mut terminal = Terminal::start(&place, &["run", "Write"]);
    terminal.answer("2");
    let menu = terminal.until("press 1–3 · p: in all sessions in this folder · Esc: back");
    for row in [
        "│ Allow always: allow without asking, until this session ends",
        "│ 1  writes to `src/a.txt`",
        "│    rule: write src/a.txt",
        "│ 2  writes below `src`",
        "│    rule: write src/**",
        "│ 3  writes in this workspace",
    ] {
        assert!(menu.contains(row), "{menu}");
    }
    terminal.keys("2");
    terminal.until("✓ allowed from now on: writes below `src` (until this session ends)");
    terminal.until("Write  docs/d.txt");
    terminal.answer("3");
    terminal.until("Done.");
    assert_eq!(terminal.end(), 3);
    assert_eq!(terminal.seen.matches("approval needed").count(), 2);
    assert_eq!(place.read("workspace/src/b/c.txt"), "x\n");
    assert!(place.amplifier(&["approvals", "list"]).fine().starts_with("No approval rules"));
}

#[test]
fn an_answer_for_the_project_stays_until_it_is_revoked() {
    let place = Place::with(json!([write("src/a.txt"), done()]));
    let mut terminal = Terminal::start(&place, &["run", "Write"]);
    terminal.answer("2");
    terminal.until("press 1–3 · p");
    terminal.keys("p");
    terminal.until("Allow always: allow without asking, in all sessions in this folder");
    terminal.until("press 1–3 · p: in all your sessions");
    terminal.keys("2");
    terminal.until("Done.");
    assert_eq!(terminal.end(), 0);
    let listed = place.amplifier(&["approvals", "list"]).fine();
    assert!(listed.starts_with("  1  allow  confirm write src/**  (in "), "{listed}");
    let recorded = place.amplifier(&["audit", "export", "--kind", "policy_change"]).fine();
    assert!(recorded.contains("confirm write src/**"), "{recorded}");

    place.answers(json!([write("src/b.txt"), done()]));
    assert_eq!(place.run(&["Write"]).out, "Done.\n");
    assert_eq!(place.amplifier(&["approvals", "revoke", "write src/**"]).fine(), "Revoked `confirm write src/**`.\n");
    place.answers(json!([write("src/c.txt"), done()]));
    let mut terminal = Terminal::start(&place, &["run", "Write"]);
    terminal.answer("3");
    terminal.until("Done.");
    assert_eq!(terminal.end(), 3);
    assert!(!place.at("workspace/src/c.txt").exists());
}

#[test]
fn escape_leads_back_from_the_rules_to_the_options() {
    let place = Place::with(json!([write("src/a.txt"), done()]));
    let mut terminal = Terminal::start(&place, &["run", "Write"]);
    terminal.answer("2");
    terminal.until("Esc: back");
    terminal.keys("\x1b");
    terminal.answer("3");
    terminal.until("✗ denied");
    terminal.until("Done.");
    assert_eq!(terminal.end(), 3);
}
