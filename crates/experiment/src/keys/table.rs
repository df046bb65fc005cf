//! The keys but those of the load, and all keys together.

use std::time::Duration;

use dnslab_lab::ServerKind;
use dnslab_measure::MAX_RUNS;

use super::chain::CHAIN;
use super::load::LOAD;
use super::{Form, Key, Preset};

/// The form of the name of an experiment or a variant: it becomes the name of a folder.
const FOLDER: Form = Form::FolderName;

/// The name of a variant: the one key that is found in a `[[variant]]` only.
pub const VARIANT_NAME: Key = Key::new(
    "name",
    FOLDER,
    Preset::Required,
    "Name of the variant, different from all others; it becomes the name of a folder",
);

/// All keys of the experiment, in the order of the reference.
pub const KEYS: &[Key] = &joined();

/// The parts of the table, one after another.
const PARTS: [&[Key]; 4] = [TOP_AND_SERVER, CHAIN, LOAD, EXPECT_AND_REPEAT];

/// How many keys there are.
const COUNT: usize = PARTS[0].len() + PARTS[1].len() + PARTS[2].len() + PARTS[3].len();

/// All parts as one table.
const fn joined() -> [Key; COUNT] {
    let mut keys = [VARIANT_NAME; COUNT];
    let (mut part, mut at, mut place) = (0, 0, 0);
    while part < PARTS.len() {
        if place < PARTS[part].len() {
            keys[at] = PARTS[part][place];
            (at, place) = (at + 1, place + 1);
        } else {
            (part, place) = (part + 1, 0);
        }
    }
    keys
}

/// The servers that dnslab starts, by the words of the experiment file.
pub(super) const STARTED: &[&str] = &{
    let mut words = [""; ServerKind::ALL.len()];
    let mut at = 0;
    while at < words.len() {
        words[at] = ServerKind::ALL[at].name();
        at += 1;
    }
    words
};

/// All kinds of server: those, and one that runs already.
const KINDS: &[&str] = &{
    let mut words = ["external"; STARTED.len() + 1];
    let mut at = 0;
    while at < STARTED.len() {
        words[at] = STARTED[at];
        at += 1;
    }
    words
};

/// The keys of the experiment itself and of the server.
const TOP_AND_SERVER: &[Key] = &[
    Key::new(
        "name",
        FOLDER,
        Preset::Required,
        "Name of the experiment; it becomes part of the name of the results directory",
    ),
    Key::new(
        "question",
        Form::Text,
        Preset::Value("\"What differs between the variants?\""),
        "The question that the experiment answers; the first line of the report",
    ),
    Key::new(
        "baseline",
        Form::Text,
        Preset::Absent("the first variant"),
        "Name of the variant that the others are compared with",
    ),
    Key::new(
        "answered_by",
        Form::Choice(&[
            "qps",
            "mean",
            "p50",
            "p95",
            "p99",
            "cpu_per_query",
            "log_per_query",
            "memory",
            "handshakes",
        ]),
        Preset::Absent(
            "the answered rate of clients that wait for their answers; the latency of one query \
             after the other, and of a given rate through a chain; else the CPU time per query",
        ),
        "The figure that answers the question. The report begins with it, and in its error rate it weighs as \
         much as all other figures together",
    ),
    Key::new(
        "server.kind",
        Form::Choice(KINDS),
        Preset::Value("\"embedded\""),
        "Which server is measured: dnslab's own responder, an installed server that dnslab starts \
         and stops, or one that runs already. Servers that forward need an upstream",
    ),
    Key::new(
        "server.address",
        Form::Address,
        Preset::Value("\"127.0.0.1\""),
        "IPv4 or IPv6 address that the server listens on; an external server must have one, or a \
         host name, with or without the port for UDP and TCP",
    ),
    Key::new(
        "server.port",
        Form::Count { least: 1, most: 65_535 },
        Preset::Absent("53"),
        "Port of an external server for UDP and TCP; started servers get a free one",
    ),
    Key::new(
        "server.dot_port",
        Form::Count { least: 1, most: 65_535 },
        Preset::Absent("853"),
        "Port of an external server for DNS over TLS; started servers get a free one",
    ),
    Key::new(
        "server.doh_port",
        Form::Count { least: 1, most: 65_535 },
        Preset::Absent("443"),
        "Port of an external server for DNS over HTTPS, with HTTP/2 and with HTTP/3; started \
         servers get a free one for each",
    ),
    Key::new(
        "server.doq_port",
        Form::Count { least: 1, most: 65_535 },
        Preset::Absent("853"),
        "Port of an external server for DNS over QUIC; started servers get a free one",
    ),
    Key::new(
        "server.tls_name",
        Form::DomainName,
        Preset::Absent("its address"),
        "Name that an external server's certificate must have, also sent as SNI and as the host of \
         HTTP requests",
    ),
    Key::new(
        "server.authority",
        Form::Path,
        Preset::Absent("none"),
        "PEM file of the authority that signed an external server's certificate",
    ),
    Key::new(
        "server.insecure",
        Form::Boolean,
        Preset::Value("false"),
        "Accept any certificate; the results then carry a caveat",
    ),
    Key::new(
        "server.pid",
        Form::Count { least: 1, most: 4_194_304 },
        Preset::Absent("found by the port"),
        "Process of an external server on this machine, whose CPU and memory are watched with those \
         of its children",
    ),
    Key::new(
        "server.unit",
        Form::Text,
        Preset::Absent("found by the port"),
        "systemd unit of an external server on this machine, e.g. `named.service`, whose CPU and \
         memory are watched",
    ),
    Key::new(
        "server.watch",
        Form::Boolean,
        Preset::Value("true"),
        "Sample what the servers use while the load runs, and read what they count themselves; \
         without, only the load is measured, and the results carry a caveat",
    ),
    Key::new(
        "server.threads",
        Form::Count { least: 1, most: 1_024 },
        Preset::Absent("the number of its CPUs"),
        "Threads that a started server is configured for",
    ),
    Key::new(
        "server.cpus",
        Form::Cpus,
        Preset::Absent("chosen so that server and load share none"),
        "CPUs that a started server is pinned to",
    ),
    Key::new(
        "server.certificate",
        Form::Choice(&["ecdsa-p256", "rsa-2048", "chain"]),
        Preset::Value("\"ecdsa-p256\""),
        "Certificate that dnslab makes for a server that it starts: keys and signatures of ECDSA with \
         P-256, those of RSA with 2048 bits, or P-256 with an intermediate authority, whose certificate \
         the server sends too",
    ),
    Key::new(
        "server.binary",
        Form::Path,
        Preset::Absent("found on the search path"),
        "Program of an installed server, e.g. a build of your own",
    ),
    Key::new(
        "server.root",
        Form::Path,
        Preset::Absent("the system's"),
        "Root folder that an installed server is taken from and runs in by chroot, as root: a path \
         with `/`, or the name of what `dnslab lab get` has fetched, e.g. `bind-9.16`",
    ),
    Key::new(
        "server.extra",
        Form::Text,
        Preset::Absent("nothing"),
        "Text appended to the configuration of an installed server, in that server's own language. What \
         stands there in a block `options` of BIND's goes into its one block of options",
    ),
    Key::new(
        "server.query_log",
        Form::Boolean,
        Preset::Value("false"),
        "An installed server writes a line for each query into a file; its size is measured. The same as \
         `server.log.to = \"file\"`",
    ),
    Key::new(
        "server.log.to",
        Form::Choice(&["none", "file", "syslog", "stderr", "null"]),
        Preset::Value("\"none\""),
        "Where an installed server writes a line for each query: into a file, to the syslog daemon at \
         /dev/log, to standard error (a pipe that dnslab reads into a file), or to BIND's channel null, \
         which formats it and drops it. The size of what is written is measured, but for syslog",
    ),
    Key::new(
        "server.log.folder",
        Form::Path,
        Preset::Absent("the run's folder"),
        "Existing folder in which the file of the query log is written, e.g. on another disk; what \
         is written there is removed after the run",
    ),
    Key::new(
        "server.log.size_mib",
        Form::Count { least: 1, most: 1_000_000 },
        Preset::Absent("no rotation"),
        "Size of the file from which on a new one is begun, in units of 1,048,576 octets",
    ),
    Key::new(
        "server.log.versions",
        Form::Count { least: 1, most: 10_000 },
        Preset::Value("5"),
        "Old files that are kept where the file is rotated",
    ),
    Key::new(
        "server.log.suffix",
        Form::Choice(&["increment", "timestamp"]),
        Preset::Value("\"increment\""),
        "How old files are named: by their age, or by their time",
    ),
    Key::new(
        "server.log.buffered",
        Form::Boolean,
        Preset::Value("false"),
        "The file is written when a buffer is full, not after each line",
    ),
    Key::new(
        "server.log.print_time",
        Form::Choice(&["none", "local", "iso8601", "iso8601-utc"]),
        Preset::Value("\"local\""),
        "The time that stands before each line",
    ),
    Key::new(
        "server.log.print_category",
        Form::Boolean,
        Preset::Value("false"),
        "The category stands before each line",
    ),
    Key::new(
        "server.log.print_severity",
        Form::Boolean,
        Preset::Value("false"),
        "The severity stands before each line",
    ),
    Key::new(
        "server.dnstap",
        Form::Boolean,
        Preset::Value("false"),
        "An installed server writes dnstap messages of queries and answers into a file; its size is \
         measured",
    ),
    Key::new(
        "server.cache",
        Form::Boolean,
        Preset::Value("true"),
        "A forwarder keeps answers, as it does by default; without, each query goes upstream (coredns, \
         dnsmasq, stubby, dnsdist)",
    ),
    Key::new(
        "server.dnssec",
        Form::Boolean,
        Preset::Value("false"),
        "A forwarder validates what its upstream says (RFC 4035)",
    ),
    Key::new(
        "server.delay",
        Form::Text,
        Preset::Absent("none"),
        "Delay program of the embedded server: `5ms`, `uniform:1ms..9ms`, or what else `dnslab serve --delay` reads",
    ),
    Key::new(
        "server.loss",
        Form::Text,
        Preset::Absent("none"),
        "Loss program of the embedded server, e.g. `1%`",
    ),
    Key::new(
        "server.busy",
        Form::Duration {
            least: Duration::ZERO,
            most: Duration::from_secs(1),
            whole_seconds: false,
        },
        Preset::Value("\"0s\""),
        "CPU time that each answer of the embedded server costs beside what it needs, e.g. `200ns`",
    ),
    Key::new(
        "server.zone.name",
        Form::DomainName,
        Preset::Value("\"melmac.univ\""),
        "Name of the zone that is served and asked for",
    ),
    Key::new(
        "server.zone.records",
        Form::Count { least: 1, most: 10_000_000 },
        Preset::Value("1_000"),
        "Address records in the zone",
    ),
    Key::new(
        "server.zone.ttl",
        Form::Duration {
            least: Duration::ZERO,
            // RFC 2181, section 8.
            most: Duration::from_secs(2_147_483_647),
            whole_seconds: true,
        },
        Preset::Value("\"1s\""),
        "Time to live of the records",
    ),
];

/// The response codes of queries and updates.
const RCODES: [&str; 11] = dnslab_wire::rcode::first_names();

/// The keys of a right answer, of the common load, of comparisons and of the repetition.
const EXPECT_AND_REPEAT: &[Key] = &[
    Key::new(
        "expect.rcode",
        Form::Choice(&RCODES),
        Preset::Value("\"NOERROR\""),
        "Response code of a right answer",
    ),
    Key::new(
        "expect.wrong_limit",
        Form::Share,
        Preset::Value("\"0.1%\""),
        "Share of wrong answers beyond which a run is invalid",
    ),
    Key::new(
        "expect.lost_limit",
        Form::Share,
        Preset::Value("\"50%\""),
        "Share of unanswered queries beyond which a run is invalid",
    ),
    Key::new(
        "common.duration",
        Form::Duration {
            least: Duration::ZERO,
            most: Duration::from_secs(7 * 86_400),
            whole_seconds: false,
        },
        Preset::Value("\"0s\""),
        "Length of the common load of each variant: after its closed loop, each is asked at one and the \
         same rate by the clock (Poisson), so that latencies can be compared; 0 for none",
    ),
    Key::new(
        "common.rate",
        Form::Count { least: 1, most: 1_000_000_000 },
        Preset::Absent("half of what the slowest variant answers in a short trial, in two digits"),
        "Rate of the common load, queries per second over all clients",
    ),
    Key::new(
        "common.warm_up",
        Form::Duration {
            least: Duration::ZERO,
            most: Duration::from_secs(7 * 86_400),
            whole_seconds: false,
        },
        Preset::Value("\"200ms\""),
        "Common load before its measured window",
    ),
    Key::new(
        "compare.with",
        Form::Text,
        Preset::Absent("the baseline"),
        "Names of the variants that a variant is compared with, separated by commas; `-` for none, as \
         for one that others are compared with",
    ),
    Key::new(
        "repeat.runs",
        Form::Count { least: 1, most: MAX_RUNS as u64 },
        Preset::Value("5"),
        "Rounds: runs of each variant, every time with servers that are freshly started",
    ),
    Key::new(
        "repeat.alternate",
        Form::Choice(&["auto", "slices", "runs"]),
        Preset::Value("\"auto\""),
        "How the variants of a round alternate: `slices` has all their servers up together, and the load \
         goes to them in turns; with `runs` one whole run follows another. `auto` takes slices where \
         servers can be up together without changing what is measured",
    ),
    Key::new(
        "repeat.slice",
        Form::Duration {
            least: Duration::from_millis(5),
            most: Duration::from_secs(60),
            whole_seconds: false,
        },
        Preset::Value("\"50ms\""),
        "Length of one turn",
    ),
    Key::new(
        "repeat.guard",
        Form::Duration {
            least: Duration::ZERO,
            most: Duration::from_secs(30),
            whole_seconds: false,
        },
        Preset::Value("\"10ms\""),
        "Beginning of each turn that is not counted; shorter than a slice",
    ),
    Key::new(
        "repeat.seed",
        Form::Count { least: 0, most: i64::MAX as u64 },
        Preset::Value("1"),
        "Seed of the order of the runs and of everything drawn at random",
    ),
    Key::new(
        "repeat.margin",
        Form::Share,
        Preset::Value("\"2%\""),
        "Relative difference below which a difference does not matter",
    ),
];
