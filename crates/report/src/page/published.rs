//! What others published of such an experiment, beside what was measured here.

use dnslab_analysis::Summary;

use super::html::{escape, wide_table};
use crate::published::{HEADER, LEGEND, rows};

/// Nothing where the experiment names nothing that was published.
pub(super) fn section(summary: &Summary) -> String {
    let rows = rows(summary);
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<section id=\"published\">\n<h2>Published, and here</h2>\n<p class=\"hint\">{}</p>\n{}</section>\n",
        escape(LEGEND),
        wide_table("Published figures", "figures words", &HEADER, &rows)
    )
}
