//! The coordinator's end of the link to one host.

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::mem::take;
use std::net::IpAddr;
use std::process::{ChildStderr, ChildStdin};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use dnslab_lab::pods::Owner;
use dnslab_lab::remote::{COPY_MARK, Remote, RemotePipes, command_line, copy_program};
use dnslab_load::{AskError, Asker, Job, ask};
use dnslab_protocol::clock::{EXCHANGES, Exchange, Offset, best, between};
use dnslab_protocol::{
    Answer, BrokenStream, Failure, FrameReader, FromAgent, GREETING, GreetingReader, Order,
    SentJob, SentQueries, ToAgent, message_of,
};
use dnslab_record::{CpuShare, Diagnosis, Fact, LiveServer, NetworkPath, ResourceSample, visible};
use dnslab_settings::{ChainRole, HostAt, HostPlace, Variant};
use dnslab_traffic::QueryList;
use dnslab_wire::Query;

use crate::clock::Clock;
use crate::handed::{Handed, LoadNews};
use crate::output::{BETWEEN_BEATS, Output, READ};
use crate::threads;

/// A host that says nothing for so long is given up. Its agent does so after 30 s.
const SILENCE: Duration = Duration::from_secs(25);

/// Time until a host must have greeted: ssh gives up the connection after 10 s, and a login may take some more.
const GREETING_WITHIN: Duration = Duration::from_secs(30);

/// Time until an order must be done.
pub(crate) const DONE_WITHIN: Duration = Duration::from_secs(20);

/// Time until an order must be done that takes its time: perf has begun, or has written what it sampled, each program of
/// a host was asked, a series of a day was sent.
pub(crate) const LATER_WITHIN: Duration = Duration::from_secs(200);

/// Time for an exchange of stamps.
const EXCHANGED_WITHIN: Duration = Duration::from_secs(2);

/// Time that the agent has to say farewell.
const FAREWELL_WITHIN: Duration = Duration::from_secs(2);

/// Time for what ssh says of its end.
const SAID_WITHIN: Duration = Duration::from_millis(500);

/// Facts of a host, and things that were looked at, at most.
const MAX_FACTS: usize = 64;

/// CPUs of a host, at most.
pub(crate) const MAX_CPUS: usize = 4_096;

/// Characters of a text of others, at most.
const MAX_TOLD: usize = 600;

/// Octets that are kept of what ssh says.
const MAX_SAID: usize = 4 << 10;

/// Why a host cannot be had, or is lost. Each begins with its name, if it is another than this process.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// What leads there cannot be started.
    #[error("{host}: `{command}` cannot be started: {reason}")]
    NotStarted {
        /// The host.
        host: String,
        /// The command line.
        command: String,
        /// What the system said.
        reason: String,
    },
    /// No agent answered.
    #[error(
        "{host}: no dnslab answered there: {said}\n  hint:    try `{command}`: it must say `dnslab-agent 1`{remedy}"
    )]
    NoAgent {
        /// The host.
        host: String,
        /// What was said in its place.
        said: String,
        /// The command line.
        command: String,
        /// What may be done, as the end of a sentence.
        remedy: String,
    },
    /// The agent refused the coordinator.
    #[error("{}{reason}", of(host))]
    Refused {
        /// The host.
        host: String,
        /// Why.
        reason: String,
    },
    /// An order failed there.
    #[error("{}{failure}", of(host))]
    Failed {
        /// The host.
        host: String,
        /// Why, with what is behind it.
        failure: String,
        /// The end of the log of a server that was to be started.
        log: Vec<String>,
    },
    /// The connection ended, or what came over it cannot be right.
    #[error("{} is lost: {reason}", whom(host))]
    Lost {
        /// The host.
        host: String,
        /// What was seen last.
        reason: String,
    },
    /// An order was not done in time.
    #[error("{}an order was not done within {} s", of(host), within.as_secs())]
    Late {
        /// The host.
        host: String,
        /// The time that it had.
        within: Duration,
    },
}

/// The name of a host before what is said of it; nothing of this process.
fn of(host: &str) -> String {
    if host.is_empty() { String::new() } else { format!("{host}: ") }
}

fn whom(host: &str) -> &str {
    if host.is_empty() { "the agent of this process" } else { host }
}

impl LinkError {
    /// This process can have no further pipe or thread.
    pub(crate) fn no_agent_here(error: io::Error) -> Self {
        Self::Refused { host: String::new(), reason: error.to_string() }
    }

    /// The name of the host.
    pub(crate) fn host(&self) -> &str {
        match self {
            Self::NotStarted { host, .. }
            | Self::NoAgent { host, .. }
            | Self::Refused { host, .. }
            | Self::Failed { host, .. }
            | Self::Lost { host, .. }
            | Self::Late { host, .. } => host,
        }
    }
}

/// What came from the agent and is not yet fetched.
#[derive(Default)]
struct State {
    /// The host waits for the program that is to be its agent.
    asks_for_copy: bool,
    is_greeted: bool,
    welcome: Option<Welcome>,
    /// Orders that somebody waits for, with the answer once it is there.
    orders: HashMap<u32, Option<Result<Answer, Failure>>>,
    /// The exchange that is under way.
    exchange: Option<Exchange>,
    /// What watches say. Only those that were begun are kept.
    watches: HashMap<u32, Heard>,
    /// How servers ended that were started there and that somebody waits for; `None` while they run.
    servers: HashMap<u32, Option<(String, Vec<String>)>>,
    /// Where news of loads go.
    loads: HashMap<u32, SyncSender<LoadNews>>,
    /// What of the queries that were sent ahead of these loads was taken up, by each worker.
    taken: HashMap<u32, Vec<Vec<u64>>>,
    heard: Option<Instant>,
    /// Frames that were read.
    frames: u64,
    has_said_farewell: bool,
    ended: Option<LinkError>,
    /// What ssh said beside the frames.
    said: Vec<u8>,
}

/// News of a load that wait, at most. A host that says more is heard later.
const UNHEARD: usize = 1_024;

/// What a watch has said.
struct Heard {
    began: Instant,
    latest: Option<(LiveServer, Vec<CpuShare>)>,
    samples: Vec<ResourceSample>,
}

impl Heard {
    /// Samples are taken each tenth of a second. Twice as many are not.
    fn may_have(&self) -> usize {
        let seconds = usize::try_from(self.began.elapsed().as_secs()).unwrap_or(usize::MAX);
        seconds.saturating_mul(20).saturating_add(1_000)
    }
}

#[derive(Clone, Debug, Default)]
struct Welcome {
    facts: Vec<Fact>,
    cpus: Vec<usize>,
    address: Option<IpAddr>,
    boot_id: String,
    network: String,
    pid: u32,
}

/// What agent and coordinator have in common.
enum Common {
    Nothing,
    /// The machine, and with it files and the clock: the agent is a child of this process.
    Machine,
    /// The process: what a load is made of is handed over as it is.
    Process(Arc<Handed>),
}

struct Shared {
    /// What was started for it; `None` of an agent that is a thread of this process.
    remote: Mutex<Option<Remote>>,
    host: String,
    command: String,
    clock: Clock,
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn new(remote: Option<Remote>, (host, command): (String, String), clock: Clock) -> Arc<Self> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Arc::new(Self { remote: Mutex::new(remote), host, command, clock, state, changed })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first reason stays.
    fn end(&self, why: LinkError) {
        let mut state = self.state();
        state.ended.get_or_insert(why);
        state.loads.clear();
        let has_said_farewell = state.has_said_farewell;
        drop(state);
        self.changed.notify_all();
        // Whoever writes to a host that reads nothing waits for it otherwise.
        if !has_said_farewell {
            let mut remote = self.remote.lock().unwrap_or_else(PoisonError::into_inner);
            remote.iter_mut().for_each(Remote::kill);
        }
    }

    /// A failure there, with the name of the host.
    fn said_of(&self, failure: Failure) -> String {
        format!("{}: {}", self.host, reason_of(failure))
    }

    fn lose(&self, reason: impl Into<String>) {
        self.end(LinkError::Lost { host: self.host.clone(), reason: reason.into() });
    }

    /// Whether the agent is a thread of this process.
    fn is_own(&self) -> bool {
        self.host.is_empty()
    }

    /// Waits until `found` gives something.
    fn wait<T>(
        &self,
        within: Duration,
        mut found: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<T, LinkError> {
        let began = Instant::now();
        let mut state = self.state();
        loop {
            if let Some(found) = found(&mut state) {
                return Ok(found);
            }
            if let Some(ended) = &state.ended {
                return Err(ended.clone());
            }
            let left = within.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(LinkError::Late { host: self.host.clone(), within });
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The link to the agent of one host.
pub struct Link {
    common: Common,
    shared: Arc<Shared>,
    output: Arc<Output<Box<dyn Write + Send>>>,
    next: AtomicU32,
    welcome: Welcome,
    /// Lists of queries that the host has, the newest last.
    lists: Mutex<Vec<(Arc<QueryList>, u32)>>,
    /// Digests and numbers of files that the host has, the newest last.
    files: Mutex<Vec<(u64, u32)>>,
}

/// Files that a host keeps for later servers, at most: those of the zones of an experiment.
const KEPT_FILES: usize = 8;

/// Queries of all lists that a host keeps for later loads, beside those of the next one.
const KEPT_QUERIES: usize = 5_000_000;

impl fmt::Debug for Link {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Link").field("host", &self.shared.host).finish_non_exhaustive()
    }
}

impl Link {
    /// Starts the agent of a host and greets it.
    ///
    /// # Errors
    /// When the host cannot be reached, has no dnslab or one of another version.
    pub fn open(place: &HostPlace) -> Result<Self, LinkError> {
        let name = &place.name;
        let mut command = String::new();
        let not_started = |command: &str, error: io::Error| match place.at {
            // Its command begins when there is a pod.
            HostAt::Kubernetes => {
                LinkError::Refused { host: name.clone(), reason: error.to_string() }
            }
            HostAt::Here | HostAt::Namespace(_) | HostAt::Ssh(_) => LinkError::NotStarted {
                host: name.clone(),
                command: command.to_owned(),
                reason: error.to_string(),
            },
        };
        let mut words = command_line(place).map_err(|error| not_started("dnslab agent", error))?;
        if place.is_copied()
            && let Some(script) = words.last_mut()
        {
            *script = format!("echo {}", String::from_utf8_lossy(GREETING).trim_end());
        }
        // Without what ssh is told beside the host: whoever tries it is not in a hurry.
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "-o" => drop(words.next()),
                "--" => {}
                word => command.push_str(&format!("{word} ")),
            }
        }
        let command = command.trim_end().to_owned();
        let not_started = |error: io::Error| not_started(&command, error);
        let clock = Clock::start();
        let (remote, pipes) = Remote::start(place).map_err(not_started)?;
        let RemotePipes { mut input, output, error } = pipes;
        let shared = Shared::new(Some(remote), (name.clone(), command.clone()), clock);
        let (for_error, for_output) = (Arc::clone(&shared), Arc::clone(&shared));
        let beside = threads::start(move || keep_what_is_said(error, &for_error));
        let beside = beside.map_err(not_started)?;
        let read = move || listen_to_its_end(output, &for_output, beside);
        threads::start(read).map_err(not_started)?;
        let no_answer = |error: LinkError| match error {
            LinkError::Late { host, .. } => no_agent(&shared, host, &shared.state().said),
            other => other,
        };
        if place.is_copied() {
            // A forced command may have begun an agent that is there.
            let asked = |state: &mut State| {
                (state.asks_for_copy || state.is_greeted).then_some(state.asks_for_copy)
            };
            if shared.wait(GREETING_WITHIN, asked).map_err(no_answer)? {
                input = copy_to(&shared, input).map_err(no_answer)?;
                let is_greeted = |state: &mut State| state.is_greeted.then_some(());
                shared.wait(GREETING_WITHIN, is_greeted).map_err(no_answer)?;
            }
        }
        let common = match place.at {
            HostAt::Ssh(_) | HostAt::Kubernetes => Common::Nothing,
            HostAt::Here | HostAt::Namespace(_) => Common::Machine,
        };
        let link = Self::greet(&shared, Box::new(input), common).map_err(no_answer)?;
        let output = Arc::clone(&link.output);
        threads::start(move || beat(&shared, &output)).map_err(not_started)?;
        Ok(link)
    }

    /// The Job of the pod that is this host; `None` of other hosts.
    #[must_use]
    pub fn job(&self) -> Option<Owner> {
        let remote = self.shared.remote.lock().unwrap_or_else(PoisonError::into_inner);
        remote.as_ref()?.job().cloned()
    }

    /// The link to the agent of this process, which is a thread of it. Both speak as the ends of other links do.
    pub(crate) fn own(
        (to_agent, from_agent): (PipeWriter, PipeReader),
        handed: Arc<Handed>,
        clock: Clock,
    ) -> Result<Self, LinkError> {
        let shared = Shared::new(None, (String::new(), String::new()), clock);
        let for_output = Arc::clone(&shared);
        let read = move || conclude(&for_output, listen(from_agent, &for_output));
        threads::start(read).map_err(LinkError::no_agent_here)?;
        Self::greet(&shared, Box::new(to_agent), Common::Process(handed))
    }

    /// Says who speaks, and hears who answers.
    fn greet(
        shared: &Arc<Shared>,
        input: Box<dyn Write + Send>,
        common: Common,
    ) -> Result<Self, LinkError> {
        let mut link = Self {
            common,
            shared: Arc::clone(shared),
            output: Arc::new(Output::new(input)),
            next: AtomicU32::new(1),
            welcome: Welcome::default(),
            lists: Mutex::default(),
            files: Mutex::default(),
        };
        let version = env!("CARGO_PKG_VERSION").to_owned();
        // Why it cannot be written is what the reading thread hears.
        link.output.say(&ToAgent::Hello { version }).ok();
        link.welcome = shared.wait(GREETING_WITHIN, |state| state.welcome.take())?;
        Ok(link)
    }

    /// The name by which it is reached.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.host
    }

    /// Whether paths mean the same there.
    pub(crate) fn shares_files(&self) -> bool {
        !matches!(self.common, Common::Nothing)
    }

    /// What an agent of this process is handed over as it is; `None` of another one.
    pub(crate) fn handed(&self) -> Option<&Arc<Handed>> {
        match &self.common {
            Common::Process(handed) => Some(handed),
            Common::Nothing | Common::Machine => None,
        }
    }

    /// Whether the agent is a thread of this process.
    pub(crate) fn is_own(&self) -> bool {
        self.shared.is_own()
    }

    /// The number of its process, if that is this one or a child of it.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.shares_files().then_some(self.welcome.pid)
    }

    /// The CPUs that its agent may use.
    pub(crate) fn cpus(&self) -> &[usize] {
        &self.welcome.cpus
    }

    /// The address at which ssh reached it.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        self.welcome.address
    }

    /// What the host is.
    #[must_use]
    pub fn facts(&self) -> &[Fact] {
        &self.welcome.facts
    }

    /// Whether its host is the machine that this process runs on: they have one kernel.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        let own = dnslab_lab::host::boot_id();
        self.shares_files() || !own.is_empty() && own == self.welcome.boot_id
    }

    /// Whether both are reached as one host: one kernel, and one network namespace. Containers of a machine are several.
    pub(crate) fn is_same_host(&self, other: &Self) -> bool {
        let place = |link: &Self| (link.welcome.boot_id.clone(), link.welcome.network.clone());
        !self.welcome.boot_id.is_empty() && place(self) == place(other)
    }

    /// Whether it is the host of this process, in the same sense.
    pub(crate) fn is_here(&self) -> bool {
        self.is_this_machine() && self.welcome.network == dnslab_lab::host::network()
    }

    /// What on the host would spoil a measurement, of a load that comes from there or of a server that runs there.
    ///
    /// # Errors
    /// When the host is lost, or does not allow it.
    pub fn examine(&self, of_load: bool) -> Result<Vec<Diagnosis>, LinkError> {
        match self.order(Order::Examine { of_load })? {
            Answer::Examined(found) => {
                Ok(found.into_iter().take(MAX_FACTS).map(told_diagnosis).collect())
            }
            _ => Err(self.misunderstood()),
        }
    }

    /// The version of one of a variant's servers that is installed on the host, or why that cannot be started.
    ///
    /// # Errors
    /// When the host is lost, or does not allow it.
    pub fn can_serve(
        &self,
        variant: &Variant,
        role: ChainRole,
    ) -> Result<Result<String, String>, LinkError> {
        match self.order(Order::CanServe { variant: variant.as_served(), role })? {
            Answer::CanServe { version, lacks } if lacks.is_empty() => Ok(Ok(told(&version))),
            Answer::CanServe { lacks, .. } => Ok(Err(self.says(&lacks))),
            _ => Err(self.misunderstood()),
        }
    }

    /// Asks a server a query from the host, as a client of a load does ([`dnslab_load::ask`]).
    ///
    /// # Errors
    /// When there is no answer, or the host is lost.
    pub fn ask(
        &self,
        job: &Job,
        asker: Asker,
        query: &Query,
        timeout: Duration,
    ) -> Result<Vec<u8>, AskError> {
        // All subnets of the clients of a load may be more than a frame has room for.
        if self.is_own() {
            return ask(job, asker, query, timeout);
        }
        let list = QueryList::from_queries(vec![query.clone()], "one query".to_owned());
        let order = Order::Ask {
            job: Box::new(SentJob::from(job).on_cpus(Vec::new())),
            query: SentQueries::parts_of(&list).remove(0),
            client: asker.client,
            transport: asker.transport.to_string(),
            server: asker.server,
            timeout_ns: u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX),
        };
        let id = self.begin_order(order);
        let answer = self
            .done_within(id, 2 * timeout + DONE_WITHIN)
            .map_err(|error| self.has_not_asked(error))?;
        match answer {
            Answer::Asked(octets) => {
                let octets = BASE64.decode(octets);
                octets.map_err(|_| self.has_not_asked(self.misunderstood()))
            }
            Answer::NotAnswered { reason, is_silence, is_transient, is_refusal } => {
                let (host, reason) = (self.name().to_owned(), told(&reason));
                Err(AskError::Elsewhere { host, reason, is_silence, is_transient, is_refusal })
            }
            _ => Err(self.has_not_asked(self.misunderstood())),
        }
    }

    fn has_not_asked(&self, error: LinkError) -> AskError {
        let (host, reason) = (self.name().to_owned(), error.to_string());
        // Both name the host.
        let reason = reason.strip_prefix(&format!("{host}: ")).unwrap_or(&reason).to_owned();
        AskError::not_asked(host, reason)
    }

    /// The way that packets take from the host to an address; `None` if that is unknown there.
    ///
    /// # Errors
    /// When the host is lost.
    pub fn path_to(&self, to: IpAddr) -> Result<Option<NetworkPath>, LinkError> {
        match self.order(Order::Path { to })? {
            Answer::Path(path) => Ok(path.map(|path| self.told_path(*path))),
            _ => Err(self.misunderstood()),
        }
    }

    fn told_path(&self, path: NetworkPath) -> NetworkPath {
        let NetworkPath { to, from, device, kind, next_hop, offloads, .. } = &path;
        let offloads =
            offloads.as_ref().map(|all| all.iter().take(MAX_FACTS).map(|name| told(name)));
        let [to, from, device, kind, next_hop] =
            [to, from, device, kind, next_hop].map(|text| told(text));
        let (host, offloads) = (self.name().to_owned(), offloads.map(Iterator::collect));
        NetworkPath { host, to, from, device, kind, next_hop, offloads, ..path }
    }

    /// What the host says, with its name.
    pub(crate) fn says(&self, text: &str) -> String {
        match self.is_own() {
            true => text.to_owned(),
            false => format!("{}: {}", self.name(), told(text)),
        }
    }

    /// Why the link cannot be used any more; `None` while it can.
    #[must_use]
    pub fn ended(&self) -> Option<LinkError> {
        self.shared.state().ended.clone()
    }

    /// Has the agent do something, and waits until it is done.
    ///
    /// # Errors
    /// When it failed, was late, or the host is lost.
    pub(crate) fn order(&self, order: Order) -> Result<Answer, LinkError> {
        let within = match order {
            Order::Sample { .. }
            | Order::EndSample { .. }
            | Order::EndWatch { .. }
            | Order::Count { .. }
            | Order::EndCount { .. }
            | Order::Forget { .. }
            | Order::Examine { .. } => LATER_WITHIN,
            _ => DONE_WITHIN,
        };
        let id = self.begin_order(order);
        self.done_within(id, within)
    }

    /// A failure there. What a child says may have several lines, which have the end of a log in them.
    fn failed(&self, failure: Failure) -> LinkError {
        let host = self.name().to_owned();
        let log = failure.causes.iter().take(MAX_FACTS).map(|line| told(line)).collect();
        let lines: Vec<String> = failure.reason.lines().take(MAX_FACTS).map(told).collect();
        let failure = match (lines.len() > 1, &self.common) {
            (_, Common::Process(_)) => failure.reason,
            (true, Common::Machine) => lines.join("\n"),
            (true, Common::Nothing) => {
                lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join("; ")
            }
            (false, _) => reason_of(failure),
        };
        LinkError::Failed { host, failure, log }
    }

    /// Has the agent do something whose answer is awaited later, by this number.
    pub(crate) fn begin_order(&self, order: Order) -> u32 {
        let id = self.number();
        self.shared.state().orders.insert(id, None);
        self.say(&ToAgent::Order { id, order });
        id
    }

    /// Waits for the answer to an order that is done at once.
    pub(crate) fn done(&self, id: u32) -> Result<Answer, LinkError> {
        self.done_within(id, DONE_WITHIN)
    }

    /// The answer to an order, or `None` if it is not there within this time. Whoever waits looks after other things
    /// meanwhile.
    pub(crate) fn ready_within(
        &self,
        id: u32,
        within: Duration,
    ) -> Option<Result<Answer, LinkError>> {
        let done = self.shared.wait(within, |state| state.orders.get_mut(&id)?.take());
        let done = match done {
            Err(LinkError::Late { .. }) => return None,
            done => done,
        };
        self.shared.state().orders.remove(&id);
        Some(done.and_then(|done| done.map_err(|failure| self.failed(failure))))
    }

    /// An order was not done in this time.
    pub(crate) fn is_late(&self, within: Duration) -> LinkError {
        LinkError::Late { host: self.shared.host.clone(), within }
    }

    /// What this process does itself takes as long as it takes: it may be stopped meanwhile (SIGSTOP).
    fn done_within(&self, id: u32, within: Duration) -> Result<Answer, LinkError> {
        let within = if self.is_own() { Duration::MAX } else { within };
        let done = self.shared.wait(within, |state| state.orders.get_mut(&id)?.take());
        self.shared.state().orders.remove(&id);
        done?.map_err(|failure| self.failed(failure))
    }

    /// Has the agent do something that nobody waits for. A lost agent is told nothing.
    pub(crate) fn order_only(&self, order: Order) {
        if self.ended().is_some() {
            return;
        }
        let id = self.number();
        self.say(&ToAgent::Order { id, order });
    }

    /// A number that no order and no watch of this link has.
    pub(crate) fn number(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// How much the agent's clock is ahead of that of this link, by exchanges one after the other. A child has the same
    /// clock.
    pub(crate) fn offset(&self) -> Result<Offset, LinkError> {
        if self.shares_files() {
            let at_ns = self.shared.clock.now_ns();
            let bound_ns = if self.is_own() { 0 } else { Clock::BOUND_NS };
            return Ok(Offset { at_ns, ahead_ns: 0, bound_ns });
        }
        let mut exchanges = Vec::with_capacity(EXCHANGES);
        for _ in 0..EXCHANGES {
            let sent_ns = self.shared.clock.now_ns();
            self.shared.state().exchange = None;
            self.say(&ToAgent::Clock { sent_ns });
            let exchange = self.shared.wait(EXCHANGED_WITHIN, |state| {
                state.exchange.take().filter(|exchange| exchange.sent_ns == sent_ns)
            });
            match exchange {
                Ok(exchange) => exchanges.push(exchange),
                // One packet was lost, and TCP sent it again.
                Err(LinkError::Late { .. }) => {}
                Err(lost) => return Err(lost),
            }
        }
        let lost = || {
            let reason = "the stamps of its clock contradict each other".to_owned();
            LinkError::Lost { host: self.shared.host.clone(), reason }
        };
        best(&exchanges).ok_or_else(lost)
    }

    /// An instant of this host by the agent's clock, with how far that is known, nanoseconds. `before` is the offset at an
    /// earlier instant; another one is found now.
    pub(crate) fn there(&self, before: Offset, at: Instant) -> Result<(i64, u64), LinkError> {
        let after = self.offset()?;
        let at_ns = self.shared.clock.ns_of(at);
        let offset = between(before, after, at_ns);
        let there = at_ns.checked_add(offset.ahead_ns).ok_or_else(|| self.misunderstood())?;
        Ok((there, offset.bound_ns))
    }

    /// An instant of this host by the agent's clock, whose offset is this one.
    pub(crate) fn instant_there(&self, offset: Offset, at: Instant) -> Result<i64, LinkError> {
        let there = self.shared.clock.ns_of(at).checked_add(offset.ahead_ns);
        there.ok_or_else(|| self.misunderstood())
    }

    /// The numbers of these lists of queries, which the host has from here on.
    pub(crate) fn lists(&self, wanted: &[&Arc<QueryList>]) -> Result<Vec<u32>, LinkError> {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let is_wanted = |known: &Arc<QueryList>| wanted.iter().any(|one| Arc::ptr_eq(one, known));
        let mut kept: usize = lists.iter().map(|(known, _)| known.len() as usize).sum();
        // The oldest first.
        lists.retain(|(known, list)| {
            let is_kept = is_wanted(known) || kept <= KEPT_QUERIES;
            if !is_kept {
                kept -= known.len() as usize;
                self.order_only(Order::Leave { number: *list });
            }
            is_kept
        });
        let numbers = wanted.iter().map(|queries| {
            if let Some((_, list)) = lists.iter().find(|(known, _)| Arc::ptr_eq(known, queries)) {
                return Ok(*list);
            }
            let list = self.number();
            let sent = self.send_list(list, queries);
            sent.inspect_err(|_| self.order_only(Order::Leave { number: list }))?;
            lists.push((Arc::clone(queries), list));
            Ok(list)
        });
        numbers.collect()
    }

    fn send_list(&self, list: u32, queries: &QueryList) -> Result<(), LinkError> {
        for part in SentQueries::parts_of(queries) {
            match self.order(Order::Queries { list, part })? {
                Answer::Taken => {}
                _ => return Err(self.misunderstood()),
            }
        }
        Ok(())
    }

    /// The number of a file with these octets, which the host has from here on. `send` sends it if it is new there.
    pub(crate) fn file_of<E>(
        &self,
        octets: &[u8],
        send: impl FnOnce(u32) -> Result<(), E>,
    ) -> Result<u32, E> {
        let mut hasher = DefaultHasher::new();
        octets.hash(&mut hasher);
        let digest = hasher.finish();
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, file)) = files.iter().find(|(known, _)| *known == digest) {
            return Ok(*file);
        }
        let file = self.number();
        send(file).inspect_err(|_| self.order_only(Order::Leave { number: file }))?;
        files.push((digest, file));
        // A server has read its zone when it answers, and no more than one is started there at once.
        if files.len() > KEPT_FILES {
            let (_, oldest) = files.remove(0);
            self.order_only(Order::Leave { number: oldest });
        }
        Ok(file)
    }

    /// Nobody waits any more for the answer to an order.
    pub(crate) fn give_back(&self, id: u32) {
        self.shared.state().orders.remove(&id);
    }

    /// From here on it is noted when a server there ends by itself.
    pub(crate) fn expect_server(&self, server: u32) {
        self.shared.state().servers.insert(server, None);
    }

    pub(crate) fn forget_server(&self, server: u32) {
        self.shared.state().servers.remove(&server);
    }

    /// How a server has ended by itself, with the end of its log.
    pub(crate) fn exited(&self, server: u32) -> Option<(String, Vec<String>)> {
        self.shared.state().servers.get(&server)?.clone()
    }

    /// From here on what the host tells of a load is heard.
    pub(crate) fn expect_load(&self, load: u32) -> (SyncSender<LoadNews>, Receiver<LoadNews>) {
        let (sender, news) = mpsc::sync_channel(UNHEARD);
        self.shared.state().loads.insert(load, sender.clone());
        (sender, news)
    }

    /// What the host tells of a load is of no interest any more.
    pub(crate) fn forget_load(&self, load: u32) {
        let mut state = self.shared.state();
        state.loads.remove(&load);
        state.taken.remove(&load);
    }

    /// Queries that were taken up by a worker of a load there.
    pub(crate) fn taken(&self, load: u32, member: usize, worker: usize) -> u64 {
        let state = self.shared.state();
        let taken = state.taken.get(&load).and_then(|taken| taken.get(member)?.get(worker));
        taken.copied().unwrap_or(0)
    }

    /// Gives the host up, if it is lost or was too late.
    pub(crate) fn give_up_after(&self, error: &LinkError) {
        let is_late = matches!(error, LinkError::Lost { .. } | LinkError::Late { .. });
        if is_late && !self.is_own() {
            self.shared.end(error.clone());
        }
    }

    /// Gives the host up, which says what cannot be.
    pub(crate) fn give_up(&self, what: &str) {
        self.shared.end(self.contradicted(what));
    }

    /// From here on what a watch says is kept.
    pub(crate) fn expect(&self, watch: u32) {
        let heard = Heard { began: Instant::now(), latest: None, samples: Vec::new() };
        self.shared.state().watches.insert(watch, heard);
    }

    pub(crate) fn latest(&self, watch: u32) -> Option<(LiveServer, Vec<CpuShare>)> {
        self.shared.state().watches.get(&watch)?.latest.clone()
    }

    /// The samples of a watch that has ended.
    pub(crate) fn samples(&self, watch: u32) -> Vec<ResourceSample> {
        let mut state = self.shared.state();
        state.watches.get_mut(&watch).map(|heard| take(&mut heard.samples)).unwrap_or_default()
    }

    /// What a watch says is of no interest any more.
    pub(crate) fn forget(&self, watch: u32) {
        self.shared.state().watches.remove(&watch);
    }

    /// Its clock is known too badly for a load.
    pub(crate) fn unclear_clock(&self, bound_ns: u64, most_ns: u64) -> LinkError {
        let us = |ns: u64| ns.div_ceil(1_000);
        let failure = format!(
            "its clock is known within {} us, and so short a load needs {} us: take a longer `load.duration`, or a \
             nearer host",
            us(bound_ns),
            us(most_ns)
        );
        LinkError::Failed { host: self.shared.host.clone(), failure, log: Vec::new() }
    }

    /// What was said cannot be right.
    pub(crate) fn contradicted(&self, what: &str) -> LinkError {
        let reason = format!("what it says cannot be: {what}");
        LinkError::Lost { host: self.shared.host.clone(), reason }
    }

    /// The agent answered something else than was asked.
    pub(crate) fn misunderstood(&self) -> LinkError {
        let reason = "it answers something else than it is asked".to_owned();
        LinkError::Lost { host: self.shared.host.clone(), reason }
    }

    fn say(&self, message: &ToAgent) {
        if self.ended().is_some() {
            return;
        }
        let said = self.output.say(message);
        // It is too long for a frame, and nothing of it was written.
        if let (Err(error), ToAgent::Order { id, .. }) = (&said, message)
            && error.kind() == io::ErrorKind::InvalidInput
        {
            let failure = Failure::of(format!("the order is too long: {error}"));
            settle(&mut self.shared.state(), *id, Err(failure));
            return;
        }
        if let Err(error) = said {
            // ssh may have said more by now, or says it soon.
            thread::sleep(Duration::from_millis(50));
            self.shared.lose(format!("nothing can be said to it any more: {error}"));
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let is_open = self.ended().is_none();
        if is_open && self.output.say_with(|frames| ToAgent::Bye { frames }).is_ok() {
            // What is a thread ends all that it has started before that, and cannot be killed.
            let within = if self.is_own() { LATER_WITHIN } else { FAREWELL_WITHIN };
            self.shared.wait(within, |state| state.has_said_farewell.then_some(())).ok();
        }
        self.shared.lose("it was left");
        // Its input must be closed for it to end by itself, and a thread may still hold it.
        let mut remote = self.shared.remote.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(remote) = remote.as_mut() {
            remote.end(if is_open { FAREWELL_WITHIN } else { Duration::ZERO });
        }
    }
}

/// Copies this program to a host that waits for it. One that takes nothing for too long is given up.
fn copy_to(shared: &Shared, input: ChildStdin) -> Result<ChildStdin, LinkError> {
    let copied = AtomicU64::new(0);
    thread::scope(|scope| {
        let mut to = Counting { inner: input, count: &copied };
        let copying = thread::Builder::new().spawn_scoped(scope, move || {
            // Why it cannot be written is what the reading thread hears.
            copy_program(&mut to).ok();
            to.inner
        });
        let lost = |error: io::Error| {
            let reason = error.to_string();
            LinkError::Lost { host: shared.host.clone(), reason }
        };
        let copying = copying.map_err(lost)?;
        let (mut before, mut since) = (0, Instant::now());
        while !copying.is_finished() {
            thread::sleep(Duration::from_millis(5));
            let now = copied.load(Ordering::Relaxed);
            if now != before {
                (before, since) = (now, Instant::now());
            } else if since.elapsed() > SILENCE {
                shared.lose(format!("it took {now} octets of the program, and no more"));
            }
        }
        copying.join().map_err(|panic| std::panic::resume_unwind(panic))
    })
}

/// What is written to a pipe, counted.
struct Counting<'a> {
    inner: ChildStdin,
    count: &'a AtomicU64,
}

impl Write for Counting<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(octets)?;
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// How a stream ended.
enum StreamEnd {
    Closed,
    Broken(String),
    Farewell,
    Refused(String),
}

/// Reads what the agent says, and says how that ended. `beside` keeps what ssh says of it, which comes before the end.
fn listen_to_its_end(output: impl Read, shared: &Shared, beside: thread::JoinHandle<()>) {
    let end = listen(output, shared);
    if matches!(end, StreamEnd::Closed) {
        // Others may have the same way out as ssh, and stay.
        let deadline = Instant::now() + SAID_WITHIN;
        while !beside.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
    }
    conclude(shared, end);
}

/// Reads what the agent says until it ends.
fn listen(mut output: impl Read, shared: &Shared) -> StreamEnd {
    let mut octets = vec![0; READ];
    let mut greeting = GreetingReader::default();
    let mut frames = FrameReader::default();
    let mut is_greeted = false;
    loop {
        let count = match output.read(&mut octets) {
            Ok(0) => {
                if !is_greeted {
                    shared.state().said.extend_from_slice(greeting.banner().as_bytes());
                }
                return StreamEnd::Closed;
            }
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return StreamEnd::Broken(error.to_string()),
        };
        let came_ns = shared.clock.now_ns();
        // Of a long message each part is a sign of life.
        shared.state().heard = Some(Instant::now());
        if is_greeted {
            frames.push(&octets[..count]);
        } else {
            match greeting.push(&octets[..count]) {
                Ok(None) => {
                    if greeting.has_line(COPY_MARK) {
                        shared.state().asks_for_copy = true;
                        shared.changed.notify_all();
                    }
                    continue;
                }
                Ok(Some(rest)) => {
                    is_greeted = true;
                    shared.state().is_greeted = true;
                    shared.changed.notify_all();
                    frames.push(&rest);
                }
                Err(BrokenStream::Version { found }) => {
                    let version = BrokenStream::Version { found };
                    return StreamEnd::Refused(version.to_string());
                }
                Err(broken) => return StreamEnd::Broken(broken.to_string()),
            }
        }
        if let Some(end) = hear_all(&mut frames, came_ns, shared) {
            return end;
        }
    }
}

/// Hears the messages that are there. Returns how the stream ended, if it has.
fn hear_all(frames: &mut FrameReader, came_ns: i64, shared: &Shared) -> Option<StreamEnd> {
    loop {
        let before = frames.read();
        let message = match frames.next_body() {
            Ok(None) => return None,
            Ok(Some(body)) => message_of::<FromAgent>(body),
            Err(broken) => return Some(StreamEnd::Broken(broken.to_string())),
        };
        let message = match message {
            Ok(message) => message,
            Err(unreadable) => return Some(StreamEnd::Broken(unreadable.to_string())),
        };
        let mut state = shared.state();
        state.frames = frames.read();
        match message {
            FromAgent::Welcome { facts, mut cpus, address, boot_id, network, pid, .. } => {
                cpus.truncate(MAX_CPUS);
                let facts = facts.into_iter().take(MAX_FACTS).map(told_fact).collect();
                state.welcome = Some(Welcome { facts, cpus, address, boot_id, network, pid });
            }
            FromAgent::Exited { server, ending, log } => {
                if let Some(known) = state.servers.get_mut(&server) {
                    let lines = log.iter().take(MAX_FACTS).map(|line| told(line));
                    *known = Some((told(&ending), lines.collect()));
                }
            }
            FromAgent::Interval { load, member, record } => {
                let to = state.loads.get(&load).cloned();
                drop(state);
                // Whoever has left the load hears no more of it.
                to.map(|to| to.send(LoadNews::Interval { member, record }).ok());
                continue;
            }
            FromAgent::Taken { load, taken } => {
                if state.loads.contains_key(&load) {
                    state.taken.insert(load, taken);
                }
                continue;
            }
            FromAgent::Ended { load, member, share } => {
                let to = state.loads.get(&load).cloned();
                drop(state);
                let share = share.map_err(|failure| shared.said_of(failure));
                to.map(|to| to.send(LoadNews::Ended { member, share }).ok());
                continue;
            }
            FromAgent::Refused { reason } => return Some(StreamEnd::Refused(told(&reason))),
            FromAgent::Clock { sent_ns, received_ns, answered_ns } => {
                state.exchange = Some(Exchange { sent_ns, received_ns, answered_ns, came_ns });
            }
            FromAgent::Beat => {}
            FromAgent::Done { id, answer } => settle(&mut state, id, Ok(answer)),
            FromAgent::Failed { id, failure } => settle(&mut state, id, Err(failure)),
            FromAgent::Latest { watch, server, cpus } => {
                if let Some(heard) = state.watches.get_mut(&watch) {
                    heard.latest = Some((server, cpus));
                }
            }
            FromAgent::Samples { watch, samples } => {
                if let Some(heard) = state.watches.get_mut(&watch) {
                    if heard.samples.len().saturating_add(samples.len()) > heard.may_have() {
                        return Some(StreamEnd::Broken("it has too many samples".to_owned()));
                    }
                    heard.samples.extend(samples);
                }
            }
            FromAgent::Bye { frames } if frames == before => return Some(StreamEnd::Farewell),
            FromAgent::Bye { frames } => {
                let reason = format!("its farewell counts {frames} frames, and {before} came");
                return Some(StreamEnd::Broken(reason));
            }
        }
        drop(state);
        shared.changed.notify_all();
    }
}

/// An answer to an order that nobody waits for is left out.
fn settle(state: &mut State, id: u32, answer: Result<Answer, Failure>) {
    if let Some(order) = state.orders.get_mut(&id) {
        *order = Some(answer);
    }
}

fn conclude(shared: &Shared, end: StreamEnd) {
    let (said, frames) = {
        let mut state = shared.state();
        if matches!(end, StreamEnd::Farewell) {
            state.has_said_farewell = true;
        }
        (state.said.clone(), state.frames)
    };
    shared.changed.notify_all();
    let host = shared.host.clone();
    match end {
        StreamEnd::Farewell => shared.lose("it has said farewell"),
        StreamEnd::Refused(reason) => shared.end(LinkError::Refused { host, reason }),
        StreamEnd::Closed if frames == 0 && !shared.is_own() => {
            shared.end(no_agent(shared, host, &said));
        }
        StreamEnd::Closed => {
            let text = last_lines(&said);
            let why = if text.is_empty() { String::new() } else { format!(": {text}") };
            shared.lose(format!("the connection ended without a farewell{why}"));
        }
        StreamEnd::Broken(reason) => shared.lose(reason),
    }
}

fn no_agent(shared: &Shared, host: String, said: &[u8]) -> LinkError {
    let said = match last_lines(said) {
        text if text.is_empty() => "the connection ended in silence".to_owned(),
        text => text,
    };
    // What shells say of a program that they do not find.
    let is_missing = said.split("; ").any(|line| {
        line.contains("dnslab") && (line.contains("not found") || line.contains("No such file"))
    });
    let remedy = match is_missing {
        true => {
            ", or name the program there: --set hosts.program=/path/of/dnslab (`dnslab doctor`: --program), or have it copied: \
             --set hosts.install=copy (`dnslab doctor`: --install copy)"
        }
        false if said.contains("Host key verification failed") => {
            "; ssh does not know this host yet: log in once by hand and compare its key"
        }
        false => "",
    };
    let (command, remedy) = (shared.command.clone(), remedy.to_owned());
    LinkError::NoAgent { host, said, command, remedy }
}

fn reason_of(failure: Failure) -> String {
    let Failure { reason, causes } = failure;
    let reason = told(&reason);
    // The last says most: a log ends with why.
    let last = &causes[causes.len().saturating_sub(5)..];
    let last: Vec<String> = last.iter().map(|cause| told(cause)).collect();
    [vec![reason], last].concat().join(": ")
}

/// A text of others, so that it is one and not too long.
pub(crate) fn told(text: &str) -> String {
    let short: String = text.chars().take(MAX_TOLD).collect();
    visible(&short).into_owned()
}

fn told_fact(Fact { name, value }: Fact) -> Fact {
    Fact { name: told(&name), value: told(&value) }
}

fn told_diagnosis(found: Diagnosis) -> Diagnosis {
    let Diagnosis { severity, subject, found, why, remedy } = found;
    let [subject, found, why, remedy] = [subject, found, why, remedy].map(|text| told(&text));
    Diagnosis { severity, subject, found, why, remedy }
}

/// What was said last, on one line.
fn last_lines(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    told(&lines[lines.len().saturating_sub(3)..].join("; "))
}

/// Keeps the end of what is said beside the frames.
fn keep_what_is_said(mut error: ChildStderr, shared: &Shared) {
    let mut octets = [0; 1 << 10];
    while let Ok(count @ 1..) = error.read(&mut octets) {
        let mut state = shared.state();
        state.said.extend_from_slice(&octets[..count]);
        let too_many = state.said.len().saturating_sub(MAX_SAID);
        state.said.drain(..too_many);
    }
}

/// Says that the coordinator is there, and gives up a host that is silent.
fn beat(shared: &Shared, output: &Output<impl Write>) {
    loop {
        let state = shared.state();
        let waited =
            shared.changed.wait_timeout_while(state, BETWEEN_BEATS, |state| state.ended.is_none());
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if state.ended.is_some() {
            return;
        }
        let is_silent = state.heard.is_some_and(|heard| heard.elapsed() > SILENCE);
        drop(state);
        if is_silent {
            return shared.lose(format!("it has said nothing for {} s", SILENCE.as_secs()));
        }
        // Whoever reads notices the end. What is being said is a sign of life, too.
        output.try_say(&ToAgent::Beat).ok();
    }
}
