//! The page of several sessions of one experiment. It has no script.

use std::fmt::Write as _;

use dnslab_analysis::Pooled;

use super::html::{escape, wide_table};
use super::shell::shell;
use crate::number;
use crate::pooled::{answer, beside, notes, table};

/// The page of sessions that are pooled, in one file.
#[must_use]
pub fn pooled_page(pooled: &Pooled) -> String {
    let sessions = number::counted(pooled.sessions.len() as u64, "session", "sessions");
    let name = escape(&pooled.name);
    let mut body = format!(
        "<header><p><b>dnslab</b> <span>{sessions}</span></p></header>\n<main>\n\
         <section class=\"hero\">\n<p class=\"question\">What holds over {sessions} of {name}?</p>\n\
         <h1 class=\"long\">{}</h1>\n</section>\n",
        escape(&answer(pooled))
    );
    let titled = [("Over the sessions", table(pooled)), ("Other settings", beside(pooled))];
    for (title, table) in titled.iter().filter(|(_, table)| !table.rows.is_empty()) {
        let _ = write!(
            body,
            "<section>\n<h2>{title}</h2>\n<p class=\"hint\">{}</p>\n{}</section>\n",
            escape(&table.legend),
            wide_table(title, "figures", &table.header, &table.rows)
        );
    }
    body.push_str("<section>\n<h2>Sessions</h2>\n<ul>\n");
    for note in notes(pooled) {
        let _ = writeln!(body, "<li>{}</li>", escape(&note));
    }
    body.push_str("</ul>\n</section>\n</main>\n");
    shell(&format!("{} over {sessions} - dnslab", pooled.name), "'none'", &body)
}
