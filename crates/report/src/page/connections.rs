//! The connections and how long it took to make them.

use std::fmt::Write as _;

use dnslab_analysis::{Summary, VariantSummary};
use dnslab_figures::{Connections, Histogram};
use dnslab_record::RunRecord;

use super::group::Grouping;
use super::html::escape;
use crate::number::{self, NONE};
use crate::transport::transport_name;

const HEADER: [&str; 12] = [
    "variant",
    "transport",
    "opened",
    "failed",
    "lost",
    "refused",
    "closed by us",
    "not processed",
    "connect",
    "full handshake",
    "resumed handshake",
    "early data",
];

pub(crate) fn section(records: &[RunRecord], summary: &Summary, grouping: &Grouping) -> String {
    let connected: Vec<(usize, &VariantSummary)> = summary
        .variants
        .iter()
        .enumerate()
        .filter(|(_, variant)| variant.connections.counts.attempted > 0)
        .collect();
    if connected.is_empty() {
        return String::new();
    }
    let header: String =
        HEADER.iter().map(|heading| format!("<th scope=\"col\">{heading}</th>")).collect();
    let mut html = format!(
        "<section id=\"connections\">\n<details><summary>Connections and handshakes</summary>\n\
         <p class=\"hint\">Of all valid runs, warm-up included. Times: the median, the p99 and how \
         many. Connect: until the TCP connection was there. Handshakes: TLS from there on, QUIC \
         from the first packet; with early data, until the handshake was confirmed (queries leave \
         before). Lost: ended before we ended them. Refused: those of the failed and lost ones that the server turned \
         away, before any answer. Not processed: queries that the server left \
         alone when it ended the connection.</p>\n\
         <div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Connections\">\n\
         <table class=\"figures\">\n<thead><tr>{header}</tr></thead>\n<tbody>\n"
    );
    for &(place, variant) in &connected {
        let record = records.iter().find(|record| record.variant == variant.name);
        let transport = record.map_or(NONE, |record| transport_name(record.load.transport_name()));
        html.push_str(&row(&grouping.class(place), variant, transport));
    }
    html.push_str("</tbody>\n</table>\n</div>\n");
    html.push_str(&network(&connected));
    html.push_str("</details>\n</section>\n");
    html
}

fn row(class: &str, variant: &VariantSummary, transport: &str) -> String {
    let connections = &variant.connections;
    let mut html = format!(
        "<tr><th scope=\"row\"><i class=\"key {class}\"></i>{}</th><td>{}</td>",
        escape(&variant.name),
        escape(transport)
    );
    let Connections { opened, failed, lost, refused, closed, not_processed, .. } =
        connections.counts;
    for count in [opened, failed, lost, refused, closed, not_processed] {
        let _ = write!(html, "<td>{}</td>", number::count(count));
    }
    for time in [
        &connections.connect_time,
        &connections.handshake_time,
        &connections.resumed_handshake_time,
        &connections.early_data_time,
    ] {
        let _ = write!(html, "<td>{}</td>", time_html(time));
    }
    html.push_str("</tr>\n");
    html
}

fn time_html(times: &Histogram) -> String {
    let Some((p50, p99)) = times.quantile_ns(0.5).zip(times.quantile_ns(0.99)) else {
        return NONE.to_owned();
    };
    format!(
        "<b>{}</b><small>p99 {}</small><small>{} times</small>",
        escape(&number::duration(p50 as f64)),
        escape(&number::duration(p99 as f64)),
        number::count(times.len())
    )
}

fn network(variants: &[(usize, &VariantSummary)]) -> String {
    let lines = variants.iter().filter_map(|(_, variant)| {
        let Some(drops) = &variant.network else {
            // Nobody expects the tool that an import is of to know.
            let unknown = || format!("{}: unknown, the kernel did not say", variant.name);
            return variant.imported.is_none().then(unknown);
        };
        let (again, overflows) = (drops.tcp_retransmitted, drops.tcp_listen_overflows);
        (again + overflows > 0).then(|| {
            format!(
                "{}: {} TCP segments sent again, {} connections refused by a full listening queue",
                variant.name,
                number::count(again),
                number::count(overflows)
            )
        })
    });
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return String::new();
    }
    format!(
        "<p class=\"hint\">On the generator&#39;s host, by whatever process: {}.</p>\n",
        escape(&lines.join("; "))
    )
}
