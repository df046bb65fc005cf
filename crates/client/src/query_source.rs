//! When queries become due, and for which client. The one worker loop is given this as a value.

use std::iter::Peekable;

use dnslab_traffic::{Arrivals, Picker};

use crate::time::Nanos;

/// When the queries of one worker become due.
pub(crate) enum QuerySource {
    /// A window for each client: a query is due when an earlier one has ended.
    Closed { picker: Picker },
    /// A schedule that does not wait for the server.
    Open { arrivals: Box<Peekable<Arrivals>> },
}

impl QuerySource {
    /// `None` without a schedule, or at its end.
    pub(crate) fn next_due(&mut self) -> Option<Nanos> {
        match self {
            Self::Closed { .. } => None,
            Self::Open { arrivals } => arrivals.peek().map(|arrival| arrival.due_ns),
        }
    }
}
