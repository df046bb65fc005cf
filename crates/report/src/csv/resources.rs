//! What the servers of every run used, sample by sample.

use dnslab_record::{Measured, ResourceSample, ResourceSeries, RunRecord, UNDER_TEST};

use super::field::{push_row, status, whole};

const HEADER: [&str; 15] = [
    "variant",
    "repetition",
    "status",
    "phase",
    "server",
    "at_s",
    "length_s",
    "memory_octets",
    "cpu_ns",
    "context_switches",
    "udp_drops",
    "log_octets",
    "steal_ns",
    "machine_cpu_ns",
    "dnslab_cpu_ns",
];

/// Counts are those since the sample before, `length_s` long. The first sample of a server has none.
pub(crate) fn resources(records: &[RunRecord]) -> String {
    let mut text = String::new();
    push_row(&mut text, HEADER.map(str::to_owned));
    for record in records {
        for (server, series) in series_of(record) {
            let mut before: Option<&ResourceSample> = None;
            for sample in &series.samples {
                push_row(&mut text, row(record, server, before, sample));
                before = Some(sample);
            }
        }
    }
    text
}

/// True if any server of these runs was watched.
pub(crate) fn has_resources(records: &[RunRecord]) -> bool {
    records.iter().any(|record| series_of(record).any(|(_, series)| !series.samples.is_empty()))
}

/// The server under test, then those behind it by their roles.
fn series_of(record: &RunRecord) -> impl Iterator<Item = (&str, &ResourceSeries)> {
    let own = record.measured.iter().map(|_| (UNDER_TEST, &record.watched.resources));
    own.chain(record.watched.chain.iter().map(|part| (part.role.as_str(), &part.resources)))
}

fn row(
    record: &RunRecord,
    server: &str,
    before: Option<&ResourceSample>,
    sample: &ResourceSample,
) -> [String; HEADER.len()] {
    let seconds = |ns: i64| (ns as f64 / 1e9).to_string();
    let grown = |counter: fn(&ResourceSample) -> u64| {
        whole(before.map(|before| counter(sample).saturating_sub(counter(before))))
    };
    // Records that do not have it have 0.
    let known = |counter: fn(&ResourceSample) -> u64| match counter(sample) {
        0 => String::new(),
        _ => grown(counter),
    };
    let window = record.measured.as_ref().map(Measured::window).unwrap_or_default();
    let phase = match sample.at_ns {
        at if at < 0 => "before",
        at if at < window.from_ns => "warm-up",
        at if at <= window.to_ns => "measured",
        _ => "after",
    };
    [
        record.variant.clone(),
        record.repetition.to_string(),
        status(&record.status).0.to_owned(),
        phase.to_owned(),
        server.to_owned(),
        seconds(sample.at_ns),
        before.map_or_else(String::new, |before| seconds(sample.at_ns - before.at_ns)),
        sample.memory_octets.to_string(),
        grown(|sample| sample.cpu_ns),
        grown(|sample| sample.context_switches),
        grown(|sample| sample.udp_drops),
        known(|sample| sample.log_octets),
        grown(|sample| sample.steal_ns),
        known(|sample| sample.machine_ns),
        known(|sample| sample.dnslab_ns),
    ]
}
