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
}

/// The text names no transport.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown transport `{0}`: it is one of udp, tcp, dot")]
pub struct UnknownTransport(
    /// The text.
    pub String,
);

impl Transport {
    /// All transports, cheapest first.
    pub const ALL: [Self; 3] = [Self::Udp, Self::Tcp, Self::Dot];

    /// The name in experiment files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Dot => "dot",
        }
    }

    /// The port that IANA assigned (RFC 1035; RFC 7858, section 3.1).
    #[must_use]
    pub fn default_port(self) -> u16 {
        match self {
            Self::Udp | Self::Tcp => 53,
            Self::Dot => 853,
        }
    }

    /// True if queries share a connection whose messages carry a length prefix
    /// (RFC 1035, section 4.2.2).
    #[must_use]
    pub fn is_stream(self) -> bool {
        !matches!(self, Self::Udp)
    }

    /// True if the server must have a certificate.
    #[must_use]
    pub fn is_encrypted(self) -> bool {
        matches!(self, Self::Dot)
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
        assert!("doq".parse::<Transport>().is_err());
    }
}
