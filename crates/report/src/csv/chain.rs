//! The servers of every chain, run by run.

use dnslab_analysis::{Reached, ServerFigures};
use dnslab_record::RunRecord;

use super::field::{number, push_row, status, whole};

/// Headings before those of what reached a server.
const HEADER: [&str; 12] = [
    "variant",
    "repetition",
    "status",
    "role",
    "host",
    "server",
    "transport",
    "qps",
    "mean_latency_ns",
    "busy_share",
    "cpu_per_query_ns",
    "peak_memory_octets",
];

pub(crate) fn chain(records: &[RunRecord]) -> String {
    let mut text = String::new();
    let reached = ["load", "start"].into_iter().flat_map(|since| {
        reached_fields(&Reached::default()).map(|(name, _)| match since {
            "load" => format!("{name}_during_load"),
            _ => format!("{name}_since_start"),
        })
    });
    push_row(&mut text, HEADER.map(str::to_owned).into_iter().chain(reached));
    for record in records {
        for server in ServerFigures::of_run(record) {
            let own = [
                record.variant.clone(),
                record.repetition.to_string(),
                status(&record.status).0.to_owned(),
                server.role,
                server.host,
                server.server,
                server.transport,
                number(server.qps),
                number(server.mean_latency_ns),
                number(server.busy_share),
                number(server.cpu_per_query_ns),
                whole(server.peak_memory_octets),
            ];
            let reached = [server.during_load, server.since_start];
            let reached =
                reached.iter().flat_map(|part| reached_fields(part).map(|(_, field)| field));
            push_row(&mut text, own.into_iter().chain(reached));
        }
    }
    text
}

fn reached_fields(reached: &Reached) -> [(&'static str, String); 5] {
    [
        ("queries", whole(reached.queries)),
        ("connections", whole(reached.connections)),
        ("full_handshakes", whole(reached.full_handshakes)),
        ("resumed_handshakes", whole(reached.resumed_handshakes)),
        ("queries_per_connection", number(reached.queries_per_connection())),
    ]
}
