//! The laboratory with real processes: the guard, the sampler, and BIND, Knot and NSD.

mod guard;
mod hosts;
mod sampler;
mod servers;
mod support;
