//! Figures that somebody published of such an experiment, to be held beside one's own.

use dnslab_wire::units::{number, share};
use serde::{Deserialize, Serialize};

use crate::{Key, Kind, Metric, Unit};

/// The keys of a `[[published]]`.
pub static PUBLISHED_KEYS: [Key; 7] = [
    Key::new("variant", "The variant that the figure is of", Kind::FolderName, || None).required(),
    Key::new("figure", "Which figure", Kind::Choice(&Metric::WORDS), || None).required(),
    Key::new(
        "value",
        "What was published, with its unit: `\"142_018\"`, `\"2.2ms\"`, a range `\"60_000..70_000\"`; with `against` a \
         difference, `\"-20%\"` or `\"+2.8us\"`",
        Kind::Text,
        || None,
    )
    .required(),
    Key::new("against", "The variant that a difference is from", Kind::FolderName, || None)
        .absent("the value is the figure itself"),
    Key::new("source", "Who published it, where and when", Kind::Text, || None).required(),
    Key::new("place", "Where it stands there", Kind::Text, || None).absent("nowhere in particular"),
    Key::new("differs", "What was otherwise there than here", Kind::Text, || None)
        .absent("nothing that is known"),
];

/// A figure that was published of such an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Published {
    /// The variant that it is of.
    pub variant: String,
    /// Which figure.
    pub figure: Metric,
    /// What the value is.
    pub kind: PublishedKind,
    /// The least value that was published: in the unit of the figure, or a share (-0.2 = 20 % less).
    pub low: f64,
    /// The largest one; that of `low` where one was published.
    pub high: f64,
    /// The variant that a difference is from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// Who published it, where and when.
    pub source: String,
    /// Where it stands there; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// What was otherwise there than here; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub differs: String,
}

/// What a published value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PublishedKind {
    /// The figure of a variant.
    Figure,
    /// A difference in the unit of the figure.
    Difference,
    /// A relative difference.
    Change,
}

impl PublishedKind {
    /// Reads a value or a range, of a difference or of a figure; `None` if it is none.
    pub(crate) fn read(
        text: &str,
        figure: Metric,
        is_difference: bool,
    ) -> Option<(Self, f64, f64)> {
        let (low, high) = text.split_once("..").unwrap_or((text, text));
        let ((kind, low), (other, high)) =
            (Self::one(low, figure, is_difference)?, Self::one(high, figure, is_difference)?);
        (kind == other && low <= high).then_some((kind, low, high))
    }

    fn one(text: &str, figure: Metric, is_difference: bool) -> Option<(Self, f64)> {
        let text = text.trim();
        if !is_difference {
            return Some((Self::Figure, figure.unit().read(text)?));
        }
        let (sign, size) = match text.strip_prefix('-') {
            Some(size) => (-1.0, size),
            None => (1.0, text.strip_prefix('+').unwrap_or(text)),
        };
        match share::read_percentage(size) {
            Some(size) => Some((Self::Change, sign * size)),
            // A difference of shares is one of points, which is written in percent too.
            None if figure.unit() == Unit::Share => None,
            None => Some((Self::Difference, sign * figure.unit().read(size)?)),
        }
    }
}

impl Published {
    /// The value as it is read.
    fn value(&self) -> String {
        match self.low == self.high {
            true => self.write(self.low),
            false => format!("{}..{}", self.write(self.low), self.write(self.high)),
        }
    }

    fn write(&self, value: f64) -> String {
        let sign = if value < 0.0 { "-" } else { "" };
        match self.kind {
            PublishedKind::Figure => self.figure.unit().write(value),
            PublishedKind::Difference => {
                format!("{sign}{}", self.figure.unit().write(value.abs()))
            }
            PublishedKind::Change => format!("{}%", number::write(value * 100.0)),
        }
    }

    /// The `[[published]]` that is read as this one.
    pub(crate) fn to_toml(&self) -> String {
        let values = [
            Some(self.variant.clone()),
            Some(self.figure.to_string()),
            Some(self.value()),
            self.against.clone(),
            Some(self.source.clone()),
            Some(self.place.clone()).filter(|place| !place.is_empty()),
            Some(self.differs.clone()).filter(|differs| !differs.is_empty()),
        ];
        let line = |(key, value): (&Key, Option<String>)| {
            Some(format!("{} = {}\n", key.path, toml::Value::String(value?)))
        };
        let lines: String = PUBLISHED_KEYS.iter().zip(values).filter_map(line).collect();
        format!("\n[[published]]\n{lines}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_the_unit_of_their_figure() {
        use PublishedKind::{Change, Difference, Figure};
        let check = |text, figure, is_difference, expected| {
            assert_eq!(PublishedKind::read(text, figure, is_difference), expected, "{text}");
        };
        check("142_018", Metric::AnsweredQps, false, Some((Figure, 142_018.0, 142_018.0)));
        check("1.0ms..1.3ms", Metric::LatencyP50, false, Some((Figure, 1e6, 1.3e6)));
        check("-20%", Metric::AnsweredQps, true, Some((Change, -0.2, -0.2)));
        check("+2.8us", Metric::ServerCpuPerQuery, true, Some((Difference, 2_800.0, 2_800.0)));
        check("-10%..-7%", Metric::AnsweredQps, true, Some((Change, -0.1, -0.07)));
        check("-7%..-10%", Metric::AnsweredQps, true, None);
        check("-7%..5", Metric::AnsweredQps, true, None);
        check("2.2", Metric::LatencyP50, false, None);
        check("many", Metric::AnsweredQps, false, None);
    }
}
