//! `amplifier guard explain`: the answers that a client can express.

use std::io::Write;
use std::process::ExitCode;

use amplifier_guard::{Client, explain};
use anyhow::Result;
use serde_json::{Value, json};

use crate::commands::output::{print_json, stdout};

/// Prints the effect of each answer in each client.
pub(super) fn run(clients: &[Client], as_json: bool) -> Result<ExitCode> {
    let clients = if clients.is_empty() { &Client::ALL[..] } else { clients };
    if as_json {
        let list = clients.iter().map(|client| json!({ "client": client, "answers": explain(*client) }));
        return print_json(&list.collect::<Vec<Value>>());
    }
    let mut out = stdout();
    for client in clients {
        writeln!(out, "{client}")?;
        for expression in explain(*client) {
            writeln!(out, "    {:<14} {:<15} {}", expression.event, expression.answer, expression.effect)?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
