//! A whole DNS hierarchy for recursive resolvers to resolve against: root servers, top-level domains, the servers of
//! operators, hundreds of millions of domains, with glue, aliases, DNSSEC, and servers that are slow, lame, dead or
//! older than EDNS.
//!
//! The principal type is [`Internet`], which a [`Description`] makes from a file. [`Internet::answer`] is what the
//! server at an address answers to a query, and [`Internet::conduct`] is how it behaves. Nothing is looked up: a
//! domain's label is its number in syllables under a keyed permutation, and all else follows from that number and the
//! seed.
//!
//! ```
//! use dnslab_internet::{Carrier, Internet, Scratch};
//!
//! let internet = Internet::parse("seed = 7\n[names]\nabsent = 0\n")?;
//! let name = internet.name(1);
//! assert!(name.to_string().starts_with("www."));
//! let mut query = b"\x12\x34\0\0\0\x01\0\0\0\0\0\0".to_vec();
//! query.extend_from_slice(name.octets());
//! query.extend_from_slice(b"\0\x01\0\x01");
//! let mut out = [0; 65_535];
//! let root = internet.root_addresses()[0];
//! let length = internet.answer(root, &query, Carrier::Datagram, &mut Scratch::default(), &mut out);
//! // A referral: no answer, and name servers in the authority section.
//! assert!(length.is_some() && out[6..8] == [0, 0] && out[8..10] != [0, 0]);
//! # Ok::<(), dnslab_internet::DescriptionError>(())
//! ```
//!
//! Modules, in the order of reading: `file`, `network` (the description); `draw`, `label`, `name` (numbers from the
//! seed, and names); `model`, `prefix` (who serves which zone); `lookup`, `reverse`, `service` (which zones lead to a
//! name); `data` (the records there); `sign`, `denial`, `chain`, `nsec3` (keys, signatures and proofs, made on
//! demand); `answer`; `files` (root hints, trust anchor, root zone); `ask` (what clients ask for).
//!
//! - Invariant: no socket, no file, no clock, and no table of names. Memory does not grow with the names.
//! - Invariant: an answer follows from description, address and query, but for the random part of a signature of ECDSA.
//!   [`Scratch`] changes its time, never what it says.
//! - Invariant: no wildcards, DNAME, transfers, separate key-signing keys, or zones that change.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod answer;
mod ask;
mod chain;
mod data;
mod denial;
mod draw;
mod file;
mod files;
mod label;
mod lookup;
mod model;
mod name;
mod network;
mod nsec3;
mod prefix;
mod reverse;
mod service;
mod sign;
#[cfg(test)]
mod tests;

pub use answer::{Carrier, Scratch};
pub use file::{
    Decimal, Description, DescriptionError, Dnssec, Faults, Ipv4Network, Ipv6Network, Names,
    Networks, Operators, Path, Reverse, Root, Seconds, Share, Suffix, Table, Time, TopLevel, Whole,
};
pub use files::TrustAnchor;
pub use model::{Conduct, Internet};
pub use name::Name;
pub use network::{Network, NetworkError};
