//! What is asked, when, and by whom: the pace of a load, its queries, and the arrivals that both
//! make together.
//!
//! The principal type is [`Arrivals`]: the endless sequence of `due`, `client`, `query` that one
//! load worker works off. It is pure and seeded: the same seed gives the same arrivals.
//!
//! ```
//! use std::time::Duration;
//!
//! use dnslab_traffic::{
//!     Arrival, Arrivals, Pace, Picker, QueryList, Schedule, Selection, SyntheticZone,
//! };
//! use dnslab_wire::QueryOptions;
//!
//! let zone = SyntheticZone::new("example.".parse()?, 1_000, Duration::from_secs(1))?;
//! let queries = QueryList::from_zone(&zone, &QueryOptions::default());
//! assert_eq!(queries.get(0).to_string(), "host-000001.example. A");
//!
//! // The second of two workers, with 5 of 10 clients.
//! let schedule = Schedule::new(Pace::Constant, 1_000.0, 1, 1, 2);
//! let picker = Picker::new(Selection::InOrder, queries.len(), 1, 1, 2);
//! let mut arrivals = Arrivals::new(schedule, 5, picker);
//! assert_eq!(arrivals.next(), Some(Arrival { due_ns: 1_000_000, client: 0, query: 1 }));
//! assert_eq!(arrivals.next(), Some(Arrival { due_ns: 3_000_000, client: 1, query: 3 }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate opens no socket, reads no clock, and allocates nothing for an arrival. It opens no
//! file either: it reads and writes what it is given.

mod arrival;
mod choice;
mod pace;
mod queries;
mod query_file;
mod random;
mod zone;

pub use arrival::{Arrival, Arrivals};
pub use choice::{Picker, Selection, UnknownSelection};
pub use pace::{Pace, Schedule, UnknownPace};
pub use queries::QueryList;
pub use query_file::{LineFault, LineProblem, QueryFileError};
pub use zone::{SyntheticZone, ZoneError};
