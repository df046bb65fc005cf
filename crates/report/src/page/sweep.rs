//! What servers hold as their load rises.

use std::fmt::Write as _;

use dnslab_analysis::Summary;

use super::figures::push_place;
use super::html::escape;
use crate::sweep::{HEADER, legend, rows, sentences};

/// Sentences, charts and table; nothing where no load was of several sizes.
pub(crate) fn section(summary: &Summary) -> String {
    if summary.sweep.is_empty() {
        return String::new();
    }
    let items: String =
        sentences(summary).iter().map(|text| format!("<li>{}</li>\n", escape(text))).collect();
    let mut html = format!(
        "<section class=\"charts\" id=\"sweep\">\n<h2>Over the load</h2>\n<div class=\"breaks\">\n<ul>\n{items}\
         </ul>\n<p class=\"hint\">{}</p>\n</div>\n",
        escape(&legend(summary))
    );
    push_place(
        &mut html,
        "sweep-answered",
        "half",
        "Answered without error",
        "Share of the due queries. Dashed: what holds a load. Cross: the lowest load that is held in no run.",
    );
    push_place(
        &mut html,
        "sweep-latency",
        "half",
        "Latency",
        "Full line: p99. Dashed: p50. Logarithmic scale. A lost query counts with the time-out at least.",
    );
    let header: String =
        HEADER.iter().map(|heading| format!("<th scope=\"col\">{heading}</th>")).collect();
    let _ = write!(
        html,
        "<details class=\"full\"><summary>Each load as a table</summary>\n\
         <div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Each load\">\n\
         <table class=\"figures\">\n<thead><tr>{header}</tr></thead>\n<tbody>\n"
    );
    for row in rows(summary) {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(&row[0]));
        for cell in &row[1..] {
            let _ = write!(html, "<td>{}</td>", escape(cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n</div>\n</details>\n</section>\n");
    html
}
