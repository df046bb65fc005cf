//! Session tickets, each client's apart.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls_pki_types::ServerName;

/// The tickets of a worker's clients. `rustls` asks for them by the server's name, which is the
/// same for all; whose they are is said by [`TicketStore::enter`] before.
///
/// A client without tickets takes no memory. What a server's preference for a key exchange group
/// was is not kept: each handshake offers what the first one did.
#[derive(Debug, Default)]
pub(crate) struct TicketStore {
    current: AtomicU32,
    /// Locked by one thread alone, so never waited for: `rustls` wants a store that could be shared.
    clients: Mutex<HashMap<u32, Box<Tickets>>>,
}

/// The tickets of one client.
#[derive(Debug, Default)]
struct Tickets {
    /// Of TLS 1.2: the latest, to be used as often as it is accepted (RFC 5077).
    v12: Option<Tls12ClientSessionValue>,
    /// Of TLS 1.3: the latest two, to be used once each (RFC 8446, appendix C.4). Two, because a
    /// client may open its next connection before its last one has brought a new ticket.
    v13: [Option<Tls13ClientSessionValue>; 2],
}

impl TicketStore {
    /// From here on, tickets are those of this client.
    pub(crate) fn enter(&self, client: u32) {
        self.current.store(client, Ordering::Relaxed);
    }

    /// Clients that have tickets.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.clients().len()
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<u32, Box<Tickets>>> {
        // Nothing that could panic is done under the lock.
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the tickets of the current client.
    fn change<T>(&self, change: impl FnOnce(&mut Tickets) -> T) -> T {
        let client = self.current.load(Ordering::Relaxed);
        change(self.clients().entry(client).or_default())
    }

    /// Takes something from the tickets of the current client, if it has any.
    fn take<T>(&self, take: impl FnOnce(&mut Tickets) -> Option<T>) -> Option<T> {
        let client = self.current.load(Ordering::Relaxed);
        let mut clients = self.clients();
        let tickets = clients.get_mut(&client)?;
        let taken = take(tickets);
        if tickets.v12.is_none() && tickets.v13.iter().all(Option::is_none) {
            clients.remove(&client);
        }
        taken
    }
}

impl ClientSessionStore for TicketStore {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.change(|tickets| tickets.v12 = Some(value));
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.take(|tickets| tickets.v12.clone())
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.take(|tickets| tickets.v12.take());
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.change(|Tickets { v13: [latest, before], .. }| *before = latest.replace(value));
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.take(|Tickets { v13: [latest, before], .. }| {
            let taken = latest.take();
            *latest = before.take();
            taken
        })
    }
}
