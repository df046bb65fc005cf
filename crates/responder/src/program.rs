//! What happens to an answer before it leaves: delay, loss, CPU time, time of its thread, and stalls of the whole server.

use std::time::Duration;

use dnslab_internet::Conduct;
use dnslab_traffic::{Delay, Loss, Stall};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What the server does to its answers; by default nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// How long an answer is held back, counted from the moment at which the query was read.
    pub delay: Delay,
    /// Added to every delay, for a path that is not there: both ways together.
    pub path: Duration,
    /// Share of the queries that are read but never answered, on streams too.
    pub loss: Loss,
    /// Extra CPU time for each answer. The thread that answers spends it in a loop whose steps are counted
    /// when the server is bound. Lost answers cost nothing. Datagrams that were read together are answered
    /// together, so the first waits for the time of the last.
    pub busy: Duration,
    /// How long each answer keeps its thread without CPU time, at the same time as those of other threads. Datagrams are
    /// then answered one by one.
    pub hold: Duration,
    /// How long each answer then keeps all threads, one after the other: no other answer is held meanwhile.
    pub serial: Duration,
    /// When the whole server neither reads nor answers.
    pub stall: Option<Stall>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    AtOnce,
    /// After the query was read.
    After(Duration),
    Lost,
}

/// Plays a program: decides the fate of answer after answer.
#[derive(Debug)]
pub(crate) struct Player {
    program: Program,
    /// Seeded, so that a run can be repeated.
    random: Xoshiro256PlusPlus,
}

impl Player {
    /// Workers with one seed and different numbers play different sequences.
    pub(crate) fn new(program: Program, seed: u64, worker: usize) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..worker {
            random.jump();
        }
        Self { program, random }
    }

    /// The fate of an answer, with what the server at its address adds to the program.
    pub(crate) fn next_fate(&mut self, conduct: Option<Conduct>) -> Fate {
        let own = conduct.map_or(0.0, |conduct| conduct.loss);
        for share in [self.program.loss.share(), own] {
            if share > 0.0 && self.random.random::<f64>() < share {
                return Fate::Lost;
            }
        }
        let mut path = self.program.path;
        if let Some(Conduct { round_trip, jitter, .. }) = conduct {
            path += round_trip;
            if !jitter.is_zero() {
                path += Delay::Exponential { mean: jitter }.draw(&mut self.random);
            }
        }
        match self.program.delay {
            Delay::None if path.is_zero() => Fate::AtOnce,
            delay => Fate::After(path + delay.draw(&mut self.random)),
        }
    }

    pub(crate) fn stall(&self) -> Option<Stall> {
        self.program.stall
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(seed: u64, worker: usize) -> Vec<Fate> {
        let program = Program {
            delay: "uniform:1ms..9ms".parse().unwrap(),
            loss: "0.3".parse().unwrap(),
            ..Program::default()
        };
        let mut player = Player::new(program, seed, worker);
        (0..1000).map(|_| player.next_fate(None)).collect()
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(fates(1, 0), fates(1, 0));
        assert_ne!(fates(1, 0), fates(2, 0));
        assert_ne!(fates(1, 0), fates(1, 1));
        // 1,000 draws at 0.3: five standard deviations are 72.
        let lost = fates(1, 0).iter().filter(|fate| **fate == Fate::Lost).count();
        assert!((228..=372).contains(&lost), "{lost} of 1,000 lost");
        let mut plain = Player::new(Program::default(), 1, 0);
        assert_eq!(plain.next_fate(None), Fate::AtOnce);
    }

    #[test]
    fn a_path_is_added_to_every_delay() {
        let path = Duration::from_millis(6);
        for (delay, expected_ms) in [("none", 6), ("5ms", 11)] {
            let delay = delay.parse().unwrap();
            let mut player = Player::new(Program { delay, path, ..Program::default() }, 1, 0);
            assert_eq!(player.next_fate(None), Fate::After(Duration::from_millis(expected_ms)));
        }
    }

    #[test]
    fn a_server_adds_its_own_conduct() {
        let path = Duration::from_millis(6);
        let mut player = Player::new(Program { path, ..Program::default() }, 1, 0);
        let mut conduct = Conduct {
            is_silent: false,
            round_trip: Duration::from_millis(30),
            jitter: Duration::ZERO,
            loss: 0.0,
        };
        assert_eq!(player.next_fate(Some(conduct)), Fate::After(Duration::from_millis(36)));
        conduct.jitter = Duration::from_millis(3);
        let Fate::After(delay) = player.next_fate(Some(conduct)) else { panic!("it is not lost") };
        assert!(delay > Duration::from_millis(36), "{delay:?}");
        conduct.loss = 1.0;
        assert_eq!(player.next_fate(Some(conduct)), Fate::Lost);
    }
}
