//! The page `TRUTH.md`, from the log alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::METHOD;
use super::figures::{Share, median};
use super::log::Played;
use super::plan::Kind;
use super::tables;

/// What the page begins with.
const HEAD: &str = "\
# How true is what dnslab says?

<!-- Written by `cargo xtask truth` from truth.jsonl. Changes by hand are lost. -->

dnslab was asked questions whose answer is known: are three equal variants equal? Is a variant seen
whose server takes a known amount of CPU time more for each answer? Each experiment is the
[default experiment](../experiments/encryption.toml) with other variants, on the embedded server,
at its default length unless said otherwise. [METHODOLOGY.md](METHODOLOGY.md) says how differences
are planted, and how far the planting itself can be trusted.
";

/// How the page goes on after the tables.
const TAIL: &str = "\
## Play more

```sh
cargo xtask truth --for 40m    # adds to docs/truth.jsonl and writes this page anew; Ctrl-C ends it
                               # after the present experiment
cargo xtask truth --for 0s     # writes this page anew, and plays nothing
cargo xtask truth --smoke      # does it all work? Tiny experiments in a temporary folder
```

Let nothing else run meanwhile. The kind that lacks most is played next, so all kinds grow together.
Logs of several machines can be joined: `cat other.jsonl >> docs/truth.jsonl`. When the method
changes, `METHOD` in crates/xtask/src/truth/mod.rs is raised, and older lines count no more.

All intervals of shares are 95 % intervals by Wilson. They take experiments for independent. The
intervals of one report are not quite so, since two comparisons share a baseline, and all metrics
share the rounds.
";

/// An aim, and what was found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Aim {
    /// At most this share.
    AtMost(f64),
    /// At least this share.
    AtLeast(f64),
    /// A share between these two.
    Between(f64, f64),
}

impl Aim {
    /// The aim as a person says it.
    pub(crate) fn text(self) -> String {
        match self {
            Self::AtMost(share) => format!("at most {}", percent(share)),
            Self::AtLeast(share) => format!("at least {}", percent(share)),
            Self::Between(low, high) => format!("{} to {}", percent(low), percent(high)),
        }
    }

    /// Whether a share keeps the aim, once `needed` of the `count` experiments are played.
    pub(crate) fn judged(self, share: Share, count: usize, needed: u32) -> String {
        let value = share.value();
        let keeps = match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
            Self::Between(low, high) => (low..=high).contains(&value),
        };
        let so_far = count < needed as usize;
        match (share.of, so_far, keeps) {
            (0, ..) => "nothing played yet".to_owned(),
            (_, true, true) => format!("kept so far, by {count} of {needed} experiments"),
            (_, true, false) => format!("missed so far, by {count} of {needed} experiments"),
            (_, false, true) => "kept".to_owned(),
            (_, false, false) => "**missed**".to_owned(),
        }
    }
}

/// The page.
pub(crate) fn page(all: &[Played]) -> String {
    let played: Vec<&Played> = all.iter().filter(|it| it.failure.is_none()).collect();
    let mut page = HEAD.to_owned();
    page += &format!("\n{}", answer(&played));
    if all.is_empty() {
        return page + "\n" + TAIL;
    }
    page += &tables::same(&played);
    page += &tables::costs(&played);
    page += &tables::planted(&played);
    page += &tables::limits(&played);
    page += &tables::position(&played);
    page += &conditions(all);
    page += "\n";
    page += TAIL;
    page
}

/// The aims and what became of them.
fn answer(played: &[&Played]) -> String {
    if played.is_empty() {
        return "**Nothing has been played with the present method.** So nothing is known.\n"
            .into();
    }
    let same = tables::of(played, &[Kind::Same, Kind::SameQuarter]);
    let marks = tables::false_marks(&same);
    let found = tables::of(played, &[Kind::Cost5]);
    let is_found = |it: &&&Played| tables::is_found(it) && it.seconds <= 60.0;
    let hits = Share { part: found.iter().filter(is_found).count() as u64, of: found.len() as u64 };
    let costs = tables::of(played, &[Kind::Cost3, Kind::Cost5, Kind::Cost10]);
    let (zero, truth) = (tables::holds_zero(&same, None), tables::holds_planted(&costs));
    let held = Share { part: zero.part + truth.part, of: zero.of + truth.of };
    let rows = [
        ("equal variants: reports with a false mark", marks, Aim::AtMost(0.015), same.len(), 200),
        (
            "5 % more CPU time per answer: found within 60 s",
            hits,
            Aim::AtLeast(0.9),
            found.len(),
            50,
        ),
        (
            "95 % intervals that hold the truth",
            held,
            Aim::Between(0.93, 0.97),
            same.len() + costs.len(),
            350,
        ),
    ];
    let mut text = "The answer in short:\n\n| | found | 95 % interval | aim | |\n".to_owned();
    text += "| --- | --- | --- | --- | --- |\n";
    for (what, share, aim, count, needed) in rows {
        let judged = aim.judged(share, count, needed);
        let _ = writeln!(text, "| {what} | {} | {} | {judged} |", shown(share), aim.text());
    }
    text
}

/// Machines, days and failures.
fn conditions(all: &[Played]) -> String {
    let mut machines: BTreeMap<(&str, &str, &str), Vec<&Played>> = BTreeMap::new();
    for it in all {
        machines.entry((&it.cpu, &it.kernel, &it.dnslab)).or_default().push(it);
    }
    let mut text = format!(
        "\n## Machines and days\n\nMethod {METHOD}. \"Stolen\" is the share of all CPU time that the \
         hypervisor gave to others.\n\n| CPU | kernel | dnslab | days | experiments | median stolen | \
         without a report | invalid runs |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n"
    );
    for ((cpu, kernel, dnslab), of_it) in machines {
        let days = || of_it.iter().map(|it| it.date.as_str()).filter(|date| !date.is_empty());
        let stolen = median(of_it.iter().map(|it| it.stolen)).map_or_else(String::new, percent);
        let failures = of_it.iter().filter(|it| it.failure.is_some()).count();
        let invalid: u64 = of_it.iter().map(|it| it.invalid_runs).sum();
        let (first, last) = (days().min().unwrap_or("-"), days().max().unwrap_or("-"));
        let days = if first == last { first.to_owned() } else { format!("{first} to {last}") };
        let _ = writeln!(
            text,
            "| {cpu} | {kernel} | {dnslab} | {days} | {} | {stolen} | {failures} | {invalid} |",
            of_it.len()
        );
    }
    text
}

/// A share with its interval: two cells of a table.
pub(crate) fn shown(share: Share) -> String {
    if share.of == 0 {
        return "- | -".to_owned();
    }
    let (low, high) = share.interval();
    let value = percent(share.value());
    format!("{} of {} ({value}) | {} to {}", share.part, share.of, percent(low), percent(high))
}

/// A share in percent, one digit after the point where it is small.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    let text = if value.abs() < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") };
    let text = text.strip_suffix(".0").unwrap_or(&text);
    let text = if text == "-0" { "0" } else { text };
    format!("{text} %")
}

/// A kind as a person says it.
pub(crate) fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Same => "equal variants, default length",
        Kind::SameQuarter => "equal variants, a quarter of it",
        Kind::Cost3 => "+3 % CPU time",
        Kind::Cost5 => "+5 % CPU time",
        Kind::Cost10 => "+10 % CPU time",
        Kind::Delay => "0.1 ms later",
        Kind::Loss => "0.5 % lost",
        Kind::LimitServerCpu => "server's CPU",
        Kind::LimitWindow => "window",
        Kind::LimitNetwork => "network",
        Kind::LimitRate => "asked rate",
        Kind::LimitGenerator => "load generator",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::log::{Compared, Estimate};
    use super::*;

    /// An experiment whose differences are all `percent` % +- 1 %, and seen if that is not 0.
    pub(crate) fn played(kind: Kind, percent: u32) -> Played {
        let value = f64::from(percent) / 100.0;
        let around = |value: f64, half: f64| Estimate {
            value: Some(value),
            low: Some(value - half),
            high: Some(value + half),
        };
        let compared = |variant: &str, metric: &str| Compared {
            variant: variant.into(),
            metric: metric.into(),
            difference: around(value, 0.01),
            absolute: Some(around(value * 5_000.0, 50.0)),
            verdict: if percent == 0 { "cannot-tell" } else { "costs" }.into(),
        };
        let variants: &[&str] = match kind {
            Kind::Same | Kind::SameQuarter => &["b", "c"],
            _ if kind.limit().is_some() => &[],
            _ => &["busy"],
        };
        let metrics = ["answered-qps", "server-cpu-per-query", "latency-p50"];
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
                .flat_map(|variant| metrics.map(|metric| compared(variant, metric)))
                .collect(),
            lost: (kind == Kind::Loss).then_some([5, 1_000]),
            limits: kind.limit().map(|name| vec![name.to_owned(); 2]).unwrap_or_default(),
            invalid_runs: 0,
            failure: None,
        }
    }

    /// The line of a page that begins so.
    #[track_caller]
    fn line<'a>(page: &'a str, start: &str) -> &'a str {
        let found = page.lines().find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("no line `{start}` in\n{page}"))
    }

    #[test]
    fn a_known_log_gives_a_known_page() {
        let mut log: Vec<Played> = (0..4).map(|_| played(Kind::Same, 0)).collect();
        log.push(played(Kind::SameQuarter, 3));
        log.extend([played(Kind::Cost5, 5), played(Kind::Cost5, 5), played(Kind::Cost5, 0)]);
        log.extend([Kind::Loss, Kind::LimitWindow].map(|kind| played(kind, 0)));
        log.push(Played { failure: Some("no".into()), ..played(Kind::Delay, 0) });
        let page = page(&log);
        let check =
            |start: &str, rest: &str| assert_eq!(line(&page, start), format!("{start}{rest}"));
        check(
            "| equal variants: reports with a false mark |",
            " 1 of 5 (20 %) | 3.6 % to 62 % | at most 1.5 % | missed so far, by 5 of 200 experiments |",
        );
        check(
            "| 5 % more CPU time per answer: found within 60 s |",
            " 2 of 3 (67 %) | 21 % to 94 % | at least 90 % | missed so far, by 3 of 50 experiments |",
        );
        // 24 of 30 intervals of equal variants, and 2 of 3 of planted costs.
        check(
            "| 95 % intervals that hold the truth |",
            " 26 of 33 (79 %) | 62 % to 89 % | 93 % to 97 % | missed so far, by 8 of 350 experiments |",
        );
        check("| window | 2 of 2 (100 %) |", " 34 % to 100 % | - |");
        check("| a CPU |", " Linux 6 | dnslab 0.1.0 | 2026-11-22 | 11 | 0.1 % | 1 | 0 |");
        assert!(line(&page, "| 0.5 % of the answers lost").contains("1 of 1 (100 %)"), "{page}");
        assert!(line(&page, "| 0.1 ms later").contains("| - |"), "{page}");
    }

    #[test]
    fn an_empty_log_says_so() {
        let page = page(&[]);
        assert!(page.contains("**Nothing has been played"), "{page}");
        assert!(!page.contains("| ---"), "{page}");
    }

    #[test]
    fn an_aim_counts_only_with_enough_experiments() {
        let check = |part, count, expected: &str| {
            let share = Share { part, of: count as u64 };
            assert_eq!(Aim::AtMost(0.015).judged(share, count, 200), expected);
        };
        check(0, 0, "nothing played yet");
        check(0, 199, "kept so far, by 199 of 200 experiments");
        check(3, 200, "kept");
        check(4, 200, "**missed**");
    }

    #[test]
    fn percent_has_the_digits_that_matter() {
        for (share, text) in [(0.0, "0 %"), (0.015, "1.5 %"), (0.9, "90 %"), (-0.0001, "0 %")] {
            assert_eq!(percent(share), text);
        }
    }
}
