//! Why runs do not count, in words.

use dnslab_figures::{HttpRefusals, Outcomes};
use dnslab_record::{Cause, InvalidReason, Silence};
use dnslab_settings::{Remedy, ServerKind};
use dnslab_wire::rcode_name;
use dnslab_wire::units::share::in_sentence;

use super::bottleneck::evidence_text;
use crate::number;

/// How much of its time a run had that was left early: `11.95 s of 60 s`. The time that was asked for is 0 where it is
/// not known.
pub(crate) fn left_early(measured_ns: u64, asked_ns: u64) -> String {
    let measured = format!("{:.2} s", measured_ns as f64 / 1e9);
    match asked_ns {
        0 => measured,
        asked_ns => format!("{measured} of {}", number::in_seconds(asked_ns)),
    }
}

/// Why a run does not count, as a sentence without its full stop.
#[must_use]
pub fn invalid_text(reason: &InvalidReason) -> String {
    match reason {
        InvalidReason::Unanswered { due, warm_up_due, warm_up_answered, cause } => {
            unanswered(*due, *warm_up_due, *warm_up_answered) + &cause_text(cause.as_ref())
        }
        InvalidReason::SlowerThanSlices { slice_ns, max_ns } => format!(
            "half of the answers took more than {}, which is too long for slices of {}: set {}, or make \
             `repeat.slice` longer",
            number::as_set(*max_ns),
            number::as_set(*slice_ns),
            Remedy::set("repeat.alternate", "runs")
        ),
        InvalidReason::FellSilent { silence, cause } => {
            silent(silence) + &cause_text(cause.as_ref())
        }
        InvalidReason::Lost { outcomes, limit, cause } => format!(
            "{} of {} queries were not answered, more than the limit of {} (`expect.lost_limit`): \
             {}{}",
            outcomes.lost(),
            outcomes.due,
            in_sentence(*limit),
            ways_lost(outcomes),
            cause_text(cause.as_ref())
        ),
        InvalidReason::LostOverTransport { transport, due, answered, limit, cause } => {
            let what = match answered {
                0 => none_answered(*due, &format!("clients over {transport}")),
                answered => format!(
                    "{} of {due} queries of clients over {transport} were not answered, more than the limit of {} \
                     (`expect.lost_limit`)",
                    due.saturating_sub(*answered),
                    in_sentence(*limit)
                ),
            };
            format!(
                "{what}, though other transports answer: look whether the server serves it at this port, or leave \
                 it out of `load.mix`{}",
                cause_text(cause.as_ref())
            )
        }
        InvalidReason::Errors { errors, answers } => format!(
            "{errors} of {answers} answers were SERVFAIL, REFUSED, NOTIMP or FORMERR: the server did not do the \
             work of these queries. Look at its log, or let it answer these clients and names"
        ),
        InvalidReason::Late { p99_ns, limit_ns } => format!(
            "the generator was late: one query in a hundred began more than {} after its time, beyond the \
             limit of {} (`expect.lag_limit`): give the load more CPUs, or play fewer clients",
            number::duration(*p99_ns as f64),
            number::as_set(*limit_ns)
        ),
        InvalidReason::NotSentAsAsked {
            intended_qps,
            offered_qps,
            unsent_limit,
            lag_p50_ns,
            lag_limit_ns,
        } => {
            let missing = 1.0 - offered_qps / intended_qps;
            let what = match missing > *unsent_limit {
                true => format!(
                    "only {} of {} queries per second were sent, and more than {} were missing \
                     (`expect.unsent_limit`)",
                    number::qps(*offered_qps),
                    number::qps(*intended_qps),
                    in_sentence(*unsent_limit)
                ),
                false => format!(
                    "half of the queries left more than {} after their time, beyond the limit of {} \
                     (`expect.lag_limit`)",
                    number::duration(*lag_p50_ns as f64),
                    number::as_set(*lag_limit_ns)
                ),
            };
            format!(
                "the generator did not send what it was asked to: {what}. Ask for a lower rate, give the \
                 load more CPUs, or end what else runs there"
            )
        }
        InvalidReason::Wrong { wrong, answers, limit, rcode, or_nxdomain, has_record, example } => {
            let record = if *has_record { " with a record" } else { "" };
            let or = if *or_nxdomain { " or NXDOMAIN" } else { "" };
            let way_out = Remedy::set("expect.rcode", "any");
            let over_tcp = Remedy::set("load.truncated", "ask-over-tcp");
            let example = match example {
                Some(example) if *has_record && example.contains(", truncated") => {
                    format!("{example}; {over_tcp} asks for the whole answer over TCP")
                }
                Some(example) => format!("{example}; {way_out} takes every code as right"),
                None => "they could not be read as DNS messages".to_owned(),
            };
            format!(
                "{wrong} of {answers} answers were not {}{or}{record}, more than the limit of {} \
                 (`expect.wrong_limit`): {example}",
                rcode_name(*rcode),
                in_sentence(*limit),
            )
        }
        InvalidReason::Malformed { malformed, checked, limit, example } => format!(
            "{malformed} of {checked} answers that were checked in full did not hold what they must, \
             more than the limit of {}: {example}",
            in_sentence(*limit)
        ),
        InvalidReason::TooShort { measured_ns: 0, .. } => {
            "left before the measured window began: stay longer, or make `load.warm_up` shorter"
                .to_owned()
        }
        InvalidReason::TooShort { measured_ns, asked_ns } => {
            let time = left_early(*measured_ns, *asked_ns);
            format!("left early, after {time}: too little to stand beside whole runs")
        }
        InvalidReason::Unserved { served, clients, failed_attempts, program, is_started } => {
            let attempts = match failed_attempts {
                0 => String::new(),
                failed => format!(" ({} attempts to connect failed)", number::count(*failed)),
            };
            let remedy = match (is_started, program.as_str()) {
                (false, _) => "raise that, ask with fewer clients, or",
                (true, "unbound") => {
                    "dnslab sets that high enough, but Unbound may have a `wait-limit` of 1,000 queries \
                     in work for one address: give the clients several by `load.sources`, ask with \
                     fewer, or"
                }
                (true, _) => "dnslab sets that high enough: ask with fewer clients, or",
            };
            format!(
                "the server served {} of {} clients; the others had no connection, or no answer on \
                 it{attempts}; {}; {remedy} give them a longer `load.warm_up` to connect",
                number::count(*served),
                number::count(*clients),
                connection_bound(program)
            )
        }
        InvalidReason::Forsaken { forsaken, clients } => format!(
            "the server stopped answering {} of {} clients, while it answered the others: their last \
             queries all timed out. A thread of it may hang, or a path to it may be broken",
            number::count(*forsaken),
            number::count(*clients)
        ),
        InvalidReason::RateTooHigh { evidence } => {
            format!("the rate was too high: {}", evidence_text(evidence))
        }
    }
}

/// A measured window without an answer, by what became due in it, and in the warm-up before it.
fn unanswered(due: u64, warm_up_due: u64, warm_up_answered: u64) -> String {
    let before = match (warm_up_answered, warm_up_due) {
        (_, 0) => String::new(),
        (0, due) => format!(", nor any of {} in the warm-up before it", number::count(due)),
        (answered, due) => format!("; in the warm-up before it {answered} of {due} were answered"),
    };
    match (due, warm_up_due) {
        (0, 0) => "no query was sent".to_owned(),
        // All places of a closed loop still waited.
        (0, due) if warm_up_answered == 0 => {
            format!("{}, and no other was sent", none_answered(due, "the warm-up"))
        }
        (0, _) => format!("no query was sent in the measured window{before}"),
        (due, _) => {
            format!("{}{before}", none_answered(due, "the measured window"))
        }
    }
}

fn none_answered(due: u64, whose: &str) -> String {
    match due {
        1 => format!("the only query of {whose} was not answered"),
        due => format!("none of the {} queries of {whose} was answered", number::count(due)),
    }
}

fn silent(Silence { from_ns, length_ns, window_ns, is_at_end }: &Silence) -> String {
    let [from, length, whole] =
        [from_ns, length_ns, window_ns].map(|ns| number::duration(*ns as f64));
    match is_at_end {
        true => {
            format!(
                "the server fell silent {from} after the window of {whole} began, and stayed so"
            )
        }
        false => format!(
            "the server was silent for {length}, from {from} after the window of {whole} began, which \
             is longer than the time-out"
        ),
    }
}

/// How queries were lost, the most frequent way first: `120 timed out, 3 were not sent`.
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

/// What may explain it, after a semicolon; nothing without.
fn cause_text(cause: Option<&Cause>) -> String {
    match cause {
        None => String::new(),
        Some(Cause::Signature { example }) => format!("; {example}"),
        Some(Cause::Http { statuses }) => format!("; {}", http_statuses(statuses)),
        Some(Cause::Connection { end }) => format!("; the last connection: {end}"),
    }
}

/// Statuses of HTTP with which queries were refused, how often, and when first: `HTTP status 503, 1,234
/// times, first at 2.10 s`. The time is that of the run, whose zero is the beginning of the warm-up.
pub(crate) fn http_statuses(statuses: &[(u16, HttpRefusals)]) -> String {
    statuses.iter().map(http_status).collect::<Vec<_>>().join("; ")
}

fn http_status((status, HttpRefusals { count, first_ns }): &(u16, HttpRefusals)) -> String {
    let without = if *status == 200 { " without a DNS message" } else { "" };
    let times = match count {
        1 => "once".to_owned(),
        count => format!("{} times", number::count(*count)),
    };
    let at = number::duration(*first_ns as f64);
    format!("HTTP status {status}{without}, {times}, first at {at}")
}

/// What bounds the connections that a server has at once, as half a sentence; of one that is not known, what it may be.
fn connection_bound(program: &str) -> String {
    let Ok(kind) = program.parse::<ServerKind>() else {
        return "BIND bounds them by `tcp-clients` (default 150), Unbound by `incoming-num-tcp` (10), NSD by `tcp-count` \
                (100), Knot DNS by `tcp-max-clients`, dnsdist by `maxConcurrentTCPConnections`, PowerDNS by \
                `max-tcp-clients` (Recursor, 128) or `max-tcp-connections` (20)"
            .to_owned();
    };
    let title = match kind {
        ServerKind::Embedded => "the embedded server",
        _ => kind.profile().title,
    };
    format!("{title} bounds them {}", kind.profile().connection_bound)
}
