//! System calls for many small datagrams: batches with `sendmmsg` and `recvmmsg`, segmentation offload in both
//! directions (GSO and GRO), time stamps, epoll, and the socket options that neither `socket2` nor `rustix` has.
//!
//! The principal parts are [`send_batch`], [`SendBatch`] and [`ReceiveBatch`].
//!
//! ```
//! use std::net::UdpSocket;
//! use std::os::fd::AsFd as _;
//!
//! use dnslab_socket::{MAX_GROUP, ReceiveBatch, send_batch};
//! use dnslab_wire::MessageBatch;
//!
//! let (client, server) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
//! client.connect(server.local_addr()?)?;
//!
//! let mut queries = MessageBatch::default();
//! queries.push_with(|octets| octets.extend_from_slice(b"one"));
//! queries.push_with(|octets| octets.extend_from_slice(b"two"));
//! // Up to 64 neighbours of one length leave as one datagram, which the kernel cuts.
//! assert_eq!(send_batch(client.as_fd(), &queries, 0, 64)?, 2);
//!
//! let mut received = ReceiveBatch::unconnected(32, MAX_GROUP);
//! received.receive(server.as_fd())?;
//! let datagrams = received.groups().flat_map(|group| group.datagrams());
//! assert_eq!(datagrams.collect::<Vec<_>>(), [b"one", b"two"]);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Modules, in the order of reading: `send`, `receive`, `peer`, `cmsg` (control messages), `poller` (epoll), `options`
//! (also how a thread gives way to those that measure: [`set_idle_policy`]).
//!
//! - Invariant: only [`Poller::wait`] waits. No call that carries datagrams allocates or retries.
//! - Invariant: it reads no clock. The caller decides what an error means for a query or a packet.
//! - Invariant: all `unsafe` of the engine and the responder is here, in `send`, `receive` and `options`.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod cmsg;
#[expect(unsafe_code, reason = "these options and SCHED_IDLE have no safe binding")]
mod options;
mod peer;
mod poller;
#[expect(unsafe_code, reason = "recvmmsg has no safe binding")]
mod receive;
#[expect(unsafe_code, reason = "sendmmsg, and sendmsg with UDP_SEGMENT, have no safe binding")]
mod send;

pub use options::{
    allow_any_source, bind_address_without_port, enable_gro, enable_pktinfo, enable_timestamps,
    receive_drops, round_trip, set_idle_policy, set_pmtu_probe, set_receive_buffer,
    set_usual_policy,
};
pub use peer::Peer;
pub use poller::{EventFlags, KernelTooOld, Poller, check_kernel};
pub use receive::{Group, MAX_GROUP, ReceiveBatch};
pub use send::{SendBatch, refuses_segmentation, send_batch, send_batch_from, send_segments};
