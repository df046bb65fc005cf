//! The experiment as run, written as a file that reads back as the same experiment.

mod chain;

use std::fmt::Write as _;

use dnslab_lab::{
    Identity, LogDestination, LogFile, LogPrefix, QueryLog, Rotation, Suffix, TimeForm,
};
use dnslab_load::{Method, Mode, TlsVersions};
use dnslab_measure::Quantity;
use dnslab_traffic::{Quota, Rate, Truncated, TypeMix};
use dnslab_wire::units::duration;
use dnslab_wire::{Edns, Transport, rcode_name};

use crate::check::{
    COMPARED_WITH_NONE, CommonSettings, Experiment, LoadSettings, ProcessSettings, Queries,
    SECRET_NOT_KEPT, Server, ServerSettings, Subnets, TlsChoice, Tsig, Variant, Verification,
    port_key,
};

/// Paths of keys with their values as TOML, in the order of the file.
type Lines = Vec<(&'static str, String)>;

impl Experiment {
    /// The experiment as a file, with the overrides of the command line folded in and the presets
    /// written out. Reading it gives the same experiment.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text =
            String::from("# The experiment as it ran, with every setting written out.\n");
        let top: Lines = vec![
            ("name", quoted(&self.name)),
            ("question", quoted(&self.question)),
            ("baseline", quoted(&self.baseline)),
        ];
        push_lines(&mut text, &top);
        let figure = self.answered_by.map(|metric| Quantity::of_metric(metric).to_string());
        push_lines(
            &mut text,
            &figure.map(|name| ("answered_by", quoted(&name))).into_iter().collect(),
        );
        text.push('\n');
        let variants: Vec<Lines> = self.variants.iter().map(variant_lines).collect();
        let (shared, own) = split_shared(variants);
        push_lines(&mut text, &shared);
        text.push('\n');
        push_lines(&mut text, &self.common_lines());
        let repeat: Lines = vec![
            ("repeat.runs", self.runs.to_string()),
            ("repeat.alternate", quoted(self.alternate.name())),
            ("repeat.slice", quoted(&duration::write(self.slices.slice))),
            ("repeat.guard", quoted(&duration::write(self.slices.lead))),
            ("repeat.seed", self.seed.to_string()),
            ("repeat.margin", number(self.margin)),
        ];
        push_lines(&mut text, &repeat);
        for (variant, lines) in self.variants.iter().zip(own) {
            text.push_str("\n[[variant]]\n");
            push_lines(&mut text, &vec![("name", quoted(&variant.name))]);
            push_lines(&mut text, &lines);
        }
        text
    }

    /// The load at one rate for all variants.
    fn common_lines(&self) -> Lines {
        let Some(CommonSettings { rate_qps, duration, warm_up }) = self.common else {
            return Lines::new();
        };
        let rate = rate_qps.map(|rate| ("common.rate", rate.to_string()));
        let durations = [("common.duration", duration), ("common.warm_up", warm_up)];
        let durations = durations.map(|(path, length)| (path, quoted(&duration::write(length))));
        durations.into_iter().chain(rate).collect()
    }
}

/// One `path = value` a line.
fn push_lines(text: &mut String, lines: &Lines) {
    for (path, value) in lines {
        writeln!(text, "{path} = {value}").expect("writing to a string does not fail");
    }
}

/// Splits the lines of the variants into those that all have in common, which stand at the top,
/// and those of each.
fn split_shared(variants: Vec<Lines>) -> (Lines, Vec<Lines>) {
    let first = variants.first().cloned().unwrap_or_default();
    let is_shared = |line: &(&'static str, String)| variants.iter().all(|it| it.contains(line));
    let shared: Lines = first.into_iter().filter(is_shared).collect();
    let own = variants
        .into_iter()
        .map(|lines| lines.into_iter().filter(|line| !shared.contains(line)).collect())
        .collect();
    (shared, own)
}

/// Everything that a variant is made of.
fn variant_lines(variant: &Variant) -> Lines {
    let mut lines = Lines::new();
    let load = &variant.load;
    server_lines(&variant.server, load.transport, &mut lines);
    chain::laboratory_lines(&variant.topology, &mut lines);
    load_lines(load, &mut lines);
    client_lines(load, &mut lines);
    query_lines(load, &mut lines);
    lines.push(("expect.rcode", quoted(&rcode_name(variant.expect.rcode.into()))));
    lines.push(("expect.wrong_limit", number(variant.expect.wrong_limit)));
    lines.push(("expect.lost_limit", number(variant.expect.lost_limit)));
    if let Some(names) = &variant.compared_with {
        let none = names.is_empty().then(|| COMPARED_WITH_NONE.to_owned());
        lines.push(("compare.with", quoted(&none.unwrap_or_else(|| names.join(", ")))));
    }
    lines
}

/// The server.
fn server_lines(settings: &ServerSettings, transport: Transport, lines: &mut Lines) {
    lines.push(("server.kind", quoted(settings.kind_name())));
    let mut text = |path, value: Option<&str>| {
        if let Some(value) = value {
            lines.push((path, quoted(value)));
        }
    };
    match &settings.server {
        Server::Embedded { delay, loss, busy, .. } => {
            text("server.delay", delay.map(|delay| delay.to_string()).as_deref());
            text("server.loss", loss.map(|loss| loss.to_string()).as_deref());
            if !busy.is_zero() {
                lines.push(("server.busy", quoted(&duration::write(*busy))));
            }
        }
        Server::Installed { binary, root, extra, .. } => {
            let binary = binary.as_ref().map(|path| path.to_string_lossy());
            text("server.binary", binary.as_deref());
            let root = root.as_ref().map(|path| path.to_string_lossy());
            text("server.root", root.as_deref());
            text("server.extra", extra.as_deref());
        }
        Server::External { target, tls_name, identity, name: _ } => {
            text("server.address", Some(&target.ip().to_string()));
            text("server.tls_name", tls_name.as_deref());
            match identity {
                Identity::Address => {}
                Identity::Process(pid) => lines.push(("server.pid", pid.to_string())),
                Identity::Unit(unit) => lines.push(("server.unit", quoted(unit))),
            }
            lines.push((port_key(transport), target.port().to_string()));
        }
    }
    if let Some(process) = settings.process() {
        process_lines(process, lines);
        if transport.is_encrypted() {
            lines.push(("server.certificate", quoted(settings.certificate.name())));
        }
    }
    match &settings.verification {
        None | Some(Verification::RunAuthority) => {}
        Some(Verification::Off) => lines.push(("server.insecure", "true".to_owned())),
        Some(Verification::Authority(path)) => {
            lines.push(("server.authority", quoted(&path.to_string_lossy())));
        }
    }
    if let Some(query_log) = &settings.logging.query_log {
        log_lines(query_log, lines);
    }
    for (path, is_on) in
        [("server.dnstap", settings.logging.dnstap), ("server.dnssec", settings.dnssec)]
    {
        if is_on {
            lines.push((path, "true".to_owned()));
        }
    }
    if !settings.watch {
        lines.push(("server.watch", "false".to_owned()));
    }
    if settings.without_cache {
        lines.push(("server.cache", "false".to_owned()));
    }
    lines.push(("server.zone.name", quoted(&settings.zone.name)));
    lines.push(("server.zone.records", settings.zone.records.to_string()));
    lines.push(("server.zone.ttl", quoted(&format!("{}s", settings.zone.ttl_s))));
}

/// Where the query log goes, and its form.
fn log_lines(log: &QueryLog, lines: &mut Lines) {
    let word = match &log.to {
        LogDestination::File(_) => "file",
        LogDestination::Syslog => "syslog",
        LogDestination::StandardError => "stderr",
        LogDestination::Null => "null",
    };
    lines.push(("server.log.to", quoted(word)));
    if let LogDestination::File(LogFile { folder, is_buffered, rotation }) = &log.to {
        if let Some(folder) = folder {
            lines.push(("server.log.folder", quoted(&folder.to_string_lossy())));
        }
        if let Some(Rotation { size_mib, versions, suffix }) = rotation {
            let suffix = match suffix {
                Suffix::Increment => "increment",
                Suffix::Timestamp => "timestamp",
            };
            lines.push(("server.log.size_mib", size_mib.to_string()));
            lines.push(("server.log.versions", versions.to_string()));
            lines.push(("server.log.suffix", quoted(suffix)));
        }
        lines.push(("server.log.buffered", is_buffered.to_string()));
    }
    let LogPrefix { time, category, severity } = log.print;
    lines.push(("server.log.print_time", quoted(time.map_or("none", TimeForm::word))));
    lines.push(("server.log.print_category", category.to_string()));
    lines.push(("server.log.print_severity", severity.to_string()));
}

/// Where and how a started server runs.
fn process_lines(process: &ProcessSettings, lines: &mut Lines) {
    lines.push(("server.address", quoted(&process.address.to_string())));
    if let Some(threads) = process.threads {
        lines.push(("server.threads", threads.to_string()));
    }
    if !process.cpus.is_empty() {
        lines.push(("server.cpus", format!("{:?}", process.cpus)));
    }
}

/// What is sent, and when.
fn load_lines(load: &LoadSettings, lines: &mut Lines) {
    lines.push(("load.transport", quoted(load.transport.name())));
    lines.push(("load.clients", load.clients.to_string()));
    match &load.mode {
        Mode::Closed { outstanding } => lines.push(("load.outstanding", outstanding.to_string())),
        Mode::Open { rate, pace } => {
            let rate = match rate {
                Rate::Constant(rate) => number(*rate),
                changing => quoted(&changing.to_string()),
            };
            lines.push(("load.rate", rate));
            lines.push(("load.pace", quoted(pace.name())));
        }
    }
    let durations = [
        ("load.duration", load.duration),
        ("load.warm_up", load.warm_up),
        ("load.timeout", load.timeout),
        ("load.horizon", load.horizon),
    ];
    lines.extend(durations.map(|(path, duration)| (path, quoted(&duration::write(duration)))));
    if let Some(most) = load.most_queries {
        lines.push(("load.queries_in_all", most.to_string()));
    }
    if let Some(workers) = load.workers {
        lines.push(("load.workers", workers.to_string()));
    }
    if !load.cpus.is_empty() {
        lines.push(("load.cpus", format!("{:?}", load.cpus)));
    }
    match &load.queries {
        Queries::File(path) => lines.push(("load.queries", quoted(&path.to_string_lossy()))),
        Queries::Popular(count) => lines.push(("load.popular_names", count.to_string())),
        Queries::Zone(types) if *types == TypeMix::default() => {}
        Queries::Zone(types) => lines.push(("load.types", quoted(&types.to_string()))),
    }
    lines.push(("load.selection", quoted(load.selection.name())));
}

/// The clients: their connections, addresses, TLS and HTTP.
fn client_lines(load: &LoadSettings, lines: &mut Lines) {
    let LoadSettings { behaviour, tls, http, transport, .. } = load;
    lines.push(("load.connections", behaviour.connections.to_string()));
    if let Some(quota) = behaviour.queries_per_connection {
        let word = match quota {
            Quota::Exact(_) => "exact",
            Quota::Random(_) => "random",
        };
        lines.push(("load.queries_per_connection", quota.mean().to_string()));
        lines.push(("load.connection_quota", quoted(word)));
    }
    if let Some(idle) = behaviour.idle {
        lines.push(("load.idle", quoted(&duration::write(idle))));
    }
    lines.push(("load.connect", quoted(behaviour.connect.name())));
    if *transport == Transport::Udp {
        lines.push(("load.truncated", quoted(behaviour.truncated.name())));
        lines.push(("load.receive_time", quoted(load.receive_time.name())));
    }
    if transport.runs_over_tcp() || behaviour.truncated == Truncated::AskOverTcp {
        lines.push(("load.quickack", quoted(load.quickack.name())));
    }
    if let Some(sources) = &load.sources {
        lines.push(("load.sources", quoted(&sources.to_string())));
    }
    if transport.is_encrypted() {
        let TlsChoice { versions, resumption, early_data, records, groups } = tls;
        let versions = match versions {
            TlsVersions::V12 => "1.2",
            TlsVersions::V13 => "1.3",
            TlsVersions::Both => "both",
        };
        lines.push(("load.tls_versions", quoted(versions)));
        lines.push(("load.resumption", resumption.to_string()));
        lines.push(("load.early_data", early_data.to_string()));
        let groups: Vec<String> = groups.iter().map(|group| quoted(group.name())).collect();
        lines.push(("load.tls_groups", format!("[{}]", groups.join(", "))));
        if *transport == Transport::Dot {
            lines.push(("load.tls_records", quoted(records.name())));
        }
    }
    if transport.is_http() {
        let method = match http.method {
            Method::Get => "get",
            Method::Post => "post",
        };
        lines.push(("load.http_method", quoted(method)));
        lines.push(("load.http_path", quoted(&http.path)));
    }
}

/// What queries carry beside their question.
fn query_lines(load: &LoadSettings, lines: &mut Lines) {
    lines.push(("load.recursion_desired", load.options.recursion_desired.to_string()));
    if let Some(edns) = &load.options.edns {
        let Edns { payload_size, dnssec_ok, options, padding, keepalive } = edns;
        lines.push(("load.edns_payload", payload_size.to_string()));
        lines.push(("load.dnssec_ok", dnssec_ok.to_string()));
        if !options.is_empty() {
            let options: Vec<String> = options
                .iter()
                .map(|option| quoted(&format!("{}:{}", option.code, hexadecimal(&option.data))))
                .collect();
            lines.push(("load.edns_options", format!("[{}]", options.join(", "))));
        }
        if let Some(block) = padding {
            lines.push(("load.padding", block.to_string()));
        }
        if *keepalive {
            lines.push(("load.keepalive", "true".to_owned()));
        }
    }
    lines.push(("load.cookies", load.cookies.to_string()));
    match &load.subnets {
        None => {}
        Some(Subnets::Written(subnets)) => {
            lines.push(("load.client_subnets", quoted(&subnets.to_string())));
        }
        Some(Subnets::File(path)) => {
            lines.push(("load.client_subnets", quoted(&path.to_string_lossy())));
        }
    }
    match &load.tsig {
        None => {}
        Some(Tsig::Written(key)) => {
            lines.push(("load.tsig", quoted(&format!("{key}{SECRET_NOT_KEPT}"))));
        }
        Some(Tsig::File(path)) => lines.push(("load.tsig_file", quoted(&path.to_string_lossy()))),
    }
}

/// Octets as pairs of hexadecimal digits.
fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Text as a TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A number as the shortest TOML float that reads back as the same one.
fn number(number: f64) -> String {
    format!("{number:?}")
}
