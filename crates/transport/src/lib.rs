//! What carries DNS messages above TLS and QUIC: HTTP/2 (RFC 9113), HTTP/3 (RFC 9114), and the streams of DNS over QUIC
//! (RFC 9250).
//!
//! The parts are state machines: octets and time go in, octets come out. The load engine has their client side, the
//! responder has their server side. So each side is tested against the other in memory. The principal types are
//! [`http2::Client`] and [`http2::Server`], [`quic::QuicClient`] and [`quic::QuicServer`]. What a client gets for a
//! request is an [`Exchange`].
//!
//! The client of HTTP/2 and both sides of HTTP/3 are our own. The server of HTTP/2 is the crate `h2`, and QUIC is
//! `quinn-proto`. `docs/decisions` says why.
//!
//! Modules, in the order of reading:
//!
//! - `exchange`: what all of them share: where a request goes ([`Target`]), and how it ends.
//! - `doh`, `freshness`: DNS messages as requests and responses of HTTP, and how long a cache may keep them.
//! - [`http2`], with `huffman` and `primitives`, which HTTP/3 needs too.
//! - [`quic`]: one connection, whatever the protocol above it. `doq`, `http3`: the protocols above it.
//! - `groups`: the key exchange groups that both sides choose from ([`provider`]).
//!
//! It is fuzzed on both sides.
//!
//! - Invariant: no socket, no clock, no runtime. Futures of libraries are polled with a waker that does nothing.
//! - Invariant: it knows nothing of loads, time-outs of queries, or outcomes.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod doh;
mod doq;
mod exchange;
mod freshness;
mod groups;
pub mod http2;
mod http3;
mod huffman;
mod primitives;
pub mod quic;

pub use dnslab_wire::{Method, TlsGroup};
pub use doq::ALPN_DOQ;
pub use exchange::{Exchange, Target};
pub use groups::{group_name, provider};
pub use http3::{ALPN_H3, read_http3_request};
