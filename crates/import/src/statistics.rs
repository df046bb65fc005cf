//! A run of another tool, whatever it was read from.

use std::collections::BTreeMap;

use dnslab_figures::{Histogram, LatencyBucket};
use dnslab_record::{ImportedConnections, ImportedLatency};

use super::{DnsperfOptions, ImportError, MAX_NS};

/// A run of another load generator as its output tells it. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForeignRun {
    /// Where it begins in its file, a line from 1.
    pub line: usize,
    /// Name of the tool: `dnsperf`.
    pub generator: String,
    /// Its version; empty when unknown.
    pub version: String,
    /// Its command line, without secrets; empty when unknown.
    pub command: Vec<String>,
    /// What the command line asks for.
    pub options: DnsperfOptions,
    /// Address and port of the server, `127.0.0.1:53`; empty when unknown.
    pub target: String,
    /// When it began as its output has it, without a zone: `2026-11-25T01:36:25`; empty when unknown.
    pub started_local: String,
    /// When it began, nanoseconds since 1970 in UTC; `None` when unknown.
    pub started_ns: Option<u64>,
    /// Why it ended, in its words; empty when unknown.
    pub ended: String,
    /// What it counted from its beginning to its end.
    pub totals: ForeignStatistics,
    /// The connections; `None` over UDP and when unknown.
    pub connections: Option<ImportedConnections>,
    /// Its intervals, in order of time; none if it was not asked for them.
    pub intervals: Vec<ForeignInterval>,
    /// Whether the intervals have all their figures; else they have answers alone.
    pub has_whole_intervals: bool,
}

/// What another tool counted in a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForeignStatistics {
    /// Length of that time, nanoseconds.
    pub length_ns: u64,
    /// Queries sent.
    pub sent: u64,
    /// Queries answered.
    pub completed: u64,
    /// Queries timed out.
    pub lost: u64,
    /// Queries without an outcome, because the tool was interrupted.
    pub interrupted: u64,
    /// Answers that no query waited for; `None` when they are not counted.
    pub unexpected: Option<u64>,
    /// Answers by response code.
    pub rcodes: BTreeMap<String, u64>,
    /// Mean length of queries and of answers, octets, rounded down; `None` when unknown.
    pub mean_octets: Option<(u64, u64)>,
    /// Latencies of the answered queries; `None` without an answer.
    pub latency: Option<ImportedLatency>,
    /// Those latencies as a histogram; none if it was not asked for.
    pub buckets: Vec<LatencyBucket>,
}

/// What another tool counted in an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForeignInterval {
    /// Where it begins, nanoseconds since the beginning of the run.
    pub at_ns: u64,
    /// What was counted.
    pub counted: ForeignStatistics,
}

impl ForeignRun {
    /// Checks that the intervals have no more answers than the whole.
    ///
    /// # Errors
    /// When they have.
    pub(super) fn check_sum(&self) -> Result<(), ImportError> {
        /// Intervals are counted by threads one after another, and rates have six digits.
        const ROUNDING: f64 = 0.001;
        let counts = self.intervals.iter().map(|interval| interval.counted.completed);
        let parts = counts.fold(0, u64::saturating_add);
        let whole = self.totals.completed;
        let allowed = (ROUNDING * whole as f64) as u64 + self.intervals.len() as u64;
        match parts <= whole.saturating_add(allowed) {
            true => Ok(()),
            false => {
                let what = "answers of the intervals";
                Err(ImportError::Unbalanced { line: self.line, what, parts, whole })
            }
        }
    }
}

impl ForeignStatistics {
    /// The buckets as a histogram: each answer in the middle of its bucket.
    #[must_use]
    pub fn histogram(&self) -> Histogram {
        let mut histogram = Histogram::new();
        for bucket in &self.buckets {
            let middle = bucket.from_ns + bucket.to_ns.saturating_sub(bucket.from_ns) / 2;
            histogram.record_many_ns(middle, bucket.count);
        }
        histogram
    }

    /// Checks the sums of a whole run of dnsperf, whose statistics begin in `line`.
    ///
    /// # Errors
    /// When the outcomes are not those of the queries sent, or codes or buckets not those of the answers.
    pub(super) fn check(&self, line: usize) -> Result<(), ImportError> {
        self.check_outcomes(line)?;
        let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0, u64::saturating_add);
        let codes = sum(&mut self.rcodes.values().copied());
        if !self.rcodes.is_empty() || self.completed == 0 {
            balanced(line, "answers by response code", codes, self.completed)?;
        }
        if !self.buckets.is_empty() {
            let counts = sum(&mut self.buckets.iter().map(|bucket| bucket.count));
            balanced(line, "answers of the latency histogram", counts, self.completed)?;
        }
        Ok(())
    }

    /// Checks that each query of a whole run has one outcome, in statistics that begin in `line`.
    ///
    /// # Errors
    /// When the outcomes are not those of the queries sent.
    pub(super) fn check_outcomes(&self, line: usize) -> Result<(), ImportError> {
        if self.length_ns > MAX_NS {
            let found = format!("{} s", self.length_ns / 1_000_000_000);
            return Err(ImportError::Value { line, key: "Run time (s)", found });
        }
        let outcomes = [self.completed, self.lost, self.interrupted];
        let settled = outcomes.into_iter().fold(0, u64::saturating_add);
        balanced(line, "queries completed, lost and interrupted", settled, self.sent)
    }

    /// Checks the rate that is printed for a whole run, answers a second.
    ///
    /// # Errors
    /// When it is not that of the answers and the run time.
    pub(super) fn check_rate(&self, line: usize, printed: f64) -> Result<(), ImportError> {
        /// More than six digits of a time and of a rate are off by, where there is a millisecond.
        const ROUNDING: f64 = 0.01;
        /// A run time is printed in whole microseconds.
        const SHORT_NS: u64 = 1_000_000;
        let seconds = self.length_ns as f64 / 1e9;
        let rate = self.completed as f64 / seconds;
        let is_off = (rate - printed).abs() > ROUNDING * rate.max(printed);
        if self.length_ns < SHORT_NS || !is_off {
            return Ok(());
        }
        Err(ImportError::Rate { line, answers: self.completed, seconds, rate, printed })
    }

    /// Adds what was counted right after, or by another thread meanwhile; the length stays. The mean latency
    /// is weighted by the answers.
    pub(super) fn add(&mut self, other: &Self) {
        self.latency = match (self.latency, other.latency) {
            (Some(own), Some(more)) => Some(together(own, self.completed, more, other.completed)),
            (own, more) => own.or(more),
        };
        self.mean_octets = match (self.mean_octets, other.mean_octets) {
            (Some(own), Some(more)) => Some((own.0.max(more.0), own.1.max(more.1))),
            (own, more) => own.or(more),
        };
        for (sum, more) in [
            (&mut self.sent, other.sent),
            (&mut self.completed, other.completed),
            (&mut self.lost, other.lost),
            (&mut self.interrupted, other.interrupted),
        ] {
            *sum = sum.saturating_add(more);
        }
        self.unexpected = match (self.unexpected, other.unexpected) {
            (Some(own), Some(more)) => Some(own.saturating_add(more)),
            (own, more) => own.or(more),
        };
        for (code, count) in &other.rcodes {
            let sum = self.rcodes.entry(code.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
        self.buckets.extend(&other.buckets);
    }
}

fn balanced(line: usize, what: &'static str, parts: u64, whole: u64) -> Result<(), ImportError> {
    match parts == whole {
        true => Ok(()),
        false => Err(ImportError::Unbalanced { line, what, parts, whole }),
    }
}

/// The latencies of two parts with these numbers of answers. Of the two standard deviations and the two means
/// follows that of both (the sums of squares add up).
fn together(own: ImportedLatency, a: u64, more: ImportedLatency, b: u64) -> ImportedLatency {
    let (a, b) = (a as f64, b as f64);
    let all = (a + b).max(1.0);
    let mean_ns = (own.mean_ns * a + more.mean_ns * b) / all;
    let squares = |latency: ImportedLatency, count: f64| {
        let stddev = latency.stddev_ns.unwrap_or(0.0);
        stddev * stddev * (count - 1.0).max(0.0) + count * (latency.mean_ns - mean_ns).powi(2)
    };
    let has_stddev = own.stddev_ns.or(more.stddev_ns).is_some();
    let variance = (squares(own, a) + squares(more, b)) / (all - 1.0).max(1.0);
    let both = |a: Option<u64>, b: Option<u64>, pick: fn(u64, u64) -> u64| match (a, b) {
        (Some(a), Some(b)) => Some(pick(a, b)),
        _ => None,
    };
    ImportedLatency {
        mean_ns,
        min_ns: both(own.min_ns, more.min_ns, u64::min),
        max_ns: both(own.max_ns, more.max_ns, u64::max),
        stddev_ns: has_stddev.then(|| variance.sqrt()),
    }
}
