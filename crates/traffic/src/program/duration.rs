//! Durations as people write them: a number and a unit.

use std::fmt;
use std::time::Duration;

use super::ProgramError;

/// The units with their length in nanoseconds, in the order in which they must be tried: `ms`
/// before `s`.
const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// Longer ones are taken for mistakes.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads `5ms`, `1.5s`, `200us`; at most a day.
pub(super) fn parse(text: &str) -> Result<Duration, ProgramError> {
    let wrong = |reason| ProgramError::new("duration", text, reason);
    let (unit, length_ns) = UNITS
        .into_iter()
        .find(|(unit, _)| text.ends_with(unit))
        .ok_or_else(|| wrong("a number and one of ns, us, ms, s is expected, as in `5ms`"))?;
    let number: f64 = text[..text.len() - unit.len()]
        .trim()
        .parse()
        .map_err(|_| wrong("the part before the unit is no number"))?;
    if !(number >= 0.0 && number * length_ns <= LONGEST.as_nanos() as f64) {
        return Err(wrong("it must lie between 0 and 24 hours"));
    }
    Ok(Duration::from_nanos((number * length_ns).round() as u64))
}

/// Writes a duration so that [`parse`] reads it back.
pub(super) struct Written(pub(super) Duration);

impl fmt::Display for Written {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.as_nanos();
        let (unit, length_ns) = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)]
            .into_iter()
            .find(|(_, length_ns)| ns > 0 && ns.is_multiple_of(*length_ns))
            .unwrap_or(("ns", 1));
        write!(formatter, "{}{unit}", ns / length_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        let check = |text: &str, ns: u64, written: &str| {
            let read = parse(text).unwrap();
            assert_eq!(read, Duration::from_nanos(ns), "{text}");
            assert_eq!(Written(read).to_string(), written);
        };
        check("5ms", 5_000_000, "5ms");
        check("1.5ms", 1_500_000, "1500us");
        check("0s", 0, "0ns");
        check("3 s", 3_000_000_000, "3s");
        check("7ns", 7, "7ns");
        for text in ["", "5", "ms", "-1ms", "NaNms", "1e9s", "infs", "5m", "1,5ms"] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("duration `{text}`: ")), "{error}");
        }
    }
}
