//! Servers that a client knows.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// Servers by their addresses, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FurtherServers(
    /// Each with its port, if one was written.
    pub Vec<(IpAddr, Option<u16>)>,
);

/// The text is no list of servers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FurtherServersError {
    /// Not an address, with or without a port.
    #[error(
        "`{0}` is no address: write for example 192.0.2.2, 192.0.2.2:5300 or [2001:db8::2]:5300"
    )]
    Address(String),
    /// More than a client asks.
    #[error("these are {0} servers: clients ask {max} further ones at most", max = FurtherServers::MAX)]
    TooMany(usize),
}

impl FurtherServers {
    /// Further servers that a client knows, at most.
    pub const MAX: usize = 7;
}

impl FromStr for FurtherServers {
    type Err = FurtherServersError;

    fn from_str(text: &str) -> Result<Self, FurtherServersError> {
        let servers = text.split(',').map(str::trim).map(|part| {
            read_server(part).ok_or_else(|| FurtherServersError::Address(part.to_owned()))
        });
        let servers: Vec<_> = servers.collect::<Result<_, _>>()?;
        match servers.len() {
            many if many > Self::MAX => Err(FurtherServersError::TooMany(many)),
            _ => Ok(Self(servers)),
        }
    }
}

/// The address of one server, and its port if that is named.
fn read_server(text: &str) -> Option<(IpAddr, Option<u16>)> {
    // The link of a link-local address would be lost.
    if text.contains('%') {
        return None;
    }
    match text.parse::<SocketAddr>() {
        Ok(address) if address.port() > 0 => Some((address.ip(), Some(address.port()))),
        _ => Some((text.trim_matches(['[', ']']).parse().ok()?, None)),
    }
}

impl fmt::Display for FurtherServers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (address, port)) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            match port {
                Some(port) => write!(formatter, "{comma}{}", SocketAddr::new(*address, *port))?,
                None => write!(formatter, "{comma}{address}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_read_and_written() {
        for (text, written) in [
            ("192.0.2.1", "192.0.2.1"),
            (" 192.0.2.1:5300 , 2001:db8::1", "192.0.2.1:5300,2001:db8::1"),
            ("[2001:db8::1],[2001:db8::1]:53", "2001:db8::1,[2001:db8::1]:53"),
        ] {
            let servers: FurtherServers = text.parse().unwrap();
            assert_eq!(servers.to_string(), written);
            assert_eq!(written.parse(), Ok(servers));
        }
    }

    #[test]
    fn wrong_servers_say_why() {
        let no_address = |text: &str| FurtherServersError::Address(text.to_owned());
        for (text, culprit) in [
            ("", ""),
            ("192.0.2.1,", ""),
            ("ns1", "ns1"),
            ("::1:x", "::1:x"),
            ("[fe80::1%2]:53", "[fe80::1%2]:53"),
        ] {
            assert_eq!(text.parse::<FurtherServers>(), Err(no_address(culprit)), "{text}");
        }
        assert_eq!("192.0.2.1:0".parse::<FurtherServers>(), Err(no_address("192.0.2.1:0")));
        let many = ["::1"; 8].join(",");
        assert_eq!(many.parse::<FurtherServers>(), Err(FurtherServersError::TooMany(8)));
    }
}
