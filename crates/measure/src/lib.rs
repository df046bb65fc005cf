//! The results of a load: histograms, counters, series, resource samples, the record of one run,
//! the results directory on disk, and the statistics over runs.
//!
//! The principal type is [`RunRecord`]: everything that one run of one variant left behind. Records
//! are written one file each, atomically, and read back by [`ResultsDirectory`]; a [`Summary`] is
//! computed from them and from nothing else.
//!
//! ```
//! use dnslab_measure::Histogram;
//!
//! let mut latency = Histogram::new();
//! for ns in [100_000, 200_000, 300_000] {
//!     latency.record_ns(ns);
//! }
//! let p50 = latency.quantile_ns(0.5).unwrap();
//! assert!((199_000..=201_000).contains(&p50));
//! ```
//!
//! This crate opens no socket, starts no process, draws nothing and says nothing: doubts, bottlenecks and
//! reasons are enums with figures, and `dnslab_report` has the words for them.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod agreement;
mod answer_comparison;
mod bottleneck;
mod capacity;
mod caveat;
mod chain;
mod connections;
pub mod counter;
mod cpu_profile;
mod disturbed;
mod fact_change;
mod gate;
mod history;
pub mod import;
mod imported;
mod invalid;
mod latency_floor;
mod live;
mod measured;
mod memory;
mod not_compared;
mod objective;
mod quantiles;
mod quantity;
mod record;
mod resources;
mod results;
pub mod self_check;
mod session_comparison;
pub mod statistics;
mod summary;
mod sweep;
mod testbed;
mod visible;
mod windows;

// What is added up is a crate of its own, which whoever only counts takes alone.
pub use dnslab_figures::{
    Answers, AttemptCounts, Connections, Counters, ERROR_CODES, Histogram, HistogramError,
    HttpRefusals, Interval, IntervalTraffic, LONG, LatencyBucket, NetworkCounters, NetworkDrops,
    NetworkError, Outcomes, Pacing, PacingTally, PacingWindow, TransportOutcomes, Unbalanced,
    WindowCounts, at_once_ns,
};

pub use agreement::Agreement;
pub use answer_comparison::{
    ANSWERS_FORMAT, AnswerComparison, AnswerExample, AnswerRecord, AnswerRecords, AnswerRelation,
    AnswersError, COMPARISON_FORMAT, ClassCount, Difference, DifferenceClass, HowEnded, Joined,
    MAX_QUESTIONS, header as answers_header, join as join_answers,
};
pub use bottleneck::{
    Bottleneck, BottleneckFigures, BottleneckKind, CpuUse, CpusUsed, Evidence, SERVER_WAITED,
    ServerUse, TurnedAway, WorkerUse,
};
pub use capacity::{
    Answer, BestWindow, Breach, CAPACITY_FORMAT, Capacity, End, Judged, Outlook, Phase, RateSearch,
    Run, Sought, Step, StepFigures, Trial, WindowFigures, WindowSweep, of_server, threshold, tried,
};
pub use caveat::{AfterTruncation, Caveat};
pub use chain::{Reached, ServerFigures, UNDER_TEST};
pub use connections::ConnectionFigures;
pub use counter::{CounterSample, CounterSeries};
pub use cpu_profile::{
    CostDifference, CostPart, CostSummary, CpuProfile, CpuProfiles, LibrarySamples, MAX_LIBRARIES,
    MAX_PROFILE_STACKS, MAX_STACK_FRAMES, MAX_STACK_NAME, MAX_STACK_NAMES, MAX_STACKS, NotProfiled,
    PROFILE_FORMAT, PartCost, PartDifference, PartSamples, PartSet, StackSamples, VariantCost,
};
pub use fact_change::{FactChange, changed_facts};
pub use gate::{CostLimit, CostLimitError, Judgement, LimitRuling, Ruling};
pub use history::{History, HistoryPoint, HistorySession, LevelChange, VariantHistory};
pub use imported::{Imported, ImportedConnections, ImportedLatency};
pub use invalid::{
    Cause, InvalidReason, SendingLimits, Silence, fell_silent, lost_over_transport,
    not_sent_as_asked, unserved,
};
pub use latency_floor::{latency_floor_ns, latency_floor_of_runs_ns};
pub use live::{ByPhase, LiveInterval, LiveLimit, LiveLoad, LiveServer, LoadPart};
pub use measured::{CertificateFacts, Measured, Tls, TurnsTaken, WorkerFacts};
pub use memory::{MemoryLog, RunMemory};
pub use not_compared::NotCompared;
pub use objective::{Objective, ObjectiveError, Relation, Threshold};
pub use quantiles::{LatencyQuantiles, RunFigure, RunFigures, TimeOuts};
pub use quantity::{Quantity, QuantityError, Unit};
pub use record::{
    CommonLoad, LoadFacts, LoadMode, RECORD_FORMAT, RunRecord, RunStatus, ServerFacts, TlsFacts,
};
pub use resources::{CpuLimit, CpuShare, ResourceSample, ResourceSeries, ThreadShare};
pub use results::{
    CaseId, Compared, Fact, FolderName, FolderNameError, Holder, LoadSweep, ResultsDirectory,
    ResultsError, SESSION_FORMAT, Session, SessionLock, SkippedVariant,
};
pub use self_check::{Finding, SelfCheck};
pub use session_comparison::{
    Condition, ConditionChange, SessionComparison, SessionSide, VariantChange, WholeSession,
};
pub use summary::{Summary, VariantCaveat, VariantSummary};
pub use sweep::{Breaking, HELD_SHARE, SweepLine, SweepPoint, SweepRun, held_share};
pub use testbed::{ChainPart, HostFacts, LinkFacts, TestbedFacts};
pub use visible::{visible, visible_json, visible_lines};
pub use windows::{WindowOfVariant, WindowSummary};
