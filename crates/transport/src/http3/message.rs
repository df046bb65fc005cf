//! Requests and responses (RFC 9114, section 4) that carry DNS messages (RFC 8484).

use bytes::{BufMut as _, BytesMut};
use http::StatusCode;

use super::frames::{self, Frame, Kind};
use super::qpack::{self, Fields, Name};
use crate::doh::{
    ALLOWED, MAX_MESSAGE, MessageIn, RequestHead, coded_length, decimal, is_answer, is_media_type,
    max_age, push_coded, status,
};
use crate::quic::QuicError;
use crate::{Method, Target};

/// Indexes in the static table (RFC 9204, appendix A).
mod index {
    pub(super) const AUTHORITY: usize = 0;
    /// `:path /`, for its name.
    pub(super) const PATH: usize = 1;
    /// `content-length 0`, for its name.
    pub(super) const CONTENT_LENGTH: usize = 4;
    pub(super) const GET: usize = 17;
    pub(super) const POST: usize = 20;
    /// `:scheme https`
    pub(super) const HTTPS: usize = 23;
    /// `:status 200`, which is also a `:status` for its name.
    pub(super) const OK: usize = 25;
    /// `cache-control max-age=0`, for its name.
    pub(super) const CACHE_CONTROL: usize = 36;
    /// `accept application/dns-message`
    pub(super) const ACCEPT_MESSAGE: usize = 30;
    /// `content-type application/dns-message`
    pub(super) const MESSAGE_TYPE: usize = 44;
}

/// What all requests to one target share, made once.
pub(super) struct Requests {
    method: Method,
    /// GET: what stands before the value of `:path`. POST: the whole section but the length.
    before: Vec<u8>,
    /// GET: the path up to the value of the variable `dns`.
    path: Vec<u8>,
    /// GET: what stands after the value of `:path`.
    after: Vec<u8>,
    /// A section under construction.
    section: Vec<u8>,
}

impl Requests {
    pub(super) fn new(target: &Target) -> Self {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let separator = if target.path.contains('?') { '&' } else { '?' };
        let path = format!("{}{separator}dns=", target.path).into_bytes();
        qpack::begin(&mut before);
        let is_get = target.method == Method::Get;
        qpack::push_indexed(&mut before, if is_get { index::GET } else { index::POST });
        qpack::push_indexed(&mut before, index::HTTPS);
        qpack::push_named(&mut before, index::AUTHORITY, target.authority.as_bytes());
        if is_get {
            qpack::push_indexed(&mut after, index::ACCEPT_MESSAGE);
        } else {
            qpack::push_named(&mut before, index::PATH, target.path.as_bytes());
            qpack::push_indexed(&mut before, index::ACCEPT_MESSAGE);
            qpack::push_indexed(&mut before, index::MESSAGE_TYPE);
        }
        Self { method: target.method, before, path, after, section: Vec::new() }
    }

    /// Octets of a request that carries so long a message, at most.
    pub(super) fn space(&self, message: usize) -> usize {
        let section = self.before.len() + self.path.len() + self.after.len() + 32;
        section + 2 * message + 32
    }

    /// Appends the request that carries `message`, with an id of 0 (RFC 8484, section 4.1).
    pub(super) fn push(&mut self, message: &[u8], out: &mut BytesMut) {
        self.section.clear();
        self.section.extend_from_slice(&self.before);
        if self.method == Method::Post {
            push_length(&mut self.section, message.len());
            frames::push_head(out, frames::HEADERS, self.section.len());
            out.put_slice(&self.section);
            frames::push_head(out, frames::DATA, message.len());
            out.put_u16(0);
            out.put_slice(&message[2..]);
            return;
        }
        let length = self.path.len() + coded_length(message.len());
        qpack::push_value_head(&mut self.section, index::PATH, length);
        self.section.extend_from_slice(&self.path);
        push_coded(message, &mut self.section);
        self.section.extend_from_slice(&self.after);
        frames::push_head(out, frames::HEADERS, self.section.len());
        out.put_slice(&self.section);
    }
}

fn push_length(section: &mut Vec<u8>, length: usize) {
    qpack::push_named(section, index::CONTENT_LENGTH, decimal(length, &mut [0; 20]));
}

/// Appends a response with a message, or without it to answer HEAD (RFC 9110, section 9.3.2).
pub(super) fn push_answer(out: &mut Vec<u8>, message: &[u8], is_head: bool) {
    let mut section = Vec::with_capacity(32);
    qpack::begin(&mut section);
    qpack::push_indexed(&mut section, index::OK);
    qpack::push_indexed(&mut section, index::MESSAGE_TYPE);
    qpack::push_named(&mut section, index::CACHE_CONTROL, max_age(message, &mut [0; 28]));
    push_length(&mut section, message.len());
    frames::push_head(out, frames::HEADERS, section.len());
    out.extend_from_slice(&section);
    if is_head {
        return;
    }
    frames::push_head(out, frames::DATA, message.len());
    out.extend_from_slice(message);
}

/// Appends a bare status; with 405 also the methods that are there (RFC 9110, section 15.5.6).
pub(super) fn push_refusal(out: &mut Vec<u8>, status: u16) {
    let mut section = Vec::new();
    qpack::begin(&mut section);
    qpack::push_named(&mut section, index::OK, status.to_string().as_bytes());
    if status == StatusCode::METHOD_NOT_ALLOWED {
        qpack::push_literal(&mut section, b"allow", ALLOWED.as_bytes());
    }
    frames::push_head(out, frames::HEADERS, section.len());
    out.extend_from_slice(&section);
}

/// Octets of a field section that are taken; more are refused with 431 (RFC 9114, section 4.2.2).
/// The longest message in base64url has 87,380.
pub(super) const FIELD_SECTION: usize = 1 << 17;

/// The body of a message on a stream: its place in the octets if it is in one piece, otherwise its pieces.
#[derive(Default)]
struct Body {
    /// The place of the only piece.
    place: Option<(usize, usize)>,
    /// All pieces, once there are two.
    pieces: Vec<u8>,
}

impl Body {
    fn add(&mut self, octets: &[u8], start: usize, end: usize) {
        match self.place {
            None => self.place = Some((start, end)),
            Some((first, last)) => {
                if self.pieces.is_empty() {
                    self.pieces.extend_from_slice(&octets[first..last]);
                }
                self.pieces.extend_from_slice(&octets[start..end]);
            }
        }
    }

    /// Leaves all of it in `octets`, and nothing else.
    fn gather(self, octets: &mut Vec<u8>) {
        match self.place {
            _ if !self.pieces.is_empty() => *octets = self.pieces,
            Some((start, end)) => {
                octets.copy_within(start..end, 0);
                octets.truncate(end - start);
            }
            None => octets.clear(),
        }
    }
}

#[derive(Default)]
struct Head {
    status: Option<u16>,
    method: Option<Vec<u8>>,
    path: Option<Vec<u8>>,
    /// The content type is that of DNS messages.
    is_message: bool,
    /// Octets as the limit of a section counts them: 32 and the value for each field, without the names.
    size: usize,
}

impl Head {
    fn read(section: &[u8]) -> Result<Self, QuicError> {
        let unreadable = |_| QuicError::Protocol("a field section that cannot be decompressed");
        let (mut head, mut fields) = (Self::default(), Fields::new(section).map_err(unreadable)?);
        while let Some(field) = fields.take().map_err(unreadable)? {
            head.size += 32 + field.value.len();
            match field.name {
                Name::Status => head.status = status(&field.value),
                Name::Method => head.method = Some(field.value.into_owned()),
                Name::Path => head.path = Some(field.value.into_owned()),
                Name::ContentType => head.is_message = is_media_type(&field.value),
                Name::Other => {}
            }
        }
        Ok(head)
    }
}

/// Field sections that were read before and said 200 and a DNS message, so that the next of the same octets
/// need not be read. Without a dynamic table, the same octets say the same (RFC 9204, section 3.2.3). A
/// server's responses differ at most in the length that they state, and that mostly stands last. So the last
/// octet of a section is its place.
#[derive(Default)]
pub(super) struct KnownHeads([Vec<u8>; 8]);

impl KnownHeads {
    fn place(section: &[u8]) -> usize {
        usize::from(section.last().copied().unwrap_or(0) % 8)
    }

    /// Reads a field section; fails like [`Head::read`].
    fn read(&mut self, section: &[u8]) -> Result<Head, QuicError> {
        let known = &mut self.0[Self::place(section)];
        if known == section && !section.is_empty() {
            return Ok(Head { status: Some(200), is_message: true, ..Head::default() });
        }
        let head = Head::read(section)?;
        if head.status == Some(200) && head.is_message {
            known.clear();
            known.extend_from_slice(section);
        }
        Ok(head)
    }
}

/// Reads the frames of a whole message, its sections with `read`: the last before the body, and the body.
/// `None` if it is malformed: without a head, or cut. Fails if the peer broke the rules of the whole connection.
fn read_frames(
    octets: &[u8],
    mut read: impl FnMut(&[u8]) -> Result<Head, QuicError>,
) -> Result<Option<(Head, Body)>, QuicError> {
    let (mut rest, mut head, mut body) = (octets, None::<Head>, Body::default());
    while let Some(frame) = frames::take(&mut rest)? {
        match frame {
            // Trailers say nothing that matters.
            Frame::Headers(_) if body.place.is_some() => {}
            Frame::Headers(section) => head = Some(read(section)?),
            Frame::Data(_) if head.is_none() => {
                return Err(QuicError::Protocol("a body before its head"));
            }
            Frame::Data(piece) => {
                let end = octets.len() - rest.len();
                body.add(octets, end - piece.len(), end);
            }
            Frame::Settings(_) | Frame::GoAway(_) | Frame::Other(Kind::OfHttp2) => {
                return Err(QuicError::Protocol("a frame that a request's stream must not have"));
            }
            Frame::Other(Kind::Push) => {
                return Err(QuicError::Protocol("a pushed response that nobody asked for"));
            }
            Frame::Other(Kind::Unknown) => {}
        }
    }
    if !rest.is_empty() {
        return Ok(None);
    }
    Ok(head.map(|head| (head, body)))
}

/// Reads a whole response, and leaves nothing but its body in `octets`. Fails with [`Unanswered::Refused`]
/// and the status when it carries no DNS message; with 0 when it is malformed.
pub(super) fn read_response(
    octets: &mut Vec<u8>,
    known: &mut KnownHeads,
) -> Result<(), Unanswered> {
    let content = read_frames(octets, |section| known.read(section))?;
    let (head, body) = content.ok_or(Unanswered::Refused(0))?;
    match head.status {
        Some(200) if head.is_message => {
            body.gather(octets);
            if is_answer(octets) { Ok(()) } else { Err(Unanswered::Refused(200)) }
        }
        status => Err(Unanswered::Refused(status.unwrap_or(0))),
    }
}

/// Why there is no message.
pub(super) enum Unanswered {
    /// The status of a refused request, or of a response without a message; 0 if that is malformed.
    Refused(u16),
    /// The peer broke the rules of the whole connection.
    Broken(QuicError),
}

impl From<StatusCode> for Unanswered {
    fn from(status: StatusCode) -> Self {
        Self::Refused(status.as_u16())
    }
}

impl From<QuicError> for Unanswered {
    fn from(error: QuicError) -> Self {
        Self::Broken(error)
    }
}

/// Reads a whole request to a server of this path, and leaves nothing but the DNS message in `octets`. True
/// if the method is HEAD, which is there wherever GET is (RFC 9110, section 9.1).
///
/// # Errors
/// [`Unanswered::Refused`] with the status to be sent: a path that is not served (404), a method other than
/// GET, HEAD and POST (405), a message that is too long (413, 414), another content type (415), a head that
/// is too long (431), and what is malformed (400).
pub(super) fn read_request(octets: &mut Vec<u8>, served: &str) -> Result<bool, Unanswered> {
    let (head, body) = read_frames(octets, Head::read)?.ok_or(Unanswered::Refused(400))?;
    if head.size > FIELD_SECTION {
        return Err(Unanswered::Refused(431));
    }
    let (Some(method), Some(target)) = (&head.method, &head.path) else {
        return Err(Unanswered::Refused(400));
    };
    let mut parts = target.splitn(2, |octet| *octet == b'?');
    let (path, query) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let request = RequestHead { method, path, query, carries_message: head.is_message };
    match request.message(served, octets)? {
        MessageIn::Query { is_head } => Ok(is_head),
        MessageIn::Body => {
            body.gather(octets);
            if octets.len() > MAX_MESSAGE { Err(Unanswered::Refused(413)) } else { Ok(false) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &[u8], path: &[u8], fields: usize, body: &[u8]) -> Vec<u8> {
        let (mut octets, mut section) = (Vec::new(), Vec::new());
        qpack::begin(&mut section);
        qpack::push_named(&mut section, index::GET, method);
        qpack::push_named(&mut section, index::PATH, path);
        (0..fields).for_each(|_| qpack::push_indexed(&mut section, index::MESSAGE_TYPE));
        frames::push_head(&mut octets, frames::HEADERS, section.len());
        octets.extend_from_slice(&section);
        if !body.is_empty() {
            frames::push_head(&mut octets, frames::DATA, body.len());
            octets.extend_from_slice(body);
        }
        octets
    }

    #[track_caller]
    fn check(mut octets: Vec<u8>, expected: Result<(bool, &[u8]), u16>) {
        let read = read_request(&mut octets, "/q").map_err(|error| match error {
            Unanswered::Refused(status) => status,
            Unanswered::Broken(error) => panic!("{error}"),
        });
        assert_eq!(read.map(|is_head| (is_head, octets.as_slice())), expected);
    }

    #[test]
    fn requests_are_read_or_refused() {
        check(request(b"GET", b"/q?dns=AAAB", 0, b""), Ok((false, &[0, 0, 1])));
        check(request(b"HEAD", b"/q?dns=AAAB", 0, b""), Ok((true, &[0, 0, 1])));
        check(request(b"POST", b"/q", 1, b"abc"), Ok((false, b"abc")));
        check(request(b"POST", b"/q", 0, b"abc"), Err(415));
        check(request(b"PUT", b"/q", 1, b"abc"), Err(405));
        check(request(b"GET", b"/", 0, b""), Err(404));
        // 2,340 fields of 32 octets and the media type each are beyond 128 KiB, in 2 KiB.
        check(request(b"GET", b"/q?dns=AAAB", 2_000, b""), Ok((false, &[0, 0, 1])));
        check(request(b"GET", b"/q?dns=AAAB", 3_000, b""), Err(431));
    }

    #[test]
    fn answers_say_how_long_they_may_be_kept() {
        const ANSWER: &[u8] =
            b"\0\0\x84\0\0\0\0\x01\0\0\0\0\0\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x01";
        let contains =
            |octets: &[u8], part: &[u8]| octets.windows(part.len()).any(|window| window == part);
        for is_head in [false, true] {
            let mut out = Vec::new();
            push_answer(&mut out, ANSWER, is_head);
            assert!(contains(&out, b"max-age=60"), "{out:x?}");
            assert_eq!(out.ends_with(ANSWER), !is_head);
        }
        let mut out = Vec::new();
        push_refusal(&mut out, 405);
        assert!(contains(&out, b"allow\x0fGET, HEAD, POST"), "{out:x?}");
    }
}
