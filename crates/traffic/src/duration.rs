//! Durations as text: a number and a unit.

use std::time::Duration;

/// The units and their length in nanoseconds, longest first.
const UNITS: [(&str, u128); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Reads a number (with `_` between digits and a fraction, if wanted) and a unit, e.g. `1.5ms`.
///
/// `None` if it is something else, finer than a nanosecond, or longer than 2^64 - 1 of them
/// (584 years).
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let end = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(end);
    let (_, unit_ns) = *UNITS.iter().find(|(name, _)| *name == unit)?;
    let number = number.trim_end().replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|octet| octet.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole_ns = whole.parse::<u128>().ok()?.checked_mul(unit_ns)?;
    let scale = 10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let fraction_ns = fraction.parse::<u128>().ok()?.checked_mul(unit_ns)?;
    if fraction_ns % scale != 0 {
        return None;
    }
    let ns = whole_ns.checked_add(fraction_ns / scale)?;
    Some(Duration::from_nanos(u64::try_from(ns).ok()?))
}

/// The duration as a whole number of the largest unit that divides it, e.g. `1500us`.
#[must_use]
pub fn duration_text(duration: Duration) -> String {
    let ns = duration.as_nanos();
    // "120s" is what people write for two minutes, and "168h" for a week.
    let fits = |unit_ns: u128| {
        ns.is_multiple_of(unit_ns) && (unit_ns <= 1_000_000_000 || ns / unit_ns >= 10)
    };
    let (name, unit_ns) =
        UNITS.into_iter().find(|(_, unit_ns)| fits(*unit_ns)).unwrap_or(("ns", 1));
    format!("{}{name}", ns / unit_ns)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cases() {
        let check = |text: &str, ns: Option<u64>| {
            assert_eq!(parse_duration(text), ns.map(Duration::from_nanos), "for `{text}`");
        };
        check("10s", Some(10_000_000_000));
        check("1.5ms", Some(1_500_000));
        check("1_000us", Some(1_000_000));
        check("2m", Some(120_000_000_000));
        check("1h", Some(3_600_000_000_000));
        check(" 50 us ", Some(50_000));
        check("0s", Some(0));
        for bad in ["", "10", "s", "10 sec", "-1s", "1.s", ".5s", "1.5ns", "1m30s", "10S", "1e3s"] {
            check(bad, None);
        }
        check("99999999999999999999999999999999999999999h", None);
        check("600000000000h", None);
        check("0.0000000000000000000000000000000000000000001s", None);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(ns in any::<u64>(), zeros in 0u32..19) {
            let ns = ns / 10u64.pow(zeros) * 10u64.pow(zeros);
            let duration = Duration::from_nanos(ns);
            prop_assert_eq!(parse_duration(&duration_text(duration)), Some(duration));
        }
    }
}
