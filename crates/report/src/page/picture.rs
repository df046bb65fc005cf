//! What the pictures that are drawn without script have in common.

use std::fmt::Write as _;

use super::html::escape;

pub(crate) struct Ticks {
    /// Ascending.
    pub(crate) places: Vec<f64>,
}

impl Ticks {
    /// From zero to `most`, in at most `count` steps of 1, 2 or 5 times a power of ten.
    pub(crate) fn linear(most: f64, count: u32) -> Self {
        if !most.is_finite() || most <= 0.0 {
            return Self { places: vec![0.0] };
        }
        let raw = most / f64::from(count);
        let power = 10_f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
        let step = step.into_iter().find(|step| *step >= raw * 0.999).unwrap_or(raw);
        let places = (0..=count).map(|at| f64::from(at) * step).filter(|at| *at <= most * 1.001);
        Self { places: places.collect() }
    }

    /// Between two decimal logarithms, at most `count` of them, as few digits as do.
    pub(crate) fn logarithmic(low: f64, high: f64, count: usize) -> Self {
        const DIGITS: [&[f64]; 5] = [
            &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
            &[1.0, 2.0, 3.0, 5.0],
            &[1.0, 2.0, 5.0],
            &[1.0, 3.0],
            &[1.0],
        ];
        let mut choices = DIGITS.iter().map(|digits| decades(low, high, digits));
        let places = choices.find(|places| places.len() <= count).unwrap_or_else(|| {
            let powers = decades(low, high, &[1.0]);
            let step = powers.len().div_ceil(count.max(1)).max(1);
            powers.into_iter().step_by(step).collect()
        });
        Self { places }
    }
}

/// These digits of each power of ten, as far as they are between two decimal logarithms.
fn decades(low: f64, high: f64, digits: &[f64]) -> Vec<f64> {
    let powers = low.floor() as i32..=high.ceil() as i32;
    let all = powers.flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)));
    all.filter(|at| (low..=high).contains(&at.log10())).collect()
}

pub(crate) fn push_text(html: &mut String, class: &str, x: f64, y: f64, anchor: &str, text: &str) {
    let _ = write!(
        html,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
        y + 4.5,
        escape(text)
    );
}

pub(crate) fn shortened(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most - 1).chain(['\u{2026}']).collect()
}

/// A figure that was chosen, with its unit: digits that say nothing are left away.
pub(crate) fn trimmed(figure: &str) -> String {
    match figure.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => figure.to_owned(),
    }
}

/// A large count in few digits: `150 k`.
pub(crate) fn short_count(value: f64) -> String {
    let written =
        |value: f64| format!("{:.3}", value).trim_end_matches('0').trim_end_matches('.').to_owned();
    match value {
        value if value >= 1e6 => format!("{} M", written(value / 1e6)),
        value if value >= 1e3 => format!("{} k", written(value / 1e3)),
        value => written(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(Ticks::linear(148_000.0, 4).places, [0.0, 50_000.0, 100_000.0]);
        assert_eq!(Ticks::linear(0.004, 4).places, [0.0, 0.001, 0.002, 0.003, 0.004]);
        assert_eq!(Ticks::linear(0.0, 4).places, [0.0]);
        let log = |low: f64, high: f64, count| {
            Ticks::logarithmic(low.log10(), high.log10(), count).places
        };
        assert_eq!(log(0.9, 11.0, 4), [1.0, 2.0, 5.0, 10.0]);
        assert_eq!(log(0.5, 2e6, 4).len(), 4, "every second power of ten");
        assert_eq!(log(0.9, 11.0, 2), [1.0, 10.0]);
    }

    #[test]
    fn counts_are_short() {
        assert_eq!([0.0, 0.5, 50_000.0, 2.5e6].map(short_count), ["0", "0.5", "50 k", "2.5 M"]);
    }

    #[test]
    fn ticks_have_no_digits_too_many() {
        assert_eq!(["1.50 ms", "2.00 s", "100 us"].map(trimmed), ["1.5 ms", "2 s", "100 us"]);
    }

    #[test]
    fn names_are_cut() {
        assert_eq!(shortened("dot-coming-and-going", 10), "dot-comin\u{2026}");
        assert_eq!(shortened("dot", 3), "dot");
    }
}
