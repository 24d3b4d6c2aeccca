//! Suggestions for unknown names.

/// Returns `did you mean …?`, if a known name is similar enough.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(name, known).map(suggestion)
}

/// Returns `did you mean …?` for a known name.
pub(crate) fn suggestion(known: &str) -> String {
    format!("did you mean `{known}`?")
}

/// Returns the known name for one that other programs use.
pub(crate) fn known_as<'a>(
    name: &str,
    others: impl IntoIterator<Item = &'a (&'a [&'a str], &'a str)>,
) -> Option<&'a str> {
    others.into_iter().find(|(others, _)| others.contains(&name)).map(|(_, known)| *known)
}

/// Returns a field with a very similar name: where other fields are possible, a suggestion must not be a guess.
pub(crate) fn nearest_field<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = if name.chars().count() < 8 { 1 } else { 2 };
    let near =
        known.into_iter().map(|known| (strsim::osa_distance(&name.to_lowercase(), &known.to_lowercase()), known));
    near.filter(|(distance, known)| *distance <= limit && *known != name).min().map(|(_, known)| known)
}

fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let limit = name.chars().count() / 3 + 1;
    let near = known.into_iter().map(|known| (strsim::levenshtein(&name, &known.to_lowercase()), known));
    near.filter(|(distance, _)| *distance <= limit).min().map(|(_, known)| known)
}
