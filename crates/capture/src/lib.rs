//! DNS queries out of captures that others made: pcap and pcapng, plain or compressed, and dnstap.
//!
//! A [`CaptureReader`] takes any [`std::io::Read`] and gives one [`Captured`] query after another. [`Counts`] says what
//! became of everything that was read. A [`CaptureWriter`] makes captures. A [`FrameReceiver`] understands a server
//! that sends dnstap to a socket, and a [`FrameWriter`] writes down what came.
//!
//! ```
//! use dnslab_capture::{CaptureOptions, CaptureReader, CaptureWriter, Captured};
//! use dnslab_wire::Transport;
//!
//! let query = Captured {
//!     at_ns: 1_700_000_000_000_000_000,
//!     client: "192.0.2.1:40000".parse()?,
//!     server: "192.0.2.53:53".parse()?,
//!     transport: Transport::Udp,
//!     message: b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x01\0\x01",
//! };
//! let mut writer = CaptureWriter::pcap(Vec::new())?;
//! writer.write(&query)?;
//! let capture = writer.finish()?;
//!
//! let mut reader = CaptureReader::new(&capture[..], CaptureOptions::default())?;
//! assert_eq!(reader.next()?, Some(query));
//! assert_eq!(reader.next()?, None);
//! assert_eq!(reader.counts().queries, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Modules, in the order of reading: `reader` (from the file down to the message); `compression`, `zstd_frames`, `container`,
//! `pcap`, `pcapng`, `frame_streams`, `window`, `packet`, `order` (files); `link`, `ip`, `datagram`, `tunnels` (headers of
//! packets); `fragments`, `streams`, `generations` (what came in parts, and a map that forgets); `dnstap`, `message`,
//! `reason` (what a query is); `repeats`, `duplicates` (what was asked or captured twice); `counts`, `options`,
//! `frame_receiver`, `writer`.
//!
//! - Invariant: it opens no file and no socket, and reads no clock. Time is that of the capture.
//! - Invariant: memory has a bound, however long the capture is. A query over UDP costs no allocation.
//! - Invariant: everything that was read is counted once ([`Counts::add_up`]).
//! - Invariant: it never decides what a query is good for. It is fuzzed.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod compression;
mod container;
mod counts;
mod datagram;
mod dnstap;
mod duplicates;
mod error;
mod fragments;
mod frame_receiver;
mod frame_streams;
mod generations;
mod ip;
mod link;
#[cfg(test)]
mod made;
mod message;
mod options;
mod order;
mod packet;
mod pcap;
mod pcapng;
mod reader;
mod reason;
mod repeats;
mod streams;
#[cfg(test)]
mod tests;
mod tunnels;
mod window;
mod writer;
mod zstd_frames;

pub use compression::Decompressed;
pub use counts::Counts;
pub use dnslab_wire::{DnstapKind, DnstapSource, ServerAddresses};
pub use error::CaptureError;
pub use frame_receiver::{FrameReceiver, SenderFault};
pub use options::CaptureOptions;
pub use reader::{CaptureReader, Captured, FrameCounter};
pub use reason::Reason;
pub use tunnels::Tunnel;
pub use writer::{CaptureWriter, FrameWriter, WriteError};
