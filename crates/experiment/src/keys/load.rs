//! The keys of the load.

use std::time::Duration;

use super::{Form, Key, Preset};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 3600);
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

/// What is sent, when, by whom and how; by and large in the order in which one thinks of it.
pub(super) const LOAD: &[Key] = &[
    Key::new(
        "load.transport",
        Form::Choice(&["udp", "tcp", "dot", "doh2", "doq", "doh3"]),
        Preset::Value("\"udp\""),
        "How queries travel: UDP, TCP, DNS over TLS, DNS over HTTPS with HTTP/2, DNS over QUIC, or \
         DNS over HTTPS with HTTP/3",
    ),
    Key::new(
        "load.clients",
        Form::Count { least: 1, most: 1_000_000 },
        Preset::Value("100"),
        "Simulated clients, each with sockets, tickets and cookies of its own",
    ),
    Key::new(
        "load.outstanding",
        Form::Count { least: 1, most: 65_535 },
        Preset::Absent("1, if there is no `load.rate`"),
        "Closed loop: queries that each client keeps outstanding",
    ),
    Key::new(
        "load.rate",
        Form::Rate,
        Preset::Absent("closed loop"),
        "Open loop: intended rate over all clients, which does not wait for the server; steps of \
         equal length or a ramp, too, counted from the start of the warm-up, the last rate going on",
    ),
    Key::new(
        "load.pace",
        Form::Choice(&["constant", "poisson"]),
        Preset::Absent("constant, if there is a `load.rate`"),
        "Open loop: equal gaps between the queries, or those of a Poisson process",
    ),
    Key::new(
        "load.duration",
        Form::Duration { least: MS, most: WEEK, whole_seconds: false },
        Preset::Value("\"10s\""),
        "Length of the measured window; with `load.queries_in_all`, the longest",
    ),
    Key::new(
        "load.queries_in_all",
        Form::Count { least: 1, most: i64::MAX as u64 },
        Preset::Absent("the load ends by the clock"),
        "Queries after which the load ends, warm-up included: with as many names, each is asked once",
    ),
    Key::new(
        "load.warm_up",
        Form::Duration { least: Duration::ZERO, most: WEEK, whole_seconds: false },
        Preset::Value("\"2s\""),
        "Load before the measured window, kept apart",
    ),
    Key::new(
        "load.timeout",
        // Durations are recorded up to 100 s; a longer time-out could not be told from it.
        Form::Duration { least: MS, most: Duration::from_secs(100), whole_seconds: false },
        Preset::Value("\"2s\""),
        "A query without an answer for this long has timed out",
    ),
    Key::new(
        "load.workers",
        Form::Count { least: 1, most: 1_024 },
        Preset::Absent(
            "one for each CPU that is left to the load; in a closed loop no more than leave each a \
             window of five queries",
        ),
        "Threads of the load generator, at most one per client",
    ),
    Key::new(
        "load.cpus",
        Form::Cpus,
        Preset::Absent("chosen so that server and load share none"),
        "CPUs that the workers are pinned to, one for each",
    ),
    Key::new(
        "load.horizon",
        Form::Duration { least: Duration::ZERO, most: SECOND, whole_seconds: false },
        Preset::Value("\"20us\""),
        "Batching: how long sends and receives wait at most to be done in one system call",
    ),
    Key::new(
        "load.receive_time",
        Form::Choice(&["user", "kernel"]),
        Preset::Value("\"user\""),
        "UDP: when a datagram has come, by the clock of the generator once it has read it, or by \
         the time stamp of the kernel",
    ),
    Key::new(
        "load.quickack",
        Form::Choice(&["never", "open-loop", "always"]),
        Preset::Value("\"never\""),
        "TCP, DoT and DoH2: when clients acknowledge at once what comes (TCP_QUICKACK, tcp(7)). By \
         default the acknowledgement waits for the client's next query, 40 ms at most, and answers of a \
         server with Nagle's algorithm wait for it. In a closed loop the next query follows at once: \
         `open-loop` is for the rate that is asked, or the common one, only",
    ),
    Key::new(
        "load.sources",
        Form::Text,
        Preset::Absent("chosen by the kernel"),
        "Addresses of this machine that the clients send from, in turn: a prefix \
         (`\"127.0.1.0/24\"`), a range (`\"127.0.0.1-127.0.0.9\"`) or a list with commas; each has \
         its own ports",
    ),
    Key::new(
        "load.connections",
        Form::Count { least: 1, most: 1_000 },
        Preset::Value("1"),
        "Connections of each client, used in turn; with UDP, sockets",
    ),
    Key::new(
        "load.queries_per_connection",
        Form::Count { least: 1, most: 4_294_967_295 },
        Preset::Absent("no limit"),
        "A client closes a connection after so many queries, and opens another; with UDP, it takes \
         another source port",
    ),
    Key::new(
        "load.connection_quota",
        Form::Choice(&["random", "exact"]),
        Preset::Value("\"random\""),
        "What `load.queries_per_connection` is: the mean of a number that is drawn anew for each \
         connection (geometric distribution), so that clients come and go independently of each other, \
         or the exact number, with which clients that begin together also reconnect together",
    ),
    Key::new(
        "load.idle",
        Form::Duration { least: MS, most: DAY, whole_seconds: false },
        Preset::Absent("never"),
        "A client closes a connection that was idle for so long; with UDP, its next query comes \
         from another source port, as those of real clients do",
    ),
    Key::new(
        "load.connect",
        Form::Choice(&["at-start", "on-demand"]),
        Preset::Value("\"at-start\""),
        "When a client opens its connections: all before its first query, or each when a query \
         needs it. One that was closed is opened again at once, or with `load.idle` when a query \
         needs it",
    ),
    Key::new(
        "load.truncated",
        Form::Choice(&["count", "ask-over-tcp"]),
        Preset::Value("\"count\""),
        "UDP: truncated answers are counted as they are, or asked again over TCP as real clients \
         do (RFC 7766, section 5)",
    ),
    Key::new(
        "load.tls_versions",
        Form::Choice(&["both", "1.2", "1.3"]),
        Preset::Value("\"both\""),
        "Versions of TLS that clients offer; QUIC has 1.3 alone (RFC 9001, section 4.2)",
    ),
    Key::new(
        "load.tls_groups",
        Form::Words(&["x25519", "secp256r1", "secp384r1", "x25519mlkem768"]),
        Preset::Value("[\"x25519\", \"secp256r1\", \"secp384r1\"]"),
        "Key exchange groups that clients offer, the one they prefer first: it has a key share in the \
         first packet. `x25519mlkem768` is the hybrid with ML-KEM-768 (draft-ietf-tls-ecdhe-mlkem) and \
         needs TLS 1.3. With it first, `x25519` has a key share too, if it is offered",
    ),
    Key::new(
        "load.tls_records",
        Form::Choice(&["per-query", "shared"]),
        Preset::Value("\"per-query\""),
        "DNS over TLS: each query has a TLS record of its own, as those of real clients, or queries that \
         are sent together share one",
    ),
    Key::new(
        "load.resumption",
        Form::Boolean,
        Preset::Value("true"),
        "Clients keep session tickets, each its own, and resume with them (RFC 8446, section 2.2); over \
         QUIC they keep the server's tokens, too (RFC 9000, section 8.1.3)",
    ),
    Key::new(
        "load.early_data",
        Form::Boolean,
        Preset::Value("false"),
        "Clients with a ticket send queries with the first packet (0-RTT: RFC 8446, section 2.3); \
         over HTTP by GET alone (RFC 8470, section 4)",
    ),
    Key::new(
        "load.http_method",
        Form::Choice(&["post", "get"]),
        Preset::Value("\"post\""),
        "DNS over HTTPS: the method of the requests (RFC 8484, section 4.1)",
    ),
    Key::new(
        "load.http_path",
        Form::HttpPath,
        Preset::Value("\"/dns-query\""),
        "DNS over HTTPS: the path that is asked for, without `{?dns}`",
    ),
    Key::new(
        "load.queries",
        Form::Path,
        Preset::Absent("the names of the zone"),
        "Query file in the format of dnsperf: a name and a type on each line",
    ),
    Key::new(
        "load.popular_names",
        Form::Count { least: 1, most: 100_000 },
        Preset::Absent("the names of the zone"),
        "Ask for the addresses of so many made-up names in as many domains, of which an embedded upstream \
         knows everything",
    ),
    Key::new(
        "load.types",
        Form::Text,
        Preset::Absent("`\"A\"`"),
        "Types that the names of the zone are asked for, with their weights, e.g. \
         `\"A:70,AAAA:25,HTTPS:5\"`",
    ),
    Key::new(
        "load.selection",
        Form::Choice(&["in-order", "uniform"]),
        Preset::Value("\"in-order\""),
        "Which query comes next: the following one, or any with equal chance",
    ),
    Key::new(
        "load.recursion_desired",
        Form::Boolean,
        Preset::Absent("`true` if the server has an upstream, else `false`"),
        "Set the RD bit (RFC 1035, section 4.1.1); a forwarder may refuse queries without it",
    ),
    Key::new(
        "load.edns_payload",
        Form::Count { least: 512, most: 65_535 },
        Preset::Absent("1232 where another key asks for an OPT record, else no OPT record"),
        "Send an OPT record with this UDP payload size in octets (RFC 6891, section 6.2.3)",
    ),
    Key::new("load.dnssec_ok", Form::Boolean, Preset::Value("false"), "Set the DO bit (RFC 3225)"),
    Key::new(
        "load.edns_options",
        Form::EdnsOptions,
        Preset::Absent("none"),
        "EDNS options that every query carries, as code and octets in hexadecimal",
    ),
    Key::new(
        "load.padding",
        Form::Padding,
        Preset::Value("false"),
        "Pad queries to a multiple of so many octets (RFC 7830), `true` for 128 (RFC 8467, section \
         4.1); on encrypted transports only",
    ),
    Key::new(
        "load.keepalive",
        Form::Boolean,
        Preset::Value("false"),
        "TCP and DoT: ask with each query for the server's idle time-out (RFC 7828)",
    ),
    Key::new(
        "load.cookies",
        Form::Boolean,
        Preset::Value("false"),
        "Send DNS cookies; each client has its own, and keeps the server's (RFC 7873)",
    ),
    Key::new(
        "load.client_subnets",
        Form::Text,
        Preset::Absent("none"),
        "Client subnets that the clients claim to come from, in turn (RFC 7871): one \
         (`\"192.0.2.0/24\"`), all of a length in a prefix (`\"10.0.0.0/8 by /24\"`), or a file \
         with one on each line",
    ),
    Key::new(
        "load.tsig",
        Form::Text,
        Preset::Absent("none"),
        "TSIG key (RFC 8945) that queries are signed with, as dnsperf has it: \
         `\"[algorithm:]name:secret\"`, the algorithm hmac-sha256 unless another one is named. The \
         secret is written to no result, so that such an experiment cannot be resumed",
    ),
    Key::new(
        "load.tsig_file",
        Form::Path,
        Preset::Absent("none"),
        "File with the TSIG key in the form of `load.tsig`",
    ),
];
