//! Queries, encoded once and patched in place.

use domain::base::iana::Rtype;
use domain::base::{MessageBuilder, Name, ToName};

/// What a query asks for besides its question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryOptions {
    /// The RD bit (RFC 1035, section 4.1.1).
    pub recursion_desired: bool,
    /// The OPT record (RFC 6891), if one is sent.
    pub edns: Option<Edns>,
}

/// The OPT record of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edns {
    /// Largest UDP answer that the client takes, octets (RFC 6891, section 6.2.3).
    pub payload_size: u16,
    /// The DO bit (RFC 3225).
    pub dnssec_ok: bool,
}

/// A query could not be encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot encode a query for {name}: the message would be too long")]
pub struct QueryError {
    /// The name asked for.
    pub name: String,
}

/// One encoded query with message id 0.
///
/// ```
/// use dnslab_wire::{Query, QueryOptions};
/// use domain::base::{Name, iana::Rtype};
/// use std::str::FromStr;
///
/// let name = Name::<Vec<u8>>::from_str("www.example.").unwrap();
/// let query = Query::new(&name, Rtype::A, &QueryOptions::default()).unwrap();
/// assert_eq!(query.octets().len(), 12 + 13 + 4);
/// assert_eq!(query.to_string(), "www.example. A");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    octets: Box<[u8]>,
    /// Where the question ends; it begins at [`HEADER`].
    question_end: u16,
}

/// Length of the message header in octets (RFC 1035, section 4.1.1).
pub(crate) const HEADER: usize = 12;

impl Query {
    /// Encodes a query of class IN.
    ///
    /// # Errors
    /// When the message does not fit, which no legal name brings about.
    pub fn new(
        name: &impl ToName,
        rtype: Rtype,
        options: &QueryOptions,
    ) -> Result<Self, QueryError> {
        let too_long = || QueryError { name: name.to_vec().to_string() };
        let mut message = MessageBuilder::new_vec();
        message.header_mut().set_rd(options.recursion_desired);
        let mut question = message.question();
        question.push((name, rtype)).map_err(|_| too_long())?;
        let question_end = question.as_slice().len();
        let mut additional = question.additional();
        if let Some(edns) = options.edns {
            additional
                .opt(|opt| {
                    opt.set_udp_payload_size(edns.payload_size);
                    opt.set_dnssec_ok(edns.dnssec_ok);
                    Ok(())
                })
                .map_err(|_| too_long())?;
        }
        let question_end = u16::try_from(question_end).map_err(|_| too_long())?;
        Ok(Self { octets: additional.finish().into_boxed_slice(), question_end })
    }

    /// The whole message, with id 0.
    #[must_use]
    #[inline]
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// The question section: QNAME, QTYPE, QCLASS.
    #[must_use]
    #[inline]
    pub fn question(&self) -> &[u8] {
        &self.octets[HEADER..usize::from(self.question_end)]
    }

    /// The name asked for.
    #[must_use]
    pub fn name(&self) -> Name<&[u8]> {
        Name::from_octets(&self.question()[..self.question().len() - 4])
            .expect("the name was encoded by Query::new")
    }

    /// The type asked for.
    #[must_use]
    pub fn rtype(&self) -> Rtype {
        let question = self.question();
        let at = question.len() - 4;
        Rtype::from_int(u16::from_be_bytes([question[at], question[at + 1]]))
    }

    /// The length of an encoded message if it begins with this query's question: 0x20-folded, as
    /// RFC 4343 compares names.
    #[must_use]
    #[inline]
    pub fn asks_the_same(&self, question: &[u8]) -> bool {
        let own = self.question();
        // Nearly every server gives the question back as it came.
        own == question || own.eq_ignore_ascii_case(question)
    }
}

impl std::fmt::Display for Query {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.name().fmt_with_dot(), self.rtype())
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;

    #[test]
    fn edns_and_flags_are_encoded() {
        let name = Name::<Vec<u8>>::from_str("a.example").unwrap();
        let edns = Some(Edns { payload_size: 1232, dnssec_ok: true });
        let query = Query::new(&name, Rtype::AAAA, &QueryOptions { recursion_desired: true, edns })
            .unwrap();
        let message = domain::base::Message::from_octets(query.octets()).unwrap();
        assert!(message.header().rd());
        let opt = message.opt().unwrap();
        assert_eq!((opt.udp_payload_size(), opt.dnssec_ok()), (1232, true));
        assert_eq!(query.to_string(), "a.example. AAAA");
        assert!(query.asks_the_same(b"\x01A\x07exAMPle\x00\x00\x1c\x00\x01"));
        assert!(!query.asks_the_same(b"\x01b\x07example\x00\x00\x1c\x00\x01"));
    }

    #[test]
    fn names_are_printed_with_one_final_dot() {
        for (name, expected) in
            [(".", ". NS"), ("example", "example. NS"), ("a.example.", "a.example. NS")]
        {
            let name = Name::<Vec<u8>>::from_str(name).unwrap();
            let query = Query::new(&name, Rtype::NS, &QueryOptions::default()).unwrap();
            assert_eq!(query.to_string(), expected);
        }
    }
}
