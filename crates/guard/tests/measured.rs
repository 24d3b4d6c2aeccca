//! The readers of denials agree with the measured clients: a reader that sees denials everywhere would prove nothing.

use amplifier_guard::{Client, Dialect, HookOutput};
use serde_json::{Value, json};

use crate::readers::{Gate, proceeds};

/// A hook's output, and the clients that ran the tool after it.
struct MeasuredOutput {
    name: &'static str,
    output: fn(&str) -> HookOutput,
    ran: &'static [Client],
}

/// The rows of the measurements that are about outputs. `onFailure` of Claude Code is not set.
const MEASURED: &[MeasuredOutput] = &[
    MeasuredOutput { name: "a denial", output: |deny| printed(deny, "", 0), ran: &[] },
    MeasuredOutput {
        name: "exit code 1",
        output: |_| printed("", "no", 1),
        ran: &[Client::Claude, Client::Codex, Client::Gemini],
    },
    MeasuredOutput { name: "exit code 2 and a reason", output: |_| printed("", "no", 2), ran: &[] },
    MeasuredOutput {
        name: "exit code 2 without output",
        output: |_| printed("", "", 2),
        ran: &[Client::Codex, Client::Gemini],
    },
    MeasuredOutput {
        name: "another exit code, with text",
        output: |_| printed("", "no", 3),
        ran: &[Client::Claude, Client::Codex],
    },
    MeasuredOutput {
        name: "half of a denial",
        output: |deny| printed(&deny[..deny.len() / 2], "", 0),
        ran: &[Client::Claude, Client::Codex, Client::Gemini, Client::Copilot],
    },
    MeasuredOutput {
        name: "text",
        output: |_| printed("no", "", 0),
        ran: &[Client::Claude, Client::Codex, Client::Gemini, Client::Copilot],
    },
    MeasuredOutput {
        name: "text around a denial",
        output: |deny| printed(&format!("note\n{deny}\nend"), "", 0),
        ran: &[Client::Claude, Client::Codex, Client::Gemini, Client::Copilot],
    },
    MeasuredOutput {
        name: "a denial and a NUL character",
        output: |deny| printed(&format!("{deny}\0"), "", 0),
        ran: &[Client::Claude, Client::Codex, Client::Gemini, Client::Copilot],
    },
    MeasuredOutput {
        name: "a denial with an unknown field",
        output: |deny| printed(&format!("{{\"extra\":1,{}", &deny[1..]), "", 0),
        ran: &[Client::Codex],
    },
    MeasuredOutput {
        name: "an unknown decision",
        output: |deny| printed(&deny.replace("\"deny\"", "\"DENY\""), "", 0),
        ran: &[Client::Claude, Client::Codex, Client::Gemini, Client::Copilot],
    },
];

fn printed(stdout: &str, stderr: &str, code: u8) -> HookOutput {
    HookOutput { stdout: stdout.to_owned(), stderr: stderr.to_owned(), code }
}

/// The client's own denial of a tool.
fn denial(client: Client) -> Value {
    match client {
        Client::Claude | Client::Codex => json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no",
        } }),
        Client::Gemini | Client::Opencode => json!({ "decision": "deny", "reason": "no" }),
        Client::Copilot => json!({ "permissionDecision": "deny", "permissionDecisionReason": "no" }),
        Client::Cursor => json!({ "permission": "deny", "user_message": "no" }),
    }
}

#[test]
fn the_readers_agree_with_the_measured_clients() {
    // opencode and Cursor were not measured with these outputs.
    for client in [Client::Claude, Client::Codex, Client::Gemini, Client::Copilot] {
        for MeasuredOutput { name, output, ran } in MEASURED {
            let output = output(&denial(client).to_string());
            let is_open = proceeds(client, Dialect::Own, Gate::Tool, &output);
            assert_eq!(is_open, ran.contains(&client), "{client}: {name}: {output:?}");
        }
    }
}
