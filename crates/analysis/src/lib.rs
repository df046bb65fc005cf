//! What records mean: record in, finding out.
//!
//! An [`dnslab_record::Observation`] is one load of a run, and the one argument of every rule: what bounded it
//! ([`BottleneckFigures::bottleneck`]), what is to be doubted ([`caveats`]), and why it does not count. A [`Summary`]
//! is computed from the records of a session and from nothing else. [`judge`] holds it against limits. [`History`] and
//! [`SessionComparison`] look across sessions.
//!
//! Modules, in the order of reading:
//!
//! - `observation`, `bottleneck`, `caveat`, `invalid`: the rules on one load. [`self_check`], `disturbed`: the
//!   measuring side.
//! - `summary`: the figures of a session, with the pairs of each round. `quantiles`, `memory`, `connections`: its
//!   parts.
//! - [`statistics`]: differences and their words ([`statistics::Paired`], [`statistics::Comparison`]), the interval of
//!   a mean, and [`statistics::Welch`] for samples that are no pairs.
//! - `latency_floor`, `slices`, `not_compared`: what cannot be told, or is compared with none; `published`: what others
//!   found.
//! - `chain`, `pods`, `event`, `agreement`, `cost`, `windows`, `shares`, `sweep`, `scaling`: servers of a chain, two counts of the same
//!   queries, parts of a server, time windows, shares of each variant's own rate, loads of several sizes, threads.
//! - `steady`: when a load has settled, and how long it has to be.
//! - `gate`, `capacity`: limits, and a search. `session_comparison`, `history`, `fact_change`: several sessions.
//! - `join_answers`: two files of answers.
//!
//! What always holds:
//!
//! - Invariant: no socket, no process, no clock, no file. Resamples follow from the seed of the session.
//! - Invariant: it says nothing. `dnslab_report` has the words.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod agreement;
mod answering;
mod bottleneck;
mod cache_counts;
mod capacity;
mod caveat;
mod chain;
mod connections;
mod cost;
mod disturbed;
mod event;
mod fact_change;
mod gate;
mod history;
mod invalid;
mod join_answers;
mod latency_floor;
mod memory;
mod not_compared;
mod pods;
mod pooled;
mod published;

mod quantiles;
mod ruling;
mod scaling;
pub mod self_check;
mod session_comparison;
mod shares;
mod slices;
pub mod statistics;
mod steady;
mod summarise;
mod summary;
mod sweep;
mod variant_caveat;
mod whole_session;
mod windows;

pub use agreement::Agreement;
pub use answering::Question;
pub use bottleneck::{
    BottleneckFigures, CpusUsed, SERVER_WAITED, ServerUse, TurnedAway, WorkerUse,
};
pub use cache_counts::CacheCounts;
pub use capacity::{
    Answer, BestWindow, Outlook, Run, Trial, WindowFigures, answer, judge as judge_run, of_server,
    threshold, trials,
};
pub use caveat::caveats;
pub use chain::{Reached, ServerFigures};
pub use connections::ConnectionFigures;
pub use cost::{CostDifference, CostSummary, PartCost, PartDifference, PartSet, VariantCost};
pub use disturbed::is_disturbed;
pub use event::EventFigures;
pub use fact_change::{FactChange, changed_facts};
pub use gate::judge;
pub use history::{History, HistoryPoint, HistorySession, LevelChange, VariantHistory};
pub use invalid::{SendingLimits, fell_silent, lost_over_transport, not_sent_as_asked, unserved};
pub use join_answers::{Difference, Joined, MAX_QUESTIONS, join as join_answers};
pub use latency_floor::{floor_of_run_ns, latency_floor_ns, latency_floor_of_runs_ns};
pub use memory::{MemoryLog, RunMemory};
pub use not_compared::NotCompared;
pub use pods::{PodFigures, ServicePods};
pub use pooled::{Beside, BesideDifference, NotPooled, Pooled, PooledDifference, PooledSession};
pub use published::BesidePublished;

pub use quantiles::RunFigures;
pub use ruling::{Judgement, LimitRuling, Ruling};
pub use scaling::{ScalingLine, ScalingPoint};
pub use self_check::SelfCheck;
pub use session_comparison::{
    Condition, ConditionChange, SessionComparison, SessionSide, VariantChange,
};
pub use shares::{ShareOfVariant, ShareSummary};
pub use slices::{backlog_beyond_lead_ns, slice_needed_ns, slower_than_slices};
pub use steady::{Steady, Unsteady};
pub use summary::{Summary, VariantSummary};
pub use sweep::{Breaking, HELD_SHARE, SweepLine, SweepPoint, SweepRun, held_share};
pub use variant_caveat::VariantCaveat;
pub use whole_session::WholeSession;
pub use windows::{WindowOfVariant, WindowSummary};
