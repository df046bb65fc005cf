//! The embedded DNS responder: an authoritative server for one zone, or a recursive resolver that has
//! everything in its cache, over UDP, TCP, DNS over TLS, DNS over HTTPS and DNS over QUIC. It also plays a
//! programmed delay, loss and stalls.
//!
//! It has four uses. As a server it is what an experiment measures when nothing else is installed. It also
//! tests the load engine: a delay from a known distribution and a known share of lost answers must come out
//! at the other end. As an upstream it is where forwarders under test send what they do not know:
//! [`Zones::below_root`] makes the DNS around a list of names, signed if wanted. With the fourth, a
//! [`dnslab_internet::Internet`], it is all authoritative servers that a recursive resolver asks.
//!
//! The principal type is [`Server`]; its core is one pure function, [`answer`]. Everything around it moves
//! octets: each thread is one event loop with its own sockets, and shares only the zones, which are only
//! read.
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
//! **How precise a delay is.** It counts from the instant at which the query was read. A high-resolution
//! timer hands the answer to the kernel, never before it is due. Every run counts how much later
//! ([`Counters::lateness`]): on average 75, 39 and 62 us at 1 k, 20 k and 60 k queries a second with a delay
//! of 5 ms, at real-time priority on a virtual machine with two cores. Other work on the same core adds to
//! it. Queries that wait in the kernel while the server is stalled or busy are late by that too, as with any
//! server.
//!
//! **What it never does**: ask another server, validate, sign what it read from a file, NSEC3 (such a zone
//! file is refused; one signed with NSEC is served with its proofs), transfers, updates, TSIG, `$INCLUDE`. It
//! fills the additional section in referrals only. It answers type ANY with `HINFO "RFC8482"` (RFC 8482,
//! section 4.2), or with one RRset of a signed zone. It pads answers over TLS when the query is padded (RFC
//! 7830). It limits no client's rate, opens no client socket, writes no file and handles no signal.

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
pub use zone::{NameList, NameListError, Role, Signing, Zone, ZoneError, Zones};
