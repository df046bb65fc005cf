//! Whether a load that was applied counts.

use std::time::Duration;

use dnslab_load::{Expected, LoadResult};
use dnslab_measure::{Answers, Measured, Outcomes, fell_silent};
use dnslab_settings::Variant;
use dnslab_wire::units::share;

use super::case::expected;

/// Why a load that was to last for `asked` does not count, as a sentence without its full stop; `None` if it
/// does count. `why` explains why nothing, or too little, was answered.
pub(super) fn why_invalid(
    variant: &Variant,
    result: &LoadResult,
    asked: Duration,
    why: Option<&str>,
) -> Option<String> {
    let measured = &result.measured;
    let (outcomes, answers) = (&measured.counters.outcomes, &measured.counters.answers);
    let why = why.map(|why| format!("; {why}")).unwrap_or_default();
    if outcomes.answered == 0 {
        return Some(format!("{}{why}", unanswered(measured)));
    }
    if let Some(reason) = measured.slower_than_slices() {
        return Some(reason);
    }
    if let Some(reason) = fell_silent(&result.facts, measured) {
        return Some(format!("{reason}{why}"));
    }
    let limit = variant.expect.lost_limit;
    if outcomes.lost() as f64 > limit * outcomes.due as f64 {
        return Some(format!(
            "{} of {} queries were not answered, more than the limit of {} (`expect.lost_limit`): \
             {}{why}",
            outcomes.lost(),
            outcomes.due,
            share::in_sentence(limit),
            ways_lost(outcomes)
        ));
    }
    let limit = variant.expect.wrong_limit;
    // An answer that cannot be read is not right either.
    let wrong = answers.wrong + outcomes.malformed;
    let came = outcomes.answered + outcomes.malformed;
    if wrong as f64 > limit * came as f64 {
        let Expected { rcode, answers: records } = expected(variant);
        let expected = dnslab_wire::rcode_name(rcode.into());
        let record = if records > 0 { " with a record" } else { "" };
        let example = result.wrong_example.as_deref();
        let example = example.unwrap_or("they could not be read as DNS messages");
        return Some(format!(
            "{wrong} of {came} answers were not {expected}{record}, more than the limit of {}: \
             {example}",
            share::in_sentence(limit)
        ));
    }
    // A sample of the answers that looked right was parsed. It stands for all of them.
    let Answers { checked, malformed, checked_stand_for, malformed_stand_for, .. } = *answers;
    if malformed_stand_for as f64 > limit * checked_stand_for as f64 {
        let example = result.malformed_example.as_deref().unwrap_or_default();
        return Some(format!(
            "{malformed} of {checked} answers that were checked in full did not hold what they must, more \
             than the limit of {}: {example}",
            share::in_sentence(limit)
        ));
    }
    let (measured_for, asked) = (measured.own_ns(), asked.as_nanos());
    let due = outcomes.due + measured.warm_up.outcomes.due;
    let sent_all = variant.load.queries_in_all.is_some_and(|most| due >= most);
    (u128::from(measured_for) * 2 < asked && !sent_all).then(|| {
        format!(
            "interrupted after {:.3} s of {:.3} s: too little to stand beside whole runs",
            measured_for as f64 / 1e9,
            asked as f64 / 1e9
        )
    })
}

/// Describes a measured window without an answer.
fn unanswered(measured: &Measured) -> String {
    let (window, warm_up) = (&measured.counters.outcomes, &measured.warm_up.outcomes);
    let before = match (warm_up.answered, warm_up.due) {
        (_, 0) => String::new(),
        (0, due) => format!(", nor of {due} in the warm-up before it"),
        (answered, due) => format!("; in the warm-up before it {answered} of {due} were answered"),
    };
    match (window.due, warm_up.due) {
        (0, 0) => "no query was sent".to_owned(),
        // All places of a closed loop still waited.
        (0, due) if warm_up.answered == 0 => {
            format!("none of the {due} queries of the warm-up was answered, and no other was sent")
        }
        (0, _) => format!("no query was sent in the measured window{before}"),
        (due, _) => {
            format!("none of the {due} queries of the measured window was answered{before}")
        }
    }
}

/// The most frequent way first: `120 timed out, 3 were not sent`.
fn ways_lost(outcomes: &Outcomes) -> String {
    let mut ways = [
        (outcomes.timed_out, "timed out"),
        (outcomes.not_sent, "were not sent"),
        (outcomes.connection_lost, "were lost with their connection"),
        (outcomes.malformed, "had an answer that is no DNS message"),
        (outcomes.refused, "were refused without a DNS message"),
    ];
    ways.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let ways = ways.iter().filter(|(count, _)| *count > 0);
    ways.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
}
