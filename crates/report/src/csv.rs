//! The figures of every run and of every interval as CSV (RFC 4180, lines ended by LF).
//!
//! Durations are in nanoseconds or, where the heading says so, in seconds; shares are in [0, 1]; a
//! figure that was not measured is an empty field.

mod answers;
mod chain;
mod cpu;
mod field;
mod resources;
mod windows;

use dnslab_analysis::{Agreement, CacheCounts, SelfCheck};
use dnslab_figures::PacingWindow;
use dnslab_record::{
    CpuLimit, LoadMode, Measured, Observation, ResourceSample, RunRecord, Span, counter,
};

use crate::words::bottleneck::{bottleneck_name, evidence_text};
use crate::words::self_check::remark;
pub(crate) use answers::answers;
pub(crate) use chain::chain;
pub(crate) use cpu::cpu;
use field::{histogram_fields, number, rcodes, seconds, text, whole};
pub(crate) use field::{push_row, status};
pub(crate) use resources::{has_resources, resources};
pub(crate) use windows::windows;

/// Widths of the windows of the pacing as headings name them, and in nanoseconds.
const PACING_WIDTHS: [(&str, u64); 4] =
    [("1s", 1_000_000_000), ("100ms", 100_000_000), ("10ms", 10_000_000), ("1ms", 1_000_000)];

pub(crate) fn runs(records: &[RunRecord]) -> String {
    let mut text = String::new();
    push_row(&mut text, run_fields(None).into_iter().map(|(name, _)| name));
    for record in records {
        push_row(&mut text, run_fields(Some(record)).into_iter().map(|(_, value)| value));
    }
    text
}

pub(crate) fn series(records: &[RunRecord]) -> String {
    const HEADER: [&str; 25] = [
        "variant",
        "repetition",
        "status",
        "phase",
        "at_s",
        "length_s",
        "due",
        "sent",
        "answered",
        "lost",
        "answered_qps",
        "p50_ns",
        "p95_ns",
        "p99_ns",
        "p999_ns",
        "max_ns",
        "server_busy_share",
        "server_counted_qps",
        "rcodes",
        "sent_octets",
        "received_octets",
        "connections_opened",
        "connections_ended",
        "full_handshakes",
        "resumed_handshakes",
    ];
    let mut text = String::new();
    push_row(&mut text, HEADER.map(str::to_owned));
    for record in records {
        let Some(run) = record.observation() else { continue };
        let measured = run.measured;
        for interval in &measured.intervals {
            let warm_up = interval.at_ns < measured.window_start_ns;
            let end_ns = interval.at_ns + interval.length_ns;
            let span = Span::between(interval.at_ns as i64, end_ns as i64);
            let qps = (interval.length_ns > 0).then(|| interval.answered_qps());
            let imported = record.imported.as_ref();
            let is_known = imported.is_none_or(|imported| imported.has_whole_intervals);
            let traffic = interval.traffic.as_ref();
            let counted = |count: u64| whole(is_known.then_some(count));
            push_row(
                &mut text,
                [
                    record.variant.clone(),
                    record.repetition.to_string(),
                    status(&record.status).0.to_owned(),
                    if warm_up { "warm-up" } else { "measured" }.to_owned(),
                    seconds(interval.at_ns),
                    seconds(interval.length_ns),
                    counted(interval.due),
                    counted(interval.sent),
                    interval.answered.to_string(),
                    counted(interval.lost),
                    number(qps),
                    whole(interval.p50_ns),
                    whole(interval.p95_ns),
                    whole(interval.p99_ns),
                    whole(interval.p999_ns),
                    whole(interval.max_ns),
                    number(run.watched.resources.busy_share(span)),
                    number(counted_qps(&run, span)),
                    rcodes(&interval.rcodes),
                    whole(traffic.map(|traffic| traffic.sent_octets)),
                    whole(traffic.map(|traffic| traffic.received_octets)),
                    whole(traffic.map(|traffic| traffic.opened)),
                    whole(traffic.and_then(|traffic| traffic.ended)),
                    whole(traffic.map(|traffic| traffic.full_handshakes)),
                    whole(traffic.map(|traffic| traffic.resumed_handshakes)),
                ],
            );
        }
    }
    text
}

/// Queries per second that the server counted itself in a span of a run, from its readings, which are
/// further apart than an interval.
pub(crate) fn counted_qps(run: &Observation<'_>, span: Span) -> Option<f64> {
    let counters = run.watched.counters.as_ref()?;
    let counted = counters.growth_in(counter::QUERIES, span, run.measured.window().to_ns)?;
    (span.length_ns() > 0).then(|| counted * 1e9 / span.length_ns() as f64)
}

type Field = (&'static str, String);

/// The headings and fields of one run; without a record only the headings count.
fn run_fields(record: Option<&RunRecord>) -> Vec<(String, String)> {
    let owned = |fields: Vec<Field>| {
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Vec<_>>()
    };
    let imported = record.and_then(|record| record.imported.as_ref());
    let mut fields = owned(case_fields(record));
    let run = record.and_then(RunRecord::observation);
    let measured = run.map(|run| run.measured);
    fields.extend(owned(count_fields(measured)));
    if imported.is_some() {
        leave_unknown(&mut fields);
    }
    // In a closed loop there is no schedule to lag behind.
    let scheduled = record.is_some_and(|record| record.load.window().is_none());
    for (name, histogram) in [
        ("latency", measured.map(|measured| &measured.latency)),
        ("service_time", measured.map(|measured| &measured.service_time)),
        ("send_lag", measured.filter(|_| scheduled).map(|measured| &measured.send_lag)),
        ("connect", measured.map(|measured| &measured.connect_time)),
        ("full_handshake", measured.map(|measured| &measured.handshake_time)),
        ("resumed_handshake", measured.map(|measured| &measured.resumed_handshake_time)),
        ("early_data", measured.map(|measured| &measured.early_data_time)),
    ] {
        fields.extend(histogram_fields(name, histogram));
    }
    if let Some(latency) = imported.and_then(|imported| imported.latency) {
        // As the tool computed them, and not from its histogram.
        for (name, value) in [
            ("latency_mean_ns", number(Some(latency.mean_ns))),
            ("latency_max_ns", whole(latency.max_ns)),
        ] {
            fields
                .iter_mut()
                .filter(|(field, _)| field == name)
                .for_each(|(_, field)| field.clone_from(&value));
        }
    }
    for (name, width_ns) in PACING_WIDTHS {
        let pacing = measured.and_then(|measured| measured.pacing.as_ref());
        fields.extend(pacing_fields(name, pacing.and_then(|pacing| pacing.of_width(width_ns))));
    }
    fields.extend(owned(resource_fields(run.as_ref())));
    fields.extend(owned(network_fields(measured.filter(|_| imported.is_none()))));
    fields.extend(owned(agreement_fields(run.as_ref())));
    // A run that was not measured had no bottleneck.
    let own = record.filter(|run| run.measured.is_some() && imported.is_none());
    let bottleneck = own.map(|run| &run.bottleneck);
    fields.extend(owned(vec![
        ("bottleneck", text(bottleneck, |bottleneck| bottleneck_name(bottleneck.kind).to_owned())),
        ("bottleneck_evidence", text(bottleneck, |bottleneck| evidence_text(&bottleneck.evidence))),
    ]));
    let check = record.and_then(SelfCheck::of);
    fields.extend(owned(vec![
        ("self_check", text(check.as_ref(), |check| check.verdict.word().to_owned())),
        ("self_check_findings", text(check.as_ref(), findings)),
    ]));
    fields
}

/// Empties what another tool does not tell among the counts: it would be 0.
fn leave_unknown(fields: &mut [(String, String)]) {
    const KNOWN: [&str; 6] =
        ["window_ns", "answered_qps", "offered_qps", "due", "answered", "timed_out"];
    let counts = fields.iter_mut().skip_while(|(name, _)| name != KNOWN[0]);
    let is_unknown = |name: &str| !KNOWN.contains(&name) && name != "rcodes";
    counts.filter(|(name, _)| is_unknown(name)).for_each(|(_, value)| value.clear());
    // What it was not told is no seed and no time-out.
    for (name, value) in fields.iter_mut() {
        let is_zero = ["seed", "clients", "timeout_ns"].contains(&name.as_str()) && value == "0";
        if is_zero || name == "outstanding_per_client" {
            value.clear();
        }
    }
}

fn case_fields(record: Option<&RunRecord>) -> Vec<Field> {
    let load = record.map(|record| &record.load);
    let mode = load.map(|load| &load.mode);
    vec![
        ("variant", text(record, |run| run.variant.clone())),
        ("repetition", text(record, |run| run.repetition.to_string())),
        ("position", text(record, |run| run.position.to_string())),
        ("started", text(record, |run| run.started.clone())),
        ("status", text(record, |run| status(&run.status).0.to_owned())),
        ("reason", text(record, |run| status(&run.status).1)),
        ("server", text(record, |run| run.server.kind.clone())),
        ("server_version", text(record, |run| run.server.version.clone())),
        ("transport", text(load, |load| load.transport_name().to_owned())),
        ("target", text(load, |load| load.target.clone())),
        ("clients", text(load, |load| load.clients.to_string())),
        (
            "outstanding_per_client",
            text(mode, |mode| match mode {
                LoadMode::Closed { outstanding } => outstanding.to_string(),
                LoadMode::Open { .. } => String::new(),
            }),
        ),
        (
            "intended_qps",
            text(mode, |mode| match mode {
                LoadMode::Closed { .. } => String::new(),
                LoadMode::Open { rate_qps, .. } => number(Some(*rate_qps)),
            }),
        ),
        ("timeout_ns", text(load, |load| load.timeout_ns.to_string())),
        ("seed", text(load, |load| load.seed.to_string())),
        ("server_seed", whole(record.and_then(|run| run.server.seed))),
    ]
}

fn count_fields(measured: Option<&Measured>) -> Vec<Field> {
    let outcomes = measured.map(|measured| &measured.counters.outcomes);
    let answers = measured.map(|measured| &measured.counters.answers);
    let connections = measured.map(|measured| &measured.counters.connections);
    vec![
        ("window_ns", text(measured, |measured| measured.window_ns.to_string())),
        ("answered_qps", number(measured.map(Measured::answered_qps))),
        ("offered_qps", number(measured.map(Measured::offered_qps))),
        ("due", text(outcomes, |outcomes| outcomes.due.to_string())),
        ("answered", text(outcomes, |outcomes| outcomes.answered.to_string())),
        ("timed_out", text(outcomes, |outcomes| outcomes.timed_out.to_string())),
        ("not_sent", text(outcomes, |outcomes| outcomes.not_sent.to_string())),
        ("connection_lost", text(outcomes, |outcomes| outcomes.connection_lost.to_string())),
        ("malformed", text(outcomes, |outcomes| outcomes.malformed.to_string())),
        ("refused", text(outcomes, |outcomes| outcomes.refused.to_string())),
        ("asked_again", text(measured, |measured| measured.counters.asked_again.to_string())),
        (
            "attempts_after_silence",
            text(measured, |measured| measured.counters.attempts.timed_out.to_string()),
        ),
        (
            "attempts_after_failure",
            text(measured, |measured| measured.counters.attempts.failed.to_string()),
        ),
        ("rcodes", text(answers, |answers| rcodes(&answers.rcodes))),
        ("truncated", text(answers, |answers| answers.truncated.to_string())),
        ("empty", text(answers, |answers| answers.empty.to_string())),
        ("wrong", text(answers, |answers| answers.wrong.to_string())),
        ("checked", text(answers, |answers| answers.checked.to_string())),
        ("malformed_of_checked", text(answers, |answers| answers.malformed.to_string())),
        ("bad_signature", text(answers, |answers| answers.bad_signature.to_string())),
        ("late", text(answers, |answers| answers.late.to_string())),
        ("duplicate", text(answers, |answers| answers.duplicate.to_string())),
        ("unexpected", text(answers, |answers| answers.unexpected.to_string())),
        ("connections_opened", text(connections, |all| all.opened.to_string())),
        ("connections_failed", text(connections, |all| all.failed.to_string())),
        ("connections_refused", text(connections, |all| all.refused.to_string())),
        ("connections_lost", text(connections, |all| all.lost.to_string())),
        ("connections_closed", text(connections, |all| all.closed.to_string())),
        ("not_processed", text(connections, |all| all.not_processed.to_string())),
        ("full_handshakes", text(connections, |all| all.full_handshakes.to_string())),
        ("resumed_handshakes", text(connections, |all| all.resumed_handshakes.to_string())),
        ("early_data_handshakes", text(connections, |all| all.early_data.to_string())),
    ]
}

fn pacing_fields(name: &str, window: Option<&PacingWindow>) -> Vec<(String, String)> {
    let window = window.filter(|window| window.windows > 0);
    let error = |quantile: fn(&PacingWindow) -> f64| number(window.map(quantile));
    [
        ("windows", whole(window.map(|window| window.windows))),
        ("within_1_percent", whole(window.map(|window| window.within_1_percent))),
        ("mean_error", error(|window| window.mean_error)),
        ("p50_error", error(|window| window.p50_error)),
        ("p99_error", error(|window| window.p99_error)),
        ("max_error", error(|window| window.max_error)),
    ]
    .into_iter()
    .map(|(figure, value)| (format!("pacing_{name}_{figure}"), value))
    .collect()
}

/// What the generator's host dropped and sent again, on behalf of whatever process.
fn network_fields(measured: Option<&Measured>) -> Vec<Field> {
    let drops = measured.and_then(|measured| measured.network.as_ref());
    vec![
        ("host_udp_receive_drops", text(drops, |drops| drops.udp_receive_buffer.to_string())),
        ("host_udp_send_drops", text(drops, |drops| drops.udp_send_buffer.to_string())),
        ("host_udp_no_port", text(drops, |drops| drops.udp_no_port.to_string())),
        ("host_listen_overflows", text(drops, |drops| drops.tcp_listen_overflows.to_string())),
        ("host_tcp_retransmitted", text(drops, |drops| drops.tcp_retransmitted.to_string())),
    ]
}

/// What the load sent and the server counted, warm-up included.
fn agreement_fields(run: Option<&Observation<'_>>) -> Vec<Field> {
    let agreement = run.and_then(Agreement::of);
    let agreement = agreement.as_ref();
    let cache = run.and_then(CacheCounts::of);
    let cache = cache.as_ref();
    vec![
        ("sent_by_load", text(agreement, |both| both.sent.to_string())),
        ("counted_by_server", text(agreement, |both| both.counted.to_string())),
        ("counted_less_sent", text(agreement, |both| both.difference().to_string())),
        ("counter_source", text(agreement, |both| both.source.clone())),
        ("cache_hits", text(cache, |cache| cache.hits.to_string())),
        ("cache_misses", text(cache, |cache| cache.misses.to_string())),
    ]
}

fn findings(check: &SelfCheck) -> String {
    check.findings.iter().map(|found| remark(found).text()).collect::<Vec<_>>().join(" ")
}

fn resource_fields(run: Option<&Observation<'_>>) -> Vec<Field> {
    let measured = run.map(|run| run.measured);
    let peak = |run: &Observation<'_>| run.watched.resources.peak_memory_octets();
    let grown = |counter: fn(&ResourceSample) -> u64| {
        whole(run.and_then(|run| run.watched.resources.growth(run.measured.window(), counter)))
    };
    let busiest = |measured: &Measured| {
        measured.workers.iter().map(dnslab_record::WorkerFacts::busy_share).reduce(f64::max)
    };
    let waited = |run: &Observation<'_>| run.measured.waited_share_of(&run.watched.resources);
    let share = |limit: &Option<CpuLimit>| limit.as_ref().map(CpuLimit::throttled_share);
    let throttled = |run: &Observation<'_>| share(&run.watched.resources.cpu_limit);
    let own_throttled = |run: &Observation<'_>| share(&run.watched.load_cpu_limit);
    let longest = |measured: &Measured| {
        measured.workers.iter().map(dnslab_record::WorkerFacts::waited_share).reduce(f64::max)
    };
    vec![
        ("server_busy_share", number(run.and_then(Observation::server_busy_share))),
        ("server_cpu_per_query_ns", number(run.and_then(Observation::server_cpu_per_query_ns))),
        ("server_peak_memory_octets", whole(run.and_then(peak))),
        ("server_context_switches", grown(|sample| sample.context_switches)),
        ("server_udp_drops", grown(|sample| sample.udp_drops)),
        ("steal_ns", grown(|sample| sample.steal_ns)),
        ("server_log_octets", grown(|sample| sample.log_octets)),
        ("log_octets_per_query", number(run.and_then(Observation::log_octets_per_query))),
        ("server_waited_share", number(run.and_then(waited))),
        ("server_throttled_share", number(run.and_then(throttled))),
        ("generator_busiest_share", number(measured.and_then(busiest))),
        ("generator_waited_share", number(measured.and_then(longest))),
        ("generator_throttled_share", number(run.and_then(own_throttled))),
        (
            "generator_cpu_per_query_ns",
            number(measured.and_then(Measured::generator_cpu_per_query_ns)),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_begins_a_formula() {
        let check = |field: &str, expected: &str| {
            let mut row = String::new();
            push_row(&mut row, ["a".to_owned(), field.to_owned()]);
            assert_eq!(row, format!("a,{expected}\n"), "{field:?}");
        };
        check("=HYPERLINK(\"http://x\",1)", "\"'=HYPERLINK(\"\"http://x\"\",1)\"");
        check("@SUM(1)", "'@SUM(1)");
        check("+1+cmd|' /C calc'!A0", "'+1+cmd|' /C calc'!A0");
        check("-2+3", "'-2+3");
        check("\t=1", "'\t=1");
        check("\r=1", "\\r=1");
        check("\n=1", "\"'\n=1\"");
        check("\u{1b}[2J", "\\u{1b}[2J");
        // A number stays one, also for programs.
        for number in ["-12", "-0.5", "-1e-7", "+3", "", "12", "a-b", "a=b"] {
            check(number, number);
        }
    }
}
