//! DNS messages as HTTP requests and responses (RFC 8484, sections 4 and 6).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::uri::InvalidUri;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};

use crate::freshness::freshness;

/// The media type of a DNS message (RFC 8484, section 6).
pub(super) const MEDIA_TYPE: &str = "application/dns-message";

/// The longest DNS message, octets (RFC 1035, section 4.2.2).
pub(super) const MAX_MESSAGE: usize = u16::MAX as usize;

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
    Message {
        /// The message.
        message: Vec<u8>,
        /// The method is HEAD, so no body is wanted.
        is_head: bool,
    },
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
        // HEAD is there wherever GET is (RFC 9110, section 9.1).
        Method::GET | Method::HEAD => {
            let is_head = request.method() == Method::HEAD;
            read_query(request.uri().query().unwrap_or_default(), is_head)
        }
        Method::POST if carries_message(request.headers()) => Asked::Body,
        Method::POST => Asked::Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE),
        _ => Asked::Refused(StatusCode::METHOD_NOT_ALLOWED),
    }
}

/// Reads the variable `dns` of a query string. Without one, or if it is no base64url, the request
/// is a bad one; if it is too long for a message, it is too long.
fn read_query(query: &str, is_head: bool) -> Asked {
    let Some(text) = query.split('&').find_map(|part| part.strip_prefix("dns=")) else {
        return Asked::Refused(StatusCode::BAD_REQUEST);
    };
    if text.len() > MAX_MESSAGE.div_ceil(3) * 4 {
        return Asked::Refused(StatusCode::URI_TOO_LONG);
    }
    match URL_SAFE_NO_PAD.decode(text) {
        Ok(message) => Asked::Message { message, is_head },
        Err(_) => Asked::Refused(StatusCode::BAD_REQUEST),
    }
}

/// The head of a response that carries this message, with how long it may be kept (RFC 8484,
/// section 5.1).
pub(super) fn answer_head(message: &[u8]) -> Response<()> {
    let mut response = Response::new(());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(message.len()));
    // Digits and letters are a value of a field.
    if let Ok(max_age) = HeaderValue::try_from(format!("max-age={}", freshness(message))) {
        headers.insert(CACHE_CONTROL, max_age);
    }
    response
}

/// The head of a response that carries nothing but a status, and with 405 the methods that are
/// there (RFC 9110, section 15.5.6).
pub(super) fn refusal_head(status: StatusCode) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
    }
    response
}
