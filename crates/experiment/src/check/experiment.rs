//! The experiment as checked: nothing is left open, and what cannot be is not expressible.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Topology;
use dnslab_lab::{CertificateKind, Identity, LabError, Logging, ServerKind, Version};
use dnslab_load::{HttpSettings, Mode, Quickack, ReceiveTime, Records, TlsGroup, TlsVersions};
use dnslab_measure::statistics::Metric;
use dnslab_traffic::{
    ClientBehaviour, ClientSubnets, Delay, Loss, Selection, SlicePlan, SourceAddresses, TypeMix,
};
use dnslab_wire::{QueryOptions, Transport, TsigKey};

/// An experiment that can be planned.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Its name, fit for the name of a folder.
    pub name: String,
    /// The question that it answers.
    pub question: String,
    /// Name of the variant that the others are compared with; one of the variants.
    pub baseline: String,
    /// The metric that answers the question; `None` if the load decides.
    pub answered_by: Option<Metric>,
    /// Relative difference (0.02 = 2 %) below which a difference does not matter, in [0, 1].
    pub margin: f64,
    /// Runs of each variant, at least 1.
    pub runs: u32,
    /// Seed of the order and of everything drawn at random.
    pub seed: u64,
    /// How the variants of a round alternate.
    pub alternate: Alternate,
    /// The slices, where they alternate in slices: the guard is their lead.
    pub slices: SlicePlan,
    /// The load at one rate for all; `None` without.
    pub common: Option<CommonSettings>,
    /// The variants in the order of the file, at least one, each with a name of its own.
    pub variants: Vec<Variant>,
}

/// How the variants of a round alternate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alternate {
    /// In slices where servers can be up together without changing what is measured.
    #[default]
    Auto,
    /// In slices.
    Slices,
    /// One whole run after another.
    Runs,
}

impl Alternate {
    /// The word of the experiment file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Slices => "slices",
            Self::Runs => "runs",
        }
    }
}

/// The load at one rate for all variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonSettings {
    /// Queries per second over all clients; `None` for half of what the slowest variant answers.
    pub rate_qps: Option<u32>,
    /// Length of its measured window, for each variant; above zero.
    pub duration: Duration,
    /// Load before it.
    pub warm_up: Duration,
}

impl Experiment {
    /// The variant of this name.
    #[must_use]
    pub fn variant(&self, name: &str) -> Option<&Variant> {
        self.variants.iter().find(|variant| variant.name == name)
    }
}

/// One case of the experiment, complete in itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Its name, fit for the name of a folder.
    pub name: String,
    /// The server under test.
    pub server: ServerSettings,
    /// The servers behind it, and where all of them are.
    pub topology: Topology,
    /// The load on it.
    pub load: LoadSettings,
    /// What a right answer is.
    pub expect: Expectation,
    /// Names of the variants that it is compared with; `None` where the experiment's own order holds:
    /// each with the baseline, and that with none.
    pub compared_with: Option<Vec<String>>,
}

/// The server under test.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSettings {
    /// Which server, and how to come by it.
    pub server: Server,
    /// How its certificate is verified; `None` if the transport has none.
    pub verification: Option<Verification>,
    /// The certificate that it is started with; the preset where dnslab starts none.
    pub certificate: CertificateKind,
    /// The zone that it, or its upstream, serves, and that names are taken from.
    pub zone: ZoneSettings,
    /// What it writes of each query.
    pub logging: Logging,
    /// It validates what its upstream says.
    pub dnssec: bool,
    /// It has no cache: each query goes upstream.
    pub without_cache: bool,
    /// It is watched while the load runs.
    pub watch: bool,
}

impl ServerSettings {
    /// The kind alone; `None` for a server that runs already.
    #[must_use]
    pub fn kind(&self) -> Option<ServerKind> {
        self.server.kind()
    }

    /// The kind by the word of the experiment file.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        self.kind().map_or(EXTERNAL, ServerKind::name)
    }

    /// The settings of the process, if dnslab starts one.
    #[must_use]
    pub fn process(&self) -> Option<&ProcessSettings> {
        self.server.process()
    }
}

/// The word of the experiment file for a server that runs already.
pub(crate) const EXTERNAL: &str = "external";

impl Server {
    /// The kind alone; `None` for a server that runs already.
    #[must_use]
    pub fn kind(&self) -> Option<ServerKind> {
        match self {
            Self::Embedded { .. } => Some(ServerKind::Embedded),
            Self::Installed { software, .. } => Some(*software),
            Self::External { .. } => None,
        }
    }

    /// The settings of the process, if dnslab starts one.
    #[must_use]
    pub fn process(&self) -> Option<&ProcessSettings> {
        match self {
            Self::Embedded { process, .. } | Self::Installed { process, .. } => Some(process),
            Self::External { .. } => None,
        }
    }

    /// Its program, where the experiment names one.
    #[must_use]
    pub fn binary(&self) -> Option<&Path> {
        match self {
            Self::Installed { binary, .. } => binary.as_deref(),
            Self::Embedded { .. } | Self::External { .. } => None,
        }
    }

    /// The root folder that it is taken from, where it is not the system's.
    #[must_use]
    pub fn root(&self) -> Option<&Path> {
        match self {
            Self::Installed { root, .. } => root.as_deref(),
            Self::Embedded { .. } | Self::External { .. } => None,
        }
    }

    /// The text that is appended to its configuration, where the experiment has one.
    #[must_use]
    pub fn extra(&self) -> Option<&str> {
        match self {
            Self::Installed { extra, .. } => extra.as_deref(),
            Self::Embedded { .. } | Self::External { .. } => None,
        }
    }

    /// The whole path of the program that the experiment names, by itself or by a root folder, with its
    /// version where that is known without running it; `None` if it names none.
    ///
    /// # Errors
    /// When it is not there.
    #[must_use]
    pub fn named_program(&self) -> Option<Result<(PathBuf, Option<Version>), LabError>> {
        let Self::Installed { software, binary, root, .. } = self else { return None };
        match (root, binary) {
            (Some(root), _) => {
                Some(dnslab_lab::program_in_root(*software, root).map_err(LabError::from))
            }
            (None, Some(binary)) => {
                Some(dnslab_lab::named_program(*software, binary).map(|path| (path, None)))
            }
            (None, None) => None,
        }
    }
}

/// Which server, and how to come by it.
#[derive(Clone, Debug, PartialEq)]
pub enum Server {
    /// dnslab's own responder, started as a process of its own.
    Embedded {
        /// Where and how it runs.
        process: ProcessSettings,
        /// Its delay program.
        delay: Option<Delay>,
        /// Its loss program.
        loss: Option<Loss>,
        /// CPU time that each of its answers costs beside what it needs; 0 for none.
        busy: Duration,
    },
    /// An installed server, started and stopped for each run.
    Installed {
        /// Which; never the embedded one.
        software: ServerKind,
        /// Where and how it runs.
        process: ProcessSettings,
        /// The program; `None` to find it. A name without `/` is looked up on the search path.
        binary: Option<PathBuf>,
        /// Root folder that it is taken from and runs in; `None` for the system's. A name without
        /// `/` is one in the cache. Never together with `binary`.
        root: Option<PathBuf>,
        /// Text appended to its configuration.
        extra: Option<String>,
    },
    /// A server that runs already.
    External {
        /// Where it answers on the transport of the load.
        target: SocketAddr,
        /// The host name that this address was found under; `None` if the address was written.
        name: Option<String>,
        /// Name that its certificate must have; `None` to verify the address.
        tls_name: Option<String>,
        /// How its processes are found on this machine.
        identity: Identity,
    },
}

/// Where and how a started server runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessSettings {
    /// Address to listen on; the ports are free ones.
    pub address: IpAddr,
    /// Threads; `None` for the number of its CPUs.
    pub threads: Option<u32>,
    /// CPUs to pin it to, each once; empty to let dnslab choose.
    pub cpus: Vec<usize>,
}

/// How the certificate of a server is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verification {
    /// Against the authority that dnslab makes for the run.
    RunAuthority,
    /// Against the authority in this PEM file.
    Authority(PathBuf),
    /// Not at all.
    Off,
}

/// The zone under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneSettings {
    /// Its name, in lower case, without the dot of the root.
    pub name: String,
    /// Address records in it, at least 1.
    pub records: u32,
    /// Time to live of its records in seconds, below 2^31 (RFC 2181, section 8).
    pub ttl_s: u32,
}

/// The load.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadSettings {
    /// How queries travel.
    pub transport: Transport,
    /// Simulated clients, at least 1.
    pub clients: u32,
    /// What decides when a query is sent.
    pub mode: Mode,
    /// Length of the measured window; the longest, if the load ends with its last query.
    pub duration: Duration,
    /// Queries after which the load ends; `None` for a load that ends by the clock alone.
    pub most_queries: Option<u64>,
    /// Load before the measured window; may be zero.
    pub warm_up: Duration,
    /// A query without an answer for this long has timed out.
    pub timeout: Duration,
    /// Worker threads, at most one per client; `None` for one on each CPU left to the load.
    pub workers: Option<u32>,
    /// CPUs to pin the workers to, one for each; empty to let dnslab choose.
    pub cpus: Vec<usize>,
    /// What is asked.
    pub queries: Queries,
    /// Which query comes next.
    pub selection: Selection,
    /// Flags and EDNS of each query, as they may be sent over the transport.
    pub options: QueryOptions,
    /// Longest time for which sends and receives are gathered into one system call.
    pub horizon: Duration,
    /// When clients connect, how often, and for how long.
    pub behaviour: ClientBehaviour,
    /// Addresses that the clients send from; `None` to let the kernel choose.
    pub sources: Option<SourceAddresses>,
    /// Versions, tickets and early data; the preset where the transport has no TLS.
    pub tls: TlsChoice,
    /// Method and path; the preset where the transport has no HTTP.
    pub http: HttpSettings,
    /// True if queries carry DNS cookies.
    pub cookies: bool,
    /// Client subnets that queries carry.
    pub subnets: Option<Subnets>,
    /// The key that queries are signed with.
    pub tsig: Option<Tsig>,
    /// Whose clock says when a datagram came; the preset where there are none.
    pub receive_time: ReceiveTime,
    /// When what comes over TCP is acknowledged at once; never where there is none.
    pub quickack: Quickack,
}

/// What clients make of TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsChoice {
    /// Versions that they offer.
    pub versions: TlsVersions,
    /// They keep tickets and resume.
    pub resumption: bool,
    /// They send queries with the first packet where a ticket allows it; then `resumption` is true.
    pub early_data: bool,
    /// How they put queries into TLS records; the preset where the transport leaves no choice.
    pub records: Records,
    /// Key exchange groups that they offer, the preferred one first; at least one.
    pub groups: Vec<TlsGroup>,
}

impl Default for TlsChoice {
    /// What the keys of the fields are preset to.
    fn default() -> Self {
        Self {
            versions: TlsVersions::Both,
            resumption: true,
            early_data: false,
            records: Records::PerQuery,
            groups: TlsGroup::PRESET.to_vec(),
        }
    }
}

/// Client subnets, and where they come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subnets {
    /// Written in the experiment.
    Written(ClientSubnets),
    /// The lines of a file.
    File(PathBuf),
}

/// A TSIG key, and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Tsig {
    /// Written in the experiment. Its secret is not written out again.
    Written(TsigKey),
    /// The content of a file.
    File(PathBuf),
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Queries {
    /// The names of the zone, for these types.
    Zone(TypeMix),
    /// The lines of a query file in the format of dnsperf.
    File(PathBuf),
    /// The addresses of so many popular names in as many domains ([`dnslab_traffic::popular_names`]).
    Popular(u32),
}

/// What a right answer is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expectation {
    /// Response code (RFC 1035, section 4.1.1), 0 to 15.
    pub rcode: u8,
    /// Share of wrong answers beyond which a run is invalid, in [0, 1].
    pub wrong_limit: f64,
    /// Share of the queries of the measured window without an answer beyond which a run is invalid,
    /// in [0, 1].
    pub lost_limit: f64,
}
