//! Why a zone cannot be read or served.

/// A zone file could not be read or served.
#[derive(Debug, thiserror::Error)]
pub enum ZoneFileError {
    /// The text is no zone file.
    #[error("zone file: line {line}: {reason}")]
    Syntax {
        /// Line on which the parser stopped, counted from 1.
        line: usize,
        /// What it stopped at.
        reason: String,
    },
    /// One record cannot be served.
    #[error("zone file: line {line}: {owner} {rtype}: {reason}")]
    Record {
        /// Line on which the record ends, counted from 1.
        line: usize,
        /// Owner name.
        owner: String,
        /// Type mnemonic.
        rtype: String,
        /// What is wrong, and the remedy.
        reason: &'static str,
    },
    /// The zone as a whole cannot be served.
    #[error("zone file: {0}")]
    Zone(&'static str),
    /// The origin is no domain name.
    #[error("`{0}` is no domain name, so it cannot be the origin")]
    Origin(String),
}

impl ZoneFileError {
    /// No record says which zone it is.
    pub const NO_SOA: Self = Self::Zone("no SOA record: add one at the zone's apex");
}
