//! A server that dnslab has started on a host.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use dnslab_lab::{RootHints, ServerSpec, Upstream, certificate};
use dnslab_load::Job;
use dnslab_protocol::{
    Answer, Order, PortChoice, SentFile, SentJob, SentPolicy, SentQueries, SentRootHints,
    SentSignatures, SentSource, SentUpstream, SentZone, ServerOrder, Serving,
};
use dnslab_record::ServerFacts;
use dnslab_settings::{ChainRole, Variant};
use dnslab_traffic::QueryList;
use dnslab_wire::{Query, Transport};

use crate::link::{DONE_WITHIN, Link, LinkError};
use crate::readiness::Ready;
use crate::watching::{FoundThere, WatchedServer};

/// Octets of a file that are sent at once.
const PART: usize = 1 << 20;

/// How often it is looked whether somebody waits for a server no longer.
const LOOK: Duration = Duration::from_millis(50);

/// A server that dnslab has started. It ends when this is dropped.
#[derive(Debug)]
pub struct StartedServer {
    there: Arc<FoundThere>,
    addresses: Vec<(Transport, SocketAddr)>,
    authority: Option<PathBuf>,
}

/// A server that is to be started on a host.
#[derive(Clone, Copy, Debug)]
pub struct SentServer<'a> {
    /// Its variant.
    pub variant: &'a Variant,
    /// Which of the variant's servers it is.
    pub role: ChainRole,
    /// As it would be started here. Its folder is for what of it is kept here.
    pub spec: &'a ServerSpec,
    /// The ports that it gets there.
    pub ports: PortChoice,
    /// Decides every draw of the embedded server.
    pub seed: u64,
    /// It is ready when it answers this so.
    pub question: (&'a Query, Ready),
    /// And when its policy denies this.
    pub denied: Option<&'a Query>,
    /// Whoever asks it that, wherever this job goes.
    pub client: &'a Job,
}

impl SentServer<'_> {
    fn order(&self, link: &Link, stop: &AtomicBool) -> Result<ServerOrder, NotServed> {
        let Self { variant, role, spec, ports, seed, question: (question, ready), denied, client } =
            *self;
        let one = |query: &Query| {
            let list = QueryList::from_queries(vec![query.clone()], "readiness".to_owned());
            SentQueries::parts_of(&list).remove(0)
        };
        let limit = variant.server.start_limit;
        let is_shared = link.shares_files();
        Ok(ServerOrder {
            variant: variant.as_served(),
            role,
            folder: is_shared.then(|| absolute(&spec.directory)).transpose()?,
            address: spec.address,
            ports,
            cpus: spec.cpus.clone(),
            connections: spec.connections,
            seed,
            question: one(question),
            has_record: ready == Ready::Record,
            denied: denied.map(one),
            client: Box::new(SentJob::from(client).on_cpus(Vec::new())),
            source: source_there(link, spec, stop)?,
            start_limit_ns: u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX),
        })
    }
}

fn absolute(path: &Path) -> Result<PathBuf, NotServed> {
    std::path::absolute(path).map_err(|source| NotServed::File { path: path.to_owned(), source })
}

/// What a server answers from, whose files its host has from here on.
fn source_there(
    link: &Link,
    spec: &ServerSpec,
    stop: &AtomicBool,
) -> Result<SentSource, NotServed> {
    let file = |path: &Path| match link.shares_files() {
        true => absolute(path).map(SentFile::There),
        false => file_there(link, path, stop).map(SentFile::Sent),
    };
    let zone = spec.zone.as_ref().map(|zone| {
        let signatures = zone.signatures.as_ref();
        let signatures = signatures.map(|own| SentSignatures { nsec3: own.nsec3.clone() });
        Ok::<_, NotServed>(SentZone { file: file(&zone.path)?, signatures })
    });
    let upstream = spec.upstream.as_ref().map(|upstream| {
        let Upstream { address, further, transport, tls } = upstream;
        let tls =
            tls.as_ref().map(|tls| Ok::<_, NotServed>((file(&tls.authority)?, tls.name.clone())));
        Ok::<_, NotServed>(SentUpstream {
            addresses: std::iter::once(*address).chain(further.iter().copied()).collect(),
            transport: transport.to_string(),
            tls: tls.transpose()?,
        })
    });
    let policy = spec.policy_zone.as_ref().map(|policy| {
        Ok::<_, NotServed>(SentPolicy { name: policy.name.clone(), file: file(&policy.path)? })
    });
    Ok(SentSource {
        zone: zone.transpose()?,
        upstream: upstream.transpose()?,
        root_hints: spec.root_hints.as_ref().map(|hints| match hints {
            RootHints::BuiltIn => SentRootHints::BuiltIn,
            RootHints::Zone(text) => SentRootHints::Zone(text.clone()),
        }),
        trust_anchors: spec.trust_anchors.clone(),
        policy: policy.transpose()?,
        names: spec.embedded.names.as_deref().map(file).transpose()?,
        hierarchy: spec.embedded.hierarchy.clone(),
        path_delay: spec.embedded.path_delay.clone(),
    })
}

/// Why a server was not started there.
#[derive(Debug, thiserror::Error)]
pub enum NotServed {
    /// The host said no, or is lost.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A file here cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Nobody waits for it any more.
    #[error("interrupted before the server was ready")]
    Interrupted,
}

impl StartedServer {
    /// Starts a server on a host, and waits until it answers there. `stop` gives up.
    ///
    /// # Errors
    /// When it does not start, or its host is lost.
    pub fn start(
        link: &Arc<Link>,
        sent: &SentServer<'_>,
        stop: &AtomicBool,
    ) -> Result<Self, NotServed> {
        let order = sent.order(link, stop)?;
        let limit = sent.variant.server.start_limit;
        let server = link.number();
        link.expect_server(server);
        let id = link.begin_order(Order::Serve { server, order: Box::new(order) });
        let serving = wait_for(link, (id, server), limit, stop);
        let serving = match serving {
            Ok(Answer::Serving(serving)) => serving,
            other => {
                link.forget_server(server);
                return Err(other.err().unwrap_or_else(|| link.misunderstood().into()));
            }
        };
        // From here on it is left whatever happens.
        let Serving { facts, addresses, authority, configuration } = *serving;
        let kept = Kept { folder: &sent.spec.directory, is_shared: link.shares_files() };
        let configuration = configuration.map(|(name, text)| kept.configuration(&name, &text));
        let configuration = configuration.transpose().map(Option::flatten);
        let authority = authority.map(|text| kept.write(certificate::AUTHORITY, &text));
        let kind = sent.spec.kind.name().to_owned();
        let named = configuration.as_ref().ok().cloned().flatten();
        let facts = ServerFacts { kind, configuration: named, ..facts };
        let there = Arc::new(FoundThere::started(link, server, facts));
        configuration?;
        let known = addresses.into_iter().filter_map(|(transport, address)| {
            Some((transport.parse::<Transport>().ok()?, address))
        });
        let addresses: Vec<_> = known.collect();
        // A load goes nowhere else than where it was to go.
        let own = sent.spec.address;
        if addresses.iter().any(|(_, address)| address.ip() != own || address.port() == 0) {
            return Err(link.contradicted("its server answers at another address").into());
        }
        let is_missing =
            |transport: &Transport| addresses.iter().all(|(known, _)| known != transport);
        if sent.spec.transports.iter().any(is_missing) {
            return Err(link.misunderstood().into());
        }
        Ok(Self { there, addresses, authority: authority.transpose()? })
    }

    /// The server as it runs, for the record.
    #[must_use]
    pub fn facts(&self) -> &ServerFacts {
        &self.there.found.facts
    }

    /// Where it answers, one entry per transport asked for.
    #[must_use]
    pub fn addresses(&self) -> &[(Transport, SocketAddr)] {
        &self.addresses
    }

    /// The certificate that its clients must trust, if it speaks TLS.
    #[must_use]
    pub fn authority(&self) -> Option<&Path> {
        self.authority.as_deref()
    }

    /// What it is watched by.
    #[must_use]
    pub fn watched(&self) -> WatchedServer {
        Arc::clone(&self.there).into()
    }

    /// How it ended, if it has ended by itself, with so many lines of the end of its log; does not wait.
    #[must_use]
    pub fn exited(&self, lines: usize) -> Option<(String, Vec<String>)> {
        let (ending, log) = self.there.exited()?;
        Some((ending, log[log.len().saturating_sub(lines)..].to_vec()))
    }

    /// The last lines of its log, oldest first; empty if the log cannot be read.
    #[must_use]
    pub fn log_tail(&self, lines: usize) -> Vec<String> {
        self.there.log_tail(lines).unwrap_or_default()
    }

    /// Ends it, and waits until it has ended. A server that had ended by itself was noticed before.
    pub fn stop(self) {}
}

impl Drop for StartedServer {
    /// What follows may remove its folder.
    fn drop(&mut self) {
        self.there.stop();
    }
}

/// Octets of the name of a file, at most.
const MAX_NAME: usize = 64;

/// What is kept here of a server on another host.
struct Kept<'a> {
    /// Of its state.
    folder: &'a Path,
    /// It is there.
    is_shared: bool,
}

impl Kept<'_> {
    /// Writes a file. One that is there is left alone.
    fn write(&self, name: &str, text: &str) -> Result<PathBuf, NotServed> {
        let path = self.folder.join(name);
        if self.is_shared {
            return Ok(path);
        }
        let written = fs::create_dir_all(self.folder).and_then(|()| fs::write(&path, text));
        written.map(|()| path.clone()).map_err(|source| NotServed::File { path, source })
    }

    /// The path inside the folder of the run; `None` for a name that is none of a file.
    fn configuration(&self, name: &str, text: &str) -> Result<Option<String>, NotServed> {
        let is_short = (1..=MAX_NAME).contains(&name.len());
        let is_plain =
            name.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"._-".contains(&octet));
        let folder = self.folder.file_name().map(|folder| folder.to_string_lossy());
        let Some(folder) = folder.filter(|_| is_plain && is_short && !name.starts_with('.')) else {
            return Ok(None);
        };
        self.write(name, text)?;
        Ok(Some(format!("{folder}/{name}")))
    }
}

/// The number of a file on another host, which is sent if the host has none that is the same.
fn file_there(link: &Link, path: &Path, stop: &AtomicBool) -> Result<u32, NotServed> {
    let octets =
        fs::read(path).map_err(|source| NotServed::File { path: path.to_owned(), source })?;
    link.file_of(&octets, |file| {
        for part in octets.chunks(PART) {
            if stop.load(Ordering::Relaxed) {
                return Err(NotServed::Interrupted);
            }
            match link.order(Order::File { file, octets: BASE64.encode(part) })? {
                Answer::Taken => {}
                _ => return Err(link.misunderstood().into()),
            }
        }
        Ok(())
    })
}

/// Waits until a server answers, or nobody waits for it.
fn wait_for(
    link: &Arc<Link>,
    (id, server): (u32, u32),
    limit: Duration,
    stop: &AtomicBool,
) -> Result<Answer, NotServed> {
    let within = limit.saturating_add(DONE_WITHIN);
    let deadline = Instant::now() + within;
    loop {
        if let Some(answer) = link.ready_within(id, LOOK) {
            return Ok(answer?);
        }
        let is_late = Instant::now() > deadline && !link.is_own();
        if !is_late && !stop.load(Ordering::Relaxed) {
            continue;
        }
        link.order_only(Order::Forget { server });
        if link.shares_files() {
            // It gives up now. What follows may remove its folder.
            link.done(id).ok();
        } else {
            link.give_back(id);
        }
        return Err(if is_late { link.is_late(within).into() } else { NotServed::Interrupted });
    }
}
