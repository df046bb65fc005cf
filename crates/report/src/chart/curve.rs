//! A line of a chart.

use dnslab_analysis::RunFigures;
use dnslab_analysis::statistics::mean_of;
use serde::Serialize;

/// A line with its band: the mean of the runs that the tables have, the smallest and the largest run.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Curve {
    pub(super) mean: Vec<Option<f64>>,
    /// Lower edge of the band; empty if there is one run only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) low: Vec<Option<f64>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) high: Vec<Option<f64>>,
}

impl Curve {
    pub(super) fn has_any(&self) -> bool {
        self.mean.iter().any(Option::is_some)
    }

    pub(super) fn over<R>(
        steps: usize,
        runs: &[R],
        figure: impl Fn(&R, usize) -> Option<f64>,
    ) -> Self {
        let at = |at: usize| runs.iter().filter_map(|run| figure(run, at)).collect();
        Self::of_runs((0..steps).map(at)).without_band_of(runs.len())
    }

    /// The mean of the figures at each place, one of each run, with the smallest and the largest.
    pub(crate) fn of_runs(places: impl Iterator<Item = Vec<f64>>) -> Self {
        let mut curve = Self::default();
        for values in places {
            let (low, high) = range(values.iter().copied());
            curve.push(mean_of(&values), low, high);
        }
        curve
    }

    /// A quantile of each run at each place, in nanoseconds, as milliseconds: its mean over the runs as the tables have
    /// it, with the smallest and the largest. If it is the time-out in one of them, the line is there, too.
    pub(crate) fn of_quantiles(places: impl Iterator<Item = RunFigures>) -> Self {
        let mut curve = Self::default();
        for figures in places {
            let (low, high) = range(figures.at_least().iter().map(|ns| ns / 1e6));
            let mean = figures.value().map(|ns| ns / 1e6);
            curve.push(if figures.time_outs().is_some() { high } else { mean }, low, high);
        }
        curve
    }

    pub(super) fn push(&mut self, mean: Option<f64>, low: Option<f64>, high: Option<f64>) {
        self.mean.push(mean.map(short));
        self.low.push(low.map(short));
        self.high.push(high.map(short));
    }

    /// Drops the band if it is of one run: then it is the line.
    pub(super) fn without_band_of(mut self, runs: usize) -> Self {
        if runs < 2 {
            // Not cleared: there may be tens of thousands of curves, and each would keep that memory.
            (self.low, self.high) = (Vec::new(), Vec::new());
        }
        self
    }
}

fn range(values: impl Iterator<Item = f64>) -> (Option<f64>, Option<f64>) {
    values.fold((None, None), |(low, high): (Option<f64>, Option<f64>), value| {
        (
            Some(low.map_or(value, |low| low.min(value))),
            Some(high.map_or(value, |high| high.max(value))),
        )
    })
}

/// The number with four significant digits: a chart shows no more, and the page stays small.
pub(super) fn short(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}
