//! A load, as it is asked for.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use dnslab_settings::{Load, Mode, RightCodes, Subnets};
use dnslab_traffic::{
    Attempts, ClientSubnets, Connect, QueryList, TimeWindows, Timeline, Truncated,
};
use dnslab_wire::{Query, Transport};
use serde::{Deserialize, Serialize};

use crate::played::PlayedClients;
use crate::time::Nanos;
use crate::{Expected, TlsSettings};

/// A worker with a window of at most so many queries acts on each of them by itself ([`Job::applied_batch_delay`]).
const LONE_QUERIES: u32 = 4;

/// A transport of a server, and the clients that use it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The transport.
    pub transport: Transport,
    /// Where its queries go.
    pub target: SocketAddr,
    /// TLS, for the encrypted transports.
    pub tls: Option<TlsSettings>,
    /// Share of the clients that use it, in [0, 1]. All shares together are at most 1. What they leave to 1
    /// are the clients of [`Load::transport`].
    pub share: f64,
}

/// The workers of a load that one host has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The number of its first worker, of all [`Job::workers`].
    pub first: u32,
    /// How many it has.
    pub count: u32,
}

impl Share {
    /// All workers of a load.
    #[must_use]
    pub fn whole(job: &Job) -> Self {
        Self { first: 0, count: job.workers }
    }

    /// The shares of hosts with so many CPUs each: at least one worker for each host, and the others by their CPUs
    /// (D'Hondt's method).
    #[must_use]
    pub fn deal(workers: u32, cpus: &[usize]) -> Vec<Self> {
        let mut counts = vec![1_u32; cpus.len()];
        for _ in cpus.len()..workers as usize {
            let each = |place: &usize| cpus[*place] as f64 / f64::from(counts[*place] + 1);
            let places = (0..cpus.len()).rev();
            let next = places.max_by(|one, other| each(one).total_cmp(&each(other)));
            if let Some(next) = next {
                counts[next] += 1;
            }
        }
        let mut first = 0;
        let shares = counts.into_iter().map(|count| {
            let share = Self { first, count };
            first += count;
            share
        });
        shares.collect()
    }

    /// The numbers of its workers.
    pub fn numbers(self) -> Range<u32> {
        self.first..self.first.saturating_add(self.count)
    }
}

/// One load on one server.
#[derive(Clone, Debug)]
pub struct Job {
    /// What is sent, by whom and how, as it was checked. What the settings leave to files (client subnets, TSIG keys)
    /// has been read already: [`Subnets::Written`], [`Load::tsig`].
    pub settings: Load,
    /// When it may send, and which part of that is measured. An open loop that takes turns has its rate in its own
    /// slices.
    pub timeline: Timeline,
    /// Worker threads, at least 1.
    pub workers: u32,
    /// CPUs that they are pinned to in turn; none if the kernel places them.
    pub cpus: Vec<usize>,
    /// Where the queries go.
    pub target: SocketAddr,
    /// What is asked.
    pub queries: Arc<QueryList>,
    /// Seed of everything drawn at random.
    pub seed: u64,
    /// What every answer must be, if the experiment states it.
    pub expected: Option<Expected>,
    /// TLS, for the encrypted transports.
    pub tls: Option<TlsSettings>,
    /// What is known before the load of clients with queries of their own, which are in place of [`Self::queries`] and
    /// of the number of clients. Their [`crate::ClientTraffic`] is given beside the job.
    pub played: Option<PlayedClients>,
    /// Where clients of other transports than [`Load::transport`] send their queries.
    pub others: Vec<Endpoint>,
    /// The further servers that each client knows, each with its endpoints for [`Load::transport`] and for the
    /// transports of [`Self::others`]. Their shares are not looked at: a client has one transport. Only clients
    /// of an open loop may know further servers.
    pub further: Vec<Vec<Endpoint>>,
    /// What each query is told is passed on ([`crate::Runtime::told`]).
    pub tells: bool,
}

impl Job {
    /// A load with these settings, seed 1, no TLS, no turns and no expected answer. It has the workers and the CPUs of
    /// the settings, or one worker.
    #[must_use]
    pub fn new(settings: Load, target: SocketAddr, queries: Arc<QueryList>) -> Self {
        Self {
            timeline: Timeline::alone(settings.warm_up, settings.duration),
            workers: settings.workers.unwrap_or(1),
            cpus: settings.cpus.clone(),
            settings,
            target,
            queries,
            seed: 1,
            expected: None,
            tls: None,
            played: None,
            others: Vec::new(),
            further: Vec::new(),
            tells: false,
        }
    }

    /// A job of other settings, with their timeline, workers and CPUs.
    #[must_use]
    pub fn with(self, change: impl FnOnce(&mut Load)) -> Self {
        let mut settings = self.settings;
        change(&mut settings);
        let Self { timeline, workers, cpus, settings, .. } =
            Self::new(settings, self.target, Arc::clone(&self.queries));
        Self { timeline, workers, cpus, settings, ..self }
    }

    /// How often clients ask, and whom.
    #[must_use]
    pub fn attempts(&self) -> Attempts {
        self.settings.attempts(self.further.len() as u32)
    }

    /// How many workers a load has by default: one for each CPU, and at most one for each client. A closed
    /// loop has only so many that each worker has a window of five queries. So the batch delay is applied
    /// ([`Job::applied_batch_delay`]) whatever the number of CPUs: differences between transports depend on it.
    #[must_use]
    pub fn default_workers(cpus: u32, load: &Load) -> u32 {
        let most = match load.window() {
            Some(window) => {
                let workers = window / u64::from(LONE_QUERIES + 1);
                load.clients.min(u32::try_from(workers).unwrap_or(u32::MAX))
            }
            None => load.clients,
        };
        cpus.clamp(1, most.max(1))
    }

    /// The batch delay as it is applied: [`Load::batch_delay`], or zero if hardly anything would be batched and
    /// the wait would only add to the latency. That is so with a window of at most four queries for each
    /// worker, or a schedule with less than two arrivals in a batch delay. The result depends on what was
    /// asked, not on the server, so it is the same for all variants that are asked the same.
    #[must_use]
    pub fn applied_batch_delay(&self) -> Duration {
        let load = &self.settings;
        let workers = f64::from(self.workers);
        let is_dense = |rate_qps: f64| rate_qps / workers * load.batch_delay.as_secs_f64() >= 2.0;
        let batches = match (&self.played, &load.mode) {
            (Some(played), _) => is_dense(played.rate_qps),
            (None, Mode::Closed { outstanding }) => {
                f64::from(load.clients) * f64::from(*outstanding) / workers
                    > f64::from(LONE_QUERIES)
            }
            (None, Mode::Open { rate, .. }) => is_dense(rate.mean(self.timeline.length())),
            (None, Mode::Capture(_) | Mode::Population { .. }) => false,
        };
        if batches { load.batch_delay } else { Duration::ZERO }
    }

    /// Client subnets that the clients' queries carry, in turn.
    #[must_use]
    pub fn subnets(&self) -> Option<&ClientSubnets> {
        match &self.settings.client_subnets {
            Some(Subnets::Written(subnets)) => Some(subnets),
            Some(Subnets::File(_)) | None => None,
        }
    }

    /// What came over TCP is acknowledged as soon as it was read.
    #[must_use]
    pub fn acknowledges_at_once(&self) -> bool {
        self.settings.quickack.applies(&self.settings.mode)
    }

    /// Truncated answers are asked again over TCP.
    #[must_use]
    pub fn retries_over_tcp(&self) -> bool {
        retries_over_tcp(&self.settings)
    }

    /// Queries carry an OPT record, so that answers may have one: with a cookie, the server's idle time, or
    /// the upper bits of the response code (RFC 6891, section 6.1.3). Whoever expects such a code looks at them in any
    /// case.
    pub(crate) fn sends_options(&self) -> bool {
        let additional = |query: &Query| query.octets()[10..12] != [0, 0];
        let load = &self.settings;
        let all = load.cookies || load.client_subnets.is_some() || load.keepalive;
        let codes = self.expected.map(|expected| expected.codes);
        let all = all || matches!(codes, Some(RightCodes::One(16..)));
        // What comes while the load runs is not known before.
        all || self.played.is_some() || self.queries.iter().next().is_some_and(additional)
    }

    /// The time windows on the timeline of the load, in the order of the settings.
    pub(crate) fn windows(&self) -> impl Iterator<Item = Range<Nanos>> {
        let all = self.settings.windows.iter().flat_map(TimeWindows::as_slice);
        let instant = |at| self.timeline.instant_ns(at);
        all.map(move |window| instant(window.from)..instant(window.to))
    }
}

/// Truncated answers are asked again over TCP.
fn retries_over_tcp(load: &Load) -> bool {
    let truncates = load.transports().any(|transport| !transport.is_connection());
    load.truncated == Truncated::AskOverTcp && truncates
}

/// Sockets of clients whose number is not known before the load. A client that needs one takes that of the
/// client that has been idle for longest, if there is no other.
const MAX_OF_CLIENTS: u64 = 16_384;

/// Sockets that the clients of a load may have open at the same time, before any limit. There is one for each
/// of their connections, and one more for each client if truncated answers are asked again. Where clients
/// connect on demand and close idle connections, there are no more than the arrivals within an idle time and
/// a time-out.
///
/// Drains come on top: sockets that wait for the last answers of a connection at the end of its quota
/// (`queries_per_connection`, GOAWAY). Their number depends on what is lost. If they leave no socket for the
/// next connection, it waits until one of them is closed, at most one time-out.
#[must_use]
pub fn sockets(load: &Load) -> u64 {
    if load.mode.is_played() {
        return MAX_OF_CLIENTS;
    }
    let clients = u64::from(load.clients);
    let retries = if retries_over_tcp(load) { clients } else { 0 };
    let all = clients * u64::from(load.connections) + retries;
    let idle = load.idle.filter(|_| load.connect == Connect::OnDemand);
    match (load.mode.rate(), idle) {
        (Some(rate), Some(idle)) => {
            let length = load.warm_up + load.duration;
            let peak_qps = rate.at(Duration::ZERO).max(rate.at(length)).max(rate.mean(length));
            all.min((peak_qps * (idle + load.timeout).as_secs_f64()).ceil() as u64)
        }
        _ => all,
    }
}

#[cfg(test)]
mod tests {
    use dnslab_traffic::{SlicePlan, Turns};

    use super::*;
    use crate::recorder::Phases;

    fn closed(clients: u32, outstanding: u32) -> Load {
        Load { clients, mode: Mode::Closed { outstanding }, ..Load::default() }
    }

    fn open(clients: u32, rate_qps: f64) -> Load {
        Load { clients, mode: Mode::constant(rate_qps), ..Load::default() }
    }

    fn job(settings: Load) -> Job {
        let queries = QueryList::from_text(&b"a.example A\n"[..], "test", &Default::default());
        Job::new(settings, "127.0.0.1:53".parse().unwrap(), Arc::new(queries.unwrap()))
    }

    /// Hosts with so many CPUs each have so many workers.
    #[track_caller]
    fn check_dealt(workers: u32, cpus: &[usize], expected: &[u32]) {
        let shares = Share::deal(workers, cpus);
        let mut next = 0;
        for share in &shares {
            assert_eq!(share.first, next, "they follow each other");
            next = share.numbers().end;
        }
        let counts: Vec<u32> = shares.iter().map(|share| share.count).collect();
        assert_eq!(counts, expected);
    }

    #[test]
    fn hosts_have_workers_by_their_cpus() {
        check_dealt(1, &[4], &[1]);
        check_dealt(12, &[2, 8, 2], &[2, 8, 2]);
        check_dealt(3, &[2, 8, 2], &[1, 1, 1]);
        check_dealt(4, &[1, 1, 1], &[2, 1, 1]);
        check_dealt(7, &[0, 2], &[1, 6]);
    }

    #[test]
    fn many_cpus_leave_each_worker_a_window() {
        let workers = Job::default_workers;
        assert_eq!(workers(1, &closed(100, 1)), 1);
        assert_eq!(workers(8, &closed(100, 1)), 8);
        assert_eq!(workers(64, &closed(100, 1)), 20);
        assert_eq!(workers(64, &closed(100, 10)), 64);
        // Hardly anything is batched in such a window anyway.
        assert_eq!(workers(64, &closed(4, 1)), 1);
        assert_eq!(workers(64, &closed(4, 100)), 4);
        assert_eq!(workers(64, &open(100, 1_000.0)), 64);
        for cpus in 1..=64 {
            let load = closed(100, 1);
            let job = job(Load { workers: Some(workers(cpus, &load)), ..load });
            assert_eq!(job.applied_batch_delay(), job.settings.batch_delay, "{cpus} CPUs");
        }
    }

    #[test]
    fn the_batch_delay_is_applied_where_something_is_batched() {
        let applied_us = |load: Load, workers| {
            let batch_delay = Duration::from_micros(50);
            let job = job(Load { workers: Some(workers), batch_delay, ..load });
            job.applied_batch_delay().as_micros()
        };
        assert_eq!(applied_us(closed(4, 1), 1), 0);
        assert_eq!(applied_us(closed(5, 1), 1), 50);
        assert_eq!(applied_us(closed(8, 1), 2), 0);
        assert_eq!(applied_us(open(1, 39_999.0), 1), 0);
        assert_eq!(applied_us(open(1, 40_000.0), 1), 50);
        assert_eq!(applied_us(open(2, 79_999.0), 2), 0);
    }

    #[test]
    fn time_windows_are_of_the_loads_own_time() {
        let ms = Duration::from_millis;
        let windows = "a:0s..1s,b:1s..2s".parse().ok();
        let load = Load { warm_up: ms(500), duration: ms(2_000), windows, ..closed(1, 1) };
        let mut job = job(load);
        let in_turns =
            |turns: Option<Turns>| Timeline::in_turns(ms(500), ms(2_500), turns.unwrap());
        let spans = |job: &Job| job.windows().map(|at| (at.start, at.end)).collect::<Vec<_>>();
        assert_eq!(spans(&job), [(500_000_000, 1_500_000_000), (1_500_000_000, 2_500_000_000)]);
        // Two loads in slices: each has half of the timeline.
        let plan = SlicePlan { slice: ms(50), lead: ms(0), tail: ms(0), mirrored: true };
        job.timeline = in_turns(plan.turns(2, ms(4_500), 1).pop());
        assert_eq!(spans(&job), [(500_000_000, 2_500_000_000), (2_500_000_000, 4_500_000_000)]);
        // A turn that is as long as the load is all its own.
        let plan = SlicePlan { slice: ms(2_500), mirrored: false, ..plan };
        job.timeline = in_turns(plan.turns(2, ms(5_000), 1).pop());
        assert_eq!(spans(&job)[1], (1_500_000_000, 2_500_000_000));
    }

    fn interval_ms(slice: Duration) -> u64 {
        let ms = Duration::from_millis;
        // Two seconds of each of two loads, on a timeline of four.
        let job = job(closed(1, 1));
        let plan = SlicePlan { slice, lead: ms(0), tail: ms(0), mirrored: true };
        let turns = plan.turns(2, ms(4_000), 1).pop().unwrap();
        let timeline = Timeline::in_turns(ms(0), ms(4_000), turns.clone());
        let phases = Phases::of(&Job { timeline, ..job });
        let whole = (0..4_000_000_000 / phases.interval).map(|nth| nth * phases.interval);
        let own = |at| turns.own_between(at, at + phases.interval);
        assert!(whole.map(own).all(|own| 2 * own == phases.interval), "{slice:?}");
        phases.interval / 1_000_000
    }

    #[test]
    fn an_interval_is_as_short_as_equal_turns_allow() {
        let ms = Duration::from_millis;
        assert_eq!(interval_ms(ms(50)), 100);
        assert_eq!(interval_ms(ms(20)), 120);
        // It was 2 s, a whole block: all of the load's own time in two intervals.
        assert_eq!(interval_ms(ms(500)), 1_000);
    }

    #[test]
    fn idle_clients_need_fewer_sockets() {
        let on_demand = |load: Load, idle: Option<u64>| Load {
            idle: idle.map(Duration::from_secs),
            connect: Connect::OnDemand,
            ..load
        };
        let many = 100_000;
        assert_eq!(sockets(&on_demand(closed(many, 1), None)), 100_000);
        assert_eq!(sockets(&on_demand(closed(many, 1), Some(1))), 100_000);
        let again = Load { connections: 2, truncated: Truncated::AskOverTcp, ..closed(many, 1) };
        assert_eq!(sockets(&on_demand(again, None)), 300_000);
        assert_eq!(sockets(&on_demand(open(many, 1_000.0), None)), 100_000);
        assert_eq!(sockets(&on_demand(open(many, 1_000.0), Some(8))), 10_000);
        assert_eq!(sockets(&on_demand(open(many, 1e6), Some(8))), 100_000);
        // All are open at the start, however soon they are closed after it.
        let idle = Some(Duration::from_secs(8));
        assert_eq!(sockets(&Load { idle, ..open(many, 1_000.0) }), 100_000);
    }
}
