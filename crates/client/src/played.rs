//! What is known of clients with queries of their own before the load.

/// Clients with queries of their own, as they are known before the load.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct PlayedClients {
    /// Where their queries come from, as a sentence.
    pub description: String,
    /// Mean rate over the whole load, queries per second.
    pub rate_qps: f64,
}
