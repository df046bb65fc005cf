//! QUIC's client and server against each other, over a link and a clock simulated from a seed.

mod exchanges;
mod hostile;
mod memory;
mod raw_server;
mod silence;
mod simulation;
