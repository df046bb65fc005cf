//! The table: one row for each variant.

use dnslab_analysis::statistics::Comparison;
use dnslab_analysis::{Summary, VariantCaveat, VariantSummary};
use dnslab_record::{Caveat, Metric};

use super::cell;
use super::line::{Line, Look, Piece, wrapped};
use crate::variants::{ERRORS, INVALID, shown};
use crate::words::metric::words;
use crate::words::{TIME_OUT, time_out};
use crate::{answer, memory, number};

const INDENT: usize = 2;
const GAP: usize = 2;
/// Names longer than this have their middle left away.
const MAX_NAME: usize = 24;

/// The columns behind those of the metrics that answer the question, in the order of their importance.
const FURTHER: [Metric; 4] =
    [Metric::LatencyP95, Metric::PeakMemory, Metric::LogOctetsPerQuery, Metric::HandshakesPerQuery];

/// The order in which columns stand behind that of the first metric.
const ORDER: [Metric; 9] = [
    Metric::AnsweredQps,
    Metric::ServerCpuPerQuery,
    Metric::LatencyP50,
    Metric::LatencyMean,
    Metric::LatencyP95,
    Metric::LatencyP99,
    Metric::PeakMemory,
    Metric::LogOctetsPerQuery,
    Metric::HandshakesPerQuery,
];

/// From this lost share on there is a column for it.
const LOST: f64 = 0.0001;
/// The heading and a row for each variant, as many columns as have room in `width`.
pub(super) fn table(summary: &Summary, width: usize) -> Vec<Vec<Piece>> {
    let mut table: Vec<Vec<Piece>> = vec![vec![Piece::new(Look::Plain, "")]];
    table.extend(
        summary
            .variants
            .iter()
            .map(|variant| vec![Piece::new(Look::Plain, name(summary, variant))]),
    );
    let mut room = width.saturating_sub(width_of(&table, 0) + INDENT);
    let mut shown: Vec<(usize, Vec<Piece>)> = Vec::new();
    for (order, column) in columns(summary) {
        let needs = GAP + column.iter().map(|piece| length(&piece.text)).max().unwrap_or(0);
        // A narrower one may fit in its place.
        if room < needs {
            continue;
        }
        room -= needs;
        shown.push((order, column));
    }
    shown.sort_by_key(|(order, _)| *order);
    for (_, column) in shown {
        table.iter_mut().zip(column).for_each(|(row, piece)| row.push(piece));
    }
    table
}

/// What the signs in the table mean; `is_short` in few words. `controls` says which variants do the same.
pub(super) fn legend(table: &[Vec<Piece>], controls: &str, is_short: bool) -> Option<String> {
    let cells = || table.iter().flatten().flat_map(|piece| piece.text.split(FIGURE_END));
    let is_control = cells().any(|text| text.starts_with('(') && text.ends_with(')'));
    let control = is_control.then(|| match is_short {
        true => "(): control".to_owned(),
        false => format!("(): control, {controls}"),
    });
    let is_bound = cells().any(|text| text.starts_with(cell::AT_LEAST));
    let bound = is_bound.then(|| {
        let sign = cell::AT_LEAST.trim();
        format!("{sign}: at least, the load generator was the bottleneck")
    });
    let unseen = cells().find_map(|text| text.strip_prefix("~ "));
    let unseen = unseen.map(|size| match is_short {
        true => format!("~ {size}: not seen"),
        false => format!("~ {size}: not seen; more than {size} is unlikely"),
    });
    let is_unclear = cells().any(|text| text.ends_with(" ?"));
    let unclear = is_unclear.then(|| "?: not certain yet".to_owned());
    let equal = cells().find_map(|text| text.strip_prefix(cell::EQUAL));
    let equal = equal.map(|size| format!("{}{size}: equal within {size}", cell::EQUAL));
    let is_late = cells().any(|text| text.starts_with(TIME_OUT));
    let late = is_late.then(|| format!("{TIME_OUT}: so many queries were lost"));
    let unknown = cells().any(|text| text == cell::UNKNOWN);
    let unknown = unknown.then(|| format!("{}: hardly measured", cell::UNKNOWN));
    let is_gap = cells().any(|text| text.ends_with(UNTIL_NEXT));
    let gap = is_gap.then(|| match is_short {
        true => format!("{}: until the next query", UNTIL_NEXT.trim()),
        false => format!(
            "{}: the time until the next query of the connection, which answers waited for",
            UNTIL_NEXT.trim()
        ),
    });
    let is_kept = cells().any(|text| text == memory::NOT_KNOWN);
    let kept =
        is_kept.then(|| format!("{}: the server kept memory of earlier loads", memory::NOT_KNOWN));
    let others = [equal, unclear, control, bound, gap, late, unknown, kept];
    let meanings: Vec<String> = unseen.into_iter().chain(others.into_iter().flatten()).collect();
    (!meanings.is_empty()).then(|| meanings.join(". "))
}

/// The columns, each with its heading and its place from left to right, in the order of their
/// importance. The first one has figures, or the reason why there are none.
fn columns(summary: &Summary) -> Vec<(usize, Vec<Piece>)> {
    let (metrics, rate) = (summary.answering_metrics(), answer::offered_qps(summary));
    let has_chain = summary.variants.iter().any(|variant| variant.chain.len() > 1);
    let further = FURTHER.into_iter().filter(|metric| !metrics.contains(metric));
    // A rate that was asked says nothing of the server.
    let is_told = |metric| metric != Metric::AnsweredQps || !summary.has_open_loop();
    let measured = metrics.iter().copied().chain(further).filter(|metric| {
        is_told(*metric) && summary.variants.iter().any(|variant| has(variant, *metric))
    });
    let mut columns: Vec<(usize, Vec<Piece>)> = measured
        .enumerate()
        .map(|(place, metric)| {
            let title = match (metric, rate) {
                (Metric::ServerCpuPerQuery, Some(_)) if has_chain => "CPUs (sum)",
                (Metric::ServerCpuPerQuery, None) if has_chain => "CPU/query (sum)",
                (Metric::ServerCpuPerQuery, Some(_)) => "CPUs",
                (Metric::HandshakesPerQuery, Some(_)) => "handshakes/s",
                (Metric::PeakMemory, _) if has_chain => "memory (sum)",
                _ => words(metric).heading,
            };
            let mut column = vec![Piece::new(Look::Dim, title)];
            column.extend(summary.variants.iter().map(|variant| {
                marked(variant, metric, cell(summary, variant, metric, place, rate))
            }));
            (if place == 0 { 0 } else { order(metric) }, column)
        })
        .collect();
    // What a running server needs for so many clients is asked at a rate; what one can answer is not.
    let per_connection = |variant: &VariantSummary| variant.memory_per_connection_octets;
    if rate.is_some() && summary.variants.iter().any(|variant| per_connection(variant).is_some()) {
        let mut column = vec![Piece::new(Look::Dim, "per conn.")];
        column.extend(summary.variants.iter().map(|variant| {
            let text = memory::per_connection(variant);
            let look = if per_connection(variant).is_some() { Look::Plain } else { Look::Dim };
            Piece::new(look, text.unwrap_or_default())
        }));
        // Beside the memory.
        columns.insert(columns.len().min(3), (order(Metric::PeakMemory), column));
    }
    if let Some(column) = upstream_connections(summary) {
        columns.insert(columns.len().min(3), (ORDER.len() + 1, column));
    }
    if summary.variants.iter().any(|variant| shown(variant).error_share > ERRORS) {
        let mut column = vec![Piece::new(Look::Dim, "errors")];
        column.extend(summary.variants.iter().map(|variant| match no_figures(variant) {
            Some(_) => Piece::new(Look::Dim, ""),
            None if shown(variant).error_share > ERRORS => {
                Piece::new(Look::Strong, number::share(shown(variant).error_share))
            }
            None => Piece::new(Look::Plain, number::share(shown(variant).error_share)),
        }));
        // It has room before all others but the first.
        columns.insert(columns.len().min(1), (ORDER.len() + 2, column));
    }
    let lost = |variant: &VariantSummary| shown(variant).outcomes.lost_share();
    if summary.variants.iter().any(|variant| lost(variant) >= LOST) {
        let mut column = vec![Piece::new(Look::Dim, "lost")];
        column.extend(summary.variants.iter().map(|variant| match no_figures(variant) {
            Some(_) => Piece::new(Look::Dim, ""),
            None => Piece::new(Look::Plain, number::share(lost(variant))),
        }));
        // Who loses much of it shows no other figure of this load.
        let place = match summary.variants.iter().any(|variant| lost(variant) >= answer::LOST) {
            true => 1,
            false if rate.is_some() => 5,
            false => 3,
        };
        columns.insert(columns.len().min(place), (ORDER.len() + 1, column));
    }
    columns
}

/// How many connections the last server of the chain saw in a run, that of the trial before the load
/// included: the mean over the runs.
fn upstream_connections(summary: &Summary) -> Option<Vec<Piece>> {
    let of_run = |variant: &VariantSummary| {
        let upstream = variant.chain.last().filter(|_| variant.chain.len() > 1)?;
        let connections = upstream.since_start.connections? as f64;
        (variant.valid_runs > 0).then(|| connections / f64::from(variant.valid_runs))
    };
    summary.variants.iter().filter_map(of_run).find(|connections| *connections > 1.0)?;
    let mut column = vec![Piece::new(Look::Dim, "upstream conns")];
    column.extend(summary.variants.iter().map(|variant| {
        let text = of_run(variant).map(|connections| format!("{connections:.0}"));
        Piece::new(Look::Plain, text.unwrap_or_default())
    }));
    Some(column)
}

fn order(metric: Metric) -> usize {
    ORDER.iter().position(|known| *known == metric).map_or(0, |at| at + 1)
}

/// A variant's name, and what it is compared with if that is not the baseline.
fn name(summary: &Summary, variant: &VariantSummary) -> String {
    let own = shortened(&variant.name);
    match reference(summary, variant) {
        Some(against) if against != summary.baseline => {
            format!("{own} (to {})", shortened(against))
        }
        _ => own,
    }
}

fn shortened(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= MAX_NAME {
        return name.to_owned();
    }
    let half = MAX_NAME / 2 - 1;
    letters[..half].iter().chain(&['.', '.']).chain(&letters[letters.len() - half..]).collect()
}

/// What a variant is compared with, the baseline if it is compared with that too; `None` where
/// it is compared with nothing.
fn reference<'a>(summary: &'a Summary, variant: &VariantSummary) -> Option<&'a str> {
    let own = || summary.comparisons.iter().filter(|comparison| comparison.variant == variant.name);
    let with_baseline = own().find(|comparison| comparison.against == summary.baseline);
    with_baseline.or_else(|| own().next()).map(|comparison| comparison.against.as_str())
}

/// Behind a latency that is the time until the next query of the connection.
const UNTIL_NEXT: &str = " (gap)";

/// A latency of answers that waited in the server for the next query of their connection says nothing of the server: its
/// cell says so.
fn marked(variant: &VariantSummary, metric: Metric, piece: Piece) -> Piece {
    let waits =
        |caveat: &VariantCaveat| matches!(caveat.worst, Caveat::AnswersWaitForNextQuery { .. });
    let is_gap = metric.is_latency() && !piece.text.is_empty() && variant.caveats.iter().any(waits);
    match is_gap {
        true => Piece { text: piece.text + UNTIL_NEXT, ..piece },
        false => piece,
    }
}

/// One figure or difference of a variant, in the column at `place`; `rate` is what all were asked in queries
/// per second, where that was one and the same.
fn cell(
    summary: &Summary,
    variant: &VariantSummary,
    metric: Metric,
    place: usize,
    rate: Option<f64>,
) -> Piece {
    if let Some(word) = no_figures(variant) {
        return Piece::new(Look::Dim, if place == 0 { word } else { "" });
    }
    if variant.of_invalid.is_some() {
        let figure = own_figure(&shown(variant), metric, rate).text;
        let mark = if place == 0 { format!("{INVALID} {figure}") } else { figure };
        return Piece::new(Look::Dim, mark);
    }
    let against = reference(summary, variant);
    let is_own = |comparison: &&Comparison| {
        comparison.variant == variant.name
            && comparison.metric == metric
            && Some(comparison.against.as_str()) == against
    };
    if let Some(comparison) = summary.comparisons.iter().find(is_own) {
        let difference = cell::difference(comparison);
        let cpus = variant.metrics.get(&metric).zip(answered_qps(variant, rate));
        // What it takes at this rate is the figure that is asked for.
        return match cpus.filter(|_| metric == Metric::ServerCpuPerQuery) {
            Some((figure, qps)) => Piece {
                text: format!(
                    "{}{FIGURE_END}{}",
                    cell::per_second(figure, qps / 1e9),
                    difference.text
                ),
                ..difference
            },
            None => difference,
        };
    }
    own_figure(variant, metric, rate)
}

/// A figure of a variant by itself.
fn own_figure(variant: &VariantSummary, metric: Metric, rate: Option<f64>) -> Piece {
    let Some(figure) = variant.metrics.get(&metric) else {
        if let Some(text) = memory::of_running(variant).filter(|_| metric == Metric::PeakMemory) {
            let look = if text == memory::NOT_KNOWN { Look::Dim } else { Look::Plain };
            return Piece::new(look, text);
        }
        let found = variant.time_outs(metric).map(|found| time_out(found, "rounds"));
        return Piece::new(Look::Dim, found.unwrap_or_default());
    };
    let text = match answered_qps(variant, rate) {
        // Nanoseconds in a second are CPUs.
        Some(qps) if metric == Metric::ServerCpuPerQuery => cell::per_second(figure, qps / 1e9),
        Some(qps) if metric == Metric::HandshakesPerQuery => cell::per_second(figure, qps),
        _ => cell::of_variant(variant, metric, figure),
    };
    Piece::new(Look::Plain, text)
}

/// The rate that a figure of each answered query is to be multiplied by, queries per second: that of the load, or what
/// was answered of it where so many queries were lost that the server did not have its work.
fn answered_qps(variant: &VariantSummary, rate: Option<f64>) -> Option<f64> {
    match variant.outcomes.lost_share() {
        lost if lost < answer::LOST => rate,
        lost => rate.map(|qps| qps * (1.0 - lost)),
    }
}

/// Between a figure and its difference.
const FIGURE_END: &str = ", ";

fn no_figures(variant: &VariantSummary) -> Option<&'static str> {
    match variant {
        VariantSummary { skipped: Some(_), .. } => Some("not run"),
        VariantSummary { valid_runs: 0, other_runs: 0, .. } => Some("no run"),
        VariantSummary { of_invalid: Some(_), .. } => None,
        VariantSummary { valid_runs: 0, .. } => Some("no valid run"),
        _ => None,
    }
}

/// Rows of text below their heading, at most `width` columns wide.
pub(super) fn of_text(
    header: &[String],
    rows: &[Vec<String>],
    look: impl Fn(&str) -> Look,
    width: usize,
) -> Vec<Line> {
    let heading = header.iter().map(|text| Piece::new(Look::Dim, text.clone())).collect();
    let piece = |text: &String| Piece::new(look(text), text.clone());
    let rows = rows.iter().map(|row| row.iter().map(piece).collect());
    laid_out(&fitting(std::iter::once(heading).chain(rows).collect(), width))
}

/// What a table holds, below it.
pub(super) fn below(text: &str, width: usize) -> impl Iterator<Item = Line> {
    let lines = wrapped(text, Look::Dim, 0, width - INDENT).into_iter();
    lines.map(|line| [vec![Piece::new(Look::Plain, " ".repeat(INDENT))], line].concat())
}

/// A table without the last columns, which have no room.
pub(super) fn fitting(mut table: Vec<Vec<Piece>>, width: usize) -> Vec<Vec<Piece>> {
    let columns = table.first().map_or(0, Vec::len);
    let mut used = INDENT;
    let fit = (0..columns)
        .take_while(|column| {
            used += width_of(&table, *column) + if *column == 0 { 0 } else { GAP };
            used <= width
        })
        .count();
    table.iter_mut().for_each(|row| row.truncate(fit));
    table
}

fn has(variant: &VariantSummary, metric: Metric) -> bool {
    match (metric, shown(variant).metrics.get(&metric)) {
        (Metric::PeakMemory, None) => memory::of_running(variant).is_some(),
        (_, Some(figure)) if figure.value > 0.0 => true,
        _ => shown(variant).time_outs(metric).is_some(),
    }
}

pub(super) fn laid_out(table: &[Vec<Piece>]) -> Vec<Line> {
    let columns = table.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns).map(|column| width_of(table, column)).collect();
    let mut lines = Vec::new();
    for row in table {
        let mut line = Line::new();
        for (column, piece) in row.iter().enumerate() {
            let blank = " ".repeat(widths[column] - length(&piece.text));
            let text = match column {
                0 => format!("{}{}{blank}", " ".repeat(INDENT), piece.text),
                _ => format!("{}{blank}{}", " ".repeat(GAP), piece.text),
            };
            line.push(Piece::new(piece.look, text));
        }
        lines.push(without_end(line));
    }
    lines
}

/// Without the blanks at its end.
fn without_end(mut line: Line) -> Line {
    while line.last().is_some_and(|piece| piece.text.trim().is_empty()) {
        line.pop();
    }
    if let Some(last) = line.last_mut() {
        last.text.truncate(last.text.trim_end().len());
    }
    line
}

fn width_of(table: &[Vec<Piece>], column: usize) -> usize {
    table.iter().map(|row| length(&row[column].text)).max().unwrap_or(0)
}

fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(shortened("dot-coming-and-going"), "dot-coming-and-going");
        let short = shortened("a-name-that-nobody-would-write-twice");
        assert_eq!((short.as_str(), short.len()), ("a-name-that..write-twice", MAX_NAME));
    }
}
