//! The user at the terminal.

use amplifier_core::Actor;
use amplifier_process::user_name;

/// Who sits at the terminal, as the system knows.
pub fn terminal_actor() -> Actor {
    let name = user_name().unwrap_or_else(|| "somebody".to_owned());
    Actor { name, via: "terminal".to_owned() }
}
