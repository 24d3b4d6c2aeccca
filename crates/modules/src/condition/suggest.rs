//! Suggestions for unknown names.

/// Returns `did you mean …?`, if a known name is similar enough.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(name, known).map(|nearest| format!("did you mean `{nearest}`?"))
}

fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let limit = name.chars().count() / 3 + 1;
    let near = known.into_iter().map(|known| (strsim::levenshtein(&name, &known.to_lowercase()), known));
    near.filter(|(distance, _)| *distance <= limit).min().map(|(_, known)| known)
}
