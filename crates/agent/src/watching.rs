//! How a server is watched, by the agent of its host.

use std::net::{IpAddr, SocketAddr};
use std::path::{self, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dnslab_lab::Latest;
use dnslab_lab::perf::Sampled;
use dnslab_protocol::clock::Offset;
use dnslab_protocol::{Answer, FoundServer, Order, Sought};
use dnslab_record::{CpuProfile, NetworkPath, ResourceSeries, ServerFacts, Span};
use dnslab_settings::Identity;
use dnslab_wire::Transport;

use crate::counting::CounterWatching;
use crate::link::{Link, LinkError, MAX_CPUS, told};

/// A server that an agent has found on its host.
#[derive(Debug)]
pub struct FoundThere {
    link: Arc<Link>,
    /// Its number there.
    server: u32,
    /// What is known of it.
    pub found: FoundServer,
    /// The agent knows nothing of it any more.
    is_left: AtomicBool,
}

impl FoundThere {
    /// Has an agent find the server that answers at `address`. `Err` in the answer says why it cannot be watched, and
    /// whether what was named is wrong.
    ///
    /// # Errors
    /// When the host is lost, or does not allow it.
    pub fn find(
        link: &Arc<Link>,
        identity: &Identity,
        transport: Transport,
        address: SocketAddr,
    ) -> Result<Result<Self, (String, bool)>, LinkError> {
        let (identity, transport) = (identity.clone(), transport.to_string());
        let server = link.number();
        let sought = Sought { identity, transport, address };
        Ok(match link.order(Order::Find { server, sought })? {
            Answer::Found(found) => {
                let FoundServer { facts, file_limit, plain } = *found;
                let facts = if link.is_own() { facts } else { bounded(facts, link) };
                let found = FoundServer { facts, file_limit, plain };
                let is_left = AtomicBool::new(false);
                Ok(Self { link: Arc::clone(link), server, found, is_left })
            }
            Answer::NotFound { reason, is_fault } => Err((link.says(&reason), is_fault)),
            _ => return Err(link.misunderstood()),
        })
    }
}

impl FoundThere {
    /// A server that was started there.
    pub(crate) fn started(link: &Arc<Link>, server: u32, facts: ServerFacts) -> Self {
        let ServerFacts { kind, version, tls_library, user, seed, configuration, .. } =
            facts.clone();
        let facts = match link.is_own() {
            true => facts,
            false => ServerFacts {
                kind: told(&kind),
                version: told(&version),
                tls_library: told(&tls_library),
                user: told(&user),
                seed,
                configuration,
                ..bounded(facts, link)
            },
        };
        let found = FoundServer { facts, file_limit: None, plain: None };
        let is_left = AtomicBool::new(false);
        Self { link: Arc::clone(link), server, found, is_left }
    }

    pub(crate) fn exited(&self) -> Option<(String, Vec<String>)> {
        self.link.exited(self.server)
    }

    pub(crate) fn log_tail(&self, lines: usize) -> Result<Vec<String>, LinkError> {
        if let Some((_, log)) = self.exited() {
            return Ok(log);
        }
        match self.link.order(Order::Log { server: self.server, lines })? {
            Answer::Log(log) => Ok(log.iter().take(lines).map(|line| told(line)).collect()),
            _ => Err(self.link.misunderstood()),
        }
    }

    /// Ends a server that was started there, and waits until it has ended.
    pub(crate) fn stop(&self) {
        if !self.is_left.swap(true, Ordering::Relaxed) && self.link.ended().is_none() {
            self.link.order(Order::Forget { server: self.server }).ok();
        }
    }
}

/// What an agent may say of a server that somebody else started, and no more of it than is shown.
fn bounded(facts: ServerFacts, link: &Link) -> ServerFacts {
    let ServerFacts {
        mut command, threads, mut cpus, mut core_siblings, mut notes, process, ..
    } = facts;
    command.truncate(MAX_TEXTS);
    notes.truncate(MAX_TEXTS);
    cpus.truncate(MAX_CPUS);
    core_siblings.truncate(MAX_CPUS);
    let texts = |texts: Vec<String>| texts.iter().map(|text| told(text)).collect();
    ServerFacts {
        kind: "external".to_owned(),
        command: texts(command),
        threads,
        cpus,
        core_siblings,
        notes: texts(notes),
        process: told(&process),
        // Where both have one kernel, the numbers of CPUs are those of this machine.
        host: if link.is_this_machine() { String::new() } else { link.name().to_owned() },
        ..ServerFacts::default()
    }
}

/// Texts of one kind that are kept, at most.
const MAX_TEXTS: usize = 64;

impl Drop for FoundThere {
    fn drop(&mut self) {
        self.link.forget_server(self.server);
        if !*self.is_left.get_mut() {
            self.link.order_only(Order::Forget { server: self.server });
        }
    }
}

/// A server that can be watched.
#[derive(Clone, Debug)]
pub struct WatchedServer {
    found: Arc<FoundThere>,
    /// CPUs of the load, if both are one machine.
    load_cpus: Vec<usize>,
    /// Another server has the interrupts of its CPUs.
    has_no_interrupts: bool,
}

impl From<Arc<FoundThere>> for WatchedServer {
    fn from(found: Arc<FoundThere>) -> Self {
        Self { found, load_cpus: Vec::new(), has_no_interrupts: false }
    }
}

impl WatchedServer {
    /// The server beside a load on these CPUs of this host.
    #[must_use]
    pub fn beside_load(self, cpus: &[usize]) -> Self {
        let is_beside = self.found.link.is_this_machine();
        Self { load_cpus: if is_beside { cpus.to_vec() } else { Vec::new() }, ..self }
    }

    /// The server without the interrupts of its CPUs, which another one has.
    #[must_use]
    pub fn without_interrupts(self) -> Self {
        Self { has_no_interrupts: true, ..self }
    }

    /// Watches it from here on, beside these processes of dnslab on this machine.
    ///
    /// # Errors
    /// When its host is lost.
    pub fn watch(self, own: Vec<u32>) -> Result<ServerWatch, LinkError> {
        let Self { found, load_cpus, has_no_interrupts } = self;
        let (link, server) = (Arc::clone(&found.link), found.server);
        // Elsewhere other processes have those numbers.
        let own = if link.pid().is_some() { own } else { Vec::new() };
        let order = |watch| Order::Watch { server, watch, load_cpus, has_no_interrupts, own };
        ServerWatch::begin(link, Some(found), order)
    }

    /// Samples where it spends its CPU time from here on, in a load of this length. What perf writes is in the folder
    /// meanwhile, if its host has the files of this one.
    ///
    /// # Errors
    /// When perf cannot sample it, or its host is lost.
    pub fn sample(&self, length: Duration, folder: &Path) -> Result<ServerRecording, LinkError> {
        let folder = self.found.link.shares_files().then(|| path::absolute(folder).ok()).flatten();
        ServerRecording::begin(&self.found, folder, length, self.load_cpus.clone())
    }

    /// Begins to read what it counts, where it publishes that on its host; of a server that was started there, where that
    /// publishes it. `None` if it publishes nothing.
    ///
    /// # Errors
    /// When its host is lost, or knows nothing of what it counts.
    pub fn count(
        &self,
        statistics: Option<SocketAddr>,
    ) -> Result<Option<CounterWatching>, LinkError> {
        CounterWatching::begin(&self.found.link, self.found.server, statistics)
    }

    /// The way that its packets take to an address, if that is known on its host.
    #[must_use]
    pub fn path_to(&self, to: IpAddr) -> Option<NetworkPath> {
        self.found.link.path_to(to).ok()?
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.found.link
    }

    /// Why its host is lost; `None` while it is there.
    #[must_use]
    pub fn lost(&self) -> Option<LinkError> {
        self.found.link.ended()
    }
}

/// A sampling that runs.
#[derive(Debug)]
pub struct ServerRecording {
    there: Arc<FoundThere>,
    sampling: u32,
    /// Its clock when the sampling began.
    before: Offset,
}

impl ServerRecording {
    fn begin(
        there: &Arc<FoundThere>,
        folder: Option<PathBuf>,
        length: Duration,
        load_cpus: Vec<usize>,
    ) -> Result<Self, LinkError> {
        let link = &there.link;
        let (before, sampling, server) = (link.offset()?, link.number(), there.server);
        let length_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        // From here on it is left whatever happens.
        let own = Self { there: Arc::clone(there), sampling, before };
        let order = Order::Sample { server, sampling, folder, length_ns, load_cpus };
        match link.order(order)? {
            Answer::Sampling => Ok(own),
            _ => Err(link.misunderstood()),
        }
    }

    /// Ends the sampling, and counts the samples. Variant, rate and CPU time for each query are left to the caller.
    ///
    /// # Errors
    /// When perf failed, or its host is lost.
    pub fn finish(self, sampled: &Sampled) -> Result<CpuProfile, LinkError> {
        let Self { there, sampling, before } = &self;
        let (origin_ns, _) = there.link.there(*before, sampled.origin)?;
        let Span { from_ns, to_ns } = sampled.window;
        let (sampling, max_stacks) = (*sampling, sampled.max_stacks);
        let end = Order::EndSample { sampling, origin_ns, from_ns, to_ns, max_stacks };
        match there.link.order(end)? {
            Answer::Profile(profile) => match profile.fault() {
                None => Ok(*profile),
                Some(fault) => Err(there.link.contradicted(fault)),
            },
            _ => Err(there.link.misunderstood()),
        }
    }
}

impl Drop for ServerRecording {
    fn drop(&mut self) {
        self.there.link.order_only(Order::Leave { number: self.sampling });
    }
}

/// A watch that runs.
#[derive(Debug)]
pub struct ServerWatch {
    link: Arc<Link>,
    /// The server, which the agent knows as long as this is there; `None` of the agent itself.
    _server: Option<Arc<FoundThere>>,
    watch: u32,
    /// Its clock when the watch began.
    before: Offset,
}

impl ServerWatch {
    /// Watches what the agent of a host uses itself from here on, with a load on these CPUs.
    pub(crate) fn of_load(link: &Arc<Link>, cpus: &[usize]) -> Result<Self, LinkError> {
        let order = |watch| Order::WatchLoad { watch, cpus: cpus.to_vec() };
        Self::begin(Arc::clone(link), None, order)
    }

    /// What the newest sample says; `None` before the first one.
    #[must_use]
    pub fn latest(&self) -> Option<Latest> {
        let (server, load_cpus) = self.link.latest(self.watch)?;
        Some(Latest { server, load_cpus })
    }

    /// The server is on another machine, whose CPUs are others.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        self.link.pid().is_none()
    }

    fn begin(
        link: Arc<Link>,
        server: Option<Arc<FoundThere>>,
        order: impl FnOnce(u32) -> Order,
    ) -> Result<Self, LinkError> {
        let (before, watch) = (link.offset()?, link.number());
        link.expect(watch);
        // From here on it is left whatever happens.
        let own = Self { link, _server: server, watch, before };
        match own.link.order(order(watch))? {
            Answer::Watching => Ok(own),
            _ => Err(own.link.misunderstood()),
        }
    }

    /// Ends the watch. The samples are on the timeline of a load that began at `origin`, with what the busiest threads
    /// did over a window of it (`Sampler::finish_over` of `lab`).
    ///
    /// # Errors
    /// When its host is lost.
    pub fn finish_over(self, origin: Instant, window: Span) -> Result<ResourceSeries, LinkError> {
        let Self { link, watch, before, .. } = &self;
        let (origin_ns, bound_ns) = link.there(*before, origin)?;
        let Span { from_ns, to_ns } = window;
        let end = Order::EndWatch { watch: *watch, origin_ns, from_ns, to_ns };
        match link.order(end)? {
            Answer::Resources(series) => {
                // A child has the clock of this process.
                let clock_bound_ns = link.pid().is_none().then_some(bound_ns);
                let samples = link.samples(*watch);
                let series = ResourceSeries { clock_bound_ns, samples, ..*series };
                // What this process has read itself it takes as it is.
                let fault = series.fault().filter(|_| !link.is_own());
                if let Some(fault) = fault {
                    return Err(link.contradicted(fault));
                }
                let window_ns = window.length_ns().unsigned_abs();
                // What is known no better than that moves a figure by half a percent.
                match bound_ns > window_ns / 200 {
                    true => Err(link.unclear_clock(bound_ns, window_ns / 200)),
                    false => Ok(series),
                }
            }
            _ => Err(link.misunderstood()),
        }
    }
}

impl Drop for ServerWatch {
    fn drop(&mut self) {
        self.link.forget(self.watch);
        self.link.order_only(Order::Leave { number: self.watch });
    }
}
