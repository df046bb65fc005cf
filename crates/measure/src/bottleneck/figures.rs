//! The figures that name a limit, rule by rule.

use std::net::SocketAddr;

use super::servers::{
    ServerUse, WorkerUse, at_its_end, percent, share_together, share_with_load, use_of,
};
use super::{
    BottleneckKind, CONNECTIONS_FAIL, CONNECTIONS_HELD, DROPS, GENERATOR_BUSY, GENERATOR_IDLE,
    LITTLE, LOST, RATE_MET, SERVER_BUSY, SOCKET_DROPS,
};
use crate::{
    ChainPart, LoadFacts, LoadMode, Measured, ResourceSample, ResourceSeries, ServerFacts,
    WorkerFacts, number,
};

/// The figures of the measured window that [`crate::Bottleneck::decide`] looks at.
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
    /// The same as a share of the due queries, in [0, 1].
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
    /// Answers dropped at the generator's full UDP sockets.
    pub generator_drops: u64,
    /// Share of the time in which connections waited for their turn in the generator, in [0, 1], of
    /// the worker where it was largest.
    pub connections_held_share: f64,
    /// Connection attempts that failed as a share of all.
    pub failed_connections_share: f64,
    /// Median send lag in nanoseconds; `None` if nothing was sent.
    pub send_lag_p50_ns: Option<u64>,
}

/// A limit before it has become a [`crate::Bottleneck`].
type Remark = Option<(BottleneckKind, String)>;

impl BottleneckFigures {
    /// Takes the figures from what was measured.
    #[must_use]
    pub fn of(
        load: &LoadFacts,
        server: &ServerFacts,
        chain: &[ChainPart],
        measured: &Measured,
    ) -> Self {
        let outcomes = &measured.counters.outcomes;
        let late = measured.counters.answers.late;
        let is_stream = load.transport != "udp";
        let lost_datagrams = if is_stream { 0 } else { outcomes.timed_out.saturating_sub(late) };
        let share_of_due = |queries: u64| queries as f64 / outcomes.due.max(1) as f64;
        let (from, to) = measured.window();
        let udp_drops = measured.resources.growth_between(from, to, |at| at.udp_drops);
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
            servers: ServerUse::of(server, chain, measured),
            server_udp_drops: udp_drops.unwrap_or(0),
            workers: WorkerUse::of_all(measured),
            generator_busy_share: busiest(measured),
            generator_wanted_share: most_wanted(measured),
            generator_drops: measured.workers.iter().map(|worker| worker.drops).sum(),
            connections_held_share: most_held(&measured.workers),
            failed_connections_share: failed_share(measured),
            send_lag_p50_ns: measured.send_lag.quantile_ns(0.5),
        }
    }

    /// Rule 1: the offered rate.
    pub(super) fn rate(&self) -> Remark {
        let intended = self.intended_qps()?;
        let met = RATE_MET * intended;
        let evidence = format!(
            "{} of the {} qps intended were sent and {} answered",
            grouped(self.offered_qps),
            grouped(intended),
            grouped(self.answered_qps)
        );
        (self.offered_qps >= met && self.answered_qps >= met)
            .then_some((BottleneckKind::Rate, evidence))
    }

    /// Rules 2 to 4: the CPUs of the two sides, and what else the generator failed to do.
    pub(super) fn processors(&self) -> Remark {
        let server = at_its_end(&self.servers);
        let generator = self.generator_faults();
        let is_full = self.generator_busy_share >= GENERATOR_BUSY;
        if let (None, false, Some(found)) = (server, is_full, self.shared_processors()) {
            return Some(found);
        }
        let generator_first =
            is_full && server.is_none_or(|(_, share)| self.generator_busy_share >= share);
        let kind = match server {
            Some((kind, _)) if !generator_first => kind,
            None if generator.is_empty() => return None,
            _ => BottleneckKind::Generator,
        };
        let at_end = server.map(|(kind, share)| self.exhausted(kind, share));
        let has_server = at_end.is_some();
        let mut parts: Vec<String> = at_end.into_iter().chain(generator).collect();
        if kind == BottleneckKind::Generator && has_server {
            // The limit first, what stands beside it after.
            parts.rotate_left(1);
        }
        Some((kind, parts.join("; ")))
    }

    /// Rule 3: the CPUs that servers share with the load.
    fn shared_processors(&self) -> Remark {
        let share = share_with_load(&self.servers, &self.workers)?;
        let evidence = format!(
            "servers and load workers used {} of their CPUs together: {}, the busiest load worker \
             {} of a CPU",
            percent(share),
            self.server_use(),
            percent(self.generator_busy_share)
        );
        (share >= SERVER_BUSY).then_some((BottleneckKind::SharedCpu, evidence))
    }

    /// The servers' CPU use as half a sentence that begins with what is at its end.
    fn exhausted(&self, kind: BottleneckKind, share: f64) -> String {
        if kind == BottleneckKind::ServersCpu {
            return format!(
                "the servers used {} of their CPUs together: {}",
                percent(share),
                self.server_use()
            );
        }
        let is_it = |server: &&ServerUse| server.busy_share == Some(share);
        // Of several alike the last, as in `at_its_end`.
        let first = self.servers.iter().rfind(is_it);
        let rest = self.servers.iter().filter(|server| first.is_none_or(|it| it != *server));
        use_of(first.into_iter().chain(rest))
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

    /// What the generator failed to do, one half sentence each.
    fn generator_faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.generator_busy_share >= GENERATOR_BUSY {
            let share = percent(self.generator_busy_share);
            faults.push(format!("the busiest load worker used {share} of a CPU"));
        }
        let dropped = self.generator_drops as f64;
        if dropped > DROPS * self.answered as f64 {
            faults.push(format!("the generator's sockets dropped {} answers", grouped(dropped)));
        }
        if self.holds_connections() {
            let share = percent(self.connections_held_share);
            faults.push(format!(
                "connections waited for their turn in the generator for {share} of the time"
            ));
        }
        if let Some(intended) = self.intended_qps()
            && self.offered_qps < RATE_MET * intended
            && !self.waits_for_connections()
        {
            faults.push(format!(
                "only {} of the {} qps intended were sent, with a median send lag of {}",
                grouped(self.offered_qps),
                grouped(intended),
                milliseconds(self.send_lag_p50_ns.unwrap_or(0) as f64)
            ));
        }
        faults
    }

    /// Whether a generator that sends less than intended waits for its connections: a worker with
    /// little to do is not late by itself.
    pub(crate) fn waits_for_connections(&self) -> bool {
        self.is_stream && self.generator_busy_share < GENERATOR_IDLE && !self.holds_connections()
    }

    /// Whether the generator's own bound on connections, on their way or open, kept others waiting.
    pub(crate) fn holds_connections(&self) -> bool {
        self.connections_held_share > CONNECTIONS_HELD
            && self.failed_connections_share <= CONNECTIONS_FAIL
    }

    /// The exception of rule 4: an open loop whose connections took less than intended.
    pub(super) fn not_taken(&self) -> Remark {
        let intended = self.intended_qps()?;
        if self.offered_qps >= RATE_MET * intended || !self.waits_for_connections() {
            return None;
        }
        let evidence = format!(
            "the server did not take what was offered (connections or their buffers were full): {} \
             of the {} qps intended were sent, while {} and the busiest load worker {} of a CPU",
            grouped(self.offered_qps),
            grouped(intended),
            self.server_use(),
            percent(self.generator_busy_share)
        );
        Some((self.nobody(), evidence))
    }

    /// Rule 5: datagrams lost while neither side was busy.
    pub(super) fn lost_datagrams(&self) -> Remark {
        self.server_busy_share()?;
        let losses = self.losses()?;
        let late = self.late().map(|late| format!("; {late}")).unwrap_or_default();
        let dropped = self.server_udp_drops as f64;
        let (kind, why) = if dropped >= SOCKET_DROPS * self.lost_datagrams.max(1) as f64 {
            (BottleneckKind::ServerSocket, "")
        } else if self.is_loopback {
            // A rate limit, say, or a queue of its own.
            let why = ", and the loopback interface loses nothing: the server did not answer them";
            (BottleneckKind::Unclear, why)
        } else {
            (BottleneckKind::Network, "")
        };
        Some((kind, format!("{losses}{why}, while {}{late}", self.server_use())))
    }

    /// The lost datagrams as half a sentence, if they are more than an accident.
    fn losses(&self) -> Option<String> {
        if self.lost_datagram_share <= LOST {
            return None;
        }
        let lost = percent(self.lost_datagram_share);
        let dropped = match self.server_udp_drops {
            0 => String::new(),
            dropped => format!(
                ", and the server's full sockets dropped {} datagrams",
                grouped(dropped as f64)
            ),
        };
        Some(format!("{lost} of the queries were lost{dropped}"))
    }

    /// Rule 6: answers after the time-out while neither side was busy.
    pub(super) fn not_in_time(&self) -> Remark {
        let evidence = format!("{}, while {}", self.late()?, self.server_use());
        // Without the server's figures, losses were not looked at yet.
        let losses = self.losses().map(|losses| format!("; {losses}")).unwrap_or_default();
        Some((self.nobody(), evidence + &losses))
    }

    /// The late answers as half a sentence, if they are more than an accident.
    fn late(&self) -> Option<String> {
        let share = percent(self.late_share);
        (self.late_share > LOST).then(|| {
            format!(
                "{share} of the queries were answered after their time-out: the server did not \
                 answer in time"
            )
        })
    }

    /// Rule 7: a closed loop whose worker had its CPU too seldom.
    pub(super) fn crowded(&self) -> Remark {
        self.server_busy_share()?;
        self.window_size()?;
        let share = percent(self.generator_wanted_share);
        (self.generator_wanted_share >= GENERATOR_BUSY).then(|| {
            let evidence = format!(
                "a load worker was on its CPU or waited for it for {share} of the time, since \
                 something else was there; {}",
                self.what_is_known()
            );
            (BottleneckKind::Unclear, evidence)
        })
    }

    /// Rule 8: the window.
    pub(super) fn window(&self) -> Remark {
        self.server_busy_share()?;
        let (window, in_flight) = (self.window_size()?, self.in_flight()?);
        let near = (in_flight - window).abs() <= LITTLE * window;
        near.then(|| {
            (BottleneckKind::Window, format!("{}, while {}", self.little(), self.server_use()))
        })
    }

    /// Rule 9: unclear, or unknown if the server was not watched.
    pub(super) fn nobody(&self) -> BottleneckKind {
        match self.server_busy_share() {
            Some(_) => BottleneckKind::Unclear,
            None => BottleneckKind::Unknown,
        }
    }

    /// The figures that name nobody, as half a sentence.
    pub(super) fn what_is_known(&self) -> String {
        let generator = percent(self.generator_busy_share);
        let mut parts =
            vec![self.server_use(), format!("the busiest load worker used {generator} of a CPU")];
        parts.extend(self.losses());
        match self.intended_qps() {
            Some(intended) => parts.push(format!(
                "{} of the {} qps intended were answered",
                grouped(self.answered_qps),
                grouped(intended)
            )),
            None => parts.push(self.little()),
        }
        parts.join("; ")
    }

    /// The servers' CPU use as half a sentence, that under test first.
    fn server_use(&self) -> String {
        use_of(self.servers.iter())
    }

    /// Both sides of Little's law as half a sentence.
    fn little(&self) -> String {
        format!(
            "{} qps at a mean latency of {} are {} queries in flight, with a window of {}",
            grouped(self.answered_qps),
            milliseconds(self.mean_latency_ns.unwrap_or(0.0)),
            grouped(self.in_flight().unwrap_or(0.0)),
            grouped(self.window_size().unwrap_or(0.0))
        )
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
pub(crate) fn busiest(measured: &Measured) -> f64 {
    WorkerUse::of_all(measured).iter().map(|worker| worker.busy_share).fold(0.0, f64::max)
}

/// The longest share of the time for which a worker was on its CPU or waited for it, in [0, 1].
fn most_wanted(measured: &Measured) -> f64 {
    let wanted = |worker: &WorkerFacts| worker.busy_share() + worker.waited_share();
    measured.workers.iter().map(wanted).fold(0.0, f64::max)
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

/// By how much a cumulative figure rose between the samples that enclose the window (or, where
/// there are none outside, the outermost inside), and the nanoseconds between those. `None` when
/// the samples span no time.
pub(crate) fn increase(
    series: &ResourceSeries,
    (from_ns, to_ns): (i64, i64),
    figure: impl Fn(&ResourceSample) -> u64,
) -> Option<(u64, i64)> {
    let samples = &series.samples;
    let before = samples.iter().rfind(|sample| sample.at_ns <= from_ns).or(samples.first())?;
    let after = samples.iter().find(|sample| sample.at_ns >= to_ns).or(samples.last())?;
    let span_ns = after.at_ns - before.at_ns;
    (span_ns > 0).then(|| (figure(after).saturating_sub(figure(before)), span_ns))
}

/// Nanoseconds as milliseconds with three digits.
fn milliseconds(ns: f64) -> String {
    format!("{:.3} ms", ns / 1e6)
}

/// A number of something, rounded, with a comma between groups of three digits.
fn grouped(number: f64) -> String {
    number::count(number.round_ties_even() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in
            [(0.0, "0"), (999.4, "999"), (999.5, "1,000"), (12_345.0, "12,345"), (1e6, "1,000,000")]
        {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn an_increase_is_that_of_the_enclosing_samples() {
        let sample = |at_ns, udp_drops| ResourceSample { at_ns, udp_drops, ..Default::default() };
        let samples = vec![sample(0, 1), sample(10, 2), sample(20, 4), sample(30, 8)];
        let series = ResourceSeries { samples, ..ResourceSeries::default() };
        let drops = |window| increase(&series, window, |sample| sample.udp_drops);
        assert_eq!(drops((10, 20)), Some((2, 10)));
        assert_eq!(drops((11, 19)), Some((2, 10)));
        assert_eq!(drops((15, 25)), Some((6, 20)));
        assert_eq!(drops((-5, 99)), Some((7, 30)));
        assert_eq!(increase(&ResourceSeries::default(), (0, 9), |sample| sample.udp_drops), None);
    }
}
