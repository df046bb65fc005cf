//! DNS over HTTPS (RFC 8484) on HTTP/2 (RFC 9113) over TLS.

use std::borrow::Cow;

use dnslab_transport::Target;
use dnslab_transport::http2::{Client, Http2Error};
use dnslab_wire::MessageBatch;
use rustls_pki_types::ServerName;

use super::stream::{BATCH, Layer};
use super::{ConnectionEnd, Delivery, Handshake, Route};
use crate::time::Nanos;
use crate::tls::{ClientTls, TlsSession, alpn};

/// HTTP/2 over a new connection of a client.
///
/// # Errors
/// When TLS or HTTP refuses its settings.
pub(super) fn layer(tls: &ClientTls, route: &Route<'_>) -> Result<Doh2, ConnectionEnd> {
    let target = Target {
        authority: authority(tls.server_name(), route.path.target.port()),
        path: route.http.path.clone(),
        method: route.http.method,
    };
    let http = Client::new(&target).map_err(|error| ConnectionEnd::Protocol(error.to_string()))?;
    Ok(Doh2 { session: TlsSession::new(tls, route.client)?, http })
}

/// The authority of requests (RFC 9110, section 7.2): the name in the server's certificate, with the port if
/// it is not that of HTTPS.
pub(super) fn authority(name: &ServerName<'_>, port: u16) -> String {
    let host = match name {
        ServerName::IpAddress(rustls_pki_types::IpAddr::V6(_)) => {
            Cow::Owned(format!("[{}]", name.to_str()))
        }
        _ => name.to_str(),
    };
    if port == 443 { host.into_owned() } else { format!("{host}:{port}") }
}

/// HTTP/2 over TLS. The frames of a batch share records, whatever [`crate::Records`] says for DNS over TLS. A
/// query is at least two frames, and HTTP clients write those that are ready together.
pub(crate) struct Doh2 {
    session: TlsSession,
    http: Client,
}

impl Doh2 {
    /// Appends what HTTP/2 has to say, sealed, to `write`.
    fn flush(&mut self, plain: &mut Vec<u8>, write: &mut Vec<u8>) -> Result<(), ConnectionEnd> {
        let flushed = self.http.flush(plain);
        self.session.write(plain, write)?;
        flushed.map_err(end)
    }
}

fn end(error: Http2Error) -> ConnectionEnd {
    match error {
        Http2Error::Closed => ConnectionEnd::Closed,
        other => ConnectionEnd::Protocol(other.to_string()),
    }
}

impl Layer for Doh2 {
    fn send_path(&self) -> &'static str {
        "HTTP/2, one write per batch, as few TLS records as can be; a connection per client"
    }

    fn begin(&mut self, write: &mut Vec<u8>) {
        self.session.begin(write);
    }

    fn is_established(&self) -> bool {
        self.session.is_established()
    }

    fn may_send(&self) -> bool {
        self.session.may_write()
    }

    fn is_draining(&self) -> bool {
        self.http.is_draining()
    }

    fn announced(&self) -> Option<String> {
        self.http.announced().map(ToString::to_string)
    }

    fn batch_limit(&self) -> usize {
        self.http.room().clamp(1, BATCH)
    }

    fn seal(
        &mut self,
        outbox: &MessageBatch,
        plain: &mut Vec<u8>,
        write: &mut Vec<u8>,
    ) -> Result<usize, ConnectionEnd> {
        let mut taken = 0;
        for message in outbox.messages() {
            let id = u16::from_be_bytes([message[0], message[1]]);
            if !self.http.send(id, message) {
                break;
            }
            taken += 1;
        }
        self.flush(plain, write)?;
        Ok(taken)
    }

    fn open(
        &mut self,
        read: &[u8],
        at: Nanos,
        plain: &mut Vec<u8>,
        write: &mut Vec<u8>,
        deliver: &mut dyn FnMut(Delivery<'_>),
    ) -> Result<(), ConnectionEnd> {
        let opened = self.session.read(read, plain, write);
        if self.session.is_established() && !self.session.agreed_on(alpn::DOH2) {
            opened?;
            let text = "the server does not speak HTTP/2 here: it chose no `h2` in ALPN";
            return Err(ConnectionEnd::Protocol(text.to_owned()));
        }
        self.http.receive(plain);
        plain.clear();
        if !self.session.may_write() {
            return opened;
        }
        let polled = self.http.poll(plain, &mut |exchange| {
            deliver(Delivery::of(exchange, at));
        });
        opened?;
        self.session.write(plain, write)?;
        polled.map_err(end)
    }

    fn forget(&mut self, id: u16) {
        self.http.cancel(id);
    }

    fn close(&mut self, plain: &mut Vec<u8>, write: &mut Vec<u8>) {
        if self.session.is_established() {
            self.http.close(plain);
            // A session that is over says nothing more.
            self.session.write(plain, write).ok();
        }
        self.session.close(write);
    }

    fn handshake(&self, duration: Nanos) -> Option<Handshake> {
        Some(self.session.handshake(duration))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, port: u16, expected: &str) {
        assert_eq!(authority(&ServerName::try_from(name).unwrap(), port), expected);
    }

    #[test]
    fn the_authority_is_the_name_in_the_certificate() {
        check("ns.example", 443, "ns.example");
        check("ns.example", 8443, "ns.example:8443");
        check("192.0.2.1", 8443, "192.0.2.1:8443");
        check("2001:db8::1", 443, "[2001:db8::1]");
    }
}
