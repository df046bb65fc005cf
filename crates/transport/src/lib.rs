//! What carries DNS messages above TLS and QUIC: HTTP/2 (RFC 9113), HTTP/3 (RFC 9114), and the streams of DNS
//! over QUIC (RFC 9250). They are state machines: octets and time go in, octets come out. The load engine has
//! their client side, the responder their server side. Both choose from the key exchange groups here.
//!
//! This crate opens no socket and reads no clock.

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
