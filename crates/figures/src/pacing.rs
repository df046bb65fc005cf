//! How close to its schedule an open loop sent, in windows of four widths.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Widths of the windows in milliseconds, the widest first: 1 s is the rate that people ask for,
/// 1 ms is about what a server's socket buffer smooths out.
const WIDTHS_MS: [u32; 4] = [1_000, 100, 10, 1];

/// An error is kept in parts of a million: the smallest that a window of 1 s can have at a million
/// queries per second.
const PARTS: f64 = 1e6;

/// The largest error that a quantile can name, in parts of a million: a thousand times as many
/// queries as were due. Larger ones are named as this; [`PacingWindow::max_error`] is exact.
const MAX_PARTS: u64 = 1_000_000_000;

/// How close to its schedule an open loop sent.
///
/// The error of a window is the difference between the queries sent in it and those due in it, as a
/// share of those due: |sent - due| / due. A query that is sent a little late may fall into the
/// next window, so where few are due in a window, one of them is a large share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Pacing {
    /// The errors in windows of 1 s, 100 ms, 10 ms and 1 ms, in this order.
    pub windows: Vec<PacingWindow>,
}

impl Pacing {
    /// The errors in windows of this width in nanoseconds, if they were looked at.
    #[must_use]
    pub fn of_width(&self, width_ns: u64) -> Option<&PacingWindow> {
        self.windows.iter().find(|window| window.width_ns == width_ns)
    }

    /// The pacing of several runs in one: counts are sums, means are over all windows, quantiles and
    /// the largest error are those of the worst run. `None` without a run.
    #[must_use]
    pub fn of_runs<'a>(runs: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut runs = runs.into_iter();
        let mut all = runs.next()?.clone();
        for run in runs {
            for other in &run.windows {
                match all.windows.iter_mut().find(|own| own.width_ns == other.width_ns) {
                    Some(own) => own.add_run(other),
                    None => all.windows.push(other.clone()),
                }
            }
        }
        Some(all)
    }
}

/// The errors in windows of one width. All of them are 0 if there was no window to look at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PacingWindow {
    /// Width of a window, nanoseconds.
    pub width_ns: u64,
    /// Windows that lie wholly in the measured window and in which something was due.
    pub windows: u64,
    /// Windows in which nothing was due. They have no relative error and are in no other figure.
    #[serde(default)]
    pub without_due: u64,
    /// Queries that were due in all those windows.
    #[serde(default)]
    pub due: u64,
    /// Windows whose error is at most 1 %.
    #[serde(default)]
    pub within_1_percent: u64,
    /// Mean error.
    pub mean_error: f64,
    /// Median error; as all quantiles here, within 0.1 % of itself and never too large.
    pub p50_error: f64,
    /// The error that 99 of 100 windows do not exceed.
    pub p99_error: f64,
    /// The largest error.
    pub max_error: f64,
}

impl PacingWindow {
    /// The share of the windows whose error is at most 1 %, in [0, 1]; `None` without a window.
    #[must_use]
    pub fn share_within_1_percent(&self) -> Option<f64> {
        (self.windows > 0).then(|| self.within_1_percent as f64 / self.windows as f64)
    }

    fn add_run(&mut self, other: &Self) {
        let errors = |pacing: &Self| pacing.mean_error * pacing.windows as f64;
        let windows = self.windows + other.windows;
        self.mean_error = (errors(self) + errors(other)) / windows.max(1) as f64;
        self.windows = windows;
        self.without_due += other.without_due;
        self.due += other.due;
        self.within_1_percent += other.within_1_percent;
        self.p50_error = self.p50_error.max(other.p50_error);
        self.p99_error = self.p99_error.max(other.p99_error);
        self.max_error = self.max_error.max(other.max_error);
    }

    /// Queries due in a window on average; `None` without a window.
    #[must_use]
    pub fn mean_due(&self) -> Option<f64> {
        (self.windows > 0).then(|| self.due as f64 / self.windows as f64)
    }
}

/// Adds up a [`Pacing`] millisecond by millisecond, in constant memory (about 350 KiB).
#[derive(Clone, Debug)]
pub struct PacingTally {
    widths: [WidthTally; WIDTHS_MS.len()],
}

impl Default for PacingTally {
    fn default() -> Self {
        Self::new()
    }
}

impl PacingTally {
    /// Nothing seen yet.
    #[must_use]
    pub fn new() -> Self {
        Self { widths: WIDTHS_MS.map(WidthTally::new) }
    }

    /// Adds the next millisecond of the measured window: the queries of all workers that were due
    /// in it, and those that were sent in it, whenever they were due. To be called once for each
    /// millisecond, in order, also for those in which nothing happened.
    pub fn push(&mut self, due: u32, sent: u32) {
        for width in &mut self.widths {
            width.push(due, sent);
        }
    }

    /// The errors; windows that have begun but not ended are left out.
    #[must_use]
    pub fn finish(&self) -> Pacing {
        Pacing { windows: self.widths.iter().map(WidthTally::finish).collect() }
    }
}

/// The windows of one width: the one that has begun, and the errors of those that have ended.
#[derive(Clone, Debug)]
struct WidthTally {
    width_ms: u32,
    /// Milliseconds of the window that has begun.
    elapsed_ms: u32,
    due: u64,
    sent: u64,
    /// What is known of the ended windows; mean and quantiles are still missing.
    ended: PacingWindow,
    /// Sum of their errors.
    errors: f64,
    /// Their errors in parts of a million.
    parts: Histogram<u32>,
}

impl WidthTally {
    /// No window of this width has begun.
    fn new(width_ms: u32) -> Self {
        let parts = Histogram::new_with_bounds(1, MAX_PARTS, 3);
        Self {
            width_ms,
            elapsed_ms: 0,
            due: 0,
            sent: 0,
            ended: PacingWindow {
                width_ns: u64::from(width_ms) * 1_000_000,
                ..PacingWindow::default()
            },
            errors: 0.0,
            parts: parts.expect("the bounds are constants that HdrHistogram accepts"),
        }
    }

    /// Adds a millisecond to the window that has begun, and ends it when it is whole.
    fn push(&mut self, due: u32, sent: u32) {
        self.due += u64::from(due);
        self.sent += u64::from(sent);
        self.elapsed_ms += 1;
        if self.elapsed_ms == self.width_ms {
            self.end_window();
        }
    }

    /// Judges the window that is whole now; the next one begins empty.
    fn end_window(&mut self) {
        let (due, sent) = (std::mem::take(&mut self.due), std::mem::take(&mut self.sent));
        self.elapsed_ms = 0;
        if due == 0 {
            self.ended.without_due += 1;
            return;
        }
        let difference = due.abs_diff(sent);
        let error = difference as f64 / due as f64;
        self.ended.windows += 1;
        self.ended.due += due;
        // In whole numbers, so that one of a hundred is within 1 %.
        self.ended.within_1_percent += u64::from(difference * 100 <= due);
        self.ended.max_error = self.ended.max_error.max(error);
        self.errors += error;
        self.parts.saturating_record((error * PARTS).round() as u64);
    }

    fn finish(&self) -> PacingWindow {
        let quantile = |quantile| {
            let parts = self.parts.value_at_quantile(quantile);
            self.parts.lowest_equivalent(parts) as f64 / PARTS
        };
        PacingWindow {
            mean_error: self.errors / self.ended.windows.max(1) as f64,
            p50_error: quantile(0.5),
            p99_error: quantile(0.99),
            ..self.ended.clone()
        }
    }
}

#[cfg(test)]
mod tests;
