//! The rate that a server meets in half of its runs, from runs that met or violated at given rates.

use crate::statistics::Estimate;

/// One run: its rate, and whether everything was met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Intended queries per second, above 0.
    pub qps: f64,
    /// Whether the objective was met.
    pub met: bool,
}

/// One run as it was judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// Intended queries per second, above 0.
    pub qps: f64,
    /// Whether the objective was met; `None` if it was not, because of the generator.
    pub met: Option<bool>,
}

/// The runs that say something of the server: neither those that the generator spoilt, nor the
/// others at a rate at which it spoilt half of the runs or more. Those that were met there all the
/// same are the lucky ones, and without the unlucky ones beside them the rate would look met.
#[must_use]
pub fn of_server(runs: &[Run]) -> Vec<Trial> {
    let trial = |run: &Run| Some(Trial { qps: run.qps, met: run.met? });
    runs.iter().filter(|run| !is_spoilt(runs, run.qps)).filter_map(trial).collect()
}

/// Whether the generator spoilt half of the runs at a rate, or more.
fn is_spoilt(runs: &[Run], qps: f64) -> bool {
    let own: Vec<&Run> = runs.iter().filter(|run| run.qps == qps).collect();
    2 * own.iter().filter(|run| run.met.is_none()).count() >= own.len()
}

/// By how much, relatively, the rate that a server just meets may differ from run to run (standard
/// deviation of its logarithm): what is taken as possible, each as likely as the others. From a
/// quiet machine with a deterministic server to four times what a fresh BIND shows.
const SPREADS: [f64; 7] = [0.004, 0.008, 0.016, 0.032, 0.063, 0.125, 0.25];

/// Shares of the runs that a disturbance spoils whatever the rate, with their weights: mostly few.
const DISTURBED: [(f64, f64); 5] =
    [(0.002, 0.35), (0.02, 0.3), (0.06, 0.2), (0.12, 0.1), (0.25, 0.05)];

/// Points of the grid of rates. Its ends are within a few spreads of the rates that decide, so
/// neighbours are some tenths of a percent apart.
const POINTS: usize = 250;

/// The standard deviation of the logistic distribution is this many of its scales: pi / sqrt(3).
const DEVIATION_OF_LOGISTIC: f64 = 1.813_799_364_234_217_8;

/// The share of the probability on each side of a 95 % interval.
const TAIL: f64 = 0.025;

/// The rate that half of the undisturbed runs meet, with its 95 % interval; `None` unless there are
/// a run that met and one that did not.
///
/// A run at rate `r` meets with probability `(1 - d) F((ln c - ln r) / s)`: the logistic
/// distribution function `F` around the capacity `c` with the spread `s` of the capacity from run to
/// run, and a share `d` of runs that a disturbance spoils at any rate. That is the psychometric
/// function with lapses: Wichmann and Hill, "The psychometric function: I", Perception &
/// Psychophysics 63 (2001), who show that the threshold is biased when lapses are not allowed for.
/// The posterior distribution of `ln c` is computed on a grid, with `s` and `d` summed over (Kuss,
/// Jaekel and Wichmann, "Bayesian inference for psychometric functions", Journal of Vision 5
/// (2005)); the estimate is its median, the interval lies between its 0.025 and 0.975 quantiles.
///
/// Three reasons against a bootstrap of the runs: with all runs met at one rate and all violated at
/// the next it has no width at all; five runs at a rate have too few different resamples; and runs
/// whose rates were chosen by the outcomes before, as those of ramp and bisection, are no sample to
/// draw from again, while a likelihood does not ask how the rates were chosen.
#[must_use]
pub fn threshold(trials: &[Trial]) -> Option<Estimate> {
    let levels = levels(trials);
    let [low, high] = range(&levels)?;
    let step = (high - low) / (POINTS - 1) as f64;
    let grid: Vec<f64> = (0..POINTS).map(|point| low + point as f64 * step).collect();
    let logarithms: Vec<Vec<f64>> = SPREADS
        .iter()
        .map(|spread| {
            let scale = spread / DEVIATION_OF_LOGISTIC;
            grid.iter().flat_map(|&at| likelihoods(&levels, at, scale)).collect()
        })
        .collect();
    // Subtracting the largest keeps the exponentials from vanishing all at once.
    let largest = logarithms.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
    let density: Vec<f64> = (0..POINTS)
        .map(|point| {
            let of_spreads = logarithms.iter().map(|logarithms| -> f64 {
                let own = &logarithms[point * DISTURBED.len()..(point + 1) * DISTURBED.len()];
                own.iter()
                    .zip(DISTURBED)
                    .map(|(logarithm, (_, weight))| weight * (logarithm - largest).exp())
                    .sum()
            });
            of_spreads.sum()
        })
        .collect();
    let [low, value, high] =
        [TAIL, 0.5, 1.0 - TAIL].map(|share| quantile(&grid, &density, share).exp());
    Some(Estimate { value, low, high })
}

struct Level {
    /// Natural logarithm of the rate.
    at: f64,
    met: f64,
    violated: f64,
}

/// The runs by rate, from the lowest.
fn levels(trials: &[Trial]) -> Vec<Level> {
    let mut sorted = trials.to_vec();
    sorted.sort_by(|one, other| one.qps.total_cmp(&other.qps));
    let mut levels: Vec<Level> = Vec::new();
    for trial in sorted {
        let at = trial.qps.ln();
        if levels.last().is_none_or(|level| level.at != at) {
            levels.push(Level { at, met: 0.0, violated: 0.0 });
        }
        let level = levels.last_mut().expect("one was pushed if there was none");
        *(if trial.met { &mut level.met } else { &mut level.violated }) += 1.0;
    }
    levels
}

/// The logarithms of the rates between which the capacity is looked for: from the lowest rate that
/// mostly violated to the highest that mostly met, whichever is lower, with room for the largest
/// spread on either side. `None` if all met, or all violated.
fn range(levels: &[Level]) -> Option<[f64; 2]> {
    let mostly_met = |level: &&Level| level.met >= level.violated && level.met > 0.0;
    let mostly_violated = |level: &&Level| level.violated >= level.met && level.violated > 0.0;
    let first = levels.iter().find(|level| level.violated > 0.0)?;
    let last = levels.iter().rev().find(|level| level.met > 0.0)?;
    let highest_met = levels.iter().rev().find(mostly_met).unwrap_or(last).at;
    let lowest_violated = levels.iter().find(mostly_violated).unwrap_or(first).at;
    let (low, high) = (highest_met.min(lowest_violated), highest_met.max(lowest_violated));
    // Room for the largest spread that is taken as possible.
    let room = SPREADS[SPREADS.len() - 1];
    Some([low - room, high + room])
}

/// The logarithms of the likelihood of all runs for a capacity `at` (a logarithm) and a scale of
/// the spread, one for each of [`DISTURBED`].
fn likelihoods(levels: &[Level], at: f64, scale: f64) -> [f64; DISTURBED.len()] {
    let mut sums = [0.0; DISTURBED.len()];
    for level in levels {
        // The smaller of the two sides is computed as it is, not as 1 minus the other.
        let tail = ((level.at - at).abs() / scale).min(700.0);
        let far = 1.0 / (1.0 + tail.exp());
        let (above, below) = if level.at > at { (far, 1.0 - far) } else { (1.0 - far, far) };
        for (sum, (disturbed, _)) in sums.iter_mut().zip(DISTURBED) {
            if level.met > 0.0 {
                *sum += level.met * ((1.0 - disturbed) * above).max(f64::MIN_POSITIVE).ln();
            }
            if level.violated > 0.0 {
                *sum += level.violated * (disturbed + (1.0 - disturbed) * below).ln();
            }
        }
    }
    sums
}

/// The place at which this share of the density lies below, between two points in proportion.
fn quantile(grid: &[f64], density: &[f64], share: f64) -> f64 {
    let wanted = share * density.iter().sum::<f64>();
    let mut below = 0.0;
    for (point, mass) in density.iter().enumerate() {
        if below + mass >= wanted && *mass > 0.0 {
            // The mass of a point is spread over the step around it.
            let step = grid[1] - grid[0];
            return grid[point] + step * ((wanted - below) / mass - 0.5);
        }
        below += mass;
    }
    grid[grid.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trials(levels: &[(f64, u32, u32)]) -> Vec<Trial> {
        let trials = levels.iter().flat_map(|&(qps, met, violated)| {
            (0..met + violated).map(move |number| Trial { qps, met: number < met })
        });
        trials.collect()
    }

    /// The estimate, after a check that its interval encloses it.
    #[track_caller]
    fn estimate(levels: &[(f64, u32, u32)]) -> Estimate {
        let estimate = threshold(&trials(levels)).unwrap();
        assert!(estimate.low < estimate.value && estimate.value < estimate.high, "{estimate:?}");
        estimate
    }

    #[test]
    fn runs_at_rates_that_the_generator_mostly_spoilt_say_nothing() {
        let run = |(qps, met)| Run { qps, met };
        let runs = [
            (1e3, Some(true)),
            (2e3, Some(true)),
            (2e3, None),
            (2e3, Some(false)),
            (4e3, Some(true)),
            (4e3, None),
            (8e3, None),
        ];
        let left = of_server(&runs.map(run));
        let expected = [(1e3, true), (2e3, true), (2e3, false)];
        assert_eq!(left, expected.map(|(qps, met)| Trial { qps, met }));
    }

    #[test]
    fn a_sharp_edge_lies_between_its_rates() {
        let found = estimate(&[(1000.0, 5, 0), (1050.0, 5, 0), (1100.0, 0, 5), (1150.0, 0, 5)]);
        assert!((found.value / 1075.0 - 1.0).abs() < 0.005, "{found:?}");
        assert!(found.low > 1035.0 && found.low < 1060.0, "{found:?}");
        assert!(found.high > 1090.0 && found.high < 1120.0, "{found:?}");
    }

    #[test]
    fn more_runs_make_the_interval_narrower_and_noise_wider() {
        let width = |levels: &[(f64, u32, u32)]| {
            let found = estimate(levels);
            (found.high - found.low) / found.value
        };
        let few = [(950.0, 4, 1), (1000.0, 3, 3), (1050.0, 1, 4)];
        let many = few.map(|(qps, met, violated)| (qps, 6 * met, 6 * violated));
        assert!(width(&many) < 0.6 * width(&few), "{} {}", width(&many), width(&few));
        let sharp = [(950.0, 5, 0), (1000.0, 3, 3), (1050.0, 0, 5)];
        assert!(width(&sharp) < width(&few));
    }

    #[test]
    fn one_disturbed_run_far_below_does_not_move_the_edge() {
        let clean = [(500.0, 4, 0), (1000.0, 5, 0), (1050.0, 3, 2), (1100.0, 0, 5)];
        let mut disturbed = clean;
        disturbed[0] = (500.0, 3, 1);
        let (clean, disturbed) = (estimate(&clean), estimate(&disturbed));
        assert!((clean.value / disturbed.value - 1.0).abs() < 0.01, "{clean:?} {disturbed:?}");
    }

    #[test]
    fn the_figures_do_not_depend_on_the_unit_or_the_order() {
        let levels = [(950.0, 4, 1), (1000.0, 3, 2), (1050.0, 1, 4)];
        let found = estimate(&levels);
        let scaled = estimate(&levels.map(|(qps, met, violated)| (1e4 * qps, met, violated)));
        for (one, other) in
            [(found.value, scaled.value), (found.low, scaled.low), (found.high, scaled.high)]
        {
            assert!((other / one / 1e4 - 1.0).abs() < 1e-6);
        }
        let mut reversed = trials(&levels);
        reversed.reverse();
        assert_eq!(threshold(&reversed), Some(found));
    }

    #[test]
    fn without_both_outcomes_there_is_no_edge() {
        assert_eq!(threshold(&[]), None);
        assert_eq!(threshold(&trials(&[(1000.0, 5, 0)])), None);
        assert_eq!(threshold(&trials(&[(1000.0, 0, 5)])), None);
        assert!(threshold(&trials(&[(1000.0, 1, 1)])).is_some());
        assert!(threshold(&trials(&[(1000.0, 0, 3), (2000.0, 3, 0)])).is_some());
    }
}
