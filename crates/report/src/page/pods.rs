//! The pods behind a Service.

use std::fmt::Write as _;

use super::Page;
use super::html::escape;
use crate::pods::{HEADER, LEGEND, rows, sentence};

/// How the queries were spread, and what each pod published; nothing where no Service was asked.
pub(crate) fn section(page: &Page<'_>) -> String {
    let rows = rows(page.summary);
    if rows.is_empty() {
        return String::new();
    }
    let header: String =
        HEADER.iter().map(|heading| format!("<th scope=\"col\">{heading}</th>")).collect();
    let sentence = sentence(page.summary).map(|text| format!("<p>{}</p>\n", escape(&text)));
    let mut html = format!(
        "<section id=\"pods\">\n<h2>The pods behind the Service</h2>\n{}\
         <details><summary>Each pod</summary>\n<p class=\"hint\">{}</p>\n\
         <div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"The pods behind the Service\">\n\
         <table class=\"figures pods\">\n<thead><tr>{header}</tr></thead>\n<tbody>\n",
        sentence.unwrap_or_default(),
        escape(LEGEND),
    );
    for row in &rows {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(&row[0]));
        for cell in &row[1..] {
            let _ = write!(html, "<td>{}</td>", escape(cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n</div>\n");
    let services = page.summary.variants.iter().filter_map(|variant| variant.pods.as_ref());
    let mut unseen: Vec<&String> = services.flat_map(|service| &service.unseen).collect();
    unseen.dedup();
    for why in unseen {
        let _ = writeln!(html, "<p class=\"hint\">Not seen: {}</p>", escape(why));
    }
    html.push_str("</details>\n</section>\n");
    html
}
