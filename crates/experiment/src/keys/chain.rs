//! The keys of the servers behind the one under test, and of the hosts of all of them.

use std::time::Duration;

use super::{Form, Key, Preset};

/// What a link may do: a delay of up to a minute.
const DELAY: Form =
    Form::Duration { least: Duration::ZERO, most: Duration::from_secs(60), whole_seconds: false };

/// Megabits per second.
const RATE: Form = Form::Count { least: 1, most: 400_000 };

/// How queries travel from one server to the next.
const LEG: Form = Form::Choice(&["udp", "tcp", "dot"]);

/// The keys of a relay, of the upstream, of the hosts and of the links.
pub(super) const CHAIN: &[Key] = &[
    Key::new(
        "relay.kind",
        Form::Choice(super::table::STARTED),
        Preset::Absent("no relay"),
        "A further forwarder between the server and its upstream, on the server's host: dnsmasq with \
         stubby behind it, say",
    ),
    Key::new(
        "relay.transport",
        LEG,
        Preset::Value("\"udp\""),
        "How the server's queries travel to the relay",
    ),
    Key::new(
        "relay.threads",
        Form::Count { least: 1, most: 1_024 },
        Preset::Absent("the number of its CPUs"),
        "Threads that the relay is configured for",
    ),
    Key::new(
        "relay.binary",
        Form::Path,
        Preset::Absent("found on the search path"),
        "Program of the relay",
    ),
    Key::new(
        "relay.extra",
        Form::Text,
        Preset::Absent("nothing"),
        "Text appended to the configuration of the relay, in its own language",
    ),
    Key::new(
        "upstream.kind",
        Form::Choice(super::table::STARTED),
        Preset::Absent("no upstream: the server is authoritative"),
        "The server that a forwarder asks, at the end of the chain. The embedded one plays a resolver that \
         knows every name of the load",
    ),
    Key::new(
        "upstream.transport",
        LEG,
        Preset::Value("\"udp\""),
        "How queries travel to the upstream",
    ),
    Key::new(
        "upstream.threads",
        Form::Count { least: 1, most: 1_024 },
        Preset::Absent("the number of its CPUs"),
        "Threads that the upstream is configured for",
    ),
    Key::new(
        "upstream.cpus",
        Form::Cpus,
        Preset::Absent("half of those left to the load, or the only one, shared with it"),
        "CPUs that the upstream is pinned to",
    ),
    Key::new(
        "upstream.binary",
        Form::Path,
        Preset::Absent("found on the search path"),
        "Program of the upstream",
    ),
    Key::new(
        "upstream.extra",
        Form::Text,
        Preset::Absent("nothing"),
        "Text appended to the configuration of the upstream, in its own language",
    ),
    Key::new(
        "upstream.delay",
        Form::Text,
        Preset::Absent("none"),
        "How long an embedded upstream takes for its answers: `5ms`, `uniform:1ms..20ms`, or what else `dnslab serve --delay` reads",
    ),
    Key::new(
        "upstream.loss",
        Form::Text,
        Preset::Absent("none"),
        "Share of the queries that an embedded upstream never answers, e.g. `1%`",
    ),
    Key::new(
        "upstream.busy",
        Form::Duration {
            least: Duration::ZERO,
            most: Duration::from_secs(1),
            whole_seconds: false,
        },
        Preset::Value("\"0s\""),
        "CPU time that each answer of an embedded upstream costs beside what it needs",
    ),
    Key::new(
        "upstream.signed",
        Form::Boolean,
        Preset::Value("false"),
        "An embedded upstream has signatures for all its names (RFC 4035)",
    ),
    Key::new(
        "upstream.queries_per_connection",
        Form::Count { least: 1, most: 4_294_967_295 },
        Preset::Absent("no limit"),
        "An embedded upstream closes a connection after so many answers",
    ),
    Key::new(
        "upstream.idle",
        Form::Duration {
            least: Duration::from_millis(10),
            most: Duration::from_secs(3_600),
            whole_seconds: false,
        },
        Preset::Value("\"10s\""),
        "An embedded upstream closes a connection that has been idle for so long",
    ),
    Key::new(
        "upstream.tickets",
        Form::Boolean,
        Preset::Value("true"),
        "An embedded upstream hands out tickets, so that TLS sessions can be resumed",
    ),
    Key::new(
        "lab.hosts",
        Form::Choice(&["loopback", "namespaces", "auto"]),
        Preset::Value("\"loopback\""),
        "Where clients, server and upstream are: all on the loopback interface, each in a network \
         namespace (takes root's privileges), or in namespaces where that is possible",
    ),
    Key::new(
        "link.server.delay",
        DELAY,
        Preset::Value("\"0s\""),
        "How long a packet takes between the clients and the server, one way; links need hosts",
    ),
    Key::new(
        "link.server.jitter",
        DELAY,
        Preset::Value("\"0s\""),
        "By how much that varies to either side; at most the delay",
    ),
    Key::new(
        "link.server.loss",
        Form::Share,
        Preset::Value("0.0"),
        "Share of the packets between the clients and the server that is lost, in each direction",
    ),
    Key::new(
        "link.server.rate_mbit",
        RATE,
        Preset::Absent("no bound"),
        "Megabits per second between the clients and the server, in each direction",
    ),
    Key::new(
        "link.upstream.delay",
        DELAY,
        Preset::Value("\"0s\""),
        "How long a packet takes between the server and its upstream, one way. Without namespaces an \
         embedded upstream answers later by twice as long",
    ),
    Key::new(
        "link.upstream.jitter",
        DELAY,
        Preset::Value("\"0s\""),
        "By how much that varies to either side; at most the delay",
    ),
    Key::new(
        "link.upstream.loss",
        Form::Share,
        Preset::Value("0.0"),
        "Share of the packets between the server and its upstream that is lost, in each direction",
    ),
    Key::new(
        "link.upstream.rate_mbit",
        RATE,
        Preset::Absent("no bound"),
        "Megabits per second between the server and its upstream, in each direction",
    ),
];
