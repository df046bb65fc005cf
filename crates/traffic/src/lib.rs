//! What is asked, when, and by whom: the pace of a load, its queries, and the arrivals that both make together.
//!
//! The principal type is [`Arrivals`]: the endless sequence of `due`, `client`, `query` that one load worker works off.
//!
//! ```
//! use std::time::Duration;
//!
//! use dnslab_traffic::{
//!     Arrival, Arrivals, Pace, Picker, QueryList, Rate, Schedule, Selection, SyntheticZone, TypeMix,
//! };
//! use dnslab_wire::QueryOptions;
//!
//! let zone = SyntheticZone::new("example.".parse()?, 1_000, Duration::from_secs(1))?;
//! let queries = QueryList::from_zone(&zone, &TypeMix::default(), 1, &QueryOptions::default());
//! assert_eq!(queries.get(0).to_string(), "host-000001.example. A");
//!
//! // The second of two workers, with 5 of 10 clients.
//! let schedule = Schedule::new(&Rate::Constant(1_000.0), Pace::Constant, 1, 1, 2);
//! let picker = Picker::new(Selection::InOrder, 0.0, queries.len(), 1, (1, 2));
//! let mut arrivals = Arrivals::new(schedule, 5, picker);
//! assert_eq!(arrivals.next(), Some(Arrival { due_ns: 1_000_000, client: 0, query: 1 }));
//! assert_eq!(arrivals.next(), Some(Arrival { due_ns: 3_000_000, client: 1, query: 3 }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Modules, in the order of reading: `rate`, `shape` and `pace` (when queries become due); `queries`, `query_file`,
//! `type_mix`, `popular` (what is asked); `choice` (which comes next); `arrival` (both together); `turns`, `timeline`
//! (whose turn it is); `behaviour`, `attempts`, `quota`, `transport_mix`, `source_addresses`, `client_subnets`, `further_servers`,
//! `time_windows` (how clients behave); `zone` (a [`SyntheticZone`], written in each [`ZoneFormat`]); `zone_file` (read, and what can be asked of it); `program` (what a
//! server does to its answers); `client_query`, `replay`, `capture_clock` (clients of a capture); [`population`] (many
//! clients without a capture: text, play, profile); `random` (streams of a seed).
//!
//! - Invariant: the same seed gives the same arrivals.
//! - Invariant: it opens no socket and no file, and reads no clock. An arrival costs no allocation.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod arrival;
mod attempts;
mod behaviour;
mod capture_clock;
mod choice;
mod client_query;
mod client_subnets;
mod further_servers;
mod name_list;
mod pace;
mod popular;
pub mod population;
mod program;
mod queries;
mod query_file;
mod quota;
mod random;
mod rate;
mod replay;
mod search;
mod shape;
mod source_addresses;
mod time_windows;
mod timeline;
mod transport_mix;
mod turns;
mod type_mix;
mod zone;
mod zone_file;

pub use arrival::{Arrival, Arrivals};
pub use attempts::{Attempts, ServerOrder};
pub use behaviour::{ClientBehaviour, Connect, Truncated};
pub use capture_clock::CaptureClock;
pub use choice::{Picker, Selection};
pub use client_query::ClientQuery;
pub use client_subnets::{ClientSubnets, ClientSubnetsError};
pub use further_servers::{FurtherServers, FurtherServersError};
pub use name_list::{NameList, NameListError};
pub use pace::{Pace, Schedule};
pub use popular::popular_names;
pub use program::{Delay, Loss, ProgramError, Stall};
pub use queries::QueryList;
pub use query_file::{LineFault, LineProblem, QueryFileError};
pub use quota::Quota;
pub use random::{Purpose, Random, drawn_for, stream};
pub use rate::{Rate, RateError};
pub use replay::{ReplayPlan, SeenQuery};
pub use search::{Candidates, SearchList};
pub use source_addresses::{SourceAddresses, SourceAddressesError};
pub use time_windows::{TimeWindow, TimeWindows, TimeWindowsError};
pub use timeline::Timeline;
pub use transport_mix::{TransportMix, TransportMixError};
pub use turns::{SlicePlan, Turns};
pub use type_mix::{TypeMix, TypeMixError};
pub use zone::{
    DirectorySuffix, DirectorySuffixError, SyntheticZone, UpdateServer, UpdateServerError,
    ZoneError, ZoneFormat,
};
pub use zone_file::{ZoneFileError, read_zone_file, zone_file_apex};

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::str::FromStr;

    use super::*;
    use dnslab_wire::UnknownWord;

    #[test]
    fn errors_name_the_known_words() {
        fn check<T: FromStr<Err = UnknownWord> + Debug>(text: &str, expected: &str) {
            assert_eq!(text.parse::<T>().unwrap_err().to_string(), format!("unknown {expected}"));
        }
        check::<Selection>("random", "selection `random`: it is one of in-order, uniform, zipf");
        check::<Pace>("steady", "pace `steady`: it is one of constant, poisson");
        check::<Connect>("later", "moment to connect `later`: it is one of at-start, on-demand");
        let ways = "way with truncated answers `retry`: it is one of count, ask-over-tcp";
        check::<Truncated>("retry", ways);
    }
}
