//! What an operator demands of a server: bounds on lost queries and on latency.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Measured;

/// Demands that all have to be met: `lost<0.1%, p99<10ms`. There is at least one.
///
/// Serialised as its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Objective(Vec<Demand>);

/// One demand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// What is held against the bound.
    pub quantity: Quantity,
    /// On which side of the bound it has to be.
    pub relation: Relation,
    /// The bound: a share in [0, 1], or nanoseconds for a latency.
    pub bound: f64,
}

/// What a demand is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// Share of the due queries that were not answered.
    Lost,
    /// Share of the due queries that were answered.
    Answered,
    /// A percentile of the latency, above 0 and below 100. Lost queries are part of it.
    Percentile(f64),
    /// The mean latency.
    Mean,
    /// The largest latency.
    Max,
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
    #[error(
        "unknown figure `{0}`: it is one of lost, answered, mean, max, or a percentile of the \
         latency such as p50, p99 or p99.9"
    )]
    Figure(String),
    /// The percentile is not between 0 and 100.
    #[error("`{0}` is no percentile: it lies between p0 and p100; the largest latency is max")]
    Percentile(String),
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
    /// The bound is no share.
    #[error("`{bound}` in `{given}` is no share: write it as 0.1% or 0.001")]
    Share {
        /// What was given.
        given: String,
        /// Its bound.
        bound: String,
    },
    /// The bound is no duration.
    #[error("`{bound}` in `{given}` is no duration: write it with its unit, as 500us, 10ms or 2s")]
    Duration {
        /// What was given.
        given: String,
        /// Its bound.
        bound: String,
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
    pub fn demands(&self) -> &[Demand] {
        &self.0
    }

    /// How many queries a run must have to tell whether it is met: what the most exacting demand
    /// needs.
    #[must_use]
    pub fn least_queries(&self) -> f64 {
        self.0.iter().map(Demand::least_queries).fold(0.0, f64::max)
    }

    /// The latency demand with a bound of at least `timeout_ns`, if there is one. It cannot be
    /// trusted: a lost query counts with its time-out, so a server that answers nothing meets it.
    #[must_use]
    pub fn beyond_timeout(&self, timeout_ns: u64) -> Option<Demand> {
        let is_beyond =
            |demand: &&Demand| demand.quantity.is_latency() && demand.bound >= timeout_ns as f64;
        self.0.iter().find(is_beyond).copied()
    }
}

/// Queries beyond a bound that a run must allow before it violates: with fewer, one query more or
/// less decides. (Their number scatters by its square root: by a third.)
const BEYOND_BOUND: f64 = 10.0;

impl Demand {
    /// How many queries a run must have to tell whether the demand is met: so many that ten may be
    /// beyond the bound. `lost<0.1%` needs 10,000, `p99<10ms` 1,000; a mean needs ten.
    #[must_use]
    pub fn least_queries(&self) -> f64 {
        let allowed_share = match self.quantity {
            Quantity::Lost => self.bound,
            Quantity::Answered => 1.0 - self.bound,
            Quantity::Percentile(percentile) => 1.0 - percentile / 100.0,
            Quantity::Mean | Quantity::Max => 1.0,
        };
        // `lost<=0` and `answered>=1` allow none, however many there are.
        if allowed_share > 0.0 { BEYOND_BOUND / allowed_share } else { BEYOND_BOUND }
    }

    /// The figure that is held against the bound: a share in [0, 1], or nanoseconds; `None` if no
    /// query became due.
    #[must_use]
    pub fn figure(&self, measured: &Measured) -> Option<f64> {
        let outcomes = &measured.counters.outcomes;
        let latency = &measured.latency;
        let of_due = |count: u64| (outcomes.due > 0).then(|| count as f64 / outcomes.due as f64);
        match self.quantity {
            Quantity::Lost => of_due(outcomes.lost()),
            Quantity::Answered => of_due(outcomes.answered),
            Quantity::Percentile(percentile) => {
                latency.quantile_ns(percentile / 100.0).map(|ns| ns as f64)
            }
            Quantity::Mean => latency.mean_ns(),
            Quantity::Max => latency.max_ns().map(|ns| ns as f64),
        }
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

impl Quantity {
    /// True for a latency, whose bounds are durations; the others are shares.
    #[must_use]
    pub fn is_latency(self) -> bool {
        !matches!(self, Self::Lost | Self::Answered)
    }

    fn parse(text: &str) -> Result<Self, ObjectiveError> {
        match text {
            "lost" => return Ok(Self::Lost),
            "answered" => return Ok(Self::Answered),
            "mean" => return Ok(Self::Mean),
            "max" => return Ok(Self::Max),
            _ => {}
        }
        let number = text.strip_prefix('p').and_then(|number| number.parse::<f64>().ok());
        match number {
            Some(percentile) if percentile > 0.0 && percentile < 100.0 => {
                Ok(Self::Percentile(percentile))
            }
            Some(_) => Err(ObjectiveError::Percentile(text.to_owned())),
            None => Err(ObjectiveError::Figure(text.to_owned())),
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

    /// The same with the other direction.
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
        let demands = given.map(str::parse).collect::<Result<Vec<Demand>, _>>()?;
        if demands.is_empty() { Err(ObjectiveError::Empty) } else { Ok(Self(demands)) }
    }
}

impl FromStr for Demand {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        let given = || text.to_owned();
        let parts = Relation::ALL
            .into_iter()
            .find_map(|relation| Some((relation, text.split_once(relation.sign())?)));
        let (relation, (figure, bound)) = parts.ok_or_else(|| ObjectiveError::Form(given()))?;
        let (figure, bound) = (figure.trim(), bound.trim());
        let quantity = Quantity::parse(figure)?;
        if relation.is_upper() == (quantity == Quantity::Answered) {
            return Err(ObjectiveError::Direction {
                given: given(),
                figure: figure.to_owned(),
                turned: relation.turned().sign(),
                bound: bound.to_owned(),
            });
        }
        let wrong = |text: &str| (given(), text.to_owned());
        let value = if quantity.is_latency() {
            duration_ns(bound).ok_or_else(|| {
                let (given, bound) = wrong(bound);
                ObjectiveError::Duration { given, bound }
            })?
        } else {
            share(bound).ok_or_else(|| {
                let (given, bound) = wrong(bound);
                ObjectiveError::Share { given, bound }
            })?
        };
        let remedy = match (quantity, relation) {
            (Quantity::Lost, Relation::Below) if value == 0.0 => Some("lost<=0%"),
            (Quantity::Answered, Relation::Above) if value == 1.0 => Some("answered>=100%"),
            (_, Relation::Below | Relation::AtMost) if quantity.is_latency() && value == 0.0 => {
                Some("a latency above 0")
            }
            _ => None,
        };
        match remedy {
            Some(remedy) => Err(ObjectiveError::Impossible { given: given(), remedy }),
            None => Ok(Self { quantity, relation, bound: value }),
        }
    }
}

/// A share in [0, 1], written as `0.1%` or `0.001`.
fn share(text: &str) -> Option<f64> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim_end().parse::<f64>().ok()? / 100.0,
        None => text.parse().ok()?,
    };
    (0.0..=1.0).contains(&share).then_some(share)
}

/// Units of a duration and their lengths in nanoseconds; `s` is last, since others end with it.
const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// A duration of at most an hour with its unit, in nanoseconds.
fn duration_ns(text: &str) -> Option<f64> {
    let (number, length) = UNITS
        .iter()
        .find_map(|(unit, length)| Some((text.strip_suffix(unit)?.trim_end(), length)))?;
    let ns = number.parse::<f64>().ok()? * length;
    (0.0..=3.6e12).contains(&ns).then_some(ns)
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

impl fmt::Display for Demand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { quantity, relation, bound } = self;
        write!(formatter, "{quantity}{}", relation.sign())?;
        if !quantity.is_latency() {
            return write!(formatter, "{}%", plain(bound * 100.0));
        }
        // The largest unit of which there is one at least.
        let unit = UNITS.iter().rev().find(|(_, length)| bound >= length).unwrap_or(&UNITS[0]);
        write!(formatter, "{}{}", plain(bound / unit.1), unit.0)
    }
}

/// A number without the error that its conversion has brought in.
fn plain(number: f64) -> f64 {
    format!("{number:.9e}").parse().unwrap_or(number)
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => formatter.write_str("lost"),
            Self::Answered => formatter.write_str("answered"),
            Self::Percentile(percentile) => write!(formatter, "p{percentile}"),
            Self::Mean => formatter.write_str("mean"),
            Self::Max => formatter.write_str("max"),
        }
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

impl Serialize for Demand {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Demand {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
