//! The servers behind the one under test, and the hosts, as lines of the file.

use dnslab_lab::hosts::LinkSettings;
use dnslab_wire::units::duration;
use std::time::Duration;

use super::{Lines, number, quoted};
use crate::check::{ChainRole, ChainServer, Server, Topology, UpstreamBehaviour};

/// The paths of a server's keys at one place of the chain.
struct Paths {
    kind: &'static str,
    transport: &'static str,
    threads: &'static str,
    binary: &'static str,
    extra: &'static str,
}

const RELAY: Paths = Paths {
    kind: "relay.kind",
    transport: "relay.transport",
    threads: "relay.threads",
    binary: "relay.binary",
    extra: "relay.extra",
};

const UPSTREAM: Paths = Paths {
    kind: "upstream.kind",
    transport: "upstream.transport",
    threads: "upstream.threads",
    binary: "upstream.binary",
    extra: "upstream.extra",
};

/// Everything behind the server under test.
pub(super) fn laboratory_lines(topology: &Topology, lines: &mut Lines) {
    for behind in &topology.chain {
        behind_lines(behind, lines);
    }
    lines.push(("lab.hosts", quoted(topology.hosts.name())));
    let server =
        ["link.server.delay", "link.server.jitter", "link.server.loss", "link.server.rate_mbit"];
    link_lines(&topology.client_link, server, lines);
    let upstream = [
        "link.upstream.delay",
        "link.upstream.jitter",
        "link.upstream.loss",
        "link.upstream.rate_mbit",
    ];
    link_lines(&topology.upstream_link, upstream, lines);
}

/// One server of the chain.
fn behind_lines(behind: &ChainServer, lines: &mut Lines) {
    let paths = match behind.role {
        ChainRole::Relay => RELAY,
        ChainRole::Upstream => UPSTREAM,
    };
    let kind = behind.server.kind().map_or("embedded", dnslab_lab::ServerKind::name);
    lines.push((paths.kind, quoted(kind)));
    lines.push((paths.transport, quoted(behind.transport.name())));
    if let Some(process) = behind.server.process() {
        if let Some(threads) = process.threads {
            lines.push((paths.threads, threads.to_string()));
        }
        if !process.cpus.is_empty() {
            lines.push(("upstream.cpus", format!("{:?}", process.cpus)));
        }
    }
    match &behind.server {
        Server::Installed { binary, extra, .. } => {
            if let Some(binary) = binary {
                lines.push((paths.binary, quoted(&binary.to_string_lossy())));
            }
            if let Some(extra) = extra {
                lines.push((paths.extra, quoted(extra)));
            }
        }
        Server::Embedded { delay, loss, busy, .. } => {
            let delay = delay.map(|delay| ("upstream.delay", quoted(&delay.to_string())));
            let loss = loss.map(|loss| ("upstream.loss", quoted(&loss.to_string())));
            lines.extend(delay.into_iter().chain(loss));
            if !busy.is_zero() {
                lines.push(("upstream.busy", quoted(&duration::write(*busy))));
            }
            behaviour_lines(&behind.behaviour, lines);
        }
        Server::External { .. } => {}
    }
}

/// What the embedded server does as an upstream.
fn behaviour_lines(behaviour: &UpstreamBehaviour, lines: &mut Lines) {
    lines.push(("upstream.signed", behaviour.signed.to_string()));
    if let Some(queries) = behaviour.queries_per_connection {
        lines.push(("upstream.queries_per_connection", queries.to_string()));
    }
    lines.push(("upstream.idle", quoted(&duration::write(behaviour.idle_timeout))));
    lines.push(("upstream.tickets", behaviour.tickets.to_string()));
}

/// What a link does that a plain one does not: delay, jitter, loss and rate, at these paths.
fn link_lines(link: &LinkSettings, paths: [&'static str; 4], lines: &mut Lines) {
    let LinkSettings { delay_ns, jitter_ns, loss, rate_bps } = link;
    for (path, ns) in [(paths[0], *delay_ns), (paths[1], *jitter_ns)] {
        if ns > 0 {
            lines.push((path, quoted(&duration::write(Duration::from_nanos(ns)))));
        }
    }
    if *loss > 0.0 {
        lines.push((paths[2], number(*loss)));
    }
    if let Some(rate) = rate_bps {
        lines.push((paths[3], (rate / 1_000_000).to_string()));
    }
}
