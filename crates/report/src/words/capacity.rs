//! The words for what a search has found.

use std::fmt;

use dnslab_analysis::statistics::Estimate;
use dnslab_analysis::{Answer as Found, BestWindow, Outlook, answer};
use dnslab_record::{Breach, Capacity, Finding, Judged, Sought, Threshold};

use super::Remark;
use super::invalid::invalid_text;
use super::self_check::remark;
use crate::number;

/// What a search has found: one sentence, in parts so that the page can set the
/// intervals smaller than the words, and what limits it apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The parts in order, without the full stop; joined by nothing.
    pub parts: Vec<Part>,
    /// What limits the answer, with the punctuation before it; empty if nothing does.
    pub remarks: String,
}

/// A part of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Ordinary words.
    Words(String),
    /// A difference, the figure that the reader takes away.
    Figure(String),
    /// An interval in brackets.
    Interval(String),
}

impl Part {
    /// What it says.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Words(text) | Self::Figure(text) | Self::Interval(text) => text,
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| f.write_str(part.text()))?;
        write!(f, "{}.", self.remarks)
    }
}

/// What is said of one step: `met`, or why not.
#[must_use]
pub fn judged_text(judged: &Judged) -> String {
    match (judged, outcome(judged)) {
        (Judged::Met, (word, _)) => word.to_owned(),
        (Judged::GeneratorLimited { generator, .. }, (_, reason)) => {
            let Remark { what, figure, .. } = remark(generator);
            format!("generator-limited: {reason}; {what} ({figure})")
        }
        (_, (word, reason)) => format!("{word}: {reason}"),
    }
}

/// The word for what is said of a step, and the reason; empty if it met everything.
pub(crate) fn outcome(judged: &Judged) -> (&'static str, String) {
    let reasons = || judged.breaches().iter().map(breach).collect::<Vec<_>>().join(", ");
    match judged {
        Judged::Met => ("met", String::new()),
        Judged::Violated { .. } => ("violated", reasons()),
        Judged::GeneratorLimited { .. } => ("generator-limited", reasons()),
        Judged::Failed { reason } => ("failed", reason.clone()),
    }
}

/// The short name of what is not met, for a table.
pub(crate) fn name(breach: &Breach) -> String {
    match breach {
        Breach::Threshold { demand, .. } => demand.indicator.to_string(),
        Breach::NotOffered { .. } => "not sent".to_owned(),
        Breach::Backlog { .. } => "backlog".to_owned(),
        Breach::Invalid { .. } => "invalid".to_owned(),
    }
}

fn breach(breach: &Breach) -> String {
    match breach {
        Breach::Threshold { demand, found } => {
            let found = found.map_or_else(
                || "without a query".to_owned(),
                |found| format!("{} {}", demand.indicator, figure(demand, found)),
            );
            format!("{found} ({demand})")
        }
        Breach::NotOffered { due, sent } => {
            let share = number::share(*sent as f64 / *due as f64);
            format!("only {share} of the due queries were sent")
        }
        Breach::Backlog { answered, in_window } => {
            let late = number::share(1.0 - *in_window as f64 / *answered as f64);
            format!("a backlog grew: {late} of the answers came after the window")
        }
        Breach::Invalid { reason } => invalid_text(reason),
    }
}

fn figure(demand: &Threshold, found: f64) -> String {
    if demand.indicator.is_latency() { number::duration(found) } else { number::share(found) }
}

fn finding(finding: &Finding) -> String {
    remark(finding).text().trim_end_matches('.').to_owned()
}

/// What the search has found, in one sentence.
#[must_use]
pub fn capacity_answer(capacity: &Capacity) -> Answer {
    let target = capacity.target.as_str();
    let objective = capacity.sought.objective().map(ToString::to_string).unwrap_or_default();
    match answer(capacity) {
        Found::Found { qps } => found(target, &objective, &qps),
        Found::AtLeast { qps, generator } => at_least(target, &objective, qps, generator.as_ref()),
        Found::Below { qps, generator } => {
            below(capacity, target, &objective, qps, generator.as_ref())
        }
        Found::Window(best) => window(capacity, &best),
        Found::Nothing { outlook, failure } => {
            nothing(&capacity.sought, target, outlook, failure.as_deref())
        }
    }
}

fn words(text: impl Into<String>) -> Part {
    Part::Words(text.into())
}

fn qps(rate: f64) -> Part {
    Part::Figure(number::queries_per_second(rate))
}

/// The interval of a rate as a part, if it has ends.
fn interval(rate: &Estimate) -> Option<Part> {
    let (low, high) = (number::qps(rate.low), number::qps(rate.high));
    rate.is_bounded().then(|| Part::Interval(format!(" (95 % interval {low} to {high})")))
}

fn found(target: &str, objective: &str, rate: &Estimate) -> Answer {
    let mut parts = vec![words(format!("{target} meets {objective} up to ")), qps(rate.value)];
    parts.extend(interval(rate));
    Answer { parts, remarks: String::new() }
}

fn at_least(target: &str, objective: &str, rate: f64, generator: Option<&Finding>) -> Answer {
    let parts = vec![words(format!("{target} meets {objective} up to at least ")), qps(rate)];
    let remarks = match generator {
        Some(generator) => {
            format!("; above, the load generator was the bottleneck: {}", finding(generator))
        }
        None => ", the highest rate that was to be tried (`--max`)".to_owned(),
    };
    Answer { parts, remarks }
}

fn below(
    capacity: &Capacity,
    target: &str,
    objective: &str,
    rate: f64,
    generator: Option<&Finding>,
) -> Answer {
    let last = capacity.steps.last().map(|step| &step.judged);
    let reasons = last.map(|judged| outcome(judged).1).unwrap_or_default();
    if let Some(generator) = generator {
        let parts = vec![
            words(format!("Whether {target} meets {objective} cannot be told even at ")),
            qps(rate),
        ];
        let remarks = format!("; {reasons}; {}", finding(generator));
        return Answer { parts, remarks };
    }
    let parts = vec![words(format!("{target} does not meet {objective} even at ")), qps(rate)];
    let remarks = format!("; {reasons}; a search from a lower rate: `--from`");
    Answer { parts, remarks }
}

fn window(capacity: &Capacity, best: &BestWindow) -> Answer {
    let target = &capacity.target;
    let BestWindow { best, highest, difference, certain } = best;
    let mut parts = vec![
        words(format!("{target} needs ")),
        Part::Figure(format!("{} outstanding", number::count(best.window))),
        words(" to answer "),
        qps(best.answered_qps.value),
    ];
    parts.extend(interval(&best.answered_qps));
    let mut remarks = match difference {
        None => "; no other window is answered more".to_owned(),
        Some(difference) => {
            let change = number::change(difference.value);
            let ends = if difference.is_bounded() {
                let (low, high) = (number::change(difference.low), number::change(difference.high));
                format!(" ({low} to {high})")
            } else {
                String::new()
            };
            let highest = number::count(highest.window);
            format!(
                "; that differs by {change}{ends} from the highest rate, at {highest} outstanding"
            )
        }
    };
    if !certain {
        remarks.push_str("; that it is within 2 % is not certain: more `--repeats` would tell");
    }
    for figures in [best, highest] {
        if figures.is_generator_limited() {
            let window = number::count(figures.window);
            remarks.push_str(&format!(
                "; at {window} outstanding the load generator was the bottleneck, so the server may \
                 answer more: give the load more CPUs (`--workers`), on a machine that has them"
            ));
            break;
        }
    }
    if let Some(objective) = capacity.sought.objective() {
        remarks.push_str(&format!("; windows that do not meet {objective} are left out"));
    }
    Answer { parts, remarks }
}

fn nothing(
    sought: &Sought,
    target: &str,
    Outlook { met, violated }: Outlook,
    failure: Option<&str>,
) -> Answer {
    let mut parts = vec![words("The search ended without an answer")];
    let mut known = Vec::new();
    if let Sought::Rate(search) = sought {
        let objective = &search.objective;
        if let Some(met) = met {
            known.push(format!("{target} met {objective} at {}", number::qps(met)));
        }
        if let Some(violated) = violated {
            known.push(format!("it was violated at {}", number::qps(violated)));
        }
    }
    if !known.is_empty() {
        parts.push(words(format!(": {}", known.join(", "))));
    }
    let remarks = failure.map(|reason| format!("; the last step failed: {reason}"));
    Answer { parts, remarks: remarks.unwrap_or_default() }
}
