//! The window to use, from a sweep over windows.

use dnslab_record::{BottleneckKind, Looks, Step, StepFigures, TimeOuts, WindowSweep, tried};
use serde::{Deserialize, Serialize};

use crate::quantiles::RunFigures;
use crate::statistics::{Estimate, Paired, ValuePair, mean};

/// A window whose answered rate is below the highest by this share at most is as good as the one
/// with the highest; a larger one only makes the queue longer.
const AS_GOOD: f64 = 0.02;

/// The figures of one window over its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowFigures {
    /// Queries outstanding over all clients.
    pub window: u64,
    /// Runs that met the objective, if there is one; else all that were measured.
    pub met: u32,
    /// Runs that were measured.
    pub runs: u32,
    /// Mean answered queries per second, with its interval.
    pub answered_qps: Estimate,
    /// Mean of the median latencies, nanoseconds; `None` if no query ended, or it is the time-out in a run.
    pub p50_ns: Option<f64>,
    /// Mean of the 0.99 quantiles of the latency likewise.
    pub p99_ns: Option<f64>,
    /// In how many runs the median is the time-out; `None` if in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_time_outs: Option<TimeOuts>,
    /// In how many the 0.99 quantile is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_time_outs: Option<TimeOuts>,
    /// Runs in which the load generator was the bottleneck.
    #[serde(default)]
    pub generator_limited: u32,
    /// The longest batch delay of its runs, nanoseconds.
    #[serde(default)]
    pub batch_delay_ns: Option<u64>,
}

/// The window to use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BestWindow {
    /// The smallest whose mean answered rate is at most 2 % below the highest.
    pub best: WindowFigures,
    /// The window with the highest mean answered rate.
    pub highest: WindowFigures,
    /// By how much the answered rate of the best differs from the highest, relatively; `None` if
    /// they are one window.
    pub difference: Option<Estimate>,
    /// True if the whole interval of that difference lies within the 2 %, or the two are one.
    pub certain: bool,
}

impl WindowFigures {
    /// The figures of every window, from the smallest.
    #[must_use]
    pub fn all(sweep: &WindowSweep, steps: &[Step]) -> Vec<Self> {
        tried(steps).into_iter().filter_map(|at| Self::of(at, sweep, steps)).collect()
    }

    fn of(at: f64, sweep: &WindowSweep, steps: &[Step]) -> Option<Self> {
        let measured = steps.iter().filter(|step| step.at == at && step.figures.is_some());
        let met = measured.clone().filter(|step| step.judged.is_met()).count();
        let own: Vec<StepFigures> = measured.filter_map(|step| step.figures).collect();
        let p50: RunFigures = own.iter().filter_map(StepFigures::p50).collect();
        let p99: RunFigures = own.iter().filter_map(StepFigures::p99).collect();
        let generator = Some(BottleneckKind::Generator);
        let by_generator = own.iter().filter(|figures| figures.bottleneck == generator).count();
        Some(Self {
            generator_limited: u32::try_from(by_generator).unwrap_or(u32::MAX),
            batch_delay_ns: own.iter().filter_map(|figures| figures.batch_delay_ns).max(),
            window: at as u64,
            met: u32::try_from(met).unwrap_or(u32::MAX),
            runs: u32::try_from(own.len()).unwrap_or(u32::MAX),
            answered_qps: mean(&answered(at, steps), sweep.seed)?,
            p50_ns: p50.value(),
            p99_ns: p99.value(),
            p50_time_outs: p50.time_outs(),
            p99_time_outs: p99.time_outs(),
        })
    }

    /// True if the load generator was the bottleneck in half of its runs or more: the server may answer
    /// more at this window.
    #[must_use]
    pub fn is_generator_limited(&self) -> bool {
        self.generator_limited > 0 && 2 * self.generator_limited >= self.runs
    }

    fn qualifies(&self) -> bool {
        2 * self.met > self.runs
    }
}

impl BestWindow {
    /// The best of the windows most of whose runs met the objective, if there is one, and whose
    /// answers were right; `None` if there is no such window.
    ///
    /// The mean decides, not the interval: a smaller window whose interval is only wide enough to
    /// reach the highest would win by being measured badly. What the interval says stands beside
    /// it.
    #[must_use]
    pub fn of(sweep: &WindowSweep, steps: &[Step]) -> Option<Self> {
        let mut all = WindowFigures::all(sweep, steps);
        all.retain(WindowFigures::qualifies);
        let rate = |figures: &&WindowFigures| figures.answered_qps.value;
        let highest = all.iter().max_by(|one, other| rate(one).total_cmp(&rate(other)))?;
        let least = (1.0 - AS_GOOD) * highest.answered_qps.value;
        let best = all.iter().find(|figures| figures.answered_qps.value >= least)?;
        let rates = |figures: &WindowFigures| answered(figures.window as f64, steps);
        let difference = (best.window != highest.window)
            .then(|| {
                // The n-th runs of all windows are made one after another.
                let pairs = rates(highest).into_iter().zip(rates(best));
                let pairs: Vec<ValuePair> =
                    pairs.map(|(reference, own)| ValuePair { reference, own }).collect();
                Some(Paired::of(&pairs, Looks::Once)?.relative)
            })
            .flatten();
        let certain = best.window == highest.window
            || difference.is_some_and(|difference| difference.low >= -AS_GOOD);
        Some(Self { best: best.clone(), highest: highest.clone(), difference, certain })
    }
}

fn answered(at: f64, steps: &[Step]) -> Vec<f64> {
    let own = steps.iter().filter(|step| step.at == at);
    own.filter_map(|step| Some(step.figures?.answered_qps)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnslab_record::{Breach, CaseId, InvalidReason, Judged, Phase};

    fn step(window: u64, answered_qps: f64, met: bool) -> Step {
        let reason = InvalidReason::Late { p99_ns: 2, limit_ns: 1 };
        Step {
            case: CaseId { variant: format!("window-{window}"), repetition: 1 },
            phase: Phase::Repeat,
            at: window as f64,
            judged: if met {
                Judged::Met
            } else {
                Judged::Violated { breaches: vec![Breach::Invalid { reason }] }
            },
            figures: Some(StepFigures {
                offered_qps: answered_qps,
                answered_qps,
                lost_share: 0.0,
                p50_ns: Some(1_000 * window),
                p99_ns: Some(5_000 * window),
                max_wait_ns: 2_000_000_000,
                bottleneck: Some(if window < 4 {
                    BottleneckKind::Window
                } else {
                    BottleneckKind::Generator
                }),
                batch_delay_ns: Some(if window < 4 { 0 } else { 50_000 }),
                server_busy_share: None,
            }),
        }
    }

    /// The best window of runs with these rates at 1, 2, 4, ... outstanding.
    fn best(rates: &[&[f64]], met: bool) -> Option<BestWindow> {
        let sweep = WindowSweep { objective: None, clients: 1, largest: 1024, repeats: 3, seed: 1 };
        let steps: Vec<Step> = rates
            .iter()
            .enumerate()
            .flat_map(|(power, rates)| rates.iter().map(move |rate| (1 << power, *rate)))
            .map(|(window, rate)| step(window, rate, met))
            .collect();
        BestWindow::of(&sweep, &steps)
    }

    #[test]
    fn the_smallest_within_two_percent_of_the_highest() {
        let found = best(
            &[
                &[50.0, 51.0, 49.0],
                &[96.0, 97.0, 98.0],
                &[99.2, 99.0, 99.1],
                &[100.0, 100.1, 99.9],
                &[70.0, 71.0, 69.0],
            ],
            true,
        );
        let found = found.unwrap();
        assert_eq!((found.best.window, found.highest.window), (4, 8));
        assert!(found.certain, "{found:?}");
        assert_eq!(found.best.p99_ns, Some(20_000.0));
        assert!(found.best.is_generator_limited(), "{found:?}");
        assert_eq!(found.best.batch_delay_ns, Some(50_000));
        let difference = found.difference.unwrap().value;
        assert!((difference + 0.009).abs() < 1e-3, "{difference}");
    }

    #[test]
    fn noise_is_said() {
        let found = best(&[&[95.0, 104.0, 96.0], &[90.0, 110.0, 97.0]], true).unwrap();
        assert_eq!((found.best.window, found.highest.window), (1, 2));
        assert!(!found.certain && !found.best.is_generator_limited(), "{found:?}");
        let alone = best(&[&[95.0, 104.0, 96.0], &[110.0, 111.0, 112.0]], true).unwrap();
        assert_eq!((alone.best.window, alone.certain, alone.difference), (2, true, None));
        // One run each: nothing is known of the spread.
        assert!(!best(&[&[99.0], &[100.0]], true).unwrap().certain);
    }

    #[test]
    fn windows_that_violate_are_never_named() {
        assert_eq!(best(&[&[1.0, 2.0], &[3.0, 4.0]], false), None);
        assert_eq!(best(&[], true), None);
    }
}
