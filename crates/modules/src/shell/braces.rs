//! Words that braces make several of.

/// So many words may come of one.
const WORDS: usize = 64;
/// A longer word is left as it is.
const BYTES: usize = 1 << 10;

/// The words that `a{b,c}` stands for. A word with quotes, expansions, sequences or braces in braces is left as it is. What comes out
/// empty is no word.
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

/// The word with each of the texts in its first braces.
fn alternatives(word: &str) -> Option<Vec<String>> {
    if word.contains(['\'', '"', '\\', '$', '`', '(']) {
        return None;
    }
    let (before, rest) = word.split_once('{')?;
    let (inner, after) = rest.split_once('}')?;
    let is_list = inner.contains(',') && !inner.contains('{');
    is_list.then(|| inner.split(',').map(|text| format!("{before}{text}{after}")).collect())
}
