//! What a run was: typed, without a rule, in one format.
//!
//! The principal type is [`RunRecord`]: everything that one run of one variant left behind. A [`Session`] is what was
//! known before the first of them. Doubts, bottlenecks and reasons are enums with figures; what decides on them is
//! `dnslab_analysis`, and `dnslab_report` has the words for them. Sums of the load are `dnslab_figures`.
//!
//! This crate opens nothing and starts nothing.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod answer_comparison;
mod bottleneck;
mod capacity;
mod caveat;
mod cost_limit;
pub mod counter;
mod cpu_profile;
mod evidence;
mod finding;
mod imported;
mod invalid;
mod live;
mod load;
mod measured;
mod metric;
mod objective;
mod quantiles;
mod quantity;
mod resources;
mod run;
mod server;
mod session;
mod testbed;
mod text;
mod visible;

pub use answer_comparison::{
    AnswerComparison, AnswerExample, AnswerRelation, COMPARISON_FORMAT, ClassCount, DifferenceClass,
};
pub use bottleneck::{Bottleneck, BottleneckKind};
pub use capacity::{
    Breach, CAPACITY_FORMAT, Capacity, End, Judged, Phase, RateSearch, Sought, Step, StepFigures,
    WindowSweep, tried,
};
pub use caveat::{AfterTruncation, Caveat};
pub use cost_limit::{CostLimit, CostLimitError};
pub use counter::{CounterSample, CounterSeries};
pub use cpu_profile::{
    CostPart, CpuProfile, CpuProfiles, LibrarySamples, MAX_LIBRARIES, MAX_PROFILE_STACKS,
    MAX_STACK_FRAMES, MAX_STACK_NAME, MAX_STACK_NAMES, MAX_STACKS, NotProfiled, PROFILE_FORMAT,
    PartSamples, StackSamples,
};
pub use evidence::{CpuUse, Evidence};
pub use finding::Finding;
pub use imported::{Imported, ImportedConnections, ImportedLatency};
pub use invalid::{Cause, InvalidReason, Silence};
pub use live::{LiveInterval, LiveLimit, LiveLoad, LiveServer, LoadPart};
pub use load::{LoadFacts, LoadMode, OpenPace, Played, TlsFacts};
pub use measured::{Measured, TurnsTaken, WorkerFacts};
pub use metric::Metric;
pub use objective::{Objective, ObjectiveError, Relation, Threshold};
pub use quantiles::{LatencyQuantiles, RunFigure, TimeOuts};
pub use quantity::{Quantity, QuantityError, Unit};
pub use resources::{
    CpuLimit, CpuShare, ResourceSample, ResourceSeries, ThreadShare, with_interrupts,
};
pub use run::{CommonLoad, RECORD_FORMAT, RunRecord, RunStatus};
pub use server::ServerFacts;
pub use session::{CaseId, Compared, Fact, LoadSweep, SESSION_FORMAT, Session, SkippedVariant};
pub use testbed::{
    ChainPart, HostFacts, LinkFacts, TestbedFacts, UNDER_TEST, pinned_cpus, servers_cpus,
};
pub use visible::{visible, visible_json, visible_lines};
