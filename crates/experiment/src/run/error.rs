//! Why a run cannot begin: its queries, its servers, and the first answer.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use dnslab_agent::{LinkError, NotServed};
use dnslab_capture::CaptureError;
use dnslab_internet::DescriptionError;
use dnslab_lab::{LabError, OwnConfigurationError};
use dnslab_load::{AskError, TlsSettingsError};
use dnslab_traffic::population::{PopulationError, ProfileError};
use dnslab_traffic::{ClientSubnetsError, QueryFileError, ZoneFileError};
use dnslab_wire::{AnswerFault, Transport, TsigKeyError, rcode_name};

/// Why there is nothing to ask.
#[derive(Debug, thiserror::Error)]
pub enum QueriesError {
    /// A file cannot be read.
    #[error("cannot read the {what} {}: {source}", path.display())]
    Unreadable {
        /// `query file`, `population file`, `client subnets` or `TSIG key`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The query file is no query file: which lines, and why.
    #[error(transparent)]
    Malformed(#[from] QueryFileError),
    /// The zone file is none.
    #[error("{}: {source}", path.display())]
    ZoneFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ZoneFileError,
    },
    /// The configuration of the user's own cannot be run here.
    #[error(transparent)]
    Configuration(#[from] OwnConfigurationError),
    /// The zone could not be signed.
    #[error(transparent)]
    Signing(LabError),
    /// The file of client subnets holds something else.
    #[error("{}: {source}", path.display())]
    Subnets {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ClientSubnetsError,
    },
    /// The file of the TSIG key holds something else.
    #[error("{}: {source}", path.display())]
    Tsig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: TsigKeyError,
    },
    /// There is no private Internet whose names could be asked for.
    #[error(transparent)]
    Internet(#[from] InternetError),
    /// The capture is none, or cannot be read.
    #[error("{}: {source}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: CaptureError,
    },
    /// The capture is a pipe, a socket or a device.
    #[error(
        "{} is no regular file, and a capture is read several times: write it to a file, which may be compressed \
         with gzip or zstd, and give that; for a server that sends dnstap to a socket, write `unix:PATH`",
        path.display()
    )]
    Passing {
        /// Its path.
        path: PathBuf,
    },
    /// The capture has no query that can be sent.
    #[error(
        "the capture {} has no DNS query {looked_for}{}{left_out}{}{}",
        path.display(), if left_out.is_empty() { "" } else { "; it has: " },
        if remedy.is_some() { ": " } else { "" }, remedy.as_deref().unwrap_or_default()
    )]
    NoQuery {
        /// The file.
        path: PathBuf,
        /// Which queries were looked for.
        looked_for: String,
        /// What it has instead.
        left_out: String,
        /// What to change so that it has some.
        remedy: Option<String>,
    },
    /// The capture is too short for so many chunks side by side.
    #[error(
        "the capture {} is {has} long, too short for {}: shorten the load (`load.duration`, `load.warm_up`), or lower \
         `load.factor` or `load.speed`",
        path.display(),
        if *chunks == 1 { format!("a load of {chunk} of it") } else { format!("{chunks} chunks of {chunk} side by side") }
    )]
    ShortCapture {
        /// The file.
        path: PathBuf,
        /// Its length.
        has: String,
        /// Chunks that are wanted.
        chunks: u32,
        /// Length of each.
        chunk: String,
    },
    /// The capture says too little of its clients.
    #[error(
        "the capture {} has only {source}{}{left_out}{}{}",
        path.display(), if left_out.is_empty() { "" } else { "; left out: " },
        if cut.is_some() { "; " } else { "" }, cut.as_deref().unwrap_or_default()
    )]
    Profile {
        /// The file.
        path: PathBuf,
        /// What it lacks.
        source: ProfileError,
        /// What was left out, as a sentence; empty if nothing was.
        left_out: String,
        /// Why reading ended before the end of the file.
        cut: Option<String>,
    },
    /// There is no population.
    #[error(transparent)]
    Population(#[from] PopulationFileError),
    /// The zone is impossible.
    #[error("zone `{name}`: {reason}")]
    Zone {
        /// Its name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl QueriesError {
    /// Makes the error of a file of this kind.
    pub(super) fn unreadable(
        what: &'static str,
        path: &Path,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Unreadable { what, path, source }
    }
}

/// Slices were asked for, and the variants of a round cannot take turns.
#[derive(Debug, thiserror::Error)]
#[error(
    "variant `{variant}`: it cannot take turns in slices: {reason}\n  hint:    remove `repeat.alternate`, or set it to \
     \"runs\""
)]
pub struct NoSlicesError {
    /// The variant that is in the way.
    pub variant: String,
    /// Why.
    pub reason: String,
}

/// Why there is no private Internet.
#[derive(Debug, thiserror::Error)]
pub enum InternetError {
    /// The file cannot be read.
    #[error("cannot read the hierarchy {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file describes nothing that can be.
    #[error("the hierarchy {}: {source}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: DescriptionError,
    },
    /// It is not signed, so nothing can be validated.
    #[error(
        "the hierarchy signs nothing, so there is no trust anchor for `server.dnssec`\n  hint:    write \
         `root = true` under [dnssec] in the file of `upstream.hierarchy`"
    )]
    Unsigned,
}

/// Why there is no population.
#[derive(Debug, thiserror::Error)]
pub enum PopulationFileError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{}, {source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: PopulationError,
    },
}

/// Why a load on a server that runs already cannot succeed.
#[derive(Debug, thiserror::Error)]
pub enum FirstQueryError {
    /// It gave no answer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsSettingsError),
    /// A file that the queries need cannot be read.
    #[error(transparent)]
    Queries(#[from] QueriesError),
    /// It gave wrong answers only.
    #[error("{target} answers `{query}` with {found} over {transport}, not with {expected}{}", others(*.asked))]
    Wrong {
        /// Where the queries went.
        target: SocketAddr,
        /// Over which transport.
        transport: Transport,
        /// The first query.
        query: String,
        /// What is wrong with its answer.
        found: WrongAnswer,
        /// What a right answer is.
        expected: String,
        /// How many queries were asked, none of which had a right answer.
        asked: usize,
    },
}

/// What is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongAnswer {
    /// It has another response code.
    #[error("{}", rcode_name(*.0))]
    Code(u16),
    /// It has this code because the query has an OPT record (RFC 6891): without one it is right.
    #[error("{} because of EDNS (a right answer came to the same query without it)", rcode_name(*.0))]
    Edns(u16),
    /// It has the right code, but no record.
    #[error("{} without a record", rcode_name(*.0))]
    NoRecord(u16),
    /// It is no whole message, or answers another question.
    #[error("what is no right answer ({0})")]
    Fault(AnswerFault),
}

fn others(asked: usize) -> String {
    match asked {
        0..=1 => String::new(),
        asked => format!(", and none of {asked} queries rightly"),
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum TargetError {
    #[error(transparent)]
    Lab(#[from] LabError),
    #[error(transparent)]
    Tls(#[from] TlsSettingsError),
    #[error(transparent)]
    Zone(#[from] QueriesError),
    /// What the user named is not the server that answers.
    #[error("{0}")]
    NotTheServer(String),
    /// A host cannot be reached, or was lost.
    #[error(transparent)]
    Host(#[from] LinkError),
    /// A server could not be started on its host.
    #[error(transparent)]
    NotServed(#[from] NotServed),
    /// The agent of its host could not start a server.
    #[error("{failure}")]
    NotStarted { failure: String, log: Vec<String> },
    /// Nobody waits for a server any more.
    #[error("interrupted before {0} was ready")]
    Interrupted(&'static str),
    /// A server answers on its host, and not from here.
    #[error(
        "the server answers on {host}, and {address} does not answer from here over {transport}: {reason}\n  hint:    a \
         firewall may be between, or {host} is behind NAT, whose address no server there can have: then start the server \
         there yourself (`server.kind = \"external\"`)"
    )]
    NotReached { host: String, address: SocketAddr, transport: Transport, reason: String },
    #[error(
        "{host} does not say at which address it was reached\n  hint:    set `server.address`, or name a host that \
         ssh or kubectl reaches"
    )]
    NoAddress { host: String },
    #[error("cannot write {}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("the {place}: {source}")]
    ChainServer {
        /// As in the experiment file.
        place: &'static str,
        source: Box<TargetError>,
    },
    #[error(
        "the external upstream at {address} gives no right answer over {transport}: {reason}\n  hint:    does it \
         answer this host there{tls}?",
        tls = if transport.is_encrypted() {
            ", with a certificate of `upstream.tls_name` from `upstream.authority`"
        } else {
            ""
        }
    )]
    ExternalUpstream { address: SocketAddr, transport: Transport, reason: String },
    #[error(
        "this system has no file of authorities to verify the certificate of the external upstream with\n  \
         hint:    on Debian: apt-get install ca-certificates; or name a file: `upstream.authority`"
    )]
    NoAuthorities,
    /// Server and clients seem to have nothing in common in TLS: with other settings the server answered.
    #[error(
        "the server does not answer clients that offer {offered} alone: {reason}\n  hint:    {library} may have \
         none of them; name others in {key}"
    )]
    NoCommonTls {
        /// Groups or versions.
        offered: String,
        key: &'static str,
        /// What the server has TLS from.
        library: String,
        /// What happened instead of an answer.
        reason: String,
    },
    /// The server that should be running does not answer.
    #[error("{source}{hint}")]
    Silent {
        source: Box<AskError>,
        /// With the line break before it; empty if there is nothing to do.
        hint: String,
    },
}

impl TargetError {
    /// A host could not be reached, or was lost: it may be there when the session is resumed.
    pub(super) fn is_of_host(&self) -> bool {
        match self {
            Self::ChainServer { source, .. } => source.is_of_host(),
            Self::NotServed(NotServed::Link(error)) => {
                matches!(error, LinkError::Lost { .. } | LinkError::Late { .. })
            }
            Self::Host(_) => true,
            _ => false,
        }
    }

    /// Marks the error as that of a server behind the one under test.
    pub(super) fn of(self, place: &'static str) -> Self {
        Self::ChainServer { place, source: Box::new(self) }
    }
}
