//! Servers, networks and limits that fail while a load runs. Whatever they do, every due query has exactly
//! one outcome, the load ends in time, memory stays bounded, and the result says what happened.

mod applied;
mod connections;
mod crowd;
mod datagrams;
mod half_open;
mod limits;
mod outcomes;
mod process;
mod responder;
mod server;
mod stuck;
