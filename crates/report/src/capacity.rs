//! A search for the capacity in words, as a table and as CSV.

mod chart;

use dnslab_analysis::statistics::mean_of;
use dnslab_analysis::{RunFigures, WindowFigures};
use dnslab_record::{Capacity, Judged, RunFigure, Sought, Step, StepFigures, TimeOuts, tried};

use crate::csv::push_row;
use crate::number::{self, NONE};
use crate::table::Table;
use crate::words::{capacity as words, time_out};

pub(crate) use chart::CapacityChart;

/// The table of the rates or windows that were tried, from the smallest.
#[must_use]
pub fn capacity_table(capacity: &Capacity) -> Table {
    match &capacity.sought {
        Sought::Rate(_) => rates(&capacity.steps),
        Sought::Window(sweep) => windows(&WindowFigures::all(sweep, &capacity.steps)),
    }
}

fn rates(steps: &[Step]) -> Table {
    let header =
        ["intended qps", "met", "answered qps", "lost", "p50", "p99", "server CPU", "not met"];
    Table {
        header: header.map(str::to_owned).to_vec(),
        rows: tried(steps).into_iter().map(|at| rate_row(steps, at)).collect(),
        legend: "Means over the runs at each rate; what was not met, with the number of runs. A run that the \
                 generator limited is not met, and says nothing of the server."
            .to_owned(),
        notes: Vec::new(),
    }
}

/// The steps at one rate.
fn rate_row(steps: &[Step], at: f64) -> Vec<String> {
    let own: Vec<&Step> = steps.iter().filter(|step| step.at == at).collect();
    let met = own.iter().filter(|step| step.judged.is_met()).count();
    let figures: Vec<&StepFigures> = own.iter().filter_map(|step| step.figures.as_ref()).collect();
    let mean = |figure: fn(&StepFigures) -> Option<f64>, write: fn(f64) -> String| {
        let values: Vec<f64> = figures.iter().filter_map(|figures| figure(figures)).collect();
        mean_of(&values).map_or_else(|| NONE.to_owned(), write)
    };
    let latency = |figure: fn(&StepFigures) -> Option<RunFigure>| {
        let values: RunFigures = figures.iter().filter_map(|figures| figure(figures)).collect();
        quantile(values.value(), values.time_outs())
    };
    vec![
        number::qps(at),
        format!("{met} of {}", own.len()),
        mean(|figures| Some(figures.answered_qps), number::qps),
        mean(|figures| Some(figures.lost_share), number::share),
        latency(StepFigures::p50),
        latency(StepFigures::p99),
        mean(|figures| figures.server_busy_share, |share| number::percent(share, 0)),
        reasons(&own),
    ]
}

/// A quantile of the latency, nanoseconds, or in how many runs it is the time-out.
fn quantile(ns: Option<f64>, time_outs: Option<TimeOuts>) -> String {
    match (ns, time_outs) {
        (_, Some(found)) => time_out(found, "runs"),
        (Some(ns), None) => number::duration(ns),
        (None, None) => NONE.to_owned(),
    }
}

/// What was not met in these runs, each with its number: `lost 2, p99 3`.
fn reasons(steps: &[&Step]) -> String {
    let mut counts: Vec<(String, u32)> = Vec::new();
    for step in steps {
        let mut names: Vec<String> = step.judged.breaches().iter().map(words::name).collect();
        match &step.judged {
            Judged::GeneratorLimited { .. } => names.push("generator".to_owned()),
            Judged::Failed { .. } => names.push("failed".to_owned()),
            Judged::Met | Judged::Violated { .. } => {}
        }
        for name in names {
            match counts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => counts.push((name, 1)),
            }
        }
    }
    let texts = counts.into_iter().map(|(name, count)| format!("{name} {count}"));
    texts.collect::<Vec<_>>().join(", ")
}

fn windows(all: &[WindowFigures]) -> Table {
    let header = ["outstanding", "met", "answered qps", "95 % interval", "p50", "p99", "batching"];
    let limited: Vec<String> = all
        .iter()
        .filter(|figures| figures.is_generator_limited())
        .map(|figures| number::count(figures.window))
        .collect();
    let generator = if limited.is_empty() {
        String::new()
    } else {
        let windows = limited.join(", ");
        format!(
            " The load generator was the bottleneck at {windows} outstanding: the server may answer more \
             there."
        )
    };
    Table {
        header: header.map(str::to_owned).to_vec(),
        rows: all.iter().map(window_row).collect(),
        legend: format!(
            "Queries outstanding over all clients; means over the runs at each window. A closed loop \
             hides stalls from its latency. Windows of few queries have fewer clients and workers, \
             and nothing is sent in batches there (batching 0).{generator}"
        ),
        notes: Vec::new(),
    }
}

fn window_row(figures: &WindowFigures) -> Vec<String> {
    let answered = &figures.answered_qps;
    let interval = if answered.is_bounded() {
        format!("{} to {}", number::qps(answered.low), number::qps(answered.high))
    } else {
        NONE.to_owned()
    };
    let duration = |ns: Option<f64>| ns.map_or_else(|| NONE.to_owned(), number::duration);
    vec![
        number::count(figures.window),
        format!("{} of {}", figures.met, figures.runs),
        number::qps(answered.value),
        interval,
        quantile(figures.p50_ns, figures.p50_time_outs),
        quantile(figures.p99_ns, figures.p99_time_outs),
        duration(figures.batch_delay_ns.map(|ns| ns as f64)),
    ]
}

/// `capacity.csv`: one row for each step, in the order of execution.
pub(crate) fn csv(capacity: &Capacity) -> String {
    let mut text = String::from(
        "step,run,phase,at,outcome,offered_qps,answered_qps,lost_share,p50_ns,p99_ns,\
         server_busy_share,reason\n",
    );
    for (place, step) in capacity.steps.iter().enumerate() {
        let figures = step.figures.as_ref();
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        let whole = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
        let (outcome, reason) = words::outcome(&step.judged);
        let row = [
            (place + 1).to_string(),
            step.case.folder(),
            step.phase.name().to_owned(),
            step.at.to_string(),
            outcome.to_owned(),
            number(figures.map(|figures| figures.offered_qps)),
            number(figures.map(|figures| figures.answered_qps)),
            number(figures.map(|figures| figures.lost_share)),
            whole(figures.and_then(|figures| figures.p50_ns)),
            whole(figures.and_then(|figures| figures.p99_ns)),
            number(figures.and_then(|figures| figures.server_busy_share)),
            reason,
        ];
        push_row(&mut text, row);
    }
    text
}
