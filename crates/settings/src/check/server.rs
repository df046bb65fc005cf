//! The servers of a variant, checked.

use std::net::IpAddr;

use dnslab_wire::Transport;

use super::{Check, Use, is_name};
use crate::key::Field;
use crate::problem::shown;
use crate::{
    CacheSize, CacheUnit, Host, HostAddress, HostsChoice, Interface, LogTarget, Mark, Queries,
    ServerChoice, ServerKind, UpstreamChoice, VariantDraft, Written, ZoneSigning,
};

impl Check<'_> {
    pub(super) fn server(&mut self, draft: &mut VariantDraft) {
        let server = &mut draft.server;
        let is_here = server.host.value.is_none();
        for binary in [&mut server.binary, &mut draft.relay.binary, &mut draft.upstream.binary] {
            if is_here {
                self.binary(binary);
            }
        }
        self.root(&mut server.root);
        self.file(&mut server.authority, "authority file");
        self.file(&mut draft.upstream.hierarchy, "hierarchy file");
        server.query_log.forget();
        if let (Some(folder), Some(place)) =
            (&draft.log.folder.value, Field::place(&draft.log.folder))
        {
            // The plan asks whether it is there: a variant whose disk is missing is left out.
            draft.log.folder.value = Some(self.folder_of(place).join(folder));
        }
        match draft.server.kind.value {
            ServerChoice::Started(_) => self.started(draft),
            ServerChoice::External => self.external(draft),
        }
        if draft.lab.hosts.value != HostsChoice::Loopback
            && draft.server.kind.value == ServerChoice::External
        {
            let mark = draft.lab.hosts.mark("makes hosts");
            self.problem("an external server has no host here", [mark], "remove `lab.hosts`");
        }
    }

    /// The size of a cache in the unit of its server.
    fn cache(&mut self, draft: &VariantDraft, kind: ServerKind) {
        let cache = &draft.server.cache;
        let title = kind.profile().title;
        let (message, label, help) = match (cache.value, kind.profile().cache_unit) {
            (CacheSize::Entries(_), Some(CacheUnit::Memory)) => (
                format!("{title} bounds its cache by memory, not by entries"),
                "entries",
                "write for example `server.cache = \"64MiB\"`",
            ),
            (CacheSize::Mebibytes(_), Some(CacheUnit::Entries)) => (
                format!("{title} bounds its cache by entries, not by memory"),
                "memory",
                "write for example `server.cache = 100_000`",
            ),
            (CacheSize::Entries(_) | CacheSize::Mebibytes(_), None) => {
                (format!("{title} has no cache"), "has a size", "remove it")
            }
            _ => return,
        };
        self.problem(message, [cache.mark(label)], help);
    }

    fn started(&mut self, draft: &mut VariantDraft) {
        if let Some(kind) = draft.server.kind.value.started().filter(|kind| kind.forwards()) {
            self.cache(draft, kind);
        }
        if draft.server.host.value.is_some() {
            self.started_elsewhere(draft);
        }
        let address = &mut draft.server.address;
        if let Host::Name(_) = address.value.host {
            self.problem(
                "a started server needs an address to listen on, not a host name",
                [address.mark("a name")],
                "write \"127.0.0.1\", or ask the server that runs there: `server.kind = \"external\"`",
            );
        }
        let ip = address.value.ip();
        if address.value.link.take().is_some() {
            self.problem(
                "a started server needs an address that is the same on all links",
                [address.mark("is one of a link")],
                "write \"::1\", or ask the server that runs there: `server.kind = \"external\"`",
            );
        }
        if address.value.port.take().is_some() {
            self.problem(
                "`server.address` has a port, but a started server gets a free one",
                [address.mark("has a port")],
                format!("write \"{ip}\" alone"),
            );
        }
    }

    /// What a server that is started on another host cannot have.
    fn started_elsewhere(&mut self, draft: &VariantDraft) {
        let VariantDraft { server, upstream, lab, log, .. } = draft;
        let host = || server.host.mark("another host");
        let is_made_here = upstream.kind.value == Some(UpstreamChoice::Internet);
        let is_asked_from_here = upstream.kind.value == Some(UpstreamChoice::External)
            && upstream.service.value.is_none();
        let parts = [
            (
                "`upstream.kind = \"internet\"`",
                is_made_here,
                upstream.kind.mark("an Internet in a namespace of this machine"),
            ),
            (
                "`upstream.kind = \"external\"`",
                is_asked_from_here,
                upstream.kind.mark("known to this machine"),
            ),
            ("`server.root`", server.root.value.is_some(), server.root.mark("a folder here")),
            (
                "`lab.hosts`",
                lab.hosts.value == HostsChoice::Namespaces,
                lab.hosts.mark("makes hosts here"),
            ),
            ("`server.log.folder`", log.folder.value.is_some(), log.folder.mark("a folder here")),
        ];
        for (key, is_there, mark) in parts {
            if is_there {
                self.problem(
                    format!("a server that is started on another host cannot have {key}"),
                    [mark, host()],
                    format!("remove {key}, or start the server there yourself: `server.kind = \"external\"`"),
                );
            }
        }
    }

    /// A path must be there. A bare name is found on the search path.
    fn binary(&mut self, field: &mut Written<Option<std::path::PathBuf>>) {
        if field.value.as_ref().is_some_and(|path| path.to_string_lossy().contains('/')) {
            self.file(field, "program");
        }
    }

    /// A path, or the name of a root folder in the cache. Either must be there.
    fn root(&mut self, field: &mut Written<Option<std::path::PathBuf>>) {
        let (Some(root), Some(place)) = (&field.value, Field::place(field)) else { return };
        let is_name = is_name(root);
        let root = if is_name { root.clone() } else { self.folder_of(place).join(root) };
        if let Err((message, help)) = self.machine.find_root(&root) {
            self.problem(message, [field.mark("no root folder")], help);
        }
        field.value = Some(root);
    }

    fn external(&mut self, draft: &mut VariantDraft) {
        let transports: Vec<Transport> = draft.load.checked().transports().collect();
        let server = &mut draft.server;
        let is_service = server.service.value.is_some();
        if !server.address.is_written() && !is_service && server.kind.is_written() {
            self.problem(
                "an external server needs `server.address`",
                [server.kind.mark("runs already, but where?")],
                "add for example `server.address = \"192.0.2.1\"`",
            );
        }
        if let Some(unit) = &server.unit.value
            && (unit.is_empty() || unit.contains('/'))
        {
            self.problem(
                "`server.unit` must be the name of a unit",
                [server.unit.mark("no name of a unit")],
                "write for example \"named.service\"",
            );
        }
        let manifest = &server.manifest;
        if manifest.value.is_some() && !is_service {
            self.problem(
                "nothing says which Service of `server.manifest` is asked",
                [manifest.mark("is made in a cluster")],
                "add `server.service`, with the name of one of its Services",
            );
        }
        if manifest.value.as_ref().is_some_and(|path| !is_name(path)) {
            self.file(&mut draft.server.manifest, "manifest");
        }
        let server = &mut draft.server;
        let others = [
            ("`server.host`", server.host.value.is_some(), server.host.mark("a host of its own")),
            ("`server.pid`", server.pid.value.is_some(), server.pid.mark("one process")),
            ("`server.unit`", server.unit.value.is_some(), server.unit.mark("one unit")),
            (
                "`server.statistics`",
                server.statistics.value.is_some(),
                server.statistics.mark("one server"),
            ),
        ];
        let mark = server.service.mark("pods of a cluster");
        for (key, _, other) in others.into_iter().filter(|(_, is_there, _)| is_service && *is_there)
        {
            self.problem(
                format!("a Service of a cluster has no {key}"),
                [mark.clone(), other],
                format!("remove {key}: the pods behind the Service are watched"),
            );
        }
        let server = &mut draft.server;
        let statistics = &server.statistics;
        let is_whole = |address: &HostAddress| {
            matches!(address.host, Host::Address(_)) && address.port.is_some()
        };
        if statistics.value.as_ref().is_some_and(|address| !is_whole(address)) {
            self.problem(
                "`server.statistics` must be an address with a port",
                [statistics.mark("no address, or no port")],
                "write for example \"127.0.0.1:8053\"",
            );
        }
        self.plain_port(draft);
        self.verification(draft);
        let server = &mut draft.server;
        let used: Vec<(Transport, u16)> = transports
            .iter()
            .map(|transport| {
                (*transport, server.port_for(*transport).value.unwrap_or(transport.default_port()))
            })
            .collect();
        let ports =
            [&mut server.port, &mut server.dot_port, &mut server.doh_port, &mut server.doq_port];
        ports.into_iter().for_each(|port| port.value = None);
        for (transport, port) in used {
            server.port_for(transport).value = Some(port);
        }
        let written = draft.server.address.value.clone();
        let (address, name) = self.look_up(&written, |label| draft.server.address.mark(label));
        let link = self.link(&draft.server.address);
        draft.server.address.value = HostAddress { host: Host::Address(address), link, port: None };
        let is_encrypted = transports.into_iter().any(Transport::is_encrypted);
        if is_encrypted && draft.server.tls_name.value.is_none() {
            draft.server.tls_name.value = name.clone();
        }
        draft.host_name = name;
    }

    /// The port for UDP and TCP, from its own key or from the address. If every load is encrypted, the user
    /// most likely meant the encrypted port, and silence would measure another server.
    fn plain_port(&mut self, draft: &mut VariantDraft) {
        let transport = draft.load.transport.value;
        let server = &mut draft.server;
        let (port, address) = (&server.port, &server.address);
        let behind = address.value.port;
        let is_twice = behind.is_some() && port.is_written() && port.layer() == address.layer();
        if is_twice {
            self.problem(
                "the port of the server is written twice",
                [port.mark("here"), address.mark("and here")],
                "remove `server.port`, or the port from `server.address`",
            );
        }
        let is_behind = behind.is_some() && address.layer() > port.layer();
        let place = if is_behind { Field::place(address) } else { Field::place(port) }.cloned();
        if is_behind {
            server.port.value = behind;
        }
        if let Some(place) = place.filter(|_| server.port.value.is_some()) {
            let what = in_words(transport);
            let key = server.port_for(transport).key().path;
            self.uses.push(Use {
                place,
                is_used: !draft.load.checked().transports().all(Transport::is_encrypted),
                message: format!("the port is for UDP and TCP, but all load on it is {what}"),
                label: "not used",
                help: format!("write the port for it as `{key}`"),
            });
        }
    }

    /// The address of a host, and its name if it was written by name. A name is looked up once, so that all
    /// variants ask the same address.
    fn look_up(
        &mut self,
        written: &HostAddress,
        mark: impl Fn(&str) -> Option<Mark>,
    ) -> (IpAddr, Option<String>) {
        let Host::Name(name) = &written.host else { return (written.ip(), None) };
        let found = match self.names.iter().find(|(known, _)| known == name) {
            Some((_, found)) => found.clone(),
            None => {
                let found = self.machine.find_address(name);
                self.names.push((name.clone(), found.clone()));
                found
            }
        };
        let address = found.unwrap_or_else(|reason| {
            self.problem(
                format!("the address of `{name}` cannot be looked up: {reason}"),
                [mark("no address")],
                "write its address, or mend its name",
            );
            written.ip()
        });
        (address, Some(name.clone()))
    }

    /// The link of a link-local address, with its number.
    fn link(&mut self, written: &Written<HostAddress>) -> Option<Interface> {
        let IpAddr::V6(address) = written.value.ip() else { return None };
        let Some(link) = &written.value.link else {
            if address.is_unicast_link_local() {
                self.problem(
                    format!("`{address}` is a link-local address, and each link of this host may have one"),
                    [written.mark("on which link?")],
                    format!("write the interface behind it, as in \"{address}%eth0\"; `ip link` lists them"),
                );
            }
            return None;
        };
        let name = link.name.clone();
        match self.machine.find_link(address, &name) {
            Ok(index) => Some(Interface { name, index }),
            Err(reason) => {
                let message = format!("`{address}%{}`: {reason}", shown(&name));
                let help = "`ip link` lists the interfaces of this host";
                self.problem(message, [written.mark("no such link")], help);
                None
            }
        }
    }

    /// How the certificate of an external server is verified. Of `server.authority` and `server.insecure`,
    /// the later layer holds.
    fn verification(&mut self, draft: &mut VariantDraft) {
        let load = draft.load.checked();
        let Some(encrypted) = load.transports().find(|transport| transport.is_encrypted()) else {
            return;
        };
        let server = &mut draft.server;
        let (authority, insecure) = (&server.authority, &server.insecure);
        if authority.value.is_some() && insecure.value {
            if authority.layer() == insecure.layer() {
                self.problem(
                    "`server.authority` and `server.insecure` exclude each other",
                    [insecure.mark("verifies nothing"), authority.mark("verifies")],
                    "remove `server.insecure` to verify",
                );
            }
            match authority.layer() > insecure.layer() {
                true => server.insecure.value = false,
                false => server.authority.value = None,
            }
        } else if authority.value.is_none() && !insecure.value && !authority.is_broken() {
            let what = in_words(encrypted);
            let kind = server.kind.mark("a server that dnslab made no certificate for");
            self.problem(
                "nothing says how to verify the certificate of the external server",
                [draft.load.transport.mark(what).or_else(|| draft.load.mix.mark(what)), kind],
                "add `server.authority = \"ca.pem\"`, or `server.insecure = true` to accept any",
            );
        }
    }

    /// Checks an upstream that runs already. Its port is written out, and its host name becomes the name that its
    /// certificate must have.
    fn external_upstream(&mut self, draft: &mut VariantDraft) {
        let VariantDraft { upstream, lab, .. } = draft;
        if upstream.kind.value != Some(UpstreamChoice::External) {
            return;
        }
        self.file(&mut upstream.authority, "authority file");
        if lab.hosts.value == HostsChoice::Namespaces {
            self.problem(
                "a host in a namespace does not reach an upstream that runs already",
                [lab.hosts.mark("makes hosts"), upstream.kind.mark("runs elsewhere")],
                "remove `lab.hosts`, or write \"auto\": the server then asks from this host",
            );
        }
        if upstream.service.value.is_some() {
            // Its own one is known when the cluster is asked.
            let port = Some(upstream.transport.value.default_port());
            upstream.address.value = Some(HostAddress { port, ..HostAddress::LOCAL });
            return;
        }
        let Some(address) = upstream.address.value.clone() else {
            if !upstream.address.is_broken() {
                self.problem(
                    "an external upstream needs `upstream.address`",
                    [upstream.kind.mark("runs already, but where?")],
                    "add for example `upstream.address = \"192.0.2.1\"`",
                );
            }
            return;
        };
        let (ip, name) = self.look_up(&address, |label| upstream.address.mark(label));
        let is_link_local = matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
        if address.link.is_some() || is_link_local {
            self.problem(
                "forwarders are told an address that is the same on all links",
                [upstream.address.mark("is one of a link")],
                "write another address of the upstream",
            );
        }
        let transport = upstream.transport.value;
        let port = Some(address.port.unwrap_or(transport.default_port()));
        upstream.address.value = Some(HostAddress { host: Host::Address(ip), link: None, port });
        if !transport.is_encrypted() || upstream.tls_name.is_broken() {
            return;
        }
        upstream.tls_name.value = upstream.tls_name.value.take().or(name);
        if upstream.tls_name.value.is_none() {
            self.problem(
                "nothing says which name the certificate of the external upstream must have",
                [upstream.address.mark("an address"), upstream.transport.mark(in_words(transport))],
                "add for example `upstream.tls_name = \"dns.example\"`, or write its host name as \
                 `upstream.address`",
            );
        }
    }

    /// Checks the servers behind the one under test, and the links between their hosts.
    pub(super) fn chain(&mut self, draft: &mut VariantDraft) {
        self.file(&mut draft.server.policy_zone, "policy zone");
        self.own_configuration(draft);
        self.resolver(draft);
        self.external_upstream(draft);
        let VariantDraft { server, relay, upstream, load, client_link, upstream_link, .. } = draft;
        let kind = server.kind.value.started();
        let kind_name = ServerChoice::name_of(kind);
        let forwarded_to = upstream.kind.value.and_then(UpstreamChoice::server);
        let is_forwarded_to = upstream.kind.value.is_some_and(UpstreamChoice::is_forwarded_to);
        let is_external = upstream.kind.value == Some(UpstreamChoice::External);
        let resolves = upstream.kind.value.is_some() && !is_forwarded_to;
        if is_forwarded_to && !kind.is_some_and(ServerKind::forwards) {
            self.problem(
                format!("a server of kind `{kind_name}` forwards nothing"),
                [upstream.kind.mark("nobody asks it")],
                "remove the upstream, or choose a `server.kind` that forwards",
            );
        }
        if upstream.kind.value.is_none() && kind.is_some_and(|kind| !kind.serves_zones()) {
            let is_own = server.config.value.is_some();
            let or_resolve = match kind.is_some_and(ServerKind::resolves) {
                _ if is_own => "; to ask those of its configuration, `upstream.kind = \"live\"`",
                true => "; to resolve by itself, `upstream.kind = \"internet\"` or \"live\"",
                false => "",
            };
            self.problem(
                format!("a server of kind `{kind_name}` needs an upstream"),
                [server.kind.mark("has no zone of its own")],
                format!("add for example `upstream.kind = \"embedded\"`{or_resolve}"),
            );
        }
        if relay.kind.value.is_some() && upstream.kind.value.is_none() {
            let mark = relay.kind.mark("has nothing behind it");
            self.problem("a relay needs an upstream", [mark], "add `upstream.kind`");
        }
        if relay.kind.value.is_some() && resolves {
            self.problem(
                "a server that resolves by itself asks no relay",
                [relay.kind.mark("nobody asks it"), upstream.kind.mark("is resolved in")],
                "remove the relay, or name a server to forward to as `upstream.kind`",
            );
        }
        if let Some(kind) = relay.kind.value.filter(|kind| !kind.forwards()) {
            self.problem(
                format!("a server of kind `{kind}` cannot be a relay: it forwards nothing"),
                [relay.kind.mark("a relay forwards")],
                "choose another kind",
            );
        }
        if let Some(kind) = forwarded_to.filter(|kind| !kind.serves_zones()) {
            let ends = ServerKind::ALL.into_iter().filter(|kind| kind.serves_zones());
            let ends: Vec<&str> = ends.map(ServerKind::name).collect();
            self.problem(
                format!("a server of kind `{kind}` cannot end the chain"),
                [upstream.kind.mark("would itself need an upstream")],
                format!("the upstream is one of {}", ends.join(", ")),
            );
        }
        let is_internet = upstream.kind.value == Some(UpstreamChoice::Internet);
        let knows_all = is_internet || forwarded_to == Some(ServerKind::Embedded);
        if load.popular_names.value.is_some() && load.queries.value.is_none() && !knows_all {
            self.problem(
                "popular names need a server that knows them",
                [load.popular_names.mark("which server should know them?")],
                "add an upstream of kind \"embedded\": it knows every name; or resolve in an Internet that has \
                 some, of kind \"internet\"",
            );
        }
        if upstream.signed.value && matches!(load.checked().asked(), Queries::Zone(_)) {
            self.problem(
                "the names of the synthetic zone are not signed",
                [upstream.signed.mark("signs no zone")],
                "ask for `load.popular_names`, or for the names of a file (`load.queries`)",
            );
        }
        if server.dnssec.value && !upstream.signed.value && !resolves && !is_external {
            self.problem(
                "a server that validates needs an upstream with signatures",
                [server.dnssec.mark("nothing to validate")],
                "add `upstream.signed = true`, with an upstream of kind \"embedded\"",
            );
        }
        for (delay, jitter) in [
            (&client_link.delay, &mut client_link.jitter),
            (&upstream_link.delay, &mut upstream_link.jitter),
        ] {
            if jitter.value > delay.value {
                self.problem(
                    "the jitter of a link is larger than its delay",
                    [jitter.mark("would arrive before it was sent")],
                    "make it at most the delay",
                );
                jitter.value = delay.value;
            }
        }
    }
}

impl Check<'_> {
    /// Checks that a configuration of the user's own says alone what its server does, and that the names are known to
    /// somebody.
    fn own_configuration(&mut self, draft: &mut VariantDraft) {
        let config = &mut draft.server.config;
        match config.value.as_ref().filter(|_| draft.server.host.value.is_some()) {
            None => self.file(config, "configuration"),
            Some(path) if path.is_absolute() => {}
            Some(_) => self.problem(
                "a configuration on another host has a whole path",
                [config.mark("begins nowhere there")],
                "write for example \"/etc/bind/named.conf\"",
            ),
        }
        let VariantDraft { server, zone, upstream, log, load, .. } = draft;
        if server.config.value.is_none() {
            return;
        }
        // It asks whom it says, which is to be meant.
        let asks_others = upstream.kind.value == Some(UpstreamChoice::Live);
        let decides_threads = server.kind.value.started() != Some(ServerKind::Bind);
        let others = [
            (
                upstream.kind.value.is_some() && !asks_others,
                upstream.kind.mark("a further upstream"),
            ),
            (server.threads.value.is_some() && decides_threads, server.threads.mark("threads")),
            (server.cache.value != CacheSize::Default, server.cache.mark("a cache")),
            (server.policy_zone.value.is_some(), server.policy_zone.mark("a policy")),
            (server.dnssec.value, server.dnssec.mark("validation")),
            (server.dnstap.value, server.dnstap.mark("dnstap")),
            (server.query_log.value, server.query_log.mark("a log")),
            (log.to.value != LogTarget::None, log.to.mark("a log")),
            (zone.signed.value != ZoneSigning::No, zone.signed.mark("another zone")),
        ];
        if let Some((_, mark)) = others.into_iter().find(|(is_wanted, _)| *is_wanted) {
            self.problem(
                "a configuration of your own says alone what its server does",
                [mark, server.config.mark("says it")],
                "write it into that configuration, or remove `server.config`",
            );
        }
        let has_names = zone.file.value.is_some() || load.population.value.is_some();
        if matches!(load.checked().asked(), Queries::Zone(_)) && !has_names {
            self.problem(
                "the server of a configuration of your own does not know the names of the synthetic zone",
                [server.config.mark("has its own")],
                "name a file of names that it knows, `load.queries`, or the file of one of its zones, \
                 `server.zone.file`",
            );
        }
    }

    /// Checks a server that resolves by itself.
    fn resolver(&mut self, draft: &VariantDraft) {
        let VariantDraft { server, upstream, zone, load, lab, .. } = draft;
        let is_live = match upstream.kind.value {
            Some(UpstreamChoice::Internet) => false,
            Some(UpstreamChoice::Live) => true,
            Some(UpstreamChoice::Server(_) | UpstreamChoice::External) | None => return,
        };
        let kind = server.kind.value.started();
        if !kind.is_some_and(ServerKind::resolves) {
            let able = ServerKind::ALL.into_iter().filter(|kind| kind.resolves());
            let able: Vec<&str> = able.map(ServerKind::name).collect();
            let able = able.join(", ");
            let (message, help) = match kind {
                Some(kind) if kind.forwards() => (
                    format!("a server of kind `{kind}` does not resolve by itself: it forwards"),
                    format!(
                        "choose one of {able} as `server.kind`, or name a server to forward to as \
                         `upstream.kind`"
                    ),
                ),
                Some(kind) => (
                    format!("a server of kind `{kind}` does not resolve: it answers from a zone"),
                    format!("choose one of {able} as `server.kind`, or remove `upstream.kind`"),
                ),
                None => (
                    "a server that runs already resolves where it was told to".to_owned(),
                    "remove `upstream.kind`".to_owned(),
                ),
            };
            let marks =
                [server.kind.mark("resolves nothing"), upstream.kind.mark("needs a resolver")];
            self.problem(message, marks, help);
        }
        let hosts = lab.hosts.value;
        if is_live && hosts != HostsChoice::Loopback {
            self.problem(
                "a host in a namespace does not reach the Internet",
                [lab.hosts.mark("makes hosts"), upstream.kind.mark("is the Internet")],
                "remove `lab.hosts`: the server then asks from this host",
            );
        }
        if !is_live && hosts != HostsChoice::Namespaces {
            let why = match hosts {
                HostsChoice::Auto => "may be the loopback interface",
                _ => "has no such addresses",
            };
            self.problem(
                "a private Internet needs a host of its own: it answers on port 53 of all addresses of \
                 198.18.0.0/15 and 2001:2::/48",
                [upstream.kind.mark("needs hosts"), lab.hosts.mark(why)],
                "add `lab.hosts = \"namespaces\"`",
            );
        }
        if !is_live && matches!(load.checked().asked(), Queries::Capture(_)) {
            self.problem(
                "nobody in the private Internet knows the names of a capture",
                [upstream.kind.mark("is resolved in"), load.capture.mark("names of the Internet")],
                "play its population instead: write it with `dnslab profile`, and name it in \
                 `load.population`",
            );
        }
        let has_names = !is_live && load.population.value.is_some();
        let is_own = is_live && zone.file.value.is_some();
        if matches!(load.checked().asked(), Queries::Zone(_)) && !has_names && !is_own {
            let (message, help) = match is_live {
                true => (
                    "nobody on the Internet knows the names of the synthetic zone",
                    "name a file of names that exist: `load.queries`",
                ),
                false => (
                    "nobody in the private Internet knows the names of the synthetic zone",
                    "ask for its own names, for example `load.popular_names = 10_000`, or for those of a \
                     file: `load.queries`",
                ),
            };
            self.problem(message, [upstream.kind.mark("is resolved in")], help);
        }
    }
}

fn in_words(transport: Transport) -> &'static str {
    match transport {
        Transport::Udp => "UDP",
        Transport::Tcp => "TCP",
        Transport::Dot => "DNS over TLS",
        Transport::Doh2 | Transport::Doh3 => "DNS over HTTPS",
        Transport::Doq => "DNS over QUIC",
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::super::Machine;
    use super::*;
    use crate::{Document, Variant};

    #[derive(Default)]
    struct Names(RefCell<Vec<String>>);

    impl Machine for Names {
        fn find_address(&self, name: &str) -> Result<IpAddr, String> {
            self.0.borrow_mut().push(name.to_owned());
            match name {
                "ns1.example" => Ok("192.0.2.7".parse().unwrap()),
                other => Err(format!("`{other}` is unknown")),
            }
        }
    }

    /// Checks an external server at this address, asked over UDP and over TLS. Returns the variants, and the
    /// names that were looked up.
    fn external(address: &str) -> (Result<Vec<Variant>, String>, Vec<String>) {
        let names = Names::default();
        let text = format!(
            "name = \"x\"\n[server]\nkind = \"external\"\naddress = \"{address}\"\ninsecure = true\n\
             [[variant]]\nname = \"udp\"\n[[variant]]\nname = \"dot\"\nload.transport = \"dot\"\n"
        );
        let variants = Document::of_file(&text)
            .and_then(|document| document.check(&names))
            .map(|experiment| experiment.variants)
            .map_err(|problems| problems.as_slice()[0].message.clone());
        (variants, names.0.into_inner())
    }

    #[test]
    fn a_name_is_looked_up_once_and_verified() {
        let (variants, asked) = external("ns1.example:5300");
        assert_eq!(asked, ["ns1.example"]);
        let variants = variants.unwrap();
        let endpoint = |variant: &Variant| {
            let target = variant.target().unwrap().to_string();
            (target, variant.host_name.clone(), variant.server.tls_name.clone())
        };
        let name = Some("ns1.example".to_owned());
        assert_eq!(endpoint(&variants[0]), ("192.0.2.7:5300".to_owned(), name.clone(), None));
        assert_eq!(endpoint(&variants[1]), ("192.0.2.7:853".to_owned(), name.clone(), name));
        let (variants, asked) = external("192.0.2.1");
        assert_eq!((endpoint(&variants.unwrap()[1]).2, asked), (None, Vec::new()));
        let (variants, asked) = external("nowhere.example");
        let message =
            "the address of `nowhere.example` cannot be looked up: `nowhere.example` is unknown";
        assert_eq!(variants.unwrap_err(), message);
        assert_eq!(asked.len(), 1, "a name that is not found is looked up once, too");
    }
}
