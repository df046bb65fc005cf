//! What a server counts itself, while its host reads it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use dnslab_protocol::clock::Offset;
use dnslab_protocol::{Answer, Order};
use dnslab_record::{CounterSample, CounterSeries};

use crate::link::{Link, LinkError, told};

/// What a server counts itself, while it is read.
#[derive(Debug)]
pub struct CounterWatching {
    link: Arc<Link>,
    count: u32,
    before: Offset,
}

impl CounterWatching {
    /// Has an agent read what one of its servers publishes, at this address or where the agent had it publish that.
    pub(crate) fn begin(
        link: &Arc<Link>,
        server: u32,
        statistics: Option<SocketAddr>,
    ) -> Result<Option<Self>, LinkError> {
        let link = Arc::clone(link);
        let (before, count) = (link.offset()?, link.number());
        let own = Self { link, count, before };
        match own.link.order(Order::Count { server, count, statistics })? {
            Answer::Counting(true) => Ok(Some(own)),
            Answer::Counting(false) => Ok(None),
            _ => Err(own.link.misunderstood()),
        }
    }

    /// Takes a last reading, and returns all of them on the timeline of a load that began at `origin`.
    #[must_use]
    pub fn finish(self, origin: Instant) -> CounterSeries {
        self.readings(origin).unwrap_or_else(|error| CounterSeries {
            failure: Some(error.to_string()),
            ..CounterSeries::default()
        })
    }

    fn readings(self, origin: Instant) -> Result<CounterSeries, LinkError> {
        let (origin_ns, _) = self.link.there(self.before, origin)?;
        match self.link.order(Order::EndCount { count: self.count, origin_ns })? {
            Answer::Counted(series) => {
                let CounterSeries { source, samples, failure } = *series;
                if let Some(fault) = counters_fault(&samples) {
                    return Err(self.link.contradicted(fault));
                }
                let failure = failure.map(|failure| told(&failure));
                Ok(CounterSeries { source: told(&source), samples, failure })
            }
            _ => Err(self.link.misunderstood()),
        }
    }
}

/// Readings and counts in each, at most: one a second for a day.
const MAX_READINGS: usize = 100_000;
const MAX_COUNTS: usize = 1_000;

/// What cannot be in readings that a host has taken.
fn counters_fault(samples: &[CounterSample]) -> Option<&'static str> {
    let is_possible = |sample: &CounterSample| {
        let names = sample.counts.keys().map(String::len);
        sample.counts.len() <= MAX_COUNTS && names.max().unwrap_or(0) <= MAX_COUNTS
    };
    let is_ordered = samples.is_sorted_by_key(|sample| sample.at_ns);
    let is_in_time = |sample: &CounterSample| sample.at_ns.unsigned_abs() < 1 << 60;
    let is_right = is_ordered && samples.len() <= MAX_READINGS;
    let all = is_right && samples.iter().all(|sample| is_possible(sample) && is_in_time(sample));
    (!all).then_some("its readings of counters cannot be")
}

impl Drop for CounterWatching {
    fn drop(&mut self) {
        self.link.order_only(Order::Leave { number: self.count });
    }
}
