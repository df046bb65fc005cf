//! Durations.

use super::time_units::{TO_SECONDS, UNITS};
use std::time::Duration;

use super::number;

/// Why a text is no duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No unit stands at its end.
    NoUnit,
    /// What stands before the unit is no number.
    NoNumber,
    /// It is negative, or longer than 2^64 - 1 ns (584 years).
    OutOfRange,
}

/// Reads a number and a unit: `10s`, `1.5 ms`, `1_000us`, `1e-3s`. Parts of a nanosecond are rounded.
///
/// # Errors
/// When it is something else.
pub fn read(text: &str) -> Result<Duration, Fault> {
    let (number, unit_ns) = super::split(text, &UNITS).ok_or(Fault::NoUnit)?;
    let digits = number::without_separators(number).ok_or(Fault::NoNumber)?;
    let ns = match exact(&digits, unit_ns) {
        Some(ns) => ns,
        None => match read_ns(text)?.round() {
            ns if (0.0..u64::MAX as f64).contains(&ns) => ns as u64,
            _ => return Err(Fault::OutOfRange),
        },
    };
    Ok(Duration::from_nanos(ns))
}

/// Nanoseconds of a number in plain digits. The whole part is multiplied separately: a double holds at most
/// 104 days of nanoseconds exactly.
fn exact(number: &str, unit_ns: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if !fraction.bytes().all(|octet| octet.is_ascii_digit()) {
        return None;
    }
    let part_ns = format!("0.{fraction}").parse::<f64>().ok()? * unit_ns as f64;
    whole.parse::<u64>().ok()?.checked_mul(unit_ns)?.checked_add(part_ns.round() as u64)
}

/// As [`read`], in nanoseconds with parts of one, as means have them. It has no bounds: it may be negative or
/// infinite.
///
/// # Errors
/// When it is something else.
pub fn read_ns(text: &str) -> Result<f64, Fault> {
    let (number, unit_ns) = super::split(text, &UNITS).ok_or(Fault::NoUnit)?;
    Ok(number::read(number).ok_or(Fault::NoNumber)? * unit_ns as f64)
}

/// A whole number of the largest unit that divides the duration: `1500us`.
#[must_use]
pub fn write(duration: Duration) -> String {
    // "120s" is what people write for two minutes, and "168h" for a week.
    in_whole(duration, &UNITS, |count, unit_ns| unit_ns <= 1_000_000_000 || count >= 10)
}

/// As [`write()`], in seconds at most, and zero in nanoseconds: `36000s`, `0ns`. Delays and stalls of servers
/// have this form, which older versions can read.
#[must_use]
pub fn write_to_seconds(duration: Duration) -> String {
    in_whole(duration, &UNITS[..TO_SECONDS], |count, _| count > 0)
}

/// A whole number of the largest of these units that divides the duration and suits.
fn in_whole(
    duration: Duration,
    units: &[(&str, u64)],
    suits: impl Fn(u128, u64) -> bool,
) -> String {
    let ns = duration.as_nanos();
    let divides = |(_, unit_ns): &&(&str, u64)| {
        let unit = u128::from(*unit_ns);
        ns.is_multiple_of(unit) && suits(ns / unit, *unit_ns)
    };
    let (unit, unit_ns) = units.iter().rev().find(divides).unwrap_or(&units[0]);
    format!("{}{unit}", ns / u128::from(*unit_ns))
}

/// Nanoseconds in the largest unit up to a second of which there is at least one, with parts of it: `1.5ms`.
#[must_use]
pub fn write_ns(ns: f64) -> String {
    super::in_largest(ns, &UNITS[..TO_SECONDS])
}

/// Nanoseconds in the unit that fits them, up to seconds, with three significant digits: `1.50 ms`.
#[must_use]
pub fn rounded(ns: f64) -> String {
    let (divisor, unit) = unit_of(ns.abs());
    format!("{} {unit}", number::three_digits(ns / divisor))
}

/// Nanoseconds of the unit that fits a duration, and the unit. Half a unit in the third digit below the next unit is
/// already written in that unit.
fn unit_of(ns: f64) -> (f64, &'static str) {
    match ns {
        small if small < 999.5 => (1.0, "ns"),
        small if small < 999.5e3 => (1e3, "us"),
        small if small < 999.5e6 => (1e6, "ms"),
        _ => (1e9, "s"),
    }
}

/// A difference with half the width of its interval, both in the unit of the larger one, with no more digits than are
/// certain and three at most.
///
/// ```
/// use dnslab_wire::units::duration::with_interval;
///
/// assert_eq!(with_interval(7_204.0, 411.0), "+7.2 ±0.4 us");
/// assert_eq!(with_interval(-5_833_000.0, 1_200.0), "-5.83 ±0.01 ms");
/// assert_eq!(with_interval(909.0, 143.0), "+910 ±140 ns");
/// ```
#[must_use]
pub fn with_interval(ns: f64, half_ns: f64) -> String {
    let (divisor, unit) = unit_of(ns.abs().max(half_ns));
    let (value, half) = (ns / divisor, half_ns / divisor);
    let before_point = value.abs().max(1.0).log10().floor() as usize;
    let digits = number::certain_decimals(half).min(2_usize.saturating_sub(before_point));
    // Of a wide interval the last digits say nothing.
    let [value, half] = match half >= 20.0 {
        true => [value, half].map(|figure| (figure / 10.0).round() * 10.0),
        false => [value, half],
    };
    format!("{value:+.digits$} ±{:.digits$} {unit}", half.max(0.1_f64.powi(digits as i32)))
}

/// The ends of an interval, both in the unit of the larger one, with no more digits than its width leaves certain.
///
/// ```
/// use dnslab_wire::units::duration::range;
///
/// assert_eq!(range(6_204.0, 8_190.0), "+6.2 to +8.2 us");
/// assert_eq!(range(-20.0, 1_400.0), "0.0 to +1.4 us");
/// ```
#[must_use]
pub fn range(low_ns: f64, high_ns: f64) -> String {
    let (divisor, unit) = unit_of(low_ns.abs().max(high_ns.abs()));
    let (low, high) = (low_ns / divisor, high_ns / divisor);
    // Each end by itself has a digit more than the middle.
    let digits = number::certain_decimals((high - low) / 4.0);
    let [low, high] = [low, high].map(|end| match format!("{end:+.digits$}") {
        // Nothing has no sign.
        text if text[1..].chars().all(|letter| "0.".contains(letter)) => text[1..].to_owned(),
        text => text,
    });
    format!("{low} to {high} {unit}")
}

/// As [`rounded`], for what was set, not measured: without the digits `.0` and `.00`, as in `1 ms`.
#[must_use]
pub fn as_set(ns: u64) -> String {
    rounded(ns as f64).replace(".00 ", " ").replace(".0 ", " ")
}

/// A duration in seconds, with three significant digits below 100 s and without trailing zeros: `0.6 s`, `4.28 s`.
#[must_use]
pub fn in_seconds(ns: u64) -> String {
    format!("{} s", number::without_zeros(&number::three_digits(ns as f64 / 1e9)))
}

/// An estimated duration as people say it, with two units at most: `55 s`, `2 min 30 s`, `2 h`, `2 h 5 min`.
#[must_use]
pub fn spoken(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let rounded = |to: f64| ((seconds / to).round() * to) as u64;
    let (whole, (larger, unit), smaller) = match seconds {
        seconds if seconds < 89.5 => return format!("{} s", (seconds.round() as u64).max(1)),
        seconds if seconds < 595.0 => (rounded(10.0), (60, "min"), (1, "s")),
        seconds if seconds < 3_570.0 => (rounded(60.0), (60, "min"), (1, "s")),
        _ => (rounded(300.0), (3_600, "h"), (60, "min")),
    };
    match (whole / larger, whole % larger / smaller.0) {
        (count, 0) => format!("{count} {unit}"),
        (count, rest) => format!("{count} {unit} {rest} {}", smaller.1),
    }
}

/// A duration in words, cut to a whole number of the largest unit of which there are two: `36 hours`.
#[must_use]
pub fn in_words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (number, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7_200 => (seconds / 60, "minute"),
        7_200..172_800 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read() {
        let check = |text: &str, ns: u64| {
            assert_eq!(read(text), Ok(Duration::from_nanos(ns)), "`{text}`");
        };
        check("10s", 10_000_000_000);
        check("1.5ms", 1_500_000);
        check("1_000us", 1_000_000);
        check("2m", 120_000_000_000);
        check("1h", 3_600_000_000_000);
        check(" 50 us ", 50_000);
        check("0s", 0);
        check("1e3s", 1_000_000_000_000);
        check(".5s", 500_000_000);
        check("5.s", 5_000_000_000);
        check("1.4ns", 1);
        check("-0s", 0);
        // A double cannot hold these.
        check("18446744073709551615ns", u64::MAX);
        check("100000.1h", 360_000_360_000_000_000);
    }

    #[test]
    fn what_is_no_duration_says_why() {
        let check = |texts: &[&str], fault| {
            for text in texts {
                assert_eq!(read(text), Err(fault), "`{text}`");
            }
        };
        check(&["", "10", "10 sec", "10S", "5d"], Fault::NoUnit);
        check(&["s", "ms", "1m30s", "1,5ms", "1.2.3s"], Fault::NoNumber);
        check(&["_1s", "1_s", "1__0s", "1_.5s", "1._5s", "_ms"], Fault::NoNumber);
        check(&["-1s", "infs", "NaNms", "600000000000h", "1e30ns"], Fault::OutOfRange);
        check(&["18446744073709551616ns"], Fault::OutOfRange);
    }

    #[test]
    fn durations_are_written() {
        for (ns, exactly, to_seconds, decimal, short) in [
            (0, "0s", "0ns", "0ns", "0 ns"),
            (12, "12ns", "12ns", "12ns", "12.0 ns"),
            (1_500_000, "1500us", "1500us", "1.5ms", "1.50 ms"),
            (999_900, "999900ns", "999900ns", "999.9us", "1.00 ms"),
            (100_000_000_000, "100s", "100s", "100s", "100 s"),
            (120_000_000_000, "120s", "120s", "120s", "120 s"),
            (600_000_000_000, "10m", "600s", "600s", "600 s"),
            (604_800_000_000_000, "168h", "604800s", "604800s", "604800 s"),
        ] {
            let duration = Duration::from_nanos(ns);
            assert_eq!(write(duration), exactly);
            assert_eq!(write_to_seconds(duration), to_seconds);
            assert_eq!(write_ns(ns as f64), decimal);
            assert_eq!(rounded(ns as f64), short);
        }
        assert_eq!(rounded(999.4), "999 ns");
        assert_eq!(as_set(1_000_000_000), "1 s");
        let seconds = [600_000_000, 4_275_839_550, 10_000_000_000, 604_800_000_000_000];
        assert_eq!(seconds.map(in_seconds), ["0.6 s", "4.28 s", "10 s", "604800 s"]);
        assert_eq!(write_ns(0.5), "0.5ns");
        assert_eq!(read_ns("0.5ns"), Ok(0.5));
        let words = [1, 119, 7_199, 172_799, 172_800].map(Duration::from_secs).map(in_words);
        assert_eq!(words, ["1 second", "119 seconds", "119 minutes", "47 hours", "2 days"]);
    }

    #[test]
    fn estimates_are_said_as_people_say_them() {
        for (seconds, expected) in [
            (0.2, "1 s"),
            (54.6, "55 s"),
            (89.0, "89 s"),
            (91.0, "1 min 30 s"),
            (120.0, "2 min"),
            (594.0, "9 min 50 s"),
            (599.0, "10 min"),
            (3_569.0, "59 min"),
            (3_590.0, "1 h"),
            (7_200.0, "2 h"),
            (7_480.0, "2 h 5 min"),
            (200_000.0, "55 h 35 min"),
        ] {
            assert_eq!(spoken(Duration::from_secs_f64(seconds)), expected);
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(ns in any::<u64>(), zeros in 0u32..19) {
            let ns = ns / 10u64.pow(zeros) * 10u64.pow(zeros);
            let duration = Duration::from_nanos(ns);
            prop_assert_eq!(read(&write(duration)), Ok(duration));
            prop_assert_eq!(read(&write_to_seconds(duration)), Ok(duration));
        }

        #[test]
        fn decimals_that_were_written_are_read(digits in 0u64..1_000_000_000, power in -1i32..6) {
            let ns: f64 = format!("{digits}e{power}").parse().unwrap();
            let read = read_ns(&write_ns(ns)).unwrap();
            prop_assert!((read - ns).abs() <= ns * 1e-9, "{} is read as {}", ns, read);
        }
    }
}
