//! One metric over many sessions: as a table, and as CSV.

use dnslab_analysis::statistics::Estimate;
use dnslab_analysis::{
    ConditionChange, History, HistoryPoint, HistorySession, LevelChange, NotCompared,
    VariantHistory,
};

use crate::csv::push_row;
use crate::gate::not_compared;
use crate::number::{self, NONE};
use crate::screen::cell::figure;
use crate::server::title;
use crate::table::Table;
use crate::variants::listed;
use crate::words::metric::noun;
use crate::words::session_comparison::{changed, difference};
use crate::words::time_out;

/// Sessions from which on a change can be named: two on each side, and one more.
const MIN_SESSIONS: usize = 5;

/// Changes that the answer names; the others are counted.
const MAX_NAMED: usize = 3;

/// The answer in one sentence.
pub(crate) fn answer(history: &History) -> String {
    let noun = noun(history.metric);
    let named: Vec<String> = changes(history)
        .map(|(variant, change)| {
            let (by, from) =
                (difference(&change.difference), began(session(history, variant, change)));
            format!("{} by {by} from {from} on", variant.variant)
        })
        .collect();
    let names: Vec<&str> =
        history.variants.iter().map(|variant| variant.variant.as_str()).collect();
    let quiet = |history: &VariantHistory| {
        history.points.iter().filter(|point| !point.is_disturbed).count()
    };
    let points = history.variants.iter().map(quiet).max().unwrap_or(0);
    match named.len() {
        0 if names.is_empty() => format!("No session has {noun}."),
        0 if points < MIN_SESSIONS => {
            let verb = if points == 1 { "is" } else { "are" };
            let sessions = number::counted(points as u64, "session", "sessions");
            let which = match disturbed(history).next().is_some() {
                true => " in which no other program used the machine",
                false => "",
            };
            format!(
                "{sessions}{which} {verb} too few to tell a change of {noun} from the spread: it takes \
                 {MIN_SESSIONS} or more."
            )
        }
        0 => format!("No change of {noun} beyond the spread of the sessions: {}.", listed(&names)),
        count => {
            let more = match count.saturating_sub(MAX_NAMED) {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            let named = named[..count.min(MAX_NAMED)].join(", ");
            format!("Beyond the spread of the sessions, {noun} changed: {named}{more}.")
        }
    }
}

/// Every change of every variant.
pub(crate) fn changes(history: &History) -> impl Iterator<Item = (&VariantHistory, &LevelChange)> {
    let variants = history.variants.iter();
    variants.flat_map(|variant| variant.changes.iter().map(move |change| (variant, change)))
}

fn session<'a>(
    history: &'a History,
    variant: &VariantHistory,
    change: &LevelChange,
) -> &'a HistorySession {
    &history.sessions[variant.points[change.at].session]
}

/// The minute in which a session began: `2026-11-25 01:02`.
pub(crate) fn began(session: &HistorySession) -> String {
    minute(&session.started)
}

/// The minute of a time in RFC 3339: `2026-11-25 01:02`.
pub(crate) fn minute(time: &str) -> String {
    let minute: String = time.chars().take("2026-11-25T01:02".len()).collect();
    minute.replacen('T', " ", 1)
}

pub(crate) fn servers(session: &HistorySession) -> String {
    let titles: Vec<String> =
        session.servers.iter().map(|[kind, version]| title(kind, version)).collect();
    titles.join(", ")
}

/// For each change what else changed in the session where it begins, as a sentence; none if nothing is known.
pub(crate) fn notes(history: &History) -> Vec<String> {
    let found = changes(history).map(|(variant, change)| {
        let session = session(history, variant, change);
        let conditions: Vec<&ConditionChange> = session.changed.iter().collect();
        let besides = match conditions.is_empty() {
            true => "nothing else that is known has changed there".to_owned(),
            false => changed(&conditions),
        };
        let (name, by) = (&variant.variant, difference(&change.difference));
        format!("{name}, {by} from {} on: {besides}.", began(session))
    });
    let unsearched = history.variants.iter().filter_map(|variant| {
        let why = variant.points.iter().find_map(|point| point.not_compared)?;
        let (name, noun) = (&variant.variant, noun(history.metric));
        Some(format!(
            "{name}: in some sessions {noun} {}, so no change is looked for.",
            not_compared(why)
        ))
    });
    let disturbed = disturbed(history).map(|(variant, count)| {
        let sessions = number::counted(count as u64, "session", "sessions");
        format!(
            "{}: in {sessions} other programs used the machine, so no change is looked for there.",
            variant.variant
        )
    });
    found.chain(unsearched).chain(disturbed).collect()
}

/// The variants that other programs disturbed, and in how many sessions.
fn disturbed(history: &History) -> impl Iterator<Item = (&VariantHistory, usize)> {
    let count =
        |history: &VariantHistory| history.points.iter().filter(|point| point.is_disturbed).count();
    history
        .variants
        .iter()
        .map(move |variant| (variant, count(variant)))
        .filter(|(_, count)| *count > 0)
}

/// A value, and whether it is a lower bound.
pub(crate) fn point_text(history: &History, point: &HistoryPoint) -> String {
    let value = figure(history.metric, &point.value);
    match (point.time_outs, point.not_compared) {
        (Some(found), _) => time_out(found, "runs"),
        (None, Some(NotCompared::Generator)) => format!("at least {value}"),
        (None, _) => value,
    }
}

/// A row for each session, with a column for each variant. A level that begins there has its change beside it.
pub(crate) fn table(history: &History) -> Table {
    let mut header = vec!["began".to_owned()];
    header.extend(history.variants.iter().map(|variant| variant.variant.clone()));
    header.push("server".to_owned());
    let mut rows = Vec::new();
    for (place, session) in history.sessions.iter().enumerate() {
        let mut row = vec![began(session)];
        row.extend(history.variants.iter().map(|variant| cell(history, variant, place)));
        row.push(servers(session));
        rows.push(row);
    }
    Table { header, rows, legend: LEGEND.to_owned(), notes: Vec::new() }
}

/// The value of a variant in the session at `place`.
fn cell(history: &History, variant: &VariantHistory, place: usize) -> String {
    let at = variant.points.iter().position(|point| point.session == place);
    let Some(at) = at else { return NONE.to_owned() };
    let value = point_text(history, &variant.points[at]);
    match variant.changes.iter().find(|change| change.at == at) {
        Some(change) => format!("({}) {value}", difference(&change.difference)),
        None => value,
    }
}

/// What is in the table.
pub(crate) const LEGEND: &str = "Geometric means over the runs of each session. A run in which a quantile is the time-out \
    counts with that in a change, which is then the least that it can be. In brackets: a level that begins here, \
    against the one before, with the 95 % interval from the spread of the sessions. A change is named if it \
    stands out from that spread at 1 %.";

/// A row for each variant of each session.
#[must_use]
pub fn history_csv(history: &History) -> String {
    let header = [
        "started",
        "experiment",
        "dnslab",
        "servers",
        "variant",
        "figure",
        "value",
        "low",
        "high",
        "runs",
        "time_outs",
        "level_change",
        "level_change_low",
        "level_change_high",
    ];
    let mut text = String::new();
    push_row(&mut text, header.map(str::to_owned));
    let number = |value: f64| if value.is_finite() { value.to_string() } else { String::new() };
    for variant in &history.variants {
        for (at, point) in variant.points.iter().enumerate() {
            let session = &history.sessions[point.session];
            let change = variant.changes.iter().find(|change| change.at == at);
            let change = change.map(|change| change.difference);
            let column = |end: fn(&Estimate) -> f64| {
                change.as_ref().map_or_else(String::new, |change| number(end(change)))
            };
            let row = [
                session.started.clone(),
                session.name.clone(),
                session.dnslab.clone(),
                servers(session),
                variant.variant.clone(),
                history.metric.column().to_owned(),
                number(point.value.value),
                number(point.value.low),
                number(point.value.high),
                point.runs.to_string(),
                point.time_outs.map_or(0, |found| found.runs).to_string(),
                column(|estimate| estimate.value),
                column(|estimate| estimate.low),
                column(|estimate| estimate.high),
            ];
            push_row(&mut text, row);
        }
    }
    text
}
