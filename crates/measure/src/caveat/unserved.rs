//! Clients that a server does not serve.

use crate::server_options::{connection_bound, kind};
use crate::{LoadFacts, Measured, ServerFacts, number};

/// From this share of its clients on, a load is the one that was asked for.
const SERVED: f64 = 0.99;

/// Why a load is not the one that was asked for because the server did not serve its clients, as a
/// sentence without its full stop; `None` if it did.
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
pub fn unserved(load: &LoadFacts, server: &ServerFacts, measured: &Measured) -> Option<String> {
    let workers = &measured.workers;
    let clients: u64 = workers.iter().map(|worker| u64::from(worker.clients)).sum();
    let served: Option<u32> = workers.iter().map(|worker| worker.served_clients).sum();
    // A load that ends after so many queries need not wait for all clients.
    let is_short = load.transport == "udp" || load.max_queries.is_some();
    match served.map(u64::from).filter(|_| !is_short) {
        Some(served) if (served as f64) < SERVED * clients as f64 => {
            Some(not_connected(server, measured, served, clients))
        }
        _ => forsaken(measured, clients),
    }
}

/// A sentence on clients that had no connection, or no answer on it.
fn not_connected(server: &ServerFacts, measured: &Measured, served: u64, clients: u64) -> String {
    let failed = measured.warm_up.connections.failed + measured.counters.connections.failed;
    let attempts = match failed {
        0 => String::new(),
        failed => format!(" ({} attempts to connect failed)", number::count(failed)),
    };
    let kind = kind(server);
    // One that dnslab started is configured for as many clients as the load has.
    let remedy = match (server.kind.as_str(), kind) {
        ("external", _) => "raise that, ask with fewer clients, or",
        (_, "unbound") => {
            "dnslab sets that high enough, but Unbound may have a `wait-limit` of 1,000 queries in work for \
             one address: give the clients several by `load.sources`, ask with fewer, or"
        }
        _ => "dnslab sets that high enough: ask with fewer clients, or",
    };
    format!(
        "the server served {} of {} clients; the others had no connection, or no answer on \
         it{attempts}; {}; {remedy} give them a longer `load.warm_up` to connect",
        number::count(served),
        number::count(clients),
        connection_bound(kind),
    )
}

/// Clients that had no answer any more.
fn forsaken(measured: &Measured, clients: u64) -> Option<String> {
    let workers = measured.workers.iter();
    let forsaken: u64 = workers.map(|worker| u64::from(worker.forsaken_clients)).sum();
    let rest = clients.saturating_sub(forsaken);
    (forsaken > 0 && rest as f64 <= SERVED * clients as f64).then(|| {
        format!(
            "the server stopped answering {} of {} clients, while it answered the others: their last queries \
             all timed out. A thread of it may hang, or a path to it may be broken",
            number::count(forsaken),
            number::count(clients),
        )
    })
}
