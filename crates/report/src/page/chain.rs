//! The servers of a chain: where they stand, and what each of them did.

use std::fmt::Write as _;

use super::Page;
use super::figures::colour_class;
use super::html::escape;
use super::laboratory;
use crate::chain::{Cell, HEADER, LEGEND, rows};

/// The line of hosts and the table of servers; nothing without a chain.
pub(crate) fn section(page: &Page<'_>) -> String {
    let rows = rows(page.summary);
    if rows.is_empty() {
        return String::new();
    }
    let header: String =
        HEADER.iter().map(|heading| format!("<th scope=\"col\">{heading}</th>")).collect();
    let mut html = format!(
        "<section id=\"chain\">\n<h2>The chain</h2>\n{}\
         <p class=\"hint\">{}</p>\n\
         <div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"The servers of the chain\">\n\
         <table class=\"figures chain\">\n<thead><tr>{header}</tr></thead>\n",
        laboratory::pictures(page.records),
        escape(LEGEND),
    );
    for row in &rows {
        if row.span > 0 {
            // Each variant is a group of rows, of which its name is the heading.
            let end = if html.ends_with("</thead>\n") { "" } else { "</tbody>\n" };
            let _ = write!(
                html,
                "{end}<tbody>\n<tr><th scope=\"rowgroup\" rowspan=\"{}\">\
                 <i class=\"key {}\"></i>{}</th>",
                row.span,
                colour_class(row.place),
                escape(&row.cells[0].figure)
            );
        } else {
            html.push_str("<tr>");
        }
        let _ = write!(html, "<th scope=\"row\">{}</th>", cell_html(&row.cells[1]));
        for cell in &row.cells[2..] {
            let _ = write!(html, "<td>{}</td>", cell_html(cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n</div>\n</section>\n");
    html
}

/// A figure with what is beside it in small letters below.
fn cell_html(cell: &Cell) -> String {
    let figure = escape(&cell.figure);
    match cell.aside.as_str() {
        "" => figure,
        aside => format!("{figure}<small>{}</small>", escape(aside)),
    }
}
