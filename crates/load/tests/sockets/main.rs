//! Loads over sockets, against our own responder, servers of others, and servers that misbehave.

mod answers;
mod behaviour;
mod encrypted;
mod failures;
mod foreign;
mod quic;
mod responder;
mod streams;
