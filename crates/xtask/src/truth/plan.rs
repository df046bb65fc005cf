//! Which experiments are played, how many of each, and which one is next.

use dnslab_lab::ServerKind;
use serde::{Deserialize, Serialize};

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
    /// The server's CPU is the bottleneck.
    LimitServerCpu,
    /// The clients' window is the bottleneck.
    LimitWindow,
    /// Loss between server and clients is the bottleneck.
    LimitNetwork,
    /// The offered rate is the bottleneck.
    LimitRate,
    /// The load generator is the bottleneck.
    LimitGenerator,
    /// The CPU that server and load share is the bottleneck.
    LimitSharedCpu,
    /// One thread of a server with two is the bottleneck.
    LimitServerThread,
    /// Three equal variants of BIND, at the default length.
    SameBind,
    /// Three equal variants of NSD, at the default length.
    SameNsd,
    /// Each answer of BIND costs about 5 % more CPU time.
    #[serde(rename = "cost-5-bind")]
    Cost5Bind,
    /// Each answer of NSD costs about 5 % more CPU time.
    #[serde(rename = "cost-5-nsd")]
    Cost5Nsd,
}

/// What is planted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Truth {
    /// Further CPU time of the server, as a share of that per answer.
    Cost(f64),
    /// The bottleneck, by its name in records.
    Limit(&'static str),
    /// Anything else, or nothing.
    Other,
}

use Truth::{Cost, Limit, Other};

const UDP: &[&str] = &["udp"];
const DOT: &[&str] = &["dot"];
const TURNS: &[&str] = &["udp", "tcp", "dot"];

/// A kind, the number of its experiments that are wanted, the transports that take turns, what a person calls
/// it, and what is planted.
type Row = (Kind, u32, &'static [&'static str], &'static str, Truth);

/// In the order of their declarations.
pub(crate) const KINDS: [Row; 18] = [
    (Kind::Same, 100, TURNS, "equal variants, default length", Other),
    (Kind::SameQuarter, 100, TURNS, "equal variants, a quarter of it", Other),
    (Kind::Cost3, 25, TURNS, "+3 % CPU time", Cost(0.03)),
    (Kind::Cost5, 50, TURNS, "+5 % CPU time", Cost(0.05)),
    (Kind::Cost10, 25, TURNS, "+10 % CPU time", Cost(0.1)),
    (Kind::Delay, 20, UDP, "0.1 ms later", Other),
    (Kind::Loss, 10, UDP, "0.5 % lost", Other),
    (Kind::LimitServerCpu, 5, UDP, "server's CPU", Limit("server-cpu")),
    (Kind::LimitWindow, 5, UDP, "window", Limit("window")),
    (Kind::LimitNetwork, 5, UDP, "network", Limit("network")),
    (Kind::LimitRate, 5, UDP, "offered rate", Limit("rate")),
    (Kind::LimitGenerator, 5, DOT, "load generator", Limit("generator")),
    (Kind::LimitSharedCpu, 5, UDP, "shared CPU", Limit("shared-cpu")),
    (Kind::LimitServerThread, 5, UDP, "one thread of the server", Limit("server-thread")),
    (Kind::SameBind, 15, TURNS, "equal variants of BIND", Other),
    (Kind::SameNsd, 15, TURNS, "equal variants of NSD", Other),
    (Kind::Cost5Bind, 30, TURNS, "+5 % CPU time of BIND", Cost(0.05)),
    (Kind::Cost5Nsd, 30, TURNS, "+5 % CPU time of NSD", Cost(0.05)),
];

impl Kind {
    fn row(self) -> Row {
        KINDS[self as usize]
    }

    pub(crate) fn target(self) -> u32 {
        self.row().1
    }

    /// The transport of experiment number `done`, from 0.
    pub(crate) fn transport(self, done: u32) -> &'static str {
        let transports = self.row().2;
        transports[done as usize % transports.len()]
    }

    /// The server under test.
    pub(crate) fn server(self) -> ServerKind {
        match self {
            Self::SameBind | Self::Cost5Bind => ServerKind::Bind,
            Self::SameNsd | Self::Cost5Nsd => ServerKind::Nsd,
            _ => ServerKind::Embedded,
        }
    }

    /// As a person says it.
    pub(crate) fn name(self) -> &'static str {
        self.row().3
    }

    /// As a share of the server's CPU time per answer.
    pub(crate) fn cost(self) -> Option<f64> {
        if let Cost(share) = self.row().4 { Some(share) } else { None }
    }

    /// By its name in records.
    pub(crate) fn limit(self) -> Option<&'static str> {
        if let Limit(name) = self.row().4 { Some(name) } else { None }
    }

    /// Of experiment number `done`, from 0. No two experiments share a seed.
    pub(crate) fn seed(self, done: u32) -> u64 {
        self as u64 * 10_000 + u64::from(done) + 1
    }
}

/// The kind with the lowest share of its target, the first of several. `done` gives the experiments of a
/// kind. `None` once all kinds have reached their targets.
pub(crate) fn next(done: impl Fn(Kind) -> u32) -> Option<Kind> {
    let lacking =
        KINDS.into_iter().map(|(kind, ..)| kind).filter(|kind| done(*kind) < kind.target());
    lacking.reduce(|lowest, kind| {
        let share = |kind, other: Kind| u64::from(done(kind)) * u64::from(other.target());
        if share(kind, lowest) < share(lowest, kind) { kind } else { lowest }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn every_kind_has_its_row() {
        for (place, (kind, ..)) in KINDS.into_iter().enumerate() {
            assert_eq!(kind as usize, place, "{kind:?}");
        }
    }

    #[test]
    fn all_kinds_reach_their_targets_together() {
        let mut done: HashMap<Kind, u32> = HashMap::new();
        let all: u32 = KINDS.iter().map(|(_, target, ..)| target).sum();
        // One of each comes first, so the kind with most falls behind by as much.
        let most = KINDS.iter().map(|(_, target, ..)| *target).max().unwrap_or_default();
        let behind = KINDS.len() as f64 * f64::from(most) / f64::from(all);
        for played in 0..all {
            if played == KINDS.len() as u32 {
                assert_eq!(done.len(), KINDS.len(), "one of each comes first");
            }
            for (kind, target, ..) in KINDS {
                let due = f64::from(played) / f64::from(all) * f64::from(target);
                let count = f64::from(done.get(&kind).copied().unwrap_or(0));
                assert!((count - due).abs() <= behind, "{kind:?}: {count} of {due} after {played}");
            }
            let kind = next(|kind| done.get(&kind).copied().unwrap_or(0)).unwrap();
            *done.entry(kind).or_default() += 1;
        }
        for (kind, target, ..) in KINDS {
            assert_eq!(done[&kind], target, "{kind:?}");
        }
        assert_eq!(next(|kind| done[&kind]), None, "play ends at the targets");
        assert_eq!(next(|kind| done[&kind] - u32::from(kind == Kind::Loss)), Some(Kind::Loss));
    }

    #[test]
    fn no_two_experiments_share_a_seed() {
        let mut seeds: Vec<u64> = KINDS
            .iter()
            .flat_map(|(kind, target, ..)| (0..2 * target).map(|done| kind.seed(done)))
            .collect();
        let count = seeds.len();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), count);
    }
}
