//! The variants at shares of their own rates: a chart, a table and the differences.

use std::fmt::Write as _;

use super::Page;
use super::differences::titled_tables;
use super::figures::push_place;
use super::html::{escape, wide_table};
use crate::shares::{HEADER, LEGEND, rows, title};

/// Nothing where no variant was asked at a share of its own rate.
pub(crate) fn section(page: &Page<'_>) -> String {
    let shares = &page.summary.shares;
    if shares.is_empty() {
        return String::new();
    }
    let mut html =
        String::from("<section class=\"charts\" id=\"shares\">\n<h2>Latency over load</h2>\n");
    push_place(
        &mut html,
        "shares-latency",
        "full",
        "Latency",
        "Full line: p99. Dashed: p50. Bands: interval of the mean over the rounds, 95 %. Logarithmic scale. Each point is a \
         share of the variant's own rate. A lost query \
         counts with the time-out at least.",
    );
    let _ = write!(
        html,
        "</section>\n<section>\n{}<p class=\"hint\">{}</p>\n",
        wide_table("Each share of the own rate", "figures", &HEADER, &rows(page.summary)),
        escape(LEGEND)
    );
    let parts = shares.iter().map(|share| (title(share), share.comparisons.as_slice()));
    let tables = titled_tables(page.summary, &page.grouping, parts);
    if !tables.is_empty() {
        let _ = write!(
            html,
            "<details><summary>Every difference at these shares</summary>\n<p class=\"hint\">Their words share the error \
             rate of the report. A quantile is not compared where it is the time-out.</p>\n{tables}</details>\n"
        );
    }
    html + "</section>\n"
}
