//! What keeps a side from its CPUs although it has work: a CPU quota, and other programs.

use dnslab_record::{
    BottleneckKind, CpuLimit, Evidence, LoadFacts, Measured, ResourceSample, ResourceSeries,
    ServerFacts,
};

use super::figures::Named;
use super::servers::{ServerUse, at_its_end};
use super::{BottleneckFigures, GENERATOR_BUSY, SERVER_BUSY};
use crate::observation::Observation;

/// From this share of its periods on in which a quota was used up, the side wants more than its quota most of the
/// time. With fewer it has what it needs on average, and single queries wait: that is a caveat.
const LIMIT_REACHED: f64 = 0.5;

/// Of the time for which a server could run, the share that it waits for a CPU from which on others hold it up.
/// Threads of one server wait for each other too, so it takes others on its CPUs besides ([`OTHERS_HOLD`]).
pub const SERVER_WAITED: f64 = 0.1;

/// Share of the CPUs of a side that others use from which on they can bound its rate. The kernel counts the use
/// of CPUs by ticks, which are some percent off where threads sleep often.
const OTHERS_HOLD: f64 = 0.1;

/// The role of the load in [`Evidence::CpuLimit`].
const LOAD_ROLE: &str = "load generator";

/// The role of both sides, where one control group above both has the quota.
const BOTH_ROLE: &str = "servers and load generator";

/// What was done on the CPUs of a server that the load does not have, over the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpusUsed {
    /// Share of their time that anybody used, in [0, 1].
    pub by_all: f64,
    /// Share that neither the servers of the experiment nor the load used, in [0, 1].
    pub by_others: f64,
}

impl CpusUsed {
    /// What was done on the CPUs that this server may use; `None` where it has none without the load, or where
    /// that is not known. `behind` and `measured` tell what other servers of the experiment used there: of a server
    /// that was not pinned nobody knows where it ran, so it is taken to have run there.
    pub(super) fn of(
        load: &LoadFacts,
        server: &ServerFacts,
        resources: &ResourceSeries,
        others: &[(&ServerFacts, &ResourceSeries)],
        measured: &Measured,
    ) -> Option<Self> {
        let cpus = server.cpus.iter().filter(|cpu| !load.cpus.contains(cpu)).count();
        let window = measured.window();
        let grown = |series: &ResourceSeries, figure: fn(&ResourceSample) -> u64| {
            series.increase(window, figure).map(|(grown, _)| grown)
        };
        let (used_ns, span_ns) = resources.increase(window, |at| at.cpus_used_ns)?;
        if cpus == 0 || used_ns == 0 {
            return None;
        }
        let meets = |other: &ServerFacts| {
            other.cpus.is_empty() || other.cpus.iter().any(|cpu| server.cpus.contains(cpu))
        };
        let behind = others.iter().filter(|(other, _)| meets(other));
        let behind_ns: u64 =
            behind.map(|(_, series)| grown(series, |at| at.cpu_ns)).sum::<Option<u64>>()?;
        // The kernel that charges the threads with interrupts has them in their time already.
        let irq_ns = match resources.irq_apart {
            Some(false) => 0,
            Some(true) | None => grown(resources, |at| at.irq_ns)?,
        };
        let dnslab_ns = match load.cpus.is_empty() {
            true => grown(resources, |at| at.dnslab_ns)?,
            false => 0,
        };
        let in_turns_ns = measured.turns.as_ref().map_or(0, |turns| turns.others_cpu_ns);
        let own_ns = grown(resources, |at| at.cpu_ns)?;
        let known_ns = own_ns + behind_ns + irq_ns + dnslab_ns + in_turns_ns;
        let share = |ns: u64| (ns as f64 / (span_ns as f64 * cpus as f64)).min(1.0);
        Some(Self { by_all: share(used_ns), by_others: share(used_ns.saturating_sub(known_ns)) })
    }

    /// The same of each server of a run, that under test first.
    pub(super) fn of_all(run: &Observation<'_>) -> Vec<Option<Self>> {
        let Observation { load, server, chain, measured } = *run;
        let behind = chain.iter().map(|part| (&part.server, &part.resources));
        let all: Vec<(&ServerFacts, &ResourceSeries)> =
            std::iter::once((server, &measured.resources)).chain(behind).collect();
        let of = |place: usize| {
            let mut others = all.clone();
            let (own, resources) = others.remove(place);
            Self::of(load, own, resources, &others, measured)
        };
        (0..all.len()).map(of).collect()
    }
}

/// The quota, if it was used up in most periods.
fn reached(limit: Option<&CpuLimit>) -> Option<&CpuLimit> {
    limit.filter(|limit| limit.throttled_share() >= LIMIT_REACHED)
}

impl ServerUse {
    /// Whether other programs held CPUs of this server that it waited for, and left none of them idle.
    fn is_held_up(&self) -> bool {
        let waited = self.waited_share.is_none_or(|waited| waited >= SERVER_WAITED);
        let held = |used: CpusUsed| used.by_others >= OTHERS_HOLD && used.by_all >= SERVER_BUSY;
        waited && self.cpus_used.is_some_and(held)
    }
}

impl BottleneckFigures {
    /// Whether the CPU quota of the load was used up in most periods.
    pub(crate) fn load_is_at_its_limit(&self) -> bool {
        reached(self.load_limit.as_ref()).is_some()
    }

    /// Rule 3: a side used up its CPU quota in most periods. If both did, the one that did in more of them.
    pub(super) fn cpu_limits(&self) -> Named {
        let of_server = |server: &'_ ServerUse| {
            Some((server.role.clone(), reached(server.limit.as_ref())?.clone()))
        };
        let throttled = |(_, limit): &(String, CpuLimit)| limit.throttled_share();
        let servers = self.servers.iter().filter_map(of_server);
        let server = servers.max_by(|one, two| throttled(one).total_cmp(&throttled(two)));
        let load = reached(self.load_limit.as_ref());
        let (kind, role, limit) = match (server, load) {
            (Some((_, limit)), Some(own)) if limit.group == own.group => {
                (BottleneckKind::SharedCpu, BOTH_ROLE.to_owned(), limit)
            }
            (Some(server), Some(own)) if throttled(&server) > own.throttled_share() => {
                (BottleneckKind::ServerCpuLimit, server.0, server.1)
            }
            (_, Some(own)) => (BottleneckKind::Generator, LOAD_ROLE.to_owned(), own.clone()),
            // In doubt the server may do more than a generator without CPU time asks of it.
            (Some((role, limit)), None) if self.generator_busy_share < GENERATOR_BUSY => {
                (BottleneckKind::ServerCpuLimit, role, limit)
            }
            (_, None) => return None,
        };
        let throttled_share = limit.throttled_share();
        let first = Evidence::CpuLimit { role, cpus: limit.cpus, throttled_share };
        Some((kind, vec![first, self.server_use()]))
    }

    /// Rule 4: other programs held the CPUs of a server, or of the load, and nothing of them was left.
    pub(super) fn others(&self) -> Named {
        if self.generator_busy_share >= GENERATOR_BUSY || at_its_end(&self.servers).is_some() {
            return None;
        }
        let most = |server: &&ServerUse| server.cpus_used.map_or(0.0, |used| used.by_others);
        let held = self.servers.iter().filter(|server| server.is_held_up());
        let held = held.max_by(|one, two| most(one).total_cmp(&most(two)));
        let server = held.map(|server| Evidence::ServerHeldUp {
            role: server.role.clone(),
            waited_share: server.waited_share,
            others_share: most(&server),
        });
        let load_is_held = self.generator_wanted_share >= GENERATOR_BUSY
            && self.others_on_load_cpus.is_some_and(|cpus| cpus >= OTHERS_HOLD);
        let load =
            load_is_held.then_some(Evidence::WorkerWaited { share: self.generator_wanted_share });
        let mut evidence: Vec<Evidence> = server.into_iter().chain(load).collect();
        if evidence.is_empty() {
            return None;
        }
        evidence.extend([self.server_use(), self.busiest_worker()]);
        Some((BottleneckKind::OtherPrograms, evidence))
    }
}

/// How many of the load's CPUs others than dnslab and the server under test used over the measured window, at least;
/// `None` where the record does not say.
pub(crate) fn others_on_load_cpus(run: &Observation<'_>) -> Option<f64> {
    let Observation { load, server, measured, .. } = *run;
    let resources = &measured.resources;
    let share = |figure: fn(&ResourceSample) -> u64| {
        let (used_ns, span_ns) = resources.increase(measured.window(), figure)?;
        Some(used_ns as f64 / span_ns as f64)
    };
    let dnslab = share(|at| at.dnslab_ns).filter(|used| *used > 0.0)?;
    // Of one that may use further CPUs nobody knows where it ran. Then it counts as another.
    let is_shared =
        !server.cpus.is_empty() && server.cpus.iter().all(|cpu| load.cpus.contains(cpu));
    let server = if is_shared { share(|at| at.cpu_ns)? } else { 0.0 };
    let of = |cpu: &dnslab_record::CpuShare| match resources.irq_apart {
        Some(true) => cpu.used - cpu.irq,
        _ => cpu.used,
    };
    let used: f64 = resources.load_cpus.iter().map(of).sum();
    (used > 0.0).then_some(used - dnslab - server)
}
