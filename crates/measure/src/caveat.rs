//! Reasons to doubt a number.

use serde::{Deserialize, Serialize};

/// One reason to doubt a figure, stored with it and shown beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Caveat {
    /// The load generator had no CPU left: the server may do more than the figure says.
    GeneratorLimited {
        /// Busy share of the busiest worker, in [0, 1].
        busy_share: f64,
    },
    /// Server and generator shared CPUs.
    SharedCpus,
    /// A closed loop: the rate is that of this window, and stalls are hidden.
    ClosedLoop {
        /// Queries outstanding over all clients.
        window: u64,
    },
    /// Fewer queries were sent than intended.
    RateMissed {
        /// Intended queries per second.
        intended_qps: f64,
        /// Offered queries per second.
        offered_qps: f64,
    },
    /// The median query left later than it was due by more than a tenth of the median latency.
    SendLag {
        /// Median lag in nanoseconds.
        p50_ns: u64,
    },
    /// The generator's own sockets dropped answers.
    GeneratorDrops {
        /// Dropped datagrams.
        datagrams: u64,
    },
    /// Another machine on the same hardware took time from this one.
    Steal {
        /// Stolen share of the time of all CPUs, in [0, 1].
        share: f64,
    },
    /// Some answers came after the time-out, twice, or to questions never asked.
    StrayAnswers {
        /// After the time-out.
        late: u64,
        /// Second and further ones.
        duplicate: u64,
        /// To questions never asked.
        unexpected: u64,
    },
    /// Answers were not what the experiment expects.
    WrongAnswers {
        /// How many.
        count: u64,
        /// One query and its answer, as text.
        example: String,
    },
    /// The server's resources could not be watched (another machine, or no permission).
    ServerNotWatched {
        /// Why.
        reason: String,
    },
    /// The run was ended before its time.
    CutShort {
        /// Measured time in nanoseconds.
        measured_ns: u64,
    },
    /// The certificate of the server was not verified.
    CertificateNotVerified,
    /// Anything else that an adapter or the session has to say.
    Other {
        /// The doubt, as a sentence.
        text: String,
    },
}
