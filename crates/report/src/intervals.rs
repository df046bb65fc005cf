//! Intervals of differences in words.

use dnslab_analysis::statistics::Estimate;
use dnslab_record::Metric;

use crate::number;

/// A difference of times in their own unit, with its interval: `0.31 ms, 0.28 ms to 0.34 ms`; `None`
/// for what is no time, and where nothing is known of the spread.
pub(crate) fn in_time(metric: Metric, absolute: Option<&Estimate>) -> Option<String> {
    let Estimate { value, low, high } =
        *absolute.filter(|estimate| metric.is_latency() && estimate.is_bounded())?;
    let signed = |ns: f64| {
        let sign = if ns < 0.0 { "-" } else { "" };
        format!("{sign}{}", number::duration(ns.abs()))
    };
    Some(format!("{}, {} to {}", signed(value), signed(low), signed(high)))
}

/// Both ends of the interval as signed percentages.
pub(crate) fn signed_interval(difference: &Estimate) -> String {
    format!("{} to {}", number::change(difference.low), number::change(difference.high))
}
