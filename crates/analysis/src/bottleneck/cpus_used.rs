//! What was done on the CPUs of the servers and of the load, and by whom.

use dnslab_record::{Observation, ResourceSeries, ServerFacts};

/// What the kernel counts the use of a CPU in, at both ends of a window (proc_stat(5)): in a short one that is much.
const TICK_NS: u64 = 10_000_000;

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
        run: &Observation<'_>,
        server: &ServerFacts,
        resources: &ResourceSeries,
        others: &[(&ServerFacts, &ResourceSeries)],
    ) -> Option<Self> {
        let Observation { load, measured, watched, .. } = *run;
        let is_elsewhere = server.is_elsewhere() || run.is_apart();
        let is_its_own = |cpu: &&usize| is_elsewhere || !load.cpus.contains(cpu);
        let cpus = server.cpus.iter().filter(is_its_own).count();
        let window = measured.window();
        let used = resources.rise(window, |at| at.cpus_used_ns)?;
        if cpus == 0 || used.amount == 0 {
            return None;
        }
        let meets = |other: &ServerFacts| {
            other.cpus.is_empty() || other.cpus.iter().any(|cpu| server.cpus.contains(cpu))
        };
        let behind = others.iter().filter(|(other, _)| meets(other));
        let behind = behind.map(|(_, series)| Some(series.rise(window, |at| at.cpu_ns)?.amount));
        let behind_ns: u64 = behind.sum::<Option<u64>>()?;
        // The kernel that charges the threads with interrupts has them in their time already.
        let irq_ns = match resources.irq_apart {
            // What came from a card has interrupted nobody, where nobody ran.
            Some(false) if !is_elsewhere => 0,
            Some(_) | None => resources.rise(window, |at| at.irq_ns)?.amount,
        };
        // Who watches the servers is on no CPU of its own.
        let dnslab_ns = match (is_elsewhere, load.cpus.is_empty()) {
            // There it only watches.
            (true, _) => resources.rise(window, |at| at.dnslab_ns)?.amount,
            (false, true) => watched.resources.rise(window, |at| at.dnslab_ns)?.amount,
            (false, false) => watched.observing_cpu_ns,
        };
        let in_turns_ns = watched.others_cpu_ns;
        let own_ns = resources.rise(window, |at| at.cpu_ns)?.amount;
        let known_ns = own_ns + behind_ns + irq_ns + dnslab_ns + in_turns_ns;
        let share = |ns: u64| (ns as f64 / (used.over_ns as f64 * cpus as f64)).min(1.0);
        let by_others = share(used.amount.saturating_sub(known_ns + 2 * TICK_NS));
        Some(Self { by_all: share(used.amount), by_others })
    }

    /// The CPUs used around each server of a run, that under test first.
    pub(super) fn of_all(run: &Observation<'_>) -> Vec<Option<Self>> {
        let Observation { server, watched, .. } = *run;
        let behind = watched.chain.iter().map(|part| (&part.server, &part.resources));
        let all: Vec<(&ServerFacts, &ResourceSeries)> =
            std::iter::once((server, &watched.resources)).chain(behind).collect();
        let used = (0..all.len()).map(|place| {
            let mut others = all.clone();
            let (own, resources) = others.remove(place);
            Self::of(run, own, resources, &others)
        });
        used.collect()
    }
}

/// How many of the load's CPUs others than dnslab and the server under test used over the measured window, at least;
/// `None` where the record does not say. Of several hosts it is the largest use.
pub(crate) fn others_on_load_cpus(run: &Observation<'_>) -> Option<f64> {
    let of_hosts = run.watched.of_load_hosts().filter_map(|(_, host)| others_there(run, host));
    of_hosts.reduce(f64::max)
}

fn others_there(run: &Observation<'_>, resources: &ResourceSeries) -> Option<f64> {
    let Observation { load, server, measured, watched } = *run;
    let window = measured.window();
    let dnslab = resources.rise(window, |at| at.dnslab_ns)?;
    let ticks = 2.0 * TICK_NS as f64 / dnslab.over_ns as f64;
    let dnslab = dnslab.cpus();
    if dnslab <= 0.0 {
        return None;
    }
    // Of one that may use further CPUs nobody knows where it ran. Then it counts as another.
    let is_shared = !run.is_apart()
        && !server.cpus.is_empty()
        && server.cpus.iter().all(|cpu| load.cpus.contains(cpu));
    let server = match is_shared {
        true => watched.resources.rise(window, |at| at.cpu_ns)?.cpus(),
        false => 0.0,
    };
    let by_threads = resources.load_cpus.iter().map(|cpu| match resources.irq_apart {
        Some(true) => cpu.used - cpu.irq,
        _ => cpu.used,
    });
    let used: f64 = by_threads.sum();
    (used > 0.0).then_some(used - dnslab - server - ticks)
}
