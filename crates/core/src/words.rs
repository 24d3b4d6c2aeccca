//! Enums whose variants have a word in records and messages.

/// A word that stands for no variant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} `{word}`; expected one of: {}", expected.join(", "))]
pub struct UnknownWord {
    pub(crate) kind: &'static str,
    pub(crate) word: String,
    pub(crate) expected: &'static [&'static str],
}

/// Declares an enum, and gives each variant the one word that serde, `as_str` and `FromStr` use.
// A word is a `tt`: other derives read the attribute of serde, and do not find a literal in the group that `literal` would put around it.
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
            pub const ALL: &[Self] = &[$( Self::$variant, )+];

            /// Returns the word in records and messages.
            pub fn as_str(self) -> &'static str {
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
                let unknown = || $crate::UnknownWord { kind: $kind, word: word.to_owned(), expected: &[$( $word, )+] };
                Self::ALL.iter().copied().find(|one| one.as_str() == word).ok_or_else(unknown)
            }
        }
    };
}

pub(crate) use words;
