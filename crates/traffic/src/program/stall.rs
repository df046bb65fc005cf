//! Times at which the whole server stands still.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use dnslab_wire::units::duration::write_to_seconds as written;

use super::error::{ProgramError, duration};

/// When the server neither reads nor answers, counted from the first query that it read.
///
/// Queries wait in the kernel's buffers meanwhile, as in a real stall (a page fault, a reload, a stolen CPU).
/// What does not fit there is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// Again and again. The first one begins a period after the first query.
    Every {
        /// From one beginning to the next; longer than `length`.
        period: Duration,
        /// How long each one lasts.
        length: Duration,
    },
    /// Once.
    Once {
        /// When it begins.
        at: Duration,
        /// How long it lasts.
        length: Duration,
    },
}

impl Stall {
    /// How much longer the server stalls, if it stalls at this time after the first query.
    #[must_use]
    pub fn remaining(self, since_first: Duration) -> Option<Duration> {
        let (into, length) = match self {
            Self::Once { at, length } => (since_first.checked_sub(at)?, length),
            Self::Every { period, length } => {
                let since_second = since_first.checked_sub(period)?;
                let into_ns = since_second.as_nanos() % period.as_nanos();
                (Duration::from_nanos(into_ns as u64), length)
            }
        };
        length.checked_sub(into).filter(|left| !left.is_zero())
    }
}

impl FromStr for Stall {
    type Err = ProgramError;

    /// Reads `every=10s,length=200ms` or `at=3s,length=200ms`.
    fn from_str(text: &str) -> Result<Self, ProgramError> {
        let wrong = |reason| ProgramError::new("stall", text, reason);
        let form = || wrong("`every=10s,length=200ms` or `at=3s,length=200ms` is expected");
        let (when, length) = text.split_once(',').ok_or_else(form)?;
        let length = length.trim().strip_prefix("length=").ok_or_else(form)?;
        let length = duration(length)?;
        match when.split_once('=').ok_or_else(form)? {
            ("every", period) => {
                let period = duration(period)?;
                if period <= length {
                    return Err(wrong("the length must be shorter than the period"));
                }
                Ok(Self::Every { period, length })
            }
            ("at", at) => Ok(Self::Once { at: duration(at)?, length }),
            _ => Err(form()),
        }
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, when, length) = match *self {
            Self::Every { period, length } => ("every", period, length),
            Self::Once { at, length } => ("at", at, length),
        };
        write!(formatter, "{kind}={},length={}", written(when), written(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read_and_written() {
        for text in ["every=10s,length=200ms", "at=3s,length=200ms"] {
            assert_eq!(text.parse::<Stall>().unwrap().to_string(), text);
        }
        let check = |text: &str, culprit: &str| {
            let error = text.parse::<Stall>().unwrap_err().to_string();
            assert!(error.starts_with(culprit), "{error}");
        };
        check("3s", "stall `3s`");
        check("at=3s,200ms", "stall `at=3s,200ms`");
        check("at=3,length=1s", "duration `3`");
        check("every=1s,length=1s", "stall `every=1s,length=1s`: the length");
        check("often=1s,length=1ms", "stall `often");
    }

    #[test]
    fn stalls_come_when_they_should() {
        let check = |text: &str, since_first_ms: u64, remaining_ms: Option<u64>| {
            let stall: Stall = text.parse().unwrap();
            let remaining = stall.remaining(Duration::from_millis(since_first_ms));
            assert_eq!(remaining, remaining_ms.map(Duration::from_millis), "{since_first_ms}");
        };
        for (since_first_ms, remaining_ms) in
            [(0, None), (2999, None), (3000, Some(200)), (3199, Some(1)), (3200, None)]
        {
            check("at=3s,length=200ms", since_first_ms, remaining_ms);
            check("every=3s,length=200ms", since_first_ms, remaining_ms);
        }
        check("every=3s,length=200ms", 9050, Some(150));
        check("at=3s,length=200ms", 6100, None);
    }
}
