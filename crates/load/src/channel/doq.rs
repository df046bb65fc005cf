//! DNS over QUIC (RFC 9250).

use dnslab_transport::quic::QuicClient;

use super::quic::QuicChannel;
use super::{ChannelEnd, Route};
use crate::clock::Nanos;
use crate::tls::ClientTls;

/// Begins a connection.
///
/// # Errors
/// When no socket is to be had, or QUIC cannot be spoken with these settings.
pub(super) fn open(
    tls: &ClientTls,
    route: &Route<'_>,
    now: Nanos,
) -> Result<QuicChannel, ChannelEnd> {
    QuicChannel::open(tls, route, now, &QuicClient::doq)
}
