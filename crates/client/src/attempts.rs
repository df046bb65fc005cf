//! The attempts of the clients of a load, on its timeline.

use dnslab_traffic::{Attempts as Asked, ServerOrder};

use crate::time::{Nanos, nanos};

/// How often a client asks for each query, and how long it waits each time. Attempts have numbers from 0.
#[derive(Clone, Debug)]
pub(crate) struct Attempts {
    /// How long each attempt waits for an answer.
    waits: Vec<Nanos>,
    /// When each attempt is over at the latest, from the instant at which its query was due.
    ends: Vec<Nanos>,
    servers: u8,
    pub(crate) order: ServerOrder,
}

impl Attempts {
    pub(crate) fn new(asked: &Asked) -> Self {
        let waits: Vec<Nanos> = asked.waits().map(nanos).collect();
        let sums = waits.iter().scan(0 as Nanos, |sum, wait| {
            *sum = sum.saturating_add(*wait);
            Some(*sum)
        });
        let ends = sums.collect();
        Self { waits, ends, servers: asked.servers as u8, order: asked.order }
    }

    /// At one server, for tests.
    #[cfg(any(test, feature = "bench"))]
    pub(crate) fn at_one_server(rounds: u32, wait: Nanos, backoff: u32) -> Self {
        let timeout = std::time::Duration::from_nanos(wait);
        let order = ServerOrder::InOrder;
        Self::new(&Asked { rounds, servers: 1, timeout, backoff, order })
    }

    #[inline]
    pub(crate) fn wait(&self, attempt: u8) -> Nanos {
        self.waits.get(usize::from(attempt)).copied().unwrap_or(Nanos::MAX)
    }

    pub(crate) fn end(&self, attempt: u8) -> Nanos {
        self.ends.get(usize::from(attempt)).copied().unwrap_or(Nanos::MAX)
    }

    /// When the last attempt is over at the latest, from the instant at which its query was due.
    pub(crate) fn patience(&self) -> Nanos {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The longest that any attempt waits.
    pub(crate) fn longest(&self) -> Nanos {
        self.waits.iter().copied().max().unwrap_or(0)
    }

    /// A query whose attempt has failed is asked again.
    #[inline]
    pub(crate) fn has_next(&self, attempt: u8) -> bool {
        usize::from(attempt) + 1 < self.waits.len()
    }

    /// Clients know more than one server.
    #[inline]
    pub(crate) fn has_choice(&self) -> bool {
        self.servers > 1
    }

    pub(crate) fn next_server(&self, server: u8) -> u8 {
        (server + 1) % self.servers
    }
}
