//! The CPUs of all servers of a chain: which of them was at its end.

use std::collections::BTreeSet;

use dnslab_record::{
    BottleneckKind, CpuLimit, CpuShare, CpuUse, Evidence, Observation, ResourceSeries, ThreadShare,
    UNDER_TEST, WorkerFacts, with_interrupts,
};

use super::cpus_used::CpusUsed;
use super::thresholds::SERVER_BUSY;

/// What one server used of its CPUs over the measured window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerUse {
    /// [`UNDER_TEST`], or the role of the [`dnslab_record::ChainPart`].
    pub role: String,
    /// CPU use in [0, 1] of the CPUs that it was given, with the interrupts there; `None` if it was not
    /// watched.
    pub busy_share: Option<f64>,
    /// How many CPUs it was given.
    pub cpus: usize,
    /// Which they are; empty if it was not pinned.
    pub pinned: Vec<usize>,
    /// What its busiest threads used, the busiest first.
    pub threads: Vec<ThreadShare>,
    /// Of the time for which its threads could run, the share for which they had no CPU, in [0, 1]; `None` where
    /// that is not known.
    pub waited_share: Option<f64>,
    /// What was done on its CPUs; `None` where that is not known.
    pub cpus_used: Option<CpusUsed>,
    /// The CPU quota of its control groups.
    pub limit: Option<CpuLimit>,
}

/// What one load worker used of its CPU over the measured window.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerUse {
    /// The CPU that it was pinned to.
    pub cpu: Option<usize>,
    /// CPU use in [0, 1], with the interrupts on its CPU.
    pub busy_share: f64,
}

impl WorkerUse {
    pub(crate) fn of_all(run: &Observation<'_>) -> Vec<Self> {
        let mut workers = run.measured.workers.iter();
        let hosts = &run.load.hosts;
        if hosts.is_empty() {
            let machine = run.watched.of_load_hosts().next();
            return workers.map(|worker| Self::of(worker, machine.map(|(_, host)| host))).collect();
        }
        let of_hosts = hosts.iter().flat_map(|host| {
            let mut machines = run.watched.of_load_hosts();
            let machine = machines.find(|(name, _)| *name == host.host).map(|(_, host)| host);
            let own = workers.by_ref().take(host.workers as usize);
            // Numbers of CPUs are those of another machine.
            own.map(move |worker| Self { cpu: None, ..Self::of(worker, machine) })
                .collect::<Vec<_>>()
        });
        of_hosts.collect()
    }

    /// `machine` is that of its host.
    fn of(worker: &WorkerFacts, machine: Option<&ResourceSeries>) -> Self {
        let mut cpus = machine.into_iter().flat_map(|machine| &machine.load_cpus);
        let cpu = cpus.find(|share| Some(share.cpu) == worker.cpu);
        let (own, irq_apart) = (worker.busy_share(), machine.and_then(|machine| machine.irq_apart));
        let busy_share = cpu.map_or(own, |CpuShare { used, irq, .. }| {
            with_interrupts(own, *irq, *used, irq_apart).min(1.0)
        });
        Self { cpu: worker.cpu, busy_share }
    }
}

impl ServerUse {
    /// The servers of a run, that under test first.
    pub(crate) fn of(run: &Observation<'_>) -> Vec<Self> {
        let Observation { server, watched, measured, .. } = *run;
        let behind =
            watched.chain.iter().map(|part| (part.role.as_str(), &part.server, &part.resources));
        let all = std::iter::once((UNDER_TEST, server, &watched.resources)).chain(behind);
        let used = CpusUsed::of_all(run);
        all.zip(used)
            .map(|((role, server, resources), cpus_used)| Self {
                role: role.to_owned(),
                busy_share: measured.used_share_of(resources),
                cpus: resources.cpus,
                // On another host the numbers of CPUs are those of others.
                pinned: if server.is_elsewhere() { Vec::new() } else { server.cpus.clone() },
                threads: measured.threads_of(resources),
                waited_share: measured.waited_share_of(resources),
                cpus_used,
                limit: resources.cpu_limit.clone().map(|limit| CpuLimit {
                    // Groups of two hosts may have one name.
                    group: format!("{}{}", server.host, limit.group),
                    ..limit
                }),
            })
            .collect()
    }

    /// The bottleneck that this server is when it has no CPU left.
    fn kind(&self) -> BottleneckKind {
        match self.role.as_str() {
            UNDER_TEST => BottleneckKind::ServerCpu,
            "relay" => BottleneckKind::RelayCpu,
            _ => BottleneckKind::UpstreamCpu,
        }
    }
}

/// What a thread or a server used of the CPUs that it was pinned to.
struct Pinned<'a> {
    cpus: &'a [usize],
    /// How many CPUs it kept busy; `None` if it was not watched.
    used: Option<f64>,
}

impl<'a> Pinned<'a> {
    fn server(server: &'a ServerUse) -> Self {
        let used = server.busy_share.map(|share| share * server.cpus.max(1) as f64);
        Self { cpus: &server.pinned, used }
    }

    fn worker(worker: &'a WorkerUse) -> Self {
        Self { cpus: worker.cpu.as_slice(), used: Some(worker.busy_share) }
    }
}

/// A server without CPU left, or several together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Exhausted {
    /// The bottleneck that it is.
    pub(super) kind: BottleneckKind,
    /// The use of its CPUs, in [0, 1].
    pub(super) busy_share: f64,
}

/// The server that had no CPU left, or several that had none left together.
///
/// Of several the busiest holds the others up; of two that are alike the one behind, for then the
/// server under test may do more. Servers that were pinned to CPUs in common have none left from the
/// threshold on for the sum of what they used, though none of them reaches it.
pub(super) fn at_its_end(servers: &[ServerUse]) -> Option<Exhausted> {
    let busy = servers.iter().filter_map(|server| {
        Some(Exhausted { kind: server.kind(), busy_share: server.busy_share? })
    });
    let alone = busy.max_by(|one, other| one.busy_share.total_cmp(&other.busy_share));
    alone.filter(|alone| alone.busy_share >= SERVER_BUSY).or_else(|| {
        let busy_share = share_together(servers)?;
        let together = Exhausted { kind: BottleneckKind::ServersCpu, busy_share };
        (busy_share >= SERVER_BUSY).then_some(together)
    })
}

/// What servers that are pinned to CPUs in common used of those, in [0, 1]; of several groups the
/// one that used most. `None` if there is none, or one of its servers was not watched.
pub(super) fn share_together(servers: &[ServerUse]) -> Option<f64> {
    most_used(servers.iter().map(Pinned::server).collect(), |_| true)
}

/// What servers and load workers that are pinned to CPUs in common used of those, in [0, 1].
pub(crate) fn share_with_load(servers: &[ServerUse], workers: &[WorkerUse]) -> Option<f64> {
    let is_server = |at: &usize| *at < servers.len();
    let pinned = servers.iter().map(Pinned::server).chain(workers.iter().map(Pinned::worker));
    most_used(pinned.collect(), |group| group.iter().any(is_server) && !group.iter().all(is_server))
}

/// The largest share of their CPUs that those who are pinned to CPUs in common used, in [0, 1], of
/// the groups of two or more that count.
fn most_used(pinned: Vec<Pinned<'_>>, counts: impl Fn(&[usize]) -> bool) -> Option<f64> {
    let groups = groups(&pinned).into_iter().filter(|group| group.len() > 1 && counts(group));
    let shares = groups.filter_map(|group| {
        let cpus: BTreeSet<usize> = group.iter().flat_map(|at| pinned[*at].cpus).copied().collect();
        let used: f64 = group.iter().map(|at| pinned[*at].used).sum::<Option<f64>>()?;
        Some(used / cpus.len() as f64)
    });
    shares.reduce(f64::max)
}

/// The places of those who have a CPU in common, directly or by way of others.
fn groups(pinned: &[Pinned<'_>]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (place, own) in pinned.iter().enumerate() {
        let meets = |group: &Vec<usize>| {
            group.iter().any(|at| pinned[*at].cpus.iter().any(|cpu| own.cpus.contains(cpu)))
        };
        let (met, mut apart): (Vec<_>, Vec<_>) = groups.into_iter().partition(meets);
        apart.push(met.into_iter().flatten().chain([place]).collect());
        groups = apart;
    }
    groups
}

pub(super) fn use_of<'a>(servers: impl Iterator<Item = &'a ServerUse>) -> Evidence {
    let servers = servers.map(|server| CpuUse {
        role: server.role.clone(),
        busy_share: server.busy_share.filter(|share| share.is_finite()),
        cpus: server.cpus.max(1),
    });
    Evidence::Servers { servers: servers.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(role: &str, busy_share: f64, pinned: &[usize]) -> ServerUse {
        let pinned = pinned.to_vec();
        ServerUse {
            role: role.to_owned(),
            busy_share: Some(busy_share),
            cpus: pinned.len(),
            pinned,
            ..ServerUse::default()
        }
    }

    #[track_caller]
    fn check(servers: &[ServerUse], expected: Option<(BottleneckKind, f64)>) {
        let expected = expected.map(|(kind, busy_share)| Exhausted { kind, busy_share });
        assert_eq!(at_its_end(servers), expected);
    }

    #[test]
    fn the_busiest_is_the_limit() {
        let chain = |own, relay, upstream| {
            let shares = [("server", own), ("relay", relay), ("upstream", upstream)];
            [0, 1, 2].map(|cpu| server(shares[cpu].0, shares[cpu].1, &[cpu]))
        };
        check(&chain(0.5, 0.6, 0.89), None);
        check(&chain(0.95, 0.6, 0.7), Some((BottleneckKind::ServerCpu, 0.95)));
        check(&chain(0.95, 0.96, 0.7), Some((BottleneckKind::RelayCpu, 0.96)));
        check(&chain(0.95, 0.96, 0.97), Some((BottleneckKind::UpstreamCpu, 0.97)));
        // Of two alike the one behind.
        check(&chain(0.95, 0.2, 0.95), Some((BottleneckKind::UpstreamCpu, 0.95)));
        let mut unwatched = chain(0.5, 0.5, 0.95);
        unwatched[0].busy_share = None;
        check(&unwatched, Some((BottleneckKind::UpstreamCpu, 0.95)));
    }

    #[test]
    fn servers_on_one_cpu_are_at_its_end_together() {
        let pair =
            |own, upstream| [server("server", own, &[0]), server("upstream", upstream, &[0])];
        check(&pair(0.5, 0.45), Some((BottleneckKind::ServersCpu, 0.95)));
        check(&pair(0.5, 0.25), None);
        // One that would be at its end alone is named.
        check(&pair(0.91, 0.05), Some((BottleneckKind::ServerCpu, 0.91)));
        // Two on one CPU, a third elsewhere.
        let mut three = pair(0.5, 0.45).to_vec();
        three.push(server("relay", 0.1, &[1]));
        check(&three, Some((BottleneckKind::ServersCpu, 0.95)));
        // Elsewhere, or unpinned, they do not meet.
        let apart = [server("server", 0.5, &[0]), server("upstream", 0.45, &[1])];
        assert_eq!(share_together(&apart), None);
        let unpinned = [server("server", 0.5, &[]), server("upstream", 0.45, &[])];
        assert_eq!(share_together(&unpinned), None);
        // Two CPUs, one of them in common.
        let partly = [server("server", 0.5, &[0, 1]), server("upstream", 0.9, &[1])];
        assert_eq!(share_together(&partly), Some(0.95));
        let mut unwatched = pair(0.5, 0.45);
        unwatched[1].busy_share = None;
        check(&unwatched, None);
    }

    #[test]
    fn a_server_and_the_load_on_one_cpu_are_added() {
        let worker = |cpu, busy_share| WorkerUse { cpu, busy_share };
        let chain = [server("server", 0.8, &[0]), server("upstream", 0.7, &[1])];
        let together = |workers: &[WorkerUse]| share_with_load(&chain, workers);
        assert_eq!(together(&[worker(Some(1), 0.25)]), Some(0.95));
        assert_eq!(together(&[worker(Some(2), 0.25)]), None);
        assert_eq!(together(&[worker(None, 0.25)]), None);
        // The fuller of two CPUs.
        assert_eq!(together(&[worker(Some(0), 0.125), worker(Some(1), 0.125)]), Some(0.925));
        // Who has both CPUs joins them.
        let joined = [server("server", 0.5, &[0, 1]), server("upstream", 0.5, &[1])];
        assert_eq!(share_with_load(&joined, &[worker(Some(0), 0.25)]), Some(0.875));
        // Workers on one CPU are no server's matter.
        assert_eq!(together(&[worker(Some(2), 0.5), worker(Some(2), 0.5)]), None);
    }
}
