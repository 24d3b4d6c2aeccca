//! The key `fleet` in the configuration file.

use std::path::Path;

use amplifier_process::files::{Durability, create_private_folder, write_atomic};
use anyhow::{Context, Result};

/// Sets the addresses of the servers, or removes them. All other lines stay.
pub(super) fn set_fleet(file: &Path, servers: Option<&str>) -> Result<()> {
    let context = || format!("the configuration `{}`", file.display());
    let text = match std::fs::read_to_string(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read.with_context(context)?,
    };
    let changed = with_fleet(&text, servers);
    if changed == text {
        return Ok(());
    }
    create_private_folder(file.parent().unwrap_or(Path::new("."))).with_context(context)?;
    write_atomic(file, changed.as_bytes(), Durability::Synced).with_context(context)
}

fn with_fleet(text: &str, servers: Option<&str>) -> String {
    // Keys after the first table belong to that table.
    let top = text.lines().take_while(|line| !line.trim_start().starts_with('[')).count();
    let is_key = |line: &str| line.split_once('=').is_some_and(|(key, _)| key.trim() == "fleet");
    let kept = text.lines().enumerate().filter(|(number, line)| *number >= top || !is_key(line)).map(|(_, line)| line);
    let own = servers.map(|servers| format!("fleet = {servers:?}"));
    own.as_deref().into_iter().chain(kept).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_key_of_the_file_itself_changes() {
        let before = "mode = \"ask\"\nfleet = \"old\"\n\n[mcp.x]\nfleet = \"other\"\n";
        let without = "mode = \"ask\"\n\n[mcp.x]\nfleet = \"other\"\n";
        assert_eq!(with_fleet(before, Some("tls://a:1")), format!("fleet = \"tls://a:1\"\n{without}"));
        assert_eq!(with_fleet(before, None), without);
        assert_eq!(with_fleet("", Some("tls://a:1")), "fleet = \"tls://a:1\"\n");
    }
}
