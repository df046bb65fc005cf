//! Types whose values are words of experiment files, command lines and records.

/// The text is none of the words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{text}`: it is one of {}", known.join(", "))]
pub struct UnknownWord {
    /// What the words are for, e.g. `transport`.
    pub what: &'static str,
    /// The text.
    pub text: String,
    /// The words.
    pub known: &'static [&'static str],
}

/// Makes an enum whose values are words, with `name()`, `ALL`, `NAMES`, `Display` and `FromStr`. The latter
/// takes letters of either case, and its error says what the words are for.
///
/// ```
/// dnslab_wire::words! {
///     /// How eggs are eaten.
///     #[derive(Default)]
///     pub enum Egg as "way to eat eggs" {
///         /// After four minutes.
///         #[default]
///         Soft = "soft",
///         /// After eight.
///         Hard = "hard",
///     }
/// }
/// assert_eq!("Hard".parse(), Ok(Egg::Hard));
/// assert_eq!(Egg::ALL.map(Egg::name), Egg::NAMES);
/// let error = "raw".parse::<Egg>().unwrap_err().to_string();
/// assert_eq!(error, "unknown way to eat eggs `raw`: it is one of soft, hard");
/// ```
#[macro_export]
macro_rules! words {
    (
        $(#[$of_enum:meta])*
        $visibility:vis enum $name:ident as $what:literal {
            $($(#[$of_value:meta])* $value:ident = $word:literal,)+
        }
    ) => {
        $(#[$of_enum])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility enum $name {
            $($(#[$of_value])* $value,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];

            /// Their names, in the same order.
            pub const NAMES: [&'static str; [$($word),+].len()] = [$($word),+];

            /// The name in experiment files, on the command line and in records.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter.write_str(self.name())
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::UnknownWord;

            fn from_str(text: &str) -> Result<Self, $crate::UnknownWord> {
                let named = |value: &Self| value.name().eq_ignore_ascii_case(text);
                let unknown = || $crate::UnknownWord {
                    what: $what,
                    text: text.to_owned(),
                    known: &Self::NAMES,
                };
                Self::ALL.into_iter().find(named).ok_or_else(unknown)
            }
        }
    };
}
