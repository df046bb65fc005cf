//! Reasons to doubt a number.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::limit::{GENERATOR_BUSY, RATE_MET, busiest, increase};
use crate::{LoadFacts, LoadMode, Measured, ServerFacts, WorkerFacts};

/// A stolen share of the time above this can move a figure by as much as a difference that matters.
const STEAL: f64 = 0.01;

/// Share of the measured window for which a worker may wait for its CPU. On a quiet machine it is
/// well below 1 %: a worker has its CPU for itself and the kernel's own threads.
const CROWDED: f64 = 0.05;

/// CPUs that other processes may use. The sampler and the live view take some hundredths.
const OTHERS: f64 = 0.1;

/// A median send lag above this share of the median latency is a visible part of it.
const SEND_LAG: f64 = 0.1;

/// One reason to doubt a figure, stored with it and shown beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Caveat {
    /// The load generator had no CPU left: the server may do more than the figure says.
    GeneratorLimited {
        /// Busy share of the busiest worker, in [0, 1].
        busy_share: f64,
    },
    /// Server and generator shared CPUs.
    SharedCpus,
    /// A closed loop: the rate is that of this window, and stalls are hidden.
    ClosedLoop {
        /// Queries outstanding over all clients.
        window: u64,
    },
    /// Fewer queries were sent than intended.
    RateMissed {
        /// Intended queries per second.
        intended_qps: f64,
        /// Offered queries per second.
        offered_qps: f64,
    },
    /// The median query left later than it was due by more than a tenth of the median latency.
    SendLag {
        /// Median lag in nanoseconds.
        p50_ns: u64,
    },
    /// The generator's own sockets dropped answers.
    GeneratorDrops {
        /// Dropped datagrams.
        datagrams: u64,
    },
    /// Another machine on the same hardware took time from this one.
    Steal {
        /// Stolen share of the time of all CPUs, in [0, 1].
        share: f64,
    },
    /// Other processes took the load's CPUs from it: it could have run but had to wait.
    Crowded {
        /// Share of the time for which the most delayed worker waited for its CPU, in [0, 1].
        waited_share: f64,
    },
    /// Processes that are neither server nor load used CPU time.
    OtherProcesses {
        /// How many CPUs they kept busy (0.5 = half of one).
        cpus: f64,
    },
    /// Some answers came after the time-out, twice, or to questions never asked.
    StrayAnswers {
        /// After the time-out.
        late: u64,
        /// Second and further ones.
        duplicate: u64,
        /// To questions never asked.
        unexpected: u64,
    },
    /// Answers were not what the experiment expects.
    WrongAnswers {
        /// How many.
        count: u64,
        /// One query and its answer, as text.
        example: String,
    },
    /// The server's resources could not be watched (another machine, or no permission).
    ServerNotWatched {
        /// Why.
        reason: String,
    },
    /// The run was ended before its time.
    CutShort {
        /// Measured time in nanoseconds.
        measured_ns: u64,
    },
    /// The certificate of the server was not verified.
    CertificateNotVerified,
    /// Anything else that an adapter or the session has to say.
    Other {
        /// The doubt, as a sentence.
        text: String,
    },
}

impl Caveat {
    /// Finds the doubts that follow from the figures of a run alone, in the order of this enum:
    /// a limited generator, shared CPUs, a closed loop, a missed rate, send lag, drops at the
    /// generator's sockets, steal, and stray answers. The others (wrong answers, an unwatched
    /// server, ...) are known only to those who ran it, who add them.
    ///
    /// `host_cpus` is the number of CPUs of the machine that made the load.
    #[must_use]
    pub fn find(
        load: &LoadFacts,
        server: &ServerFacts,
        measured: &Measured,
        host_cpus: usize,
    ) -> Vec<Self> {
        let found = [
            Self::generator_limited(measured),
            shares_cpus(load, server, host_cpus).then_some(Self::SharedCpus),
            Self::closed_loop(load),
            Self::rate_missed(load, measured),
            Self::send_lag(measured),
            Self::generator_drops(measured),
            Self::steal(measured, host_cpus),
            Self::crowded(measured),
            Self::other_processes(measured),
            Self::stray_answers(measured),
        ];
        found.into_iter().flatten().collect()
    }

    /// The busiest worker used at least 95 % of its CPU.
    fn generator_limited(measured: &Measured) -> Option<Self> {
        let busy_share = busiest(&measured.workers);
        (busy_share >= GENERATOR_BUSY).then_some(Self::GeneratorLimited { busy_share })
    }

    /// The load was a closed loop.
    fn closed_loop(load: &LoadFacts) -> Option<Self> {
        match load.mode {
            LoadMode::Closed { outstanding } => {
                let window = u64::from(load.clients) * u64::from(outstanding);
                Some(Self::ClosedLoop { window })
            }
            LoadMode::Open { .. } => None,
        }
    }

    /// An open loop sent less than 99 % of what was intended.
    fn rate_missed(load: &LoadFacts, measured: &Measured) -> Option<Self> {
        let LoadMode::Open { rate_qps: intended_qps, .. } = load.mode else { return None };
        let offered_qps = measured.offered_qps();
        let missed = offered_qps < RATE_MET * intended_qps;
        missed.then_some(Self::RateMissed { intended_qps, offered_qps })
    }

    /// The median query left late by more than a tenth of the median latency. A closed loop has no
    /// due instants, hence no lag.
    fn send_lag(measured: &Measured) -> Option<Self> {
        let p50_ns = measured.send_lag.quantile_ns(0.5)?;
        let latency_ns = measured.latency.quantile_ns(0.5)?;
        (p50_ns as f64 > SEND_LAG * latency_ns as f64).then_some(Self::SendLag { p50_ns })
    }

    /// The generator's own sockets dropped answers, if only one.
    fn generator_drops(measured: &Measured) -> Option<Self> {
        let datagrams = measured.workers.iter().map(|worker| worker.drops).sum();
        (datagrams > 0).then_some(Self::GeneratorDrops { datagrams })
    }

    /// The hypervisor kept more than 1 % of the time of all CPUs in the measured window.
    fn steal(measured: &Measured, host_cpus: usize) -> Option<Self> {
        let window = measured.window();
        let (stolen_ns, span_ns) = increase(&measured.resources, window, |at| at.steal_ns)?;
        let share = stolen_ns as f64 / (span_ns as f64 * host_cpus.max(1) as f64);
        (share > STEAL).then_some(Self::Steal { share })
    }

    /// A worker waited for its CPU for more than 5 % of the measured window.
    fn crowded(measured: &Measured) -> Option<Self> {
        let waited = measured.workers.iter().map(WorkerFacts::waited_share);
        let waited_share = waited.fold(0.0, f64::max);
        (waited_share > CROWDED).then_some(Self::Crowded { waited_share })
    }

    /// Processes that are neither server nor load used more than a tenth of a CPU in the measured
    /// window.
    fn other_processes(measured: &Measured) -> Option<Self> {
        let window = measured.window();
        let (used_ns, span_ns) = increase(&measured.resources, window, |at| at.machine_ns)?;
        let server_ns = increase(&measured.resources, window, |at| at.cpu_ns)?.0;
        let load_ns: u64 = measured.workers.iter().map(|worker| worker.cpu_ns).sum();
        let others_ns = used_ns.saturating_sub(server_ns).saturating_sub(load_ns);
        let cpus = others_ns as f64 / span_ns as f64;
        (cpus > OTHERS).then_some(Self::OtherProcesses { cpus })
    }

    /// Answers came late, twice, or unasked.
    fn stray_answers(measured: &Measured) -> Option<Self> {
        let answers = &measured.counters.answers;
        let (late, duplicate, unexpected) = (answers.late, answers.duplicate, answers.unexpected);
        let any = late + duplicate + unexpected > 0;
        any.then_some(Self::StrayAnswers { late, duplicate, unexpected })
    }
}

/// True if the server surely shares a CPU with the load: both were pinned and to one in common, or
/// one of them was not pinned and the machine has no second CPU. What the scheduler makes of
/// several CPUs without pinning is not known. An external server counts as one on this machine only
/// under a loopback address.
fn shares_cpus(load: &LoadFacts, server: &ServerFacts, host_cpus: usize) -> bool {
    let elsewhere = server.kind == "external"
        && !load.target.parse::<SocketAddr>().is_ok_and(|target| target.ip().is_loopback());
    if elsewhere {
        false
    } else if load.cpus.is_empty() || server.cpus.is_empty() {
        host_cpus == 1
    } else {
        load.cpus.iter().any(|cpu| server.cpus.contains(cpu))
    }
}
