//! The messages.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use dnslab_client::{IntervalRecord, Share};
use dnslab_record::{
    CounterSeries, CpuProfile, CpuShare, Diagnosis, Fact, LiveServer, MeasuredShare, NetworkPath,
    ResourceSample, ResourceSeries, ServerFacts,
};
use dnslab_settings::{ChainRole, Identity};
use serde::{Deserialize, Serialize};

use crate::counted::Counted;
use crate::fill::SentFill;
use crate::job::{SentJob, SentQueries};

/// What the coordinator says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToAgent {
    /// The first message.
    Hello {
        /// Of the coordinator; both ends have the same.
        version: String,
    },
    /// A question for the time, answered at once by [`FromAgent::Clock`].
    Clock {
        /// By the coordinator's clock, nanoseconds.
        sent_ns: i64,
    },
    /// The coordinator is there.
    Beat,
    /// The agent is to do something. It answers by [`FromAgent::Done`] or [`FromAgent::Failed`].
    Order {
        /// Which order it is; no other has the number.
        id: u32,
        /// What is to be done.
        order: Order,
    },
    /// The last message. The agent ends what it does, says [`FromAgent::Bye`], and ends.
    Bye {
        /// Frames before this one.
        frames: u64,
    },
}

/// What an agent may be told to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Find a server that runs on this host.
    Find {
        /// The number that it gets; no other has it.
        server: u32,
        /// Which.
        sought: Sought,
    },
    /// A server that was found or started is of no interest any more. One that was started ends.
    Forget {
        /// Its number.
        server: u32,
    },
    /// Say what on this host would spoil a measurement.
    Examine {
        /// Of a load that comes from there, or else of a server that runs there.
        of_load: bool,
    },
    /// Say which way packets take from this host.
    Path {
        /// To this address.
        to: IpAddr,
    },
    /// Watch a server from here on.
    Watch {
        /// Its number.
        server: u32,
        /// Which watch it is; no other has the number.
        watch: u32,
        /// CPUs of the load, if that runs on this machine.
        load_cpus: Vec<usize>,
        /// The interrupts of its CPUs are another server's.
        has_no_interrupts: bool,
        /// Processes of dnslab on this machine beside the agent.
        own: Vec<u32>,
    },
    /// Watch what the agent uses itself, with all that it has started, and the CPUs of its load.
    WatchLoad {
        /// Which watch it is; no other has the number.
        watch: u32,
        /// CPUs of the load.
        cpus: Vec<usize>,
    },
    /// Take a part of a file, which further parts may follow.
    File {
        /// Which file; nothing else has the number.
        file: u32,
        /// Its next octets, in base64.
        octets: String,
    },
    /// Say whether a server can be started, without starting it.
    CanServe {
        /// Its variant, as an experiment file of one.
        variant: String,
        /// Which of the variant's servers it is.
        role: ChainRole,
    },
    /// Start a server, and wait until it answers.
    Serve {
        /// The number that it gets; no other has it.
        server: u32,
        /// Which.
        order: Box<ServerOrder>,
    },
    /// Say the end of the log of a server that was started.
    Log {
        /// Its number.
        server: u32,
        /// How many lines.
        lines: usize,
    },
    /// Read from here on what a server counts itself.
    Count {
        /// Its number.
        server: u32,
        /// Where one that was found publishes that, on its host; `None` of one that was started.
        statistics: Option<SocketAddr>,
        /// Which count it is; nothing else has the number.
        count: u32,
    },
    /// End a count.
    EndCount {
        /// Which.
        count: u32,
        /// When the load began, by the agent's clock, nanoseconds.
        origin_ns: i64,
    },
    /// Take a part of a list of queries, which further parts may follow.
    Queries {
        /// Which list; no other has the number.
        list: u32,
        /// The next of its queries.
        part: SentQueries,
    },
    /// Ask a server a query as a client of a load does.
    Ask {
        /// The load.
        job: Box<SentJob>,
        /// The query, alone.
        query: SentQueries,
        /// Which client, counted over all workers.
        client: u32,
        /// How the query travels.
        transport: String,
        /// Whom it asks: 0, or the place of a further server, counted from 1.
        server: u8,
        /// Time for an answer, nanoseconds.
        timeout_ns: u64,
    },
    /// Make shares of loads ready, which have one timeline. It is done when all workers are ready.
    Load {
        /// The number of the loads; nothing else has it.
        load: u32,
        /// A share of each.
        members: Vec<SentShare>,
    },
    /// Let loads that are ready begin.
    Begin {
        /// Which.
        load: u32,
        /// Zero of their timeline, by the agent's clock, nanoseconds.
        at_ns: i64,
    },
    /// Take what the clients of a worker send next, in a load whose clients have queries of their own.
    Feed {
        /// Which loads.
        load: u32,
        /// The place of the load among them.
        member: usize,
        /// The place of the worker in the share.
        worker: usize,
        /// What it is.
        fill: SentFill,
    },
    /// End the measured window of a load early.
    StopLoad {
        /// Which loads.
        load: u32,
        /// The place of the load among them.
        member: usize,
    },
    /// Say what the queries of a share were told, once it has ended.
    Told {
        /// Which loads.
        load: u32,
        /// The place of the load among them.
        member: usize,
        /// From this octet on.
        from: u64,
    },
    /// A watch, a sampling, a list of queries or loads are of no interest any more.
    Leave {
        /// Which.
        number: u32,
    },
    /// Sample where a server spends its CPU time, from here on.
    Sample {
        /// Its number.
        server: u32,
        /// Which sampling it is; no other has the number.
        sampling: u32,
        /// The folder for what perf writes, on a host that has the files of the coordinator; `None` for one of the agent's.
        folder: Option<PathBuf>,
        /// How long it will be, nanoseconds.
        length_ns: u64,
        /// CPUs of the load, if that runs on this machine: the sampling has its work there.
        load_cpus: Vec<usize>,
    },
    /// End a sampling.
    EndSample {
        /// Which.
        sampling: u32,
        /// When the load began, by the agent's clock, nanoseconds.
        origin_ns: i64,
        /// The measured window: from here, nanoseconds since the load began.
        from_ns: i64,
        /// To here.
        to_ns: i64,
        /// Stacks that may be kept.
        max_stacks: usize,
    },
    /// End a watch.
    EndWatch {
        /// Which.
        watch: u32,
        /// When the load began, by the agent's clock, nanoseconds.
        origin_ns: i64,
        /// The measured window: from here, nanoseconds since the load began.
        from_ns: i64,
        /// To here.
        to_ns: i64,
    },
}

impl Order {
    /// What an agent must be allowed to do; `None` for what every agent may.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        match self {
            Self::Find { .. }
            | Self::Examine { of_load: false }
            | Self::Watch { .. }
            | Self::Sample { .. }
            | Self::EndSample { .. } => Some(Role::Watch),
            Self::Examine { of_load: true }
            | Self::Queries { .. }
            | Self::Ask { .. }
            | Self::Load { .. }
            | Self::Begin { .. }
            | Self::Feed { .. }
            | Self::Told { .. }
            | Self::StopLoad { .. } => Some(Role::Load),
            Self::Count { statistics: Some(_), .. } => Some(Role::Watch),
            // It is what is seen of a load, and of nobody else.
            Self::WatchLoad { .. } => Some(Role::Load),
            Self::File { .. }
            | Self::CanServe { .. }
            | Self::Serve { .. }
            | Self::Log { .. }
            | Self::Count { statistics: None, .. } => Some(Role::Serve),
            // What is there was allowed.
            Self::Forget { .. }
            | Self::EndWatch { .. }
            | Self::EndCount { .. }
            | Self::Leave { .. } => None,
            // Whoever loads is on the way as well as whoever watches.
            Self::Path { .. } => None,
        }
    }
}

/// What may be allowed to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// To see what a server uses that runs there. It sends no packet.
    Watch,
    /// To have a share of a load.
    Load,
    /// To start servers.
    Serve,
}

impl Role {
    /// All that there are.
    pub const ALL: [Self; 3] = [Self::Watch, Self::Load, Self::Serve];

    /// As a user writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Watch => "watch",
            Self::Load => "load",
            Self::Serve => "serve",
        }
    }
}

/// A server that is to be started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerOrder {
    /// Its variant, as an experiment file of one.
    pub variant: String,
    /// Which of the variant's servers it is.
    pub role: ChainRole,
    /// The folder of its state, on a host that has the files of the coordinator; `None` for one of the agent's.
    pub folder: Option<PathBuf>,
    /// Where it listens.
    pub address: IpAddr,
    /// The ports at which it does.
    pub ports: PortChoice,
    /// CPUs that it gets; empty for those that the agent chooses.
    pub cpus: Vec<usize>,
    /// Connections that will be open to it at one time.
    pub connections: u32,
    /// Decides every draw of the embedded server.
    pub seed: u64,
    /// It is ready when it answers this.
    pub question: SentQueries,
    /// The answer must have a record; otherwise the name may be one that does not exist.
    pub has_record: bool,
    /// And when its policy denies this.
    pub denied: Option<SentQueries>,
    /// Whoever asks it that, wherever the job goes.
    pub client: Box<SentJob>,
    /// What it answers from.
    pub source: SentSource,
    /// Time until its first right answer, nanoseconds.
    pub start_limit_ns: u64,
}

/// Ports that a server gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortChoice {
    /// Free ones, which are found where it starts.
    Free,
    /// Those of the standards (RFC 1035, 7858, 8484, 9250): it has an address of its own.
    Standard,
    /// Others, that are the same each time: it is beside a server that has those of the standards.
    Beside,
}

/// What a server answers from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentSource {
    /// The zone that it serves.
    pub zone: Option<SentZone>,
    /// The servers that it forwards to.
    pub upstream: Option<SentUpstream>,
    /// Where it begins to resolve by itself.
    pub root_hints: Option<SentRootHints>,
    /// What it validates from: DS records of the root.
    pub trust_anchors: Vec<String>,
    /// The response policy zone that it applies.
    pub policy: Option<SentPolicy>,
    /// The names of which the embedded server knows everything, one on each line.
    pub names: Option<SentFile>,
    /// The private Internet of which the embedded server is all servers.
    pub hierarchy: Option<String>,
    /// Delay that the embedded server plays on the way to it.
    pub path_delay: Option<String>,
}

/// A file that a server is to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SentFile {
    /// It was sent, under this number.
    Sent(u32),
    /// It is there, on a host that has the files of the coordinator.
    There(PathBuf),
}

/// A zone that a server is to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentZone {
    /// Its file.
    pub file: SentFile,
    /// Its signatures; `None` without.
    pub signatures: Option<SentSignatures>,
}

/// The servers that one forwards to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentUpstream {
    /// Where they answer, the first one first.
    pub addresses: Vec<SocketAddr>,
    /// How queries travel there.
    pub transport: String,
    /// The authority of their certificates and the name in them; `None` without encryption.
    pub tls: Option<(SentFile, String)>,
}

/// Where a resolver begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SentRootHints {
    /// At the root servers of the Internet.
    BuiltIn,
    /// At those of this zone file.
    Zone(String),
}

/// A response policy zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentPolicy {
    /// Its name.
    pub name: String,
    /// Its file.
    pub file: SentFile,
}

/// How a zone that was sent is signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentSignatures {
    /// The data of its NSEC3PARAM record (RFC 5155, section 4.3); `None` with NSEC records.
    pub nsec3: Option<String>,
}

/// A server that was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Serving {
    /// As it runs.
    pub facts: ServerFacts,
    /// Where it answers over each transport.
    pub addresses: Vec<(String, SocketAddr)>,
    /// The authority of its certificate (PEM), if it has one.
    pub authority: Option<String>,
    /// Its configuration, if one was written, with the name of the file.
    pub configuration: Option<(String, String)>,
}

/// A share of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SentShare {
    /// The load as a whole, with the CPUs that it has on this host.
    pub job: SentJob,
    /// The number of its list of queries.
    pub list: u32,
    /// The workers on this host.
    pub share: Share,
}

/// A server that is to be found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sought {
    /// By what.
    pub identity: Identity,
    /// How it is asked.
    pub transport: String,
    /// Where it is asked.
    pub address: SocketAddr,
}

/// A server that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundServer {
    /// As it runs. The version is empty: nobody was asked.
    pub facts: ServerFacts,
    /// Files that its processes may have open together; `None` where that is not known, or has no bound.
    pub file_limit: Option<u64>,
    /// Its UDP socket for plain DNS, if it has one.
    pub plain: Option<SocketAddr>,
}

/// What an agent says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FromAgent {
    /// The answer to [`ToAgent::Hello`].
    Welcome {
        /// Of the agent.
        version: String,
        /// What is allowed to it.
        roles: Vec<Role>,
        /// The name of its host (uname(2)).
        host: String,
        /// What that host is, as of every host that measures.
        facts: Vec<Fact>,
        /// The CPUs that the agent may use.
        cpus: Vec<usize>,
        /// The address at which ssh reached the host; `None` if it was not reached so.
        address: Option<IpAddr>,
        /// Of the kernel since it started (`/proc/sys/kernel/random/boot_id`): hosts with the same one are one machine.
        boot_id: String,
        /// Its network namespace, by the name that its kernel gives it.
        network: String,
        /// The number of its process there.
        pid: u32,
    },
    /// The answer to a message that it does not take. It ends.
    Refused {
        /// What a user reads.
        reason: String,
    },
    /// The answer to [`ToAgent::Clock`].
    Clock {
        /// As in the question.
        sent_ns: i64,
        /// When the question came, by the agent's clock, nanoseconds.
        received_ns: i64,
        /// When the answer was written.
        answered_ns: i64,
    },
    /// The agent is there.
    Beat,
    /// An order was done.
    Done {
        /// Which.
        id: u32,
        /// What came of it.
        answer: Answer,
    },
    /// An order could not be done.
    Failed {
        /// Which.
        id: u32,
        /// Why.
        failure: Failure,
    },
    /// What the newest sample of a watch says.
    Latest {
        /// Which watch.
        watch: u32,
        /// The server.
        server: LiveServer,
        /// What the CPUs did that are recorded one by one.
        cpus: Vec<CpuShare>,
    },
    /// A server that was started has ended by itself.
    Exited {
        /// Its number.
        server: u32,
        /// How.
        ending: String,
        /// The end of its log.
        log: Vec<String>,
    },
    /// An interval of a load, which all workers there have finished.
    Interval {
        /// Which loads.
        load: u32,
        /// The place of the load among them.
        member: usize,
        /// What they counted.
        record: Box<Counted<IntervalRecord>>,
    },
    /// How many queries were taken up by the workers of a load whose clients have queries of their own.
    Taken {
        /// Which loads.
        load: u32,
        /// Of each load, those of each worker.
        taken: Vec<Vec<u64>>,
    },
    /// A share of a load has ended.
    Ended {
        /// Which loads.
        load: u32,
        /// The place of the load among them.
        member: usize,
        /// What its workers counted, or why they did not.
        share: Result<Box<Counted<MeasuredShare>>, Failure>,
    },
    /// The samples of a watch that ends, in parts and in order, before [`Answer::Resources`].
    Samples {
        /// Which watch.
        watch: u32,
        /// At most [`SAMPLES`].
        samples: Vec<ResourceSample>,
    },
    /// The last message.
    Bye {
        /// Frames before this one.
        frames: u64,
    },
}

/// Samples in one message at most: some 300 kB.
pub const SAMPLES: usize = 1_000;

/// What came of an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Of [`Order::Find`].
    Found(Box<FoundServer>),
    /// Of [`Order::Find`], if no such server can be watched.
    NotFound {
        /// Why.
        reason: String,
        /// What was named is wrong. Otherwise the load may go on without a watch.
        is_fault: bool,
    },
    /// Of [`Order::CanServe`].
    CanServe {
        /// The version that is installed there; empty of one that cannot be started.
        version: String,
        /// Why it cannot; empty of one that can.
        lacks: String,
    },
    /// Of [`Order::Serve`].
    Serving(Box<Serving>),
    /// Of [`Order::Log`]: the lines, oldest first.
    Log(Vec<String>),
    /// Of [`Order::Count`]: whether the server counts.
    Counting(bool),
    /// Of [`Order::EndCount`].
    Counted(Box<CounterSeries>),
    /// Of [`Order::Forget`] and [`Order::Leave`].
    Forgotten,
    /// Of [`Order::Examine`].
    Examined(Vec<Diagnosis>),
    /// Of [`Order::Path`]; `None` if that is unknown.
    Path(Option<Box<NetworkPath>>),
    /// Of [`Order::Watch`] and [`Order::WatchLoad`].
    Watching,
    /// Of [`Order::Queries`] and [`Order::File`].
    Taken,
    /// Of [`Order::Ask`]: the answer, in base64.
    Asked(String),
    /// Of [`Order::Ask`], if there is none.
    NotAnswered {
        /// Why.
        reason: String,
        /// Nothing came within the time-out.
        is_silence: bool,
        /// It may be otherwise in a moment.
        is_transient: bool,
        /// The server has answered that it does not.
        is_refusal: bool,
    },
    /// Of [`Order::Told`]: records of 36 octets ([`dnslab_client::AnswerRecord`]), in base64; none at their end.
    ToldRecords(String),
    /// Of [`Order::Load`].
    Ready,
    /// Of [`Order::Begin`], [`Order::Feed`] and [`Order::StopLoad`].
    Told,
    /// Of [`Order::Sample`].
    Sampling,
    /// Of [`Order::EndSample`]. Variant, rate and CPU time for each query are left out.
    Profile(Box<CpuProfile>),
    /// Of [`Order::EndWatch`], without its samples.
    Resources(Box<ResourceSeries>),
}

/// Why something did not come about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What a user reads, with the remedy.
    pub reason: String,
    /// What is behind it, from the nearest cause to the last.
    pub causes: Vec<String>,
}

impl Failure {
    /// A reason without causes.
    #[must_use]
    pub fn of(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), causes: Vec::new() }
    }
}

impl From<&(dyn Error + 'static)> for Failure {
    fn from(error: &(dyn Error + 'static)) -> Self {
        let (mut causes, mut cause) = (Vec::new(), error.source());
        while let Some(error) = cause {
            causes.push(error.to_string());
            cause = error.source();
        }
        Self { reason: error.to_string(), causes }
    }
}

/// A body is no message that this version reads.
#[derive(Debug, thiserror::Error)]
#[error("this is no message: {0}")]
pub struct Unreadable(#[from] serde_json::Error);

/// A message in a frame: JSON. Its types describe themselves, as those of records do.
///
/// # Errors
/// When a type cannot be JSON, which none of these is.
pub fn body_of(message: &impl Serialize) -> Result<Vec<u8>, Unreadable> {
    Ok(serde_json::to_vec(message)?)
}

/// The message of a body.
///
/// # Errors
/// When it is none.
pub fn message_of<M: for<'a> Deserialize<'a>>(body: &[u8]) -> Result<M, Unreadable> {
    Ok(serde_json::from_slice(body)?)
}
