//! Hosts on one machine: a line of network namespaces, each joined to the next by a link.
//!
//! No namespace has a name. Each is held by a process under a guard and goes away with the last process in
//! it. So nothing is left behind, whatever ends dnslab, and two experiments cannot meet.

mod alarm;
mod devices;
mod ended;
mod host;
mod internet;
mod ip;
mod line;
pub(crate) mod link;
mod link_settings;
mod netem;
mod ports;
mod possible;
mod queue;
mod sources;
mod steering;

pub use ended::EndedPart;
pub use internet::INTERNET;
pub use line::{Hosts, NamedHosts, sweep};
pub use link_settings::LinkSettings;
pub use possible::possible;
