//! What bounded a rate, in words.

use dnslab_record::{Bottleneck, BottleneckKind, CpuUse, Evidence, UNDER_TEST};

use crate::number;

/// The name of a bottleneck, short enough for a table cell.
#[must_use]
pub fn bottleneck_name(kind: BottleneckKind) -> &'static str {
    match kind {
        BottleneckKind::ServerCpu => "server CPU",
        BottleneckKind::RelayCpu => "relay CPU",
        BottleneckKind::UpstreamCpu => "upstream CPU",
        BottleneckKind::ServersCpu => "servers' CPU",
        BottleneckKind::SharedCpu => "shared CPU",
        BottleneckKind::ServerCpuLimit => "CPU limit of the server",
        BottleneckKind::OtherPrograms => "shared with other programs",
        BottleneckKind::ServerThread => "one thread of the server",
        BottleneckKind::ConnectionsRefused => "connections refused",
        BottleneckKind::Generator => "load generator",
        BottleneckKind::Window => "window",
        BottleneckKind::Rate => "offered rate",
        BottleneckKind::Network => "network",
        BottleneckKind::ServerSocket => "server's socket buffer",
        BottleneckKind::Unclear => "unclear",
        BottleneckKind::Unknown => "unknown",
    }
}

/// A bottleneck with the figures that name it.
#[must_use]
pub fn bottleneck_text(bottleneck: &Bottleneck) -> String {
    let name = bottleneck_name(bottleneck.kind);
    match evidence_text(&bottleneck.evidence).as_str() {
        "" => name.to_owned(),
        evidence => format!("{name}: {evidence}"),
    }
}

/// The figures that name a bottleneck: clauses with semicolons between them.
pub(crate) fn evidence_text(evidence: &[Evidence]) -> String {
    evidence.iter().map(clause).collect::<Vec<_>>().join("; ")
}

fn clause(evidence: &Evidence) -> String {
    match evidence {
        Evidence::RateMet { intended_qps, offered_qps, answered_qps } => format!(
            "{} of the {} qps intended were sent and {} answered",
            whole(*offered_qps),
            whole(*intended_qps),
            whole(*answered_qps)
        ),
        Evidence::RateMissed { intended_qps, offered_qps, send_lag_p50_ns } => format!(
            "only {} of the {} qps intended were sent, with a median send lag of {}",
            whole(*offered_qps),
            whole(*intended_qps),
            milliseconds(*send_lag_p50_ns as f64)
        ),
        Evidence::NotTaken { intended_qps, offered_qps } => format!(
            "the server did not take what was offered (connections or their buffers were full): {} of \
             the {} qps intended were sent",
            whole(*offered_qps),
            whole(*intended_qps)
        ),
        Evidence::Answered { intended_qps, answered_qps } => format!(
            "{} of the {} qps intended were answered",
            whole(*answered_qps),
            whole(*intended_qps)
        ),
        Evidence::Servers { servers } => servers_text(servers),
        Evidence::ServersTogether { share } => {
            format!("the servers used {} of the CPUs that they share", percent(*share))
        }
        Evidence::ServersAndLoad { share } => {
            format!("servers and load workers used {} of the CPUs that they share", percent(*share))
        }
        Evidence::ServerThread { role, thread, next } => {
            let whose = match role.as_str() {
                UNDER_TEST => String::new(),
                role => format!(" of the {role}"),
            };
            let next = next.as_ref().map_or_else(String::new, |next| {
                format!(", the next busiest, {}, {}", next.name, percent(next.share))
            });
            format!(
                "the thread {}{whose} used {} of a CPU{next}",
                thread.name,
                percent(thread.share)
            )
        }
        Evidence::CpuLimit { role, cpus, throttled_share } => {
            let quota = cpu_limit(*cpus, *throttled_share);
            if role == UNDER_TEST { quota } else { format!("{role}: {quota}") }
        }
        Evidence::ServerHeldUp { role, waited_share, others_share } => {
            held_up(role, *waited_share, *others_share)
        }
        Evidence::BusiestWorker { share } => {
            format!("the busiest load worker used {} of a CPU", percent(*share))
        }
        Evidence::WorkerWaited { share } => format!(
            "a load worker was on its CPU or waited for it for {} of the time, since something else was \
             there",
            percent(*share)
        ),
        Evidence::GeneratorDrops { answers } => {
            format!("the generator's sockets dropped {} answers", number::count(*answers))
        }
        Evidence::ConnectionsHeld { share } => format!(
            "connections waited for their turn in the generator for {} of the time",
            percent(*share)
        ),
        Evidence::TurnedAway { attempted, refused, waited } => {
            let queue = match waited {
                0 => String::new(),
                waited => format!(
                    ", and let {} wait for a second because the queue of its listening socket was full",
                    number::count(*waited)
                ),
            };
            format!(
                "the server turned {} of {} connections away{queue}",
                number::count(*refused),
                number::count(*attempted)
            )
        }
        Evidence::Lost { share, server_drops: 0 } => {
            format!("{} of the queries were lost", percent(*share))
        }
        Evidence::Lost { share, server_drops } => format!(
            "{} of the queries were lost, and the server's full sockets dropped {} datagrams",
            percent(*share),
            number::count(*server_drops)
        ),
        Evidence::LostOnLoopback => {
            "the loopback interface loses nothing, so the server did not answer them".to_owned()
        }
        Evidence::Late { share } => format!(
            "{} of the queries were answered after their time-out: the server did not answer in time",
            percent(*share)
        ),
        Evidence::InFlight { answered_qps, mean_latency_ns, window } => format!(
            "{} qps at a mean latency of {} are {} queries in flight, with a window of {}",
            whole(*answered_qps),
            milliseconds(*mean_latency_ns),
            whole(answered_qps * mean_latency_ns / 1e9),
            whole(*window)
        ),
    }
}

/// A CPU quota as it held a side up: `cgroup quota 0.1 CPUs, throttled in 77 % of its periods`.
pub(crate) fn cpu_limit(cpus: f64, throttled_share: f64) -> String {
    let cpus = (cpus * 100.0).round() / 100.0;
    let unit = if cpus == 1.0 { "CPU" } else { "CPUs" };
    format!("cgroup quota {cpus} {unit}, throttled in {} of its periods", percent(throttled_share))
}

/// How other programs held a server up.
pub(crate) fn held_up(role: &str, waited_share: Option<f64>, others_share: f64) -> String {
    let waited = waited_share.map_or_else(String::new, |waited| {
        format!(", and it waited for {} of the time for which it had work", percent(waited))
    });
    format!(
        "other programs held the {role}'s CPU: they used {} of what it may use{waited}",
        percent(others_share)
    )
}

/// The CPU use of servers: `the server used 97 % of 1 CPU, the upstream 61 % of 2 CPUs`. Of those that were
/// not watched only the first is named.
fn servers_text(servers: &[CpuUse]) -> String {
    let mut text = String::new();
    for CpuUse { role, busy_share, cpus } in servers {
        let plural = if *cpus == 1 { "" } else { "s" };
        text += &match (busy_share.map(percent), text.is_empty()) {
            (None, true) => format!("the {role}'s CPU was not watched"),
            (None, false) => String::new(),
            (Some(share), true) => format!("the {role} used {share} of {cpus} CPU{plural}"),
            (Some(share), false) => format!(", the {role} {share} of {cpus} CPU{plural}"),
        };
    }
    text
}

/// A share as a percentage: whole from 10 % on, with two digits below.
fn percent(share: f64) -> String {
    number::percent(share, if share >= 0.1 { 0 } else { 2 })
}

/// Nanoseconds as milliseconds with three digits.
fn milliseconds(ns: f64) -> String {
    format!("{:.3} ms", ns / 1e6)
}

fn whole(number: f64) -> String {
    number::count(number.round_ties_even() as u64)
}
