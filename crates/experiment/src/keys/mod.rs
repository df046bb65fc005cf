//! The one table of keys of an experiment file.
//!
//! Everything that knows a key by name comes from here: reading and checking, suggestions, the
//! overrides of variants and of the command line, the JSON schema and the reference.

mod form;
mod reference;
mod schema;

use std::time::Duration;

pub use form::Form;
pub use reference::reference;
pub use schema::schema;

/// One key of an experiment file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// Dotted path from the top of the file, e.g. `load.clients`.
    pub path: &'static str,
    /// What may be written, and within which bounds.
    pub form: Form,
    /// What holds when nothing is written.
    pub preset: Preset,
    /// What it is for, in one line without a full stop.
    pub meaning: &'static str,
}

/// What holds when a key is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// The key must be written.
    Required,
    /// This value, as TOML.
    Value(&'static str),
    /// No value; what that means, in words.
    Absent(&'static str),
}

impl Key {
    /// A key, in the order in which the table reads best.
    const fn new(path: &'static str, form: Form, preset: Preset, meaning: &'static str) -> Self {
        Self { path, form, preset, meaning }
    }

    /// True if a variant may have its own value. The name, the question, the baseline and the
    /// repetition belong to the experiment as a whole.
    #[must_use]
    pub fn is_overridable(&self) -> bool {
        self.path.contains('.') && !self.path.starts_with("repeat.")
    }

    /// The last part of the path, e.g. `clients`.
    #[must_use]
    pub fn last_part(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }
}

/// The key with this path.
#[must_use]
pub(crate) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// True if keys lie below this path, e.g. `server.zone`.
#[must_use]
pub(crate) fn is_group(path: &str) -> bool {
    KEYS.iter().any(|key| {
        key.path.strip_prefix(path).is_some_and(|rest| !path.is_empty() && rest.starts_with('.'))
    })
}

/// The key that somebody who wrote `path` most likely meant.
///
/// A right last part in a wrong place (`clients` for `load.clients`) counts as much as a slip of
/// the finger.
#[must_use]
pub(crate) fn closest_key(path: &str) -> Option<&'static Key> {
    let last = path.rsplit('.').next().unwrap_or(path);
    let score = |key: &Key| {
        // Slightly less than a whole path of the same likeness, so that the right group wins.
        likeness(path, key.path).max(likeness(last, key.last_part()) * 0.98)
    };
    KEYS.iter()
        .map(|key| (score(key), key))
        .filter(|(likeness, _)| *likeness >= CLOSE_ENOUGH)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, key)| key)
}

/// The table of keys that somebody who wrote a table at `path` most likely meant.
pub(crate) fn closest_group(path: &str) -> Option<&'static str> {
    closest_word(path, KEYS.iter().filter_map(|key| Some(key.path.rsplit_once('.')?.0)))
}

/// The word of `words` that somebody who wrote `word` most likely meant.
pub(crate) fn closest_word<'a>(
    word: &str,
    words: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_lowercase();
    words
        .into_iter()
        .map(|known| (likeness(&word, &known.to_lowercase()), known))
        .filter(|(likeness, _)| *likeness >= CLOSE_ENOUGH)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}

/// How alike two words are, in [0, 1]: by Jaro-Winkler, which knows nothing of a swap in a word as
/// short as `upd`, or one slip of the finger apart.
fn likeness(written: &str, known: &str) -> f64 {
    let one_slip = known.len() >= 3 && strsim::osa_distance(written, known) == 1;
    strsim::jaro_winkler(written, known).max(if one_slip { 0.9 } else { 0.0 })
}

/// Likeness in [0, 1] from which a suggestion helps rather than puzzles: `clinets`
/// and `clients` have 0.95, `colour` and `clients` 0.60.
const CLOSE_ENOUGH: f64 = 0.8;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

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
pub const KEYS: &[Key] = &[
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
        "server.kind",
        Form::Choice(&["embedded", "bind", "knot", "nsd", "external"]),
        Preset::Value("\"embedded\""),
        "Which server is measured: dnslab's own responder, an installed server that dnslab starts \
         and stops, or one that runs already",
    ),
    Key::new(
        "server.address",
        Form::Address,
        Preset::Value("\"127.0.0.1\""),
        "IPv4 or IPv6 address that the server listens on; an external server must have one, \
         with or without the port for UDP and TCP",
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
        "server.tls_name",
        Form::DomainName,
        Preset::Absent("its address"),
        "Name that an external server's certificate must have, also sent as SNI",
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
        "server.binary",
        Form::Path,
        Preset::Absent("found on the search path"),
        "Program of an installed server, e.g. a build of your own",
    ),
    Key::new(
        "server.extra",
        Form::Text,
        Preset::Absent("nothing"),
        "Text appended to the configuration of an installed server, in that server's own language",
    ),
    Key::new(
        "server.delay",
        Form::Text,
        Preset::Absent("none"),
        "Delay program of the embedded server, e.g. `5ms`",
    ),
    Key::new(
        "server.loss",
        Form::Text,
        Preset::Absent("none"),
        "Loss program of the embedded server, e.g. `1%`",
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
    Key::new(
        "load.transport",
        Form::Choice(&["udp", "tcp", "dot"]),
        Preset::Value("\"udp\""),
        "How queries travel: UDP, TCP, or DNS over TLS",
    ),
    Key::new(
        "load.clients",
        Form::Count { least: 1, most: 1_000_000 },
        Preset::Value("4"),
        "Simulated clients, each with a socket of its own",
    ),
    Key::new(
        "load.outstanding",
        Form::Count { least: 1, most: 65_535 },
        Preset::Absent("100, if there is no `load.rate`"),
        "Closed loop: queries that each client keeps outstanding",
    ),
    Key::new(
        "load.rate",
        Form::Rate,
        Preset::Absent("closed loop"),
        "Open loop: intended rate over all clients, which does not wait for the server",
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
        "Length of the measured window",
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
        Preset::Absent("one for each CPU that is left to the load"),
        "Threads of the load generator, at most one per client",
    ),
    Key::new(
        "load.cpus",
        Form::Cpus,
        Preset::Absent("chosen so that server and load share none"),
        "CPUs that the workers are pinned to, one for each",
    ),
    Key::new(
        "load.queries",
        Form::Path,
        Preset::Absent("the names of the zone"),
        "Query file in the format of dnsperf: a name and a type on each line",
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
        Preset::Value("false"),
        "Set the RD bit (RFC 1035, section 4.1.1)",
    ),
    Key::new(
        "load.edns_payload",
        Form::Count { least: 512, most: 65_535 },
        Preset::Absent("no OPT record; 1232 with `load.dnssec_ok`"),
        "Send an OPT record with this UDP payload size in octets (RFC 6891, section 6.2.3)",
    ),
    Key::new("load.dnssec_ok", Form::Boolean, Preset::Value("false"), "Set the DO bit (RFC 3225)"),
    Key::new(
        "load.horizon",
        Form::Duration { least: Duration::ZERO, most: SECOND, whole_seconds: false },
        Preset::Value("\"50us\""),
        "Longest time for which sends and receives are gathered into one system call",
    ),
    Key::new(
        "expect.rcode",
        Form::Choice(&[
            "NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "YXDOMAIN",
            "YXRRSET", "NXRRSET", "NOTAUTH", "NOTZONE",
        ]),
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
        "repeat.runs",
        Form::Count { least: 1, most: 10_000 },
        Preset::Value("5"),
        "Runs of each variant",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_their_key() {
        let check = |written: &str, meant: Option<&str>| {
            assert_eq!(closest_key(written).map(|key| key.path), meant, "for `{written}`");
        };
        check("load.clinets", Some("load.clients"));
        check("clients", Some("load.clients"));
        check("load.warmup", Some("load.warm_up"));
        check("server.zone.record", Some("server.zone.records"));
        check("runs", Some("repeat.runs"));
        check("zone.ttl", Some("server.zone.ttl"));
        check("xyzzy", None);
    }

    #[test]
    fn slips_find_their_word() {
        let check = |written: &str, meant: Option<&str>| {
            assert_eq!(closest_word(written, ["udp", "tcp", "dot"]), meant, "for `{written}`");
        };
        check("upd", Some("udp"));
        check("UDP", Some("udp"));
        check("doq", Some("dot"));
        check("https", None);
        assert_eq!(closest_group("laod"), Some("load"));
        assert_eq!(closest_group("sever.zone"), Some("server.zone"));
        assert_eq!(closest_group("xyzzy"), None);
    }

    #[test]
    fn paths_are_groups_or_keys() {
        assert!(is_group("server") && is_group("server.zone"));
        assert!(!is_group("load.clients") && !is_group("serv") && !is_group(""));
        for key in KEYS {
            assert!(!is_group(key.path), "`{}` is a key and a group", key.path);
            assert_eq!(KEYS.iter().filter(|other| other.path == key.path).count(), 1);
        }
    }
}
