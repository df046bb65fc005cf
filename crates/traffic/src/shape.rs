//! The cumulated rate, inverted: when a changing rate has brought so many queries.

use crate::Rate;

/// Parts of one query, in which positions are counted. With rates in queries per 10^6 seconds, a rate times
/// nanoseconds is a position, in integers.
pub(crate) const PARTS: u128 = 1_000_000_000_000_000;

/// A changing rate as integers, and how far it was walked. It takes the memory of its steps, however long the
/// load is.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    Steps {
        /// Queries per 10^6 seconds in each step.
        rates: Box<[u64]>,
        every_ns: u64,
        /// The step that the last position was in.
        step: usize,
        /// The position at which that step began.
        before: u128,
    },
    Ramp {
        /// Queries per 10^6 seconds at the start.
        from: u64,
        /// Queries per 10^6 seconds at the end, and from then on.
        to: u64,
        over_ns: u64,
        /// Twice the position at its end: half a part is possible, and near a rate of 0 it counts.
        twice_total: u128,
    },
}

/// A rate in queries per 10^6 seconds, to the nearest.
pub(crate) fn integer_rate(rate_qps: f64) -> u64 {
    // A conversion of a float saturates.
    (rate_qps * 1e6).round() as u64
}

impl Shape {
    /// The shape of a rate that changes; `None` for one that does not.
    pub(crate) fn of(rate: &Rate) -> Option<Self> {
        let nanos = |duration: std::time::Duration| duration.as_nanos() as u64;
        match rate {
            Rate::Constant(_) => None,
            Rate::Steps { rates, every } => Some(Self::Steps {
                rates: rates.iter().copied().map(integer_rate).collect(),
                every_ns: nanos(*every),
                step: 0,
                before: 0,
            }),
            Rate::Ramp { from, to, over } => {
                let (from, to, over_ns) = (integer_rate(*from), integer_rate(*to), nanos(*over));
                let twice_total = (u128::from(from) + u128::from(to)) * u128::from(over_ns);
                Some(Self::Ramp { from, to, over_ns, twice_total })
            }
        }
    }

    /// The instant at which this position is reached, rounded to the nanosecond; at a pause, the instant at
    /// which the pause ends. `None` if it is never reached, or after 2^64 ns. Positions must not fall from
    /// call to call.
    #[inline]
    pub(crate) fn due(&mut self, position: u128) -> Option<u64> {
        match self {
            Self::Steps { rates, every_ns, step, before } => {
                let mut rate = u128::from(*rates.get(*step)?);
                while *step + 1 < rates.len() {
                    let end = *before + rate * u128::from(*every_ns);
                    if position < end {
                        break;
                    }
                    *before = end;
                    *step += 1;
                    rate = u128::from(rates[*step]);
                }
                let start = *step as u128 * u128::from(*every_ns);
                u64::try_from(start + rounded(position - *before, rate)?).ok()
            }
            Self::Ramp { to, over_ns, twice_total, .. } if 2 * position >= *twice_total => {
                let rest = rounded(2 * position - *twice_total, 2 * u128::from(*to))?;
                u64::try_from(u128::from(*over_ns) + rest).ok()
            }
            Self::Ramp { from, to, over_ns, twice_total } => {
                let (over, slope) = (*over_ns as f64, from.abs_diff(*to) as f64 / *over_ns as f64);
                // Counted from the slow end of the ramp, where nothing cancels out: each operation then loses
                // one part in 2^53, and a week has fewer than 2^50 ns.
                let due = if from <= to {
                    time_to_reach(2 * position, *from, slope)
                } else {
                    over - time_to_reach(*twice_total - 2 * position, *to, slope)
                };
                Some(due.round() as u64)
            }
        }
    }
}

/// `position / rate`, rounded; `None` if the rate is 0.
#[inline]
fn rounded(position: u128, rate: u128) -> Option<u128> {
    (position + rate / 2).checked_div(rate)
}

/// When a rate that begins with `rate` and grows by `slope` per nanosecond has reached half of
/// `twice_position`: the root of `rate t + slope t^2 / 2 = position`, in the form without a difference.
#[inline]
fn time_to_reach(twice_position: u128, rate: u64, slope: f64) -> f64 {
    if twice_position == 0 {
        return 0.0;
    }
    let (twice_position, rate) = (twice_position as f64, rate as f64);
    twice_position / (rate + (rate * rate + slope * twice_position).sqrt())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn rates() -> impl Strategy<Value = Rate> {
        let rate = prop_oneof![
            4 => 0u64..=1_000_000_000_000,
            1 => 0u64..=1_000_000,
            1 => Just(0),
        ];
        let rate = rate.prop_map(|rate| rate as f64 / 1e6);
        let span = (1_000u64..=3_600_000_000_000).prop_map(Duration::from_nanos);
        let steps = (prop::collection::vec(rate.clone(), 1..6), span.clone())
            .prop_map(|(rates, every)| Rate::Steps { rates, every: every / 6 });
        let ramp =
            (rate.clone(), rate, span).prop_map(|(from, to, over)| Rate::Ramp { from, to, over });
        prop_oneof![steps, ramp].prop_filter("sends something", |rate| rate.check().is_ok())
    }

    /// Twice the cumulated rate in parts of a query, times the length of a step or ramp, for times within an
    /// hour: exact, in integers.
    fn exact(rate: &Rate, ns: i128) -> i128 {
        let ns = ns.max(0);
        let integer = |rate: f64| i128::from(integer_rate(rate));
        match rate {
            Rate::Constant(_) => unreachable!("only changing rates are tried"),
            Rate::Steps { rates, every } => {
                let every = every.as_nanos() as i128;
                let in_step = |(step, rate): (usize, &f64)| {
                    let rest = (ns - step as i128 * every).max(0);
                    let is_last = step + 1 == rates.len();
                    integer(*rate) * if is_last { rest } else { rest.min(every) }
                };
                2 * every * rates.iter().enumerate().map(in_step).sum::<i128>()
            }
            Rate::Ramp { from, to, over } => {
                let (from, to, over) = (integer(*from), integer(*to), over.as_nanos() as i128);
                let on = ns.min(over);
                2 * from * on * over + (to - from) * on * on + 2 * to * (ns - on) * over
            }
        }
    }

    fn unit(rate: &Rate) -> i128 {
        match rate {
            Rate::Constant(_) => 1,
            Rate::Steps { every: span, .. } | Rate::Ramp { over: span, .. } => {
                2 * span.as_nanos() as i128
            }
        }
    }

    const HOUR_NS: i128 = 3_600_000_000_000;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// The position lies between the cumulated rates a nanosecond before and after it is due.
        #[test]
        fn due_is_the_inverse_of_the_cumulated_rate(
            rate in rates(),
            shares in prop::collection::vec(0.0..1.0f64, 1..50),
        ) {
            let end = exact(&rate, HOUR_NS) / unit(&rate);
            let mut positions: Vec<u128> =
                shares.iter().map(|share| (share * end as f64) as u128).collect();
            // Whole queries, those at the start, and those around the edges.
            positions.extend((0..4).map(|n| n * PARTS));
            for edge in 1..6 {
                if let Rate::Steps { every, .. } | Rate::Ramp { over: every, .. } = &rate {
                    let edge = exact(&rate, every.as_nanos() as i128 * edge) / unit(&rate);
                    positions.extend([edge - 1, edge, edge + 1].map(|at| at.max(0) as u128));
                }
            }
            positions.retain(|position| (*position as i128) < end);
            positions.sort_unstable();
            let mut shape = Shape::of(&rate).unwrap();
            let mut last = 0;
            for position in positions {
                let due = shape.due(position).unwrap();
                prop_assert!(due >= last, "{} is due before what is before it", position);
                last = due;
                let (due, position) = (i128::from(due), position as i128 * unit(&rate));
                let (before, after) = (exact(&rate, due - 1), exact(&rate, due + 1));
                prop_assert!(before <= position, "{} too late at {}", rate, due);
                prop_assert!(position <= after, "{} too early at {}", rate, due);
            }
        }

        #[test]
        fn queries_in_a_row_stay_in_order(
            from in 0.0..1e9f64,
            to in 0.0..1e9f64,
            over in 1u64..=3_600_000,
            start in 0.0..1.2f64,
        ) {
            let rate = Rate::Ramp { from, to, over: Duration::from_millis(over) };
            let first = (rate.cumulated(Duration::from_millis(over)) * start) as u128;
            let mut shape = Shape::of(&rate).unwrap();
            let dues: Vec<u64> =
                (first..first + 1_000).map_while(|n| shape.due(n * PARTS)).collect();
            prop_assert!(dues.is_sorted());
        }
    }

    #[test]
    fn cases() {
        let check = |text: &str, n: u128, due: Option<u64>| {
            let mut shape = Shape::of(&text.parse().unwrap()).unwrap();
            assert_eq!(shape.due(n * PARTS), due, "query {n} of {text}");
        };
        let second = 1_000_000_000;
        check("steps:10,20/1s", 9, Some(900_000_000));
        check("steps:10,20/1s", 10, Some(second));
        check("steps:10,20/1s", 11, Some(1_050_000_000));
        check("steps:10,20/1s", 30, Some(2 * second));
        check("steps:10,20/1s", 1_000_030, Some(50_002 * second));
        // A pause is over before the next query is due.
        check("steps:10,0,10/1s", 10, Some(2 * second));
        check("steps:0,10/1s", 0, Some(second));
        check("steps:10,0/1s", 9, Some(900_000_000));
        check("steps:10,0/1s", 10, None);
        // n = t^2 for a ramp that gains 2 queries per second each second.
        check("ramp:0..200/100s", 0, Some(0));
        check("ramp:0..200/100s", 4, Some(2 * second));
        check("ramp:0..200/100s", 9_801, Some(99 * second));
        check("ramp:0..200/100s", 10_200, Some(101 * second));
        check("ramp:200..0/100s", 10_000 - 9_801, Some(second));
        check("ramp:200..0/100s", 9_999, Some(99 * second));
        check("ramp:200..0/100s", 10_000, None);
        check("ramp:1000000000..1/168h", 5, Some(5));
        // Beyond 2^64 ns nothing is due.
        check("ramp:1..0.000001/1s", 1 << 40, None);
    }
}
