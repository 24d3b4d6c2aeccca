//! Names of machines, logs, groups and people at a centre.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest name, in bytes.
const MAX_BYTES: usize = 128;

/// A name that is one part of a subject: letters, digits, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FleetName(String);

/// An invalid name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid name `{0}`; expected 1 to {MAX_BYTES} letters, digits, `-` and `_`")]
pub struct InvalidFleetName(String);

impl FromStr for FleetName {
    type Err = InvalidFleetName;

    fn from_str(text: &str) -> Result<Self, InvalidFleetName> {
        Self::try_from(text.to_owned())
    }
}

impl TryFrom<String> for FleetName {
    type Error = InvalidFleetName;

    fn try_from(text: String) -> Result<Self, InvalidFleetName> {
        let is_valid = amplifier_link::is_valid_id(&text);
        if is_valid { Ok(Self(text)) } else { Err(InvalidFleetName(text)) }
    }
}

impl From<FleetName> for String {
    fn from(name: FleetName) -> Self {
        name.0
    }
}

impl Deref for FleetName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FleetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_part_of_a_subject() {
        for good in ["m1", "laptop-of_ann", "0"] {
            assert_eq!(good.parse::<FleetName>().unwrap().to_string(), good);
        }
        for bad in ["", "a.b", "a b", "*", ">", "ä", &"x".repeat(MAX_BYTES + 1)] {
            assert!(bad.parse::<FleetName>().is_err(), "{bad}");
        }
    }
}
