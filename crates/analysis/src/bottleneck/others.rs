//! What keeps a side from its CPUs although it has work: a CPU quota, and other programs.

use dnslab_record::{BottleneckKind, CpuLimit, Evidence};

use super::cpus_used::CpusUsed;
use super::figures::{BottleneckFigures, Named};
use super::servers::{ServerUse, at_its_end};
use super::thresholds::{GENERATOR_BUSY, SERVER_BUSY};

/// From this share of its periods on in which a quota was used up, the side wants more than its quota most of the
/// time. With fewer it has what it needs on average, and single queries wait: that is a caveat.
const LIMIT_REACHED: f64 = 0.5;

/// Of the time for which a server could run, the share that it waits for a CPU from which on others hold it up.
/// Threads of one server wait for each other too, so it takes others on its CPUs besides (`OTHERS_HOLD`).
pub const SERVER_WAITED: f64 = 0.1;

/// Share of the CPUs of a side that others use from which on they can bound its rate. The kernel counts the use
/// of CPUs by ticks, which are some percent off where threads sleep often.
const OTHERS_HOLD: f64 = 0.1;

/// The role of the load in [`Evidence::CpuLimit`].
const LOAD_ROLE: &str = "load generator";

/// The role of both sides, where one control group above both has the quota.
const BOTH_ROLE: &str = "servers and load generator";

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
