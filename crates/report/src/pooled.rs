//! Several sessions of one experiment together: the answer, the tables, the notes.

use dnslab_analysis::statistics::{Estimate, Verdict};
use dnslab_analysis::{Beside, BesideDifference, ConditionChange, Pooled, PooledDifference};
use dnslab_record::{Metric, Unit};
use serde::Serialize;

use crate::history::minute;
use crate::number::{self, NONE};
use crate::screen::cell::{self, figure, with_interval};
use crate::table::Table;
use crate::words::metric::{Action, label, noun, words};
use crate::words::session_comparison::changed;

/// Pairs that the answer names; the others are in the table.
const MAX_NAMED: usize = 3;

/// What each session was, the answer as sentences, and how far to trust it.
pub(crate) fn answer(pooled: &Pooled) -> String {
    let answering = pooled.answering();
    let mut sentences: Vec<String> = Vec::new();
    let mut sessions = None;
    for found in answering.iter().take(MAX_NAMED) {
        let own = found.over_sessions.rounds;
        // Said once where all have the same.
        let over = match sessions.replace(own) == Some(own) {
            true => String::new(),
            false => format!("Over {}: ", number::counted(own.into(), "session", "sessions")),
        };
        sentences.push(over + &sentence(found));
    }
    match answering.len().saturating_sub(MAX_NAMED) {
        0 => {}
        1 => sentences.push("One more pair is in the table.".to_owned()),
        more => sentences.push(format!("{more} more pairs are in the table.")),
    }
    if sentences.is_empty() {
        sentences
            .push("No two sessions have a figure of one pair of variants in common.".to_owned());
    }
    sentences.join(" ")
}

/// `dot takes 7.2 ±0.4 us more CPU time per query than udp (6.6 us); the next session finds +6.2 to +8.2 us.`
fn sentence(found: &PooledDifference) -> String {
    let over = &found.over_sessions;
    let (variant, against, noun) = (&over.variant, &over.against, noun(over.metric));
    let what = match over.verdict {
        Verdict::EqualWithin { margin } => {
            let margin = number::size(margin);
            format!("{variant} and {against} are equal within {margin} in {noun}")
        }
        Verdict::Costs | Verdict::Gains => difference(found),
        Verdict::CannotTell { .. } | Verdict::Control => {
            format!("it is not certain whether {variant} differs from {against} in {noun}")
        }
    };
    format!("{what}; the next session finds {}.", next(found))
}

/// A difference that is certain, as half a sentence, with the figure of the reference.
fn difference(found: &PooledDifference) -> String {
    let over = &found.over_sessions;
    let (variant, against, reference) = (&over.variant, &over.against, of_reference(found));
    let size = cell::difference(over).text;
    let size = size.trim_start_matches(['+', '-']);
    let is_more = over.difference.value > 0.0;
    match words(over.metric).action {
        Some(Action { verb, object, is_countable }) => {
            let word = match (is_more, is_countable) {
                (true, _) => "more",
                (false, true) => "fewer",
                (false, false) => "less",
            };
            format!("{variant} {verb} {size} {word} {object} than {against} ({reference})")
        }
        None => {
            let (word, noun) = (if is_more { "higher" } else { "lower" }, noun(over.metric));
            format!("{noun} of {variant} is {size} {word} than that of {against} ({reference})")
        }
    }
}

/// The ends of the interval of prediction: as time where the metric is one, else relative.
fn next(found: &PooledDifference) -> String {
    let is_time = found.over_sessions.metric.unit() == Unit::Duration;
    let Estimate { low, high, .. } = if is_time { found.next_absolute } else { found.next };
    if !low.is_finite() || !high.is_finite() {
        return NONE.to_owned();
    }
    match is_time {
        true => number::time_range(low, high),
        false => format!("{} to {}", number::change(low), number::change(high)),
    }
}

fn of_reference(found: &PooledDifference) -> String {
    figure(found.over_sessions.metric, &Estimate::unbounded(found.reference))
}

/// A row for each metric that answers the question and each pair.
pub(crate) fn answering_table(pooled: &Pooled) -> Table {
    let answers =
        |found: &&PooledDifference| pooled.answered_by.contains(&found.over_sessions.metric);
    table_of(pooled, &pooled.differences.iter().filter(answers).collect::<Vec<_>>())
}

/// A row for each metric of each pair, those that answer the question first.
pub(crate) fn table(pooled: &Pooled) -> Table {
    table_of(pooled, &pooled.differences.iter().collect::<Vec<_>>())
}

fn table_of(pooled: &Pooled, differences: &[&PooledDifference]) -> Table {
    let header = ["", "figure", "reference", "over sessions", "next session", "sessions beside it"];
    let rank = |metric: Metric| {
        let mut metrics = pooled.answered_by.iter();
        metrics.position(|answering| *answering == metric).unwrap_or(usize::MAX)
    };
    let mut differences = differences.to_vec();
    differences.sort_by_key(|found| rank(found.over_sessions.metric));
    Table {
        header: header.map(str::to_owned).to_vec(),
        rows: differences.into_iter().map(row).collect(),
        legend: LEGEND.to_owned(),
        notes: Vec::new(),
    }
}

fn row(found: &PooledDifference) -> Vec<String> {
    let over = &found.over_sessions;
    vec![
        format!("{} - {}", over.variant, over.against),
        label(over.metric).to_owned(),
        of_reference(found),
        cell::difference(over).text,
        next(found),
        format!("{} of {}", found.missed_by(), found.each.len()),
    ]
}

/// What is in the table.
pub(crate) const LEGEND: &str = "Over sessions: each session is one value, so the 95 % interval holds what differs from \
    session to session. Next session: 95 of 100 further sessions of this machine with these settings lie there. \
    Sessions beside it: those whose own interval, from their rounds, misses the mean of all; far more than one of \
    twenty says that sessions differ by more than their rounds show.";

/// A row for each session with other settings and each pair of variants.
pub(crate) fn beside(pooled: &Pooled) -> Table {
    let header = ["what differs", "", "figure", "found", "as predicted"];
    let rows = pooled
        .beside
        .iter()
        .flat_map(|beside| beside.differences.iter().map(|found| row_beside(beside, found)));
    Table {
        header: header.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        legend: BESIDE.to_owned(),
        notes: Vec::new(),
    }
}

fn row_beside(
    beside: &Beside,
    BesideDifference { found, is_as_predicted }: &BesideDifference,
) -> Vec<String> {
    let changes: Vec<&ConditionChange> = beside.changed.iter().collect();
    let word = match is_as_predicted {
        None => NONE,
        Some(true) => "yes",
        Some(false) => "no",
    };
    vec![
        changed(&changes),
        format!("{} - {}", found.variant, found.against),
        label(found.metric).to_owned(),
        found.difference.half_width().map_or_else(
            || NONE.to_owned(),
            |half| match found.metric.unit() {
                Unit::Duration => cell::difference(found).text,
                _ => with_interval(&found.difference, half),
            },
        ),
        word.to_owned(),
    ]
}

/// What is in the table of sessions with other settings.
pub(crate) const BESIDE: &str = "One session each with one setting changed. No: that choice moves the answer by more than \
    another session would.";

/// When the sessions were, and what differs between them, a line each.
pub(crate) fn notes(pooled: &Pooled) -> Vec<String> {
    let of_session = pooled.sessions.iter().map(|session| {
        let rounds = number::counted(session.rounds.into(), "round", "rounds");
        let changes: Vec<&ConditionChange> = session.changed.iter().collect();
        let changes = match changes.is_empty() {
            true => String::new(),
            false => format!("; {}", changed(&changes)),
        };
        format!("{}: {rounds}{changes}", minute(&session.started))
    });
    of_session.collect()
}

/// Version of the form of [`pooled_json`].
const FORMAT: u32 = 1;

#[derive(Serialize)]
struct AsJson<'a> {
    format: u32,
    answer: String,
    #[serde(flatten)]
    pooled: &'a Pooled,
}

/// The figures as JSON.
#[must_use]
pub fn pooled_json(pooled: &Pooled) -> String {
    let answer = answer(pooled);
    let whole = AsJson { format: FORMAT, answer, pooled };
    serde_json::to_string_pretty(&whole).expect("figures are JSON") + "\n"
}
