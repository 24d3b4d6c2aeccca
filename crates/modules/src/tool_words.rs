//! The tools of other agents in our words: one table.

use amplifier_core::Map;
use serde_json::Value;

/// The agents whose tools have names of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vocabulary {
    /// Modules of Microsoft's Amplifier.
    Amplifier,
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// Copilot CLI.
    Copilot,
    /// Cursor.
    Cursor,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
}

/// One tool of an agent, with our name of it and of its input fields.
#[derive(Clone, Copy, Debug)]
pub struct ToolWords {
    /// The agent.
    pub vocabulary: Vocabulary,
    /// Its name of the tool.
    pub theirs: &'static str,
    /// Our name.
    pub ours: &'static str,
    /// The fields with other names: theirs, ours.
    pub fields: &'static [(&'static str, &'static str)],
}

/// Tools with another name or other fields than ours. All other tools keep both.
pub const TOOLS: &[ToolWords] = &[
    words(Vocabulary::Amplifier, "bash", "Bash", &[]),
    words(Vocabulary::Amplifier, "write_file", "Write", &[]),
    words(Vocabulary::Amplifier, "edit_file", "Edit", &[]),
    words(Vocabulary::Amplifier, "read_file", "Read", &[]),
    words(Vocabulary::Amplifier, "glob", "Glob", &[]),
    words(Vocabulary::Amplifier, "grep", "Grep", &[]),
    words(Vocabulary::Amplifier, "todo", "Todo", &[]),
    words(Vocabulary::Amplifier, "task", "Task", INSTRUCTION),
    words(Vocabulary::Amplifier, "delegate", "Task", INSTRUCTION),
    words(Vocabulary::Claude, "Agent", "Task", &[]),
    words(Vocabulary::Codex, "spawn_agent", "Task", MESSAGE),
    words(Vocabulary::Codex, "collaborationspawn_agent", "Task", MESSAGE),
    words(Vocabulary::Gemini, "run_shell_command", "Bash", &[]),
    words(Vocabulary::Gemini, "write_file", "Write", &[]),
    words(Vocabulary::Gemini, "replace", "Edit", &[]),
    words(Vocabulary::Gemini, "read_file", "Read", &[]),
    words(Vocabulary::Gemini, "invoke_agent", "Task", &[]),
    words(Vocabulary::Copilot, "bash", "Bash", &[]),
    words(Vocabulary::Copilot, "powershell", "Bash", &[]),
    // Input for a shell that runs already.
    words(Vocabulary::Copilot, "write_bash", "Bash", INPUT),
    words(Vocabulary::Copilot, "create", "Write", CREATE),
    words(Vocabulary::Copilot, "edit", "Edit", STR_REPLACE),
    words(Vocabulary::Copilot, "view", "Read", PATH),
    words(Vocabulary::Copilot, "task", "Task", &[]),
    // The names that Copilot uses for hooks of Claude, with fields of its own.
    words(Vocabulary::Copilot, "Write", "Write", CREATE),
    words(Vocabulary::Copilot, "Edit", "Edit", STR_REPLACE),
    words(Vocabulary::Copilot, "Read", "Read", PATH),
    words(Vocabulary::Copilot, "Agent", "Task", &[]),
    words(Vocabulary::Opencode, "bash", "Bash", &[]),
    words(Vocabulary::Opencode, "write", "Write", FILE_PATH),
    words(Vocabulary::Opencode, "edit", "Edit", OPENCODE_EDIT),
    words(Vocabulary::Opencode, "read", "Read", FILE_PATH),
    words(Vocabulary::Opencode, "task", "Task", &[]),
    words(Vocabulary::Cursor, "Shell", "Bash", &[]),
    words(Vocabulary::Cursor, "StrReplace", "Edit", PATH),
    words(Vocabulary::Cursor, "Delete", "Edit", PATH),
];

const INSTRUCTION: &[(&str, &str)] = &[("instruction", "prompt")];
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

const fn words(
    vocabulary: Vocabulary,
    theirs: &'static str,
    ours: &'static str,
    fields: &'static [(&'static str, &'static str)],
) -> ToolWords {
    ToolWords { vocabulary, theirs, ours, fields }
}

/// Returns the row of a tool; none for a tool that keeps its name.
pub fn find(vocabulary: Vocabulary, theirs: &str) -> Option<&'static ToolWords> {
    TOOLS.iter().find(|row| row.vocabulary == vocabulary && row.theirs == theirs)
}

/// Returns an input with our names of its fields.
///
/// # Errors
/// If the input has a field under both names: it is unknown which one the tool uses.
pub fn to_ours(vocabulary: Vocabulary, tool: &str, input: &Map) -> Result<Map, String> {
    let fields = find(vocabulary, tool).map_or(&[][..], |row| row.fields);
    if let Some((theirs, ours)) =
        fields.iter().find(|(theirs, ours)| input.contains_key(*theirs) && input.contains_key(*ours))
    {
        return Err(format!("the input of the tool `{tool}` has both `{theirs}` and `{ours}`"));
    }
    Ok(rename(input, fields.iter().copied()))
}

/// Returns an input with the agent's names of its fields.
pub fn to_theirs(vocabulary: Vocabulary, tool: &str, input: &Map) -> Map {
    let fields = find(vocabulary, tool).map_or(&[][..], |row| row.fields);
    rename(input, fields.iter().map(|(theirs, ours)| (*ours, *theirs)))
}

fn rename<'a>(input: &Map, names: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Map {
    let renamed = |key: &str| names.clone().find(|(from, _)| *from == key).map_or(key, |(_, to)| to).to_owned();
    input.iter().map(|(key, value): (&String, &Value)| (renamed(key), value.clone())).collect()
}
