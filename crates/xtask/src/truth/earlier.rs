//! What experiments of earlier methods said, so that a raised `METHOD` hides nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::answer::MAX_SECONDS;
use super::figures::Share;
use super::log::{Compared, Earlier};
use super::play::CPU;
use super::shown::counts;

/// Empty without such experiments.
pub(crate) fn earlier(lines: &[Earlier]) -> String {
    let mut methods: BTreeMap<u32, Vec<&Earlier>> = BTreeMap::new();
    for line in lines {
        methods.entry(line.method).or_default().push(line);
    }
    if methods.is_empty() {
        return String::new();
    }
    let mut text = "\n## Earlier methods\n\nWhat can move a figure of this page makes a new method. \
                    Experiments of earlier methods are not counted above. They are here, so that a \
                    new method hides no bad record.\n\n\
                    | method | experiments | without a report | reports of equal variants with a \
                    false mark | 5 % found in CPU time within 60 s | intervals that held the truth |\n\
                    | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for (method, of_it) in methods {
        let failures = of_it.iter().filter(|played| played.failure.is_some()).count();
        let reports = of_it.iter().filter(|played| played.failure.is_none() && is_same(played));
        let marks =
            Share::of(reports.map(|played| played.comparisons.iter().any(Compared::is_mark)));
        let found = Share::of(
            of_it.iter().filter(|played| played.kind == "cost-5").map(|played| is_found(played)),
        );
        let held = Share::of(of_it.iter().flat_map(|played| held(played)));
        let _ = writeln!(
            text,
            "| {method} | {} | {failures} | {} | {} | {} |",
            of_it.len(),
            counts(marks),
            counts(found),
            counts(held)
        );
    }
    text
}

fn is_same(earlier: &Earlier) -> bool {
    matches!(earlier.kind.as_str(), "same" | "same-quarter")
}

/// A planted cost was found in the CPU time, and in time.
fn is_found(earlier: &Earlier) -> bool {
    let costs = |compared: &Compared| compared.metric == CPU && compared.verdict == "costs";
    earlier.seconds <= MAX_SECONDS && earlier.comparisons.iter().any(costs)
}

/// For each interval with a known truth, whether it holds it: every metric of equal variants, and the CPU
/// time if CPU time was planted.
fn held(earlier: &Earlier) -> Vec<bool> {
    if is_same(earlier) {
        let comparisons = earlier.comparisons.iter();
        return comparisons.map(|compared| compared.difference.holds(0.0)).collect();
    }
    let Some(busy_ns) = earlier.busy_ns else { return Vec::new() };
    let cpu = earlier.comparisons.iter().filter(|compared| compared.metric == CPU);
    cpu.filter_map(|comparison| Some(comparison.absolute?.holds(busy_ns as f64))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::page::tests::played;
    use super::super::plan::Kind;
    use super::*;

    fn record(kind: Kind, name: &str, percent: u32) -> Earlier {
        let played = played(kind, percent);
        Earlier {
            method: 1,
            kind: name.into(),
            seconds: played.seconds,
            busy_ns: played.busy_ns,
            comparisons: played.comparisons,
            failure: None,
        }
    }

    #[test]
    fn a_bad_record_stays_on_the_page() {
        assert_eq!(earlier(&[]), "");
        let late = Earlier { seconds: 61.0, ..record(Kind::Cost5, "cost-5", 5) };
        let gone = Earlier { method: 2, kind: "gone".into(), ..Earlier::default() };
        let failed =
            Earlier { method: 2, kind: "same".into(), failure: Some("no".into()), ..gone.clone() };
        let log = [
            record(Kind::Same, "same", 0),
            record(Kind::Same, "same", 5),
            record(Kind::Cost5, "cost-5", 5),
            late,
            gone,
            failed,
        ];
        let text = earlier(&log);
        let rows: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("| ---")).collect();
        // Of 8 and 8 intervals of equal variants the first 8 hold 0; both planted costs are held.
        assert_eq!(
            rows[1..],
            [
                "| 1 | 4 | 0 | 1 of 2 (50 %) | 1 of 2 (50 %) | 10 of 18 (56 %) |",
                "| 2 | 2 | 1 | - | - | - |",
            ]
        );
    }
}
