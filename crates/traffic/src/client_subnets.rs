//! The networks that simulated clients are said to be in.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use dnslab_wire::{ClientSubnet, ClientSubnetError};

/// The client subnets (RFC 7871) of the clients, in turn: at least one.
///
/// ```
/// let subnets: dnslab_traffic::ClientSubnets = "10.0.0.0/8 by /24".parse()?;
/// assert_eq!(subnets.len(), 65_536);
/// assert_eq!(subnets.of_client(257).to_string(), "10.1.1.0/24");
/// # Ok::<(), dnslab_traffic::ClientSubnetsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSubnets(Form);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    List(Vec<ClientSubnet>),
    /// The subnets of this prefix length that a larger one consists of.
    Range {
        within: ClientSubnet,
        prefix: u8,
    },
}

/// The text names no client subnets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientSubnetsError {
    /// One of them is none.
    #[error("client subnets: {0}")]
    Subnet(#[from] ClientSubnetError),
    /// One line of a list is none.
    #[error("client subnets, line {line}: {fault}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        fault: ClientSubnetError,
    },
    /// What follows `by` is no prefix length, is shorter than that of the network, or longer than an address.
    #[error(
        "`{by}` is no prefix length for the subnets of {within}: write one from /{} to /{most}, \
         such as `{within} by /{most}`",
        within.prefix()
    )]
    By {
        /// What was written after `by`.
        by: String,
        /// The network.
        within: ClientSubnet,
        /// The longest: 32 or 128.
        most: u8,
    },
    /// A list without a subnet.
    #[error("the list of client subnets is empty: write one on each line, such as 192.0.2.0/24")]
    Empty,
}

impl ClientSubnets {
    /// Reads a list with a subnet on each line. Empty lines and lines that begin with `#` or `;` are skipped.
    ///
    /// # Errors
    /// When a line is no subnet, or there is none.
    pub fn from_lines(text: &str) -> Result<Self, ClientSubnetsError> {
        let lines = text.lines().map(str::trim).zip(1..);
        let subnets = lines
            .filter(|(text, _)| !text.is_empty() && !text.starts_with(['#', ';']))
            .map(|(text, line)| {
                text.parse().map_err(|fault| ClientSubnetsError::Line { line, fault })
            })
            .collect::<Result<Vec<ClientSubnet>, _>>()?;
        if subnets.is_empty() {
            return Err(ClientSubnetsError::Empty);
        }
        Ok(Self(Form::List(subnets)))
    }

    /// The subnet of this client, counted from 0. After the last comes the first again.
    #[must_use]
    pub fn of_client(&self, client: u32) -> ClientSubnet {
        match &self.0 {
            Form::List(subnets) => subnets[client as usize % subnets.len()],
            Form::Range { within, prefix } => {
                let number = u128::from(u64::from(client) % self.len());
                let address = match within.address() {
                    IpAddr::V4(first) => {
                        // In 64 bits, for a shift by all of 32; number is 0 then.
                        let step = (number as u64) << (32 - u32::from(*prefix));
                        IpAddr::from(Ipv4Addr::from_bits(first.to_bits() | step as u32))
                    }
                    IpAddr::V6(first) => {
                        let step = number.checked_shl(128 - u32::from(*prefix)).unwrap_or(0);
                        Ipv6Addr::from_bits(first.to_bits() | step).into()
                    }
                };
                ClientSubnet::of(address, *prefix)
            }
        }
    }

    /// How many subnets there are, at most 2^64 - 1.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is at least one subnet")]
    pub fn len(&self) -> u64 {
        match &self.0 {
            Form::List(subnets) => subnets.len() as u64,
            Form::Range { within, prefix } => {
                1u64.checked_shl(u32::from(prefix - within.prefix())).unwrap_or(u64::MAX)
            }
        }
    }
}

impl FromStr for ClientSubnets {
    type Err = ClientSubnetsError;

    /// Reads a range, `10.0.0.0/8 by /24`, or subnets with commas between them.
    fn from_str(text: &str) -> Result<Self, ClientSubnetsError> {
        let Some((within, by)) = text.split_once(" by ") else {
            let subnets = text.split(',').map(|subnet| subnet.trim().parse());
            return Ok(Self(Form::List(subnets.collect::<Result<_, _>>()?)));
        };
        let within: ClientSubnet = within.trim().parse()?;
        let most = if within.address().is_ipv4() { 32 } else { 128 };
        let by = by.trim();
        let digits = by.strip_prefix('/').unwrap_or(by);
        let is_number = !digits.is_empty() && digits.bytes().all(|octet| octet.is_ascii_digit());
        digits
            .parse()
            .ok()
            .filter(|prefix| is_number && (within.prefix()..=most).contains(prefix))
            .map(|prefix| Self(Form::Range { within, prefix }))
            .ok_or_else(|| ClientSubnetsError::By { by: by.to_owned(), within, most })
    }
}

impl fmt::Display for ClientSubnets {
    /// As it is read.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Range { within, prefix } => write!(formatter, "{within} by /{prefix}"),
            Form::List(subnets) => {
                let subnets: Vec<String> = subnets.iter().map(ToString::to_string).collect();
                formatter.write_str(&subnets.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_dealt(text: &str, count: u64, some: &[(u32, &str)]) {
        let subnets: ClientSubnets = text.parse().unwrap();
        assert_eq!(subnets.len(), count, "{text}");
        assert_eq!(subnets.to_string().parse(), Ok(subnets.clone()));
        for (client, subnet) in some {
            assert_eq!(subnets.of_client(*client).to_string(), *subnet, "{client} of {text}");
        }
    }

    #[test]
    fn subnets_are_dealt_in_turn() {
        check_dealt("192.0.2.0/24, 2001:db8::/56", 2, &[(1, "2001:db8::/56"), (2, "192.0.2.0/24")]);
        check_dealt(
            "10.0.0.0/8 by /24",
            65_536,
            &[(1, "10.0.1.0/24"), (65_535, "10.255.255.0/24")],
        );
        check_dealt("10.0.0.0/8 by 8", 1, &[(7, "10.0.0.0/8")]);
        check_dealt("0.0.0.0/0 by /0", 1, &[(7, "0.0.0.0/0")]);
        check_dealt("0.0.0.0/0 by /32", 1 << 32, &[(u32::MAX, "255.255.255.255/32")]);
        check_dealt("::/0 by /0", 1, &[(7, "::/0")]);
        check_dealt("2001:db8::/32 by /56", 1 << 24, &[(257, "2001:db8:1:100::/56")]);
        check_dealt("::/0 by /128", u64::MAX, &[(u32::MAX, "::ffff:ffff/128")]);
    }

    #[test]
    fn lists_are_read_line_by_line() {
        let subnets = ClientSubnets::from_lines("# offices\n192.0.2.0/24\n\n ::/0 \n").unwrap();
        assert_eq!(subnets.to_string(), "192.0.2.0/24,::/0");
        let error = ClientSubnets::from_lines("192.0.2.0/24\n192.0.2.1/24\n").unwrap_err();
        assert!(error.to_string().starts_with("client subnets, line 2: `192.0.2.1/24` has bits"));
        assert_eq!(ClientSubnets::from_lines("; none\n"), Err(ClientSubnetsError::Empty));
    }

    #[test]
    fn errors_name_the_culprit_and_the_remedy() {
        for (text, part) in [
            ("", "`` is no subnet"),
            ("10.0.0.0/8 by 24/", "`24/` is no prefix length for the subnets of 10.0.0.0/8"),
            ("10.0.0.0/8 by /7", "write one from /8 to /32, such as `10.0.0.0/8 by /32`"),
            ("10.0.0.0/8 by /+9", "`/+9` is no prefix length"),
            ("::/8 by /129", "write one from /8 to /128"),
            ("10.0.0.1/8 by /24", "write 10.0.0.0/8"),
        ] {
            let error = text.parse::<ClientSubnets>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
