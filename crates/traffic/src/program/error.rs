//! What a program does not understand.

use std::time::Duration;

use dnslab_wire::units::duration::{self, Fault};

/// Part of a program is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{culprit}: {reason}")]
pub struct ProgramError {
    /// The text at fault, with what it was meant to be.
    pub culprit: String,
    /// What would be right.
    pub reason: &'static str,
}

impl ProgramError {
    pub(super) fn new(what: &str, text: &str, reason: &'static str) -> Self {
        Self { culprit: format!("{what} `{text}`"), reason }
    }
}

/// Longer times are taken for mistakes.
const MAX_LENGTH: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads a duration, at most a day.
pub(super) fn duration(text: &str) -> Result<Duration, ProgramError> {
    let read = duration::read(text);
    let reason = match read {
        Ok(duration) if duration <= MAX_LENGTH => return Ok(duration),
        Err(Fault::NoUnit) => "a number and one of ns, us, ms, s, m, h is expected, as in `5ms`",
        Err(Fault::NoNumber) => "the part before the unit is no number",
        Ok(_) | Err(Fault::OutOfRange) => "it must lie between 0 and 24 hours",
    };
    Err(ProgramError::new("duration", text, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_or_refused_with_a_reason() {
        let check = |text: &str, expected: Result<u64, &str>| {
            let expected = expected.map(Duration::from_nanos);
            assert_eq!(duration(text).map_err(|error| error.reason), expected, "{text}");
        };
        check("1.5ms", Ok(1_500_000));
        check("3 s", Ok(3_000_000_000));
        check("24h", Ok(86_400_000_000_000));
        for text in ["", "5", "5d"] {
            let unit = "a number and one of ns, us, ms, s, m, h is expected, as in `5ms`";
            check(text, Err(unit));
        }
        for text in ["ms", "1,5ms"] {
            check(text, Err("the part before the unit is no number"));
        }
        for text in ["-1ms", "NaNms", "infs", "1e9s", "25h"] {
            check(text, Err("it must lie between 0 and 24 hours"));
        }
        assert_eq!(duration("5").unwrap_err().culprit, "duration `5`");
    }
}
