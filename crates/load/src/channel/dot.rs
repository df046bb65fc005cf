//! DNS over TLS (RFC 7858): the TLS layer of a stream, as a state machine without a socket.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use dnslab_measure::Tls as Agreed;
use dnslab_wire::Frames;
use rustls::client::Resumption;
use rustls::{ClientConfig, ClientConnection, HandshakeKind};
use rustls_pki_types::ServerName;

use super::stream::Layer;
use super::{ChannelEnd, Handshake};
use crate::clock::Nanos;
use crate::{Records, TlsSettings};

/// TLS of one simulated client: its own tickets, as a real client has.
pub(crate) struct ClientTls {
    config: Arc<ClientConfig>,
    server_name: ServerName<'static>,
    verified: bool,
    records: Records,
}

impl ClientTls {
    /// Settings of one client; what is agreed on is shared with `settings`, tickets are not.
    pub(crate) fn new(settings: &TlsSettings) -> Self {
        let mut config = settings.config.clone();
        config.resumption = Resumption::in_memory_sessions(1);
        Self {
            config: Arc::new(config),
            server_name: settings.server_name.clone(),
            verified: settings.verified,
            records: settings.records,
        }
    }

    /// A new connection's layer.
    pub(crate) fn layer(&self) -> Result<TlsLayer, ChannelEnd> {
        let name = self.server_name.clone();
        let connection = ClientConnection::new(Arc::clone(&self.config), name)?;
        let connection = Box::new(connection);
        Ok(TlsLayer { connection, verified: self.verified, records: self.records })
    }
}

/// A TLS connection between messages and a stream.
pub(crate) struct TlsLayer {
    connection: Box<ClientConnection>,
    verified: bool,
    records: Records,
}

impl TlsLayer {
    /// Appends the octets of the records that carry `plain`, which are as few as can be.
    fn seal_together(&mut self, plain: &[u8], write: &mut Vec<u8>) -> Result<(), ChannelEnd> {
        let mut rest = plain;
        while !rest.is_empty() {
            let taken = self.connection.writer().write(rest).map_err(ChannelEnd::Broken)?;
            rest = &rest[taken..];
            self.pour(write);
        }
        Ok(())
    }

    fn pour(&mut self, write: &mut Vec<u8>) {
        while self.connection.wants_write() {
            self.connection.write_tls(write).expect("writing to memory does not fail");
        }
    }
}

impl Layer for TlsLayer {
    fn begin(&mut self, write: &mut Vec<u8>) -> Result<(), ChannelEnd> {
        self.pour(write);
        Ok(())
    }

    fn is_ready(&self) -> bool {
        !self.connection.is_handshaking()
    }

    fn seal(&mut self, plain: &[u8], write: &mut Vec<u8>) -> Result<(), ChannelEnd> {
        if self.records == Records::PerBatch {
            return self.seal_together(plain, write);
        }
        let mut rest = plain;
        let mut frames = Frames::new(plain);
        while frames.next().is_some() {
            let (frame, after) = rest.split_at(rest.len() - frames.rest().len());
            self.seal_together(frame, write)?;
            rest = after;
        }
        Ok(())
    }

    fn send_path(&self) -> &'static str {
        match self.records {
            Records::PerBatch => "one TLS record and one write per batch; a connection per client",
            Records::PerQuery => {
                "one TLS record per query, one write per batch; a connection per client"
            }
        }
    }

    fn open(
        &mut self,
        read: &[u8],
        plain: &mut Vec<u8>,
        write: &mut Vec<u8>,
    ) -> Result<(), ChannelEnd> {
        let mut rest = read;
        while !rest.is_empty() {
            self.connection.read_tls(&mut rest).map_err(ChannelEnd::Broken)?;
            let state = self.connection.process_new_packets();
            self.pour(write);
            let state = state?;
            let start = plain.len();
            plain.resize(start + state.plaintext_bytes_to_read(), 0);
            self.connection.reader().read_exact(&mut plain[start..]).map_err(ChannelEnd::Broken)?;
            if state.peer_has_closed() {
                return Err(ChannelEnd::Closed);
            }
        }
        Ok(())
    }

    fn handshake(&self, duration: Nanos) -> Option<Handshake> {
        let connection = &self.connection;
        let version = match connection.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_2) => "TLSv1.2",
            Some(rustls::ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => "unknown",
        };
        let suite = connection.negotiated_cipher_suite();
        let cipher_suite = suite.map(|suite| format!("{:?}", suite.suite())).unwrap_or_default();
        Some(Handshake {
            duration,
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            agreed: Agreed { version: version.to_owned(), cipher_suite, verified: self.verified },
        })
    }
}
