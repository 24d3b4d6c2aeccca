//! The names of fields and of assignments in text. Case and separators are ignored.

#[derive(Clone)]
pub(super) struct Field {
    pub(super) kind: String,
    /// In the form of [`plain_name`].
    pub(super) name: Vec<u8>,
}

impl Field {
    /// Returns `true` if the key is the name, or its last words are.
    pub(super) fn matches(&self, key: &str) -> bool {
        let key = key.as_bytes();
        name_start(key, &self.name).is_some_and(|at| begins_word(key, at))
    }
}

/// Converts a name to lower case, without separators.
pub(super) fn plain_name(name: &str) -> Vec<u8> {
    name.bytes().filter(|&byte| !is_separator(byte)).map(|byte| byte.to_ascii_lowercase()).collect()
}

pub(super) fn name_start(text: &[u8], name: &[u8]) -> Option<usize> {
    name.iter().rev().filter(|&&letter| !is_separator(letter)).try_fold(text.len(), |end, letter| {
        let at = text[..end].iter().rposition(|&byte| !is_separator(byte))?;
        text[at].eq_ignore_ascii_case(letter).then_some(at)
    })
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b'_' | b'-')
}

fn begins_word(text: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| text[before]) else { return true };
    let next_is_lower = text.get(at + 1).is_some_and(u8::is_ascii_lowercase);
    // The `P` of `dbPassword` and of `DBPassword`, but not of `DBPASSWORD`.
    let hump = text[at].is_ascii_uppercase() && (!before.is_ascii_uppercase() || next_is_lower);
    hump || !before.is_ascii_alphanumeric()
}
