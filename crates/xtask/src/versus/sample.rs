//! One run of one program, and its load.

use std::net::SocketAddr;
use std::path::PathBuf;

use dnslab_wire::Transport;
use serde::Serialize;

use super::windows::PacingError;
use crate::arguments::Work;

/// The load that every program is given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load<'a> {
    pub(crate) work: Work,
    pub(crate) transport: Transport,
    /// Where the server answers.
    pub(crate) target: SocketAddr,
    /// The authority of the server's certificate, if the transport is encrypted.
    pub(crate) authority: Option<&'a PathBuf>,
    /// The network namespace to run in.
    pub(crate) namespace: Option<&'a str>,
    /// Each has its own socket or connection.
    pub(crate) clients: u32,
    pub(crate) mode: Mode,
    /// dnslab's batch delay; its default if `None`.
    pub(crate) batch_delay: Option<&'a str>,
    /// dnslab's clock of received datagrams; its default if `None`.
    pub(crate) receive_time: Option<&'a str>,
    /// Queries that are sent together share a TLS record, as those of dnsperf do.
    pub(crate) shared_records: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Outstanding queries over all clients; a multiple of their number.
    Window(u32),
    /// Queries per second over all clients.
    Rate(u32),
}

impl Load<'_> {
    /// In this network namespace, without an authority, and with dnslab's defaults.
    pub(crate) fn new(
        work: Work,
        transport: Transport,
        target: SocketAddr,
        clients: u32,
        mode: Mode,
    ) -> Self {
        Self {
            work,
            transport,
            target,
            authority: None,
            namespace: None,
            clients,
            mode,
            batch_delay: None,
            receive_time: None,
            shared_records: false,
        }
    }

    /// What distinguishes it from the other loads of its work.
    pub(crate) fn case(&self) -> String {
        let (transport, clients) = (self.transport.name(), self.clients);
        let mode = match self.mode {
            Mode::Window(window) => format!("{transport}, {clients} x {}", window / clients),
            Mode::Rate(rate) => format!("{transport}, {rate} qps"),
        };
        let batch_delay =
            self.batch_delay.map(|batch_delay| format!(", batch delay {batch_delay}"));
        let clock = self.receive_time.map(|clock| format!(", receive time {clock}"));
        let records = if self.shared_records { ", shared records" } else { "" };
        format!("{mode}{}{}{records}", batch_delay.unwrap_or_default(), clock.unwrap_or_default())
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Sample {
    pub(crate) work: Work,
    /// See [`Load::case`].
    pub(crate) case: String,
    /// `dnslab`, or a peer with its version.
    pub(crate) program: String,
    /// From 1.
    pub(crate) round: u32,
    pub(crate) finding: Finding,
    /// CPU time of the whole process for each answer of the whole run, microseconds.
    pub(crate) cpu_us_per_answer: f64,
    /// What the far end counted, if it did.
    pub(crate) pacing: Option<PacingError>,
}

/// A program's figures of its run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Finding {
    /// Of the whole run, from the program's start to its end.
    pub(crate) answered: u64,
    /// Queries of the whole run without an answer.
    pub(crate) lost: u64,
    /// Of the measured window.
    pub(crate) answered_qps: f64,
    /// CPU time of the load threads alone for each answer of the measured window, microseconds.
    pub(crate) worker_us_per_answer: Option<f64>,
    /// Median of the latency, microseconds.
    pub(crate) p50_us: Option<f64>,
    /// 0.99 quantile of the latency, microseconds.
    pub(crate) p99_us: Option<f64>,
    /// Median time from a query's due instant to its sending, microseconds.
    pub(crate) send_lag_p50_us: Option<f64>,
    /// What held the rate back; dnsperf does not say.
    pub(crate) limit: Option<String>,
}
