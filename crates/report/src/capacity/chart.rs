//! What the charts of a search draw, as the JSON that the page's script reads;
//! `page/src/capacity.ts` declares the same form for TypeScript.

use dnslab_analysis::{Answer, answer};
use dnslab_record::{Capacity, Judged, RunFigure, Sought, Step, StepFigures, tried};
use serde::Serialize;

use crate::chart::Curve;

#[derive(Debug, Serialize)]
pub(crate) struct CapacityChart {
    capacity: Points,
}

/// Every step, and what is drawn around them.
#[derive(Debug, Serialize)]
struct Points {
    /// `rate` or `window`.
    sought: &'static str,
    steps: Vec<Point>,
    /// Where the lines have their points, ascending, in the unit of [`Point::at`].
    at: Vec<f64>,
    answered: Curve,
    p50_ms: Curve,
    p99_ms: Curve,
    bounds: Vec<Bound>,
    /// The capacity with its interval, queries per second; or the window to use, three times.
    answer: Option<[f64; 3]>,
}

#[derive(Debug, Serialize)]
struct Point {
    /// Intended queries per second, or queries outstanding over all clients.
    at: f64,
    outcome: &'static str,
    answered: f64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Bound {
    text: String,
    ms: f64,
}

impl CapacityChart {
    pub(crate) fn of(capacity: &Capacity) -> Self {
        let demands = capacity.sought.objective().map(|objective| objective.demands());
        let bounds =
            demands.unwrap_or_default().iter().filter(|demand| demand.indicator.is_latency());
        let answer = match answer(capacity) {
            Answer::Found { qps } => Some([qps.value, qps.low, qps.high]),
            Answer::AtLeast { qps, .. } => Some([qps; 3]),
            Answer::Window(best) => Some([best.best.window as f64; 3]),
            Answer::Below { .. } | Answer::Nothing { .. } => None,
        };
        let at = tried(&capacity.steps);
        let steps_at = |at: f64| capacity.steps.iter().filter(move |step| step.at == at);
        let figures_at = |at: &f64| steps_at(*at).filter_map(|step| step.figures.as_ref());
        let latency = |figure: fn(&StepFigures) -> Option<RunFigure>| {
            Curve::of_quantiles(at.iter().map(|at| figures_at(at).filter_map(figure).collect()))
        };
        Self {
            capacity: Points {
                sought: match capacity.sought {
                    Sought::Rate(_) => "rate",
                    Sought::Window(_) => "window",
                },
                steps: capacity.steps.iter().filter_map(Point::of).collect(),
                answered: Curve::of_runs(
                    at.iter().map(|at| figures_at(at).map(|step| step.answered_qps).collect()),
                ),
                p50_ms: latency(StepFigures::p50),
                p99_ms: latency(StepFigures::p99),
                at,
                bounds: bounds
                    .map(|demand| Bound { text: demand.to_string(), ms: demand.bound / 1e6 })
                    .collect(),
                answer,
            },
        }
    }
}

impl Point {
    /// `None` if the step has no figures.
    fn of(step: &Step) -> Option<Self> {
        let figures = step.figures.as_ref()?;
        let ms = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e6);
        Some(Self {
            at: step.at,
            outcome: match step.judged {
                Judged::Met => "met",
                Judged::Violated { .. } => "violated",
                Judged::GeneratorLimited { .. } => "generator-limited",
                Judged::Failed { .. } => return None,
            },
            answered: figures.answered_qps,
            p50_ms: ms(figures.p50_ns),
            p99_ms: ms(figures.p99_ns),
        })
    }
}
