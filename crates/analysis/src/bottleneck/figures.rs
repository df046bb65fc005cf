//! The figures that name a bottleneck, rule by rule.

use std::net::SocketAddr;

use dnslab_figures::Connections;
use dnslab_record::{
    Bottleneck, BottleneckKind, CpuLimit, Evidence, LoadMode, Measured, Observation, WorkerFacts,
};
use dnslab_wire::Transport;

use super::cpus_used::others_on_load_cpus;
use super::servers::{
    Exhausted, ServerUse, WorkerUse, at_its_end, share_together, share_with_load, use_of,
};
use super::thresholds::{
    CONNECTIONS_FAIL, CONNECTIONS_HELD, DROPS, GENERATOR_BUSY, GENERATOR_IDLE, LEAST_TURNED_AWAY,
    LITTLE, LOST, RATE_MET, SERVER_BUSY, SOCKET_DROPS,
};

/// The figures of the measured window that [`BottleneckFigures::bottleneck`] looks at.
#[derive(Clone, Debug, PartialEq)]
pub struct BottleneckFigures {
    /// Closed or open loop, with its window or its intended rate.
    pub mode: LoadMode,
    /// Simulated clients.
    pub clients: u32,
    /// Queries that became due per second: what an open loop was to send.
    pub due_qps: f64,
    /// Queries sent per second.
    pub offered_qps: f64,
    /// Queries answered per second.
    pub answered_qps: f64,
    /// Queries answered.
    pub answered: u64,
    /// Mean latency in nanoseconds, timed-out queries included; `None` if no query ended.
    pub mean_latency_ns: Option<f64>,
    /// Whether the queries went over connections, which take no more than the server reads.
    pub is_stream: bool,
    /// Whether the target has a loopback address, between which and here no network loses anything.
    pub is_loopback: bool,
    /// Queries sent by UDP and never answered, not even late; 0 for stream transports, which lose
    /// connections but no datagrams.
    pub lost_datagrams: u64,
    /// Datagrams that were lost so, as a share of the due queries, in [0, 1].
    pub lost_datagram_share: f64,
    /// Answers that came after the time-out of their query as a share of the due ones.
    pub late_share: f64,
    /// What each server used, the one under test first, then those behind it.
    pub servers: Vec<ServerUse>,
    /// Datagrams dropped at the server's full UDP sockets.
    pub server_udp_drops: u64,
    /// What each load worker used.
    pub workers: Vec<WorkerUse>,
    /// Busy share of the busiest worker, in [0, 1].
    pub generator_busy_share: f64,
    /// Share of the time for which the worker that others kept from its CPU most was on it or waited
    /// for it, in [0, 1].
    pub generator_wanted_share: f64,
    /// How many of the load's CPUs were used by others than dnslab and the server under test, at least; `None`
    /// where that is not known.
    pub others_on_load_cpus: Option<f64>,
    /// The CPU quota of the load's control groups.
    pub load_limit: Option<CpuLimit>,
    /// Answers dropped at the generator's full UDP sockets.
    pub generator_drops: u64,
    /// Share of the time in which connections waited for their turn in the generator, in [0, 1], of
    /// the worker where it was largest.
    pub connections_held_share: f64,
    /// Connection attempts that failed as a share of all.
    pub failed_connections_share: f64,
    /// Connections that the server turned away.
    pub turned_away: TurnedAway,
    /// Median send lag in nanoseconds; `None` if nothing was sent.
    pub send_lag_p50_ns: Option<u64>,
}

/// How the server treated connections, those of the warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnedAway {
    /// Attempts to connect.
    pub attempted: u64,
    /// Those that it turned away ([`dnslab_figures::Connections::refused`]), or ended while queries were lost.
    pub refused: u64,
    /// Others whose first packet found the queue of a listening socket full: they came about after one second,
    /// when the kernel had sent it again.
    pub waited: u64,
}

/// From this share of lost queries on, connections that the server ended are among the reasons.
const QUERIES_LOST: f64 = 0.1;

impl TurnedAway {
    /// A kernel sends the first packet of a connection again after one second (RFC 6298, section 2).
    const SECOND_PACKET_NS: u64 = 900_000_000;

    /// Takes the counts from what was measured. Packets are also lost on the way, so an attempt that took long
    /// counts only if a queue on this host is known to have been full.
    fn of(measured: &Measured) -> Self {
        let sum = |count: fn(&Connections) -> u64| {
            count(&measured.warm_up.connections) + count(&measured.counters.connections)
        };
        let opened = &measured.connect_time;
        let waited = match measured.network.map(|drops| drops.tcp_listen_overflows) {
            None | Some(0) => 0,
            Some(_) => {
                opened.counts_between(&[Self::SECOND_PACKET_NS]).last().copied().unwrap_or(0)
            }
        };
        // A server that lets connections wait and reads them when their queries have timed out ends each as one
        // that had an answer: too late (`incoming-num-tcp` of Unbound).
        let outcomes = &measured.counters.outcomes;
        let was_too_late = outcomes.lost_share() >= QUERIES_LOST;
        let ended = if was_too_late { sum(|phase| phase.lost) } else { 0 };
        let refused = sum(|phase| phase.refused).max(ended);
        Self { attempted: sum(|phase| phase.attempted), refused, waited }
    }

    fn is_decisive(self) -> bool {
        let turned_away = self.refused + self.waited;
        turned_away >= LEAST_TURNED_AWAY
            && turned_away as f64 > CONNECTIONS_FAIL * self.attempted as f64
    }
}

impl BottleneckFigures {
    /// Takes the figures from what was measured.
    #[must_use]
    pub fn of(run: &Observation<'_>) -> Self {
        let Observation { load, measured, .. } = *run;
        let outcomes = &measured.counters.outcomes;
        let late = measured.counters.answers.late;
        let is_stream = load.transport != Some(Transport::Udp);
        let lost_datagrams = if is_stream { 0 } else { outcomes.timed_out.saturating_sub(late) };
        let share_of_due = |queries: u64| queries as f64 / outcomes.due.max(1) as f64;
        let udp_drops = run.watched.resources.growth(measured.window(), |at| at.udp_drops);
        let target = load.target.parse::<SocketAddr>();
        // Of a turn some counts and some does not; at random arrivals the two have other rates, and what is
        // due is of both.
        let of_turn = |queries: u64| queries as f64 * 1e9 / measured.own_ns() as f64;
        let is_paced = matches!(load.mode, LoadMode::Open { .. }) && measured.turns.is_some();
        let (offered_qps, answered_qps) = match is_paced {
            true => (of_turn(measured.counters.sent), of_turn(outcomes.answered)),
            false => (measured.offered_qps(), measured.answered_qps()),
        };
        Self {
            is_stream,
            is_loopback: target.is_ok_and(|target| target.ip().is_loopback()),
            mode: load.mode.clone(),
            clients: load.clients,
            due_qps: measured.due_qps(),
            offered_qps,
            answered_qps,
            answered: outcomes.answered,
            mean_latency_ns: measured.latency.mean_ns(),
            lost_datagrams,
            lost_datagram_share: share_of_due(lost_datagrams),
            late_share: share_of_due(late),
            servers: ServerUse::of(run),
            server_udp_drops: udp_drops.unwrap_or(0),
            workers: WorkerUse::of_all(run),
            generator_busy_share: busiest(run),
            generator_wanted_share: most_wanted(measured),
            others_on_load_cpus: others_on_load_cpus(run),
            load_limit: run.watched.load_cpu_limit.clone(),
            generator_drops: measured.workers.iter().map(|worker| worker.drops).sum(),
            connections_held_share: most_held(&measured.workers),
            failed_connections_share: failed_share(measured),
            turned_away: TurnedAway::of(measured),
            send_lag_p50_ns: measured.send_lag.quantile_ns(0.5),
        }
    }

    /// Rule 1: the offered rate.
    pub(super) fn rate(&self) -> Option<Bottleneck> {
        let intended_qps = self.intended_qps()?;
        let (offered_qps, answered_qps) = (self.offered_qps, self.answered_qps);
        let met = RATE_MET * intended_qps;
        (offered_qps >= met && answered_qps >= met).then(|| {
            let evidence = vec![Evidence::RateMet { intended_qps, offered_qps, answered_qps }];
            Bottleneck { kind: BottleneckKind::Rate, evidence }
        })
    }

    /// Rule 2: connections that were turned away.
    pub(super) fn turned_away(&self) -> Option<Bottleneck> {
        let TurnedAway { attempted, refused, waited } = self.turned_away;
        self.turned_away.is_decisive().then(|| {
            let turned_away = Evidence::TurnedAway { attempted, refused, waited };
            let evidence = vec![turned_away, self.server_use(), self.busiest_worker()];
            Bottleneck { kind: BottleneckKind::ConnectionsRefused, evidence }
        })
    }

    /// Rules 5 to 7: the CPUs of the two sides, and what else the generator failed to do.
    pub(super) fn processors(&self) -> Option<Bottleneck> {
        let server = at_its_end(&self.servers);
        let generator = self.generator_faults();
        let is_full = self.generator_busy_share >= GENERATOR_BUSY;
        if let (None, false, Some(found)) = (server, is_full, self.shared_processors()) {
            return Some(found);
        }
        let generator_first =
            is_full && server.is_none_or(|server| self.generator_busy_share >= server.busy_share);
        let at_end = server.map(|server| self.exhausted(server)).unwrap_or_default();
        // The bottleneck first, what stands beside it after.
        let (kind, evidence) = match server {
            Some(server) if !generator_first => (server.kind, [at_end, generator].concat()),
            None if generator.is_empty() => return None,
            _ => (BottleneckKind::Generator, [generator, at_end].concat()),
        };
        Some(Bottleneck { kind, evidence })
    }

    /// Rule 6: the CPUs that servers share with the load.
    fn shared_processors(&self) -> Option<Bottleneck> {
        let share = share_with_load(&self.servers, &self.workers)?;
        (share >= SERVER_BUSY).then(|| {
            let together = Evidence::ServersAndLoad { share };
            let evidence = vec![together, self.server_use(), self.busiest_worker()];
            Bottleneck { kind: BottleneckKind::SharedCpu, evidence }
        })
    }

    /// The servers' CPU use, what is at its end first.
    fn exhausted(&self, Exhausted { kind, busy_share }: Exhausted) -> Vec<Evidence> {
        if kind == BottleneckKind::ServersCpu {
            return vec![Evidence::ServersTogether { share: busy_share }, self.server_use()];
        }
        let is_it = |server: &&ServerUse| server.busy_share == Some(busy_share);
        // Of several alike the last, as in `at_its_end`.
        let first = self.servers.iter().rfind(is_it);
        let rest = self.servers.iter().filter(|server| first.is_none_or(|first| first != *server));
        vec![use_of(first.into_iter().chain(rest))]
    }

    /// The largest busy share of the servers, or of several on CPUs in common; `None` if none was
    /// watched.
    pub(crate) fn busiest_server(&self) -> Option<f64> {
        let alone = self.servers.iter().filter_map(|server| server.busy_share);
        alone.chain(share_together(&self.servers)).reduce(f64::max)
    }

    /// The CPU use of the server under test in [0, 1] of the CPUs it was given; `None` if it was not
    /// watched.
    fn server_busy_share(&self) -> Option<f64> {
        self.servers.first()?.busy_share
    }

    fn generator_faults(&self) -> Vec<Evidence> {
        let busy = self.generator_busy_share >= GENERATOR_BUSY;
        let answers = self.generator_drops;
        let drops = answers as f64 > DROPS * self.answered as f64;
        let share = self.connections_held_share;
        let missed = self.intended_qps().filter(|intended| {
            self.offered_qps < RATE_MET * intended && !self.waits_for_connections()
        });
        [
            busy.then(|| self.busiest_worker()),
            drops.then_some(Evidence::GeneratorDrops { answers }),
            self.holds_connections().then_some(Evidence::ConnectionsHeld { share }),
            missed.map(|intended_qps| Evidence::RateMissed {
                intended_qps,
                offered_qps: self.offered_qps,
                send_lag_p50_ns: self.send_lag_p50_ns.unwrap_or(0),
            }),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Whether a generator that sends less than intended waits for its connections: a worker with
    /// little to do, and a CPU to do it on, is not late by itself.
    pub(crate) fn waits_for_connections(&self) -> bool {
        self.is_stream && self.generator_wanted_share < GENERATOR_IDLE && !self.holds_connections()
    }

    /// Whether the generator's own bound on connections, on their way or open, kept others waiting.
    pub(crate) fn holds_connections(&self) -> bool {
        self.connections_held_share > CONNECTIONS_HELD
            && self.failed_connections_share <= CONNECTIONS_FAIL
    }

    /// The exception of rule 7: an open loop whose connections took less than intended.
    pub(super) fn not_taken(&self) -> Option<Bottleneck> {
        let (intended_qps, offered_qps) = (self.intended_qps()?, self.offered_qps);
        (offered_qps < RATE_MET * intended_qps && self.waits_for_connections()).then(|| {
            let not_taken = Evidence::NotTaken { intended_qps, offered_qps };
            let evidence = vec![not_taken, self.server_use(), self.busiest_worker()];
            Bottleneck { kind: self.nobody(), evidence }
        })
    }

    /// Rule 9: datagrams lost while neither side was busy.
    pub(super) fn lost_datagrams(&self) -> Option<Bottleneck> {
        self.server_busy_share()?;
        let mut evidence = vec![self.losses()?];
        let dropped = self.server_udp_drops as f64;
        let kind = if dropped >= SOCKET_DROPS * self.lost_datagrams.max(1) as f64 {
            BottleneckKind::ServerSocket
        } else if self.is_loopback {
            // A rate limit, say, or a queue of the server's own.
            evidence.push(Evidence::LostOnLoopback);
            BottleneckKind::Unclear
        } else {
            BottleneckKind::Network
        };
        evidence.push(self.server_use());
        evidence.extend(self.late());
        Some(Bottleneck { kind, evidence })
    }

    fn losses(&self) -> Option<Evidence> {
        let (share, server_drops) = (self.lost_datagram_share, self.server_udp_drops);
        (share > LOST).then_some(Evidence::Lost { share, server_drops })
    }

    /// Rule 10: answers after the time-out while neither side was busy.
    pub(super) fn not_in_time(&self) -> Option<Bottleneck> {
        let mut evidence = vec![self.late()?, self.server_use()];
        // Without the server's figures, losses were not looked at yet.
        evidence.extend(self.losses());
        Some(Bottleneck { kind: self.nobody(), evidence })
    }

    fn late(&self) -> Option<Evidence> {
        (self.late_share > LOST).then_some(Evidence::Late { share: self.late_share })
    }

    /// Rule 11: a closed loop whose worker had its CPU too seldom.
    pub(super) fn crowded(&self) -> Option<Bottleneck> {
        self.server_busy_share()?;
        self.window_size()?;
        let share = self.generator_wanted_share;
        (share >= GENERATOR_BUSY).then(|| {
            let mut evidence = vec![Evidence::WorkerWaited { share }];
            evidence.extend(self.what_is_known());
            Bottleneck { kind: BottleneckKind::Unclear, evidence }
        })
    }

    pub(super) fn window(&self) -> Option<Bottleneck> {
        self.server_busy_share()?;
        let (window, in_flight) = (self.window_size()?, self.in_flight()?);
        let is_near = (in_flight - window).abs() <= LITTLE * window;
        is_near.then(|| {
            let evidence = vec![self.little(window), self.server_use()];
            Bottleneck { kind: BottleneckKind::Window, evidence }
        })
    }

    /// Rule 13: unclear, or unknown if the server was not watched.
    pub(super) fn nobody(&self) -> BottleneckKind {
        match self.server_busy_share() {
            Some(_) => BottleneckKind::Unclear,
            None => BottleneckKind::Unknown,
        }
    }

    pub(super) fn what_is_known(&self) -> Vec<Evidence> {
        let answered_qps = finite(self.answered_qps);
        let answered = match self.intended_qps() {
            Some(intended_qps) => {
                Some(Evidence::Answered { intended_qps: finite(intended_qps), answered_qps })
            }
            None => self.window_size().map(|window| self.little(window)),
        };
        let both = [self.server_use(), self.busiest_worker()];
        both.into_iter().chain(self.losses()).chain(answered).collect()
    }

    /// The servers' CPU use, that under test first.
    pub(super) fn server_use(&self) -> Evidence {
        use_of(self.servers.iter())
    }

    pub(super) fn busiest_worker(&self) -> Evidence {
        Evidence::BusiestWorker { share: self.generator_busy_share }
    }

    fn little(&self, window: f64) -> Evidence {
        Evidence::InFlight {
            answered_qps: finite(self.answered_qps),
            mean_latency_ns: self.mean_latency_ns.unwrap_or(0.0),
            window,
        }
    }

    /// Queries in flight on average: answered rate times mean latency (Little's law).
    fn in_flight(&self) -> Option<f64> {
        Some(self.answered_qps * self.mean_latency_ns? / 1e9)
    }

    /// Queries that a closed loop keeps outstanding over all clients.
    fn window_size(&self) -> Option<f64> {
        match self.mode {
            LoadMode::Closed { outstanding } => {
                Some(f64::from(self.clients) * f64::from(outstanding))
            }
            LoadMode::Open { .. } => None,
        }
    }

    /// The rate that an open loop was to send, queries per second.
    fn intended_qps(&self) -> Option<f64> {
        match self.mode {
            LoadMode::Open { .. } => Some(self.due_qps),
            LoadMode::Closed { .. } => None,
        }
    }
}

/// Busy share of the busiest worker, in [0, 1]; 0 without workers.
pub(crate) fn busiest(run: &Observation<'_>) -> f64 {
    WorkerUse::of_all(run).iter().map(|worker| worker.busy_share).fold(0.0, f64::max)
}

/// The longest share of the time for which a worker was on its CPU or waited for it, in [0, 1].
fn most_wanted(measured: &Measured) -> f64 {
    let wanted = |worker: &WorkerFacts| worker.busy_share() + worker.waited_share();
    measured.workers.iter().map(wanted).fold(0.0, f64::max).min(1.0)
}

/// The longest share of the time in which connections of a worker waited for their turn, in [0, 1].
pub(crate) fn most_held(workers: &[WorkerFacts]) -> f64 {
    workers.iter().map(WorkerFacts::held_share).fold(0.0, f64::max)
}

/// Connection attempts of the measured window that failed as a share of all; 0 without any.
pub(crate) fn failed_share(measured: &Measured) -> f64 {
    let connections = &measured.counters.connections;
    connections.failed as f64 / connections.attempted.max(1) as f64
}

/// A rate as JSON can hold it: without any time there is none.
fn finite(qps: f64) -> f64 {
    if qps.is_finite() { qps } else { 0.0 }
}
