//! How often a client asks, whom, and how long it waits for each answer.

use std::time::Duration;

/// The attempts of a client for one query, as resolv.conf(5) has them: it asks each server in turn, and then
/// all of them again, until one answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempts {
    /// Times that each server is asked; at least 1.
    pub rounds: u32,
    /// Servers that the client knows; at least 1.
    pub servers: u32,
    /// How long it waits for an answer in the first round.
    pub timeout: Duration,
    /// How many times as long it waits in each further round as in the one before; at least 1.
    pub backoff: u32,
    /// Which server is asked first.
    pub order: ServerOrder,
}

dnslab_wire::words! {
    /// Which of its servers a client asks first.
    #[derive(Default)]
    pub enum ServerOrder as "order of servers" {
        /// The first of the list, for each query, as glibc does.
        #[default]
        InOrder = "in-order",
        /// The next of the list, from query to query, as glibc does with `options rotate`.
        Rotate = "rotate",
        /// The one that answered last; the next one when it fails, as systemd-resolved does.
        Sticky = "sticky",
    }
}

impl Attempts {
    /// Attempts in all.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.rounds.saturating_mul(self.servers)
    }

    /// How long each attempt waits, from the first on.
    pub fn waits(&self) -> impl Iterator<Item = Duration> {
        let Self { rounds, servers, timeout, backoff, .. } = *self;
        let wait = move |round| timeout.saturating_mul(backoff.saturating_pow(round));
        (0..rounds).flat_map(move |round| (0..servers).map(move |_| wait(round)))
    }

    /// How long a client waits in all before it gives up.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.waits().fold(Duration::ZERO, Duration::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rounds: u32, servers: u32, backoff: u32, waits_ms: &[u64]) {
        let timeout = Duration::from_millis(100);
        let attempts =
            Attempts { rounds, servers, timeout, backoff, order: ServerOrder::default() };
        let waits: Vec<u64> = attempts.waits().map(|wait| wait.as_millis() as u64).collect();
        assert_eq!(waits, waits_ms);
        assert_eq!(attempts.count() as usize, waits.len());
        assert_eq!(attempts.patience().as_millis() as u64, waits_ms.iter().sum::<u64>());
    }

    #[test]
    fn each_server_is_asked_in_each_round() {
        check(1, 1, 1, &[100]);
        check(3, 1, 1, &[100, 100, 100]);
        check(3, 1, 2, &[100, 200, 400]);
        check(2, 2, 3, &[100, 100, 300, 300]);
    }

    #[test]
    fn a_patience_without_end_is_the_longest() {
        let attempts = Attempts {
            rounds: 100,
            servers: 1,
            timeout: Duration::MAX,
            backoff: 9,
            order: ServerOrder::Sticky,
        };
        assert_eq!(attempts.patience(), Duration::MAX);
    }
}
