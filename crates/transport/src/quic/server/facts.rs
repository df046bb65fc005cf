//! What a server counts.

/// What happened to a server's connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// Connections begun.
    pub accepted: u64,
    /// Connections refused because there were too many.
    pub refused: u64,
    /// Handshakes that ended well with certificates.
    pub full_handshakes: u64,
    /// Handshakes that were resumed from a ticket.
    pub resumed_handshakes: u64,
    /// Handshakes that failed.
    pub failed_handshakes: u64,
    /// Connections that ended because they were silent.
    pub timed_out: u64,
    /// Connections closed, by either side, after their quota of queries was used up.
    pub closed_by_quota: u64,
    /// Connections that their clients closed, or forgot.
    pub closed_by_client: u64,
    /// Connections that ended because one side broke the protocol, or held too much memory.
    pub broken: u64,
}
