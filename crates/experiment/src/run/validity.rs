//! Whether a load that was applied counts.

use dnslab_analysis::{
    BottleneckFigures, SendingLimits, fell_silent, lost_over_transport, not_sent_as_asked,
    slower_than_slices,
};
use dnslab_figures::{Answers, ERROR_CODES};
use dnslab_load::{Expected, LoadResult};
use dnslab_record::{Cause, InvalidReason, Observation, Silence};
use dnslab_settings::{Queries, RightCodes, Variant};
use dnslab_traffic::TypeMix;
use dnslab_wire::rcode;

/// Why a load does not count; `None` if it does. `cause` may explain that nothing, or too little, was answered. One
/// that was left early counts by itself; beside whole ones see [`super::case::leave_out_if_short`].
pub(super) fn why_invalid(
    variant: &Variant,
    run: &Observation<'_>,
    figures: &BottleneckFigures,
    result: &LoadResult,
    cause: Option<Cause>,
) -> Option<InvalidReason> {
    let measured = run.measured;
    let (outcomes, answers) = (&measured.counters.outcomes, &measured.counters.answers);
    let warm_up = &measured.warm_up.outcomes;
    if result.cut_short && measured.window_ns <= 1 {
        return Some(InvalidReason::TooShort { measured_ns: 0, asked_ns: asked_ns(variant) });
    }
    let limits =
        SendingLimits { unsent: variant.expect.unsent_limit, lag: variant.expect.lag_limit };
    let not_sent = not_sent_as_asked(figures, run, limits);
    // What left too late cannot be answered in time. Over a connection it may have waited for the server.
    if not_sent.is_some() && !figures.is_stream {
        return not_sent;
    }
    if outcomes.answered == 0 {
        return Some(InvalidReason::Unanswered {
            due: outcomes.due,
            warm_up_due: warm_up.due,
            warm_up_answered: warm_up.answered,
            cause,
        });
    }
    if let Some(reason) = slower_than_slices(measured) {
        return Some(reason);
    }
    if let Some(silence) = fell_silent(run).filter(|silence| !is_of_event(run, silence)) {
        return Some(InvalidReason::FellSilent { silence, cause });
    }
    let limit_ns = u64::try_from(variant.expect.lag_limit.as_nanos()).unwrap_or(u64::MAX);
    if let Some(p99_ns) = measured.start_lag.quantile_ns(0.99).filter(|lag| *lag > limit_ns) {
        return Some(InvalidReason::Late { p99_ns, limit_ns });
    }
    if let Some(reason) = not_sent {
        return Some(reason);
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
    let any_will_do = variant.expect.wrong_limit >= 1.0 || variant.right_codes() == RightCodes::Any;
    if variant.load.mode.is_played() && !any_will_do {
        let count = |name: &&str| answers.rcodes.get(*name).copied().unwrap_or(0);
        let errors = ERROR_CODES.iter().map(count).sum::<u64>();
        if 2 * errors > outcomes.answered {
            return Some(InvalidReason::Errors { errors, answers: outcomes.answered });
        }
    }
    let limit = variant.expect.wrong_limit;
    // An answer that cannot be read is not right either.
    let wrong = answers.wrong + outcomes.malformed;
    let came = outcomes.answered + outcomes.malformed;
    if wrong as f64 > limit * came as f64 {
        let Expected { codes, answers: records } = expected(variant);
        let rcode = match codes {
            RightCodes::One(code) => code,
            RightCodes::Answers | RightCodes::Any => rcode::NOERROR,
        };
        return Some(InvalidReason::Wrong {
            wrong,
            answers: came,
            limit,
            rcode,
            or_nxdomain: codes == RightCodes::Answers,
            has_record: records > 0,
            example: result.wrong_example.clone(),
        });
    }
    // A sample of the answers that looked right was parsed. It stands for all of them.
    let Answers { checked, malformed, checked_stand_for, malformed_stand_for, .. } = *answers;
    (malformed_stand_for as f64 > limit * checked_stand_for as f64).then(|| {
        let example = result.malformed_example.clone().unwrap_or_default();
        InvalidReason::Malformed { malformed, checked, limit, example }
    })
}

/// Whether a server may have been silent because of what was done during the load: that is what is measured. One that
/// stays silent has ended.
fn is_of_event(run: &Observation<'_>, silence: &Silence) -> bool {
    let Some(event) = &run.watched.event else { return false };
    let began_ns = event.at_ns - run.measured.window_start_ns.cast_signed();
    !silence.is_at_end && silence.from_ns.cast_signed() + 1_000_000_000 >= began_ns
}

/// Length of the measured window that a variant asks for.
pub(super) fn asked_ns(variant: &Variant) -> u64 {
    u64::try_from(variant.load.duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A right answer to a variant's queries. Every name of the zone has an A record, so an answer for type A
/// must have a record. Other answers may have none.
pub(super) fn expected(variant: &Variant) -> Expected {
    let codes = variant.right_codes();
    let asks_zone = variant.asked() == Queries::Zone(TypeMix::default());
    let has_record = codes == RightCodes::One(rcode::NOERROR) && asks_zone;
    Expected { codes, answers: u16::from(has_record) }
}
