//! Clients that a server does not serve.

use dnslab_record::{InvalidReason, Observation};
use dnslab_wire::Transport;

/// From this share of its clients on, a load is the one that was asked for.
const SERVED: f64 = 0.99;

/// Why a load is not the one that was asked for because the server did not serve its clients; `None` if it
/// did.
///
/// For loads whose clients keep their connections: fewer than 99 % of them were connected when the
/// measured window ended, and had an answer if they had asked. A server that accepts no more
/// connections leaves them in the queue of its listening socket, where the kernel has connected them;
/// so a connection alone says nothing. Records without that figure have no such reason.
///
/// For all loads: 1 % of the clients had no answer any more, although others had. One thread of a server
/// that hangs loses few queries of a closed loop, whose places wait; but the load becomes that of fewer
/// clients.
#[must_use]
pub fn unserved(run: &Observation<'_>) -> Option<InvalidReason> {
    let Observation { load, server, measured, .. } = *run;
    let workers = &measured.workers;
    let clients: u64 = workers.iter().map(|worker| u64::from(worker.clients)).sum();
    let served: Option<u32> = workers.iter().map(|worker| worker.served_clients).sum();
    // A load that ends after so many queries need not wait for all clients.
    let is_short = load.transport == Some(Transport::Udp) || load.max_queries.is_some();
    if let Some(served) = served.map(u64::from).filter(|_| !is_short)
        && (served as f64) < SERVED * clients as f64
    {
        let failed = measured.warm_up.connections.failed + measured.counters.connections.failed;
        return Some(InvalidReason::Unserved {
            served,
            clients,
            failed_attempts: failed,
            program: server.program().to_owned(),
            is_started: !server.is_external(),
        });
    }
    let forsaken = workers.iter().map(|worker| u64::from(worker.forsaken_clients)).sum();
    let rest = clients.saturating_sub(forsaken);
    (forsaken > 0 && rest as f64 <= SERVED * clients as f64)
        .then_some(InvalidReason::Forsaken { forsaken, clients })
}
