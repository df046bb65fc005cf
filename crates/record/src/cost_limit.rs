//! What a variant may cost, as a user says it.

use std::fmt;
use std::str::FromStr;

use dnslab_settings::{Metric, Unit};
use dnslab_wire::units::share;
use serde::{Deserialize, Serialize};

use crate::indicator::{Indicator, IndicatorError};
use crate::objective::{ObjectiveError, Threshold};

/// A limit as it is given with `--limit`. Serialised as its text.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum CostLimit {
    /// How much worse than the reference a metric may be: `p99=10%`, or the same as the change that is
    /// accepted, with its sign: `p99<+10%`, `qps>-10%`.
    Relative {
        /// The metric.
        metric: Metric,
        /// The largest cost that is accepted (0.1 = 10 %); below zero if there must be a gain.
        largest: f64,
    },
    /// What each variant has to keep, the baseline too: `p99<10ms`.
    Absolute(Threshold),
}

/// The text is no limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CostLimitError {
    /// There is no `=`, `<` or `>`.
    #[error(
        "`{0}` is no limit: write FIGURE=PERCENT or FIGURE<BOUND, as in p99=10%, p99<+10% or p99<10ms"
    )]
    Form(String),
    /// There is no such figure.
    #[error(transparent)]
    Figure(#[from] IndicatorError),
    /// Variants are not compared by it.
    #[error("variants are not compared by `{0}`: bound it itself, as {1}")]
    NotCompared(
        /// The figure.
        String,
        /// How that is written.
        String,
    ),
    /// The percentage cannot be.
    #[error("`{0}` is no percentage of 0 or more: write it as 10%")]
    Percentage(String),
    /// The bound cannot be.
    #[error(transparent)]
    Threshold(ObjectiveError),
    /// What follows the sign is no percentage.
    #[error(
        "`{0}` is no change in percent: write it as +5% or -5%; a bound of the figure itself has no sign"
    )]
    Change(String),
    /// A rate does not fall by more than all of it, and nothing else does.
    #[error("`{0}` cannot be reached: nothing falls by 100 % or more")]
    Reach(String),
    /// It is on the wrong side: what is better would fail.
    #[error("`{text}` fails what is better: write {name}{sign}...%")]
    Side {
        /// The limit.
        text: String,
        /// The figure.
        name: String,
        /// What belongs there.
        sign: &'static str,
    },
}

impl FromStr for CostLimit {
    type Err = CostLimitError;

    fn from_str(text: &str) -> Result<Self, CostLimitError> {
        let text = text.trim();
        if let Some(at) = text.find(['<', '>']) {
            let change = text[at + 1..].trim_start_matches('=').trim_start();
            if change.starts_with(['+', '-']) {
                return signed(text, at, change);
            }
            return match text.parse() {
                Ok(demand) => Ok(Self::Absolute(demand)),
                Err(ObjectiveError::Figure(error)) => Err(CostLimitError::Figure(error)),
                Err(error) => Err(CostLimitError::Threshold(error)),
            };
        }
        let form = || CostLimitError::Form(text.to_owned());
        let (name, value) = text.split_once('=').ok_or_else(form)?;
        let metric = compared(name.trim())?;
        let value = value.trim();
        match share::read_percentage(value) {
            Some(largest) => Ok(Self::Relative { metric, largest }),
            None => Err(CostLimitError::Percentage(value.to_owned())),
        }
    }
}

/// A metric that variants are compared by.
fn compared(name: &str) -> Result<Metric, CostLimitError> {
    let indicator: Indicator = name.parse()?;
    indicator.compared().ok_or_else(|| {
        let example = match indicator {
            Indicator::Metric(Metric::LostShare) => "lost<0.1%".to_owned(),
            Indicator::Metric(Metric::AnsweredShare) => "answered>99.9%".to_owned(),
            other => format!("{other}<10ms"),
        };
        CostLimitError::NotCompared(name.to_owned(), example)
    })
}

/// A limit whose relation is at `at`, followed by a signed change: `qps>-3%`.
fn signed(text: &str, at: usize, change: &str) -> Result<CostLimit, CostLimitError> {
    let name = text[..at].trim();
    let metric = compared(name)?;
    let is_lower_bound = text[at..].starts_with('>');
    if is_lower_bound != metric.higher_is_better() {
        let sign = if metric.higher_is_better() { ">-" } else { "<+" };
        return Err(CostLimitError::Side { text: text.to_owned(), name: name.to_owned(), sign });
    }
    let size = share::read_percentage(&change[1..]);
    let size = size.ok_or_else(|| CostLimitError::Change(change.to_owned()))?;
    let change = if change.starts_with('-') { -size } else { size };
    if change <= -1.0 && !is_lower_bound {
        return Err(CostLimitError::Reach(text.to_owned()));
    }
    // Zero has one sign.
    let largest = if is_lower_bound { 0.0 - change } else { change + 0.0 };
    Ok(CostLimit::Relative { metric, largest })
}

impl fmt::Display for CostLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A gain that is asked for has no other form.
            Self::Relative { metric, largest } if *largest < 0.0 => {
                let form = if metric.higher_is_better() { ">+" } else { "<-" };
                write!(formatter, "{}{form}{}", self.indicator(), Unit::Share.write(-largest))
            }
            Self::Relative { largest, .. } => {
                write!(formatter, "{}={}", self.indicator(), Unit::Share.write(*largest))
            }
            Self::Absolute(demand) => demand.fmt(formatter),
        }
    }
}

impl TryFrom<String> for CostLimit {
    type Error = CostLimitError;

    fn try_from(text: String) -> Result<Self, CostLimitError> {
        text.parse()
    }
}

impl From<CostLimit> for String {
    fn from(limit: CostLimit) -> Self {
        limit.to_string()
    }
}

impl CostLimit {
    /// What it is about.
    #[must_use]
    pub fn indicator(&self) -> Indicator {
        match self {
            Self::Relative { metric, .. } => Indicator::Metric(*metric),
            Self::Absolute(demand) => demand.indicator,
        }
    }
}
