//! QUIC (RFC 9000): one connection as a state machine. Datagrams and time go in; datagrams, the next
//! deadline, and exchanges come out. The protocol above it says what a stream means: DNS over QUIC or HTTP/3.

mod client;
mod client_protocol;
mod credit;
mod error;
mod outstanding;
mod segments;
mod server;
mod settings;
mod streams;
mod tls;
mod tokens;

pub use client::{QuicClient, QuicClientSettings, QuicHandshake};
pub use error::QuicError;
pub use server::{
    Holder, Outgoing, QuicServer, QuicServerSettings, Reaction, RequestId, ServerFacts,
};
pub use tokens::AddressTokens;

pub(crate) use client_protocol::ClientProtocol;
pub(crate) use error::{ErrorCodes, code};
pub(crate) use outstanding::Outstanding;
pub(crate) use server::{Answer, ServerProtocol};
pub(crate) use streams::{AnswerMemory, MAX_UNFINISHED, Postponed, Reading, Unwritten, read};
