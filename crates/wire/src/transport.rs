//! The transports of DNS, by name and port.

crate::words! {
    /// How a query travels.
    pub enum Transport as "transport" {
        /// Plain UDP (RFC 1035, section 4.2.1).
        Udp = "udp",
        /// Plain TCP with pipelining (RFC 7766).
        Tcp = "tcp",
        /// DNS over TLS (RFC 7858).
        Dot = "dot",
        /// DNS over HTTPS (RFC 8484) with HTTP/2 (RFC 9113).
        Doh2 = "doh2",
        /// DNS over dedicated QUIC connections (RFC 9250).
        Doq = "doq",
        /// DNS over HTTPS (RFC 8484) with HTTP/3 (RFC 9114).
        Doh3 = "doh3",
    }
}

crate::words! {
    /// How a DNS message becomes an HTTP request (RFC 8484, section 4.1).
    #[derive(Default)]
    pub enum Method as "HTTP method" {
        /// The message is the variable `dns` of the URI, in base64url.
        Get = "get",
        /// The message is the body.
        #[default]
        Post = "post",
    }
}

crate::words! {
    /// A key exchange group of TLS, by its name in IANA's registry in lower case.
    pub enum TlsGroup as "key exchange group" {
        /// X25519 (RFC 7748).
        X25519 = "x25519",
        /// The curve P-256.
        Secp256r1 = "secp256r1",
        /// The curve P-384.
        Secp384r1 = "secp384r1",
        /// ML-KEM-768 (FIPS 203) together with X25519 (draft-ietf-tls-ecdhe-mlkem). TLS 1.3 only.
        X25519MlKem768 = "x25519mlkem768",
    }
}

impl TlsGroup {
    /// What clients offer by default, and every server of today has.
    pub const PRESET: [Self; 3] = [Self::X25519, Self::Secp256r1, Self::Secp384r1];

    /// True if a part of it is no elliptic curve. It needs TLS 1.3.
    #[must_use]
    pub fn is_hybrid(self) -> bool {
        self == Self::X25519MlKem768
    }
}

impl Transport {
    /// The port that IANA assigned (RFC 1035; RFC 7858, section 3.1; RFC 9250, section 4.1.1; RFC 8484 takes
    /// that of HTTPS).
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

    /// True over TCP, false over UDP.
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
