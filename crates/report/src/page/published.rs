//! What others published of such an experiment, beside what was measured here.

use std::fmt::Write as _;

use dnslab_analysis::Summary;

use super::html::escape;
use crate::published::{HEADER, LEGEND, rows};

/// Nothing where the experiment names nothing that was published.
pub(super) fn section(summary: &Summary) -> String {
    let rows = rows(summary);
    if rows.is_empty() {
        return String::new();
    }
    let header: String =
        HEADER.iter().map(|heading| format!("<th scope=\"col\">{heading}</th>")).collect();
    let mut html = format!(
        "<section id=\"published\">\n<h2>Published, and here</h2>\n<p class=\"hint\">{}</p>\n\
         <div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Published figures\">\n\
         <table class=\"figures words\">\n<thead><tr>{header}</tr></thead>\n<tbody>\n",
        escape(LEGEND)
    );
    for row in &rows {
        let [figure, cells @ ..] = row;
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(figure));
        for cell in cells {
            let _ = write!(html, "<td>{}</td>", escape(cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n</div>\n</section>\n");
    html
}
