//! Which share of the clients uses which transport.

use std::fmt;
use std::str::FromStr;

use dnslab_wire::Transport;
use dnslab_wire::units::share;

/// Transports with the shares of the clients that use them, at least one transport. What the shares leave to
/// 1 is another transport's.
///
/// ```
/// let mix: dnslab_traffic::TransportMix = "dot:30%,doh2:0.05".parse()?;
/// assert_eq!(mix.to_string(), "dot:30%,doh2:5%");
/// # Ok::<(), dnslab_traffic::TransportMixError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TransportMix {
    shares: Vec<(Transport, f64)>,
}

/// The text is no mix of transports.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TransportMixError {
    /// Not a transport with a share.
    #[error("`{0}` is no transport with its share: write for example dot:30%")]
    Part(String),
    /// Not a transport.
    #[error("`{0}` is no transport: it is one of {names}", names = Transport::NAMES.join(", "))]
    Transport(String),
    /// Not a share of the clients.
    #[error("`{share}` is no share of the clients for {transport}: write for example 30%")]
    Share {
        /// The transport.
        transport: Transport,
        /// The text.
        share: String,
    },
    /// A transport that is there before.
    #[error("{0} stands twice in the mix: add its shares")]
    Twice(Transport),
    /// More than all clients.
    #[error("the shares are {} together, more than all clients", share::write(*.0))]
    TooMuch(f64),
}

impl TransportMix {
    /// The transports with their shares in (0, 1], as they were given.
    #[must_use]
    pub fn shares(&self) -> &[(Transport, f64)] {
        &self.shares
    }
}

impl FromStr for TransportMix {
    type Err = TransportMixError;

    /// Reads transports with their shares, `dot:30%,doh2:5%`.
    fn from_str(text: &str) -> Result<Self, TransportMixError> {
        let mut shares: Vec<(Transport, f64)> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let unread = || TransportMixError::Part(part.to_owned());
            let (name, text) = part.split_once(':').ok_or_else(unread)?;
            let (name, text) = (name.trim(), text.trim());
            let unknown = |_| TransportMixError::Transport(name.to_owned());
            let transport: Transport = name.parse().map_err(unknown)?;
            let part = share::read(text).filter(|part| *part > 0.0);
            let part =
                part.ok_or_else(|| TransportMixError::Share { transport, share: text.to_owned() })?;
            if shares.iter().any(|(known, _)| *known == transport) {
                return Err(TransportMixError::Twice(transport));
            }
            shares.push((transport, part));
        }
        let sum: f64 = shares.iter().map(|(_, part)| part).sum();
        // Ten tenths are a little more than 1.
        if sum > 1.0 + 1e-9 { Err(TransportMixError::TooMuch(sum)) } else { Ok(Self { shares }) }
    }
}

impl fmt::Display for TransportMix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (transport, part)) in self.shares.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(formatter, "{comma}{transport}:{}", share::write(*part))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_are_read_and_written() {
        for (text, written) in [
            ("dot:30%", "dot:30%"),
            (" dot : 0.3 , tcp:0.1%", "dot:30%,tcp:0.1%"),
            ("doh2:50%,doq:50%", "doh2:50%,doq:50%"),
        ] {
            let mix: TransportMix = text.parse().unwrap();
            assert_eq!(mix.to_string(), written);
            assert_eq!(written.parse(), Ok(mix));
        }
    }

    #[test]
    fn wrong_mixes_say_why() {
        for (text, message) in [
            ("", "`` is no transport with its share: write for example dot:30%"),
            ("dot", "`dot` is no transport with its share: write for example dot:30%"),
            ("xot:1%", "`xot` is no transport: it is one of udp, tcp, dot, doh2, doq, doh3"),
            ("dot:0", "`0` is no share of the clients for dot: write for example 30%"),
            ("dot:130%", "`130%` is no share of the clients for dot: write for example 30%"),
            ("dot:1%,dot:2%", "dot stands twice in the mix: add its shares"),
            ("dot:60%,tcp:50%", "the shares are 110% together, more than all clients"),
        ] {
            assert_eq!(text.parse::<TransportMix>().unwrap_err().to_string(), message);
        }
    }
}
