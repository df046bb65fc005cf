//! The ruler is measured first: the embedded responder plays a known delay, loss and stall, and the
//! engine must give them back.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dnslab_lab::{GuardProgram, Ports, ServerKind, ServerSpec, ZoneFile, cpus, ports};
use dnslab_load::{LoadError, LoadResult, LoadSpec, Mode};
use dnslab_measure::Histogram;
use dnslab_traffic::{Pace, QueryList, Selection, SyntheticZone};
use dnslab_wire::{QueryOptions, Transport};
use domain::base::Name;

use super::target::{Target, TargetError, start_with_run_authority, write_zone};

/// Relative error that a quantile may have, besides the machine's own floor.
const TOLERANCE: f64 = 0.03;

/// Queries per second: low enough that nothing queues, enough for a 0.99 quantile in two seconds.
const RATE: f64 = 2_000.0;

/// Measured time of one load.
const DURATION: Duration = Duration::from_secs(2);

/// Each figure is the median of this many loads: another guest of the machine may spoil one.
const REPEATS: usize = 3;

/// One figure that was programmed and measured.
#[derive(Clone, Debug, PartialEq)]
pub struct RulerCheck {
    /// What was programmed, and which figure of it this is.
    pub name: String,
    /// The figure as it must come out, with its unit.
    pub expected: String,
    /// The figure as it came out.
    pub measured: String,
    /// How far they may differ, and why so far.
    pub allowed: String,
    /// Whether they differ by no more.
    pub passed: bool,
}

/// What the ruler test found.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// All checks, in the order in which they were made.
    pub checks: Vec<RulerCheck>,
}

impl Calibration {
    /// True if the engine gave back everything that was programmed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.passed)
    }
}

/// Why the ruler could not be measured at all.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// The responder did not start.
    #[error("cannot start the responder: {0}")]
    Server(String),
    /// The load did not begin.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The CPUs cannot be divided.
    #[error(transparent)]
    Cpus(#[from] cpus::CpuError),
}

impl From<TargetError> for CalibrationError {
    fn from(error: TargetError) -> Self {
        Self::Server(error.to_string())
    }
}

/// Measures the ruler. Needs `folder` for the responder's state, and about a minute. `observe` is
/// told of each check as it is made.
///
/// # Errors
/// When the responder or a load cannot be started; a check that fails is no error.
pub fn calibrate(
    guard: &GuardProgram,
    folder: &Path,
    observe: &mut dyn FnMut(&RulerCheck),
) -> Result<Calibration, CalibrationError> {
    let ruler = Ruler::new(guard, folder);
    let mut checks = Vec::new();
    let mut note = |found: Vec<RulerCheck>| {
        found.iter().for_each(&mut *observe);
        checks.extend(found);
    };
    // Some tens of milliseconds, what a client far away sees: 3 % of them are more than the
    // scheduling noise of a virtual machine, whose 0.99 quantile is of the order of a millisecond.
    for transport in Transport::ALL {
        note(ruler.delay(transport, "40ms", [40.0, 40.0])?);
    }
    // Quantiles of the uniform distribution: a + q (b - a).
    note(ruler.delay(Transport::Udp, "uniform:20ms..60ms", [40.0, 59.6])?);
    // Quantiles of the normal distribution: mean + deviation * 2.3263 for q = 0.99.
    note(ruler.delay(Transport::Udp, "normal:40ms,4ms", [40.0, 49.305])?);
    for transport in Transport::ALL {
        note(vec![ruler.loss(transport, 0.02)?]);
    }
    note(ruler.stall(Duration::from_millis(200))?);
    Ok(Calibration { checks })
}

struct Ruler<'a> {
    guard: &'a GuardProgram,
    folder: &'a Path,
    zone: SyntheticZone,
    queries: Arc<QueryList>,
}

impl<'a> Ruler<'a> {
    fn new(guard: &'a GuardProgram, folder: &'a Path) -> Self {
        let name = Name::from_str("ruler.test").expect("the name is a constant");
        let zone = SyntheticZone::new(name, 1_000, Duration::from_secs(60))
            .expect("the numbers are constants");
        let queries = Arc::new(QueryList::from_zone(&zone, &QueryOptions::default()));
        Self { guard, folder, zone, queries }
    }

    /// Medians of the programmed delay's quantiles 0.5 and 0.99 against `expected_ms`. The floor is
    /// what the same load sees of the machine itself: what a delay of 1 ms takes beyond 1 ms. (A
    /// load without a delay would leave out the responder's timer, whose lateness is the machine's
    /// too, and no fault of the engine.)
    fn delay(
        &self,
        transport: Transport,
        program: &str,
        expected_ms: [f64; 2],
    ) -> Result<Vec<RulerCheck>, CalibrationError> {
        let mut floor = [Vec::new(), Vec::new()];
        let mut measured = [Vec::new(), Vec::new()];
        for repeat in 0..REPEATS {
            let short = self.load(transport, &["--delay", "1ms"], repeat)?.measured.latency;
            let with = self.load(transport, &["--delay", program], repeat)?.measured.latency;
            for (place, quantile) in [0.5, 0.99].into_iter().enumerate() {
                floor[place].push(milliseconds(&short, quantile) - 1.0);
                measured[place].push(milliseconds(&with, quantile));
            }
        }
        let check = |place: usize, quantile: &str| {
            let (floor, measured) = (median(&floor[place]), median(&measured[place]));
            let expected = expected_ms[place];
            let low = expected * (1.0 - TOLERANCE);
            let high = expected * (1.0 + TOLERANCE) + floor;
            RulerCheck {
                name: format!("{transport}, delay {program}: {quantile} of the latency"),
                expected: format!("{expected:.3} ms"),
                measured: format!("{measured:.3} ms"),
                allowed: format!("3 %, and the machine's own {floor:.3} ms"),
                passed: (low..=high).contains(&measured),
            }
        };
        Ok(vec![check(0, "p50"), check(1, "p99")])
    }

    /// The share of lost queries against its binomial interval.
    fn loss(&self, transport: Transport, share: f64) -> Result<RulerCheck, CalibrationError> {
        let program = share.to_string();
        let outcomes = self.load(transport, &["--loss", &program], 0)?.measured.counters.outcomes;
        let due = outcomes.due as f64;
        // The 99.9 % interval of the binomial distribution.
        let allowed = 3.29 * (share * (1.0 - share) / due).sqrt();
        let measured = outcomes.lost_share();
        Ok(RulerCheck {
            name: format!("{transport}, loss {} %: lost queries", share * 100.0),
            expected: format!("{:.3} %", share * 100.0),
            measured: format!("{:.3} %", measured * 100.0),
            allowed: format!("{:.3} %: the 99.9 % interval of {due} queries", allowed * 100.0),
            passed: (measured - share).abs() <= allowed,
        })
    }

    /// One stall of the whole server: the open loop's latency must show its full length, and the
    /// queries sent after it must not show it at all.
    fn stall(&self, length: Duration) -> Result<Vec<RulerCheck>, CalibrationError> {
        let program = format!("at=1s,length={}ms", length.as_millis());
        let length_ms = length.as_secs_f64() * 1e3;
        let (mut largest, mut delayed, mut after) = (Vec::new(), Vec::new(), Vec::new());
        for repeat in 0..REPEATS {
            let result = self.load(Transport::Udp, &["--stall", &program], repeat)?;
            let latency = &result.measured.latency;
            largest.push(milliseconds(latency, 1.0));
            let half = u64::try_from(length.as_nanos() / 2).unwrap_or(u64::MAX);
            delayed.push((1.0 - latency.share_at_most(half)) * latency.len() as f64);
            after.push(p99_after_the_stall(&result, length));
        }
        let (largest, delayed, after) = (median(&largest), median(&delayed), median(&after));
        // The schedule goes on through the stall: queries that were due in its first half wait for
        // more than half its length. One that a closed loop would not even have sent.
        let due_in_half = RATE * length.as_secs_f64() / 2.0;
        Ok(vec![
            RulerCheck {
                name: format!("udp, a stall of {length_ms} ms: largest latency"),
                expected: format!("{length_ms:.0} ms"),
                measured: format!("{largest:.1} ms"),
                allowed: "10 %".to_owned(),
                passed: (largest - length_ms).abs() <= 0.1 * length_ms,
            },
            RulerCheck {
                name: "udp, the same stall: queries that waited for more than half of it"
                    .to_owned(),
                expected: format!("{due_in_half:.0}"),
                measured: format!("{delayed:.0}"),
                allowed: "10 %".to_owned(),
                passed: (delayed - due_in_half).abs() <= 0.1 * due_in_half,
            },
            RulerCheck {
                name: "udp, the same stall: p99 of the queries sent after it".to_owned(),
                expected: "no trace of it".to_owned(),
                measured: format!("{after:.3} ms"),
                allowed: format!("a tenth of the stall, {:.0} ms", length_ms / 10.0),
                passed: after <= length_ms / 10.0,
            },
        ])
    }

    /// One load in an open loop at a constant rate, on a responder with these arguments.
    fn load(
        &self,
        transport: Transport,
        arguments: &[&str],
        repeat: usize,
    ) -> Result<LoadResult, CalibrationError> {
        let split = cpus::split(&cpus::allowed(), None, None)?;
        let target = self.server(transport, arguments, &split.server)?;
        let spec = LoadSpec {
            target: target.address,
            transport,
            clients: 4,
            mode: Mode::Open { rate_qps: RATE, pace: Pace::Constant },
            duration: DURATION,
            warm_up: Duration::from_millis(300),
            timeout: Duration::from_millis(500),
            workers: 1,
            cpus: split.load,
            queries: Arc::clone(&self.queries),
            selection: Selection::Uniform,
            seed: repeat as u64,
            expected: Some(dnslab_load::Expected { rcode: 0, answers: 1 }),
            tls: target.tls.clone(),
            horizon: Duration::ZERO,
        };
        let result = dnslab_load::run(&spec, &AtomicBool::new(false), &mut |_| {})?;
        if let Some(server) = target.server {
            server.stop().map_err(TargetError::from)?;
        }
        Ok(result)
    }

    fn server(
        &self,
        transport: Transport,
        arguments: &[&str],
        cpus: &[usize],
    ) -> Result<Target, CalibrationError> {
        let address = std::net::Ipv4Addr::LOCALHOST.into();
        let free: Ports = ports::free(address)
            .map_err(|source| TargetError::Io { path: PathBuf::from("127.0.0.1"), source })?;
        let spec = ServerSpec {
            kind: ServerKind::Embedded,
            directory: self.folder.to_owned(),
            zone: ZoneFile {
                origin: "ruler.test".to_owned(),
                path: write_zone(&self.zone, "ruler.test", self.folder)?,
            },
            address,
            ports: free,
            transports: vec![transport],
            threads: 1,
            cpus: cpus.to_vec(),
            binary: None,
            extra: (!arguments.is_empty()).then(|| arguments.join(" ")),
            delay: None,
            loss: None,
        };
        Ok(start_with_run_authority(&spec, transport, self.guard)?)
    }
}

/// The largest p99 of the intervals that began after the stall was over. The stall begins one
/// second after the responder's first query, which is that of the readiness probe, so a little
/// before one second of the timeline; one interval of grace lets the queue drain.
fn p99_after_the_stall(result: &LoadResult, length: Duration) -> f64 {
    let over = Duration::from_millis(1_200) + length;
    let over = u64::try_from(over.as_nanos()).unwrap_or(u64::MAX);
    let after = result.measured.intervals.iter().filter(|interval| interval.at_ns >= over);
    let p99 = after.filter_map(|interval| interval.p99_ns);
    p99.max().map_or(f64::INFINITY, |ns| ns as f64 / 1e6)
}

fn milliseconds(latency: &Histogram, quantile: f64) -> f64 {
    latency.quantile_ns(quantile).map_or(f64::NAN, |ns| ns as f64 / 1e6)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
