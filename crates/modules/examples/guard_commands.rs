//! Prints what `hooks-bash-guard` decides about shell commands, to measure it on a corpus.
//!
//! ```text
//! cargo run --example guard_commands -- WORKSPACE ['{ network: deny }'] < commands
//! ```
//!
//! Reads one command per line; a line that is a JSON string stands for its text, so that it may have several lines. Prints
//! `allow|ask|deny`, `readonly` or `-`, the reason and the line, separated by tabs.
#![allow(clippy::print_stdout, reason = "printing is its purpose")]

use std::error::Error;
use std::io::{self, BufRead as _, Write as _};

use amplifier_core::{FlatAction, HookRegistry, TOOL_PRE, data};
use amplifier_modules::shell::analyse;
use amplifier_modules::{HookEnvironment, Scope, bundle};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let workspace = arguments.next().ok_or("usage: guard_commands WORKSPACE [CONFIG] < commands")?;
    let config = arguments.next().unwrap_or_else(|| "{}".to_owned());
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("bundle.yaml");
    std::fs::write(&file, format!("hooks:\n  - module: hooks-bash-guard\n    config: {config}\n"))?;
    let hooks = HookRegistry::new();
    bundle::load(&file)?.register(&hooks, &HookEnvironment::new(Scope::new(&workspace)?))?;

    let mut output = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let line = line?;
        let command = serde_json::from_str::<String>(&line).unwrap_or_else(|_| line.clone());
        let input = data! { "tool_name": "Bash", "tool_input": { "command": command.as_str() } };
        let answer = hooks.emit(TOOL_PRE, input).await.flat();
        let decision = match answer.action {
            FlatAction::AskUser => "ask",
            FlatAction::Deny => "deny",
            _ => "allow",
        };
        let readonly = if analyse(&command).readonly { "readonly" } else { "-" };
        let reason = answer.reason.unwrap_or_default().replace(['\t', '\n'], " ");
        writeln!(output, "{decision}\t{readonly}\t{reason}\t{line}")?;
    }
    Ok(output.flush()?)
}
