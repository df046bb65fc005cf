//! What others published of such an experiment, beside what was measured here.

use dnslab_record::{Metric, Published, PublishedKind, Session};
use serde::{Deserialize, Serialize};

use crate::statistics::{Comparison, Estimate};

/// A published figure, and that of this experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BesidePublished {
    /// What was published.
    pub published: Published,
    /// What was measured here, of the same kind; `None` if it was not measured, or is compared with none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub here: Option<Estimate>,
    /// How far that is from the nearest end of what was published: a share of that end for a figure, else in the unit of
    /// the difference, of a relative one in points (0.1 = 10 points). 0 within a published range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<f64>,
}

/// All that the session names, in its order. `figure` is that of a variant.
pub(crate) fn beside_published(
    session: &Session,
    figure: &dyn Fn(&str, Metric) -> Option<Estimate>,
    comparisons: &[Comparison],
) -> Vec<BesidePublished> {
    let beside = session.published.iter().map(|published| {
        let here = match &published.against {
            None => figure(&published.variant, published.figure),
            Some(against) => difference(published, against, comparisons),
        };
        let off = here.map(|here| off(published, here.value));
        BesidePublished { published: published.clone(), here, off }
    });
    beside.collect()
}

fn difference(
    published: &Published,
    against: &str,
    comparisons: &[Comparison],
) -> Option<Estimate> {
    let is_same = |comparison: &&Comparison| {
        comparison.variant == published.variant
            && comparison.against == against
            && comparison.metric == published.figure
    };
    let comparison = comparisons.iter().find(is_same)?;
    match published.kind {
        PublishedKind::Change => Some(comparison.difference),
        PublishedKind::Difference | PublishedKind::Figure => comparison.absolute,
    }
}

fn off(published: &Published, here: f64) -> f64 {
    let Published { low, high, .. } = *published;
    let end = if here < low { low } else { high };
    match published.kind {
        _ if (low..=high).contains(&here) => 0.0,
        PublishedKind::Figure => here / end - 1.0,
        PublishedKind::Difference | PublishedKind::Change => here - end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(kind: PublishedKind, low: f64, high: f64) -> Published {
        Published {
            variant: "tcp".to_owned(),
            figure: Metric::AnsweredQps,
            kind,
            low,
            high,
            against: (kind != PublishedKind::Figure).then(|| "udp".to_owned()),
            source: "a talk".to_owned(),
            place: String::new(),
            differs: String::new(),
        }
    }

    #[test]
    fn a_figure_is_held_against_the_nearest_end() {
        let rate = published(PublishedKind::Figure, 60_000.0, 70_000.0);
        assert_eq!(off(&rate, 65_000.0), 0.0);
        assert!((off(&rate, 77_000.0) - 0.1).abs() < 1e-9);
        assert!((off(&rate, 54_000.0) + 0.1).abs() < 1e-9);
        let change = published(PublishedKind::Change, -0.2, -0.2);
        assert!((off(&change, -0.33) + 0.13).abs() < 1e-9);
    }

    #[test]
    fn the_same_pair_and_figure_is_found() {
        let estimate = |value| Estimate { value, low: value, high: value };
        let comparison = Comparison {
            variant: "tcp".to_owned(),
            against: "udp".to_owned(),
            metric: Metric::AnsweredQps,
            difference: estimate(-0.25),
            absolute: Some(estimate(-20_000.0)),
            rounds: 5,
            floor: 0.0,
            verdict: crate::statistics::Verdict::Costs,
        };
        let change = published(PublishedKind::Change, -0.2, -0.2);
        let difference = published(PublishedKind::Difference, -0.2, -0.2);
        let all = [comparison];
        assert_eq!(super::difference(&change, "udp", &all), Some(estimate(-0.25)));
        assert_eq!(super::difference(&difference, "udp", &all), Some(estimate(-20_000.0)));
        assert_eq!(super::difference(&change, "dot", &all), None);
    }
}
