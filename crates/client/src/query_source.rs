//! When queries become due, and for which client: the schedule as a value given to the one loop.

use std::iter::Peekable;

use dnslab_traffic::{Arrivals, Picker};

use crate::time::Nanos;

/// The query_source on one worker.
pub(crate) enum QuerySource {
    /// A window per client: a query is due when an earlier one has ended.
    Closed {
        /// Which query is next.
        picker: Picker,
    },
    /// A schedule that does not wait for the server.
    Open {
        /// What is due, when, on which of the worker's slots.
        arrivals: Box<Peekable<Arrivals>>,
    },
}

impl QuerySource {
    /// The instant of the next scheduled arrival, if there is a schedule.
    pub(crate) fn next_due(&mut self) -> Option<Nanos> {
        match self {
            Self::Closed { .. } => None,
            Self::Open { arrivals } => arrivals.peek().map(|arrival| arrival.due_ns),
        }
    }
}
