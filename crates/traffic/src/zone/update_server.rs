//! The server that updates are sent to.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The server that `nsupdate` sends updates to: an address or a host name, with or without a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateServer {
    host: String,
    port: Option<u16>,
}

/// Why a text is no server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpdateServerError {
    /// It is neither an address nor a host name.
    #[error(
        "`{host}` is neither an address nor a host name; write 192.0.2.1, [2001:db8::1]:5300 or ns1:5300"
    )]
    Host {
        /// What stands in its place.
        host: String,
    },
    /// The port is none.
    #[error("`{port}` is no port: it is a number from 1 to 65535")]
    Port {
        /// What stands in its place.
        port: String,
    },
}

impl FromStr for UpdateServer {
    type Err = UpdateServerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (host, port) = if text.parse::<IpAddr>().is_ok() {
            (text, None)
        } else if let Some((host, rest)) =
            text.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        {
            (
                host,
                if rest.is_empty() { None } else { Some(rest.strip_prefix(':').unwrap_or(rest)) },
            )
        } else {
            text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)))
        };
        let is_name = !host.is_empty()
            && !host.starts_with('-')
            && host.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"-._".contains(&octet));
        if !is_name && host.parse::<IpAddr>().is_err() {
            return Err(UpdateServerError::Host { host: host.to_owned() });
        }
        let number = |port: &str| match port.parse() {
            Ok(0) | Err(_) => Err(UpdateServerError::Port { port: port.to_owned() }),
            Ok(number) => Ok(number),
        };
        Ok(Self { host: host.to_owned(), port: port.map(number).transpose()? })
    }
}

/// As `nsupdate` reads it: a space before the port.
impl fmt::Display for UpdateServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.host)?;
        self.port.map_or(Ok(()), |port| write!(formatter, " {port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers() {
        let check = |text: &str, expected: &str| {
            let read = text.parse::<UpdateServer>();
            let shown = read.map_or_else(|error| error.to_string(), |server| server.to_string());
            assert!(shown.starts_with(expected), "{text}: {shown}");
        };
        check("192.0.2.1", "192.0.2.1");
        check("192.0.2.1:5300", "192.0.2.1 5300");
        check("2001:db8::1", "2001:db8::1");
        check("[2001:db8::1]", "2001:db8::1");
        check("[2001:db8::1]:5300", "2001:db8::1 5300");
        check("ipa1.example.test:53", "ipa1.example.test 53");
        check("", "`` is neither an address");
        check("a b", "`a b` is neither");
        check("ns1\nupdate", "`ns1\nupdate` is neither");
        check("-y", "`-y` is neither");
        check("ns1:", "`` is no port");
        check("ns1:0", "`0` is no port");
        check("[::1]x", "`x` is no port");
        check("192.0.2.1:65536", "`65536` is no port");
    }
}
