//! What servers hold as their load rises, in words and as a table.

use dnslab_measure::{Breaking, HELD_SHARE, Summary, SweepLine, SweepPoint, SweepRun};

use crate::number::{self, NONE};

pub(crate) const HEADER: [&str; 7] =
    ["server", "queries per second", "variant", "runs", "answered", "p50", "p99"];

/// What is held, and what breaks.
pub(crate) fn legend() -> String {
    format!(
        "A server holds a load if it answers at least {} of the queries in every run. It breaks at the lowest \
         load that it holds in no run. Runs that are invalid because the server lost too much count here.",
        number::percent(HELD_SHARE, 0)
    )
}

/// Between which loads each server breaks, one sentence each.
pub(crate) fn sentences(summary: &Summary) -> Vec<String> {
    summary.sweep.iter().map(sentence).collect()
}

fn sentence(line: &SweepLine) -> String {
    let name = &line.name;
    let last = line.points.last().map_or(0.0, |at| at.load_qps);
    let Breaking { holds_qps, breaks_qps } = line.breaking();
    match (holds_qps, breaks_qps) {
        (Some(holds), Some(breaks)) => format!(
            "{name} breaks between {} and {} queries per second.",
            number::qps(holds),
            number::qps(breaks)
        ),
        (None, Some(breaks)) => {
            format!("{name} breaks at {} queries per second or below.", number::qps(breaks))
        }
        (Some(holds), None) if holds == last => {
            format!("{name} holds {} queries per second, the highest load.", number::qps(holds))
        }
        (Some(holds), None) => format!(
            "{name} holds {} queries per second, and higher loads in some of its runs.",
            number::qps(holds)
        ),
        (None, None) => format!("{name} holds no load in all of its runs."),
    }
}

/// A row for each load of each server.
pub(crate) fn rows(summary: &Summary) -> Vec<[String; HEADER.len()]> {
    let of = |line: &'_ SweepLine| -> Vec<_> {
        line.points.iter().map(|point| cells(line, point)).collect()
    };
    summary.sweep.iter().flat_map(of).collect()
}

fn cells(line: &SweepLine, point: &SweepPoint) -> [String; HEADER.len()] {
    let range = |figure: &dyn Fn(&SweepRun) -> Option<f64>, write: &dyn Fn(f64) -> String| {
        let all = || point.runs.iter().filter_map(figure);
        let (low, high) = (all().reduce(f64::min), all().reduce(f64::max));
        match (low.map(write), high.map(write)) {
            (Some(low), Some(high)) if low == high => low,
            (Some(low), Some(high)) => format!("{low} to {high}"),
            _ => NONE.to_owned(),
        }
    };
    [
        line.name.clone(),
        number::qps(point.load_qps),
        point.variant.clone(),
        point.runs.len().to_string(),
        range(&|run| Some(run.answered_share), &number::share),
        range(&|run| Some(run.p50_ns? as f64), &number::duration),
        range(&|run| Some(run.p99_ns? as f64), &number::duration),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_server_breaks_is_one_sentence() {
        for (shares, expected) in [
            ([1.0, 1.0, 0.5], "bind breaks between 2,000 and 3,000 queries per second."),
            ([0.5, 0.5, 0.5], "bind breaks at 1,000 queries per second or below."),
            ([1.0, 1.0, 1.0], "bind holds 3,000 queries per second, the highest load."),
        ] {
            let run = |answered_share| SweepRun { answered_share, p50_ns: None, p99_ns: None };
            let points = (1u32..).zip(shares).map(|(at, share)| SweepPoint {
                variant: format!("x{at}"),
                load_qps: 1_000.0 * f64::from(at),
                runs: vec![run(share), run(share)],
            });
            let line = SweepLine { name: "bind".to_owned(), points: points.collect() };
            assert_eq!(sentence(&line), expected);
        }
        // One run of two holds the higher load.
        let run = |answered_share| SweepRun { answered_share, p50_ns: None, p99_ns: None };
        let point = |load_qps, shares: [f64; 2]| SweepPoint {
            variant: "x".to_owned(),
            load_qps,
            runs: shares.map(run).to_vec(),
        };
        let points = vec![point(1_000.0, [1.0, 1.0]), point(2_000.0, [1.0, 0.9])];
        let mut line = SweepLine { name: "bind".to_owned(), points };
        let some = "bind holds 1,000 queries per second, and higher loads in some of its runs.";
        assert_eq!(sentence(&line), some);
        line.points.remove(0);
        assert_eq!(sentence(&line), "bind holds no load in all of its runs.");
    }
}
