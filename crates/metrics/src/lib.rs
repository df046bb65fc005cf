//! Runs as metrics of Prometheus.
//!
//! [`FAMILIES`] is the one list of metrics, with type, unit and labels; `docs/METRICS.md` is made from it.
//! [`Metrics`] is told of a session's events and holds the series of its runs. A [`Snapshot`] of them becomes text or
//! protocol buffers for a scraper ([`Format`]), and [`Point`]s, series at an instant, become requests of remote write
//! ([`write_request`]) or a file for `promtool` ([`timed_text`]). [`points_of`] gives the points of a run on disk.
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
//! This crate opens no socket and reads no clock: instants come with what it is told.

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
pub use remote_write::write_request;
pub use runs::Metrics;
pub use series::{Point, Series, Snapshot, Value};
pub use text::{Format, timed_text};
