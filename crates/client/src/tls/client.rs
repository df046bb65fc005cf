//! TLS of the simulated clients of one worker.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use dnslab_settings::Records;
use dnslab_transport::quic::{QuicClientSettings, QuicError};
use dnslab_wire::Transport;
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls_pki_types::ServerName;

use super::tickets::TicketStore;
use super::{TlsSettings, alpn};

/// What all clients of one worker share: settings, and a store that keeps the tickets of each client apart.
/// Settings for each client would take kilobytes for a client that is not even connected.
pub struct ClientTls {
    settings: TlsSettings,
    config: Arc<ClientConfig>,
    alpn: &'static [u8],
    tickets: Arc<TicketStore>,
    /// Longest silence on a connection over QUIC, as the client announces it.
    idle_timeout: Option<Duration>,
    quic: OnceCell<QuicClientSettings>,
}

impl ClientTls {
    /// For clients that speak this transport.
    #[must_use]
    pub fn new(settings: &TlsSettings, transport: Transport) -> Self {
        let tickets = Arc::new(TicketStore::default());
        let alpn = alpn::for_transport(transport);
        let store = Resumption::store(Arc::clone(&tickets) as _);
        let config = Arc::new(settings.config(alpn, store));
        let settings = settings.clone();
        Self { settings, config, alpn, tickets, idle_timeout: None, quic: OnceCell::new() }
    }

    /// Clients that close a silent connection over QUIC after this time, and say so (RFC 9000, section 10.1). `None`
    /// leaves that to the server.
    pub(crate) fn with_idle_timeout(self, idle_timeout: Option<Duration>) -> Self {
        Self { idle_timeout, ..self }
    }

    /// Selects the client whose tickets are taken from and put into the store. To be called before a
    /// connection is opened and before octets are handed to it.
    pub(crate) fn enter(&self, client: u32) {
        self.tickets.enter(client);
    }

    /// The settings with this name in ALPN. Those of the transport itself are shared.
    pub(crate) fn client_config(&self, alpn: &[u8]) -> Arc<ClientConfig> {
        if alpn == self.alpn {
            return Arc::clone(&self.config);
        }
        let store = Resumption::store(Arc::clone(&self.tickets) as _);
        Arc::new(self.settings.config(alpn, store))
    }

    /// The settings of the transport over QUIC, made once.
    ///
    /// # Errors
    /// When TLS cannot be used for QUIC with its settings.
    pub(crate) fn quic_settings(&self) -> Result<&QuicClientSettings, QuicError> {
        if self.quic.get().is_none() {
            let settings = QuicClientSettings::new(Arc::clone(&self.config))?;
            let settings = settings.with_idle_timeout(self.idle_timeout);
            // A client that keeps no tickets keeps nothing of a connection.
            let settings = match self.settings.resumption() {
                true => settings.with_tokens(Arc::clone(&self.tickets) as _),
                false => settings,
            };
            return Ok(self.quic.get_or_init(|| settings));
        }
        Ok(self.quic.get().expect("it was found filled"))
    }

    pub(super) fn alpn(&self) -> &'static [u8] {
        self.alpn
    }

    /// For connections that select their client themselves.
    pub(crate) fn tickets(&self) -> &Arc<TicketStore> {
        &self.tickets
    }

    pub(crate) fn server_name(&self) -> &ServerName<'static> {
        &self.settings.server_name
    }

    pub(crate) fn is_verified(&self) -> bool {
        self.settings.trusted().is_some()
    }

    pub(crate) fn records(&self) -> Records {
        self.settings.records()
    }
}
