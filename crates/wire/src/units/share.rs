//! Shares of a whole, in [0, 1], and relative differences, of which 0.1 is 10 % more.

use super::number::{self, count, three_digits, two_digits};

/// From this relative difference on, "3.5 times" is easier to read than "250 % more".
pub const TIMES_FROM: f64 = 1.0;

/// Reads a share in [0, 1] as a number or a percentage: `0.001`, `0.1%`.
#[must_use]
pub fn read(text: &str) -> Option<f64> {
    let share = read_percentage(text).or_else(|| number::read(text))?;
    // Zero has one sign, so that what is written is what is read.
    (0.0..=1.0).contains(&share).then(|| share.abs())
}

/// Reads a percentage of 0 or more as a share, without an upper limit: `5%` is 0.05, `250 %` is 2.5.
#[must_use]
pub fn read_percentage(text: &str) -> Option<f64> {
    let percent = number::read(text.trim().strip_suffix('%')?)?;
    (0.0..f64::INFINITY).contains(&percent).then(|| percent.abs() / 100.0)
}

/// The share as a percentage: `0.1%`.
#[must_use]
pub fn write(share: f64) -> String {
    format!("{}%", number::write(share * 100.0))
}

/// As [`write()`], for a sentence: `0.1 %`.
#[must_use]
pub fn in_sentence(share: f64) -> String {
    format!("{} %", number::write(share * 100.0))
}

/// The share as a percentage with this many digits after the point: `95 %`.
#[must_use]
pub fn percent(share: f64, digits: usize) -> String {
    format!("{:.digits$} %", share * 100.0)
}

/// The share as a percentage. Only zero is written as 0 %, and only all as 100 %: one lost query in a million
/// must show.
#[must_use]
pub fn rounded(share: f64) -> String {
    let percent = share * 100.0;
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

/// A relative difference with its sign: `+10 %`, `-3.1 %`; from [`TIMES_FROM`] on as a multiple: `2.50 x`;
/// `-` if it is infinite.
#[must_use]
pub fn change(difference: f64) -> String {
    if !difference.is_finite() {
        return "-".to_owned();
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

/// The largest relative difference that something allows, for a sentence: `5 %`; from [`TIMES_FROM`] on as a multiple
/// with two significant digits, `9,800 times`.
///
/// ```
/// use dnslab_wire::units::share::largest;
///
/// assert_eq!(largest(0.05), "5 %");
/// assert_eq!(largest(2.5), "3.5 times");
/// assert_eq!(largest(9_823.34), "9,800 times");
/// ```
#[must_use]
pub fn largest(difference: f64) -> String {
    if difference < TIMES_FROM {
        return size(difference);
    }
    let times = 1.0 + difference;
    if times < 99.5 {
        return format!("{} times", two_digits(times));
    }
    let step = 10_f64.powf(times.log10().floor() - 1.0);
    format!("{} times", count(((times / step).round() * step).round() as u64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(found: &str, expected: &str) {
        assert_eq!(found, expected);
    }

    #[test]
    fn shares_are_read() {
        let check = |text: &str, share: Option<f64>| assert_eq!(read(text), share, "`{text}`");
        check("0", Some(0.0));
        check("0.05", Some(0.05));
        check("5%", Some(0.05));
        check("57%", Some(0.57));
        check(" 100 % ", Some(1.0));
        check("1e-3", Some(0.001));
        for bad in ["", "%", "-0.1", "-1%", "1.01", "101%", "NaN", "NaN%", "inf%", "some"] {
            check(bad, None);
        }
        assert_eq!(read("-0").map(f64::to_bits), Some(0));
        assert_eq!(read_percentage("250 %"), Some(2.5));
        assert_eq!([read_percentage("0.5"), read_percentage("-5%")], [None; 2]);
    }

    #[test]
    fn shares_never_round_to_nothing_or_to_all() {
        check(&rounded(0.0), "0 %");
        check(&rounded(1e-9), "< 0.0001 %");
        check(&rounded(0.000_012), "0.0012 %");
        check(&rounded(0.5), "50.0 %");
        check(&rounded(0.999_99), "> 99.9 %");
        check(&rounded(1.0), "100 %");
        check(&percent(0.954, 0), "95 %");
        check(&in_sentence(0.07), "7 %");
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

    proptest! {
        #[test]
        fn what_was_written_is_read(digits in 0u32..=1_000_000_000) {
            let share = f64::from(digits) / 1e9;
            let read_back = read(&write(share)).unwrap();
            prop_assert!((read_back - share).abs() <= f64::EPSILON * share, "{} is read as {}", share, read_back);
            prop_assert_eq!(read(&in_sentence(share)), Some(read_back));
        }
    }
}
