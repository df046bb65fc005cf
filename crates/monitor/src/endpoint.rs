//! An endpoint of remote write, and one request to it.

use std::io::Read as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};
use rustls::crypto::ring;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// A request that takes longer is tried again: an endpoint that hangs must not hold up all that follows.
const PATIENCE: Duration = Duration::from_secs(10);

/// Octets of an endpoint's answer that are read: its first line says what is wrong.
const MAX_REASON: u64 = 1_000;

/// Why there is nothing to push to.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// It is no URL of HTTP.
    #[error(
        "`{url}` is no address to push to\n  hint:    give a URL as http://127.0.0.1:9090/api/v1/write"
    )]
    Url {
        /// As it was given.
        url: String,
    },
    /// Its port cannot be.
    #[error(
        "the address to push to has a port that cannot be\n  hint:    a port is a number from 1 to 65535"
    )]
    Port,
    /// It holds a password, which the results would keep with the command line.
    #[error(
        "the address to push to holds a password\n  hint:    put the header `Authorization: Basic ...` into a file for \
         --remote-write-headers"
    )]
    Password,
    /// What follows `?` may be a secret.
    #[error(
        "the address to push to holds a `?` with what may be a key, and the results would keep it with the command \
         line\n  hint:    put it into a file for --remote-write-headers or --remote-write-token, if the endpoint takes \
         it there"
    )]
    Query,
    /// A line of the file with headers is none.
    #[error("line {line} of the headers is not `Name: value`")]
    Header {
        /// From 1. What it says may be a secret.
        line: usize,
    },
    /// The token cannot stand in a header.
    #[error("the token has characters that cannot stand in a header of HTTP")]
    Token,
}

/// What keeps a text from being the address of a service over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressFault {
    /// It is no URL of HTTP.
    Url,
    /// Its port is no number from 1 to 65535.
    Port,
    /// It holds the name of a user, or a password.
    Password,
    /// It has a query: what follows `?`.
    Query,
}

/// The address of a service over HTTP, which holds no secret.
///
/// # Errors
/// When it is no such address.
pub fn http_address(url: &str) -> Result<Uri, AddressFault> {
    let uri: Uri = url.parse().map_err(|_| AddressFault::Url)?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    if !is_http || uri.host().is_none() {
        return Err(AddressFault::Url);
    }
    if uri.query().is_some() {
        return Err(AddressFault::Query);
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(AddressFault::Password);
    }
    // A port that is no number is none for `http`, and the digits stay behind the host.
    let after = uri.authority().zip(uri.host());
    let after = after.and_then(|(all, host)| all.as_str().strip_prefix(host));
    if after.is_some_and(|after| !after.is_empty()) && uri.port_u16().is_none_or(|port| port == 0) {
        return Err(AddressFault::Port);
    }
    Ok(uri)
}

/// Where to push to.
#[derive(Clone, Debug)]
pub struct Endpoint {
    url: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    agent: Agent,
    is_overheard: bool,
}

/// How a request ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Taken,
    /// Another attempt may do, not before this time where the endpoint says so.
    Later {
        reason: String,
        after: Option<Duration>,
    },
    /// No further attempt will do.
    Refused {
        reason: String,
    },
}

impl Endpoint {
    /// An endpoint of remote write. `headers` has lines `Name: value`, `token` is sent as a bearer's (RFC 6750).
    ///
    /// # Errors
    /// When one of them is not what it must be.
    pub fn new(
        url: &str,
        headers: Option<&str>,
        token: Option<&str>,
    ) -> Result<Self, EndpointError> {
        let uri = http_address(url).map_err(|fault| match fault {
            AddressFault::Url => EndpointError::Url { url: url.to_owned() },
            AddressFault::Port => EndpointError::Port,
            AddressFault::Password => EndpointError::Password,
            AddressFault::Query => EndpointError::Query,
        })?;
        let mut all = Vec::new();
        for (number, line) in headers.unwrap_or_default().lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            all.push(header(line).ok_or(EndpointError::Header { line: number + 1 })?);
        }
        if let Some(token) = token {
            let mut value = HeaderValue::try_from(format!("Bearer {}", token.trim()))
                .map_err(|_| EndpointError::Token)?;
            value.set_sensitive(true);
            all.push((http::header::AUTHORIZATION, value));
        }
        let tls = TlsConfig::builder()
            .root_certs(trusted(uri.scheme_str() == Some("https")))
            .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
            .build();
        let config = Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            // A redirection would send the samples, and the token, elsewhere.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .tls_config(tls)
            .build();
        let is_overheard =
            uri.scheme_str() == Some("http") && !uri.host().is_some_and(is_this_host);
        Ok(Self { url: url.to_owned(), headers: all, agent: config.into(), is_overheard })
    }

    /// As it was given.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// True if what is sent leaves this host unencrypted.
    #[must_use]
    pub fn is_overheard(&self) -> bool {
        self.is_overheard
    }

    /// Sends a compressed request, and waits for its end.
    pub(crate) fn send(&self, request: &[u8]) -> Outcome {
        let mut post = self.agent.post(&self.url);
        for (name, value) in &self.headers {
            post = post.header(name, value);
        }
        let sent = post
            .header("Content-Encoding", "snappy")
            .header("Content-Type", "application/x-protobuf")
            .header("X-Prometheus-Remote-Write-Version", "0.1.0")
            .header("User-Agent", concat!("dnslab/", env!("CARGO_PKG_VERSION")))
            .send(request);
        let mut response = match sent {
            Ok(response) => response,
            Err(error) => return Outcome::Later { reason: error.to_string(), after: None },
        };
        let status = response.status();
        if status.is_success() {
            return Outcome::Taken;
        }
        let after = response.headers().get(http::header::RETRY_AFTER);
        let after = after.and_then(|value| value.to_str().ok()?.parse().ok());
        let mut body = String::new();
        response.body_mut().as_reader().take(MAX_REASON).read_to_string(&mut body).ok();
        let said = body.lines().next().unwrap_or_default().trim();
        let reason = if said.is_empty() { status.to_string() } else { format!("{status}: {said}") };
        if status.is_server_error() || status.as_u16() == 429 {
            Outcome::Later { reason, after: after.map(Duration::from_secs) }
        } else {
            Outcome::Refused { reason }
        }
    }
}

/// What the system trusts, and what the file in `SSL_CERT_FILE` holds instead.
fn trusted(is_encrypted: bool) -> RootCerts {
    let found = is_encrypted.then(rustls_native_certs::load_native_certs).unwrap_or_default();
    let certificates =
        found.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned());
    certificates.collect::<Vec<_>>().into()
}

/// True for a name or an address of the loopback interface.
fn is_this_host(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn header(line: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_once(':')?;
    let mut value = HeaderValue::try_from(value.trim()).ok()?;
    value.set_sensitive(true);
    Some((name.trim().parse().ok()?, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named_without_its_secret() {
        let check = |url: &str, headers: &str, expected: &str| {
            let error = Endpoint::new(url, Some(headers), None).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        };
        check("127.0.0.1:9090", "", "`127.0.0.1:9090` is no address to push to");
        check("ftp://host/", "", "`ftp://host/` is no address to push to");
        check("http://me:secret@host/", "", "the address to push to holds a password");
        check("http://host/", "A: b\n\nsecret", "line 3 of the headers is not `Name: value`");
        let shown =
            format!("{:?}", Endpoint::new("http://host/", Some("Key: secret"), Some("geheim")));
        assert!(!shown.contains("secret") && !shown.contains("geheim"), "{shown}");
    }
}
