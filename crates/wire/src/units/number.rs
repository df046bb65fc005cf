//! Numbers without a unit, counts, and rates in queries or bits per second.

/// Reads a number: `30000`, `100_000`, `0.5`, `1e3`. It may be negative or infinite.
#[must_use]
pub fn read(text: &str) -> Option<f64> {
    without_separators(text.trim())?.parse().ok()
}

/// The number without the `_` between its digits; `None` if one stands elsewhere, where TOML has none either.
pub(super) fn without_separators(text: &str) -> Option<String> {
    let parts = text.split('_');
    let is_digit = |letter: char| letter.is_ascii_digit();
    let (mut after, mut before) = (parts.clone().skip(1), parts.clone().rev().skip(1));
    let is_between =
        after.all(|part| part.starts_with(is_digit)) && before.all(|part| part.ends_with(is_digit));
    is_between.then(|| parts.collect())
}

/// A number with at most ten significant digits, which drops the error of a conversion.
#[must_use]
pub fn write(number: f64) -> String {
    format!("{number:.9e}").parse().unwrap_or(number).to_string()
}

/// A whole number with a comma between groups of three digits: `1,234,567`.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun, in the singular of one: `1 query`, `1,234 queries`.
#[must_use]
pub fn counted(value: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(value), if value == 1 { one } else { many })
}

/// A rate in queries per second: three digits below 100, and from there on to the whole query, with commas as in
/// [`count`].
///
/// ```
/// use dnslab_wire::units::number::qps;
///
/// assert_eq!(qps(0.5), "0.5");
/// assert_eq!(qps(304_512.3), "304,512");
/// ```
#[must_use]
pub fn qps(value: f64) -> String {
    if (0.0..99.95).contains(&value) {
        return without_zeros(&three_digits(value)).to_owned();
    }
    count(value.round().max(0.0) as u64)
}

/// A rate as [`qps`] writes it, with its noun: `1 query per second`, `0.5 queries per second`.
#[must_use]
pub fn queries_per_second(value: f64) -> String {
    let rate = qps(value);
    format!("{rate} {} per second", if rate == "1" { "query" } else { "queries" })
}

/// A rate of bits in the largest decimal unit of which there is at least one: `100 Mbit/s`.
#[must_use]
pub fn bits_per_second(rate: u64) -> String {
    const UNITS: [&str; 4] = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"];
    let (scaled, unit) = scaled(rate as f64, 1_000.0, 1_000.0, &UNITS);
    format!("{} {unit}", without_zeros(&three_digits(scaled)))
}

/// A value divided by `step` for each further unit, while it is at least `least`.
pub(super) fn scaled<'a>(value: f64, step: f64, least: f64, units: &[&'a str]) -> (f64, &'a str) {
    let (mut scaled, mut unit) = (value, 0);
    while scaled >= least && unit + 1 < units.len() {
        scaled /= step;
        unit += 1;
    }
    (scaled, units[unit])
}

/// A number with three significant digits, and all its digits before the point.
///
/// ```
/// use dnslab_wire::units::number::three_digits;
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

/// Digits behind the point of a figure that is uncertain by `half`: one below 0.95, two below 0.095.
#[must_use]
pub fn certain_decimals(half: f64) -> usize {
    match half {
        half if half >= 0.95 => 0,
        half if half >= 0.095 => 1,
        _ => 2,
    }
}

/// Two significant digits below 10, whole numbers from there on, no trailing zeros; 0 below 0.0001.
pub(super) fn two_digits(value: f64) -> String {
    if value >= 9.95 {
        return format!("{value:.0}");
    }
    if value < 0.0001 {
        return "0".to_owned();
    }
    let decimals = (1 - value.log10().floor() as i32).max(0) as usize;
    without_zeros(&format!("{value:.decimals$}")).to_owned()
}

pub(super) fn without_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// A large figure, whose digits are all written, with those that half the width of its interval leaves uncertain set to
/// zero. At least one digit stays, and two where rounding to one could change it by more than a tenth.
///
/// ```
/// use dnslab_wire::units::number::certain_value;
///
/// assert_eq!(certain_value(151_491.0, 1_500.0), 151_000.0);
/// assert_eq!(certain_value(147_300.0, 160_000.0), 150_000.0);
/// assert_eq!(certain_value(711.0, 900.0), 700.0);
/// ```
#[must_use]
pub fn certain_value(value: f64, half: f64) -> f64 {
    if value == 0.0 || half < 1.0 || !half.is_finite() {
        return value;
    }
    let step = certain_step(value, half);
    (value / step).round() * step
}

/// The place of the first digit of half the width, but no higher than leaves digits enough.
fn certain_step(value: f64, half: f64) -> f64 {
    let power = |number: f64| 10_f64.powf(number.abs().log10().floor());
    power(half).min(power(value / 5.0))
}

/// A written figure (`1.74 ms`) without the uncertain digits; where the first digit of half the width is a 1, the next
/// one stays too. `half` has the unit of `value`, the figure itself.
///
/// ```
/// use dnslab_wire::units::{duration, number::certain};
///
/// assert_eq!(certain(&duration::rounded(1.742e6), 1.742e6, 0.4e6), "1.7 ms");
/// assert_eq!(certain(&duration::rounded(549_000.0), 549_000.0, 60_000.0), "550 us");
/// assert_eq!(certain(&duration::rounded(549_000.0), 549_000.0, 100.0), "549 us");
/// assert_eq!(certain(&duration::rounded(996_000.0), 996_000.0, 90_000.0), "1.00 ms");
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
    let has = digits.split_once('.').map_or(0, |(_, behind)| behind.len());
    let half = half * number / value / 2.0;
    let step = certain_step(number, half).max(10_f64.powi(-(has as i32)));
    let rounded = (number / step).round() * step;
    let (scale, unit) = super::time_units::carried(rounded, unit);
    let decimals = (-(step / scale).log10()).round().max(0.0) as usize;
    format!("{:.decimals$} {unit}", rounded / scale).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_read() {
        let check = |text: &str, number: Option<f64>| assert_eq!(read(text), number, "`{text}`");
        check("30000", Some(30_000.0));
        check(" 50_000.5 ", Some(50_000.5));
        check("1e3", Some(1_000.0));
        check(".5", Some(0.5));
        check("-1", Some(-1.0));
        check("+1", Some(1.0));
        check("1_0.2_5e1_0", Some(10.25e10));
        for bad in ["_1", "1_", "1__0", "1_.5", "1._5", "-_1", "1e_3", "1_e3"] {
            check(bad, None);
        }
        for bad in ["", "_", "1.2.3", "1,5", "fast", "1 0"] {
            check(bad, None);
        }
    }

    #[test]
    fn rates_and_counts() {
        let check = |found: String, expected: &str| assert_eq!(found, expected);
        check(qps(0.0), "0");
        check(qps(0.2), "0.2");
        check(qps(1.0), "1");
        check(qps(12.34), "12.3");
        check(qps(99.96), "100");
        check(queries_per_second(0.5), "0.5 queries per second");
        check(queries_per_second(1.001), "1 query per second");
        check(queries_per_second(1.01), "1.01 queries per second");
        check(queries_per_second(30_000.0), "30,000 queries per second");
        check(counted(0, "query", "queries"), "0 queries");
        check(counted(1, "query", "queries"), "1 query");
        check(counted(1_500, "query", "queries"), "1,500 queries");
        check(qps(999.6), "1,000");
        check(qps(304_512.3), "304,512");
        check(count(0), "0");
        check(count(999), "999");
        check(count(1_000), "1,000");
        check(count(1_234_567), "1,234,567");
        check(bits_per_second(0), "0 bit/s");
        check(bits_per_second(64_000), "64 kbit/s");
        check(bits_per_second(2_500_000), "2.5 Mbit/s");
        check(bits_per_second(400_000_000_000), "400 Gbit/s");
        check(write(0.07 * 100.0), "7");
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(digits in 0u64..10_000_000_000, power in -12i32..12) {
            let number: f64 = format!("{digits}e{power}").parse().unwrap();
            prop_assert_eq!(read(&write(number)), Some(number));
        }

        #[test]
        fn counts_are_read_without_their_commas(value: u64) {
            prop_assert_eq!(count(value).replace(',', ""), value.to_string());
        }
    }
}
