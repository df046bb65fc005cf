//! Both ends of the link to a host: the agent that acts there ([`serve`]), and the coordinator's [`Link`] to it.
//!
//! An agent is `dnslab agent`, started on its host by the program that leads there (ssh, or none for this host), and it speaks on its standard input and output alone: nothing listens. Each end says every 2 s that it is there. An
//! agent that hears nothing for 30 s ends, with all that it has started; it is gone then, whatever became of the connection. A
//! coordinator that hears nothing for 25 s gives the host up. The agent of the coordinator's own host is a thread of its
//! process, and hears the same orders ([`Agents::own`]).
//!
//! A [`StartedServer`] is one that dnslab has started on a host. [`ServerWatch`] is how a server is watched there.
//! [`LoadHosts`] are hosts that share a load: each has some of its workers, and what they count is put together here.
//!
//! Modules, in the order of reading: `host` (the agent) with `permission`, `sampling`, `servers`, `shares` and
//! `scratch`, `handed` (what the own agent is given as it is), `feeds` (queries that are sent ahead of a load), `output`
//! (frames out), `link` (its coordinator), `watching`, `counting`, `started` and `load_hosts` (what both are for), `pod` (what
//! holds a pod for its agents), `serving` (what a server is started with), `agents` (the links of a session).
//!
//! - Invariant: an agent does what its role allows, and nothing before the coordinator has said its version.
//! - Invariant: what an agent says is bounded, and so is what its coordinator keeps of it.
//! - Invariant: no thread that measures writes to the other end.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod agents;
mod clock;
mod counting;
mod feeds;
mod handed;
mod host;
mod link;
mod load_hosts;
mod output;
mod permission;
mod pod;
mod readiness;
mod sampling;
mod scratch;
mod servers;
mod serving;
mod shares;
mod started;
mod threads;
mod watching;

pub use agents::{Agents, StackPlan};
pub use counting::CounterWatching;
pub use dnslab_protocol::{FoundServer, PortChoice};
pub use host::{AgentEnd, serve, serve_standard};
pub use link::{Link, LinkError};
pub use load_hosts::LoadHosts;
pub use permission::Permission;
pub use pod::{put_program, stay};
pub use readiness::{PROBE_TIMEOUT, Ready, answered};
pub use scratch::remove_copy;
pub use serving::{ServerPlace, needs, server_spec};
pub use started::{NotServed, SentServer, StartedServer};
pub use watching::{FoundThere, ServerRecording, ServerWatch, WatchedServer};
