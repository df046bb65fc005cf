//! Looks at the first message of a TLS client of DNS over HTTPS before it is answered.

use std::io::Write;
use std::sync::Arc;

use rustls::server::Acceptor;
use rustls::{ServerConfig, ServerConnection};

/// A client whose first message is not whole yet.
pub(super) struct Hello {
    acceptor: Acceptor,
    config: Arc<ServerConfig>,
}

/// The fatal alert `no_application_protocol` as a record without encryption (RFC 8446, section 5.1; RFC 7301,
/// section 3.2).
const NO_APPLICATION_PROTOCOL: [u8; 7] = [21, 3, 3, 0, 2, 2, 120];

/// The client was told why, if it is still there.
pub(super) struct Refused;

impl Hello {
    pub(super) fn new(config: Arc<ServerConfig>) -> Self {
        Self { acceptor: Acceptor::default(), config }
    }

    /// Takes octets; returns the session when the message is whole. A client that names no protocol is
    /// refused: HTTP/2 over TLS must be chosen by ALPN (RFC 9113, section 3.3), and rustls refuses only
    /// clients that name others.
    pub(super) fn receive(
        &mut self,
        octets: &mut &[u8],
        socket: &mut impl Write,
    ) -> Result<Option<Box<ServerConnection>>, Refused> {
        if self.acceptor.read_tls(octets).is_err() {
            return Err(Refused);
        }
        // If an alert cannot be written, nobody is left to read it.
        match self.acceptor.accept() {
            Ok(None) => Ok(None),
            Ok(Some(accepted)) => {
                if accepted.client_hello().alpn().is_none() {
                    let _ = socket.write_all(&NO_APPLICATION_PROTOCOL);
                    return Err(Refused);
                }
                match accepted.into_connection(Arc::clone(&self.config)) {
                    Ok(tls) => Ok(Some(Box::new(tls))),
                    Err((_, mut alert)) => {
                        let _ = alert.write_all(socket);
                        Err(Refused)
                    }
                }
            }
            Err((_, mut alert)) => {
                let _ = alert.write_all(socket);
                Err(Refused)
            }
        }
    }
}
