//! The words that all carriers share: what a request is sent to, and what came of it.

use std::fmt;
use std::str::FromStr;

/// What came of one request, or what a server makes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange<'a> {
    /// The answer to the request with this number.
    Answer {
        /// The number that the request was sent with.
        request: u16,
        /// The DNS message, as it came.
        message: &'a [u8],
    },
    /// The server refused this request alone: an HTTP status other than 200, a stream that was
    /// reset, a body that is no DNS message.
    Refused {
        /// The number that the request was sent with.
        request: u16,
        /// The HTTP status, or 0 where the stream was reset.
        status: u16,
    },
    /// The server did not look at this request and never will (GOAWAY: RFC 9113, section 6.8; RFC
    /// 9114, section 5.2; REFUSED_STREAM: RFC 9113, section 8.7): it may be sent again elsewhere.
    NotProcessed {
        /// The number that the request was sent with.
        request: u16,
    },
}

/// How a DNS message becomes an HTTP request (RFC 8484, section 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Method {
    /// The message is the variable `dns` of the URI, in base64url.
    Get,
    /// The message is the body.
    #[default]
    Post,
}

impl Method {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Get, Self::Post];

    /// The name in experiment files, on the command line and in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The text names no method.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown HTTP method `{0}`: it is one of get, post")]
pub struct UnknownMethod(
    /// The text.
    pub String,
);

impl FromStr for Method {
    type Err = UnknownMethod;

    fn from_str(text: &str) -> Result<Self, UnknownMethod> {
        let named = |method: &Self| method.name().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(named).ok_or_else(|| UnknownMethod(text.to_owned()))
    }
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
