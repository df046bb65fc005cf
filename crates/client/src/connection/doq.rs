//! DNS over QUIC (RFC 9250).

use dnslab_transport::quic::QuicClient;

use super::quic::QuicConnection;
use super::{ConnectionEnd, Route};
use crate::runtime::Runtime;
use crate::time::Nanos;
use crate::tls::ClientTls;

/// Begins a connection.
///
/// # Errors
/// When no socket is to be had, or QUIC cannot be spoken with these settings.
pub(super) fn open<R: Runtime>(
    tls: &ClientTls,
    runtime: &mut R,
    route: &Route<'_>,
    now: Nanos,
) -> Result<QuicConnection<R::Datagrams>, ConnectionEnd> {
    QuicConnection::open(tls, runtime, route, now, &QuicClient::doq)
}
