//! How queries reach a server: one state machine for each transport, behind one interface that takes batches.
//! A connection knows no schedule, no time-out and no outcome.

mod delivery;
mod doh2;
mod doh3;
mod doq;
mod dot;
mod end;
mod handshake;
mod interface;
mod quic;
mod stream;
mod tcp;
mod udp;

pub use delivery::{Delivery, Received};
pub use end::{ConnectionEnd, Draining, TlsRefusal};
pub use handshake::{Handshake, HandshakeKind, Opened};
pub use interface::{Connection, Route, Scratch};
pub(crate) use udp::{is_about_an_earlier_datagram, is_for_now};

use dnslab_wire::Transport;

use crate::runtime::Runtime;
use crate::time::Nanos;

/// Begins to open a connection for one client.
///
/// # Errors
/// When no socket is to be had, or the address cannot be reached at all.
pub fn open<R: Runtime>(
    runtime: &mut R,
    route: &Route<'_>,
    now: Nanos,
) -> Result<Box<dyn Connection<R>>, ConnectionEnd> {
    Ok(match route.transport {
        Transport::Udp => Box::new(udp::UdpConnection::open(runtime, route)?),
        Transport::Tcp => {
            let layer = tcp::Framed::over(tcp::Nothing);
            Box::new(stream::Stream::connect(runtime, route, layer, now)?)
        }
        Transport::Dot => {
            let layer = dot::layer(route.client_tls(), route.client)?;
            Box::new(stream::Stream::connect(runtime, route, layer, now)?)
        }
        Transport::Doh2 => {
            let layer = doh2::layer(route.client_tls(), route)?;
            Box::new(stream::Stream::connect(runtime, route, layer, now)?)
        }
        Transport::Doq => Box::new(doq::open(route.client_tls(), runtime, route, now)?),
        Transport::Doh3 => Box::new(doh3::open(route.client_tls(), runtime, route, now)?),
    })
}
