//! Whether a server counted what the load says it sent.

use dnslab_record::{Measured, Observation, counter};
use serde::{Deserialize, Serialize};

/// Queries as the load counts them beside queries as the server counts them: two programs that know
/// nothing of each other. Both begin before the first query of the warm-up and end after the last of
/// the measured window.
///
/// That the two agree shows that neither invents nor loses any. That they do not has a reason which
/// the figures do not tell: queries that were lost on the way, others that ask the server besides, or
/// a server that does not count all that it reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Agreement {
    /// Queries that the load handed to the kernel, those sent a second time too.
    pub sent: u64,
    /// Queries that the server counted meanwhile.
    pub counted: u64,
    /// Where the server's count was read, e.g. `BIND's statistics channel`.
    pub source: String,
}

impl Agreement {
    /// The agreement of one run; `None` if the server tells no such count, or if it was not read both
    /// before the load and after it.
    ///
    /// A server that counts the queries over UDP alone is held against a load that used nothing else.
    #[must_use]
    pub fn of(run: &Observation<'_>) -> Option<Self> {
        let measured = run.measured;
        let counters = run.watched.counters.as_ref()?;
        let [first, .., last] = counters.samples.as_slice() else { return None };
        if first.at_ns > 0 || last.at_ns < measured.window().to_ns {
            return None;
        }
        Some(Self {
            sent: measured.warm_up.sent + measured.counters.sent,
            counted: counters.growth(counter::QUERIES).or_else(|| {
                let of_udp = counters.growth(counter::QUERIES_UDP);
                of_udp.filter(|_| is_udp_alone(measured))
            })?,
            source: counters.source.clone(),
        })
    }

    /// The sums of several runs, under the source of the first; `None` without any.
    #[must_use]
    pub fn sum(runs: impl Iterator<Item = Self>) -> Option<Self> {
        runs.reduce(|sum, run| Self {
            sent: sum.sent + run.sent,
            counted: sum.counted + run.counted,
            source: sum.source,
        })
    }

    /// How many more the server counted than the load sent; negative if fewer.
    #[must_use]
    pub fn difference(&self) -> i64 {
        self.counted.wrapping_sub(self.sent) as i64
    }

    /// The size of the difference as a share of what was sent; 0 if nothing was sent nor counted.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.counted.abs_diff(self.sent) as f64 / self.sent.max(1) as f64
    }
}

/// True if the load attempted no connection, neither for its queries nor to ask again over TCP.
fn is_udp_alone(measured: &Measured) -> bool {
    let phases = [&measured.warm_up, &measured.counters];
    phases.iter().all(|phase| phase.connections.attempted == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_a_sign_and_its_share_none() {
        let counts = |sent, counted| Agreement { sent, counted, source: "a socket".to_owned() };
        assert_eq!((counts(1_000, 1_000).difference(), counts(1_000, 1_000).share()), (0, 0.0));
        assert_eq!((counts(1_000, 990).difference(), counts(1_000, 990).share()), (-10, 0.01));
        assert_eq!((counts(1_000, 1_020).difference(), counts(1_000, 1_020).share()), (20, 0.02));
        assert_eq!(counts(0, 0).share(), 0.0);
        let runs = [counts(1_000, 990), counts(500, 510)];
        assert_eq!(Agreement::sum(runs.into_iter()), Some(counts(1_500, 1_500)));
        assert_eq!(Agreement::sum(std::iter::empty()), None);
    }
}
