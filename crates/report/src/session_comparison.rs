//! Two sessions against each other as tables, and for programs.

use dnslab_analysis::statistics::Estimate;
use dnslab_analysis::{Judgement, Ruling, SessionComparison, VariantChange};
use dnslab_record::{CostLimit, Metric, TimeOuts, visible_json};
use serde::Serialize;

use crate::gate::{change_bound, not_compared, value};
use crate::number::NONE;
use crate::screen::cell::figure;
use crate::table::Table;
use crate::words::{session_comparison as words, time_out};

/// Version of the form of [`session_comparison_json`].
const FORMAT: u32 = 1;

/// The comparison for programs, with its answer. Ends of unbounded intervals are `null`.
#[must_use]
pub fn session_comparison_json(comparison: &SessionComparison) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        format: u32,
        answer: String,
        ruling: Ruling,
        #[serde(flatten)]
        comparison: &'a SessionComparison,
    }
    let (answer, ruling) = (words::answer(comparison), comparison.ruling());
    let document = Document { format: FORMAT, answer, ruling, comparison };
    let text = serde_json::to_string_pretty(&document).expect("our types have string keys");
    visible_json(&text).into_owned() + "\n"
}

/// What shows that the sessions are of different machines, one text for each fact.
#[must_use]
pub fn machine_texts(comparison: &SessionComparison) -> Vec<String> {
    comparison.machine_changes().map(|change| words::changed(&[change])).collect()
}

/// A row for each limit of each variant, those of a variant together.
pub(crate) fn limits_table(comparison: &SessionComparison) -> Table {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let judgements = || {
        let of_limit = comparison.rulings.iter();
        of_limit.flat_map(|ruling| ruling.variants.iter().map(move |judgement| (ruling, judgement)))
    };
    let mut names: Vec<&str> = Vec::new();
    for (_, judgement) in judgements() {
        if !names.contains(&judgement.variant.as_str()) {
            names.push(&judgement.variant);
        }
    }
    for name in names {
        for (ruling, judgement) in judgements().filter(|(_, judgement)| judgement.variant == name) {
            let ends = ends(comparison, name, &ruling.limit, judgement);
            let change = match ruling.limit {
                CostLimit::Relative { .. } => words::found(ruling, judgement),
                CostLimit::Absolute(_) => NONE.to_owned(),
            };
            let [base, new] = ends;
            let limit = change_bound(&ruling.limit);
            let result = words::result(judgement);
            let name = name.to_owned();
            rows.push(vec![name, ruling.metric.clone(), base, new, change, limit, result]);
        }
    }
    Table {
        header: ["variant", "figure", "base", "new", "change", "limit", "result"]
            .map(str::to_owned)
            .to_vec(),
        rows,
        legend: LEGEND.to_owned(),
        notes: Vec::new(),
    }
}

/// What the figures are, and what the interval does not know.
pub(crate) const LEGEND: &str = "Base and new: geometric means of the runs. Change: from one to the other, with the 95 % interval from the spread \
    inside each session. It does not know what differs between the sessions beside the server; \
    `dnslab run --against` measures both servers in the same rounds.";

/// The values before and after. A limit that bounds the figure itself judges the value after.
fn ends(
    comparison: &SessionComparison,
    variant: &str,
    limit: &CostLimit,
    judgement: &Judgement,
) -> [String; 2] {
    let none = || NONE.to_owned();
    let of_metric = |metric: Metric| {
        let mut changes = comparison.changes.iter();
        changes.find(|change| change.variant == variant && change.metric == metric)
    };
    match limit {
        CostLimit::Relative { metric, .. } => match of_metric(*metric) {
            Some(change) => sides(change),
            None => [none(), none()],
        },
        CostLimit::Absolute(bound) => {
            let base = bound.indicator.compared().and_then(of_metric);
            let base = base.map_or_else(none, |change| match (change.base, change.time_outs[0]) {
                (Some(base), _) => value(bound.indicator, base.value),
                (None, Some(time_outs)) => time_out(time_outs, "runs"),
                (None, None) => none(),
            });
            let new = match (judgement.found, judgement.time_outs) {
                (Some(found), _) => value(bound.indicator, found.value),
                (None, Some(time_outs)) => time_out(time_outs, "runs"),
                (None, None) => none(),
            };
            [base, new]
        }
    }
}

/// The figure before and after.
fn sides(change: &VariantChange) -> [String; 2] {
    let side = |found: Option<Estimate>, time_outs: Option<TimeOuts>| match (found, time_outs) {
        (Some(found), _) => figure(change.metric, &found),
        (None, Some(time_outs)) => time_out(time_outs, "runs"),
        (None, None) => NONE.to_owned(),
    };
    [side(change.base, change.time_outs[0]), side(change.new, change.time_outs[1])]
}

/// Every metric that was measured in both sessions.
pub(crate) fn figures_table(comparison: &SessionComparison) -> Table {
    Table {
        header: ["variant", "figure", "base", "new", "change", "runs"].map(str::to_owned).to_vec(),
        rows: comparison.changes.iter().map(figures_row).collect(),
        legend: "Each interval is one of 95 % by itself: of twenty, one misses the truth."
            .to_owned(),
        notes: Vec::new(),
    }
}

fn figures_row(change: &VariantChange) -> Vec<String> {
    let difference = match (&change.difference, change.not_compared) {
        (Some(difference), _) => words::difference(difference),
        (None, Some(why)) => not_compared(why).to_owned(),
        (None, None) => NONE.to_owned(),
    };
    let [base, new] = sides(change);
    vec![
        change.variant.clone(),
        change.metric.to_string(),
        base,
        new,
        difference,
        format!("{}, {}", change.runs[0], change.runs[1]),
    ]
}
