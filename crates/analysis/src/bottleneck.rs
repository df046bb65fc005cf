//! What bounded the answered rate of a run.

mod cpus_used;
mod figures;
mod others;
mod servers;
mod threads;
mod thresholds;

pub use cpus_used::CpusUsed;
pub(crate) use cpus_used::others_on_load_cpus;
use dnslab_record::Bottleneck;
pub use figures::{BottleneckFigures, TurnedAway};
pub(crate) use figures::{busiest, most_held};
pub use others::SERVER_WAITED;
pub(crate) use servers::share_with_load;
pub use servers::{ServerUse, WorkerUse};
pub(crate) use thresholds::{CONNECTIONS_HELD, GENERATOR_BUSY, RATE_MET, SERVER_BUSY};

impl BottleneckFigures {
    /// Names the bottleneck of a run. The first rule that fits decides:
    ///
    /// 1. **Rate**: an open loop that sent at least 99 % of what was intended and got answers to
    ///    at least 99 % of it. Nothing stood in its way, however busy the two sides were.
    /// 2. **Connections refused**: the server turned more than a tenth of the connections away, and at
    ///    least ten. Its clients wait to be let in then, whoever has CPU left.
    /// 3. **Server's CPU limit**: a server used up the CPU quota of its control group (or of one above it) in at
    ///    least half of the periods of the quota; **generator** if the load did so, and in no fewer of them;
    ///    **shared CPU** if one group above both has the quota. A worker at 90 % of its CPU goes before the
    ///    server's quota.
    /// 4. **Other programs**: they used at least 10 % of the CPUs of a server, nothing of those was left (90 %
    ///    or more were used), and of the time for which its threads could run they waited for a CPU for 10 % or
    ///    more. Or a load worker was on its CPU or waited for it for 90 % of the time, and others used at
    ///    least 10 % of a CPU of the load. Not if the busiest worker, or a server, had no CPU left by itself.
    /// 5. **Server CPU**: the server used at least 90 % of its CPUs. In a chain, the busiest of its
    ///    servers: **relay CPU** or **upstream CPU** if it is not the one under test, which may do
    ///    more then; **servers' CPU** if those that were pinned to CPUs in common used 90 % of them
    ///    together, and none of them alone. If the busiest worker was at
    ///    90 % or more too and not below that, it is the generator: the more saturated
    ///    of the two holds the other up, and in doubt the server may do more than was measured.
    /// 6. **Shared CPU**: servers and load workers that were pinned to CPUs in common used 90 % of
    ///    them together, and neither the servers nor a worker alone. Both may do more on CPUs of
    ///    their own.
    /// 7. **Generator**: its busiest worker used at least 90 % of a CPU, its own sockets dropped
    ///    more than 0.1 % of the answers, connections waited for their turn in it for more than 5 %
    ///    of the time (while no more than a tenth of the attempts failed, for then those on their
    ///    way wait for the server), or an open loop sent less than 99 % of what was intended.
    ///    The latter not over a stream with every worker below 50 %, on its CPU or waiting for it: then the
    ///    server did not take what was offered (connections or their buffers were full), which is unclear.
    /// 8. **One thread of the server**: it used at least 90 % of a CPU, while no server used all of
    ///    its CPUs.
    /// 9. **Server's socket buffer** or **network**: more than 0.1 % of the datagrams were lost,
    ///    those not counted that were answered late, while neither side was busy. This goes before
    ///    the window, which lost queries fill until they time out. It is the buffer if what the
    ///    server's full sockets dropped is at least half of what was lost, and else the network;
    ///    but on a loopback address no network loses anything, and that is unclear.
    /// 10. **Unclear** if more than 0.1 % of the queries were answered after their time-out: the
    ///     server did not answer in time, and did not use its CPUs either.
    /// 11. **Unclear** in a closed loop if a load worker was on its CPU or waited for it for 90 % of the
    ///     time, though not on it so long: something else had the CPU.
    /// 12. **Window**: a closed loop in which neither side was busy, and by Little's law the mean
    ///     number in flight (answered rate times mean latency) is the window within 25 %.
    /// 13. **Unclear** otherwise.
    ///
    /// Without the server's CPU figures rules 9, 11 and 12 cannot be told from a busy server, so they do
    /// not apply, and what would be unclear is **unknown**.
    ///
    /// Where the kernel keeps the time of interrupts apart from that of threads, it counts as used
    /// by the server and the workers on whose CPUs it was.
    #[must_use]
    pub fn bottleneck(&self) -> Bottleneck {
        self.rate()
            .or_else(|| self.turned_away())
            .or_else(|| self.cpu_limits())
            .or_else(|| self.others())
            .or_else(|| self.processors())
            .or_else(|| self.thread())
            .or_else(|| self.not_taken())
            .or_else(|| self.lost_datagrams())
            .or_else(|| self.not_in_time())
            .or_else(|| self.crowded())
            .or_else(|| self.window())
            .unwrap_or_else(|| Bottleneck { kind: self.nobody(), evidence: self.what_is_known() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnslab_record::{
        BottleneckKind, CpuLimit, CpuUse, Evidence, LoadMode, OpenPace, UNDER_TEST,
    };
    use dnslab_traffic::Pace;

    fn server(role: &str, busy_share: Option<f64>, cpus: usize) -> ServerUse {
        ServerUse { role: role.to_owned(), busy_share, cpus, ..ServerUse::default() }
    }

    fn used(busy_share: f64) -> Vec<ServerUse> {
        vec![server(UNDER_TEST, Some(busy_share), 1)]
    }

    fn unwatched() -> Vec<ServerUse> {
        vec![server(UNDER_TEST, None, 1)]
    }

    /// A closed loop of 4 x 100 that answers 100,000 qps, with nobody busy and nothing lost.
    pub(super) fn closed() -> BottleneckFigures {
        BottleneckFigures {
            mode: LoadMode::Closed { outstanding: 100 },
            clients: 4,
            due_qps: 100_000.0,
            offered_qps: 100_000.0,
            answered_qps: 100_000.0,
            answered: 1_000_000,
            mean_latency_ns: Some(4e6),
            is_stream: false,
            is_loopback: true,
            lost_datagrams: 0,
            lost_datagram_share: 0.0,
            late_share: 0.0,
            servers: vec![server(UNDER_TEST, Some(0.5), 1)],
            server_udp_drops: 0,
            workers: Vec::new(),
            generator_busy_share: 0.5,
            generator_wanted_share: 0.5,
            others_on_load_cpus: None,
            load_limit: None,
            generator_drops: 0,
            connections_held_share: 0.0,
            failed_connections_share: 0.0,
            turned_away: TurnedAway::default(),
            send_lag_p50_ns: Some(20_000),
        }
    }

    /// Figures of an open loop of 100,000 qps.
    fn open() -> BottleneckFigures {
        let mode = LoadMode::Open { rate_qps: 100_000.0, pace: OpenPace::constant(Pace::Constant) };
        BottleneckFigures { mode, ..closed() }
    }

    /// Checks the kind, and the evidence by its names on disk.
    #[track_caller]
    fn check(figures: BottleneckFigures, kind: BottleneckKind, evidence: &[&str]) {
        let found = figures.bottleneck();
        assert_eq!(found.kind, kind, "{found:?}");
        let name = |evidence: &Evidence| serde_json::to_value(evidence).unwrap()["figure"].clone();
        let names: Vec<_> = found.evidence.iter().map(name).collect();
        assert_eq!(names, evidence, "{found:?}");
    }

    #[test]
    fn rate() {
        check(open(), BottleneckKind::Rate, &["rate-met"]);
        let lossy = BottleneckFigures { answered_qps: 99_000.0, ..open() };
        check(lossy, BottleneckKind::Rate, &["rate-met"]);
        // However busy the two were, and whatever was lost below 1 %.
        let busy = BottleneckFigures {
            servers: used(0.99),
            generator_busy_share: 0.99,
            lost_datagram_share: 0.009,
            ..open()
        };
        check(busy, BottleneckKind::Rate, &["rate-met"]);
        let missed = BottleneckFigures { answered_qps: 98_999.0, ..open() };
        check(missed, BottleneckKind::Unclear, &["servers", "busiest-worker", "answered"]);
    }

    #[test]
    fn server_cpu() {
        let busy = || BottleneckFigures { servers: used(0.985), ..closed() };
        check(busy(), BottleneckKind::ServerCpu, &["servers"]);
        let two =
            BottleneckFigures { servers: vec![server(UNDER_TEST, Some(0.90), 2)], ..closed() };
        check(two, BottleneckKind::ServerCpu, &["servers"]);
        // The more saturated decides, both are named.
        let both = BottleneckFigures { generator_busy_share: 0.96, ..busy() };
        check(both, BottleneckKind::ServerCpu, &["servers", "busiest-worker"]);
        let both = BottleneckFigures { generator_busy_share: 0.99, ..busy() };
        check(both, BottleneckKind::Generator, &["busiest-worker", "servers"]);
        // In doubt the generator: the server may do more.
        let both = BottleneckFigures { generator_busy_share: 0.985, ..busy() };
        check(both, BottleneckKind::Generator, &["busiest-worker", "servers"]);
        // A worker below its own threshold is not saturated.
        let near =
            BottleneckFigures { servers: used(0.91), generator_busy_share: 0.89, ..closed() };
        check(near, BottleneckKind::ServerCpu, &["servers"]);
        // A busy server that drops and loses is the bottleneck, not the network.
        let lossy = BottleneckFigures { lost_datagram_share: 0.1, server_udp_drops: 5, ..busy() };
        check(lossy, BottleneckKind::ServerCpu, &["servers"]);
        // A rate missed with a busy server is the server's.
        let missed = BottleneckFigures { answered_qps: 80_000.0, servers: used(0.99), ..open() };
        check(missed, BottleneckKind::ServerCpu, &["servers"]);
    }

    #[test]
    fn generator() {
        let busy = |generator_busy_share| BottleneckFigures { generator_busy_share, ..closed() };
        check(busy(0.90), BottleneckKind::Generator, &["busiest-worker"]);
        check(busy(0.89), BottleneckKind::Window, &["in-flight", "servers"]);
        let drops = |generator_drops| BottleneckFigures { generator_drops, ..closed() };
        check(drops(1_001), BottleneckKind::Generator, &["generator-drops"]);
        check(drops(1_000), BottleneckKind::Window, &["in-flight", "servers"]);
        let behind = BottleneckFigures {
            offered_qps: 98_000.0,
            answered_qps: 98_000.0,
            send_lag_p50_ns: Some(1_500_000),
            ..open()
        };
        check(behind, BottleneckKind::Generator, &["rate-missed"]);
        // The generator watches itself, so it needs no figures of the server.
        let alone =
            BottleneckFigures { generator_busy_share: 1.0, servers: unwatched(), ..closed() };
        check(alone, BottleneckKind::Generator, &["busiest-worker"]);
    }

    fn slow(generator_busy_share: f64) -> BottleneckFigures {
        BottleneckFigures {
            offered_qps: 60_000.0,
            answered_qps: 60_000.0,
            is_stream: true,
            generator_busy_share,
            generator_wanted_share: generator_busy_share,
            ..open()
        }
    }

    #[test]
    fn a_stream_that_takes_no_more() {
        let evidence = ["not-taken", "servers", "busiest-worker"];
        check(slow(0.49), BottleneckKind::Unclear, &evidence);
        check(slow(0.5), BottleneckKind::Generator, &["rate-missed"]);
        // One that waits for its CPU is late by itself.
        let waits = BottleneckFigures { generator_wanted_share: 0.5, ..slow(0.1) };
        check(waits, BottleneckKind::Generator, &["rate-missed"]);
        // Datagrams are always taken.
        let datagrams = BottleneckFigures { is_stream: false, ..slow(0.49) };
        check(datagrams, BottleneckKind::Generator, &["rate-missed"]);
        let busy = BottleneckFigures { servers: used(0.95), ..slow(0.49) };
        check(busy, BottleneckKind::ServerCpu, &["servers"]);
        let unwatched = BottleneckFigures { servers: unwatched(), ..slow(0.49) };
        check(unwatched, BottleneckKind::Unknown, &evidence);
        // What was sent and not answered is another matter.
        let unanswered = BottleneckFigures { offered_qps: 100_000.0, ..slow(0.1) };
        check(unanswered, BottleneckKind::Unclear, &["servers", "busiest-worker", "answered"]);
    }

    #[test]
    fn lost_datagrams() {
        let evidence = ["lost", "servers"];
        // 12,000 of a million.
        let lossy = BottleneckFigures {
            lost_datagrams: 12_000,
            lost_datagram_share: 0.012,
            is_loopback: false,
            ..closed()
        };
        check(lossy.clone(), BottleneckKind::Network, &evidence);
        let drops = |server_udp_drops| BottleneckFigures { server_udp_drops, ..lossy.clone() };
        check(drops(12_000), BottleneckKind::ServerSocket, &evidence);
        check(drops(6_000), BottleneckKind::ServerSocket, &evidence);
        check(drops(5_999), BottleneckKind::Network, &evidence);
        let few =
            BottleneckFigures { lost_datagrams: 1_000, lost_datagram_share: 0.001, ..closed() };
        check(few, BottleneckKind::Window, &["in-flight", "servers"]);
        let missed =
            BottleneckFigures { mode: open().mode, answered_qps: 90_000.0, ..lossy.clone() };
        check(missed, BottleneckKind::Network, &evidence);
        let unwatched = BottleneckFigures { servers: unwatched(), ..lossy.clone() };
        let names = ["servers", "busiest-worker", "lost", "in-flight"];
        check(unwatched, BottleneckKind::Unknown, &names);
        let here =
            |server_udp_drops| BottleneckFigures { is_loopback: true, ..drops(server_udp_drops) };
        check(here(12_000), BottleneckKind::ServerSocket, &evidence);
        let names = ["lost", "lost-on-loopback", "servers"];
        check(here(0), BottleneckKind::Unclear, &names);
    }

    #[test]
    fn late_answers() {
        let late = || BottleneckFigures { late_share: 0.012, ..closed() };
        let evidence = ["late", "servers"];
        check(late(), BottleneckKind::Unclear, &evidence);
        let unwatched = BottleneckFigures { servers: unwatched(), ..late() };
        check(unwatched, BottleneckKind::Unknown, &evidence);
        let busy = BottleneckFigures { servers: used(0.95), ..late() };
        check(busy, BottleneckKind::ServerCpu, &["servers"]);
        let few = BottleneckFigures { late_share: 0.001, ..closed() };
        check(few, BottleneckKind::Window, &["in-flight", "servers"]);
        // Losses besides are the network's.
        let both = BottleneckFigures { lost_datagram_share: 0.012, is_loopback: false, ..late() };
        check(both, BottleneckKind::Network, &["lost", "servers", "late"]);
    }

    #[test]
    fn crowded() {
        let wanted = |share| BottleneckFigures { generator_wanted_share: share, ..closed() };
        let evidence = ["worker-waited", "servers", "busiest-worker", "in-flight"];
        check(wanted(0.95), BottleneckKind::Unclear, &evidence);
        check(wanted(0.89), BottleneckKind::Window, &["in-flight", "servers"]);
        // An open loop has no window, and sends late where that is so.
        check(
            BottleneckFigures { generator_wanted_share: 0.95, ..open() },
            BottleneckKind::Rate,
            &["rate-met"],
        );
        let unwatched = BottleneckFigures { servers: unwatched(), ..wanted(0.95) };
        check(unwatched, BottleneckKind::Unknown, &["servers", "busiest-worker", "in-flight"]);
    }

    /// A quota of half a CPU that was used up in this share of its periods.
    fn quota(group: &str, throttled: u64) -> Option<CpuLimit> {
        let group = group.to_owned();
        Some(CpuLimit { cpus: 0.5, group, periods: 100, throttled, throttled_ns: 1 })
    }

    fn limited(of_server: u64, of_load: u64) -> BottleneckFigures {
        let mut figures = closed();
        figures.servers[0].limit = quota("/server", of_server);
        figures.load_limit = quota("/load", of_load);
        figures
    }

    #[test]
    fn a_quota_that_is_used_up_goes_before_all_but_the_rate() {
        let evidence = ["cpu-limit", "servers"];
        check(limited(50, 0), BottleneckKind::ServerCpuLimit, &evidence);
        check(limited(49, 0), BottleneckKind::Window, &["in-flight", "servers"]);
        check(limited(0, 50), BottleneckKind::Generator, &evidence);
        check(limited(60, 59), BottleneckKind::ServerCpuLimit, &evidence);
        check(limited(60, 60), BottleneckKind::Generator, &evidence);
        // The group that has the quota is above both.
        let mut both = limited(60, 60);
        both.load_limit = quota("/server", 60);
        check(both, BottleneckKind::SharedCpu, &evidence);
        // A server whose quota is nearly its CPU: the quota is why it has no more.
        let busy = BottleneckFigures { servers: used(0.95), ..limited(0, 0) };
        check(busy.clone(), BottleneckKind::ServerCpu, &["servers"]);
        let mut full = busy;
        full.servers[0].limit = quota("/server", 90);
        check(full, BottleneckKind::ServerCpuLimit, &evidence);
        let generator = BottleneckFigures { generator_busy_share: 0.95, ..limited(60, 0) };
        check(generator, BottleneckKind::Generator, &["busiest-worker"]);
        check(
            BottleneckFigures { mode: open().mode, ..limited(90, 90) },
            BottleneckKind::Rate,
            &["rate-met"],
        );
        // Any server of a chain.
        let mut chain = closed();
        chain.servers.push(server("upstream", Some(0.1), 1));
        chain.servers[1].limit = quota("/upstream", 77);
        let found = chain.bottleneck();
        let expected =
            Evidence::CpuLimit { role: "upstream".to_owned(), cpus: 0.5, throttled_share: 0.77 };
        assert_eq!((found.kind, &found.evidence[0]), (BottleneckKind::ServerCpuLimit, &expected));
    }

    fn held(waited: Option<f64>, by_others: f64, by_all: f64) -> BottleneckFigures {
        let mut figures = closed();
        figures.servers[0].waited_share = waited;
        figures.servers[0].cpus_used = Some(CpusUsed { by_all, by_others });
        figures
    }

    #[test]
    fn other_programs_on_the_cpus_of_a_server_or_of_the_load() {
        let evidence = ["server-held-up", "servers", "busiest-worker"];
        check(held(Some(0.5), 0.5, 1.0), BottleneckKind::OtherPrograms, &evidence);
        check(held(None, 0.5, 1.0), BottleneckKind::OtherPrograms, &evidence);
        check(held(Some(0.1), 0.1, 0.9), BottleneckKind::OtherPrograms, &evidence);
        for short in [
            held(Some(0.09), 0.5, 1.0),
            held(Some(0.5), 0.09, 1.0),
            held(Some(0.5), 0.5, 0.89),
            closed(),
        ] {
            check(short, BottleneckKind::Window, &["in-flight", "servers"]);
        }
        // One that has no CPU left by itself is the bottleneck by itself.
        let full = |busy| {
            let mut figures = held(Some(0.5), 0.1, 1.0);
            figures.servers[0].busy_share = Some(busy);
            figures
        };
        check(full(0.90), BottleneckKind::ServerCpu, &["servers"]);
        check(full(0.89), BottleneckKind::OtherPrograms, &evidence);
        let generator =
            BottleneckFigures { generator_busy_share: 0.9, ..held(Some(0.5), 0.5, 1.0) };
        check(generator, BottleneckKind::Generator, &["busiest-worker"]);
        // A load whose workers others held, and one that sent too little because of that.
        let load = |others_on_load_cpus| BottleneckFigures {
            generator_wanted_share: 0.95,
            others_on_load_cpus,
            ..closed()
        };
        let evidence = ["worker-waited", "servers", "busiest-worker"];
        check(load(Some(0.1)), BottleneckKind::OtherPrograms, &evidence);
        check(
            load(Some(0.09)),
            BottleneckKind::Unclear,
            &["worker-waited", "servers", "busiest-worker", "in-flight"],
        );
        let missed =
            BottleneckFigures { mode: open().mode, offered_qps: 50_000.0, ..load(Some(0.5)) };
        check(missed, BottleneckKind::OtherPrograms, &evidence);
        let rate = BottleneckFigures { mode: open().mode, ..held(Some(0.5), 0.5, 1.0) };
        check(rate, BottleneckKind::Rate, &["rate-met"]);
    }

    #[test]
    fn window() {
        let at = |ms| BottleneckFigures { mean_latency_ns: Some(ms * 1e6), ..closed() };
        check(at(4.0), BottleneckKind::Window, &["in-flight", "servers"]);
        check(at(3.0), BottleneckKind::Window, &["in-flight", "servers"]);
        check(at(5.0), BottleneckKind::Window, &["in-flight", "servers"]);
        let unclear = ["servers", "busiest-worker", "in-flight"];
        check(at(2.9), BottleneckKind::Unclear, &unclear);
        check(at(5.1), BottleneckKind::Unclear, &unclear);
        let none = BottleneckFigures { answered_qps: 0.0, mean_latency_ns: None, ..closed() };
        check(none, BottleneckKind::Unclear, &unclear);
        let unwatched = BottleneckFigures { servers: unwatched(), ..closed() };
        check(unwatched, BottleneckKind::Unknown, &unclear);
    }

    #[test]
    fn connections_that_are_turned_away() {
        let with = |refused, waited, busy_share| BottleneckFigures {
            turned_away: TurnedAway { attempted: 1_000, refused, waited },
            servers: used(busy_share),
            ..closed()
        };
        let named = ["turned-away", "servers", "busiest-worker"];
        for (refused, waited) in [(101, 0), (0, 101), (60, 60), (1_000, 0)] {
            check(with(refused, waited, 0.5), BottleneckKind::ConnectionsRefused, &named);
            // Whoever has no CPU left: the CPU time is that of turning them away, too.
            check(with(refused, waited, 0.99), BottleneckKind::ConnectionsRefused, &named);
        }
        check(with(100, 0, 0.99), BottleneckKind::ServerCpu, &["servers"]);
        let few = TurnedAway { attempted: 20, refused: 9, waited: 0 };
        let few = BottleneckFigures { turned_away: few, ..closed() };
        check(few, BottleneckKind::Window, &["in-flight", "servers"]);
        // Nothing stood in the way of what was asked.
        let met = BottleneckFigures { mode: open().mode, ..with(500, 0, 0.5) };
        check(met, BottleneckKind::Rate, &["rate-met"]);
    }

    #[test]
    fn the_servers_of_a_chain() {
        let chain = |own, upstream| BottleneckFigures {
            servers: vec![server(UNDER_TEST, Some(own), 1), server("upstream", Some(upstream), 2)],
            ..closed()
        };
        check(chain(0.61, 0.97), BottleneckKind::UpstreamCpu, &["servers"]);
        check(chain(0.97, 0.61), BottleneckKind::ServerCpu, &["servers"]);
        check(chain(0.5, 0.61), BottleneckKind::Window, &["in-flight", "servers"]);
        // The fullest is named first.
        let used =
            |role: &str, share, cpus| CpuUse { role: role.into(), busy_share: Some(share), cpus };
        let servers = vec![used("upstream", 0.97, 2), used(UNDER_TEST, 0.61, 1)];
        let found = chain(0.61, 0.97).bottleneck();
        assert_eq!(found.evidence, [Evidence::Servers { servers }]);
        // The more saturated of generator and upstream.
        let both = BottleneckFigures { generator_busy_share: 0.98, ..chain(0.61, 0.97) };
        check(both, BottleneckKind::Generator, &["busiest-worker", "servers"]);
        // On one CPU in common.
        let mut shared = chain(0.5, 0.46);
        for server in &mut shared.servers {
            (server.cpus, server.pinned) = (1, vec![0]);
        }
        check(shared, BottleneckKind::ServersCpu, &["servers-together", "servers"]);
    }

    /// The server is on CPU 1, and the one worker on this one.
    fn with(busy_share: f64, cpu: Option<usize>) -> BottleneckFigures {
        let mut figures = closed();
        figures.servers[0].pinned = vec![1];
        figures.workers = vec![WorkerUse { cpu, busy_share }];
        BottleneckFigures { generator_busy_share: busy_share, ..figures }
    }

    #[test]
    fn a_cpu_that_a_server_shares_with_the_load() {
        let evidence = ["servers-and-load", "servers", "busiest-worker"];
        check(with(0.42, Some(1)), BottleneckKind::SharedCpu, &evidence);
        check(with(0.42, Some(0)), BottleneckKind::Window, &["in-flight", "servers"]);
        check(with(0.42, None), BottleneckKind::Window, &["in-flight", "servers"]);
        check(with(0.3, Some(1)), BottleneckKind::Window, &["in-flight", "servers"]);
        // Either alone goes before.
        check(with(0.95, Some(1)), BottleneckKind::Generator, &["busiest-worker"]);
        let lossy = BottleneckFigures { lost_datagram_share: 0.1, ..with(0.42, Some(1)) };
        check(lossy, BottleneckKind::SharedCpu, &["servers-and-load", "servers", "busiest-worker"]);
        let rate = BottleneckFigures { mode: open().mode, ..with(0.42, Some(1)) };
        check(rate, BottleneckKind::Rate, &["rate-met"]);
    }
}
