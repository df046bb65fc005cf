//! Which experiments are played, how many of each, and which one is next.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::log::Played;

/// An experiment whose truth is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// Three equal variants, at the default length.
    Same,
    /// Three equal variants, at a quarter of the default length.
    SameQuarter,
    /// Each answer costs about 3 % more CPU time.
    #[serde(rename = "cost-3")]
    Cost3,
    /// Each answer costs about 5 % more CPU time.
    #[serde(rename = "cost-5")]
    Cost5,
    /// Each answer costs about 10 % more CPU time.
    #[serde(rename = "cost-10")]
    Cost10,
    /// Each answer comes 0.1 ms later.
    Delay,
    /// Half a percent of the answers is lost.
    Loss,
    /// The server's CPU is the limit.
    LimitServerCpu,
    /// The clients' window is the limit.
    LimitWindow,
    /// Loss between server and clients is the limit.
    LimitNetwork,
    /// The offered rate is the limit.
    LimitRate,
    /// The load generator is the limit.
    LimitGenerator,
    /// The CPU that server and load share is the limit.
    LimitSharedCpu,
    /// One thread of a server with two is the limit.
    LimitServerThread,
}

/// All kinds, with the number of experiments that are wanted.
pub(crate) const TARGETS: [(Kind, u32); 14] = [
    (Kind::Same, 100),
    (Kind::SameQuarter, 100),
    (Kind::Cost3, 25),
    (Kind::Cost5, 50),
    (Kind::Cost10, 25),
    (Kind::Delay, 20),
    (Kind::Loss, 10),
    (Kind::LimitServerCpu, 5),
    (Kind::LimitWindow, 5),
    (Kind::LimitNetwork, 5),
    (Kind::LimitRate, 5),
    (Kind::LimitGenerator, 5),
    (Kind::LimitSharedCpu, 5),
    (Kind::LimitServerThread, 5),
];

impl Kind {
    pub(crate) fn target(self) -> u32 {
        TARGETS.iter().find(|(kind, _)| *kind == self).map_or(0, |(_, target)| *target)
    }

    /// As a share of the server's CPU time per answer.
    pub(crate) fn cost(self) -> Option<f64> {
        match self {
            Self::Cost3 => Some(0.03),
            Self::Cost5 => Some(0.05),
            Self::Cost10 => Some(0.1),
            _ => None,
        }
    }

    /// By its name in records.
    pub(crate) fn limit(self) -> Option<&'static str> {
        match self {
            Self::LimitServerCpu => Some("server-cpu"),
            Self::LimitWindow => Some("window"),
            Self::LimitNetwork => Some("network"),
            Self::LimitRate => Some("rate"),
            Self::LimitGenerator => Some("generator"),
            Self::LimitSharedCpu => Some("shared-cpu"),
            Self::LimitServerThread => Some("server-thread"),
            _ => None,
        }
    }

    /// The transport of experiment number `done`, from 0. Kinds that make sense over all three take turns.
    pub(crate) fn transport(self, done: u32) -> &'static str {
        match self {
            Self::LimitGenerator => "dot",
            Self::Same | Self::SameQuarter | Self::Cost3 | Self::Cost5 | Self::Cost10 => {
                ["udp", "tcp", "dot"][done as usize % 3]
            }
            _ => "udp",
        }
    }

    /// Of experiment number `done`, from 0. No two experiments share a seed.
    pub(crate) fn seed(self, done: u32) -> u64 {
        let place = TARGETS.iter().position(|(kind, _)| *kind == self).unwrap_or(0);
        place as u64 * 10_000 + u64::from(done) + 1
    }
}

/// The kind with the lowest share of its target, the first of several. `done` gives the experiments of a
/// kind. `None` once all kinds have reached their targets.
pub(crate) fn next(done: impl Fn(Kind) -> u32) -> Option<Kind> {
    let lacking = TARGETS.into_iter().filter(|(kind, target)| done(*kind) < *target);
    let (kind, _) = lacking.reduce(|lowest, (kind, target)| {
        let share = |kind, other_target| u64::from(done(kind)) * u64::from(other_target);
        if share(kind, lowest.1) < share(lowest.0, target) { (kind, target) } else { lowest }
    })?;
    Some(kind)
}

/// The experiments that count: the first of each kind in the log, up to its target.
pub(crate) fn counted(played: &[Played]) -> Vec<&Played> {
    let mut done: HashMap<Kind, u32> = HashMap::new();
    let is_counted = |it: &&Played| {
        let number = done.entry(it.kind).or_default();
        *number += 1;
        *number <= it.kind.target()
    };
    played.iter().filter(is_counted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::page::tests::played;

    #[test]
    fn all_kinds_reach_their_targets_together() {
        let mut done: HashMap<Kind, u32> = HashMap::new();
        let all: u32 = TARGETS.iter().map(|(_, target)| target).sum();
        // One of each comes first, so the kind with most falls behind by as much.
        let most = TARGETS.iter().map(|(_, target)| *target).max().unwrap_or_default();
        let behind = TARGETS.len() as f64 * f64::from(most) / f64::from(all);
        for played in 0..all {
            if played == TARGETS.len() as u32 {
                assert_eq!(done.len(), TARGETS.len(), "one of each comes first");
            }
            for (kind, target) in TARGETS {
                let due = f64::from(played) / f64::from(all) * f64::from(target);
                let count = f64::from(done.get(&kind).copied().unwrap_or(0));
                assert!((count - due).abs() <= behind, "{kind:?}: {count} of {due} after {played}");
            }
            let kind = next(|kind| done.get(&kind).copied().unwrap_or(0)).unwrap();
            *done.entry(kind).or_default() += 1;
        }
        for (kind, target) in TARGETS {
            assert_eq!(done[&kind], target, "{kind:?}");
        }
        assert_eq!(next(|kind| done[&kind]), None, "play ends at the targets");
        assert_eq!(next(|kind| done[&kind] - u32::from(kind == Kind::Loss)), Some(Kind::Loss));
    }

    #[test]
    fn lines_beyond_a_target_are_not_counted() {
        let mut log: Vec<Played> = (0..7).map(|_| played(Kind::LimitRate, 0)).collect();
        log[6].seed = 7;
        log.push(played(Kind::Loss, 0));
        let found = counted(&log);
        assert_eq!(found.len(), 6);
        assert!(found.iter().all(|it| it.seed != 7));
    }

    #[test]
    fn no_two_experiments_share_a_seed() {
        let mut seeds: Vec<u64> = TARGETS
            .iter()
            .flat_map(|(kind, target)| (0..2 * target).map(|done| kind.seed(done)))
            .collect();
        let count = seeds.len();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), count);
    }
}
