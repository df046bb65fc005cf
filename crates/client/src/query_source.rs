//! When queries become due, and for which client. The one worker loop is given this as a value.

use dnslab_traffic::{Arrivals, Picker};

use crate::replay::Upcoming;
use crate::time::Nanos;

/// When the queries of one worker become due.
pub(crate) enum QuerySource {
    /// A window for each client: a query is due when an earlier one has ended.
    Closed { picker: Picker },
    /// A schedule that does not wait for the server.
    Open { arrivals: Box<Arrivals> },
    /// Clients with queries of their own, which do not wait for the server either.
    Clients { upcoming: Box<Upcoming> },
}

impl QuerySource {
    /// `None` without a schedule, or at its end.
    pub(crate) fn next_due(&mut self, now: Nanos) -> Option<Nanos> {
        match self {
            Self::Closed { .. } => None,
            Self::Open { arrivals } => arrivals.next_due(),
            Self::Clients { upcoming } => upcoming.next_due(now),
        }
    }

    /// No query that is due before `until` is still to come.
    pub(crate) fn is_read_until(&mut self, until: Nanos) -> bool {
        match self {
            Self::Closed { .. } => true,
            Self::Open { arrivals } => arrivals.next_due().is_none_or(|due| due >= until),
            Self::Clients { upcoming } => upcoming.is_read_until(until),
        }
    }

    /// Why the clients' queries cannot be read further.
    #[inline]
    pub(crate) fn failure(&self) -> Option<&String> {
        match self {
            Self::Closed { .. } | Self::Open { .. } => None,
            Self::Clients { upcoming } => upcoming.failure(),
        }
    }

    /// Queries become due by the clock, whatever the server does.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self, Self::Closed { .. })
    }
}
