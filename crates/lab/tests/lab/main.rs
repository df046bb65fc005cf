//! The laboratory with real processes: the guard, the sampler, authoritative servers, and forwarders.

mod asked;
mod chain;
mod external;
mod forwarders;
mod guard;
mod hosts;
mod logs;
mod program;
mod resolvers;
mod roots;
mod sampler;
mod servers;
mod support;
mod zone_signing;
