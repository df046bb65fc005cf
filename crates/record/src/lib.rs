//! What a run was: typed, without a rule, in one format.
//!
//! The principal type is [`RunRecord`]: everything that one run of one variant left behind. It holds [`LoadFacts`],
//! [`ServerFacts`], [`Measured`], each [`Caveat`], the [`Bottleneck`] with its [`Evidence`], and an [`InvalidReason`]
//! if it does not count. A [`Session`] is what was known before the first run. Beside the runs there may be a
//! [`Capacity`], [`CpuProfiles`] and an [`AnswerComparison`].
//!
//! [`RunRecord::figure`] is the value of a [`Metric`]. An [`Objective`] and a [`CostLimit`] are what a user demands of
//! each [`Indicator`].
//!
//! Modules, in the order of reading:
//!
//! - `run`, `session`: what is on disk. `load`, `server`, `testbed`: what ran, as it was applied.
//! - `measured`, `share`, `resources`, [`counter`], `span`, `quantiles`: what was measured, and what servers count themselves.
//! - `bottleneck`, `evidence`, `caveat`, `finding`, `invalid`: what was found, as enums with figures.
//! - `metric`, `indicator`, `objective`, `cost_limit`: figures by name, and demands.
//! - `capacity`, `cpu_profile`, `answer_comparison`, `imported`: what further commands leave.
//! - `live`: what a load tells while it runs. `diagnosis`: what on a host would spoil a measurement. `visible`: text of others, so that it can be shown.
//!
//! What always holds:
//!
//! - Invariant: no rule, no file, no clock. `dnslab_analysis` decides.
//! - Invariant: a doubt or a reason is an enum with figures. Its sentence is in `dnslab_report`.
//! - Invariant: texts are what others said (an error, a log, an example), what describes a load or a server, why a step
//!   of a search failed, and why a text of the user cannot be read.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod answer_comparison;
mod bottleneck;
mod capacity;
mod caveat;
mod cost_limit;
pub mod counter;
mod cpu_profile;
mod diagnosis;
mod event;
mod evidence;
mod finding;
mod imported;
mod indicator;
mod invalid;
mod live;
mod load;
mod measured;
mod metric;
mod objective;
mod observation;
mod omitted;
mod path;
mod quantiles;
mod resources;
mod run;
mod server;
mod service;
mod session;
mod share;
mod span;
mod testbed;
mod text;
mod visible;
mod watched;

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
pub use diagnosis::{Diagnosis, Severity};
pub use dnslab_settings::{Metric, Published, PublishedKind, Unit};
pub use event::EventFacts;
pub use evidence::{CpuUse, Evidence};
pub use finding::Finding;
pub use imported::{Imported, ImportedConnections, ImportedLatency};
pub use indicator::{Indicator, IndicatorError};
pub use invalid::{Cause, InvalidReason, Silence};
pub use live::{LiveInterval, LiveLimit, LiveLoad, LiveServer, LoadPart};
pub use load::{LoadFacts, LoadHost, LoadMode, NoPace, OpenPace, Played, TlsFacts};
pub use measured::{Measured, TurnsTaken, WorkerFacts};
pub use metric::figure_in_window;
pub use objective::{Objective, ObjectiveError, Relation, Threshold};
pub use observation::Observation;
pub use path::NetworkPath;
pub use quantiles::{LatencyQuantiles, RunFigure, TimeOuts};
pub use resources::{
    CpuLimit, CpuShare, ResourceSample, ResourceSeries, ThreadShare, with_interrupts,
};
pub use run::{CommonLoad, RECORD_FORMAT, RunRecord, RunStatus, ShareLoad};
pub use server::{ExternalUpstream, ServerFacts};
pub use service::{EndpointChange, PodSample, PodSeries, ServiceSeries};
pub use session::{
    CaseId, Compared, Fact, LoadSweep, Looks, SESSION_FORMAT, Session, SkippedVariant, ThreadSweep,
};
pub use share::MeasuredShare;
pub use span::{Rise, Span};
pub use testbed::{
    ChainPart, HostFacts, LinkFacts, TestbedFacts, UNDER_TEST, pinned_cpus, servers_cpus,
};
pub use visible::{visible, visible_json, visible_lines};
pub use watched::{LoadHostSeries, Watched};
