//! A load as a record has it.

use dnslab_client::{Endpoint, Job, Nanos, TlsSettings, nanos, offered_names, sockets};
use dnslab_record::{LoadFacts, LoadMode, OpenPace, Played, TlsFacts};
use dnslab_settings::Mode;
use dnslab_traffic::ServerOrder;
use dnslab_wire::Transport;

/// A load as it is asked for. Which system calls carry it is known only when it is applied.
#[must_use]
pub fn facts(job: &Job) -> LoadFacts {
    let load = &job.settings;
    let workers = job.workers as usize;
    let cpus = job.cpus.iter().copied().cycle().take(workers.min(workers * job.cpus.len()));
    let tls = job.tls.as_ref().filter(|_| load.transport.is_encrypted());
    LoadFacts {
        transport: Some(load.transport),
        mix: load.mix.clone(),
        played: match load.mode {
            Mode::Capture(_) => Some(Played::Capture),
            Mode::Population { .. } => Some(Played::Population),
            Mode::Closed { .. } | Mode::Open { .. } => None,
        },
        target: job.target.to_string(),
        further: further_targets(job),
        clients: load.clients,
        sockets: if load.mode.is_played() { 0 } else { sockets(load) },
        mode: mode(job),
        duration_ns: job.timeline.own_window_ns(),
        warm_up_ns: job.timeline.own_warm_up_ns(),
        timeout_ns: nanos(load.timeout),
        patience_ns: patience_ns(job),
        workers: job.workers,
        cpus: cpus.collect(),
        queries: match &job.played {
            Some(played) => played.description.clone(),
            None => job.queries.description().to_owned(),
        },
        seed: job.seed,
        send_path: String::new(),
        batch_delay_ns: nanos(job.applied_batch_delay()),
        behaviour: behaviour(job),
        tls: tls.map(|tls| tls_facts(tls, load.transport)),
        http_method: load.transport.is_http().then_some(load.http_method),
        edns: additions(job),
        receive_time: Some(load.receive_time),
        sources: load.sources.clone(),
        max_queries: load.queries_in_all,
        quickack: job.acknowledges_at_once()
            && (load.transport.runs_over_tcp() || job.retries_over_tcp()),
        hosts: Vec::new(),
    }
}

fn mode(job: &Job) -> LoadMode {
    let load = &job.settings;
    match &job.played {
        Some(played) => LoadMode::Open { rate_qps: played.rate_qps, pace: OpenPace::Clients },
        None => LoadMode::of(&load.mode, load.warm_up, load.duration),
    }
}

fn patience_ns(job: &Job) -> Option<Nanos> {
    let attempts = job.attempts();
    (attempts.count() > 1).then(|| nanos(attempts.patience()))
}

fn further_targets(job: &Job) -> Vec<String> {
    let first =
        |endpoints: &Vec<Endpoint>| endpoints.first().map(|endpoint| endpoint.target.to_string());
    job.further.iter().filter_map(first).collect()
}

/// How the clients behave, as a sentence.
fn behaviour(job: &Job) -> String {
    let behaviour = job.settings.behaviour().to_string();
    let further = match further_targets(job) {
        none if none.is_empty() => return behaviour,
        further => further.join(", "),
    };
    let first = match job.settings.server_order {
        ServerOrder::InOrder => "the first server first",
        ServerOrder::Rotate => "the servers in turn",
        ServerOrder::Sticky => "the server that answered last",
    };
    format!("{behaviour}; they ask {first}, and then {further}")
}

/// What the clients add to their queries, as a sentence. What all queries have is described with their
/// source.
fn additions(job: &Job) -> String {
    let mut parts = Vec::new();
    if job.settings.cookies {
        parts.push("a DNS cookie of each client (RFC 7873)".to_owned());
    }
    if let Some(subnets) = job.subnets() {
        parts.push(format!("client subnets {subnets} in turn (RFC 7871)"));
    }
    let is_encrypted = job.settings.transports().any(Transport::is_encrypted);
    if job.played.is_some() && job.settings.padding > 0 && is_encrypted {
        let block = job.settings.padding;
        parts.push(format!(
            "padding to blocks of {block} octets over encrypted transports (RFC 8467)"
        ));
    }
    if let Some(key) = &job.settings.tsig {
        parts.push(format!("signed with the key {key} (RFC 8945)"));
    }
    parts.join("; ")
}

fn tls_facts(tls: &TlsSettings, transport: Transport) -> TlsFacts {
    let has_choice = transport == Transport::Dot;
    TlsFacts {
        versions: offered_names(tls.versions()).map(str::to_owned).collect(),
        resumption: tls.resumption(),
        early_data: tls.early_data(),
        groups: tls.groups().iter().map(ToString::to_string).collect(),
        records: if has_choice { tls.records().to_string() } else { String::new() },
    }
}
