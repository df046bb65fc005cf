//! Why a figure of a variant is compared with none.

use dnslab_record::{Bottleneck, BottleneckKind, Metric};
use serde::{Deserialize, Serialize};

/// From this share of the runs on, what bounded them decides what their mean says. The word of a comparison
/// rests on no single round ([`crate::statistics::Paired::p_of_none`]). With a quarter, up to seven rounds
/// two are enough, and of three rounds one.
const DECISIVE_SHARE: f64 = 0.25;

/// What bounded a variant so that some of its figures are not the server's. Such a figure is shown, and there
/// is no interval, no word and no limit for a difference from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotCompared {
    /// The load generator was the bottleneck: the server answers at least the rate that was measured.
    Generator,
    /// The server turned connections away: clients waited to be let in, and the server's CPU time went into
    /// turning them away.
    ConnectionsRefused,
}

impl NotCompared {
    /// What the bottlenecks of the runs that count say: what was that of a quarter of them or more.
    pub(crate) fn of<'a>(bottlenecks: impl Iterator<Item = &'a Bottleneck>) -> Option<Self> {
        let all: Vec<BottleneckKind> = bottlenecks.map(|bottleneck| bottleneck.kind).collect();
        [Self::ConnectionsRefused, Self::Generator].into_iter().find(|why| {
            let found = all.iter().filter(|kind| **kind == why.kind()).count() as f64;
            found > 0.0 && found >= DECISIVE_SHARE * all.len() as f64
        })
    }

    fn kind(self) -> BottleneckKind {
        match self {
            Self::Generator => BottleneckKind::Generator,
            Self::ConnectionsRefused => BottleneckKind::ConnectionsRefused,
        }
    }

    /// Whether this figure is one of those.
    #[must_use]
    pub fn includes(self, metric: Metric) -> bool {
        match self {
            Self::Generator => metric == Metric::AnsweredQps,
            Self::ConnectionsRefused => {
                matches!(metric, Metric::AnsweredQps | Metric::ServerCpuPerQuery)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What runs with these bottlenecks say.
    fn of(kinds: &[(BottleneckKind, usize)]) -> Option<NotCompared> {
        let bottlenecks = kinds.iter().flat_map(|&(kind, runs)| {
            std::iter::repeat_n(Bottleneck { kind, evidence: Vec::new() }, runs)
        });
        NotCompared::of(bottlenecks.collect::<Vec<_>>().iter())
    }

    #[test]
    fn a_quarter_of_the_runs_decides() {
        use BottleneckKind::{ConnectionsRefused, Generator, ServerCpu};
        let found = |other, runs: usize, all: usize| of(&[(ServerCpu, all - runs), (other, runs)]);
        for (runs, all, expected) in [
            (0, 5, false),
            (1, 1, true),
            (1, 2, true),
            (1, 3, true),
            (1, 5, false),
            (2, 5, true),
            (1, 7, false),
            (2, 8, true),
            (9, 40, false),
            (10, 40, true),
        ] {
            let limited = expected.then_some(NotCompared::Generator);
            assert_eq!(found(Generator, runs, all), limited, "{runs} of {all}");
            let refused = expected.then_some(NotCompared::ConnectionsRefused);
            assert_eq!(found(ConnectionsRefused, runs, all), refused, "{runs} of {all}");
        }
        assert_eq!(of(&[]), None);
        let both = of(&[(Generator, 3), (ConnectionsRefused, 2)]);
        assert_eq!(both, Some(NotCompared::ConnectionsRefused));
    }

    #[test]
    fn only_what_the_bottleneck_moves_is_not_compared() {
        let included = |why: NotCompared| Metric::COMPARED.map(|metric| why.includes(metric));
        let is_rate = Metric::COMPARED.map(|metric| metric == Metric::AnsweredQps);
        assert_eq!(included(NotCompared::Generator), is_rate);
        let of_answers = Metric::COMPARED
            .map(|metric| [Metric::AnsweredQps, Metric::ServerCpuPerQuery].contains(&metric));
        assert_eq!(included(NotCompared::ConnectionsRefused), of_answers);
    }
}
