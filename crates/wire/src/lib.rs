//! DNS octets and vocabulary: transports, queries, responses, signatures, and values as text.
//!
//! The principal type is [`Query`]. It is encoded once, and patched each time it is sent: with an id, and with what its
//! client adds ([`Additions`]). Queries leave in a [`MessageBatch`]. A [`Response`] and its [`ResponseOptions`] are the
//! parts of an answer that are counted, borrowed from the message. A server reads a [`Request`] and answers it with a
//! [`ResponseWriter`]; a [`ZoneKey`] signs what it says. An [`AnswerDigest`] is what an answer says in a few
//! octets, and [`check_answer`] parses an answer in full.
//!
//! Modules, in the order of reading:
//!
//! - `words`, `transport`, [`rcode`], [`rtype`]: the vocabulary, and the macro for types whose values are words.
//! - `query`, `edns`, `cookie`, `client_subnet`: what a client sends. `tsig` signs it.
//! - `batch`, `framing`: many messages for one system call, and the length prefix of streams.
//! - `response`, `response_options`, `name`: what is read of each answer. `answer`, `digest`: what is read of some.
//! - `request`: what a server reads of a query. `response_writer`: what it writes of a response, with `prebuilt` records,
//!   or with an `rrset` and the `compression` of names.
//! - `zone_key`, `nsec`: signatures and proofs of DNSSEC. `trust_anchor`: the key of zones that are made up.
//! - `captured`: which queries of a capture are looked for, in words.
//! - [`units`]: durations, shares, octets and numbers as text, read and written for all crates.
//!
//! The readers of foreign octets are fuzzed (`fuzz/fuzz_targets`).
//!
//! - Invariant: no input or output, no clock, no `unsafe`. A [`ZoneKey`] of ECDSA takes random octets from the
//!   system.
//! - Invariant: a [`Response`] and its [`ResponseOptions`] are read without allocation.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod answer;
mod batch;
mod captured;
mod client_subnet;
mod compression;
mod cookie;
mod digest;
mod edns;
mod framing;
mod header;
mod name;
mod nsec;
mod prebuilt;
mod query;
pub mod rcode;
mod request;
mod response;
mod response_options;
mod response_writer;
mod rrset;
pub mod rtype;
mod transport;
mod trust_anchor;
mod tsig;
pub mod units;
mod words;
mod zone_key;

pub use answer::{AnswerContent, AnswerFault, Held, Section, check_answer, read_answer};
pub use batch::{MAX_BATCH, MessageBatch, Run, datagrams};
pub use captured::{DnstapKind, DnstapSource, NoServers, ServerAddresses, ServerPorts};
pub use client_subnet::{ClientSubnet, ClientSubnetError};
pub use compression::CompressingWriter;
pub use cookie::{Cookie, CookieFinding};
pub use digest::{AnswerDigest, message_text};
pub use edns::{Edns, EdnsOption};
pub use framing::{FrameReader, Frames, push_frame};
pub use header::HEADER;
pub use name::{Labels, after_name, canonical_cmp, labels, uncompressed_length};
pub use nsec::{push_nsec, push_type_bitmap};
pub use prebuilt::{PREBUILT_HEADER, prebuilt_records, push_prebuilt};
pub use query::{Additions, NotAQuery, Query, QueryError, QueryOptions};
pub use rcode::{BADCOOKIE, rcode_name};
pub use request::{CLASSIC_DATAGRAM, ClientCookie, ClientEdns, Request, Unanswerable};
pub use response::{Malformed, Response};
pub use response_options::ResponseOptions;
pub use response_writer::{Full, ResponseHeader, ResponseOpt, ResponseWriter, reject};
pub use rrset::RrSet;
pub use transport::{Method, TlsGroup, Transport};
pub use trust_anchor::{TRUST_ANCHOR_DNSKEY, TRUST_ANCHOR_DS};
pub use tsig::{Signed, TsigFault, TsigKey, TsigKeyError};
pub use words::UnknownWord;
pub use zone_key::{Unsigned, Validity, ZoneAlgorithm, ZoneKey};
