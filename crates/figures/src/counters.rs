//! Counters of one run, and the sums that must hold.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Connections;

/// How the queries that became due ended. Every one of them ends in exactly one field.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Outcomes {
    /// Queries that became due.
    pub due: u64,
    /// A matching answer came within the time-out.
    pub answered: u64,
    /// Sent, but no matching answer came within the time-out.
    pub timed_out: u64,
    /// Never handed to the kernel: no connection, no free message id, or a send error.
    pub not_sent: u64,
    /// Sent, then the connection ended before the answer.
    pub connection_lost: u64,
    /// A message with the query's id came that is no readable DNS answer.
    pub malformed: u64,
    /// The server refused this query alone, without an answer to it: by an HTTP status other than
    /// 200, by resetting the stream of the query, or because it does not accept its signature
    /// (NOTAUTH; RFC 8945, section 5.2).
    #[serde(default)]
    pub refused: u64,
    /// In flight when the load was left early, and waited for no longer. They are in no other figure: neither
    /// answered nor lost, and in no latency.
    #[serde(default, skip_serializing_if = "is_none")]
    pub interrupted: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Response codes of a server that could not or would not answer.
pub const ERROR_CODES: [&str; 4] = ["SERVFAIL", "REFUSED", "NOTIMP", "FORMERR"];

/// How many answers have one of [`ERROR_CODES`].
fn errors(rcodes: &BTreeMap<String, u64>) -> u64 {
    ERROR_CODES.iter().filter_map(|code| rcodes.get(*code)).sum()
}

/// How the queries of one transport ended, where clients use several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransportOutcomes {
    /// Queries that became due.
    pub due: u64,
    /// Those that were answered, over TCP too after a truncated answer over UDP.
    pub answered: u64,
}

/// The outcomes do not add up to the queries that became due: a fault of the engine.
#[derive(Debug, thiserror::Error)]
#[error("{due} queries became due but {settled} have an outcome")]
pub struct Unbalanced {
    /// Queries that became due.
    pub due: u64,
    /// Sum of all outcomes.
    pub settled: u64,
}

impl Outcomes {
    /// The sum of all outcomes.
    #[must_use]
    pub fn settled(&self) -> u64 {
        let unanswered = self.timed_out + self.not_sent + self.connection_lost;
        self.answered + unanswered + self.malformed + self.refused + self.interrupted
    }

    /// Queries that became due and have an outcome; not those that were interrupted.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.due.saturating_sub(self.interrupted)
    }

    /// Queries that ended without an answer.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.ended().saturating_sub(self.answered)
    }

    /// Lost queries as a share of those that ended, in [0, 1]; 0 when none did.
    #[must_use]
    pub fn lost_share(&self) -> f64 {
        if self.ended() == 0 { 0.0 } else { self.lost() as f64 / self.ended() as f64 }
    }

    /// Queries that were answered with another code than [`ERROR_CODES`], as a share of the due ones, in [0, 1];
    /// `None` when none was due. `rcodes` are those of the answered ones.
    #[must_use]
    pub fn share_without_error(&self, rcodes: &BTreeMap<String, u64>) -> Option<f64> {
        let sound = self.answered.saturating_sub(errors(rcodes));
        (self.ended() > 0).then(|| sound as f64 / self.ended() as f64)
    }

    /// Answers with one of [`ERROR_CODES`] as a share of the answered queries, in [0, 1]; 0 if none was answered.
    /// `rcodes` are those of the answered ones.
    #[must_use]
    pub fn error_share(&self, rcodes: &BTreeMap<String, u64>) -> f64 {
        errors(rcodes) as f64 / self.answered.max(1) as f64
    }

    /// Checks that every due query has exactly one outcome.
    ///
    /// # Errors
    /// When the sums differ.
    pub fn check(&self) -> Result<(), Unbalanced> {
        let (due, settled) = (self.due, self.settled());
        if due == settled { Ok(()) } else { Err(Unbalanced { due, settled }) }
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.due += other.due;
        self.answered += other.answered;
        self.timed_out += other.timed_out;
        self.not_sent += other.not_sent;
        self.connection_lost += other.connection_lost;
        self.malformed += other.malformed;
        self.refused += other.refused;
        self.interrupted += other.interrupted;
    }
}

/// What the answers were like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answers {
    /// Matching answers by response code mnemonic (`NOERROR`, `NXDOMAIN`, ...), extended ones
    /// (`BADCOOKIE`, ...; RFC 6891, section 6.1.3) by theirs.
    pub rcodes: BTreeMap<String, u64>,
    /// Queries with an answer that had the TC bit set (RFC 1035, section 4.1.1), each once. In records that do not
    /// have [`Self::asked_over_tcp`] a query counts twice whose answer over TCP was truncated too.
    pub truncated: u64,
    /// Those of them that were asked again over TCP.
    #[serde(default)]
    pub asked_over_tcp: u64,
    /// Those of them whose answer over TCP was truncated too.
    #[serde(default)]
    pub truncated_over_tcp: u64,
    /// Matching answers with response code NOERROR and no record in the answer section: NODATA, or
    /// a referral (RFC 9499, section 7).
    #[serde(default)]
    pub empty: u64,
    /// Matching answers that are not what the experiment expects.
    pub wrong: u64,
    /// Of the other matching answers, those that were parsed in full; 0 in records that do not have it.
    #[serde(default)]
    pub checked: u64,
    /// Those of them that do not hold what their header says, or what was asked for.
    #[serde(default)]
    pub malformed: u64,
    /// All answers that those parsed in full stand for: where one of ten is parsed, it stands for ten. 0 in
    /// records that do not have it.
    #[serde(default)]
    pub checked_stand_for: u64,
    /// Those that the ones stand for that do not hold what they must.
    #[serde(default)]
    pub malformed_stand_for: u64,
    /// Answers to signed queries whose TSIG record (RFC 8945) was absent or did not verify.
    #[serde(default)]
    pub bad_signature: u64,
    /// Those of them with which the server refused the signature of the query, by the error that
    /// came with NOTAUTH: `BADKEY`, `BADSIG`, `BADTIME` (RFC 8945, section 5.2).
    #[serde(default)]
    pub refused_signatures: BTreeMap<String, u64>,
    /// Answers to a query that had already timed out.
    pub late: u64,
    /// Second and further answers to one query.
    pub duplicate: u64,
    /// Messages that match no query ever sent on that socket, by id and question.
    pub unexpected: u64,
    /// Octets of all DNS messages received, without framing.
    pub octets: u64,
    /// Open loop over TCP: answers that took long ([`crate::LONG`]) and came when another query had
    /// been sent on their connection after their own; 0 in records that do not have it.
    #[serde(default)]
    pub overtaken: u64,
    /// Those of them that came at once ([`crate::at_once_ns`]) after the latest query of their
    /// connection.
    #[serde(default)]
    pub after_next_query: u64,
}

/// Further attempts of clients that ask again where they had no answer, and whom they asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AttemptCounts {
    /// Attempts after one without an answer in time.
    pub timed_out: u64,
    /// Attempts after one that failed at once: SERVFAIL, NOTIMP or REFUSED, an answer that was no DNS message, a
    /// connection that ended.
    pub failed: u64,
    /// Queries sent to each server, in the order in which clients know them; empty if they know one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sent_to: Vec<u64>,
}

impl AttemptCounts {
    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.timed_out += other.timed_out;
        self.failed += other.failed;
        let longer = self.sent_to.len().max(other.sent_to.len());
        self.sent_to.resize(longer, 0);
        for (own, more) in self.sent_to.iter_mut().zip(&other.sent_to) {
            *own += more;
        }
    }

    /// Clients asked each query once, and one server.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Responses of HTTP with one status that carried no DNS message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HttpRefusals {
    /// How many.
    pub count: u64,
    /// When the first one came, nanoseconds on the run's timeline.
    pub first_ns: u64,
}

impl HttpRefusals {
    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.first_ns = self.first_ns.min(other.first_ns);
    }
}

/// All counts of one phase (warm-up, or the measured window) of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// The outcome of every query that became due in this phase.
    pub outcomes: Outcomes,
    /// Queries handed to the kernel.
    pub sent: u64,
    /// Queries sent a second time, once for each time: over TCP after a truncated answer, with the
    /// cookie of a BADCOOKIE answer (RFC 7873, section 5.3), not processed before a GOAWAY, too
    /// early for the server (status 425; RFC 8470, section 5.2), in another attempt of the client, or for the next name
    /// of its search list.
    #[serde(default)]
    pub asked_again: u64,
    /// Those of them that were for the next name of a search list: the one before did not exist.
    #[serde(default, skip_serializing_if = "is_none")]
    pub searched: u64,
    /// Further attempts of clients that make more than one.
    #[serde(default, skip_serializing_if = "AttemptCounts::is_empty")]
    pub attempts: AttemptCounts,
    /// Octets of the DNS messages sent, without framing.
    pub sent_octets: u64,
    /// What the answers were like.
    pub answers: Answers,
    /// Connections.
    pub connections: Connections,
    /// Those of the refused queries whose response was one of HTTP, by its status.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub http_refusals: BTreeMap<u16, HttpRefusals>,
    /// The outcomes by the transport of the client; empty where all clients use the same.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_transport: BTreeMap<String, TransportOutcomes>,
}

/// Response codes are numbers of 12 bits (RFC 6891, section 6.1.3).
const MAX_CODES: usize = 1 << 12;

/// Statuses of HTTP are numbers of three digits.
const MAX_STATUSES: usize = 1_000;

/// Errors of signatures, transports, and servers that clients know, at most.
const MAX_KINDS: usize = 64;

/// Octets of a word that something is counted by.
const MAX_WORD: usize = 64;

/// Whether somebody can have counted by these words.
#[must_use]
pub fn are_words(words: &BTreeMap<String, u64>) -> bool {
    words.len() <= MAX_CODES && words.keys().all(|word| word.len() <= MAX_WORD)
}

impl Counters {
    /// Whether somebody can have counted all of this: nothing in it is longer than there are things to count.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        let Self { answers, attempts, http_refusals, by_transport, .. } = self;
        let errors = &answers.refused_signatures;
        are_words(&answers.rcodes)
            && errors.len() <= MAX_KINDS
            && errors.keys().all(|error| error.len() <= MAX_WORD)
            && attempts.sent_to.len() <= MAX_KINDS
            && http_refusals.len() <= MAX_STATUSES
            && by_transport.len() <= MAX_KINDS
            && by_transport.keys().all(|transport| transport.len() <= MAX_WORD)
    }

    /// Adds the counts of `other` (another worker, or another phase).
    pub fn merge(&mut self, other: &Self) {
        self.outcomes.merge(&other.outcomes);
        self.sent += other.sent;
        self.asked_again += other.asked_again;
        self.searched += other.searched;
        self.attempts.merge(&other.attempts);
        self.sent_octets += other.sent_octets;
        let (own, more) = (&mut self.answers, &other.answers);
        for (rcode, count) in &more.rcodes {
            *own.rcodes.entry(rcode.clone()).or_default() += count;
        }
        own.truncated += more.truncated;
        own.asked_over_tcp += more.asked_over_tcp;
        own.truncated_over_tcp += more.truncated_over_tcp;
        own.empty += more.empty;
        own.wrong += more.wrong;
        own.checked += more.checked;
        own.checked_stand_for += more.checked_stand_for;
        own.malformed_stand_for += more.malformed_stand_for;
        own.malformed += more.malformed;
        own.bad_signature += more.bad_signature;
        for (error, count) in &more.refused_signatures {
            *own.refused_signatures.entry(error.clone()).or_default() += count;
        }
        own.late += more.late;
        own.duplicate += more.duplicate;
        own.unexpected += more.unexpected;
        own.octets += more.octets;
        own.overtaken += more.overtaken;
        own.after_next_query += more.after_next_query;
        self.connections.merge(&other.connections);
        for (status, more) in &other.http_refusals {
            let own =
                self.http_refusals.entry(*status).or_insert(HttpRefusals { count: 0, ..*more });
            own.merge(more);
        }
        for (transport, more) in &other.by_transport {
            let own = self.by_transport.entry(transport.clone()).or_default();
            own.due += more.due;
            own.answered += more.answered;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_checked() {
        let mut outcomes = Outcomes { due: 5, answered: 3, timed_out: 1, ..Outcomes::default() };
        assert_eq!(outcomes.check().unwrap_err().settled, 4);
        outcomes.refused = 1;
        outcomes.check().unwrap();
        assert_eq!(outcomes.lost(), 2);
        assert!((outcomes.lost_share() - 0.4).abs() < 1e-12);
    }
}
