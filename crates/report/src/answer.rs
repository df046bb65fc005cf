//! The answer to the question of an experiment, made of the metric that answers this question.

use std::cmp::Reverse;

use dnslab_analysis::statistics::{Comparison, Estimate, Verdict};
use dnslab_analysis::{NotCompared, Question, Summary, VariantSummary};
use dnslab_record::{LoadMode, Metric, TimeOuts, Unit};

use crate::screen::cell;
use crate::variants::{INVALID, code_shares, grouped, listed};
use crate::words::answers::answers_texts;
use crate::words::metric::{Action, noun, words};
use crate::words::time_out;
use crate::{number, scaling, sweep};

/// Up to so many comparisons are told one by one.
const FEW: usize = 6;
/// Pairs of variants whose compared answers are told.
const MAX_PAIRS: usize = 2;
/// Servers of which it is told under which load they break, or what their threads are worth.
const MAX_SERVERS: usize = 4;

/// More sentences than these about time-outs become one.
const MAX_TIME_OUTS: usize = 2;

/// The answer in some sentences: what comparing the answers came to, if that was asked for; under which load
/// each server breaks, if there were several, and what more threads are worth; then how the variants differ.
#[must_use]
pub(crate) fn answer(summary: &Summary) -> String {
    if summary.variants.iter().all(|variant| variant.valid_runs + variant.other_runs == 0) {
        return "No run has ended yet, so there is no answer.".to_owned();
    }
    let answers = first_texts(answers_texts(&summary.answers), MAX_PAIRS, "pair");
    let breaks = first_texts(sweep::sentences(summary), MAX_SERVERS, "server");
    let time_outs = match summary.variants.as_slice() {
        // Its quantiles are the answer.
        [_] => Vec::new(),
        variants => time_outs(variants),
    };
    let threads = first_texts(scaling::answers(summary), MAX_SERVERS, "server");
    let figures = (!scaling::is_answered(summary)).then(|| of_figures(summary));
    let texts = answers.chain(breaks).chain(threads).chain(time_outs).chain(figures);
    texts.collect::<Vec<_>>().join(" ")
}

/// The first texts, and how many more are in the report.
fn first_texts(
    texts: Vec<String>,
    most: usize,
    noun: &str,
) -> impl Iterator<Item = String> + use<> {
    let more = match texts.len().saturating_sub(most) {
        0 => None,
        1 => Some(format!("One more {noun} is in the report.")),
        more => Some(format!("{more} more {noun}s are in the report.")),
    };
    texts.into_iter().take(most).chain(more)
}

/// That a quantile of the latency is the time-out, which is in no difference: a sentence for each quantile and number
/// of rounds.
fn time_outs(variants: &[VariantSummary]) -> Vec<String> {
    const QUANTILES: [Metric; 3] = [Metric::LatencyP50, Metric::LatencyP95, Metric::LatencyP99];
    // Those beyond it are the time-out, too.
    let first = |variant: &VariantSummary| {
        QUANTILES.into_iter().find_map(|metric| Some((metric, variant.time_outs(metric)?)))
    };
    let named = variants.iter().filter_map(|own| Some((first(own)?, own.name.as_str())));
    let groups = grouped(named);
    if groups.len() > MAX_TIME_OUTS {
        let names: Vec<&str> = groups.iter().flat_map(|(_, names)| names).copied().collect();
        return vec![format!(
            "So many queries were lost that quantiles of {} are the time-out.",
            listed(&names)
        )];
    }
    let sentences =
        groups.iter().map(|((metric, found), names)| time_out_sentence(*metric, *found, names));
    sentences.collect()
}

fn time_out_sentence(metric: Metric, found: TimeOuts, names: &[&str]) -> String {
    let rounds = match found.are_all() {
        true => String::new(),
        false => format!(" in {} of {} rounds", found.runs, found.of),
    };
    let noun = noun(metric).trim_start_matches("the ");
    let each = if names.len() > 1 { " each" } else { "" };
    format!("The {noun} of {} is the time-out{rounds}{each}.", listed(names))
}

/// How the variants differ, the certain differences first. Each pair is told by the first metric that was
/// compared; where that one is not certain, by the next one that is.
fn of_figures(summary: &Summary) -> String {
    let compared = summary.answering_comparisons();
    if compared.is_empty() {
        return without_comparison(summary);
    }
    if compared.len() > FEW {
        return many(&of_one_metric(summary, compared.len()));
    }
    // Each variant is told once, of the variants that it is compared with the baseline first.
    let is_told_before = |comparison: &Comparison| {
        let own = compared.iter().filter(|other| other.variant == comparison.variant);
        let first = own.min_by_key(|other| other.against != summary.baseline);
        first.is_some_and(|first| first.against != comparison.against)
    };
    let once: Vec<&Comparison> =
        compared.iter().copied().filter(|comparison| !is_told_before(comparison)).collect();
    few(&once, summary)
}

/// The next metric by which the two differ for certain.
fn instead<'a>(comparison: &Comparison, summary: &'a Summary) -> Option<&'a Comparison> {
    let others =
        summary.answering_metrics().into_iter().filter(|metric| *metric != comparison.metric);
    others.into_iter().find_map(|metric| {
        let same =
            |other: &&Comparison| other.metric == metric && other.is_of_same_pair(comparison);
        summary.comparisons.iter().find(same).filter(|other| is_certain(other))
    })
}

/// All comparisons of the first metric that was compared of every one of so many `pairs`: of those the first
/// one with a certain difference. Where there is none, of the metric that most have.
fn of_one_metric(summary: &Summary, pairs: usize) -> Vec<&Comparison> {
    let comparisons = |metric: Metric| -> Vec<&Comparison> {
        let judged =
            summary.comparisons.iter().filter(|comparison| comparison.verdict != Verdict::Control);
        judged.filter(|comparison| comparison.metric == metric).collect()
    };
    let all: Vec<Vec<&Comparison>> =
        summary.answering_metrics().into_iter().map(comparisons).collect();
    let whole = || all.iter().filter(|of_metric| of_metric.len() == pairs);
    let certain =
        whole().find(|of_metric| of_metric.iter().any(|comparison| is_certain(comparison)));
    let most = || all.iter().rev().max_by_key(|of_metric| of_metric.len());
    certain.or_else(|| whole().next()).or_else(most).cloned().unwrap_or_default()
}

/// The metric that the first chart shows: the one that the experiment names, else the CPU time per
/// query, else the answered rate of a closed loop, else a latency.
pub(crate) fn headline_metric(summary: &Summary) -> Metric {
    let is_drawn = |metric: &Metric| words(*metric).first_chart.is_some();
    if let Some(metric) = summary.answered_by.filter(is_drawn) {
        return metric;
    }
    let has_cpu =
        |variant: &VariantSummary| variant.metrics.contains_key(&Metric::ServerCpuPerQuery);
    let has_cost = summary.variant(&summary.baseline).is_some_and(has_cpu);
    match summary.question() {
        Question::Saturation if has_cost && summary.variants.len() > 1 => Metric::ServerCpuPerQuery,
        Question::Saturation => Metric::AnsweredQps,
        Question::AtARate if summary.variants.iter().any(has_cpu) => Metric::ServerCpuPerQuery,
        Question::Latency if !summary.has_open_loop() => Metric::LatencyMean,
        _ => Metric::LatencyP50,
    }
}

pub(crate) fn are_many(summary: &Summary) -> bool {
    summary.answering_comparisons().len() > FEW
}

/// How many more rounds would probably make a comparison certain, where none is by the metrics that answer
/// the question: the most that any needs. `None` where a law of the threads is the answer.
#[must_use]
pub fn more_rounds(summary: &Summary) -> Option<u32> {
    if scaling::is_answered(summary) {
        return None;
    }
    let compared = summary.answering_comparisons();
    let more = compared.iter().filter_map(|comparison| match comparison.verdict {
        Verdict::CannotTell { more_runs } => more_runs,
        _ => None,
    });
    if compared.iter().any(|comparison| is_certain(comparison)) { None } else { more.max() }
}

fn is_certain(comparison: &Comparison) -> bool {
    matches!(comparison.verdict, Verdict::Costs | Verdict::Gains)
}

fn without_comparison(summary: &Summary) -> String {
    let counts = |variant: &VariantSummary| variant.valid_runs > 0;
    let baseline = &summary.baseline;
    match summary.variants.as_slice() {
        [alone] if counts(alone) => of_one(alone),
        [VariantSummary { of_invalid: Some(invalid), .. }] => {
            let figures = of_one(invalid);
            format!("No answer: no run counts. {INVALID}, to be seen and not to be used: {figures}")
        }
        [_] => "No answer: no run counts.".to_owned(),
        _ if summary
            .comparisons
            .iter()
            .any(|comparison| comparison.verdict == Verdict::Control) =>
        {
            format!("No answer: all that was compared are controls ({}).", controls(summary))
        }
        _ if !summary.variant(baseline).is_some_and(counts) => {
            format!("No answer: no run of {baseline}, the reference, counts.")
        }
        variants if variants.iter().any(|variant| variant.name != *baseline && counts(variant)) => {
            let because =
                variants.iter().find_map(|variant| Some((&variant.name, variant.not_compared?)));
            match because {
                Some((name, NotCompared::Generator)) => format!(
                    "No answer: the load generator was the bottleneck of {name}, so its rate is a lower \
                     bound, and nothing else was compared."
                ),
                Some((name, NotCompared::ConnectionsRefused)) => format!(
                    "No answer: the server turned connections of {name} away, and nothing else was \
                     compared."
                ),
                None => format!("No answer: nothing was compared with {baseline}."),
            }
        }
        _ => format!("No answer: no run of a variant beside {baseline} counts."),
    }
}

/// Which variants do the same as what they are compared with, where that is at saturation.
pub(crate) fn controls(summary: &Summary) -> String {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for comparison in &summary.comparisons {
        let pair = (comparison.variant.as_str(), comparison.against.as_str());
        if comparison.verdict == Verdict::Control && !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    let texts: Vec<String> = pairs
        .iter()
        .map(|(own, other)| format!("{own} is the same as {other} at saturation"))
        .collect();
    texts.join(", ")
}

/// What the figures of one load at a rate begin with.
pub(crate) fn at(rate: String) -> String {
    format!("At {rate}: ")
}

fn of_one(variant: &VariantSummary) -> String {
    let mut parts = Vec::new();
    let lost = format!("{} lost", number::share(variant.outcomes.lost_share()));
    let median = latency(variant, Metric::LatencyP50, "median latency");
    let mean = latency(variant, Metric::LatencyMean, "mean latency")
        .filter(|_| variant.imported.is_some());
    parts.extend(median.or(mean));
    parts.extend(latency(variant, Metric::LatencyP99, "p99"));
    parts.push(lost);
    parts.extend(Some(code_shares(variant)).filter(|codes| !codes.is_empty()));
    let rest = parts.join(", ");
    match (&variant.mode, variant.metrics.get(&Metric::AnsweredQps)) {
        // One query has no rate.
        (Some(LoadMode::Open { .. }), _)
            if variant.outcomes.due <= u64::from(variant.valid_runs) =>
        {
            format!("One query: {rest}.")
        }
        (Some(LoadMode::Open { rate_qps, .. }), _) => {
            format!("{}{rest}.", at(number::queries_per_second(*rate_qps)))
        }
        (_, Some(rate)) => {
            let verb = if variant.imported.is_some() { "answered" } else { "answers" };
            let rate = cell::of_variant(variant, Metric::AnsweredQps, rate);
            let rate = rate.replace(cell::AT_LEAST, "at least ");
            format!("The server {verb} {rate} queries per second: {rest}.")
        }
        (_, None) => format!("{rest}."),
    }
}

fn latency(variant: &VariantSummary, metric: Metric, name: &str) -> Option<String> {
    match (variant.metrics.get(&metric), variant.time_outs(metric)) {
        (Some(figure), _) => Some(format!("{name} {}", cell::figure(metric, figure))),
        (None, Some(found)) => Some(format!("{name} {}", time_out(found, "rounds"))),
        (None, None) => None,
    }
}

/// Each comparison in its own clause, those of one metric and one reference in one sentence.
fn few(compared: &[&Comparison], summary: &Summary) -> String {
    let (certain, others): (Vec<&Comparison>, Vec<&Comparison>) =
        compared.iter().copied().partition(|comparison| is_certain(comparison));
    let (same, unclear): (Vec<&Comparison>, Vec<&Comparison>) =
        others.into_iter().partition(|other| matches!(other.verdict, Verdict::EqualWithin { .. }));
    let second = unclear.iter().filter_map(|comparison| instead(comparison, summary));
    // Nobody asked for the memory.
    let (aside, second): (Vec<&Comparison>, Vec<&Comparison>) =
        second.partition(|comparison| comparison.metric == Metric::PeakMemory);
    let mut sentences = differences(certain.into_iter().chain(second), summary);
    sentences.extend(groups(&same).iter().map(|group| equal(group)));
    // What is said of the rounds is said of those that had so many.
    let mut rounds: Vec<u32> = unclear.iter().map(|comparison| comparison.rounds).collect();
    rounds.sort_unstable_by_key(|rounds| Reverse(*rounds));
    rounds.dedup();
    for rounds in rounds {
        let of_rounds: Vec<&Comparison> =
            unclear.iter().copied().filter(|comparison| comparison.rounds == rounds).collect();
        sentences.extend(groups(&of_rounds).iter().map(|group| not_certain(group, summary)));
    }
    sentences.extend(differences(aside.into_iter(), summary));
    sentences.join(" ")
}

/// Comparisons of one metric with one reference together, in the order in which they are met.
fn groups<'a>(compared: &[&'a Comparison]) -> Vec<Vec<&'a Comparison>> {
    let mut groups: Vec<Vec<&Comparison>> = Vec::new();
    for comparison in compared {
        let goes_with = |group: &&mut Vec<&Comparison>| {
            (group[0].metric, &group[0].against) == (comparison.metric, &comparison.against)
        };
        match groups.iter_mut().find(goes_with) {
            Some(group) => group.push(comparison),
            None => groups.push(vec![comparison]),
        }
    }
    groups
}

/// That these are equal to their reference within the margin.
fn equal(group: &[&Comparison]) -> String {
    let margin = group.iter().find_map(|comparison| match comparison.verdict {
        Verdict::EqualWithin { margin } => Some(margin),
        _ => None,
    });
    let within =
        margin.map(|margin| format!(" within {}", number::size(margin))).unwrap_or_default();
    let names: Vec<&str> = group.iter().map(|comparison| comparison.variant.as_str()).collect();
    let names = listed(&[names.as_slice(), &[group[0].against.as_str()]].concat());
    format!("{names} are equal{within} in {}.", noun(group[0].metric))
}

fn differences<'a>(
    certain: impl Iterator<Item = &'a Comparison>,
    summary: &Summary,
) -> Vec<String> {
    let groups = groups(&certain.collect::<Vec<_>>());
    let mut sentences = Vec::new();
    for group in groups {
        match added_cost(&group, summary) {
            // What a core answers by that is said once.
            Some([cost, cores]) if sentences.is_empty() => sentences.extend([cost, cores]),
            Some([cost, _]) => sentences.push(cost),
            None => sentences.push(by(&group, summary)),
        }
    }
    sentences
}

/// By how much these differ from their reference, in one sentence.
fn by(group: &[&Comparison], summary: &Summary) -> String {
    let (first, offered_qps) = (group[0], borne_qps(summary));
    let mut clauses = vec![format!("{} {}", first.variant, first_clause(first, offered_qps))];
    for comparison in &group[1..] {
        let amount = cpus(comparison, offered_qps).unwrap_or_else(|| amount(comparison));
        clauses.push(format!("{} {amount}", comparison.variant));
    }
    listed(&clauses) + "."
}

/// The CPU time that a query takes more, and how many queries one core of this machine answers by that: `dot takes 13.8
/// us of CPU for a query, udp 6.6 us: 7.2 ±0.4 us more.`, `One core here answers 72,500 queries per second instead
/// of 152,000.` `None` for what is no CPU time, at a rate, and where a figure or an interval is not known.
fn added_cost(group: &[&Comparison], summary: &Summary) -> Option<[String; 2]> {
    let against = &group[0].against;
    if group[0].metric != Metric::ServerCpuPerQuery || offered_qps(summary).is_some() {
        return None;
    }
    let reference = cpu_of(summary, against)?;
    let costs: Vec<Cost<'_>> =
        group.iter().map(|comparison| Cost::of(comparison, summary)).collect::<Option<_>>()?;
    let of_reference = cell::figure(Metric::ServerCpuPerQuery, reference);
    if let [Cost { name, figure, added }] = costs.as_slice() {
        let own = cell::figure(Metric::ServerCpuPerQuery, figure);
        return Some([
            format!("{name} takes {own} of CPU for a query, {against} {of_reference}: {added}."),
            format!(
                "One core here answers {} queries per second instead of {}.",
                of_core(figure),
                of_core(reference)
            ),
        ]);
    }
    let all = |text: fn(&Cost<'_>) -> String| {
        let texts: Vec<String> = costs.iter().map(text).collect();
        listed(&texts)
    };
    let added = all(|cost| format!("{} {}", cost.name, cost.added));
    let cores = all(|cost| format!("{} of {}", of_core(cost.figure), cost.name));
    Some([
        format!("{against} takes {of_reference} of CPU for a query, {added}."),
        format!(
            "One core here answers {} queries per second of {against}, {cores}.",
            of_core(reference)
        ),
    ])
}

/// What a variant takes of the CPU for a query.
struct Cost<'a> {
    name: &'a str,
    /// CPU time for each answered query, nanoseconds.
    figure: &'a Estimate,
    /// `7.2 ±0.4 us more`
    added: String,
}

impl<'a> Cost<'a> {
    fn of(comparison: &'a Comparison, summary: &'a Summary) -> Option<Self> {
        let absolute = comparison.absolute.filter(Estimate::is_bounded)?;
        let size = number::time_with_interval(absolute.value, absolute.half_width()?);
        let word = if absolute.value < 0.0 { "less" } else { "more" };
        let added = format!("{} {word}", size.trim_start_matches(['+', '-']));
        Some(Self {
            name: &comparison.variant,
            figure: cpu_of(summary, &comparison.variant)?,
            added,
        })
    }
}

/// The CPU time for each answered query of a variant, nanoseconds.
fn cpu_of<'a>(summary: &'a Summary, name: &str) -> Option<&'a Estimate> {
    summary
        .variant(name)?
        .metrics
        .get(&Metric::ServerCpuPerQuery)
        .filter(|figure| figure.value > 0.0)
}

/// How many queries per second one core answers that does nothing else.
fn of_core(cpu_ns: &Estimate) -> String {
    let qps = 1e9 / cpu_ns.value;
    let half = qps * cpu_ns.half_width().unwrap_or(0.0) / cpu_ns.value;
    number::qps(number::certain_value(qps, half.max(qps / 200.0)))
}

/// That the differences of these from their reference are not certain, and why.
fn not_certain(unclear: &[&Comparison], summary: &Summary) -> String {
    let against = &unclear[0].against;
    let variants: Vec<&str> =
        unclear.iter().map(|comparison| comparison.variant.as_str()).collect();
    let widest = unclear
        .iter()
        .filter_map(|comparison| cell::unseen(&comparison.difference))
        .reduce(f64::max);
    let rounds = unclear.iter().map(|comparison| comparison.rounds).min().unwrap_or(0);
    let is_any_seen =
        unclear.iter().any(|comparison| cell::unseen(&comparison.difference).is_none());
    let (names, noun) = (listed(&variants), noun(unclear[0].metric));
    let seen = match widest {
        Some(half) if !is_any_seen && half < 1.0 => {
            let hidden = number::size(half);
            return format!(
                "A difference of {names} from {against} in {noun} is not seen; more than {hidden} is unlikely."
            );
        }
        _ if rounds == 1 => "one round is too few".to_owned(),
        // More rounds of such an hour would not make it certain. Where it was so for some, a note names them.
        _ if unclear.iter().all(|comparison| is_disturbed(comparison, summary)) => {
            "others used this machine".to_owned()
        }
        _ => format!("{rounds} rounds are too few"),
    };
    let verb = if variants.len() == 1 { "differs" } else { "differ" };
    format!("Whether {names} {verb} from {against} in {noun} is not certain: {seen}.")
}

fn is_disturbed(comparison: &Comparison, summary: &Summary) -> bool {
    [&comparison.variant, &comparison.against].into_iter().any(|name| summary.is_disturbed(name))
}

/// Many comparisons by the ends of what they differ by.
fn many(compared: &[&Comparison]) -> String {
    let Some(first) = compared.first() else { return String::new() };
    let noun = noun(first.metric);
    let has_one_reference = compared.iter().all(|comparison| comparison.against == first.against);
    let reference = match has_one_reference {
        true => format!(" from {}", first.against),
        false => " from what each is compared with".to_owned(),
    };
    let clause = |one: &Comparison| match has_one_reference {
        true => format!("{} ({})", amount(one), one.variant),
        false => format!("{} ({} than {})", amount(one), one.variant, one.against),
    };
    let (mut certain, rest): (Vec<&Comparison>, Vec<&Comparison>) =
        compared.iter().copied().partition(|comparison| is_certain(comparison));
    certain.sort_by(|a, b| a.difference.value.abs().total_cmp(&b.difference.value.abs()));
    let all = compared.len();
    let bound = hidden(&rest);
    let others = match bound.as_str() {
        "" => String::new(),
        bound => format!(" No other difference is certain{bound}."),
    };
    match certain.as_slice() {
        [] => format!("In {noun}, none of {all} differences is certain{bound}."),
        [only] => format!(
            "Of {all}, only one differs for certain{reference} in {noun}: {}.{others}",
            clause(only)
        ),
        [least, .., most] => format!(
            "Of {all}, {} differ for certain{reference} in {noun}: {} to {}.{others}",
            certain.len(),
            clause(least),
            clause(most)
        ),
    }
}

/// The largest difference that the intervals of these allow, each by itself, as the end of a sentence;
/// nothing where one has no interval.
fn hidden(compared: &[&Comparison]) -> String {
    let largest =
        |estimate: Estimate| estimate.is_bounded().then(|| estimate.high.max(-estimate.low));
    let widest = |estimate: &dyn Fn(&Comparison) -> Option<Estimate>| {
        let all: Option<Vec<f64>> =
            compared.iter().map(|comparison| largest(estimate(comparison)?)).collect();
        all?.into_iter().reduce(f64::max)
    };
    let is_latency = compared.iter().all(|comparison| comparison.metric.is_latency());
    let time = widest(&|comparison| comparison.absolute).filter(|_| is_latency);
    let size = match time {
        Some(ns) => Some(number::certain(&number::duration(ns), ns, ns / 10.0)),
        None => widest(&|comparison| Some(comparison.difference)).map(number::largest),
    };
    size.map_or_else(String::new, |size| format!("; more than {size} is unlikely"))
}

/// A difference as the rest of a sentence: `answers 27 % fewer queries per second than udp`.
fn first_clause(comparison: &Comparison, offered_qps: Option<f64>) -> String {
    let Comparison { metric, difference, against, .. } = comparison;
    let amount = amount(comparison);
    let is_multiple = difference.value >= number::TIMES_FROM && metric.unit() != Unit::Duration;
    if let Some(cpus) = cpus(comparison, offered_qps) {
        let change = number::change(difference.value);
        return format!("takes {cpus} CPUs than {against} at this rate ({change})");
    }
    let Some(Action { verb, object, .. }) = words(*metric).action else {
        let noun = noun(*metric).trim_start_matches("the ").trim_end_matches(" latency");
        return format!("is {amount} than {against} in the {noun}");
    };
    match (metric, is_multiple) {
        (Metric::AnsweredQps, true) => format!("{verb} {amount} {object} as {against}"),
        (_, true) => format!("{verb} {amount} the {object} of {against}"),
        (_, false) => format!("{verb} {amount} {object} than {against}"),
    }
}

/// The rate that all variants were asked at, queries per second; `None` where a closed loop set the pace, or
/// rates differ.
pub(crate) fn offered_qps(summary: &Summary) -> Option<f64> {
    let mut rates = summary.variants.iter().filter_map(|variant| match &variant.mode {
        Some(LoadMode::Open { rate_qps, .. }) => Some(Some(*rate_qps)),
        Some(LoadMode::Closed { .. }) => Some(None),
        None => None,
    });
    let first = rates.next()??;
    rates.all(|rate| rate == Some(first)).then_some(first)
}

/// Where so many queries were lost, a server did not have the work of the rate.
pub(crate) const LOST: f64 = 0.01;

/// The rate at which all variants answered all but a hundredth: figures for each answered query are figures of it.
/// Queries per second; `None` as [`offered_qps`], and where one lost more.
pub(crate) fn borne_qps(summary: &Summary) -> Option<f64> {
    let is_borne = |variant: &VariantSummary| variant.outcomes.lost_share() < LOST;
    offered_qps(summary).filter(|_| summary.variants.iter().all(is_borne))
}

/// A difference of the CPU time per query at a rate, as CPUs: `1.70 more`.
fn cpus(comparison: &Comparison, offered_qps: Option<f64>) -> Option<String> {
    let absolute =
        comparison.absolute.filter(|_| comparison.metric == Metric::ServerCpuPerQuery)?;
    let cpus = absolute.value * offered_qps? / 1e9;
    let word = if cpus < 0.0 { "fewer" } else { "more" };
    let half = absolute.half_width().unwrap_or(0.0) * offered_qps? / 1e9;
    let written = number::certain(&number::three_digits(cpus.abs()), cpus.abs(), half);
    Some(format!("{written} {word}"))
}

/// How large a difference is: `27 % fewer`, `2.4 times`, `0.3 ms slower`.
fn amount(comparison: &Comparison) -> String {
    let Comparison { metric, difference, absolute, .. } = comparison;
    let value = difference.value;
    let word = |less: &'static str, more: &'static str| if value < 0.0 { less } else { more };
    if let (Unit::Duration, Some(absolute)) = (metric.unit(), absolute) {
        let value = absolute.value.abs();
        let half = absolute.half_width().unwrap_or(0.0);
        let time = number::certain(&number::duration(value), value, half);
        return match metric.is_latency() {
            true => format!("{time} {}", word("faster", "slower")),
            false => format!("{time} {}", word("less", "more")),
        };
    }
    let times = || format!("{} times", number::three_digits(1.0 + value));
    match metric {
        Metric::AnsweredQps if value >= number::TIMES_FROM => format!("{} as many", times()),
        _ if value >= number::TIMES_FROM => times(),
        _ if words(*metric).action.is_some_and(|action| action.is_countable) => {
            format!("{} {}", number::size(value), word("fewer", "more"))
        }
        _ => format!("{} {}", number::size(value), word("less", "more")),
    }
}

#[cfg(test)]
mod tests {
    use dnslab_record::OpenPace;
    use dnslab_traffic::Pace;

    use super::*;

    fn of(variant: &str, metric: Metric, value: f64, verdict: Verdict) -> Comparison {
        Comparison {
            variant: variant.to_owned(),
            against: "none".to_owned(),
            metric,
            difference: Estimate { value, low: value - 0.03, high: value + 0.03 },
            absolute: Some(Estimate {
                value: value * 1e6,
                low: (value - 0.03) * 1e6,
                high: (value + 0.03) * 1e6,
            }),
            rounds: 5,
            floor: 0.0,
            verdict,
        }
    }

    const UNCLEAR: Verdict = Verdict::CannotTell { more_runs: None };

    /// A summary of these comparisons and variants.
    fn summary(comparisons: Vec<Comparison>, variants: Vec<VariantSummary>) -> Summary {
        let baseline = "none".to_owned();
        Summary { baseline, variants, comparisons, ..Summary::default() }
    }

    #[track_caller]
    fn check(compared: &[Comparison], second: &[Comparison], expected: &str) {
        let summary = summary(second.to_vec(), Vec::new());
        let compared: Vec<&Comparison> = compared.iter().collect();
        assert_eq!(few(&compared, &summary), expected);
    }

    fn of_cpu(name: &str, cpu_ns: f64) -> VariantSummary {
        VariantSummary {
            name: name.to_owned(),
            valid_runs: 5,
            metrics: [(Metric::ServerCpuPerQuery, within(cpu_ns, 100.0))].into(),
            ..VariantSummary::default()
        }
    }

    /// The CPU time is that of 31, section 1: of BIND 9.18 over UDP and TLS.
    #[test]
    fn the_cost_of_a_query_is_told_in_cpu_time_and_what_a_core_answers() {
        let cost = |name: &str, added_ns: f64| Comparison {
            absolute: Some(within(added_ns, 400.0)),
            ..of(name, Metric::ServerCpuPerQuery, added_ns / 6_600.0, Verdict::Costs)
        };
        let variants =
            vec![of_cpu("none", 6_600.0), of_cpu("tcp", 10_300.0), of_cpu("dot", 13_800.0)];
        let summary = summary(vec![cost("tcp", 3_700.0), cost("dot", 7_200.0)], variants);
        assert_eq!(
            of_figures(&summary),
            "none takes 6.60 us of CPU for a query, tcp 3.7 ±0.4 us more and dot 7.2 ±0.4 us more. One core \
             here answers 152,000 queries per second of none, 97,100 of tcp and 72,500 of dot."
        );
        let alone = Summary { comparisons: vec![cost("dot", 7_200.0)], ..summary };
        assert_eq!(
            of_figures(&alone),
            "dot takes 13.8 us of CPU for a query, none 6.60 us: 7.2 ±0.4 us more. One core here answers \
             72,500 queries per second instead of 152,000."
        );
    }

    fn within(value: f64, half: f64) -> Estimate {
        Estimate { value, low: value - half, high: value + half }
    }

    #[test]
    fn where_others_used_the_machine_rounds_are_not_blamed() {
        let compared = of("a", Metric::AnsweredQps, 0.06, UNCLEAR);
        let disturbed = VariantSummary {
            name: "a".to_owned(),
            is_disturbed: true,
            ..VariantSummary::default()
        };
        assert_eq!(
            few(&[&compared], &summary(Vec::new(), vec![disturbed])),
            "Whether a differs from none in the answered rate is not certain: others used this machine."
        );
    }

    #[test]
    fn certain_differences_come_first() {
        use Metric::{AnsweredQps, ServerCpuPerQuery};
        let rate = |variant, value, verdict| of(variant, AnsweredQps, value, verdict);
        check(
            &[
                rate("a", -0.02, UNCLEAR),
                rate("e", 0.06, UNCLEAR),
                rate("b", -0.274, Verdict::Costs),
                rate("c", 0.004, Verdict::EqualWithin { margin: 0.02 }),
                rate("d", -0.65, Verdict::Costs),
            ],
            &[of("a", ServerCpuPerQuery, 0.26, Verdict::Costs)],
            "b answers 27 % fewer queries per second than none and d 65 % fewer. a takes 260 us \
             more CPU time per query than none. c and none are equal within 2 % in the answered rate. \
             Whether a and e differ from none in the answered rate is not certain: 5 rounds are too \
             few.",
        );
        check(
            &[rate("a", -0.02, UNCLEAR)],
            &[],
            "A difference of a from none in the answered rate is not seen; more than 5 % is unlikely.",
        );
        check(
            &[rate("a", 2.1, Verdict::Gains), rate("b", 0.4, Verdict::Gains)],
            &[],
            "a answers 3.10 times as many queries per second as none and b 40 % more.",
        );
    }

    #[test]
    fn too_few_rounds_are_said_of_those_that_had_so_few() {
        let of_rounds = |variant: &str, rounds| Comparison {
            rounds,
            ..of(variant, Metric::AnsweredQps, 0.06, UNCLEAR)
        };
        check(
            &[of_rounds("a", 2), of_rounds("b", 5), of_rounds("c", 5)],
            &[],
            "Whether b and c differ from none in the answered rate is not certain: 5 rounds are too \
             few. Whether a differs from none in the answered rate is not certain: 2 rounds are too few.",
        );
    }

    /// Quantiles that are the time-out in so many of 8 rounds.
    fn timed_out(name: &str, quantiles: &[(&str, u32)]) -> VariantSummary {
        let time_outs = quantiles
            .iter()
            .map(|(quantile, runs)| ((*quantile).to_owned(), TimeOuts { runs: *runs, of: 8 }));
        VariantSummary {
            name: name.to_owned(),
            time_outs: time_outs.collect(),
            ..VariantSummary::default()
        }
    }

    #[test]
    fn time_outs_are_told_by_their_quantile_and_rounds() {
        let b = timed_out("b", &[("p99", 5), ("p99.9", 6)]);
        let found = time_outs(&[timed_out("a", &[]), b.clone(), timed_out("c", &[("p95", 8)])]);
        assert_eq!(
            found,
            [
                "The p99 latency of b is the time-out in 5 of 8 rounds.",
                "The p95 latency of c is the time-out.",
            ]
        );
        let d = VariantSummary { name: "d".to_owned(), ..b.clone() };
        let found = time_outs(&[b, d]);
        assert_eq!(found, ["The p99 latency of b and d is the time-out in 5 of 8 rounds each."]);
        assert_eq!(time_outs(&[timed_out("a", &[("p99.9", 1)])]), [""; 0]);
    }

    #[test]
    fn latencies_are_told_in_their_unit() {
        let p50 = |variant, value, verdict| of(variant, Metric::LatencyP50, value, verdict);
        check(
            &[p50("a", 0.3, Verdict::Costs), p50("b", -0.2, Verdict::Gains)],
            &[],
            "a is 300 us slower than none in the median and b 200 us faster.",
        );
        check(
            &[of("a", Metric::ServerCpuPerQuery, 1.4, Verdict::Costs)],
            &[],
            "a takes 1.40 ms more CPU time per query than none.",
        );
    }

    #[test]
    fn cpu_time_at_a_rate_is_so_many_cpus() {
        let more = of("dot", Metric::ServerCpuPerQuery, 0.057, Verdict::Costs);
        let at_rate = VariantSummary {
            mode: Some(LoadMode::Open {
                rate_qps: 30_000.0,
                pace: OpenPace::constant(Pace::Poisson),
            }),
            ..VariantSummary::default()
        };
        // 57 us more for each of 30,000 queries in a second.
        assert_eq!(
            differences([&more].into_iter(), &summary(Vec::new(), vec![at_rate])),
            ["dot takes 1.7 more CPUs than none at this rate (+5.7 %)."]
        );
        assert_eq!(
            differences([&more].into_iter(), &summary(Vec::new(), Vec::new())),
            ["dot takes 60 us more CPU time per query than none."]
        );
    }

    #[test]
    fn many_are_told_by_their_ends() {
        let all: Vec<Comparison> = [
            ("a", -0.3, Verdict::Costs),
            ("b", -0.1, Verdict::Costs),
            ("c", -0.7, Verdict::Costs),
            ("d", 0.0, UNCLEAR),
        ]
        .map(|(variant, value, verdict)| of(variant, Metric::AnsweredQps, value, verdict))
        .into();
        let compared: Vec<&Comparison> = all.iter().collect();
        assert_eq!(
            many(&compared),
            "Of 4, 3 differ for certain from none in the answered rate: 10 % fewer (b) to 70 % \
             fewer (c). No other difference is certain; more than 3 % is unlikely."
        );
        assert_eq!(
            many(&compared[3..]),
            "In the answered rate, none of 1 differences is certain; more than 3 % is unlikely."
        );
    }
}
