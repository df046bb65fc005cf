//! Which queries of a capture are looked for, in words and texts.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

crate::words! {
    /// Who sent a query to whom, in the words of dnstap.
    pub enum DnstapKind as "kind of dnstap message" {
        /// A client to this server, which is asked to resolve (CLIENT_QUERY).
        Client = "client",
        /// A client to this server, which is authoritative (AUTH_QUERY).
        Auth = "auth",
        /// This server, as a recursive resolver, to an authoritative server (RESOLVER_QUERY).
        Resolver = "resolver",
        /// This server, as a forwarder, to an upstream server (FORWARDER_QUERY).
        Forwarder = "forwarder",
        /// A stub resolver that wrote dnstap itself (STUB_QUERY).
        Stub = "stub",
        /// A tool that wrote dnstap itself (TOOL_QUERY).
        Tool = "tool",
    }
}

crate::words! {
    /// Which dnstap messages queries are taken from. A server that writes both would have each query twice.
    #[derive(Default)]
    pub enum DnstapSource as "source of dnstap queries" {
        /// Those about queries.
        #[default]
        Queries = "queries",
        /// Those about responses, for servers that write no others. The time is that of the query if the frame
        /// has it. If the frame lacks the query, it is made: id, RD, CD and question of the response, and an
        /// OPT record with its DO bit and a payload size of 1232 if the response has one.
        Responses = "responses",
    }
}

/// Servers: addresses, each with a port or with any, and networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddresses(Vec<ServerPlace>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerPlace {
    Address(IpAddr),
    Socket(SocketAddr),
    /// The first address, and the bits of it that count.
    Network(IpAddr, u8),
}

/// A text that names no servers, or no ports.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoServers {
    /// An address cannot be read.
    #[error(
        "`{part}` is no address of a server: write for example \"192.0.2.53, 2001:db8::53\", with a port \
         \"192.0.2.53:5353\" or \"[2001:db8::53]:5353\", or a network \"192.0.2.0/24\""
    )]
    Address {
        /// What stands there.
        part: String,
    },
    /// A port cannot be read.
    #[error("`{part}` is no port: write for example \"53, 5353\"")]
    Port {
        /// What stands there.
        part: String,
    },
}

impl ServerAddresses {
    /// True if it is one of them.
    #[must_use]
    pub fn contains(&self, server: SocketAddr) -> bool {
        self.0.iter().any(|place| match place {
            ServerPlace::Address(address) => *address == server.ip(),
            ServerPlace::Socket(socket) => {
                (socket.ip(), socket.port()) == (server.ip(), server.port())
            }
            ServerPlace::Network(first, bits) => masked(server.ip(), *bits) == Some(*first),
        })
    }

    /// The ports that are named.
    pub fn ports(&self) -> impl Iterator<Item = u16> {
        self.0.iter().filter_map(|place| match place {
            ServerPlace::Socket(socket) => Some(socket.port()),
            ServerPlace::Address(_) | ServerPlace::Network(..) => None,
        })
    }
}

/// An address without the bits after these; `None` if it has fewer.
fn masked(address: IpAddr, bits: u8) -> Option<IpAddr> {
    match address {
        IpAddr::V4(address) => {
            let rest = 32_u32.checked_sub(bits.into())?;
            let mask = u32::MAX.checked_shl(rest).unwrap_or(0);
            Some(IpAddr::V4((address.to_bits() & mask).into()))
        }
        IpAddr::V6(address) => {
            let rest = 128_u32.checked_sub(bits.into())?;
            let mask = u128::MAX.checked_shl(rest).unwrap_or(0);
            Some(IpAddr::V6((address.to_bits() & mask).into()))
        }
    }
}

impl FromStr for ServerPlace {
    type Err = NoServers;

    fn from_str(text: &str) -> Result<Self, NoServers> {
        let wrong = || NoServers::Address { part: text.to_owned() };
        if let Some((address, bits)) = text.split_once('/') {
            let bits = bits.parse().map_err(|_| wrong())?;
            let address = address.parse().map_err(|_| wrong())?;
            let first = masked(address, bits).ok_or_else(wrong)?;
            return Ok(Self::Network(first, bits));
        }
        let address = text.parse().map(Self::Address);
        address.or_else(|_| text.parse().map(Self::Socket)).map_err(|_| wrong())
    }
}

impl FromStr for ServerAddresses {
    type Err = NoServers;

    fn from_str(text: &str) -> Result<Self, NoServers> {
        text.split(',').map(|part| part.trim().parse()).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for ServerPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(formatter),
            Self::Socket(socket) => socket.fmt(formatter),
            Self::Network(first, bits) => write!(formatter, "{first}/{bits}"),
        }
    }
}

impl fmt::Display for ServerAddresses {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        formatter.write_str(&parts.join(", "))
    }
}

/// Ports of servers, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerPorts(pub Vec<u16>);

impl Default for ServerPorts {
    /// 53.
    fn default() -> Self {
        Self(vec![53])
    }
}

impl FromStr for ServerPorts {
    type Err = NoServers;

    fn from_str(text: &str) -> Result<Self, NoServers> {
        let port = |part: &str| match part.trim().parse() {
            Ok(port) if port > 0 => Ok(port),
            _ => Err(NoServers::Port { part: part.trim().to_owned() }),
        };
        text.split(',').map(port).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for ServerPorts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        formatter.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_addresses_sockets_and_networks() {
        let text = "192.0.2.53, 2001:db8::53,[2001:db8::7]:5353, 198.51.100.9:5300, 203.0.113.77/24, 2001:db8:1::/48";
        let servers: ServerAddresses = text.parse().unwrap();
        let written = "192.0.2.53, 2001:db8::53, [2001:db8::7]:5353, 198.51.100.9:5300, 203.0.113.0/24, 2001:db8:1::/48";
        assert_eq!(servers.to_string(), written);
        assert_eq!(written.parse(), Ok(servers.clone()));
        assert_eq!(servers.ports().collect::<Vec<_>>(), [5353, 5300]);
        for (server, expected) in [
            ("192.0.2.53:53", true),
            ("192.0.2.53:9", true),
            ("192.0.2.54:53", false),
            ("[2001:db8::53]:53", true),
            ("[::ffff:192.0.2.53]:53", false),
            ("[2001:db8::7]:5353", true),
            ("[2001:db8::7]:53", false),
            ("198.51.100.9:53", false),
            ("203.0.113.255:53", true),
            ("203.0.114.0:53", false),
            ("[2001:db8:1:ffff::1]:53", true),
            ("[2001:db8:2::1]:53", false),
        ] {
            assert_eq!(servers.contains(server.parse().unwrap()), expected, "{server}");
        }
        let all: ServerAddresses = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("192.0.2.1:53".parse().unwrap()));
        assert!(!all.contains("[::1]:53".parse().unwrap()));
    }

    #[test]
    fn what_names_no_server_or_port_says_so() {
        for wrong in
            ["", "ns1", "192.0.2.53,", "192.0.2.0/33", "::/129", "192.0.2.0/24:53", "1.2.3"]
        {
            let error = wrong.parse::<ServerAddresses>().unwrap_err().to_string();
            assert!(error.contains("is no address of a server"), "{wrong}: {error}");
        }
        assert_eq!("53, 5353".parse::<ServerPorts>().unwrap().0, [53, 5353]);
        for wrong in ["", "0", "65536", "53;", "dns"] {
            assert!(wrong.parse::<ServerPorts>().is_err(), "{wrong}");
        }
    }
}
