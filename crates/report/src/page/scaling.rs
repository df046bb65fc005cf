//! What another thread of a server is worth.

use std::fmt::Write as _;

use dnslab_analysis::Summary;

use super::figures::push_place;
use super::html::{escape, table};
use crate::scaling::{HEADER, LEGEND, rows, sentences};

/// Sentences, charts and table; nothing where no server had several numbers of threads.
pub(crate) fn section(summary: &Summary) -> String {
    if summary.scaling.is_empty() {
        return String::new();
    }
    let items: String =
        sentences(summary).iter().map(|text| format!("<li>{}</li>\n", escape(text))).collect();
    let mut html = format!(
        "<section class=\"charts\" id=\"scaling\">\n<h2>Over the threads</h2>\n<div class=\"breaks\">\n<ul>\n{items}\
         </ul>\n<p class=\"hint\">{}</p>\n</div>\n",
        escape(LEGEND)
    );
    push_place(
        &mut html,
        "scaling-answered",
        "half",
        "Answered queries per second",
        "Full line: measured. Dashed: the law. Cross: left out of the law.",
    );
    push_place(
        &mut html,
        "scaling-efficiency",
        "half",
        "Efficiency",
        "The rate of a thread, of that with the fewest threads. Dashed: by the law.",
    );
    let _ = write!(
        html,
        "<div class=\"breaks wide\" tabindex=\"0\" role=\"region\" aria-label=\"Each number of threads\">\n{}\
         </div>\n</section>\n",
        table("figures", &HEADER, &rows(summary))
    );
    html
}
