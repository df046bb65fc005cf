//! Life and times of the connections of several runs.

use dnslab_figures::{Connections, Histogram};
use dnslab_record::Measured;
use serde::{Deserialize, Serialize};

/// The connections of several runs, warm-up included: most connections are opened in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ConnectionFigures {
    /// Sums over the runs.
    pub counts: Connections,
    /// See [`Measured::connect_time`]; this and the others are those of all runs merged.
    pub connect_time: Histogram,
    /// See [`Measured::handshake_time`].
    pub handshake_time: Histogram,
    /// See [`Measured::resumed_handshake_time`].
    pub resumed_handshake_time: Histogram,
    /// See [`Measured::early_data_time`].
    pub early_data_time: Histogram,
}

impl ConnectionFigures {
    pub(crate) fn add(&mut self, measured: &Measured) {
        self.counts.merge(&measured.warm_up.connections);
        self.counts.merge(&measured.counters.connections);
        self.connect_time.merge(&measured.connect_time);
        self.handshake_time.merge(&measured.handshake_time);
        self.resumed_handshake_time.merge(&measured.resumed_handshake_time);
        self.early_data_time.merge(&measured.early_data_time);
    }
}
