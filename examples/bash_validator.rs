//! Looks at shell commands before they run. What it denies, the model reads as the result of its call.
//!
//! Run it with `cargo run --example bash_validator`.
#![allow(clippy::print_stdout)]

use amplifier_core::{Coordinator, Event, HookError, HookRegistry, HookResult, OnError, TOOL_PRE, ToolPre, data};

fn validate(event: Event<ToolPre>) -> Result<Option<HookResult>, HookError> {
    if event.tool_name() != "Bash" {
        return Ok(None);
    }
    let command = event.text_at("/tool_input/command");
    let command = command.ok_or_else(|| HookError::failed("a Bash call without `command`"))?;
    Ok(danger(command).map(|danger| HookResult::deny(format!("dangerous command: {danger}"))))
}

/// What is dangerous about a command.
///
/// A list like this prevents accidents, not attacks: a shell has a hundred ways to spell the same thing. Against
/// attacks, run tools in a sandbox.
fn danger(command: &str) -> Option<&'static str> {
    command.split([';', '&', '|', '\n']).find_map(|part| {
        let mut words = part.split_whitespace().skip_while(|word| *word == "sudo");
        let program = words.next()?.rsplit('/').next()?;
        let (flags, targets): (Vec<_>, Vec<_>) = words.partition(|word| word.starts_with('-'));
        let is_recursive = flags.iter().any(|flag| match flag.strip_prefix("--") {
            Some(word) => word == "recursive",
            None => flag.contains(['r', 'R']),
        });
        let is_everything = targets.iter().any(|target| matches!(*target, "/" | "/*" | "~" | "~/" | "$HOME"));
        match program {
            "rm" if is_recursive && is_everything => Some("it deletes everything"),
            "mkfs" | "dd" => Some("it can overwrite a disk"),
            "shutdown" | "reboot" => Some("it stops the machine"),
            _ => None,
        }
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("bash-validator").on_error(OnError::Deny).run(validate);
    let session = Coordinator::builder(hooks).build();

    let commands = ["ls -la", "rm -rf ./build", "rm -rf /", "cd /tmp && sudo /bin/rm -fr  /*", "sudo reboot"];
    for command in commands {
        println!("$ {command}");
        let call = ToolPre::new("Bash", data! { "command": command });
        let verdict = session.emit(TOOL_PRE, call).await;
        if verdict.is_proceed() {
            println!("  (runs)");
        } else {
            println!("  the model reads: {verdict}");
        }
    }
    Ok(())
}
