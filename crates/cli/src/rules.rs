//! The user at the terminal.

use amplifier_core::Actor;

/// Who sits at the terminal, as the system knows.
pub fn person() -> Actor {
    let name = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "somebody".to_owned());
    Actor { name, via: "terminal".to_owned() }
}
