//! Caveats and limits in words.

use dnslab_measure::{Bottleneck, BottleneckKind, Caveat, VariantCaveat};

/// One caveat as sentences: the doubt with its figure first, then its remedy.
#[must_use]
pub fn caveat_text(caveat: &Caveat) -> String {
    caveat.finding().text()
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
pub fn limit_name(kind: BottleneckKind) -> &'static str {
    match kind {
        BottleneckKind::ServerCpu => "server CPU",
        BottleneckKind::RelayCpu => "relay CPU",
        BottleneckKind::UpstreamCpu => "upstream CPU",
        BottleneckKind::ServersCpu => "servers' CPU",
        BottleneckKind::SharedCpu => "shared CPU",
        BottleneckKind::ServerThread => "one thread of the server",
        BottleneckKind::Generator => "load generator",
        BottleneckKind::Window => "window",
        BottleneckKind::Rate => "offered rate",
        BottleneckKind::Network => "network",
        BottleneckKind::ServerSocket => "server's socket buffer",
        BottleneckKind::Unclear => "unclear",
        BottleneckKind::Unknown => "unknown",
    }
}

/// A limit with the figures that name it.
#[must_use]
pub fn limit_text(limit: &Bottleneck) -> String {
    let name = limit_name(limit.kind);
    if limit.evidence.is_empty() { name.to_owned() } else { format!("{name}: {}", limit.evidence) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caveat_says_in_how_many_runs() {
        let in_runs = |runs| VariantCaveat { worst: Caveat::Lost { share: 0.5 }, runs };
        assert!(variant_caveat_text(&in_runs(3), 5).ends_with(". (in 3 of 5 runs)"));
        assert_eq!(variant_caveat_text(&in_runs(5), 5), caveat_text(&in_runs(5).worst));
    }

    #[test]
    fn a_limit_shows_its_evidence() {
        let limit =
            Bottleneck { kind: BottleneckKind::ServerCpu, evidence: "server used 99 %".into() };
        assert_eq!(limit_text(&limit), "server CPU: server used 99 %");
    }
}
