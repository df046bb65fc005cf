//! The points of a run on disk.

use dnslab_figures::{Counters, Interval};
use dnslab_record::{CaseId, LoadPart, Measured, RunRecord};

use crate::Point;
use crate::runs::{Gauges, Phase, Run, loads, server_at, transport_of};

/// The year 2116: results may come from somebody else, and say anything.
const MAX_NS: u64 = 1 << 62;

/// The points of a run, second by second in its own time, and with the figures of its record at the end.
///
/// The record has the answers of each second, and other outcomes for the run as a whole: those are in the last point. A
/// run that was not measured has no points.
#[must_use]
pub fn points_of(experiment: &str, record: &RunRecord) -> Vec<Point> {
    let id = CaseId { variant: record.variant.clone(), repetition: record.repetition };
    let mut run = Run::new(experiment, &id, &transport_of(record));
    let mut points = Vec::new();
    let mut latest_ns = 0;
    for (part, seen) in loads(record) {
        let measured = seen.measured;
        let began = began_unix_ns(record, part, measured);
        // One that is not known begins after what came before.
        let began = began.max(latest_ns + 1_000_000);
        for phase in Phase::of(part) {
            run.counters.insert(phase, Counters::default());
        }
        run.make_series();
        points.push(run.point(began));
        latest_ns = began;
        for interval in series(measured) {
            let phase = Phase::of(part)[usize::from(interval.at_ns >= measured.window_start_ns)];
            let end = match phase {
                Phase::WarmUp | Phase::CommonWarmUp => &measured.warm_up,
                Phase::Measured | Phase::Common => &measured.counters,
            };
            grow(run.counters.entry(phase).or_default(), interval, end);
            let end_ns = interval.at_ns.saturating_add(interval.length_ns);
            let server = server_at(seen.watched, end_ns as i64);
            let cpu_ns = server.map(|server| server.cpu_ns);
            let gauges = Gauges {
                interval: Some(interval.clone()),
                pace: run.last_second.entry(part).or_default().add(interval, cpu_ns),
                server,
                ..run.gauges.get(&part).cloned().unwrap_or_default()
            };
            run.gauges.insert(part, gauges);
            run.make_series();
            latest_ns = began.saturating_add(end_ns).min(MAX_NS);
            points.push(run.point(latest_ns));
        }
    }
    if !points.is_empty() {
        run.end(record);
        points.push(run.point(latest_ns + 1_000_000));
    }
    points
}

/// Seconds, or the intervals where these are as long.
fn series(measured: &Measured) -> &[Interval] {
    if measured.seconds.is_empty() { &measured.intervals } else { &measured.seconds }
}

/// When a load began, nanoseconds since 1970. Records of before do not say; then the main load began with the run,
/// before its servers were up.
fn began_unix_ns(record: &RunRecord, part: LoadPart, measured: &Measured) -> u64 {
    let began = match (measured.began_unix_ns, part) {
        (0, LoadPart::Main) => {
            let started = humantime::parse_rfc3339(&record.started).ok();
            let since = started.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
            since.map_or(0, |since| since.as_nanos() as u64)
        }
        (began, _) => began,
    };
    began.min(MAX_NS)
}

/// Adds the events of an interval, never beyond what the phase had at its end: intervals count events when they happen,
/// and phases by when the query was due.
fn grow(so_far: &mut Counters, interval: &Interval, end: &Counters) {
    let add = |own: &mut u64, more: u64, end: u64| *own = own.saturating_add(more).min(end);
    let (outcomes, answers) = (&mut so_far.outcomes, &mut so_far.answers);
    add(&mut outcomes.due, interval.due, end.outcomes.due);
    // By transport they are known at the end alone.
    if end.by_transport.is_empty() {
        add(&mut outcomes.answered, interval.answered, end.outcomes.answered);
    }
    for (rcode, count) in &interval.rcodes {
        if let Some(end) = end.answers.rcodes.get(rcode) {
            add(answers.rcodes.entry(rcode.clone()).or_default(), *count, *end);
        }
    }
    add(&mut so_far.sent, interval.sent, end.sent);
    if let Some(traffic) = interval.traffic {
        let own = &mut so_far.connections;
        let last = &end.connections;
        add(&mut so_far.sent_octets, traffic.sent_octets, end.sent_octets);
        add(&mut answers.octets, traffic.received_octets, end.answers.octets);
        add(&mut own.opened, traffic.opened, last.opened);
        add(&mut own.full_handshakes, traffic.full_handshakes, last.full_handshakes);
        add(&mut own.resumed_handshakes, traffic.resumed_handshakes, last.resumed_handshakes);
    }
}
