//! Session ids as users read and write them: the same short form everywhere, and a part of an id wherever one is expected.

/// The number of characters of a short id.
const SHORT: usize = 6;

/// The number of matches that an error lists.
const LISTED: usize = 8;

/// Returns the short form of a session id: its end. The beginning of an id is a time, so it differs less.
///
/// ```
/// use amplifier_core::session_id::{find, short};
///
/// let ids = ["01a1ec66-9ed5-7000-8000-000000dca68d", "01a1ec66-9ed6-7000-8000-00000071f00d"];
/// assert_eq!(short(ids[0]), "dca68d");
/// assert_eq!(find("dca68d", ids), Ok(Some(ids[0])));
/// assert_eq!(find("ffffff", ids), Ok(None));
/// assert!(find("01a1ec66", ids).is_err());
/// ```
pub fn short(id: &str) -> &str {
    id.char_indices().nth_back(SHORT - 1).map_or(id, |(start, _)| &id[start..])
}

/// Finds the id that a text means: the id itself, or the only one that begins or ends with the text. `None` if no id matches.
///
/// # Errors
/// If several ids match.
pub fn find<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Result<Option<&'a str>, AmbiguousSessionId> {
    let mut matches = Vec::new();
    for id in known {
        if id == wanted {
            return Ok(Some(id));
        }
        if !wanted.is_empty() && (id.starts_with(wanted) || id.ends_with(wanted)) {
            matches.push(id);
        }
    }
    match matches[..] {
        [] => Ok(None),
        [only] => Ok(Some(only)),
        _ => {
            matches.sort_unstable();
            Err(AmbiguousSessionId { id: wanted.to_owned(), matches: matches.into_iter().map(str::to_owned).collect() })
        }
    }
}

/// A part of a session id that several sessions match.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ambiguous session id `{id}`: {}; give more characters", listed(matches))]
#[non_exhaustive]
pub struct AmbiguousSessionId {
    /// The part.
    pub id: String,
    /// The ids that match, in order.
    pub matches: Vec<String>,
}

fn listed(matches: &[String]) -> String {
    let shown: Vec<String> = matches.iter().take(LISTED).map(|id| format!("`{id}`")).collect();
    let more = matches.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{} sessions match: {}{more}", matches.len(), shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ambiguous_part_lists_its_matches_and_the_whole_id_is_always_meant() {
        let ids = ["a-1", "a-11", "b-1"];
        assert_eq!(find("a-1", ids), Ok(Some("a-1")));
        assert_eq!(find("b", ids), Ok(Some("b-1")));
        assert_eq!(find("", ids), Ok(None));
        let error = find("1", ids).unwrap_err();
        assert_eq!(error.matches, ids);
        let expected = "ambiguous session id `1`: 3 sessions match: `a-1`, `a-11`, `b-1`; give more characters";
        assert_eq!(error.to_string(), expected);
        let many: Vec<String> = (0..20).map(|n| format!("s-{n:02}")).collect();
        let error = find("s", many.iter().map(String::as_str)).unwrap_err();
        assert!(error.to_string().contains("20 sessions match: `s-00`, `s-01`"), "{error}");
        assert!(error.to_string().contains("`s-07` and 12 more"), "{error}");
    }

    #[test]
    fn a_short_id_is_the_end_and_a_shorter_id_is_itself() {
        assert_eq!(short("01a1ec66-9ed5-dca68d"), "dca68d");
        assert_eq!(short("abc"), "abc");
    }
}
