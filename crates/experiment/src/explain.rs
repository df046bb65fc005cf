//! An experiment explained before anything is started: hosts, links, servers, order, time.

use std::time::Duration;

use dnslab_lab::hosts::{self, LinkSettings};
use dnslab_lab::{LogDestination, ServerKind};
use dnslab_measure::SkippedVariant;
use dnslab_wire::units::{duration, share};

use crate::error::on_one_line;
use crate::{Experiment, HostsChoice, Mode, Plan, Queries, Server, UpstreamBehaviour, Variant};

/// What the plan says of one server: its version and where it lies, or why it is not there.
pub type FindServer<'a> = dyn Fn(&Server) -> String + 'a;

/// The version and the program of a server as it is installed here; why not, if it is not.
#[must_use]
pub fn installed(server: &Server) -> String {
    let Some(kind) = server.kind() else { return "runs already".to_owned() };
    let found = match server.root() {
        Some(root) => dnslab_lab::find_in_root(kind, root),
        None => dnslab_lab::find(kind, server.binary()),
    };
    match found {
        Ok(found) => format!("{} at {}", found.version, found.binary.display()),
        Err(error) => error.to_string().lines().next().unwrap_or_default().to_owned(),
    }
}

/// [`installed`] without running a program that the experiment names: of such a one, where it lies.
#[must_use]
pub fn located(server: &Server) -> String {
    match server.named_program() {
        None => installed(server),
        Some(Ok((path, Some(version)))) => format!("{version} at {}", path.display()),
        Some(Ok((path, None))) => format!("{}, not asked for its version", path.display()),
        Some(Err(error)) => error.to_string().lines().next().unwrap_or_default().to_owned(),
    }
}

/// What an experiment is that names code.
const IS_CODE: &str = "This experiment names programs, configuration text or a folder that is written to, so it \
                       is code: run it only if you trust who wrote it.";

/// The plan of an experiment, for people, in lines.
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
    text.push_str(&format!("\n{}\n", order(plan)));
    text.push_str(&format!(
        "{} runs, about {}\n",
        plan.cases.len(),
        duration::write(Duration::from_secs(plan.estimated.as_secs().max(1)))
    ));
    text
}

/// What a variant names that is code, each in lines: programs, root folders, text of configurations, a folder
/// that is written to.
fn code(variant: &Variant) -> Vec<(&'static str, String)> {
    let chain = variant.topology.chain.iter().map(|behind| (behind.role.name(), &behind.server));
    let mut lines = Vec::new();
    for (place, server) in std::iter::once(("server", &variant.server.server)).chain(chain) {
        if let Some(root) = server.root() {
            lines.push(("root", format!("{} (`{place}.root`)", root.display())));
        }
        if let Some(program) = server.named_program() {
            let binary = server.binary().map(|path| path.display().to_string());
            // The reason why it is not there stands with the server.
            let path = program.map(|(path, _)| path.display().to_string()).ok().or(binary);
            let key = if server.root().is_some() { "root" } else { "binary" };
            let line = |path| ("program", format!("{path} (`{place}.{key}`)"));
            lines.extend(path.map(line));
        }
        // It is looked for beside the program that was named.
        if server.kind() == Some(ServerKind::Knot) && server.binary().is_some() {
            let line =
                format!("knotc beside it, or that of PATH, for its counters (`{place}.binary`)");
            lines.push(("program", line));
        }
        if let Some(extra) = server.extra() {
            lines.push(("extra", format!("text of its configuration (`{place}.extra`):")));
            lines.extend(extra.lines().map(|line| ("", format!("| {}", on_one_line(line)))));
        }
    }
    if let Some(folder) = variant.server.logging.folder() {
        lines.push(("folder", format!("{} (`server.log.folder`)", folder.display())));
    }
    lines
}

/// The hosts and the links between them, from the clients to the end of the chain.
fn line_of_hosts(variant: &Variant) -> String {
    let topology = &variant.topology;
    let why = match topology.hosts {
        HostsChoice::Loopback => return "all on the loopback interface".to_owned(),
        HostsChoice::Namespaces => None,
        HostsChoice::Auto => hosts::possible().err(),
    };
    if let Some(why) = why {
        let delay_ns = 2 * topology.upstream_link.delay_ns;
        let played = match delay_ns {
            0 => String::new(),
            _ => format!("; the upstream answers {} later", ns(delay_ns)),
        };
        return format!("all on the loopback interface{played} ({why})");
    }
    let mut line = format!("client --{}-- server", link(&topology.client_link));
    if topology.upstream().is_some() {
        line.push_str(&format!(" --{}-- upstream", link(&topology.upstream_link)));
    }
    format!("{line}, each a network namespace")
}

/// What a link does, between the dashes.
fn link(settings: &LinkSettings) -> String {
    let LinkSettings { delay_ns, jitter_ns, loss, rate_bps } = settings;
    let mut parts = Vec::new();
    if *delay_ns > 0 {
        let jitter = match jitter_ns {
            0 => String::new(),
            _ => format!(" +- {}", ns(*jitter_ns)),
        };
        parts.push(format!("{}{jitter}", ns(*delay_ns)));
    }
    if *loss > 0.0 {
        parts.push(format!("{} lost", share::in_sentence(*loss)));
    }
    if let Some(rate) = rate_bps {
        parts.push(format!("{} Mbit/s", rate / 1_000_000));
    }
    if parts.is_empty() { String::new() } else { format!(" {} ", parts.join(", ")) }
}

fn ns(ns: u64) -> String {
    duration::write(Duration::from_nanos(ns))
}

/// Each server of the chain by its place, with how it is asked.
fn servers(variant: &Variant, find: &FindServer<'_>) -> Vec<(&'static str, String)> {
    let settings = &variant.server;
    let mut extras = Vec::new();
    extras.extend(settings.logging.query_log.as_ref().map(|log| match log.to {
        LogDestination::File(_) => "query log",
        LogDestination::Syslog => "query log to syslog",
        LogDestination::StandardError => "query log to standard error",
        LogDestination::Null => "query log that is dropped",
    }));
    for (is_on, what) in [
        (settings.logging.dnstap, "dnstap"),
        (settings.dnssec, "validating"),
        (settings.without_cache, "without a cache"),
    ] {
        extras.extend(is_on.then_some(what));
    }
    let transport = variant.load.transport;
    let mut lines =
        vec![("server", described(&settings.server, transport.name(), &extras.join(", "), find))];
    for behind in &variant.topology.chain {
        let behaviour = &behind.behaviour;
        let mut extras = Vec::new();
        if let Server::Embedded { delay, busy, .. } = &behind.server {
            extras.extend(delay.as_ref().map(|delay| format!("answers after {delay}")));
            let costs = || format!("{} of CPU for each answer", duration::write(*busy));
            extras.extend((!busy.is_zero()).then(costs));
            let quota = behaviour.queries_per_connection;
            extras.extend(quota.map(|quota| format!("closes after {quota} queries")));
            let closes_early = behaviour.idle_timeout < UpstreamBehaviour::default().idle_timeout;
            let idle =
                || format!("closes after {} without one", duration::write(behaviour.idle_timeout));
            extras.extend(closes_early.then(idle));
            extras.extend((!behaviour.tickets).then(|| "no tickets".to_owned()));
            extras.extend(behaviour.signed.then(|| "signed".to_owned()));
        }
        let line = described(&behind.server, behind.transport.name(), &extras.join(", "), find);
        lines.push((behind.role.name(), line));
    }
    lines
}

/// One server: what it is, how it is asked, what it does beside.
fn described(server: &Server, transport: &str, extras: &str, find: &FindServer<'_>) -> String {
    let title = server.kind().map_or("external", ServerKind::title);
    let extras = if extras.is_empty() { String::new() } else { format!("; {extras}") };
    format!("{title} ({}), asked over {transport}{extras}", find(server))
}

/// Who asks what, how, for how long.
fn load(variant: &Variant) -> String {
    let load = &variant.load;
    let mode = match &load.mode {
        Mode::Closed { outstanding } => format!("{outstanding} outstanding each"),
        Mode::Open { rate, pace } => format!("{rate} queries per second in all, {pace}"),
    };
    let names = match &load.queries {
        Queries::Zone(types) => {
            let zone = &variant.server.zone;
            format!("the {} names of {}, {types}", zone.records, zone.name)
        }
        Queries::File(path) => format!("the queries of {}", path.display()),
        Queries::Popular(count) => format!("{count} popular names"),
    };
    let clients = if load.clients == 1 { "client" } else { "clients" };
    let length = match load.most_queries {
        Some(most) => format!("{most} queries, for at most {}", duration::write(load.duration)),
        None => duration::write(load.duration),
    };
    let warm_up = match load.warm_up {
        Duration::ZERO => String::new(),
        warm_up => format!(" after {} of warm-up", duration::write(warm_up)),
    };
    format!("{} {clients}, {mode}; {names}; {length}{warm_up}", load.clients)
}

/// The order of the runs, a block of all variants on each line.
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
