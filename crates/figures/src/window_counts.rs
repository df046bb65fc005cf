//! Counts of a part of the measured window.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Histogram, Outcomes};

/// What is counted of the queries that became due in a time window (`load.windows`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowCounts {
    /// Its name.
    pub name: String,
    /// Its beginning as it was asked for, nanoseconds of the load's own time since the measured window
    /// began.
    pub from_ns: u64,
    /// Its end likewise. Of a load that ended before, the rest is empty.
    pub to_ns: u64,
    /// How the queries ended. Each has one outcome.
    pub outcomes: Outcomes,
    /// The answered ones by response code, as in [`crate::Answers::rcodes`].
    pub rcodes: BTreeMap<String, u64>,
    /// received - due. A lost query counts with the time-out at least.
    pub latency: Histogram,
    /// received - sent, of answered queries.
    pub service_time: Histogram,
}

impl WindowCounts {
    /// Adds the counts of other queries of the same window.
    pub fn merge(&mut self, other: &Self) {
        self.outcomes.merge(&other.outcomes);
        for (rcode, count) in &other.rcodes {
            *self.rcodes.entry(rcode.clone()).or_default() += count;
        }
        self.latency.merge(&other.latency);
        self.service_time.merge(&other.service_time);
    }
}
