//! Right and wrong chains of servers and their hosts.

use std::time::Duration;

use dnslab_settings::{
    ChainRole, HostsChoice, Link, Log, LogTarget, Problem, Queries, ServerKind, UpstreamChoice,
    Variant, check_text,
};
use dnslab_wire::Transport;

fn text(lines: &str) -> String {
    format!("name = \"x\"\n{lines}\n[[variant]]\nname = \"a\"\n")
}

fn checked(lines: &str) -> Variant {
    let text = text(lines);
    check_text(&text, &[])
        .unwrap_or_else(|problems| panic!("{lines}: {problems}"))
        .variants
        .remove(0)
}

const FORWARDER: &str = "server.kind = \"unbound\"\nupstream.kind = \"embedded\"\n";

#[test]
fn a_chain_has_its_order_and_its_presets() {
    let variant = checked(
        "server.kind = \"unbound\"\nrelay.kind = \"unbound\"\nupstream.kind = \"bind\"\n\
         upstream.transport = \"dot\"\nlab.hosts = \"namespaces\"\nlink.upstream.delay = \"10ms\"\n\
         link.upstream.rate_mbit = 100\nserver.address = \"::1\"",
    );
    let roles: Vec<_> = variant.behind().iter().map(|part| (part.role, part.transport)).collect();
    let expected = [(ChainRole::Relay, Transport::Udp), (ChainRole::Upstream, Transport::Dot)];
    assert_eq!(roles, expected);
    assert_eq!(variant.lab.hosts, HostsChoice::Namespaces);
    let plain = Link { delay: Duration::ZERO, jitter: Duration::ZERO, loss: 0.0, rate_mbit: None };
    let slow = Link { delay: Duration::from_millis(10), rate_mbit: Some(100), ..plain };
    assert_eq!((variant.client_link.link(), variant.upstream_link.link()), (plain, slow));
    assert_eq!(variant.upstream.kind, Some(UpstreamChoice::Server(ServerKind::Bind)));
    assert!(variant.server.address.ip().is_ipv6());
    assert!(checked("").behind().is_empty());
}

const INTERNET: &str =
    "upstream.kind = \"internet\"\nlab.hosts = \"namespaces\"\nload.popular_names = 9\n";

#[test]
fn a_resolver_has_an_internet_behind_it() {
    for kind in ["bind", "unbound", "knot-resolver", "pdns-recursor"] {
        let server = format!("server.kind = \"{kind}\"\nserver.dnssec = true\n");
        let private = checked(&format!(
            "{server}{INTERNET}upstream.hierarchy = \"h.toml\"\nupstream.delay = \"1ms\""
        ));
        assert!(private.resolves() && private.server.dnssec);
        assert_eq!(private.load.recursion_desired, Some(true));
        let [end] = private.behind().try_into().unwrap();
        let expected = (ChainRole::Upstream, Some(ServerKind::Embedded), Transport::Udp);
        assert_eq!((end.role, end.kind, end.transport), expected);
        assert_eq!(private.upstream.hierarchy.unwrap().to_str(), Some("h.toml"));
        let live = format!("{server}upstream.kind = \"live\"\nload.queries = \"names.txt\"");
        let live = checked(&live);
        assert!(live.resolves() && live.behind().is_empty(), "{kind}");
    }
    assert!(!checked(FORWARDER).resolves() && !checked("").resolves());
}

#[test]
fn popular_names_are_asked_for_once_each() {
    let variant = checked(&format!(
        "{FORWARDER}load.popular_names = 2_000\nload.queries_in_all = 2_000\n\
         upstream.queries_per_connection = 200\nupstream.signed = true\nserver.dnssec = true"
    ));
    assert_eq!(variant.load.asked(), Queries::Popular(2_000));
    assert_eq!(variant.load.queries_in_all, Some(2_000));
    let upstream = &variant.upstream;
    assert_eq!(upstream.queries_per_connection, Some(200));
    assert!(upstream.signed && upstream.tickets && variant.server.dnssec);
}

#[test]
fn what_cannot_stand_in_a_chain_is_told() {
    for (lines, expected) in [
        ("server.kind = \"unbound\"", "a server of kind `unbound` needs an upstream"),
        ("upstream.kind = \"bind\"", "a server of kind `embedded` forwards nothing"),
        ("server.kind = \"nsd\"\nupstream.kind = \"bind\"", "of kind `nsd` forwards nothing"),
        ("server.kind = \"unbound\"\nupstream.kind = \"unbound\"", "cannot end the chain"),
        ("server.kind = \"bind\"\nrelay.kind = \"unbound\"", "a relay needs an upstream"),
        (&format!("{FORWARDER}relay.kind = \"knot\""), "cannot be a relay"),
        (
            &format!("server.kind = \"dnsmasq\"\n{INTERNET}"),
            "of kind `dnsmasq` does not resolve by itself: it forwards",
        ),
        (
            &format!("server.kind = \"nsd\"\n{INTERNET}"),
            "of kind `nsd` does not resolve: it answers",
        ),
        (
            "server.kind = \"external\"\nserver.address = \"192.0.2.1\"\nupstream.kind = \"live\"",
            "a server that runs already resolves where it was told to",
        ),
        (
            "server.kind = \"bind\"\nupstream.kind = \"internet\"",
            "a private Internet needs a host of its own: it answers on port 53 of all addresses of 198.18",
        ),
        (
            "server.kind = \"bind\"\nupstream.kind = \"internet\"\nlab.hosts = \"auto\"",
            "a private Internet needs a host of its own",
        ),
        (
            "server.kind = \"bind\"\nupstream.kind = \"live\"\nlab.hosts = \"auto\"",
            "a host in a namespace does not reach the Internet",
        ),
        (
            "server.kind = \"bind\"\nupstream.kind = \"live\"",
            "nobody on the Internet knows the names of the synthetic zone",
        ),
        (
            &format!("server.kind = \"bind\"\nrelay.kind = \"dnsmasq\"\n{INTERNET}"),
            "a server that resolves by itself asks no relay",
        ),
        (
            &format!("server.kind = \"bind\"\nupstream.transport = \"dot\"\n{INTERNET}"),
            "`upstream.transport` has no effect: a server that resolves by itself decides how",
        ),
        (
            &format!("server.kind = \"bind\"\nupstream.binary = \"./named\"\n{INTERNET}"),
            "`upstream.binary` has no effect: the private Internet is dnslab itself",
        ),
        (
            &format!("server.kind = \"bind\"\nupstream.signed = true\n{INTERNET}"),
            "`upstream.signed` has no effect: an upstream of kind `internet` does not know it",
        ),
        (
            "server.kind = \"bind\"\nupstream.kind = \"internet\"\nlab.hosts = \"namespaces\"",
            "nobody in the private Internet knows the names of the synthetic zone",
        ),
        (
            "server.kind = \"bind\"\nupstream.kind = \"live\"\nupstream.threads = 2",
            "`upstream.threads` has no effect: dnslab does not start the servers of the Internet",
        ),
        (
            &format!("{FORWARDER}upstream.hierarchy = \"h.toml\""),
            "`upstream.hierarchy` has no effect: there is no private Internet",
        ),
        ("upstream.threads = 2", "`upstream.threads` has no effect: there is no upstream"),
        ("relay.extra = \"x\"", "`relay.extra` has no effect: there is no relay"),
        (
            "server.kind = \"unbound\"\nupstream.kind = \"bind\"\nupstream.busy = \"1us\"",
            "`upstream.busy` has no effect: an upstream of kind `bind` does not know it",
        ),
        (
            "server.kind = \"unbound\"\nupstream.kind = \"bind\"\nupstream.delay = \"5ms\"",
            "`upstream.delay` has no effect: an upstream of kind `bind` does not know it",
        ),
        (
            &format!("{FORWARDER}upstream.binary = \"./named\""),
            "`upstream.binary` has no effect: the embedded server is dnslab itself",
        ),
        ("link.server.delay = \"5ms\"", "`link.server.delay` has no effect: links need hosts"),
        (
            "lab.hosts = \"auto\"\nlink.server.jitter = \"5ms\"",
            "the jitter of a link is larger than its delay",
        ),
        (
            "server.kind = \"external\"\nserver.address = \"192.0.2.1\"\nlab.hosts = \"auto\"",
            "an external server has no host here",
        ),
        (
            &format!("server.kind = \"bind\"\nserver.cache = 5\n{INTERNET}"),
            "BIND bounds its cache by memory, not by entries",
        ),
        (
            &format!("server.kind = \"pdns-recursor\"\nserver.cache = \"5MiB\"\n{INTERNET}"),
            "PowerDNS Recursor bounds its cache by entries, not by memory",
        ),
        (
            "server.kind = \"stubby\"\nserver.cache = 5\nupstream.kind = \"embedded\"",
            "Stubby has no cache",
        ),
        ("load.popular_names = 5", "popular names need a server that knows them"),
        (&format!("{FORWARDER}upstream.signed = true"), "synthetic zone are not signed"),
        (&format!("{FORWARDER}server.dnssec = true"), "needs an upstream with signatures"),
        ("server.dnssec = true", "`server.dnssec` does not fit a server of kind `embedded`"),
        ("server.dnstap = true", "`server.dnstap` does not fit a server of kind `embedded`"),
        ("server.log.to = \"null\"", "`server.log.to` does not fit a server of kind `embedded`"),
        (
            "server.kind = \"bind\"\nserver.query_log = true\nserver.log.to = \"syslog\"",
            "`server.query_log` and `server.log.to` say the same",
        ),
        (
            "server.kind = \"bind\"\nserver.log.to = \"syslog\"\nserver.log.size_mib = 5",
            "`server.log.size_mib` has no effect: no query log goes into a file",
        ),
        (
            "server.kind = \"bind\"\nserver.log.to = \"file\"\nserver.log.versions = 3",
            "`server.log.versions` has no effect: no file is rotated",
        ),
        (
            "server.kind = \"bind\"\nserver.log.print_time = \"none\"",
            "`server.log.print_time` has no effect: there is no query log",
        ),
        (
            &format!("{FORWARDER}load.popular_names = 5\nload.queries = \"q\""),
            "`load.queries` and `load.popular_names` exclude each other",
        ),
        (
            &format!("{FORWARDER}load.popular_names = 5\nload.types = \"AAAA\""),
            "`load.types` is for the names of the zone: popular names",
        ),
    ] {
        let problems = check_text(&text(lines), &[]).unwrap_err();
        let all: Vec<&str> =
            problems.as_slice().iter().map(|problem| problem.message.as_str()).collect();
        assert!(all.iter().any(|message| message.contains(expected)), "{lines}\n{all:?}");
    }
}

const EXTERNAL: &str = "server.kind = \"unbound\"\nupstream.kind = \"external\"\n";

#[track_caller]
fn asks_upstream(lines: &str, transport: &str, addresses: &[&str], name: Option<&str>) {
    let lines = format!("{EXTERNAL}upstream.transport = \"{transport}\"\n{lines}");
    let variant = checked(&lines);
    let found = variant.external_upstream().unwrap();
    let found_at: Vec<String> = found.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(
        (found_at.iter().map(String::as_str).collect::<Vec<_>>(), found.tls_name),
        (addresses.to_vec(), name)
    );
    assert!(variant.forwards() && !variant.resolves() && variant.behind().is_empty());
}

#[test]
fn an_upstream_may_run_already() {
    asks_upstream("upstream.address = \"192.0.2.1\"", "udp", &["192.0.2.1:53"], None);
    asks_upstream(
        "upstream.address = \"[2001:db8::1]:5300\"",
        "tcp",
        &["[2001:db8::1]:5300"],
        None,
    );
    let named = "upstream.tls_name = \"dns.example\"\n";
    let both =
        "upstream.address = \"192.0.2.1\"\nupstream.further = \"192.0.2.2, [2001:db8::2]:8853\"";
    let expected = ["192.0.2.1:853", "192.0.2.2:853", "[2001:db8::2]:8853"];
    asks_upstream(&format!("{named}{both}"), "dot", &expected, Some("dns.example"));
    let relayed = checked(&format!(
        "{EXTERNAL}upstream.address = \"192.0.2.1:5300\"\nrelay.kind = \"dnsmasq\"\nserver.dnssec = true\n\
         lab.hosts = \"auto\"\nload.queries = \"q\""
    ));
    assert_eq!(relayed.behind().len(), 1);
    assert!(relayed.external_upstream().is_some());
}

/// What a file says of an upstream is no slip if the command line puts one that runs in its place.
#[test]
fn an_upstream_of_a_file_gives_way_to_one_that_runs() {
    let text = text(&format!("{FORWARDER}upstream.delay = \"5ms\"\nload.popular_names = 5"));
    let sets = ["upstream.kind=external", "upstream.address=192.0.2.1", "load.queries=names"];
    let variant = check_text(&text, &sets).unwrap().variants.remove(0);
    assert_eq!((variant.upstream.delay, variant.load.popular_names), (None, None));
    // On the command line it is one.
    let slip = [&sets[..], &["upstream.loss=1%"]].concat();
    let problems = check_text(&text, &slip).unwrap_err().to_string();
    assert!(problems.contains("`upstream.loss` has no effect"), "{problems}");
}

#[test]
fn upstreams_that_run_already_are_refused_with_a_remedy() {
    let at = "upstream.address = \"192.0.2.1\"\n";
    for (lines, message, help) in [
        (
            EXTERNAL.to_owned(),
            "an external upstream needs `upstream.address`",
            "add for example `upstream.address = \"192.0.2.1\"`",
        ),
        (
            format!("{EXTERNAL}{at}lab.hosts = \"namespaces\""),
            "a host in a namespace does not reach an upstream that runs already",
            "remove `lab.hosts`, or write \"auto\"",
        ),
        (
            format!("{EXTERNAL}{at}upstream.transport = \"dot\""),
            "nothing says which name the certificate of the external upstream must have",
            "`upstream.tls_name = \"dns.example\"`",
        ),
        (
            format!("{EXTERNAL}{at}upstream.tls_name = \"dns.example\""),
            "`upstream.tls_name` has no effect: queries travel to the upstream in the clear",
            "add `upstream.transport = \"dot\"`",
        ),
        (
            format!("{FORWARDER}{at}"),
            "`upstream.address` has no effect: the upstream is none that runs already",
            "only for `upstream.kind = \"external\"`",
        ),
        (
            format!("{EXTERNAL}{at}upstream.threads = 2"),
            "`upstream.threads` has no effect: the upstream runs already",
            "remove it",
        ),
        (
            format!("{EXTERNAL}{at}upstream.further = \"one.example\""),
            "`upstream.further` cannot be read",
            "`one.example` is no address",
        ),
        (
            format!("{EXTERNAL}upstream.address = \"192.0.2.1:99999\""),
            "`upstream.address` has a port that cannot be: `99999`",
            "a port is a number from 1 to 65535",
        ),
        (
            format!("{EXTERNAL}upstream.address = \"dns.example\""),
            "the address of `dns.example` cannot be looked up",
            "write its address, or mend its name",
        ),
        (
            format!("{EXTERNAL}upstream.address = \"fe80::1%eth0\""),
            "forwarders are told an address that is the same on all links",
            "write another address of the upstream",
        ),
        (
            format!("upstream.kind = \"external\"\n{at}"),
            "a server of kind `embedded` forwards nothing",
            "choose a `server.kind` that forwards",
        ),
        (
            format!("{EXTERNAL}{at}load.popular_names = 5"),
            "popular names need a server that knows them",
            "add an upstream of kind \"embedded\"",
        ),
    ] {
        let problems = check_text(&text(&lines), &[]).unwrap_err();
        let of_message = |problem: &&Problem| problem.message.contains(message);
        let found = problems.as_slice().iter().find(of_message);
        let found = found.unwrap_or_else(|| panic!("{lines}\n{problems}"));
        assert!(found.help.as_deref().unwrap_or_default().contains(help), "{found:?}");
    }
}

/// `server.query_log` is the short form of `server.log.to`, and the later layer holds.
#[test]
fn a_query_log_is_a_file_unless_it_is_told_otherwise() {
    let logs = |lines: &str, sets: &[&str]| {
        let text = text(&format!("server.kind = \"bind\"\n{lines}"));
        let experiment = check_text(&text, sets).unwrap();
        experiment.variants[0].log.clone()
    };
    let file = logs("server.query_log = true", &[]);
    assert_eq!(file, Log { to: LogTarget::File, ..Log::default() });
    assert_eq!(logs("server.log.to = \"file\"", &[]), file);
    assert_eq!(logs("server.log.to = \"syslog\"", &["server.query_log=true"]), file);
    assert_eq!(logs("server.log.to = \"syslog\"", &["server.query_log=false"]), Log::default());
    let syslog = logs("server.query_log = true", &["server.log.to=syslog"]);
    assert_eq!(syslog.to, LogTarget::Syslog);
}

/// A key above the variants is a slip only if none of them uses it.
#[test]
fn keys_that_one_variant_uses_are_right() {
    let text = "name = \"x\"\nupstream.tickets = false\n\
                [[variant]]\nname = \"alone\"\nserver.kind = \"bind\"\n\
                [[variant]]\nname = \"chain\"\nserver.kind = \"unbound\"\nupstream.kind = \"embedded\"\n";
    let experiment = check_text(text, &[]).unwrap();
    assert!(!experiment.variants[1].upstream.tickets);
}
