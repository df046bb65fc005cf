//! An experiment explained before anything starts: hosts, links, servers, order, time.

use std::path::PathBuf;
use std::time::Duration;

use dnslab_lab::rights::{Rights, role};
use dnslab_lab::{GuardProgram, LabError, Version};
use dnslab_record::SkippedVariant;
use dnslab_settings::{
    CacheSize, ChainRole, ChainServer, Event, Experiment, ExternalUpstream, HostPlace, HostsChoice,
    Link, LogTarget, Mode, Pod, Queries, Repeat, Server, ServerKind, Upstream, UpstreamChoice,
    Variant, on_one_line,
};
use dnslab_wire::units::{duration, number, share};

use crate::Plan;
use crate::run::{no_hosts, population};

/// Says which version a server has and where it is, or why it is not there.
pub type FindServer<'a> = dyn Fn(&ChainServer<'_>) -> String + 'a;

/// The version and the program of a server as it is installed here, or why it is not. It is asked under `guard`.
#[must_use]
pub fn installed(server: &ChainServer<'_>, guard: &GuardProgram) -> String {
    let Some(kind) = server.kind else { return "runs already".to_owned() };
    let found = match server.root {
        Some(root) => dnslab_lab::find_in_root(kind, root, guard),
        None => dnslab_lab::find(kind, server.binary, guard),
    };
    match found {
        Ok(found) => format!("{} at {}", found.version, found.binary.display()),
        Err(error) => error.to_string().lines().next().unwrap_or_default().to_owned(),
    }
}

/// [`installed`] without running a program that the experiment names: it says only where that program is.
#[must_use]
pub fn located(server: &ChainServer<'_>, guard: &GuardProgram) -> String {
    match named_program(server) {
        None => installed(server, guard),
        Some(Ok((path, Some(version)))) => format!("{version} at {}", path.display()),
        Some(Ok((path, None))) => format!("{}, not asked for its version", path.display()),
        Some(Err(error)) => error.to_string().lines().next().unwrap_or_default().to_owned(),
    }
}

/// The full path of the program that the experiment names for a server, directly or by a root folder. The
/// version is there if it is known without running the program. `None` if no program is named.
///
/// # Errors
/// When the program is not there.
pub(crate) fn named_program(
    server: &ChainServer<'_>,
) -> Option<Result<(PathBuf, Option<Version>), LabError>> {
    let kind = server.kind?;
    match (server.root, server.binary) {
        (Some(root), _) => Some(dnslab_lab::program_in_root(kind, root).map_err(LabError::from)),
        (None, Some(binary)) => {
            Some(dnslab_lab::named_program(kind, binary).map(|path| (path, None)))
        }
        (None, None) => None,
    }
}

const IS_CODE: &str = "This experiment names programs, hosts, configuration text or a folder that is written to, \
                       so it is code: run it only if you trust who wrote it.";

/// The plan of an experiment as lines for people.
#[must_use]
pub fn explain(
    experiment: &Experiment,
    plan: &Plan,
    skipped: &[SkippedVariant],
    find: &FindServer<'_>,
) -> String {
    let mut text = format!("{}: {}\n", experiment.name, experiment.question);
    if experiment.variants.iter().any(|variant| !code(variant).is_empty()) {
        text.push_str(&format!("\n{IS_CODE}\n"));
    }
    for variant in &experiment.variants {
        let is_baseline = variant.name == experiment.baseline;
        let baseline = if is_baseline { ", the baseline" } else { "" };
        text.push_str(&format!("\nvariant {}{baseline}\n", variant.name));
        if let Some(skip) = skipped.iter().find(|skip| skip.variant == variant.name) {
            let reason = skip.reason.replace('\n', "\n            ");
            text.push_str(&format!("  not run   {reason}\n"));
            continue;
        }
        text.push_str(&format!("  hosts     {}\n", line_of_hosts(variant)));
        for (role, line) in servers(variant, find) {
            text.push_str(&format!("  {role:<9} {line}\n"));
        }
        text.push_str(&format!("  load      {}\n", load(variant)));
        for (what, line) in code(variant) {
            text.push_str(&format!("  {what:<9} {line}\n"));
        }
    }
    let roles = roles(experiment);
    if !roles.is_empty() {
        text.push_str(
            "\nYou need these rights in the cluster, and `kubectl auth can-i` says before the first run if you have them:\n",
        );
    }
    for role in roles {
        text.push_str(&format!("\n{role}"));
    }
    text.push_str(&format!("\n{}\n", order(plan)));
    if experiment.repeat.profile {
        text.push_str("then one more round in which perf samples the servers\n");
    }
    let (runs, lasts) = (plan.cases.len(), duration::spoken(plan.time.whole()));
    let Repeat { until, sessions, session_pause, .. } = experiment.repeat;
    let most = match until > 0.0 {
        true => format!("at most, fewer if {} is certain before", share::rounded(until)),
        false => String::new(),
    };
    text.push_str(&format!("{runs} runs, about {lasts}"));
    text.push_str(&if most.is_empty() { "\n".to_owned() } else { format!(" {most}\n") });
    if sessions > 1 {
        let pause = duration::spoken(session_pause);
        let whole = (plan.time.whole() + session_pause) * sessions;
        let whole = duration::spoken(whole.saturating_sub(session_pause));
        text.push_str(&format!(
            "{sessions} sessions of it with {pause} in between, about {whole}\n"
        ));
    }
    text
}

/// What has to be allowed in clusters: a Role for each namespace.
fn roles(experiment: &Experiment) -> Vec<String> {
    let hosts = experiment.hosts().into_iter().filter_map(|host| host.pod.as_deref());
    let hosts = hosts.map(|pod| (pod.namespace.as_deref(), Rights::Hosts));
    let hosts = hosts.map(|(namespace, rights)| (namespace.map(str::to_owned), rights));
    let mut wanted: Vec<(Option<String>, Vec<Rights>)> = Vec::new();
    for (namespace, rights) in hosts.chain(experiment.variants.iter().flat_map(rights_of)) {
        match wanted.iter_mut().find(|(known, _)| *known == namespace) {
            Some((_, known)) if known.contains(&rights) => {}
            Some((_, known)) => known.push(rights),
            None => wanted.push((namespace, vec![rights])),
        }
    }
    let roles = wanted.iter().map(|(namespace, rights)| role(namespace.as_deref(), rights));
    roles.collect()
}

/// What has to be allowed for a variant, each right with its namespace.
fn rights_of(variant: &Variant) -> Vec<(Option<String>, Rights)> {
    let Server { service, manifest, .. } = &variant.server;
    let services = [service, &variant.upstream.service].into_iter().flatten();
    let asked = services.map(|place| (place.namespace.clone(), Rights::Service));
    let made = service.as_ref().filter(|_| manifest.is_some());
    let made = made.map(|place| (place.namespace.clone(), Rights::Manifest));
    asked.chain(made).collect()
}

/// The code that a variant names: programs, root folders, text of configurations, a folder that is written
/// to.
fn code(variant: &Variant) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(host) = &variant.server.host {
        let does = match variant.target() {
            Some(_) => "watches the server",
            None => "starts and watches the server",
        };
        let agents = agents_on(std::slice::from_ref(host));
        lines.extend(
            agents.map(|agent| ("agent", format!("{agent}, which {does} (`server.host`)"))),
        );
    }
    if let Some(host) = &variant.upstream.host {
        let agents = agents_on(std::slice::from_ref(host));
        lines.extend(agents.map(|agent| {
            ("agent", format!("{agent}, which starts the upstream (`upstream.host`)"))
        }));
    }
    if let Some(hosts) = &variant.load.hosts {
        let line = |agent| ("agent", format!("{agent}, which sends the load (`load.hosts`)"));
        lines.extend(agents_on(&hosts.0).map(line));
    }
    for server in variant.servers() {
        let place = server.role.name();
        if let Some(root) = server.root {
            lines.push(("root", format!("{} (`{place}.root`)", root.display())));
        }
        let is_here = variant.host_of(server.role).is_none();
        if let Some(program) = named_program(&server).filter(|_| is_here) {
            let binary = server.binary.map(|path| path.display().to_string());
            // The line of the server says why it is not there.
            let path = program.map(|(path, _)| path.display().to_string()).ok().or(binary);
            let key = if server.root.is_some() { "root" } else { "binary" };
            let line = |path| ("program", format!("{path} (`{place}.{key}`)"));
            lines.extend(path.map(line));
        }
        // It is looked for beside the named program.
        if server.kind == Some(ServerKind::Knot) && server.binary.is_some() {
            let line =
                format!("knotc beside it, or that of PATH, for its counters (`{place}.binary`)");
            lines.push(("program", line));
        }
        if let Some(config) =
            variant.server.config.as_ref().filter(|_| server.role == ChainRole::Server)
        {
            lines.push((
                "config",
                format!("{}, with addresses, ports and paths of dnslab", config.display()),
            ));
        }
        if let Some(extra) = server.extra {
            lines.push(("extra", format!("text of its configuration (`{place}.extra`):")));
            lines.extend(extra.lines().map(|line| ("", format!("| {}", on_one_line(line)))));
        }
    }
    if let Some(manifest) = &variant.server.manifest {
        let image = variant.server.image.as_ref().map(|image| format!(" with the image {image}"));
        let image = image.unwrap_or_default();
        lines.push(("manifest", format!("{}{image} (`server.manifest`)", manifest.display())));
    }
    let Event { command, at, until } = &variant.event;
    for (key, command) in [("command", command), ("until", until)] {
        let Some(command) = command else { continue };
        let at = match key {
            "command" => {
                let at = at.unwrap_or(variant.load.duration / 4);
                format!(", {} after the measured window begins", duration::write(at))
            }
            _ => ", until it is over".to_owned(),
        };
        lines.push(("event", format!("`{}`{at} (`event.{key}`)", on_one_line(command))));
    }
    if let Some(folder) = &variant.log.folder {
        lines.push(("folder", format!("{} (`server.log.folder`)", folder.display())));
    }
    lines
}

/// The agents that are started on hosts, a line for those that are started alike.
fn agents_on(hosts: &[HostPlace]) -> impl Iterator<Item = String> {
    let way = |host: &HostPlace| (host.program().to_owned(), host.is_copied(), host.pod.clone());
    let alike = hosts.chunk_by(move |one, other| way(one) == way(other));
    alike.map(|hosts| {
        let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
        let names = names.join(", ");
        if let Some(Pod { image, server_image, .. }) = hosts[0].pod.as_deref() {
            let image =
                server_image.as_ref().map_or(image.clone(), |own| format!("{image} in {own}"));
            return format!("{image}, a pod for {names}");
        }
        match hosts[0].is_copied() {
            true => format!("this program, copied by ssh to {names}"),
            false => format!("`{} agent` on {names}", hosts[0].program().display()),
        }
    })
}

fn line_of_hosts(variant: &Variant) -> String {
    let (client_link, upstream_link) = (variant.client_link.link(), variant.upstream_link.link());
    let played = match 2 * upstream_link.delay {
        _ if variant.external_upstream().is_some() => String::new(),
        Duration::ZERO => String::new(),
        later => format!("; the upstream answers {} later", duration::write(later)),
    };
    let upstream = variant.upstream.host.as_ref();
    let upstream = upstream.map(|host| format!(", upstream on {host}")).unwrap_or_default();
    let server = variant.server.host.as_ref().map(|host| format!("server on {host}{upstream}"));
    let load = variant.load.hosts.as_ref();
    let load = load.map(|hosts| format!("load on {}", hosts.to_string().replace(',', ", ")));
    match (server, load) {
        (None, None) => {}
        (Some(server), None) => return format!("{server}, load here{played}"),
        (None, Some(load)) if variant.target().is_none() => {
            return format!("server here, {load}{played}");
        }
        (None, Some(load)) => return load,
        (Some(server), Some(load)) => return format!("{server}, {load}{played}"),
    }
    let why = match variant.lab.hosts {
        HostsChoice::Loopback => return "all on the loopback interface".to_owned(),
        HostsChoice::Namespaces => None,
        HostsChoice::Auto => no_hosts(variant),
    };
    if let Some(why) = why {
        return format!("all on the loopback interface{played} ({why})");
    }
    let mut line = format!("client --{}-- server", link(client_link));
    if variant.upstream.kind.is_some() {
        line.push_str(&format!(" --{}-- upstream", link(upstream_link)));
    }
    format!("{line}, each a network namespace")
}

/// What stands between the dashes.
fn link(Link { delay, jitter, loss, rate_mbit }: Link) -> String {
    let mut parts = Vec::new();
    if !delay.is_zero() {
        let jitter = match jitter {
            Duration::ZERO => String::new(),
            jitter => format!(" +- {}", duration::write(jitter)),
        };
        parts.push(format!("{}{jitter}", duration::write(delay)));
    }
    if loss > 0.0 {
        parts.push(format!("{} lost", share::in_sentence(loss)));
    }
    parts.extend(rate_mbit.map(|rate| format!("{rate} Mbit/s")));
    if parts.is_empty() { String::new() } else { format!(" {} ", parts.join(", ")) }
}

/// Each server of the chain by its place, and the transport on which it is asked.
fn servers(variant: &Variant, find: &FindServer<'_>) -> Vec<(&'static str, String)> {
    let lines = variant.servers().into_iter().map(|server| {
        let extras = match server.role {
            ChainRole::Server => front_extras(variant),
            ChainRole::Upstream => upstream_extras(&variant.upstream),
            _ => Vec::new(),
        };
        let there = variant.host_of(server.role).filter(|_| server.kind.is_some());
        let service = variant.server.service.as_ref().filter(|_| server.kind.is_none());
        let find = |server: &ChainServer<'_>| match (there, service) {
            (Some(host), _) => format!("as installed on {host}"),
            (None, Some(service)) => format!("the Service {service} of a cluster"),
            (None, None) => find(server),
        };
        (server.role.name(), described(&server, &extras.join(", "), &find))
    });
    let external = variant.external_upstream().map(|external| {
        let ExternalUpstream { addresses, transport, tls_name, .. } = external;
        let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        if let Some(service) = &variant.upstream.service {
            return (
                "upstream",
                format!("the Service {service} of a cluster, asked over {transport}"),
            );
        }
        let name = tls_name.map(|name| format!(" ({name})")).unwrap_or_default();
        ("upstream", format!("external at {}{name}, asked over {transport}", addresses.join(", ")))
    });
    lines.chain(external).collect()
}

fn front_extras(variant: &Variant) -> Vec<String> {
    let log = match variant.log.to {
        LogTarget::None => None,
        LogTarget::File => Some("query log"),
        LogTarget::Syslog => Some("query log to syslog"),
        LogTarget::StandardError => Some("query log to standard error"),
        LogTarget::Null => Some("query log that is dropped"),
    };
    let others = [
        (variant.server.dnstap, "dnstap"),
        (variant.resolves(), "resolving by itself"),
        (variant.server.dnssec, "validating"),
    ];
    let others = others.into_iter().filter(|(is_on, _)| *is_on).map(|(_, what)| what);
    let cache = match variant.server.cache {
        CacheSize::Default => None,
        CacheSize::None => Some("without a cache".to_owned()),
        CacheSize::Entries(count) => Some(format!("a cache of {} entries", number::count(count))),
        size @ CacheSize::Mebibytes(_) => Some(format!("a cache of {size}")),
    };
    log.into_iter().chain(others).map(str::to_owned).chain(cache).collect()
}

/// What the end of a chain does that is not its default.
fn upstream_extras(upstream: &Upstream) -> Vec<String> {
    let Upstream { delay, busy, queries_per_connection: quota, idle, tickets, signed, .. } =
        upstream;
    let mut extras = Vec::new();
    if upstream.kind == Some(UpstreamChoice::Internet) {
        let from = upstream.hierarchy.as_ref().map(|path| format!(" of {}", path.display()));
        extras.push(format!("a private Internet{}", from.unwrap_or_default()));
    }
    extras.extend(delay.map(|delay| format!("answers after {delay}")));
    let costs = || format!("{} of CPU for each answer", duration::write(*busy));
    extras.extend((!busy.is_zero()).then(costs));
    extras.extend(quota.map(|quota| format!("closes after {quota} queries")));
    let without_one = || format!("closes after {} without one", duration::write(*idle));
    extras.extend((*idle < Upstream::default().idle).then(without_one));
    extras.extend((!tickets).then(|| "no tickets".to_owned()));
    extras.extend(signed.then(|| "signed".to_owned()));
    extras
}

fn described(server: &ChainServer<'_>, extras: &str, find: &FindServer<'_>) -> String {
    let title = server.kind.map_or("external", dnslab_lab::title);
    let extras = if extras.is_empty() { String::new() } else { format!("; {extras}") };
    format!("{title} ({}), asked over {}{extras}", find(server), server.transport)
}

fn load(variant: &Variant) -> String {
    let load = &variant.load;
    let mode = match &load.mode {
        Mode::Closed { outstanding } => format!("{outstanding} outstanding each"),
        Mode::Open { rate, pace } => format!("{rate} queries per second in all, {pace}"),
        Mode::Capture(_) => "each at its own time".to_owned(),
        Mode::Population { rate, .. } => {
            format!("each at its own time, {rate} queries per second on average")
        }
    };
    let names = match variant.asked() {
        Queries::Zone(_) if load.mode.population().is_some() => {
            format!("names of {}", variant.zone.name)
        }
        Queries::Zone(types) => {
            let zone = &variant.zone;
            format!("the {} names of {}, {types}", zone.records, zone.name)
        }
        Queries::ZoneFile { path, types } => {
            let types = types.as_ref().map_or_else(String::new, |types| format!(", {types}"));
            format!("the names of the zone file {}{types}", path.display())
        }
        Queries::File(path) => format!("the queries of {}", path.display()),
        Queries::Names { names, types, search: None } => format!("{names}, {types}"),
        Queries::Names { names, types, search: Some(search) } => {
            format!("{names}, {types}, sought in {} with ndots {}", search.domains, search.ndots)
        }
        Queries::Capture(path) => format!("the queries of the capture {}", path.display()),
        Queries::Popular(count) => format!("{count} popular names"),
        Queries::Internet => "names of the private Internet".to_owned(),
    };
    let clients = if load.clients == 1 { "client" } else { "clients" };
    let length = match load.queries_in_all {
        Some(most) => format!("{most} queries, for at most {}", duration::write(load.duration)),
        None => duration::write(load.duration),
    };
    let warm_up = match load.warm_up {
        Duration::ZERO => String::new(),
        warm_up => format!(" after {} of warm-up", duration::write(warm_up)),
    };
    let clients = match &load.mode {
        Mode::Population { source, .. } => {
            format!("{} {clients} of {}", load.clients, population::described(source))
        }
        Mode::Capture(_) if load.factor.0 == 1.0 => "the captured clients".to_owned(),
        Mode::Capture(_) => format!("{} times the captured clients", load.factor.0),
        Mode::Closed { .. } | Mode::Open { .. } => format!("{} {clients}", load.clients),
    };
    format!("{clients}, {mode}; {names}; {length}{warm_up}")
}

/// The order of the runs, one line for each repetition.
fn order(plan: &Plan) -> String {
    let mut text = String::from("order");
    let mut repetition = 0;
    for case in &plan.cases {
        if case.repetition != repetition {
            repetition = case.repetition;
            text.push_str(&format!("\n  {repetition:>3}:"));
        }
        text.push_str(&format!(" {}", case.variant));
    }
    text
}
