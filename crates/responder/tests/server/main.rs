//! The whole server over real sockets on loopback.

mod authorities;
mod foreign_clients;
mod hostile_clients;
mod life;
mod program;
mod quic;
mod running;
mod startup;
mod transports;
mod validators;
