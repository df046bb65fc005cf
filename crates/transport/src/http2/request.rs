//! Requests as octets: a HEADERS frame (RFC 9113, section 6.2) and, for POST, what goes into DATA.
//!
//! What is the same in all requests of a connection goes into the server's dynamic table with the
//! first one (RFC 7541, section 6.2.1), and is an index of one octet in the others.

use http::uri::{Authority, PathAndQuery};

use super::frame::{HEAD, MAX_PAYLOAD, flag, head, kind};
use super::message::TargetError;
use crate::doh::{MEDIA_TYPE, coded_length, decimal, push_coded};
use crate::primitives::push_number;
use crate::{Method, Target};

/// Indices of the static table (RFC 7541, appendix A).
const AUTHORITY: usize = 1;
const METHOD_GET: usize = 2;
const METHOD_POST: usize = 3;
const PATH: usize = 4;
const SCHEME_HTTPS: usize = 7;
const ACCEPT: usize = 19;
const CONTENT_LENGTH: usize = 28;
const CONTENT_TYPE: usize = 31;

/// The index of the entry that was put into the dynamic table last.
const NEWEST: usize = 62;

/// A change of the dynamic table's size to 0 (RFC 7541, section 6.3).
const NO_TABLE: u8 = 0b0010_0000;

/// The default size of the dynamic table (RFC 9113, section 6.5.2), octets.
const USUAL_TABLE: u32 = 4096;

/// What an entry counts in addition to name and value (RFC 7541, section 4.1), octets.
const ENTRY: usize = 32;

/// What the server's dynamic table knows of our requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    /// Nothing yet; it has room.
    Empty,
    /// The fields that all requests share.
    Filled,
    /// Nothing, and the server must be told so before the next request.
    Closing,
    /// Nothing, for good.
    Closed,
}

#[derive(Debug)]
pub(super) struct Requests {
    method: Method,
    /// The fields that all requests share, in their order, with the indices of their names.
    shared: Vec<(usize, Vec<u8>)>,
    /// GET: all of the path before the value of the variable `dns`.
    before_message: Vec<u8>,
    table: Table,
}

impl Requests {
    /// Fails if no request can be made of the target.
    pub(super) fn new(target: &Target) -> Result<Self, TargetError> {
        Authority::try_from(target.authority.as_str())
            .map_err(|error| TargetError::Authority(target.authority.clone(), error))?;
        let is_path = target.path.starts_with('/');
        // What does not begin with a slash is refused in the same words as what has wrong octets.
        let text = if is_path { target.path.as_str() } else { "/ " };
        let path = PathAndQuery::try_from(text)
            .map_err(|error| TargetError::Path(target.path.clone(), error))?;
        let separator = if path.query().is_some() { '&' } else { '?' };
        let field = |name, value: &str| (name, value.as_bytes().to_vec());
        let mut shared = vec![field(AUTHORITY, &target.authority)];
        match target.method {
            Method::Get => shared.push(field(ACCEPT, MEDIA_TYPE)),
            Method::Post => shared.extend([
                field(PATH, path.as_str()),
                field(ACCEPT, MEDIA_TYPE),
                field(CONTENT_TYPE, MEDIA_TYPE),
            ]),
        }
        let before_message = format!("{path}{separator}dns=").into_bytes();
        // A path that does not fit a table is written out each time.
        let table =
            if size(&shared) <= USUAL_TABLE as usize { Table::Empty } else { Table::Closed };
        Ok(Self { method: target.method, shared, before_message, table })
    }

    /// The server has said how large its dynamic table may be, octets (RFC 9113, section 6.5.2). One that has
    /// become smaller is not used any more.
    pub(super) fn limit_table(&mut self, size: u32) {
        if size < USUAL_TABLE && self.table != Table::Closed {
            self.table = Table::Closing;
        }
    }

    /// Appends the HEADERS of the request that carries `message`, whose id is written as zero (RFC 8484,
    /// section 4.1). True if the body has to follow: a GET has none.
    pub(super) fn push(&mut self, stream: u32, message: &[u8], out: &mut Vec<u8>) -> bool {
        let begin = out.len();
        out.extend_from_slice(&[0; HEAD]);
        if self.table == Table::Closing {
            out.push(NO_TABLE);
            self.table = Table::Closed;
        }
        let has_body = self.method == Method::Post;
        push_index(out, if has_body { METHOD_POST } else { METHOD_GET });
        push_index(out, SCHEME_HTTPS);
        if !has_body {
            // Pseudo-headers come first (RFC 9113, section 8.3).
            self.push_path(message, out);
        }
        self.push_shared(out);
        if has_body {
            let mut digits = [0; 20];
            push_literal(out, 0, 4, CONTENT_LENGTH, decimal(message.len(), &mut digits));
        }
        finish(out, begin, stream, if has_body { 0 } else { flag::END_STREAM });
        has_body
    }

    /// Appends the fields that all requests share, or what stands for them.
    fn push_shared(&mut self, out: &mut Vec<u8>) {
        match self.table {
            Table::Filled => {
                // The newest entry has the lowest index.
                let count = self.shared.len();
                (0..count).for_each(|number| push_index(out, NEWEST + count - 1 - number));
            }
            Table::Empty => {
                for (name, value) in &self.shared {
                    push_literal(out, 0b0100_0000, 6, *name, value);
                }
                self.table = Table::Filled;
            }
            Table::Closing | Table::Closed => {
                for (name, value) in &self.shared {
                    push_literal(out, 0, 4, *name, value);
                }
            }
        }
    }

    /// Appends the path with the message in base64url (RFC 8484, section 4.1).
    fn push_path(&self, message: &[u8], out: &mut Vec<u8>) {
        push_number(out, 0, 4, PATH);
        push_number(out, 0, 7, self.before_message.len() + coded_length(message.len()));
        out.extend_from_slice(&self.before_message);
        push_coded(message, out);
    }
}

/// Octets of fields in a dynamic table (RFC 7541, section 4.1); the longest name is `content-type`.
fn size(fields: &[(usize, Vec<u8>)]) -> usize {
    fields.iter().map(|(_, value)| ENTRY + "content-type".len() + value.len()).sum()
}

/// Appends a field of a table, name and value (RFC 7541, section 6.1).
fn push_index(out: &mut Vec<u8>, index: usize) {
    push_number(out, 0b1000_0000, 7, index);
}

/// Appends a field whose name is in the static table and whose value is written out, in the form of these
/// flags, with so many bits for the name (RFC 7541, section 6.2).
fn push_literal(out: &mut Vec<u8>, form: u8, bits: u32, name: usize, value: &[u8]) {
    push_number(out, form, bits, name);
    push_number(out, 0, 7, value.len());
    out.extend_from_slice(value);
}

/// Writes the head of the frame that begins there. What is too long for one frame goes on in further ones
/// (CONTINUATION, RFC 9113, section 6.10).
fn finish(out: &mut Vec<u8>, begin: usize, stream: u32, flags: u8) {
    let length = out.len() - begin - HEAD;
    if length <= MAX_PAYLOAD {
        let head = head(length, kind::HEADERS, flags | flag::END_HEADERS, stream);
        out[begin..begin + HEAD].copy_from_slice(&head);
        return;
    }
    let block = out.split_off(begin + HEAD);
    out.truncate(begin);
    let last = block.len().div_ceil(MAX_PAYLOAD) - 1;
    for (number, part) in block.chunks(MAX_PAYLOAD).enumerate() {
        let kind = if number == 0 { kind::HEADERS } else { kind::CONTINUATION };
        let begins = if number == 0 { flags } else { 0 };
        let ends = if number == last { flag::END_HEADERS } else { 0 };
        out.extend_from_slice(&head(part.len(), kind, begins | ends, stream));
        out.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    fn requests(method: Method, path: &str) -> Requests {
        let target = Target { authority: "ns.example".to_owned(), path: path.to_owned(), method };
        Requests::new(&target).unwrap()
    }

    #[test]
    fn the_second_request_refers_to_the_first() {
        let message = b"\xab\xcd the query";
        let mut requests = requests(Method::Post, "/dns-query");
        let lengths = [1, 3, 5].map(|stream| {
            let mut out = Vec::new();
            assert!(requests.push(stream, message, &mut out));
            out.len() - HEAD
        });
        // Two octets for method and scheme, four indices, and the length of the body.
        assert_eq!(lengths[1..], [2 + 4 + 5; 2]);
        assert!(lengths[0] > 80, "{lengths:?}");
        requests.limit_table(4095);
        let mut out = Vec::new();
        requests.push(7, message, &mut out);
        assert_eq!(out[HEAD], NO_TABLE);
        let closed = out.len() - HEAD - 1;
        out.clear();
        requests.push(9, message, &mut out);
        assert_eq!(out.len() - HEAD, closed);
        assert!(closed > 80, "{closed}");
    }

    #[test]
    fn a_message_stands_in_the_path_with_an_id_of_zero() {
        for length in [0, 1, 2, 3, 4, 5, 17, 100] {
            let message = vec![0xff; length];
            let mut zeroed = message.clone();
            zeroed.iter_mut().take(2).for_each(|octet| *octet = 0);
            let mut out = Vec::new();
            assert!(!requests(Method::Get, "/q?a=b").push(1, &message, &mut out));
            let coded = URL_SAFE_NO_PAD.encode(&zeroed);
            let path = [b"/q?a=b&dns=".as_slice(), coded.as_bytes()].concat();
            assert!(out.windows(path.len()).any(|part| part == path), "{length}: {out:?}");
        }
    }

    #[test]
    fn a_block_that_is_too_long_goes_on_in_further_frames() {
        let mut out = Vec::new();
        requests(Method::Get, "/").push(1, &vec![0; 65_535], &mut out);
        let mut kinds = Vec::new();
        let mut rest = out.as_slice();
        while let Some(head) = super::super::frame::Head::read(rest) {
            kinds.push((head.kind, head.flags));
            rest = &rest[HEAD + head.length..];
        }
        assert!(rest.is_empty());
        let middle = (kind::CONTINUATION, 0);
        let last = (kind::CONTINUATION, flag::END_HEADERS);
        let first = (kind::HEADERS, flag::END_STREAM);
        assert_eq!(kinds, [first, middle, middle, middle, middle, last]);
    }
}
