//! How figures are written: the same in findings, in the terminal, in Markdown and on the page.

use crate::statistics::Estimate;

/// From this relative difference on, "3.5 times" is easier to read than "250 % more".
pub const TIMES_FROM: f64 = 1.0;

/// What stands where there is no figure.
pub const NONE: &str = "-";

/// A whole number with a comma between groups of three digits: `1,234,567`.
#[must_use]
pub fn count(value: u64) -> String {
    crate::grouped(value)
}

/// A rate in queries per second, to the whole query, with thousands separators.
#[must_use]
pub fn qps(value: f64) -> String {
    count(value.round().max(0.0) as u64)
}

/// A number with three significant digits, and all its digits before the point.
///
/// ```
/// use dnslab_measure::number::three_digits;
///
/// assert_eq!(three_digits(0.01234), "0.0123");
/// assert_eq!(three_digits(9.999), "10.0");
/// assert_eq!(three_digits(1234.6), "1235");
/// ```
#[must_use]
pub fn three_digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    // The exponent that the value has once it is rounded: 9.999 is written as 10.0.
    let scientific = format!("{value:.2e}");
    let exponent: i32 =
        scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    format!("{value:.*}", (2 - exponent).clamp(0, 12) as usize)
}

/// A duration in nanoseconds, in the unit that fits it, with three significant digits.
#[must_use]
pub fn duration(ns: f64) -> String {
    // Half a unit in the third digit below the next unit is already written in that unit.
    let (divisor, unit) = match ns.abs() {
        small if small < 999.5 => (1.0, "ns"),
        small if small < 999.5e3 => (1e3, "us"),
        small if small < 999.5e6 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", three_digits(ns / divisor))
}

/// A figure as it is written (`1.74 ms`) without the digits that half the width of its interval leaves
/// uncertain; `half` is in the unit of `value`, the figure itself. One digit stays in any case.
///
/// ```
/// use dnslab_measure::number::{certain, duration};
///
/// assert_eq!(certain(&duration(1.742e6), 1.742e6, 0.4e6), "1.7 ms");
/// assert_eq!(certain(&duration(549_000.0), 549_000.0, 60_000.0), "550 us");
/// assert_eq!(certain(&duration(549_000.0), 549_000.0, 100.0), "549 us");
/// assert_eq!(certain("0.643", 0.643, 0.03), "0.64");
/// ```
#[must_use]
pub fn certain(written: &str, value: f64, half: f64) -> String {
    let (digits, unit) = written.split_once(' ').unwrap_or((written, ""));
    let (Ok(number), true) = (digits.parse::<f64>(), half.is_finite() && half > 0.0) else {
        return written.to_owned();
    };
    if number == 0.0 || value == 0.0 {
        return written.to_owned();
    }
    let power = |of: f64| 10_f64.powf(of.abs().log10().floor());
    let half = half * number / value;
    let has = digits.split_once('.').map_or(0, |(_, behind)| behind.len());
    // The first digit of half the width is the last one that says anything; where that is a 1, the next one.
    let step = power(half.abs() / 2.0).clamp(10_f64.powi(-(has as i32)), power(number));
    let decimals = (-step.log10()).round().max(0.0) as usize;
    format!("{:.decimals$} {unit}", (number / step).round() * step).trim_end().to_owned()
}

/// A share in [0, 1] as a percentage. Nothing but zero is written as 0 %, and nothing but all as
/// 100 %: one lost query in a million must show.
#[must_use]
pub fn share(value: f64) -> String {
    let percent = value * 100.0;
    if percent == 0.0 {
        "0 %".to_owned()
    } else if percent == 100.0 {
        "100 %".to_owned()
    } else if percent < 0.0001 {
        "< 0.0001 %".to_owned()
    } else if percent < 10.0 {
        format!("{} %", two_digits(percent))
    } else if percent > 99.9 && percent < 100.0 {
        "> 99.9 %".to_owned()
    } else {
        format!("{percent:.1} %")
    }
}

/// Octets in the largest binary unit that leaves at least one of it.
#[must_use]
pub fn octets(value: u64) -> String {
    const UNITS: [&str; 5] = ["octets", "KiB", "MiB", "GiB", "TiB"];
    let mut scaled = value as f64;
    let mut unit = 0;
    while scaled >= 1023.5 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!("{} {}", three_digits(scaled), UNITS[unit])
}

/// A relative difference (0.1 = 10 % more) with its sign: `+10 %`, `-3.1 %`; from
/// [`TIMES_FROM`] on as a multiple: `2.50 x`.
#[must_use]
pub fn change(difference: f64) -> String {
    if !difference.is_finite() {
        return NONE.to_owned();
    }
    if difference >= TIMES_FROM {
        return format!("{} x", three_digits(1.0 + difference));
    }
    match size(difference).as_str() {
        "0 %" => "0 %".to_owned(),
        size if difference < 0.0 => format!("-{size}"),
        size => format!("+{size}"),
    }
}

/// The size of a relative difference without its sign: `10 %`. Only all is written as 100 % less.
#[must_use]
pub fn size(difference: f64) -> String {
    let percent = (difference * 100.0).abs();
    if difference < 0.0 && percent > 99.0 && percent < 100.0 {
        // Cut, not rounded: 99.97 % less is not 100 % less.
        return format!("{:.1} %", (percent * 10.0).floor() / 10.0);
    }
    format!("{} %", two_digits(percent))
}

/// A value with its interval, both written by `write`; an unbounded interval is left out.
#[must_use]
pub fn estimate(estimate: &Estimate, write: impl Fn(f64) -> String) -> String {
    let value = write(estimate.value);
    if estimate.is_bounded() {
        format!("{value} ({} to {})", write(estimate.low), write(estimate.high))
    } else {
        value
    }
}

/// Two significant digits below 10, whole numbers from there on, no trailing zeros after the
/// point; figures below 0.0001 are 0.
fn two_digits(value: f64) -> String {
    if value >= 9.95 {
        return format!("{value:.0}");
    }
    if value < 0.0001 {
        return "0".to_owned();
    }
    let decimals = (1 - value.log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(found: &str, expected: &str) {
        assert_eq!(found, expected);
    }

    #[test]
    fn rates_and_counts() {
        check(&qps(0.4), "0");
        check(&qps(999.6), "1,000");
        check(&qps(304_512.3), "304,512");
        check(&count(12), "12");
        check(&count(1_234_567), "1,234,567");
    }

    #[test]
    fn durations_keep_three_digits() {
        check(&duration(12.0), "12.0 ns");
        check(&duration(999.4), "999 ns");
        check(&duration(999.9), "1.00 us");
        check(&duration(970_000.0), "970 us");
        check(&duration(999_900.0), "1.00 ms");
        check(&duration(12_540_000.0), "12.5 ms");
        check(&duration(2e9), "2.00 s");
        check(&duration(100e9), "100 s");
        check(&duration(0.0), "0 ns");
    }

    #[test]
    fn shares_never_round_to_nothing_or_to_all() {
        check(&share(0.0), "0 %");
        check(&share(1e-9), "< 0.0001 %");
        check(&share(0.000_012), "0.0012 %");
        check(&share(0.5), "50.0 %");
        check(&share(0.999_99), "> 99.9 %");
        check(&share(1.0), "100 %");
    }

    #[test]
    fn changes_have_a_sign() {
        check(&change(0.1), "+10 %");
        check(&change(-0.031), "-3.1 %");
        check(&change(-0.000_000_1), "0 %");
        check(&change(f64::INFINITY), "-");
        check(&change(11.0), "12.0 x");
        check(&change(-0.9997), "-99.9 %");
        check(&size(-0.372), "37 %");
        check(&size(0.0996), "10 %");
    }

    #[test]
    fn memory_is_binary() {
        check(&octets(512), "512 octets");
        check(&octets(10 * 1024 * 1024), "10.0 MiB");
        check(&octets(1024 * 1024 * 1024 - 1), "1.00 GiB");
    }

    #[test]
    fn an_unbounded_interval_is_left_out() {
        let mut one = Estimate { value: 10.0, low: 9.0, high: 11.0 };
        check(&estimate(&one, qps), "10 (9 to 11)");
        one.high = f64::INFINITY;
        check(&estimate(&one, qps), "10");
    }
}
