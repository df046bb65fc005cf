//! The words of what limits say of the variants.

use dnslab_analysis::statistics::Estimate;
use dnslab_analysis::{Judgement, LimitRuling, NotCompared, Ruling, Summary};
use dnslab_record::{CostLimit, Indicator, Metric, Relation, Unit};

use crate::number;
use crate::words::time_out;

/// Variants that are named; the others are counted.
const MAX_NAMED: usize = 4;

/// Quotient of the ends of an interval from which on they say nothing.
const WIDE: f64 = 100.0;

/// What a limit says, as one line: `FAIL dot: p99 +31 % (limit 10 %)`. It names the variants that the
/// ruling is about; where all keep the limit, the one that is nearest to it.
fn ruling_text(ruling: &LimitRuling, baseline: &str) -> String {
    format!("{} {}", word(ruling.ruling), rest(ruling, baseline))
}

/// What each limit says (`ruling_text`), in the order of the limits.
#[must_use]
pub fn ruling_texts(summary: &Summary) -> Vec<String> {
    summary.rulings.iter().map(|ruling| ruling_text(ruling, &summary.baseline)).collect()
}

/// What all limits say together, as one line: `FAIL: 1 of 3 limits fails, 1 is unclear`; `None` without a
/// limit.
#[must_use]
pub fn overall_text(summary: &Summary) -> Option<String> {
    let worst = summary.ruling()?;
    let others: u32 = summary.variants.iter().map(|variant| variant.other_runs).sum();
    let runs = [
        runs_text(others, "does not count", "do not count"),
        runs_text(summary.missing_runs, "is missing", "are missing"),
    ];
    let runs: Vec<String> = runs.into_iter().flatten().collect();
    Some(overall(worst, &summary.rulings, &runs))
}

fn runs_text(count: u32, one: &str, many: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("a run {one}")),
        count => Some(format!("{} runs {many}", number::count(count.into()))),
    }
}

/// The ruling over all limits, how many of them say what, and what leaves them open besides.
pub(crate) fn overall(worst: Ruling, rulings: &[LimitRuling], besides: &[String]) -> String {
    let all = number::counted(rulings.len() as u64, "limit", "limits");
    let count = |ruling| rulings.iter().filter(|limit| limit.ruling == ruling).count();
    let kinds = [Ruling::Fail, Ruling::Unclear, Ruling::Pass];
    let counts = kinds.into_iter().map(|ruling| (ruling, count(ruling)));
    let mut counts: Vec<_> = counts.filter(|(_, count)| *count > 0).collect();
    // What passes besides is the rest.
    if counts.len() > 1 {
        counts.retain(|(ruling, _)| *ruling != Ruling::Pass);
    }
    let texts = counts.iter().enumerate().map(|(place, (ruling, count))| match place {
        0 => format!("{count} of {all} {}", verb(*ruling, *count)),
        _ => format!("{count} {}", verb(*ruling, *count)),
    });
    let texts = texts.chain(besides.iter().cloned()).collect::<Vec<_>>().join(", ");
    format!("{}: {texts}", word(worst))
}

fn verb(ruling: Ruling, count: usize) -> &'static str {
    match (ruling, count == 1) {
        (Ruling::Fail, true) => "fails",
        (Ruling::Fail, false) => "fail",
        (Ruling::Unclear, true) => "is unclear",
        (Ruling::Unclear, false) => "are unclear",
        (Ruling::Pass, true) => "passes",
        (Ruling::Pass, false) => "pass",
    }
}

/// A ruling in one word.
pub(crate) fn word(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Pass => "PASS",
        Ruling::Unclear => "UNCLEAR",
        Ruling::Fail => "FAIL",
    }
}

fn rest(ruling: &LimitRuling, baseline: &str) -> String {
    let LimitRuling { limit, metric, ruling: worst, variants } = ruling;
    let bound = bound(limit);
    if variants.is_empty() {
        return format!("{metric}: there is no variant beside {baseline} (limit {bound})");
    }
    if *worst == Ruling::Pass {
        let key = |judgement: &&Judgement| cost(limit, judgement);
        let nearest = variants.iter().max_by(|one, other| key(one).total_cmp(&key(other)));
        let (name, found) = nearest.map_or(("", String::new()), |judgement| {
            (judgement.variant.as_str(), found(limit, judgement))
        });
        return match variants.len() {
            1 => format!("{name}: {metric} {found} (limit {bound})"),
            _ => format!("{metric}: at worst {found}, {name} (limit {bound})"),
        };
    }
    let mut concerned = variants.iter().filter(|judgement| judgement.ruling == *worst);
    let named: Vec<String> = concerned
        .by_ref()
        .take(MAX_NAMED)
        .map(|judgement| {
            let name = match &judgement.against {
                Some(against) if against != baseline => {
                    format!("{} against {against}", judgement.variant)
                }
                _ => judgement.variant.clone(),
            };
            let (found, doubt) = (found(limit, judgement), doubt(limit, judgement));
            format!("{name}: {metric} {found} ({doubt}limit {bound})")
        })
        .collect();
    match concerned.count() {
        0 => named.join("; "),
        more => format!("{}; and {more} more", named.join("; ")),
    }
}

fn cost(limit: &CostLimit, judgement: &Judgement) -> f64 {
    let value = judgement.found.map_or(f64::NEG_INFINITY, |found| found.value);
    if limit.indicator().higher_is_better() { -value } else { value }
}

pub(crate) fn bound(limit: &CostLimit) -> String {
    match limit {
        // A gain that is asked for has its sign.
        CostLimit::Relative { largest, .. } if *largest < 0.0 => change_bound(limit),
        CostLimit::Relative { largest, .. } => number::size(*largest),
        CostLimit::Absolute(demand) => {
            let side = match demand.relation {
                Relation::Below => "below ",
                Relation::AtMost => "",
                Relation::Above => "above ",
                Relation::AtLeast => "at least ",
            };
            format!("{side}{}", value(demand.indicator, demand.bound))
        }
    }
}

/// A relative limit as the change that is just accepted: `-3 %`; another one as [`bound`] has it.
pub(crate) fn change_bound(limit: &CostLimit) -> String {
    match limit {
        CostLimit::Relative { metric, largest } if metric.higher_is_better() => {
            number::change(-largest)
        }
        CostLimit::Relative { largest, .. } => number::change(*largest),
        CostLimit::Absolute(_) => bound(limit),
    }
}

/// Why the figure of a judgement is compared with none, as the rest of a clause.
pub(crate) fn not_compared(why: NotCompared) -> &'static str {
    match why {
        NotCompared::Generator => "was bounded by the load generator",
        NotCompared::ConnectionsRefused => "was bounded by connections that the server turned away",
    }
}

fn found(limit: &CostLimit, judgement: &Judgement) -> String {
    match (judgement.found, limit) {
        (Some(estimate), CostLimit::Absolute(demand)) if judgement.not_compared.is_some() => {
            let is_bound = judgement.not_compared == Some(NotCompared::Generator);
            let at_least = if is_bound { "at least " } else { "" };
            format!("{at_least}{}", value(demand.indicator, estimate.value))
        }
        (None, _) if judgement.not_compared.is_some() => {
            judgement.not_compared.map_or_else(String::new, |why| not_compared(why).to_owned())
        }
        (None, _) => without_value(judgement, "rounds"),
        (Some(Estimate { value, .. }), CostLimit::Relative { .. }) => number::change(value),
        (Some(estimate), CostLimit::Absolute(demand)) => value(demand.indicator, estimate.value),
    }
}

/// Why there is no value to judge: `time-out (5 of 8 rounds)`.
pub(crate) fn without_value(judgement: &Judgement, runs: &str) -> String {
    let reference = judgement.against.as_deref().unwrap_or("before");
    match (judgement.time_outs, judgement.reference_time_outs) {
        (Some(found), _) => time_out(found, runs),
        (None, Some(found)) => format!("has no measure: {reference} is {}", time_out(found, runs)),
        (None, None) => "was not measured".to_owned(),
    }
}

/// Why a limit is open though its interval may tell; `None` if that decides.
pub(crate) fn open_whatever_the_interval(judgement: &Judgement) -> Option<String> {
    match (judgement.is_disturbed, judgement.floor) {
        (true, _) => Some("not judged: other programs used this machine".to_owned()),
        (false, floor) => {
            floor.map(|floor| format!("dnslab itself may add {}", number::size(floor)))
        }
    }
}

/// Why it cannot be judged, before the limit; empty where it can.
fn doubt(limit: &CostLimit, judgement: &Judgement) -> String {
    let (Ruling::Unclear, Some(found)) = (judgement.ruling, judgement.found) else {
        return String::new();
    };
    if let Some(why) = judgement.not_compared {
        return format!("it {}, ", not_compared(why));
    }
    if let Some(why) = open_whatever_the_interval(judgement) {
        return format!("{why}, ");
    }
    if !found.is_bounded() {
        return "too few rounds for an interval, ".to_owned();
    }
    let is_relative = matches!(limit, CostLimit::Relative { .. });
    if is_relative && 1.0 + found.high > WIDE * (1.0 + found.low) {
        return "the interval is too wide to tell, more rounds narrow it, ".to_owned();
    }
    let write = |end: f64| match limit {
        CostLimit::Relative { .. } => number::change(end),
        CostLimit::Absolute(demand) => value(demand.indicator, end),
    };
    format!("95 % interval {} to {}, ", write(found.low), write(found.high))
}

pub(crate) fn value(indicator: Indicator, value: f64) -> String {
    match indicator.unit() {
        Unit::Share => number::share(value),
        Unit::Duration => number::duration(value),
        Unit::Octets => number::octets(value.max(0.0) as u64),
        Unit::Number if indicator == Indicator::Metric(Metric::AnsweredQps) => number::qps(value),
        Unit::Number => number::three_digits(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `limit` says where this was found: variant, value, half width, ruling.
    fn text(limit: &str, found: &[(&str, f64, f64, Ruling)]) -> String {
        let limit: CostLimit = limit.parse().unwrap();
        let variants = found.iter().map(|&(variant, value, half, ruling)| Judgement {
            variant: variant.to_owned(),
            against: matches!(limit, CostLimit::Relative { .. }).then(|| "udp".to_owned()),
            time_outs: None,
            reference_time_outs: None,
            is_disturbed: false,
            floor: None,
            found: value.is_finite().then_some(Estimate {
                value,
                low: value - half,
                high: value + half,
            }),
            ruling,
            not_compared: None,
            more_runs: None,
        });
        let variants: Vec<Judgement> = variants.collect();
        let ruling = variants.iter().map(|variant| variant.ruling).max().unwrap_or(Ruling::Unclear);
        let metric = limit.indicator().to_string();
        ruling_text(&LimitRuling { limit, metric, ruling, variants }, "udp")
    }

    #[test]
    fn a_ruling_is_one_line() {
        use Ruling::{Fail, Pass, Unclear};
        let check = |found: String, expected: &str| assert_eq!(found, expected);
        check(
            text("p99=10%", &[("tcp", 0.02, 0.01, Pass), ("dot", 0.31, 0.05, Fail)]),
            "FAIL dot: p99 +31 % (limit 10 %)",
        );
        check(
            text("p99=10%", &[("tcp", 0.02, 0.01, Pass), ("dot", 0.05, 0.01, Pass)]),
            "PASS p99: at worst +5 %, dot (limit 10 %)",
        );
        check(
            text("qps=10%", &[("tcp", -0.02, 0.01, Pass), ("dot", 0.05, 0.01, Pass)]),
            "PASS p99: at worst -2 %, tcp (limit 10 %)".replace("p99", "qps").as_str(),
        );
        check(
            text("memory=10%", &[("dot", -0.5, 0.01, Pass)]),
            "PASS dot: memory -50 % (limit 10 %)",
        );
        check(
            text("p99=10%", &[("dot", 0.12, 0.05, Unclear)]),
            "UNCLEAR dot: p99 +12 % (95 % interval +7 % to +17 %, limit 10 %)",
        );
        check(
            text("p99=10%", &[("dot", 0.12, f64::INFINITY, Unclear)]),
            "UNCLEAR dot: p99 +12 % (too few rounds for an interval, limit 10 %)",
        );
        check(
            text("p99=10%", &[("dot", 500.0, 500.9, Unclear)]),
            "UNCLEAR dot: p99 501 x (the interval is too wide to tell, more rounds narrow it, \
             limit 10 %)",
        );
        check(
            text("memory=10%", &[("dot", f64::NAN, 0.0, Unclear)]),
            "UNCLEAR dot: memory was not measured (limit 10 %)",
        );
        check(text("p99=10%", &[]), "UNCLEAR p99: there is no variant beside udp (limit 10 %)");
        check(
            text("p99<10ms", &[("udp", 12e6, 1e6, Fail)]),
            "FAIL udp: p99 12.0 ms (limit below 10.0 ms)",
        );
        check(
            text("qps>=30000", &[("udp", 45_000.0, 100.0, Pass), ("dot", 31_000.0, 100.0, Pass)]),
            "PASS qps: at worst 31,000, dot (limit at least 30,000)",
        );
        let many: Vec<(&str, f64, f64, Ruling)> =
            ["a", "b", "c", "d", "e", "f"].map(|name| (name, 0.5, 0.1, Fail)).to_vec();
        let found = text("cpu_per_query=10%", &many);
        assert!(found.ends_with("d: cpu_per_query +50 % (limit 10 %); and 2 more"), "{found}");
    }
}
