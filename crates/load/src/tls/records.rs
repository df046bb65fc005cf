//! How queries are put into TLS records.

use std::fmt;
use std::str::FromStr;

/// How the queries of DNS over TLS are put into TLS records (RFC 8446, section 5.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Records {
    /// A record of its own for each query, as real clients send them. Queries that are due together
    /// still leave in one write.
    #[default]
    PerQuery,
    /// All queries of a batch in one record, as large as records get. NSD 4.6 answers only the first
    /// query of a record until more data comes.
    Shared,
}

impl Records {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::PerQuery, Self::Shared];

    /// The name in experiment files, on the command line and in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PerQuery => "per-query",
            Self::Shared => "shared",
        }
    }
}

impl fmt::Display for Records {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The text names no way to fill records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown use of TLS records `{0}`: it is one of per-query, shared")]
pub struct UnknownRecords(
    /// The text.
    pub String,
);

impl FromStr for Records {
    type Err = UnknownRecords;

    fn from_str(text: &str) -> Result<Self, UnknownRecords> {
        let named = |records: &Self| records.name() == text;
        Self::ALL.into_iter().find(named).ok_or_else(|| UnknownRecords(text.to_owned()))
    }
}
