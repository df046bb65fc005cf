//! What an adapter knows of its server, and what several of them say alike.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use dnslab_settings::ServerKind;
use dnslab_wire::Transport;

use super::cost_rows::CostRow;
use super::logging::Logging;
use super::rendered::Rendered;
use super::spec::{ROOT_HINTS, RootHints, ServerSpec};
use super::version::Version;
use crate::guarded::GuardProgram;
use crate::package::Remedy;
use crate::users::User;

/// What is the same for every version of a server.
pub(crate) struct Facts {
    pub(crate) kind: ServerKind,
    /// How to install it.
    pub(crate) remedy: Remedy,
    /// The argument that makes it say its version.
    pub(crate) version_argument: &'static str,
    /// Where it publishes its counters, for the record; `None` if it publishes none.
    pub(crate) counter_source: Option<&'static str>,
}

/// What dnslab knows of one server.
pub(crate) trait Adapter: Sync {
    fn facts(&self) -> Facts;

    /// Which functions of its libraries are which part of its CPU time; the first row that fits counts.
    fn cost_rows(&self) -> &'static [CostRow];

    fn title(&self) -> &'static str {
        self.facts().kind.profile().title
    }

    /// Whether this version serves `transport`; if not, why, as a sentence.
    fn supports(&self, version: &Version, transport: Transport) -> Result<(), String>;

    /// Whether it can do what this specification asks for, with its paths and ports; if not, why, as a
    /// sentence.
    fn takes(&self, spec: &ServerSpec) -> Result<(), String> {
        let _ = spec;
        Ok(())
    }

    /// Whether this version forwards over `transport`; if not, why, as a sentence. A server that forwards is
    /// started with an upstream, one that resolves by itself with root hints, any other with a zone.
    fn forwards(&self, version: &Version, transport: Transport) -> Result<(), String> {
        let _ = (version, transport);
        Err(format!("{} is authoritative here: it forwards nothing", self.title()))
    }

    /// Whether this version resolves by itself, beginning at root servers; if not, why, as a sentence.
    fn resolves(&self, version: &Version) -> Result<(), String> {
        let _ = version;
        Err(format!("{} does not resolve by itself here", self.title()))
    }

    /// Whether this version validates signatures (RFC 4035); if not, why, as a sentence.
    fn validates(&self, version: &Version) -> Result<(), String> {
        let _ = version;
        Err(format!("{} does not validate signatures", self.title()))
    }

    fn runs_without_cache(&self) -> bool {
        false
    }

    /// Whether this version can write these logs; if not, why, as a sentence.
    fn logs(&self, version: &Version, logging: &Logging) -> Result<(), String> {
        let _ = version;
        match logging {
            Logging { query_log: None, dnstap: false } => Ok(()),
            Logging { query_log: Some(_), .. } => {
                Err(format!("dnslab does not know how {} logs queries", self.title()))
            }
            Logging { dnstap: true, .. } => {
                Err(format!("dnslab does not know how {} writes dnstap", self.title()))
            }
        }
    }

    /// How it applies a response policy zone, as half a sentence behind "is applied".
    fn policy_way(&self) -> &'static str {
        "by the rules of that file"
    }

    /// `spec` was checked.
    fn render(&self, spec: &ServerSpec, program: &str) -> Rendered;

    /// Whether asking this version for its counters disturbs its clients. Then it is asked only before and
    /// after the load.
    fn counting_disturbs(&self, version: &Version) -> bool {
        let _ = version;
        false
    }

    /// What the server counted since it started, by the names of [`dnslab_record::counter`] where one fits,
    /// otherwise by the server's own. Called on a thread inside the server's network. Fails with half a
    /// sentence.
    fn counters(&self, access: &Access) -> Result<BTreeMap<String, u64>, String> {
        let _ = access;
        Ok(BTreeMap::new())
    }
}

/// The counts of `table` that `find` finds, by the names of the table.
pub(super) fn counts_found<K, const N: usize>(
    table: [(&str, K); N],
    find: impl Fn(K) -> Option<u64>,
) -> BTreeMap<String, u64> {
    let found = table.into_iter().filter_map(|(name, key)| Some((name.to_owned(), find(key)?)));
    found.collect()
}

/// How a running server is asked for its counters.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// Its folder, with its Unix sockets.
    pub(crate) directory: PathBuf,
    /// Where it publishes its counters on the loopback interface, [`Ports::control`].
    pub(crate) address: SocketAddr,
    pub(crate) service: SocketAddr,
    /// Its program; its control program is in the same folder.
    pub(crate) binary: PathBuf,
    /// `None` for the user of this process.
    pub(crate) user: Option<User>,
    /// What a control program runs under.
    pub(crate) guard: GuardProgram,
    /// How often it has been asked before, for a server that also counts these queries.
    pub(crate) earlier: u64,
}

/// Seconds for which a server keeps an idle connection: longer than any pause of a run, so that only the load
/// decides when connections are opened. It is the most that BIND accepts.
pub(super) const IDLE_SECONDS: u32 = 120;

/// Refuses DNS over HTTPS at another path than [`USUAL_HTTP_PATH`], for a server that has no other.
pub(super) fn has_usual_http_path(title: &str, spec: &ServerSpec) -> Result<(), String> {
    let is_asked_for = spec.transports.iter().any(|transport| transport.is_http());
    if is_asked_for && spec.http_path != USUAL_HTTP_PATH {
        return Err(format!("{title} answers DNS over HTTPS at `{USUAL_HTTP_PATH}` only"));
    }
    Ok(())
}

/// The path of the examples in RFC 8484.
pub(super) const USUAL_HTTP_PATH: &str = "/dns-query";

/// Where a resolver begins, for its notes. `option` is how it is told.
pub(super) fn hints_note(hints: &RootHints, option: &str) -> String {
    match hints {
        RootHints::BuiltIn => {
            "it resolves by itself, beginning at the Internet's root servers, which it knows"
                .to_owned()
        }
        RootHints::Zone(_) => format!(
            "it resolves by itself, beginning at the root servers of the file {ROOT_HINTS} ({option})"
        ),
    }
}

/// What a server validates from, for its notes; `none` if it does not.
pub(super) fn trust_note(spec: &ServerSpec, none: &str) -> String {
    match (spec.validates(), &spec.root_hints) {
        (false, _) => none.to_owned(),
        (true, Some(RootHints::BuiltIn)) => {
            "it validates, from IANA's trust anchors of the Internet's root".to_owned()
        }
        (true, _) => "it validates, from the trust anchor of the laboratory's root".to_owned(),
    }
}

/// Words of a DS record in presentation format (RFC 4034, section 5.3) from its key tag on, with its digest
/// as one word, even if it is written as several.
pub(super) fn trust_anchor_words(anchor: &str) -> [String; 4] {
    let mut words = anchor.split_ascii_whitespace().skip_while(|word| *word != "DS").skip(1);
    let mut word = || words.next().unwrap_or_default().to_owned();
    let numbers = [word(), word(), word()];
    let [tag, algorithm, digest_type] = numbers;
    [tag, algorithm, digest_type, words.collect()]
}
