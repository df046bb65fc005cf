//! From the experiment file to the records of its runs.
//!
//! `dnslab_settings` says what an experiment is and how it is checked. This crate finds its file, orders its runs and
//! carries them out. The principal type is [`Session`].
//!
//! ```
//! use dnslab_experiment::Plan;
//! use dnslab_settings::check_text;
//!
//! let text = r#"
//!     name = "clients"
//!     repeat.runs = 3
//!     [[variant]]
//!     name = "few"
//!     load.clients = 4
//!     [[variant]]
//!     name = "many"
//!     load.clients = 400
//! "#;
//! let experiment = check_text(text, &[]).unwrap();
//! assert_eq!(Plan::new(&experiment, &[]).cases.len(), 6);
//! ```
//!
//! Modules, in the order of reading: `file` (where an experiment comes from, and who owns it); `plan`; `run/session`
//! (all runs: planned, made, resumed; `rounds`, `trial`, `conditions`, `answers`, `profile`, `capacity`, `kept`);
//! `run/round` (servers start, the load goes to them, they stop) and `timeline`; `run/case` (one run), with `error`
//! (why one cannot begin), `queries`, `captured`, `population`, `zone`, `ways`, `ready`, `testbed`, `target`,
//! `watching`, `validity`, `leftovers`; `run/first_query`, `run/remedies`, `run/room` (before the first run);
//! `run/calibrate`; `capacity` (a search as a state machine); `pilot`; `controls`, `sweeps`, `scaling`; `explain`.
//!
//! - Invariant: servers are started, watched and loaded by agents. This crate makes what they are told.
//! - Invariant: [`Plan::new`] reads no clock and starts nothing.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod capacity;
mod controls;
mod error;
mod explain;
mod file;
mod pilot;
mod plan;
mod run;
mod scaling;
mod sweeps;

pub use error::ExperimentError;
pub use explain::{FindServer, explain, installed, located};
pub use file::{
    BUILT_IN, Changes, Here, LinkError, Source, Untrusted, doubt_of_results, find_link, load,
    load_changed,
};
pub(crate) use file::{Purpose, load_file};
pub use pilot::{PilotFindings, UnsteadyVariant, pilot_of};
pub use plan::{Plan, PlanTime};
pub use run::{
    Calibration, CalibrationCheck, CalibrationError, CapacityError, CapacityObserver, CapacityPlan,
    CapacitySession, CaptureProfile, Census, Difference, FirstQueryError, KeptTestbed,
    NamedPrograms, Observer, Session, SessionEnd, SessionError, SessionOptions, TakenAddress,
    WrongAnswer, calibrate, capture_options, rest, results_path, skipped,
};
