//! Enums with one word for each variant, as records and messages have it.

/// A word that no variant has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} `{word}`; expected one of: {}", expected.join(", "))]
pub struct UnknownWord {
    kind: &'static str,
    word: String,
    expected: &'static [&'static str],
}

impl UnknownWord {
    #[doc(hidden)]
    pub fn new(kind: &'static str, word: &str, expected: &'static [&'static str]) -> Self {
        Self { kind, word: word.to_owned(), expected }
    }
}

/// Declares an enum with one word for each variant, for serde, `as_str` and `FromStr`. For the crates of this workspace.
// Words are matched as `tt`: other derives read serde's attribute, and do not find a literal in the group that `literal` would make.
#[doc(hidden)]
#[macro_export]
macro_rules! words {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $name:ident ($kind:literal) {
            $( $(#[$on_variant:meta])* $variant:ident = $word:tt, )+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ::serde::Serialize, ::serde::Deserialize)]
        $visibility enum $name {
            $( $(#[$on_variant])* #[serde(rename = $word)] $variant, )+
        }

        impl $name {
            /// Every variant.
            pub const ALL: [Self; [$( $word, )+].len()] = [$( Self::$variant, )+];

            /// Returns the word in records and messages.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $word, )+
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                let unknown = || $crate::UnknownWord::new($kind, word, &[$( $word, )+]);
                Self::ALL.into_iter().find(|one| one.as_str() == word).ok_or_else(unknown)
            }
        }
    };
}

pub(crate) use words;
