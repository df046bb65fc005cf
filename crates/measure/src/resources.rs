//! What the server under test used, sampled during a run.

use serde::{Deserialize, Serialize};

/// One sample. Every figure but the memory is cumulative since an arbitrary origin, so that any
/// rate can be recomputed from two samples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceSample {
    /// When, in nanoseconds since the load began; negative before it.
    pub at_ns: i64,
    /// CPU time of the server's processes, nanoseconds.
    pub cpu_ns: u64,
    /// Memory of the server's processes, octets (from the cgroup, or the sum of resident sets).
    pub memory_octets: u64,
    /// Context switches of all threads, voluntary and not.
    pub context_switches: u64,
    /// Datagrams dropped at the server's UDP sockets because their buffer was full.
    pub udp_drops: u64,
    /// Time that the hypervisor kept from the whole machine, nanoseconds over all CPUs.
    pub steal_ns: u64,
    /// CPU time of all processes of the machine, those of the server and of the load among them,
    /// nanoseconds over all CPUs; 0 in records that do not have it.
    #[serde(default)]
    pub machine_ns: u64,
    /// Size of the logs of queries that the server was told to write, octets; 0 without any and in
    /// records that do not have it.
    #[serde(default)]
    pub log_octets: u64,
}

/// The samples of one run, in order of time, and where they came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceSeries {
    /// Source of the CPU time: `cgroup v2`, `cgroup v1`, `/proc/PID/task/*/schedstat`, ...
    pub cpu_source: String,
    /// Source of the memory figure.
    pub memory_source: String,
    /// How many CPUs the server may use.
    pub cpus: usize,
    /// The samples, oldest first, about one each 0.1 s.
    pub samples: Vec<ResourceSample>,
}

impl ResourceSeries {
    /// CPU time in nanoseconds between two instants; see [`ResourceSeries::growth_between`].
    #[must_use]
    pub fn cpu_between_ns(&self, from_ns: i64, to_ns: i64) -> Option<u64> {
        self.growth_between(from_ns, to_ns, |sample| sample.cpu_ns)
    }

    /// By how much a cumulative figure grew between two instants, linearly interpolated between
    /// samples and rounded; `None` when the samples do not cover the span.
    #[must_use]
    pub fn growth_between(
        &self,
        from_ns: i64,
        to_ns: i64,
        figure: impl Fn(&ResourceSample) -> u64,
    ) -> Option<u64> {
        let at = |instant| self.interpolate(instant, &figure);
        Some((at(to_ns)? - at(from_ns)?).round().max(0.0) as u64)
    }

    /// The server's CPU use in [0, 1] of what it was given, between two instants.
    #[must_use]
    pub fn busy_share(&self, from_ns: i64, to_ns: i64) -> Option<f64> {
        let available = (to_ns - from_ns) as f64 * self.cpus.max(1) as f64;
        Some(self.cpu_between_ns(from_ns, to_ns)? as f64 / available)
    }

    /// The largest memory figure, octets.
    #[must_use]
    pub fn peak_memory_octets(&self) -> Option<u64> {
        self.samples.iter().map(|sample| sample.memory_octets).max()
    }

    /// A figure at an instant, linearly between the samples around it.
    fn interpolate(&self, at_ns: i64, value: impl Fn(&ResourceSample) -> u64) -> Option<f64> {
        let after = self.samples.iter().position(|sample| sample.at_ns >= at_ns)?;
        let right = &self.samples[after];
        if right.at_ns == at_ns {
            return Some(value(right) as f64);
        }
        let left = &self.samples[after.checked_sub(1)?];
        let share = (at_ns - left.at_ns) as f64 / (right.at_ns - left.at_ns) as f64;
        Some(value(left) as f64 + share * (value(right) as f64 - value(left) as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_is_interpolated_and_never_invented() {
        let sample = |at_ns, cpu_ns| ResourceSample { at_ns, cpu_ns, ..ResourceSample::default() };
        let series = ResourceSeries {
            cpus: 2,
            samples: vec![sample(-100, 0), sample(100, 200), sample(200, 200)],
            ..ResourceSeries::default()
        };
        assert_eq!(series.cpu_between_ns(0, 100), Some(100));
        assert_eq!(series.busy_share(0, 100), Some(0.5));
        assert_eq!(series.cpu_between_ns(0, 201), None);
        assert_eq!(series.cpu_between_ns(-101, 0), None);
        let time = |sample: &ResourceSample| (sample.at_ns + 100) as u64;
        assert_eq!(series.growth_between(-50, 130, time), Some(180));
        assert_eq!(series.growth_between(-50, 201, time), None);
    }
}
