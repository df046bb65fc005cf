//! How even an open loop is, counted where the queries arrive.

use anyhow::Result;

use crate::arguments::Work;
use crate::versus::Outcome;
use crate::versus::bench::{Bench, figures, median_of};
use crate::versus::figures::{Aim, median};
use crate::versus::reflector::{Counting, Reflector};
use crate::versus::sample::{Load, Mode, Sample};
use crate::versus::table::PacingRow;
use crate::versus::windows::PacingError;

const CLIENTS: u32 = 4;
/// Intended queries per second over all sockets.
const RATES_QPS: [u32; 3] = [20_000, 60_000, 100_000];
/// The aims (`evidence/BENCHMARKS.md`): share of the windows, and median send lag in microseconds.
const AIMS: (Aim, Aim) = (Aim::AtLeast(0.99), Aim::AtMost(50.0));

pub(crate) fn pacing(bench: &Bench<'_>) -> Result<Outcome> {
    let reflector = Reflector::start(&bench.folder, Counting::ByMillisecond)?;
    let rates = if bench.options.smoke { &RATES_QPS[..1] } else { &RATES_QPS[..] };
    let load = |rate: &u32| reflector.load(Work::Pacing, CLIENTS, Mode::Rate(*rate));
    let loads: Vec<Load<'_>> = rates.iter().map(load).collect();
    let programs = bench.programs()?;
    let samples = bench.alternate(&loads, &programs, Some(&reflector))?;
    let mut outcome = Outcome::default();
    for load in &loads {
        for program in &programs {
            outcome.pacing.push(row(&samples, load.case(), program.name())?);
        }
    }
    outcome.samples = samples;
    Ok(outcome)
}

/// All rounds of one program at one rate.
fn row(samples: &[Sample], case: String, program: &str) -> Result<PacingRow> {
    let all = |figure: fn(&PacingError) -> f64| {
        figures(samples, &case, program, |sample| sample.pacing.as_ref().map(figure))
    };
    let middle = |figure: fn(&PacingError) -> f64| -> Result<f64> {
        // `figures` gives at least one value.
        Ok(median(all(figure)?).unwrap_or(f64::NAN))
    };
    let sum = |figure| all(figure).map(|values| values.iter().sum::<f64>());
    let windows = sum(|error| error.windows as f64)?;
    let right = sum(|error| error.right_share * error.windows as f64)?;
    let error = PacingError {
        windows: windows as usize,
        qps: middle(|error| error.qps)?,
        right_share: right / windows,
        mean_error: middle(|error| error.mean_error)?,
        p99_error: middle(|error| error.p99_error)?,
        max_error: all(|error| error.max_error)?.into_iter().fold(0.0, f64::max),
    };
    let is_ours = program == "dnslab";
    let lag = is_ours
        .then(|| median_of(samples, &case, program, |sample| sample.finding.send_lag_p50_us))
        .transpose()?;
    let aims = is_ours.then_some(AIMS);
    let program = program.to_owned();
    Ok(PacingRow { case, program, error, send_lag_p50_us: lag, aims })
}
