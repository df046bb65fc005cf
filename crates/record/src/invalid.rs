//! Why a run that was measured does not count.

use dnslab_figures::{HttpRefusals, Outcomes};
use serde::{Deserialize, Serialize};

use crate::evidence::Evidence;

/// Why a run that was measured does not count. Limits are shares in [0, 1], those of `[expect]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum InvalidReason {
    /// No query of the measured window was answered.
    Unanswered {
        /// Queries that became due in it.
        due: u64,
        /// Queries that became due in the warm-up before it.
        warm_up_due: u64,
        /// Those of them that were answered.
        warm_up_answered: u64,
        /// What may explain it.
        cause: Option<Cause>,
    },
    /// The load takes turns with others, and its answers come too late for its slices: most of what is
    /// measured of a slice would be that it was empty.
    SlowerThanSlices {
        /// Length of a slice, nanoseconds.
        slice_ns: u64,
        /// What half of the answers may take at most, nanoseconds.
        max_ns: u64,
    },
    /// The server fell silent.
    FellSilent {
        /// When, and for how long.
        silence: Silence,
        /// What may explain it.
        cause: Option<Cause>,
    },
    /// Too many queries were not answered.
    Lost {
        /// How the queries ended.
        outcomes: Outcomes,
        /// So many of the due ones may be lost.
        limit: f64,
        /// What may explain it.
        cause: Option<Cause>,
    },
    /// Of the transports that clients use, one answered nothing, or too little.
    LostOverTransport {
        /// Its name.
        transport: String,
        /// Its queries that became due.
        due: u64,
        /// Those that were answered.
        answered: u64,
        /// So many of the due ones may be lost.
        limit: f64,
        /// What may explain it.
        cause: Option<Cause>,
    },
    /// Clients with queries of their own turned to them too late.
    Late {
        /// The 0.99 quantile of [`crate::measured::Measured::start_lag`], nanoseconds.
        p99_ns: u64,
        /// What it may be, nanoseconds.
        limit_ns: u64,
    },
    /// The generator sent an open loop later, or with a lower rate, than it was asked to.
    NotSentAsAsked {
        /// Rate at which queries became due, queries per second.
        intended_qps: f64,
        /// Rate at which they were sent.
        offered_qps: f64,
        /// Share of the intended rate that may be missing.
        unsent_limit: f64,
        /// Median send lag, nanoseconds.
        lag_p50_ns: u64,
        /// What it may be, nanoseconds.
        lag_limit_ns: u64,
    },
    /// Most answers to clients with queries of their own said that the server could not or would not answer.
    Errors {
        /// Answers with SERVFAIL, REFUSED, NOTIMP or FORMERR.
        errors: u64,
        /// All answers.
        answers: u64,
    },
    /// Too many answers were not the expected ones, or could not be read.
    Wrong {
        /// How many.
        wrong: u64,
        /// All answers, with those that could not be read.
        answers: u64,
        /// So many of them may be wrong.
        limit: f64,
        /// The expected response code.
        rcode: u16,
        /// NXDOMAIN was right, too: whoever brings names may bring some that do not exist.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        or_nxdomain: bool,
        /// Whether an answer must have a record.
        has_record: bool,
        /// A query and its answer; `None` if no answer could be read.
        example: Option<String>,
    },
    /// Too many answers that looked right did not hold what they must when they were parsed in full.
    Malformed {
        /// How many of a sample.
        malformed: u64,
        /// Size of the sample.
        checked: u64,
        /// So many may be malformed.
        limit: f64,
        /// The fault of the first, with its query.
        example: String,
    },
    /// The load was left before its measured window began, or before half of it where its variant has whole runs.
    TooShort {
        /// Measured time, nanoseconds; 0 if the window had not begun.
        measured_ns: u64,
        /// Time that was asked for, nanoseconds.
        asked_ns: u64,
    },
    /// The server did not serve all clients: the others had no connection, or no answer on it.
    Unserved {
        /// Clients that were served.
        served: u64,
        /// All clients.
        clients: u64,
        /// Attempts to connect that failed.
        failed_attempts: u64,
        /// The program of the server, as in [`crate::server::ServerFacts::program`].
        program: String,
        /// Whether dnslab started it, with as many connections as there are clients.
        is_started: bool,
    },
    /// The server answered some clients no more, while it answered the others.
    Forsaken {
        /// How many.
        forsaken: u64,
        /// All clients.
        clients: u64,
    },
    /// A common load was more than somebody could bear.
    RateTooHigh {
        /// What names its bottleneck.
        evidence: Vec<Evidence>,
    },
}

/// What may explain that nothing, or too little, was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "cause", rename_all = "kebab-case")]
pub enum Cause {
    /// The server refused a signature, or did not sign.
    Signature {
        /// What was wrong with the first, and what to do about it.
        example: String,
    },
    /// The server refused queries with a status of HTTP.
    Http {
        /// Each status, how often it came, and when first.
        statuses: Vec<(u16, HttpRefusals)>,
    },
    /// A connection ended.
    Connection {
        /// How the last one did.
        end: String,
    },
}

/// A silence of the server that makes a run invalid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Silence {
    /// When it began, nanoseconds since the measured window did.
    pub from_ns: u64,
    /// Its length, nanoseconds of the load's own time.
    pub length_ns: u64,
    /// Length of the measured window, nanoseconds.
    pub window_ns: u64,
    /// True if it lasted until the window ended.
    pub is_at_end: bool,
}
