//! Life and times of the connections.

use serde::{Deserialize, Serialize};

/// Life of the connections (TCP, TLS and QUIC).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Connections {
    /// Connection attempts.
    pub attempted: u64,
    /// Connections that became usable (for TLS: after the handshake).
    pub opened: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Connections that the server turned away: it refused or reset the attempt, did not take it in time, or
    /// ended a new connection before any answer. They are among `failed` and `lost`. 0 in records that do not
    /// have it.
    #[serde(default)]
    pub refused: u64,
    /// Usable connections that the server, or an error, ended before we did.
    pub lost: u64,
    /// Full TLS handshakes.
    pub full_handshakes: u64,
    /// Resumed TLS handshakes, those with early data among them.
    pub resumed_handshakes: u64,
    /// Resumed TLS handshakes in which the server accepted early data (RFC 8446, section 2.3).
    #[serde(default)]
    pub early_data: u64,
    /// Connections that we closed: idle for as long as asked, or at the end of their quota of
    /// queries. The end of the load closes none.
    #[serde(default)]
    pub closed: u64,
    /// Queries of which the server said, when it ended the connection, that it had not processed
    /// them (GOAWAY: RFC 9113, section 6.8; RFC 9114, section 5.2). They may be asked again.
    #[serde(default)]
    pub not_processed: u64,
}

impl Connections {
    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.attempted += other.attempted;
        self.opened += other.opened;
        self.failed += other.failed;
        self.refused += other.refused;
        self.lost += other.lost;
        self.full_handshakes += other.full_handshakes;
        self.resumed_handshakes += other.resumed_handshakes;
        self.early_data += other.early_data;
        self.closed += other.closed;
        self.not_processed += other.not_processed;
    }
}
