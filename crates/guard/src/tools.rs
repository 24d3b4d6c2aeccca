//! The tools of other agents in our words: one table.

use amplifier_core::Map;
use serde_json::Value;

use crate::client::Client;

/// One tool of a client, with our name of it and of its input fields.
#[derive(Clone, Copy, Debug)]
pub struct ToolWords {
    /// The client.
    pub client: Client,
    /// Its name of the tool.
    pub theirs: &'static str,
    /// Our name.
    pub ours: &'static str,
    /// The fields with other names: theirs, ours.
    pub fields: &'static [(&'static str, &'static str)],
}

/// Tools with another name or other fields than ours. All other tools keep both.
pub const TOOLS: &[ToolWords] = &[
    words(Client::Claude, "Agent", "Task", &[]),
    words(Client::Codex, "spawn_agent", "Task", MESSAGE),
    words(Client::Codex, "collaborationspawn_agent", "Task", MESSAGE),
    words(Client::Gemini, "run_shell_command", "Bash", &[]),
    words(Client::Gemini, "write_file", "Write", &[]),
    words(Client::Gemini, "replace", "Edit", &[]),
    words(Client::Gemini, "read_file", "Read", &[]),
    words(Client::Gemini, "invoke_agent", "Task", &[]),
    words(Client::Copilot, "bash", "Bash", &[]),
    words(Client::Copilot, "powershell", "Bash", &[]),
    // Input for a shell that runs already.
    words(Client::Copilot, "write_bash", "Bash", INPUT),
    words(Client::Copilot, "create", "Write", CREATE),
    words(Client::Copilot, "edit", "Edit", STR_REPLACE),
    words(Client::Copilot, "view", "Read", PATH),
    words(Client::Copilot, "task", "Task", &[]),
    // The names that Copilot uses for hooks of Claude, with fields of its own.
    words(Client::Copilot, "Write", "Write", CREATE),
    words(Client::Copilot, "Edit", "Edit", STR_REPLACE),
    words(Client::Copilot, "Read", "Read", PATH),
    words(Client::Copilot, "Agent", "Task", &[]),
    words(Client::Opencode, "bash", "Bash", &[]),
    words(Client::Opencode, "write", "Write", FILE_PATH),
    words(Client::Opencode, "edit", "Edit", OPENCODE_EDIT),
    words(Client::Opencode, "read", "Read", FILE_PATH),
    words(Client::Opencode, "task", "Task", &[]),
    words(Client::Cursor, "Shell", "Bash", &[]),
    words(Client::Cursor, "StrReplace", "Edit", PATH),
    words(Client::Cursor, "Delete", "Edit", PATH),
];

const INPUT: &[(&str, &str)] = &[("input", "command")];
const MESSAGE: &[(&str, &str)] = &[("message", "prompt")];
const PATH: &[(&str, &str)] = &[("path", "file_path")];
const CREATE: &[(&str, &str)] = &[("path", "file_path"), ("file_text", "content")];
const STR_REPLACE: &[(&str, &str)] = &[("path", "file_path"), ("old_str", "old_string"), ("new_str", "new_string")];
const FILE_PATH: &[(&str, &str)] = &[("filePath", "file_path")];
const OPENCODE_EDIT: &[(&str, &str)] = &[
    ("filePath", "file_path"),
    ("oldString", "old_string"),
    ("newString", "new_string"),
    ("replaceAll", "replace_all"),
];
/// Tools of opencode with an underscore in their names; others with one belong to an MCP server.
const OPENCODE_OWN: [&str; 1] = ["apply_patch"];
/// The most possible names of a tool.
const MAX_NAMES: usize = 16;

const fn words(
    client: Client,
    theirs: &'static str,
    ours: &'static str,
    fields: &'static [(&'static str, &'static str)],
) -> ToolWords {
    ToolWords { client, theirs, ours, fields }
}

/// Returns the row of a tool; none for a tool that keeps its name.
pub fn find(client: Client, theirs: &str) -> Option<&'static ToolWords> {
    TOOLS.iter().find(|row| row.client == client && row.theirs == theirs)
}

/// Returns our possible names of a tool, the most likely one first. A name of an MCP tool does not show where the name of its server ends, if the
/// separator is in it more than once. Rules must allow all of the names.
///
/// # Errors
/// If there are too many.
pub fn names(client: Client, theirs: &str) -> Result<Vec<String>, String> {
    if let Some(row) = find(client, theirs) {
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

/// Returns an input with our names of its fields.
///
/// # Errors
/// If the input has a field under both names: it is unknown which one the tool uses.
pub fn to_ours(client: Client, tool: &str, input: &Map) -> Result<Map, String> {
    let fields = find(client, tool).map_or(&[][..], |row| row.fields);
    if let Some((theirs, ours)) =
        fields.iter().find(|(theirs, ours)| input.contains_key(*theirs) && input.contains_key(*ours))
    {
        return Err(format!("the input of the tool `{tool}` has both `{theirs}` and `{ours}`"));
    }
    Ok(rename(input, fields.iter().copied()))
}

/// Returns an input with the client's names of its fields.
pub fn to_theirs(client: Client, tool: &str, input: &Map) -> Map {
    let fields = find(client, tool).map_or(&[][..], |row| row.fields);
    rename(input, fields.iter().map(|(theirs, ours)| (*ours, *theirs)))
}

fn rename<'a>(input: &Map, names: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Map {
    let renamed = |key: &str| names.clone().find(|(from, _)| *from == key).map_or(key, |(_, to)| to).to_owned();
    input.iter().map(|(key, value): (&String, &Value)| (renamed(key), value.clone())).collect()
}
