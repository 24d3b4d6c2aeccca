//! References in code to secrets: variables, attributes, calls and tags.

use super::judge::PLACEHOLDER;

/// The words of names that a program gives to secrets.
const SECRETS: &str = "password passwd passphrase pwd secret token key credential credentials";

/// The first parts of paths to a value.
const ROOTS: &str = "args conf config context ctx data env environ event local module opts options os params process \
    props req request secrets self settings this user var vars vault";

/// The tags of YAML whose values are elsewhere.
const TAGS: &str = "Ref Sub GetAtt ImportValue FindInMap Join Select Split If Base64 Transform vault secret env env_var \
    ENV Env reference include input file";

/// Returns `true` if an unquoted value names the place of a secret: `config.password`, `client_secret`, `$password`,
/// `get_token()`. A longer value than a placeholder is none.
pub(super) fn is_reference(value: &str) -> bool {
    names_place(value, true)
}

/// Returns `true` if a value of the environment names the place of a secret: `$password`, `config.password`. A name alone
/// is a value there.
pub(super) fn is_reference_of_environment(value: &str) -> bool {
    names_place(value, false)
}

fn names_place(value: &str, in_code: bool) -> bool {
    if value.len() > PLACEHOLDER {
        return false;
    }
    let sigils = value.trim_start_matches(['*', '@', '$']);
    let is_variable = value.starts_with('$');
    // The arrow of PHP and C.
    let plain = sigils.replace("->", ".").replace("::", ".").replace("?.", ".");
    let (path, rest) = split_path(&plain);
    let path = path.trim_end_matches('.');
    if !path.split('.').all(is_identifier) {
        return false;
    }
    let root = path.split_once('.').map(|(root, _)| root);
    let is_known = if is_variable {
        path.split('.').all(is_name_of_variable) || names_secret(path, root.is_some())
    } else {
        let has_name = |part: &str| {
            let word = part.strip_suffix(|last: char| last.is_ascii_digit()).unwrap_or(part);
            !has_digit(part) || names_secret(word, false)
        };
        root.is_some_and(|root| ROOTS.split(' ').any(|known| root == known)) && path.split('.').all(has_name)
    };
    match rest.as_bytes() {
        // A value ends before the `>` of `$config->password`.
        [b'-'] => is_variable && is_known,
        // Letters alone: `Pa5(x` is more likely a password.
        [b'(' | b'[', ..] => !has_digit(path) && (is_known || (in_code && !is_variable)) && closes(rest),
        rest => ends(rest) && (is_known || (in_code && !is_variable && names_secret(path, root.is_some()))),
    }
}

/// Returns `true` if the brackets at the beginning close at the end of an expression. The value may end within them, at a
/// space or a quote.
pub(super) fn closes(rest: &str) -> bool {
    let mut depth = 0;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let after = &rest[at + 1..];
            let (attributes, after) = if after.starts_with('.') { split_path(after) } else { ("", after) };
            return !has_digit(attributes)
                && (ends(after.as_bytes()) || (after.starts_with(['(', '[']) && closes(after)));
        }
    }
    !has_digit(rest)
}

/// Returns `true` if nothing more of an expression follows.
fn ends(rest: &[u8]) -> bool {
    matches!(rest, [] | [b',' | b')' | b']' | b'}' | b';' | b':' | b'|' | b'?' | b'\\', ..])
}

/// Splits a text behind the names and dots at its beginning.
fn split_path(text: &str) -> (&str, &str) {
    let is_path = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    text.split_at(text.bytes().position(|byte| !is_path(byte)).unwrap_or(text.len()))
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns `true` for names such as `db_pass2` and `DB_PASS`; not for `horse99`, which is rather a password.
fn is_name_of_variable(name: &str) -> bool {
    let without_number = |word: &str| word.strip_suffix(|c: char| c.is_ascii_digit()).unwrap_or(word).to_owned();
    let is_lower = |word: &str| without_number(word).bytes().all(|b| b.is_ascii_lowercase());
    name.split('_').all(is_lower) || !name.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// Returns `true` for a word such as `SuperSecret`, which is rarely a variable.
pub(super) fn is_capitalized(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_uppercase())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && word.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// Returns `true` for a tag of YAML: `!Ref`.
pub(super) fn is_tag(value: &str) -> bool {
    value.strip_prefix('!').is_some_and(|tag| TAGS.split(' ').any(|known| tag == known))
}

fn is_identifier(part: &str) -> bool {
    part.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
}

/// Returns `true` if the last words of a name are those of a secret; for an attribute, any word.
fn names_secret(path: &str, is_attribute: bool) -> bool {
    let last = path.rsplit('.').next().unwrap_or(path);
    let lower = last.to_ascii_lowercase();
    if is_attribute {
        return !has_digit(last) && SECRETS.split(' ').any(|word| lower.contains(word));
    }
    let has_lower = last.bytes().any(|byte| byte.is_ascii_lowercase());
    SECRETS.split(' ').any(|word| match lower.strip_suffix(word).map(str::len) {
        None => false,
        // A usual password of examples.
        Some(0) => word != "secret",
        // `mysecretpassword` is a password; `my_password` and `myPassword` are names.
        Some(start) => last[..start].ends_with('_') || (has_lower && last.as_bytes()[start].is_ascii_uppercase()),
    })
}
