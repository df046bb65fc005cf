//! Under which conditions it was measured, once.

use std::net::SocketAddr;

use dnslab_record::{Caveat, LoadMode, Measured, NetworkPath, RunRecord, Session};

use crate::imported::load_text;
use crate::number;
use crate::server::title;
use crate::variants::in_order;
use crate::words::invalid::left_early;

pub(crate) fn conditions(session: &Session, records: &[RunRecord]) -> String {
    let ordered = in_order(session, records);
    let counted = || ordered.iter().copied().filter(|record| record.measured.is_some());
    let mut parts: Vec<String> = Vec::new();
    parts.extend(servers(counted()));
    parts.extend(loads(counted()));
    parts.extend(handshakes(counted()));
    parts.extend(place(session, counted()));
    let common = shared(counted().filter_map(common_rate).map(number::qps));
    if let Some(rate) = &common {
        parts.push(format!("latencies at {rate} queries/s"));
    }
    let is_alone = session.variants.len() == 1;
    // A run that ended before its common load has no latency at all.
    let has_own_rates = session.common_rate_qps.is_none()
        && counted().all(|record| common_rate(record).is_none() && !record.lacks_common_load);
    if has_own_rates && !is_alone && counted().any(is_closed) {
        parts.push("latencies at each variant's own full rate".to_owned());
    }
    let rounds = counted().map(|record| record.repetition).max().unwrap_or(0);
    if counted().any(|record| record.imported.is_some()) {
        // Their repetitions did not alternate, and their times differ by the last answer.
        parts.push(number::counted(records.len() as u64, "run", "runs"));
        return parts.join("; ");
    }
    let length = length_of(counted());
    let length = length.map_or_else(String::new, |length| format!(" of {length}"));
    parts.push(number::counted(rounds.into(), "round", "rounds") + &length);
    parts.join("; ")
}

/// Whether connections that come and go resume their TLS sessions, where all do the same.
fn handshakes<'a>(records: impl Iterator<Item = &'a RunRecord>) -> Option<String> {
    let coming = records.filter(|record| {
        let measured = record.measured.as_ref();
        let handshakes = measured.and_then(Measured::handshakes_per_query);
        handshakes.is_some_and(|per_query| per_query > FEW_HANDSHAKES)
    });
    let kind = |record: &'a RunRecord| match record.load.tls.as_ref()?.resumption {
        true => Some("resumed handshakes".to_owned()),
        false => Some("full handshakes".to_owned()),
    };
    shared(coming.filter_map(kind))
}

/// Handshakes for each query up to which they are no condition of a figure.
const FEW_HANDSHAKES: f64 = 0.01;

/// The processor that all ran on, and the path to the server: figures of another one differ.
fn place<'a>(session: &Session, records: impl Iterator<Item = &'a RunRecord>) -> Option<String> {
    let mut records = records.filter(|record| record.imported.is_none()).peekable();
    records.peek()?;
    let first = records.peek().copied();
    let path = shared(records.map(path_to_server)).filter(|path| !path.is_empty());
    let there = first.map(|record| record.server.host.as_str()).filter(|host| !host.is_empty());
    let parts: Vec<String> = match there.filter(|_| path.is_some()) {
        // The figures of the server are those of its own processor.
        Some(host) => {
            processor_of(session, &format!("{host}: CPU")).into_iter().chain(path).collect()
        }
        None => processor(session).into_iter().chain(path).collect(),
    };
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn path_to_server(record: &RunRecord) -> String {
    let device = record.watched.paths.first().map(NetworkPath::device);
    let by = device.map(|device| format!(" by {device}")).unwrap_or_default();
    let load = match &record.load.hosts[..] {
        [] => String::new(),
        [only] => format!("the load on {}", only.host),
        several => format!("the load on {} hosts", several.len()),
    };
    if record.server.is_elsewhere() {
        let both = if load.is_empty() { String::new() } else { format!(", {load}") };
        return format!("the server on {}{both}{by}", record.server.host);
    }
    if !load.is_empty() {
        return format!("{load}{by}");
    }
    let path = match (&record.testbed, record.load.target.parse::<SocketAddr>()) {
        (Some(testbed), _) if testbed.steers_receive => "network namespaces with RPS",
        (Some(testbed), _) if testbed.namespaces => "network namespaces",
        (_, Ok(target)) if target.ip().is_loopback() => "loopback",
        _ => by.trim_start(),
    };
    path.to_owned()
}

fn processor(session: &Session) -> Option<String> {
    processor_of(session, "CPU")
}

fn processor_of(session: &Session, name: &str) -> Option<String> {
    session.host.iter().find(|fact| fact.name == name).map(|fact| fact.value.clone())
}

/// It asks as fast as its server answers, from several clients.
fn is_closed(record: &RunRecord) -> bool {
    // What another tool was asked for is not always its full rate (dnsperf -Q).
    record.imported.is_none()
        && matches!(record.load.mode, LoadMode::Closed { .. })
        && record.load.clients > 1
}

/// The rate at which latencies were measured, if there was a common load.
fn common_rate(record: &RunRecord) -> Option<f64> {
    match record.common_load.as_ref()?.load.mode {
        LoadMode::Open { rate_qps, .. } => Some(rate_qps),
        LoadMode::Closed { .. } => None,
    }
}

/// What all were asked; the smallest and the largest of loads that differ.
fn loads<'a>(records: impl Iterator<Item = &'a RunRecord> + Clone) -> Option<String> {
    if let Some(load) = shared(records.clone().map(load)) {
        return Some(load);
    }
    let clients = records.clone().map(|record| f64::from(record.load.clients));
    let (mut windows, mut windows_in_all, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    for record in records {
        match (&record.load.mode, &record.imported) {
            // Others have one window for all clients.
            (LoadMode::Closed { .. }, Some(imported)) => {
                windows_in_all.extend(imported.window.map(|window| window as f64));
            }
            (LoadMode::Closed { outstanding }, None) => windows.push(f64::from(*outstanding)),
            (LoadMode::Open { rate_qps, .. }, _) => rates.push(*rate_qps),
        }
    }
    let parts = [
        range(clients, ["client", "clients"]),
        range(windows.into_iter(), ["outstanding", "outstanding"]),
        range(windows_in_all.into_iter(), ["outstanding in all", "outstanding in all"]),
        range(rates.into_iter(), ["query/s", "queries/s"]),
    ];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// The smallest and the largest of these figures with their unit, of one and of many; `None` without any.
fn range(figures: impl Iterator<Item = f64> + Clone, [one, many]: [&str; 2]) -> Option<String> {
    let least = number::qps(figures.clone().reduce(f64::min)?);
    let most = number::qps(figures.reduce(f64::max)?);
    Some(match least == most {
        true if least == "1" => format!("1 {one}"),
        true => format!("{least} {many}"),
        false => format!("{least} to {most} {many}"),
    })
}

/// More servers than these are counted.
const MAX_SERVERS: usize = 5;

fn servers<'a>(records: impl Iterator<Item = &'a RunRecord> + Clone) -> Option<String> {
    let one = shared(records.clone().map(server));
    one.or_else(|| {
        let mut titles: Vec<String> = Vec::new();
        for record in records {
            let title = match &record.imported {
                Some(_) => server(record),
                None => title(&record.server.kind, &record.server.version),
            };
            if !titles.contains(&title) {
                titles.push(title);
            }
        }
        let more = titles.len().saturating_sub(MAX_SERVERS);
        titles.truncate(MAX_SERVERS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!titles.is_empty()).then(|| titles.join(", ") + &more)
    })
}

/// Servers, machine and day: what a picture that leaves its report has to say.
pub(crate) fn origin(session: &Session, records: &[RunRecord]) -> String {
    let ordered = in_order(session, records);
    let counted = ordered.iter().copied().filter(|record| record.measured.is_some());
    // The session of an import began on another day, and not every import knows when its runs did.
    let started =
        records.iter().map(|record| record.started.as_str()).filter(|started| !started.is_empty());
    let day = started.min().map(|started| started.chars().take("2026-11-25".len()).collect());
    servers(counted)
        .into_iter()
        .chain(processor(session))
        .chain(day)
        .collect::<Vec<String>>()
        .join(" \u{b7} ")
}

/// The conditions of a search, whose runs differ in what they ask.
pub(super) fn of_search(records: &[RunRecord]) -> String {
    let counted = || records.iter().filter(|record| record.measured.is_some());
    let runs = number::counted(counted().count() as u64, "run", "runs");
    let clients = shared(counted().map(clients));
    let length = length_of(counted()).map_or_else(String::new, |length| format!(" of {length}"));
    let parts = servers(counted()).into_iter().chain(clients);
    parts.chain([runs + &length]).collect::<Vec<String>>().join("; ")
}

/// The length of the runs; of those that were left early only where there are no others.
fn length_of<'a>(records: impl Iterator<Item = &'a RunRecord> + Clone) -> Option<String> {
    let whole = records.clone().filter(|record| cut_short(record).is_none());
    let has_whole = whole.clone().next().is_some();
    shared(whole.map(length)).or_else(|| {
        if has_whole {
            return None;
        }
        let cut = records.filter_map(cut_short);
        shared(cut.map(|(measured_ns, asked_ns)| left_early(measured_ns, asked_ns)))
    })
}

fn cut_short(record: &RunRecord) -> Option<(u64, u64)> {
    record.caveats.iter().find_map(|caveat| match *caveat {
        Caveat::CutShort { measured_ns, asked_ns, .. } => Some((measured_ns, asked_ns)),
        _ => None,
    })
}

/// The measured window in seconds: 10 s, 0.2 s; or its queries, where those end it.
fn length(record: &RunRecord) -> String {
    match record.load.max_queries {
        Some(queries) => number::counted(queries, "query", "queries"),
        None => number::in_seconds(record.load.duration_ns),
    }
}

fn clients(record: &RunRecord) -> String {
    number::counted(record.load.clients.into(), "client", "clients")
}

fn shared(mut texts: impl Iterator<Item = String>) -> Option<String> {
    let first = texts.next()?;
    texts.all(|text| text == first).then_some(first)
}

fn server(record: &RunRecord) -> String {
    if let Some(imported) = &record.imported {
        return format!("measured by {}", imported.title());
    }
    let title = title(&record.server.kind, &record.server.version);
    match record.server.cpus.len() {
        0 => title,
        1 => format!("{title}, 1 CPU"),
        cpus => format!("{title}, {cpus} CPUs"),
    }
}

fn load(record: &RunRecord) -> String {
    if let Some(imported) = &record.imported {
        return load_text(record, imported);
    }
    let clients = clients(record);
    match &record.load.mode {
        LoadMode::Closed { outstanding: 1 } if record.load.clients == 1 => {
            format!("{clients}, one query after the other")
        }
        LoadMode::Closed { outstanding } => format!("{clients}, {outstanding} outstanding"),
        // One query has no rate.
        LoadMode::Open { .. } if due(record) == Some(1) => format!("{clients}, 1 query"),
        LoadMode::Open { rate_qps, .. } => {
            let rate = range(std::iter::once(*rate_qps), ["query/s", "queries/s"]);
            [clients].into_iter().chain(rate).collect::<Vec<_>>().join(", ")
        }
    }
}

/// Queries that became due in the measured window.
fn due(record: &RunRecord) -> Option<u64> {
    record.measured.as_ref().map(|measured| measured.counters.outcomes.due)
}
