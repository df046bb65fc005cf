//! What servers hold as their load rises, in words and as a table.

use dnslab_analysis::{
    Breaking, HELD_SHARE, RunFigures, Summary, SweepLine, SweepPoint, SweepRun, held_share,
};

use crate::number::{self, NONE};
use crate::words::time_out;

pub(crate) const HEADER: [&str; 8] =
    ["server", "queries per second", "variant", "runs", "answered", "without error", "p50", "p99"];

/// What is held, and what breaks.
pub(crate) fn legend(summary: &Summary) -> String {
    let held = held_share(&summary.sweep);
    format!(
        "A server holds a load if it answers {} of the queries or more in every run, without SERVFAIL, REFUSED, \
         NOTIMP and FORMERR: that is {} of the best mean here, because some names may have no answer. It breaks \
         at the lowest load that it holds in no run. Runs that are invalid because the server did not answer \
         count here.",
        number::share(held),
        number::percent(HELD_SHARE, 0)
    )
}

/// Between which loads each server breaks, one sentence each.
pub(crate) fn sentences(summary: &Summary) -> Vec<String> {
    let held = held_share(&summary.sweep);
    summary.sweep.iter().map(|line| sentence(line, held)).collect()
}

fn sentence(line: &SweepLine, held_share: f64) -> String {
    let name = &line.name;
    let last = line.points.last().map_or(0.0, |at| at.load_qps);
    let Breaking { holds_qps, breaks_qps } = line.breaking(held_share);
    match (holds_qps, breaks_qps) {
        (Some(holds), Some(breaks)) => format!(
            "{name} breaks between {} and {}.",
            number::qps(holds),
            number::queries_per_second(breaks)
        ),
        (None, Some(breaks)) => {
            format!("{name} breaks at {} or below.", number::queries_per_second(breaks))
        }
        (Some(holds), None) if holds == last => {
            format!("{name} holds {}, the highest load.", number::queries_per_second(holds))
        }
        (Some(holds), None) => format!(
            "{name} holds {}, and higher loads in some of its runs.",
            number::queries_per_second(holds)
        ),
        (None, None) => format!("{name} holds no load in all of its runs."),
    }
}

/// A row for each load of each server.
pub(crate) fn rows(summary: &Summary) -> Vec<[String; HEADER.len()]> {
    let points_of = |line: &'_ SweepLine| -> Vec<_> {
        line.points.iter().map(|point| cells(line, point)).collect()
    };
    summary.sweep.iter().flat_map(points_of).collect()
}

fn cells(line: &SweepLine, point: &SweepPoint) -> [String; HEADER.len()] {
    let share = |figure: fn(&SweepRun) -> f64| {
        let values: Vec<f64> = point.runs.iter().map(figure).collect();
        range(&values, &number::share)
    };
    [
        line.name.clone(),
        number::qps(point.load_qps),
        point.variant.clone(),
        point.runs.len().to_string(),
        share(|run| run.answered_share),
        share(|run| run.sound_share),
        latency(point.runs.iter().filter_map(SweepRun::p50).collect()),
        latency(point.runs.iter().filter_map(SweepRun::p99).collect()),
    ]
}

fn latency(figures: RunFigures) -> String {
    match figures.time_outs() {
        Some(found) => time_out(found, "runs"),
        None => range(&figures.at_least(), &number::duration),
    }
}

fn range(values: &[f64], write: &dyn Fn(f64) -> String) -> String {
    let all = || values.iter().copied();
    let (low, high) = (all().reduce(f64::min), all().reduce(f64::max));
    match (low.map(write), high.map(write)) {
        (Some(low), Some(high)) if low == high => low,
        (Some(low), Some(high)) => format!("{low} to {high}"),
        _ => NONE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of loads of 1, 2, 3, ... thousand queries per second, with the shares of two runs of each.
    fn line(shares: &[[f64; 2]]) -> SweepLine {
        let run = SweepRun {
            answered_share: 1.0,
            sound_share: 1.0,
            p50_ns: None,
            p99_ns: None,
            max_wait_ns: 0,
            is_valid: true,
        };
        let points = (1u32..).zip(shares).map(|(at, shares)| SweepPoint {
            variant: format!("x{at}"),
            load_qps: 1_000.0 * f64::from(at),
            runs: shares.map(|sound_share| SweepRun { sound_share, ..run }).to_vec(),
        });
        SweepLine { name: "bind".to_owned(), points: points.collect() }
    }

    #[test]
    fn where_a_server_breaks_is_one_sentence() {
        const HELD: [f64; 2] = [1.0, 0.995];
        const BROKEN: [f64; 2] = [0.9, 0.5];
        const MIXED: [f64; 2] = [1.0, 0.9];
        for (shares, expected) in [
            (vec![HELD, HELD, BROKEN], "bind breaks between 2,000 and 3,000 queries per second."),
            (vec![BROKEN, BROKEN], "bind breaks at 1,000 queries per second or below."),
            (vec![HELD, HELD], "bind holds 2,000 queries per second, the highest load."),
            (
                vec![HELD, MIXED],
                "bind holds 1,000 queries per second, and higher loads in some of its runs.",
            ),
            (vec![MIXED], "bind holds no load in all of its runs."),
        ] {
            assert_eq!(sentence(&line(&shares), 0.99), expected);
        }
    }
}
