//! Counts of both phases of a load.

/// One value of the warm-up and one of the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ByPhase<T> {
    /// Of the queries that became due in the warm-up.
    pub warm_up: T,
    /// Of those that became due in the measured window.
    pub measured: T,
}
