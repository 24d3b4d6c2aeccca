//! The nearest known name to one that is not known.

/// `did you mean …?`, if a known name is near enough for that.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(name, known).map(|nearest| format!("did you mean `{nearest}`?"))
}

fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let limit = name.chars().count() / 3 + 1;
    let near = known.into_iter().map(|known| (distance(&name, &known.to_lowercase()), known));
    near.filter(|(distance, _)| *distance <= limit).min().map(|(_, known)| known)
}

/// How many characters must be added, removed or changed to make one of the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.chars().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}
