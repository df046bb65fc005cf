//! What is to be said beside a difference, so that nobody takes it for more than it is.

use dnslab_measure::{Limit, LimitKind, LoadMode, Summary, VariantSummary};

use crate::doubt::is_generator_doubt;
use crate::number;

/// From this share on, lost queries are told with the answer: they reach into the 0.999 quantile of
/// the latency.
const LOST: f64 = 0.001;

/// The variant of that name.
pub(crate) fn find<'a>(summary: &'a Summary, name: &str) -> Option<&'a VariantSummary> {
    summary.variants.iter().find(|variant| variant.name == name)
}

/// True if any variant was measured by a schedule that does not wait for the server. Its answered
/// rate is the asked one, or says only that the server fell behind.
pub(crate) fn has_open_loop(summary: &Summary) -> bool {
    summary.variants.iter().any(|variant| matches!(variant.mode, Some(LoadMode::Open { .. })))
}

/// Those of `variants` whose answered rate the load generator held back. Not those of which most
/// runs answered all that was asked: whatever else is to be said of them, nothing was held back.
pub(crate) fn held_back<'a>(variants: &[&'a VariantSummary]) -> Vec<&'a str> {
    let limited = |variant: &&&VariantSummary| {
        let doubtful = || variant.caveats.iter().any(|caveat| is_generator_doubt(&caveat.worst));
        match variant.limits.first().map(|limit| limit.kind) {
            Some(LimitKind::Generator | LimitKind::SharedCpu) => true,
            Some(LimitKind::Rate) => false,
            // Whatever the load had to wait for, it kept the server busy.
            Some(_) if variant.limits.iter().all(|of| of.kind.has_servers_full()) => false,
            _ => doubtful(),
        }
    };
    variants.iter().filter(limited).map(|variant| variant.name.as_str()).collect()
}

/// For the rates of closed loops: that they are those of a window, if not every run of all
/// `variants` used up the CPU of a server. Then another window may give other rates, and another
/// difference.
pub(crate) fn at_this_window(variants: &[&VariantSummary]) -> Option<String> {
    let at_limit = |limit: &Limit| limit.kind.has_servers_full();
    let in_no_run = |variant: &VariantSummary| !variant.limits.iter().any(at_limit);
    let (unknown, known) = of_unknown_limit(variants);
    let below: Vec<&VariantSummary> =
        known.into_iter().filter(|variant| !variant.limits.iter().all(at_limit)).collect();
    let names: Vec<&str> = below.iter().map(|variant| variant.name.as_str()).collect();
    let all = names.len() == variants.len();
    let always = below.iter().all(|variant| in_no_run(variant));
    let who = match (names.as_slice(), all && always) {
        ([], _) => return unknown.map(|unknown| format!("at this window; {unknown}")),
        ([_, _], true) => "neither was at its limit".to_owned(),
        ([_, _, ..], true) => "none was at its limit".to_owned(),
        ([one], _) => format!("{one} was not at its limit"),
        (several, _) => format!("{} were not at their limits", listed(several)),
    };
    let times = if always { "" } else { " in every run" };
    let unknown = unknown.map(|unknown| format!(", and {unknown}")).unwrap_or_default();
    Some(format!("at this window; {who}{times}{unknown}"))
}

/// What is said of those of `variants` whose limit is unknown in a run, and the others.
fn of_unknown_limit<'a>(
    variants: &[&'a VariantSummary],
) -> (Option<String>, Vec<&'a VariantSummary>) {
    let is_unknown = |variant: &&VariantSummary| {
        variant.limits.iter().any(|limit| limit.kind == LimitKind::Unknown)
    };
    let (unknown, known): (Vec<_>, Vec<_>) = variants.iter().copied().partition(is_unknown);
    let names: Vec<&str> = unknown.iter().map(|variant| variant.name.as_str()).collect();
    let text = match names.as_slice() {
        [] => None,
        [one] => Some(format!("whether {one} was at its limit is unknown")),
        _ if known.is_empty() => Some("whether any was at its limit is unknown".to_owned()),
        several => Some(format!("whether {} were at their limits is unknown", listed(several))),
    };
    (text, known)
}

/// The lost shares of `variants` that are large enough to be told: `lost: udp 1.2 %, dot 3 %`.
pub(crate) fn losses(variants: &[&VariantSummary]) -> Option<String> {
    let lost: Vec<String> = variants
        .iter()
        .map(|variant| (&variant.name, variant.outcomes.lost_share()))
        .filter(|(_, share)| *share >= LOST)
        .map(|(name, share)| format!("{name} {}", number::share(share)))
        .collect();
    (!lost.is_empty()).then(|| format!("queries lost: {}", lost.join(", ")))
}

/// How many runs of `variants` count, for those in which some do not:
/// `only 2 of 3 runs of dot count`.
pub(crate) fn missing_runs(variants: &[&VariantSummary]) -> Option<String> {
    let missing: Vec<String> = variants
        .iter()
        .filter(|variant| variant.other_runs > 0)
        .map(|variant| {
            let (valid, all) = (variant.valid_runs, variant.valid_runs + variant.other_runs);
            format!("{valid} of {all} runs of {}", variant.name)
        })
        .collect();
    let missing: Vec<&str> = missing.iter().map(String::as_str).collect();
    (!missing.is_empty()).then(|| format!("only {} count", listed(&missing)))
}

/// Names as people list them: `udp, tcp and dot`; of more than eight the first four and how many
/// others: `a, b, c, d and 5 others`.
pub(crate) fn listed(names: &[&str]) -> String {
    const MOST: usize = 8;
    const TOLD: usize = 4;
    if names.len() > MOST {
        return format!("{} and {} others", names[..TOLD].join(", "), names.len() - TOLD);
    }
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use dnslab_measure::{Caveat, VariantCaveat};

    use super::*;
    use crate::sentence::tests::variant;

    /// A variant whose runs named these limits.
    fn limited(name: &str, kinds: &[LimitKind]) -> VariantSummary {
        let limit = |kind: &LimitKind| Limit { kind: *kind, evidence: String::new() };
        VariantSummary { limits: kinds.iter().map(limit).collect(), ..variant(name, kinds[0]) }
    }

    #[track_caller]
    fn check_window(variants: &[VariantSummary], expected: Option<&str>) {
        let variants: Vec<&VariantSummary> = variants.iter().collect();
        assert_eq!(at_this_window(&variants).as_deref(), expected);
    }

    #[test]
    fn a_rate_below_the_limit_is_that_of_the_window() {
        use LimitKind::{Generator, ServerCpu, Unclear, Unknown, Window};
        let full = || limited("udp", &[ServerCpu]);
        check_window(&[full(), limited("dot", &[ServerCpu])], None);
        check_window(
            &[limited("udp", &[Window]), limited("dot", &[Unclear, Generator])],
            Some("at this window; neither was at its limit"),
        );
        check_window(
            &["udp", "tcp", "dot"].map(|name| limited(name, &[Window])),
            Some("at this window; none was at its limit"),
        );
        // What nobody could see is no finding.
        check_window(
            &[limited("udp", &[Unknown]), limited("dot", &[Unknown])],
            Some("at this window; whether any was at its limit is unknown"),
        );
        check_window(
            &[full(), limited("dot", &[ServerCpu, Unknown])],
            Some("at this window; whether dot was at its limit is unknown"),
        );
        check_window(
            &[limited("udp", &[Window]), limited("dot", &[Unknown])],
            Some(
                "at this window; udp was not at its limit, and whether dot was at its limit is \
                 unknown",
            ),
        );
        // What is true of one side only is said of that one.
        check_window(
            &[full(), limited("dot", &[Window])],
            Some("at this window; dot was not at its limit"),
        );
        check_window(
            &[full(), limited("dot", &[Window, ServerCpu])],
            Some("at this window; dot was not at its limit in every run"),
        );
        check_window(
            &[limited("udp", &[ServerCpu, Window]), limited("dot", &[Window])],
            Some("at this window; udp and dot were not at their limits in every run"),
        );
        check_window(
            &[full(), limited("tcp", &[Window]), limited("dot", &[Window])],
            Some("at this window; tcp and dot were not at their limits"),
        );
    }

    #[test]
    fn losses_and_missing_runs_are_told_from_their_thresholds_on() {
        let (mut udp, mut dot) =
            (limited("udp", &[LimitKind::Rate]), limited("dot", &[LimitKind::Rate]));
        assert_eq!((losses(&[&udp, &dot]), missing_runs(&[&udp, &dot])), (None, None));
        (udp.outcomes.due, udp.outcomes.answered) = (100_000, 99_901);
        assert_eq!(losses(&[&udp, &dot]), None);
        udp.outcomes.answered = 99_900;
        (dot.outcomes.due, dot.outcomes.answered) = (100, 50);
        assert_eq!(losses(&[&udp, &dot]).unwrap(), "queries lost: udp 0.1 %, dot 50.0 %");
        dot.other_runs = 1;
        assert_eq!(missing_runs(&[&udp, &dot]).unwrap(), "only 3 of 4 runs of dot count");
        udp.other_runs = 2;
        let both = "only 3 of 5 runs of udp and 3 of 4 runs of dot count";
        assert_eq!(missing_runs(&[&udp, &dot]).unwrap(), both);
    }

    #[test]
    fn a_rate_that_was_met_was_not_held_back() {
        let crowded = |kind| {
            let worst = Caveat::Crowded { waited_share: 0.2 };
            let caveats = vec![VariantCaveat { worst, runs: 1 }];
            VariantSummary { caveats, ..limited("udp", &[kind]) }
        };
        let calm = |kind| limited("udp", &[kind]);
        assert!(held_back(&[&crowded(LimitKind::Rate), &calm(LimitKind::Window)]).is_empty());
        assert_eq!(held_back(&[&crowded(LimitKind::Window)]), ["udp"]);
        assert_eq!(held_back(&[&calm(LimitKind::Generator)]), ["udp"]);
    }

    #[test]
    fn names_are_listed() {
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(listed(&["a", "b"]), "a and b");
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
        assert_eq!(listed(&["a", "b", "c", "d", "e", "f", "g", "h"]), "a, b, c, d, e, f, g and h");
        assert_eq!(
            listed(&["a", "b", "c", "d", "e", "f", "g", "h", "i"]),
            "a, b, c, d and 5 others"
        );
    }
}
