//! The servers behind the one under test, and where all of them are, checked.

use dnslab_lab::ServerKind;
use dnslab_lab::hosts::LinkSettings;
use dnslab_wire::Transport;

use super::settings::Settings;
use super::topology::{ChainRole, ChainServer, HostsChoice, Topology, UpstreamBehaviour};
use super::{Check, LoadSettings, ProcessSettings, Queries, Server, ServerSettings};
use crate::error::Problem;
use crate::file::Host;

/// Keys of the upstream that only the embedded server understands.
const EMBEDDED_ONLY: [&str; 7] = [
    "upstream.delay",
    "upstream.loss",
    "upstream.busy",
    "upstream.signed",
    "upstream.queries_per_connection",
    "upstream.idle",
    "upstream.tickets",
];

/// Keys that mean something to a relay only, or to an upstream only.
const OF_RELAY: [&str; 4] = ["relay.transport", "relay.threads", "relay.binary", "relay.extra"];
const OF_UPSTREAM: [&str; 5] = [
    "upstream.transport",
    "upstream.threads",
    "upstream.cpus",
    "upstream.binary",
    "upstream.extra",
];

/// Keys of the links.
const OF_LINKS: [&str; 8] = [
    "link.server.delay",
    "link.server.jitter",
    "link.server.loss",
    "link.server.rate_mbit",
    "link.upstream.delay",
    "link.upstream.jitter",
    "link.upstream.loss",
    "link.upstream.rate_mbit",
];

impl Check<'_> {
    /// The servers behind the one of a variant, and the hosts.
    pub(super) fn topology(
        &mut self,
        settings: &Settings,
        server: &ServerSettings,
        load: &LoadSettings,
    ) -> Topology {
        let hosts = settings.text("lab.hosts").unwrap_or_default();
        let hosts = HostsChoice::ALL.into_iter().find(|choice| choice.name() == hosts);
        let hosts = hosts.unwrap_or(HostsChoice::Loopback);
        let relay = self.behind(settings, ChainRole::Relay);
        let upstream = self.behind(settings, ChainRole::Upstream);
        self.chain_fits(settings, server, relay.is_some(), upstream.as_ref());
        self.upstream_knows(settings, load, upstream.as_ref());
        let without = "links need hosts, and all is on the loopback interface";
        let without = (hosts == HostsChoice::Loopback).then_some(without);
        self.note_keys(settings, &OF_LINKS, without, "add `lab.hosts = \"auto\"`, or remove it");
        if hosts != HostsChoice::Loopback && server.kind().is_none() {
            let place = settings.place("lab.hosts");
            self.problem(
                "an external server has no host here",
                place.map(|place| place.mark("makes hosts")),
                "remove `lab.hosts`",
            );
        }
        Topology {
            hosts,
            client_link: self.link(settings, "server"),
            upstream_link: self.link(settings, "upstream"),
            chain: relay.into_iter().chain(upstream).collect(),
        }
    }

    /// The relay or the upstream, if there is one.
    fn behind(&mut self, settings: &Settings, role: ChainRole) -> Option<ChainServer> {
        let key = |relay: &'static str, upstream: &'static str| match role {
            ChainRole::Relay => relay,
            ChainRole::Upstream => upstream,
        };
        let kind = settings.text(key("relay.kind", "upstream.kind"));
        self.note_behind(settings, role, kind.as_deref());
        let kind = kind?.parse().unwrap_or(ServerKind::Embedded);
        let transport = settings.text(key("relay.transport", "upstream.transport"));
        let binary = self.binary_at(settings, key("relay.binary", "upstream.binary"));
        let server_address = match settings.address("server.address") {
            Some((Host::Address(address), _)) => Some(address),
            _ => None,
        };
        let process = ProcessSettings {
            address: server_address.unwrap_or(std::net::Ipv4Addr::LOCALHOST.into()),
            threads: settings.count(key("relay.threads", "upstream.threads")),
            cpus: match role {
                ChainRole::Relay => Vec::new(),
                ChainRole::Upstream => settings.cpus("upstream.cpus"),
            },
        };
        let extra = settings.text(key("relay.extra", "upstream.extra"));
        let server = match (kind, role) {
            (ServerKind::Embedded, ChainRole::Upstream) => Server::Embedded {
                process,
                delay: self.parsed(settings, "upstream.delay"),
                loss: self.parsed(settings, "upstream.loss"),
                busy: settings.duration("upstream.busy"),
            },
            _ => Server::Installed { software: kind, process, binary, root: None, extra },
        };
        Some(ChainServer {
            role,
            transport: transport.and_then(|text| text.parse().ok()).unwrap_or(Transport::Udp),
            behaviour: match &server {
                Server::Embedded { .. } => UpstreamBehaviour {
                    signed: settings.is_true("upstream.signed"),
                    queries_per_connection: settings.count("upstream.queries_per_connection"),
                    idle_timeout: settings.duration("upstream.idle"),
                    tickets: settings.is_true("upstream.tickets"),
                },
                _ => UpstreamBehaviour::default(),
            },
            server,
        })
    }

    /// Notes which keys of a relay or an upstream of this kind are used.
    fn note_behind(&mut self, settings: &Settings, role: ChainRole, kind: Option<&str>) {
        let absent = format!("there is no {}", role.name());
        let absent = kind.is_none().then_some(absent.as_str());
        let help = format!("add `{}.kind`, or remove it", role.name());
        let own: &[&str] = match role {
            ChainRole::Relay => &OF_RELAY,
            ChainRole::Upstream => &OF_UPSTREAM,
        };
        self.note_keys(settings, own, absent, &help);
        if role == ChainRole::Upstream {
            let foreign = kind.map(|kind| format!("an upstream of kind `{kind}` does not know it"));
            let is_embedded = kind == Some(ServerKind::Embedded.name());
            let why = absent.or(foreign.as_deref().filter(|_| !is_embedded));
            self.note_keys(
                settings,
                &EMBEDDED_ONLY,
                why,
                "only for `upstream.kind = \"embedded\"`",
            );
        }
    }

    /// Whether each server can stand where it stands.
    fn chain_fits(
        &mut self,
        settings: &Settings,
        server: &ServerSettings,
        has_relay: bool,
        upstream: Option<&ChainServer>,
    ) {
        let kind = server.kind();
        let mark = |path: &str, label: &'static str| settings.place(path).map(|at| at.mark(label));
        let forwards = kind.is_some_and(ServerKind::forwards);
        if upstream.is_some() && !forwards {
            let message = format!("a server of kind `{}` forwards nothing", server.kind_name());
            let mark = mark("upstream.kind", "nobody asks it");
            self.problem(
                &message,
                mark,
                "remove the upstream, or choose a `server.kind` that forwards",
            );
        }
        if upstream.is_none() && kind.is_some_and(|kind| !kind.serves_zones()) {
            let message = format!("a server of kind `{}` needs an upstream", server.kind_name());
            let mark = mark("server.kind", "has no zone of its own");
            self.problem(&message, mark, "add for example `upstream.kind = \"embedded\"`");
        }
        if has_relay && upstream.is_none() {
            let mark = mark("relay.kind", "has nothing behind it");
            self.problem("a relay needs an upstream", mark, "add `upstream.kind`");
        }
        let relay = settings.text("relay.kind").and_then(|kind| kind.parse::<ServerKind>().ok());
        if let Some(kind) = relay.filter(|kind| !kind.forwards()) {
            let message =
                format!("a server of kind `{kind}` cannot be a relay: it forwards nothing");
            self.problem(&message, mark("relay.kind", "a relay forwards"), "choose another kind");
        }
        let serves = upstream.and_then(|behind| behind.server.kind());
        if let Some(kind) = serves.filter(|kind| !kind.serves_zones()) {
            let message = format!("a server of kind `{kind}` cannot end the chain");
            let help = "the upstream is one of embedded, bind, knot, nsd";
            self.problem(&message, mark("upstream.kind", "would itself need an upstream"), help);
        }
    }

    /// Whether the upstream has what is asked for, and signatures if somebody validates.
    fn upstream_knows(
        &mut self,
        settings: &Settings,
        load: &LoadSettings,
        upstream: Option<&ChainServer>,
    ) {
        let mark = |path: &str, label: &'static str| settings.place(path).map(|at| at.mark(label));
        let knows_all = upstream.is_some_and(|it| it.server.kind() == Some(ServerKind::Embedded));
        if matches!(load.queries, Queries::Popular(_)) && !knows_all {
            let mark = mark("load.popular_names", "which server should know them?");
            let help = "add an upstream of kind \"embedded\": it knows every name";
            self.problem("popular names need a server that knows them", mark, help);
        }
        let is_signed = upstream.is_some_and(|it| it.behaviour.signed);
        if is_signed && matches!(load.queries, Queries::Zone(_)) {
            let mark = mark("upstream.signed", "signs no zone");
            let help = "ask for `load.popular_names`, or for the names of a file (`load.queries`)";
            self.problem("the names of the synthetic zone are not signed", mark, help);
        }
        if settings.is_true("server.dnssec") && !is_signed {
            let mark = mark("server.dnssec", "nothing to validate");
            let help = "add `upstream.signed = true`, with an upstream of kind \"embedded\"";
            self.problem("a server that validates needs an upstream with signatures", mark, help);
        }
    }

    /// One link.
    fn link(&mut self, settings: &Settings, to: &str) -> LinkSettings {
        let key = |name: &str| format!("link.{to}.{name}");
        let ns = |name: &str| {
            u64::try_from(settings.duration(&key(name)).as_nanos()).unwrap_or(u64::MAX)
        };
        let (delay_ns, jitter_ns) = (ns("delay"), ns("jitter"));
        if jitter_ns > delay_ns {
            let place = settings.place(&key("jitter"));
            self.problem(
                "the jitter of a link is larger than its delay",
                place.map(|place| place.mark("would arrive before it was sent")),
                "make it at most the delay",
            );
        }
        LinkSettings {
            delay_ns,
            jitter_ns: jitter_ns.min(delay_ns),
            loss: settings.number(&key("loss")).unwrap_or(0.0),
            rate_bps: settings.count(&key("rate_mbit")).map(|mbit| u64::from(mbit) * 1_000_000),
        }
    }

    /// Notes whether this variant uses what was written for these keys; a key that no variant uses is
    /// a problem.
    fn note_keys(&mut self, settings: &Settings, keys: &[&str], unused: Option<&str>, help: &str) {
        for path in keys.iter().filter(|path| !settings.is_preset(path)) {
            let Some(place) = settings.place(path) else { continue };
            let why = unused.unwrap_or_default();
            let message = format!("`{path}` has no effect: {why}");
            self.note_use(place, unused.is_none(), message, help);
        }
    }

    /// Notes a problem, at a place if it has one.
    fn problem(&mut self, message: &str, mark: Option<crate::error::Mark>, help: &str) {
        let problem =
            Problem { message: message.to_owned(), marks: mark.into_iter().collect(), help: None };
        self.problems.push(problem.help(help));
    }
}
