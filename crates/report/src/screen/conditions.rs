//! Under which conditions it was measured, once.

use dnslab_measure::{LoadMode, RunRecord, Session};

use crate::number;

/// Server, CPUs, clients, rounds and their time.
pub(super) fn conditions(session: &Session, records: &[RunRecord]) -> String {
    let counted = || records.iter().filter(|record| record.measured.is_some());
    let mut parts: Vec<String> = Vec::new();
    parts.extend(shared(counted().map(server)));
    parts.extend(shared(counted().map(load)));
    if let Some(rate_qps) = session.common_rate_qps {
        parts.push(format!("latencies at {} queries/s", number::qps(rate_qps)));
    }
    let is_closed = |record: &RunRecord| {
        matches!(record.load.mode, LoadMode::Closed { .. }) && record.load.clients > 1
    };
    if session.common_rate_qps.is_none() && counted().any(is_closed) {
        parts.push("latencies at each variant's own full rate".to_owned());
    }
    let rounds = counted().map(|record| record.repetition).max().unwrap_or(0);
    let plural = if rounds == 1 { "" } else { "s" };
    // Seconds as they were asked for: 10 s, 0.2 s.
    let length = |record: &RunRecord| format!("{} s", record.load.duration_ns as f64 / 1e9);
    let length = shared(counted().map(length));
    let length = length.map_or_else(String::new, |length| format!(" of {length}"));
    parts.push(format!("{rounds} round{plural}{length}"));
    parts.join("; ")
}

/// What all have in common, or nothing.
fn shared(mut texts: impl Iterator<Item = String>) -> Option<String> {
    let first = texts.next()?;
    texts.all(|text| text == first).then_some(first)
}

/// A server with its CPUs.
fn server(record: &RunRecord) -> String {
    let title = title(&record.server.kind, &record.server.version);
    match record.server.cpus.len() {
        0 => title,
        1 => format!("{title}, 1 CPU"),
        cpus => format!("{title}, {cpus} CPUs"),
    }
}

/// The server's name as its makers write it, with the version.
fn title(kind: &str, version: &str) -> String {
    let name = match kind {
        "embedded" => "dnslab's own server",
        "bind" => "BIND",
        "knot" => "Knot DNS",
        "nsd" => "NSD",
        "unbound" => "Unbound",
        "knot-resolver" => "Knot Resolver",
        "pdns-recursor" => "PowerDNS Recursor",
        "coredns" => "CoreDNS",
        "dnsdist" => "dnsdist",
        "external" => "a running server",
        other => other,
    };
    // BIND adds its build to the release: 9.18.49-1~deb12u3-Debian.
    let release = version.split(['-', ' ', '+']).next().unwrap_or_default();
    match kind {
        "embedded" => name.to_owned(),
        "external" if !release.is_empty() => format!("{name} ({release})"),
        _ => format!("{name} {release}").trim().to_owned(),
    }
}

/// The clients and what they ask.
fn load(record: &RunRecord) -> String {
    let clients = record.load.clients;
    let plural = if clients == 1 { "" } else { "s" };
    let clients = format!("{} client{plural}", number::count(clients.into()));
    match &record.load.mode {
        LoadMode::Closed { outstanding: 1 } if record.load.clients == 1 => {
            format!("{clients}, one query after the other")
        }
        LoadMode::Closed { outstanding } => format!("{clients}, {outstanding} outstanding"),
        LoadMode::Open { rate_qps, .. } => {
            format!("{clients}, {} queries/s", number::qps(*rate_qps))
        }
    }
}
