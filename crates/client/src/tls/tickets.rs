//! What a client keeps of its connections for the next one, apart for each client: session tickets, and over
//! QUIC tokens.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dnslab_transport::quic::AddressTokens;
use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls_pki_types::ServerName;

/// The tickets of a worker's clients. `rustls` asks for them by the server's name, which is the same for all.
/// [`TicketStore::enter`] says before whose they are.
///
/// A client without tickets takes no memory. The server's preference for a key exchange group is not kept:
/// each handshake offers what the first one did.
#[derive(Debug, Default)]
pub(crate) struct TicketStore {
    current: AtomicU32,
    /// Used by one thread alone, so never waited for. `rustls` wants a store that could be shared.
    clients: Mutex<HashMap<u32, Box<Tickets>>>,
    /// A handshake with a token of the server succeeded. Later failures have another reason.
    has_good_tokens: AtomicBool,
    /// The first handshake with a token of the server failed. No client uses tokens any more.
    has_bad_tokens: AtomicBool,
}

#[derive(Debug, Default)]
struct Tickets {
    /// Of TLS 1.2: the latest, to be used as often as it is accepted (RFC 5077).
    v12: Option<Tls12ClientSessionValue>,
    /// Of TLS 1.3: the latest two, to be used once each (RFC 8446, appendix C.4). Two, because a client may
    /// open its next connection before its last one has brought a new ticket.
    v13: [Option<Tls13ClientSessionValue>; 2],
    /// Of QUIC: the latest token, to be used once (RFC 9000, section 8.1.3).
    token: Option<Vec<u8>>,
}

impl Tickets {
    fn is_empty(&self) -> bool {
        self.v12.is_none() && self.token.is_none() && self.v13.iter().all(Option::is_none)
    }
}

impl TicketStore {
    /// Selects the client whose tickets are used from here on.
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

    fn change<T>(&self, change: impl FnOnce(&mut Tickets) -> T) -> T {
        let client = self.current.load(Ordering::Relaxed);
        change(self.clients().entry(client).or_default())
    }

    fn take<T>(&self, take: impl FnOnce(&mut Tickets) -> Option<T>) -> Option<T> {
        let client = self.current.load(Ordering::Relaxed);
        let mut clients = self.clients();
        let tickets = clients.get_mut(&client)?;
        let taken = take(tickets);
        if tickets.is_empty() {
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

impl AddressTokens for TicketStore {
    fn keep(&self, token: Vec<u8>) {
        if !self.has_bad_tokens.load(Ordering::Relaxed) {
            self.change(|tickets| tickets.token = Some(token));
        }
    }

    fn take(&self) -> Option<Vec<u8>> {
        let is_usable = !self.has_bad_tokens.load(Ordering::Relaxed);
        TicketStore::take(self, |tickets| tickets.token.take()).filter(|_| is_usable)
    }

    fn confirm(&self) {
        self.has_good_tokens.store(true, Ordering::Relaxed);
    }

    fn refuse(&self) {
        let is_bad = !self.has_good_tokens.load(Ordering::Relaxed);
        self.has_bad_tokens.store(is_bad, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_its_clients_and_used_once() {
        let store = TicketStore::default();
        store.enter(1);
        store.keep(b"first".to_vec());
        store.keep(b"of one".to_vec());
        store.enter(2);
        assert_eq!(AddressTokens::take(&store), None);
        store.keep(b"of two".to_vec());
        store.enter(1);
        assert_eq!(AddressTokens::take(&store), Some(b"of one".to_vec()));
        assert_eq!(AddressTokens::take(&store), None);
        assert_eq!(store.len(), 1);
        // After one failure no token is used or kept any more.
        store.refuse();
        store.keep(b"later".to_vec());
        store.enter(2);
        assert_eq!((AddressTokens::take(&store), store.len()), (None, 0));
    }

    #[test]
    fn a_server_whose_tokens_are_good_may_fail_for_another_reason() {
        let store = TicketStore::default();
        store.confirm();
        store.refuse();
        store.keep(b"later".to_vec());
        assert_eq!(AddressTokens::take(&store), Some(b"later".to_vec()));
    }
}
