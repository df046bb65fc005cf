//! Results as dns-metrics, the JSON that tools of DNS-OARC have in common:
//! <https://github.com/DNS-OARC/dns-metrics>.
//!
//! One object a line. Each run has a header, an event for each caveat, periodic statistics of its measured
//! window, and their sum. All times are in nanoseconds.

use dnslab_figures::{Histogram, Interval};
use dnslab_record::{CaseId, Measured, RunRecord, RunStatus, Session, visible_json};
use dnslab_wire::Transport;
use serde_json::{Map, Value, json};

use crate::words::caveat::caveat_text;
use crate::words::invalid::invalid_text;

/// The version of the schema that is written, as its example names it.
const SCHEMA_VERSION: u64 = 20_221_207;

const PER_SECOND: u64 = 1_000_000_000;

/// The runs of a results directory as dns-metrics, one object a line, with a line break at the end.
///
/// A time of day is that of the beginning of the run, at which its server starts, and the time since the load
/// began. So it may be seconds early, and differences within a run are exact.
#[must_use]
pub fn dns_metrics(session: &Session, records: &[RunRecord]) -> String {
    let mut text = String::new();
    for object in records.iter().flat_map(|record| objects(session, record)) {
        text.push_str(&visible_json(&object.to_string()));
        text.push('\n');
    }
    text
}

fn objects(session: &Session, record: &RunRecord) -> Vec<Value> {
    let case = CaseId { variant: record.variant.clone(), repetition: record.repetition };
    let run = format!("{}-{}-{}", session.name, session.started, case.folder());
    let event = |kind: &str, text: String| json!({"runid": run, "type": "event", "msg_type": kind, "msg": text});
    let mut all = vec![header(session, record, &run)];
    match &record.status {
        RunStatus::Valid => {}
        RunStatus::Invalid { reason } => all.push(event("invalid", invalid_text(reason))),
        RunStatus::Failed { reason, .. } => all.push(event("failed", reason.clone())),
    }
    all.extend(record.all_caveats().iter().map(|caveat| event("caveat", caveat_text(caveat))));
    let Some(measured) = &record.measured else { return all };
    let start_ns = record.started_ns().unwrap_or(0);
    let window = measured.window_start_ns..measured.window_start_ns + measured.window_ns;
    let inside = measured.intervals.iter().filter(|interval| window.contains(&interval.at_ns));
    all.extend(inside.map(|interval| {
        let since = start_ns.saturating_add(interval.at_ns);
        statistics("stats_periodic", &run, since, interval.length_ns, |object| {
            periodic(record, interval, object);
        })
    }));
    let since = start_ns.saturating_add(measured.window_start_ns);
    all.push(statistics("stats_sum", &run, since, measured.window_ns, |object| {
        sum(record, measured, object);
    }));
    all
}

fn header(session: &Session, record: &RunRecord, run: &str) -> Value {
    let load = &record.load;
    let measured = record.measured.as_ref();
    // What was asked for is the length of most of them; the last one may be shorter.
    let interval_ns = measured
        .and_then(|measured| measured.intervals.iter().map(|interval| interval.length_ns).max());
    let seconds = |ns: u64| ns as f64 / PER_SECOND as f64;
    let (generator, version, parameters) = match &record.imported {
        Some(imported) => {
            (imported.generator.clone(), imported.version.clone(), imported.command.clone())
        }
        None => ("dnslab".to_owned(), session.dnslab.clone(), session.command.clone()),
    };
    let mut header = json!({
        "runid": run,
        "type": "header",
        "schema_version": SCHEMA_VERSION,
        "generator": generator,
        "generator_version": version,
        "generator_params": parameters.get(1..).unwrap_or_default(),
        "time_units_per_sec": PER_SECOND,
        "stats_interval": seconds(interval_ns.unwrap_or(load.duration_ns)),
        // What the schema has no name for.
        "additional_info": {
            "experiment": session.name,
            "variant": record.variant,
            "repetition": record.repetition,
            "transport": load.transport_name(),
            "target": load.target,
            "clients": load.clients,
            "server": record.server.title(),
        },
    });
    if load.timeout_ns > 0 {
        header["timeout"] = json!(seconds(load.timeout_ns));
    }
    header
}

/// Statistics of so many nanoseconds, from `since` on.
fn statistics(
    kind: &str,
    run: &str,
    since: u64,
    length_ns: u64,
    fill: impl FnOnce(&mut Map<String, Value>),
) -> Value {
    let mut object = Map::new();
    object.insert("runid".to_owned(), json!(run));
    object.insert("type".to_owned(), json!(kind));
    object.insert("since".to_owned(), json!(since));
    object.insert("until".to_owned(), json!(since.saturating_add(length_ns)));
    fill(&mut object);
    Value::Object(object)
}

fn periodic(record: &RunRecord, interval: &Interval, object: &mut Map<String, Value>) {
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("responses", json!(interval.answered));
    // dnsperf may have printed answers alone.
    if record.imported.as_ref().is_none_or(|imported| imported.has_whole_intervals) {
        put("queries", json!(interval.sent));
        put("timeouts", json!(interval.lost));
    }
    if !interval.rcodes.is_empty() {
        put("response_rcodes", json!(interval.rcodes));
    }
    let quantiles = [
        ("p50", interval.p50_ns),
        ("p95", interval.p95_ns),
        ("p99", interval.p99_ns),
        ("p999", interval.p999_ns),
        ("max", interval.max_ns),
    ];
    let known: Map<String, Value> = quantiles
        .into_iter()
        .filter_map(|(name, ns)| Some((name.to_owned(), json!(ns?))))
        .collect();
    if !known.is_empty() {
        put("response_latency", Value::Object(known));
    }
}

fn sum(record: &RunRecord, measured: &Measured, object: &mut Map<String, Value>) {
    let (outcomes, answers) = (&measured.counters.outcomes, &measured.counters.answers);
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    let interrupted = record.imported.as_ref().map_or(0, |imported| imported.interrupted);
    put("queries", json!(outcomes.due.saturating_add(interrupted)));
    put("responses", json!(outcomes.answered));
    put("timeouts", json!(outcomes.timed_out));
    // Ended in another way: not sent, lost with its connection, refused, or answered by what is no DNS message.
    put("interrupted", json!(outcomes.lost() - outcomes.timed_out + interrupted));
    put("response_rcodes", json!(answers.rcodes));
    if record.imported.is_none() {
        put("unexpected", json!(answers.unexpected));
        put("discarded", json!(answers.late + answers.duplicate));
    }
    if let Some(latency) = latency(record, &measured.service_time) {
        put("response_latency", latency);
    }
    if let Some(connections) = connections(record, measured) {
        put("conn_info", connections);
    }
}

/// Times from the sending of a query to its answer.
fn latency(record: &RunRecord, times: &Histogram) -> Option<Value> {
    let whole = |ns: f64| json!(ns.round().max(0.0) as u64);
    let mut latency = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        latency.extend(value.map(|value| (name.to_owned(), value)));
    };
    match record.imported.as_ref().map(|imported| imported.latency) {
        Some(summary) => {
            let summary = summary?;
            put("avg", Some(whole(summary.mean_ns)));
            put("min", summary.min_ns.map(|ns| json!(ns)));
            put("max", summary.max_ns.map(|ns| json!(ns)));
            put("stddev", summary.stddev_ns.map(whole));
        }
        None => {
            put("avg", Some(whole(times.mean_ns()?)));
            put("min", times.min_ns().map(|ns| json!(ns)));
            put("max", times.max_ns().map(|ns| json!(ns)));
            put("stddev", times.stddev_ns().map(whole));
        }
    }
    let buckets: Vec<[u64; 3]> = times
        .buckets()
        .into_iter()
        .map(|bucket| [bucket.from_ns, bucket.to_ns - 1, bucket.count])
        .collect();
    put("buckets", (!buckets.is_empty()).then(|| json!(buckets)));
    Some(Value::Object(latency))
}

/// The connections of the measured window; `None` where clients use several transports.
fn connections(record: &RunRecord, measured: &Measured) -> Option<Value> {
    if record.load.mix.is_some() {
        return None;
    }
    if let Some(imported) = &record.imported {
        let opened = imported.connections.and_then(|connections| connections.opened)?;
        return Some(json!({"type": "tcp", "handshakes": opened}));
    }
    let connections = &measured.counters.connections;
    let kind = match record.load.transport? {
        Transport::Udp => return Some(json!({"type": "udp"})),
        Transport::Tcp => {
            return Some(json!({
                "type": "tcp",
                "handshakes": connections.opened,
                "handshakes_failed": connections.failed,
            }));
        }
        Transport::Dot | Transport::Doh2 => "tls_conn",
        Transport::Doq | Transport::Doh3 => "quic_conn",
    };
    Some(json!({
        "type": kind,
        "handshakes": connections.full_handshakes + connections.resumed_handshakes,
        "handshakes_failed": connections.failed,
        "resumption": {"established": connections.resumed_handshakes},
    }))
}
