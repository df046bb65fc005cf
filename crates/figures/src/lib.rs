//! What is added up while a load runs: histograms, counters, outcomes, pacing, and what the network dropped.
//!
//! The principal types are [`Histogram`], of durations in nanoseconds, and [`Counters`], in which each query that became
//! due has one outcome. All of them can be merged, and written as a record has them.
//!
//! ```
//! use dnslab_figures::Histogram;
//!
//! let mut latency = Histogram::new();
//! for ns in [100_000, 200_000, 300_000] {
//!     latency.record_ns(ns);
//! }
//! let p50 = latency.quantile_ns(0.5).unwrap();
//! assert!((199_000..=201_000).contains(&p50));
//! ```
//!
//! This crate opens nothing, starts nothing and knows no rule: what the figures mean is told elsewhere.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod answers;
mod at_once;
mod by_phase;
mod connections;
mod counters;
mod histogram;
mod network;
mod pacing;
mod series;
mod tls;
mod window_counts;

pub use answers::{
    ANSWERS_FORMAT, AnswerRecord, AnswerRecords, AnswersError, HowEnded, header as answers_header,
};
pub use at_once::{LONG, at_once_ns};
pub use by_phase::ByPhase;
pub use connections::Connections;
pub use counters::{
    Answers, AttemptCounts, Counters, ERROR_CODES, HttpRefusals, Outcomes, TransportOutcomes,
    Unbalanced,
};
pub use histogram::{Histogram, HistogramError, LatencyBucket};
pub use network::{NetworkCounters, NetworkDrops, NetworkError};
pub use pacing::{Pacing, PacingTally, PacingWindow};
pub use series::{Interval, IntervalTraffic};
pub use tls::{CertificateFacts, Tls};
pub use window_counts::WindowCounts;
