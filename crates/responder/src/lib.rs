//! The embedded DNS server: authoritative for one zone, or a recursive resolver with everything in its cache, over UDP,
//! TCP, DoT, DoH (HTTP/2 and HTTP/3) and DoQ. It plays a programmed delay, loss and stalls.
//!
//! It is a server under test where nothing else is installed, the known server of a calibration, the upstream of
//! forwarders ([`Zones::below_root`]), and all servers of a [`dnslab_internet::Internet`]. The principal type is
//! [`Server`]. Its core is one pure function, [`answer()`].
//!
//! ```
//! use dnslab_responder::{Config, Server, Zone};
//! use dnslab_wire::Transport;
//! use std::net::UdpSocket;
//!
//! let text = "$ORIGIN example.\n@ 60 IN SOA ns host 1 60 60 60 5\nwww 60 A 192.0.2.1\n";
//! let mut config = Config::new(Zone::parse(text.as_bytes(), None)?);
//! config.listen.push("127.0.0.1:0".parse()?);
//! config.program.delay = "uniform:1ms..2ms".parse()?;
//!
//! let server = Server::bind(config)?;
//! let (address, stop) = (server.addresses(Transport::Udp)[0], server.stop_handle());
//! let running = std::thread::spawn(|| server.run());
//!
//! let client = UdpSocket::bind("127.0.0.1:0")?;
//! client.send_to(b"\x12\x34\0\0\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x01\0\x01", address)?;
//! let mut response = [0; 512];
//! let length = client.recv(&mut response)?;
//! assert!(response[..length].ends_with(&[192, 0, 2, 1]));
//!
//! stop.stop();
//! let counters = running.join().unwrap()?;
//! assert_eq!(counters.udp.answered, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Modules, in the order of reading: `answer`; `content`; `zone` (`zone/data` in memory; `zone/made` makes and signs
//! zones around a list of names); `program`; `server` (event loops, a file for each transport); `counters`.
//!
//! - Invariant: an answer follows from zones, role and query alone. Threads share the zones, which are only read.
//! - Invariant: it opens no client socket, writes no file, handles no signal, and knows nothing of load or results.
//! - Invariant: no validation, NSEC3 (such a zone file is refused), transfers, updates, TSIG, `$INCLUDE` or rate
//!   limits. It does not sign what it read. Only referrals have an additional section. ANY gets `HINFO` (RFC 8482).

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod answer;
mod content;
mod counters;
mod program;
mod server;
mod zone;

pub use answer::{MAX_DATAGRAM, answer};
pub use content::Content;
pub use counters::{Connections, Counters, Lateness, Messages, QueriesPerConnection};
pub use program::Program;
pub use server::{
    CertificateFiles, Config, CountersHandle, ResponderError, Server, StopHandle, TlsError,
};
pub use zone::{NameLineError, NameList, NameListError, Role, Signing, Zone, Zones};
