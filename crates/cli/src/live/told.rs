//! Loads that tests make up, as the model is told of them.

use std::time::Duration;

use dnslab_figures::{ByPhase, Counters, Histogram, Interval, Outcomes};
use dnslab_record::{CaseId, LiveInterval, LiveLimit, LiveLoad, LiveServer, LoadMode, LoadPart};

use super::view::{Kind, Latest, Model};

pub(super) const TENTH: u64 = 100_000_000;

pub(super) fn kind(name: &str, mode: LoadMode) -> Kind {
    let is_stream = name != "udp";
    let how = "udp, 100 clients".to_owned();
    Kind { name: name.to_owned(), how, mode, clients: 100, is_stream, has_more_servers: false }
}

/// What a load has told in its first tenths of a second: a warm-up of two seconds, then a window of ten.
pub(super) struct Told {
    pub(super) name: &'static str,
    pub(super) tenths: u64,
    pub(super) qps: u64,
    /// Queries of each tenth of a second in the window that time out.
    pub(super) lost: u64,
    /// Queries of the warm-up that time out in the first tenth of the window.
    pub(super) lost_before: u64,
    /// CPU use of the server, in thousandths.
    pub(super) busy: u64,
    /// How long its threads wait for a CPU, in thousandths of the time.
    pub(super) waited: u64,
    /// In how many of 100 periods its CPU quota is used up; `None` without one.
    pub(super) throttled: Option<u64>,
    pub(super) part: LoadPart,
}

impl Told {
    /// Returns the seconds that were over on the way.
    pub(super) fn feed(&self, model: &mut Model, began: Duration) -> Vec<Latest> {
        let mut seconds = Vec::new();
        let mut counters = ByPhase::<Counters>::default();
        for number in 0..self.tenths {
            // Rate and latency move a little, the same each time.
            let wave = (number * 7 % 13) * self.qps / 1_000;
            let answered = self.qps / 10 - wave;
            let is_warm_up = number < 20;
            let lost = if is_warm_up { 0 } else { self.lost };
            let mut latency = Histogram::new();
            let base = 80_000 + (number * 11 % 17) * 2_000;
            let (slower, slowest) = (answered * 8 / 100, answered * 2 / 100);
            latency.record_many_ns(base, answered - slower - slowest);
            latency.record_many_ns(base * 2, slower);
            latency.record_many_ns(base * 12, slowest);
            latency.record_many_ns(2_000_000_000, lost);
            let due = answered + lost;
            let phase = if is_warm_up { &mut counters.warm_up } else { &mut counters.measured };
            let in_flight = 100;
            phase.merge(&Counters {
                outcomes: Outcomes { due, answered, timed_out: lost, ..Outcomes::default() },
                sent: due,
                ..Counters::default()
            });
            let codes = &mut phase.answers.rcodes;
            *codes.entry("NOERROR".to_owned()).or_default() += answered - answered / 50;
            *codes.entry("NXDOMAIN".to_owned()).or_default() += answered / 50;
            let mut counters = counters.clone();
            counters.measured.outcomes.due += in_flight;
            counters.measured.connections.opened = 100;
            let interval = Interval {
                at_ns: number * TENTH,
                length_ns: TENTH,
                due,
                sent: due,
                answered,
                lost: lost + if number == 20 { self.lost_before } else { 0 },
                p50_ns: latency.quantile_ns(0.5),
                p95_ns: latency.quantile_ns(0.95),
                p99_ns: latency.quantile_ns(0.99),
                ..Interval::default()
            };
            let latest = LiveInterval {
                interval,
                latency,
                counters,
                busiest_worker_ns: (number + 1) * TENTH * 64 / 100,
                window_ns: 20 * TENTH..120 * TENTH,
                began_unix_ns: 0,
            };
            let server = LiveServer {
                cpu_ns: (number + 1) * TENTH * self.busy / 1_000,
                cpu_share: Some(self.busy as f64 / 1_000.0),
                cpus: 1,
                memory_octets: 20 << 20,
                // All that is lost was dropped there.
                udp_drops: self.lost * number.saturating_sub(19),
                waited_ns: Some((number + 1) * TENTH * self.waited / 1_000),
                limit: self.throttled.map(|share| LiveLimit {
                    cpus: 0.5,
                    periods: (number + 1) * 100,
                    throttled: (number + 1) * share,
                }),
            };
            let live = LiveLoad {
                part: self.part,
                latest: &latest,
                server: Some(server),
                load_cpus: Vec::new(),
            };
            let passed = Duration::from_nanos((number + 1) * TENTH);
            seconds.extend(model.interval(self.name, &live, began + passed));
        }
        seconds
    }
}

pub(super) fn told(name: &'static str, tenths: u64, qps: u64) -> Told {
    Told {
        name,
        tenths,
        qps,
        lost: 0,
        lost_before: 0,
        busy: 985,
        waited: 0,
        throttled: None,
        part: LoadPart::Main,
    }
}

pub(super) fn closed() -> LoadMode {
    LoadMode::Closed { outstanding: 1 }
}

pub(super) fn case(variant: &str, repetition: u32) -> CaseId {
    CaseId { variant: variant.to_owned(), repetition }
}
