//! The table of all figures, how the queries ended, and the places of the charts.

use std::borrow::Cow;
use std::fmt::Write as _;

use dnslab_analysis::{Summary, VariantSummary};
use dnslab_figures::Outcomes;
use dnslab_record::LoadMode;

use super::Page;
use super::group::Grouping;
use super::html::escape;
use super::self_check::verdict_link;
use crate::chart::{Charts, TimeChart};
use crate::number::{self, NONE};
use crate::table::{self, MarkedTable};
use crate::variants::shown;

/// The column of [`MarkedTable::header`] that the page sets below the figure of the column before it.
const INTERVAL: usize = 2;

pub(crate) fn variants(summary: &Summary, grouping: &Grouping) -> String {
    let marked = MarkedTable::of(summary);
    let mut html = format!(
        "<section id=\"figures\">\n<details><summary>All figures as a table</summary>\n\
         <p class=\"hint\">{}</p>\n\
         <div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Table of variants\">\n\
         <table class=\"variants\">\n<thead><tr>",
        escape(&table::legend(summary))
    );
    for (column, heading) in marked.header.iter().enumerate() {
        if column != INTERVAL {
            let _ = write!(html, "<th scope=\"col\">{}</th>", escape(heading));
        }
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for (place, row) in marked.rows.iter().enumerate() {
        html.push_str("<tr>");
        for (column, cell) in row.cells.iter().enumerate() {
            let cell = escape(cell);
            let _ = match column {
                0 => write!(
                    html,
                    "<th scope=\"row\"><i class=\"key {}\"></i>{cell}</th>",
                    grouping.class(place)
                ),
                // Below the answered rate stand its interval and the verdict of the self-check.
                _ if column + 1 == INTERVAL => write!(
                    html,
                    "<td><b>{cell}</b><small>{}</small>{}</td>",
                    escape(&row.cells[INTERVAL]),
                    verdict_link(&summary.variants[place].self_check)
                ),
                INTERVAL => Ok(()),
                _ => write!(html, "<td>{cell}</td>"),
            };
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n</div>\n</details>\n</section>\n");
    html
}

type Outcome = (&'static str, fn(&Outcomes) -> u64);

/// How many answers were parsed in full, as a sentence; nothing if none was.
fn checked(summary: &Summary) -> String {
    let sum = |pick: fn(&VariantSummary) -> u64| summary.variants.iter().map(pick).sum::<u64>();
    let (checked, malformed) =
        (sum(|variant| variant.checked_answers), sum(|variant| variant.malformed_answers));
    if checked == 0 {
        return String::new();
    }
    format!(
        " Checked in full, with every record: {} of {} answers; {} of them were malformed.",
        number::count(checked),
        number::count(sum(|variant| variant.rcodes.values().sum())),
        number::count(malformed)
    )
}

/// How the due queries ended and which response codes they got, collapsed: a column for each that there
/// was.
pub(crate) fn outcomes(summary: &Summary, grouping: &Grouping) -> String {
    const OUTCOMES: [Outcome; 6] = [
        ("answered", |outcomes| outcomes.answered),
        ("timed out", |outcomes| outcomes.timed_out),
        ("not sent", |outcomes| outcomes.not_sent),
        ("connection lost", |outcomes| outcomes.connection_lost),
        ("malformed", |outcomes| outcomes.malformed),
        ("refused", |outcomes| outcomes.refused),
    ];
    let all: Vec<Cow<'_, VariantSummary>> = summary.variants.iter().map(shown).collect();
    let measured: Vec<(usize, &VariantSummary)> = all
        .iter()
        .map(|variant| &**variant)
        .enumerate()
        .filter(|(_, variant)| variant.outcomes.due > 0)
        .collect();
    if measured.is_empty() {
        return String::new();
    }
    let (seen, never): (Vec<Outcome>, Vec<Outcome>) = OUTCOMES
        .into_iter()
        .partition(|(_, pick)| measured.iter().any(|(_, variant)| pick(&variant.outcomes) > 0));
    let mut codes: Vec<&String> =
        measured.iter().flat_map(|(_, variant)| variant.rcodes.keys()).collect();
    codes.sort();
    codes.dedup();
    let never: Vec<&str> = never.iter().map(|(name, _)| *name).collect();
    let mut html = format!(
        "<section id=\"outcomes\">\n<details><summary>How the queries ended</summary>\n\
         <p class=\"hint\">Queries of all valid runs (of invalid ones where that stands beside the name), and their \
         shares of those due; response codes and \
         their shares of the answers.{}{}</p>\n\
         <div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"How the queries ended\">\n\
         <table class=\"figures\">\n<thead><tr><th scope=\"col\">variant</th>\
         <th scope=\"col\">due</th>",
        match never.as_slice() {
            _ if summary.has_imported() =>
                " Not known: what of the lost was not sent, refused or malformed.".to_owned(),
            [] => String::new(),
            never => format!(" Never: {}.", never.join(", ")),
        },
        checked(summary)
    );
    let headings = seen.iter().map(|(name, _)| *name).chain(codes.iter().map(|code| code.as_str()));
    for heading in headings {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(heading));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for (place, variant) in measured {
        let due = variant.outcomes.due;
        let answers: u64 = variant.rcodes.values().sum();
        let counted = seen.iter().map(|(_, pick)| (pick(&variant.outcomes), due));
        let coded =
            codes.iter().map(|code| (variant.rcodes.get(*code).copied().unwrap_or(0), answers));
        let _ = write!(
            html,
            "<tr><th scope=\"row\"><i class=\"key {}\"></i>{}</th><td>{}</td>",
            grouping.class(place),
            escape(&variant.name),
            number::count(due)
        );
        for (count, all) in counted.chain(coded) {
            let _ = match count {
                0 => write!(html, "<td>{NONE}</td>"),
                count => write!(
                    html,
                    "<td>{}<small>{}</small></td>",
                    number::count(count),
                    escape(&number::share(count as f64 / all.max(1) as f64))
                ),
            };
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n</div>\n</details>\n</section>\n");
    html
}

pub(crate) fn charts(page: &Page<'_>, charts: &Charts) -> String {
    let timeline = charts.timeline();
    let over_time = timeline.figures();
    let (has_cores, has_rcodes) = (timeline.has_cores(), timeline.has_rcodes());
    if !charts.has_percentiles() && over_time.is_empty() && !has_cores && !has_rcodes {
        return String::new();
    }
    let records = page.records;
    let closed = records.iter().any(|record| matches!(record.load.mode, LoadMode::Closed { .. }));
    let is_common = Charts::has_common_load(page.summary);
    let latency_note = match closed && !is_common {
        true => " In a closed loop this hides stalls: see the method.",
        false => "",
    };
    let mut html = String::from(
        "<section class=\"charts\">\n<h2>Charts</h2>\n\
         <noscript><p>These charts need JavaScript; every figure behind them is in \
         <code>runs.csv</code> and <code>series.csv</code>.</p></noscript>\n\
         <p class=\"hint\">Lines are means over the valid runs, bands run from the smallest to the \
         largest run. Arrow keys move along a chart, names switch lines off.</p>\n",
    );
    let percentiles = format!(
        "How long the slowest queries took: at 1 % stands the latency that the slowest hundredth reach \
         or exceed, the p99 of the tables. A line meets the left side at the time-out where queries went unanswered in a \
         run.{}{latency_note}",
        if is_common { " All variants at the same rate." } else { "" }
    );
    if charts.has_percentiles() {
        let title = "Latency, the slowest first";
        push_place(&mut html, "percentiles", "full large", title, &percentiles);
    }
    if !over_time.is_empty() {
        let events = match charts.timeline().has_events() {
            true => " So is the time in which something was done.",
            false => "",
        };
        let _ = writeln!(
            html,
            "<div class=\"time\"><h3>Over time</h3><span id=\"width\" hidden></span>\
             <p class=\"hint\">Seconds since the measured window began; the warm-up is shaded.{events}</p></div>",
        );
    }
    let grouped = page.grouping.is_grouped();
    // Of many variants what is looked at less is collapsed.
    let (open, folded): (Vec<TimeChart>, Vec<TimeChart>) =
        over_time.into_iter().partition(|figure| !grouped || !figure.is_aside());
    let is_exact = timeline.has_exact_quantiles();
    for figure in open {
        push_over_time(&mut html, figure, grouped, is_common && closed, is_exact);
    }
    if has_cores && !grouped {
        push_cores(&mut html);
    }
    if has_rcodes {
        let text = "Shares of the queries that ended, answered or not.";
        push_place(&mut html, "rcodes", "full", "Response codes", text);
    }
    if !folded.is_empty() || (grouped && has_cores) {
        html.push_str("<details class=\"full\"><summary>More over time</summary>\n");
        if grouped && has_cores {
            push_cores(&mut html);
        }
        for figure in folded {
            push_over_time(&mut html, figure, grouped, is_common && closed, is_exact);
        }
        html.push_str("</details>\n");
    }
    html.push_str("</section>\n");
    html
}

fn push_over_time(
    html: &mut String,
    figure: TimeChart,
    grouped: bool,
    is_closed: bool,
    is_exact: bool,
) {
    let (title, text) = caption(figure, is_closed, is_exact);
    let is_full = grouped || matches!(figure, TimeChart::Qps | TimeChart::CountedQps);
    push_place(html, figure.id(), if is_full { "full" } else { "half" }, title, &text);
}

fn push_cores(html: &mut String) {
    let text = "Whoever used it: server, load and others. Where variants take turns, all of them.";
    push_place(html, "cores", "full", "CPU by core", text);
}

/// Title and explanation of a chart over time. With a common load of its own, the latencies over time
/// are those of the closed loop before it.
fn caption(figure: TimeChart, is_closed: bool, is_exact: bool) -> (&'static str, String) {
    let load = if is_closed { "In the closed loop, not at the common rate." } else { "" };
    let largest = if is_exact { "" } else { "The largest of the parts of a bucket." };
    let text = |parts: &[&str]| {
        let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
        parts.join(" ")
    };
    match figure {
        TimeChart::Qps => ("Answered queries per second", String::new()),
        TimeChart::CountedQps => (
            "Queries per second, counted by the servers",
            "From the readings of each server's own counters, about one each second: shorter changes do \
             not show. Queries, not answers."
                .to_owned(),
        ),
        TimeChart::P50 => ("p50 latency", text(&[load])),
        TimeChart::P95 => ("p95 latency", text(&[load, largest])),
        TimeChart::P99 => ("p99 latency", text(&[load, largest])),
        TimeChart::Cpu => ("Server CPU", "100 % is one CPU.".to_owned()),
        TimeChart::Memory => ("Server memory", "Memory of the server's processes.".to_owned()),
        TimeChart::Log => ("Log written per second", "Growth of the server's logs of queries.".to_owned()),
        TimeChart::Network => (
            "DNS messages on the network per second",
            "Octets of queries and answers, without what their transports add.".to_owned(),
        ),
        TimeChart::Connections => ("Connections opened per second", String::new()),
        TimeChart::OpenConnections => {
            ("Open connections", "Connections of the clients that are usable.".to_owned())
        }
        TimeChart::Handshakes => ("TLS handshakes per second", "Full and resumed.".to_owned()),
    }
}

pub(super) fn push_place(html: &mut String, id: &str, class: &str, title: &str, text: &str) {
    let _ = writeln!(
        html,
        "<figure class=\"chart {class}\" id=\"chart-{id}\">\n<figcaption><h3>{}</h3>{}</figcaption>\n\
         <div class=\"plot\"></div>\n</figure>",
        escape(title),
        if text.is_empty() { String::new() } else { format!("<p>{}</p>", escape(text)) }
    );
}
