//! The first query to a server that runs already. It shows what is wrong with the server, its certificate or
//! the queries before the first run.

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use dnslab_load::{AskError, CertificateFault, TlsSettings, TlsSettingsError, ask};
use dnslab_settings::{Mode, Variant, find};
use dnslab_traffic::QueryList;
use dnslab_wire::{
    AnswerFault, Query, Response, ResponseOptions, Transport, check_answer, rcode, rcode_name,
};

use super::case::expected;
use super::target::external_tls_over;

/// Tries of a query over UDP, where a datagram may be lost, and of a query that failed as if the server was
/// starting.
const TRIES: u32 = 3;

/// Time between two tries on a server that may be starting.
const PAUSE: Duration = Duration::from_millis(500);

/// Queries of the list that are tried while answers are wrong: a list may begin with a name that does not
/// exist.
const QUERIES: u32 = 10;

/// Unanswered queries after which the server counts as silent. One may be for a name whose own servers are
/// silent.
const SILENT: usize = 3;

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
        /// What is wrong with its answer.
        found: WrongAnswer,
        /// What a right answer is.
        expected: String,
        /// How many queries were asked, none of which had a right answer.
        asked: usize,
    },
}

/// What is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongAnswer {
    /// It has another response code.
    #[error("{}", rcode_name(*.0))]
    Code(u16),
    /// It has the right code, but no record.
    #[error("{} without a record", rcode_name(*.0))]
    NoRecord(u16),
    /// It is no whole message, or answers another question.
    #[error("what is no right answer ({0})")]
    Fault(AnswerFault),
}

fn others(asked: usize) -> String {
    match asked {
        0..=1 => String::new(),
        asked => format!(", and none of {asked} queries rightly"),
    }
}

/// The form of options in a remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionForm {
    /// As `dnslab run` takes it: `--set server.authority=FILE`.
    Set,
    /// As `dnslab load` takes it: `--authority FILE`.
    Flag,
}

impl OptionForm {
    fn option(self, key: &str, value: &str) -> String {
        let flag = find(key).and_then(|key| key.flag);
        match flag.filter(|_| self == Self::Flag) {
            Some(flag) => format!("`--{} {value}`", flag.name),
            None => format!("`--set {key}={value}`"),
        }
    }

    /// The end of a sentence.
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
                let (WrongAnswer::Code(rcode) | WrongAnswer::NoRecord(rcode)) = *found else {
                    return Some(
                        "is it a DNS server that answers there? Its log may say more".to_owned(),
                    );
                };
                let names = format!(
                    "ask for names that it has ({} or {})",
                    form.option("load.queries", "FILE"),
                    form.option("server.zone.name", "ZONE")
                );
                let accept = format!(
                    "if this answer is the right one: {}",
                    form.option("expect.rcode", &rcode_name(rcode))
                );
                Some(match rcode {
                    rcode::REFUSED => format!(
                        "does this server serve that name, and may this host ask it? If not, {names}; \
                         {accept}"
                    ),
                    rcode::NOERROR => format!("the name has no such record: {names}"),
                    rcode::SERVFAIL => format!("the log of the server says why; {accept}"),
                    _ => format!("{names}; {accept}"),
                })
            }
        }
    }
}

/// What to do if there is no answer.
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

/// Asks the server of a variant the first query of its load. If clients know further servers, one that answers is
/// enough. Servers that are started for a run are not asked: they were ready when they answered rightly.
///
/// A wrong answer is no error if the load accepts any, or if its queries are signed, since this one is not.
///
/// # Errors
/// When there is no answer, or only wrong ones to several queries of the load.
pub(super) fn ask_first(variant: &Variant, queries: &QueryList) -> Result<(), FirstQueryError> {
    let Some(target) = variant.target() else { return Ok(()) };
    let asked = ask_server(variant, target, queries);
    let further = || variant.further_over(variant.load.transport);
    match asked {
        Err(_) if further().any(|it| ask_server(variant, it, queries).is_ok()) => Ok(()),
        asked => asked,
    }
}

fn ask_server(
    variant: &Variant,
    target: SocketAddr,
    queries: &QueryList,
) -> Result<(), FirstQueryError> {
    let tls = external_tls_over(variant, variant.load.transport, target)?;
    // What clients with queries of their own may be told is not known.
    let any_will_do = variant.expect.wrong_limit >= 1.0
        || variant.load.is_signed()
        || variant.load.mode() == Mode::Clients;
    let places = places(queries);
    let mut first = None;
    let mut pauses = 1..TRIES;
    let mut silence = Silence::default();
    for place in &places {
        let query = queries.get(*place);
        let found = loop {
            let answer = silence.ask(variant, target, tls.as_ref(), query);
            let found = answer.map(|answer| answer.map(|answer| wrong(variant, &answer)));
            if !is_transient(&found) || pauses.next().is_none() {
                break found?;
            }
            thread::sleep(PAUSE);
        };
        match found {
            Some(Some(found)) if !any_will_do => {
                first.get_or_insert_with(|| (query.to_string(), found));
            }
            None => {}
            Some(_) => return Ok(()),
        }
    }
    silence.ends()?;
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

/// Checks that the server of a variant answers some query of its load, whatever the answer.
///
/// # Errors
/// When it does not answer.
pub(super) fn is_answered(
    variant: &Variant,
    target: SocketAddr,
    tls: Option<&TlsSettings>,
    queries: &QueryList,
) -> Result<(), AskError> {
    let mut silence = Silence::default();
    for place in places(queries) {
        if silence.ask(variant, target, tls, queries.get(place))?.is_some() {
            return Ok(());
        }
    }
    silence.ends()
}

/// The queries that are asked, spread over the list.
fn places(queries: &QueryList) -> Vec<u32> {
    let spread = |number: u32| u64::from(number) * u64::from(queries.len()) / u64::from(QUERIES);
    let mut places: Vec<u32> =
        (0..QUERIES).filter_map(|number| u32::try_from(spread(number)).ok()).collect();
    places.dedup();
    places
}

/// The queries that a server has left unanswered.
#[derive(Default)]
struct Silence {
    queries: usize,
    first: Option<AskError>,
}

impl Silence {
    /// The answer to a query; `None` for the first unanswered queries.
    ///
    /// # Errors
    /// When the query fails in another way, or too many queries had no answer.
    fn ask(
        &mut self,
        variant: &Variant,
        target: SocketAddr,
        tls: Option<&TlsSettings>,
        query: &Query,
    ) -> Result<Option<Vec<u8>>, AskError> {
        let tries = if self.first.is_none() { TRIES } else { 1 };
        match answer(variant, target, tls, query, tries) {
            Ok(answer) => {
                self.first = None;
                Ok(Some(answer))
            }
            Err(error) if is_silence(&error) => {
                self.queries += 1;
                let first = self.first.take().unwrap_or(error);
                if self.queries >= SILENT {
                    return Err(first);
                }
                self.first = Some(first);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// # Errors
    /// When no query had an answer.
    fn ends(self) -> Result<(), AskError> {
        self.first.map_or(Ok(()), Err)
    }
}

fn is_silence(error: &AskError) -> bool {
    matches!(error, AskError::Exchange { source, .. } if source.kind() == io::ErrorKind::TimedOut)
}

/// Whether this may change in a moment. A starting server has no listening socket, or ends its connections. A
/// recursive resolver that cannot reach its servers yet answers SERVFAIL (RFC 9520, section 2). A
/// certificate, a refusal or a missing name will not change.
fn is_transient(found: &Result<Option<Option<WrongAnswer>>, AskError>) -> bool {
    match found {
        Ok(wrong) => *wrong == Some(Some(WrongAnswer::Code(rcode::SERVFAIL))),
        Err(AskError::Exchange { source, .. }) => matches!(
            source.kind(),
            io::ErrorKind::ConnectionRefused
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::UnexpectedEof
        ),
        Err(_) => false,
    }
}

/// Over UDP the query is sent up to `max_tries` times.
fn answer(
    variant: &Variant,
    target: SocketAddr,
    tls: Option<&TlsSettings>,
    query: &Query,
    max_tries: u32,
) -> Result<Vec<u8>, AskError> {
    let load = &variant.load;
    let timeout = load.timeout.max(Duration::from_millis(100));
    let ask = || ask(target, load.transport, query, tls, &load.http(), timeout);
    let mut tries = 1;
    loop {
        match ask() {
            Err(error)
                if is_silence(&error) && load.transport == Transport::Udp && tries < max_tries =>
            {
                tries += 1;
            }
            result => return result,
        }
    }
}

/// What a wrong answer is instead. `None` for a right answer, for a truncated one, and for one that asks for
/// a cookie (RFC 7873, section 5.2.3).
fn wrong(variant: &Variant, answer: &[u8]) -> Option<WrongAnswer> {
    let response = match Response::parse(answer) {
        Ok(response) => response,
        Err(fault) => return Some(WrongAnswer::Fault(fault.into())),
    };
    let options = ResponseOptions::read(answer);
    let rcode = options.map_or(u16::from(response.rcode), |options| options.rcode);
    if response.truncated || rcode == rcode::BADCOOKIE {
        return None;
    }
    let right = expected(variant);
    if rcode != u16::from(right.rcode) {
        return Some(WrongAnswer::Code(rcode));
    }
    if response.answers < right.answers {
        return Some(WrongAnswer::NoRecord(rcode));
    }
    check_answer(answer).err().map(WrongAnswer::Fault)
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
