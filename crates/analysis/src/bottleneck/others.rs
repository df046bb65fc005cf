//! What keeps a side from its CPUs although it has work: a CPU quota, and other programs.

use dnslab_record::{Bottleneck, BottleneckKind, CpuLimit, Evidence};

use super::cpus_used::CpusUsed;
use super::figures::BottleneckFigures;
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

/// A side whose quota was used up in most periods.
struct LimitedSide<'a> {
    /// The bottleneck that it is.
    kind: BottleneckKind,
    role: &'a str,
    limit: &'a CpuLimit,
}

impl LimitedSide<'_> {
    fn share(&self) -> f64 {
        self.limit.throttled_share()
    }
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
    pub(super) fn cpu_limits(&self) -> Option<Bottleneck> {
        let servers = self.servers.iter().filter_map(|server| {
            Some(LimitedSide {
                kind: BottleneckKind::ServerCpuLimit,
                role: &server.role,
                limit: reached(server.limit.as_ref())?,
            })
        });
        let server = servers.max_by(|one, other| one.share().total_cmp(&other.share()));
        let load = reached(self.load_limit.as_ref()).map(|limit| LimitedSide {
            kind: BottleneckKind::Generator,
            role: LOAD_ROLE,
            limit,
        });
        let side = match (server, load) {
            (Some(server), Some(load)) if server.limit.group == load.limit.group => {
                LimitedSide { kind: BottleneckKind::SharedCpu, role: BOTH_ROLE, ..server }
            }
            (Some(server), Some(load)) if server.share() > load.share() => server,
            (_, Some(load)) => load,
            // In doubt the server may do more than a generator without CPU time asks of it.
            (Some(server), None) if self.generator_busy_share < GENERATOR_BUSY => server,
            (_, None) => return None,
        };
        let role = side.role.to_owned();
        let throttled_share = side.share();
        let limit = Evidence::CpuLimit { role, cpus: side.limit.cpus, throttled_share };
        Some(Bottleneck { kind: side.kind, evidence: vec![limit, self.server_use()] })
    }

    /// Rule 4: other programs held the CPUs of a server, or of the load, and nothing of them was left.
    pub(super) fn others(&self) -> Option<Bottleneck> {
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
        Some(Bottleneck { kind: BottleneckKind::OtherPrograms, evidence })
    }
}
