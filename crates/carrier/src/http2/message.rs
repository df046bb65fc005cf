//! DNS messages as HTTP requests and responses (RFC 8484, sections 4 and 6).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::uri::InvalidUri;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};

/// The media type of a DNS message (RFC 8484, section 6).
pub(super) const MEDIA_TYPE: &str = "application/dns-message";

/// The longest DNS message, octets (RFC 1035, section 4.2.2).
pub(super) const LONGEST_MESSAGE: usize = u16::MAX as usize;

/// A request cannot be made of this target.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The authority is none.
    #[error("`{0}` is no host with an optional port: {1}")]
    Authority(String, #[source] InvalidUri),
    /// The path is none.
    #[error("`{0}` is no path of a URL, which begins with `/`: {1}")]
    Path(String, #[source] InvalidUri),
}

/// True if the content type is that of a DNS message; parameters are not looked at.
pub(super) fn is_media_type(value: &[u8]) -> bool {
    if value == MEDIA_TYPE.as_bytes() {
        // As nearly everybody writes it.
        return true;
    }
    let value = value.split(|octet| *octet == b';').next().unwrap_or_default();
    value.trim_ascii().eq_ignore_ascii_case(MEDIA_TYPE.as_bytes())
}

/// The content type in these headers is that of a DNS message.
fn carries_message(headers: &HeaderMap) -> bool {
    is_media_type(headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default())
}

/// What a server makes of the head of a request.
pub(super) enum Asked {
    /// The message was in the address.
    Message(Vec<u8>),
    /// The message is the body.
    Body,
    /// The request is refused with this status.
    Refused(StatusCode),
}

/// Reads the head of a request to a server that serves `path`.
pub(super) fn read_head<T>(request: &Request<T>, path: &str) -> Asked {
    if request.uri().path() != path {
        return Asked::Refused(StatusCode::NOT_FOUND);
    }
    match *request.method() {
        http::Method::GET => read_query(request.uri().query().unwrap_or_default()),
        http::Method::POST if carries_message(request.headers()) => Asked::Body,
        http::Method::POST => Asked::Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE),
        _ => Asked::Refused(StatusCode::METHOD_NOT_ALLOWED),
    }
}

/// Reads the variable `dns` of a query string. Without one, or if it is no base64url, the request
/// is a bad one; if it is too long for a message, it is too long.
fn read_query(query: &str) -> Asked {
    let Some(text) = query.split('&').find_map(|part| part.strip_prefix("dns=")) else {
        return Asked::Refused(StatusCode::BAD_REQUEST);
    };
    if text.len() > LONGEST_MESSAGE.div_ceil(3) * 4 {
        return Asked::Refused(StatusCode::URI_TOO_LONG);
    }
    match URL_SAFE_NO_PAD.decode(text) {
        Ok(message) => Asked::Message(message),
        Err(_) => Asked::Refused(StatusCode::BAD_REQUEST),
    }
}

/// The head of a response that carries a message of so many octets.
pub(super) fn answer_head(length: usize) -> Response<()> {
    let mut response = Response::new(());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}

/// The head of a response that carries nothing but a status.
pub(super) fn refusal_head(status: StatusCode) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    response
}
