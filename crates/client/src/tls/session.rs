//! One TLS connection, as a state machine without a socket.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use dnslab_figures::Tls as Agreed;
use dnslab_transport::group_name;
use rustls::{ClientConnection, HandshakeKind as Kind};

use super::certificate;
use super::client::ClientTls;
use super::tickets::TicketStore;
use crate::connection::{ConnectionEnd, Handshake, HandshakeKind};
use crate::time::Nanos;

/// A TLS connection of one client: octets in the clear on one side, records on the other.
pub(crate) struct TlsSession {
    connection: Box<ClientConnection>,
    tickets: Arc<TicketStore>,
    client: u32,
    verified: bool,
    /// What was sent before the handshake ended. `None` after it, or if no ticket allows early data.
    early: Option<Box<Early>>,
    early_accepted: bool,
}

/// Early data (RFC 8446, section 2.3), kept until the server has said whether it accepts it.
#[derive(Default)]
struct Early {
    octets: Vec<u8>,
    /// How many octets went out. The rest was too much for the ticket and waits.
    sent: usize,
}

impl TlsSession {
    /// A new connection of a client, which has not begun.
    ///
    /// # Errors
    /// When TLS refuses its settings.
    pub(crate) fn new(tls: &ClientTls, client: u32) -> Result<Self, rustls::Error> {
        tls.enter(client);
        let name = tls.server_name().clone();
        let config = tls.client_config(tls.alpn());
        let mut connection = Box::new(ClientConnection::new(config, name)?);
        let early = connection.early_data().map(|_| Box::default());
        Ok(Self {
            connection,
            tickets: Arc::clone(tls.tickets()),
            client,
            verified: tls.is_verified(),
            early,
            early_accepted: false,
        })
    }

    /// Appends what must go out first.
    pub(crate) fn begin(&mut self, write: &mut Vec<u8>) {
        self.pour(write);
    }

    pub(crate) fn is_established(&self) -> bool {
        !self.connection.is_handshaking()
    }

    pub(crate) fn agreed_on(&self, alpn: &[u8]) -> bool {
        self.connection.alpn_protocol() == Some(alpn)
    }

    /// Octets in the clear may be written: the handshake has ended, or early data has room.
    pub(crate) fn may_write(&self) -> bool {
        match &self.early {
            Some(early) => early.sent == early.octets.len(),
            None => self.is_established(),
        }
    }

    /// Appends the records that carry `plain`, as few as possible, to `write`.
    ///
    /// # Errors
    /// When the connection is at its end.
    pub(crate) fn write(&mut self, plain: &[u8], write: &mut Vec<u8>) -> Result<(), ConnectionEnd> {
        if let Some(early) = &mut self.early {
            early.octets.extend_from_slice(plain);
            if let Some(mut writer) = self.connection.early_data() {
                let unsent = &early.octets[early.sent..];
                early.sent += writer.write(unsent).map_err(ConnectionEnd::Broken)?;
            }
            self.pour(write);
            return Ok(());
        }
        let mut rest = plain;
        while !rest.is_empty() {
            let taken = self.connection.writer().write(rest).map_err(ConnectionEnd::Broken)?;
            rest = &rest[taken..];
            self.pour(write);
        }
        Ok(())
    }

    /// Appends what the records in `read` carry to `plain`, and what must go out in return to `write`.
    ///
    /// # Errors
    /// When the connection is at its end; `plain` and `write` then hold what came before it.
    pub(crate) fn read(
        &mut self,
        read: &[u8],
        plain: &mut Vec<u8>,
        write: &mut Vec<u8>,
    ) -> Result<(), ConnectionEnd> {
        self.tickets.enter(self.client);
        let mut rest = read;
        while !rest.is_empty() {
            self.connection.read_tls(&mut rest).map_err(ConnectionEnd::Broken)?;
            let state = self.connection.process_new_packets();
            self.pour(write);
            let state = state?;
            let start = plain.len();
            plain.resize(start + state.plaintext_bytes_to_read(), 0);
            self.connection
                .reader()
                .read_exact(&mut plain[start..])
                .map_err(ConnectionEnd::Broken)?;
            if state.peer_has_closed() {
                return Err(ConnectionEnd::Closed);
            }
            if self.early.is_some() && self.is_established() {
                self.settle_early_data(write)?;
            }
        }
        Ok(())
    }

    /// Appends the alert that says good-bye (RFC 8446, section 6.1).
    pub(crate) fn close(&mut self, write: &mut Vec<u8>) {
        self.connection.send_close_notify();
        self.pour(write);
    }

    /// The handshake that ended after `duration`.
    pub(crate) fn handshake(&self, duration: Nanos) -> Handshake {
        let connection = &self.connection;
        let version = match connection.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_2) => "TLSv1.2",
            Some(rustls::ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => "unknown",
        };
        let suite = connection.negotiated_cipher_suite();
        let cipher_suite = suite.map(|suite| format!("{:?}", suite.suite())).unwrap_or_default();
        let kind = match connection.handshake_kind() {
            _ if self.early_accepted => HandshakeKind::EarlyData,
            Some(Kind::Resumed) => HandshakeKind::Resumed,
            _ => HandshakeKind::Full,
        };
        let group = connection.negotiated_key_exchange_group();
        let agreed = Agreed {
            version: version.to_owned(),
            cipher_suite,
            verified: self.verified,
            group: group.map(|group| group_name(group.name())).unwrap_or_default(),
            certificate: connection.peer_certificates().and_then(certificate::facts),
        };
        Handshake { duration, kind, agreed }
    }

    /// At the end of the handshake, sends again what the server did not accept and what was too much before.
    fn settle_early_data(&mut self, write: &mut Vec<u8>) -> Result<(), ConnectionEnd> {
        let Some(early) = self.early.take() else { return Ok(()) };
        let accepted = self.connection.is_early_data_accepted();
        self.early_accepted = accepted && early.sent > 0;
        let from = if accepted { early.sent } else { 0 };
        self.write(&early.octets[from..], write)
    }

    fn pour(&mut self, write: &mut Vec<u8>) {
        while self.connection.wants_write() {
            self.connection.write_tls(write).expect("writing to memory does not fail");
        }
    }
}
