//! TLS inside QUIC (RFC 9001): rustls as quinn-proto wants it.
//!
//! quinn-proto's own adapter does not tell whether a handshake was resumed and which cipher suite was agreed
//! on. Both stand in every record of a load.

use std::any::Any;
use std::io::Cursor;
use std::sync::Arc;

use quinn_proto::crypto::{
    ClientConfig, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig,
    Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::quic::{Connection, KeyChange, Secrets, Suite, Version};
use rustls::{CipherSuite, HandshakeKind};
use rustls_pki_types::{CertificateDer, ServerName};

use super::error::QuicError;
use crate::group_name;

/// The only version spoken: QUIC version 1 (RFC 9000, section 15).
pub(super) const VERSION: u32 = 1;

/// Client settings for quinn-proto.
pub(super) struct ClientTls {
    config: Arc<rustls::ClientConfig>,
    /// Makes the keys of Initial packets.
    initial: Suite,
}

impl ClientTls {
    /// Fails if the settings lack the cipher suite that QUIC begins with.
    pub(super) fn new(config: Arc<rustls::ClientConfig>) -> Result<Self, QuicError> {
        Ok(Self { initial: initial_suite(config.crypto_provider())?, config })
    }
}

impl ClientConfig for ClientTls {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        check_version(version)?;
        let name = ServerName::try_from(server_name.to_owned())
            .map_err(|_| ConnectError::InvalidServerName(server_name.to_owned()))?;
        let config = Arc::clone(&self.config);
        // It only fails without TLS 1.3; an end point without keys says so.
        let connection =
            rustls::quic::ClientConnection::new(config, Version::V1, name, encode(parameters))
                .map_err(|_| ConnectError::UnsupportedVersion)?;
        Ok(Box::new(TlsSession::new(connection.into(), self.initial)))
    }
}

/// Server settings for quinn-proto.
pub(super) struct ServerTls {
    config: Arc<rustls::ServerConfig>,
    /// Makes the keys of Initial packets.
    initial: Suite,
}

impl ServerTls {
    /// Fails if the settings cannot be used for QUIC: no TLS 1.3, the first cipher suite of QUIC missing, or
    /// a limit of early data other than 0 and 2^32-1 (RFC 9001, section 4.6.1).
    pub(super) fn new(config: Arc<rustls::ServerConfig>) -> Result<Self, QuicError> {
        let initial = initial_suite(config.crypto_provider())?;
        // Later, when a client is there, nobody could be told.
        rustls::quic::ServerConnection::new(Arc::clone(&config), Version::V1, Vec::new())
            .map_err(|error| QuicError::Settings(error.to_string()))?;
        Ok(Self { config, initial })
    }
}

impl ServerConfig for ServerTls {
    fn initial_keys(
        &self,
        version: u32,
        destination: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        check_version(version)?;
        Ok(initial_keys(&self.initial, destination, Side::Server))
    }

    fn retry_tag(&self, _: u32, original: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        retry_tag(original, &[packet])
    }

    fn start_session(
        self: Arc<Self>,
        _: u32,
        parameters: &TransportParameters,
    ) -> Box<dyn Session> {
        let config = Arc::clone(&self.config);
        let connection =
            rustls::quic::ServerConnection::new(config, Version::V1, encode(parameters))
                .expect("these settings made a session when they were taken over");
        Box::new(TlsSession::new(connection.into(), self.initial))
    }
}

/// The outcome of a handshake, as [`Session::handshake_data`] gives it.
#[derive(Clone, Debug)]
pub(super) struct HandshakeFacts {
    pub(super) resumed: bool,
    /// The cipher suite in the words of IANA; empty before it is agreed on.
    pub(super) cipher_suite: String,
    /// The key exchange group; empty before it is agreed on.
    pub(super) group: String,
    /// The peer's certificate and then its issuers; none if it sent none.
    pub(super) certificates: Vec<CertificateDer<'static>>,
}

struct TlsSession {
    connection: Connection,
    /// Makes the keys of Initial packets.
    initial: Suite,
    /// Where the keys after the next key update come from, once there are keys.
    next: Option<Secrets>,
    /// quinn-proto has been told that the client's name or the ALPN protocol is known.
    is_announced: bool,
}

impl TlsSession {
    fn new(connection: Connection, initial: Suite) -> Self {
        Self { connection, initial, next: None, is_announced: false }
    }

    fn side(&self) -> Side {
        match self.connection {
            Connection::Client(_) => Side::Client,
            Connection::Server(_) => Side::Server,
        }
    }
}

impl Session for TlsSession {
    fn initial_keys(&self, destination: &ConnectionId, side: Side) -> Keys {
        initial_keys(&self.initial, destination, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let suite = self.connection.negotiated_cipher_suite();
        let group = self.connection.negotiated_key_exchange_group();
        Some(Box::new(HandshakeFacts {
            resumed: self.connection.handshake_kind() == Some(HandshakeKind::Resumed),
            cipher_suite: suite.map(|suite| format!("{:?}", suite.suite())).unwrap_or_default(),
            group: group.map(|group| group_name(group.name())).unwrap_or_default(),
            certificates: self.connection.peer_certificates().unwrap_or_default().to_vec(),
        }))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.connection.zero_rtt_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        match &self.connection {
            Connection::Client(client) => Some(client.is_early_data_accepted()),
            Connection::Server(_) => None,
        }
    }

    fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    fn read_handshake(&mut self, octets: &[u8]) -> Result<bool, TransportError> {
        self.connection.read_hs(octets).map_err(|error| {
            let violation = TransportErrorCode::PROTOCOL_VIOLATION;
            let alert = self.connection.alert();
            let code = alert.map_or(violation, |alert| TransportErrorCode::crypto(alert.into()));
            TransportError { code, frame: None, reason: error.to_string() }
        })?;
        let is_known = self.connection.alpn_protocol().is_some() || !self.is_handshaking();
        Ok(is_known && !std::mem::replace(&mut self.is_announced, true))
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let octets = self.connection.quic_transport_parameters();
        let read = |octets| TransportParameters::read(self.side(), &mut Cursor::new(octets));
        Ok(octets.map(read).transpose()?)
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        Some(boxed(match self.connection.write_hs(out)? {
            KeyChange::Handshake { keys } => keys,
            KeyChange::OneRtt { keys, next } => {
                self.next = Some(next);
                keys
            }
        }))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.next.as_mut()?.next_packet_keys();
        Some(KeyPair { local: Box::new(keys.local), remote: Box::new(keys.remote) })
    }

    fn is_valid_retry(&self, original: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        payload.split_last_chunk::<16>().is_some_and(|(token, tag)| {
            // Forging one needs no secret, so the time of a comparison tells nothing.
            retry_tag(original, &[header, token]) == *tag
        })
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        let made = self.connection.export_keying_material(output, label, Some(context));
        made.map(|_| ()).map_err(|_| ExportKeyingMaterialError)
    }
}

/// The suite of Initial packets, AES-128-GCM with SHA-256 (RFC 9001, section 5.2).
fn initial_suite(provider: &rustls::crypto::CryptoProvider) -> Result<Suite, QuicError> {
    let of_quic = |suite: &rustls::SupportedCipherSuite| {
        let suite = suite.tls13()?;
        (suite.common.suite == CipherSuite::TLS13_AES_128_GCM_SHA256).then(|| suite.quic_suite())?
    };
    provider.cipher_suites.iter().find_map(of_quic).ok_or_else(|| {
        QuicError::Settings("the cipher suite TLS13_AES_128_GCM_SHA256 is missing".to_owned())
    })
}

/// The keys of Initial packets follow from the client's first destination (RFC 9001, section 5.2).
fn initial_keys(suite: &Suite, destination: &ConnectionId, side: Side) -> Keys {
    boxed(suite.keys(destination, side.into(), Version::V1))
}

fn boxed(keys: rustls::quic::Keys) -> Keys {
    let (local, remote) = (keys.local, keys.remote);
    Keys {
        header: KeyPair { local: Box::new(local.header), remote: Box::new(remote.header) },
        packet: KeyPair { local: Box::new(local.packet), remote: Box::new(remote.packet) },
    }
}

fn check_version(version: u32) -> Result<(), UnsupportedVersion> {
    if version == VERSION { Ok(()) } else { Err(UnsupportedVersion) }
}

/// Transport parameters as octets (RFC 9000, section 18).
fn encode(parameters: &TransportParameters) -> Vec<u8> {
    let mut octets = Vec::new();
    parameters.write(&mut octets);
    octets
}

/// The integrity tag of a Retry packet: AES-128-GCM under a published key, of nothing, with the
/// original destination and the packet as additional data (RFC 9001, section 5.8).
fn retry_tag(original: &ConnectionId, packet: &[&[u8]]) -> [u8; 16] {
    use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
    const KEY: [u8; 16] = 0xbe0c_690b_9f66_575a_1d76_6b54_e368_c84e_u128.to_be_bytes();
    const NONCE: [u8; 12] =
        [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];
    let mut pseudo_packet = vec![original.len() as u8];
    pseudo_packet.extend_from_slice(original);
    packet.iter().for_each(|part| pseudo_packet.extend_from_slice(part));
    let key = UnboundKey::new(&AES_128_GCM, &KEY).expect("the key has the length of AES-128");
    let nonce = Nonce::assume_unique_for_key(NONCE);
    let tag = LessSafeKey::new(key)
        .seal_in_place_separate_tag(nonce, Aad::from(pseudo_packet), &mut [])
        .expect("sealing nothing cannot exceed a limit");
    tag.as_ref().try_into().expect("a tag of AES-GCM has 16 octets")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Retry packet of RFC 9001, appendix A.4.
    #[test]
    fn the_tag_of_the_rfc_comes_out() {
        const TAG: u128 = 0x04a2_65ba_2eff_4d82_9058_fb3f_0f24_96ba;
        let destination = ConnectionId::new(&0x8394_c8f0_3e51_5708_u64.to_be_bytes());
        let packet = b"\xff\0\0\0\x01\0\x08\xf0\x67\xa5\x50\x2a\x42\x62\xb5token";
        assert_eq!(retry_tag(&destination, &[packet]), TAG.to_be_bytes());
    }
}
