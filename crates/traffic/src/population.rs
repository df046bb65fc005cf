//! A population of clients: how many there are, how active each is, and what they ask.
//!
//! It takes the place of a capture where there is none, or where a capture may not be passed on: it has no
//! names and no addresses. `docs/POPULATIONS.md` explains each key, and how a capture becomes a population.

mod client;
mod description;
mod distribution;
mod fit;
mod message;
mod names;
mod play;
mod profiler;
mod text;

pub use client::Stub;
pub use description::{
    Activity, ActivityDistribution, Bursts, LookupKind, Lookups, MAX_LOOKUPS, MAX_TYPES,
    PopularNames, Population, Stubs, Zipf,
};
pub use names::{ListNames, NameChoice, Names, NamesError, ZoneNames};
pub use play::{PopulationLoad, PopulationQueries};
pub use profiler::{Kept, Profile, ProfileError, ProfileNote, Profiler, ProfilerLimits};
pub use text::{PopulationError, Unfit};
