//! DNS octets and vocabulary: transports, queries that are encoded once and patched in place, what one client
//! adds to them, summaries of responses without allocation, signatures, the trust anchor of made-up zones,
//! the length prefix of streams, and [`units`]: durations, shares and numbers as text.
//!
//! This crate does no input or output, reads no clock, and holds no `unsafe`.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod answer;
mod batch;
mod captured;
mod client_subnet;
mod cookie;
mod digest;
mod edns;
mod framing;
mod name;
mod query;
pub mod rcode;
mod request;
mod response;
mod response_options;
pub mod rtype;
mod transport;
mod trust_anchor;
mod tsig;
pub mod units;
mod words;

pub use answer::{AnswerContent, AnswerFault, Held, Section, check_answer, read_answer};
pub use batch::{MAX_BATCH, MessageBatch, Run, datagrams};
pub use captured::{DnstapKind, DnstapSource, NoServers, ServerAddresses, ServerPorts};
pub use client_subnet::{ClientSubnet, ClientSubnetError};
pub use cookie::{Cookie, CookieFinding};
pub use digest::{AnswerDigest, message_text};
pub use edns::{Edns, EdnsOption};
pub use framing::{FrameReader, Frames, push_frame};
pub use name::{after_name, uncompressed_length};
pub use query::{Additions, NotAQuery, Query, QueryError, QueryOptions};
pub use rcode::{BADCOOKIE, rcode_name};
pub use request::{ClientCookie, ClientEdns, HEADER, OPCODE, Request, Unanswerable};
pub use response::{Malformed, Response};
pub use response_options::ResponseOptions;
pub use transport::{Method, TlsGroup, Transport};
pub use trust_anchor::{TRUST_ANCHOR_DNSKEY, TRUST_ANCHOR_DS};
pub use tsig::{Signed, TsigFault, TsigKey, TsigKeyError};
pub use words::UnknownWord;
