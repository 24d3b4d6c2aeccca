//! The user at the terminal.

use amplifier_core::Actor;
use amplifier_process::user_name;

/// Returns the user at the terminal, by the name of the operating system's account.
pub fn terminal_actor() -> Actor {
    let name = user_name().unwrap_or_else(|| "unknown user".to_owned());
    Actor { name, via: "terminal".to_owned() }
}
