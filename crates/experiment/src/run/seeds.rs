//! From the seed of a run to the seeds of all that is drawn in it.

/// What draws at random, except the load, which has the seed of the run itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The embedded server under test.
    Server,
    /// The embedded server that a forwarder asks.
    Upstream,
    /// The links between hosts.
    Links,
}

/// The seeds of one run. They follow from the seed of its repetition alone, so all variants of a repetition
/// share them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seeds {
    run: u64,
}

impl Seeds {
    pub(super) fn of_run(run: u64) -> Self {
        Self { run }
    }

    /// Each role has its own seed. With one seed for all, a server would lose an answer whenever the load
    /// draws a low number.
    pub(super) fn of(self, role: Role) -> u64 {
        let name = match role {
            Role::Server => b"server  ",
            Role::Upstream => b"upstream",
            Role::Links => b"links   ",
        };
        mixed(self.run ^ u64::from_be_bytes(*name))
    }
}

/// Each bit of the result depends on every bit of `number`, and no two numbers have the same result (the
/// output function of SplitMix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators",
/// OOPSLA 2014).
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const ROLES: [Role; 3] = [Role::Server, Role::Upstream, Role::Links];

    #[test]
    fn roles_and_runs_have_seeds_of_their_own() {
        let runs = [0, 1, 2, 3, u64::MAX].into_iter().chain((0..64).map(|bit| 4 << (bit % 61)));
        let runs: BTreeSet<u64> = runs.collect();
        let of_run = |run: &u64| {
            let seeds = Seeds::of_run(*run);
            ROLES.map(|role| seeds.of(role)).into_iter().chain([*run])
        };
        let all: BTreeSet<u64> = runs.iter().flat_map(of_run).collect();
        assert_eq!(all.len(), runs.len() * (ROLES.len() + 1));
    }

    /// A seed promises its sequence: another mixture would be a measurement change.
    #[test]
    fn seeds_stay() {
        let seeds = ROLES.map(|role| Seeds::of_run(1).of(role));
        assert_eq!(seeds, [0xa3b4_f8f5_a724_c601, 0x1f0b_a727_44b4_d980, 0x546a_9cd9_e716_7a8a]);
    }
}
