//! Python programs without the strings that they only search for or print.

/// Harmless modules: they run nothing, delete nothing and use no network, or their calls that do are searched for by name.
const MODULES: &[&str] = &[
    "re",
    "json",
    "pathlib",
    "glob",
    "sys",
    "os",
    "os.path",
    "collections",
    "itertools",
    "functools",
    "datetime",
    "time",
    "math",
    "csv",
    "textwrap",
    "string",
    "typing",
    "ast",
    "tokenize",
    "difflib",
    "hashlib",
    "random",
    "statistics",
    "pprint",
    "configparser",
    "tomllib",
    "tomli",
    "toml",
    "yaml",
    "io",
    "fnmatch",
    "dataclasses",
    "enum",
    "urllib.parse",
    "html",
    "xml.etree.ElementTree",
    "argparse",
    "zipfile",
    "base64",
    "struct",
    "decimal",
    "uuid",
    "platform",
    "inspect",
    "bisect",
    "heapq",
    "operator",
    "unicodedata",
    "keyword",
    "locale",
    "numbers",
    "fractions",
];

/// Names for dynamic lookups: with these, strings count as code.
const DYNAMIC: &[&str] = &[
    "exec",
    "eval",
    "compile",
    "getattr",
    "globals",
    "locals",
    "vars",
    "__dict__",
    "__builtins__",
    "attrgetter",
    "methodcaller",
    "import_module",
    "__getattribute__",
    "setattr",
    "modules",
    "builtins",
    "__class__",
    "__loader__",
];

/// Returns the program without strings and comments, if no string can become code; `None` if that is uncertain.
pub(super) fn without_strings(text: &str) -> Option<String> {
    let bare = without_text(&without_imports(text)?)?;
    let called = bare.replace("re.compile", "");
    let words = called.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_dynamic = words.into_iter().any(|word| DYNAMIC.contains(&word));
    (!is_dynamic && bare.split(['\n', ';']).all(imports_plainly)).then(|| without_gaps(&bare))
}

/// Removes the spaces around dots and before brackets, so that `os . system (` is found.
fn without_gaps(text: &str) -> String {
    let mut plain = String::new();
    for part in text.split(|c: char| c.is_whitespace() && c != '\n').filter(|part| !part.is_empty()) {
        if !plain.is_empty() && !plain.ends_with('.') && !part.starts_with(['.', '(']) {
            plain.push(' ');
        }
        plain.push_str(part);
    }
    plain
}

/// Returns `true` if a statement imports only harmless modules, or none.
fn imports_plainly(statement: &str) -> bool {
    let statement = statement.trim();
    let is_known = |module: &str| MODULES.contains(&module.split_whitespace().next().unwrap_or_default());
    match statement.split_once(|c: char| c.is_whitespace()) {
        Some(("import", modules)) => modules.split(',').all(is_known),
        Some(("from", module)) => is_known(module),
        _ => !statement.contains("import "),
    }
}

/// Replaces `__import__('glob')` by a name, if the module is harmless.
fn without_imports(text: &str) -> Option<String> {
    let mut parts = text.split("__import__");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start().strip_prefix('(')?.trim_start();
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let (module, rest) = rest.get(1..)?.split_once(quote)?;
        let rest = rest.trim_start().strip_prefix(')')?;
        // Imports of `os.path` bind `os`.
        let is_path = module != "os.path" || rest.trim_start().starts_with(".path.");
        (MODULES.contains(&module) && module != "os" && is_path).then_some(())?;
        plain.push_str("module");
        plain.push_str(rest);
    }
    Some(plain)
}

/// Removes strings and comments; keeps the code in formatted strings.
fn without_text(text: &str) -> Option<String> {
    let mut bare = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..)?;
        match c {
            '#' => rest = rest.find('\n').and_then(|end| rest.get(end..)).unwrap_or_default(),
            '\'' | '"' => {
                let prefix = bare.len() - bare.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len();
                let prefix = bare.get(bare.len() - prefix..).unwrap_or_default().to_ascii_lowercase();
                let is_prefix = prefix.len() <= 2;
                let triple = [c, c].iter().collect::<String>();
                let (end, length) = match rest.strip_prefix(&triple) {
                    Some(inner) => (closing(inner, &[c, c, c])? + 2, 3),
                    None => (closing(rest, &[c])?, 1),
                };
                let inner = rest.get(..end)?;
                bare.push(c);
                if is_prefix && prefix.contains('f') {
                    bare.push_str(inner);
                }
                bare.push(c);
                rest = rest.get(end + length..)?;
            }
            c => bare.push(c),
        }
    }
    Some(bare)
}

/// Returns the end of a string with these quotes.
fn closing(text: &str, quotes: &[char]) -> Option<usize> {
    let quotes: String = quotes.iter().collect();
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if !escaped && text.get(at..).is_some_and(|rest| rest.starts_with(&quotes)) {
            return Some(at);
        }
        if c == '\n' && quotes.len() == 1 && !escaped {
            return None;
        }
        escaped = c == '\\' && !escaped;
    }
    None
}
