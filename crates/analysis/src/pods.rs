//! How the queries of a load were spread over the pods behind a Service.

use dnslab_record::{CpuLimit, PodSeries, RunRecord, ServiceSeries, counter};
use serde::{Deserialize, Serialize};

/// How many times what was sent may have been counted so that the shares of the pods are those of this load: others are
/// spread in their own way.
const MAX_COUNTED: f64 = 1.1;

/// The pods behind a Service, over the valid runs of a variant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ServicePods {
    /// Its namespace and name.
    pub service: String,
    /// Sockets that the clients had at one time: kube-proxy sends all packets of one to one pod, unless it is closed.
    pub sockets: u64,
    /// The least and the greatest share that the busiest pod of a run had of the queries that all pods counted in that
    /// run, in [0, 1]; `None` if none counted any, or others asked them, too.
    pub busiest: Option<[f64; 2]>,
    /// Each pod, by name.
    pub pods: Vec<PodFigures>,
    /// How often pods came or left during the loads.
    pub changes: u32,
    /// What was not seen, and why, each once.
    pub unseen: Vec<String>,
}

/// A pod behind a Service: sums over the valid runs, each from just before the load to just after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PodFigures {
    /// Its name.
    pub name: String,
    /// The node that it is on.
    pub node: String,
    /// Queries that it counted, those of others among them.
    pub queries: u64,
    /// CPU time that it used, nanoseconds.
    pub cpu_ns: u64,
    /// The most memory that it had, octets.
    pub peak_memory_octets: u64,
    /// Queries that it answered from its cache; `None` if it does not tell.
    pub cache_hits: Option<u64>,
    /// Share of the periods of its CPU quota in which that was used up, in [0, 1]; `None` without a quota, and where
    /// nobody may know.
    pub throttled_share: Option<f64>,
}

impl PodFigures {
    /// CPU time for a query, nanoseconds; `None` without a query.
    #[must_use]
    pub fn cpu_per_query_ns(&self) -> Option<f64> {
        (self.queries > 0).then(|| self.cpu_ns as f64 / self.queries as f64)
    }
}

impl ServicePods {
    /// Of runs; `None` if none of them asked a Service.
    pub(crate) fn over_runs<'a>(records: impl Iterator<Item = &'a RunRecord>) -> Option<Self> {
        let mut own: Option<Self> = None;
        for record in records {
            let Some(series) = &record.watched.service else { continue };
            let own = own.get_or_insert_with(|| Self {
                service: series.name.clone(),
                sockets: record.load.sockets,
                ..Self::default()
            });
            let sent = record.measured.as_ref();
            let sent = sent.map(|measured| measured.warm_up.sent + measured.counters.sent);
            own.add(series, sent.unwrap_or(0));
        }
        own
    }

    /// Adds a run that sent so many queries.
    fn add(&mut self, series: &ServiceSeries, sent: u64) {
        let counted: Vec<u64> =
            series.pods.iter().map(|pod| pod.counted(counter::QUERIES)).collect();
        let all: u64 = counted.iter().sum();
        // One that nobody could read may have had most.
        let are_read = series.pods.iter().all(|pod| pod.samples.len() > 1);
        let are_ours = all as f64 <= MAX_COUNTED * sent as f64;
        if let Some(most) = counted.iter().max().filter(|_| all > 0 && are_read && are_ours) {
            let share = *most as f64 / all as f64;
            let [least, greatest] = self.busiest.unwrap_or([share, share]);
            self.busiest = Some([least.min(share), greatest.max(share)]);
        }
        for pod in &series.pods {
            self.add_pod(pod);
        }
        self.pods.sort_by(|one, other| one.name.cmp(&other.name));
        self.changes += u32::try_from(series.changes.len()).unwrap_or(u32::MAX);
        for why in &series.unseen {
            if !self.unseen.contains(why) {
                self.unseen.push(why.clone());
            }
        }
    }

    fn add_pod(&mut self, pod: &PodSeries) {
        let place = self.pods.iter().position(|known| known.name == pod.name);
        let place = place.unwrap_or_else(|| {
            let (name, node) = (pod.name.clone(), pod.node.clone());
            self.pods.push(PodFigures { name, node, ..PodFigures::default() });
            self.pods.len() - 1
        });
        let known = &mut self.pods[place];
        known.queries += pod.counted(counter::QUERIES);
        known.cpu_ns += pod.growth(|sample| sample.cpu_ns);
        let memory = pod.samples.iter().map(|sample| sample.memory_octets).max();
        known.peak_memory_octets = known.peak_memory_octets.max(memory.unwrap_or(0));
        let tells =
            |sample: &&dnslab_record::PodSample| sample.counts.contains_key(counter::CACHE_HITS);
        if pod.samples.iter().any(|sample| tells(&sample)) {
            *known.cache_hits.get_or_insert(0) += pod.counted(counter::CACHE_HITS);
        }
        if let Some(limit) = &pod.cpu_limit {
            let share = CpuLimit::throttled_share(limit);
            known.throttled_share = Some(known.throttled_share.map_or(share, |own| own.max(share)));
        }
    }
}

#[cfg(test)]
mod tests {
    use dnslab_record::PodSample;

    use super::*;

    fn pod(name: &str, queries: u64) -> PodSeries {
        let sample = |count| PodSample {
            cpu_ns: 10 * count,
            counts: [(counter::QUERIES.to_owned(), count)].into(),
            ..PodSample::default()
        };
        let samples = vec![sample(100), sample(100 + queries)];
        PodSeries { name: name.to_owned(), samples, ..PodSeries::default() }
    }

    #[test]
    fn the_busiest_pod_of_each_run_counts() {
        let mut own = ServicePods::default();
        for (one, other) in [(30, 10), (20, 20)] {
            let pods = vec![pod("a", one), pod("b", other)];
            own.add(&ServiceSeries { pods, ..ServiceSeries::default() }, 40);
        }
        assert_eq!(own.busiest, Some([0.5, 0.75]));
        // Most queries are of others.
        let pods = vec![pod("a", 0), pod("b", 400)];
        own.add(&ServiceSeries { pods, ..ServiceSeries::default() }, 40);
        assert_eq!(own.busiest, Some([0.5, 0.75]));
        let queries: Vec<u64> = own.pods.iter().map(|pod| pod.queries).collect();
        assert_eq!((queries, own.pods[0].cpu_per_query_ns()), (vec![50, 430], Some(10.0)));
    }
}
