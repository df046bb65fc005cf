//! CZ.NIC's Knot Resolver 5 (`kresd`), as a forwarder or as a resolver. Options: its manual, "Configuration"; counters: its
//! modules `worker`, `cache` and `stats`.
//!
//! One process has one thread, so several threads are several processes with one cache, started by a script
//! instead of systemd. Each has a control socket of its own, and the counters are their sum.
//!
//! Blind spots of its counters: a message that is no query is not counted, and the queries to the upstream
//! include those that are sent again.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use dnslab_record::CostPart::{DnsLogic, EventLoop, HttpQuic, Log, Tls};
use dnslab_record::counter;
use dnslab_settings::ServerKind;
use dnslab_wire::Transport;
use serde_json::Value;

use super::adapter::{
    Access, Adapter, Facts, IDLE_SECONDS, has_usual_http_path, hints_note, trust_note,
};
use super::control;
use super::cost_rows::{CostRow, functions, library};
use super::rendered::{Rendered, RenderedFile};
use super::spec::{POLICY_ZONE, ROOT_HINTS, RootHints, ServerSpec, UPSTREAM_AUTHORITY, Upstream};
use super::version::Version;
use crate::certificate;
use crate::package::Remedy;

const CONFIGURATION: &str = "kresd.conf";

const SCRIPT: &str = "kresd.sh";

/// The name of a control socket: this, the process id, [`CONTROL_END`].
const CONTROL_BEGIN: &str = "kresd-";

const CONTROL_END: &str = ".ctl";

/// Queries that a client may keep outstanding on one connection: more than the window of most loads, so that
/// the load decides.
const PIPELINE: u32 = 1_000;

pub(super) struct KnotResolver;

impl Adapter for KnotResolver {
    fn facts(&self) -> Facts {
        Facts {
            kind: ServerKind::KnotResolver,
            remedy: Remedy::Package { debian: "knot-resolver", fedora: "knot-resolver" },
            version_argument: "-V",
            counter_source: Some("worker.stats() and stats.list() at kresd's control sockets"),
        }
    }

    fn cost_rows(&self) -> &'static [CostRow] {
        COST_ROWS
    }

    fn supports(&self, version: &Version, transport: Transport) -> Result<(), String> {
        let missing = match transport {
            _ if !version.is_at_least(5, 2) => "configuration that dnslab knows: it came with 5.2",
            Transport::Udp | Transport::Tcp | Transport::Dot | Transport::Doh2 => return Ok(()),
            Transport::Doq => "DNS over QUIC",
            Transport::Doh3 => "HTTP/3: its DNS over HTTPS is doh2",
        };
        Err(format!("Knot Resolver {version} has no {missing}"))
    }

    fn takes(&self, spec: &ServerSpec) -> Result<(), String> {
        has_usual_http_path(self.title(), spec)
    }

    fn forwards(&self, version: &Version, transport: Transport) -> Result<(), String> {
        match transport {
            Transport::Udp | Transport::Dot => Ok(()),
            Transport::Tcp => Err(format!(
                "Knot Resolver {version} forwards over UDP, and over TCP only what was truncated"
            )),
            _ => Err(format!("Knot Resolver {version} does not forward over {transport}")),
        }
    }

    fn resolves(&self, _version: &Version) -> Result<(), String> {
        Ok(())
    }

    fn validates(&self, _version: &Version) -> Result<(), String> {
        Ok(())
    }

    fn policy_way(&self) -> &'static str {
        "as far as Knot Resolver does: rules for names, without those that lead to another name; each of its processes has \
         its own copy"
    }

    fn render(&self, spec: &ServerSpec, program: &str) -> Rendered {
        Rendered {
            files: vec![
                RenderedFile { name: CONFIGURATION, content: configuration(spec) },
                RenderedFile { name: SCRIPT, content: script(spec) },
            ],
            command: ["/bin/sh", SCRIPT, program].map(str::to_owned).to_vec(),
            notes: notes(spec),
        }
        .and(spec.hints_file())
    }

    fn counters(&self, access: &Access) -> Result<BTreeMap<String, u64>, String> {
        let mut sum = BTreeMap::new();
        for socket in sockets(&access.directory)? {
            for (name, count) in read_statistics(&ask(&access.directory, &socket)?)? {
                *sum.entry(name).or_insert(0) += count;
            }
        }
        if sum.is_empty() { Err("it has no control socket".to_owned()) } else { Ok(sum) }
    }
}

/// What Knot Resolver's packages start beside it, as they start it: a garbage collector for its cache, which looks
/// once a second. Without it a full cache is emptied as a whole.
const COLLECTOR: &str = "\
(
    while [ ! -e data.mdb ]; do sleep 0.05; done
    exec \"${1%/*}/kres-cache-gc\" -c . -d 1000
) &
processes=\"$processes $!\"
";

/// Starts one process for each thread, ends them when it is told to, and ends when one of them does. It
/// removes the cache before and after, so that no run begins with another's.
fn script(spec: &ServerSpec) -> String {
    let numbers: Vec<_> = (1..=spec.threads).map(|number| number.to_string()).collect();
    let collector = if spec.cache_octets().is_some() { COLLECTOR } else { "" };
    format!(
        "\
# What systemd does for an operator: so many processes of kresd, which share cache and sockets.
clean() {{ rm -f data.mdb lock.mdb {CONTROL_BEGIN}*{CONTROL_END}; }}
end() {{
    trap - CHLD TERM INT
    kill $processes 2>/dev/null
    wait
    clean
    exit $1
}}
clean
trap 'end 0' TERM INT
trap 'end 1' CHLD
for number in {numbers}; do
    \"$1\" -n -c {CONFIGURATION} . &
    processes=\"$processes $!\"
done
{collector}while :; do wait; done
",
        numbers = numbers.join(" "),
    )
}

fn configuration(spec: &ServerSpec) -> String {
    format!(
        "\
log_target('stderr')
{listeners}net.listen('/proc/self/cwd/{CONTROL_BEGIN}' .. worker.pid .. '{CONTROL_END}', nil, {{ kind = 'control' }})
{idle}net.tcp_pipeline({PIPELINE})
modules = {{ 'stats' }}
for _, module in ipairs({{ {unloaded} }}) do
    if _G[module] then modules.unload(module) end
end
trust_anchors.remove('.')
{cache}{anchor}{policy}{way}{extra}",
        cache = match spec.cache_octets() {
            Some(octets) => format!("cache.size = {octets}\n"),
            None => String::new(),
        },
        listeners = listeners(spec),
        // In milliseconds. It also limits the wait for connections to the upstream (daemon/io.c of kresd 5),
        // so it is left alone where no client has a connection.
        idle = match spec.has_stream() {
            true => format!("net.tcp_in_idle({})\n", IDLE_SECONDS * 1_000),
            false => String::new(),
        },
        unloaded = unloaded(spec).map(|module| format!("'{module}'")).collect::<Vec<_>>().join(", "),
        // All at once: a second call would replace the anchors of the first.
        anchor = match spec.validates() {
            true => format!("trust_anchors.add('{}')\n", spec.trust_anchors.join("\\n")),
            false => String::new(),
        },
        policy = match &spec.policy_zone {
            // Its `policy.PASS` ends the rules, so that what is let through would not be forwarded.
            Some(_) => format!(
                "local rules = policy.rpz(policy.DENY, '{POLICY_ZONE}', false)\n\
                 policy.add(function (request, query)\n    local action = rules(request, query)\n    \
                 if action ~= policy.PASS then return action end\nend)\n"
            ),
            None => String::new(),
        },
        way = match (&spec.upstream, &spec.root_hints) {
            (Some(upstream), _) => forward(upstream),
            (None, Some(RootHints::Zone(_))) => {
                format!("modules.load('hints')\nhints.root_file('{ROOT_HINTS}')\n")
            }
            (None, Some(RootHints::BuiltIn) | None) => String::new(),
        },
        extra = spec.extra_text(),
    )
}

/// The modules that ask of their own accord. A resolver has to ask the root servers for their names.
fn unloaded(spec: &ServerSpec) -> impl Iterator<Item = &'static str> {
    let all = ["detect_time_skew", "priming", "ta_signal_query", "ta_update"];
    let resolves = spec.root_hints.is_some();
    all.into_iter().filter(move |module| !(resolves && *module == "priming"))
}

/// The addresses, and the certificate of the encrypted transports.
fn listeners(spec: &ServerSpec) -> String {
    let (address, ports) = (spec.address, spec.ports);
    let mut text = String::new();
    let mut listen = |port: u16, kind: &str| {
        text.push_str(&format!("net.listen('{address}', {port}, {{ kind = '{kind}' }})\n"));
    };
    if spec.has_plain() {
        listen(ports.plain, "dns");
    }
    if spec.serves(Transport::Dot) {
        listen(ports.dot, "tls");
    }
    if spec.serves(Transport::Doh2) {
        listen(ports.doh2, "doh2");
    }
    if spec.has_encrypted() {
        let (certificate, key) = (certificate::CERTIFICATE, certificate::KEY);
        text.push_str(&format!("net.tls('{certificate}', '{key}')\n"));
    }
    text
}

fn forward(upstream: &Upstream) -> String {
    let action = if upstream.tls.is_some() { "TLS_FORWARD" } else { "FORWARD" };
    let targets = upstream.addresses().map(|at| target(upstream, at));
    let targets = targets.collect::<Vec<_>>().join(", ");
    format!("policy.add(policy.all(policy.{action}({{ {targets} }})))\n")
}

fn target(upstream: &Upstream, at: SocketAddr) -> String {
    let address = format!("'{}@{}'", at.ip(), at.port());
    match &upstream.tls {
        Some(tls) => {
            let name = &tls.name;
            format!("{{ {address}, hostname = '{name}', ca_file = '{UPSTREAM_AUTHORITY}' }}")
        }
        None => address,
    }
}

fn notes(spec: &ServerSpec) -> Vec<String> {
    let mut notes = vec![
        format!(
            "{} processes with a thread each, as the experiment says: they share sockets and cache",
            spec.threads
        ),
        trust_note(spec, "no validation: the trust anchor of the Internet is removed"),
        format!(
            "the modules that ask the upstream of their own accord are unloaded: {}",
            unloaded(spec).collect::<Vec<_>>().join(", ")
        ),
        match spec.has_stream() {
            true => format!(
                "tcp_in_idle {IDLE_SECONDS} s (default 10 s), tcp_pipeline {PIPELINE} (default 100): \
                 the load alone decides when connections are opened, and how many queries are \
                 outstanding; Knot Resolver keeps idle connections to the upstream for as long"
            ),
            false => format!(
                "tcp_in_idle is left at its default (10 s): no client comes over a connection; \
                 tcp_pipeline {PIPELINE} (default 100)"
            ),
        },
        match spec.cache_octets() {
            Some(octets) => format!(
                "a cache of {} MiB (cache.size; default 100 MB), as the experiment says, in a file of the run's \
                 folder, which is empty at the start; the process kres-cache-gc beside it removes entries once \
                 a second before the file is full, as Knot Resolver's packages have it, and counts as part of \
                 the server",
                octets >> 20
            ),
            None => {
                "a cache of 100 MB (the default) in a file of the run's folder, which is empty at the start"
                    .to_owned()
            }
        },
        "128 connections may wait to be accepted (TCP_BACKLOG_DEFAULT, compiled in); the modules prefetch, \
         predict and serve_stale are not loaded, as by default"
            .to_owned(),
        "the module stats is loaded: its counters are read during the run".to_owned(),
    ];
    if let Some(hints) = &spec.root_hints {
        notes.push(format!(
            "{}; the module priming asks them for their names at the start (RFC 9609), in each process",
            hints_note(hints, "hints.root_file")
        ));
        notes.push(
            "it minimises the names that it asks for, and asks over IPv4 and IPv6, as by default; it \
             answers itself for the special names of RFC 6761 and for the reverse zones of RFC 6303: none \
             of them is in 198.18.0.0/15 or 2001:2::/48"
                .to_owned(),
        );
    }
    if let Some(upstream) = &spec.upstream {
        notes.push(match &upstream.tls {
            Some(_) => {
                "the upstream's certificate is verified; connections to it are opened and resumed as \
                 Knot Resolver does by default"
                    .to_owned()
            }
            None => {
                "queries travel to the upstream over UDP, and over TCP after truncation".to_owned()
            }
        });
    }
    notes
}

fn sockets(directory: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(directory).map_err(|error| format!("its folder: {error}"))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_socket = |name: &String| name.starts_with(CONTROL_BEGIN) && name.ends_with(CONTROL_END);
    Ok(names.filter(is_socket).collect())
}

/// Asks one process for all its statistics. The socket is meant for a person at a terminal: it prompts and
/// stays open.
fn ask(directory: &Path, socket: &str) -> Result<Value, String> {
    let failed = |error: std::io::Error| format!("its control socket {socket}: {error}");
    let mut stream = control::connect(directory, socket).map_err(failed)?;
    stream.write_all(b"tojson({ worker.stats(), stats.list() })\n").map_err(failed)?;
    let is_whole = |text: &str| between_brackets(text).is_some();
    let text = control::read_answer(stream, is_whole).map_err(failed)?;
    let json = between_brackets(&text)
        .ok_or_else(|| format!("its control socket {socket}: the answer is `{text}`"))?;
    serde_json::from_str(json).map_err(|error| format!("the answer at its control socket: {error}"))
}

/// The JSON array among prompts and quotation marks, if it is complete.
fn between_brackets(text: &str) -> Option<&str> {
    let begin = text.find('[')?;
    let end = text.rfind(']')?;
    // A prompt follows the whole answer.
    text[end..].contains("> ").then(|| &text[begin..=end])
}

fn read_statistics(answer: &Value) -> Result<BTreeMap<String, u64>, String> {
    let number = |part: usize, name: &str| answer[part][name].as_u64();
    let mut counts = BTreeMap::new();
    for (part, name, common) in [
        (1, "request.total", counter::QUERIES),
        (1, "request.udp", counter::QUERIES_UDP),
        (1, "request.tcp", counter::QUERIES_TCP),
        (1, "request.dot", counter::QUERIES_DOT),
        (1, "request.doh", counter::QUERIES_DOH),
        (1, "answer.total", counter::RESPONSES),
        (1, "answer.cached", counter::CACHE_HITS),
        (1, "answer.servfail", "answers.servfail"),
        (0, "udp", "upstream.queries.udp"),
        (0, "tcp", "upstream.queries.tcp"),
        (0, "tls", "upstream.queries.dot"),
        (0, "timeout", counter::UPSTREAM_TIMEOUTS),
        (0, "dropped", "dropped"),
    ] {
        let count = number(part, name).ok_or_else(|| format!("it tells no `{name}`"))?;
        counts.insert(common.to_owned(), count);
    }
    let sum = |names: [&str; 3]| names.into_iter().filter_map(|name| counts.get(name)).sum::<u64>();
    let sent = sum(["upstream.queries.udp", "upstream.queries.tcp", "upstream.queries.dot"]);
    let answered = counts[counter::RESPONSES].saturating_sub(counts[counter::CACHE_HITS]);
    counts.insert(counter::UPSTREAM_QUERIES.to_owned(), sent);
    counts.insert(counter::CACHE_MISSES.to_owned(), answered);
    // Its own questions are not queries of its clients.
    let internal = number(1, "request.internal").unwrap_or(0);
    if let Some(queries) = counts.get_mut(counter::QUERIES) {
        *queries = queries.saturating_sub(internal);
    }
    Ok(counts)
}

/// Which functions of it are which part.
const COST_ROWS: &[CostRow] = &[
    library("libkres", DnsLogic),
    library("libknot", DnsLogic),
    library("libdnssec", DnsLogic),
    library("libzscanner", DnsLogic),
    library("liblmdb", DnsLogic),
    // Its modules and its configuration are written in Lua.
    library("libluajit", DnsLogic),
    functions("kresd", &["tls_"], Tls),
    functions("kresd", &["http_"], HttpQuic),
    functions("kresd", &["io_", "session_", "udp_", "tcp_", "network_", "mp_"], EventLoop),
    functions("kresd", &["kr_log"], Log),
    library("kresd", DnsLogic),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ServerKind;
    use crate::server::tests::{forwarder, live, resolver, shown};

    #[test]
    fn all_transports_to_udp() {
        let all = [Transport::Udp, Transport::Tcp, Transport::Dot, Transport::Doh2];
        insta::assert_snapshot!(shown(&forwarder(ServerKind::KnotResolver, &all, Transport::Udp)));
    }

    #[test]
    fn validating_over_tls_on_ipv6_with_extra_text() {
        let mut spec = forwarder(ServerKind::KnotResolver, &[Transport::Udp], Transport::Dot);
        spec.address = "::1".parse().unwrap();
        spec.trust_anchors = vec![". DS 20326 8 2 E06D44B8".to_owned()];
        spec.extra = Some("cache.size = 10 * MB".to_owned());
        insta::assert_snapshot!(shown(&spec));
    }

    #[test]
    fn an_answer_is_whole_when_the_prompt_follows() {
        assert_eq!(between_brackets("> '[{\"a\":1},{}]'\n> "), Some("[{\"a\":1},{}]"));
        assert_eq!(between_brackets("> '[{\"a\":1},{"), None);
        assert_eq!(between_brackets("> '[{\"a\":1},{}]"), None);
        assert_eq!(between_brackets("> "), None);
    }

    #[test]
    fn a_missing_count_is_named() {
        let error = read_statistics(&serde_json::json!([{}, {}])).unwrap_err();
        assert_eq!(error, "it tells no `request.total`");
    }

    #[test]
    fn resolving_from_given_root_servers() {
        let all = [Transport::Udp, Transport::Tcp, Transport::Dot, Transport::Doh2];
        insta::assert_snapshot!(shown(&resolver(ServerKind::KnotResolver, &all)));
    }

    #[test]
    fn resolving_on_the_internet() {
        insta::assert_snapshot!(shown(&live(ServerKind::KnotResolver)));
    }
}
