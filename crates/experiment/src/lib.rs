//! From the experiment file to the plan of its runs.
//!
//! The principal type is [`Experiment`]: an experiment as checked, in which every variant is
//! complete and nothing contradicts itself. It is made from a TOML file and the overrides of the
//! command line by one table of keys, [`KEYS`]; what is wrong comes out all at once, as
//! [`Problems`] that know their place.
//!
//! ```
//! use dnslab_experiment::{Plan, check_text};
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
//! let experiment = check_text(text, &["load.duration=5s".to_owned()]).unwrap();
//! assert_eq!(experiment.baseline, "few");
//! assert_eq!(Plan::new(&experiment, &[]).cases.len(), 6);
//!
//! let problems = check_text("name = \"x\"\nlaod.clients = 4", &[]).unwrap_err();
//! assert_eq!(problems.as_slice()[0].message, "unknown key `laod`");
//! ```
//!
//! The check reads no clock and starts nothing; only [`load`] looks at the file system.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod capacity;
mod check;
mod error;
mod explain;
mod file;
mod keys;
mod plan;
mod run;

pub use check::{
    Alternate, ChainRole, ChainServer, CommonSettings, Expectation, Experiment, HostsChoice,
    LoadSettings, ProcessSettings, Queries, Server, ServerSettings, Subnets, TlsChoice, Topology,
    Tsig, UpstreamBehaviour, Variant, Verification, ZoneSettings, check_text, port_key,
};
pub use dnslab_load::Mode;
pub use error::{ExperimentError, Mark, Origin, Place, Problem, Problems};
pub use explain::{FindServer, explain, installed, located};
pub use file::{BUILT_IN, Source, Untrusted, load, render, render_styled, without_secrets};
pub(crate) use file::{Purpose, load_file};
pub use keys::{Form, KEYS, Key, Preset, VARIANT_NAME, reference, schema};
pub use plan::{Plan, START_AND_STOP};
pub use run::{
    Calibration, CalibrationCheck, CalibrationError, CapacityError, CapacityObserver, CapacityPlan,
    CapacitySession, Difference, FirstQueryError, KeptTestbed, NamedPrograms, Observer, OptionForm,
    Session, SessionEnd, SessionError, SessionOptions, calibrate, skipped,
};
