//! The OPT record of a query (RFC 6891).

use crate::Transport;

// Option codes: RFC 7871, section 6; RFC 7873, section 4; RFC 7828, section 3.1; RFC 7830, section 3; RFC
// 8914, section 2.
pub(crate) const CLIENT_SUBNET: u16 = 8;
pub(crate) const COOKIE: u16 = 10;
pub(crate) const KEEPALIVE: u16 = 11;
pub(crate) const PADDING: u16 = 12;
pub(crate) const EXTENDED_ERROR: u16 = 15;

/// Octets of an OPT record without options (RFC 6891, section 6.1.2).
pub(crate) const OPT_FIXED: usize = 11;

/// Octets of an option before its data: code and length (RFC 6891, section 6.1.2).
pub(crate) const OPTION_HEADER: usize = 4;

/// The OPT record of a query: what is the same for all clients.
///
/// ```
/// let edns = dnslab_wire::Edns { dnssec_ok: true, ..Default::default() };
/// assert_eq!(edns.payload_size, 1232);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edns {
    /// Largest UDP answer that the client takes, octets (RFC 6891, section 6.2.3).
    pub payload_size: u16,
    /// The DO bit (RFC 3225).
    pub dnssec_ok: bool,
    /// Options, sent as they are, in this order, before all others. An option that a client adds as well
    /// (codes 8 and 10) is then in the message twice.
    pub options: Vec<EdnsOption>,
    /// Queries are padded to a multiple of this many octets (RFC 7830; 128 in RFC 8467, section 4.1); 0 and 1
    /// are an empty padding option. Encrypted transports only.
    pub padding: Option<u16>,
    /// An empty edns-tcp-keepalive option asks for the server's idle time-out (RFC 7828, section 3.2.1). TCP
    /// and DoT only.
    pub keepalive: bool,
}

/// One option of an OPT record (RFC 6891, section 6.1.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdnsOption {
    /// Its code (IANA DNS EDNS0 Option Codes).
    pub code: u16,
    /// Its data, at most 65,535 octets.
    pub data: Vec<u8>,
}

impl Default for Edns {
    /// It asks for nothing. The payload size is that of DNS flag day 2020: the largest that no path in use
    /// fragments.
    fn default() -> Self {
        Self {
            payload_size: 1232,
            dnssec_ok: false,
            options: Vec::new(),
            padding: None,
            keepalive: false,
        }
    }
}

impl Edns {
    /// The record as it may be sent over this transport. Padding hides nothing without encryption, so it is
    /// left out (RFC 7830, section 6). Keep-alive is for TCP and DoT: UDP must not have it (RFC 7828, section
    /// 3.2.1), nor DoQ (RFC 9250, section 5.5.2), and HTTP has a connection life of its own.
    #[must_use]
    pub fn for_transport(mut self, transport: Transport) -> Self {
        if !transport.is_encrypted() {
            self.padding = None;
        }
        self.keepalive &= matches!(transport, Transport::Tcp | Transport::Dot);
        self
    }
}

/// An OPT record of version 0 without options (RFC 6891, section 6.1.2). The upper bits of the response code are in it
/// (section 6.1.3); a query has 0 there.
#[inline]
pub(crate) fn opt_record(payload_size: u16, rcode: u16, dnssec_ok: bool) -> [u8; OPT_FIXED] {
    let [high, low] = payload_size.to_be_bytes();
    let flags = if dnssec_ok { 0x80 } else { 0 };
    [0, 0, 41, high, low, (rcode >> 4) as u8, 0, flags, 0, 0, 0]
}

#[inline]
pub(crate) fn option_header(code: u16, length: u16) -> [u8; OPTION_HEADER] {
    let ([a, b], [c, d]) = (code.to_be_bytes(), length.to_be_bytes());
    [a, b, c, d]
}

#[inline]
pub(crate) fn push_option_header(out: &mut Vec<u8>, code: u16, length: u16) {
    out.extend_from_slice(&option_header(code, length));
}

/// Octets of padding that bring a message of `length` octets, with the padding option, to a multiple of
/// `block`.
#[inline]
pub(crate) fn padding_length(length: usize, block: u16) -> usize {
    let length = length + OPTION_HEADER;
    length.next_multiple_of(usize::from(block.max(1))) - length
}
