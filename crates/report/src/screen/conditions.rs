//! Under which conditions it was measured, once.

use dnslab_measure::{LoadMode, RunRecord, Session};

use crate::imported::load_text;
use crate::number;
use crate::server::title;

pub(super) fn conditions(session: &Session, records: &[RunRecord]) -> String {
    let counted = || records.iter().filter(|record| record.measured.is_some());
    let mut parts: Vec<String> = Vec::new();
    parts.extend(servers(counted()));
    parts.extend(shared(counted().map(load)));
    if let Some(rate_qps) = session.common_rate_qps {
        parts.push(format!("latencies at {} queries/s", number::qps(rate_qps)));
    }
    let is_closed = |record: &RunRecord| {
        // What another tool was asked for is not always its full rate (dnsperf -Q).
        record.imported.is_none()
            && matches!(record.load.mode, LoadMode::Closed { .. })
            && record.load.clients > 1
    };
    let is_alone = session.variants.len() == 1;
    if session.common_rate_qps.is_none() && !is_alone && counted().any(is_closed) {
        parts.push("latencies at each variant's own full rate".to_owned());
    }
    let rounds = counted().map(|record| record.repetition).max().unwrap_or(0);
    let plural = if rounds == 1 { "" } else { "s" };
    if counted().any(|record| record.imported.is_some()) {
        // Their repetitions did not alternate, and their times differ by the last answer.
        parts.push(format!("{} run{}", records.len(), if records.len() == 1 { "" } else { "s" }));
        return parts.join("; ");
    }
    let length = shared(counted().map(length));
    let length = length.map_or_else(String::new, |length| format!(" of {length}"));
    parts.push(format!("{rounds} round{plural}{length}"));
    parts.join("; ")
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

/// The same for a search, whose runs differ in what they ask.
pub(super) fn of_search(records: &[RunRecord]) -> String {
    let counted = || records.iter().filter(|record| record.measured.is_some());
    let runs = counted().count();
    let plural = if runs == 1 { "" } else { "s" };
    let clients = shared(counted().map(clients));
    let length = shared(counted().map(length)).map_or_else(String::new, |it| format!(" of {it}"));
    let parts = servers(counted()).into_iter().chain(clients);
    parts.chain([format!("{runs} run{plural}{length}")]).collect::<Vec<String>>().join("; ")
}

/// The measured window in seconds as they were asked for: 10 s, 0.2 s; or its queries, where those end it.
fn length(record: &RunRecord) -> String {
    match record.load.max_queries {
        Some(queries) => format!("{} queries", number::count(queries)),
        None => format!("{} s", record.load.duration_ns as f64 / 1e9),
    }
}

fn clients(record: &RunRecord) -> String {
    let plural = if record.load.clients == 1 { "" } else { "s" };
    format!("{} client{plural}", number::count(record.load.clients.into()))
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
        LoadMode::Open { rate_qps, .. } => {
            format!("{clients}, {} queries/s", number::qps(*rate_qps))
        }
    }
}
