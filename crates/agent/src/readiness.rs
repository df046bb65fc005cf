//! When a server is ready: it answers rightly, wherever it runs.

use std::time::Duration;

use dnslab_load::{AskError, Asker, Job, ask};
use dnslab_wire::{Query, Response, rcode, rcode_name};

/// Time for an answer to the question by which a server is found to be ready.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// What the answer of a server that is ready is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// It has a record.
    Record,
    /// It has NOERROR or NXDOMAIN: the name may be one that the user's own configuration denies.
    NameOrNone,
    /// It has NXDOMAIN.
    Denied,
}

impl Ready {
    fn is_right(self, code: u16, records: u16) -> bool {
        match self {
            Self::Record => code == rcode::NOERROR && records > 0,
            Self::NameOrNone => [rcode::NOERROR, rcode::NXDOMAIN].contains(&code),
            Self::Denied => code == rcode::NXDOMAIN,
        }
    }

    /// Whether an answer to a query is like this.
    ///
    /// # Errors
    /// What came back if that is not right: its code, and its records.
    pub fn check(self, query: &Query, answer: Result<Vec<u8>, AskError>) -> Result<(), String> {
        let answer = answer.map_err(|error| error.to_string())?;
        let response = Response::parse(&answer).map_err(|error| error.to_string())?;
        let (code, records) = (u16::from(response.rcode), response.answers);
        if !self.is_right(code, records) {
            let code = rcode_name(code);
            return Err(format!("{query} was answered with {code} and {records} records"));
        }
        Ok(())
    }
}

/// Asks as the first client of a job.
///
/// # Errors
/// What came back if that is not right: its code, and its records.
pub fn answered(job: &Job, query: &Query, ready: Ready) -> Result<(), String> {
    let asker = Asker { client: 0, transport: job.settings.transport, server: 0 };
    ready.check(query, ask(job, asker, query, PROBE_TIMEOUT))
}
