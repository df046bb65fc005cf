//! The version of a server.

use std::fmt;

/// A server's version, compared by its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// As the server says it, e.g. `9.18.49-1~deb12u3-Debian`.
    pub text: String,
    /// Major, minor, patch; 0 where there is none.
    pub numbers: [u32; 3],
}

impl Version {
    /// Finds the first word of `output` that begins with a number and a dot.
    pub(crate) fn find(output: &str) -> Option<Self> {
        output.split_ascii_whitespace().find_map(|word| {
            let word = word.trim_end_matches([',', ';', '.']);
            let word = word.strip_prefix('v').unwrap_or(word);
            // CoreDNS joins its name and number.
            let word = word.strip_prefix("CoreDNS-").unwrap_or(word);
            let numeric = |letter: char| letter.is_ascii_digit() || letter == '.';
            let end = word.find(|letter| !numeric(letter)).unwrap_or(word.len());
            let mut parts = word[..end].split('.').map(str::parse::<u32>);
            let major = parts.next()?.ok()?;
            let minor = parts.next()?.ok()?;
            let patch = parts.next().and_then(Result::ok).unwrap_or(0);
            Some(Self { text: word.to_owned(), numbers: [major, minor, patch] })
        })
    }

    pub(super) fn is_at_least(&self, major: u32, minor: u32) -> bool {
        (self.numbers[0], self.numbers[1]) >= (major, minor)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}
