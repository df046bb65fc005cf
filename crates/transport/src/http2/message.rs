//! Requests and responses that carry DNS messages, as `h2` has them.

use http::header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::uri::InvalidUri;
use http::{HeaderValue, Request, Response, StatusCode};

use crate::doh::{ALLOWED, MEDIA_TYPE, RequestHead, is_media_type, max_age};

/// A request cannot be made of this target.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// No host with an optional port.
    #[error("`{0}` is no host with an optional port: {1}")]
    Authority(String, #[source] InvalidUri),
    /// No path of a URL.
    #[error("`{0}` is no path of a URL, which begins with `/`: {1}")]
    Path(String, #[source] InvalidUri),
}

pub(super) fn head<T>(request: &Request<T>) -> RequestHead<'_> {
    let content_type = request.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    RequestHead {
        method: request.method().as_str().as_bytes(),
        path: request.uri().path().as_bytes(),
        query: request.uri().query().unwrap_or_default().as_bytes(),
        carries_message: is_media_type(content_type.unwrap_or_default()),
    }
}

/// The head of a response with this message, and how long it may be kept (RFC 8484, section 5.1).
pub(super) fn answer_head(message: &[u8]) -> Response<()> {
    let mut response = Response::new(());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(message.len()));
    // Digits and letters are a value of a field.
    if let Ok(max_age) = HeaderValue::from_bytes(max_age(message, &mut [0; 28])) {
        headers.insert(CACHE_CONTROL, max_age);
    }
    response
}

/// The head of a bare status; with 405 also the methods that are there (RFC 9110, section 15.5.6).
pub(super) fn refusal_head(status: StatusCode) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(ALLOWED));
    }
    response
}
