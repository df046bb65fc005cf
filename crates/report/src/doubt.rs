//! Caveats and limits in words, each with what can be done about it.

use dnslab_measure::{Caveat, Limit, LimitKind};

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
        Caveat::RateMissed { intended_qps, offered_qps } => format!(
            "The generator sent {} queries per second where {} were intended. Give it more workers \
             and CPUs, or ask for a lower rate.",
            number::qps(*offered_qps),
            number::qps(*intended_qps)
        ),
        Caveat::SendLag { p50_ns } => format!(
            "The median query left {} after it was due, more than a tenth of the median latency: \
             part of the latency is the generator's own. Give it more workers and CPUs, or ask for \
             a lower rate.",
            number::duration(*p50_ns as f64)
        ),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_caveat_names_its_figures() {
        let cases = [
            (Caveat::GeneratorLimited { busy_share: 0.98 }, "98.0 %"),
            (Caveat::ClosedLoop { window: 1_000 }, "1,000 outstanding"),
            (Caveat::RateMissed { intended_qps: 5e4, offered_qps: 49_000.0 }, "49,000"),
            (Caveat::SendLag { p50_ns: 51_000 }, "51.0 us"),
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
    fn a_limit_shows_its_evidence() {
        let limit = Limit { kind: LimitKind::ServerCpu, evidence: "server used 99 %".into() };
        assert_eq!(limit_text(&limit), "server CPU: server used 99 %");
    }
}
