//! The clients of a variant, checked: their connections, addresses, TLS and HTTP.

use dnslab_lab::ServerKind;
use dnslab_load::{HttpSettings, Method, Mode, Quickack, ReceiveTime, Records, TlsVersions};
use dnslab_traffic::{ClientBehaviour, Connect, Quota, Truncated};
use dnslab_wire::Transport;

use super::settings::Settings;
use super::{Check, LoadSettings, Server, ServerSettings, TlsChoice};
use crate::error::Problem;

impl Check<'_> {
    /// When clients connect, how often, and for how long.
    pub(super) fn behaviour(
        &mut self,
        settings: &Settings,
        transport: Transport,
    ) -> ClientBehaviour {
        let connect = match settings.text("load.connect").as_deref() {
            Some("on-demand") => Connect::OnDemand,
            _ => Connect::AtStart,
        };
        let asks_again = settings.text("load.truncated").as_deref() == Some("ask-over-tcp");
        let truncated = match transport {
            Transport::Udp if asks_again => Truncated::AskOverTcp,
            _ => Truncated::Count,
        };
        ClientBehaviour {
            connections: settings.count("load.connections").unwrap_or(1),
            queries_per_connection: self.quota(settings),
            idle: settings.written_duration("load.idle"),
            connect,
            truncated,
        }
    }

    /// After how many queries clients close their connections.
    fn quota(&mut self, settings: &Settings) -> Option<Quota> {
        let count = settings.count("load.queries_per_connection");
        if let Some(place) = settings.place("load.connection_quota")
            && !settings.is_preset("load.connection_quota")
        {
            let message = "`load.connection_quota` has no effect: no client closes a connection after a \
                           number of queries";
            let help = "remove it, or write for example `load.queries_per_connection = 20`";
            self.note_use(place, count.is_some(), message.to_owned(), help);
        }
        let is_exact = settings.text("load.connection_quota").as_deref() == Some("exact");
        count.map(if is_exact { Quota::Exact } else { Quota::Random })
    }

    /// When clients acknowledge at once what comes over TCP.
    pub(super) fn quickack(
        &mut self,
        settings: &Settings,
        transport: Transport,
        behaviour: &ClientBehaviour,
    ) -> Quickack {
        let asked = match settings.text("load.quickack").as_deref() {
            Some("open-loop") => Quickack::OpenLoop,
            Some("always") => Quickack::Always,
            _ => Quickack::Never,
        };
        let is_asked = asked != Quickack::Never;
        let asks_again = behaviour.truncated == Truncated::AskOverTcp;
        let has_tcp = transport.runs_over_tcp() || asks_again;
        if let Some(place) = settings.place("load.quickack").filter(|_| is_asked) {
            let message = "`load.quickack` has no effect: only TCP has acknowledgements that the client's \
                           kernel delays";
            let help = "remove it, or choose one of the transports tcp, dot, doh2";
            self.note_use(place, has_tcp, message.to_owned(), help);
        }
        if has_tcp { asked } else { Quickack::Never }
    }

    /// What clients make of TLS.
    pub(super) fn tls(&mut self, settings: &Settings, transport: Transport) -> TlsChoice {
        if !transport.is_encrypted() {
            return TlsChoice::default();
        }
        let versions = match settings.text("load.tls_versions").as_deref() {
            Some("1.2") => TlsVersions::V12,
            Some("1.3") => TlsVersions::V13,
            _ => TlsVersions::Both,
        };
        let choice = TlsChoice {
            versions,
            resumption: settings.is_true("load.resumption"),
            early_data: settings.is_true("load.early_data"),
            records: match settings.text("load.tls_records").as_deref() {
                Some("shared") if transport == Transport::Dot => Records::Shared,
                _ => Records::PerQuery,
            },
            // Each word was read as one of the table of keys.
            groups: settings
                .words("load.tls_groups")
                .iter()
                .filter_map(|word| word.parse().ok())
                .collect(),
        };
        if versions == TlsVersions::V12 && choice.groups.iter().all(|group| group.is_hybrid()) {
            let message = "the group x25519mlkem768 came with TLS 1.3: TLS 1.2 has no use for it";
            let help = "offer another group too, or let clients offer TLS 1.3";
            let paths = ["load.tls_groups", "load.tls_versions"];
            self.clash(settings, message.to_owned(), paths, help);
        }
        self.records_of_nsd(settings, choice.records);
        if versions == TlsVersions::V12 && transport.is_quic() {
            let message = format!(
                "`{transport}` cannot have TLS 1.2: QUIC has TLS 1.3 alone (RFC 9001, section 4.2)"
            );
            self.clash(settings, message, ["load.tls_versions", "load.transport"], "write \"1.3\"");
        }
        if choice.early_data && versions == TlsVersions::V12 {
            let message = "early data came with TLS 1.3 (RFC 8446, section 2.3): TLS 1.2 has none";
            let help = "remove `load.early_data`, or let clients offer TLS 1.3";
            let paths = ["load.early_data", "load.tls_versions"];
            self.clash(settings, message.to_owned(), paths, help);
        }
        if choice.early_data && !choice.resumption {
            let message = "early data needs a ticket of an earlier connection (RFC 8446, section \
                           2.3), and without `load.resumption` none is kept";
            let help = "remove `load.early_data`, or let clients keep tickets";
            let paths = ["load.early_data", "load.resumption"];
            self.clash(settings, message.to_owned(), paths, help);
        }
        let is_post = self.http(settings, transport).method == Method::Post;
        if choice.early_data && transport.is_http() && is_post {
            let message = format!(
                "`{transport}` cannot have early data by POST: what can be replayed must be a safe \
                 method (RFC 8470, section 4)"
            );
            let help = "write `load.http_method = \"get\"`, or remove `load.early_data`";
            self.clash(settings, message, ["load.early_data", "load.http_method"], help);
        }
        choice
    }

    /// NSD and queries that share TLS records.
    fn records_of_nsd(&mut self, settings: &Settings, records: Records) {
        let is_nsd = settings.text("server.kind").as_deref() == Some(ServerKind::Nsd.name());
        if is_nsd && records == Records::Shared {
            let message = "NSD cannot be asked with shared TLS records: it answers only the first query \
                           of a record until more data comes (seen with NSD 4.6)";
            let help = "remove `load.tls_records`, or choose another server";
            let paths = ["load.tls_records", "server.kind"];
            self.clash(settings, message.to_owned(), paths, help);
        }
    }

    /// Knot DNS and queries outstanding together on one connection over QUIC.
    pub(super) fn streams_of_knot(
        &mut self,
        settings: &Settings,
        transport: Transport,
        mode: &Mode,
        behaviour: &ClientBehaviour,
    ) {
        /// Queries outstanding on one connection that Knot answers.
        const MOST: u32 = 9;
        let is_knot = settings.text("server.kind").as_deref() == Some(ServerKind::Knot.name());
        let Mode::Closed { outstanding } = *mode else { return };
        let together = outstanding.div_ceil(behaviour.connections.max(1));
        if is_knot && transport == Transport::Doq && together > MOST {
            let message = format!(
                "Knot DNS cannot be asked {together} queries at a time on one connection over `doq`: it counts \
                 answers that were not acknowledged yet against 10, and answers nothing beyond them (seen \
                 with Knot DNS 3.4)"
            );
            let help = format!(
                "write `load.outstanding = {MOST}` or less, or divide them among more `load.connections`"
            );
            let paths = ["load.outstanding", "load.connections", "server.kind"];
            self.clash(settings, message, paths, &help);
        }
    }

    /// A problem of keys that cannot be together; the first is the culprit.
    fn clash<const KEYS: usize>(
        &mut self,
        settings: &Settings,
        message: String,
        paths: [&str; KEYS],
        help: &str,
    ) {
        let marks = paths.iter().filter_map(|path| settings.place(path).map(|it| it.mark("")));
        let problem = Problem { message, marks: marks.collect(), help: None };
        self.problems.push(problem.help(help));
    }

    /// Method and path of HTTP.
    pub(super) fn http(&mut self, settings: &Settings, transport: Transport) -> HttpSettings {
        let preset = HttpSettings::default();
        if !transport.is_http() {
            return preset;
        }
        let method = match settings.text("load.http_method").as_deref() {
            Some("get") => Method::Get,
            _ => Method::Post,
        };
        HttpSettings { method, path: settings.text("load.http_path").unwrap_or(preset.path) }
    }

    /// Whose clock says when a datagram came.
    pub(super) fn receive_time(
        &mut self,
        settings: &Settings,
        transport: Transport,
    ) -> ReceiveTime {
        match settings.text("load.receive_time").as_deref() {
            Some("kernel") if transport == Transport::Udp => ReceiveTime::Kernel,
            _ => ReceiveTime::User,
        }
    }

    /// Sources that cannot reach the server.
    pub(super) fn sources(
        &mut self,
        settings: &Settings,
        load: &LoadSettings,
        server: &ServerSettings,
    ) {
        let (Some(sources), Some(place)) = (&load.sources, settings.place("load.sources")) else {
            return;
        };
        let target = match &server.server {
            Server::External { target, .. } => target.ip(),
            Server::Embedded { process, .. } | Server::Installed { process, .. } => process.address,
        };
        let is_apart = settings.text("lab.hosts").as_deref() == Some("namespaces");
        // All are of one family.
        let first = sources.get(0);
        let family = |is_ipv4: bool| if is_ipv4 { "an IPv4 address" } else { "an IPv6 address" };
        let problem = if first.is_ipv4() != target.is_ipv4() {
            let (from, to) = (family(first.is_ipv4()), family(target.is_ipv4()));
            Some((
                format!("`load.sources` cannot reach the server: {first} is {from}, {target} {to}"),
                "name sources of the server's address family",
            ))
        } else if first.is_loopback() && !target.is_loopback() {
            Some((
                format!(
                    "`load.sources` cannot reach the server: {first} is a loopback address, which \
                     no other host answers, and {target} is none"
                ),
                "name addresses of this machine that the server can answer to",
            ))
        } else if first.is_loopback() && is_apart {
            Some((
                format!(
                    "`load.sources` cannot reach the server: {first} is a loopback address, which \
                     no other host answers, and the server has a host of its own"
                ),
                "name addresses that are free, e.g. \"10.99.0.0/24\": the clients' host gets them",
            ))
        } else {
            None
        };
        if let Some((message, help)) = problem {
            let problem = Problem::new(message, place.mark("the sources")).help(help);
            let other = if is_apart { "lab.hosts" } else { "server.address" };
            self.problems.push(match settings.place(other) {
                Some(place) => problem.with(place.mark("the server")),
                None => problem,
            });
        }
    }
}
