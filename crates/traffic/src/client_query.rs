//! A query of one client among many, as a capture or a population gives it.

use dnslab_wire::Query;

/// A query that one client sends at one instant. A source of them gives them in order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientQuery {
    /// When it is due, in nanoseconds since the load began.
    pub due_ns: u64,
    /// Who sends it. Clients of a capture are numbered from 0 in the order in which they first appear; those of a
    /// population from 0 too, and some of them never send anything.
    pub client: u32,
    /// What it sends.
    pub query: Query,
}
