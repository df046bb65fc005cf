//! What HTTP/2, DNS over QUIC and HTTP/3 share: where a request goes, and how it ends.

use dnslab_wire::Method;

/// How one request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange<'a> {
    /// The answer to the request with this number.
    Answer {
        /// The number that the request was sent with.
        request: u16,
        /// The DNS message, as it came.
        message: &'a [u8],
    },
    /// The server refused this request alone: an HTTP status other than 200, a stream that was reset, a body
    /// that is no DNS message.
    Refused {
        /// The number that the request was sent with.
        request: u16,
        /// The HTTP status, or 0 where the stream was reset.
        status: u16,
    },
    /// The server did not look at this request and never will; it may be sent again elsewhere (GOAWAY: RFC
    /// 9113, section 6.8; RFC 9114, section 5.2; REFUSED_STREAM: RFC 9113, section 8.7).
    NotProcessed {
        /// The number that the request was sent with.
        request: u16,
    },
}

/// Where HTTP requests go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Host, with the port if it is not 443: what goes into `:authority`.
    pub authority: String,
    /// Path without the variable `dns`, most often `/dns-query`.
    pub path: String,
    /// GET or POST.
    pub method: Method,
}
