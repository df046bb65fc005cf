//! Names in ALPN.

use dnslab_wire::Transport;

/// DNS over TLS (RFC 7858 as registered by IANA).
pub(crate) const DOT: &[u8] = b"dot";
/// HTTP/2 (RFC 9113, section 3.2).
pub(crate) const DOH2: &[u8] = b"h2";
/// DNS over QUIC (RFC 9250, section 4.1).
pub(crate) const DOQ: &[u8] = b"doq";
/// HTTP/3 (RFC 9114, section 3.1).
pub(crate) const DOH3: &[u8] = b"h3";

/// Empty for transports without TLS.
pub(crate) fn for_transport(transport: Transport) -> &'static [u8] {
    match transport {
        Transport::Udp | Transport::Tcp => b"",
        Transport::Dot => DOT,
        Transport::Doh2 => DOH2,
        Transport::Doq => DOQ,
        Transport::Doh3 => DOH3,
    }
}
