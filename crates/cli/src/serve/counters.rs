//! The file with the counters of a running `dnslab serve`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use dnslab_responder::{Counters, CountersHandle};
use dnslab_wire::Transport;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};

use crate::exit::Failure;

const INTERVAL: Duration = Duration::from_millis(100);

/// How long a worker may take to report its counters. A worker that its program stalls does not report, but
/// does not count either.
const PATIENCE: Duration = Duration::from_millis(50);

/// A file that a thread replaces again and again.
pub(super) struct CountersFile {
    path: PathBuf,
    served: Vec<Transport>,
    /// Dropping it ends the thread.
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl CountersFile {
    /// Writes the file for the first time, and begins to replace it.
    ///
    /// # Errors
    /// When the file cannot be written, or there is no thread for it: better now than after a measurement.
    pub(super) fn begin(
        path: PathBuf,
        served: Vec<Transport>,
        counters: CountersHandle,
    ) -> Result<Self, Failure> {
        replace(&path, &object(&served, &Counters::default()))
            .with_context(|| cannot(&path))
            .map_err(Failure::bad_input)?;
        let (stop, stopped) = mpsc::channel();
        let (to, what) = (path.clone(), served.clone());
        let thread = std::thread::Builder::new().spawn(move || {
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                // A full disk may have room later, and `end` reports a fault.
                let _ = replace(&to, &object(&what, &counters.read(PATIENCE)));
            }
        });
        let thread = thread.with_context(|| cannot(&path))?;
        Ok(Self { path, served, stop, thread })
    }

    /// Writes the exact sums, and ends.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(super) fn end(self, counters: &Counters) -> Result<(), Failure> {
        drop(self.stop);
        // The thread must not replace the exact sums by older ones.
        self.thread.join().expect("the thread that writes counters does not panic");
        replace(&self.path, &object(&self.served, counters)).with_context(|| cannot(&self.path))?;
        Ok(())
    }
}

fn cannot(path: &Path) -> String {
    format!("cannot write the counters to `{}`", path.display())
}

/// Renames a new file over the old one, so that readers find one of the two, whole.
fn replace(path: &Path, object: &Value) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    std::fs::write(&beside, format!("{object}\n"))?;
    std::fs::rename(&beside, path)
}

fn object(served: &[Transport], counters: &Counters) -> Value {
    let now = clock_gettime(ClockId::Monotonic);
    let at_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    let transports: Map<_, _> = served
        .iter()
        .map(|transport| {
            let messages = counters.messages(*transport);
            let value = json!({
                "received": messages.received,
                "answered": messages.answered,
                "lost_by_program": messages.lost_by_program,
                "ignored": messages.ignored,
                "unsent": messages.unsent,
            });
            (transport.to_string(), value)
        })
        .collect();
    let life = &counters.connections;
    let queries = &life.queries;
    json!({
        "at_ns": at_ns,
        "transports": transports,
        "connections": {
            "accepted": life.accepted,
            "open": life.open,
            "full_handshakes": life.full_handshakes,
            "resumed_handshakes": life.resumed_handshakes,
            "failed_handshakes": life.failed_handshakes,
            "early_data": life.early_data,
            "closed_by_quota": life.closed_by_quota,
            "closed_by_client": life.closed_by_client,
            "timed_out": life.timed_out,
            "broken": life.broken,
            "queries": {
                "connections": queries.connections,
                "sum": queries.sum,
                "least": queries.least,
                "most": queries.most,
                "powers_of_two": queries.powers,
            },
        },
        "delayed": {
            "answers": counters.lateness.answers,
            "late_ns": counters.lateness.sum_ns,
            "latest_ns": counters.lateness.longest_ns,
        },
    })
}
