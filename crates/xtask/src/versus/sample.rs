//! One run of one program, and what it was asked to do.

use std::net::SocketAddr;
use std::path::PathBuf;

use dnslab_wire::Transport;
use serde::Serialize;

use super::windows::PacingError;
use crate::arguments::Work;

/// A load, the same for every program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load<'a> {
    /// Which work it belongs to.
    pub(crate) work: Work,
    /// How queries travel.
    pub(crate) transport: Transport,
    /// Where the server answers.
    pub(crate) target: SocketAddr,
    /// The authority of the server's certificate, if the transport is encrypted.
    pub(crate) authority: Option<&'a PathBuf>,
    /// The network namespace to run in.
    pub(crate) namespace: Option<&'a str>,
    /// Clients, each with a socket or connection of its own.
    pub(crate) clients: u32,
    /// Closed or open loop.
    pub(crate) mode: Mode,
    /// dnslab's horizon; its default if `None`.
    pub(crate) horizon: Option<&'a str>,
    /// By whose clock dnslab says when a datagram has come; its default if `None`.
    pub(crate) receive_time: Option<&'a str>,
    /// Queries that are sent together share a TLS record, as those of dnsperf do.
    pub(crate) shared_records: bool,
}

/// Closed or open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Outstanding queries over all clients; a multiple of their number.
    Window(u32),
    /// Queries per second over all clients.
    Rate(u32),
}

impl Load<'_> {
    /// What tells it from the other loads of its work.
    pub(crate) fn case(&self) -> String {
        let (transport, clients) = (self.transport.name(), self.clients);
        let mode = match self.mode {
            Mode::Window(window) => format!("{transport}, {clients} x {}", window / clients),
            Mode::Rate(rate) => format!("{transport}, {rate} qps"),
        };
        let horizon = self.horizon.map(|horizon| format!(", horizon {horizon}"));
        let clock = self.receive_time.map(|clock| format!(", receive time {clock}"));
        let records = if self.shared_records { ", shared records" } else { "" };
        format!("{mode}{}{}{records}", horizon.unwrap_or_default(), clock.unwrap_or_default())
    }
}

/// What one run measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Sample {
    /// The work.
    pub(crate) work: Work,
    /// The load, as [`Load::case`] says it.
    pub(crate) case: String,
    /// `dnslab`, or a peer with its version.
    pub(crate) program: String,
    /// From 1.
    pub(crate) round: u32,
    /// What the program itself found.
    pub(crate) finding: Finding,
    /// CPU time of the whole process for each answer of the whole run, microseconds.
    pub(crate) cpu_us_per_answer: f64,
    /// What the far end counted, if it did.
    pub(crate) pacing: Option<PacingError>,
}

/// What a program said of its run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Finding {
    /// Answered queries of the whole run, from the program's start to its end.
    pub(crate) answered: u64,
    /// Queries of the whole run without an answer.
    pub(crate) lost: u64,
    /// Answered queries per second of the measured window.
    pub(crate) answered_qps: f64,
    /// CPU time of the load threads alone for each answer of the measured window, microseconds.
    pub(crate) worker_us_per_answer: Option<f64>,
    /// Median of the latency, microseconds.
    pub(crate) p50_us: Option<f64>,
    /// 99th percentile of the latency, microseconds.
    pub(crate) p99_us: Option<f64>,
    /// Median of what a query was sent behind its due instant, microseconds.
    pub(crate) send_lag_p50_us: Option<f64>,
    /// What held the rate back; dnsperf does not say.
    pub(crate) limit: Option<String>,
}
