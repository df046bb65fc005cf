//! DNS over HTTPS (RFC 8484) on HTTP/3 (RFC 9114).

use std::sync::Arc;

use dnslab_transport::Target;
use dnslab_transport::quic::QuicClient;

use super::doh2::authority;
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
    let target = Arc::new(Target {
        authority: authority(tls.server_name(), route.path.target.port()),
        path: route.http.path.clone(),
        method: route.http.method,
    });
    QuicConnection::open(tls, runtime, route, now, &|settings, server, name, now| {
        QuicClient::http3(settings, server, name, Arc::clone(&target), now)
    })
}
