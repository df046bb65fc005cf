//! How the figures were made.

use std::fmt::Write as _;

use dnslab_analysis::statistics::WORD_ERROR;
use dnslab_record::{LoadMode, RunRecord, Session};

use super::html::escape;
use crate::{imported, number};

/// The section that tells the method, with what is particular to these runs.
pub(crate) fn section(session: &Session, records: &[RunRecord]) -> String {
    let mut items: Vec<(&str, String)> = vec![
        (
            "Latency",
            "The time from the instant at which a query was due to the receipt of its answer \
             (received - due), so that a generator that falls behind counts against the figure. A \
             query that was not answered is in it with the time that it waited, at least the \
             time-out."
                .to_owned(),
        ),
        ("Load", load(records)),
        ("Chain", chain(records)),
        ("Own counters", own_counters(records)),
        ("Logs", logs(records)),
        (
            "Repetition",
            repetition(session),
        ),
        (
            "Interval",
            "The unit of statistics is the round, not the query. Differences are those of the \
             logarithms inside each round; their intervals are Student's, of 95 % for each by itself. \
             A variant's own figure has a 95 % bootstrap interval of the mean, widened for the small \
             number of rounds."
                .to_owned(),
        ),
        (
            "Certain",
            format!(
                "Better and worse: it is certain that there is a difference, and on which side. No \
                 difference: it is certain that there is none as large as the margin of {}. Not \
                 certain: neither is. All these words of a report together are wrong in at most {} of \
                 reports (Holm's procedure).",
                number::size(session.margin),
                number::size(WORD_ERROR)
            ),
        ),
        (
            "Valid runs",
            "A run with wrong answers beyond its limit is invalid, one that did not come to its \
             end has failed. Both are listed under \"Every run\" and are in no figure."
                .to_owned(),
        ),
    ];
    if records.iter().any(|record| record.imported.is_some()) {
        // What is told of the statistics holds for them too.
        items.retain(|(name, _)| ["Interval", "Certain"].contains(name));
        items.splice(0..0, imported::method(records));
    }
    items.retain(|(_, text)| !text.is_empty());
    let mut html =
        String::from("<section>\n<details><summary>Method</summary>\n<dl class=\"method\">\n");
    for (name, text) in items {
        let _ = writeln!(html, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(&text));
    }
    html.push_str("</dl>\n</details>\n</section>\n");
    html
}

fn repetition(session: &Session) -> String {
    let seed = session.seed;
    let tail = "The warm-up is measured, but in no figure.";
    match session.slice_ns {
        Some(slice_ns) => format!(
            "In each round the servers of all variants are started freshly and are up together. The \
             load goes to them in turns of {}, in balanced random order drawn from seed {seed}; \
             connections stay open. The beginning of each turn does not count. {tail}",
            number::duration(slice_ns as f64)
        ),
        None => {
            let because = match session.whole_runs_because.as_str() {
                "" => String::new(),
                reason => format!(" Variants do not take turns in slices: {reason}."),
            };
            format!(
                "Whole runs of the variants alternate, each with servers that are started freshly, in \
                 balanced random order drawn from seed {seed}.{because} {tail}"
            )
        }
    }
}

/// What a closed and an open loop mean, as far as the runs used them.
fn load(records: &[RunRecord]) -> String {
    let closed = records.iter().find_map(|record| match record.load.mode {
        LoadMode::Closed { outstanding } => Some((record.load.clients, outstanding)),
        LoadMode::Open { .. } => None,
    });
    let open = records.iter().any(|record| matches!(record.load.mode, LoadMode::Open { .. }));
    let mut text = String::new();
    if let Some((clients, outstanding)) = closed {
        let _ = write!(
            text,
            "Closed loop: each client keeps a window of outstanding queries and sends the next \
             when one ends ({} with {} outstanding each), so a query is due when it is \
             sent. The rate is the one at that window. When the server stalls, a closed loop \
             stops asking: stalls are hidden from the latency figures (coordinated omission).",
            number::counted(clients.into(), "client", "clients"),
            number::count(outstanding.into())
        );
    }
    if open {
        let separator = if text.is_empty() { "" } else { " " };
        let _ = write!(
            text,
            "{separator}Open loop: queries are due by a schedule that does not wait for the \
             server, so a stall shows in the latency of every query that was due during it."
        );
    }
    text
}

/// How the servers behind the one that is asked were watched, if there are any.
fn chain(records: &[RunRecord]) -> String {
    if records.iter().all(|record| record.watched.chain.is_empty()) {
        return String::new();
    }
    "The load asks the first server of the chain; the others are asked by the one before them. Each \
     is a process of its own whose CPU time and memory are watched apart. What reached it is what it \
     counted itself, read about each second; at the ends of the measured window that is \
     interpolated. The bottleneck is the server of the chain that had no CPU left, the one behind if two \
     were alike."
        .to_owned()
}

/// What two counts that agree show, and why they may differ, if a server told its own.
fn own_counters(records: &[RunRecord]) -> String {
    let measured = |record: &&RunRecord| record.measured.is_some();
    let tells = |record: &RunRecord| record.watched.counters.is_some();
    if !records.iter().filter(measured).any(tells) {
        return String::new();
    }
    "The load counts each query that it hands to the kernel, those sent a second time too. The server \
     counts what it read. They differ by queries that were lost before the server read them, by \
     others who ask it meanwhile (some servers are read by queries), and by what a server does not \
     count, which may be what it drops early or cannot read. What is known of each stands in its \
     notes, under the provenance."
        .to_owned()
}

/// What the octets of logs are, if any were written.
fn logs(records: &[RunRecord]) -> String {
    let writes = |record: &RunRecord| {
        record.observation().is_some_and(|run| run.log_octets_per_query().is_some())
    };
    if !records.iter().any(writes) {
        return String::new();
    }
    "Octets by which the files of the server's logs of queries grew in the measured window, for each \
     answered query. What the server held back in its buffers is not in them, nor what the disk makes \
     of them."
        .to_owned()
}
