//! What the workers of one host counted of a load.

use serde::{Deserialize, Serialize};

use crate::measured::Measured;

/// What the workers of one host counted of a load. Those of all hosts together make its [`Measured`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeasuredShare {
    /// End of the measured window, nanoseconds since the load began; earlier than asked if it was cut short.
    pub until_ns: u64,
    /// How much later than planned the last of the workers began, nanoseconds.
    pub late_ns: u64,
    /// Counts and times. Intervals, pacing and the length of the window are of the load as a whole.
    pub counted: Measured,
    /// Which system calls carried the messages; `None` if no connection was ever opened.
    pub send_path: Option<String>,
    /// The first answer that was not the expected one.
    pub wrong_example: Option<String>,
    /// The fault of the first answer that was malformed when it was parsed in full.
    pub malformed_example: Option<String>,
    /// The first thing that was wrong with a signature.
    pub signature_example: Option<String>,
    /// The last reason for which a connection ended.
    pub last_connection_end: Option<String>,
}

impl Measured {
    /// Adds what the workers of another host counted of the same load.
    pub fn add(&mut self, other: Self) {
        self.sent_in_window += other.sent_in_window;
        self.answered_in_window += other.answered_in_window;
        if let (Some(turns), Some(more)) = (&mut self.turns, &other.turns) {
            turns.answered += more.answered;
        }
        self.counters.merge(&other.counters);
        self.warm_up.merge(&other.warm_up);
        self.latency.merge(&other.latency);
        self.service_time.merge(&other.service_time);
        self.send_lag.merge(&other.send_lag);
        self.start_lag.merge(&other.start_lag);
        self.connect_time.merge(&other.connect_time);
        self.handshake_time.merge(&other.handshake_time);
        self.resumed_handshake_time.merge(&other.resumed_handshake_time);
        self.early_data_time.merge(&other.early_data_time);
        for (own, more) in self.windows.iter_mut().zip(&other.windows) {
            own.merge(more);
        }
        self.network = match (self.network, other.network) {
            (Some(mut own), Some(more)) => {
                own.merge(&more);
                Some(own)
            }
            (own, more) => own.or(more),
        };
        self.workers.extend(other.workers);
        self.tls = self.tls.take().or(other.tls);
    }
}
