use dnslab_record::{Observation, counter};
use serde::{Deserialize, Serialize};

/// What a server found in its cache, as it counts it itself: by query or by look-up, warm-up included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CacheCounts {
    /// What was in the cache.
    pub hits: u64,
    /// What was not.
    pub misses: u64,
}

impl CacheCounts {
    /// Those of one run; `None` if the server tells none, or looked nothing up.
    #[must_use]
    pub fn of(run: &Observation<'_>) -> Option<Self> {
        let counters = run.watched.counters.as_ref()?;
        let hits = counters.growth(counter::CACHE_HITS)?;
        let misses = counters.growth(counter::CACHE_MISSES)?;
        (hits + misses > 0).then_some(Self { hits, misses })
    }

    /// The sums of several runs; `None` without any.
    #[must_use]
    pub fn sum(runs: impl Iterator<Item = Self>) -> Option<Self> {
        runs.reduce(|sum, run| Self { hits: sum.hits + run.hits, misses: sum.misses + run.misses })
    }

    /// Hits as a share of both, in [0, 1].
    #[must_use]
    pub fn hit_share(self) -> f64 {
        self.hits as f64 / (self.hits + self.misses).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_that_of_all_runs_together() {
        let runs = [CacheCounts { hits: 90, misses: 10 }, CacheCounts { hits: 0, misses: 100 }];
        let sum = CacheCounts::sum(runs.into_iter()).unwrap();
        assert_eq!((sum.hits, sum.misses, sum.hit_share()), (90, 110, 0.45));
        assert_eq!(CacheCounts::sum(std::iter::empty()), None);
    }
}
