//! What is said of runs that another load generator measured: where they differ from dnslab's own, and what is
//! not known of them.

use dnslab_record::{Imported, ImportedLatency, RunRecord};
use dnslab_wire::Method;

use crate::number;
use crate::transport::transport_name;

/// The clients and their window: `10 clients, 20 queries outstanding in all, at most 5,000 queries/s`.
pub(crate) fn load_text(record: &RunRecord, imported: &Imported) -> String {
    let clients = match record.load.clients {
        0 => "clients not known".to_owned(),
        clients => number::counted(clients.into(), "client", "clients"),
    };
    let window = imported
        .window
        .map(|window| number::counted(window, "query", "queries") + " outstanding in all");
    let most = imported.max_qps.map(|qps| format!("at most {} queries/s", number::qps(qps)));
    [Some(clients), window, most].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Facts of an imported run by their names; what is not known is empty.
pub(crate) fn facts(record: &RunRecord, imported: &Imported) -> Vec<(&'static str, String)> {
    let load = &record.load;
    let as_set = |ns: u64| if ns == 0 { String::new() } else { number::as_set(ns) };
    let connections = imported.connections.map(|connections| {
        let count = |count: Option<u64>, noun: &str| {
            count.map(|count| format!("{} {noun}", number::count(count)))
        };
        let parts = [
            count(connections.attempted, "attempted"),
            count(connections.opened, "opened"),
            count(connections.reconnected, "made again"),
            connections.latency.as_ref().map(latency_text),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    });
    let interrupted = match imported.interrupted {
        0 => String::new(),
        count => {
            let queries = number::counted(count, "query", "queries");
            format!("{queries} without an outcome, counted as not sent")
        }
    };
    let measured = record.measured.as_ref();
    let octets =
        measured.map(|measured| (measured.counters.sent_octets, measured.counters.answers.octets));
    let octets = octets.filter(|(sent, received)| *sent > 0 || *received > 0);
    vec![
        ("measured by", imported.title()),
        ("read from", imported.file.clone()),
        ("its command", imported.command.join(" ")),
        ("began", record.started.clone()),
        ("transport", transport_name(load.transport_name()).to_owned()),
        ("load", load_text(record, imported)),
        ("time", as_set(load.duration_ns)),
        ("ended by", imported.ended.clone()),
        ("interrupted", interrupted),
        ("time-out", as_set(load.timeout_ns)),
        ("clients", load.behaviour.clone()),
        ("queries", load.queries.clone()),
        ("options for the queries", load.edns.clone()),
        ("HTTP method", load.http_method.map_or("", Method::name).to_uppercase()),
        ("target", load.target.clone()),
        ("latency of the answered", imported.latency.as_ref().map(latency_text).unwrap_or_default()),
        ("connections", connections.unwrap_or_default()),
        (
            "DNS messages",
            octets.map_or_else(String::new, |(sent, received)| {
                format!(
                    "{} sent, {} received, from mean lengths that are rounded down",
                    number::octets(sent),
                    number::octets(received)
                )
            }),
        ),
        (
            "not known",
            "the server's CPU and memory, send lag, the generator's own CPU, the bottleneck, wrong and late \
             answers"
                .to_owned(),
        ),
    ]
}

fn latency_text(latency: &ImportedLatency) -> String {
    let quantile =
        |name: &str, ns: Option<f64>| ns.map(|ns| format!("{name} {}", number::duration(ns)));
    let parts = [
        quantile("mean", Some(latency.mean_ns)),
        quantile("least", latency.min_ns.map(|ns| ns as f64)),
        quantile("largest", latency.max_ns.map(|ns| ns as f64)),
        quantile("standard deviation", latency.stddev_ns),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// How the figures were made, for the page.
pub(crate) fn method(records: &[RunRecord]) -> Vec<(&'static str, String)> {
    let mut titles: Vec<String> = Vec::new();
    for title in records.iter().filter_map(|record| Some(record.imported.as_ref()?.title())) {
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    vec![
        (
            "Source",
            format!(
                "These figures are those of {}, read from what it printed. dnslab applied no load and watched \
                 no server.",
                titles.join(", ")
            ),
        ),
        (
            "Latency",
            "From the sending of a query to its answer, of answered queries alone: what was lost is in no \
             latency. dnslab's own latencies have lost queries with their time-out."
                .to_owned(),
        ),
        (
            "Quantiles",
            "From the tool's histogram, where it printed one: each answer counts in the middle of its bucket. \
             Buckets are 1 us wide, or up to 3 % of the latency. Mean, least and largest are those that the \
             tool printed."
                .to_owned(),
        ),
        (
            "Load",
            "dnsperf keeps a window of outstanding queries over all clients, also with a bound on the rate \
             (-Q): it waits when the server stalls, so stalls are hidden from the latency."
                .to_owned(),
        ),
        (
            "Over time",
            "Intervals are those of -S. What came after the last of them is an interval of its own, so that \
             they add up."
                .to_owned(),
        ),
    ]
}
