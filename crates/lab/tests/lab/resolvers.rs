//! Real servers that resolve by themselves, in a small hierarchy on the addresses of a private Internet: the
//! root, `univ` and `melmac.univ`, each on a server of its own, signed.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use dnslab_lab::hosts::{Hosts, INTERNET, LinkSettings};
use dnslab_lab::network::Visit;
use dnslab_lab::{
    CounterWatch, LabError, Ports, RootHints, RunningServer, ServerKind, ServerSpec, ZoneFile, find,
};
use dnslab_record::counter;
use dnslab_settings::CacheSize;
use dnslab_wire::Transport::{self, Doh2, Dot, Tcp, Udp};

use crate::chain::chain;
use crate::program::guard;
use crate::roots::root;
use crate::support::{PATIENCE, ask_for, groups_of, parent, wait_until};

/// The resolvers, and over what clients ask them.
const RESOLVERS: [(ServerKind, &[Transport]); 4] = [
    (ServerKind::Bind, &[Udp, Tcp, Dot, Doh2]),
    (ServerKind::Unbound, &[Udp, Tcp, Dot, Doh2]),
    (ServerKind::KnotResolver, &[Udp, Tcp, Dot, Doh2]),
    (ServerKind::PowerDnsRecursor, &[Udp, Tcp]),
];

/// Root servers of the Internet, as resolvers know them since they were built
/// (<https://www.iana.org/domains/root/servers>).
const ROOT_SERVERS: [&str; 13] = [
    "198.41.0.4",
    "170.247.170.2",
    "192.33.4.12",
    "199.7.91.13",
    "192.203.230.10",
    "192.5.5.241",
    "192.112.36.4",
    "198.97.190.53",
    "192.36.148.17",
    "192.58.128.30",
    "193.0.14.129",
    "199.7.83.42",
    "202.12.27.33",
];

/// The families over which the servers of the hierarchy are known.
#[derive(Clone, Copy)]
enum Families {
    Both,
    Ipv6,
}

/// Three hosts, the last of which has the hierarchy.
struct Internet {
    /// They end before their host.
    servers: Vec<RunningServer>,
    hosts: Hosts,
    hints: String,
    /// The DS record of the root.
    anchor: String,
    folder: tempfile::TempDir,
}

/// Its addresses, and the records for a name that has them.
fn place(name: &str, number: u8, families: Families) -> ([IpAddr; 2], String) {
    let (ipv4, ipv6) = (format!("198.18.{number}.1"), format!("2001:2:0:{number}::1"));
    let records = match families {
        Families::Both => format!("{name} 3600 A {ipv4}\n{name} 3600 AAAA {ipv6}\n"),
        Families::Ipv6 => format!("{name} 3600 AAAA {ipv6}\n"),
    };
    ([ipv4.parse().unwrap(), ipv6.parse().unwrap()], records)
}

/// What a program prints that is run in a folder.
#[track_caller]
fn said(program: &str, arguments: &[&str], folder: &Path) -> String {
    let output = Command::new(program).args(arguments).current_dir(folder).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl Internet {
    /// The link between the resolver and the hierarchy has addresses of one family from the start.
    fn start(families: Families, is_ipv6_link: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let hosts = chain(folder.path(), LinkSettings::default(), is_ipv6_link);
        let roots = ROOT_SERVERS.map(|address| format!("{address}/32"));
        let networks: Vec<String> = INTERNET.map(str::to_owned).into_iter().chain(roots).collect();
        hosts.add_internet(&networks).unwrap();
        let mut made = Self {
            servers: Vec::new(),
            hosts,
            hints: String::new(),
            anchor: String::new(),
            folder,
        };
        let soa = "3600 SOA ns hostmaster 1 3600 600 86400 60";
        // More than any UDP payload size that resolvers ask for (1,232 octets).
        let large = format!("\"{}\" ", "x".repeat(200)).repeat(15);
        let (at, own) = place("ns.melmac.univ.", 2, families);
        let melmac = format!(
            "@ {soa}\n@ 3600 NS ns\n{own}alf 3600 A 192.0.2.7\nbogus 3600 A 192.0.2.66\n\
             large 3600 TXT {large}\n"
        );
        let melmac_ds = made.serve("melmac.univ.", at, &melmac);
        let (at, own_of_univ) = place("ns.univ.", 1, families);
        let univ = format!("@ {soa}\n@ 3600 NS ns\n{own_of_univ}melmac 3600 NS ns.melmac\n{own}");
        let univ_ds = made.serve("univ.", at, &format!("{univ}{melmac_ds}\n"));
        let (at, own) = place("a.root-servers.net.", 0, families);
        let names = format!(". 3600 NS a.root-servers.net.\n{own}");
        let root = format!("@ {soa}\n{names}univ. 3600 NS ns.univ.\n{own_of_univ}{univ_ds}\n");
        made.anchor = made.serve(".", at, &root);
        made.hints = names;
        made
    }

    /// Signs the zone, starts a server for it, and returns its DS record.
    fn serve(&mut self, origin: &str, [ipv4, ipv6]: [IpAddr; 2], zone: &str) -> String {
        let folder = self.folder.path().join(if origin == "." { "root" } else { origin });
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("zone"), format!("$ORIGIN {origin}\n{zone}")).unwrap();
        let run = |program, arguments: &[&str]| said(program, arguments, &folder);
        let key = run("dnssec-keygen", &["-q", "-a", "ECDSAP256SHA256", "-f", "KSK", origin]);
        run("dnssec-signzone", &["-S", "-z", "-o", origin, "-f", "signed", "zone"]);
        let ds = run("dnssec-dsfromkey", &["-2", &key]);
        let path = folder.join("signed");
        // Its signature is of another address.
        let changed = fs::read_to_string(&path).unwrap().replace("192.0.2.66", "192.0.2.67");
        fs::write(&path, changed).unwrap();
        let at = (ipv4, Ports::STANDARD);
        let mut spec = ServerSpec::new(ServerKind::Nsd, folder.join("server"), at, &[Udp, Tcp]);
        spec.zone = Some(ZoneFile { origin: origin.to_owned(), path, signatures: None });
        let others: &[&str] = if origin == "." { &ROOT_SERVERS } else { &[] };
        let line = |address: &str| format!("    ip-address: {address}@53\n");
        let others: String = others.iter().map(|address| line(address)).collect();
        spec.extra = Some(format!("server:\n{}{others}", line(&ipv6.to_string())));
        let probe = |transport, _| self.knows_itself(origin, [ipv4, ipv6], transport);
        let visit = self.visit("upstream");
        let server = RunningServer::start(&spec, &guard(), &probe, PATIENCE);
        drop(visit);
        let server = server.unwrap_or_else(|error| panic!("{origin}: {error}"));
        self.servers.push(server);
        ds
    }

    /// A server of the hierarchy answers for its zone at both addresses.
    fn knows_itself(
        &self,
        origin: &str,
        addresses: [IpAddr; 2],
        transport: Transport,
    ) -> Result<(), String> {
        let how = if transport == Tcp { "+tcp" } else { "+notcp" };
        let both = addresses.map(|ip| self.kdig("server", ip, &[how, origin, "SOA"]));
        let is_right = |answer: &String| answer.contains("ANSWER SECTION");
        if both.iter().all(is_right) { Ok(()) } else { Err(format!("{both:?}")) }
    }

    /// What `kdig` prints on a host.
    fn kdig(&self, host: &str, ip: IpAddr, arguments: &[&str]) -> String {
        let _visit = self.visit(host);
        let mut command = Command::new("kdig");
        command.arg(format!("@{ip}")).args(["+retry=0", "+time=30"]).args(arguments);
        let output = command.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A resolver with its state in `folder`, which is told of this hierarchy and does not validate.
    fn resolver(&self, kind: ServerKind, folder: &Path, transports: &[Transport]) -> ServerSpec {
        let at = (self.hosts.address("server").unwrap(), Ports::STANDARD);
        let mut spec = ServerSpec::new(kind, folder.join("server"), at, transports);
        spec.root_hints = Some(RootHints::Zone(self.hints.clone()));
        spec.threads = 2;
        spec
    }

    /// A resolver has found the root.
    fn knows_the_root(&self, resolver: IpAddr, transport: Transport) -> Result<(), String> {
        let how = match transport {
            Udp => "+notcp",
            Tcp => "+tcp",
            // Its clients ask until it answers.
            _ => return Ok(()),
        };
        let answer = self.kdig("client", resolver, &[how, "+short", ".", "SOA"]);
        match answer.trim() {
            "ns. hostmaster. 1 3600 600 86400 60" => Ok(()),
            _ => Err(format!("the answer is `{answer}`")),
        }
    }

    #[track_caller]
    fn started(&self, spec: &ServerSpec) -> RunningServer {
        let probe = |transport, _| self.knows_the_root(spec.address, transport);
        let _visit = self.visit("server");
        RunningServer::start(spec, &guard(), &probe, PATIENCE)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// A server that nobody waits for.
    #[track_caller]
    fn started_unasked(&self, spec: &ServerSpec) -> RunningServer {
        let _visit = self.visit("server");
        RunningServer::start(spec, &guard(), &|_, _| Ok(()), PATIENCE).unwrap()
    }

    /// Reads what the resolver counts, on its host.
    #[track_caller]
    fn count(&self, server: &RunningServer) -> CounterWatch {
        let _visit = self.visit("server");
        server.count().unwrap()
    }

    fn visit(&self, host: &str) -> Visit {
        Visit::to(self.hosts.network(host).unwrap()).unwrap()
    }

    /// The resolver knows the address of `alf.melmac.univ`.
    #[track_caller]
    fn knows_alf(&self, spec: &ServerSpec, transport: Transport) {
        let _visit = self.visit("client");
        let (folder, at) = (spec.directory.parent().unwrap(), spec.socket_address(transport));
        ask_for("alf.melmac.univ", "192.0.2.7", folder, (transport, at), PATIENCE.as_secs())
            .unwrap_or_else(|error| panic!("{} over {transport}: {error}", spec.kind));
    }

    /// Whether the answer of the resolver says that it is authenticated (the AD bit, RFC 4035, section 3.2.3);
    /// its response code if it is not NOERROR.
    fn asked(&self, spec: &ServerSpec, name: &str) -> Result<bool, String> {
        let answer = self.kdig("client", spec.address, &["+dnssec", name, "A"]);
        let status = answer.split("status: ").nth(1).and_then(|rest| rest.split(';').next());
        match status {
            Some("NOERROR") => {
                let flags = answer.lines().find(|line| line.contains("Flags:")).unwrap();
                Ok(flags.split(';').nth(2).unwrap().split_whitespace().any(|flag| flag == "ad"))
            }
            status => Err(status.unwrap_or(&answer).to_owned()),
        }
    }
}

#[track_caller]
fn stop(server: RunningServer) {
    let guard = parent(server.process().pid());
    let (kind, tail) = (server.facts().kind.clone(), server.log_tail(20));
    let report = server.stop().unwrap_or_else(|error| panic!("{error}"));
    assert!(report.requested && !report.killed, "{kind}: {report:?}: {tail:?}");
    assert!(groups_of(guard).is_empty());
}

/// Names are found by referral from the root, each transport of the clients works, and the counters tell.
fn resolves(internet: &Internet, spec: &ServerSpec) {
    let kind = spec.kind;
    let server = internet.started(spec);
    let (at_start, watch) = (internet.count(&server), internet.count(&server));
    for transport in &spec.transports {
        internet.knows_alf(spec, *transport);
    }
    let series = watch.finish(Instant::now());
    assert_eq!(series.failure, None, "{kind}");
    let asked = spec.transports.len() as u64;
    assert_eq!(series.growth(counter::QUERIES), Some(asked), "{kind}: {series:?}");
    // At least the referral to `melmac.univ` and the answer.
    let sent = series.growth(counter::UPSTREAM_QUERIES);
    assert!(sent.is_some_and(|sent| sent >= 2), "{kind}: {sent:?}: {series:?}");
    // The first query fills the cache.
    let hits = series.growth(counter::CACHE_HITS);
    assert!(hits.is_some_and(|hits| hits >= 1), "{kind}: {hits:?}: {series:?}");
    // An answer that UDP truncates comes over TCP.
    let large = internet.kdig("client", spec.address, &["+tcp", "large.melmac.univ", "TXT"]);
    assert_eq!(large.matches(&"x".repeat(200)).count(), 15, "{kind}: {large}");
    // What cannot be validated is answered.
    assert_eq!(internet.asked(spec, "bogus.melmac.univ"), Ok(false), "{kind}");
    assert_eq!(internet.asked(spec, "alf.melmac.univ"), Ok(false), "{kind}");
    assert_eq!(internet.asked(spec, "none.melmac.univ"), Err("NXDOMAIN".to_owned()), "{kind}");
    let failed = at_start.finish(Instant::now()).growth("answers.servfail");
    assert_eq!(failed, Some(0), "{kind}");
    stop(server);
}

/// Data with right signatures is authenticated, other data is not believed, and all of it depends on the
/// trust anchor.
fn validates(internet: &Internet, spec: &ServerSpec) {
    let kind = spec.kind;
    let validating = ServerSpec { trust_anchors: vec![internet.anchor.clone()], ..spec.clone() };
    let server = internet.started(&validating);
    let watch = internet.count(&server);
    assert_eq!(internet.asked(spec, "alf.melmac.univ"), Ok(true), "{kind}");
    let servfail = || Err("SERVFAIL".to_owned());
    assert_eq!(internet.asked(spec, "bogus.melmac.univ"), servfail(), "{kind}");
    let series = watch.finish(Instant::now());
    // PowerDNS Recursor does not count these among its answers with SERVFAIL.
    let name = match kind {
        ServerKind::PowerDnsRecursor => "answers.bogus",
        _ => "answers.servfail",
    };
    assert_eq!(series.growth(name), Some(1), "{kind}: {series:?}");
    stop(server);

    let (start, digest) = internet.anchor.rsplit_once(' ').unwrap();
    let other: String = digest.chars().map(|digit| if digit == '0' { '1' } else { '0' }).collect();
    let anchors = vec![format!("{start} {other}")];
    let misled = ServerSpec { trust_anchors: anchors, ..spec.clone() };
    let server = internet.started_unasked(&misled);
    assert_eq!(internet.asked(spec, "alf.melmac.univ"), servfail(), "{kind}");
    stop(server);
}

#[test]
fn every_resolver_follows_referrals() {
    let internet = Internet::start(Families::Both, false);
    for (kind, transports) in RESOLVERS {
        let folder = tempfile::tempdir().unwrap();
        resolves(&internet, &internet.resolver(kind, folder.path(), transports));
    }
}

#[test]
fn every_resolver_validates() {
    let internet = Internet::start(Families::Both, false);
    for (kind, _) in RESOLVERS {
        let folder = tempfile::tempdir().unwrap();
        validates(&internet, &internet.resolver(kind, folder.path(), &[Udp, Tcp]));
    }
}

/// The resolver's own host has an IPv4 address towards it, or an IPv6 address alone.
#[test]
fn every_resolver_reaches_servers_over_ipv6_alone() {
    for is_ipv6_link in [false, true] {
        let internet = Internet::start(Families::Ipv6, is_ipv6_link);
        for (kind, _) in RESOLVERS {
            let folder = tempfile::tempdir().unwrap();
            let spec = internet.resolver(kind, folder.path(), &[Udp, Tcp]);
            let server = internet.started(&spec);
            internet.knows_alf(&spec, Udp);
            internet.knows_alf(&spec, Tcp);
            stop(server);
        }
    }
}

/// The second start, even in the same folder, finds nothing of the first.
#[test]
fn caches_are_empty_at_each_start() {
    let internet = Internet::start(Families::Both, false);
    for (kind, _) in RESOLVERS {
        let folder = tempfile::tempdir().unwrap();
        let spec = internet.resolver(kind, folder.path(), &[Udp, Tcp]);
        for _ in 0..2 {
            let server = internet.started(&spec);
            let watch = internet.count(&server);
            internet.knows_alf(&spec, Udp);
            let series = watch.finish(Instant::now());
            let sent = series.growth(counter::UPSTREAM_QUERIES);
            assert!(sent.is_some_and(|sent| sent >= 2), "{kind}: {series:?}");
            stop(server);
        }
    }
}

/// Each resolver takes a bound for its cache, resolves with it, and tells it where it tells such things.
#[test]
fn caches_have_the_size_that_is_asked_for() {
    let internet = Internet::start(Families::Both, false);
    for (kind, _) in RESOLVERS {
        let folder = tempfile::tempdir().unwrap();
        let mut spec = internet.resolver(kind, folder.path(), &[Udp, Tcp]);
        let (size, other) = match kind {
            ServerKind::PowerDnsRecursor => (CacheSize::Entries(5_000), CacheSize::Mebibytes(32)),
            _ => (CacheSize::Mebibytes(48), CacheSize::Entries(5_000)),
        };
        spec.cache = other;
        let wrong = find(kind, None, &guard()).unwrap().can_start(&spec).unwrap_err();
        assert!(wrong.contains("does not bound its cache by"), "{kind}: {wrong}");
        spec.cache = size;
        let server = internet.started(&spec);
        internet.knows_alf(&spec, Udp);
        let output = |program, arguments: &[&str]| said(program, arguments, &spec.directory);
        match kind {
            ServerKind::Unbound => {
                let value = |option| {
                    output("unbound-control", &["-c", "unbound.conf", "get_option", option])
                };
                assert_eq!(value("msg-cache-size"), (16 << 20).to_string());
                assert_eq!(value("rrset-cache-size"), (32 << 20).to_string());
            }
            ServerKind::PowerDnsRecursor => {
                let value =
                    |name| output("rec_control", &["--socket-dir=.", "get-parameter", name]);
                assert_eq!(value("max-cache-entries"), "max-cache-entries=\"5000\"");
                assert_eq!(value("max-packetcache-entries"), "max-packetcache-entries=\"2500\"");
            }
            ServerKind::KnotResolver => {
                // The file has its size from the start.
                let file = spec.directory.join("data.mdb").metadata().unwrap().len();
                assert!(file <= 48 << 20, "{file}");
                assert_eq!(
                    ask_kresd(&spec.directory, "cache.current_size"),
                    (48 << 20).to_string()
                );
                let pid = server.process().pid();
                let collectors = || children(pid).filter(|name| name == "kres-cache-gc").count();
                wait_until("its garbage collector runs", || collectors() == 1);
                assert_eq!(children(pid).filter(|name| name == "kresd").count(), 2);
            }
            // BIND tells nobody.
            _ => {}
        }
        stop(server);
    }
}

/// The names of the programs that a process has started.
fn children(pid: u32) -> impl Iterator<Item = String> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let folder = entry.ok()?.path();
        let status = fs::read_to_string(folder.join("status")).ok()?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.trim().to_owned())
        };
        Some((field("PPid:")?, field("Name:")?))
    });
    processes.filter(move |(parent, _)| *parent == pid.to_string()).map(|(_, name)| name)
}

/// What one process of Knot Resolver says at its control socket.
fn ask_kresd(folder: &Path, what: &str) -> String {
    let mut names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let socket =
        names.find(|path| path.extension().is_some_and(|extension| extension == "ctl")).unwrap();
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(format!("{what}\n").as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.trim_matches(['>', ' ', '\n']).to_owned()
}

#[test]
fn bind_of_other_releases_resolves_in_its_root() {
    let internet = Internet::start(Families::Both, false);
    for release in ["bind-9.16", "bind-9.20"] {
        let folder = tempfile::tempdir().unwrap();
        let mut spec = internet.resolver(ServerKind::Bind, folder.path(), &[Udp, Tcp]);
        spec.root = Some(root(release));
        resolves(&internet, &spec);
        validates(&internet, &spec);
    }
}

/// Without root hints a resolver begins at the root servers of the Internet, and it takes IANA's trust anchors,
/// from which nothing here is believed.
#[test]
fn every_resolver_knows_the_root_servers_of_the_internet() {
    let internet = Internet::start(Families::Both, false);
    for (kind, _) in RESOLVERS {
        let folder = tempfile::tempdir().unwrap();
        let spec = internet.resolver(kind, folder.path(), &[Udp, Tcp]);
        let live = ServerSpec { root_hints: Some(RootHints::BuiltIn), ..spec };
        let server = internet.started(&live);
        internet.knows_alf(&live, Udp);
        stop(server);
        let trust_anchors = dnslab_lab::IANA_TRUST_ANCHORS.map(str::to_owned).to_vec();
        let validating = ServerSpec { trust_anchors, ..live };
        let server = internet.started_unasked(&validating);
        let answer = internet.asked(&validating, "alf.melmac.univ");
        assert_eq!(answer, Err("SERVFAIL".to_owned()), "{kind}");
        stop(server);
    }
}

#[test]
fn a_server_that_cannot_resolve_is_refused() {
    let at = ("127.0.0.1".parse().unwrap(), Ports::STANDARD);
    for kind in ServerKind::ALL {
        let directory = PathBuf::from("/nowhere");
        let mut spec = ServerSpec::new(kind, directory, at, &[Udp]);
        spec.root_hints = Some(RootHints::BuiltIn);
        let Ok(installed) = find(kind, None, &guard()) else { continue };
        assert_eq!(installed.can_start(&spec).is_ok(), kind.resolves(), "{kind}");
        if !kind.resolves() {
            let error = installed.can_start(&spec).map_err(LabError::Unsupported).unwrap_err();
            assert!(error.to_string().ends_with("does not resolve by itself here"), "{error}");
        }
    }
}
