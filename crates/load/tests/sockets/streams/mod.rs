//! The encrypted transports over TCP, against our own responder, against BIND, and against servers that
//! misbehave.

mod failures;
mod http_statuses;
mod servers;
mod tls;
mod transports;
