//! The time windows: a percentile chart of each, and their figures.

use std::fmt::Write as _;

use super::Page;
use super::differences::titled_tables;
use super::figures::push_place;
use super::html::escape;
use crate::chart::Charts;
use crate::windows::{HEADER, LEGEND, rows, title};

/// Charts, table and differences; nothing without time windows.
pub(crate) fn section(page: &Page<'_>, charts: &Charts) -> String {
    let windows = &page.summary.windows;
    if windows.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<section class=\"charts\" id=\"time-windows\">\n<h2>Time windows</h2>\n\
         <p class=\"hint\">Latency of the queries that became due in each time window, the slowest first: at \
         1\u{a0}% stands the latency that the slowest hundredth reach or exceed. A line meets the left side at \
         the time-out where queries went unanswered in a run. Lines are means over the valid runs, bands run from the \
         smallest to the largest run.</p>\n",
    );
    for (place, window) in windows.iter().enumerate().filter(|(place, _)| charts.has_window(*place))
    {
        let id = format!("window-{place}");
        push_place(&mut html, &id, "full large", &format!("Latency in {}", title(window)), "");
    }
    html.push_str("</section>\n<section>\n");
    push_table(&mut html, page);
    let parts = windows.iter().map(|window| (title(window), window.comparisons.as_slice()));
    let tables = titled_tables(page.summary, &page.grouping, parts);
    if !tables.is_empty() {
        let _ = write!(
            html,
            "<details><summary>Every difference in the time windows</summary>\n<p class=\"hint\">The shares of \
             queries answered, and answered without error, and the p50 and p99 latencies are compared as all other figures are: inside the rounds, and \
             their words share the error rate of the report. A quantile is not compared where it is the \
             time-out.</p>\n{tables}</details>\n"
        );
    }
    html.push_str("</section>\n");
    html
}

fn push_table(html: &mut String, page: &Page<'_>) {
    let order: Vec<usize> = page.grouping.in_order().map(|(place, _)| place).collect();
    let header: String =
        HEADER.iter().map(|heading| format!("<th scope=\"col\">{heading}</th>")).collect();
    let _ = write!(
        html,
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Time windows\">\n\
         <table class=\"figures chain windows\">\n<thead><tr>{header}</tr></thead>\n"
    );
    for row in rows(page.summary, &order) {
        if row.span > 0 {
            let end = if html.ends_with("</thead>\n") { "" } else { "</tbody>\n" };
            let _ = write!(
                html,
                "{end}<tbody>\n<tr><th scope=\"rowgroup\" rowspan=\"{}\">{}</th>",
                row.span,
                escape(&row.cells[0])
            );
        } else {
            html.push_str("<tr>");
        }
        let _ = write!(
            html,
            "<th scope=\"row\"><i class=\"key {}\"></i>{}</th>",
            page.grouping.class(row.place),
            escape(&row.cells[1])
        );
        for cell in &row.cells[2..] {
            let _ = write!(html, "<td>{}</td>", escape(cell));
        }
        html.push_str("</tr>\n");
    }
    let _ = write!(html, "</tbody>\n</table>\n</div>\n<p class=\"hint\">{}</p>\n", escape(LEGEND));
}
