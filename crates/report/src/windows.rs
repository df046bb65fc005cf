//! The time windows as a table, the same in Markdown and on the page.

use dnslab_analysis::{Summary, WindowOfVariant, WindowSummary};
use dnslab_record::Metric;

use crate::number::{self, NONE};
use crate::words::time_out;

pub(crate) const HEADER: [&str; 8] = [
    "time window",
    "variant",
    "answered",
    "without error",
    "p50",
    "p99",
    "unanswered",
    "response codes",
];

pub(crate) const LEGEND: &str = "A query belongs to the time windows in which it became due. Without error: answered \
     with another code than SERVFAIL, REFUSED, NOTIMP and FORMERR. Answered, without error, p50 and p99: mean over \
     the valid runs of each run's figure; \"time-out\" where a quantile is that in so many rounds, because so many \
     queries were lost. Unanswered and response codes: sums of the valid runs, codes as shares of the answers.";

pub(crate) struct Row {
    /// Place of the variant in the summary.
    pub(crate) place: usize,
    /// How many rows the time window has, in its first one; 0 in the others.
    pub(crate) span: usize,
    pub(crate) cells: [String; HEADER.len()],
}

/// A row for each time window and variant; `order` is that of the variants, by their places.
pub(crate) fn rows(summary: &Summary, order: &[usize]) -> Vec<Row> {
    let mut rows = Vec::new();
    for window in &summary.windows {
        let own_of = |place: &usize| {
            let name = &summary.variants[*place].name;
            Some((*place, window.variants.iter().find(|own| own.variant == *name)?))
        };
        let own: Vec<(usize, &WindowOfVariant)> = order.iter().filter_map(own_of).collect();
        for (nth, (place, counts)) in own.iter().enumerate() {
            let span = if nth == 0 { own.len() } else { 0 };
            rows.push(Row { place: *place, span, cells: cells(window, counts) });
        }
    }
    rows
}

/// Its name with its ends: `cold, 0 s to 60 s`.
pub(crate) fn title(window: &WindowSummary) -> String {
    let seconds = |ns: u64| ns as f64 / 1e9;
    format!("{}, {} s to {} s", window.name, seconds(window.from_ns), seconds(window.to_ns))
}

fn figure(counts: &WindowOfVariant, metric: Metric, write: fn(f64) -> String) -> String {
    match (counts.metrics.get(&metric), counts.time_outs(metric)) {
        (Some(found), _) => write(found.value),
        (None, Some(found)) => time_out(found, "rounds"),
        (None, None) => NONE.to_owned(),
    }
}

fn cells(window: &WindowSummary, counts: &WindowOfVariant) -> [String; HEADER.len()] {
    let answers: u64 = counts.rcodes.values().sum();
    let mut codes: Vec<(&String, &u64)> = counts.rcodes.iter().collect();
    codes.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let share = |count: u64| number::share(count as f64 / answers as f64);
    let codes: Vec<String> =
        codes.iter().map(|(code, count)| format!("{code} {}", share(**count))).collect();
    [
        title(window),
        counts.variant.clone(),
        figure(counts, Metric::AnsweredShare, number::share),
        figure(counts, Metric::SoundShare, number::share),
        figure(counts, Metric::LatencyP50, number::duration),
        figure(counts, Metric::LatencyP99, number::duration),
        match counts.outcomes.lost() {
            0 => NONE.to_owned(),
            lost => number::count(lost),
        },
        if codes.is_empty() { NONE.to_owned() } else { codes.join(", ") },
    ]
}
