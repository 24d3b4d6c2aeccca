//! Brace expansion.

/// Maximum number of words from one.
const WORDS: usize = 64;
/// Longest word that is expanded, in bytes.
const BYTES: usize = 1 << 10;

/// Returns the words that `a{b,c}` expands to. A word with quotes, expansions, sequences or nested braces is returned
/// unchanged. Empty results are dropped.
pub(super) fn expand(raw: &str) -> Vec<String> {
    if raw.len() > BYTES {
        return vec![raw.to_owned()];
    }
    let mut done = Vec::new();
    let mut open = vec![raw.to_owned()];
    while let Some(word) = open.pop() {
        match alternatives(&word) {
            Some(words) => open.extend(words.into_iter().rev()),
            None if word.is_empty() => {}
            None => done.push(word),
        }
        if open.len() + done.len() > WORDS {
            return vec![raw.to_owned()];
        }
    }
    done
}

/// Expands the first braces of a word.
fn alternatives(word: &str) -> Option<Vec<String>> {
    if word.contains(['\'', '"', '\\', '$', '`', '(']) {
        return None;
    }
    let (before, rest) = word.split_once('{')?;
    let (inner, after) = rest.split_once('}')?;
    let is_list = inner.contains(',') && !inner.contains('{');
    is_list.then(|| inner.split(',').map(|text| format!("{before}{text}{after}")).collect())
}
