//! The load of a variant, checked.

use std::net::IpAddr;
use std::time::Duration;

use dnslab_traffic::population::Population;
use dnslab_traffic::{Connect, NameList, Rate, TimeWindows, TransportMix, Truncated};
use dnslab_wire::units::duration::write as write_duration;
use dnslab_wire::units::{number, share};
use dnslab_wire::{Method, Transport};

use super::{Check, PathKind, shown};
use crate::key::Field;
use crate::{
    HostsChoice, Kind, LoadDraft, PopulationSource, Queries, Records, ServerChoice, ServerDraft,
    ServerKind, Subnets, TlsVersions, VariantDraft, ZoneDraft,
};

/// Played clients close what has been idle for so long. Stub resolvers keep connections for 10 to 30 s (RFC
/// 7766, section 6.2.3, wants a time of the order of seconds).
const IDLE_OF_CLIENTS: Duration = Duration::from_secs(10);

/// Durations are recorded up to this one.
const MAX_PATIENCE: Duration = Duration::from_secs(100);

/// Addresses of captured clients that ask a server on the loopback interface: four million, so that each has its own.
const CLIENTS_HERE: &str = "127.64.0.0/10";

/// Queries that Knot DNS 3.4 answers together on one connection over QUIC.
const STREAMS_OF_KNOT: u32 = 9;

/// Lets clients of a capture or a population behave as clients do that nobody has told anything.
fn as_real_clients(load: &mut LoadDraft) {
    if !load.connect.is_written() {
        load.connect.value = Connect::OnDemand;
    }
    if !load.truncated.is_written() {
        load.truncated.value = Truncated::AskOverTcp;
    }
    if !load.idle.is_written() {
        load.idle.value = Some(IDLE_OF_CLIENTS);
    }
    if !load.padding.is_written() && load.checked().transports().any(Transport::is_encrypted) {
        load.padding.value = Kind::PADDING;
    }
}

/// Gives the clients the transports of their population: `load.transport` is the most frequent one.
fn travel_as_in(population: &Population, load: &mut LoadDraft) {
    let transports = &population.stubs.transports;
    let sum: f64 = transports.iter().map(|(_, weight)| weight).sum();
    let most = transports.iter().map(|(_, weight)| *weight).fold(0.0, f64::max);
    let Some((usual, _)) = transports.iter().find(|(_, weight)| *weight == most) else { return };
    let others = transports.iter().filter(|(transport, _)| transport != usual);
    let mix: Vec<String> = others
        .map(|(transport, weight)| (transport, share::write(weight / sum)))
        // A share that is too small to be written is that of no client.
        .filter(|(_, part)| share::read(part).is_some_and(|part| part > 0.0))
        .map(|(transport, part)| format!("{transport}:{part}"))
        .collect();
    load.transport.value = *usual;
    load.mix.value = mix.join(",").parse::<TransportMix>().ok();
}

/// The addresses that the clients ask. A name that is to be looked up counts as an address of this host.
fn targets(server: &ServerDraft) -> impl Iterator<Item = IpAddr> {
    let further = server.further.value.iter().flat_map(|further| &further.0);
    std::iter::once(server.address.value.ip()).chain(further.map(|(address, _)| *address))
}

impl Check<'_> {
    pub(super) fn load(&mut self, draft: &mut VariantDraft) {
        let load = &mut draft.load;
        if !load.rate.is_written() && load.pace.is_written() {
            self.problem(
                "`load.pace` needs `load.rate`: a closed loop has no pace",
                [load.pace.mark("no rate to pace")],
                "add for example `load.rate = 50_000`, or remove `load.pace`",
            );
            load.pace.forget();
        }
        if let Some(outstanding) = load.mode().outstanding() {
            load.outstanding.value = Some(outstanding);
        }
        if let Some(mix) = &load.mix.value
            && mix.shares().iter().any(|(transport, _)| *transport == load.transport.value)
        {
            self.problem(
                format!(
                    "`load.mix` has the shares of the other transports: `{}` is `load.transport`",
                    load.transport.value
                ),
                [
                    load.mix.mark("among the others"),
                    load.transport.mark("the transport of the rest"),
                ],
                "remove it from the mix, or choose another `load.transport` for the rest",
            );
        }
        if load.mode().is_played() {
            as_real_clients(load);
            let is_local = draft.lab.hosts.value == HostsChoice::Loopback
                && targets(&draft.server).all(|address| address.is_ipv4() && address.is_loopback());
            let has_udp = load.checked().transports().any(|transport| transport == Transport::Udp);
            if is_local && has_udp && !load.sources.is_written() {
                load.sources.value = CLIENTS_HERE.parse().ok();
            }
        }
        self.attempts(draft);
        let load = &mut draft.load;
        self.workers(load);
        self.load_hosts(draft);
        let load = &mut draft.load;
        self.windows(load);
        self.queries(load);
        self.tls(draft);
        self.window(&draft.load);
        self.rate(&draft.load);
        self.streams_of_knot(draft);
        self.sources(draft);
        let (load, upstream) = (&mut draft.load, &draft.upstream);
        // Without RD a forwarder may answer only what it has in its cache.
        load.recursion_desired.value.get_or_insert(upstream.kind.value.is_some());
        self.edns_options(load);
        load.edns_payload.value = load.checked().query_options().edns.map(|edns| edns.payload_size);
        if load.checked().is_signed()
            && draft.server.kind.value == ServerChoice::Started(ServerKind::Embedded)
        {
            self.problem(
                "the embedded server has no TSIG keys: it signs no answer",
                [load
                    .tsig
                    .mark("signed queries")
                    .or_else(|| load.tsig_file.mark("signed queries"))],
                "take another `server.kind`; give an installed server the key with `server.extra`",
            );
        }
    }

    /// Completes what a population decides where nothing is written, before keys are judged by it.
    pub(super) fn population(&mut self, draft: &mut VariantDraft) {
        let Some(source) = &draft.load.population.value else { return };
        let Some(population) = self.read_population(source.clone(), &mut draft.load) else {
            return;
        };
        let VariantDraft { load, zone, .. } = draft;
        if !load.clients.is_written() {
            let Kind::Count { most, .. } = load.clients.key().kind else { return };
            if u64::from(population.clients) > most {
                self.problem(
                    format!(
                        "the population has {} clients, and a load at most {}",
                        number::count(population.clients.into()),
                        number::count(most)
                    ),
                    [load.population.mark("too many")],
                    format!("write for example `load.clients = {most}`"),
                );
                return;
            }
            load.clients.value = population.clients;
        }
        if !load.rate.is_written() {
            load.rate.value = Some(Rate::Constant(population.rate_of(load.clients.value)));
        }
        if load.rate.value.as_ref().is_some_and(|rate| !rate.is_constant()) {
            self.problem(
                "a population has one rate: its clients do not become more or less active",
                [load.rate.mark("changes with time"), load.population.mark("a population")],
                "write one number of queries per second",
            );
        }
        let has_zone = matches!(load.checked().asked(), Queries::Zone(_));
        if has_zone && zone.file.value.is_none() && !zone.records.is_written() {
            // Its popular names are there, so that a server which knows the zone answers them.
            let Kind::Count { most, .. } = zone.records.key().kind else { return };
            let most = u32::try_from(most).unwrap_or(u32::MAX);
            zone.records.value = population.names.popular.count.min(most);
        }
        if !load.transport.is_written() && !load.mix.is_written() {
            travel_as_in(&population, load);
        }
    }

    /// The description of the population; `None` if it cannot be read. Its path becomes whole.
    fn read_population(
        &mut self,
        source: PopulationSource,
        load: &mut LoadDraft,
    ) -> Option<Population> {
        let PopulationSource::File(path) = source else { return Some(Population::typical()) };
        let place = Field::place(&load.population).cloned();
        let whole = match &place {
            Some(place) => self.file_at(&path, place, "population file"),
            None => path,
        };
        load.population.value = Some(PopulationSource::File(whole.clone()));
        if self.machine.kind_of(&whole) != PathKind::File {
            return None;
        }
        match self.machine.read_population(&whole) {
            Ok(population) => Some(population),
            Err(reason) => {
                self.problem(
                    format!("the population file cannot be read: {reason}"),
                    [place.map(|place| place.mark("this file"))],
                    "docs/POPULATIONS.md explains its keys, and `dnslab make population` writes a file to \
                     begin with",
                );
                None
            }
        }
    }

    /// At most one worker per client, and one for each CPU that they are pinned to.
    fn workers(&mut self, load: &mut LoadDraft) {
        let is_captured = load.capture.value.is_some();
        let LoadDraft { workers, cpus, clients, .. } = load;
        let pinned = u32::try_from(cpus.value.len()).unwrap_or(u32::MAX);
        let wanted = workers.value.or((pinned > 0).then_some(pinned));
        let is_broken = workers.is_broken() || cpus.is_broken() || clients.is_broken();
        let most = clients.value;
        match (workers.value, wanted) {
            _ if is_broken => {}
            (Some(count), _) if pinned > 0 && pinned != count => self.problem(
                format!("{count} workers cannot be pinned to {pinned} CPUs, one for each"),
                [cpus.mark("the CPUs"), workers.mark("the workers")],
                "remove `load.workers`, or name one CPU for each",
            ),
            (_, Some(count)) if count > most && !is_captured => self.problem(
                format!("{count} workers for {most} clients: some would have none"),
                [
                    workers.mark("the workers").or_else(|| cpus.mark("the workers")),
                    clients.mark("the clients"),
                ],
                format!("take at least {count} clients, or at most {most} workers"),
            ),
            _ => {}
        }
        workers.value = wanted;
    }

    /// What a load on other hosts cannot have, or needs.
    fn load_hosts(&mut self, draft: &VariantDraft) {
        let VariantDraft { load, server, lab, .. } = draft;
        let Some(hosts) = load.hosts.value.as_ref().filter(|_| !load.hosts.is_broken()) else {
            return;
        };
        let count = u32::try_from(hosts.0.len()).unwrap_or(u32::MAX);
        let of_hosts = || load.hosts.mark("the hosts");
        if !load.cpus.value.is_empty() {
            self.problem(
                "`load.cpus` has CPUs of this machine, and the load is on other hosts",
                [load.cpus.mark("CPUs of this machine"), of_hosts()],
                "remove `load.cpus`: on each host the workers are pinned to its CPUs",
            );
        } else if load.workers.value.is_some_and(|workers| workers < count) {
            self.problem(
                format!("{count} hosts share the load, and one of them would have no worker"),
                [load.workers.mark("the workers"), of_hosts()],
                format!("take at least {count} workers, or fewer hosts"),
            );
        }
        if count > 1 && load.sources.value.is_some() {
            self.problem(
                "`load.sources` has addresses of one host, and several share the load",
                [load.sources.mark("addresses"), of_hosts()],
                "remove it, or take one host: their clients have different addresses in any case",
            );
        }
        if load.clients.value < count {
            self.problem(
                format!("{count} hosts share the load, and one of them would have no client"),
                [load.clients.mark("the clients"), of_hosts()],
                format!("take at least {count} clients, or fewer hosts"),
            );
        }
        if let Some(host) = server
            .host
            .value
            .as_ref()
            .filter(|host| hosts.0.iter().any(|other| other.is_at_the_place_of(host)))
        {
            self.problem(
                format!("`{host}` is the host of the server: a load there would take its CPUs"),
                [server.host.mark("the host of the server"), of_hosts()],
                "leave it out of `load.hosts`",
            );
        }
        if lab.hosts.value == HostsChoice::Namespaces {
            self.problem(
                "the load cannot be on other hosts and in a network namespace of this one",
                [lab.hosts.mark("namespaces"), of_hosts()],
                "remove `load.hosts`, or take `lab.hosts = \"loopback\"`",
            );
        }
        // Of a server that is started elsewhere, it stands for the address at which its host is reached; of a Service, for
        // the one that it has in its cluster.
        let is_found = server.host.value.is_some() && server.kind.value.started().is_some()
            || server.service.value.is_some();
        if server.address.value.ip().is_loopback() && !is_found {
            self.problem(
                format!("other hosts cannot ask {}", server.address.value.ip()),
                [server.address.mark("a loopback address").or_else(of_hosts)],
                "set `server.address` to an address at which those hosts reach the server",
            );
        }
    }

    /// What is done is done within the measured window.
    pub(super) fn event(&mut self, draft: &mut VariantDraft) {
        let VariantDraft { event, load, .. } = draft;
        if let Some(at) = event.at.value.filter(|at| *at >= load.duration.value) {
            self.problem(
                format!(
                    "nothing can be done after {}: the load is over by then",
                    write_duration(at)
                ),
                [event.at.mark("after the load"), load.duration.mark("the measured window")],
                "let it be done earlier, or lengthen `load.duration`",
            );
        }
    }

    /// The names of a search list are names, and their answers are not compared.
    pub(super) fn search(&mut self, draft: &mut VariantDraft) {
        let VariantDraft { load, compare, .. } = draft;
        let (Some(names), Some(_)) = (load.names.value.clone(), &load.search.value) else { return };
        if let Some(search) = load.checked().search_list() {
            let candidates = names.0.iter().flat_map(|name| search.candidates(name));
            if let Some(long) =
                candidates.into_iter().find(|name| name.parse::<NameList>().is_err())
            {
                self.problem(
                    format!("`{}` can be no domain name", shown(&long)),
                    [load.search.mark("sought in these domains"), load.names.mark("names")],
                    "a name has at most 255 octets, and no empty label",
                );
            }
        }
        if compare.answers.value {
            self.problem(
                "answers are compared query by query, and a client with a search list asks what the answers tell it to",
                [compare.answers.mark("compared"), load.search.mark("a search list")],
                "remove one of them",
            );
        }
    }

    /// Time windows are parts of the measured window.
    fn windows(&mut self, load: &LoadDraft) {
        let LoadDraft { windows, duration, .. } = load;
        let all = windows.value.iter().flat_map(TimeWindows::as_slice);
        if duration.is_broken() {
            return;
        }
        for window in all.filter(|window| window.to > duration.value) {
            self.problem(
                format!(
                    "the time window `{}` ends {} after the measured window begins, which lasts {}",
                    window.name,
                    write_duration(window.to),
                    write_duration(duration.value)
                ),
                [windows.mark("goes on after the load"), duration.mark("the measured window")],
                "end it earlier, or write a longer `load.duration`",
            );
        }
    }

    /// Checks the zone file, and finds the name of its zone.
    pub(super) fn zone(&mut self, zone: &mut ZoneDraft) {
        self.file(&mut zone.file, "zone file");
        let Some(path) = zone.file.value.clone() else { return };
        let ZoneDraft { name, file, records, ttl, .. } = zone;
        for (made, is_displaced) in [
            (records as &dyn Field, records.layer() < file.layer()),
            (ttl as &dyn Field, ttl.layer() < file.layer()),
        ] {
            // A key written with its default is no slip.
            if is_displaced || made.is_default() {
                continue;
            }
            self.problem(
                format!("`{}` is for a zone that dnslab makes", made.key().path),
                [made.place().map(|place| place.mark("its records")), file.mark("a zone file")],
                "remove one of them",
            );
        }
        records.forget();
        ttl.forget();
        if name.layer() < file.layer() {
            // It is that of a zone that another layer displaced.
            name.forget();
        }
        if zone.name.is_written() || self.machine.kind_of(&path) != PathKind::File {
            return;
        }
        match self.machine.read_zone_name(&path) {
            Ok(name) => zone.name.value = name,
            Err(reason) => self.problem(
                format!("{}: {reason}", shown(&path.to_string_lossy())),
                [zone.file.mark("the zone has no name")],
                "mend the file, or write `server.zone.name`",
            ),
        }
    }

    /// Checks what is asked, and that the files that it comes from are there.
    fn queries(&mut self, load: &mut LoadDraft) {
        self.file(&mut load.queries, "query file");
        self.file(&mut load.capture, "capture");
        self.file(&mut load.tsig_file, "file with a TSIG key");
        if let (Some(Subnets::File(path)), Some(place)) =
            (&load.client_subnets.value, Field::place(&load.client_subnets))
        {
            let whole = self.file_at(path, &place.clone(), "file of client subnets");
            load.client_subnets.value = Some(Subnets::File(whole));
        }
        self.captured_ports(load);
        if !load.types.is_written() {
            return;
        }
        if load.queries.value.is_some() {
            self.problem(
                "`load.types` is for the names of the zone: a query file names the type of each query",
                [load.types.mark("types"), load.queries.mark("a query file")],
                "remove one of them",
            );
        } else if load.popular_names.value.is_some() {
            self.problem(
                "`load.types` is for the names of the zone: popular names are asked for their addresses, \
                 type A",
                [load.types.mark("types")],
                "remove it",
            );
        }
    }

    /// The ports that are named with servers are among those that are read; where ports were written, they must be.
    fn captured_ports(&mut self, load: &mut LoadDraft) {
        let LoadDraft { capture_server: servers, capture_ports: ports, .. } = load;
        let Some(named) = &servers.value else { return };
        if !ports.is_written() {
            ports.value.0.extend(named.ports());
            ports.value.0.sort_unstable();
            ports.value.0.dedup();
            return;
        }
        if ports.is_broken() {
            return;
        }
        if let Some(port) = named.ports().find(|port| !ports.value.0.contains(port)) {
            self.problem(
                format!("no query goes to port {port}: it is not among `load.capture_ports`"),
                [servers.mark("this port"), ports.mark("the ports that are read")],
                format!("add {port} to the ports, or remove `load.capture_ports`"),
            );
        }
    }

    fn tls(&mut self, draft: &VariantDraft) {
        let VariantDraft { load, server, .. } = draft;
        let LoadDraft { tls_versions: versions, tls_groups: groups, early_data, .. } = load;
        let checked = load.checked();
        let one_of = |is_it: fn(Transport) -> bool| checked.transports().find(|its| is_it(*its));
        let place = || load.mix.mark("").or_else(|| load.transport.mark(""));
        let is_old = versions.value == TlsVersions::V12;
        if is_old && groups.value.iter().all(|group| group.is_hybrid()) {
            self.problem(
                "the group x25519mlkem768 came with TLS 1.3: TLS 1.2 has no use for it",
                [groups.mark(""), versions.mark("")],
                "offer another group too, or let clients offer TLS 1.3",
            );
        }
        let is_nsd = server.kind.value == ServerChoice::Started(ServerKind::Nsd);
        if is_nsd && load.tls_records.value == Records::Shared {
            self.problem(
                "NSD cannot be asked with shared TLS records: it answers only the first query of a record \
                 until more data comes (seen with NSD 4.6)",
                [load.tls_records.mark(""), server.kind.mark("")],
                "remove `load.tls_records`, or choose another server",
            );
        }
        if is_old && let Some(transport) = one_of(Transport::is_quic) {
            self.problem(
                format!(
                    "`{transport}` cannot have TLS 1.2: QUIC has TLS 1.3 alone (RFC 9001, section 4.2)"
                ),
                [versions.mark(""), place()],
                "write \"1.3\"",
            );
        }
        if !early_data.value {
            return;
        }
        if is_old {
            self.problem(
                "early data came with TLS 1.3 (RFC 8446, section 2.3): TLS 1.2 has none",
                [early_data.mark(""), versions.mark("")],
                "remove `load.early_data`, or let clients offer TLS 1.3",
            );
        }
        if !load.resumption.value {
            self.problem(
                "early data needs a ticket of an earlier connection (RFC 8446, section 2.3), and without \
                 `load.resumption` none is kept",
                [early_data.mark(""), load.resumption.mark("")],
                "remove `load.early_data`, or let clients keep tickets",
            );
        }
        if let Some(transport) = one_of(Transport::is_http)
            && load.http_method.value == Method::Post
        {
            self.problem(
                format!(
                    "`{transport}` cannot have early data by POST: what can be replayed must be a safe \
                     method (RFC 8470, section 4)"
                ),
                [early_data.mark(""), load.http_method.mark("").or_else(|| load.mix.mark(""))],
                "write `load.http_method = \"get\"`, or remove `load.early_data`",
            );
        }
    }

    /// A closed loop gives each connection a part of the client's window.
    fn window(&mut self, load: &LoadDraft) {
        let is_broken = load.outstanding.is_broken() || load.connections.is_broken();
        let (Some(outstanding), false) = (load.outstanding.value, is_broken) else { return };
        let connections = load.connections.value;
        if outstanding < connections {
            self.problem(
                format!(
                    "{connections} connections of each client cannot share {}: some would carry none",
                    number::counted(outstanding.into(), "outstanding query", "outstanding queries")
                ),
                [load.connections.mark("so many"), load.outstanding.mark("so few")],
                format!("take fewer connections, or write `load.outstanding = {connections}` or more"),
            );
        }
    }

    /// A rate that changes may come to something only after the end.
    fn rate(&mut self, load: &LoadDraft) {
        let length = load.warm_up.value.saturating_add(load.duration.value);
        if load.rate.value.as_ref().is_some_and(|rate| rate.mean(length) <= 0.0) {
            self.problem(
                format!("nothing is sent in the {} of the load", write_duration(length)),
                [load.rate.mark("no query so soon"), load.duration.mark("ends before")],
                "begin with a rate above 0, or make the load longer",
            );
        }
    }

    fn streams_of_knot(&mut self, draft: &VariantDraft) {
        let VariantDraft { load, server, .. } = draft;
        let Some(outstanding) = load.outstanding.value else { return };
        let together = outstanding.div_ceil(load.connections.value.max(1));
        let is_knot = server.kind.value == ServerChoice::Started(ServerKind::Knot);
        if is_knot && load.transport.value == Transport::Doq && together > STREAMS_OF_KNOT {
            self.problem(
                format!(
                    "Knot DNS cannot be asked {together} queries at a time on one connection over `doq`: it \
                     counts answers that were not acknowledged yet against 10, and answers nothing beyond \
                     them (seen with Knot DNS 3.4)"
                ),
                [load.outstanding.mark(""), load.connections.mark(""), server.kind.mark("")],
                format!(
                    "write `load.outstanding = {STREAMS_OF_KNOT}` or less, or divide them among more \
                     `load.connections`"
                ),
            );
        }
    }

    fn sources(&mut self, draft: &VariantDraft) {
        let VariantDraft { load, server, lab, .. } = draft;
        let Some(sources) = &load.sources.value else { return };
        let is_apart = lab.hosts.value == HostsChoice::Namespaces;
        // All are of one family.
        let first = sources.get(0);
        let family = |is_ipv4: bool| if is_ipv4 { "an IPv4 address" } else { "an IPv6 address" };
        let is_beyond = |target: &IpAddr| {
            first.is_ipv4() != target.is_ipv4() || first.is_loopback() && !target.is_loopback()
        };
        let mut beyond = targets(server).filter(is_beyond);
        let target = beyond.next().unwrap_or(server.address.value.ip());
        let (reason, help) = if first.is_ipv4() != target.is_ipv4() {
            let (from, to) = (family(first.is_ipv4()), family(target.is_ipv4()));
            let reason = format!("{first} is {from}, {target} {to}");
            (reason, "name sources of the server's address family")
        } else if first.is_loopback() && !target.is_loopback() {
            let reason = format!(
                "{first} is a loopback address, which no other host answers, and {target} is none"
            );
            (reason, "name addresses of this machine that the server can answer to")
        } else if first.is_loopback() && is_apart {
            let reason = format!(
                "{first} is a loopback address, which no other host answers, and the server has a host of \
                 its own"
            );
            let help =
                "name addresses that are free, e.g. \"10.99.0.0/24\": the clients' host gets them";
            (reason, help)
        } else {
            return;
        };
        let other = if is_apart { lab.hosts.mark("the server") } else { None };
        let other = other.or_else(|| {
            let is_first = target == server.address.value.ip();
            let mark = match is_first {
                true => server.address.mark("the server"),
                false => server.further.mark("the server"),
            };
            mark.filter(|_| !is_apart)
        });
        self.problem(
            format!("`load.sources` cannot reach the server: {reason}"),
            [load.sources.mark("the sources"), other],
            help,
        );
    }

    /// A client must give up within the time that is recorded.
    fn attempts(&mut self, draft: &VariantDraft) {
        let VariantDraft { load, server, .. } = draft;
        let further = server.further.value.as_ref().map_or(0, |further| further.0.len());
        if load.cookies.value && further > 0 {
            self.problem(
                "a cookie belongs to one server (RFC 7873, section 4.2), and the clients know several",
                [load.cookies.mark("cookies"), server.further.mark("several servers")],
                "remove one of them",
            );
        }
        let patience = load.checked().attempts(further as u32).patience();
        if patience <= MAX_PATIENCE {
            return;
        }
        self.problem(
            format!(
                "a client would wait for {}: {} at most can be recorded",
                write_duration(patience),
                write_duration(MAX_PATIENCE)
            ),
            [
                load.attempts.mark("so often"),
                load.timeout.mark("so long"),
                load.backoff.mark("and so many times as long again"),
            ],
            "choose fewer attempts, or a shorter time-out",
        );
    }

    /// Some EDNS options have a key (IANA DNS EDNS0 Option Codes). Written as an option too, they would stand
    /// twice in a query.
    fn edns_options(&mut self, load: &LoadDraft) {
        let label = "and once for this";
        let of_keys = [
            (8, "load.client_subnets", load.client_subnets.mark(label)),
            (10, "load.cookies", load.cookies.mark(label).filter(|_| load.cookies.value)),
            (11, "load.keepalive", load.keepalive.mark(label).filter(|_| load.keepalive.value)),
            (12, "load.padding", load.padding.mark(label).filter(|_| load.padding.value > 0)),
        ];
        for option in &load.edns_options.value {
            let own = of_keys.iter().find(|(code, _, mark)| *code == option.code && mark.is_some());
            if let Some((code, path, mark)) = own {
                self.problem(
                    format!("queries would carry EDNS option {code} twice"),
                    [load.edns_options.mark("once here"), mark.clone()],
                    format!("remove the option, or `{path}`"),
                );
            }
        }
    }
}
