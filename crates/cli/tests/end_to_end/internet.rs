//! `dnslab serve --hierarchy` as real resolvers see it: in one namespace the internet, in another Unbound and
//! BIND with its root hints and its trust anchor, and `dig` and `delv` in front of them.

use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use dnslab_internet::Internet;
use rustix::process::Signal;

use crate::command::{Guarded, Running, program, unshare};
use crate::host::Host;
use crate::processes::wait_for;
use crate::room::Room;

/// Nothing is wrong with its zones and nothing takes time; a third of the domains are signed.
const SOUND: &str = "seed = 3\n[path]\nmedian = \"0s\"\nanycast_median = \"0s\"\nslow_median = \"0s\"\nloss = 0\n\
                     [faults]\nlame = 0\ndead = 0\nslow = 0\n\
                     [dnssec]\ndomains = 0.3\nexpired = 0\ntop_level_algorithms = [[8, 1], [13, 1], [15, 1]]\n\
                     algorithms = [[8, 1], [13, 1], [15, 1]]\n";

const NAMES: u64 = 60;

/// Two hosts with a link: one with an internet, one with a resolver.
struct Hosts {
    internet: Host,
    resolver: Host,
}

impl Hosts {
    #[track_caller]
    fn make() -> Self {
        let internet = Host::make();
        let resolver = internet.another();
        let hosts = Self { internet, resolver };
        hosts.internet.run(&format!(
            "ip link add resolver type veth peer name internet netns {} && \
             ip address add 192.0.2.1/30 dev resolver && \
             ip address add 2001:db8::1/64 dev resolver nodad && ip link set resolver up && \
             ip route add local 198.18.0.0/15 dev lo && ip -6 route add local 2001:2::/48 dev lo",
            hosts.resolver.pid()
        ));
        hosts.resolver.run(
            "ip address add 192.0.2.2/30 dev internet && \
             ip address add 2001:db8::2/64 dev internet nodad && ip link set internet up && \
             ip route add 198.18.0.0/15 via 192.0.2.1 && ip -6 route add 2001:2::/48 via 2001:db8::1",
        );
        hosts
    }

    /// Output of a client on the resolver's host.
    #[track_caller]
    fn client(&self, program: &str, arguments: &[&str], folder: &Path) -> String {
        let output = self.resolver.command(program).args(arguments).current_dir(folder).output();
        let output = output.unwrap_or_else(|error| {
            panic!("{program}: {error}: apt-get install bind9-dnsutils util-linux")
        });
        String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr)
    }
}

/// Serves the internet of the file `internet.toml` on its host.
#[track_caller]
fn serve(room: &Room, hosts: &Hosts) -> Running {
    let mut command = hosts.internet.command(program());
    command.args(["serve", "--hierarchy", "internet.toml"]);
    let running = Running::start(command, room.path());
    let is_there =
        || (running.stderr().matches("serving UDP and TCP on").count() == 2).then_some(());
    wait_for("it serves", || running.so_far(), is_there);
    running
}

/// What resolvers need, in the folder `files`.
#[track_caller]
fn make_files(room: &Room, names: u64) {
    let names = names.to_string();
    let arguments = ["make", "internet", "internet.toml", "--folder", "files", "--names", &names];
    room.dnslab(&arguments).exits_with(0);
}

#[track_caller]
fn unbound(room: &Room, hosts: &Hosts, further: &str) -> Guarded {
    room.write(
        "unbound.conf",
        &format!(
            "server:\n interface: 127.0.0.1\n do-daemonize: no\n use-syslog: no\n username: \"\"\n \
             chroot: \"\"\n directory: \".\"\n pidfile: \"\"\n verbosity: 1\n val-log-level: 2\n \
             logfile: \"unbound.log\"\n root-hints: \"files/root.hints\"\n \
             trust-anchor-file: \"files/trust-anchor.key\"\n{further}\
             remote-control:\n control-enable: yes\n control-interface: \"{}\"\n control-use-cert: no\n",
            room.path().join("unbound.ctl").display()
        ),
    );
    let child = hosts
        .resolver
        .command("unbound")
        .args(["-d", "-c", "unbound.conf"])
        .current_dir(room.path())
        .stdin(Stdio::null())
        .spawn();
    let child = Guarded(child.unwrap_or_else(|error| panic!("nsenter: {error}")));
    wait_until_it_answers(room, hosts, "unbound.log");
    child
}

#[track_caller]
fn wait_until_it_answers(room: &Room, hosts: &Hosts, log: &str) {
    let log = || fs::read_to_string(room.path().join(log)).unwrap_or_default();
    wait_for("the resolver answers", log, || {
        let answer =
            hosts.client("dig", &["@127.0.0.1", "+tries=1", "+time=2", ".", "SOA"], room.path());
        answer.contains("status: NOERROR").then_some(())
    });
}

/// Status and whether the data are authentic, of each name.
#[track_caller]
fn ask_all(room: &Room, hosts: &Hosts, names: &[String]) -> Vec<(String, bool)> {
    let questions: Vec<String> = names.iter().map(|name| format!("{name} A")).collect();
    ask_questions(room, hosts, &questions)
}

/// Status and whether the data are authentic, of each question, which names its type.
#[track_caller]
fn ask_questions(room: &Room, hosts: &Hosts, questions: &[String]) -> Vec<(String, bool)> {
    room.write("asked", &(questions.join("\n") + "\n"));
    // Unbound drops answers that took long (discard-timeout), and has them when it is asked again.
    let arguments = ["@127.0.0.1", "+time=4", "+tries=10", "+dnssec", "-f", "asked"];
    let text = hosts.client("dig", &arguments, room.path());
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some((_, status)) = line.split_once("status: ") {
            found.push((status.split(',').next().unwrap().to_owned(), false));
        } else if let Some((_, flags)) = line.split_once(";; flags:") {
            let flags = flags.split(';').next().unwrap();
            found.last_mut().unwrap().1 = flags.split_whitespace().any(|flag| flag == "ad");
        }
    }
    assert_eq!(found.len(), questions.len(), "{text}");
    found
}

/// Each name that exists is found, each other is not, and what is signed is authentic.
#[track_caller]
fn check_names(room: &Room, hosts: &Hosts, log: &str) {
    let internet = Internet::parse(SOUND).unwrap();
    let names: Vec<String> = (0..NAMES).map(|i| internet.name(i).to_string()).collect();
    let mut counts = BTreeMap::new();
    for (i, found) in ask_all(room, hosts, &names).into_iter().enumerate() {
        let expected = if internet.exists(i as u64) { "NOERROR" } else { "NXDOMAIN" };
        let log = || fs::read_to_string(room.path().join(log)).unwrap_or_default();
        assert_eq!(found.0, expected, "{}: {}", names[i], log());
        *counts.entry(found).or_insert(0) += 1;
    }
    let count = |status: &str, authentic| counts.get(&(status.to_owned(), authentic)).copied();
    // Both kinds of domains are among these.
    assert!(count("NOERROR", true) > Some(3) && count("NOERROR", false) > Some(3), "{counts:?}");
}

#[test]
fn unbound_resolves_and_validates_and_dig_traces() {
    let room = Room::with_load();
    room.write("internet.toml", SOUND);
    let hosts = Hosts::make();
    let mut served = serve(&room, &hosts);
    make_files(&room, NAMES);
    let _unbound = unbound(&room, &hosts, "");
    check_names(&room, &hosts, "unbound.log");

    // `dig +trace` asks each server by itself, and the system's resolver for their addresses.
    let internet = Internet::parse(SOUND).unwrap();
    let host = (0..).find(|i| i % 4 == 1 && internet.exists(*i)).unwrap();
    let name = internet.name(host).to_string();
    room.write("resolv.conf", "nameserver 127.0.0.1\n");
    let script = format!(
        "mount --bind resolv.conf /etc/resolv.conf && dig @198.18.0.1 +trace +time=10 {name} A"
    );
    let mut command = hosts.resolver.command("unshare");
    let output =
        command.args(["--mount", "sh", "-c", &script]).current_dir(room.path()).output().unwrap();
    let trace = String::from_utf8_lossy(&output.stdout);
    let received: Vec<&str> = trace.lines().filter(|line| line.contains(";; Received")).collect();
    let from = |line: &&str| line.contains("#53(");
    assert!(received.len() >= 4 && received.iter().all(from), "{trace}");
    assert!(received[0].contains("198.18.0.1#53"), "{trace}");
    assert!(trace.contains("a.root-servers.") && trace.contains("RRSIG"), "{trace}");
    let answer = trace.lines().find(|line| line.starts_with(&name) && !line.contains("\tNS\t"));
    assert!(answer.is_some_and(|line| line.contains("\tA\t") || line.contains("CNAME")), "{trace}");

    // `delv` validates by itself what it gets through Unbound.
    let delv = |name: &str, rtype: &str| {
        let arguments = ["@127.0.0.1", "-a", "files/bind.keys", "+root=.", name, rtype];
        hosts.client("delv", &arguments, room.path())
    };
    let all = ask_all(
        &room,
        &hosts,
        &(0..NAMES).map(|i| internet.name(i).to_string()).collect::<Vec<_>>(),
    );
    let signed = (0..NAMES).find(|i| all[*i as usize] == ("NOERROR".to_owned(), true)).unwrap();
    let name = internet.name(signed).to_string();
    assert!(delv(&name, "A").contains("; fully validated"), "{}", delv(&name, "A"));
    let absent = delv(&format!("nothing.{}", internet.name(signed / 4 * 4)), "A");
    assert!(absent.contains("; negative response, fully validated"), "{absent}");
    for (name, rtype) in [("nowhere-at-all", "A"), ("root-servers", "A"), ("com", "DS")] {
        let text = delv(name, rtype);
        assert!(text.contains("fully validated"), "{name} {rtype}: {text}");
    }

    // Over IPv6 and TCP too.
    let arguments = ["@2001:2::1", "+tcp", "+norec", ".", "NS", "+short"];
    let text = hosts.client("dig", &arguments, room.path());
    assert_eq!(text.lines().count(), 13, "{text}");
    let arguments = ["@2001:2::2", "+norec", ".", "NS", "+short"];
    let text = hosts.client("dig", &arguments, room.path());
    assert_eq!(text.lines().count(), 13, "{text}");

    served.signal(Signal::TERM);
    served.finish().exits_with(0).complains("udp: ");
}

/// BIND's configuration, with further options.
fn named_conf(options: &str) -> String {
    format!(
        "options {{ directory \".\"; pid-file \"named.pid\"; session-keyfile \"session.key\";
             managed-keys-directory \".\"; recursion yes; dnssec-validation yes;
             listen-on-v6 {{ none; }}; listen-on {{ 127.0.0.1; }}; {options} }};
         controls {{ }};
         statistics-channels {{ inet 127.0.0.1 port 8053; }};
         include \"files/bind.keys\";
         zone \".\" {{ type hint; file \"files/root.hints\"; }};"
    )
}

#[test]
fn bind_resolves_and_validates() {
    let room = Room::with_load();
    room.write("internet.toml", SOUND);
    let hosts = Hosts::make();
    let _served = serve(&room, &hosts);
    make_files(&room, NAMES);
    let configuration = named_conf("");
    room.write("named.conf", &configuration);
    let child = hosts
        .resolver
        .command("named")
        .args(["-g", "-n", "1", "-c", "named.conf"])
        .current_dir(room.path())
        .stdin(Stdio::null())
        .stderr(fs::File::create(room.path().join("log")).unwrap())
        .spawn();
    let _named = Guarded(child.unwrap());
    wait_until_it_answers(&room, &hosts, "log");
    check_names(&room, &hosts, "log");
    let log = fs::read_to_string(room.path().join("log")).unwrap();
    assert!(!log.contains("checkhints"), "the hints are not those of the root: {log}");
}

const KRESD: [&str; 6] = ["/usr/sbin/kresd", "-n", "-q", "-c", "configuration", "."];

/// Knot Resolver's configuration in an internet.
fn kresd_conf(description: &str) -> String {
    let key = Internet::parse(description).unwrap().trust_anchor().unwrap().dnskey;
    format!(
        "net.listen('127.0.0.1', 53, {{ kind = 'dns' }})\n\
         for _, name in ipairs({{'ta_update', 'ta_signal_query', 'ta_sentinel', 'detect_time_skew'}}) do \
         modules.unload(name) end\n\
         trust_anchors.remove('.')\ntrust_anchors.add('{key}')\n\
         modules.load('hints')\nhints.root_file('files/root.hints')\ncache.size = 10*MB\n"
    )
}

#[test]
fn knot_resolver_resolves_and_validates() {
    another_resolver(&KRESD, &kresd_conf(SOUND));
}

const PDNS_RECURSOR: [&str; 10] = [
    "/usr/sbin/pdns_recursor",
    "--config-dir=.",
    "--local-address=127.0.0.1",
    "--hint-file=files/root.hints",
    "--dnssec=validate",
    "--lua-config-file=configuration",
    "--socket-dir=.",
    "--daemon=no",
    "--dont-query=",
    "--security-poll-suffix=",
];

/// The trust anchor of an internet for PowerDNS Recursor. Its configuration is its command line.
fn recursor_lua(description: &str) -> String {
    let ds = Internet::parse(description).unwrap().trust_anchor().unwrap().ds;
    let (_, data) = ds.split_once(" DS ").unwrap();
    format!("clearTA('.') addTA('.', '{data}')\n")
}

#[test]
fn pdns_recursor_resolves_and_validates() {
    another_resolver(&PDNS_RECURSOR, &recursor_lua(SOUND));
}

/// Nothing is wrong and nothing takes time, and every kind of zone is signed in every way.
const EVERY_KIND: &str = "seed = 7\n[path]\nmedian = \"0s\"\nanycast_median = \"0s\"\nslow_median = \"0s\"\nloss = 0\n\
     [faults]\nlame = 0\ndead = 0\nslow = 0\nedns_formerr = 0\nedns_ignored = 0\n\
     [operators]\ncookies = 0.5\n\
     [names]\ndeep = 0.3\nservices = 0.5\ndmarc = 0.5\ncaa = 0.5\nhttps = 0.5\ntruncated = 0.02\n\
     [top_level]\nnsec = 0.3\nopt_out = 0.5\n\
     [dnssec]\ndomains = 0.6\nexpired = 0\nnsec3 = 0.5\nopt_out = 0.3\n\
     top_level_algorithms = [[8, 1], [13, 1], [15, 1]]\nalgorithms = [[8, 1], [13, 1], [15, 1]]\n";

/// Asks for names of all kinds, at first for what is not there: a resolver that keeps the proofs uses them for what
/// is there afterwards (RFC 8198). How many answers are authentic.
#[track_caller]
fn check_every_kind(room: &Room, hosts: &Hosts, log: &str) -> usize {
    const TYPES: [(&str, u16); 12] = [
        ("A", 1),
        ("NS", 2),
        ("SOA", 6),
        ("PTR", 12),
        ("MX", 15),
        ("TXT", 16),
        ("AAAA", 28),
        ("SRV", 33),
        ("DS", 43),
        ("DNSKEY", 48),
        ("HTTPS", 65),
        ("CAA", 257),
    ];
    let internet = Internet::parse(EVERY_KIND).unwrap();
    let mut asked = Vec::new();
    for number in 0..NAMES {
        for (rtype, code) in [("A", 1), ("HTTPS", 65), ("PTR", 12)] {
            asked.push((format!("{} {rtype}", internet.missing_name(number, code)), "NXDOMAIN"));
        }
        let random = internet.random_name(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        asked.push((format!("{random} A"), "NXDOMAIN"));
    }
    for rank in 0..NAMES / 2 {
        // The last types first: of these most names have none.
        for (rtype, code) in TYPES.iter().rev() {
            asked.push((format!("{} {rtype}", internet.existing_name(rank, *code)), "NOERROR"));
        }
    }
    for rank in NAMES / 2..4 * NAMES {
        asked.push((format!("{} PTR", internet.existing_name(rank, 12)), "NOERROR"));
    }
    let questions: Vec<String> = asked.iter().map(|(question, _)| question.clone()).collect();
    let found = ask_questions(room, hosts, &questions);
    let log = || fs::read_to_string(room.path().join(log)).unwrap_or_default();
    for ((question, expected), (status, _)) in asked.iter().zip(&found) {
        assert_eq!(status, expected, "{question}: {}", log());
    }
    found.iter().filter(|(_, authentic)| *authentic).count()
}

/// The number after a name in lines of counters.
fn counter(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(name));
    let digits = line.map(|rest| rest.trim_matches([' ', '=', ':', '"', ',', '\t']));
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[test]
fn unbound_finds_no_fault_with_any_kind_of_answer() {
    let room = Room::with_load();
    room.write("internet.toml", EVERY_KIND);
    let hosts = Hosts::make();
    let _served = serve(&room, &hosts);
    make_files(&room, NAMES);
    let further = " aggressive-nsec: yes\n qname-minimisation: yes\n qname-minimisation-strict: yes\n \
                   extended-statistics: yes\n log-servfail: yes\n harden-below-nxdomain: yes\n \
                   harden-referral-path: yes\n";
    let _unbound = unbound(&room, &hosts, further);
    let authentic = check_every_kind(&room, &hosts, "unbound.log");
    let log = fs::read_to_string(room.path().join("unbound.log")).unwrap();
    for fault in ["lame", "SERVFAIL", "validation failure", "FORMERR", "error:", "bogus"] {
        assert!(!log.contains(fault), "{fault}: {log}");
    }
    let text =
        hosts.client("unbound-control", &["-c", "unbound.conf", "stats_noreset"], room.path());
    let count = |name: &str| counter(&text, name);
    assert_eq!((count("num.answer.bogus"), count("num.rrset.bogus")), (0, 0), "{text}");
    assert!(count("num.answer.secure") > 100 && authentic > 100, "{text}");
    assert!(count("num.query.aggressive.NXDOMAIN") > 0, "{text}");
    assert_eq!(count("num.answer.rcode.SERVFAIL"), 0, "{text}");
}

#[test]
fn bind_finds_no_fault_with_any_kind_of_answer() {
    for options in ["synth-from-dnssec yes;", "synth-from-dnssec yes; qname-minimization strict;"] {
        let room = Room::with_load();
        room.write("internet.toml", EVERY_KIND);
        let hosts = Hosts::make();
        let _served = serve(&room, &hosts);
        make_files(&room, NAMES);
        room.write("named.conf", &named_conf(options));
        let program = ["named", "-g", "-n", "1", "-c", "named.conf"];
        let _named = start_resolver(&room, &hosts, &program, "");
        let authentic = check_every_kind(&room, &hosts, "log");
        assert!(authentic > 100, "{authentic}");
        let log = fs::read_to_string(room.path().join("log")).unwrap();
        let faults = [
            "lame",
            "broken trust chain",
            "no valid",
            "FORMERR",
            "SERVFAIL",
            "REFUSED",
            "after disabling",
            "after reducing",
            "timed out",
            "unexpected",
        ];
        for fault in faults {
            assert!(!log.contains(fault), "{options} {fault}: {log}");
        }
        let ask = "exec 3<>/dev/tcp/127.0.0.1/8053; printf 'GET /json/v1/server HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3";
        let text = hosts.client("bash", &["-c", ask], room.path());
        let (_, resolver) = text.split_once("\"resolver\":").unwrap_or_else(|| panic!("{text}"));
        let count = |name: &str| counter(resolver, &format!("\"{name}\""));
        for fault in [
            "FORMERR",
            "SERVFAIL",
            "REFUSED",
            "OtherError",
            "EDNS0Fail",
            "Mismatch",
            "Lame",
            "ValFail",
        ] {
            assert_eq!(count(fault), 0, "{options} {fault}: {resolver}");
        }
        assert!(count("ValOk") > 100 && count("ServerCookieOut") > 0, "{resolver}");
        let synthesized = counter(&text, "\"SynthNXDOMAIN\"");
        assert!(synthesized > 0, "{text}");
    }
}

#[test]
fn knot_resolver_finds_no_fault_with_any_kind_of_answer() {
    let room = Room::with_load();
    room.write("internet.toml", EVERY_KIND);
    let hosts = Hosts::make();
    let _served = serve(&room, &hosts);
    make_files(&room, NAMES);
    let configuration = kresd_conf(EVERY_KIND) + "modules.load('bogus_log')\n";
    let _kresd = start_resolver(&room, &hosts, &KRESD, &configuration);
    let authentic = check_every_kind(&room, &hosts, "log");
    assert!(authentic > 100, "{authentic}");
    let log = fs::read_to_string(room.path().join("log")).unwrap();
    for fault in ["bogus", "validation failed", "error", "mismatch"] {
        assert!(!log.to_lowercase().contains(fault), "{fault}: {log}");
    }
}

#[test]
fn pdns_recursor_finds_no_fault_with_any_kind_of_answer() {
    let room = Room::with_load();
    room.write("internet.toml", EVERY_KIND);
    let hosts = Hosts::make();
    let _served = serve(&room, &hosts);
    make_files(&room, NAMES);
    let program: Vec<&str> = PDNS_RECURSOR.into_iter().chain(["--dnssec-log-bogus=yes"]).collect();
    let _recursor = start_resolver(&room, &hosts, &program, &recursor_lua(EVERY_KIND));
    let authentic = check_every_kind(&room, &hosts, "log");
    assert!(authentic > 100, "{authentic}");
    let text = hosts.client("rec_control", &["--socket-dir=.", "get-all"], room.path());
    let count = |name: &str| counter(&text, name);
    let faults = [
        "server-parse-errors",
        "unreachables",
        "case-mismatches",
        "spoof-prevents",
        "servfail-answers",
        "resource-limits",
        "dnssec-result-bogus",
        "noedns-outqueries",
    ];
    for fault in faults {
        assert_eq!(count(fault), 0, "{fault}: {text}");
    }
    assert!(count("dnssec-result-secure") > 100, "{text}");
    let hits = count("aggressive-nsec-cache-nsec-hits") + count("aggressive-nsec-cache-nsec3-hits");
    assert!(hits > 0, "{text}");
}

/// Runs a resolver with the text `configuration` as the file of that name, and asks it for all names.
#[track_caller]
fn another_resolver(program: &[&str], configuration: &str) {
    let room = Room::with_load();
    room.write("internet.toml", SOUND);
    let hosts = Hosts::make();
    let _served = serve(&room, &hosts);
    make_files(&room, NAMES);
    let _resolver = start_resolver(&room, &hosts, program, configuration);
    check_names(&room, &hosts, "log");
}

/// A resolver whose output is the file `log`.
#[track_caller]
fn start_resolver(room: &Room, hosts: &Hosts, program: &[&str], configuration: &str) -> Guarded {
    room.write("configuration", configuration);
    let log = fs::File::create(room.path().join("log")).unwrap();
    let child = hosts
        .resolver
        .command(program[0])
        .args(&program[1..])
        .current_dir(room.path())
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn();
    let resolver = Guarded(child.unwrap());
    wait_until_it_answers(room, hosts, "log");
    resolver
}

/// Asks Unbound for domains of an internet; how many have each status.
#[track_caller]
fn statuses(text: &str) -> BTreeMap<(String, bool), u32> {
    let room = Room::with_load();
    room.write("internet.toml", text);
    let hosts = Hosts::make();
    let _served = serve(&room, &hosts);
    make_files(&room, NAMES);
    let _unbound = unbound(&room, &hosts, "");
    let internet = Internet::parse(text).unwrap();
    let names: Vec<String> = (0..NAMES).map(|i| internet.name(i * 4).to_string()).collect();
    let mut counts = BTreeMap::new();
    for found in ask_all(&room, &hosts, &names) {
        *counts.entry(found).or_insert(0) += 1;
    }
    counts
}

/// A server that is lame, dead, slow or older than EDNS leaves others that answer.
#[test]
fn a_resolver_copes_with_servers_that_are_wrong() {
    let counts = statuses(
        "seed = 5\n[path]\nmedian = \"1ms\"\nanycast_median = \"1ms\"\nslow_median = \"100ms\"\n\
         [faults]\nlame = 0.2\ndead = 0.1\nslow = 0.1\nedns_formerr = 0.1\nedns_ignored = 0.1\nwhole = 0\n\
         [names]\nabsent = 0\ntruncated = 0.2\n[operators]\nservers_per_zone = [[3, 1]]\n\
         [dnssec]\ntop_level = 1\ndomains = 0.3\nexpired = 0\n",
    );
    let count = |status: &str, authentic| {
        counts.get(&(status.to_owned(), authentic)).copied().unwrap_or_default()
    };
    assert!(count("NOERROR", true) > 0, "{counts:?}");
    assert_eq!(u64::from(count("NOERROR", true) + count("NOERROR", false)), NAMES, "{counts:?}");
}

#[test]
fn expired_signatures_are_refused() {
    let counts = statuses(
        "seed = 6\n[path]\nmedian = \"0s\"\nanycast_median = \"0s\"\nloss = 0\n\
         [faults]\nlame = 0\ndead = 0\nslow = 0\nwhole = 0\n[names]\nabsent = 0\n\
         [dnssec]\ntop_level = 1\ndomains = 0.6\nexpired = 0.5\n",
    );
    let count = |status: &str, authentic| {
        counts.get(&(status.to_owned(), authentic)).copied().unwrap_or_default()
    };
    // Of 60 names 40 % are not signed, 30 % rightly, 30 % with signatures that have expired. Five standard
    // deviations are 18.
    let expired = count("SERVFAIL", false);
    assert!((1..36).contains(&expired), "{counts:?}");
    assert!(count("NOERROR", true) > 0 && count("NOERROR", false) > 0, "{counts:?}");
    let found = expired + count("NOERROR", true) + count("NOERROR", false);
    assert_eq!(u64::from(found), NAMES, "{counts:?}");
}

#[test]
fn addresses_that_are_not_local_are_named_with_the_command() {
    let room = Room::quiet();
    room.write("internet.toml", SOUND);
    let mut command = unshare();
    command.arg("--net").arg(program()).args(["serve", "--hierarchy", "internet.toml"]);
    let done = Running::start(command, room.path()).finish().exits_with(1).errors(1);
    let done = done.complains("198.18.0.1 of 198.18.0.0/15 is not an address of this host");
    done.complains("ip route add local 198.18.0.0/15 dev lo");
    room.write("wrong.toml", "seed = 1\n[names]\nttl = 3\n");
    let done = room.dnslab(&["serve", "--hierarchy", "wrong.toml"]).exits_with(2);
    done.complains("line 3").complains("wrong.toml");
    let done =
        room.dnslab(&["serve", "--hierarchy", "internet.toml", "--listen", "127.0.0.1:5300"]);
    done.exits_with(2);
}

/// Loopback needs no route: all of it is local.
const LOOPBACK: &str = "[network]\nipv4 = \"127.0.0.0/8\"\nipv6 = \"none\"\n";

fn answers(room: &Room) -> Vec<Vec<u8>> {
    let free = dnslab_lab::ports::free([127, 0, 0, 1].into()).unwrap();
    let port = free.plain.to_string();
    let arguments = ["serve", "--hierarchy", "internet.toml", "--port", &port];
    let running = room.start(&arguments);
    let is_there = || running.stderr().contains("serving UDP and TCP on").then_some(());
    wait_for("it serves", || running.so_far(), is_there);
    let internet = Internet::parse(&format!("{SOUND}{LOOPBACK}")).unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut all = Vec::new();
    for i in 0..40 {
        let mut query = b"\x12\x34\0\0\0\x01\0\0\0\0\0\x01".to_vec();
        query.extend_from_slice(internet.name(i).octets());
        query.extend_from_slice(b"\0\x01\0\x01\0\0\x29\x04\xd0\0\0\x80\0\0\0");
        for address in ["127.0.0.1", "127.0.0.14", "127.0.0.40"] {
            client.send_to(&query, (address, free.plain)).unwrap();
            let mut answer = [0; 4096];
            let (length, from) = client.recv_from(&mut answer).unwrap();
            assert_eq!(from.ip().to_string(), address);
            all.push(answer[..length].to_vec());
        }
    }
    all
}

#[test]
fn two_runs_with_one_seed_give_equal_octets() {
    let room = Room::quiet();
    // Signatures of ECDSA have a random part.
    let internet = format!("{SOUND}{LOOPBACK}").replace("[13, 1], ", "");
    room.write("internet.toml", &internet);
    assert_eq!(answers(&room), answers(&room));
}

/// The root is the one zone that can be written; its signatures are right in the eyes of BIND.
#[test]
fn the_root_zone_is_signed_as_a_whole() {
    let room = Room::quiet();
    room.write("internet.toml", SOUND);
    make_files(&room, 10);
    let output = Command::new("dnssec-verify")
        .args(["-z", "-o", ".", "files/root.zone"])
        .current_dir(room.path())
        .output()
        .unwrap_or_else(|error| panic!("dnssec-verify: {error}: apt-get install bind9-utils"));
    assert!(output.status.success(), "{output:?}");
    // And in the eyes of ldns: the clock is within the validity, and each name is in the chain.
    let output = Command::new("ldns-verify-zone")
        .args(["-V", "2", "-k", "files/trust-anchor.key", "files/root.zone"])
        .current_dir(room.path())
        .output()
        .unwrap_or_else(|error| panic!("ldns-verify-zone: {error}: apt-get install ldnsutils"));
    assert!(output.status.success(), "{output:?}");
    let names = fs::read_to_string(room.path().join("files/names")).unwrap();
    assert_eq!(names.lines().count(), 10);
    // A second time nothing is overwritten.
    let arguments = ["make", "internet", "internet.toml", "--folder", "files"];
    room.dnslab(&arguments).exits_with(2).complains("--force");
}
