//! DNS over QUIC (RFC 9250).

use dnslab_transport::quic::QuicClient;

use super::quic::QuicChannel;
use super::{ChannelEnd, Route};
use crate::clock::Nanos;
use crate::runtime::Runtime;
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
) -> Result<QuicChannel<R::Datagrams>, ChannelEnd> {
    QuicChannel::open(tls, runtime, route, now, &QuicClient::doq)
}
