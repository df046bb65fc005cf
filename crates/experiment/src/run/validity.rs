//! Whether a load that was applied counts.

use std::time::Duration;

use dnslab_load::{Expected, LoadResult};
use dnslab_measure::{
    Answers, Cause, ERROR_CODES, InvalidReason, fell_silent, lost_over_transport,
};
use dnslab_settings::{Mode, Variant};

use super::case::expected;

/// Why a load that was to last for `asked` does not count; `None` if it does. `cause` may explain that
/// nothing, or too little, was answered.
pub(super) fn why_invalid(
    variant: &Variant,
    result: &LoadResult,
    asked: Duration,
    cause: Option<Cause>,
) -> Option<InvalidReason> {
    let measured = &result.measured;
    let (outcomes, answers) = (&measured.counters.outcomes, &measured.counters.answers);
    let warm_up = &measured.warm_up.outcomes;
    if outcomes.answered == 0 {
        return Some(InvalidReason::Unanswered {
            due: outcomes.due,
            warm_up_due: warm_up.due,
            warm_up_answered: warm_up.answered,
            cause,
        });
    }
    if let Some(reason) = measured.slower_than_slices() {
        return Some(reason);
    }
    if let Some(silence) = fell_silent(&result.facts, measured) {
        return Some(InvalidReason::FellSilent { silence, cause });
    }
    let limit_ns = u64::try_from(variant.expect.lag_limit.as_nanos()).unwrap_or(u64::MAX);
    if let Some(p99_ns) = measured.start_lag.quantile_ns(0.99).filter(|lag| *lag > limit_ns) {
        return Some(InvalidReason::Late { p99_ns, limit_ns });
    }
    let limit = variant.expect.lost_limit;
    if outcomes.lost() as f64 > limit * outcomes.due as f64 {
        return Some(InvalidReason::Lost { outcomes: *outcomes, limit, cause });
    }
    if let Some(reason) = lost_over_transport(measured, limit, cause) {
        return Some(reason);
    }
    // What a played client may be told is not known, but most of them are told something: unless the experiment
    // says that any answer will do, as where it looks for the load at which a resolver gives up.
    if variant.load.mode() == Mode::Clients && variant.expect.wrong_limit < 1.0 {
        let of = |name: &&str| answers.rcodes.get(*name).copied().unwrap_or(0);
        let errors = ERROR_CODES.iter().map(of).sum::<u64>();
        if 2 * errors > outcomes.answered {
            return Some(InvalidReason::Errors { errors, answers: outcomes.answered });
        }
    }
    let limit = variant.expect.wrong_limit;
    // An answer that cannot be read is not right either.
    let wrong = answers.wrong + outcomes.malformed;
    let came = outcomes.answered + outcomes.malformed;
    if wrong as f64 > limit * came as f64 {
        let Expected { rcode, answers: records } = expected(variant);
        return Some(InvalidReason::Wrong {
            wrong,
            answers: came,
            limit,
            rcode: rcode.into(),
            has_record: records > 0,
            example: result.wrong_example.clone(),
        });
    }
    // A sample of the answers that looked right was parsed. It stands for all of them.
    let Answers { checked, malformed, checked_stand_for, malformed_stand_for, .. } = *answers;
    if malformed_stand_for as f64 > limit * checked_stand_for as f64 {
        let example = result.malformed_example.clone().unwrap_or_default();
        return Some(InvalidReason::Malformed { malformed, checked, limit, example });
    }
    let measured_ns = measured.own_ns();
    let asked_ns = u64::try_from(asked.as_nanos()).unwrap_or(u64::MAX);
    let sent_all =
        variant.load.queries_in_all.is_some_and(|most| outcomes.due + warm_up.due >= most);
    (u128::from(measured_ns) * 2 < asked.as_nanos() && !sent_all)
        .then_some(InvalidReason::TooShort { measured_ns, asked_ns })
}
