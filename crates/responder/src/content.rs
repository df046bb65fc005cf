//! What a server answers from.

use std::net::IpAddr;
use std::sync::Arc;

use dnslab_internet::{Carrier, Conduct, Internet, Scratch};
use dnslab_wire::Transport;

use crate::answer::answer;
use crate::zone::{Zone, Zones};

/// What a server answers from.
#[derive(Clone, Debug)]
pub enum Content {
    /// Zones in memory: every address of the server is one and the same server.
    Zones(Arc<Zones>),
    /// A whole hierarchy: each address of its networks is a server of its own, with its own delay and loss.
    /// It needs unspecified addresses to listen on, and is served over UDP and TCP.
    Internet(Arc<Internet>),
}

/// What becomes of a query before the program has its turn.
pub(crate) enum Found {
    /// An answer of so many octets, and how its server behaves.
    Answer(usize, Option<Conduct>),
    /// Nobody is there who would answer.
    Silence,
    /// It is no query.
    NoQuery,
}

impl Content {
    /// Writes the answer to a query that came to the address `local` of this host.
    pub(crate) fn find(
        &self,
        local: Option<IpAddr>,
        query: &[u8],
        transport: Transport,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Found {
        let (length, conduct) = match self {
            Self::Zones(zones) => (answer(zones, query, transport, out), None),
            Self::Internet(internet) => {
                let server = local.and_then(|local| Some((local, internet.conduct(local)?)));
                let Some((local, mut conduct)) = server else { return Found::Silence };
                if conduct.is_silent {
                    return Found::Silence;
                }
                let carrier = match transport {
                    Transport::Udp => Carrier::Datagram,
                    _ => Carrier::Stream,
                };
                if carrier == Carrier::Stream {
                    // TCP sends again what the network loses.
                    conduct.loss = 0.0;
                }
                (internet.answer(local, query, carrier, scratch, out), Some(conduct))
            }
        };
        length.map_or(Found::NoQuery, |length| Found::Answer(length, conduct))
    }
}

impl From<Zone> for Content {
    fn from(zone: Zone) -> Self {
        Self::Zones(zone.into())
    }
}

impl From<Zones> for Content {
    fn from(zones: Zones) -> Self {
        Self::Zones(zones.into())
    }
}

impl From<Arc<Zones>> for Content {
    fn from(zones: Arc<Zones>) -> Self {
        Self::Zones(zones)
    }
}

impl From<Internet> for Content {
    fn from(internet: Internet) -> Self {
        Self::Internet(internet.into())
    }
}
