//! The servers of a chain: where they stand, and what each of them did.

use std::fmt::Write as _;

use dnslab_record::{ChainPart, HostFacts, LinkFacts, ResourceSeries, RunRecord};

use super::html::escape;
use super::{Page, testbed};
use crate::chain::{Cell, HEADER, LEGEND, rows};
use crate::transport::transport_name;
use crate::variants::in_order;

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
         <details><summary>Each server of the chain</summary>\n<p class=\"hint\">{}</p>\n\
         <div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"The servers of the chain\">\n\
         <table class=\"figures chain\">\n<thead><tr>{header}</tr></thead>\n",
        testbed::pictures(&in_order(page.session, page.records)),
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
                page.grouping.class(row.place),
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
    html.push_str("</tbody>\n</table>\n</div>\n</details>\n</section>\n");
    html
}

/// Hosts, links, and the servers behind the one that is asked, as names and values: those that stand
/// beside the facts of the server under test.
pub(super) fn facts(record: &RunRecord) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    if let Some(testbed) = &record.testbed {
        let host = |host: &HostFacts| {
            let addresses = host.addresses.join(" and ");
            format!("{} ({addresses}; CPUs: {})", host.name, pinned(&host.cpus))
        };
        let hosts: Vec<String> = testbed.hosts.iter().map(host).collect();
        facts.push(("hosts".to_owned(), hosts.join(", ")));
        let link = |link: &LinkFacts| {
            let lines = testbed::link_lines(Some(link)).join(", ");
            format!("{} to {}: {lines}", link.from, link.to)
        };
        let links: Vec<String> = testbed.links.iter().map(link).collect();
        facts.push(("links".to_owned(), links.join("; ")));
    }
    for part in &record.watched.chain {
        let ChainPart { role, server, .. } = part;
        let transport = transport_name(&part.transport);
        let counters = part.counters.as_ref();
        facts.extend([
            (role.clone(), format!("{}, on {}, asked over {transport}", server.title(), part.host)),
            (format!("{role} CPUs"), pinned(&server.cpus)),
            (format!("{role} watched by"), watched_by(&part.resources)),
            (
                format!("{role} counters from"),
                counters.map(|counters| counters.source.clone()).unwrap_or_default(),
            ),
            (format!("{role} command"), server.command.join(" ")),
            (format!("{role} changed from defaults"), server.notes.join(" ")),
        ]);
    }
    facts
}

fn cell_html(cell: &Cell) -> String {
    let figure = escape(&cell.figure);
    match cell.aside.as_str() {
        "" => figure,
        aside => format!("{figure}<small>{}</small>", escape(aside)),
    }
}

pub(super) fn pinned(cpus: &[usize]) -> String {
    match cpus {
        [] => "not pinned".to_owned(),
        cpus => cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// Where the figures of a server's resources come from, in words.
pub(super) fn watched_by(series: &ResourceSeries) -> String {
    match series.samples.len() {
        0 => "not watched".to_owned(),
        _ => format!("CPU: {}; memory: {}", series.cpu_source, series.memory_source),
    }
}
