//! Differences in plain language: one sentence each.

use std::fmt;

use dnslab_measure::statistics::{Comparison, Metric, Verdict};
use dnslab_measure::{Caveat, Summary, VariantSummary};

use crate::many::{are_many, clauses};
use crate::number;
use crate::phrases::{Phrases, in_time, interval, signed_interval};
use crate::remark::{at_this_window, find, has_open_loop, held_back, listed, losses, missing_runs};

/// The answer to the experiment's question: one sentence, in parts so that the page can set the
/// intervals smaller than the words, and what limits it apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The parts in order, without the full stop; joined by nothing.
    pub parts: Vec<Part>,
    /// What limits the answer, with the punctuation before it; empty if nothing does.
    pub remarks: String,
}

/// A part of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Ordinary words.
    Words(String),
    /// A difference, the figure that the reader takes away.
    Figure(String),
    /// An interval in brackets.
    Interval(String),
}

impl Part {
    /// What it says.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Words(text) | Self::Figure(text) | Self::Interval(text) => text,
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| f.write_str(part.text()))?;
        write!(f, "{}.", self.remarks)
    }
}

/// One sentence for every difference of `summary`, in its order. `margin` is the relative
/// difference (0.02 = 2 %) below which a difference does not matter, from the session.
#[must_use]
pub fn sentences(summary: &Summary, margin: f64) -> Vec<String> {
    summary.comparisons.iter().map(|comparison| sentence(summary, comparison, margin)).collect()
}

/// The answer in one sentence: what each variant does to the answered rate, or to the median
/// latency where a rate was asked (open loop); then what limits it: a rate that is only that of the
/// window, lost queries, a generator that held back, runs that do not count.
#[must_use]
pub fn answer(summary: &Summary, margin: f64) -> Answer {
    let words = |text: String| Answer { parts: vec![Part::Words(text)], remarks: String::new() };
    if summary.variants.iter().all(|variant| variant.valid_runs + variant.other_runs == 0) {
        return words("No run has ended yet: there is nothing to answer with".to_owned());
    }
    let baseline = &summary.baseline;
    if find(summary, baseline).is_none_or(|variant| variant.valid_runs == 0) {
        return words(format!("No answer: the baseline {baseline} has no valid run"));
    }
    let metric = headline_metric(summary);
    let compared: Vec<_> =
        summary.comparisons.iter().filter(|comparison| comparison.metric == metric).collect();
    if compared.is_empty() {
        return words(format!("No answer: no variant but the baseline {baseline} has a valid run"));
    }
    let names = || compared.iter().flat_map(|of| [of.against.as_str(), of.variant.as_str()]);
    let remarks = remarks(metric, &of_names(summary, names()));
    if are_many(summary) {
        let mut parts = vec![Part::Words("Against what each is compared with, ".to_owned())];
        if compared.iter().all(|of| of.against == *baseline) {
            parts = vec![Part::Words(format!("Against {baseline}, "))];
        }
        parts.extend(clauses(&compared));
        return Answer { parts, remarks };
    }
    let mut parts = Vec::new();
    for (place, comparison) in compared.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| compared[before]);
        let goes_on = before.filter(|before| before.against == comparison.against);
        parts.push(Part::Words(match (before, goes_on) {
            (None, _) => format!("Against {}, ", comparison.against),
            (Some(_), None) => format!("; against {}, ", comparison.against),
            _ if place + 1 < compared.len() => ", ".to_owned(),
            _ if place == 1 => " and ".to_owned(),
            _ => ", and ".to_owned(),
        }));
        // What the clause before said already is not said again: "and dot 38 % fewer".
        parts.extend(clause(comparison, margin, goes_on, before.is_none()));
    }
    Answer { parts, remarks }
}

/// The metric that answers the question: the answered rate, unless a variant was measured with an
/// open loop, because then that rate is the asked one or a sign that the server fell behind. Where one
/// query is asked after another the rate is nothing but the mean latency, upside down.
pub(crate) fn headline_metric(summary: &Summary) -> Metric {
    if has_open_loop(summary) {
        Metric::LatencyP50
    } else if asks_one_by_one(summary) {
        Metric::LatencyMean
    } else {
        Metric::AnsweredQps
    }
}

/// True if every variant that was measured had one query outstanding in all.
fn asks_one_by_one(summary: &Summary) -> bool {
    let mut measured = summary.variants.iter().filter(|variant| variant.valid_runs > 0).peekable();
    let one_by_one = |variant: &VariantSummary| {
        variant.caveats.iter().any(|of| of.worst == Caveat::ClosedLoop { window: 1 })
    };
    measured.peek().is_some() && measured.all(one_by_one)
}

/// What limits the answer, with the punctuation before it.
fn remarks(metric: Metric, variants: &[&VariantSummary]) -> String {
    let (mut window, mut lost, mut generator) = (None, None, None);
    if metric == Metric::AnsweredQps {
        window = at_this_window(variants).map(|text| format!(", {text}"));
        let limited = held_back(variants);
        generator = (!limited.is_empty())
            .then(|| format!("; in doubt: the load generator held back {}", listed(&limited)));
    } else {
        lost = losses(variants).map(|text| format!("; {text}"));
    }
    let runs = missing_runs(variants).map(|text| format!(" ({text})"));
    [window, lost, generator, runs].into_iter().flatten().collect()
}

/// The variants of these names, each once.
fn of_names<'a>(
    summary: &'a Summary,
    names: impl Iterator<Item = &'a str>,
) -> Vec<&'a VariantSummary> {
    let mut found: Vec<&VariantSummary> = Vec::new();
    for variant in names.filter_map(|name| find(summary, name)) {
        if !found.iter().any(|known| known.name == variant.name) {
            found.push(variant);
        }
    }
    found
}

/// A variant's part of the answer; the first one says what the interval is, a later one leaves
/// away the words that it shares with the one `before` it.
fn clause(
    comparison: &Comparison,
    margin: f64,
    before: Option<&Comparison>,
    is_first: bool,
) -> Vec<Part> {
    let Comparison { variant, metric, difference, verdict, .. } = comparison;
    let phrases = Phrases::of(*metric);
    let level = if is_first { "95 % interval " } else { "" };
    let unit = phrases.unit_of(difference.value);
    let told = before.is_some_and(|before| {
        matches!(before.verdict, Verdict::Costs | Verdict::Gains)
            && phrases.unit_of(before.difference.value) == unit
    });
    match verdict {
        Verdict::Costs | Verdict::Gains => {
            let (verb, unit) = if told { ("", "") } else { (phrases.verb, unit) };
            let spaced = |word: &str| match word {
                "" => String::new(),
                word => format!(" {word}"),
            };
            vec![
                Part::Words(format!("{variant}{} ", spaced(verb))),
                Part::Figure(phrases.amount(difference.value)),
                Part::Words(spaced(unit)),
                Part::Interval(format!(" ({level}{})", interval(difference))),
            ]
        }
        Verdict::NoDifferenceSeen => vec![
            Part::Words(format!("{variant} shows ")),
            Part::Figure("no difference".to_owned()),
            Part::Words(format!(" in {}", phrases.noun)),
            Part::Interval(format!(
                " ({level}{}, margin {})",
                signed_interval(difference),
                number::size(margin)
            )),
        ],
        Verdict::CannotTell { .. } => vec![
            Part::Words("it ".to_owned()),
            Part::Figure("cannot be told".to_owned()),
            Part::Words(format!(" whether {variant} changes {}", phrases.noun)),
            Part::Interval(if difference.is_bounded() {
                format!(" ({level}{})", signed_interval(difference))
            } else {
                " (too few runs for an interval)".to_owned()
            }),
        ],
    }
}

/// One difference as a sentence that ends in its word.
fn sentence(summary: &Summary, comparison: &Comparison, margin: f64) -> String {
    let Comparison { variant, against, metric, difference, absolute, verdict, .. } = comparison;
    let in_time = in_time(*metric, absolute.as_ref()).map(|text| format!("; {text}"));
    let in_time = in_time.unwrap_or_default();
    let phrases = Phrases::of(*metric);
    let doubt = doubt(summary, comparison);
    match verdict {
        Verdict::Costs | Verdict::Gains => {
            let word = if *verdict == Verdict::Costs { "costs" } else { "gains" };
            format!(
                "{variant} {} {} {} {against} (95 % interval {}{in_time}): {word}{doubt}.",
                phrases.verb,
                phrases.amount(difference.value),
                phrases.than(difference.value),
                interval(difference)
            )
        }
        Verdict::NoDifferenceSeen => format!(
            "{variant} and {against}: no difference seen in {} (95 % interval {}, inside the \
             margin of {}{in_time}){doubt}.",
            phrases.noun,
            signed_interval(difference),
            number::size(margin)
        ),
        Verdict::CannotTell { more_runs } => {
            let more = match more_runs {
                Some(1) => "; about 1 more round would do".to_owned(),
                Some(rounds) => format!("; about {rounds} more rounds would do"),
                None => String::new(),
            };
            let why = if difference.is_bounded() {
                let interval = signed_interval(difference);
                format!("too little is certain (95 % interval {interval}{in_time})")
            } else {
                "there are too few runs for an interval".to_owned()
            };
            format!(
                "cannot tell whether {variant} {} than {against}: {why}{more}{doubt}.",
                phrases.either
            )
        }
    }
}

/// What makes this difference doubtful: a generator that was the limit of either side, where the
/// figure is the answered rate, and runs that do not count.
fn doubt(summary: &Summary, comparison: &Comparison) -> String {
    let names = [&comparison.against, &comparison.variant];
    let variants: Vec<_> = names.iter().filter_map(|name| find(summary, name)).collect();
    let mut text = String::new();
    let limited = held_back(&variants);
    if comparison.metric == Metric::AnsweredQps && !limited.is_empty() {
        let names = listed(&limited);
        text = format!("; in doubt, because the load generator held back {names}");
    }
    if let Some(runs) = missing_runs(&variants) {
        text.push_str(&format!(" ({runs})"));
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use dnslab_measure::statistics::Estimate;
    use dnslab_measure::{Caveat, Limit, LimitKind, LoadMode, VariantCaveat};

    use super::*;

    /// A variant with three valid runs of a closed loop.
    pub(crate) fn variant(name: &str, limit: LimitKind) -> VariantSummary {
        VariantSummary {
            name: name.to_owned(),
            valid_runs: 3,
            mode: Some(LoadMode::Closed { outstanding: 100 }),
            limits: vec![Limit { kind: limit, evidence: String::new() }],
            ..VariantSummary::default()
        }
    }

    /// Baseline `udp` and the variants of the comparisons, none of them doubtful.
    fn summary(comparisons: Vec<Comparison>) -> Summary {
        let mut names = vec!["udp".to_owned()];
        for comparison in &comparisons {
            if !names.contains(&comparison.variant) {
                names.push(comparison.variant.clone());
            }
        }
        Summary {
            name: "test".to_owned(),
            baseline: "udp".to_owned(),
            variants: names.iter().map(|name| variant(name, LimitKind::ServerCpu)).collect(),
            comparisons,
            rulings: Vec::new(),
        }
    }

    /// A comparison; `ends` are value, low and high.
    fn against_udp(name: &str, metric: Metric, ends: [f64; 3], verdict: Verdict) -> Comparison {
        let [value, low, high] = ends;
        let difference = Estimate { value, low, high };
        Comparison {
            variant: name.to_owned(),
            against: "udp".to_owned(),
            metric,
            difference,
            absolute: None,
            rounds: 3,
            verdict,
        }
    }

    #[track_caller]
    fn check(metric: Metric, ends: [f64; 3], verdict: Verdict, expected: &str) {
        let summary = summary(vec![against_udp("dot", metric, ends, verdict)]);
        assert_eq!(sentences(&summary, 0.02), [expected]);
    }

    #[test]
    fn costs_and_gains() {
        check(
            Metric::AnsweredQps,
            [-0.37, -0.40, -0.34],
            Verdict::Costs,
            "dot answers 37 % fewer queries per second than udp (95 % interval 34 % to 40 %): costs.",
        );
        check(
            Metric::AnsweredQps,
            [1.5, 1.4, 1.6],
            Verdict::Gains,
            "dot answers 2.50 times as many queries per second as udp (95 % interval 2.40 to 2.60 \
             times): gains.",
        );
        check(
            Metric::LatencyP99,
            [0.056, 0.031, 0.084],
            Verdict::Costs,
            "dot has 5.6 % more p99 latency than udp (95 % interval 3.1 % to 8.4 %): costs.",
        );
        check(
            Metric::LatencyP50,
            [2.8, 2.6, 3.0],
            Verdict::Costs,
            "dot has 3.80 times the median latency of udp (95 % interval 3.60 to 4.00 times): costs.",
        );
        check(
            Metric::ServerCpuPerQuery,
            [-0.12, -0.15, -0.09],
            Verdict::Gains,
            "dot takes 12 % less server CPU time per answered query than udp (95 % interval 9 % to \
             15 %): gains.",
        );
    }

    #[test]
    fn no_difference_and_no_telling() {
        check(
            Metric::AnsweredQps,
            [0.001, -0.008, 0.012],
            Verdict::NoDifferenceSeen,
            "dot and udp: no difference seen in answered queries per second (95 % interval -0.8 % \
             to +1.2 %, inside the margin of 2 %).",
        );
        check(
            Metric::AnsweredQps,
            [0.03, -0.03, 0.09],
            Verdict::CannotTell { more_runs: Some(4) },
            "cannot tell whether dot answers fewer or more queries per second than udp: too little is \
             certain (95 % interval -3 % to +9 %); about 4 more rounds would do.",
        );
        check(
            Metric::LatencyP95,
            [0.03, f64::NEG_INFINITY, f64::INFINITY],
            Verdict::CannotTell { more_runs: None },
            "cannot tell whether dot has less or more p95 latency than udp: there are too few runs \
             for an interval.",
        );
    }

    #[test]
    fn a_generator_that_was_the_limit_is_named() {
        let mut summary = summary(vec![against_udp(
            "dot",
            Metric::AnsweredQps,
            [-0.3, -0.31, -0.29],
            Verdict::Costs,
        )]);
        let in_one_run = |worst| vec![VariantCaveat { worst, runs: 1 }];
        summary.variants[0].caveats = in_one_run(Caveat::GeneratorLimited { busy_share: 0.99 });
        // Whatever the load had to wait for: where it kept the server busy, it held nothing back.
        assert!(!sentences(&summary, 0.02)[0].contains("generator"));
        summary.variants[0].limits[0].kind = LimitKind::Window;
        let doubt = "the load generator held back udp.";
        assert!(sentences(&summary, 0.02)[0].ends_with(doubt));
        assert!(answer(&summary, 0.02).to_string().ends_with(doubt));
        summary.variants[0].caveats = in_one_run(Caveat::Steal { share: 0.1 });
        assert!(!sentences(&summary, 0.02)[0].contains("generator"));
    }

    #[test]
    fn runs_that_do_not_count_are_told() {
        let costs = [-0.3, -0.31, -0.29];
        let mut summary =
            summary(vec![against_udp("dot", Metric::AnsweredQps, costs, Verdict::Costs)]);
        summary.variants[1].other_runs = 2;
        let told = &sentences(&summary, 0.02)[0];
        assert!(told.ends_with(": costs (only 3 of 5 runs of dot count)."), "{told}");
    }

    #[test]
    fn the_answer_is_one_sentence() {
        let costs = |name, value: f64| {
            let ends = [value, value - 0.01, value + 0.01];
            against_udp(name, Metric::AnsweredQps, ends, Verdict::Costs)
        };
        let mut summary = summary(vec![
            costs("tcp", -0.15),
            against_udp("tcp", Metric::LatencyP50, [0.2, 0.1, 0.3], Verdict::Costs),
            costs("dot", -0.4),
        ]);
        let told = |summary: &Summary| answer(summary, 0.02).to_string();
        assert_eq!(
            told(&summary),
            "Against udp, tcp answers 15 % fewer queries per second (95 % interval 14 % to 16 %) \
             and dot 40 % fewer (39 % to 41 %)."
        );
        summary.variants[2].other_runs = 1;
        summary.variants[1].limits[0].kind = LimitKind::Window;
        assert_eq!(
            told(&summary),
            "Against udp, tcp answers 15 % fewer queries per second (95 % interval 14 % to 16 %) \
             and dot 40 % fewer (39 % to 41 %), at this window; tcp was not at its limit \
             (only 3 of 4 runs of dot count)."
        );
        // Where a rate was asked, the answered one answers nothing, were it only of one variant.
        summary.variants[2].mode =
            Some(LoadMode::Open { rate_qps: 1_000.0, pace: "constant".to_owned() });
        let latency = "Against udp, tcp has 20 % more median latency (95 % interval 10 % to 30 %)";
        assert_eq!(told(&summary), format!("{latency}."));
        let outcomes = &mut summary.variants[0].outcomes;
        (outcomes.due, outcomes.answered) = (1_000, 900);
        assert_eq!(told(&summary), format!("{latency}; queries lost: udp 10.0 %."));
        summary.comparisons.clear();
        assert_eq!(told(&summary), "No answer: no variant but the baseline udp has a valid run.");
        summary.variants[0].valid_runs = 0;
        assert_eq!(told(&summary), "No answer: the baseline udp has no valid run.");
        for variant in &mut summary.variants {
            (variant.valid_runs, variant.other_runs) = (0, 0);
        }
        assert_eq!(told(&summary), "No run has ended yet: there is nothing to answer with.");
    }
}
