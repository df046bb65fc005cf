//! Servers, networks and limits that fail while a load runs. Whatever they do, every due query has
//! exactly one outcome, the load ends in time, memory stays bounded, and the result says what
//! happened.

mod applied;
mod connections;
mod crowd;
mod datagrams;
mod drains;
mod half_open;
mod limits;
mod lossy_link;
#[path = "../one_port/mod.rs"]
mod one_port;
mod outcomes;
mod process;
mod quotas;
mod random;
mod relay;
mod responder;
mod server;
mod stopped;
mod stuck;
mod windows;
