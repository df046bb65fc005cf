//! What was seen of the pods behind a Service of a cluster.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::resources::CpuLimit;

/// The pods behind a Service during one load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServiceSeries {
    /// Its namespace and name: `kube-system/kube-dns`.
    pub name: String,
    /// Those that were behind it at some time of the load, by name.
    pub pods: Vec<PodSeries>,
    /// What changed of them meanwhile, the oldest change first. A change is noticed within about a second.
    pub changes: Vec<EndpointChange>,
    /// What was not seen, and why, a sentence each.
    pub unseen: Vec<String>,
}

/// A pod behind a Service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PodSeries {
    /// Its name.
    pub name: String,
    /// The node that it is on.
    pub node: String,
    /// Its address.
    pub address: String,
    /// What it published, the oldest sample first: one before the load, about one each second, one after it.
    pub samples: Vec<PodSample>,
    /// The CPU quota of its containers, and how often it held them up over the load; `None` without one, and where nobody
    /// may know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_limit: Option<CpuLimit>,
}

/// What a pod published at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodSample {
    /// When, in nanoseconds since the load began; negative before it.
    pub at_ns: i64,
    /// CPU time of its server since that started, nanoseconds (`process_cpu_seconds_total`).
    pub cpu_ns: u64,
    /// Resident memory of its server, octets (`process_resident_memory_bytes`).
    pub memory_octets: u64,
    /// What its server counted since it started, by the common names of counters.
    pub counts: BTreeMap<String, u64>,
}

/// Pods that came behind a Service or left it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointChange {
    /// When it was noticed, in nanoseconds since the load began.
    pub at_ns: i64,
    /// The names of those that came.
    pub came: Vec<String>,
    /// The names of those that left.
    pub left: Vec<String>,
}

impl PodSeries {
    /// By how much one of its figures grew from the first sample to the last. A server that starts anew begins at 0.
    #[must_use]
    pub fn growth(&self, figure: impl Fn(&PodSample) -> u64) -> u64 {
        let pairs = self.samples.iter().zip(self.samples.iter().skip(1));
        let grown = pairs.map(|(before, after)| {
            let (before, after) = (figure(before), figure(after));
            after.checked_sub(before).unwrap_or(after)
        });
        grown.sum()
    }

    /// By how much a count grew ([`PodSeries::growth`]).
    #[must_use]
    pub fn counted(&self, name: &str) -> u64 {
        self.growth(|sample| sample.counts.get(name).copied().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_starts_anew_begins_at_nothing() {
        let sample = |cpu_ns| PodSample { cpu_ns, ..PodSample::default() };
        let pod = PodSeries { samples: [5, 9, 2, 3].map(sample).to_vec(), ..PodSeries::default() };
        assert_eq!(pod.growth(|sample| sample.cpu_ns), 4 + 2 + 1);
        assert_eq!(PodSeries::default().counted("queries"), 0);
    }
}
