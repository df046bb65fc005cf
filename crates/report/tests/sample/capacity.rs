//! Synthetic searches for the capacity: of a rate, and of a window.

use std::path::Path;

use dnslab_record::{
    Breach, CAPACITY_FORMAT, Capacity, CaseId, End, Judged, LoadMode, Objective, OpenPace, Phase,
    RateSearch, Session, Sought, Step, StepFigures, WindowSweep,
};
use dnslab_results::{ResultsDirectory, ResultsError};
use dnslab_traffic::Pace;

use super::{Behaviour, Noise, run};

/// What the server answers at most, queries per second.
const MAX_QPS: f64 = 71_000.0;

/// Writes a search for the highest rate.
///
/// # Errors
/// When `path` exists or cannot be written.
pub(crate) fn write_rate(path: &Path) -> Result<ResultsDirectory, ResultsError> {
    let objective: Objective = "lost<0.1%, p99<10ms".parse().expect("it is one");
    let mut noise = Noise(7);
    let mut steps: Vec<Step> = Vec::new();
    let ramp = (0..8).map(|power| (Phase::Ramp, 1_000.0 * 2_f64.powi(power)));
    let bracket = [128_000.0, 90_510.0, 90_510.0, 76_109.0, 76_109.0, 69_792.0, 72_882.0];
    let bracket = bracket.map(|at| (Phase::Bracket, at));
    let repeats = [71_300.0, 66_100.0, 67_800.0, 73_100.0, 69_500.0].repeat(5);
    let repeats = repeats.into_iter().map(|at| (Phase::Repeat, at));
    for (phase, at) in ramp.chain(bracket).chain(repeats) {
        let figures = figures_at(at, &mut noise);
        steps.push(Step {
            case: case(&format!("rate-{at}"), &steps),
            phase,
            at,
            judged: judged(&objective, &figures),
            figures: Some(figures),
        });
    }
    let sought = Sought::Rate(RateSearch {
        objective: objective.clone(),
        from_qps: 1_000.0,
        max_qps: 50e6,
        tolerance: 0.05,
        repeats: 5,
        seed: 1,
    });
    write(path, "Up to which rate does ns1.example meet lost<0.1%, p99<10ms?", sought, steps)
}

fn figures_at(qps: f64, noise: &mut Noise) -> StepFigures {
    // What it can do today, and how full it is at this rate.
    let today = MAX_QPS * (1.0 + 0.06 * (noise.next() - 0.5));
    let load = (qps / today).min(0.999);
    let is_over = qps > today;
    let p50_ms = if is_over { 9.0 } else { 0.3 + 0.1 / (1.0 - load) };
    StepFigures {
        offered_qps: qps,
        answered_qps: qps.min(today),
        lost_share: if is_over { 1.0 - today / qps } else { 0.0 },
        p50_ns: Some((p50_ms * 1e6) as u64),
        p99_ns: Some(if is_over { 2_000_000_000 } else { (3e6 * p50_ms) as u64 }),
        max_wait_ns: 2_000_000_000,
        bottleneck: None,
        batch_delay_ns: None,
        server_busy_share: Some(0.42),
    }
}

/// Writes a sweep over windows.
///
/// # Errors
/// When `path` exists or cannot be written.
pub(crate) fn write_window(path: &Path) -> Result<ResultsDirectory, ResultsError> {
    let mut noise = Noise(11);
    let mut steps: Vec<Step> = Vec::new();
    for round in 0..5 {
        for power in 0..12 {
            let window = 2_f64.powi(power);
            // It is full from about 100 on, and too full from 512 on.
            let full = MAX_QPS * window / (window + 12.0) / (1.0 + (window / 1_500.0).powi(2));
            let answered_qps = full * (1.0 + 0.03 * (noise.next() - 0.5));
            let p50_ns = Some((window / answered_qps * 1e9) as u64);
            steps.push(Step {
                case: case(&format!("window-{window}"), &steps),
                phase: if round == 0 { Phase::Ramp } else { Phase::Repeat },
                at: window,
                judged: Judged::Met,
                figures: Some(StepFigures {
                    offered_qps: answered_qps,
                    answered_qps,
                    lost_share: 0.0,
                    p50_ns,
                    p99_ns: p50_ns.map(|ns| 3 * ns),
                    max_wait_ns: 2_000_000_000,
                    bottleneck: None,
                    batch_delay_ns: None,
                    server_busy_share: None,
                }),
            });
        }
    }
    let sought = Sought::Window(WindowSweep {
        objective: None,
        clients: 4,
        largest: 16_384,
        repeats: 5,
        seed: 1,
    });
    write(path, "How many queries outstanding does ns1.example need?", sought, steps)
}

fn case(variant: &str, steps: &[Step]) -> CaseId {
    let earlier = steps.iter().filter(|step| step.case.variant == variant).count();
    CaseId { variant: variant.to_owned(), repetition: earlier as u32 + 1 }
}

/// What is said of a step with these figures.
fn judged(objective: &Objective, figures: &StepFigures) -> Judged {
    let found = [figures.lost_share, figures.p99_ns.map_or(0.0, |ns| ns as f64)];
    let breaches: Vec<Breach> = objective
        .demands()
        .iter()
        .zip(found)
        .filter(|(demand, found)| !demand.is_met_by(*found))
        .map(|(demand, found)| Breach::Threshold { demand: *demand, found: Some(found) })
        .collect();
    if breaches.is_empty() { Judged::Met } else { Judged::Violated { breaches } }
}

fn write(
    path: &Path,
    question: &str,
    sought: Sought,
    steps: Vec<Step>,
) -> Result<ResultsDirectory, ResultsError> {
    let mut variants: Vec<String> = Vec::new();
    for step in &steps {
        if !variants.contains(&step.case.variant) {
            variants.push(step.case.variant.clone());
        }
    }
    let session = Session {
        name: "capacity".to_owned(),
        question: question.to_owned(),
        baseline: variants[0].clone(),
        variants,
        skipped: Vec::new(),
        plan: steps.iter().map(|step| step.case.clone()).collect(),
        ..super::session(1)
    };
    let results = ResultsDirectory::create(path, &session)?;
    for (position, step) in steps.iter().enumerate() {
        let behaviour = Behaviour {
            name: "step",
            transport: "udp",
            qps: step.figures.map_or(0.0, |figures| figures.answered_qps),
            p50_ms: 0.5,
            tail: 3.0,
        };
        let mut record = run(&behaviour, step.case.repetition, position as u32, 500_000_000);
        record.variant = step.case.variant.clone();
        if matches!(sought, Sought::Rate(_)) {
            record.load.mode =
                LoadMode::Open { rate_qps: step.at, pace: OpenPace::constant(Pace::Constant) };
        }
        results.write_run(&record)?;
    }
    let capacity = Capacity {
        format: CAPACITY_FORMAT,
        target: "ns1.example".to_owned(),
        sought,
        steps,
        end: Some(End::Edge),
    };
    results.write_capacity(&capacity)?;
    Ok(results)
}
