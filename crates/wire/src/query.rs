//! Queries, encoded once and patched in place.

use crate::header::HEADER;
use domain::base::iana::Rtype;
use domain::base::{MessageBuilder, Name, ToName};

use crate::edns::{
    COOKIE, KEEPALIVE, OPT_FIXED, OPTION_HEADER, PADDING, opt_record, padding_length,
    push_option_header,
};
use crate::{ClientSubnet, Cookie, Edns, Response, Transport, client_subnet, cookie, rtype, tsig};

/// What a query has in addition to its question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryOptions {
    /// The RD bit (RFC 1035, section 4.1.1).
    pub recursion_desired: bool,
    /// The OPT record (RFC 6891), if one is sent.
    pub edns: Option<Edns>,
}

impl QueryOptions {
    /// The options as they may be sent over this transport: see [`Edns::for_transport`].
    #[must_use]
    pub fn for_transport(&self, transport: Transport) -> Self {
        let edns = self.edns.clone().map(|edns| edns.for_transport(transport));
        Self { recursion_desired: self.recursion_desired, edns }
    }
}

/// What one client adds to its queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Additions<'a> {
    /// The client's cookie (RFC 7873).
    pub cookie: Option<&'a Cookie>,
    /// The network that the client is said to be in (RFC 7871).
    pub subnet: Option<&'a ClientSubnet>,
    /// The message is padded to a multiple of this many octets (RFC 7830), whatever the query says; 0 leaves that to
    /// the query.
    pub padding: u16,
}

impl Additions<'_> {
    /// True if this client adds nothing.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.cookie.is_none() && self.subnet.is_none() && self.padding == 0
    }

    #[inline]
    fn length(&self) -> usize {
        self.cookie.map_or(0, Cookie::option_length)
            + self.subnet.map_or(0, ClientSubnet::option_length)
    }
}

/// A query could not be encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot encode a query for {name}: the message would be longer than 65535 octets; give fewer \
     or shorter EDNS options or a smaller padding block"
)]
pub struct QueryError {
    /// The name asked for.
    pub name: String,
}

/// Why a captured message cannot be sent again as a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum NotAQuery {
    /// It ends before its own counts and lengths say.
    #[error("malformed")]
    Malformed,
    /// It is a response, or its opcode is another than QUERY.
    #[error("a response, or no standard query")]
    OtherKind,
    /// It has more or less than one question.
    #[error("not one question")]
    Questions,
    /// A zone transfer, whose answer is a stream of messages (RFC 5936, RFC 1995).
    #[error("a zone transfer")]
    Transfer,
    /// It has records beside its question other than an OPT record: a signature (RFC 8945), say.
    #[error("a signature or other records beside the question")]
    Records,
}

/// One encoded query with message id 0.
///
/// ```
/// use dnslab_wire::{Additions, Cookie, Query, QueryOptions};
/// use domain::base::{Name, iana::Rtype};
/// use std::str::FromStr;
///
/// let name = Name::<Vec<u8>>::from_str("www.example.").unwrap();
/// let query = Query::new(&name, Rtype::A, &QueryOptions::default()).unwrap();
/// assert_eq!(query.octets().len(), 12 + 13 + 4);
/// assert_eq!(query.to_string(), "www.example. A");
///
/// let cookie = Cookie::new(*b"a client");
/// let mut message = Vec::new();
/// let additions = Additions { cookie: Some(&cookie), ..Additions::default() };
/// query.append_to(0x1234, &additions, &mut message);
/// assert_eq!(message.len(), query.octets().len() + 11 + 4 + 8);
/// assert_eq!(message[..2], [0x12, 0x34]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The message without additions. The OPT record follows the question and is the last one; the padding
    /// option is its last option. What a client once sent behind it is no part of any record.
    octets: Box<[u8]>,
    /// Where the question ends; it begins at [`HEADER`].
    question_end: u16,
    /// Where the last record ends, and what is behind it begins.
    records_end: u16,
    /// Where the padding option begins; the end of the message if there is none.
    unpadded_end: u16,
    /// The message is padded to a multiple of this many octets; 0 if it has no padding option.
    padding_block: u16,
}

/// The most octets that a client can add: its options, an OPT record if there was none, and a signature.
const MAX_ADDITIONS: usize =
    OPT_FIXED + cookie::MAX_LENGTH + client_subnet::MAX_LENGTH + tsig::MAX_LENGTH;

impl Query {
    /// Encodes a query of class IN.
    ///
    /// # Errors
    /// When the message with the longest additions would not fit into 65,535 octets. Only options and padding
    /// can do that.
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
        let question_end = question.as_slice().len() as u16;
        let mut octets = question.finish();
        let padding_block = match &options.edns {
            Some(edns) => {
                push_opt(&mut octets, edns);
                edns.padding.map_or(0, |block| block.max(1))
            }
            None => 0,
        };
        let longest = octets.len() + MAX_ADDITIONS;
        let padding = if padding_block == 0 {
            0
        } else {
            OPTION_HEADER + padding_length(longest, padding_block)
        };
        if longest + padding > usize::from(u16::MAX) {
            return Err(too_long());
        }
        let unpadded_end = octets.len() as u16;
        push_padding(&mut octets, 0, padding_block);
        if options.edns.is_some() {
            set_rdlength(&mut octets, usize::from(question_end));
        }
        let records_end = octets.len() as u16;
        let octets = octets.into_boxed_slice();
        Ok(Self { octets, question_end, records_end, unpadded_end, padding_block })
    }

    /// A query that nobody asks: for the root name, with a type and a class that are reserved (RFC 6895,
    /// sections 3.1 and 3.2).
    #[must_use]
    pub fn reserved() -> Self {
        let octets = Box::new([0; HEADER + 5]);
        let end = HEADER as u16 + 5;
        Self { octets, question_end: end, records_end: end, unpadded_end: end, padding_block: 0 }
    }

    /// A query as a client once sent it, with its flags, its EDNS version, payload size and options, and with octets
    /// that were behind it.
    ///
    /// Three options are left out: a cookie is of another server (RFC 7873), keep-alive of another connection
    /// (RFC 7828), and padding of another transport (RFC 7830). The work is bounded by the length of the
    /// message.
    ///
    /// # Errors
    /// When it is not a query that one message answers.
    pub fn from_message(message: &[u8]) -> Result<Self, NotAQuery> {
        Self::read(message, |code| !matches!(code, COOKIE | KEEPALIVE | PADDING))
    }

    /// The message without its padding, with id 0, and the block that it is padded to: what
    /// [`Query::from_parts`] makes the query of again.
    #[must_use]
    pub fn parts(&self) -> (Vec<u8>, u16) {
        let mut message = self.octets[..usize::from(self.unpadded_end)].to_vec();
        if self.has_opt() {
            set_rdlength(&mut message, usize::from(self.question_end));
        }
        message.extend_from_slice(&self.octets[usize::from(self.records_end)..]);
        (message, self.padding_block)
    }

    /// A query of its message without padding, with all its options, and of the block that it is padded to; 0 for no
    /// padding.
    ///
    /// # Errors
    /// When it is not a query that one message answers, or becomes too long.
    pub fn from_parts(message: &[u8], padding_block: u16) -> Result<Self, NotAQuery> {
        let query = Self::read(message, |_| true)?;
        if padding_block == 0 || !query.has_opt() {
            return Ok(query);
        }
        let records_end = usize::from(query.records_end);
        let mut octets = query.octets[..records_end].to_vec();
        push_padding(&mut octets, 0, padding_block);
        let behind = &query.octets[records_end..];
        let longest = octets.len() + behind.len() + MAX_ADDITIONS + usize::from(padding_block);
        if longest > usize::from(u16::MAX) {
            return Err(NotAQuery::Malformed);
        }
        set_rdlength(&mut octets, usize::from(query.question_end));
        let padded_end = octets.len() as u16;
        octets.extend_from_slice(behind);
        let (octets, unpadded_end) = (octets.into_boxed_slice(), query.records_end);
        Ok(Self { octets, records_end: padded_end, unpadded_end, padding_block, ..query })
    }

    /// A query with those options whose codes are to be kept.
    fn read(message: &[u8], keeps: impl Fn(u16) -> bool) -> Result<Self, NotAQuery> {
        let word = |at: usize| -> Result<u16, NotAQuery> {
            let octets = message.get(at..at + 2).ok_or(NotAQuery::Malformed)?;
            Ok(u16::from_be_bytes([octets[0], octets[1]]))
        };
        // QR and OPCODE.
        if word(2)? & 0xf800 != 0 {
            return Err(NotAQuery::OtherKind);
        }
        if word(4)? != 1 {
            return Err(NotAQuery::Questions);
        }
        let name_end = uncompressed_end(message).ok_or(NotAQuery::Malformed)?;
        let question_end = name_end + 4;
        if rtype::is_transfer(word(name_end)?) {
            return Err(NotAQuery::Transfer);
        }
        word(name_end + 2)?;
        match (word(6)?, word(8)?, word(10)?) {
            (0, 0, 0 | 1) => {}
            _ => return Err(NotAQuery::Records),
        }
        let mut octets = Vec::with_capacity(message.len());
        octets.extend_from_slice(&message[..question_end]);
        octets[..2].fill(0);
        let mut behind = &message[question_end..];
        if word(10)? == 1 {
            let opt = question_end;
            let fixed = message.get(opt..opt + OPT_FIXED).ok_or(NotAQuery::Malformed)?;
            if fixed[0] != 0 || word(opt + 1)? != rtype::OPT {
                return Err(NotAQuery::Records);
            }
            let length = usize::from(word(opt + OPT_FIXED - 2)?);
            let mut options;
            (options, behind) =
                message[opt + OPT_FIXED..].split_at_checked(length).ok_or(NotAQuery::Malformed)?;
            octets.extend_from_slice(fixed);
            while !options.is_empty() {
                let (option, rest) = split_option(options).ok_or(NotAQuery::Malformed)?;
                let code = u16::from_be_bytes([option[0], option[1]]);
                if keeps(code) {
                    octets.extend_from_slice(option);
                }
                options = rest;
            }
            set_rdlength(&mut octets, question_end);
        }
        let (question_end, records_end) = (question_end as u16, octets.len() as u16);
        octets.extend_from_slice(behind);
        if octets.len() + MAX_ADDITIONS > usize::from(u16::MAX) {
            return Err(NotAQuery::Malformed);
        }
        let (octets, unpadded_end) = (octets.into_boxed_slice(), records_end);
        Ok(Self { octets, question_end, records_end, unpadded_end, padding_block: 0 })
    }

    /// Appends the message with this id and what this client adds. Without additions it is a copy of
    /// [`Query::octets`]. Padding is computed last, so that the whole length is a multiple of the block. What a client
    /// once sent behind its records does not go with additions.
    ///
    /// A query without an OPT record gets that of [`Edns::default`] for the additions.
    #[inline]
    pub fn append_to(&self, id: u16, additions: &Additions<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        if additions.is_empty() {
            out.extend_from_slice(&self.octets);
        } else {
            self.append_with(additions, out);
        }
        out[start..start + 2].copy_from_slice(&id.to_be_bytes());
    }

    /// As [`Query::append_to`], but nothing is behind the last record: one more may follow, as a signature.
    pub fn append_records_to(&self, id: u16, additions: &Additions<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        self.append_to(id, additions, out);
        if additions.is_empty() {
            out.truncate(start + usize::from(self.records_end));
        }
    }

    /// The slow path of [`Query::append_to`]: the template without its padding, the additions, and new
    /// padding.
    fn append_with(&self, additions: &Additions<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.octets[..usize::from(self.unpadded_end)]);
        if !self.has_opt() {
            push_opt_fixed(out, start, Edns::default().payload_size, false);
        }
        if let Some(cookie) = additions.cookie {
            cookie.push_option(out);
        }
        if let Some(subnet) = additions.subnet {
            subnet.push_option(out);
        }
        push_padding(out, start, self.padding_with(additions, out.len() - start));
        set_rdlength(&mut out[start..], usize::from(self.question_end));
    }

    /// The length in octets of what [`Query::append_to`] appends.
    #[must_use]
    #[inline]
    pub fn length_with(&self, additions: &Additions<'_>) -> usize {
        if additions.is_empty() {
            return self.octets.len();
        }
        let opt = if self.has_opt() { 0 } else { OPT_FIXED };
        let length = usize::from(self.unpadded_end) + opt + additions.length();
        match self.padding_with(additions, length) {
            0 => length,
            block => length + OPTION_HEADER + padding_length(length, block),
        }
    }

    /// The block that a message of this length is padded to; 0 for none. A message that is too long for it is not
    /// padded.
    fn padding_with(&self, additions: &Additions<'_>, length: usize) -> u16 {
        let fits =
            |block| length + OPTION_HEADER + padding_length(length, block) <= usize::from(u16::MAX);
        match additions.padding {
            0 => self.padding_block,
            block if fits(block) => block,
            _ => 0,
        }
    }

    #[inline]
    fn has_opt(&self) -> bool {
        self.records_end > self.question_end
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

    /// True if these octets are this query's question. The case of letters does not matter (RFC 4343).
    #[must_use]
    #[inline]
    pub fn asks_the_same(&self, question: &[u8]) -> bool {
        let own = self.question();
        // Nearly every server gives the question back as it came.
        own == question || own.eq_ignore_ascii_case(question)
    }

    /// True if a response has this query's question. A server may leave it out of an error: of a format
    /// error, for example, if it could not read the question.
    #[must_use]
    #[inline]
    pub fn is_answered_by(&self, response: &Response<'_>) -> bool {
        self.asks_the_same(response.question)
            || (response.question.is_empty() && response.rcode != 0)
    }
}

/// Where the name of a question ends, which cannot be compressed: nothing stands before it.
fn uncompressed_end(message: &[u8]) -> Option<usize> {
    let mut at = HEADER;
    loop {
        match usize::from(*message.get(at)?) {
            0 => break,
            length @ 1..64 => at += 1 + length,
            _ => return None,
        }
    }
    // RFC 1035, section 3.1.
    (at + 1 - HEADER <= 255 && at + 5 <= message.len()).then_some(at + 1)
}

/// The first option with its header, and what follows it.
fn split_option(options: &[u8]) -> Option<(&[u8], &[u8])> {
    let header = options.first_chunk::<OPTION_HEADER>()?;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    options.split_at_checked(OPTION_HEADER + length)
}

/// Appends the OPT record of a template, without padding and RDLENGTH, to a message that ends with its
/// question.
fn push_opt(message: &mut Vec<u8>, edns: &Edns) {
    push_opt_fixed(message, 0, edns.payload_size, edns.dnssec_ok);
    for option in &edns.options {
        // A length that does not fit is refused with the whole message, which is then too long.
        push_option_header(message, option.code, option.data.len() as u16);
        message.extend_from_slice(&option.data);
    }
    if edns.keepalive {
        push_option_header(message, KEEPALIVE, 0);
    }
}

/// Appends an OPT record without options (RFC 6891, section 6.1.2) to the message that begins at `start`, and
/// counts it.
#[inline]
fn push_opt_fixed(out: &mut Vec<u8>, start: usize, payload_size: u16, dnssec_ok: bool) {
    out.extend_from_slice(&opt_record(payload_size, 0, dnssec_ok));
    out[start + 11] = 1;
}

/// The message begins at `start`; a block of 0 is no padding.
#[inline]
fn push_padding(out: &mut Vec<u8>, start: usize, block: u16) {
    if block > 0 {
        let length = padding_length(out.len() - start, block);
        push_option_header(out, PADDING, length as u16);
        out.resize(out.len() + length, 0);
    }
}

/// The OPT record begins at `opt` and is the last of the message.
#[inline]
fn set_rdlength(message: &mut [u8], opt: usize) {
    let length = (message.len() - opt - OPT_FIXED) as u16;
    message[opt + OPT_FIXED - 2..opt + OPT_FIXED].copy_from_slice(&length.to_be_bytes());
}

impl std::fmt::Display for Query {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.name().fmt_with_dot(), self.rtype())
    }
}

#[cfg(test)]
mod tests;
