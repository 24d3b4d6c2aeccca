//! Texts with numbers.

pub(crate) use amplifier_core::text::counted;

/// `the first record`, `the first 2 records`.
pub(crate) fn first_records(number: u64) -> String {
    if number == 1 { "the first record".to_owned() } else { format!("the first {number} records") }
}

/// Describes a checkpoint that covers other records.
pub(crate) fn not_covered(size: u64, place: &str) -> String {
    let those = if size == 1 { "is not the one" } else { "are not those" };
    format!("{} {those} that a checkpoint {place} covers", first_records(size))
}

/// Describes a checkpoint that covers more records than the log has.
pub(crate) fn too_few(place: &str, covers: u64, there: u64) -> String {
    let are = if there == 1 { "is" } else { "are" };
    format!("a checkpoint {place} covers {}, but only {there} {are} there", counted(covers, "record"))
}
