//! Puts the workers' reports together while they run.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use dnslab_measure::{Interval, Pacing, PacingTally};

use crate::Progress;
use crate::tally::{IntervalTally, Phases};

/// Longest silence towards the observer.
const TICK: Duration = Duration::from_millis(50);

/// What the workers reported, put together.
pub(crate) struct Gathered {
    /// The intervals in order.
    pub(crate) series: Vec<Interval>,
    /// Open loop: how close to its schedule the load was sent, in the measured window.
    pub(crate) pacing: Option<Pacing>,
}

impl Gathered {
    /// Takes reports until all workers have ended.
    pub(crate) fn from_reports(
        reports: &Receiver<IntervalTally>,
        workers: u32,
        phases: &Phases,
        observe: &mut dyn FnMut(Progress<'_>),
    ) -> Self {
        let mut open: BTreeMap<u64, (u32, IntervalTally)> = BTreeMap::new();
        let mut series = Vec::new();
        let mut pacing: Option<PacingTally> = None;
        loop {
            let report = match reports.recv_timeout(TICK) {
                Ok(report) => report,
                Err(RecvTimeoutError::Timeout) => {
                    observe(Progress::Tick);
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let number = report.number;
            let (count, merged) = open
                .entry(number)
                .or_insert_with(|| (0, IntervalTally { number, ..IntervalTally::default() }));
            merged.merge(&report);
            *count += 1;
            if *count == workers {
                let interval = merged.finish(phases);
                add_pacing(&mut pacing, merged, phases);
                open.remove(&number);
                observe(Progress::Interval(&interval));
                series.push(interval);
            }
        }
        // After an interrupt the workers may end in different intervals.
        series.extend(open.values().map(|(_, merged)| merged.finish(phases)));
        series.sort_by_key(|interval| interval.at_ns);
        Self { series, pacing: pacing.map(|tally| tally.finish()) }
    }
}

/// Adds the whole milliseconds of an interval that lie in the measured window.
fn add_pacing(pacing: &mut Option<PacingTally>, interval: &IntervalTally, phases: &Phases) {
    const MILLISECOND: u64 = 1_000_000;
    let window = phases.measured_from.div_ceil(MILLISECOND)..phases.until / MILLISECOND;
    for (number, millisecond) in (interval.first_millisecond..).zip(&interval.milliseconds) {
        let tally = pacing.get_or_insert_default();
        if window.contains(&number) {
            tally.push(millisecond.due, millisecond.sent);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::tally::Millisecond;

    #[test]
    fn milliseconds_of_all_workers_are_added_and_the_warm_up_is_left_out() {
        let phases =
            Phases { measured_from: 3_000_000, until: 8_000_000, interval: 4_000_000, timeout: 1 };
        let (sender, reports) = mpsc::channel();
        for number in 0..2 {
            for worker in 1..=2 {
                let milliseconds = vec![Millisecond { due: worker, sent: worker }; 4];
                let first_millisecond = number * 4;
                let report = IntervalTally {
                    number,
                    milliseconds,
                    first_millisecond,
                    ..IntervalTally::default()
                };
                sender.send(report).unwrap();
            }
        }
        drop(sender);
        let gathered = Gathered::from_reports(&reports, 2, &phases, &mut |_| {});
        assert_eq!(gathered.series.len(), 2);
        let pacing = gathered.pacing.unwrap();
        let millisecond = pacing.of_width(1_000_000).unwrap();
        assert_eq!((millisecond.windows, millisecond.due), (5, 15));
        assert_eq!(millisecond.max_error, 0.0);
    }
}
