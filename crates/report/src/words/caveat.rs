//! Caveats in words: one row for each, which the page, the tables and the screen read.

use dnslab_analysis::VariantCaveat;
use dnslab_record::{AfterTruncation, Caveat, UNDER_TEST};
use dnslab_settings::Remedy;

use super::bottleneck::{cpu_limit, held_up};
use super::invalid::{http_statuses, invalid_text, left_early};
use super::{MORE_CPUS, Remark};
use crate::number;

/// What the report says of a caveat.
pub(crate) struct Words {
    pub(crate) about: About,
    /// In full, for the page and the tables, which know neither the other runs nor the machine.
    pub(crate) full: Remark,
    /// For the screen; `None` for what the screen says elsewhere, and for what only the page says.
    pub(crate) short: Option<Short>,
}

/// A caveat in few words.
pub(crate) struct Short {
    /// The place of its note among the others, from [`Short::MACHINE`] on: the smaller, the graver.
    pub(crate) rank: u8,
    /// What is wrong, without a full stop.
    pub(crate) what: &'static str,
    /// How much of it; empty if there is no figure.
    pub(crate) figure: String,
    pub(crate) action: Action,
}

impl Short {
    /// The rank of a machine that others used. It comes first, for it may explain all others, and takes certainty from
    /// every difference.
    pub(crate) const MACHINE: u8 = 0;

    fn new(
        rank: u8,
        what: &'static str,
        figure: impl Into<String>,
        action: impl Into<Action>,
    ) -> Self {
        Self { rank, what, figure: figure.into(), action: action.into() }
    }
}

/// What the reader can do about a caveat, as sentences. Where it depends on the run and its machine, the screen finds
/// the words.
pub(crate) enum Action {
    /// Do this, whatever the run was.
    Any(String),
    /// Do one of these.
    ByServer {
        /// The server ran before, so dnslab cannot tell it where to run.
        running: &'static str,
        /// dnslab starts the server.
        started: &'static str,
    },
    /// Give server and load different CPUs.
    SeparateCpus,
    /// Add a worker to the load.
    AddWorker,
    /// Ask for no more than was sent.
    LowerRate {
        /// Queries per second that were sent.
        offered_qps: f64,
    },
    /// Let queries leave when they are due.
    SendInTime,
    /// Let the clients connect before the measured window begins.
    LengthenWarmUp,
}

impl From<&str> for Action {
    fn from(text: &str) -> Self {
        Self::Any(text.to_owned())
    }
}

impl From<String> for Action {
    fn from(text: String) -> Self {
        Self::Any(text)
    }
}

/// What a caveat is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// The machine, or how the server is watched and trusted: it holds at every rate that a search tries.
    Setup,
    /// The load, its answers, or how they were measured.
    Load,
}

/// One caveat as sentences: the doubt with its figure first, then its remedy.
pub(crate) fn caveat_text(caveat: &Caveat) -> String {
    words(caveat).full.text()
}

/// A caveat of a variant with `valid_runs` runs: the worst of its kind, and in how many of them there
/// is one, if not in all.
pub(crate) fn variant_caveat_text(caveat: &VariantCaveat, valid_runs: u32) -> String {
    let text = caveat_text(&caveat.worst);
    match caveat.runs == valid_runs {
        true => text,
        false => format!("{text} (in {} of {valid_runs} runs)", caveat.runs),
    }
}

/// The row of a caveat: all that the report says of it.
pub(crate) fn words(caveat: &Caveat) -> Words {
    const QUIETER: &str = "End what else runs on this machine, and measure again";
    const LATE: &str = "If the load's CPU was used up, give it more CPUs and workers (`load.cpus`, \
         `load.workers`), on a machine that has them, or ask for less; else end what \
         else runs on this machine";
    const RAISE_LIMIT: &str = "Raise it or lift it (`cpu.max`, `cpu.cfs_quota_us`, `CPUQuota=` of a unit, \
         the CPU limit of a container), and measure again";
    match caveat {
        Caveat::GeneratorLimited { busy_share } => Words {
            about: About::Load,
            full: Remark::new(
                "The load generator had no CPU left: the server may do more than this figure \
                 says",
                format!("busiest worker: {} of its CPU", number::share(*busy_share)),
                format!("{MORE_CPUS}, or give the server fewer"),
            ),
            short: Some(Short::new(
                2,
                "the load generator was the bottleneck: the server answers at least this \
                 rate, which is compared with none",
                "",
                Action::AddWorker,
            )),
        },
        Caveat::RateMissed { intended_qps, offered_qps } => Words {
            about: About::Load,
            full: Remark::new(
                "Fewer queries were sent than intended; the bottleneck says on which side",
                format!(
                    "{} of {}",
                    number::qps(*offered_qps),
                    number::queries_per_second(*intended_qps)
                ),
                format!("{MORE_CPUS}, or ask for less"),
            ),
            short: Some(Short::new(
                4,
                "fewer queries were sent than asked for",
                format!("{} of {}", number::qps(*offered_qps), number::qps(*intended_qps)),
                Action::LowerRate { offered_qps: *offered_qps },
            )),
        },
        Caveat::SendLag { p50_ns, p99_ns } => Words {
            about: About::Load,
            full: Remark::new(
                "Queries left later than they were due, by more than a tenth of the latency: \
                 that part of it passed before they were sent, in the generator or before a \
                 full connection",
                lags(*p50_ns, *p99_ns),
                LATE,
            ),
            short: Some(Short::new(
                5,
                "queries left later than they were due, which is in the latency",
                "",
                Action::SendInTime,
            )),
        },
        Caveat::Pacing { width_ns, share_within, p99_error } => Words {
            about: About::Load,
            full: Remark::new(
                "The rate was met on average but not evenly, so the server saw gaps and bursts",
                format!(
                    "{} of the windows of {} within 1 %, 1 in 100 off by {} or more",
                    number::share(*share_within),
                    number::duration(*width_ns as f64).replace(".0 ", " "),
                    number::share(*p99_error)
                ),
                LATE,
            ),
            short: Some(Short::new(
                6,
                "the rate was met on average but came in bursts",
                "",
                Action::SendInTime,
            )),
        },
        Caveat::BatchDelay { batch_delay_ns, p50_ns } => Words {
            about: About::Load,
            full: Remark::new(
                "The batching of sends and receives is a large part of the latency, and in a \
                 closed loop it bounds the rate too",
                format!(
                    "batching added at most {} on average, median latency {}",
                    number::duration(*batch_delay_ns as f64),
                    number::duration(*p50_ns as f64)
                ),
                format!("Set {}", Remedy::set("load.batch_delay", "0us")),
            ),
            short: None,
        },
        Caveat::GeneratorDrops { datagrams } => Words {
            about: About::Load,
            full: Remark::new(
                "The generator's own sockets dropped answers, which count as lost although \
                 the server answered",
                format!("{} datagrams", number::count(*datagrams)),
                format!("Raise `net.core.rmem_max`. {MORE_CPUS}"),
            ),
            short: Some(Short::new(
                3,
                "full sockets of the load generator dropped answers",
                number::count(*datagrams),
                "Raise `net.core.rmem_max`, or ask with fewer queries at a time.",
            )),
        },
        Caveat::ConnectionsFailed { attempted, failed, lost, example } => Words {
            about: About::Load,
            full: Remark::new(
                "Connections failed or were lost",
                connections(*attempted, *failed, *lost, example),
                "Look at the server's limits on connections and its log, or ask with fewer \
                 clients",
            ),
            short: Some(Short::new(
                2,
                "connections failed or were lost",
                format!("{} and {}; {example}", number::count(*failed), number::count(*lost)),
                "Look at the server's bound on connections, or ask with fewer clients.",
            )),
        },
        Caveat::WindowNotFull { in_flight, window } => Words {
            about: About::Load,
            full: Remark::new(
                "Answered queries took up only a part of the window, so the rate is that of a \
                 smaller one: lost queries stay outstanding until they time out, as behind a \
                 server's full socket buffer, or queries waited for a connection or for a \
                 stream that the server did not allow yet, which is in no latency",
                format!(
                    "{} of {}",
                    match *in_flight < 99.95 {
                        true => number::three_digits(*in_flight),
                        false => number::qps(*in_flight),
                    },
                    number::count(*window)
                ),
                "Ask with a smaller window (`load.outstanding`), more connections or a \
                 shorter time-out, or find what was lost",
            ),
            short: None,
        },
        Caveat::ClientsNotConnected { open, clients } => Words {
            about: About::Load,
            full: Remark::new(
                "Not all clients were connected when the measured window began",
                format!("{} of the {} clients", number::count(*open), number::count(*clients)),
                "Lengthen the warm-up (`load.warm_up`), or find why the others were not",
            ),
            short: Some(Short::new(
                4,
                "not all clients were connected at the start",
                format!("{} of {}", number::count(*open), number::count(*clients)),
                Action::LengthenWarmUp,
            )),
        },
        Caveat::ConnectionsHeld { share } => Words {
            about: About::Load,
            full: Remark::new(
                "Connections waited for their turn in the generator, which has at most 256 of \
                 each worker on their way at once, and no more open than it may have files",
                format!("{} of the time", number::share(*share)),
                format!(
                    "{MORE_CPUS}, let connections carry more queries \
                     (`load.queries_per_connection`), or find why they take so long to open"
                ),
            ),
            short: Some(Short::new(
                5,
                "connections waited for their turn in the load generator",
                format!("{} of the time", number::share(*share)),
                Action::AddWorker,
            )),
        },
        Caveat::SharedCpus => Words {
            about: About::Setup,
            full: Remark::new(
                "Server and load generator shared CPUs, so each took time from the other",
                "",
                "Pin them to different CPUs, or put the generator on another machine",
            ),
            short: Some(Short::new(
                3,
                "server and load shared a CPU, so each took time from the other",
                "",
                Action::SeparateCpus,
            )),
        },
        Caveat::SharedCore { cpus } => Words {
            about: About::Setup,
            full: Remark::new(
                "The server shared a core with others: two CPUs that are threads of one core \
                 slow each other at every instruction",
                shared_core(cpus),
                "Name CPUs of different cores (`server.cpus`, `load.cpus`), or take a machine \
                 with more cores",
            ),
            short: Some(Short::new(
                3,
                "server and load were on two threads of one core, which slow each other",
                "",
                Action::ByServer {
                    running: "Give the load CPUs of other cores (`load.cpus`), on a machine that has them.",
                    started: "Name CPUs of different cores (`server.cpus`, `load.cpus`), on a machine that \
                    has them.",
                },
            )),
        },
        Caveat::HostDrops { datagrams, of_server } => Words {
            about: About::Load,
            full: Remark::new(
                "Full sockets on the generator's host dropped datagrams; they are not the \
                 generator's",
                format!(
                    "{} datagrams, {} of them known to be the server's",
                    number::count(*datagrams),
                    number::count(*of_server)
                ),
                "If the server is on this host, ask with less in flight, or raise \
                 `net.core.rmem_default`, or the buffer that it asks for and \
                 `net.core.rmem_max`",
            ),
            short: Some(Short::new(
                3,
                match 2 * of_server > *datagrams {
                    true => "the server's socket buffer was full, and dropped queries",
                    false => "full sockets on this host dropped datagrams",
                },
                number::count(*datagrams),
                // Most servers have the system's default, and those that ask for more get `rmem_max` at most.
                "Ask with fewer queries at a time, or raise `net.core.rmem_default` and \
                 `net.core.rmem_max`.",
            )),
        },
        Caveat::Steal { share, host } => Words {
            about: About::Setup,
            full: Remark::new(
                match host.as_str() {
                    "" => "The hypervisor kept time from this machine",
                    _ => "The hypervisor kept time from the server's host",
                },
                format!("{} of the time of its CPUs", number::share(*share)) + &on(host),
                "Measure on a machine of your own, or at a quieter hour",
            ),
            short: Some(Short::new(
                Short::MACHINE,
                match host.as_str() {
                    "" => "the hypervisor kept time from this machine",
                    _ => "the hypervisor kept time from the server's host",
                },
                number::share(*share) + &on(host),
                "Measure at a quieter hour, or on a machine of your own.",
            )),
        },
        Caveat::Crowded { waited_share } => Words {
            about: About::Setup,
            full: Remark::new(
                "Others held the CPUs of the load generator while it could have run",
                format!("{} of the time", number::share(*waited_share)),
                QUIETER,
            ),
            short: Some(Short::new(
                Short::MACHINE,
                "the load generator waited for CPUs that other programs held",
                format!("{} of the time", number::share(*waited_share)),
                format!("{QUIETER}."),
            )),
        },
        Caveat::ServerHeldUp { role, waited_share, others_share } => Words {
            about: About::Setup,
            full: Remark::new(
                "Other programs held a CPU of a server while it could have run",
                held_up(role, Some(*waited_share), *others_share),
                QUIETER,
            ),
            short: Some(Short::new(
                Short::MACHINE,
                "other programs held the server's CPU",
                of_role(
                    role,
                    format!("{} of the time for which it had work", number::share(*waited_share)),
                ),
                format!("{QUIETER}."),
            )),
        },
        Caveat::ServerCpuLimit { role, cpus, throttled_share } => Words {
            about: About::Setup,
            full: Remark::new(
                "The CPU limit of a server held it up: the figures are those of a server with \
                 this limit",
                of_role(role, cpu_limit(*cpus, *throttled_share)),
                RAISE_LIMIT,
            ),
            short: Some(Short::new(
                2,
                "the server's CPU limit held it up",
                cpu_limit(*cpus, *throttled_share),
                "Raise that, or take the figures for those of a server with this limit.",
            )),
        },
        Caveat::LoadCpuLimit { cpus, throttled_share } => Words {
            about: About::Setup,
            full: Remark::new(
                "The CPU limit of dnslab itself held the load up: the server may do more",
                cpu_limit(*cpus, *throttled_share),
                RAISE_LIMIT,
            ),
            short: Some(Short::new(
                2,
                "the CPU limit of dnslab itself held the load up, so the server may answer more",
                cpu_limit(*cpus, *throttled_share),
                "Raise that, or run dnslab outside of this control group.",
            )),
        },
        Caveat::OtherProcesses { cpus, host } => Words {
            about: About::Setup,
            full: Remark::new(
                "Processes that are neither server nor load used CPU time",
                format!("{} CPUs busy", number::three_digits(*cpus)) + &on(host),
                QUIETER,
            ),
            short: Some(Short::new(
                4,
                match host.as_str() {
                    "" => "other processes used this machine",
                    _ => "other processes used the server's host",
                },
                format!("{} CPUs", number::three_digits(*cpus)) + &on(host),
                format!("{QUIETER}."),
            )),
        },
        Caveat::LinksNotPlayed { reason } => Words {
            about: About::Load,
            full: Remark::new(
                "There were no hosts, so no link was played: the upstream at most added the \
                 delay of its link to each answer, and connections and handshakes cost no \
                 round trip",
                reason.clone(),
                "Run where network namespaces can be made; do not compare UDP with TCP or TLS \
                 here",
            ),
            short: Some(Short::new(
                3,
                "there were no network namespaces, so the links had no delay and no loss",
                "",
                "Run as root; do not compare UDP with TCP here.",
            )),
        },
        Caveat::StrayAnswers { late, duplicate, unexpected } => Words {
            about: About::Load,
            full: Remark::new(
                "Stray answers",
                format!(
                    "{} after the time-out, {} for the second time, {} to no question that is \
                     remembered",
                    number::count(*late),
                    number::count(*duplicate),
                    number::count(*unexpected)
                ),
                "Raise the time-out if the late ones matter; look at the path if the others do",
            ),
            short: (*late > 0).then(|| {
                Short::new(
                    6,
                    "answers came after the time-out",
                    number::count(*late),
                    "Raise `load.timeout` if they matter.",
                )
            }),
        },
        Caveat::CountsDiffer { sent, counted } => Words {
            about: About::Load,
            full: Remark::new(
                "The server's own count of the queries is not that of the load",
                format!(
                    "{} sent, {} counted by the server",
                    number::count(*sent),
                    number::count(*counted)
                ),
                "See how the queries ended, for lost ones may not have reached it; who else \
                 asks it; whether a cache answers before it; and what this server does not count",
            ),
            short: Some(Short::new(
                2,
                "the server counted other queries than were sent",
                format!("{} and {}", number::count(*counted), number::count(*sent)),
                "See in the report how the queries ended, and who else asks this server.",
            )),
        },
        Caveat::DnstapDropped { share } => Words {
            about: About::Load,
            full: Remark::new(
                "The server lost dnstap messages, because the queue to their writer was full: \
                 what the whole log costs is in no figure",
                format!("{} of the messages", number::share(*share)),
                "Ask for a lower rate, give the server another CPU, or put the results on a \
                 faster disk; BIND's queue has its default length \
                 (fstrm-set-input-queue-size)",
            ),
            short: Some(Short::new(
                3,
                "the server dropped dnstap messages, so logging all of them costs more",
                number::share(*share),
                "Ask for a lower rate, or put the results on a faster disk.",
            )),
        },
        Caveat::WrongAnswers { count, example } => Words {
            about: About::Load,
            full: Remark::new(
                "Answers were not what the experiment expects",
                format!("{}, for example: {example}", number::count(*count)),
                format!(
                    "Correct the zone or what is expected (`expect.rcode`); {} takes every code",
                    Remedy::set("expect.rcode", "any")
                ),
            ),
            short: Some(Short::new(
                1,
                "some answers were not the expected ones",
                example.as_str(),
                format!(
                    "Correct the zone, or what is expected: {} takes every code.",
                    Remedy::set("expect.rcode", "any")
                ),
            )),
        },
        Caveat::MalformedAnswers { malformed, checked, example } => Words {
            about: About::Load,
            full: Remark::new(
                "Answers had a right header, but not what it promised",
                format!(
                    "{} of {} that were checked in full, for example: {example}",
                    number::count(*malformed),
                    number::count(*checked)
                ),
                "Look at the answer with another program (`dig`, or `kdig`): the server makes \
                 it wrongly, or something on the path does",
            ),
            short: Some(Short::new(
                1,
                "some answers did not hold what their header promised",
                example.as_str(),
                "Look at the answer with `dig`: the server makes it wrongly, or something on \
                 the path.",
            )),
        },
        Caveat::BadSignatures { count, example } => Words {
            about: About::Load,
            full: Remark::new(
                "Signatures were refused, or answers had no valid one",
                format!("{}, for example: {example}", number::count(*count)),
                "Give server and load a TSIG key of one name, algorithm and secret, and look \
                 at both clocks",
            ),
            short: Some(Short::new(
                1,
                "signatures (TSIG) were refused or missing",
                example.as_str(),
                "Give server and load the same key, and look at both clocks.",
            )),
        },
        Caveat::HttpErrors { statuses } => Words {
            about: About::Load,
            full: Remark::new(
                "The server refused queries with an error of HTTP",
                http_statuses(statuses),
                "Look at the server's log from that time on, and at its bounds on requests",
            ),
            short: Some(Short::new(
                1,
                "queries were refused",
                http_statuses(statuses),
                "Look at the server's log from that time on, and at its bounds on requests.",
            )),
        },
        Caveat::ClosedLoop { window } => Words {
            about: About::Load,
            full: Remark::new(
                "A closed loop waits when the server stalls, so it hides stalls from the \
                 latency figures (coordinated omission); and the rate is the one at this \
                 window, another gives another",
                format!("{} outstanding queries", number::count(*window)),
                "Use an open loop (`load.rate`) to see the stalls",
            ),
            short: None,
        },
        Caveat::AnswersWaitForNextQuery { share, gap_ns } => Words {
            about: About::Load,
            full: Remark::new(
                "Answers waited in the server for the next query of their connection: it \
                 leaves Nagle's algorithm on, so an answer leaves it only when the one before \
                 is acknowledged, which the client's kernel does with the next query or \
                 after 40 ms; the latency is that of this wait",
                format!(
                    "{} of the answers, with a query on each connection every {} on average",
                    number::share(*share),
                    number::duration(*gap_ns as f64)
                ),
                format!(
                    "The server can set TCP_NODELAY; {} makes the clients acknowledge at once, \
                     and shows the latency without the wait; real clients with such a gap between \
                     their queries wait too",
                    Remedy::set("load.quickack", "open-loop")
                ),
            ),
            short: Some(Short::new(
                2,
                "answers waited for the next query of their connection (Nagle's algorithm in \
                 the server, delayed acknowledgements in the client)",
                format!("{} of them", number::share(*share)),
                format!(
                    "{} shows the latency without that.",
                    Remedy::set("load.quickack", "open-loop")
                ),
            )),
        },
        Caveat::FirstAnswersWait { share, connections } => Words {
            about: About::Load,
            full: Remark::new(
                "The first answer of a new connection came after 40 ms: the server leaves \
                 Nagle's algorithm on, and holds it until the client has acknowledged what \
                 came with the handshake, which the client's kernel does after that time",
                format!(
                    "{} of the answers took 38 to 50 ms; {} were the first of a connection",
                    number::share(*share),
                    number::share(*connections)
                ),
                format!(
                    "The server can set TCP_NODELAY; {} makes the clients acknowledge at once, \
                     and shows the latency without the wait",
                    Remedy::set("load.quickack", "always")
                ),
            ),
            short: Some(Short::new(
                4,
                "the first answer of new connections came after 40 ms (Nagle's algorithm in \
                 the server, delayed acknowledgements in the client)",
                format!("{} of all answers", number::share(*share)),
                format!(
                    "{} shows the latency without that.",
                    Remedy::set("load.quickack", "always")
                ),
            )),
        },
        Caveat::Lost { share } => Words {
            about: About::Load,
            full: Remark::new(
                "Queries were not answered; each counts in the latency with its time-out at \
                 least",
                number::share(*share),
                "See how the queries ended, and ask for less if the server was full",
            ),
            short: Some(Short::new(
                2,
                "queries were lost",
                number::share(*share),
                "Each counts in the latency with its time-out. Ask for a lower rate, or fewer \
                 at a time.",
            )),
        },
        Caveat::Truncated { share, then } => truncated(*share, then),
        Caveat::EmptyAnswers { share } => Words {
            about: About::Load,
            full: Remark::new(
                "Answers were NOERROR without a record: NODATA, as names have that lack the \
                 type that was asked for (AAAA, say), or referrals",
                format!("{} of the answers", number::share(*share)),
                "If these names have such records, make sure that this is their server, or a \
                 resolver",
            ),
            short: Some(Short::new(
                5,
                "answers had no record (NODATA, or referrals)",
                number::share(*share),
                "Names that lack a type, as many lack AAAA, are answered so; if these should \
                 have it, ask their own server.",
            )),
        },
        Caveat::Unsteady { lowest_qps, median_qps } => Words {
            about: About::Load,
            full: Remark::new(
                "The rate broke down inside the measured window",
                format!(
                    "{} answers per second in the worst interval, {} in the median one",
                    number::qps(*lowest_qps),
                    number::qps(*median_qps)
                ),
                "Look at it over time, end what else runs on this machine, and measure longer",
            ),
            short: Some(Short::new(
                5,
                "the rate broke down for a while",
                "",
                "The report shows when; measure longer.",
            )),
        },
        Caveat::Trend { first_qps, last_qps } => Words {
            about: About::Load,
            full: Remark::new(
                match last_qps < first_qps {
                    true => "The rate fell inside the measured window",
                    false => "The rate rose inside the measured window",
                },
                format!(
                    "{} answers per second in its first fifth, {} in its last one",
                    number::qps(*first_qps),
                    number::qps(*last_qps)
                ),
                "Look at it over time, and lengthen `load.warm_up` until it is steady; a rate that never is depends on \
                 how long one measures",
            ),
            short: Some(Short::new(
                4,
                match last_qps < first_qps {
                    true => "the rate fell from the beginning of a run to its end",
                    false => "the rate rose from the beginning of a run to its end",
                },
                number::change(last_qps / first_qps - 1.0),
                "Lengthen `load.warm_up` until it is steady.",
            )),
        },
        Caveat::ServerNotWatched { reason } => Words {
            about: About::Setup,
            full: Remark::new(
                "The server's CPU and memory were not watched",
                reason.clone(),
                "Watch it on its host over ssh, or run dnslab on that machine, as root or as \
                 the server's owner, and leave `server.watch` at `true`",
            ),
            short: Some(Short::new(
                4,
                "the server's CPU and memory were not watched",
                reason.trim_end_matches('.'),
                "Watch it on its host over ssh, or run there, as root or as its owner.",
            )),
        },
        Caveat::CutShort { measured_ns, asked_ns, in_flight } => Words {
            about: About::Load,
            full: Remark::new(
                "The run was left early, and its figures are those of the time that it had",
                match in_flight {
                    0 => left_early(*measured_ns, *asked_ns),
                    queries => format!(
                        "{}; {} queries in flight then are in no figure",
                        left_early(*measured_ns, *asked_ns),
                        number::count(*queries)
                    ),
                },
                "Resume the experiment to repeat it",
            ),
            short: Some(Short::new(
                2,
                "a run was left early",
                left_early(*measured_ns, *asked_ns),
                "Where the results are kept, `dnslab run --resume` makes it again.",
            )),
        },
        Caveat::CertificateNotVerified => Words {
            about: About::Setup,
            full: Remark::new(
                "The certificate of the server was not verified, so the cost of verifying it \
                 is not in the figures",
                "",
                "Leave `server.insecure` away; a server that runs already also needs its \
                 `server.authority`",
            ),
            short: Some(Short::new(
                6,
                "the server's certificate was not verified, and what that costs is in no figure",
                "",
                Action::ByServer {
                    running: "Name its authority with `server.authority`, in the place of `server.insecure`.",
                    started: "Leave `server.insecure` away.",
                },
            )),
        },
        Caveat::TurnBacklog { ns } => Words {
            about: About::Load,
            full: Remark::new(
                "When its turn ends, the server still has queries to answer, and part of that \
                 is in the figures of the variant after it",
                format!("it needs up to {} for them", number::duration(*ns as f64)),
                {
                    let ms = ns.div_ceil(1_000_000);
                    let guard = Remedy::set("repeat.guard", format!("{ms}ms"));
                    format!("Set {}", guard.and("repeat.slice", format!("{}ms", 5 * ms)))
                },
            ),
            short: None,
        },
        Caveat::MemoryKept => Words {
            about: About::Load,
            full: Remark::new(
                "The server ran before, and kept memory that earlier loads had needed, so \
                 what this variant needs is not known",
                "",
                "Restart the server, and measure this variant alone",
            ),
            short: Some(Short::new(
                4,
                "the server kept memory that earlier loads had needed, so what these variants \
                 need is not known",
                "",
                "Restart it, and measure such a variant alone.",
            )),
        },
        Caveat::CommonLoadInvalid { reason } => Words {
            about: About::Load,
            full: Remark::new(
                "The common load does not count, so this run has no latencies",
                invalid_text(reason),
                "",
            ),
            short: None,
        },
        Caveat::ShareLoadInvalid { share, reason } => Words {
            about: About::Load,
            full: Remark::new(
                "A load at a share of the variant's own rate does not count, so this run has no figures of it",
                format!("at {}, {}", number::share(*share), invalid_text(reason)),
                "",
            ),
            short: None,
        },
        Caveat::Imported { generator, lost_share } => Words {
            about: About::Load,
            full: Remark::new(
                "The figures are those of another load generator: its latencies are those of \
                 answered queries alone, and CPU and memory of the server, send lag and \
                 bottleneck are not known",
                match *lost_share > 0.0 {
                    true => format!(
                        "{generator}; {} of the queries were lost, and are in no latency",
                        number::share(*lost_share)
                    ),
                    false => generator.clone(),
                },
                "Compare these runs with each other, and not with runs of dnslab",
            ),
            short: Some(Short::new(
                2,
                "the figures are those of another load generator, its latencies those of \
                 answered queries alone",
                match *lost_share > 0.0 {
                    true => format!("{generator}; {} were lost", number::share(*lost_share)),
                    false => generator.clone(),
                },
                "CPU, memory and send lag are not known. Compare these runs with each other \
                 alone.",
            )),
        },
    }
}

fn truncated(share: f64, then: &AfterTruncation) -> Words {
    let figure = format!("{} of the answers", number::share(share));
    match then {
        AfterTruncation::Counted => Words {
            about: About::Load,
            full: Remark::new(
                "Answers were truncated (TC); a real client asks again over TCP, which is in \
                 no figure here",
                figure,
                format!(
                    "{} lets the clients ask again; or ask for smaller answers, or measure `tcp` \
                     beside it",
                    Remedy::set("load.truncated", "ask-over-tcp")
                ),
            ),
            short: Some(Short::new(
                4,
                "answers were truncated, and nobody asked again over TCP",
                number::share(share),
                format!("{} does so.", Remedy::set("load.truncated", "ask-over-tcp")),
            )),
        },
        // They did what real clients do.
        AfterTruncation::AskedOverTcp { truncated_share: 0.0 } => Words {
            about: About::Load,
            full: Remark::new(
                "Answers were truncated (TC), and their clients asked again over TCP; the \
                 latency is that of both",
                figure,
                "",
            ),
            short: None,
        },
        AfterTruncation::AskedOverTcp { truncated_share } => Words {
            about: About::Load,
            full: Remark::new(
                format!(
                    "Answers were truncated (TC), and their clients asked again over TCP, where \
                     {} of the answers were truncated too",
                    number::share(*truncated_share)
                ),
                figure,
                "No answer over TCP needs to be: look at it with another program (`dig \
                 +tcp`); the server makes it wrongly, or is asked for more than 65,535 octets",
            ),
            short: Some(Short::new(
                1,
                "answers were truncated over UDP, and over TCP too, where they were asked again",
                format!("{} of those over TCP", number::share(*truncated_share)),
                "No answer over TCP needs to be: `dig +tcp` shows one.",
            )),
        },
        AfterTruncation::WasOverConnection => Words {
            about: About::Load,
            full: Remark::new(
                "Answers were truncated (TC), though they came over a connection",
                figure,
                "No such answer needs to be: look at it with another program (`dig +tcp`); \
                 the server makes it wrongly, or is asked for more than 65,535 octets",
            ),
            short: Some(Short::new(
                1,
                "answers were truncated, though they came over a connection",
                number::share(share),
                "No such answer needs to be: `dig +tcp` shows one.",
            )),
        },
    }
}

/// A figure of a server; with its role where that is not the server under test.
/// Where it was, if that is not the host of the load.
fn on(host: &str) -> String {
    if host.is_empty() { String::new() } else { format!(" on {host}") }
}

fn of_role(role: &str, figure: String) -> String {
    match role {
        UNDER_TEST => figure,
        role => format!("{role}: {figure}"),
    }
}

/// The CPUs that share a core with the server's as a figure.
fn shared_core(cpus: &[usize]) -> String {
    let plural = if cpus.len() == 1 { "" } else { "s" };
    let numbers: Vec<String> = cpus.iter().map(usize::to_string).collect();
    format!("CPU{plural} {} of load or other servers", numbers.join(", "))
}

fn lags(p50_ns: u64, p99_ns: Option<u64>) -> String {
    let p99 = p99_ns.map(|ns| format!(", p99 {}", number::duration(ns as f64))).unwrap_or_default();
    format!("send lag p50 {}{p99}", number::duration(p50_ns as f64))
}

fn connections(attempted: u64, failed: u64, lost: u64, example: &str) -> String {
    let last = match example {
        "" => String::new(),
        reason => format!("; the last one: {reason}"),
    };
    format!(
        "{} attempts, {} failed, {} lost{last}",
        number::count(attempted),
        number::count(failed),
        number::count(lost)
    )
}
