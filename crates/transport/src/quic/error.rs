//! How a connection ends, and the codes by which the protocols above QUIC say why.

use quinn_proto::{ConnectionError, VarInt};

/// Why a connection ended, or did not come about.
#[derive(Debug, thiserror::Error)]
pub enum QuicError {
    /// The settings cannot be used for QUIC.
    #[error("these TLS settings cannot be used for QUIC: {0}")]
    Settings(String),
    /// The peer closed the connection in an orderly way, and did not say why.
    #[error("the peer closed the connection")]
    Closed,
    /// The peer closed the connection with an error of the protocol above QUIC, or said why.
    #[error("the peer closed the connection with {name} ({code:#x}){reason}")]
    ClosedWith {
        /// The error in the words of its RFC.
        name: &'static str,
        /// Its code.
        code: u64,
        /// What the peer said, after a colon; often empty.
        reason: String,
    },
    /// Nothing came for longer than the idle time-out of either side (RFC 9000, section 10.1).
    #[error("the connection was silent for longer than its idle time-out")]
    Silent,
    /// The peer has forgotten the connection (RFC 9000, section 10.3).
    #[error("the peer does not know the connection any more (stateless reset)")]
    Reset,
    /// QUIC or TLS failed, on this side or on the peer's word.
    #[error("QUIC: {0}")]
    Transport(ConnectionError),
    /// No connection can be made this way.
    #[error("QUIC: {0}")]
    Connect(#[from] quinn_proto::ConnectError),
    /// The peer makes this side keep too much.
    #[error("the peer sends more unfinished queries than are kept")]
    ExcessiveLoad,
    /// The peer broke the rules of the protocol above QUIC.
    #[error("the peer broke the protocol: {0}")]
    Protocol(&'static str),
}

impl QuicError {
    /// The alert of TLS with which the peer ended the handshake (RFC 9001, section 4.8).
    #[must_use]
    pub fn alert(&self) -> Option<u8> {
        const FIRST: u64 = 0x100;
        let Self::Transport(ConnectionError::ConnectionClosed(close)) = self else { return None };
        u8::try_from(u64::from(close.error_code).checked_sub(FIRST)?).ok()
    }
}

/// Codes of the protocol above QUIC, as far as they have to be told apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErrorCodes {
    /// All is well; says so when a connection is closed.
    pub(crate) no_error: u32,
    /// The answer is not wanted any more.
    pub(crate) cancelled: u32,
    pub(crate) protocol_error: u32,
    /// The peer asks for more than is kept for one connection.
    pub(crate) excessive_load: u32,
    pub(crate) name: fn(u64) -> &'static str,
}

impl QuicError {
    /// What the end of a connection means to the protocol with these codes.
    pub(super) fn new(error: ConnectionError, codes: &ErrorCodes) -> Self {
        match error {
            ConnectionError::ApplicationClosed(close) => {
                let code = close.error_code.into_inner();
                // One that says why says more than that all is well.
                if code == u64::from(codes.no_error) && close.reason.is_empty() {
                    return Self::Closed;
                }
                let reason = String::from_utf8_lossy(&close.reason);
                let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
                Self::ClosedWith { name: (codes.name)(code), code, reason }
            }
            ConnectionError::TimedOut => Self::Silent,
            ConnectionError::Reset => Self::Reset,
            error => Self::Transport(error),
        }
    }
}

pub(crate) fn code(code: u32) -> VarInt {
    VarInt::from_u32(code)
}
