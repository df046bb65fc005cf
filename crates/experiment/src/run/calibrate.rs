//! Checks the measuring side: the embedded responder plays a known delay, loss and stall, and the engine must
//! measure them.

mod judge;

use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dnslab_agent::Agents;
use dnslab_figures::Histogram;
use dnslab_lab::GuardProgram;
use dnslab_lab::cpus::{self, Cores};
use dnslab_load::{LoadResult, Member, Share};
use dnslab_record::CaseId;
use dnslab_settings::{Variant, check_text};
use dnslab_wire::Transport;
use dnslab_wire::units::share;
use judge::{MAX_FLOOR_MS, check_latency, check_rate};

use super::case::{Case, Up};
use super::error::TargetError;
use super::queries::QueryLists;
use super::split::Cpus;

pub use judge::CalibrationCheck;

/// Queries per second of the open loop: low enough that nothing queues, and enough for a 0.99 quantile in a
/// second.
const RATE: f64 = 2_000.0;

/// Measured time of one load in the open loop. All loads on six transports together take less than three
/// minutes.
const DURATION: Duration = Duration::from_millis(1_200);

/// Measured time of a load whose server stalls after a second: some of it must come after the stall.
const STALL_DURATION: Duration = Duration::from_secs(2);

/// Measured time of one load in the closed loop. Its queries travel in step, one window each 40 ms, so one
/// window more or less at the ends is 1.3 % of the rate.
const CLOSED_DURATION: Duration = Duration::from_secs(3);

const CLIENTS: u32 = 4;

/// Queries outstanding over all clients in the closed loop.
const WINDOW: u32 = 100;

/// Delay of the answers to the closed loop.
const CLOSED_DELAY: Duration = Duration::from_millis(40);

/// Loads for each figure, which is their median: another guest of the host may spoil one.
const REPEATS: usize = 3;

/// What [`calibrate`] found.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// In the order in which they were made.
    pub checks: Vec<CalibrationCheck>,
}

impl Calibration {
    /// True if the engine measured everything that was programmed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.passed)
    }
}

/// Why nothing could be calibrated.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// The responder did not start.
    #[error("cannot start the responder: {0}")]
    Server(String),
    /// The load did not begin, or did not come to its end.
    #[error("{0}")]
    Load(String),
    /// The CPUs cannot be divided.
    #[error(transparent)]
    Cpus(#[from] cpus::CpuError),
}

impl From<TargetError> for CalibrationError {
    fn from(error: TargetError) -> Self {
        Self::Server(error.to_string())
    }
}

/// Calibrates in less than three minutes. `folder` takes the responder's state. `observe` is told of each
/// check as it is made.
///
/// # Errors
/// When the responder or a load cannot be started. A failed check is no error.
pub fn calibrate(
    guard: &GuardProgram,
    folder: &Path,
    observe: &mut dyn FnMut(&CalibrationCheck),
) -> Result<Calibration, CalibrationError> {
    let programs = Programs::new(guard, folder)?;
    let mut checks = Vec::new();
    let mut note = |found: Vec<CalibrationCheck>| {
        found.iter().for_each(&mut *observe);
        checks.extend(found);
    };
    // Some tens of milliseconds, as a client far away sees. The 0.99 quantile of the scheduling noise of a
    // virtual machine is of the order of a millisecond, which is less than 3 % of them.
    let mut floors = Vec::new();
    for transport in Transport::ALL {
        let (checks, floor) = programs.delay(transport, "40ms", [40.0, 40.0])?;
        note(checks);
        floors.push((transport, floor));
    }
    // Quantiles of the uniform distribution: a + q (b - a).
    note(programs.delay(Transport::Udp, "uniform:20ms..60ms", [40.0, 59.6])?.0);
    // Quantiles of the normal distribution: mean + deviation * 2.3263 for q = 0.99.
    note(programs.delay(Transport::Udp, "normal:40ms,4ms", [40.0, 49.305])?.0);
    for (transport, floor) in floors {
        note(programs.window(transport, &floor)?);
    }
    for transport in Transport::ALL {
        note(vec![programs.loss(transport, 0.02)?]);
    }
    note(programs.stall(Duration::from_millis(200))?);
    Ok(Calibration { checks })
}

struct Programs<'a> {
    guard: &'a GuardProgram,
    folder: &'a Path,
    agents: Agents,
    lists: RefCell<QueryLists>,
    /// Of the closed loop: two, if there are CPUs for them.
    workers: usize,
}

impl<'a> Programs<'a> {
    fn new(guard: &'a GuardProgram, folder: &'a Path) -> Result<Self, CalibrationError> {
        let agents = Agents::new(guard.clone()).map_err(TargetError::from)?;
        let split = cpus::split(&cpus::allowed(), &Cores::of_this_machine(), None, None)?;
        let (lists, workers) = (RefCell::default(), split.load.len().clamp(1, 2));
        Ok(Self { guard, folder, agents, lists, workers })
    }

    /// Compares the medians of the quantiles 0.5 and 0.99 with `expected_ms`, and measures the floor of the
    /// machine: what the same load with a delay of 1 ms takes beyond 1 ms. A load without a delay would leave
    /// out the responder's timer, whose lateness is the machine's too and no fault of the engine.
    fn delay(
        &self,
        transport: Transport,
        program: &str,
        expected_ms: [f64; 2],
    ) -> Result<(Vec<CalibrationCheck>, Floor), CalibrationError> {
        let mut floor = [Vec::new(), Vec::new()];
        let mut mean = Vec::new();
        let mut measured = [Vec::new(), Vec::new()];
        for repeat in 0..REPEATS {
            let latency = |delay| {
                let result = self.load(transport, ("delay", delay), Loop::Open(DURATION), repeat);
                Ok::<_, CalibrationError>(result?.measured.latency)
            };
            let (short, with) = (latency("1ms")?, latency(program)?);
            mean.push(short.mean_ns().map_or(f64::NAN, |ns| ns / 1e6) - 1.0);
            for (place, quantile) in [0.5, 0.99].into_iter().enumerate() {
                floor[place].push(milliseconds(&short, quantile) - 1.0);
                measured[place].push(milliseconds(&with, quantile));
            }
        }
        let floor = floor.map(|values| median(&values));
        let checks = ["p50", "p99"].into_iter().enumerate().map(|(place, quantile)| {
            let name = format!("{transport}, delay {program}: {quantile} of the latency");
            let most_floor_ms = MAX_FLOOR_MS[place];
            check_latency(
                name,
                expected_ms[place],
                median(&measured[place]),
                floor[place],
                most_floor_ms,
            )
        });
        Ok((checks.collect(), Floor { p50_ms: floor[0], mean_ms: median(&mean) }))
    }

    /// A closed loop: by Little's law its rate is the window divided by the mean latency, which is the delay.
    /// It has two workers if there are CPUs for them, whose counts must add up to one window.
    fn window(
        &self,
        transport: Transport,
        floor: &Floor,
    ) -> Result<Vec<CalibrationCheck>, CalibrationError> {
        let delay = format!("{}ms", CLOSED_DELAY.as_millis());
        let (mut rates, mut medians) = (Vec::new(), Vec::new());
        for repeat in 0..REPEATS {
            let result = self.load(transport, ("delay", &delay), Loop::Closed, repeat)?;
            rates.push(result.measured.answered_qps());
            medians.push(milliseconds(&result.measured.latency, 0.5));
        }
        let name = |figure| format!("{transport}, window {WINDOW}, delay {delay}: {figure}");
        let delay_ms = CLOSED_DELAY.as_secs_f64() * 1e3;
        Ok(vec![
            check_rate(name("answered rate"), WINDOW, delay_ms, median(&rates), floor.mean_ms),
            check_latency(
                name("p50 of the latency"),
                delay_ms,
                median(&medians),
                floor.p50_ms,
                MAX_FLOOR_MS[0],
            ),
        ])
    }

    /// Compares the share of lost queries with its binomial interval.
    fn loss(&self, transport: Transport, share: f64) -> Result<CalibrationCheck, CalibrationError> {
        let program = share.to_string();
        let result = self.load(transport, ("loss", &program), Loop::Open(DURATION), 0)?;
        let outcomes = result.measured.counters.outcomes;
        let due = outcomes.due as f64;
        // The 99.9 % interval of the binomial distribution.
        let allowed = 3.29 * (share * (1.0 - share) / due).sqrt();
        let measured = outcomes.lost_share();
        Ok(CalibrationCheck {
            name: format!("{transport}, loss {}: lost queries", share::in_sentence(share)),
            expected: share::percent(share, 3),
            measured: share::percent(measured, 3),
            allowed: format!(
                "{}: the 99.9 % interval of {due} queries",
                share::percent(allowed, 3)
            ),
            passed: (measured - share).abs() <= allowed,
        })
    }

    /// One stall of the whole server. The latency of the open loop must show its full length, and the queries
    /// sent after it must not show it.
    fn stall(&self, length: Duration) -> Result<Vec<CalibrationCheck>, CalibrationError> {
        let program = format!("at=1s,length={}ms", length.as_millis());
        let length_ms = length.as_secs_f64() * 1e3;
        let (mut largest, mut delayed, mut after) = (Vec::new(), Vec::new(), Vec::new());
        for repeat in 0..REPEATS {
            let (stall, stalled) = (("stall", program.as_str()), Loop::Open(STALL_DURATION));
            let result = self.load(Transport::Udp, stall, stalled, repeat)?;
            let latency = &result.measured.latency;
            largest.push(milliseconds(latency, 1.0));
            let half = u64::try_from(length.as_nanos() / 2).unwrap_or(u64::MAX);
            delayed.push((1.0 - latency.share_at_most(half)) * latency.len() as f64);
            after.push(p99_after_the_stall(&result, length));
        }
        let (largest, delayed, after) = (median(&largest), median(&delayed), median(&after));
        // The schedule goes on through the stall. Queries due in its first half wait for more than half its
        // length. A closed loop would not even have sent them.
        let due_in_half = RATE * length.as_secs_f64() / 2.0;
        Ok(vec![
            CalibrationCheck {
                name: format!("udp, a stall of {length_ms} ms: largest latency"),
                expected: format!("{length_ms:.0} ms"),
                measured: format!("{largest:.1} ms"),
                allowed: "10 %".to_owned(),
                passed: (largest - length_ms).abs() <= 0.1 * length_ms,
            },
            CalibrationCheck {
                name: "udp, the same stall: queries that waited for more than half of it"
                    .to_owned(),
                expected: format!("{due_in_half:.0}"),
                measured: format!("{delayed:.0}"),
                allowed: "10 %".to_owned(),
                passed: (delayed - due_in_half).abs() <= 0.1 * due_in_half,
            },
            CalibrationCheck {
                name: "udp, the same stall: p99 of the queries sent after it".to_owned(),
                expected: "no trace of it".to_owned(),
                measured: format!("{after:.3} ms"),
                allowed: format!("a tenth of the stall, {:.0} ms", length_ms / 10.0),
                passed: after <= length_ms / 10.0,
            },
        ])
    }

    fn load(
        &self,
        transport: Transport,
        program: (&str, &str),
        shape: Loop,
        repeat: usize,
    ) -> Result<LoadResult, CalibrationError> {
        let variant = self.variant(transport, program, shape)?;
        let (cpus, seed) = (Cpus::of(&variant)?, repeat as u64);
        let queries = self.lists.borrow_mut().of(&variant, seed).map_err(TargetError::from)?;
        let (repetition, position) = (u32::try_from(repeat).unwrap_or(u32::MAX), 0);
        let case = Case {
            variant: &variant,
            id: &CaseId { variant: variant.name.clone(), repetition },
            position,
            seed,
            queries: &queries,
            folder: self.folder,
            guard: self.guard,
            agents: &self.agents,
            told: None,
            max_stacks: None,
        };
        let stop = AtomicBool::new(false);
        let Up { target, hosts, testbed } = case.start(&cpus, &stop)?;
        let job = case.job(&target.ways, (&cpus, &hosts), None).map_err(TargetError::from)?;
        let (job, share) = (&job, Share::whole(&job));
        let member = Member { job, share, clients: None, stop: &stop, told: None };
        let result = hosts.run(&[member], &mut |_, _| {}).pop();
        if let Some(server) = target.server {
            server.stop();
        }
        testbed.stop();
        result.expect("one load has one result").map_err(CalibrationError::Load)
    }

    /// A server that has a program, by its key and value, under a load of this shape.
    fn variant(
        &self,
        transport: Transport,
        (key, program): (&str, &str),
        shape: Loop,
    ) -> Result<Variant, CalibrationError> {
        let shape = match shape {
            Loop::Open(duration) => {
                format!(
                    "rate = {RATE}\nduration = \"{}ms\"\nbatch_delay = \"0s\"\nworkers = 1",
                    duration.as_millis()
                )
            }
            Loop::Closed => format!(
                "outstanding = {}\nduration = \"{}ms\"\nworkers = {}",
                WINDOW / CLIENTS,
                CLOSED_DURATION.as_millis(),
                self.workers
            ),
        };
        let text = format!(
            "name = \"calibration\"\n[server]\nkind = \"embedded\"\n{key} = \"{program}\"\n\
             zone = {{ name = \"calibration.test\", records = 1_000, ttl = \"60s\" }}\n\
             [load]\ntransport = \"{transport}\"\nclients = {CLIENTS}\nwarm_up = \"200ms\"\n\
             timeout = \"500ms\"\nselection = \"uniform\"\n{shape}\n[[variant]]\nname = \"calibration\"\n"
        );
        let experiment = check_text(&text, &[]);
        let experiment =
            experiment.map_err(|problems| CalibrationError::Load(problems.to_string()))?;
        Ok(experiment.variants.into_iter().next().expect("it has one variant"))
    }
}

/// What the machine itself adds to a delay.
struct Floor {
    /// Added to the median.
    p50_ms: f64,
    /// Added to the mean, which the rate of a closed loop follows.
    mean_ms: f64,
}

#[derive(Clone, Copy)]
enum Loop {
    /// [`RATE`] at a constant pace for this long, one worker, no batching.
    Open(Duration),
    /// [`WINDOW`] over all clients, two workers if there are CPUs for them, batching as in experiments.
    Closed,
}

/// The largest p99 of the intervals that began after the stall. The stall begins one second after the first
/// query of the responder, which is the readiness probe: a little before one second of the timeline. One
/// interval of grace lets the queue drain.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_the_same_share_of_the_window() {
        assert_eq!(WINDOW % CLIENTS, 0);
    }
}
