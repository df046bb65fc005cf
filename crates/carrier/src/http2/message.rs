//! DNS messages as HTTP requests and responses (RFC 8484, sections 4 and 6).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use http::uri::{Authority, InvalidUri, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};

use crate::{Method, Target};

/// The media type of a DNS message (RFC 8484, section 6).
const MEDIA_TYPE: &str = "application/dns-message";

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

/// What all requests to one target share, made once.
pub(super) struct Requests {
    method: Method,
    /// POST: the whole address. GET: without the variable `dns`.
    address: Uri,
    authority: Authority,
    /// GET: all before the value of the variable `dns`.
    before_message: String,
    headers: HeaderMap,
    /// The length in `headers`, octets.
    length: usize,
}

impl Requests {
    /// Checks the target.
    pub(super) fn new(target: &Target) -> Result<Self, TargetError> {
        let authority = Authority::try_from(target.authority.as_str())
            .map_err(|error| TargetError::Authority(target.authority.clone(), error))?;
        let is_path = target.path.starts_with('/');
        // What does not begin with a slash is refused in the same words as what has wrong octets.
        let text = if is_path { target.path.as_str() } else { "/ " };
        let path = PathAndQuery::try_from(text)
            .map_err(|error| TargetError::Path(target.path.clone(), error))?;
        let separator = if path.query().is_some() { '&' } else { '?' };
        let before_message = format!("{path}{separator}dns=");
        let mut headers = HeaderMap::with_capacity(3);
        headers.insert(ACCEPT, HeaderValue::from_static(MEDIA_TYPE));
        if target.method == Method::Post {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let address = uri(&authority, path);
        let method = target.method;
        Ok(Self { method, address, authority, before_message, headers, length: 0 })
    }

    /// The request that carries `message` with an id of zero (RFC 8484, section 4.1), and its body;
    /// a GET has none.
    pub(super) fn request(&mut self, message: &[u8]) -> (Request<()>, Option<Bytes>) {
        let rest = message.get(2..).unwrap_or_default();
        let mut octets = Vec::with_capacity(message.len());
        octets.extend_from_slice(&[0, 0]);
        octets.extend_from_slice(rest);
        let mut request = Request::new(());
        match self.method {
            Method::Get => {
                let mut path = self.before_message.clone();
                URL_SAFE_NO_PAD.encode_string(&octets, &mut path);
                let path = PathAndQuery::from_maybe_shared(Bytes::from(path))
                    .expect("a path that was checked and base64url are a path");
                *request.uri_mut() = uri(&self.authority, path);
                *request.headers_mut() = self.headers.clone();
                (request, None)
            }
            Method::Post => {
                if octets.len() != self.length {
                    self.length = octets.len();
                    self.headers.insert(CONTENT_LENGTH, HeaderValue::from(self.length));
                }
                *request.method_mut() = http::Method::POST;
                *request.uri_mut() = self.address.clone();
                *request.headers_mut() = self.headers.clone();
                (request, Some(Bytes::from(octets)))
            }
        }
    }
}

/// An address with the scheme `https`.
fn uri(authority: &Authority, path: PathAndQuery) -> Uri {
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(Scheme::HTTPS);
    parts.authority = Some(authority.clone());
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).expect("scheme, authority and path are all that is needed")
}

/// True if a response says that its body is a DNS message.
pub(super) fn carries_message<T>(response: &Response<T>) -> bool {
    is_media_type(response.headers())
}

/// True if the content type is that of a DNS message; parameters are not looked at.
fn is_media_type(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    if value == MEDIA_TYPE.as_bytes() {
        // As nearly everybody writes it.
        return true;
    }
    let value = value.split(|octet| *octet == b';').next().unwrap_or_default();
    value.trim_ascii().eq_ignore_ascii_case(MEDIA_TYPE.as_bytes())
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
        http::Method::POST if is_media_type(request.headers()) => Asked::Body,
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
