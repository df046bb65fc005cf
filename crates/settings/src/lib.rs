//! The keys of an experiment: what they mean, what may be written, and how files and command lines are read.
//!
//! The principal type is [`Experiment`]: an experiment as checked, in which every [`Variant`] is complete and nothing
//! contradicts itself. A [`Document`] is an experiment as written. A [`Draft`] has the layers of each variant combined.
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
//! let experiment = check_text(text, &["load.duration=5s"]).unwrap();
//! assert_eq!(experiment.baseline, "few");
//! assert_eq!(experiment.variants[1].load.clients, 400);
//!
//! let problems = check_text("name = \"x\"\nlaod.clients = 4", &[]).unwrap_err();
//! assert_eq!(problems.as_slice()[0].message, "unknown key `laod`");
//! ```
//!
//! Modules, in the order of reading: `keys` (one row for each key) and `key` (the macro that makes structs and drafts
//! of the rows); `kind`, `types`, `words`, `metric`, `mode` (values); `experiment` (the groups of keys in one struct)
//! and `conditions` (to which variants a key means something); `entry`, `reading`, `document`, `check` (from text to
//! experiment); `writing`, `sent` (and back); `problem`, `render`, `suggestion`, `remedy` (what is said to a user);
//! `published`; `reference`, `schema` (documents); `chosen`, `against`, `differences`.
//!
//! - Invariant: it opens no file, starts nothing and reads no clock. The check asks a [`Machine`].
//! - Invariant: it reports all errors at once, each with its place ([`Problems`]).

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod against;
mod check;
mod chosen;
mod conditions;
mod differences;
mod document;
mod entry;
mod experiment;
mod hosts;
mod key;
mod keys;
mod kind;
mod metric;
mod mode;
mod problem;
mod published;
mod reading;
mod reference;
mod remedy;
mod render;
mod schema;
mod sent;
mod server_kind;
mod services;
mod suggestion;
mod types;
mod words;
mod writing;

pub use check::{AnyMachine, Draft, Machine, PathKind, check_text, is_name};
pub use chosen::Chosen;
pub use differences::{SettingChange, differences};
pub use document::{Document, find};
pub use entry::Layer;
pub use experiment::{
    ChainRole, ChainServer, Experiment, ExternalUpstream, HttpSettings, Queries, Variant,
    VariantDraft, Verification, keys,
};
pub use hosts::{
    HOST_KEYS, HostAt, HostPlace, HostPlaces, Install, NoHostPlace, NoHostPlaces, Pod,
};
pub use key::{Condition, DefaultValue, Flag, FlagForm, Key, Setting, Unused, When, Written};
pub use keys::{
    ClientLink, ClientLinkDraft, Common, CommonDraft, Compare, CompareDraft, Event, EventDraft,
    Expect, ExpectDraft, HostDefaults, HostDefaultsDraft, Lab, LabDraft, Link, Load, LoadDraft,
    Log, LogDraft, Relay, RelayDraft, Repeat, RepeatDraft, Server, ServerDraft, Top, TopDraft,
    Upstream, UpstreamDraft, UpstreamLink, UpstreamLinkDraft, VARIANT_NAME, Zone, ZoneDraft,
};
pub use kind::{Host, HostAddress, Interface, Kind, Unread, Value};
pub use metric::{Metric, Unit};
pub use mode::Mode;
pub use problem::{Mark, Origin, Place, Problem, Problems, on_one_line};
pub use published::{PUBLISHED_KEYS, Published, PublishedKind};
pub use reference::reference;
pub use remedy::{OptionForm, Remedy};
pub use render::{render, render_styled, without_secrets};
pub use schema::schema;
pub use server_kind::{CacheUnit, ServerKind, ServerProfile};
pub use services::{NoServicePlace, ServicePlace};
pub use suggestion::closest_word;
pub use types::{
    CacheSize, CacheSizeError, ExpectedCode, Factor, Identity, LoadShares, NoCode, NoPopulation,
    PopulationSource, RightCodes, Rounds, ServerChoice, Subnets, TooManyNames, UnreadShares,
    UpstreamChoice, VariantNames,
};
pub use words::{
    Alternate, CertificateKind, HostsChoice, LogSuffix, LogTarget, Quickack, QuotaKind,
    ReceiveTime, Records, TimeForm, TlsVersions, ZoneSigning,
};

/// Variants of an experiment. Nobody reads a page of more, and computing each pair takes time.
pub const MAX_VARIANTS: usize = 1_000;

/// Runs of an experiment. A report holds all records at once.
pub const MAX_RUNS: usize = 5_000;

/// Rounds of an experiment that fills a time. In fewer most differences are not seen, and no interval is bounded that
/// holds though somebody looked after each (METHOD, "Intervals").
pub const LEAST_ROUNDS: u32 = 5;

/// Threads of a load generator.
pub const MAX_WORKERS: u32 = 1_024;

/// Time windows of a load.
pub const MAX_TIME_WINDOWS: usize = dnslab_traffic::TimeWindows::MAX;

/// Shares of its own rate that a variant is asked at.
pub const MAX_SHARES: usize = 20;

/// Pairs of compared variants: all of forty variants.
pub const MAX_PAIRS: usize = 2_000;
