//! DNS over TLS (RFC 7858): TLS below the length prefixes.

use dnslab_wire::Frames;

use super::tcp::{Below, Framed};
use super::{ConnectionEnd, Handshake};
use crate::time::Nanos;
use crate::tls::{ClientTls, TlsSession};
use dnslab_settings::Records;

/// Length prefixes over a new connection of a client.
///
/// # Errors
/// When TLS refuses its settings.
pub(super) fn layer(tls: &ClientTls, client: u32) -> Result<Framed<Dot>, ConnectionEnd> {
    Ok(Framed::over(Dot { session: TlsSession::new(tls, client)?, records: tls.records() }))
}

pub(crate) struct Dot {
    session: TlsSession,
    records: Records,
}

impl Below for Dot {
    const IS_NOTHING: bool = false;

    fn send_path(&self) -> &'static str {
        match self.records {
            Records::Shared => "one TLS record and one write per batch; a connection per client",
            Records::PerQuery => {
                "one TLS record per query, one write per batch; a connection per client"
            }
        }
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

    fn seal(&mut self, plain: &[u8], write: &mut Vec<u8>) -> Result<(), ConnectionEnd> {
        if self.records == Records::Shared {
            return self.session.write(plain, write);
        }
        let mut rest = plain;
        let mut frames = Frames::new(plain);
        while frames.next().is_some() {
            let (frame, after) = rest.split_at(rest.len() - frames.rest().len());
            self.session.write(frame, write)?;
            rest = after;
        }
        Ok(())
    }

    fn open(
        &mut self,
        read: &[u8],
        plain: &mut Vec<u8>,
        write: &mut Vec<u8>,
    ) -> Result<(), ConnectionEnd> {
        self.session.read(read, plain, write)
    }

    fn close(&mut self, write: &mut Vec<u8>) {
        self.session.close(write);
    }

    fn handshake(&self, duration: Nanos) -> Option<Handshake> {
        Some(self.session.handshake(duration))
    }
}
