//! A job as it is sent. Settings are the text that experiment files have, so they are read and held to their bounds by
//! the one reader; queries are their messages, which are sent apart, and TLS trusts certificates and no files.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use dnslab_client::{
    Endpoint, Expected, Job, PlayedClients, TlsSettings, TlsSettingsError, Verification,
};
use dnslab_settings::{Load, MAX_WORKERS};
use dnslab_traffic::{FurtherServers, QueryList, Timeline};
use dnslab_wire::{NotAQuery, Query, Transport, TsigKeyError, UnknownWord};
use rustls_pki_types::CertificateDer;
use serde::{Deserialize, Serialize};

/// A job was read, but cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum UnusableJob {
    /// Its settings are none.
    #[error("the settings of a job cannot be read: {0}")]
    Settings(String),
    /// Its key of TSIG is none.
    #[error(transparent)]
    Tsig(#[from] TsigKeyError),
    /// Its settings of TLS cannot be used.
    #[error("the TLS settings of a job cannot be used: {0}")]
    Tls(#[from] TlsSettingsError),
    /// A message is no query.
    #[error("query {number} of a job is none: {source}")]
    Query {
        /// Counted from 1.
        number: usize,
        /// What is wrong with it.
        source: NotAQuery,
    },
    /// Octets are not in base64.
    #[error("a job has octets that are not in base64: {0}")]
    Octets(#[from] base64::DecodeError),
    /// There is no such transport.
    #[error(transparent)]
    Transport(#[from] UnknownWord),
    /// Each worker has a client, or the clients are played.
    #[error(
        "a job has {workers} workers: there are 1 to {MAX_WORKERS}, and at most one for each client"
    )]
    Workers {
        /// How many.
        workers: u32,
    },
    /// More servers than a client knows.
    #[error("the clients of a job know {servers} servers, and can know {}", 1 + FurtherServers::MAX)]
    Servers {
        /// How many.
        servers: usize,
    },
    /// Queries end in the middle of one.
    #[error("the queries of a job are cut")]
    Cut,
    /// Its settings play clients, and it has none; or it has some, and its settings play none.
    #[error("a job plays clients without saying which, or says which without playing them")]
    Clients,
    /// Shares of the clients that cannot be.
    #[error("the shares of the transports of a job are not between 0 and 1")]
    Shares,
}

/// Shares are written in percent, and their sum is not exact.
const ROUNDING: f64 = 1e-9;

/// A job as it is sent, without its list of queries.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct SentJob {
    /// Without the secret of a key.
    settings: String,
    tsig: Option<String>,
    timeline: Timeline,
    workers: u32,
    cpus: Vec<usize>,
    target: SocketAddr,
    seed: u64,
    expected: Option<Expected>,
    tls: Option<SentTls>,
    played: Option<PlayedClients>,
    others: Vec<SentEndpoint>,
    further: Vec<Vec<SentEndpoint>>,
    tells: bool,
}

/// A part of a list of queries: their messages in base64, each with the block that it is padded to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentQueries {
    /// Where all of them come from, as a sentence.
    pub description: String,
    messages: Vec<(String, u16)>,
}

/// What the settings do not say of TLS: versions, groups and tickets are theirs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SentTls {
    server_name: String,
    /// Certificates in base64; `None` if they are not verified.
    trusted: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SentEndpoint {
    transport: String,
    target: SocketAddr,
    tls: Option<SentTls>,
    share: f64,
}

/// The secret of a key is nothing to be shown.
impl fmt::Debug for SentJob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { settings, target, workers, .. } = self;
        let mut shown = formatter.debug_struct("SentJob");
        shown.field("settings", settings).field("target", target).field("workers", workers);
        shown.finish_non_exhaustive()
    }
}

impl From<&Job> for SentJob {
    fn from(job: &Job) -> Self {
        let settings = Load { tsig: None, ..job.settings.clone() };
        let further = job.further.iter().map(|endpoints| endpoints.iter().map(SentEndpoint::from));
        Self {
            settings: settings.to_toml(),
            tsig: job.settings.tsig.as_ref().map(|key| key.with_secret()),
            expected: job.expected,
            tls: job.tls.as_ref().map(SentTls::from),
            others: job.others.iter().map(SentEndpoint::from).collect(),
            further: further.map(Iterator::collect).collect(),
            timeline: job.timeline.clone(),
            workers: job.workers,
            cpus: job.cpus.clone(),
            target: job.target,
            seed: job.seed,
            played: job.played.clone(),
            tells: job.tells,
        }
    }
}

impl SentJob {
    /// The job with workers that are pinned to these CPUs.
    #[must_use]
    pub fn on_cpus(self, cpus: Vec<usize>) -> Self {
        Self { cpus, ..self }
    }

    /// The job with its list of queries.
    ///
    /// # Errors
    /// When it cannot be applied.
    pub fn with_queries(self, queries: Arc<QueryList>) -> Result<Job, UnusableJob> {
        let sent = self;
        let settings = Load::of_toml(&sent.settings);
        let settings = settings.map_err(|problems| UnusableJob::Settings(problems.to_string()))?;
        let tsig = sent.tsig.map(|key| key.parse()).transpose()?;
        let settings = Load { tsig, ..settings };
        let most = if settings.mode.is_played() { MAX_WORKERS } else { settings.clients };
        if !(1..=most.min(MAX_WORKERS)).contains(&sent.workers) {
            return Err(UnusableJob::Workers { workers: sent.workers });
        }
        if sent.further.len() > FurtherServers::MAX {
            return Err(UnusableJob::Servers { servers: 1 + sent.further.len() });
        }
        if sent.played.is_some() != settings.mode.is_played() {
            return Err(UnusableJob::Clients);
        }
        let shares: f64 = sent.others.iter().map(|other| other.share).sum();
        let mut all = sent.others.iter().chain(sent.further.iter().flatten());
        if !(0.0..=1.0 + ROUNDING).contains(&shares)
            || all.any(|other| other.share.is_sign_negative())
        {
            return Err(UnusableJob::Shares);
        }
        let tls = sent.tls.map(|tls| tls.of_load(&settings)).transpose()?;
        let endpoints = |sent: Vec<SentEndpoint>| -> Result<Vec<Endpoint>, UnusableJob> {
            sent.into_iter().map(|endpoint| endpoint.of_load(&settings)).collect()
        };
        let others = endpoints(sent.others)?;
        let further = sent.further.into_iter().map(endpoints).collect::<Result<_, _>>()?;
        Ok(Job {
            timeline: sent.timeline,
            workers: sent.workers,
            cpus: sent.cpus,
            seed: sent.seed,
            expected: sent.expected,
            tls,
            played: sent.played,
            others,
            further,
            tells: sent.tells,
            ..Job::new(settings, sent.target, queries)
        })
    }
}

impl SentQueries {
    /// Octets of the messages of a part, about.
    const PART: usize = 1 << 20;

    /// The parts of a list; one at least.
    #[must_use]
    pub fn parts_of(list: &QueryList) -> Vec<Self> {
        let part = || Self { description: list.description().to_owned(), messages: Vec::new() };
        let (mut parts, mut octets) = (vec![part()], 0);
        for query in list.iter() {
            let (message, padding_block) = query.parts();
            let text = BASE64.encode(message);
            if octets > Self::PART {
                parts.push(part());
                octets = 0;
            }
            octets += text.len();
            let last = parts.last_mut().expect("there is one at least");
            last.messages.push((text, padding_block));
        }
        parts
    }

    /// The queries of this part, the first of which is number `first` of its list, counted from 1.
    ///
    /// # Errors
    /// When a message is none of a query.
    pub fn queries(self, first: usize) -> Result<Vec<Query>, UnusableJob> {
        let query = |(number, (text, padding_block)): (usize, (String, u16))| {
            let message = BASE64.decode(text)?;
            let query = Query::from_parts(&message, padding_block);
            query.map_err(|source| UnusableJob::Query { number, source })
        };
        (first..).zip(self.messages).map(query).collect()
    }
}

impl From<&TlsSettings> for SentTls {
    fn from(tls: &TlsSettings) -> Self {
        let written = |trusted: &[CertificateDer<'_>]| {
            trusted.iter().map(|certificate| BASE64.encode(certificate)).collect()
        };
        Self { server_name: tls.server_name(), trusted: tls.trusted().map(written) }
    }
}

impl SentTls {
    fn of_load(self, load: &Load) -> Result<TlsSettings, UnusableJob> {
        let certificate = |text: String| Ok(CertificateDer::from(BASE64.decode(text)?));
        let verification = match self.trusted {
            None => Verification::Off,
            Some(trusted) => {
                let read = trusted.into_iter().map(certificate);
                Verification::Certificates(read.collect::<Result<_, UnusableJob>>()?)
            }
        };
        Ok(TlsSettings::new(&self.server_name, &verification)?.of_load(load))
    }
}

impl From<&Endpoint> for SentEndpoint {
    fn from(endpoint: &Endpoint) -> Self {
        let Endpoint { transport, target, tls, share } = endpoint;
        let tls = tls.as_ref().map(SentTls::from);
        Self { transport: transport.to_string(), target: *target, tls, share: *share }
    }
}

impl SentEndpoint {
    fn of_load(self, load: &Load) -> Result<Endpoint, UnusableJob> {
        Ok(Endpoint {
            transport: self.transport.parse::<Transport>()?,
            target: self.target,
            tls: self.tls.map(|tls| tls.of_load(load)).transpose()?,
            share: self.share,
        })
    }
}
