//! Where and how each server is asked.

use std::path::Path;
use std::time::Duration;

use crate::process::Stop;
use crate::versus::dnslab::Dnslab;

#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) clients: u32,
    /// Queries of each client.
    pub(super) outstanding: u32,
}

#[derive(Debug)]
pub(super) struct Room<'a> {
    pub(super) dnslab: &'a Dnslab,
    pub(super) folder: &'a Path,
    /// The measured window.
    pub(super) duration: Duration,
    /// Long enough for a client that found a queue of connections full and came again after a second.
    pub(super) warm_up: Duration,
    pub(super) stop: &'a Stop,
}
