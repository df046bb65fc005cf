//! What the servers counted themselves.

use std::fmt::Write as _;

use super::Page;
use super::html::escape;
use crate::counts::{HEADER, LEGEND, rows, run_rows};

/// The agreement of each variant, and of each run collapsed; nothing if no server tells its counts.
pub(crate) fn section(page: &Page<'_>) -> String {
    let rows = rows(page.summary, page.records);
    if rows.is_empty() {
        return String::new();
    }
    let mut html = format!(
        "<section id=\"counts\">\n<details><summary>The servers&#39; own counters</summary>\n\
         <p class=\"hint\">{}</p>\n",
        escape(LEGEND)
    );
    let keyed: Vec<String> = (0..rows.len())
        .map(|place| format!("<i class=\"key {}\"></i>", page.grouping.class(place)))
        .collect();
    push_table(&mut html, "The servers' own counters", &rows, &keyed);
    html.push_str("<details><summary>each run</summary>\n");
    push_table(&mut html, "The servers' own counters in each run", &run_rows(page.records), &[]);
    html.push_str("</details>\n</details>\n</section>\n");
    html
}

/// A table of these rows; `keys` stand before the names.
fn push_table(html: &mut String, label: &str, rows: &[[String; 5]], keys: &[String]) {
    let header: String =
        HEADER.iter().map(|heading| format!("<th scope=\"col\">{heading}</th>")).collect();
    let _ = write!(
        html,
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n\
         <table class=\"figures counts\">\n<thead><tr>{header}</tr></thead>\n<tbody>\n",
        escape(label)
    );
    for (place, row) in rows.iter().enumerate() {
        let key = keys.get(place).map(String::as_str).unwrap_or_default();
        let _ = write!(html, "<tr><th scope=\"row\">{key}{}</th>", escape(&row[0]));
        for cell in &row[1..] {
            let _ = write!(html, "<td>{}</td>", escape(cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n</div>\n");
}
