//! One load of a run, with all that was seen of it.

use crate::counter::QUERIES;
use crate::load::{LoadFacts, LoadHost};
use crate::measured::Measured;
use crate::resources::ResourceSeries;
use crate::server::ServerFacts;
use crate::testbed::pinned_cpus;
use crate::watched::{LoadHostSeries, Watched};

/// Share of the sent queries that a Service's pods must have counted so that their CPU time can be shared out: readings
/// are a second apart, and of a short load the window is known to some percent.
const LEAST_COUNTED: f64 = 0.9;

/// One load of a run and what was seen of it: the one argument of every rule.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The load as it was applied.
    pub load: &'a LoadFacts,
    /// The server under test.
    pub server: &'a ServerFacts,
    /// What the load measured.
    pub measured: &'a Measured,
    /// What was seen of the servers meanwhile.
    pub watched: &'a Watched,
}

impl Observation<'_> {
    /// Whether server and load are on different hosts, so that their CPUs are not the same ones.
    #[must_use]
    pub fn is_apart(&self) -> bool {
        self.server.is_elsewhere() || !self.load.hosts.is_empty()
    }

    /// Share in [0, 1] of the time of the CPUs of servers and load that the hypervisor kept in the measured window, if all
    /// that it kept was theirs, with the name of the host, if it has one. Of several machines it is the largest share.
    /// Where somebody was not pinned, the host has `host_cpus`; `None` where that is not known, or the machine was not
    /// sampled.
    #[must_use]
    pub fn stolen_share(&self, host_cpus: Option<usize>) -> Option<(f64, &str)> {
        let Self { load, server, measured, watched } = *self;
        let share = |machine: &ResourceSeries, cpus: usize| {
            let stolen = machine.rise(measured.window(), |at| at.steal_ns)?;
            Some((stolen.amount as f64 / (stolen.over_ns as f64 * cpus.max(1) as f64)).min(1.0))
        };
        if watched.load_hosts.is_empty() {
            let pinned = pinned_cpus(load, server, &watched.chain);
            let cpus = pinned.map(|pinned| pinned.len()).or(host_cpus)?;
            return Some((share(&watched.resources, cpus)?, ""));
        }
        let here = if load.cpus.is_empty() { host_cpus } else { Some(load.cpus.len()) };
        let of_load = watched.load_hosts.iter().filter_map(|LoadHostSeries { host, resources }| {
            let there = load.hosts.iter().find(|facts| facts.host == *host);
            let cpus = there.map(LoadHost::cpu_count).or(here)?;
            Some((share(resources, cpus)?, host.as_str()))
        });
        let of_server = share(&watched.resources, watched.resources.cpus);
        let of_server = of_server.map(|share| (share, server.host.as_str()));
        of_load.chain(of_server).max_by(|one, other| one.0.total_cmp(&other.0))
    }

    /// The server's CPU use in [0, 1] of the CPUs it was given, over its own part of the measured
    /// window.
    #[must_use]
    pub fn server_busy_share(&self) -> Option<f64> {
        self.measured.busy_share_of(&self.watched.resources)
    }

    /// [`Self::server_busy_share`] with the time of interrupts on its CPUs, where the kernel does not count that as
    /// the time of threads.
    #[must_use]
    pub fn server_used_share(&self) -> Option<f64> {
        self.measured.used_share_of(&self.watched.resources)
    }

    /// The server's CPU time per answered query over the measured window, nanoseconds; `None` where other servers
    /// answered some of the queries.
    #[must_use]
    pub fn server_cpu_per_query_ns(&self) -> Option<f64> {
        if self.measured.counters.attempts.sent_to.len() > 1 {
            return None;
        }
        let cpu_ns = self.watched.resources.cpu_ns(self.measured.window())?;
        self.for_each_answer((cpu_ns as f64 * self.own_share()?).round() as u64)
    }

    /// The share that this load had of the queries that the server counted over the measured window, in [0, 1]: the pods
    /// of a Service have other clients, too. 1 of other servers; `None` where that is not known, as where they counted
    /// fewer than were sent: a cache of the node may have answered, or one of them was not read.
    fn own_share(&self) -> Option<f64> {
        if self.watched.service.is_none() {
            return Some(1.0);
        }
        let window = self.measured.window();
        let counters = self.watched.counters.as_ref()?;
        let counted = counters.growth_in(QUERIES, window, window.to_ns)?;
        let sent = self.measured.counters.sent as f64;
        (counted > 0.0 && counted >= LEAST_COUNTED * sent).then(|| (sent / counted).min(1.0))
    }

    /// As [`Observation::server_cpu_per_query_ns`], with the servers behind it ([`Watched::behind`]). `None` if one of
    /// them was not watched.
    #[must_use]
    pub fn servers_cpu_per_query_ns(&self) -> Option<f64> {
        if self.watched.lacks_servers_behind(self.server) {
            return None;
        }
        let window = self.measured.window();
        let own = self.server_cpu_per_query_ns()?;
        self.watched
            .behind()
            .map(|part| part.resources.cpu_ns(window))
            .try_fold(own, |sum, cpu_ns| Some(sum + self.for_each_answer(cpu_ns?)?))
    }

    /// CPU time of the measured window for each answer, nanoseconds; `None` without any.
    ///
    /// Where closed loops take turns, it is that of the part of each turn that counts. In the first milliseconds of a turn
    /// a server answers some 15 % slower, as caches hold what the others need, and no slower is it busy: BIND took 3.7 %
    /// more for each query over whole turns than in what counts of them. A closed loop keeps a server as busy in one part
    /// of a turn as in the other, so the part of its CPU time is that of the time.
    pub(crate) fn for_each_answer(&self, cpu_ns: u64) -> Option<f64> {
        let measured = self.measured;
        let answers = match (&measured.turns, self.load.window()) {
            (Some(_), Some(_)) => measured.answered_qps() * measured.own_ns() as f64 / 1e9,
            _ => measured.answered() as f64,
        };
        (answers > 0.0).then(|| cpu_ns as f64 / answers)
    }

    /// Octets that the server wrote to its logs of queries, per answered query, over the measured
    /// window; `None` without such a log. What the server still held back is not in it.
    #[must_use]
    pub fn log_octets_per_query(&self) -> Option<f64> {
        let resources = &self.watched.resources;
        let is_written = resources.samples.last()?.log_octets > 0;
        let octets = resources.growth(self.measured.window(), |sample| sample.log_octets)?;
        let answered = self.measured.answered();
        (is_written && answered > 0).then(|| octets as f64 / answered as f64)
    }
}
