//! The page `TRUTH.md`, from the log alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::answer::answer;
use super::earlier::earlier;
use super::figures::median;
use super::log::{Log, METHOD, Played, counted};
use super::shown::percent;
use super::tables;

const HEAD: &str = "\
# How true is what dnslab says?

<!-- Written by `cargo xtask truth` from truth.jsonl. Changes by hand are lost. -->

dnslab was asked questions whose answer is known: are three equal variants equal? Is a variant seen
whose server takes a known amount of CPU time more for each answer? Each experiment is the
[default experiment](../experiments/encryption.toml) with other variants, on the embedded server at
its default length unless said otherwise. [METHOD.md](../docs/METHOD.md) says how differences
are planted, and how far the planting itself can be trusted.
";

const TAIL: &str = "\
## Play more

```sh
cargo xtask truth --for 40m    # adds to evidence/truth.jsonl and writes this page anew; Ctrl-C ends it
                               # after the present experiment
cargo xtask truth --for 0s     # writes this page anew, and plays nothing
cargo xtask truth --smoke      # does it all work? Tiny experiments in a temporary folder
```

Let nothing else run meanwhile. The kind that lacks most is played next, so all kinds grow together.
The series is played in portions, and play goes on until each kind has reached its target, whatever
the figures are by then. So looking at them early is not a rule to stop by. What is beyond a target is
not counted. Logs of several machines can be joined: `cat other.jsonl >> evidence/truth.jsonl`. When the
method changes, `METHOD` in crates/xtask/src/truth/log.rs is raised. Older lines then count in the table
\"Earlier methods\" alone.

Intervals of shares are 95 % intervals by Wilson where each experiment tells one thing: experiments are
independent. The intervals of one report are not, since two comparisons share a baseline, and all metrics
share the rounds. So where several of one report count, experiments are drawn anew as a whole, 2,000
times with a fixed seed (percentile bootstrap). Below 20 experiments, or if all have the same share, that
shows too little. Then the interval is Wilson's, as if each experiment had told one thing.
";

pub(crate) fn page(log: &Log) -> String {
    let played = counted(&log.played);
    let mut page = format!("{HEAD}\n{}", answer(&played));
    if !played.is_empty() {
        page += &tables::same(&played);
        page += &tables::costs(&played);
        page += &tables::by_figure(&played);
        page += &tables::real_servers(&played);
        page += &tables::planted(&played);
        page += &tables::limits(&played);
        page += &tables::position(&played);
        page += &conditions(&played, log.played.len() - played.len());
    }
    page += &earlier(&log.earlier);
    page + "\n" + TAIL
}

fn conditions(all: &[&Played], beyond: usize) -> String {
    let mut machines: BTreeMap<(&str, &str, &str), Vec<&Played>> = BTreeMap::new();
    for played in all {
        machines.entry((&played.cpu, &played.kernel, &played.dnslab)).or_default().push(played);
    }
    let mut text = format!(
        "\n## Machines and days\n\nMethod {METHOD}. \"Stolen\" is the share of all CPU time that the \
         hypervisor gave to others.\n\n| CPU | kernel | dnslab | days | experiments | median stolen | \
         without a report | invalid runs |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n"
    );
    for ((cpu, kernel, dnslab), of_it) in machines {
        let days =
            || of_it.iter().map(|played| played.date.as_str()).filter(|date| !date.is_empty());
        let stolen =
            median(of_it.iter().map(|played| played.stolen)).map_or_else(String::new, percent);
        let failures = of_it.iter().filter(|played| played.failure.is_some()).count();
        let invalid: u64 = of_it.iter().map(|played| played.invalid_runs).sum();
        let (first, last) = (days().min().unwrap_or("-"), days().max().unwrap_or("-"));
        let days = if first == last { first.to_owned() } else { format!("{first} to {last}") };
        let _ = writeln!(
            text,
            "| {cpu} | {kernel} | {dnslab} | {days} | {} | {stolen} | {failures} | {invalid} |",
            of_it.len()
        );
    }
    if beyond > 0 {
        let _ = writeln!(text, "\nLines of the log beyond the targets, not counted: {beyond}.");
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::log::{Compared, Estimate};
    use super::super::plan::Kind;
    use super::*;

    fn compared(variant: &str, metric: &str, value: f64) -> Compared {
        let around = |value: f64, half: f64| Estimate {
            value: Some(value),
            low: Some(value - half),
            high: Some(value + half),
        };
        Compared {
            variant: variant.into(),
            metric: metric.into(),
            difference: around(value, 0.01),
            absolute: Some(around(value * 5_000.0, 50.0)),
            verdict: if value == 0.0 { "cannot-tell" } else { "costs" }.into(),
        }
    }

    /// An experiment whose differences are all `percent` % +- 1 %, and marked if that is not 0. The
    /// difference of the memory is 0 unless the variants are meant to be equal.
    pub(crate) fn played(kind: Kind, percent: u32) -> Played {
        let value = f64::from(percent) / 100.0;
        let is_same =
            matches!(kind, Kind::Same | Kind::SameQuarter | Kind::SameBind | Kind::SameNsd);
        let variants: &[&str] = match kind {
            _ if is_same => &["b", "c"],
            _ if kind.limit().is_some() => &[],
            _ => &["busy"],
        };
        let metrics = ["answered-qps", "server-cpu-per-query", "latency-p50", tables::MEMORY];
        let found = metrics.map(|metric| match is_same || metric != tables::MEMORY {
            true => (metric, value),
            false => (metric, 0.0),
        });
        Played {
            method: METHOD,
            date: "2026-11-22".into(),
            cpu: "a CPU".into(),
            kernel: "Linux 6".into(),
            dnslab: "dnslab 0.1.0".into(),
            seconds: 40.0,
            stolen: 0.001,
            kind,
            transport: "udp".into(),
            seed: 1,
            busy_ns: kind.cost().map(|share| (share * 5_000.0).round() as u64),
            comparisons: variants
                .iter()
                .flat_map(|variant| found.map(|(metric, value)| compared(variant, metric, value)))
                .collect(),
            lost: (kind == Kind::Loss).then_some([500, 100_000]),
            limits: kind.limit().map(|name| vec![name.to_owned(); 2]).unwrap_or_default(),
            invalid_runs: 0,
            failure: None,
        }
    }

    #[track_caller]
    fn line<'a>(page: &'a str, start: &str) -> &'a str {
        let found = page.lines().find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("no line `{start}` in\n{page}"))
    }

    /// A log of the present method alone.
    fn page_of(played: Vec<Played>) -> String {
        page(&Log { played, earlier: Vec::new() })
    }

    #[track_caller]
    fn check(page: &str, start: &str, rest: &str) {
        assert_eq!(line(page, start), format!("{start}{rest}"));
    }

    #[test]
    fn a_known_log_gives_a_known_page() {
        let mut log: Vec<Played> = (0..4).map(|_| played(Kind::Same, 0)).collect();
        log.push(played(Kind::SameQuarter, 3));
        log.extend([played(Kind::Cost5, 5), played(Kind::Cost5, 5), played(Kind::Cost5, 0)]);
        log.extend([Kind::Loss, Kind::LimitWindow].map(|kind| played(kind, 0)));
        log.push(Played { failure: Some("no".into()), ..played(Kind::Delay, 0) });
        let page = page_of(log);
        check(
            &page,
            "| equal variants: reports with a false mark |",
            " 1 of 5 (20 %) | 3.6 % to 62 % | at most 1.5 % | **missed** so far, by 5 of 200 experiments |",
        );
        check(
            &page,
            "| beside a planted difference: reports with a false mark, where the truth is known to be 0 \
             (memory) |",
            " 0 of 4 (0 %) | 0 % to 49 % | at most 1.5 % | not shown yet, by 4 of 110 experiments; \
             \"kept\" takes 253 or more |",
        );
        check(
            &page,
            "| 5 % more CPU time per answer: found in the CPU time within 60 s, with two variants and so \
             one comparison (the default experiment has 5 variants and 6 comparisons) |",
            " 2 of 3 (67 %) | 21 % to 94 % | at least 90 % | not shown yet, by 3 of 50 experiments |",
        );
        check(
            &page,
            "| 0.1 ms later: found in the median latency, with whole runs in turn |",
            " 0 of 1 (0 %) | 0 % to 79 % | - | 1 of 20 experiments |",
        );
        // There are 8 intervals in each of five reports, and one report holds none: as sure as 4 of 5.
        check(
            &page,
            "| equal variants: 95 % intervals that hold 0 |",
            " 32 of 40 (80 %) | 38 % to 96 % | 93 % to 97 % | not shown yet, by 5 of 200 experiments |",
        );
        let planted =
            line(&page, "| planted differences: 95 % intervals of the CPU time that hold the");
        assert!(planted.contains("| 2 of 3 (67 %) | 21 % to 94 % | 93 % to 97 % |"), "{planted}");
        // The others measured half of it, half of it, and all of it where nothing was planted.
        let others =
            line(&page, "| planted differences: 95 % intervals of the CPU time that hold what");
        assert!(others.contains("| 0 of 3 (0 %) |"), "{others}");
        // Each figure by itself; the memory is as it was.
        let third = "2 of 3 (67 %)";
        check(
            &page,
            &format!("| {} | udp | 3 |", Kind::Cost5.name()),
            &format!(" {third} | {third} | {third} | 0 of 3 (0 %) | 0 of 3 (0 %) |"),
        );
        // Two runs of one experiment.
        check(&page, "| window | 2 of 2 (100 %) |", " 21 % to 100 % | - |");
        check(&page, "| a CPU |", " Linux 6 | dnslab 0.1.0 | 2026-11-22 | 11 | 0.1 % | 1 | 0 |");
        check(
            &page,
            "| 0.5 % of the answers lost |",
            " 1 of 10 | 0.500 % (all together) | 1 of 1 (100 %) | 21 % to 100 % | 1 of 1 (100 %) | 21 % to 100 % |",
        );
        assert!(!page.contains("## Earlier methods"), "{page}");
    }

    fn found_of_two(change: &dyn Fn(&mut Played)) -> String {
        let mut log = vec![played(Kind::Cost5, 5), played(Kind::Cost5, 5)];
        change(&mut log[1]);
        let page = page_of(log);
        let cells: Vec<String> =
            line(&page, "| 5 % more CPU").split('|').map(|cell| cell.trim().to_owned()).collect();
        cells[2].clone()
    }

    #[test]
    fn what_is_late_or_without_a_report_or_elsewhere_is_not_found() {
        assert_eq!(found_of_two(&|_| {}), "2 of 2 (100 %)");
        assert_eq!(found_of_two(&|played| played.seconds = 60.1), "1 of 2 (50 %)");
        assert_eq!(
            found_of_two(&|played| played
                .comparisons
                .retain(|compared| compared.metric != tables::CPU)),
            "1 of 2 (50 %)"
        );
        let fail = |played: &mut Played| {
            played.comparisons.clear();
            played.failure = Some("no".into());
        };
        assert_eq!(found_of_two(&fail), "1 of 2 (50 %)");
    }

    #[test]
    fn others_over_the_same_transport_are_a_truth() {
        let over = |transport: &str, percent| Played {
            transport: transport.into(),
            ..played(Kind::Cost5, percent)
        };
        let mut log: Vec<Played> = (0..4).map(|_| over("udp", 4)).collect();
        log.push(over("tcp", 4));
        let page = page_of(log);
        // The difference is 200 +- 50 ns of 250 ns. Over TCP there is no other experiment.
        check(&page, "| udp | 4 | 80 % | 80 % to 80 % |", " 4 of 4 (100 %) | 51 % to 100 % |");
        let others =
            line(&page, "| planted differences: 95 % intervals of the CPU time that hold what");
        assert!(others.contains("| 4 of 4 (100 %) |"), "{others}");
        assert!(!page.lines().any(|line| line.starts_with("| tcp | 1 |")), "{page}");
    }

    #[test]
    fn a_mark_on_the_memory_beside_a_planted_difference_is_false() {
        let mut marked = played(Kind::Cost3, 3);
        for comparison in &mut marked.comparisons {
            "costs".clone_into(&mut comparison.verdict);
        }
        let page = page_of(vec![marked, played(Kind::Loss, 5), played(Kind::Delay, 5)]);
        assert!(line(&page, "| beside a planted").contains("| 1 of 2 (50 %) |"), "{page}");
    }

    #[test]
    fn a_loss_that_may_be_half_of_the_planted_one_is_not_found() {
        for (lost, found) in [
            (Some([500, 100_000]), "1 of 1"),
            (Some([5, 1_000]), "0 of 1"),
            (Some([300, 100_000]), "0 of 1"),
            (Some([800, 100_000]), "0 of 1"),
            (None, "0 of 1"),
        ] {
            let page = page_of(vec![Played { lost, ..played(Kind::Loss, 0) }]);
            let row = line(&page, "| 0.5 % of the answers lost");
            let cell = row.split('|').nth(4).unwrap().trim();
            assert!(cell.starts_with(found), "{lost:?}: {row}");
        }
    }

    #[test]
    fn what_is_beyond_the_targets_is_not_counted() {
        let mut log: Vec<Played> = (0..10).map(|_| played(Kind::Loss, 0)).collect();
        assert!(!page_of(log.clone()).contains("beyond the targets"));
        log.push(Played { lost: Some([0, 100_000]), ..played(Kind::Loss, 0) });
        let page = page_of(log);
        assert!(line(&page, "| 0.5 % of the").contains("| 10 of 10 (100 %) |"), "{page}");
        check(&page, "Lines of the log beyond the targets, not counted: ", "1.");
    }

    #[test]
    fn an_empty_log_says_so() {
        let page = page(&Log::default());
        assert!(page.contains("**Nothing has been played"), "{page}");
        assert!(!page.contains("| ---"), "{page}");
    }

    #[test]
    fn percent_has_the_digits_that_matter() {
        for (share, text) in [(0.0, "0 %"), (0.015, "1.5 %"), (0.9, "90 %"), (-0.0001, "0 %")] {
            assert_eq!(percent(share), text);
        }
    }
}
