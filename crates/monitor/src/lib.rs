//! Lets others watch a load: serves its metrics to a scraper, and pushes them by Prometheus remote write.
//!
//! [`Listener`] serves the latest [`dnslab_metrics::Snapshot`] over HTTP. [`Pusher`] takes points at once, keeps a
//! bounded number of them, and sends them with patience. Each has a thread that runs only when no other has work for
//! its CPU, so neither can delay a load; nothing that a scraper or an endpoint does reaches the thread that observes it.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod endpoint;
mod listener;
mod pusher;

pub use endpoint::{Endpoint, EndpointError};
pub use listener::{ListenError, Listener};
pub use pusher::{PushReport, Pusher, push_all};
