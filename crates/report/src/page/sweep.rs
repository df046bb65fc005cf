//! What servers hold as their load rises.

use std::fmt::Write as _;

use dnslab_analysis::Summary;

use super::figures::push_place;
use super::html::{escape, wide_table};
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
    let _ = write!(
        html,
        "<details class=\"full\"><summary>Each load as a table</summary>\n{}</details>\n</section>\n",
        wide_table("Each load", "figures", &HEADER, &rows(summary))
    );
    html
}
