//! References in code to secrets: variables, attributes, calls and tags.

use super::judge::PLACEHOLDER;

/// The words of names that a program gives to secrets.
const SECRETS: &str = "password passwd passphrase pwd secret token key credential credentials";

/// The first parts of paths to a value.
const ROOTS: &str = "args conf config context ctx data env environ event local module opts options os params process \
    props req request secrets self settings this user var vars vault";

/// Returns `true` if an unquoted value names the place of a secret: `config.password`, `client_secret`, `$password`,
/// `get_token()`. A longer value than a placeholder is none.
pub(super) fn is_reference(value: &str) -> bool {
    if value.len() > PLACEHOLDER {
        return false;
    }
    let sigils = value.trim_start_matches(['*', '@', '$']);
    let is_path = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    // The arrow of PHP and C.
    let plain = sigils.replace("->", ".").replace("::", ".").replace("?.", ".");
    let end = plain.bytes().position(|byte| !is_path(byte)).unwrap_or(plain.len());
    let (path, rest) = plain.split_at(end);
    let path = path.trim_end_matches('.');
    if !path.split('.').all(is_identifier) {
        return false;
    }
    match rest.as_bytes() {
        // A value ends before the `>` of `$config->password`.
        [b'-'] => value.starts_with('$'),
        // Letters alone: `Pa5(x` is more likely a password.
        [b'(' | b'[', ..] => !path.bytes().any(|byte| byte.is_ascii_digit()),
        [] | [b',' | b')' | b']' | b'}' | b';' | b':' | b'|' | b'?' | b'\\', ..] => {
            let root = path.split_once('.').map(|(root, _)| root);
            value.starts_with('$')
                || root.is_some_and(|root| ROOTS.split(' ').any(|known| root == known))
                || names_secret(path, root.is_some())
        }
        _ => false,
    }
}

/// Returns `true` for a tag of YAML: `!Ref`.
pub(super) fn is_tag(value: &str) -> bool {
    value.strip_prefix('!').is_some_and(|tag| !tag.is_empty() && tag.bytes().all(|byte| byte.is_ascii_alphabetic()))
}

fn is_identifier(part: &str) -> bool {
    part.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
}

/// Returns `true` if the last words of a name are those of a secret; for an attribute, any word.
fn names_secret(path: &str, is_attribute: bool) -> bool {
    let last = path.rsplit('.').next().unwrap_or(path);
    let lower = last.to_ascii_lowercase();
    if is_attribute {
        return !last.bytes().any(|byte| byte.is_ascii_digit()) && SECRETS.split(' ').any(|word| lower.contains(word));
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
