//! The keys of an experiment: what they are called, what they mean, what may be written, how they are read
//! from files and command lines, and what they make together.
//!
//! The principal type is [`Experiment`]: an experiment as checked, in which every [`Variant`] is complete
//! and nothing contradicts itself. Its parts, as [`Load`], are structs whose fields are keys; each field is
//! stated once, in one row, and all else comes from that row: reading, writing, the options of commands, the
//! reference, the JSON schema. What is wrong comes out all at once, as [`Problems`] that know their place.
//!
//! ```
//! use dnslab_settings::check_text;
//!
//! let text = r#"
//!     name = "clients"
//!     [[variant]]
//!     name = "few"
//!     load.clients = 4
//!     [[variant]]
//!     name = "many"
//!     load.clients = 400
//! "#;
//! let experiment = check_text(text, &["load.duration=5s".to_owned()]).unwrap();
//! assert_eq!(experiment.baseline, "few");
//! assert_eq!(experiment.variants[1].load.clients, 400);
//!
//! let problems = check_text("name = \"x\"\nlaod.clients = 4", &[]).unwrap_err();
//! assert_eq!(problems.as_slice()[0].message, "unknown key `laod`");
//! ```
//!
//! Nothing here opens a file, reads a clock or starts anything: what the check must know of the machine it
//! asks through [`Machine`].

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod check;
mod document;
mod experiment;
mod key;
mod keys;
mod kind;
mod problem;
mod reading;
mod reference;
mod render;
mod schema;
mod suggestion;
mod types;
mod words;

pub use check::{AnyMachine, Draft, Machine, check_text, is_name};
pub use document::{Document, Layer, find};
pub use experiment::{
    ChainRole, ChainServer, Experiment, HttpSettings, Queries, Variant, VariantDraft, Verification,
};
pub use key::{DefaultValue, Flag, FlagForm, Key, Setting, Unused, When, Written};
pub use keys::{
    ClientLink, ClientLinkDraft, Common, CommonDraft, Compare, CompareDraft, Expect, ExpectDraft,
    Lab, LabDraft, Link, Load, LoadDraft, Log, LogDraft, Relay, RelayDraft, Repeat, RepeatDraft,
    Server, ServerDraft, Top, TopDraft, Upstream, UpstreamDraft, UpstreamLink, UpstreamLinkDraft,
    VARIANT_NAME, Zone, ZoneDraft, keys,
};
pub use kind::{Host, HostAddress, Kind, Unread, Value};
pub use problem::{Mark, Origin, Place, Problem, Problems, on_one_line};
pub use reference::reference;
pub use render::{render, render_styled, without_secrets};
pub use schema::schema;
pub use suggestion::closest_word;
pub use types::{Rcode, ServerChoice, Subnets, VariantNames};
pub use words::{
    Alternate, CertificateKind, Figure, HostsChoice, LogSuffix, LogTarget, Mode, Quickack,
    QuotaKind, ReceiveTime, Records, ServerKind, TimeForm, TlsVersions,
};

/// Variants of an experiment. A page of more has no reader, and what is computed for each pair of them
/// takes its time.
pub const MAX_VARIANTS: usize = 1_000;

/// Runs of an experiment. All records are held at once when the report is made.
pub const MAX_RUNS: usize = 5_000;

/// Pairs of variants that are compared: all of forty variants.
pub const MAX_PAIRS: usize = 2_000;
