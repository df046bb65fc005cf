//! Many variants in few words.

use dnslab_measure::Summary;
use dnslab_measure::statistics::{Comparison, Verdict};

use crate::phrases::Phrases;
use crate::sentence::{Part, headline_metric};

/// Up to so many variants beside the baseline each has its clause in the answer, and every metric its
/// picture and its sentences. More of them nobody reads in one go.
const FEW: usize = 6;

/// True if there are more variants than can be told one by one.
pub(crate) fn are_many(summary: &Summary) -> bool {
    let metric = headline_metric(summary);
    summary.comparisons.iter().filter(|of| of.metric == metric).count() > FEW
}

/// The sentences of a comparison, each with whether it is of the metric that answers the question.
/// `sentences` are those of the summary in its order.
#[must_use]
pub fn foremost(summary: &Summary, sentences: Vec<String>) -> (Vec<String>, Vec<String>) {
    let metric = headline_metric(summary);
    let is_first = |comparison: &Comparison| !are_many(summary) || comparison.metric == metric;
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for (comparison, sentence) in summary.comparisons.iter().zip(sentences) {
        if is_first(comparison) { first.push(sentence) } else { others.push(sentence) }
    }
    (first, others)
}

/// The answer for many variants, after `Against BASELINE, `: how many of them cost and gain, from the
/// least to the most, and of how many nothing is seen or can be told.
pub(crate) fn clauses(compared: &[&Comparison]) -> Vec<Part> {
    let Some(first) = compared.first() else { return Vec::new() };
    let phrases = Phrases::of(first.metric);
    let words = |text: String| Part::Words(text);
    let mut parts = vec![words(format!("in {}, of {} variants ", phrases.noun, compared.len()))];
    let mut clauses: Vec<Vec<Part>> = Vec::new();
    for (verdict, one, several) in
        [(Verdict::Costs, "costs", "cost"), (Verdict::Gains, "gains", "gain")]
    {
        let mut own: Vec<&Comparison> =
            compared.iter().copied().filter(|of| of.verdict == verdict).collect();
        own.sort_by(|a, b| a.difference.value.abs().total_cmp(&b.difference.value.abs()));
        let told = |of: &Comparison| {
            let amount = Part::Figure(phrases.amount(of.difference.value));
            [amount, Part::Interval(format!(" ({})", of.variant))]
        };
        match own.as_slice() {
            [] => {}
            [only] => {
                let mut clause = vec![words(format!("1 {one} "))];
                clause.extend(told(only));
                clauses.push(clause);
            }
            [least, .., most] => {
                let mut clause = vec![words(format!("{} {several}, from ", own.len()))];
                clause.extend(told(least));
                clause.push(words(" to ".to_owned()));
                clause.extend(told(most));
                clauses.push(clause);
            }
        }
    }
    let count = |is_it: fn(&Verdict) -> bool| {
        compared.iter().filter(|comparison| is_it(&comparison.verdict)).count()
    };
    let same = count(|verdict| matches!(verdict, Verdict::NoDifferenceSeen));
    let unclear = count(|verdict| matches!(verdict, Verdict::CannotTell { .. }));
    if same > 0 {
        let verb = if same == 1 { "shows" } else { "show" };
        clauses.push(vec![words(format!("{same} {verb} no difference"))]);
    }
    if unclear > 0 {
        clauses.push(vec![words(format!("of {unclear} it cannot be told"))]);
    }
    let last = clauses.len().saturating_sub(1);
    for (place, clause) in clauses.into_iter().enumerate() {
        match place {
            0 => {}
            _ if place == last => parts.push(words("; and ".to_owned())),
            _ => parts.push(words("; ".to_owned())),
        }
        parts.extend(clause);
    }
    parts
}

#[cfg(test)]
mod tests {
    use dnslab_measure::statistics::{Estimate, Metric};

    use super::*;

    #[test]
    fn many_variants_are_told_by_their_ends() {
        let unclear = Verdict::CannotTell { more_runs: None };
        let of = |variant: &str, value: f64, verdict| Comparison {
            variant: variant.to_owned(),
            against: "udp".to_owned(),
            absolute: None,
            rounds: 5,
            metric: Metric::AnsweredQps,
            difference: Estimate { value, low: value - 0.01, high: value + 0.01 },
            verdict,
        };
        let told = |compared: &[Comparison]| -> String {
            let compared: Vec<&Comparison> = compared.iter().collect();
            clauses(&compared).iter().map(Part::text).collect()
        };
        let all = [
            of("a", -0.3, Verdict::Costs),
            of("b", -0.1, Verdict::Costs),
            of("c", -0.7, Verdict::Costs),
            of("d", 0.4, Verdict::Gains),
            of("e", 0.0, Verdict::NoDifferenceSeen),
            of("f", 0.0, unclear),
            of("g", 0.0, unclear),
        ];
        assert_eq!(
            told(&all),
            "in answered queries per second, of 7 variants 3 cost, from 10 % fewer (b) to 70 % fewer \
             (c); 1 gains 40 % more (d); 1 shows no difference; and of 2 it cannot be told"
        );
        assert_eq!(
            told(&all[5..]),
            "in answered queries per second, of 2 variants of 2 it cannot be told"
        );
        assert_eq!(told(&[]), "");
    }
}
