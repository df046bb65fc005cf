//! What an experiment will not be able to say, known before its first run.

use std::collections::BTreeSet;

use dnslab_record::{CostLimit, Session};

/// Rounds below which an interval is too wide for most differences. Student's interval of two rounds is
/// 12.7 standard errors wide on each side, that of three 4.3, that of five 2.8.
const FEW_ROUNDS: u32 = 3;

/// What too few rounds, a single run or a single variant leave open, a sentence each; none where
/// nothing is missing.
#[must_use]
pub fn beforehand(session: &Session) -> Vec<String> {
    let rounds = session.plan.iter().map(|case| case.repetition).max().unwrap_or(0);
    let variants: BTreeSet<&str> = session.plan.iter().map(|case| case.variant.as_str()).collect();
    let more = "`--set repeat.runs=5` asks for five";
    let mut lines = Vec::new();
    match (variants.len(), rounds) {
        (0, _) | (_, 0) => return lines,
        (1, 1) => {
            lines.push("One run has no interval, and one variant is compared with none.".to_owned())
        }
        (1, few) if few < FEW_ROUNDS => lines.push(format!(
            "One variant is compared with none, and intervals of {few} runs are wide: {more}."
        )),
        (1, _) => lines.push("One variant is compared with none.".to_owned()),
        (_, 1) => {
            lines.push(format!("One round has no interval, so no difference is certain: {more}."))
        }
        (_, few) if few < FEW_ROUNDS => lines.push(format!(
            "Intervals of {few} rounds are so wide that hardly any difference is certain: {more}."
        )),
        _ => {}
    }
    let is_relative = |limit: &&CostLimit| matches!(limit, CostLimit::Relative { .. });
    if let (1, Some(limit)) = (variants.len(), session.limits.iter().find(is_relative)) {
        let figure = limit.indicator();
        lines.push(format!(
            "The limit {limit} needs a second variant; {figure} itself is bounded as `--limit \
             {figure}<BOUND`."
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use dnslab_record::CaseId;

    use super::*;

    /// What is said of so many rounds of these variants with a limit.
    fn said(variants: &[&str], rounds: u32, limit: &str) -> String {
        let plan = (1..=rounds).flat_map(|repetition| {
            let case = move |variant: &&str| CaseId { variant: (*variant).to_owned(), repetition };
            variants.iter().map(case)
        });
        let limits = if limit.is_empty() { Vec::new() } else { vec![limit.parse().unwrap()] };
        let session = Session { plan: plan.collect(), limits, ..Session::default() };
        beforehand(&session).join(" ")
    }

    #[test]
    fn what_is_missing_is_said_once() {
        assert_eq!(said(&["udp", "dot"], 3, "p99=10%"), "");
        assert_eq!(said(&[], 0, ""), "");
        for (variants, rounds, limit, expected) in [
            (&["udp", "dot"][..], 1, "", "One round has no interval"),
            (&["udp", "dot"], 2, "", "Intervals of 2 rounds are so wide"),
            (&["udp"], 1, "", "One run has no interval, and one variant is compared with none."),
            (&["udp"], 2, "", "intervals of 2 runs are wide"),
            (&["udp"], 5, "", "One variant is compared with none."),
            (&["udp"], 5, "p99=10%", "The limit p99=10% needs a second variant"),
        ] {
            let found = said(variants, rounds, limit);
            assert!(found.contains(expected), "{variants:?} {rounds}: {found}");
        }
        assert!(!said(&["udp"], 5, "p99<10ms").contains("limit"));
    }
}
