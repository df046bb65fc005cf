//! DNS messages as HTTP requests and responses (RFC 8484), whichever version of HTTP carries them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;

use crate::freshness::freshness;

/// The media type of a DNS message (RFC 8484, section 6).
pub(crate) const MEDIA_TYPE: &str = "application/dns-message";

/// The longest DNS message, octets (RFC 1035, section 4.2.2).
pub(crate) const MAX_MESSAGE: usize = u16::MAX as usize;

/// The methods of a server, for `allow` in a refusal with 405 (RFC 9110, section 15.5.6).
pub(crate) const ALLOWED: &str = "GET, HEAD, POST";

/// True if the content type is that of a DNS message; parameters are ignored.
pub(crate) fn is_media_type(value: &[u8]) -> bool {
    if value == MEDIA_TYPE.as_bytes() {
        // As nearly everybody writes it.
        return true;
    }
    let value = value.split(|octet| *octet == b';').next().unwrap_or_default();
    value.trim_ascii().eq_ignore_ascii_case(MEDIA_TYPE.as_bytes())
}

/// A status of three digits, 100 to 999 (RFC 9110, section 15).
pub(crate) fn status(digits: &[u8]) -> Option<u16> {
    let is_one = digits.len() == 3 && digits.iter().all(u8::is_ascii_digit) && digits[0] > b'0';
    is_one.then(|| digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0')))
}

/// True if the body is an answer. Its id is zero, like that of the request (RFC 8484, section 4.1).
#[inline]
pub(crate) fn is_answer(body: &[u8]) -> bool {
    body.len() <= MAX_MESSAGE && body.starts_with(&[0, 0])
}

/// Letters in base64url of a message of so many octets.
pub(crate) fn coded_length(message: usize) -> usize {
    base64::encoded_len(message, false).unwrap_or(usize::MAX)
}

/// Appends a message in base64url, with an id of 0: the value of the variable `dns` (RFC 8484, section 4.1).
pub(crate) fn push_coded(message: &[u8], out: &mut Vec<u8>) {
    let mut at = out.len();
    out.resize(at + coded_length(message.len()), 0);
    // The first three octets are the id and one more: four letters.
    let (start, rest) = message.split_at(message.len().min(3));
    let mut first = [0; 3];
    first[start.len().min(2)..start.len()].copy_from_slice(&start[start.len().min(2)..]);
    for part in [&first[..start.len()], rest] {
        let written = URL_SAFE_NO_PAD.encode_slice(part, &mut out[at..]);
        at += written.expect("the length was computed");
    }
}

pub(crate) fn decimal(mut number: usize, digits: &mut [u8; 20]) -> &[u8] {
    let mut begin = digits.len();
    loop {
        begin -= 1;
        digits[begin] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[begin..];
        }
    }
}

/// How long a response with this message may be kept, for `cache-control` (RFC 8484, section 5.1).
pub(crate) fn max_age<'a>(message: &[u8], field: &'a mut [u8; 28]) -> &'a [u8] {
    const NAME: &[u8] = b"max-age=";
    let mut digits = [0; 20];
    let digits = decimal(freshness(message) as usize, &mut digits);
    let length = NAME.len() + digits.len();
    field[..NAME.len()].copy_from_slice(NAME);
    field[NAME.len()..length].copy_from_slice(digits);
    &field[..length]
}

/// The head of a request, as far as it matters.
pub(crate) struct RequestHead<'a> {
    pub(crate) method: &'a [u8],
    /// Without its query.
    pub(crate) path: &'a [u8],
    pub(crate) query: &'a [u8],
    /// The content type is that of a DNS message.
    pub(crate) carries_message: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageIn {
    /// In the query. HEAD, which is there wherever GET is (RFC 9110, section 9.1), wants no body.
    Query {
        /// The method is HEAD.
        is_head: bool,
    },
    Body,
}

impl RequestHead<'_> {
    /// Where the message of a request is, for a server of this path. One in the query replaces what `message`
    /// holds.
    ///
    /// # Errors
    /// The status to refuse it with: another path (404), another method (405), no message in the query (400)
    /// or one that is too long (414), another content type (415).
    pub(crate) fn message(
        &self,
        served: &str,
        message: &mut Vec<u8>,
    ) -> Result<MessageIn, StatusCode> {
        if self.path != served.as_bytes() {
            return Err(StatusCode::NOT_FOUND);
        }
        match self.method {
            b"GET" | b"HEAD" => {
                read_query(self.query, message)?;
                Ok(MessageIn::Query { is_head: self.method == b"HEAD" })
            }
            b"POST" if self.carries_message => Ok(MessageIn::Body),
            b"POST" => Err(StatusCode::UNSUPPORTED_MEDIA_TYPE),
            _ => Err(StatusCode::METHOD_NOT_ALLOWED),
        }
    }
}

/// Reads the variable `dns` of a query.
fn read_query(query: &[u8], message: &mut Vec<u8>) -> Result<(), StatusCode> {
    let mut variables = query.split(|octet| *octet == b'&');
    let text = variables.find_map(|part| part.strip_prefix(b"dns="));
    let text = text.ok_or(StatusCode::BAD_REQUEST)?;
    if text.len() > MAX_MESSAGE.div_ceil(3) * 4 {
        return Err(StatusCode::URI_TOO_LONG);
    }
    message.clear();
    URL_SAFE_NO_PAD.decode_vec(text, message).map_err(|_| StatusCode::BAD_REQUEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &str, path: &str, carries_message: bool, expected: Result<&[u8], u16>) {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let (method, path, query) = (method.as_bytes(), path.as_bytes(), query.as_bytes());
        let head = RequestHead { method, path, query, carries_message };
        let mut message = b"what came before".to_vec();
        let found = head.message("/q", &mut message).map_err(|status| status.as_u16());
        let found = found.map(|place| match place {
            MessageIn::Query { is_head } => {
                assert_eq!(is_head, method == b"HEAD");
                message.as_slice()
            }
            MessageIn::Body => b"body".as_slice(),
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn messages_are_found_or_refused() {
        check("GET", "/q?dns=AAAB", false, Ok(&[0, 0, 1]));
        check("HEAD", "/q?a=b&dns=AAAB&c", true, Ok(&[0, 0, 1]));
        check("GET", "/q?dns=", false, Ok(&[]));
        check("POST", "/q", true, Ok(b"body"));
        check("POST", "/q?dns=AAAB", false, Err(415));
        check("PUT", "/q?dns=AAAB", true, Err(405));
        check("get", "/q?dns=AAAB", true, Err(405));
        check("GET", "/?dns=AAAB", false, Err(404));
        check("GET", "/q", false, Err(400));
        check("GET", "/q?ndns=AAAB", false, Err(400));
        // Padded, and no base64url.
        check("GET", "/q?dns=AA==", false, Err(400));
        check("GET", "/q?dns=A+/B", false, Err(400));
        let longest = format!("/q?dns={}", "A".repeat(87_380));
        check("GET", &longest, false, Ok(&[0; 65_535]));
        check("GET", &format!("{longest}A"), false, Err(414));
    }

    #[test]
    fn content_types_and_statuses() {
        for (value, expected) in [
            ("application/dns-message", true),
            ("Application/DNS-message ; charset=utf-8", true),
            ("application/dns-message2", false),
            ("text/plain", false),
            ("", false),
        ] {
            assert_eq!(is_media_type(value.as_bytes()), expected, "{value}");
        }
        for (digits, expected) in
            [("200", Some(200)), ("999", Some(999)), ("099", None), ("0200", None), ("20", None)]
        {
            assert_eq!(status(digits.as_bytes()), expected, "{digits}");
        }
    }

    #[test]
    fn numbers_have_digits() {
        for number in [0, 7, 10, 65_535] {
            assert_eq!(decimal(number, &mut [0; 20]), number.to_string().as_bytes());
        }
        assert_eq!(max_age(b"", &mut [0; 28]), b"max-age=0");
    }

    #[test]
    fn coded_messages_have_an_id_of_zero() {
        for length in [0, 1, 2, 3, 4, 5, 17, 100] {
            let (message, mut zeroed) = (vec![0xff; length], vec![0xff; length]);
            zeroed.iter_mut().take(2).for_each(|octet| *octet = 0);
            let mut out = b"before".to_vec();
            push_coded(&message, &mut out);
            assert_eq!(out, [b"before", URL_SAFE_NO_PAD.encode(&zeroed).as_bytes()].concat());
        }
    }
}
