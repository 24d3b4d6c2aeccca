//! Calls in programs of any language that delete something, locally or remotely, or that empty a file.

use amplifier_core::text::first_chars;

use super::database;

/// Longest prefix of a text that is searched, in bytes.
const LONGEST: usize = 64 << 10;

/// Longest call that is inspected, in characters.
const CALL: usize = 200;

/// Methods of clients and databases that delete, in lower case. Letters after the match belong to the method's name.
const METHODS: &[&str] = &[
    ".delete_",
    ".destroy_",
    ".terminate_",
    ".purge_",
    ".deletemany",
    ".deleteone",
    ".drop_",
    ".dropdatabase",
    ".dropcollection",
    ".droptable",
    ".flushall",
    ".flushdb",
    ".flush_all",
    ".clearobjects",
    ".del()",
    ".truncate()",
    "::truncate(",
    "method:'delete'",
    "method:\"delete\"",
    "method='delete'",
    "method=\"delete\"",
    "net::http::delete",
];

/// Prefixes of methods whose object follows, as in `deleteIndex(`.
const VERBS: &[&str] = &[".delete", ".destroy", ".terminate", ".purge", ".clearAll", ".removeAll"];

/// Objects for which `delete(…)` is a request.
const CLIENTS: &[&str] =
    &["axios", "requests", "httpx", "session", "client", "api", "got", "ky", "http", "superagent", "s3"];

/// Functions that write text to a file, in lower case.
const WRITERS: &[&str] = &[
    "write_text(",
    "write_bytes(",
    "writefilesync(",
    "writefile(",
    "writetextfilesync(",
    "writetextfile(",
    "file_put_contents(",
    "file.write(",
    "io.write(",
    "bun.write(",
];

/// Returns `true` if a program calls something that deletes.
pub(super) fn deletes(text: &str) -> bool {
    let text = text.get(..LONGEST.min(text.len())).unwrap_or(text);
    let lower: String = text.chars().filter(|c| *c != ' ').collect::<String>().to_ascii_lowercase();
    let is_request = ["'DELETE'", "\"DELETE\"", "`DELETE`"].iter().any(|method| text.contains(method));
    let runs_statements = ["execute", "query", "cursor", "connect"].iter().any(|call| lower.contains(call));
    is_request
        || METHODS.iter().any(|method| lower.contains(method))
        || VERBS.iter().any(|verb| text.match_indices(verb).any(|(at, _)| is_compound(text, at + verb.len())))
        || text.match_indices("Delete").any(|(at, verb)| is_command(text, at + verb.len()))
        || text.match_indices(".delete(").any(|(at, call)| is_client(text, at, at + call.len()))
        || runs_statements && database::drops(text)
}

/// Returns the text after a call, up to the limit.
fn beginning(text: &str, at: usize) -> &str {
    first_chars(text.get(at..).unwrap_or_default(), CALL)
}

/// Returns `true` if the method's name continues with a capital letter, and the method is called.
fn is_compound(text: &str, at: usize) -> bool {
    let rest = beginning(text, at);
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    rest.starts_with(|c: char| c.is_ascii_uppercase()) && rest.get(end..).is_some_and(|rest| rest.starts_with('('))
}

/// Returns `true` if a name continues like that of a request, as in `DeleteObjectCommand`.
fn is_command(text: &str, at: usize) -> bool {
    let rest = beginning(text, at);
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    rest.get(..end).is_some_and(|name| name.ends_with("Command") || name.ends_with("Request"))
}

/// Returns `true` if `x.delete(…)` is a request: by the object's name, or because the argument is an address or empty.
fn is_client(text: &str, at: usize, inner: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let object = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
    let object = object.to_ascii_lowercase();
    let after = text.get(inner..).unwrap_or_default().trim_start();
    let first = after.strip_prefix(['"', '\'', '`']).map(|rest| rest.split(['"', '\'', '`']).next().unwrap_or(rest));
    CLIENTS.iter().any(|client| object == *client || object.ends_with(&format!("_{client}")))
        || first.is_some_and(|address| address.contains('/'))
        || after.starts_with(')') && before.ends_with(')')
}

/// Returns `true` if a program writes an empty text to a file.
pub(super) fn empties_a_file(text: &str) -> bool {
    let text = text.get(..LONGEST.min(text.len())).unwrap_or(text);
    let lower = text.to_ascii_lowercase();
    WRITERS.iter().any(|writer| lower.match_indices(writer).any(|(at, _)| writes_nothing(&lower, at + writer.len())))
        || opens_to_write(&lower) && !writes(&lower)
        || lower.contains("inplace=true") && lower.contains("fileinput") && !writes(&lower)
        || lower.contains("copy") && (lower.contains("'/dev/null'") || lower.contains("\"/dev/null\""))
        || lower.match_indices("truncate(").any(|(at, call)| {
            let rest = lower.get(at + call.len()..).unwrap_or_default().trim_start();
            rest.starts_with(['0', '"', '\'']) || rest.starts_with(')') && !writes(&lower)
        })
}

/// Calls that write to an open file.
const WRITES: &[&str] = &["write", "print", "dump", "save", "puts", "pipe", "copy", "to_csv", "to_json", "<<"];

fn opens_to_write(text: &str) -> bool {
    let has_mode = ["'w'", "\"w\"", "'wb'", "\"wb\"", "'w+'", "\"w+\""].iter().any(|mode| text.contains(mode));
    has_mode && (text.contains("open") || text.contains("zipfile(")) || text.contains("createwritestream(")
}

fn writes(text: &str) -> bool {
    // The names of the functions that open a file do not count as writes.
    let text = text.replace("createwritestream", "").replace("writable", "");
    WRITES.iter().any(|call| text.contains(call))
}

/// Returns `true` if the last argument of a call is an empty text.
fn writes_nothing(text: &str, at: usize) -> bool {
    let arguments = beginning(text, at).split(')').next().unwrap_or_default();
    let last = arguments.rsplit(',').next().unwrap_or(arguments).trim();
    matches!(last, "''" | "\"\"" | "``" | "b''" | "b\"\"")
}
