//! The names of a made-up DNS: a list as people and dnsperf write it.

use std::collections::BTreeSet;

use bytes::Bytes;
use domain::base::Name;
use domain::base::iana::Rtype;
use domain::base::name::FromStrError;

/// Names, each once, lower-cased.
///
/// The text has one name a line. A type may follow it, as in dnsperf's query files; comments begin with `;`
/// or `#`. The type is checked and then ignored: every name gets the same records.
///
/// ```
/// use dnslab_responder::NameList;
///
/// let names = NameList::parse("; two names\nwww.example.com A\nWWW.example.com AAAA\nexample.org").unwrap();
/// assert_eq!(names.len(), 2);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameList(pub(super) Vec<Name<Bytes>>);

/// A list of names cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NameListError {
    /// A line cannot be read.
    #[error("list of names: line {line}: {reason}")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: NameLineError,
    },
    /// There is no name.
    #[error("list of names: no name in it: write one a line")]
    Empty,
}

/// A line of a list is no name.
#[derive(Debug, thiserror::Error)]
pub enum NameLineError {
    /// The second word is no type.
    #[error("`{rtype}` is no type: write a mnemonic, as in `{name} AAAA`")]
    Type {
        /// The second word.
        rtype: String,
        /// The first word.
        name: String,
    },
    /// There is a third word.
    #[error("`{0}` is one word too many: a name and a type are expected")]
    Excess(String),
    /// The first word is no name.
    #[error("`{name}` is no domain name: {reason}")]
    Name {
        /// The first word.
        name: String,
        /// Why it is none.
        reason: FromStrError,
    },
}

impl NameList {
    /// Reads the text of a list.
    ///
    /// # Errors
    /// When a line is no name, or there is none.
    pub fn parse(text: &str) -> Result<Self, NameListError> {
        let mut names = BTreeSet::new();
        for (number, line) in (1..).zip(text.lines()) {
            let name = read_line(line);
            names.extend(name.map_err(|reason| NameListError::Line { line: number, reason })?);
        }
        if names.is_empty() {
            return Err(NameListError::Empty);
        }
        Ok(Self(names.into_iter().collect()))
    }

    /// Number of names, 1 at least.
    #[expect(clippy::len_without_is_empty, reason = "a list without a name is an error")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// `None` for a line without a name.
fn read_line(line: &str) -> Result<Option<Name<Bytes>>, NameLineError> {
    let line = line.split([';', '#']).next().unwrap_or_default();
    let mut words = line.split_whitespace();
    let Some(name) = words.next() else { return Ok(None) };
    if let Some(rtype) = words.next() {
        rtype
            .parse::<Rtype>()
            .map_err(|_| NameLineError::Type { rtype: rtype.to_owned(), name: name.to_owned() })?;
    }
    if let Some(further) = words.next() {
        return Err(NameLineError::Excess(further.to_owned()));
    }
    let lower = name.to_ascii_lowercase();
    let wrong = |reason| NameLineError::Name { name: name.to_owned(), reason };
    Ok(Some(lower.parse().map_err(wrong)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_once_each() {
        let text =
            "# mixed\n\nwww.Example.com\tA ; first\nWWW.example.com. AAAA\n  b.example MX\n.\n";
        let names = NameList::parse(text).unwrap();
        let read: BTreeSet<_> = names.0.iter().map(ToString::to_string).collect();
        let expected = ["", "b.example", "www.example.com"].map(str::to_owned);
        assert_eq!(
            read.iter().map(|name| name.trim_end_matches('.')).collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn faults_name_their_line() {
        let check = |text: &str, expected: &str| {
            let error = NameList::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?} gave {error:?}");
        };
        check("", "no name");
        check("; nothing\n", "no name");
        check("a.example\na..example\n", "line 2: `a..example` is no domain name");
        check("a.example BOGUS\n", "line 1: `BOGUS` is no type");
        check("\na.example A 300\n", "line 2: `300` is one word too many");
        check(&format!("{}.example", "a".repeat(64)), "line 1: ");
    }
}
