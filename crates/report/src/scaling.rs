//! What another thread of a server is worth, in words and as a table.

use dnslab_analysis::statistics::{Estimate, HeldOut, LEAST_COUNTS, ScalabilityLaw};
use dnslab_analysis::{NotCompared, ScalingLine, ScalingPoint, Summary};
use dnslab_record::Metric;

use crate::number::{self, NONE};
use crate::screen::cell;
use crate::variants::listed;

pub(crate) const HEADER: [&str; 8] = [
    "server",
    "threads",
    "CPUs",
    "variant",
    "queries per second",
    "of each thread",
    "efficiency",
    "by the law",
];

/// What the columns and the words of the sentences mean.
pub(crate) const LEGEND: &str = "Efficiency: what a thread answers, as a share of what it answers with the fewest threads, by rounds. The law is the \
     universal scalability law, N / (1 + contention (N - 1) + coherency N (N - 1)) times the rate of one thread. \
     Contention is the share of the work that one thread at a time can do; coherency is what each pair of threads costs. \
     Intervals are of 95 %, from round to round. They do not say that the server follows this law: the prediction of a \
     number of threads that it was not fitted to does.";

/// What is known of each server, a sentence each; with several servers each begins with its name.
pub(crate) fn sentences(summary: &Summary) -> Vec<String> {
    summary.scaling.iter().flat_map(|line| named(summary, line, texts(line))).collect()
}

/// What the first screen says of each server: how much more it answers with more threads, and by which law.
pub(crate) fn answers(summary: &Summary) -> Vec<String> {
    summary.scaling.iter().flat_map(|line| named(summary, line, vec![short_text(line)])).collect()
}

fn texts(line: &ScalingLine) -> Vec<String> {
    let rest = line.held_out.as_ref().map(|held_out| prediction(line, held_out));
    let texts = [answer(line), Some(by_law(line)), rest].into_iter().flatten();
    texts.chain(left_out(line)).chain(crowded(line)).collect()
}

fn short_text(line: &ScalingLine) -> String {
    let texts = [answer(line), Some(by_law(line)), crowded(line)].into_iter().flatten();
    texts.collect::<Vec<_>>().join(" ")
}

fn by_law(line: &ScalingLine) -> String {
    line.law.as_ref().map_or_else(|| without_law(line), law_text)
}

/// Whether all that counts are servers whose threads are the question, with two numbers of them at least.
pub(crate) fn is_answered(summary: &Summary) -> bool {
    let lines = &summary.scaling;
    let is_point =
        |name: &str| lines.iter().flat_map(|line| &line.points).any(|point| point.variant == *name);
    let mut counting = summary.variants.iter().filter(|variant| variant.valid_runs > 0);
    !lines.is_empty()
        && lines.iter().all(|line| line.ends().is_some())
        && counting.all(|variant| is_point(&variant.name))
}

fn named(summary: &Summary, line: &ScalingLine, texts: Vec<String>) -> Vec<String> {
    match summary.scaling.as_slice() {
        [_] => texts,
        _ => texts.iter().map(|text| format!("{}: {text}", line.name)).collect(),
    }
}

fn threads(count: u32) -> String {
    number::counted(u64::from(count), "thread", "threads")
}

/// How much more the most threads answer.
fn answer(line: &ScalingLine) -> Option<String> {
    let [first, last] = line.ends()?;
    let efficiency = last.efficiency?;
    let times = efficiency.value * f64::from(last.threads) / f64::from(first.threads);
    let verb = if first.threads == 1 { "its rate" } else { "their rate" };
    Some(format!(
        "{} answer {} times as many queries as {}: {} of {verb} each.",
        threads(last.threads),
        number::three_digits(times),
        threads(first.threads),
        share(&efficiency)
    ))
}

fn law_text(law: &ScalabilityLaw) -> String {
    let peak =
        law.peak_threads.filter(|peak| peak.high.is_finite()).map_or_else(String::new, |peak| {
            let [most, low, high] = [peak.value, peak.low, peak.high].map(f64::round);
            let most = threads(most as u32);
            if low == high {
                format!("; it peaks at {most}")
            } else {
                format!("; it peaks at {most} ({low} to {high})")
            }
        });
    format!(
        "The scalability law has contention {} and coherency {}{peak}.",
        parameter(&law.contention),
        parameter(&law.coherency)
    )
}

/// A share of the work that is 0 or more, with its interval.
fn parameter(estimate: &Estimate) -> String {
    let value = number::share(estimate.value);
    if !estimate.is_bounded() {
        return value;
    }
    let [low, high] = [estimate.low, estimate.high].map(number::share);
    match (estimate.value == 0.0, low == high) {
        (_, true) => value,
        (true, false) => format!("0 % (at most {high})"),
        (false, false) => format!("{value} ({} to {high})", low.trim_end_matches(" %")),
    }
}

/// The numbers of threads that count, the smallest first.
fn thread_counts(line: &ScalingLine) -> Vec<u32> {
    let counting = line.points.iter().filter(|point| point.counts());
    let mut counts: Vec<u32> = counting.map(|point| point.threads).collect();
    counts.dedup();
    counts
}

fn without_law(line: &ScalingLine) -> String {
    let counting = match thread_counts(line).len() {
        0 => "no number of threads counts".to_owned(),
        1 => "one number of threads counts".to_owned(),
        counts => format!("{counts} numbers of threads count"),
    };
    format!("No scalability law: {counting}, and it takes {LEAST_COUNTS}.")
}

fn prediction(line: &ScalingLine, held_out: &HeldOut) -> String {
    let HeldOut { threads: largest, predicted_qps, measured_qps, error } = held_out;
    let smaller = thread_counts(line).into_iter().filter(|threads| threads < largest);
    let smaller: Vec<String> = smaller.map(|threads| threads.to_string()).collect();
    let interval = match error.is_bounded() {
        true => format!(" ({} to {})", number::change(error.low), number::change(error.high)),
        false => String::new(),
    };
    format!(
        "From {} threads the law predicts {} queries per second for {largest}: {} were measured, so it is off by {}{interval}.",
        listed(&smaller),
        cell::figure(Metric::AnsweredQps, predicted_qps),
        cell::figure(Metric::AnsweredQps, measured_qps),
        number::change(error.value)
    )
}

/// Which points the law leaves out, and why.
fn left_out(line: &ScalingLine) -> Vec<String> {
    let mut texts = Vec::new();
    for (why, words) in [
        (
            NotCompared::Generator,
            "the load generator was the bottleneck, so more could be answered",
        ),
        (NotCompared::ConnectionsRefused, "the server turned connections away"),
    ] {
        let points = line.points.iter().filter(|point| point.left_out == Some(why));
        let names: Vec<&str> = points.map(|point| point.variant.as_str()).collect();
        if !names.is_empty() {
            texts.push(format!("Left out: {} ({words}).", listed(&names)));
        }
    }
    texts
}

/// Which points have less than a CPU for each thread.
fn crowded(line: &ScalingLine) -> Option<String> {
    let is_crowded = |point: &&ScalingPoint| point.cpus > 0 && point.threads > point.cpus;
    let names: Vec<&str> =
        line.points.iter().filter(is_crowded).map(|point| point.variant.as_str()).collect();
    let verb = if names.len() == 1 { "has" } else { "have" };
    (!names.is_empty()).then(|| format!("{} {verb} more threads than CPUs.", listed(&names)))
}

/// A row for each number of threads of each server.
pub(crate) fn rows(summary: &Summary) -> Vec<[String; HEADER.len()]> {
    let of_line = |line: &'_ ScalingLine| -> Vec<_> {
        line.points.iter().map(|point| cells(summary, line, point)).collect()
    };
    summary.scaling.iter().flat_map(of_line).collect()
}

fn cells(summary: &Summary, line: &ScalingLine, point: &ScalingPoint) -> [String; HEADER.len()] {
    let count = f64::from(point.threads);
    let written = |estimate: &Estimate| match summary.variant(&point.variant) {
        Some(variant) => cell::of_variant(variant, Metric::AnsweredQps, estimate),
        None => cell::figure(Metric::AnsweredQps, estimate),
    };
    let each = |all: Estimate| Estimate {
        value: all.value / count,
        low: all.low / count,
        high: all.high / count,
    };
    let is_first = line.ends().is_some_and(|[first, _]| first.variant == point.variant);
    let efficiency = match point.efficiency {
        Some(efficiency) => share_with_interval(&efficiency),
        None if is_first => "100 %".to_owned(),
        None => NONE.to_owned(),
    };
    let by_law = line.law.map(|law| {
        let qps = law.qps(count);
        number::qps(number::certain_value(qps, qps / 200.0))
    });
    let or_none = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
    [
        line.name.clone(),
        point.threads.to_string(),
        if point.cpus == 0 { NONE.to_owned() } else { point.cpus.to_string() },
        point.variant.clone(),
        or_none(point.answered_qps.as_ref().map(written)),
        or_none(point.answered_qps.map(|all| written(&each(all)))),
        efficiency,
        or_none(by_law),
    ]
}

fn share(estimate: &Estimate) -> String {
    let half = estimate.half_width().unwrap_or(0.01);
    number::percent(estimate.value, number::certain_decimals(half * 100.0))
}

fn share_with_interval(estimate: &Estimate) -> String {
    let Some(half) = estimate.half_width() else { return share(estimate) };
    let digits = number::certain_decimals(half * 100.0);
    format!("{:.digits$} ±{:.digits$} %", estimate.value * 100.0, half * 100.0)
}
