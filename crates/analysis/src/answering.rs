//! Which metrics answer the question of an experiment.

use dnslab_record::{Caveat, LoadMode, Metric};

use crate::statistics::{Comparison, Verdict};
use crate::summary::{Summary, VariantSummary};

/// What a load can be asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// What a closed loop reaches. The CPU time that a query takes more holds on another machine better than a rate,
    /// and is the same whatever the load generator can send.
    Saturation,
    /// What a rate that is asked takes: the answered rate is no finding there.
    AtARate,
    /// The time until the answer: one query follows the other, or an open loop goes through a chain of servers.
    Latency,
}

impl Question {
    /// The metrics that answer it, the first one first.
    #[must_use]
    pub fn metrics(self) -> [Metric; 5] {
        match self {
            Self::Saturation => [
                Metric::ServerCpuPerQuery,
                Metric::AnsweredQps,
                Metric::LatencyP50,
                Metric::LatencyP99,
                Metric::PeakMemory,
            ],
            Self::AtARate => [
                Metric::ServerCpuPerQuery,
                Metric::LatencyP99,
                Metric::PeakMemory,
                Metric::HandshakesPerQuery,
                Metric::LatencyP50,
            ],
            Self::Latency => [
                Metric::LatencyP50,
                Metric::LatencyMean,
                Metric::LatencyP99,
                Metric::ServerCpuPerQuery,
                Metric::PeakMemory,
            ],
        }
    }
}

impl VariantSummary {
    /// Whether it asked one query after the other, so that its rate is only its latency again.
    #[must_use]
    pub fn asks_one_by_one(&self) -> bool {
        self.caveats.iter().any(|caveat| caveat.worst == Caveat::ClosedLoop { window: 1 })
    }
}

impl Summary {
    /// Whether a variant had an open loop.
    #[must_use]
    pub fn has_open_loop(&self) -> bool {
        self.variants.iter().any(|variant| matches!(variant.mode, Some(LoadMode::Open { .. })))
    }

    /// Whether another load generator measured a variant.
    #[must_use]
    pub fn has_imported(&self) -> bool {
        self.variants.iter().any(|variant| variant.imported.is_some())
    }

    /// What the loads ask.
    #[must_use]
    pub fn question(&self) -> Question {
        let has_chain = |variant: &VariantSummary| variant.chain.len() > 1;
        let is_open = self.has_open_loop();
        if self.variants.iter().any(VariantSummary::asks_one_by_one)
            || is_open && self.variants.iter().any(has_chain)
        {
            Question::Latency
        } else if is_open {
            Question::AtARate
        } else {
            Question::Saturation
        }
    }

    /// The metrics that answer the question of the experiment, the first one first: the one that it names, then
    /// those that go with its load.
    #[must_use]
    pub fn answering_metrics(&self) -> Vec<Metric> {
        // dnsperf without a histogram tells a mean alone.
        let has_mean_alone = self.has_imported() && !self.has_metric(Metric::LatencyP50);
        let of_load = self.question().metrics().map(|metric| match metric {
            Metric::LatencyP50 if has_mean_alone => Metric::LatencyMean,
            metric => metric,
        });
        let of_load = of_load.into_iter().filter(|metric| self.answered_by != Some(*metric));
        self.answered_by.into_iter().chain(of_load).collect()
    }

    fn has_metric(&self, metric: Metric) -> bool {
        self.variants.iter().any(|variant| {
            variant.metrics.contains_key(&metric) || variant.time_outs(metric).is_some()
        })
    }

    /// Each pair of variants by the first metric that answers the question and was compared. A control is no
    /// difference.
    #[must_use]
    pub fn answering_comparisons(&self) -> Vec<&Comparison> {
        first_of_pairs(&self.comparisons, &self.answering_metrics(), |comparison| comparison)
    }
}

/// Of each pair of variants what has the first of these metrics. A control is no difference.
pub(crate) fn first_of_pairs<'a, T>(
    all: &'a [T],
    metrics: &[Metric],
    comparison: impl Fn(&T) -> &Comparison,
) -> Vec<&'a T> {
    let rank = |one: &T| metrics.iter().position(|metric| *metric == comparison(one).metric);
    let mut first: Vec<&T> = Vec::new();
    for one in all {
        if comparison(one).verdict == Verdict::Control || rank(one).is_none() {
            continue;
        }
        match first.iter_mut().find(|known| comparison(known).is_of_same_pair(comparison(one))) {
            Some(known) if rank(one) < rank(known) => *known = one,
            Some(_) => {}
            None => first.push(one),
        }
    }
    first
}
