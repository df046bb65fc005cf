//! The table of variants, the same in the terminal, in Markdown and on the page.

use dnslab_analysis::self_check::{VariantSelfCheck, Verdict as SelfVerdict};
use dnslab_analysis::statistics::Verdict;
use dnslab_analysis::{Summary, VariantSummary};
use dnslab_figures::AttemptCounts;
use dnslab_record::Metric;

use crate::memory;
use crate::number::{self, NONE};
use crate::variants::{ERRORS, is_at_least, shown};
use crate::words::bottleneck::bottleneck_name;
use crate::words::caveat::variant_caveat_text;
use crate::words::self_check::remark;
use crate::words::time_out;

/// Whether a variant has something to show in a column.
type Has = fn(&VariantSummary) -> bool;

/// From so many queries in a run on the p99.9 rests on ten of them.
const MANY: u64 = 10_000;

/// Whether the runs of a variant had so few queries that nine tenths say more than the last percent.
fn has_few_queries(variant: &VariantSummary) -> bool {
    variant.outcomes.answered < MANY * variant.valid_runs as u64
}

fn has_memory_per_connection(variant: &VariantSummary) -> bool {
    variant.memory_per_connection_octets.is_some()
}

/// Headings of the columns, in order, each with what a variant must have to show there: a column that
/// none has anything to show in is left away. `None` for those that are always there.
const HEADER: [(&str, Option<Has>); 20] = [
    ("variant", None),
    ("answered qps", None),
    ("95 % interval", None),
    ("to baseline", None),
    ("lost", None),
    ("errors", Some(|variant| variant.error_share > ERRORS)),
    ("mean", Some(|variant| variant.metrics.contains_key(&Metric::LatencyMean))),
    ("p50", None),
    ("p90", Some(has_few_queries)),
    ("p95", None),
    ("p99", None),
    ("p99.9", None),
    ("server CPU", None),
    ("CPU/query", None),
    ("log octets/query", Some(|variant| variant.metrics.contains_key(&Metric::LogOctetsPerQuery))),
    ("cache hits", Some(|variant| variant.cache.is_some())),
    ("peak memory", None),
    ("memory/connection", Some(has_memory_per_connection)),
    ("handshakes", Some(|variant| variant.handshakes > 0)),
    ("bottleneck", None),
];

pub(crate) fn legend(summary: &Summary) -> String {
    let mut quantiles =
        "Means over the valid runs of each run's figure are geometric, as differences are."
            .to_owned();
    if summary.variants.iter().any(is_at_least) {
        quantiles.push_str(
            " At least: the load generator was the bottleneck, so the server may answer more; this rate is \
             compared with none.",
        );
    }
    if summary.variants.iter().any(|variant| variant.error_share > ERRORS) {
        quantiles.push_str(
            " Errors: answers with SERVFAIL, REFUSED, NOTIMP or FORMERR, as a share of all answers.",
        );
    }
    if summary.variants.iter().any(|variant| variant.cache.is_some()) {
        quantiles.push_str(
            " Cache hits: what the server found in its cache, as a share of what it looked for, by its own count, \
             warm-up included.",
        );
    }
    if summary.variants.iter().any(|variant| !variant.time_outs.is_empty()) {
        quantiles.push_str(
            " Time-out: in so many rounds so many queries were lost that this quantile is the time-out, and has no \
             mean.",
        );
    }
    if summary.variants.iter().any(|variant| variant.memory_per_connection_octets.is_some()) {
        quantiles.push_str(
            " Memory/connection: what the server's memory grew by from before the load on, for each \
             connection that was open at once; the largest of all runs. Of a server that ran before it counts \
             from the least memory that it had in all runs.",
        );
    }
    let common = summary.variants.iter().find_map(|variant| variant.common_rate_qps);
    match common {
        None => quantiles,
        Some(rate_qps) => format!(
            "Answered qps, CPU and memory: closed loop, as much as each variant answers. Lost, mean \
             and p50 to p99.9: all variants at the same {} qps. {quantiles}",
            number::qps(rate_qps)
        ),
    }
}

/// The variants as text, ready to be laid out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Headings of the columns.
    pub header: Vec<String>,
    /// One row per variant, as many cells as there are headings. The first cell is the name, with
    /// the marks of the notes that apply: `dot [a,b]`.
    pub rows: Vec<Vec<String>>,
    /// How the figures are made, as sentences.
    pub legend: String,
    /// The text of each mark, in the order of the marks; see [`mark`].
    pub notes: Vec<String>,
}

/// The mark of a note by its place: `a` to `z`, then `aa`, `ab`, ...
#[must_use]
pub fn mark(place: usize) -> String {
    let letter = char::from(b'a' + (place % 26) as u8);
    match place / 26 {
        0 => letter.to_string(),
        more => format!("{}{letter}", mark(more - 1)),
    }
}

/// The table of variants of `summary`.
#[must_use]
pub fn table(summary: &Summary) -> Table {
    let marked = MarkedTable::of(summary);
    let rows = marked.rows.iter().map(|row| {
        let mut cells = row.cells.clone();
        if !row.notes.is_empty() {
            let marks: Vec<_> = row.notes.iter().map(|&place| mark(place)).collect();
            cells[0] = format!("{} [{}]", cells[0], marks.join(","));
        }
        cells
    });
    Table {
        header: marked.header.iter().map(|heading| (*heading).to_owned()).collect(),
        rows: rows.collect(),
        legend: legend(summary),
        notes: marked.notes.clone(),
    }
}

/// The table with the marks kept apart, for the page.
pub(crate) struct MarkedTable {
    pub(crate) header: Vec<&'static str>,
    pub(crate) rows: Vec<MarkedRow>,
    /// The text of each note; no text twice.
    pub(crate) notes: Vec<String>,
}

pub(crate) struct MarkedRow {
    /// The cells, without marks.
    pub(crate) cells: Vec<String>,
    /// Places in [`MarkedTable::notes`].
    pub(crate) notes: Vec<usize>,
}

impl MarkedTable {
    /// The table of variants of `summary`.
    pub(crate) fn of(summary: &Summary) -> Self {
        let mut notes: Vec<String> = Vec::new();
        let has_any = |has: Has| summary.variants.iter().any(|variant| has(&shown(variant)));
        let is_shown = HEADER.map(|(_, has)| has.is_none_or(has_any));
        let mut rows = Vec::new();
        for variant in &summary.variants {
            let mut own = Vec::new();
            for text in doubts(variant) {
                let known = notes.iter().position(|note| *note == text);
                own.push(known.unwrap_or_else(|| {
                    notes.push(text);
                    notes.len() - 1
                }));
            }
            own.sort_unstable();
            let cells = cells(summary, &shown(variant)).into_iter().zip(is_shown);
            let cells = cells.filter_map(|(cell, is_shown)| is_shown.then_some(cell)).collect();
            rows.push(MarkedRow { cells, notes: own });
        }
        let header = HEADER.iter().zip(is_shown).filter(|(_, shown)| *shown);
        let header = header.map(|((heading, _), _)| *heading).collect();
        Self { header, rows, notes }
    }
}

/// The doubts about a variant: runs that do not count, what the self-check found, then the other
/// caveats.
fn doubts(variant: &VariantSummary) -> Vec<String> {
    if let Some(reason) = &variant.skipped {
        return vec![format!("Not run: {reason}.")];
    }
    let mut texts = missing_runs(variant);
    texts.extend(self_check_notes(&variant.self_check));
    let others = variant.caveats.iter().filter(|caveat| !caveat.worst.is_of_measuring_side());
    texts.extend(others.map(|caveat| variant_caveat_text(caveat, variant.valid_runs)));
    texts.extend(second_queries(variant));
    texts.extend(drift(variant));
    texts
}

/// The notes on a variant beside its caveats, for the page.
pub(crate) fn note_texts(variant: &VariantSummary) -> Vec<String> {
    if variant.skipped.is_some() {
        // The reason stands with those that were not measured.
        return Vec::new();
    }
    let mut texts = missing_runs(variant);
    texts.extend(second_queries(variant));
    texts.extend(drift(variant));
    texts
}

/// How far the answered rate moved over the rounds, if it did.
fn drift(variant: &VariantSummary) -> Option<String> {
    let drift = number::change(variant.drift?);
    Some(format!("The answered rate drifted by {drift} from the first round to the last."))
}

fn missing_runs(variant: &VariantSummary) -> Vec<String> {
    let mut texts = Vec::new();
    match (variant.valid_runs, variant.other_runs) {
        (0, 0) => texts.push("No run of this variant has ended.".to_owned()),
        (0, _) if variant.of_invalid.is_some() => texts.push(
            "No run of this variant is valid: its figures are those of invalid runs, to be seen and not to be used. \
             See the runs."
                .to_owned(),
        ),
        (0, _) => texts.push("No run of this variant is valid: see the runs.".to_owned()),
        (1, _) => texts.push("One valid run only: no interval can be given.".to_owned()),
        _ => {}
    }
    if variant.valid_runs > 0 && variant.other_runs > 0 {
        let plural = if variant.other_runs == 1 { "run is" } else { "runs are" };
        texts.push(format!(
            "{} {plural} invalid or failed, and in no figure: see the runs.",
            variant.other_runs
        ));
    }
    texts
}

/// The verdict of a self-check that is not clean, then what it found and can be remedied.
fn self_check_notes(check: &VariantSelfCheck) -> Vec<String> {
    let Some(verdict) = check.verdict().filter(|verdict| *verdict != SelfVerdict::Clean) else {
        return Vec::new();
    };
    let mut texts = vec![format!(
        "Self-check: {}{}.",
        verdict.word(),
        in_runs(check.runs_with(verdict), check.runs())
    )];
    let found = check.findings.iter().map(|found| (remark(&found.finding), found.runs));
    let found = found.filter(|(remark, _)| !remark.remedy.is_empty());
    texts.extend(found.map(|(remark, runs)| match in_runs(runs, check.runs()).trim() {
        "" => remark.text(),
        runs => format!("{} ({runs})", remark.text()),
    }));
    texts
}

/// In how many runs, if not in all: ` in 1 of 3 runs`.
pub(crate) fn in_runs(runs: u32, all: u32) -> String {
    if runs == all { String::new() } else { format!(" in {runs} of {all} runs") }
}

/// Queries that were sent twice, refused one by one, or answered with a bad signature.
fn second_queries(variant: &VariantSummary) -> Vec<String> {
    let sentence =
        |count: u64, text: &str| (count > 0).then(|| format!("{} {text}", number::count(count)));
    let again = "queries were sent a second time: over TCP after a truncated answer, with the \
                 cookie that the server asked for, or because the server had not processed \
                 them or refused early data. Each \
                 counts once, with the time since it was due.";
    let searched = "queries were for the next name of a search list, because the one before did not exist or failed. The latency is \
                    that of the name: from when it was due to the last of its answers.";
    let silent = "further attempts were made because no answer had come in time.";
    let failed = "further attempts were made because the answer was SERVFAIL, NOTIMP or REFUSED, or the \
                  connection had ended.";
    let AttemptCounts { timed_out, failed: failures, sent_to } = &variant.attempts;
    let servers = (sent_to.len() > 1).then(|| {
        let sent: Vec<String> = sent_to.iter().map(|sent| number::count(*sent)).collect();
        format!("Queries sent to each server, in the order of the list: {}.", sent.join(", "))
    });
    let refused = "queries were refused one by one (an HTTP status other than 200, a reset stream, \
                   or a signature that the server does not accept); they count as lost.";
    let signature = "answers had no valid signature (TSIG), or refused that of their query.";
    [
        sentence(
            variant.asked_again.saturating_sub(timed_out + failures + variant.searched),
            again,
        ),
        sentence(variant.searched, searched),
        sentence(*timed_out, silent),
        sentence(*failures, failed),
        servers,
        sentence(variant.outcomes.refused, refused),
        sentence(variant.bad_signature, signature),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn cells(summary: &Summary, variant: &VariantSummary) -> Vec<String> {
    let metric = |metric| variant.metrics.get(&metric);
    let qps = metric(Metric::AnsweredQps);
    let quantile = |value: Option<f64>, name: &str| match variant.time_outs.get(name) {
        Some(found) => time_out(*found, "rounds"),
        None => value.map_or_else(none, number::duration),
    };
    let latency =
        |wanted: Metric| quantile(metric(wanted).map(|found| found.value), &wanted.to_string());
    let measured = variant.outcomes.due > 0;
    let handshakes = match variant.handshakes {
        0 => none(),
        some => number::count(some),
    };
    let names: Vec<_> =
        variant.bottlenecks.iter().map(|bottleneck| bottleneck_name(bottleneck.kind)).collect();
    vec![
        variant.name.clone(),
        qps.map_or_else(none, |found| {
            let at_least = if is_at_least(variant) { "at least " } else { "" };
            at_least.to_owned() + &number::qps(found.value)
        }),
        qps.filter(|found| found.is_bounded()).map_or_else(none, |found| {
            format!("{} to {}", number::qps(found.low), number::qps(found.high))
        }),
        to_baseline(summary, variant),
        if measured { number::share(variant.outcomes.lost_share()) } else { none() },
        if measured { number::share(variant.error_share) } else { none() },
        latency(Metric::LatencyMean),
        latency(Metric::LatencyP50),
        quantile(variant.p90_ns, "p90"),
        latency(Metric::LatencyP95),
        latency(Metric::LatencyP99),
        quantile(variant.p999_ns, "p99.9"),
        variant.server_busy_share.map_or_else(none, |busy| number::percent(busy, 0)),
        latency(Metric::ServerCpuPerQuery),
        metric(Metric::LogOctetsPerQuery)
            .map_or_else(none, |found| number::three_digits(found.value)),
        variant.cache.map_or_else(none, |cache| number::share(cache.hit_share())),
        memory::peak(variant).unwrap_or_else(none),
        memory::per_connection(variant).unwrap_or_else(none),
        handshakes,
        match variant.imported {
            Some(_) => "not known".to_owned(),
            None if names.is_empty() => none(),
            None => dedup(names).join(", "),
        },
    ]
}

/// The difference of the answered rate from the baseline, or the word that there is none to name.
fn to_baseline(summary: &Summary, variant: &VariantSummary) -> String {
    if variant.name == summary.baseline {
        return "baseline".to_owned();
    }
    let found = summary.comparisons.iter().find(|comparison| {
        comparison.variant == variant.name && comparison.metric == Metric::AnsweredQps
    });
    match found {
        None => none(),
        Some(comparison) => {
            let change = number::change(comparison.difference.value);
            if comparison.verdict == Verdict::Control {
                return format!("({change}), a control of {}", comparison.against);
            }
            let doubtful = matches!(comparison.verdict, Verdict::CannotTell { .. });
            let doubt = if doubtful { " ?" } else { "" };
            match comparison.against == summary.baseline {
                true => format!("{change}{doubt}"),
                false => format!("{change}{doubt} ({})", comparison.against),
            }
        }
    }
}

/// The first of each, in order.
fn dedup(names: Vec<&'static str>) -> Vec<&'static str> {
    let mut kept = Vec::new();
    for name in names {
        if !kept.contains(&name) {
            kept.push(name);
        }
    }
    kept
}

fn none() -> String {
    NONE.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_go_on_after_z() {
        assert_eq!([0, 25, 26, 27, 52].map(mark), ["a", "z", "aa", "ab", "ba"]);
    }
}
