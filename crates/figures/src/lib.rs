//! What is added up while a load runs: histograms, counters, outcomes, pacing, and what the network dropped.
//!
//! The principal types are [`Histogram`], of durations in nanoseconds, and [`Counters`], in which each query that
//! became due has one outcome. The load adds them up, and so does whoever watches it. All of them can be merged, and
//! are written as a record has them.
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
//! Modules, in the order of reading:
//!
//! - `counters`: [`Outcomes`] and the sums that must hold ([`Outcomes::check`]). `by_phase`: of warm-up and window.
//! - `histogram`, `at_once`: latencies, and the answers that waited in the server for the next query.
//! - `connections`, `tls`: the connections of a load, and what TLS agreed on.
//! - `series`, `window_counts`: intervals of a load, and parts of its measured window.
//! - `pacing`: how close to its schedule an open loop sent. `network`: what the host dropped.
//! - `answers`: the file of answers that a load leaves, for a comparison.
//!
//! What always holds:
//!
//! - Invariant: no rule, no file, no clock. What the figures mean is told elsewhere.

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
    Unbalanced, are_words,
};
pub use histogram::{Histogram, HistogramError, LatencyBucket};
pub use network::{NetworkCounters, NetworkDrops, NetworkError};
pub use pacing::{Pacing, PacingTally, PacingWindow};
pub use series::{Interval, IntervalTraffic};
pub use tls::{CertificateFacts, Tls};
pub use window_counts::WindowCounts;
