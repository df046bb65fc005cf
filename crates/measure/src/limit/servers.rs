//! The CPUs of all servers of a chain: which of them was at its end.

use std::collections::BTreeSet;

use super::{LimitKind, SERVER_BUSY};
use crate::{ChainPart, Measured, ServerFacts, UNDER_TEST};

/// What one server used of its CPUs over the measured window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerUse {
    /// [`UNDER_TEST`], or the role of the [`ChainPart`].
    pub role: String,
    /// CPU use in [0, 1] of the CPUs that it was given; `None` if it was not watched.
    pub busy_share: Option<f64>,
    /// How many CPUs it was given.
    pub cpus: usize,
    /// Which they are; empty if it was not pinned.
    pub pinned: Vec<usize>,
}

impl ServerUse {
    /// The servers of a run, that under test first.
    pub(super) fn of(server: &ServerFacts, chain: &[ChainPart], measured: &Measured) -> Vec<Self> {
        let (from, to) = measured.window();
        let under_test = Self {
            role: UNDER_TEST.to_owned(),
            busy_share: measured.server_busy_share(),
            cpus: measured.resources.cpus,
            pinned: server.cpus.clone(),
        };
        let behind = chain.iter().map(|part| Self {
            role: part.role.clone(),
            busy_share: part.resources.busy_share(from, to),
            cpus: part.resources.cpus,
            pinned: part.server.cpus.clone(),
        });
        std::iter::once(under_test).chain(behind).collect()
    }

    /// The limit that this server is when it has no CPU left.
    fn kind(&self) -> LimitKind {
        match self.role.as_str() {
            UNDER_TEST => LimitKind::ServerCpu,
            "relay" => LimitKind::RelayCpu,
            _ => LimitKind::UpstreamCpu,
        }
    }
}

/// The server that had no CPU left, or several that had none left together, with the busy share.
///
/// Of several the busiest holds the others up; of two that are alike the one behind, for then the
/// server under test may do more. Servers that were pinned to CPUs in common have none left from the
/// threshold on for the sum of what they used, though none of them reaches it.
pub(super) fn at_its_end(servers: &[ServerUse]) -> Option<(LimitKind, f64)> {
    let busy = servers.iter().filter_map(|server| Some((server.kind(), server.busy_share?)));
    let alone = busy.max_by(|(_, one), (_, two)| one.total_cmp(two));
    alone.filter(|(_, share)| *share >= SERVER_BUSY).or_else(|| {
        let share = share_together(servers)?;
        (share >= SERVER_BUSY).then_some((LimitKind::ServersCpu, share))
    })
}

/// What the servers that are pinned to a CPU in common with another used of all their CPUs, in
/// [0, 1]; `None` if there are no such servers, or one of them was not watched.
pub(super) fn share_together(servers: &[ServerUse]) -> Option<f64> {
    let shares = |place: usize| {
        let mut others = servers.iter().enumerate().filter(|(other, _)| *other != place);
        others.any(|(_, other)| servers[place].pinned.iter().any(|cpu| other.pinned.contains(cpu)))
    };
    let group: Vec<&ServerUse> =
        (0..servers.len()).filter(|place| shares(*place)).map(|place| &servers[place]).collect();
    let cpus: BTreeSet<usize> = group.iter().flat_map(|server| &server.pinned).copied().collect();
    let used = |server: &&ServerUse| Some(server.busy_share? * server.cpus.max(1) as f64);
    let used: f64 = group.iter().map(used).sum::<Option<f64>>()?;
    (!cpus.is_empty()).then(|| used / cpus.len() as f64)
}

/// The CPU use of servers as half a sentence: `the server used 97 % of 1 CPU, the upstream 61 % of 2
/// CPUs`. Of those that were not watched only the first is named.
pub(super) fn use_of<'a>(servers: impl Iterator<Item = &'a ServerUse>) -> String {
    let mut text = String::new();
    for server in servers {
        let (role, cpus) = (&server.role, server.cpus.max(1));
        let plural = if cpus == 1 { "" } else { "s" };
        text.push_str(&match (server.busy_share.map(percent), text.is_empty()) {
            (None, true) => format!("the {role}'s CPU was not watched"),
            (None, false) => String::new(),
            (Some(share), true) => format!("the {role} used {share} of {cpus} CPU{plural}"),
            (Some(share), false) => format!(", the {role} {share} of {cpus} CPU{plural}"),
        });
    }
    text
}

/// A share as a percentage: whole from 10 % on, with two digits below.
pub(super) fn percent(share: f64) -> String {
    if share >= 0.1 { format!("{:.0} %", share * 100.0) } else { format!("{:.2} %", share * 100.0) }
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
        }
    }

    #[track_caller]
    fn check(servers: &[ServerUse], expected: Option<(LimitKind, f64)>) {
        assert_eq!(at_its_end(servers), expected);
    }

    #[test]
    fn the_busiest_is_the_limit() {
        let chain = |own, relay, upstream| {
            [
                server("server", own, &[0]),
                server("relay", relay, &[1]),
                server("upstream", upstream, &[2]),
            ]
        };
        check(&chain(0.5, 0.6, 0.89), None);
        check(&chain(0.95, 0.6, 0.7), Some((LimitKind::ServerCpu, 0.95)));
        check(&chain(0.95, 0.96, 0.7), Some((LimitKind::RelayCpu, 0.96)));
        check(&chain(0.95, 0.96, 0.97), Some((LimitKind::UpstreamCpu, 0.97)));
        // Of two alike the one behind.
        check(&chain(0.95, 0.2, 0.95), Some((LimitKind::UpstreamCpu, 0.95)));
        let mut unwatched = chain(0.5, 0.5, 0.95);
        unwatched[0].busy_share = None;
        check(&unwatched, Some((LimitKind::UpstreamCpu, 0.95)));
    }

    #[test]
    fn servers_on_one_cpu_are_at_its_end_together() {
        let pair =
            |own, upstream| [server("server", own, &[0]), server("upstream", upstream, &[0])];
        check(&pair(0.5, 0.45), Some((LimitKind::ServersCpu, 0.95)));
        check(&pair(0.5, 0.25), None);
        // One that would be at its end alone is named.
        check(&pair(0.91, 0.05), Some((LimitKind::ServerCpu, 0.91)));
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
}
