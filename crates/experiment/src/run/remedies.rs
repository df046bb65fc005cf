//! What to do about a server that does not answer, or answers wrongly.

use std::io;
use std::net::SocketAddr;

use dnslab_load::{AskError, CertificateFault, Refusal, TlsRefusal};
use dnslab_settings::{OptionForm, Remedy};
use dnslab_wire::{Method, Transport, rcode, rcode_name};

use super::error::{FirstQueryError, WrongAnswer};

impl FirstQueryError {
    /// What to do about it, with options in the form of the command that was called.
    #[must_use]
    pub fn remedy(&self, form: OptionForm) -> Option<String> {
        match self {
            Self::Ask(error) => of_silence(error, form),
            Self::Tls(_) | Self::Queries(_) => None,
            Self::Wrong { found, transport, .. } => Some(of_answer(found, *transport, form)),
        }
    }
}

/// What is said behind an error, with the line break before it; nothing if there is nothing to do.
pub(super) fn hint(error: &AskError, form: OptionForm) -> String {
    of_silence(error, form).map(|remedy| format!("\n  hint:    {remedy}")).unwrap_or_default()
}

/// What to do if there is no answer. `None` where the error says so itself.
fn of_silence(error: &AskError, form: OptionForm) -> Option<String> {
    Some(match error {
        AskError::NoSocket { .. } | AskError::Signature { .. } | AskError::Elsewhere { .. } => {
            return None;
        }
        AskError::Certificate { target, fault } => of_certificate(fault, *target, form),
        AskError::Tls { transport, refusal, has_own_offer, .. } => {
            of_tls((*refusal, *has_own_offer), *transport, form)
        }
        AskError::Refused { transport, target, method, refusal } => {
            of_refusal(*refusal, (*transport, *method), *target, form)
        }
        AskError::Exchange { transport, target, source } => {
            of_system(source, *transport, *target).unwrap_or_else(|| serves(*transport))
        }
        AskError::Mismatch { transport, .. } => serves(*transport),
    })
}

fn serves(transport: Transport) -> String {
    format!("does the server serve {transport} on this port?")
}

/// What the operating system says, its own or on the word of a router (ip(7), connect(2), send(2)).
fn of_system(error: &io::Error, transport: Transport, target: SocketAddr) -> Option<String> {
    let address = target.ip();
    let way = format!("`ip route get {address}` shows the way");
    if error.kind() == io::ErrorKind::TimedOut {
        return Some(
            "is the server running there, and does it answer queries of this host? A firewall on the way may drop \
             them"
                .to_owned(),
        );
    }
    Some(match error.raw_os_error()? {
        libc::ECONNREFUSED => {
            format!("is the server running there, and does it serve {transport} on this port?")
        }
        libc::EPERM => "a firewall of this host forbids it (`iptables -L OUTPUT`, `nft list ruleset`), or its table of \
                        connections is full (`sysctl net.netfilter.nf_conntrack_count`)"
            .to_owned(),
        libc::EACCES => format!(
            "a route of this host forbids it, or the address is one of broadcast: {way}, and `ip rule` what decides"
        ),
        libc::ENETUNREACH => format!("this host has no route to that address: {way} that it would take"),
        libc::EHOSTUNREACH => format!(
            "no host has that address on its network, or a router or a route on the way says so: {way}, `ip neigh` the \
             neighbours"
        ),
        libc::EINVAL => format!("a route of this host drops what goes there (blackhole): {way}"),
        libc::EAFNOSUPPORT => "this host has no addresses of that kind (IPv4, IPv6): `ip address`".to_owned(),
        libc::ENETDOWN => "the network is down: `ip link`".to_owned(),
        _ => return None,
    })
}

fn of_tls(
    (refusal, has_own_offer): (TlsRefusal, bool),
    transport: Transport,
    form: OptionForm,
) -> String {
    let set = |key, value: &str| Remedy::set(key, value).options(form);
    match refusal {
        TlsRefusal::WantsCertificate => {
            "the server wants a certificate of its clients (mutual TLS), and dnslab has none to give: measure a \
             listener that does not want one"
                .to_owned()
        }
        TlsRefusal::NoVersion if has_own_offer => format!(
            "the server has none of the versions of TLS that the clients offer: {}",
            set("load.tls_versions", "both")
        ),
        TlsRefusal::NoVersion => {
            "the server has neither TLS 1.2 nor 1.3, and dnslab no older version".to_owned()
        }
        TlsRefusal::NoParameters if has_own_offer => format!(
            "the server has none of what the clients offer: leave {} and {} away; or it wants a certificate of its \
             clients, which dnslab has not: the log of the server says which",
            form.name("load.tls_groups"),
            form.name("load.tls_versions")
        ),
        TlsRefusal::NoParameters => {
            "the server has no cipher suite or key exchange group of those that the clients offer, or wants a \
             certificate of its clients, which dnslab has not: the log of the server says which"
                .to_owned()
        }
        TlsRefusal::NoProtocol => serves(transport),
        TlsRefusal::UnknownName => {
            format!("the server has another name: {}", set("server.tls_name", "NAME"))
        }
    }
}

fn of_refusal(
    refusal: Refusal,
    (transport, method): (Transport, Method),
    target: SocketAddr,
    form: OptionForm,
) -> String {
    let path = Remedy::set("load.http_path", "PATH").options(form);
    let other = match method {
        Method::Get => "post",
        Method::Post => "get",
    };
    let other = Remedy::set("load.http_method", other).options(form);
    let its_log = "the log of the server says why";
    match refusal {
        Refusal::Reset if !transport.is_http() => {
            format!("the server does not want this query, or is short of something: {its_log}")
        }
        Refusal::NotProcessed | Refusal::TooEarly | Refusal::Reset => its_log.to_owned(),
        Refusal::NoMessage => {
            format!("does DNS over HTTPS stand behind this path? {path}")
        }
        Refusal::Status(300..=399) => format!(
            "redirections are not followed: name the address and the path that it leads to (`curl -skI https://{target}` \
             shows them): {path}"
        ),
        Refusal::Status(400 | 404 | 410) => format!("is the path the right one? {path}"),
        Refusal::Status(401 | 403 | 407) => {
            format!("may this host ask there? {its_log}, and the path may need a key: {path}")
        }
        Refusal::Status(405 | 501) => format!("the server does not take this method: {other}"),
        Refusal::Status(413 | 414 | 431) => {
            format!("the query is too long for this method: {other}")
        }
        Refusal::Status(415) => format!(
            "it is no DNS over HTTPS that stands behind this path ({path}), or it takes the other method only ({other})"
        ),
        Refusal::Status(429) => {
            let sources = Remedy::set("load.sources", "ADDRESSES").options(form);
            format!(
                "the server limits the rate of this host: raise that limit, or ask from several addresses: {sources}"
            )
        }
        Refusal::Status(500..=599) => {
            format!("the server, or what stands behind it, is not ready: {its_log}")
        }
        Refusal::Status(_) => format!("{its_log}; is the path the right one? {path}"),
    }
}

pub(super) fn of_certificate(
    fault: &CertificateFault,
    target: SocketAddr,
    form: OptionForm,
) -> String {
    let authority = Remedy::set("server.authority", "FILE").options(form);
    let insecure = format!("do not verify it: {}", insecure(form));
    let another = another_certificate(target);
    match fault {
        CertificateFault::SelfSigned { would_do_as_authority: true } => {
            format!("give that certificate as the authority: {authority}; or {insecure}")
        }
        CertificateFault::SelfSigned { would_do_as_authority: false } => format!(
            "it is of a kind that cannot be verified, as that which BIND makes for itself (X.509 version 1): give the \
             server another one ({another}) and name it: {authority}; or {insecure}"
        ),
        CertificateFault::UnknownAuthority { .. } => {
            format!("give the certificate of that authority: {authority}; or {insecure}")
        }
        CertificateFault::Expired(_) | CertificateFault::NotYetValid(_) => {
            format!("give the server a new one, look at the clock of this host, or {insecure}")
        }
        CertificateFault::WrongName { would_do: Some(name), .. } => {
            let name = Remedy::set("server.tls_name", name).options(form);
            format!("name the server as its certificate does: {name}; or {insecure}")
        }
        CertificateFault::WrongName { .. } => {
            format!("give the server one with its name or address ({another}), or {insecure}")
        }
        CertificateFault::Other(_) => insecure,
    }
}

/// The option that leaves the certificate as it is. It excludes the one that names the authority.
fn insecure(form: OptionForm) -> String {
    let option = Remedy::set("server.insecure", true).options(form);
    match form {
        OptionForm::Set => option,
        OptionForm::Flag => format!("{option}, without {}", form.name("server.authority")),
    }
}

/// How to make a certificate for a server at this address.
fn another_certificate(target: SocketAddr) -> String {
    format!(
        "`openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj /CN=dns -addext subjectAltName=IP:{} -keyout \
         key.pem -out cert.pem`",
        target.ip()
    )
}

/// The keys that give queries an OPT record over this transport.
fn edns_keys(transport: Transport) -> impl Iterator<Item = &'static str> {
    const ANY: [&str; 5] = [
        "load.edns_payload",
        "load.dnssec_ok",
        "load.edns_options",
        "load.cookies",
        "load.client_subnets",
    ];
    let padding = transport.is_encrypted().then_some("load.padding");
    let has_keepalive = matches!(transport, Transport::Tcp | Transport::Dot);
    ANY.into_iter().chain(padding).chain(has_keepalive.then_some("load.keepalive"))
}

/// What to do if the answers are wrong.
pub(super) fn of_answer(found: &WrongAnswer, transport: Transport, form: OptionForm) -> String {
    let set = |key, value: &str| Remedy::set(key, value).options(form);
    let names = format!(
        "ask for names that it has ({} or {})",
        set("load.queries", "FILE"),
        set("server.zone.name", "ZONE")
    );
    let accept = |code: u16| {
        format!("if this answer is the right one: {}", set("expect.rcode", &rcode_name(code)))
    };
    match *found {
        WrongAnswer::Fault(_) => {
            "is it a DNS server that answers there? Its log may say more".to_owned()
        }
        WrongAnswer::NoRecord(_) => format!("the name has no such record: {names}"),
        WrongAnswer::Edns(code) => {
            let keys: Vec<String> = edns_keys(transport).map(|key| form.name(key)).collect();
            let keys = keys.join(", ");
            format!("ask without EDNS: leave these away: {keys}; {}", accept(code))
        }
        WrongAnswer::Code(code) => match code {
            rcode::REFUSED => format!(
                "does this server serve that name, and may this host ask it? If not, {names}; {}",
                accept(code)
            ),
            rcode::NOERROR => format!("the name is there; {}", accept(code)),
            rcode::SERVFAIL | rcode::FORMERR | rcode::NOTIMP | rcode::BADVERS => {
                format!("the log of the server says why; {}", accept(code))
            }
            _ => format!("{names}; {}", accept(code)),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn wrong_name(would_do: Option<&str>) -> CertificateFault {
        CertificateFault::WrongName {
            asked: "192.0.2.7".to_owned(),
            is_address: true,
            names: vec!["ns.example".to_owned()],
            has_address_as_name: false,
            would_do: would_do.map(str::to_owned),
        }
    }

    #[test]
    fn remedies_are_in_the_form_of_the_command() {
        let check = |fault: CertificateFault, form: OptionForm, expected: &str| {
            let target = SocketAddr::from(([192, 0, 2, 7], 853));
            let found = of_certificate(&fault, target, form);
            assert!(found.contains(expected), "{fault:?}: {found}");
        };
        check(
            wrong_name(Some("ns.example")),
            OptionForm::Set,
            "`--set server.tls_name=ns.example`",
        );
        check(wrong_name(Some("ns.example")), OptionForm::Flag, "`--tls-name ns.example`");
        check(wrong_name(None), OptionForm::Flag, "-addext subjectAltName=IP:192.0.2.7 ");
        let own = |would_do_as_authority| CertificateFault::SelfSigned { would_do_as_authority };
        check(own(true), OptionForm::Set, "`--set server.authority=FILE`");
        check(own(true), OptionForm::Flag, "`--authority FILE`");
        check(own(false), OptionForm::Flag, "`openssl req -x509 ");
        check(own(false), OptionForm::Flag, "`--insecure`");
        let expired = CertificateFault::Expired(Duration::ZERO);
        check(expired, OptionForm::Set, "`--set server.insecure=true`");
    }

    #[test]
    fn what_the_system_says_has_a_hint_of_its_own() {
        let codes = [
            (libc::EPERM, "a firewall of this host"),
            (libc::EACCES, "forbids it"),
            (libc::ENETUNREACH, "no route"),
            (libc::EHOSTUNREACH, "no host has that address"),
            (libc::EINVAL, "blackhole"),
            (libc::ECONNREFUSED, "is the server running there"),
        ];
        let target = SocketAddr::from(([192, 0, 2, 7], 53));
        for (code, expected) in codes {
            let source = io::Error::from_raw_os_error(code);
            let error = AskError::Exchange { transport: Transport::Udp, target, source };
            let remedy = of_silence(&error, OptionForm::Flag).unwrap();
            assert!(remedy.contains(expected), "{code}: {remedy}");
        }
    }

    fn check_refusal(refusal: Refusal, transport: Transport, method: Method, expected: &str) {
        let target = SocketAddr::from(([192, 0, 2, 7], 443));
        let error = AskError::Refused { transport, target, method, refusal };
        let remedy = of_silence(&error, OptionForm::Flag).unwrap();
        assert!(remedy.contains(expected), "{refusal}: {remedy}");
    }

    #[test]
    fn a_refusal_has_the_hint_of_its_status() {
        for (status, expected) in [
            (404, "`--http-path PATH`"),
            (405, "`--http-method get`"),
            (415, "`--http-method get`"),
            (429, "`--sources ADDRESSES`"),
            (503, "is not ready"),
            (301, "redirections are not followed"),
        ] {
            check_refusal(Refusal::Status(status), Transport::Doh2, Method::Post, expected);
        }
        check_refusal(Refusal::Status(405), Transport::Doh3, Method::Get, "`--http-method post`");
        check_refusal(Refusal::NoMessage, Transport::Doh2, Method::Post, "`--http-path PATH`");
        check_refusal(Refusal::Reset, Transport::Doq, Method::Post, "the log of the server");
    }
}
