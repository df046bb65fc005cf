//! The words of two sessions against each other.

use dnslab_analysis::statistics::Estimate;
use dnslab_analysis::{
    Condition, ConditionChange, Judgement, LimitRuling, NotCompared, Ruling, SessionComparison,
    SessionSide,
};
use dnslab_record::CostLimit;

use crate::gate::{
    self, change_bound, not_compared, open_whatever_the_interval, value, without_value,
};
use crate::number;
use crate::screen::cell::with_interval;
use crate::server::title;
use crate::variants::listed;

/// Judgements that a sentence names; the others are counted.
const MAX_NAMED: usize = 3;

/// The ends of an interval may be apart by less than this factor, or nothing is known of a difference.
const HARDLY_KNOWN: f64 = 20.0;

/// Things that a note names; the others are counted.
const MAX_CHANGES: usize = 4;

/// Longer values are cut: a configuration is no word of a sentence.
const MAX_VALUE: usize = 40;

/// The ruling over all limits, and how many of them say what.
pub(crate) fn overall(comparison: &SessionComparison) -> String {
    let runs = not_counted(&comparison.new).map(|runs| format!("after the change {runs}"));
    let runs: Vec<String> = runs.into_iter().collect();
    gate::overall(comparison.ruling(), &comparison.rulings, &runs)
}

/// The answer in one sentence.
pub(crate) fn answer(comparison: &SessionComparison) -> String {
    match comparison.ruling() {
        Ruling::Pass => {
            let metrics: Vec<&str> =
                comparison.rulings.iter().map(|ruling| &*ruling.metric).collect();
            let variants: Vec<&str> = comparison.variants.iter().map(String::as_str).collect();
            format!(
                "The change is within all limits: {} of {}.",
                listed(&metrics),
                listed(&variants)
            )
        }
        Ruling::Fail => {
            let worse = clauses(comparison, Ruling::Fail);
            format!("The change is certainly worse than a limit: {worse}.")
        }
        Ruling::Unclear => unclear(comparison),
    }
}

fn unclear(comparison: &SessionComparison) -> String {
    if comparison.variants.is_empty() {
        return "No variant ran in both sessions, so nothing can be told.".to_owned();
    }
    if comparison.rulings.is_empty() {
        return "There is no limit, so nothing is judged.".to_owned();
    }
    let open = clauses(comparison, Ruling::Unclear);
    if open.is_empty() {
        let runs = not_counted(&comparison.new).unwrap_or_default();
        return format!(
            "It cannot be told: after the change {runs}; the others are within all limits."
        );
    }
    format!(
        "It cannot be told whether the change is within the limits: {open}{}.",
        remedy(comparison)
    )
}

/// What would make an unclear comparison clear, as the end of a sentence.
fn remedy(comparison: &SessionComparison) -> String {
    let judgements = || comparison.rulings.iter().flat_map(|ruling| &ruling.variants);
    let unclear = || judgements().filter(|ruling| ruling.ruling == Ruling::Unclear);
    if let Some(runs) = comparison.too_few_runs() {
        let runs = if runs == 1 { "one run says nothing" } else { "two runs say too little" };
        return format!("; {runs} of the spread: make at least 5 in each session");
    }
    if unclear().all(|judgement| judgement.is_disturbed) {
        return "; measure again while nothing else runs there".to_owned();
    }
    if unclear().all(|judgement| judgement.found.is_none()) || comparison.common_rates_qps.is_some()
    {
        return String::new();
    }
    match comparison.more_runs() {
        Some(1) => "; one more run in each session would probably tell".to_owned(),
        Some(more) if more > 0 => {
            format!("; {more} more runs in each session would probably tell")
        }
        _ => "; more runs will hardly tell".to_owned(),
    }
}

/// The judgements of this ruling: `udp's qps -20 ±2 % (limit -3 %), ...; and 2 more`.
fn clauses(comparison: &SessionComparison, ruling: Ruling) -> String {
    let all = comparison
        .rulings
        .iter()
        .flat_map(|ruling| ruling.variants.iter().map(move |variant| (ruling, variant)));
    let mut concerned = all.filter(|(_, judgement)| judgement.ruling == ruling);
    let named: Vec<String> = concerned
        .by_ref()
        .take(MAX_NAMED)
        .map(|(ruling, judgement)| {
            let limit = change_bound(&ruling.limit);
            let (name, found) = (&judgement.variant, found(ruling, judgement));
            let why = open_whatever_the_interval(judgement);
            let why = why.map_or_else(String::new, |why| format!("{why}, "));
            format!("{name}'s {} {found} ({why}limit {limit})", ruling.metric)
        })
        .collect();
    match concerned.count() {
        0 => named.join(", "),
        more => format!("{}; and {more} more", named.join(", ")),
    }
}

/// What a judgement is about: `-20 ±2 %`, or a figure where the limit bounds that.
pub(crate) fn found(ruling: &LimitRuling, judgement: &Judgement) -> String {
    match (&ruling.limit, judgement.found) {
        (CostLimit::Absolute(bound), Some(found)) if is_lower_bound(judgement) => {
            format!("at least {}", value(bound.indicator, found.value))
        }
        (_, None) if judgement.not_compared.is_some() => {
            judgement.not_compared.map_or_else(String::new, |why| not_compared(why).to_owned())
        }
        (_, None) => without_value(judgement, "runs"),
        (CostLimit::Relative { .. }, Some(found)) => difference(&found),
        (CostLimit::Absolute(bound), Some(found)) => value(bound.indicator, found.value),
    }
}

fn is_lower_bound(judgement: &Judgement) -> bool {
    judgement.not_compared == Some(NotCompared::Generator)
}

/// A relative difference with half the width of its interval; nothing has no sign.
pub(crate) fn difference(difference: &Estimate) -> String {
    let Some(half) = difference.half_width() else {
        return format!("{} ?", number::change(difference.value));
    };
    let is_uncertain = difference.low <= 0.0 && difference.high >= 0.0;
    if is_uncertain && 1.0 + difference.high >= HARDLY_KNOWN * (1.0 + difference.low) {
        return "hardly known".to_owned();
    }
    let text = with_interval(difference, half);
    let figure = text.split(' ').next().unwrap_or_default();
    match figure.contains(|letter: char| ('1'..='9').contains(&letter)) {
        true => text,
        false => text.trim_start_matches(['+', '-']).to_owned(),
    }
}

/// The word of a ruling in the column of results.
pub(crate) fn word_of(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Pass => "within",
        Ruling::Fail => "worse",
        Ruling::Unclear => "cannot tell",
    }
}

/// That word, with the further runs that would probably tell.
pub(crate) fn result(judgement: &Judgement) -> String {
    let word = word_of(judgement.ruling);
    match judgement.more_runs {
        Some(1) => format!("{word}, +1 run"),
        Some(more) => format!("{word}, +{more} runs"),
        None => word.to_owned(),
    }
}

/// What the two sessions are: `base: BIND 9.18.33, 2026-11-25 01:02; new: ...; 5 and 5 runs`.
pub(crate) fn conditions(comparison: &SessionComparison) -> String {
    let (base, new) = (&comparison.base, &comparison.new);
    let mut text = format!("{}; {}", side_text("base", base), side_text("new", new));
    let runs = comparison.changes.iter().map(|change| change.runs);
    if let Some([base, new]) =
        runs.reduce(|one, other| [one[0].max(other[0]), one[1].max(other[1])])
    {
        let new = number::counted(new.into(), "run", "runs");
        text.push_str(&format!("; {base} and {new} of a variant"));
    }
    text
}

fn side_text(name: &str, side: &SessionSide) -> String {
    let servers: Vec<String> =
        side.servers.iter().map(|[kind, version]| title(kind, version)).collect();
    let servers: Vec<&str> = servers.iter().map(String::as_str).collect();
    let minute: String = side.started.chars().take("2026-11-25T01:02".len()).collect();
    let parts = [listed(&servers), minute.replacen('T', " ", 1)];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{name}: {}", parts.join(", "))
}

/// What to know besides, the gravest first.
pub(crate) fn notes(comparison: &SessionComparison) -> Vec<String> {
    let SessionComparison { base, new, .. } = comparison;
    let mut notes: Vec<String> = Vec::new();
    for (condition, begin, end) in [
        (Condition::Machine, "Another machine", " Figures of two machines do not compare."),
        (Condition::Experiment, "The experiments differ", ""),
        (
            Condition::Dnslab,
            "Another dnslab measured",
            " It may measure otherwise: see CHANGELOG.md, \"Measurement changes\".",
        ),
        (Condition::System, "The system differs", ""),
        (Condition::Server, "The server differs", ""),
    ] {
        let changes = comparison.conditions.iter().filter(|change| change.condition == condition);
        let changes: Vec<&ConditionChange> = changes.collect();
        if !changes.is_empty() {
            notes.push(format!("{begin}: {}.{end}", changed(&changes)));
        }
    }
    if let Some([then, now]) = comparison.common_rates_qps {
        let (then, now) = (number::qps(then), number::qps(now));
        notes.push(format!(
            "The common loads had {then} and {now} qps, so their latencies are not judged. Set one rate for \
             both sessions: `--set common.rate=N`."
        ));
    }
    for (side, when) in [(new, "After"), (base, "Before")] {
        if let Some(runs) = not_counted(side) {
            notes.push(format!("{when} the change {runs}: see the report of that session."));
        }
        let disturbed: Vec<&str> = side.disturbed.iter().map(String::as_str).collect();
        if !disturbed.is_empty() {
            notes.push(format!(
                "{when} the change others used the machine in half of the runs or more of {}, so no difference \
                 there is called worse{}. Measure again on a quiet machine.",
                listed(&disturbed),
                if when == "Before" { ", and nothing passes" } else { "" }
            ));
        }
    }
    if base.name != new.name {
        let (then, now) = (&base.name, &new.name);
        notes.push(format!("The experiments have different names: `{then}` and `{now}`."));
    }
    for (side, name) in [(base, "base"), (new, "new")] {
        let only: Vec<&str> = side.only_here.iter().map(String::as_str).collect();
        if !only.is_empty() {
            notes.push(format!("Only in {name}, and not compared: {}.", listed(&only)));
        }
    }
    notes
}

/// What shows another machine, as half a sentence.
pub(crate) fn changed(changes: &[&ConditionChange]) -> String {
    let texts: Vec<String> = changes.iter().take(MAX_CHANGES).map(condition_text).collect();
    match changes.len().saturating_sub(MAX_CHANGES) {
        0 => texts.join("; "),
        more => format!("{}; and {more} more", texts.join("; ")),
    }
}

fn shown_value(value: Option<&str>) -> String {
    match value {
        None | Some("") => "not known".to_owned(),
        Some(value) if value.chars().count() > MAX_VALUE => {
            format!("{}..", value.chars().take(MAX_VALUE).collect::<String>())
        }
        Some(value) => value.to_owned(),
    }
}

fn condition_text(change: &&ConditionChange) -> String {
    let who = match change.variants.is_empty() {
        true => String::new(),
        false => {
            let names: Vec<&str> = change.variants.iter().map(String::as_str).collect();
            format!(" of {}", listed(&names))
        }
    };
    let ConditionChange { name, then, now, .. } = change;
    format!("{name}{who} was {}, is {}", shown_value(then.as_deref()), shown_value(now.as_deref()))
}

/// Runs that are in no figure, as half a sentence; `None` if there are none.
fn not_counted(side: &SessionSide) -> Option<String> {
    let texts: Vec<String> = [
        runs_that(side.other_runs, "does not count", "do not count"),
        runs_that(side.missing_runs, "is missing", "are missing"),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!texts.is_empty()).then(|| texts.join(" and "))
}

fn runs_that(count: u32, one: &str, many: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("one run {one}")),
        count => Some(format!("{count} runs {many}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_no_more_digits_than_are_known() {
        for (ends, expected) in [
            ([-0.2, -0.25, -0.15], "-20 ±5 %"),
            ([0.004, -0.03, 0.038], "0 ±3 %"),
            ([1.2, 0.8, 1.6], "2.2 ±0.4 x"),
            ([0.45, -0.99, 64.0], "hardly known"),
            ([-0.9, -0.999, 8.97], "hardly known"),
            ([1.01, -0.777, 17.1], "hardly known"),
            // A loss of half at least is certain, however large it is.
            ([-0.95, -0.999, -0.5], "-95 ±25 %"),
            ([0.1, -0.4, 1.0], "+10 ±70 %"),
            ([0.02, f64::NEG_INFINITY, f64::INFINITY], "+2 % ?"),
        ] {
            let [value, low, high] = ends;
            assert_eq!(difference(&Estimate { value, low, high }), expected, "{ends:?}");
        }
    }
}
