//! Transaction signatures (RFC 8945) of queries, and of the responses to them.

mod resumed;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use domain::base::iana::{Rcode, TsigRcode};
use domain::base::{Message, MessageBuilder, Name};
use domain::rdata::Tsig;
use domain::rdata::tsig::Time48;
use domain::tsig::{Algorithm, ClientTransaction, Key, KeyName, ValidationError};
use domain::utils::base64;
use resumed::Resumed;

/// The most octets of a TSIG record (RFC 8945, section 4.2): a name, the fixed parts, the longest name of an
/// algorithm, and the longest signature, of SHA-512.
pub(crate) const MAX_LENGTH: usize = 255 + 10 + 13 + 16 + 64;

/// A TSIG record has 48 bits for seconds since 1970 (RFC 8945, section 4.2).
const TIME_BITS: u64 = (1 << 48) - 1;

/// A secret that a client and a server share, with its name and algorithm. It is never printed; cloning is
/// cheap.
///
/// ```
/// let key: dnslab_wire::TsigKey = "hmac-sha256:loadgen:c2VjcmV0".parse()?;
/// assert_eq!(key.to_string(), "hmac-sha256:loadgen");
/// # Ok::<(), dnslab_wire::TsigKeyError>(())
/// ```
#[derive(Clone)]
pub struct TsigKey {
    key: Arc<Key>,
    /// In base64, as it was written.
    secret: Arc<str>,
}

/// The text is no key. It may hold a secret, so only its name or algorithm is shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TsigKeyError {
    /// Not two or three fields.
    #[error("a TSIG key has 2 or 3 fields between colons, not {0}: write [algorithm:]name:secret")]
    Fields(usize),
    /// The algorithm is unknown or too weak.
    #[error(
        "TSIG algorithm `{0}` is not supported: it is one of hmac-sha1, hmac-sha256 (when none is \
         named), hmac-sha384, hmac-sha512; hmac-md5 must not be used any more (RFC 8945, section 6)"
    )]
    Algorithm(String),
    /// The name is no domain name.
    #[error("TSIG key name `{name}` is no domain name: {reason}")]
    Name {
        /// The name.
        name: String,
        /// Why not.
        reason: String,
    },
    /// The secret is not base64, or empty.
    #[error("the secret of TSIG key `{0}` is not base64: copy it as tsig-keygen printed it")]
    Secret(String),
}

impl FromStr for TsigKey {
    type Err = TsigKeyError;

    /// Reads `[algorithm:]name:secret`, as dnsperf's `-y` does; the secret is base64. The default algorithm
    /// is hmac-sha256, which everybody must implement (RFC 8945, section 6); that of dnsperf 2 is hmac-md5.
    fn from_str(text: &str) -> Result<Self, TsigKeyError> {
        let fields: Vec<&str> = text.split(':').collect();
        let (algorithm, name, secret) = match fields[..] {
            [name, secret] => ("hmac-sha256", name, secret),
            [algorithm, name, secret] => (algorithm, name, secret),
            _ => return Err(TsigKeyError::Fields(fields.len())),
        };
        let algorithm: Algorithm = algorithm
            .to_ascii_lowercase()
            .parse()
            .map_err(|_| TsigKeyError::Algorithm(algorithm.to_owned()))?;
        let wrong_secret = || TsigKeyError::Secret(name.to_owned());
        let octets: Vec<u8> = base64::decode(secret).map_err(|_| wrong_secret())?;
        if octets.is_empty() {
            return Err(wrong_secret());
        }
        let key_name: KeyName = Name::from_str(name).map_err(|error| TsigKeyError::Name {
            name: name.to_owned(),
            reason: error.to_string(),
        })?;
        let key = Key::new(algorithm, &octets, key_name, None, None)
            .expect("signatures that are not cut short have a length in bounds");
        Ok(Self { key: Arc::new(key), secret: secret.into() })
    }
}

impl TsigKey {
    /// The key with its secret, as it is read. It is for a file or a channel that nobody else reads.
    #[must_use]
    pub fn with_secret(&self) -> String {
        format!("{self}:{}", self.secret)
    }

    /// Appends the TSIG record to a query, which is all that the vector holds. Nothing may be changed after
    /// it. `now` is in seconds since 1970. The returned value checks the response.
    ///
    /// Padding comes before the signature and does not count it. So a padded query is longer than its blocks
    /// by the record, which has the same length in all queries with one key.
    ///
    /// # Panics
    /// When the message is shorter than a header.
    pub fn sign(&self, message: &mut Vec<u8>, now: u64) -> Signed {
        let message = MessageBuilder::from_target(Resumed::new(message));
        let mut message = message.unwrap_or_else(|never| match never {}).additional();
        let transaction =
            ClientTransaction::request(Arc::clone(&self.key), &mut message, time(now));
        Signed(transaction.expect("a vector takes any record, and a query has few"))
    }
}

impl fmt::Display for TsigKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.key.algorithm(), self.key.name())
    }
}

impl fmt::Debug for TsigKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "TsigKey({self}:<secret>)")
    }
}

impl PartialEq for TsigKey {
    /// Keys are equal if they make the same signatures.
    fn eq(&self, other: &Self) -> bool {
        let signed = |key: &Self| {
            let mut message = vec![0; 12];
            key.sign(&mut message, 0);
            message
        };
        Arc::ptr_eq(&self.key, &other.key) || signed(self) == signed(other)
    }
}

/// A query that was signed, to check its response with. It holds two states of the hash, 320 octets, so it is
/// for queries in flight only.
pub struct Signed(ClientTransaction<Arc<Key>>);

/// Why a response is not the signed one that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TsigFault {
    /// The server did not sign it.
    #[error("the response is not signed")]
    Unsigned,
    /// The signature is wrong, too short, or of another key.
    #[error("the response has a wrong signature")]
    BadSignature,
    /// It was signed too long ago, or in the future.
    #[error("the response was signed at a time too far from now: compare the clocks")]
    BadTime,
    /// The server says that it does not know the key (RFC 8945, section 5.2.1).
    #[error(
        "the server refused the signature: BADKEY, it has no key of this name and algorithm; give \
         it one"
    )]
    ServerBadKey,
    /// The server says that the query had a wrong signature (RFC 8945, section 5.2.2).
    #[error(
        "the server refused the signature: BADSIG, it has another secret under this name; compare \
         the secrets"
    )]
    ServerBadSignature,
    /// The server says that the query was signed at a time too far from its own (RFC 8945, section 5.2.3).
    #[error(
        "the server refused the signature: BADTIME, its clock is {ahead:+} s from this one; \
         compare the clocks"
    )]
    ServerBadTime {
        /// By how much the server's clock is ahead, seconds; negative if it is behind.
        ahead: i64,
    },
    /// The message or its TSIG record cannot be read.
    #[error("the response or its TSIG record is malformed")]
    Malformed,
}

impl TsigFault {
    /// The name of the error with which the server refused the signature of the query (RFC 8945, section 3).
    /// `None` if the response is at fault.
    #[must_use]
    pub fn refusal(self) -> Option<&'static str> {
        match self {
            Self::ServerBadKey => Some("BADKEY"),
            Self::ServerBadSignature => Some("BADSIG"),
            Self::ServerBadTime { .. } => Some("BADTIME"),
            Self::Unsigned | Self::BadSignature | Self::BadTime | Self::Malformed => None,
        }
    }
}

impl Signed {
    /// The name of the key that signed the query.
    #[must_use]
    pub fn key_name(&self) -> String {
        self.0.key().name().to_string()
    }

    /// Checks the signature of the response to this query (RFC 8945, section 5.3). `now` is in seconds since
    /// 1970. After an error another response can be checked.
    ///
    /// # Errors
    /// When the server did not sign the response with the same key, or refused the signature of the query.
    pub fn verify(&self, response: &[u8], now: u64) -> Result<(), TsigFault> {
        // The check takes the record out of the message, so it needs a copy.
        let mut message =
            Message::from_octets(response.to_vec()).map_err(|_| TsigFault::Malformed)?;
        // No signature covers what follows the record, which must be the last (RFC 8945, section 5.1).
        if !ends_with_its_records(&message) {
            return Err(TsigFault::Malformed);
        }
        self.0.answer(&mut message, time(now)).map_err(|error| match error {
            ValidationError::ServerUnsigned => TsigFault::Unsigned,
            // `domain` 0.12.3 signs the server's time, the other data of this refusal, as 8 octets. The RFC
            // has 6 (section 5.2.3), so `domain` finds a right signature wrong. A refused query has no answer
            // either way.
            ValidationError::BadSig => match time_of_refusal(response) {
                Some(server) => bad_time(server, now),
                None => TsigFault::BadSignature,
            },
            ValidationError::BadAlg | ValidationError::BadTrunc | ValidationError::BadKey => {
                TsigFault::BadSignature
            }
            ValidationError::BadTime => TsigFault::BadTime,
            ValidationError::ServerBadKey => TsigFault::ServerBadKey,
            ValidationError::ServerBadSig => TsigFault::ServerBadSignature,
            ValidationError::ServerBadTime { server, .. } => bad_time(server, now),
            ValidationError::BadOther
            | ValidationError::FormErr
            | ValidationError::TooManyUnsigned => TsigFault::Malformed,
        })
    }
}

impl fmt::Debug for Signed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Signed(by {})", self.0.key())
    }
}

/// True if nothing follows the last record, and also if the records cannot be read: others find that.
fn ends_with_its_records(message: &Message<Vec<u8>>) -> bool {
    let Ok(mut records) = message.additional() else { return true };
    records.by_ref().any(|record| record.is_err()) || records.pos() == message.as_slice().len()
}

/// The server's time in a response that refuses a signature with BADTIME, signed or not.
fn time_of_refusal(response: &[u8]) -> Option<Time48> {
    let message = Message::from_octets(response).ok()?;
    let section = message.additional().ok()?;
    let mut records = section.limit_to::<Tsig<_, _>>().filter_map(Result::ok);
    let refusal = records.find(|record| record.data().error() == TsigRcode::BADTIME)?;
    refusal.data().other_time().filter(|_| message.header().rcode() == Rcode::NOTAUTH)
}

fn bad_time(server: Time48, now: u64) -> TsigFault {
    // Neither has more than 48 bits.
    let (server, now) = (u64::from(server) as i64, (now & TIME_BITS) as i64);
    TsigFault::ServerBadTime { ahead: server - now }
}

fn time(now: u64) -> Time48 {
    Time48::from_u64(now & TIME_BITS)
}

#[cfg(test)]
mod tests;
