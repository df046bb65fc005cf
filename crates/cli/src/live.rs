//! The live view of a session: a bar and the last interval's figures, or plain lines where nobody
//! watches.

use std::time::Duration;

use dnslab_experiment::{Experiment, Observer, START_AND_STOP};
use dnslab_measure::{CaseId, Interval, RunRecord, RunStatus};
use dnslab_report::{limit_name, number};
use indicatif::{ProgressBar, ProgressStyle};

use crate::terminal;

/// What is shown while runs are under way.
pub(crate) struct Live<'a> {
    experiment: &'a Experiment,
    bar: ProgressBar,
    /// `[3/9] tcp, run 1`.
    run: String,
}

impl<'a> Live<'a> {
    /// A view for runs that will take `estimated` altogether.
    pub(crate) fn new(experiment: &'a Experiment, estimated: Duration) -> Self {
        let bar = if terminal::is_live() {
            ProgressBar::new(u64::try_from(estimated.as_millis()).unwrap_or(u64::MAX))
        } else {
            ProgressBar::hidden()
        };
        let style = ProgressStyle::with_template("{bar:24} {elapsed} of about {prefix}  {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_prefix(format!("{:.0}s", estimated.as_secs_f64()));
        bar.set_style(style.progress_chars("━━─"));
        Self { experiment, bar, run: String::new() }
    }

    /// The bar goes away; what was printed above it stays.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn print(&self, line: String) {
        if self.bar.is_hidden() {
            say!("{line}");
        } else {
            self.bar.println(line);
        }
    }
}

impl Observer for Live<'_> {
    fn run_begins(&mut self, case: &CaseId, number: usize, count: usize) {
        self.run = format!("[{number}/{count}] {}, run {}", case.variant, case.repetition);
        self.bar.set_message(format!("{}: starting the server", self.run));
        let lasts = self.experiment.variant(&case.variant).map_or(Duration::ZERO, |variant| {
            variant.load.warm_up + variant.load.duration + START_AND_STOP
        });
        let done = (number as u64 - 1) * u64::try_from(lasts.as_millis()).unwrap_or(0);
        self.bar.set_position(done);
    }

    fn interval(&mut self, interval: &Interval) {
        self.bar.inc(interval.length_ns / 1_000_000);
        let p99 = interval.p99_ns.map_or_else(|| "-".to_owned(), |ns| number::duration(ns as f64));
        let qps = number::qps(interval.answered_qps());
        let lost = number::count(interval.lost);
        self.bar.set_message(format!("{}: {qps} qps, p99 {p99}, lost {lost}", self.run));
    }

    fn run_ends(&mut self, record: &RunRecord) {
        let outcome = match (&record.status, &record.measured) {
            (RunStatus::Valid, Some(measured)) => {
                let qps = number::qps(measured.answered_qps());
                let p99 = measured.latency.quantile_ns(0.99).unwrap_or(0);
                let p99 = number::duration(p99 as f64);
                let lost = number::share(measured.counters.outcomes.lost_share());
                let limit = limit_name(record.limit.kind);
                format!("{qps} qps, p99 {p99}, lost {lost}, limit: {limit}")
            }
            (RunStatus::Invalid { reason }, _) => format!("INVALID: {reason}"),
            (RunStatus::Failed { reason, .. }, _) => format!("FAILED: {reason}"),
            (RunStatus::Valid, None) => "nothing was measured".to_owned(),
        };
        self.print(format!("{}: {outcome}", self.run));
    }
}
