//! The live view of a session: a bar with the figures of the last interval, or plain lines if nobody watches.

use std::time::Duration;

use dnslab_experiment::Observer;
use dnslab_measure::{CaseId, Compared, Interval, RunRecord, RunStatus};
use dnslab_report::{bottleneck_name, invalid_text, number};
use indicatif::{ProgressBar, ProgressStyle};

use crate::arguments::Output;
use crate::terminal;

pub(crate) struct Live {
    bar: ProgressBar,
    /// `[3/9] tcp, run 1`, or `round 2`.
    run: String,
    /// Number of runs, and the time that all of them take.
    runs: usize,
    estimated: Duration,
    /// Number of the next run that ends, and number of all runs.
    next: (usize, usize),
    output: Output,
}

impl Live {
    /// `estimated` is the time of all runs together.
    pub(crate) fn new(runs: usize, estimated: Duration, output: Output) -> Self {
        let length = u64::try_from(estimated.as_millis()).unwrap_or(u64::MAX);
        let bar = terminal::bar(ProgressBar::new(length), output);
        let style = ProgressStyle::with_template("{bar:24} {elapsed} of about {prefix}  {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_prefix(format!("{:.0}s", estimated.as_secs_f64()));
        bar.set_style(style.progress_chars("━━─"));
        Self { bar, run: String::new(), runs, estimated, next: (1, runs), output }
    }

    /// Removes the bar. Lines printed above it stay.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// While the bar is shown, only lines about failures are printed.
    fn print(&self, line: &str, is_valid: bool) {
        if self.bar.is_hidden() || !is_valid {
            terminal::print_above(&self.bar, line, self.output);
        }
    }
}

impl Observer for Live {
    fn trial_begins(&mut self) {
        self.bar.set_message("a short trial, for the rate of the common load");
    }

    fn round_begins(&mut self, cases: &[CaseId], number: usize, count: usize) {
        self.run = match cases {
            [case] => format!("[{number}/{count}] {}, run {}", case.variant, case.repetition),
            [first, ..] => format!("[{number}/{count}] round {}", first.repetition),
            [] => String::new(),
        };
        self.next = (number, count);
        self.bar.set_message(format!("{}: starting the servers", self.run));
        let lasts = self.estimated.as_millis() as f64 / self.runs.max(1) as f64;
        let done = self.runs.saturating_sub(count + 1 - number) as f64;
        self.bar.set_position((done * lasts) as u64);
    }

    fn interval(&mut self, case: &CaseId, interval: &Interval) {
        let own_ns = interval.own_ns.unwrap_or(interval.length_ns);
        self.bar.inc(own_ns / 1_000_000);
        let p99 = interval.p99_ns.map_or_else(|| "-".to_owned(), |ns| number::duration(ns as f64));
        let qps = number::qps(interval.answered_qps());
        let lost = number::count(interval.lost);
        let (run, variant) = (&self.run, &case.variant);
        self.bar.set_message(format!("{run}, {variant}: {qps} qps, p99 {p99}, lost {lost}"));
    }

    fn comparison_begins(&mut self, pair: &Compared) {
        let Compared { variant, against } = pair;
        self.bar.set_message(format!("{variant}: comparing its answers with those of {against}"));
    }

    fn run_ends(&mut self, record: &RunRecord) {
        let outcome = match (&record.status, &record.measured) {
            (RunStatus::Valid, Some(measured)) => {
                let qps = number::qps(measured.answered_qps());
                let p99 = measured.latency.quantile_ns(0.99).unwrap_or(0);
                let p99 = number::duration(p99 as f64);
                let lost = number::share(measured.counters.outcomes.lost_share());
                let bottleneck = bottleneck_name(record.bottleneck.kind);
                format!("{qps} qps, p99 {p99}, lost {lost}, bottleneck: {bottleneck}")
            }
            (RunStatus::Invalid { reason }, _) => format!("INVALID: {}", invalid_text(reason)),
            (RunStatus::Failed { reason, .. }, _) => format!("FAILED: {reason}"),
            (RunStatus::Valid, None) => "nothing was measured".to_owned(),
        };
        let (number, count) = self.next;
        self.next.0 += 1;
        let run = format!("[{number}/{count}] {}, run {}", record.variant, record.repetition);
        self.print(&format!("{run}: {outcome}"), record.status == RunStatus::Valid);
    }
}
