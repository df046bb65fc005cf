//! Domain names in one text.

use std::fmt;
use std::str::FromStr;

use domain::base::Name;

/// Domain names, each absolute with or without its last dot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NameList(
    /// At least one, in the order of the text.
    pub Vec<String>,
);

/// A text is no list of names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameListError {
    /// A part of it is none.
    #[error("`{0}` is no domain name: write for example \"www.example.com,example.org\"")]
    Name(String),
    /// It has too many.
    #[error("{0} names are too many: name at most {max}, or a file: `load.queries`", max = NameList::MAX)]
    TooMany(usize),
}

impl NameList {
    /// Names at most.
    pub const MAX: usize = 1_000;
}

impl FromStr for NameList {
    type Err = NameListError;

    fn from_str(text: &str) -> Result<Self, NameListError> {
        let names = text.split(',').map(str::trim).map(|part| {
            let is_text = !part.is_empty() && !part.contains(char::is_whitespace);
            let is_name = is_text && part.parse::<Name<Vec<u8>>>().is_ok();
            is_name.then(|| part.to_owned()).ok_or_else(|| NameListError::Name(part.to_owned()))
        });
        let names: Vec<String> = names.collect::<Result<_, _>>()?;
        match names.len() {
            many if many > Self::MAX => Err(NameListError::TooMany(many)),
            _ => Ok(Self(names)),
        }
    }
}

impl fmt::Display for NameList {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        let read: NameList = " www.example.com , example.org.,a".parse().unwrap();
        assert_eq!(read.to_string(), "www.example.com,example.org.,a");
        for text in ["", "a,,b", "a..b", "a b"] {
            assert!(matches!(text.parse::<NameList>(), Err(NameListError::Name(_))), "{text}");
        }
        let many = vec!["a"; NameList::MAX + 1].join(",");
        assert_eq!(many.parse::<NameList>(), Err(NameListError::TooMany(NameList::MAX + 1)));
    }
}
