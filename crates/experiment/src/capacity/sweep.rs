//! The sweep over the windows of a closed loop.

use std::collections::VecDeque;

use dnslab_record::{End, Judged, Phase, WindowSweep};
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::next::Next;

/// A window gains if its answered rate is this share above the best before.
const GAIN: f64 = 0.02;

/// Doublings in a row without a gain that end the first round. The third shows how an overloaded server
/// behaves: some lose a third of their rate.
const WITHOUT_GAIN: u32 = 3;

/// Tries windows of 1, 2, 4, ... queries over all clients until more does not help, then repeats all windows
/// in rounds of random order.
#[derive(Debug)]
pub(crate) struct Sweep {
    settings: WindowSweep,
    /// Windows that were tried, ascending. The last is the present one of the first round.
    windows: Vec<u64>,
    /// The highest answered rate so far, queries per second.
    best_qps: f64,
    /// Doublings since `best_qps` rose.
    without_gain: u32,
    /// Windows of the repeats that are still to be done; `None` in the first round.
    queue: Option<VecDeque<u64>>,
    has_failed: bool,
    end: Option<End>,
}

impl Sweep {
    pub(crate) fn new(settings: WindowSweep) -> Self {
        Self {
            settings,
            windows: vec![1],
            best_qps: 0.0,
            without_gain: 0,
            queue: None,
            has_failed: false,
            end: None,
        }
    }

    pub(crate) fn next(&self) -> Next {
        if let Some(end) = &self.end {
            return Next::Done(end.clone());
        }
        let present = match &self.queue {
            None => self.windows.last().map(|window| (Phase::Ramp, *window)),
            Some(queue) => queue.front().map(|window| (Phase::Repeat, *window)),
        };
        present.map_or(Next::Done(End::Edge), |(phase, window)| Next::Step {
            phase,
            at: window as f64,
        })
    }

    /// Takes the outcome of the step that [`Sweep::next`] named, and its answered queries per second.
    pub(crate) fn push(&mut self, judged: &Judged, answered_qps: f64) {
        if let Judged::Failed { reason } = judged {
            if std::mem::replace(&mut self.has_failed, true) {
                self.end = Some(End::Failed { reason: reason.clone() });
            }
            return;
        }
        self.has_failed = false;
        match &mut self.queue {
            Some(queue) => {
                queue.pop_front();
            }
            None => self.climb(answered_qps),
        }
    }

    fn climb(&mut self, answered_qps: f64) {
        if answered_qps > (1.0 + GAIN) * self.best_qps {
            self.without_gain = 0;
        } else {
            self.without_gain += 1;
        }
        self.best_qps = self.best_qps.max(answered_qps);
        let next = self.windows.last().map(|window| window * 2);
        if let Some(next) = next
            && self.without_gain < WITHOUT_GAIN
            && next <= self.settings.largest
        {
            self.windows.push(next);
            return;
        }
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.settings.seed);
        let mut queue = VecDeque::new();
        for _ in 1..self.settings.repeats {
            let mut round = self.windows.clone();
            round.shuffle(&mut random);
            queue.extend(round);
        }
        self.queue = Some(queue);
    }
}

/// How a window is spread over the clients. A window smaller than the number of clients uses as many clients
/// as it has queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) clients: u32,
    /// Per client.
    pub(crate) outstanding: u32,
}

impl Spread {
    /// Spreads a window of at least one query. If `clients` does not divide it, takes the largest smaller
    /// number that does.
    pub(crate) fn of(window: u64, clients: u32) -> Self {
        let most = u32::try_from(window).unwrap_or(u32::MAX).min(clients).max(1);
        let divides = |clients: &u32| window.is_multiple_of(u64::from(*clients));
        let clients = (1..=most).rev().find(divides).unwrap_or(1);
        let outstanding = u32::try_from(window / u64::from(clients)).unwrap_or(u32::MAX);
        Self { clients, outstanding }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(largest: u64, repeats: u32) -> WindowSweep {
        WindowSweep { objective: None, clients: 4, largest, repeats, seed: 7 }
    }

    /// The windows in the order in which they are tried on a server with these answered rates.
    fn windows(settings: WindowSweep, rate: impl Fn(u64) -> f64) -> Vec<u64> {
        let mut sweep = Sweep::new(settings);
        let mut tried = Vec::new();
        while let Next::Step { at, phase } = sweep.next() {
            assert_eq!(phase == Phase::Ramp, sweep.queue.is_none());
            tried.push(at as u64);
            sweep.push(&Judged::Met, rate(at as u64));
            assert!(tried.len() < 1_000, "it does not end");
        }
        assert_eq!(sweep.next(), Next::Done(End::Edge));
        tried
    }

    #[test]
    fn it_ends_three_doublings_after_the_last_gain() {
        let tried = windows(settings(1 << 20, 1), |window| window.min(16) as f64);
        assert_eq!(tried, [1, 2, 4, 8, 16, 32, 64, 128]);
        let tried = windows(settings(20, 1), |window| window as f64);
        assert_eq!(tried, [1, 2, 4, 8, 16]);
    }

    #[test]
    fn every_window_is_repeated_in_rounds_of_its_own_order() {
        let tried = windows(settings(1 << 20, 4), |window| window.min(16) as f64);
        let rounds: Vec<&[u64]> = tried.chunks(8).collect();
        assert_eq!(rounds.len(), 4);
        for round in &rounds {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, rounds[0]);
        }
        assert!(rounds[1..].iter().any(|round| *round != rounds[0]));
        assert_ne!(rounds[1], rounds[2]);
        assert_eq!(tried, windows(settings(1 << 20, 4), |window| window.min(16) as f64));
    }

    #[test]
    fn two_failures_in_a_row_end_it() {
        let failed = || Judged::Failed { reason: "gone".to_owned() };
        let mut sweep = Sweep::new(settings(8, 1));
        sweep.push(&failed(), 0.0);
        sweep.push(&Judged::Met, 1.0);
        sweep.push(&failed(), 0.0);
        assert_eq!(sweep.next(), Next::Step { phase: Phase::Ramp, at: 2.0 });
        sweep.push(&failed(), 0.0);
        assert_eq!(sweep.next(), Next::Done(End::Failed { reason: "gone".to_owned() }));
    }

    #[test]
    fn a_window_is_spread_exactly() {
        for (window, clients, expected) in [
            (1, 4, (1, 1)),
            (2, 4, (2, 1)),
            (4, 4, (4, 1)),
            (64, 4, (4, 16)),
            (64, 100, (64, 1)),
            (128, 100, (64, 2)),
            (8, 3, (2, 4)),
            (8, 1, (1, 8)),
        ] {
            let spread = Spread::of(window, clients);
            assert_eq!((spread.clients, spread.outstanding), expected, "{window} {clients}");
        }
    }
}
