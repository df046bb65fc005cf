//! The first query to a server that runs already: what is wrong with the server, its certificate or
//! the queries is known before the first run, and not after all of them.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use dnslab_load::{AskError, CertificateFault, TlsSettings, TlsSettingsError, ask};
use dnslab_traffic::QueryList;
use dnslab_wire::{Query, Response, ResponseOptions, Transport, rcode_name};

use super::case::expected;
use super::target::external_tls;
use crate::{Server, Variant};

/// Tries of a query over UDP, where a datagram may be lost.
const TRIES: u32 = 3;

/// Queries of the list that are asked, where the answers to those before were wrong: a list may well
/// begin with a name that is not there.
const QUERIES: u32 = 10;

/// Why a load on a server that runs already cannot succeed.
#[derive(Debug, thiserror::Error)]
pub enum FirstQueryError {
    /// It gave no answer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsSettingsError),
    /// It gave wrong answers only.
    #[error("{target} answers `{query}` with {found} over {transport}, not with {expected}{}", others(*.asked))]
    Wrong {
        /// Where the queries went.
        target: SocketAddr,
        /// Over which transport.
        transport: Transport,
        /// The first query.
        query: String,
        /// The response code of its answer, and what it lacks: `REFUSED`, `NOERROR without a record`.
        found: String,
        /// What a right answer is.
        expected: String,
        /// How many queries were asked, none of which had a right answer.
        asked: usize,
    },
}

/// What is said where several queries were asked.
fn others(asked: usize) -> String {
    match asked {
        0..=1 => String::new(),
        asked => format!(", and none of {asked} queries rightly"),
    }
}

/// How an option is written where a remedy names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionForm {
    /// As `dnslab run` takes it: `--set server.authority=FILE`.
    Set,
    /// As `dnslab load` takes it: `--authority FILE`.
    Flag,
}

impl OptionForm {
    /// The option that sets a key to this value.
    fn option(self, key: &str, value: &str) -> String {
        let flag = match (self, key) {
            (Self::Flag, "server.authority") => "--authority",
            (Self::Flag, "server.tls_name") => "--tls-name",
            (Self::Flag, "server.zone.name") => "--zone",
            (Self::Flag, "load.queries") => "--queries",
            (Self::Flag, "load.http_path") => "--http-path",
            (Self::Flag, "expect.rcode") => "--expect",
            _ => return format!("`--set {key}={value}`"),
        };
        format!("`{flag} {value}`")
    }

    /// The option that switches verification off, as the end of a sentence.
    fn insecure(self) -> &'static str {
        match self {
            Self::Set => "do not verify it: `--set server.insecure=true`",
            Self::Flag => "do not verify it: `--insecure`, without `--authority`",
        }
    }
}

impl FirstQueryError {
    /// What to do about it, with options in the form of the command that was called.
    #[must_use]
    pub fn remedy(&self, form: OptionForm) -> Option<String> {
        match self {
            Self::Ask(error) => Some(remedy(error, form)),
            Self::Tls(_) => None,
            Self::Wrong { found, .. } => {
                let rcode = found.split(' ').next().unwrap_or(found);
                let names = format!(
                    "ask for names that it has ({} or {})",
                    form.option("load.queries", "FILE"),
                    form.option("server.zone.name", "ZONE")
                );
                let accept = format!(
                    "if this answer is the right one: {}",
                    form.option("expect.rcode", rcode)
                );
                Some(match rcode {
                    "REFUSED" => format!(
                        "does this server serve that name, and may this host ask it? If not, {names}; \
                         {accept}"
                    ),
                    "NOERROR" => format!("the name has no such record: {names}"),
                    "SERVFAIL" => format!("the log of the server says why; {accept}"),
                    _ => format!("{names}; {accept}"),
                })
            }
        }
    }
}

/// What to do where there is no answer.
pub(super) fn remedy(error: &AskError, form: OptionForm) -> String {
    match error {
        AskError::Certificate { fault, .. } => certificate_remedy(fault, form),
        AskError::Exchange { source, .. } if source.kind() == io::ErrorKind::TimedOut => {
            "is the server running there, and does it answer queries of this host?".to_owned()
        }
        AskError::Exchange { source, transport, .. }
            if source.kind() == io::ErrorKind::ConnectionRefused =>
        {
            format!("is the server running there, and does it serve {transport} on this port?")
        }
        AskError::Exchange { transport, .. } | AskError::Mismatch { transport, .. } => {
            format!("does the server serve {transport} on this port?")
        }
        AskError::Refused { .. } => {
            format!("is the path the right one? {}", form.option("load.http_path", "PATH"))
        }
    }
}

fn certificate_remedy(fault: &CertificateFault, form: OptionForm) -> String {
    let authority = form.option("server.authority", "FILE");
    let insecure = form.insecure();
    match fault {
        CertificateFault::SelfSigned { would_do_as_authority: true } => {
            format!("give that certificate as the authority: {authority}; or {insecure}")
        }
        CertificateFault::SelfSigned { would_do_as_authority: false } => format!(
            "it is of a kind that cannot be verified: give the server another one, or {insecure}"
        ),
        CertificateFault::UnknownAuthority { .. } => {
            format!("give the certificate of that authority: {authority}; or {insecure}")
        }
        CertificateFault::Expired(_) | CertificateFault::NotYetValid(_) => {
            format!("give the server a new one, look at the clock of this host, or {insecure}")
        }
        CertificateFault::WrongName { names, .. } => match names.first() {
            Some(name) => {
                let name = form.option("server.tls_name", name);
                format!("name the server as its certificate does: {name}; or {insecure}")
            }
            None => format!("give the server one with its name or address, or {insecure}"),
        },
        CertificateFault::Other(_) => insecure.to_owned(),
    }
}

/// Asks the server of a variant the first query of its load. Nothing is asked of servers that are
/// started for a run: they are ready when they have answered rightly.
///
/// A wrong answer is no error where a load accepts any, and where its queries are signed, since this
/// one is not.
///
/// # Errors
/// When there is no answer, or only wrong ones to several queries of the load.
pub(super) fn ask_first(variant: &Variant, queries: &QueryList) -> Result<(), FirstQueryError> {
    let Server::External { target, .. } = variant.server.server else { return Ok(()) };
    let tls = external_tls(variant)?;
    let any_will_do = variant.expect.wrong_limit >= 1.0 || variant.load.tsig.is_some();
    let spread = |number: u32| u64::from(number) * u64::from(queries.len()) / u64::from(QUERIES);
    let mut places: Vec<u32> =
        (0..QUERIES).filter_map(|number| u32::try_from(spread(number)).ok()).collect();
    places.dedup();
    let mut first = None;
    for place in &places {
        let query = queries.get(*place);
        let answer = answer(variant, target, tls.as_ref(), query)?;
        match wrong(variant, &answer) {
            Some(found) if !any_will_do => {
                first.get_or_insert_with(|| (query.to_string(), found));
            }
            _ => return Ok(()),
        }
    }
    let Some((query, found)) = first else { return Ok(()) };
    let right = expected(variant);
    let record = if right.answers > 0 { " and a record" } else { "" };
    Err(FirstQueryError::Wrong {
        target,
        transport: variant.load.transport,
        query,
        found,
        expected: format!("{}{record}", rcode_name(right.rcode.into())),
        asked: places.len(),
    })
}

/// The answer to one query of a variant's load.
pub(super) fn answer(
    variant: &Variant,
    target: SocketAddr,
    tls: Option<&TlsSettings>,
    query: &Query,
) -> Result<Vec<u8>, AskError> {
    let load = &variant.load;
    let timeout = load.timeout.max(Duration::from_millis(100));
    let ask = || ask(target, load.transport, query, tls, &load.http, timeout);
    let mut tries = 1;
    loop {
        match ask() {
            Err(AskError::Exchange { source, .. })
                if source.kind() == io::ErrorKind::TimedOut
                    && load.transport == Transport::Udp
                    && tries < TRIES =>
            {
                tries += 1;
            }
            result => return result,
        }
    }
}

/// What a wrong answer is instead; `None` for a right one, and for one that does not say: a truncated
/// one, and one that asks for a cookie (RFC 7873, section 5.2.3).
fn wrong(variant: &Variant, answer: &[u8]) -> Option<String> {
    const BADCOOKIE: u16 = 23;
    let response = match Response::parse(answer) {
        Ok(response) => response,
        Err(error) => return Some(error.to_string()),
    };
    let options = ResponseOptions::read(answer);
    let rcode = options.map_or(u16::from(response.rcode), |options| options.rcode);
    if response.truncated || rcode == BADCOOKIE {
        return None;
    }
    let right = expected(variant);
    if rcode != u16::from(right.rcode) {
        return Some(rcode_name(rcode).into_owned());
    }
    (response.answers < right.answers).then(|| format!("{} without a record", rcode_name(rcode)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_are_in_the_form_of_the_command() {
        let check = |fault: CertificateFault, form: OptionForm, expected: &str| {
            let found = certificate_remedy(&fault, form);
            assert!(found.contains(expected), "{fault:?}: {found}");
        };
        let names = vec!["ns.example".to_owned()];
        let wrong = CertificateFault::WrongName { asked: "a".to_owned(), names };
        check(wrong.clone(), OptionForm::Set, "`--set server.tls_name=ns.example`");
        check(wrong, OptionForm::Flag, "`--tls-name ns.example`");
        let own = |would_do_as_authority| CertificateFault::SelfSigned { would_do_as_authority };
        check(own(true), OptionForm::Set, "`--set server.authority=FILE`");
        check(own(true), OptionForm::Flag, "`--authority FILE`");
        assert!(!certificate_remedy(&own(false), OptionForm::Flag).contains("--authority FILE"));
        check(own(false), OptionForm::Flag, "`--insecure`");
        check(CertificateFault::Expired(Duration::ZERO), OptionForm::Set, "server.insecure=true");
    }
}
