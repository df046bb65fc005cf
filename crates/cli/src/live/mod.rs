//! A load while it runs: a view that fills the terminal, a bar, or lines. All commands with a load have it.

mod bar;
mod bottleneck;
mod draw;
mod form;
mod held;
mod keys;
mod lines;
mod screen;
mod series;
mod sum;
#[cfg(test)]
mod told;
mod view;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use anyhow::Context as _;
use bar::Bar;
use dnslab_experiment::{CapacityObserver, Observer};
use dnslab_record::{
    CaseId, Compared, LiveLoad, LoadMode, OpenPace, Phase, RunRecord, RunStatus, Sought, Step,
};
use dnslab_report::{bottleneck_name, invalid_text, judged_text, number};
use dnslab_settings::{Experiment, Variant};
use dnslab_traffic::Pace;
use draw::Paint;
use form::{Form, Surroundings};
use screen::Screen;
use view::{Estimate, Kind, Model};

use crate::arguments::{Output, Watch};
use crate::exit::Failure;
pub(crate) use held::give_back;

/// Shows what happens until it is dropped. What a terminal keeps of it is printed then.
pub(crate) struct Live {
    began: Instant,
    model: Model,
    shown: Shown,
    /// Number of the next run that ends, and number of all runs.
    next: (usize, usize),
    search: Option<Searched>,
    /// What is printed when the screen is left.
    kept: Vec<String>,
}

enum Shown {
    Screen(Screen),
    Bar(Bar),
    Lines,
    Nothing,
}

/// What a search is for.
struct Searched {
    /// `qps`, or `outstanding`.
    unit: &'static str,
    /// The current step.
    step: String,
    /// The load of a step, but for its rate or its window.
    kind: Kind,
    is_rate: bool,
}

/// What was asked of the terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) watch: Watch,
    pub(crate) output: Output,
}

impl Live {
    /// For runs that take the time `all` together. `q` sets `stop`.
    ///
    /// # Errors
    /// When the view was asked for and is not possible.
    pub(crate) fn of_runs(
        experiment: &Experiment,
        (runs, all): (usize, Duration),
        wanted: Wanted,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        let model = Model::of_experiment(experiment, Estimate { runs, all });
        Self::new(model, None, || Bar::of_runs(runs, all), wanted, stop)
    }

    /// For a search with loads as that of this variant. `intent` says what is sought.
    ///
    /// # Errors
    /// As in [`Live::of_runs`].
    pub(crate) fn of_search(
        sought: &Sought,
        intent: &str,
        variant: &Variant,
        wanted: Wanted,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        let is_rate = matches!(sought, Sought::Rate(_));
        let unit = if is_rate { "qps" } else { "outstanding" };
        let kind = Kind::of(variant);
        let search = Searched { unit, step: String::new(), kind, is_rate };
        Self::new(Model::of_search(intent), Some(search), Bar::of_search, wanted, stop)
    }

    fn new(
        model: Model,
        search: Option<Searched>,
        bar: impl FnOnce() -> Bar,
        Wanted { watch, output }: Wanted,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        let began = Instant::now();
        let shown = match Form::choose(watch, output, Surroundings::find())? {
            Form::Screen => {
                let choice = AutoStream::choice(&std::io::stderr());
                let paint = Paint { has_colour: choice != ColorChoice::Never };
                let screen = Screen::start(began, Arc::clone(stop), paint);
                let screen = screen.context(
                    "cannot show the view on this terminal\n  hint:    use --plain for a line each second",
                )?;
                Shown::Screen(screen)
            }
            Form::Bar => Shown::Bar(bar()),
            Form::Lines => Shown::Lines,
            Form::Nothing => Shown::Nothing,
        };
        let mut live = Self { began, model, shown, next: (1, 1), search, kept: Vec::new() };
        live.update(true);
        Ok(live)
    }

    /// Shows the model as it is now.
    fn update(&mut self, must_show: bool) {
        if let Shown::Screen(screen) = &mut self.shown {
            screen.show(|| self.model.view(), must_show);
        }
    }

    fn heard(&mut self, variant: &str, live: &LiveLoad<'_>) {
        let latest = self.model.interval(variant, live, self.began.elapsed());
        match &self.shown {
            Shown::Lines => {
                if let Some(latest) = latest {
                    let width = self.model.name_width();
                    say!("{}", lines::line(&format!("{variant:<width$}"), &latest));
                }
            }
            Shown::Bar(bar) => bar.interval(self.search.is_none().then_some(variant), live),
            Shown::Screen(_) | Shown::Nothing => self.update(false),
        }
    }

    /// A run or a step is over. A terminal keeps the line if `is_kept`.
    fn ended(&mut self, variant: &str, line: String, is_valid: bool, is_kept: bool) {
        let rest = self.model.rest(variant);
        match &self.shown {
            Shown::Lines => {
                if let Some(rest) = rest {
                    let width = self.model.name_width();
                    say!("{}", lines::line(&format!("{variant:<width$}"), &rest));
                }
                say!("{line}");
            }
            Shown::Bar(bar) if is_kept => bar.print_above(&line),
            Shown::Screen(_) if is_kept => self.kept.push(line.clone()),
            Shown::Screen(_) | Shown::Bar(_) | Shown::Nothing => {}
        }
        self.model.ended(&line, is_valid);
        self.update(true);
    }

    fn say(&mut self, text: String) {
        if let Shown::Bar(bar) = &self.shown {
            bar.say(text);
        }
        self.update(true);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // First the terminal is given back. Without a screen nothing is kept.
        drop(std::mem::replace(&mut self.shown, Shown::Nothing));
        self.kept.iter().for_each(|line| say!("{line}"));
    }
}

impl Observer for Live {
    fn trial_begins(&mut self) {
        self.model.trial_begins();
        self.say("a short trial, for the rate of the common load".to_owned());
    }

    fn round_begins(&mut self, cases: &[CaseId], number: usize, count: usize) {
        self.next = (number, count);
        let run = self.model.round_begins(cases, (number, count), self.began.elapsed());
        if let Shown::Bar(bar) = &mut self.shown {
            bar.round_begins(&format!("[{number}/{count}] {run}"), count + 1 - number);
        }
        self.update(true);
    }

    fn interval(&mut self, case: &CaseId, live: &LiveLoad<'_>) {
        self.heard(&case.variant, live);
    }

    fn comparison_begins(&mut self, pair: &Compared) {
        let Compared { variant, against } = pair;
        self.model.comparison_begins(variant, against);
        self.say(format!("{variant}: comparing its answers with those of {against}"));
    }

    fn profile_begins(&mut self) {
        let name = "a round in which perf samples the servers";
        self.model.profile_begins(name, self.began.elapsed());
        self.say(name.to_owned());
    }

    fn run_ends(&mut self, record: &RunRecord) {
        let outcome = match (&record.status, &record.measured) {
            (RunStatus::Valid, Some(measured)) => {
                let rate = match measured.counters.outcomes.due {
                    1 => "1 query".to_owned(),
                    _ => format!("{} qps", number::qps(measured.answered_qps())),
                };
                let p99 = measured.latency.quantile_ns(0.99).unwrap_or(0);
                let p99 = number::duration(p99 as f64);
                let lost = number::share(measured.counters.outcomes.lost_share());
                let bottleneck = bottleneck_name(record.bottleneck.kind);
                format!("{rate}, p99 {p99}, lost {lost}, bottleneck: {bottleneck}")
            }
            (RunStatus::Invalid { reason }, _) => format!("INVALID: {}", invalid_text(reason)),
            (RunStatus::Failed { reason, .. }, _) => format!("FAILED: {reason}"),
            (RunStatus::Valid, None) => "nothing was measured".to_owned(),
        };
        let (number, count) = self.next;
        self.next.0 += 1;
        let line =
            format!("[{number}/{count}] {}, run {}: {outcome}", record.variant, record.repetition);
        let is_valid = record.status == RunStatus::Valid;
        self.ended(&record.variant, line, is_valid, !is_valid);
    }
}

impl CapacityObserver for Live {
    fn step_begins(&mut self, number: usize, phase: Phase, at: f64) {
        let Some(search) = &mut self.search else { return };
        search.step =
            format!("[{number:>3}] {:<7} {:>9} {}", phase.name(), number::qps(at), search.unit);
        let mut kind = search.kind.clone();
        kind.name = format!("{} {}", number::qps(at), search.unit);
        kind.how.clear();
        if search.is_rate {
            kind.mode = LoadMode::Open { rate_qps: at, pace: OpenPace::constant(Pace::Constant) };
        } else {
            // All clients together have the window.
            kind.clients = 1;
            kind.mode = LoadMode::Closed { outstanding: at as u32 };
        }
        let name = format!("step {number}, {}, {}", phase.name(), kind.name);
        self.model.step_begins(name, number, kind, self.began.elapsed());
        if let Shown::Bar(bar) = &mut self.shown {
            bar.step_begins(&search.step);
        }
        self.update(true);
    }

    fn interval(&mut self, _: &CaseId, live: &LiveLoad<'_>) {
        if let Some(name) = self.model.only_kind() {
            self.heard(&name, live);
        }
    }

    fn run_ends(&mut self, _: &RunRecord) {}

    fn step_ends(&mut self, _: usize, step: &Step) {
        let figures = step.figures.map_or_else(String::new, |figures| {
            let ns = |ns: Option<u64>| {
                ns.map_or(number::NONE.to_owned(), |ns| number::duration(ns as f64))
            };
            format!(
                "{:>9} answered, lost {:>7}, p99 {:>8}: ",
                number::qps(figures.answered_qps),
                number::share(figures.lost_share),
                ns(figures.p99_ns)
            )
        });
        let name = self.model.only_kind().unwrap_or_default();
        let own = self.search.as_ref().map(|search| &*search.step).unwrap_or_default();
        let line = format!("{own}: {figures}{}", judged_text(&step.judged));
        self.ended(&name, line, step.figures.is_some(), true);
    }
}
