//! Python programs that only read files and print.

use super::python;

/// Modules without a function of these [`ATTRIBUTES`] that changes something.
#[rustfmt::skip]
const MODULES: &[&str] = &[
    "ast", "base64", "bisect", "collections", "csv", "datetime", "decimal", "difflib", "fractions", "functools", "glob", "hashlib", "heapq", "html",
    "itertools", "json", "math", "pathlib", "pprint", "random", "re", "statistics", "string", "sys", "textwrap", "time", "tomllib",
    "unicodedata", "urllib.parse", "uuid",
];

/// Names behind a dot: methods and constants that change nothing but values in the program.
#[rustfmt::skip]
const ATTRIBUTES: &[&str] = &[
    "Counter", "DictReader", "Decimal", "JSONDecodeError", "Path", "add", "append", "argv", "as_posix", "b64decode", "b64encode", "basename",
    "buffer", "capitalize", "ceil", "center", "chain", "combinations", "compile", "copy", "count", "date", "datetime", "days", "decode",
    "defaultdict", "dirname", "dump", "dumps", "encode", "endswith", "exists", "exit", "extend", "findall", "finditer", "floor", "format",
    "fromisoformat", "fromkeys", "fromtimestamp", "fsum", "get", "getsize", "glob", "group", "groupby", "groups", "hexdigest", "index", "insert",
    "is_dir", "is_file", "isalpha", "isdigit", "isfile", "isdir", "isoformat", "items", "iterdir", "join", "keys", "literal_eval", "ljust", "load",
    "loads", "lower", "lstrip", "match", "md5", "mean", "median", "most_common", "name", "now", "parent", "parse", "parse_qs", "parts", "pi",
    "platform", "pop", "pprint", "read", "read_bytes", "read_text", "reader", "readline", "readlines", "relative_to", "remove_prefix", "removeprefix",
    "removesuffix", "replace", "resolve", "reverse", "rglob", "rjust", "rstrip", "search", "seconds", "setdefault", "sha1", "sha256", "sort", "split",
    "splitext", "splitlines", "sqrt", "st_mtime", "st_size", "start", "startswith", "stat", "stderr", "stdev", "stdin", "stdout", "stem", "strftime",
    "strip", "strptime", "sub", "suffix", "swapcase", "timedelta", "timestamp", "title", "today", "total_seconds", "update", "upper", "urlparse",
    "utcnow", "values", "version", "version_info", "walk", "wrap", "year", "zfill", "month", "day", "fieldnames", "partition", "rpartition", "rsplit",
    "span", "end", "hour", "minute", "intersection", "union", "difference",
];

/// Builtin functions that run text, look names up, or wait for the user.
#[rustfmt::skip]
const BUILTINS: &[&str] = &[
    "breakpoint", "compile", "copyright", "credits", "delattr", "eval", "exec", "getattr", "globals", "help", "input", "license", "locals",
    "memoryview", "setattr", "vars",
];

/// Returns `true` if a program only reads files and prints.
pub(super) fn only_reads(text: &str) -> bool {
    let Some(bare) = python::without_strings(text) else { return false };
    if text.contains("__") || text.contains('`') || !bare.split(['\n', ';']).all(imports_plainly) {
        return false;
    }
    // A path has methods of these names that change files.
    let has_paths = bare.to_ascii_lowercase().contains("path");
    let is_method = |name: &str| ATTRIBUTES.contains(&name) && !(has_paths && matches!(name, "copy" | "replace"));
    let (mut before, mut rest) = (' ', bare.as_str());
    while let Some(at) = rest.find(|c: char| c.is_alphanumeric() || c == '_') {
        let (between, word) = rest.split_at(at);
        let end = word.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(word.len());
        let (name, after) = word.split_at(end);
        before = between.trim_end().chars().next_back().unwrap_or(if between.is_empty() { before } else { ' ' });
        let is_number = name.starts_with(|c: char| c.is_ascii_digit());
        let is_plain = match before {
            '.' => is_number || is_method(name),
            _ if name == "open" => opens_to_read(after),
            _ => !BUILTINS.contains(&name),
        };
        if !is_plain || !name.is_ascii() {
            return false;
        }
        (before, rest) = ('a', after);
    }
    true
}

/// Returns `true` if a statement imports only these modules and names, or none. A module may contain others, such as `os`.
fn imports_plainly(statement: &str) -> bool {
    let words: Vec<&str> = statement.split([' ', '\t', ',']).filter(|word| !word.is_empty()).collect();
    let is_known = |module: &&str| MODULES.contains(module);
    match words.as_slice() {
        ["import", module, "as", _] => MODULES.contains(module),
        ["import", modules @ ..] => modules.iter().all(is_known),
        ["from", module, "import", name, "as", _] => MODULES.contains(module) && ATTRIBUTES.contains(name),
        ["from", module, "import", names @ ..] => {
            MODULES.contains(module) && names.iter().all(|name| ATTRIBUTES.contains(name))
        }
        _ => !statement.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "import"),
    }
}

/// Returns `true` if the arguments of `open` give no mode.
fn opens_to_read(after: &str) -> bool {
    let Some(arguments) = after.trim_start().strip_prefix('(') else { return false };
    let (mut depth, mut begin, mut parts) = (0_usize, 0, Vec::new());
    for (at, c) in arguments.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => {
                parts.push(arguments.get(begin..at).unwrap_or_default());
                let is_option = |part: &&str| {
                    part.split_once('=')
                        .is_some_and(|(name, _)| matches!(name.trim(), "encoding" | "errors" | "newline"))
                };
                return parts.first().is_some_and(|file| !file.contains(['=', '*']))
                    && parts.iter().skip(1).all(is_option);
            }
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(arguments.get(begin..at).unwrap_or_default());
                begin = at + 1;
            }
            _ => {}
        }
    }
    false
}
