//! Caveats and limits in words, each with what can be done about it.

use dnslab_measure::{Caveat, Limit, LimitKind, VariantCaveat};

use crate::number;

/// One caveat as sentences: the doubt first, then its remedy.
#[must_use]
pub fn caveat_text(caveat: &Caveat) -> String {
    match caveat {
        Caveat::GeneratorLimited { busy_share } => format!(
            "The load generator had no CPU left (its busiest worker used {} of its CPU): the \
             server may do more than this figure says. Give the generator more workers and CPUs, \
             or the server fewer.",
            number::share(*busy_share)
        ),
        Caveat::SharedCpus => "Server and load generator shared CPUs, so each took time from the \
             other. Pin them to different CPUs, or put the generator on another machine."
            .to_owned(),
        Caveat::ClosedLoop { window } => format!(
            "Closed loop: the rate is the one at this window, {} outstanding queries, and another \
             window gives another rate. A closed loop waits when the server stalls, so it hides \
             stalls from the latency figures (coordinated omission). Use an open loop (`rate`) to \
             see them.",
            number::count(*window)
        ),
        Caveat::WindowNotFull { in_flight, window } => window_not_full(*in_flight, *window),
        Caveat::ClientsNotConnected { open, clients } => clients_not_connected(*open, *clients),
        Caveat::RateMissed { intended_qps, offered_qps } => {
            rate_missed(*intended_qps, *offered_qps)
        }
        Caveat::SendLag { p50_ns } => send_lag(*p50_ns),
        Caveat::Horizon { horizon_ns, p50_ns } => horizon(*horizon_ns, *p50_ns),
        Caveat::GeneratorDrops { datagrams } => format!(
            "The generator's own sockets dropped {} datagrams, which count as lost although the \
             server answered. Raise `net.core.rmem_max`, or give the generator more CPUs.",
            number::count(*datagrams)
        ),
        Caveat::Steal { share } => format!(
            "The hypervisor kept {} of the time of all CPUs from this machine. Measure on a \
             machine of your own, or at a quieter hour.",
            number::share(*share)
        ),
        Caveat::Crowded { waited_share } => format!(
            "Other processes held the CPUs of the load generator: it waited for {} of the time. \
             End what else runs on this machine, and measure again.",
            number::share(*waited_share)
        ),
        Caveat::OtherProcesses { cpus } => format!(
            "Processes that are neither server nor load kept {} CPUs busy. End what else runs on \
             this machine, and measure again.",
            number::three_digits(*cpus)
        ),
        Caveat::Lost { share } => format!(
            "{} of the queries were not answered; each counts in the latency with its time-out at \
             least. See how the queries ended, and ask for less if the server was full.",
            number::share(*share)
        ),
        Caveat::Truncated { share } => truncated(*share),
        Caveat::EmptyAnswers { share } => empty_answers(*share),
        Caveat::Unsteady { lowest_qps, median_qps } => unsteady(*lowest_qps, *median_qps),
        Caveat::StrayAnswers { late, duplicate, unexpected } => format!(
            "Stray answers: {} after the time-out, {} for the second time, {} to questions never \
             asked. Raise the time-out if the late ones matter; look at the path if the others do.",
            number::count(*late),
            number::count(*duplicate),
            number::count(*unexpected)
        ),
        Caveat::WrongAnswers { count, example } => format!(
            "{} answers were not what the experiment expects, for example: {example}. Correct the \
             zone or the expected answer.",
            number::count(*count)
        ),
        Caveat::ServerNotWatched { reason } => format!(
            "The server's CPU and memory could not be watched ({reason}). Run dnslab on the \
             server's machine, with permission to read its process."
        ),
        Caveat::CutShort { measured_ns } => format!(
            "The run was ended before its time, after {} of measurement. Resume the experiment to \
             repeat it.",
            number::duration(*measured_ns as f64)
        ),
        Caveat::CertificateNotVerified => "The certificate of the server was not verified, so \
             the cost of verifying it is not in the figures. Leave `--insecure` away."
            .to_owned(),
        Caveat::Other { text } => text.clone(),
    }
}

/// A caveat of a variant with `valid_runs` runs: the worst of its kind, and in how many of them there
/// is one, if not in all.
#[must_use]
pub fn variant_caveat_text(caveat: &VariantCaveat, valid_runs: u32) -> String {
    let text = caveat_text(&caveat.worst);
    if caveat.runs == valid_runs {
        text
    } else {
        format!("{text} (in {} of {valid_runs} runs)", caveat.runs)
    }
}

/// The name of a limit, short enough for a table cell.
#[must_use]
pub fn limit_name(kind: LimitKind) -> &'static str {
    match kind {
        LimitKind::ServerCpu => "server CPU",
        LimitKind::Generator => "generator",
        LimitKind::Window => "window",
        LimitKind::Rate => "asked rate",
        LimitKind::Network => "network",
        LimitKind::Unclear => "unclear",
    }
}

/// A limit with the figures that name it.
#[must_use]
pub fn limit_text(limit: &Limit) -> String {
    let name = limit_name(limit.kind);
    if limit.evidence.is_empty() { name.to_owned() } else { format!("{name}: {}", limit.evidence) }
}

/// True for the caveats that make an answered rate say less about the server than it seems to.
pub(crate) fn is_generator_doubt(caveat: &Caveat) -> bool {
    matches!(
        caveat,
        Caveat::GeneratorLimited { .. }
            | Caveat::SharedCpus
            | Caveat::GeneratorDrops { .. }
            | Caveat::Crowded { .. }
    )
}

/// A closed loop whose window was not full; both in queries over all clients.
fn window_not_full(in_flight: f64, window: u64) -> String {
    format!(
        "Answered queries took up only {} of the {} places of the window, so the rate is that \
         of a smaller window. Lost queries hold their places until they time out, as behind a \
         server's full socket buffer, or clients were not connected. Ask with a smaller window \
         (`load.outstanding`) or a shorter time-out, or find what was lost.",
        if in_flight < 99.95 { number::three_digits(in_flight) } else { number::qps(in_flight) },
        number::count(window)
    )
}

/// Clients without a connection.
fn clients_not_connected(open: u64, clients: u64) -> String {
    format!(
        "Only {} of the {} clients were connected when the measured window began. Lengthen \
         the warm-up (`load.warm_up`), or find why the others were not.",
        number::count(open),
        number::count(clients)
    )
}

/// Fewer queries sent than intended.
fn rate_missed(intended_qps: f64, offered_qps: f64) -> String {
    format!(
        "Only {} queries per second were sent where {} were intended; the limit says on which \
         side. Give the generator more workers and CPUs, or ask for a lower rate.",
        number::qps(offered_qps),
        number::qps(intended_qps)
    )
}

/// Queries that left late.
fn send_lag(p50_ns: u64) -> String {
    format!(
        "The median query left {} after it was due, more than a tenth of the median latency: \
         that part passed before it was sent, in the generator or before a full connection. \
         Give the generator more workers and CPUs, or ask for a lower rate.",
        number::duration(p50_ns as f64)
    )
}

/// Gathering that is a part of the latency.
fn horizon(horizon_ns: u64, p50_ns: u64) -> String {
    format!(
        "Sends and receives are gathered for up to {}, a large part of the median latency of \
         {}; in a closed loop that bounds the rate too. Set `load.horizon = \"0us\"`.",
        number::duration(horizon_ns as f64),
        number::duration(p50_ns as f64)
    )
}

/// A rate that broke down.
fn unsteady(lowest_qps: f64, median_qps: f64) -> String {
    format!(
        "The rate broke down inside the measured window: {} answers per second in the worst \
         interval, {} in the median one. Look at it over time, end what else runs on this \
         machine, and measure longer.",
        number::qps(lowest_qps),
        number::qps(median_qps)
    )
}

/// Answers with the TC bit.
fn truncated(share: f64) -> String {
    format!(
        "{} of the answers were truncated (TC). A real client would ask again over TCP, which \
         is in no figure here. Ask for smaller answers, or measure `tcp` beside it.",
        number::share(share)
    )
}

/// Answers without a record.
fn empty_answers(share: f64) -> String {
    format!(
        "{} of the answers were NOERROR without a record: NODATA, or referrals. Make sure that \
         this is the right zone, or the right resolver, for these queries.",
        number::share(share)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_caveat_names_its_figures() {
        let cases = [
            (Caveat::GeneratorLimited { busy_share: 0.98 }, "98.0 %"),
            (Caveat::ClosedLoop { window: 1_000 }, "1,000 outstanding"),
            (Caveat::RateMissed { intended_qps: 5e4, offered_qps: 49_000.0 }, "49,000"),
            (Caveat::WindowNotFull { in_flight: 1_234.4, window: 4_000 }, "1,234 of the 4,000"),
            (Caveat::WindowNotFull { in_flight: 0.85, window: 1 }, "0.850 of the 1 "),
            (Caveat::ClientsNotConnected { open: 3, clients: 1_000 }, "3 of the 1,000 clients"),
            (Caveat::SendLag { p50_ns: 51_000 }, "51.0 us"),
            (Caveat::Horizon { horizon_ns: 50_000, p50_ns: 70_000 }, "`load.horizon = \"0us\"`"),
            (Caveat::Lost { share: 0.012 }, "1.2 %"),
            (Caveat::Truncated { share: 0.5 }, "50.0 %"),
            (Caveat::EmptyAnswers { share: 0.2 }, "20.0 %"),
            (Caveat::Unsteady { lowest_qps: 0.0, median_qps: 5e4 }, "50,000 in the median"),
            (Caveat::GeneratorDrops { datagrams: 12 }, "12 datagrams"),
            (Caveat::Steal { share: 0.031 }, "3.1 %"),
            (Caveat::StrayAnswers { late: 7, duplicate: 8, unexpected: 9 }, "9 to questions"),
            (Caveat::WrongAnswers { count: 3, example: "a. A".into() }, "a. A"),
            (Caveat::ServerNotWatched { reason: "another machine".into() }, "another machine"),
            (Caveat::CutShort { measured_ns: 1_500_000_000 }, "1.50 s"),
            (Caveat::CertificateNotVerified, "--insecure"),
            (Caveat::SharedCpus, "shared CPUs"),
            (Caveat::Other { text: "The moon was full.".into() }, "The moon was full."),
        ];
        for (caveat, expected) in cases {
            let text = caveat_text(&caveat);
            assert!(text.contains(expected), "{text:?} lacks {expected:?}");
            assert!(!text.contains("  "), "{text:?} has a doubled space");
        }
    }

    #[test]
    fn a_caveat_says_in_how_many_runs() {
        let in_runs = |runs| VariantCaveat { worst: Caveat::Lost { share: 0.5 }, runs };
        assert!(variant_caveat_text(&in_runs(3), 5).ends_with(". (in 3 of 5 runs)"));
        assert_eq!(variant_caveat_text(&in_runs(5), 5), caveat_text(&in_runs(5).worst));
    }

    #[test]
    fn a_limit_shows_its_evidence() {
        let limit = Limit { kind: LimitKind::ServerCpu, evidence: "server used 99 %".into() };
        assert_eq!(limit_text(&limit), "server CPU: server used 99 %");
    }
}
