//! What the server under test used, sampled during a run.

use serde::{Deserialize, Serialize};

use crate::span::{Rise, Span};

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
    /// CPU time of dnslab itself, the load and all that watches, nanoseconds; 0 in records that do not have
    /// it.
    #[serde(default)]
    pub dnslab_ns: u64,
    /// Size of the logs of queries that the server was told to write, octets; 0 without any and in
    /// records that do not have it.
    #[serde(default)]
    pub log_octets: u64,
    /// Time of hard and soft interrupts on those CPUs of the server that the load does not have,
    /// nanoseconds; 0 in records that do not have it.
    #[serde(default)]
    pub irq_ns: u64,
    /// Time in which those CPUs did anything (all but idle, iowait and steal), nanoseconds; 0 in
    /// records that do not have it.
    #[serde(default)]
    pub cpus_used_ns: u64,
    /// Time in which each CPU of [`ResourceSeries::core_cpus`] did anything, whoever used it,
    /// nanoseconds; empty in records that do not have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores_used_ns: Vec<u64>,
    /// Time for which threads of the server could have run but had no CPU, summed over them, nanoseconds.
    /// They wait for other programs, for each other, and for the next period of a CPU quota. What a thread
    /// waited between its last reading and its end is not in it. `None` where the kernel does not say, and in
    /// records that do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<u64>,
}

/// The bound that control groups set on the CPU time of a side, and how often it held the side up over the
/// measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CpuLimit {
    /// How many CPUs' time it may use: the smallest quota of its group and of all groups above that.
    pub cpus: f64,
    /// The folder of the group that has this quota.
    pub group: String,
    /// Periods of the quota in which the group ran.
    pub periods: u64,
    /// Those of them in which the quota was used up and the group had to wait for the next one.
    pub throttled: u64,
    /// How long it waited so, nanoseconds, as the kernel counts it (over all CPUs).
    pub throttled_ns: u64,
}

impl CpuLimit {
    /// Share of the periods in which the quota was used up, in [0, 1]; 0 without a period.
    #[must_use]
    pub fn throttled_share(&self) -> f64 {
        (self.throttled as f64 / self.periods.max(1) as f64).min(1.0)
    }
}

/// Of the time for which threads could run, the share for which they had no CPU, in [0, 1], from how long they waited and
/// ran in one unit.
pub(crate) fn share_of_waiting(waited: f64, ran: f64) -> f64 {
    if waited > 0.0 { waited / (waited + ran) } else { 0.0 }
}

/// What one thread of a server used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ThreadShare {
    /// Its name (`comm`, at most 15 octets).
    pub name: String,
    /// Share of one CPU, in [0, 1].
    pub share: f64,
}

/// What a CPU did over the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuShare {
    /// Its number.
    pub cpu: usize,
    /// Share of the time for which it did anything (all but idle, iowait and steal), in [0, 1].
    pub used: f64,
    /// Share of the time that hard and soft interrupts took, in [0, 1].
    pub irq: f64,
}

/// What threads used of CPUs with the interrupts there, both as time or as a share: the rule for
/// [`ResourceSeries::irq_apart`].
///
/// A kernel with CONFIG_IRQ_TIME_ACCOUNTING takes the time of interrupts off the clock by which
/// threads are charged (`update_rq_clock_task`, kernel/sched/core.c), so it is to be added. One
/// without charges the interrupted thread, and counts the tick as an interrupt's besides
/// (`account_system_time`, kernel/sched/cputime.c): adding it would count it twice. Where nobody knows
/// which of the two it is, the sum is bounded by what the CPUs did at all; that is right on both
/// where nobody else runs there.
#[must_use]
pub fn with_interrupts(own: f64, irq: f64, used: f64, irq_apart: Option<bool>) -> f64 {
    match irq_apart {
        Some(true) => own + irq,
        Some(false) => own,
        None => own.max((own + irq).min(used)),
    }
}

/// The samples of one run, in order of time, and where they came from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceSeries {
    /// Source of the CPU time: `cgroup v2`, `cgroup v1`, `/proc/PID/task/*/schedstat`, ...
    pub cpu_source: String,
    /// Source of the memory figure.
    pub memory_source: String,
    /// How many CPUs the server may use.
    pub cpus: usize,
    /// The samples, oldest first, about one each 0.1 s. What lies between two instants is only found in this
    /// order; a record without it is not read.
    pub samples: Vec<ResourceSample>,
    /// What the busiest threads used over the measured window, the busiest first; at most 8, and
    /// none in records that do not have it.
    #[serde(default)]
    pub threads: Vec<ThreadShare>,
    /// What the CPUs of the load did over the measured window; none in records that do not have it.
    #[serde(default)]
    pub load_cpus: Vec<CpuShare>,
    /// The CPUs that are watched one by one: those of the server and of the load, at most 32; empty in
    /// records that do not have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_cpus: Vec<usize>,
    /// Whether the kernel keeps the time of interrupts apart from that of the threads that they
    /// interrupt (CONFIG_IRQ_TIME_ACCOUNTING); `None` where that is not known.
    #[serde(default)]
    pub irq_apart: Option<bool>,
    /// The CPU quota of the server; `None` without one, and in records that do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_limit: Option<CpuLimit>,
    /// Share of the measured window for which some thread of the server's control group waited for a CPU, in
    /// [0, 1] (`cpu.pressure`); `None` where the kernel does not say, and in records that do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure_share: Option<f64>,
    /// The instants were taken by the clock of another host, and are within this of the load's, nanoseconds; `None` where
    /// both have one clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_bound_ns: Option<u64>,
}

/// CPUs that are watched one by one, at most.
const MAX_CORES: usize = 32;

/// Threads that are told of, at most.
const MAX_THREADS: usize = 8;

/// Octets of a text that says what was watched.
const MAX_TEXT: usize = 4_096;

/// No load is longer, nanoseconds.
const MAX_NS: u64 = 30 * 24 * 3_600 * 1_000_000_000;

impl ResourceSeries {
    /// With so many samples at most: every so manieth, and the last one.
    #[must_use]
    pub fn thinned(mut self, most: usize) -> Self {
        let every = self.samples.len().div_ceil(most.max(2) - 1).max(1);
        let last = self.samples.len().saturating_sub(1);
        let mut place = 0;
        self.samples.retain(|_| {
            let is_kept = place % every == 0 || place == last;
            place += 1;
            is_kept
        });
        self
    }

    /// What nobody who watches a server can have seen; `None` if all of it can be. For series of others.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        let is_share = |share: f64| share.is_finite() && share >= 0.0;
        let texts = [&self.cpu_source, &self.memory_source].into_iter();
        let texts = texts.chain(self.threads.iter().map(|thread| &thread.name));
        let mut texts = texts.chain(self.cpu_limit.iter().map(|limit| &limit.group));
        let mut pairs = self.samples.iter().zip(self.samples.iter().skip(1));
        let is_long = |sample: &ResourceSample| sample.cores_used_ns.len() > MAX_CORES;
        if !self.samples.is_sorted_by_key(|sample| sample.at_ns) {
            Some("its samples are not in order of time")
        } else if self.samples.iter().any(|sample| sample.at_ns.unsigned_abs() > MAX_NS) {
            Some("its samples are from another time")
        } else if pairs.any(|(before, after)| after.cpu_ns < before.cpu_ns) {
            Some("its CPU time falls")
        } else if self.core_cpus.len() > MAX_CORES || self.samples.iter().any(is_long) {
            Some("it has too many CPUs")
        } else if self.threads.len() > MAX_THREADS || texts.any(|text| text.len() > MAX_TEXT) {
            Some("it has too much text")
        } else if self.threads.iter().any(|thread| !is_share(thread.share))
            || self.load_cpus.iter().any(|cpu| !is_share(cpu.used) || !is_share(cpu.irq))
            || self.pressure_share.is_some_and(|share| !is_share(share))
        {
            Some("a share of it is none")
        } else {
            None
        }
    }

    /// CPU time in a span, nanoseconds; see [`ResourceSeries::growth`].
    #[must_use]
    pub fn cpu_ns(&self, span: Span) -> Option<u64> {
        self.growth(span, |sample| sample.cpu_ns)
    }

    /// By how much a cumulative figure grew in a span, linearly interpolated between samples and rounded;
    /// `None` when the samples do not cover the span.
    #[must_use]
    pub fn growth(&self, span: Span, figure: impl Fn(&ResourceSample) -> u64) -> Option<u64> {
        let from = self.interpolate(span.from_ns, &figure)?;
        let to = self.interpolate(span.to_ns, &figure)?;
        Some((to - from).round().max(0.0) as u64)
    }

    /// By how much a cumulative figure rose between the samples that enclose a span (or, where there are none
    /// outside, the outermost inside). `None` when the samples span no time.
    pub fn rise(&self, span: Span, figure: impl Fn(&ResourceSample) -> u64) -> Option<Rise> {
        let (before, after) = self.around(span)?;
        let over_ns = after.at_ns - before.at_ns;
        let amount = figure(after).saturating_sub(figure(before));
        (over_ns > 0).then_some(Rise { amount, over_ns })
    }

    /// The span that [`Self::rise`] is over.
    #[must_use]
    pub fn enclosing(&self, span: Span) -> Option<Span> {
        let (before, after) = self.around(span)?;
        Some(Span::between(before.at_ns, after.at_ns))
    }

    /// The samples that enclose a span.
    fn around(&self, span: Span) -> Option<(&ResourceSample, &ResourceSample)> {
        let Span { from_ns, to_ns } = span;
        let samples = &self.samples;
        let before = samples.iter().rfind(|sample| sample.at_ns <= from_ns).or(samples.first())?;
        let after = samples.iter().find(|sample| sample.at_ns >= to_ns).or(samples.last())?;
        Some((before, after))
    }

    /// The use of the nth of [`ResourceSeries::core_cpus`] in [0, 1] in a span, by whatever process.
    #[must_use]
    pub fn core_share(&self, nth: usize, span: Span) -> Option<f64> {
        self.samples.first()?.cores_used_ns.get(nth)?;
        let figure = |sample: &ResourceSample| sample.cores_used_ns.get(nth).copied().unwrap_or(0);
        let used_ns = self.growth(span, figure)?;
        (span.length_ns() > 0).then(|| used_ns as f64 / span.length_ns() as f64)
    }

    /// The server's CPU use in [0, 1] of what it was given, in a span.
    #[must_use]
    pub fn busy_share(&self, span: Span) -> Option<f64> {
        self.share_of_cpus(span, |sample| sample.cpu_ns)
    }

    /// A time of its CPUs as a share of all of their time in a span.
    fn share_of_cpus(&self, span: Span, figure: fn(&ResourceSample) -> u64) -> Option<f64> {
        let available = span.length_ns() as f64 * self.cpus.max(1) as f64;
        Some(self.growth(span, figure)? as f64 / available)
    }

    /// [`Self::busy_share`] with the time of interrupts on its CPUs, where the kernel does not count that as the time
    /// of its threads: what it left of its CPUs is the rest. It may be above 1 by the error of the kernel's ticks.
    #[must_use]
    pub fn used_share(&self, span: Span) -> Option<f64> {
        self.with_own_interrupts(self.busy_share(span)?, span)
    }

    /// A share that its threads used of its CPUs, with the interrupts there in a span.
    pub(crate) fn with_own_interrupts(&self, own: f64, span: Span) -> Option<f64> {
        let irq = self.share_of_cpus(span, |sample| sample.irq_ns)?;
        let used = self.share_of_cpus(span, |sample| sample.cpus_used_ns)?;
        Some(with_interrupts(own, irq, used, self.irq_apart))
    }

    /// Of the time in a span for which threads of the server could run, the share for which they had no
    /// CPU, in [0, 1]; `None` where the kernel does not say.
    #[must_use]
    pub fn waited_share(&self, span: Span) -> Option<f64> {
        self.samples.first()?.waited_ns?;
        let waited = self.growth(span, |sample| sample.waited_ns.unwrap_or(0))? as f64;
        let ran = self.cpu_ns(span)? as f64;
        Some(share_of_waiting(waited, ran))
    }

    /// The largest memory figure, octets.
    #[must_use]
    pub fn peak_memory_octets(&self) -> Option<u64> {
        self.samples.iter().map(|sample| sample.memory_octets).max()
    }

    /// The memory figure of the first sample that is not before an instant, octets.
    #[must_use]
    pub fn memory_from_octets(&self, at_ns: i64) -> Option<u64> {
        Some(self.samples.get(self.first_from(at_ns))?.memory_octets)
    }

    /// The largest memory figure of the samples in a span, its end left out, octets; `None` if no sample is
    /// in it.
    #[must_use]
    pub fn peak_memory_in_octets(&self, span: Span) -> Option<u64> {
        let inside = &self.samples[self.first_from(span.from_ns)..];
        let inside = inside.iter().take_while(|sample| sample.at_ns < span.to_ns);
        inside.map(|sample| sample.memory_octets).max()
    }

    /// A figure at an instant, linearly between the samples around it.
    fn interpolate(&self, at_ns: i64, value: impl Fn(&ResourceSample) -> u64) -> Option<f64> {
        let after = self.first_from(at_ns);
        let right = self.samples.get(after)?;
        if right.at_ns == at_ns {
            return Some(value(right) as f64);
        }
        let left = &self.samples[after.checked_sub(1)?];
        let share = (at_ns - left.at_ns) as f64 / (right.at_ns - left.at_ns) as f64;
        Some(value(left) as f64 + share * (value(right) as f64 - value(left) as f64))
    }

    /// Place of the first sample that is not before an instant; their number if all are. It is asked for
    /// each interval of a run, so it does not look at all samples.
    fn first_from(&self, at_ns: i64) -> usize {
        self.samples.partition_point(|sample| sample.at_ns < at_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_have_been_seen_is_a_fault() {
        let at = |at_ns, cpu_ns| ResourceSample { at_ns, cpu_ns, ..ResourceSample::default() };
        let series = |samples: &[ResourceSample]| ResourceSeries {
            samples: samples.to_vec(),
            ..ResourceSeries::default()
        };
        assert_eq!(series(&[at(-5, 0), at(0, 7), at(9, 7)]).fault(), None);
        let fault = |seen: ResourceSeries| seen.fault().unwrap_or("none");
        assert_eq!(fault(series(&[at(1, 0), at(0, 0)])), "its samples are not in order of time");
        assert_eq!(fault(series(&[at(i64::MIN, 0)])), "its samples are from another time");
        assert_eq!(fault(series(&[at(0, 7), at(1, 6)])), "its CPU time falls");
        let many = ResourceSeries { core_cpus: vec![0; 33], ..ResourceSeries::default() };
        assert_eq!(fault(many), "it has too many CPUs");
        let long = ResourceSeries { cpu_source: "x".repeat(5_000), ..ResourceSeries::default() };
        assert_eq!(fault(long), "it has too much text");
        let share = CpuShare { cpu: 0, used: f64::NAN, irq: 0.0 };
        let none = ResourceSeries { load_cpus: vec![share], ..ResourceSeries::default() };
        assert_eq!(fault(none), "a share of it is none");
    }

    /// One CPU for 100 ns: 60 of the server's threads without interrupts, 20 of interrupts, `others` of
    /// other threads.
    #[track_caller]
    fn check_used(irq_apart: Option<bool>, own: u64, others: u64, expected: f64) {
        let last = ResourceSample {
            at_ns: 100,
            cpu_ns: own,
            irq_ns: 20,
            cpus_used_ns: 80 + others,
            ..ResourceSample::default()
        };
        let series = ResourceSeries {
            cpus: 1,
            samples: vec![ResourceSample::default(), last],
            irq_apart,
            ..ResourceSeries::default()
        };
        assert_eq!(series.used_share(Span::between(0, 100)), Some(expected), "{irq_apart:?}");
    }

    #[test]
    fn interrupts_count_once_on_either_kind_of_kernel() {
        // Kept apart: the threads have 60. Else they have the 20 that interrupted them, too.
        check_used(Some(true), 60, 0, 0.8);
        check_used(Some(false), 80, 0, 0.8);
        check_used(Some(true), 60, 15, 0.8);
        check_used(Some(false), 80, 15, 0.8);
        // Not known: right on both where the server is alone, and bounded by what there was.
        check_used(None, 60, 0, 0.8);
        check_used(None, 80, 0, 0.8);
        check_used(None, 80, 15, 0.95);
        // A record that does not have it.
        let series = ResourceSeries {
            cpus: 1,
            samples: vec![
                ResourceSample::default(),
                ResourceSample { at_ns: 100, cpu_ns: 60, ..ResourceSample::default() },
            ],
            ..ResourceSeries::default()
        };
        assert_eq!(series.used_share(Span::between(0, 100)), Some(0.6));
    }

    #[test]
    fn a_rise_is_between_the_samples_around() {
        let sample = |at_ns, cpu_ns| ResourceSample { at_ns, cpu_ns, ..ResourceSample::default() };
        let samples = vec![sample(0, 10), sample(100, 30), sample(200, 70), sample(300, 80)];
        let series = ResourceSeries { samples, ..ResourceSeries::default() };
        let cases = [
            ((110, 190), (100, 200), 40),
            ((100, 200), (100, 200), 40),
            ((-50, 350), (0, 300), 70),
        ];
        for ((from, to), (before, after), amount) in cases {
            let span = Span::between(from, to);
            assert_eq!(series.enclosing(span), Some(Span::between(before, after)));
            let rise = series.rise(span, |at| at.cpu_ns).unwrap();
            assert_eq!((rise.amount, rise.over_ns), (amount, after - before));
        }
        assert_eq!(ResourceSeries::default().enclosing(Span::between(0, 1)), None);
    }

    #[test]
    fn each_core_has_its_share() {
        let sample = |at_ns, cores_used_ns| ResourceSample {
            at_ns,
            cores_used_ns,
            ..ResourceSample::default()
        };
        let series = ResourceSeries {
            core_cpus: vec![0, 3],
            samples: vec![sample(0, vec![0, 50]), sample(100, vec![100, 75])],
            ..ResourceSeries::default()
        };
        let window = Span::between(0, 100);
        assert_eq!(series.core_share(0, window), Some(1.0));
        assert_eq!(series.core_share(1, window), Some(0.25));
        assert_eq!(series.core_share(2, window), None);
        assert_eq!(series.core_share(0, Span::between(0, 101)), None);
    }

    #[test]
    fn cpu_is_interpolated_and_never_invented() {
        let sample = |at_ns, cpu_ns| ResourceSample { at_ns, cpu_ns, ..ResourceSample::default() };
        let series = ResourceSeries {
            cpus: 2,
            samples: vec![sample(-100, 0), sample(100, 200), sample(200, 200)],
            ..ResourceSeries::default()
        };
        assert_eq!(series.cpu_ns(Span::between(0, 100)), Some(100));
        assert_eq!(series.busy_share(Span::between(0, 100)), Some(0.5));
        assert_eq!(series.cpu_ns(Span::between(0, 201)), None);
        assert_eq!(series.cpu_ns(Span::between(-101, 0)), None);
        let time = |sample: &ResourceSample| (sample.at_ns + 100) as u64;
        assert_eq!(series.growth(Span::between(-50, 130), time), Some(180));
        assert_eq!(series.growth(Span::between(-50, 201), time), None);
    }

    #[test]
    fn two_samples_of_a_million_are_looked_at() {
        let sample = |at_ns| ResourceSample { at_ns, cpu_ns: 2, ..ResourceSample::default() };
        let samples = (0..1_000_000).map(sample).collect();
        let series = ResourceSeries { samples, ..ResourceSeries::default() };
        let read = std::cell::Cell::new(0);
        let counted = |sample: &ResourceSample| {
            read.set(read.get() + 1);
            sample.at_ns as u64
        };
        assert_eq!(series.growth(Span::between(17, 999_998), counted), Some(999_981));
        assert_eq!(read.get(), 2);
    }

    #[test]
    fn a_peak_is_that_of_its_span() {
        let sample = |at_ns, memory_octets| ResourceSample {
            at_ns,
            memory_octets,
            ..ResourceSample::default()
        };
        let samples = vec![sample(-5, 9), sample(0, 1), sample(5, 3), sample(10, 8)];
        let series = ResourceSeries { samples, ..ResourceSeries::default() };
        let peak = |from, to| series.peak_memory_in_octets(Span::between(from, to));
        assert_eq!((peak(-5, 10), peak(0, 10), peak(0, 11)), (Some(9), Some(3), Some(8)));
        assert_eq!((peak(1, 5), peak(11, 20), peak(5, 5)), (None, None, None));
    }

    #[test]
    fn a_rise_is_that_of_the_enclosing_samples() {
        let sample = |at_ns, udp_drops| ResourceSample { at_ns, udp_drops, ..Default::default() };
        let samples = vec![sample(0, 1), sample(10, 2), sample(20, 4), sample(30, 8)];
        let series = ResourceSeries { samples, ..ResourceSeries::default() };
        for (span, amount, over_ns) in [
            (Span::between(10, 20), 2, 10),
            (Span::between(11, 19), 2, 10),
            (Span::between(15, 25), 6, 20),
            (Span::between(-5, 99), 7, 30),
        ] {
            let found = series.rise(span, |sample| sample.udp_drops);
            assert_eq!(found, Some(Rise { amount, over_ns }), "{span:?}");
        }
        let empty = ResourceSeries::default();
        assert_eq!(empty.rise(Span::between(0, 9), |sample| sample.udp_drops), None);
    }
}
