//! What an agent may do.

use dnslab_lab::GuardProgram;
use dnslab_load::{Job, Share};
use dnslab_protocol::{Failure, Role};
use dnslab_settings::Load;
use dnslab_wire::ServerAddresses;

/// What an agent may do. It is decided on its host.
#[derive(Clone, Debug, PartialEq)]
pub struct Permission {
    /// Nothing else is done.
    pub roles: Vec<Role>,
    /// Of servers that are started here, only what is installed: no program, folder or configuration of the
    /// coordinator's.
    pub is_bounded: bool,
    /// Servers that a load may ask; `None` for any.
    pub targets: Option<ServerAddresses>,
    /// Queries per second that the share of a load may ask; `None` for any, and for closed loops.
    pub max_rate_qps: Option<f64>,
    /// How programs are started there.
    pub guard: GuardProgram,
}

/// What shares of loads use here together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Use {
    workers: u64,
    /// Connections of their clients.
    connections: u64,
    /// Queries per second at most, each as often as it may be asked; `None` with a closed loop among them.
    rate_qps: Option<f64>,
}

impl Use {
    pub(crate) const NONE: Self = Self { workers: 0, connections: 0, rate_qps: Some(0.0) };

    pub(crate) fn of(job: &Job, share: Share) -> Self {
        let Load { mode, clients, connections, .. } = &job.settings;
        let part = f64::from(share.count) / f64::from(job.workers);
        let asked = f64::from(job.attempts().count());
        let connections = u64::from(*clients) * u64::from(*connections);
        Self {
            workers: share.count.into(),
            connections: connections * u64::from(share.count) / u64::from(job.workers),
            // What played clients ask, and when, the coordinator decides as they do.
            rate_qps: mode
                .rate()
                .filter(|_| !mode.is_played())
                .map(|rate| rate.highest() * part * asked),
        }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            workers: self.workers + other.workers,
            connections: self.connections + other.connections,
            rate_qps: self.rate_qps.zip(other.rate_qps).map(|(one, other)| one + other),
        }
    }
}

/// Workers and connections of all shares together, at most.
const MAX_HOST_WORKERS: u64 = 4_096;
const MAX_HOST_CONNECTIONS: u64 = 10_000_000;

impl Permission {
    /// Whether a share of a load is allowed here.
    pub(crate) fn check(&self, job: &Job) -> Result<(), Failure> {
        if job.tells && self.is_bounded {
            return Err(Failure::of(
                "its host does not allow it to keep what each query is told (`dnslab agent --allow`): compare no answers \
                 there",
            ));
        }
        if let Some(targets) = &self.targets {
            let others = job.others.iter().chain(job.further.iter().flatten());
            let mut all = std::iter::once(job.target).chain(others.map(|other| other.target));
            if let Some(outside) = all.find(|target| !targets.contains(*target)) {
                return Err(Failure::of(format!(
                    "its host does not allow it to ask {outside} (`dnslab agent --targets`)"
                )));
            }
        }
        Ok(())
    }

    /// Whether what all shares use together is allowed here.
    pub(crate) fn check_use(&self, all: Use) -> Result<(), Failure> {
        if all.workers > MAX_HOST_WORKERS || all.connections > MAX_HOST_CONNECTIONS {
            return Err(Failure::of(format!(
                "it has {MAX_HOST_WORKERS} workers and {MAX_HOST_CONNECTIONS} connections at most"
            )));
        }
        let Some(max_qps) = self.max_rate_qps else { return Ok(()) };
        match all.rate_qps {
            Some(rate_qps) if rate_qps <= max_qps => Ok(()),
            Some(rate_qps) => Err(Failure::of(format!(
                "its host does not allow it to ask {rate_qps:.0} queries per second, but {max_qps} at most (`dnslab \
                 agent --max-rate`)"
            ))),
            None => Err(Failure::of(
                "its host allows loads with a rate only: no closed loop, capture or population (`dnslab agent --max-rate`)",
            )),
        }
    }
}
