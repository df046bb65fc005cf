//! The transports of DNS, by name and port.

use std::fmt;
use std::str::FromStr;

/// How a query travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// Plain UDP (RFC 1035, section 4.2.1).
    Udp,
    /// Plain TCP with pipelining (RFC 7766).
    Tcp,
    /// DNS over TLS (RFC 7858).
    Dot,
    /// DNS over HTTPS (RFC 8484) with HTTP/2 (RFC 9113).
    Doh2,
    /// DNS over dedicated QUIC connections (RFC 9250).
    Doq,
    /// DNS over HTTPS (RFC 8484) with HTTP/3 (RFC 9114).
    Doh3,
}

/// The text names no transport.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown transport `{0}`: it is one of udp, tcp, dot, doh2, doq, doh3")]
pub struct UnknownTransport(
    /// The text.
    pub String,
);

impl Transport {
    /// All transports: the plain ones, then those over TLS, then those over QUIC.
    pub const ALL: [Self; 6] = [Self::Udp, Self::Tcp, Self::Dot, Self::Doh2, Self::Doq, Self::Doh3];

    /// The name in experiment files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Dot => "dot",
            Self::Doh2 => "doh2",
            Self::Doq => "doq",
            Self::Doh3 => "doh3",
        }
    }

    /// The port that IANA assigned (RFC 1035; RFC 7858, section 3.1; RFC 9250, section 4.1.1; RFC
    /// 8484 takes that of HTTPS).
    #[must_use]
    pub fn default_port(self) -> u16 {
        match self {
            Self::Udp | Self::Tcp => 53,
            Self::Dot | Self::Doq => 853,
            Self::Doh2 | Self::Doh3 => 443,
        }
    }

    /// True if queries share a connection that is opened before the first and can be lost.
    #[must_use]
    pub fn is_connection(self) -> bool {
        !matches!(self, Self::Udp)
    }

    /// True if the octets travel over TCP; else over UDP.
    #[must_use]
    pub fn runs_over_tcp(self) -> bool {
        matches!(self, Self::Tcp | Self::Dot | Self::Doh2)
    }

    /// True if the server must have a certificate.
    #[must_use]
    pub fn is_encrypted(self) -> bool {
        !matches!(self, Self::Udp | Self::Tcp)
    }

    /// True if each query is an HTTP request, which names a path.
    #[must_use]
    pub fn is_http(self) -> bool {
        matches!(self, Self::Doh2 | Self::Doh3)
    }

    /// True if the connection is one of QUIC (RFC 9000).
    #[must_use]
    pub fn is_quic(self) -> bool {
        matches!(self, Self::Doq | Self::Doh3)
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Transport {
    type Err = UnknownTransport;

    fn from_str(text: &str) -> Result<Self, UnknownTransport> {
        let name = text.to_ascii_lowercase();
        Self::ALL
            .into_iter()
            .find(|transport| transport.name() == name)
            .ok_or_else(|| UnknownTransport(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for transport in Transport::ALL {
            assert_eq!(transport.name().to_uppercase().parse(), Ok(transport));
        }
        let error = "doh".parse::<Transport>().unwrap_err().to_string();
        assert!(error.contains("`doh`: it is one of udp, tcp, dot, doh2, doq, doh3"), "{error}");
    }

    #[test]
    fn every_transport_lies_on_udp_or_tcp() {
        let over_tcp = Transport::ALL.map(Transport::runs_over_tcp);
        assert_eq!(over_tcp, [false, true, true, true, false, false]);
        for transport in Transport::ALL {
            assert!(!transport.is_quic() || transport.is_encrypted());
            assert!(!transport.is_encrypted() || transport.is_connection());
        }
    }
}
