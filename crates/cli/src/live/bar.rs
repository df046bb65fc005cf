//! A bar with the figures of the last interval, where the terminal is too small for the view.

use std::time::Duration;

use dnslab_record::{LiveLoad, visible_lines};
use dnslab_report::number;
use dnslab_wire::units::duration;
use indicatif::{ProgressBar, ProgressStyle};

pub(super) struct Bar {
    bar: ProgressBar,
    /// What runs: `[3/9] tcp, run 1`, or a step of a search.
    run: String,
    /// Number of runs, and the time that all of them take.
    runs: usize,
    estimated: Duration,
}

impl Bar {
    /// `estimated` is the time of all runs together.
    pub(super) fn of_runs(runs: usize, estimated: Duration) -> Self {
        let length = u64::try_from(estimated.as_millis()).unwrap_or(u64::MAX);
        let bar = ProgressBar::new(length);
        let style = ProgressStyle::with_template("{bar:24} {elapsed} of about {prefix}  {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_prefix(duration::spoken(estimated));
        bar.set_style(style.progress_chars("━━─"));
        Self { bar, run: String::new(), runs, estimated }
    }

    pub(super) fn of_search() -> Self {
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{elapsed}  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        Self { bar, run: String::new(), runs: 0, estimated: Duration::ZERO }
    }

    /// A round begins; these runs and those after it are left.
    pub(super) fn round_begins(&mut self, run: &str, left: usize) {
        run.clone_into(&mut self.run);
        self.bar.set_message(format!("{run}: starting the servers"));
        let lasts = self.estimated.as_millis() as f64 / self.runs.max(1) as f64;
        let done = self.runs.saturating_sub(left) as f64;
        self.bar.set_position((done * lasts) as u64);
    }

    pub(super) fn step_begins(&mut self, step: &str) {
        step.clone_into(&mut self.run);
        self.bar.set_message(step.to_owned());
    }

    pub(super) fn interval(&self, variant: Option<&str>, live: &LiveLoad<'_>) {
        let interval = &live.latest.interval;
        let own_ns = interval.own_ns.unwrap_or(interval.length_ns);
        self.bar.inc(own_ns / 1_000_000);
        let p99 = interval.p99_ns.map_or_else(|| "-".to_owned(), |ns| number::duration(ns as f64));
        let qps = number::qps(interval.answered_qps());
        let lost = number::count(interval.lost);
        let variant = variant.map_or_else(String::new, |variant| format!(", {variant}"));
        let run = &self.run;
        self.bar.set_message(format!("{run}{variant}: {qps} qps, p99 {p99}, lost {lost}"));
    }

    pub(super) fn say(&self, text: String) {
        self.bar.set_message(text);
    }

    pub(super) fn print_above(&self, line: &str) {
        self.bar.println(visible_lines(line));
    }
}

impl Drop for Bar {
    /// Removes the bar. Lines printed above it stay.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
