//! The laboratory with real processes: the guard, the sampler, authoritative servers, and forwarders.

mod forwarders;
mod guard;
mod hosts;
mod roots;
mod sampler;
mod servers;
mod support;
