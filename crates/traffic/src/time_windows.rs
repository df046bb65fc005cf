//! Named parts of the measured window.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use dnslab_wire::units::duration;

/// A named part of the measured window. Both ends are counted from the beginning of the measured window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeWindow {
    /// 1 to [`TimeWindows::MAX_NAME`] of letters, digits, `-` and `_`.
    pub name: String,
    /// Its first instant.
    pub from: Duration,
    /// The first instant after it.
    pub to: Duration,
}

/// Time windows, at least one, each with a name of its own. They may overlap.
///
/// ```
/// let windows: dnslab_traffic::TimeWindows = "cold:0s..60s, warm:60s..120s".parse()?;
/// assert_eq!(windows.as_slice()[1].name, "warm");
/// assert_eq!(windows.to_string(), "cold:0s..60s,warm:60s..120s");
/// # Ok::<(), dnslab_traffic::TimeWindowsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeWindows(Vec<TimeWindow>);

/// The text names no time windows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeWindowsError {
    /// Not a name with two ends.
    #[error("`{0}` is no time window: write for example cold:0s..60s")]
    Part(String),
    /// No name for a file or a chart.
    #[error(
        "`{0}` is no name of a time window: take 1 to {max} letters, digits, `-` and `_`",
        max = TimeWindows::MAX_NAME
    )]
    Name(String),
    /// An end that is no duration.
    #[error("`{end}` is no duration in the time window `{name}`: write for example 60s")]
    End {
        /// The time window.
        name: String,
        /// The text.
        end: String,
    },
    /// The end is not after the beginning.
    #[error(
        "the time window `{name}` is empty: it ends at {to} and begins at {from}",
        from = duration::write(*from), to = duration::write(*to)
    )]
    Empty {
        /// The time window.
        name: String,
        /// Its beginning.
        from: Duration,
        /// Its end.
        to: Duration,
    },
    /// A name that is there before.
    #[error("two time windows are called `{0}`: each needs a name of its own")]
    Twice(String),
    /// More than are counted.
    #[error("{0} time windows are more than the {max} that are counted", max = TimeWindows::MAX)]
    TooMany(usize),
}

impl TimeWindows {
    /// Most time windows of a load. Each has two histograms in every worker, 432 KiB.
    pub const MAX: usize = 16;

    /// Letters of a name.
    pub const MAX_NAME: usize = 32;

    /// As they were given.
    #[must_use]
    pub fn as_slice(&self) -> &[TimeWindow] {
        &self.0
    }
}

impl FromStr for TimeWindow {
    type Err = TimeWindowsError;

    /// Reads a name with both ends, `cold:0s..60s`.
    fn from_str(text: &str) -> Result<Self, TimeWindowsError> {
        let unread = || TimeWindowsError::Part(text.to_owned());
        let (name, span) = text.split_once(':').ok_or_else(unread)?;
        let (from, to) = span.split_once("..").ok_or_else(unread)?;
        let name = name.trim();
        let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_');
        if !(1..=TimeWindows::MAX_NAME).contains(&name.len()) || !name.bytes().all(is_plain) {
            return Err(TimeWindowsError::Name(name.to_owned()));
        }
        let end = |end: &str| {
            let unread =
                |_| TimeWindowsError::End { name: name.to_owned(), end: end.trim().to_owned() };
            duration::read(end.trim()).map_err(unread)
        };
        let (from, to) = (end(from)?, end(to)?);
        let name = name.to_owned();
        if from < to {
            Ok(Self { name, from, to })
        } else {
            Err(TimeWindowsError::Empty { name, from, to })
        }
    }
}

impl FromStr for TimeWindows {
    type Err = TimeWindowsError;

    /// Reads time windows between commas.
    fn from_str(text: &str) -> Result<Self, TimeWindowsError> {
        let parts = text.split(',').map(|part| part.trim().parse());
        let windows: Vec<TimeWindow> = parts.collect::<Result<_, _>>()?;
        for (place, window) in windows.iter().enumerate() {
            if windows[..place].iter().any(|known| known.name == window.name) {
                return Err(TimeWindowsError::Twice(window.name.clone()));
            }
        }
        match windows.len() {
            count if count > Self::MAX => Err(TimeWindowsError::TooMany(count)),
            _ => Ok(Self(windows)),
        }
    }
}

impl fmt::Display for TimeWindows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, TimeWindow { name, from, to }) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let (from, to) = (duration::write(*from), duration::write(*to));
            write!(formatter, "{comma}{name}:{from}..{to}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_windows_are_read_and_written() {
        for (text, written) in [
            ("cold:0s..60s", "cold:0s..60s"),
            (" first_half : 0ms .. 1.5s , a-2:1s..1m ", "first_half:0s..1500ms,a-2:1s..60s"),
        ] {
            let windows: TimeWindows = text.parse().unwrap();
            assert_eq!(windows.to_string(), written);
            assert_eq!(written.parse(), Ok(windows));
        }
    }

    #[test]
    fn wrong_time_windows_say_why() {
        let long = "x".repeat(33);
        let many = (0..17).map(|at| format!("w{at}:0s..1s")).collect::<Vec<_>>().join(",");
        for (text, message) in [
            ("", "`` is no time window: write for example cold:0s..60s"),
            ("cold", "`cold` is no time window: write for example cold:0s..60s"),
            ("cold:60s", "`cold:60s` is no time window: write for example cold:0s..60s"),
            ("a:0s..1s,", "`` is no time window: write for example cold:0s..60s"),
            (
                ":0s..1s",
                "`` is no name of a time window: take 1 to 32 letters, digits, `-` and `_`",
            ),
            (
                &format!("{long}:0s..1s"),
                &format!(
                    "`{long}` is no name of a time window: take 1 to 32 letters, digits, `-` and `_`"
                ),
            ),
            ("cold:0..60s", "`0` is no duration in the time window `cold`: write for example 60s"),
            (
                "cold:0s..-1s",
                "`-1s` is no duration in the time window `cold`: write for example 60s",
            ),
            ("cold:60s..60s", "the time window `cold` is empty: it ends at 60s and begins at 60s"),
            ("a:0s..1s,a:1s..2s", "two time windows are called `a`: each needs a name of its own"),
            (&many, "17 time windows are more than the 16 that are counted"),
        ] {
            assert_eq!(text.parse::<TimeWindows>().unwrap_err().to_string(), message);
        }
    }
}
