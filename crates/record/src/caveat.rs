//! Reasons to doubt a number.

use dnslab_figures::HttpRefusals;
use serde::{Deserialize, Serialize};

use crate::invalid::InvalidReason;

/// One reason to doubt a figure, stored with it and shown beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Caveat {
    /// The load generator had no CPU left: the server may do more than the figure says.
    GeneratorLimited {
        /// Busy share of the busiest worker, in [0, 1].
        busy_share: f64,
    },
    /// Server and generator shared CPUs.
    SharedCpus,
    /// The load, or a server behind the one under test, ran on the other thread of a core of that server:
    /// each then slows the other at every instruction.
    SharedCore {
        /// Their CPUs.
        cpus: Vec<usize>,
    },
    /// A closed loop: the rate is that of this window, and stalls are hidden.
    ClosedLoop {
        /// Queries outstanding over all clients.
        window: u64,
    },
    /// A closed loop whose window was not full: answered queries took up less of it than they
    /// should, so the rate is that of a smaller window.
    WindowNotFull {
        /// Answered queries in flight on average over all clients: answered rate times mean service
        /// time (Little's law).
        in_flight: f64,
        /// Queries that should be outstanding over all clients.
        window: u64,
    },
    /// Not all clients could send when the measured window began.
    ClientsNotConnected {
        /// Clients that could.
        open: u64,
        /// All clients.
        clients: u64,
    },
    /// Open loop over TCP: answers came when the next query of their connection did, and not when the
    /// server had them: it keeps them back until the client has acknowledged the ones before (Nagle's
    /// algorithm, RFC 1122, section 4.2.3.4).
    AnswersWaitForNextQuery {
        /// Their share of the answers, in [0, 1].
        share: f64,
        /// Mean time between two queries of one connection, nanoseconds.
        gap_ns: u64,
    },
    /// Over TCP the first answer of most new connections came after 40 ms: the server leaves Nagle's
    /// algorithm on, and holds it until the client has acknowledged what came with the handshake, which
    /// the client's kernel does after that time.
    FirstAnswersWait {
        /// Answers that took 38 to 50 ms as a share of all, in [0, 1].
        share: f64,
        /// New connections as a share of the answers, in [0, 1].
        connections: f64,
    },
    /// Connections waited for their turn in the generator, which has a bounded number of them on
    /// their way, or open, at once.
    ConnectionsHeld {
        /// Share of the time, in [0, 1], of the worker where it was largest.
        share: f64,
    },
    /// Fewer queries were sent than intended.
    RateMissed {
        /// Intended queries per second.
        intended_qps: f64,
        /// Offered queries per second.
        offered_qps: f64,
    },
    /// Queries left later than they were due by more than a tenth of the latency: in the median, or
    /// in the 0.99 quantile.
    SendLag {
        /// Median lag in nanoseconds.
        p50_ns: u64,
        /// 0.99 quantile of the lag in nanoseconds; `None` in records that do not have it.
        #[serde(default)]
        p99_ns: Option<u64>,
    },
    /// An open loop sent at the offered rate on average but not evenly: more than one window of a
    /// hundred was off by more than 1 %.
    Pacing {
        /// Width of a window, nanoseconds.
        width_ns: u64,
        /// Share of the windows that were within 1 %, in [0, 1].
        share_within: f64,
        /// 0.99 quantile of the error.
        p99_error: f64,
    },
    /// The batching of sends and receives is a large part of the latency.
    BatchDelay {
        /// What it added to an answer, nanoseconds: of the worker where it is most.
        batch_delay_ns: u64,
        /// Median latency, nanoseconds.
        p50_ns: u64,
    },
    /// The generator's own sockets dropped answers.
    GeneratorDrops {
        /// Dropped datagrams.
        datagrams: u64,
    },
    /// UDP sockets on the generator's host that are not its own dropped datagrams because their
    /// buffers were full: those of a server there, or of others.
    HostDrops {
        /// Dropped datagrams.
        datagrams: u64,
        /// Those of them that the server under test is known to have dropped.
        of_server: u64,
    },
    /// Connections did not come about, or ended before we ended them.
    ConnectionsFailed {
        /// Connection attempts.
        attempted: u64,
        /// Attempts that failed.
        failed: u64,
        /// Usable connections that ended.
        lost: u64,
        /// The last reason.
        example: String,
    },
    /// Another machine on the same hardware took time from this one.
    Steal {
        /// Stolen share of the time of the CPUs of server and load, in [0, 1]. The machine tells
        /// what all its CPUs lost; at most this share was theirs.
        share: f64,
        /// The name of the host, if that is not the load's; empty otherwise, and in records that do not have it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        host: String,
    },
    /// Other processes took the load's CPUs from it: it could have run but had to wait.
    Crowded {
        /// Share of the time for which the most delayed worker waited for its CPU, in [0, 1].
        waited_share: f64,
    },
    /// Other processes took the CPUs of a server from it: it could have run but had to wait.
    ServerHeldUp {
        /// Role of the server in the chain.
        role: String,
        /// Of the time for which its threads could run, the share for which they had no CPU, in [0, 1].
        waited_share: f64,
        /// Share of its CPUs that others used, in [0, 1].
        others_share: f64,
    },
    /// A control group of a server has a CPU quota, which was used up now and then.
    ServerCpuLimit {
        /// Role of the server in the chain.
        role: String,
        /// The quota in CPUs.
        cpus: f64,
        /// Share of the periods in which it was used up, in [0, 1].
        throttled_share: f64,
    },
    /// A control group of dnslab itself has a CPU quota, which was used up now and then.
    LoadCpuLimit {
        /// The quota in CPUs.
        cpus: f64,
        /// Share of the periods in which it was used up, in [0, 1].
        throttled_share: f64,
    },
    /// Processes that are neither server nor load used CPU time.
    OtherProcesses {
        /// How many CPUs they kept busy (0.5 = half of one).
        cpus: f64,
        /// The name of the host, if that is not the load's; empty otherwise, and in records that do not have it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        host: String,
    },
    /// Queries were not answered.
    Lost {
        /// Their share of the due ones, in [0, 1].
        share: f64,
    },
    /// Answers had the TC bit set (RFC 1035, section 4.1.1): they were not the whole answer.
    Truncated {
        /// Their share of the answers, in [0, 1].
        share: f64,
        /// What the clients did then.
        #[serde(default)]
        then: AfterTruncation,
    },
    /// Answers with response code NOERROR held no record: NODATA, or referrals (RFC 9499,
    /// section 7).
    EmptyAnswers {
        /// Their share of the answers, in [0, 1].
        share: f64,
    },
    /// The answered rate broke down for a while inside the measured window.
    Unsteady {
        /// Answered queries per second of the worst interval.
        lowest_qps: f64,
        /// Answered queries per second of the median interval.
        median_qps: f64,
    },
    /// The answered rate of a closed loop rose or fell from the beginning of the measured window to its end.
    Trend {
        /// Answered queries per second of its first fifth.
        first_qps: f64,
        /// Answered queries per second of its last fifth.
        last_qps: f64,
    },
    /// Some answers came after the time-out, twice, or to no question that the client remembers.
    StrayAnswers {
        /// After the time-out.
        late: u64,
        /// Second and further ones.
        duplicate: u64,
        /// To no question that the client remembers: never asked, or forgotten since.
        unexpected: u64,
    },
    /// The server's own count of the queries differs from that of the load by more than 1 %.
    CountsDiffer {
        /// Queries that the load sent.
        sent: u64,
        /// Queries that the server counted meanwhile.
        counted: u64,
    },
    /// The server lost more than 0.1 % of the dnstap messages of the load: their cost is in no figure.
    DnstapDropped {
        /// Dropped messages as a share of the written and the dropped ones, in [0, 1].
        share: f64,
    },
    /// The links of the experiment were not there: all was on the loopback interface.
    LinksNotPlayed {
        /// Why there were no hosts.
        reason: String,
    },
    /// Answers were not what the experiment expects.
    WrongAnswers {
        /// How many.
        count: u64,
        /// One query and its answer, as text.
        example: String,
    },
    /// Answers that looked right did not hold what they must when they were parsed in full.
    MalformedAnswers {
        /// How many.
        malformed: u64,
        /// Answers that were parsed in full.
        checked: u64,
        /// The fault of the first, with its query.
        example: String,
    },
    /// Answers to signed queries were not signed as they must be, or refused the signature (RFC 8945).
    BadSignatures {
        /// How many.
        count: u64,
        /// What was wrong with the first, and what to do about it.
        example: String,
    },
    /// The server refused queries with a status of HTTP.
    HttpErrors {
        /// Each status, how often it came, and when first.
        statuses: Vec<(u16, HttpRefusals)>,
    },
    /// The server's resources could not be watched (another machine, or no permission).
    ServerNotWatched {
        /// Why.
        reason: String,
    },
    /// The server ran before and kept memory that earlier loads had needed, so what this variant needs is not known.
    /// It follows from all runs of a session: no record has it.
    MemoryKept,
    /// The run was left early.
    CutShort {
        /// Measured time in nanoseconds.
        measured_ns: u64,
        /// Time that was asked for, nanoseconds; 0 in records that do not have it.
        #[serde(default)]
        asked_ns: u64,
        /// Queries that were in flight then and are in no figure.
        #[serde(default)]
        in_flight: u64,
    },
    /// The certificate of the server was not verified.
    CertificateNotVerified,
    /// When its turn ended, the server had more to answer than the pause before the next turn allows:
    /// part of that is in the figures of the variant after it.
    TurnBacklog {
        /// How long it needs for that, nanoseconds.
        ns: u64,
    },
    /// The common load does not count, so the run has no latencies.
    CommonLoadInvalid {
        /// Why.
        reason: InvalidReason,
    },
    /// A load at a share of the variant's own rate does not count, so the run has no figures of it.
    ShareLoadInvalid {
        /// The offered load as a share of that rate, in (0, 1).
        share: f64,
        /// Why.
        reason: InvalidReason,
    },
    /// The figures are those of another load generator: dnslab did not see its load.
    Imported {
        /// Name and version of the generator.
        generator: String,
        /// Queries that were lost as a share of those sent, in [0, 1]: they are in none of its latencies.
        lost_share: f64,
    },
}

/// What clients did after truncated answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AfterTruncation {
    /// Nothing: they count such answers as they are. Records that do not say more have this.
    #[default]
    Counted,
    /// They asked again over TCP.
    AskedOverTcp {
        /// Share of the answers to that which were truncated too, in [0, 1].
        truncated_share: f64,
    },
    /// The answers came over a connection already.
    WasOverConnection,
}

impl Caveat {
    /// How bad the doubt is, to find the worst of one kind: the larger, the worse. Comparable among
    /// caveats of one kind only; 0 for the kinds that have no figure.
    #[must_use]
    pub fn severity(&self) -> f64 {
        match *self {
            Self::GeneratorLimited { busy_share } => busy_share,
            Self::ClosedLoop { window } => window as f64,
            Self::WindowNotFull { in_flight, window } => 1.0 - in_flight / window as f64,
            Self::ClientsNotConnected { open, clients } => 1.0 - open as f64 / clients as f64,
            Self::RateMissed { intended_qps, offered_qps } => 1.0 - offered_qps / intended_qps,
            Self::SendLag { p50_ns, p99_ns } => p99_ns.unwrap_or(0).max(p50_ns) as f64,
            Self::Pacing { share_within, .. } => 1.0 - share_within,
            Self::BatchDelay { batch_delay_ns, p50_ns } => batch_delay_ns as f64 / p50_ns as f64,
            Self::GeneratorDrops { datagrams } | Self::HostDrops { datagrams, .. } => {
                datagrams as f64
            }
            Self::ConnectionsFailed { failed, lost, .. } => (failed + lost) as f64,
            Self::Crowded { waited_share } | Self::ServerHeldUp { waited_share, .. } => {
                waited_share
            }
            Self::ServerCpuLimit { throttled_share, .. }
            | Self::LoadCpuLimit { throttled_share, .. } => throttled_share,
            Self::OtherProcesses { cpus, .. } => cpus,
            Self::AnswersWaitForNextQuery { share, .. }
            | Self::FirstAnswersWait { share, .. }
            | Self::ConnectionsHeld { share }
            | Self::Steal { share, .. }
            | Self::Lost { share }
            | Self::Truncated { share, .. }
            | Self::EmptyAnswers { share }
            | Self::DnstapDropped { share } => share,
            Self::Unsteady { lowest_qps, median_qps } => 1.0 - lowest_qps / median_qps,
            Self::Trend { first_qps, last_qps } => (last_qps / first_qps - 1.0).abs(),
            Self::StrayAnswers { late, duplicate, unexpected } => {
                (late + duplicate + unexpected) as f64
            }
            Self::MalformedAnswers { malformed, checked, .. } => {
                malformed as f64 / checked.max(1) as f64
            }
            Self::WrongAnswers { count, .. } | Self::BadSignatures { count, .. } => count as f64,
            Self::CountsDiffer { sent, counted } => {
                counted.abs_diff(sent) as f64 / sent.max(1) as f64
            }
            // The shorter, the worse.
            Self::CutShort { measured_ns, .. } => -(measured_ns as f64),
            Self::TurnBacklog { ns } => ns as f64,
            Self::Imported { lost_share, .. } => lost_share,
            Self::ShareLoadInvalid { share, .. } => share,
            Self::SharedCpus
            | Self::SharedCore { .. }
            | Self::ServerNotWatched { .. }
            | Self::LinksNotPlayed { .. }
            | Self::CertificateNotVerified
            | Self::MemoryKept
            | Self::CommonLoadInvalid { .. } => 0.0,
            Self::HttpErrors { ref statuses } => {
                statuses.iter().map(|(_, refusals)| refusals.count).sum::<u64>() as f64
            }
        }
    }

    /// True if the two doubt the same thing, with other figures.
    #[must_use]
    pub fn is_same_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl Caveat {
    /// True if the doubt is about the load generator, its machine or its way to the server, and so a part of
    /// the self-check of a run; false if it is about the server, its answers, or the method that was chosen.
    #[must_use]
    pub fn is_of_measuring_side(&self) -> bool {
        match self {
            Self::GeneratorLimited { .. }
            | Self::SharedCpus
            | Self::SharedCore { .. }
            | Self::WindowNotFull { .. }
            | Self::ClientsNotConnected { .. }
            | Self::ConnectionsHeld { .. }
            | Self::RateMissed { .. }
            | Self::SendLag { .. }
            | Self::Pacing { .. }
            | Self::BatchDelay { .. }
            | Self::GeneratorDrops { .. }
            | Self::HostDrops { .. }
            | Self::ConnectionsFailed { .. }
            | Self::Steal { .. }
            | Self::Crowded { .. }
            | Self::ServerHeldUp { .. }
            | Self::LoadCpuLimit { .. }
            | Self::OtherProcesses { .. }
            | Self::LinksNotPlayed { .. } => true,
            Self::ClosedLoop { .. }
            | Self::ServerCpuLimit { .. }
            | Self::AnswersWaitForNextQuery { .. }
            | Self::FirstAnswersWait { .. }
            | Self::Lost { .. }
            | Self::Truncated { .. }
            | Self::EmptyAnswers { .. }
            | Self::Unsteady { .. }
            | Self::Trend { .. }
            | Self::StrayAnswers { .. }
            | Self::CountsDiffer { .. }
            | Self::DnstapDropped { .. }
            | Self::WrongAnswers { .. }
            | Self::MalformedAnswers { .. }
            | Self::BadSignatures { .. }
            | Self::HttpErrors { .. }
            | Self::ServerNotWatched { .. }
            | Self::CutShort { .. }
            | Self::CertificateNotVerified
            | Self::TurnBacklog { .. }
            | Self::MemoryKept
            | Self::CommonLoadInvalid { .. }
            | Self::ShareLoadInvalid { .. }
            | Self::Imported { .. } => false,
        }
    }

    /// True if it says that a side had work and no CPU to do it on, because of others or of a quota: asking for more
    /// leads nowhere then.
    #[must_use]
    pub fn keeps_from_cpu(&self) -> bool {
        matches!(
            self,
            Self::Crowded { .. }
                | Self::ServerHeldUp { .. }
                | Self::ServerCpuLimit { .. }
                | Self::LoadCpuLimit { .. }
        )
    }

    /// True if it says that others used the machine: its programs, or other guests of its hypervisor.
    #[must_use]
    pub fn is_of_others(&self) -> bool {
        matches!(
            self,
            Self::Steal { .. }
                | Self::Crowded { .. }
                | Self::ServerHeldUp { .. }
                | Self::OtherProcesses { .. }
        )
    }
}
