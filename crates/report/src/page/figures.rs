//! The picture of the differences, the table of variants, and the places of the charts.

use std::fmt::Write as _;

use dnslab_measure::{LoadMode, RunRecord, Session, Summary};

use super::html::{escape, prose};
use super::self_check::verdict_link;
use crate::table::{self, MarkedTable, Notes, mark};

/// The column of [`MarkedTable::header`] that the page sets below the figure of the column before it.
const INTERVAL: usize = 2;
/// Colours of the palette in the style sheet; further variants begin again.
const COLOURS: usize = 7;

/// The classes that give a variant its colour, by its place in the summary, and set it apart from
/// an earlier one of the same colour.
pub(crate) fn colour_class(place: usize) -> String {
    let again = if place >= COLOURS { " again" } else { "" };
    format!("v{}{again}", place % COLOURS)
}

/// The table of variants with its notes.
pub(crate) fn variants(session: &Session, summary: &Summary) -> String {
    let marked = MarkedTable::of(summary, Notes::BesideSelfCheck);
    let mut html = format!(
        "<section>\n<h2>Variants</h2>\n<p class=\"hint\">{}</p>\n\
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
                    colour_class(place)
                ),
                // The marks stand at the answered rate, the figure that they qualify, its interval
                // and the verdict of the self-check below it.
                _ if column + 1 == INTERVAL => write!(
                    html,
                    "<td><b>{cell}</b>{}<small>{}</small>{}</td>",
                    marks(&row.notes),
                    escape(&row.cells[INTERVAL]),
                    verdict_link(&summary.variants[place].self_check)
                ),
                INTERVAL => Ok(()),
                _ => write!(html, "<td>{cell}</td>"),
            };
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n</div>\n");
    if !marked.notes.is_empty() {
        html.push_str("<ul class=\"notes\">\n");
        for (place, note) in marked.notes.iter().enumerate() {
            let mark = mark(place);
            let _ = writeln!(html, "<li id=\"note-{mark}\"><b>{mark}</b> {}</li>", prose(note));
        }
        html.push_str("</ul>\n");
    }
    html.push_str(&skipped(session));
    html.push_str("</section>\n");
    html
}

/// Links to the notes of a row.
fn marks(notes: &[usize]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let links: Vec<_> = notes
        .iter()
        .map(|&place| {
            let mark = mark(place);
            format!("<a href=\"#note-{mark}\" aria-label=\"note {mark}\">{mark}</a>")
        })
        .collect();
    format!("<sup>{}</sup>", links.join("\u{202f}"))
}

/// The variants that could not run here.
fn skipped(session: &Session) -> String {
    if session.skipped.is_empty() {
        return String::new();
    }
    let mut html = String::from("<h3>Not measured</h3>\n<ul class=\"notes\" id=\"skipped\">\n");
    for skipped in &session.skipped {
        let _ = writeln!(
            html,
            "<li><b>{}</b> {}</li>",
            escape(&skipped.variant),
            prose(&skipped.reason)
        );
    }
    html.push_str("</ul>\n");
    html
}

/// Places and captions of the charts; the script fills them.
pub(crate) fn charts(records: &[RunRecord]) -> String {
    let closed = records.iter().any(|record| matches!(record.load.mode, LoadMode::Closed { .. }));
    let latency_note =
        if closed { " In a closed loop this hides stalls: see the method." } else { "" };
    let percentiles = format!(
        "How long the slowest queries took. At 1 % stands the latency that the slowest hundredth \
         reach or exceed. Line: the latencies of all valid runs merged (the table has means over \
         the runs); band: from run to run.{latency_note}"
    );
    let mut html = String::from(
        "<section class=\"charts\">\n<h2>Charts</h2>\n\
         <noscript><p>The charts need JavaScript; every figure behind them is in \
         <code>runs.csv</code> and <code>series.csv</code>.</p></noscript>\n\
         <p class=\"hint\">Over time, lines are means over the valid runs, bands run from the \
         smallest to the largest run, and the warm-up is shaded. Arrow keys move along a \
         chart.</p>\n",
    );
    let counted = (
        "counted",
        "full",
        "Queries per second that the servers counted themselves",
        "From the readings of each server's own counters, about one each second: shorter changes do \
         not show. Queries, not answers.",
    );
    let tells = |record: &RunRecord| {
        record.measured.as_ref().is_some_and(|measured| measured.server_counters.is_some())
    };
    let mut places = vec![
        ("percentiles", "full", "Latency, the slowest first", percentiles.as_str()),
        ("qps", "full", "Answered queries per second", ""),
        ("p50", "half", "Median latency over time", ""),
        ("p99", "half", "p99 latency over time", ""),
        ("cpu", "half", "Server CPU", "Percent of the CPUs that the server was given."),
        ("memory", "half", "Server memory", "Memory of the server's processes."),
        (
            "outcomes",
            "half",
            "How the queries ended",
            "Share of the due queries; logarithmic scale.",
        ),
        ("rcodes", "half", "Response codes", "Share of the answers; logarithmic scale."),
    ];
    if records.iter().any(tells) {
        // Below ours, on the same axis of time.
        places.insert(2, counted);
    }
    for (id, class, title, text) in places {
        let _ = writeln!(
            html,
            "<figure class=\"chart {class}\" id=\"chart-{id}\">\n<figcaption><h3>{}</h3>\
             {}</figcaption>\n<div class=\"plot\"></div>\n</figure>",
            escape(title),
            if text.is_empty() { String::new() } else { format!("<p>{}</p>", escape(text)) }
        );
    }
    html.push_str("</section>\n");
    html
}
