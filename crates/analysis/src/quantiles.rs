//! Quantiles of the latency of runs, some of which so many lost queries reach that they are the time-out.

use std::collections::BTreeMap;

use dnslab_record::{Metric, RunFigure, TimeOuts};

use crate::statistics::{Estimate, mean, mean_of};

/// A figure of the valid runs of a variant.
///
/// A run in which a quantile is the time-out has no value that a mean could take, and is not left out of one: the
/// others would be those that went well. So there is a mean, or [`RunFigures::time_outs`], and never both.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFigures(Vec<RunFigure>);

impl FromIterator<RunFigure> for RunFigures {
    fn from_iter<I: IntoIterator<Item = RunFigure>>(figures: I) -> Self {
        Self(figures.into_iter().collect())
    }
}

impl RunFigures {
    /// How many runs have the figure.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// In how many of the runs it is the time-out; `None` if in none.
    #[must_use]
    pub fn time_outs(&self) -> Option<TimeOuts> {
        let runs = self.0.iter().filter(|figure| figure.is_time_out()).count();
        let [runs, all] =
            [runs, self.0.len()].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        (runs > 0).then_some(TimeOuts { runs, of: all })
    }

    /// The values of all runs; `None` if it is the time-out in one.
    #[must_use]
    pub fn measured(&self) -> Option<Vec<f64>> {
        self.0.iter().map(|figure| figure.measured()).collect()
    }

    /// The least that it can be in each run. What is certainly too much by these is too much.
    #[must_use]
    pub fn at_least(&self) -> Vec<f64> {
        self.0.iter().map(|figure| figure.at_least()).collect()
    }

    /// The mean over the runs without an interval; `None` without a run, and if it is the time-out in one.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        mean_of(&self.measured()?)
    }

    /// The mean over the runs with its interval ([`mean`]); `None` without a run, and if it is the time-out in one.
    #[must_use]
    pub fn mean(&self, seed: u64) -> Option<Estimate> {
        mean(&self.measured()?, seed)
    }

    /// Adds the mean to `means`, or that it is the time-out in some run to `time_outs`.
    pub(crate) fn add_to(
        &self,
        metric: Metric,
        seed: u64,
        means: &mut BTreeMap<Metric, Estimate>,
        time_outs: &mut BTreeMap<String, TimeOuts>,
    ) {
        means.extend(self.mean(seed).map(|found| (metric, found)));
        time_outs.extend(self.time_outs().map(|found| (metric.to_string(), found)));
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_run_with_a_time_out_is_in_no_mean_and_is_counted() {
        use RunFigure::{Measured, TimeOut};
        let figures: RunFigures =
            [Measured(3.0), TimeOut(500.0), Measured(3.0)].into_iter().collect();
        assert_eq!(figures.time_outs(), Some(TimeOuts { runs: 1, of: 3 }));
        assert_eq!((figures.mean(1), figures.measured()), (None, None));
        assert_eq!(figures.at_least(), [3.0, 500.0, 3.0]);
        let measured: RunFigures = [Measured(3.0); 3].into_iter().collect();
        assert_eq!((measured.time_outs(), measured.mean(1).unwrap().value), (None, 3.0));
        assert_eq!(RunFigures::default().mean(1), None);
    }
}
