//! What an operator demands of a server: bounds on its figures.

use std::fmt;
use std::str::FromStr;

use dnslab_settings::Metric;
use serde::{Deserialize, Serialize};

use crate::indicator::{Indicator, IndicatorError};
use crate::observation::Observation;

/// Demands that all have to be met: `lost<0.1%, p99<10ms`. There is at least one.
///
/// Serialised as its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Objective(Vec<Threshold>);

/// One demand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// What is held against the bound.
    pub indicator: Indicator,
    /// On which side of the bound it has to be.
    pub relation: Relation,
    /// The bound: a share in [0, 1], nanoseconds, octets, or a number, as the indicator has it.
    pub bound: f64,
}

/// On which side of a bound a figure has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
}

/// The text is no objective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectiveError {
    /// There is no demand in it.
    #[error("an objective needs a demand: write for example lost<0.1%, p99<10ms")]
    Empty,
    /// There is no `<` or `>`.
    #[error("`{0}` is no demand: write FIGURE<BOUND, for example p99<10ms")]
    Form(String),
    /// There is no such figure.
    #[error(transparent)]
    Figure(#[from] IndicatorError),
    /// The figure is none of the answers.
    #[error(
        "an objective says nothing of `{0}`, which a limit can (`dnslab run --limit`): it is about \
         lost, answered, mean, max, or a percentile of the latency such as p99"
    )]
    NotOfAnswers(String),
    /// The relation is the wrong way round.
    #[error("`{given}` demands a bad server: write {figure}{sign}{bound}", sign = .turned)]
    Direction {
        /// What was given.
        given: String,
        /// Its figure.
        figure: String,
        /// The right relation.
        turned: &'static str,
        /// Its bound.
        bound: String,
    },
    /// The bound is not in the unit of the figure.
    #[error("`{bound}` in `{given}` is no {what}: {example}")]
    Bound {
        /// What was given.
        given: String,
        /// Its bound.
        bound: String,
        /// What it should be.
        what: &'static str,
        /// How that is written.
        example: &'static str,
    },
    /// Nothing can meet it.
    #[error("nothing can meet `{given}`: write {remedy}")]
    Impossible {
        /// What was given.
        given: String,
        /// What was perhaps meant.
        remedy: &'static str,
    },
}

impl Objective {
    /// The demands, at least one.
    #[must_use]
    pub fn demands(&self) -> &[Threshold] {
        &self.0
    }

    /// How many queries a run must have to tell whether it is met: what the most exacting demand
    /// needs.
    #[must_use]
    pub fn least_queries(&self) -> f64 {
        self.0.iter().map(Threshold::least_queries).fold(0.0, f64::max)
    }

    /// The latency demand with a bound of at least `timeout_ns`, if there is one. It cannot be
    /// trusted: a lost query counts with its time-out, so a server that answers nothing meets it.
    #[must_use]
    pub fn beyond_timeout(&self, timeout_ns: u64) -> Option<Threshold> {
        let is_beyond = |demand: &&Threshold| {
            demand.indicator.is_latency() && demand.bound >= timeout_ns as f64
        };
        self.0.iter().find(is_beyond).copied()
    }
}

/// Queries beyond a bound that a run must allow before it violates: with fewer, one query more or
/// less decides. (Their number scatters by its square root: by a third.)
const BEYOND_BOUND: f64 = 10.0;

impl Threshold {
    /// How many queries a run must have to tell whether the demand is met: so many that ten may be
    /// beyond the bound. `lost<0.1%` needs 10,000, `p99<10ms` 1,000; a mean needs ten.
    #[must_use]
    pub fn least_queries(&self) -> f64 {
        let allowed_share = match self.indicator {
            Indicator::Metric(Metric::LostShare) => self.bound,
            Indicator::Metric(Metric::AnsweredShare) => 1.0 - self.bound,
            other => other.quantile().map_or(1.0, |quantile| 1.0 - quantile),
        };
        // `lost<=0` and `answered>=1` allow none, however many there are.
        if allowed_share > 0.0 { BEYOND_BOUND / allowed_share } else { BEYOND_BOUND }
    }

    /// The figure that is held against the bound: a share in [0, 1], or nanoseconds; `None` if no
    /// query became due, or if it is no indicator of an [`Objective`].
    #[must_use]
    pub fn figure(&self, run: &Observation<'_>) -> Option<f64> {
        run.indicator(self.indicator)
    }

    /// True if a figure meets the demand.
    #[must_use]
    pub fn is_met_by(&self, figure: f64) -> bool {
        match self.relation {
            Relation::Below => figure < self.bound,
            Relation::AtMost => figure <= self.bound,
            Relation::Above => figure > self.bound,
            Relation::AtLeast => figure >= self.bound,
        }
    }
}

impl Relation {
    /// Every sign; the longer of two that begin alike comes first.
    const ALL: [Self; 4] = [Self::AtMost, Self::AtLeast, Self::Below, Self::Above];

    /// How it is written.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::Below => "<",
            Self::AtMost => "<=",
            Self::Above => ">",
            Self::AtLeast => ">=",
        }
    }

    /// The sign of the other direction, strict where this one is.
    fn turned(self) -> Self {
        match self {
            Self::Below => Self::Above,
            Self::AtMost => Self::AtLeast,
            Self::Above => Self::Below,
            Self::AtLeast => Self::AtMost,
        }
    }

    /// True if it holds from above.
    fn is_upper(self) -> bool {
        matches!(self, Self::Below | Self::AtMost)
    }
}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        let given = text.split(',').map(str::trim).filter(|demand| !demand.is_empty());
        let demands = given.map(str::parse).collect::<Result<Vec<Threshold>, _>>()?;
        if let Some(other) = demands.iter().find(|demand| !demand.indicator.is_of_answers()) {
            return Err(ObjectiveError::NotOfAnswers(other.indicator.to_string()));
        }
        if demands.is_empty() { Err(ObjectiveError::Empty) } else { Ok(Self(demands)) }
    }
}

impl FromStr for Threshold {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        let given = || text.to_owned();
        let parts = Relation::ALL
            .into_iter()
            .find_map(|relation| Some((relation, text.split_once(relation.sign())?)));
        let (relation, (figure, bound)) = parts.ok_or_else(|| ObjectiveError::Form(given()))?;
        let (figure, bound) = (figure.trim(), bound.trim());
        let indicator: Indicator = figure.parse()?;
        if relation.is_upper() == indicator.higher_is_better() {
            return Err(ObjectiveError::Direction {
                given: given(),
                figure: figure.to_owned(),
                turned: relation.turned().sign(),
                bound: bound.to_owned(),
            });
        }
        let value = indicator.unit().read(bound).ok_or_else(|| ObjectiveError::Bound {
            given: given(),
            bound: bound.to_owned(),
            what: indicator.unit().noun(),
            example: indicator.unit().example(),
        })?;
        let remedy = match (indicator, relation) {
            (Indicator::Metric(Metric::LostShare), Relation::Below) if value == 0.0 => {
                Some("lost<=0%")
            }
            (Indicator::Metric(Metric::AnsweredShare), Relation::Above) if value == 1.0 => {
                Some("answered>=100%")
            }
            (_, Relation::Below | Relation::AtMost) if indicator.is_latency() && value == 0.0 => {
                Some("a latency above 0")
            }
            _ => None,
        };
        match remedy {
            Some(remedy) => Err(ObjectiveError::Impossible { given: given(), remedy }),
            None => Ok(Self { indicator, relation, bound: value }),
        }
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, demand) in self.0.iter().enumerate() {
            let comma = if place > 0 { ", " } else { "" };
            write!(formatter, "{comma}{demand}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { indicator, relation, bound } = self;
        write!(formatter, "{indicator}{}{}", relation.sign(), indicator.unit().write(*bound))
    }
}

impl TryFrom<String> for Objective {
    type Error = ObjectiveError;

    fn try_from(text: String) -> Result<Self, ObjectiveError> {
        text.parse()
    }
}

impl From<Objective> for String {
    fn from(objective: Objective) -> Self {
        objective.to_string()
    }
}

impl Serialize for Threshold {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
