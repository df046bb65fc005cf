//! Runs as metrics of Prometheus.
//!
//! [`FAMILIES`] is the one list of metrics, with type, unit and labels. `docs/METRICS.md` is made from it. [`Metrics`]
//! is told of a session's events and holds the series of its runs.
//!
//! ```
//! use dnslab_record::CaseId;
//! use dnslab_metrics::{Format, Metrics};
//!
//! let mut metrics = Metrics::new("encryption", "0.1.0", 1);
//! metrics.run_begins(&CaseId { variant: "udp".to_owned(), repetition: 1 }, "udp");
//! let text = String::from_utf8(metrics.snapshot().encode(Format::OpenMetrics)).unwrap();
//! assert!(text.contains("dnslab_runs_planned{experiment=\"encryption\"} 1\n"));
//! ```
//!
//! Modules, in the order of reading:
//!
//! - `families`: the list. `page`: the list as a document.
//! - `series`: a [`Series`], a [`Snapshot`] of all, and a [`Point`], which is series at an instant. `buckets`:
//!   latencies.
//! - `runs`: series from the intervals of a load. `export`: the points of a run on disk ([`points_of`]).
//! - `text`, `protobuf`: what a scraper reads ([`Format`]), and a file for `promtool` ([`timed_text`]).
//! - `remote_write`: what is pushed ([`write_request`]).
//!
//! What always holds:
//!
//! - Invariant: it opens no socket and no file, and reads no clock. Instants come with what it is told.
//! - Invariant: it counts no query. Each series is made from sums that the load has added up.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod buckets;
mod export;
mod families;
mod page;
mod protobuf;
mod remote_write;
mod runs;
mod series;
mod text;

pub use buckets::{BOUNDS_NS, Buckets};
pub use export::points_of;
pub use families::{FAMILIES, Family, Kind, Scope, Unit};
pub use page::page;
pub use remote_write::{EncodedRequest, write_request};
pub use runs::Metrics;
pub use series::{Point, Series, Snapshot, Value};
pub use text::{Format, timed_text};
