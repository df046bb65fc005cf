//! One thread of a server that has no CPU left while its other CPUs idle.

use dnslab_record::{Bottleneck, BottleneckKind, Evidence};

use super::figures::BottleneckFigures;
use super::servers::use_of;

/// From this share of a CPU on a thread has none left: like a worker's, its figure is that of one
/// thread on one CPU, from which interrupts and others take their part.
const THREAD_BUSY: f64 = 0.90;

impl BottleneckFigures {
    /// Rule 8: a thread with no CPU left, in a server that has. Of several servers the fullest thread
    /// decides.
    pub(super) fn thread(&self) -> Option<Bottleneck> {
        // With a single CPU a full thread is a full server, but for what the two readings differ by.
        let several = self.servers.iter().filter(|server| server.cpus > 1);
        let busiest = several.filter_map(|server| Some((server, server.threads.first()?)));
        let (server, first) =
            busiest.max_by(|(_, one), (_, two)| one.share.total_cmp(&two.share))?;
        if first.share < THREAD_BUSY {
            return None;
        }
        let thread = Evidence::ServerThread {
            role: server.role.clone(),
            thread: first.clone(),
            next: server.threads.get(1).cloned(),
        };
        let evidence = vec![thread, use_of(self.servers.iter())];
        Some(Bottleneck { kind: BottleneckKind::ServerThread, evidence })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnslab_record::{LoadMode, ThreadShare};

    use crate::bottleneck::ServerUse;
    use crate::bottleneck::tests::closed;

    fn server(role: &str, busy_share: f64, threads: &[(&str, f64)]) -> ServerUse {
        let threads = threads.iter().map(|&(name, share)| ThreadShare { name: name.into(), share });
        ServerUse {
            role: role.to_owned(),
            busy_share: Some(busy_share),
            cpus: 4,
            threads: threads.collect(),
            ..ServerUse::default()
        }
    }

    fn decide(servers: Vec<ServerUse>) -> Bottleneck {
        BottleneckFigures {
            mode: LoadMode::Closed { outstanding: 1 },
            clients: 100,
            due_qps: 50_000.0,
            offered_qps: 50_000.0,
            answered_qps: 50_000.0,
            answered: 500_000,
            mean_latency_ns: Some(2e6),
            servers,
            generator_busy_share: 0.4,
            generator_wanted_share: 0.4,
            send_lag_p50_ns: None,
            ..closed()
        }
        .bottleneck()
    }

    #[test]
    fn one_full_thread_of_several_is_the_limit() {
        let one = [("isc-loop-0000", 0.97), ("isc-loop-0001", 0.04)];
        let found = decide(vec![server("server", 0.26, &one)]);
        assert_eq!(found.kind, BottleneckKind::ServerThread);
        let share = |name: &str, share| ThreadShare { name: name.to_owned(), share };
        let evidence = Evidence::ServerThread {
            role: "server".to_owned(),
            thread: share("isc-loop-0000", 0.97),
            next: Some(share("isc-loop-0001", 0.04)),
        };
        assert_eq!(found.evidence[0], evidence);
        assert!(found.kind.has_servers_full());
        // A server of one thread on several CPUs.
        let alone = decide(vec![server("server", 0.25, &[("dnsmasq", 0.99)])]);
        assert_eq!(alone.kind, BottleneckKind::ServerThread);
        // All are full, or none is, or it is not known.
        let all = [("a", 0.97), ("b", 0.96), ("c", 0.95), ("d", 0.96)];
        assert_eq!(decide(vec![server("server", 0.96, &all)]).kind, BottleneckKind::ServerCpu);
        let none = [("a", 0.5), ("b", 0.5)];
        assert_eq!(decide(vec![server("server", 0.25, &none)]).kind, BottleneckKind::Window);
        assert_eq!(decide(vec![server("server", 0.25, &[])]).kind, BottleneckKind::Window);
    }

    #[test]
    fn the_thread_of_a_server_behind_is_named_with_its_server() {
        let found = decide(vec![
            server("server", 0.3, &[("front", 0.6)]),
            server("upstream", 0.3, &[("back", 0.95)]),
        ]);
        assert_eq!(found.kind, BottleneckKind::ServerThread);
        let Evidence::ServerThread { role, thread, .. } = &found.evidence[0] else { panic!() };
        assert_eq!((role.as_str(), thread.name.as_str()), ("upstream", "back"));
    }
}
