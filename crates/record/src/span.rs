//! Spans of a run's timeline.

/// A span of the timeline of a run. An instant is nanoseconds since the load began, negative before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Its beginning.
    pub from_ns: i64,
    /// Its end.
    pub to_ns: i64,
}

impl Span {
    /// The span between two instants.
    #[must_use]
    pub fn between(from_ns: i64, to_ns: i64) -> Self {
        Self { from_ns, to_ns }
    }

    /// How long it is; below zero if it ends before it begins.
    #[must_use]
    pub fn length_ns(self) -> i64 {
        self.to_ns - self.from_ns
    }

    /// The span as nanoseconds since another instant.
    #[must_use]
    pub fn since(self, origin_ns: i64) -> Self {
        Self::between(self.from_ns.saturating_sub(origin_ns), self.to_ns.saturating_sub(origin_ns))
    }
}

/// By how much a cumulative figure rose between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rise {
    /// By so much.
    pub amount: u64,
    /// The time between the samples, nanoseconds, above zero.
    pub over_ns: i64,
}

impl Rise {
    /// Nanoseconds of CPU time as the number of CPUs that were busy all the time.
    #[must_use]
    pub fn cpus(self) -> f64 {
        self.amount as f64 / self.over_ns as f64
    }
}
