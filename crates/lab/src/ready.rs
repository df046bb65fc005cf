//! When a server is ready: its process owns the sockets, *and* a right answer came.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dnslab_wire::Transport;

use crate::descendants;
use crate::ending::ExitReport;
use crate::process::RunningProcess;
use crate::sockets::{self, Owner};

/// Asks one query over a transport and judges the answer; if it is not right, says why in half a sentence.
///
/// It must return within a second or two, answered or not: meanwhile nobody looks whether the server has
/// ended.
pub type Probe<'a> = dyn Fn(Transport, SocketAddr) -> Result<(), String> + 'a;

/// Time between two looks. Servers need 10 ms (NSD) to seconds (large zones) to start.
const PAUSE: Duration = Duration::from_millis(10);

/// How long to wait for a server, and what ends the wait before.
#[derive(Clone, Copy, Debug)]
pub struct Patience<'a> {
    /// So long at most.
    pub timeout: Duration,
    /// Set it to give up.
    pub stop: &'a AtomicBool,
}

/// For those whom nobody interrupts.
static NEVER: AtomicBool = AtomicBool::new(false);

impl From<Duration> for Patience<'static> {
    fn from(timeout: Duration) -> Self {
        Self { timeout, stop: &NEVER }
    }
}

/// Why the wait ended without a ready server.
#[derive(Debug)]
pub(crate) enum NotYet {
    Exited(ExitReport),
    Taken {
        transport: Transport,
        address: SocketAddr,
        owner: Owner,
    },
    /// Nobody wants it any more.
    Interrupted,
    /// The time is over; what was missing, one entry per transport.
    TimedOut(Vec<String>),
}

/// Waits until `process` serves every one of `addresses`.
pub(crate) fn wait(
    process: &RunningProcess,
    addresses: &[(Transport, SocketAddr)],
    probe: &Probe<'_>,
    patience: Patience<'_>,
) -> Result<(), NotYet> {
    let deadline = Instant::now() + patience.timeout;
    // What is known to work is not asked again.
    let mut open: Vec<(Transport, SocketAddr)> = addresses.to_vec();
    loop {
        if let Some(report) = process.exited() {
            return Err(NotYet::Exited(report));
        }
        let own = own_inodes(process.pid());
        let (mut still, mut missing) = (Vec::new(), Vec::new());
        for (transport, address) in open {
            if patience.stop.load(Ordering::Relaxed) {
                return Err(NotYet::Interrupted);
            }
            if let Some(reason) = look(transport, address, &own, process, probe)? {
                missing.push(format!("{transport} at {address}: {reason}"));
                still.push((transport, address));
            }
        }
        if still.is_empty() {
            // A server that died right after its answer is not ready.
            return process.exited().map_or(Ok(()), |report| Err(NotYet::Exited(report)));
        }
        open = still;
        if Instant::now() >= deadline {
            return Err(NotYet::TimedOut(missing));
        }
        thread::sleep(PAUSE);
    }
}

/// What is missing at one address, if anything.
fn look(
    transport: Transport,
    address: SocketAddr,
    own: &HashSet<u64>,
    process: &RunningProcess,
    probe: &Probe<'_>,
) -> Result<Option<String>, NotYet> {
    // The tables are those of the network that the server is in.
    let network = process.pid().to_string();
    let receivers = sockets::receivers(&network, transport, address);
    // A stranger at this very address shares the queries with the server (SO_REUSEPORT) or gets them all. One
    // at the wildcard address gets none once the server is there.
    let (ours, strangers): (Vec<_>, Vec<_>) =
        receivers.iter().partition(|entry| own.contains(&entry.inode));
    if strangers.iter().any(|entry| entry.local == address) {
        let owner = sockets::owner_of(&strangers);
        // The socket may have been opened after our list was made.
        let tree = descendants::tree(process.pid());
        let known = owner.process.as_ref().is_some_and(|(pid, _)| tree.contains(pid));
        let still = sockets::receivers(&network, transport, address).len() >= receivers.len();
        if !known && still {
            return Err(NotYet::Taken { transport, address, owner });
        }
        return Ok(Some("the socket has only just been opened".to_owned()));
    }
    if ours.is_empty() {
        return Ok(Some("no socket yet".to_owned()));
    }
    Ok(probe(transport, address).err().map(|reason| format!("socket open, but {reason}")))
}

/// The sockets of a process and its descendants.
fn own_inodes(pid: u32) -> HashSet<u64> {
    descendants::tree(pid).into_iter().flat_map(sockets::inodes_of).collect()
}
