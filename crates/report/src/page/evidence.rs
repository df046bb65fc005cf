//! Where the figures come from: every run, the host, the servers and their files.

use std::collections::HashSet;
use std::fmt::Write as _;

use dnslab_analysis::SelfCheck;
use dnslab_figures::CertificateFacts;
use dnslab_record::{
    CaseId, LoadFacts, LoadHost, LoadMode, Metric, RunFigure, RunRecord, RunStatus, TlsFacts,
};
use dnslab_settings::ReceiveTime;
use dnslab_traffic::TransportMix;
use dnslab_wire::{Method, Transport};

use super::html::{collapsed_text, definitions, escape, prose};
use super::self_check::{finding_html, verdict_html};
use super::{Page, chain};
use crate::csv::status;
use crate::imported;
use crate::number::{self, NONE};
use crate::transport::transport_name;
use crate::variants::in_order;
use crate::words::TIME_OUT;
use crate::words::bottleneck::bottleneck_text;
use crate::words::caveat::caveat_text;
use crate::words::metric::label;
use crate::words::self_check::remark;

pub(crate) fn sections(page: &Page<'_>) -> String {
    format!("{}{}{}", runs(page), provenance(page), servers(page))
}

fn runs(page: &Page<'_>) -> String {
    const HEADER: [&str; 11] = [
        "#",
        "run",
        "status",
        "answered qps",
        "lost",
        "p50",
        "p99",
        "p99.9",
        "server CPU",
        "generator",
        "self-check, bottleneck and reasons",
    ];
    let mut html = String::from(
        "<section>\n<details><summary>Every run</summary>\n\
         <div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Table of runs\">\n\
         <table class=\"runs\">\n<thead><tr>",
    );
    for heading in HEADER {
        let _ = write!(html, "<th scope=\"col\">{heading}</th>");
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for record in page.records {
        html.push_str(&run_row(record));
    }
    let done: HashSet<CaseId> = page.records.iter().map(case_of).collect();
    for case in &page.session.plan {
        if !done.contains(case) {
            let _ = writeln!(
                html,
                "<tr class=\"pending\"><td>{NONE}</td><th scope=\"row\">{}</th><td>not run</td>\
                 <td colspan=\"8\"></td></tr>",
                escape(&case.folder())
            );
        }
    }
    html.push_str("</tbody>\n</table>\n</div>\n</details>\n</section>\n");
    html
}

fn run_row(record: &RunRecord) -> String {
    let measured = record.measured.as_ref();
    let latency = record.main_latency_quantiles();
    let quantile = |share: f64| Some(latency_text(latency.as_ref()?.at(share)?));
    let percent = |share: f64| number::percent(share, 0);
    let busiest = measured.and_then(|measured| {
        measured.workers.iter().map(dnslab_record::WorkerFacts::busy_share).reduce(f64::max)
    });
    let (word, reason) = status(&record.status);
    let mut html = format!(
        "<tr class=\"{word}\"><td>{}</td><th scope=\"row\">{}</th><td>{word}</td>",
        record.position + 1,
        escape(&case_of(record).folder())
    );
    for cell in [
        measured.map(|measured| number::qps(measured.answered_qps())),
        measured.map(|measured| number::share(measured.counters.outcomes.lost_share())),
        quantile(0.5),
        quantile(0.99),
        quantile(0.999),
        record.observation().and_then(|run| run.server_busy_share()).map(percent),
        busiest.map(percent),
    ] {
        let _ = write!(html, "<td>{}</td>", escape(cell.as_deref().unwrap_or(NONE)));
    }
    let check = SelfCheck::of(record);
    let mut remarks: Vec<String> = Vec::new();
    if !reason.is_empty() {
        remarks.push(reason);
    }
    if let Some(imported) = &record.imported {
        remarks.push(format!("measured by {}; bottleneck not known", imported.title()));
    } else if measured.is_some() {
        remarks.push(bottleneck_text(&record.bottleneck));
    }
    let verdict = check.as_ref().map(|check| format!("{} \u{b7} ", verdict_html(check.verdict)));
    let verdict = verdict.unwrap_or_default();
    let _ = write!(html, "<td class=\"text\">{verdict}{}", prose(&remarks.join("; ")));
    html.push_str(&doubts(record, check.as_ref()));
    html.push_str("</td></tr>\n");
    html
}

fn latency_text(figure: RunFigure) -> String {
    match figure {
        RunFigure::Measured(ns) => number::duration(ns),
        RunFigure::TimeOut(_) => TIME_OUT.to_owned(),
    }
}

/// What the self-check of a run found and its other caveats, collapsed.
fn doubts(record: &RunRecord, check: Option<&SelfCheck>) -> String {
    let found = check.map(|check| check.findings.as_slice()).unwrap_or_default();
    let mut items: Vec<String> =
        found.iter().map(|finding| finding_html(&remark(finding), "")).collect();
    let others = record.caveats.iter().filter(|caveat| !caveat.is_of_measuring_side());
    let caveats: Vec<String> = others.map(|caveat| prose(&caveat_text(caveat))).collect();
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let titles = [(items.len(), "finding"), (caveats.len(), "caveat")];
    let titles = titles.into_iter().filter(|(count, _)| *count > 0);
    let titles: Vec<_> =
        titles.map(|(count, name)| format!("{count} {name}{}", plural(count))).collect();
    items.extend(caveats);
    if items.is_empty() {
        return String::new();
    }
    let items: String = items.iter().map(|item| format!("<li>{item}</li>")).collect();
    format!("<details><summary>{}</summary><ul>{items}</ul></details>", titles.join(", "))
}

fn case_of(record: &RunRecord) -> CaseId {
    CaseId { variant: record.variant.clone(), repetition: record.repetition }
}

fn provenance(page: &Page<'_>) -> String {
    let session = page.session;
    let mut html = String::from(
        "<section>\n<details><summary>Provenance: experiment, host, loads and servers</summary>\n<div class=\"cards\">\n",
    );
    let experiment = definitions([
        ("experiment", session.name.clone()),
        ("begun", session.started.clone()),
        ("command", session.command.join(" ")),
        ("seed", session.seed.to_string()),
        ("dnslab", session.dnslab.clone()),
        ("baseline", session.baseline.clone()),
        ("margin of equality", number::size(session.margin)),
        ("compared by", compared_by(page)),
    ]);
    push_card(&mut html, "Experiment", &experiment);
    let host = session.host.iter().map(|fact| (fact.name.as_str(), fact.value.clone()));
    push_card(&mut html, "Host", &definitions(host));
    for variant in &session.variants {
        let of_variant = |record: &&RunRecord| record.variant == *variant;
        if let Some(record) = page.records.iter().find(of_variant) {
            let facts = match &record.imported {
                Some(imported) => definitions(imported::facts(record, imported)),
                None => variant_facts(record),
            };
            push_card(&mut html, &format!("Variant {variant}"), &facts);
        }
    }
    html.push_str("</div>\n</details>\n</section>\n");
    html
}

fn push_card(html: &mut String, title: &str, content: &str) {
    let _ = write!(html, "<div><h3>{}</h3>\n{content}</div>\n", escape(title));
}

fn compared_by(page: &Page<'_>) -> String {
    let mut metrics: Vec<Metric> =
        page.summary.variants.iter().flat_map(|variant| variant.metrics.keys().copied()).collect();
    metrics.sort_unstable();
    metrics.dedup();
    let name = |metric: &Metric| match metric.quantile() {
        Some(_) => metric.to_string(),
        None => label(*metric).replace('/', " per "),
    };
    metrics.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn variant_facts(record: &RunRecord) -> String {
    // Each by its name, so that a new fact is not forgotten here. Seed and number of queries stand elsewhere.
    let LoadFacts {
        transport,
        played: _,
        target,
        further,
        clients,
        sockets,
        mix,
        mode,
        duration_ns,
        warm_up_ns,
        timeout_ns,
        patience_ns: _,
        workers,
        cpus,
        queries,
        seed: _,
        send_path,
        batch_delay_ns,
        behaviour,
        tls: asked,
        http_method,
        edns,
        receive_time: clock,
        max_queries: _,
        sources: addresses,
        quickack,
        hosts,
    } = &record.load;
    let mode = match mode {
        LoadMode::Closed { outstanding } => {
            format!("closed loop, {outstanding} outstanding per client")
        }
        LoadMode::Open { rate_qps, pace } => {
            format!("open loop, {}, {pace}", number::queries_per_second(*rate_qps))
        }
    };
    let tls = record.measured.as_ref().and_then(|measured| measured.tls.as_ref());
    let tls = tls.map(|tls| {
        let verified = if tls.verified { "verified" } else { "not verified" };
        let group = match tls.group.as_str() {
            "" => String::new(),
            group => format!(", {group}"),
        };
        let certificate = tls.certificate.as_ref().map(certificate).unwrap_or_default();
        format!("{} {}{group}, certificate {verified}{certificate}", tls.version, tls.cipher_suite)
    });
    let sources = record.measured.as_ref().map(|_| chain::watched_by(&record.watched.resources));
    let counters = record.watched.counters.as_ref();
    let server = &record.server;
    let threads = if server.threads == 0 { String::new() } else { server.threads.to_string() };
    let behind = chain::facts(record);
    let behind = behind.iter().map(|(name, value)| (name.as_str(), value.clone()));
    let own = [
        ("transport", transport_name(transport.map_or("", Transport::name)).to_owned()),
        ("of other transports", mix.as_ref().map(in_words).unwrap_or_default()),
        ("load", format!("{clients} clients, {mode}")),
        (
            "sockets",
            Some(*sockets).filter(|sockets| *sockets > 0).map(number::count).unwrap_or_default(),
        ),
        (
            "time",
            format!(
                "{} after {} of warm-up, time-out {}",
                number::as_set(*duration_ns),
                number::as_set(*warm_up_ns),
                number::as_set(*timeout_ns)
            ),
        ),
        ("clients", behaviour.clone()),
        ("source addresses", addresses.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("queries", queries.clone()),
        ("EDNS", edns.clone()),
        ("HTTP method", http_method.map_or("", Method::name).to_uppercase()),
        ("target", target.clone()),
        ("further servers", further.join(", ")),
        ("workers", workers_on(hosts, *workers, cpus)),
        ("hosts of the load", hosts.iter().map(load_host).collect::<Vec<_>>().join("; ")),
        (
            "path",
            record.watched.paths.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        ),
        ("sent by", send_path.clone()),
        ("sent in batches of up to", number::as_set(*batch_delay_ns)),
        ("acknowledgements", if *quickack { "at once" } else { "" }.to_owned()),
        ("receive times", clock.map_or("", receive_time).to_owned()),
        ("TLS", tls.unwrap_or_default()),
        ("TLS asked for", asked.as_ref().map(asked_tls).unwrap_or_default()),
        ("server", server.title()),
        ("server's TLS library", server.tls_library.clone()),
        ("server's user", server.user.clone()),
        ("server's host", host_of_server(record)),
        ("server threads", threads),
        ("server CPUs", chain::pinned(&server.cpus)),
        ("watched by", sources.unwrap_or_default()),
        ("counters from", counters.map(|counters| counters.source.clone()).unwrap_or_default()),
        ("server command", server.command.join(" ")),
        ("changed from defaults", server.notes.join(" ")),
    ];
    let last = record.watched.chain.last().map_or(server, |part| &part.server);
    let external = last.upstream.iter().map(|external| {
        let over = transport_name(&external.transport);
        (
            "upstream",
            format!(
                "external at {external}, asked over {over}: it ran before, and nobody watched it"
            ),
        )
    });
    definitions(own.into_iter().chain(behind).chain(external))
}

/// How many workers there were, and the CPUs that they had here.
fn workers_on(hosts: &[LoadHost], workers: u32, cpus: &[usize]) -> String {
    match hosts {
        [] => format!("{workers}, CPUs: {}", chain::pinned(cpus)),
        hosts => format!("{workers} on {} hosts", hosts.len()),
    }
}

/// A host that had a share of the load, with what it counted, how far its clock was known, and how late its last worker
/// began.
fn load_host(host: &LoadHost) -> String {
    let LoadHost { host, workers, cpus, clock_bound_ns, late_ns, sent, answered } = host;
    let (clock, late) = (number::as_set(*clock_bound_ns), number::as_set(*late_ns));
    let [sent, answered] = [sent, answered].map(|queries| number::count(*queries));
    let cpus = chain::pinned(cpus);
    format!(
        "{host}: workers {workers}, CPUs {cpus}, sent {sent} queries (with the warm-up), of which {answered} were answered \
         in the measured window; clock known within {clock}, the last worker began {late} late"
    )
}

/// The host of a server that is not the load's, with how far its clock is known; empty for others.
fn host_of_server(record: &RunRecord) -> String {
    match (record.server.host.as_str(), record.watched.resources.clock_bound_ns) {
        (host, Some(bound_ns)) => format!(
            "{host}, watched there by dnslab; its clock is known within {}",
            number::as_set(bound_ns)
        ),
        (host, None) => host.to_owned(),
    }
}

fn receive_time(clock: ReceiveTime) -> &'static str {
    match clock {
        ReceiveTime::Kernel => "stamped by the kernel",
        ReceiveTime::User => "read after the system call",
    }
}

fn in_words(mix: &TransportMix) -> String {
    mix.to_string().replace(',', ", ").replace(':', " ")
}

/// The certificate that a server showed, in words that go on from others.
fn certificate(facts: &CertificateFacts) -> String {
    let CertificateFacts { key, key_bits, signature, sent, octets } = facts;
    let sent = match sent {
        1 => "one certificate".to_owned(),
        count => format!("{count} certificates"),
    };
    format!(": {key} with {key_bits} bits, signed by {signature}, {sent} of {octets} octets sent")
}

fn asked_tls(tls: &TlsFacts) -> String {
    let resumption = match (tls.resumption, tls.early_data) {
        (false, _) => "no resumption",
        (true, false) => "resumption",
        (true, true) => "resumption with early data",
    };
    let mut parts = Vec::new();
    if !tls.versions.is_empty() {
        parts.push(tls.versions.join(" or "));
    }
    if !tls.groups.is_empty() {
        parts.push(format!("groups {}", tls.groups.join(", ")));
    }
    parts.push(resumption.to_owned());
    match tls.records.as_str() {
        "per-query" => parts.push("a record for each query".to_owned()),
        "shared" => parts.push("queries share records".to_owned()),
        _ => {}
    }
    parts.join(", ")
}

fn servers(page: &Page<'_>) -> String {
    let mut html = String::new();
    for record in in_order(page.session, page.records) {
        let case = case_of(record);
        let mut content = String::new();
        if let RunStatus::Failed { log_tail, .. } = &record.status
            && !log_tail.is_empty()
        {
            content.push_str(&collapsed_text("last lines of the log", &log_tail.join("\n")));
        }
        let files = page.server_files.blocks(&case);
        if !content.is_empty() || !files.is_empty() {
            let _ = writeln!(
                html,
                "<details><summary>{}</summary>\n<div class=\"nested\">{content}{files}</div></details>",
                escape(&case.folder())
            );
        }
    }
    if let Some(left_out) = page.server_files.left_out() {
        let _ = writeln!(html, "<p>{}</p>", escape(&left_out));
    }
    if html.is_empty() {
        return html;
    }
    html.insert_str(
        0,
        "<section>\n<details><summary>Server configuration and log</summary>\n<div class=\"nested\">",
    );
    html.push_str("</div></details>\n</section>\n");
    html
}
