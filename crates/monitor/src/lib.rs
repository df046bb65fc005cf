//! Lets others watch a load: serves its metrics to a scraper, and pushes them by Prometheus remote write.
//!
//! A [`Listener`] serves the latest [`dnslab_metrics::Snapshot`] over HTTP. A [`Pusher`] takes points at once, keeps a
//! bounded number of them, and sends them to an [`Endpoint`] with patience.
//!
//! Modules, in the order of reading: `listener`, `pusher`, `endpoint` (one request, over TLS if asked).
//!
//! - Invariant: nobody who fetches or takes metrics can delay a load. The listener and the pusher have a thread each,
//!   which runs only while no other has work for its CPU. Whoever observes a load hands over values that are ready,
//!   under a lock that is held for as long as a pointer takes.
//! - Invariant: it makes no metric. `dnslab_metrics` does.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod endpoint;
mod listener;
mod pusher;

pub use endpoint::{AddressFault, Endpoint, EndpointError, http_address};
pub use listener::{ListenError, Listener};
pub use pusher::{PushReport, Pusher, push_all};
