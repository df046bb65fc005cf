//! The smallest latency that a setting can tell from nothing.

use dnslab_figures::Histogram;
use dnslab_record::{LoadFacts, LoadMode, Measured, Metric, RunRecord, WorkerFacts};
use dnslab_settings::ReceiveTime;
use dnslab_wire::Transport;

use crate::statistics::mean_of;

/// The clock is read once for each batch, before it is put together (over TLS: encrypted) and after it
/// was read; between the reading and the wire lies a system call. Nanoseconds.
const SYSTEM_CALL_NS: f64 = 1_000.0;

/// Histograms keep three significant digits.
const RESOLUTION: f64 = 0.001;

/// By how much the engine itself may have moved a latency of this run, nanoseconds, at least 1,000: its mean, or
/// the quantile of this metric. A difference of two such figures that is smaller than the larger one of their
/// floors is no finding about the servers.
///
/// It is the sum of
/// - the mean pause of a worker times the share of its time that it paused, the largest of all: an answer
///   waits in its socket for the end of the pause (`load.batch_delay`). Not where the kernel stamps the answers
///   (`load.receive_time`): then none of the pause is in the latency;
/// - in an open loop the send lag, by the same figure: of a p99 its p99. Latency begins when a query is due,
///   and until it was sent nothing of it is the server's. Queries that leave late are the slow ones, so what
///   is far out has more of it than a median. Over a stream the lag may be the server's, which does not read;
///   then the floor is too high, and nothing is claimed that is not so;
/// - one step of the histogram at this figure, 0.1 %;
/// - one microsecond for the system calls between a reading of the clock and the wire.
///
/// What the machine adds besides (others on its CPUs, late timers of the server) is in the spread of the
/// runs, and so in the interval of a difference; this is what all runs of a setting have in common.
#[must_use]
pub fn latency_floor_ns(load: &LoadFacts, measured: &Measured, metric: Metric) -> f64 {
    let is_stamped =
        load.receive_time == Some(ReceiveTime::Kernel) && load.transport == Some(Transport::Udp);
    let pauses = measured.workers.iter().map(WorkerFacts::batching_ns);
    let pause_ns = if is_stamped { 0.0 } else { pauses.fold(0.0, f64::max) };
    let lag_ns = match load.mode {
        LoadMode::Open { .. } => figure_ns(&measured.send_lag, metric),
        LoadMode::Closed { .. } => 0.0,
    };
    SYSTEM_CALL_NS + pause_ns + lag_ns + RESOLUTION * figure_ns(&measured.latency, metric)
}

/// The quantile of this metric, or the mean; 0 of an empty histogram.
fn figure_ns(histogram: &Histogram, metric: Metric) -> f64 {
    let ns = match metric.quantile() {
        Some(quantile) => histogram.quantile_ns(quantile).map(|ns| ns as f64),
        None => histogram.mean_ns(),
    };
    ns.unwrap_or(0.0)
}

/// By how much dnslab itself may have moved a figure over several runs, or in what steps it is measured, in the unit of
/// the metric; `None` where there is neither.
pub(crate) fn floor_of_runs<'a>(
    runs: impl Iterator<Item = &'a RunRecord>,
    metric: Metric,
) -> Option<f64> {
    match metric {
        Metric::PeakMemory => runs.map(memory_step_octets).reduce(f64::max),
        _ => latency_floor_of_runs_ns(runs, metric),
    }
}

/// The floor of a figure over several runs: their mean, as the figure itself is the mean of theirs. `None` for what
/// is no latency, and without a run that has one.
#[must_use]
pub fn latency_floor_of_runs_ns<'a>(
    runs: impl Iterator<Item = &'a RunRecord>,
    metric: Metric,
) -> Option<f64> {
    let floors: Vec<f64> = runs.filter_map(|run| floor_of_run_ns(run, metric)).collect();
    mean_of(&floors)
}

/// dnsperf measures in whole microseconds.
const IMPORTED_STEP_NS: f64 = 1_000.0;

/// Width of a bucket of dnsperf's histograms, relative to its place.
const IMPORTED_RESOLUTION: f64 = 1.0 / 32.0;

/// By how much the engine itself may have moved a latency that is compared by this metric, nanoseconds
/// ([`latency_floor_ns`]); of an imported run, what its output cannot tell apart. `None` for what is no
/// latency, and if none was measured.
#[must_use]
pub fn floor_of_run_ns(record: &RunRecord, metric: Metric) -> Option<f64> {
    let compared = record.compared_times().filter(|_| metric.is_latency())?;
    if record.imported.is_some() {
        // The tool computes the mean from each latency, and quantiles from its buckets.
        let of_bucket = metric.quantile().and_then(|quantile| {
            Some(IMPORTED_RESOLUTION * record.latency_quantiles()?.at(quantile)?.at_least())
        });
        return Some(IMPORTED_STEP_NS + of_bucket.unwrap_or(0.0));
    }
    let load = record.common_load.as_ref().map_or(&record.load, |common| &common.load);
    Some(latency_floor_ns(load, compared, metric))
}

/// Memory is charged to a control group 64 pages at once for each CPU (`MEMCG_CHARGE_BATCH`, mm/memcontrol.c of
/// Linux), so two equal servers may differ by so many octets.
fn memory_step_octets(record: &RunRecord) -> f64 {
    const AT_ONCE: usize = 64 * 4_096;
    let behind = record.watched.behind().map(|part| part.server.cpus.len());
    let cpus: usize = behind.chain([record.server.cpus.len()]).map(|cpus| cpus.max(1)).sum();
    (AT_ONCE * cpus) as f64
}
