//! The tables of losses in `docs/how-to/guard` agree with the adapters.
//!
//! They stand between `<!-- generated: CLIENT -->` and `<!-- end -->`. To write them again:
//! `UPDATE_DOCS=1 cargo test -p amplifier-guard --test all pages`.

use std::fs;
use std::path::Path;

use amplifier_guard::{Client, explain};
use amplifier_host::ApprovalChannel;

const EVENTS: [&str; 4] = ["session:start", "prompt:submit", "tool:pre", "tool:post"];
const ANSWERS: [(&str, &str); 4] = [
    ("deny", "deny"),
    ("change", "modify"),
    ("add context", "inject_context"),
    ("message to the user", "user_message"),
];

fn table(client: Client) -> String {
    let expressions = explain(client, ApprovalChannel::Server);
    let cell = |event: &str, answer: &str| {
        let found = expressions.iter().find(|one| (one.event, one.answer) == (event, answer));
        found.map_or("–", |one| if one.effect == "exact" { "yes" } else { &one.effect })
    };
    let mut text = format!("| | `{}` |\n|---|---|---|---|---|\n", EVENTS.join("` | `"));
    for (name, answer) in ANSWERS {
        let cells = EVENTS.map(|event| cell(event, answer));
        text += &format!("| {name} | {} |\n", cells.join(" | "));
    }
    text
}

#[test]
fn the_pages_of_the_clients_name_what_their_adapters_cannot_express() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to/guard");
    for (client, page) in [
        (Client::Claude, "claude-code.md"),
        (Client::Codex, "codex.md"),
        (Client::Gemini, "gemini.md"),
        (Client::Copilot, "copilot.md"),
        (Client::Opencode, "opencode.md"),
        (Client::Cursor, "cursor.md"),
    ] {
        let path = folder.join(page);
        let written = fs::read_to_string(&path).unwrap();
        let begin = format!("<!-- generated: {client} -->\n");
        let from = written.find(&begin).unwrap_or_else(|| panic!("{page} has no table")) + begin.len();
        let to = from + written[from..].find("<!-- end -->").unwrap();
        let mut text = written.clone();
        text.replace_range(from..to, &format!("\n{}\n", table(client)));
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&path, &text).unwrap();
        } else {
            assert!(
                written == text,
                "{page} is not up to date: UPDATE_DOCS=1 cargo test -p amplifier-guard --test all pages"
            );
        }
    }
}
