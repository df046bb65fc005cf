//! The short answer of the page: dnslab's aims, and whether they are reached.

use std::fmt::Write as _;

use super::experiment::default_size;
use super::figures::{Share, clustered};
use super::log::Played;
use super::plan::Kind;
use super::shown::{percent, shown_in};
use super::tables::{self, COSTS, EQUAL, UNMOVED};

/// A difference counts as found in time if its experiment took no longer.
pub(crate) const MAX_SECONDS: f64 = 60.0;
/// An aim that takes more experiments is out of reach.
const MAX_COUNT: u32 = 2_000;

#[derive(Clone, Copy, Debug)]
enum Aim {
    AtMost(f64),
    AtLeast(f64),
    Between(f64, f64),
}

impl Aim {
    fn text(self) -> String {
        match self {
            Self::AtMost(share) => format!("at most {}", percent(share)),
            Self::AtLeast(share) => format!("at least {}", percent(share)),
            Self::Between(low, high) => format!("{} to {}", percent(low), percent(high)),
        }
    }

    /// True if the whole interval keeps the aim, false if it misses it, `None` if it does neither.
    fn is_kept(self, (low, high): (f64, f64)) -> Option<bool> {
        let (least, most) = match self {
            Self::AtMost(most) => (0.0, most),
            Self::AtLeast(least) => (least, 1.0),
            Self::Between(least, most) => (least, most),
        };
        let (is_within, is_beyond) = (least <= low && high <= most, high < least || most < low);
        (is_within || is_beyond).then_some(is_within)
    }

    /// The lowest number of independent facts that can show the aim as kept.
    fn fewest(self) -> Option<u32> {
        let is_nearest = |share: &Share| match self {
            Self::AtMost(_) => share.part == 0,
            Self::AtLeast(_) => share.part == share.of,
            Self::Between(least, most) => (least..=most).contains(&share.value()),
        };
        let is_shown =
            |share: Share| is_nearest(&share) && self.is_kept(share.interval()) == Some(true);
        let shares =
            |total: u32| (0..=total).map(move |part| Share { part: part.into(), of: total.into() });
        (1..=MAX_COUNT).find(|total| shares(*total).any(is_shown))
    }
}

struct Row {
    what: String,
    share: Share,
    /// 95 %, of that share.
    interval: (f64, f64),
    /// True if each experiment gives one independent fact.
    is_independent: bool,
    aim: Option<Aim>,
    /// Number of experiments that were played.
    played: usize,
    /// Number of experiments that are wanted.
    target: u32,
}

impl Row {
    fn of(what: &str, share: Share, aim: Option<Aim>, played: &[&Played], kinds: &[Kind]) -> Self {
        let (what, interval, target) = (what.to_owned(), share.interval(), target(kinds));
        let played = tables::of(played, kinds).len();
        Self { what, share, interval, is_independent: true, aim, played, target }
    }

    /// A share of intervals, given for each experiment.
    fn of_intervals(what: &str, shares: &[Share], played: &[&Played], kinds: &[Kind]) -> Self {
        let (all, aim) = (Share::total(shares), Some(Aim::Between(0.93, 0.97)));
        Self {
            interval: clustered(shares),
            is_independent: shares.iter().all(|share| share.of <= 1),
            ..Self::of(what, all, aim, played, kinds)
        }
    }

    fn judged(&self) -> String {
        let Self { played, target, .. } = self;
        let progress = format!("{played} of {target} experiments");
        let Some(aim) = self.aim.filter(|_| self.share.of > 0) else { return progress };
        let is_done = *played >= *target as usize;
        match (aim.is_kept(self.interval), is_done) {
            (Some(true), true) => "kept".to_owned(),
            (Some(true), false) => format!("kept so far, by {progress}"),
            (Some(false), true) => "**missed**".to_owned(),
            (Some(false), false) => format!("**missed** so far, by {progress}"),
            (None, _) => match aim.fewest().filter(|_| self.is_independent) {
                Some(fewest) if fewest > *target => {
                    format!("not shown yet, by {progress}; \"kept\" takes {fewest} or more")
                }
                _ => format!("not shown yet, by {progress}"),
            },
        }
    }
}

/// Experiments that are wanted of these kinds together.
fn target(kinds: &[Kind]) -> u32 {
    kinds.iter().map(|kind| kind.target()).sum()
}

pub(crate) fn answer(played: &[&Played]) -> String {
    if played.is_empty() {
        return "**Nothing has been played with the present method.** So nothing is known.\n"
            .into();
    }
    let mut text = "The answer in short:\n\n| | found | 95 % interval | aim | |\n".to_owned();
    text += "| --- | --- | --- | --- | --- |\n";
    for row in rows(played) {
        let aim = row.aim.map_or_else(|| "-".to_owned(), Aim::text);
        let found = shown_in(row.share, row.interval);
        let _ = writeln!(text, "| {} | {found} | {aim} | {} |", row.what, row.judged());
    }
    text + &notes()
}

fn rows(played: &[&Played]) -> [Row; 7] {
    let found = |kind, metric| tables::found(&tables::of(played, &[kind]), &[metric]);
    let in_time: Vec<&Played> = tables::of(played, &[Kind::Cost5]);
    let is_in_time = |played: &&Played| {
        played.seconds <= MAX_SECONDS && tables::is_found(played, &[tables::CPU])
    };
    let (variants, comparisons) = default_size();
    let cost = format!(
        "5 % more CPU time per answer: found in the CPU time within 60 s, with two variants and so one \
         comparison (the default experiment has {variants} variants and {comparisons} comparisons)"
    );
    [
        Row::of(
            "equal variants: reports with a false mark",
            tables::false_marks(&tables::of(played, &EQUAL)),
            Some(Aim::AtMost(0.015)),
            played,
            &EQUAL,
        ),
        Row::of(
            "beside a planted difference: reports with a false mark, where the truth is known to be 0 \
             (memory)",
            tables::marks_beside(&tables::of(played, &UNMOVED)),
            Some(Aim::AtMost(0.015)),
            played,
            &UNMOVED,
        ),
        Row::of(
            &cost,
            Share::of(in_time.iter().map(is_in_time)),
            Some(Aim::AtLeast(0.9)),
            played,
            &[Kind::Cost5],
        ),
        Row::of(
            "0.1 ms later: found in the median latency, with whole runs in turn",
            found(Kind::Delay, tables::MEDIAN),
            None,
            played,
            &[Kind::Delay],
        ),
        Row::of_intervals(
            "equal variants: 95 % intervals that hold 0",
            &tables::holds_zero(&tables::of(played, &EQUAL), None),
            played,
            &EQUAL,
        ),
        Row::of_intervals(
            "planted differences: 95 % intervals of the CPU time that hold the planted one",
            &tables::holds_planted(&tables::of(played, &COSTS)),
            played,
            &COSTS,
        ),
        Row::of_intervals(
            "planted differences: 95 % intervals of the CPU time that hold what the other experiments \
             measured of the planted one",
            &tables::holds_others(&tables::of(played, &COSTS)),
            played,
            &COSTS,
        ),
    ]
}

fn notes() -> String {
    let (_, comparisons) = default_size();
    format!(
        "
- \"Kept\" and \"missed\" are said only if the whole interval is on that side of the aim.
- An experiment that left no report has found nothing. Neither has one that took more than 60 s, where
  the time counts.
- Two variants make one comparison, whose metrics have a weight of 14 together
  ([METHOD.md](../docs/METHOD.md), \"The four words\"). The default experiment has {comparisons} comparisons, which
  share one error rate, so each has about a {} of it to begin with. The same difference is harder to find
  there.
- The experiment with a planted latency makes whole runs, one variant after the other, and not turns of
  50 ms: an answer that `server.delay` holds back may come after its variant's turn. So its intervals say
  nothing of those of turns.
",
        ordinal(comparisons)
    )
}

fn ordinal(parts: usize) -> String {
    match parts {
        4 => "quarter".to_owned(),
        5 => "fifth".to_owned(),
        6 => "sixth".to_owned(),
        _ => format!("{parts}th part"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(share: Share, aim: Aim, played: usize, target: u32) -> Row {
        let (what, interval, aim) = (String::new(), share.interval(), Some(aim));
        Row { what, share, interval, is_independent: true, aim, played, target }
    }

    #[test]
    fn a_verdict_takes_the_whole_interval() {
        let check = |aim, part, total: u64, target, expected: &str| {
            let found = row(Share { part, of: total }, aim, total as usize, target).judged();
            assert_eq!(found, expected, "{part} of {total}");
        };
        let marks = Aim::AtMost(0.015);
        check(marks, 0, 0, 200, "0 of 200 experiments");
        // Wilson's interval of 0 of 200 ends at 1.9 %, that of 0 of 253 at 1.496 %.
        let few = "not shown yet, by 200 of 200 experiments; \"kept\" takes 253 or more";
        check(marks, 0, 200, 200, few);
        check(marks, 0, 253, 300, "kept so far, by 253 of 300 experiments");
        check(marks, 0, 300, 300, "kept");
        check(marks, 3, 300, 300, "not shown yet, by 300 of 300 experiments");
        check(marks, 30, 300, 300, "**missed**");
        let power = Aim::AtLeast(0.9);
        check(power, 50, 50, 50, "kept");
        check(power, 46, 50, 50, "not shown yet, by 50 of 50 experiments");
        check(power, 3, 20, 50, "**missed** so far, by 20 of 50 experiments");
        let coverage = Aim::Between(0.93, 0.97);
        check(coverage, 950, 1_000, 1_000, "kept");
        check(coverage, 1_000, 1_000, 1_000, "**missed**");
        check(coverage, 850, 1_000, 1_000, "**missed**");
        check(coverage, 930, 1_000, 1_000, "not shown yet, by 1000 of 1000 experiments");
    }

    #[test]
    fn without_an_aim_there_is_no_verdict() {
        let share = Share { part: 1, of: 1 };
        let row = Row { aim: None, ..row(share, Aim::AtLeast(0.9), 1, 20) };
        assert_eq!(row.judged(), "1 of 20 experiments");
    }
}
