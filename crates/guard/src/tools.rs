//! The names of the tools of other agents.

use amplifier_modules::tool_words::{self, Vocabulary};

use crate::client::Client;

/// Tools of opencode with an underscore in their names; others with one belong to an MCP server.
const OPENCODE_OWN: [&str; 1] = ["apply_patch"];
/// The most possible names of a tool.
const MAX_NAMES: usize = 16;

impl From<Client> for Vocabulary {
    fn from(client: Client) -> Self {
        match client {
            Client::Claude => Self::Claude,
            Client::Codex => Self::Codex,
            Client::Copilot => Self::Copilot,
            Client::Cursor => Self::Cursor,
            Client::Gemini => Self::Gemini,
            Client::Opencode => Self::Opencode,
        }
    }
}

/// Returns our possible names of a tool, the most likely one first. A name of an MCP tool does not show where the name of its server ends, if the
/// separator is in it more than once. Rules must allow all of the names.
///
/// # Errors
/// If there are too many.
pub fn names(client: Client, theirs: &str) -> Result<Vec<String>, String> {
    if let Some(row) = tool_words::find(client.into(), theirs) {
        return Ok(vec![row.ours.to_owned()]);
    }
    let joined = match client {
        Client::Gemini => theirs.strip_prefix("mcp_").map(|rest| (rest, '_')),
        Client::Copilot => Some((theirs, '-')),
        Client::Opencode if !OPENCODE_OWN.contains(&theirs) => Some((theirs, '_')),
        _ => None,
    };
    let Some((joined, separator)) = joined else { return Ok(vec![theirs.to_owned()]) };
    let splits = joined.match_indices(separator).map(|(at, _)| (&joined[..at], &joined[at + 1..]));
    let mut names: Vec<String> = splits
        .filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
        .map(|(server, tool)| mcp_name(server, tool))
        .collect();
    if names.len() > MAX_NAMES {
        return Err(format!("the tool `{theirs}` has more than {MAX_NAMES} possible names of its server; rename it"));
    }
    if names.is_empty() {
        names.push(theirs.to_owned());
    }
    // Names of servers often have hyphens, names of tools seldom.
    if client == Client::Copilot {
        names.reverse();
    }
    Ok(names)
}

/// Returns our name of a tool of an MCP server.
pub fn mcp_name(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}
