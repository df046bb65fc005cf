//! Series: a metric, the values of its labels, and what it says.

use std::sync::Arc;

use crate::{Buckets, Family};

/// What a series says.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number of things.
    Whole(u64),
    /// Seconds, shares, rates.
    Real(f64),
    /// Durations.
    Histogram(Arc<Buckets>),
}

/// One series.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its metric.
    pub family: &'static Family,
    /// Values of the labels of [`Family::scope`], in their order.
    pub(crate) of: Arc<[String]>,
    /// Values of its own labels, in their order.
    pub(crate) own: Vec<String>,
    /// What it says.
    pub value: Value,
}

impl Series {
    /// Names and values of its labels.
    pub fn labels(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let names = self.family.scope.labels().iter().chain(self.family.labels);
        names.copied().zip(self.of.iter().chain(&self.own).map(String::as_str))
    }
}

/// All series at some instant.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub(crate) parts: Vec<Arc<Vec<Series>>>,
}

impl Snapshot {
    /// The series of one metric.
    pub(crate) fn of<'a>(&'a self, family: &'static Family) -> impl Iterator<Item = &'a Series> {
        let all = self.parts.iter().flat_map(|part| part.iter());
        all.filter(move |series| std::ptr::eq(series.family, family))
    }
}

/// Series at an instant.
#[derive(Clone, Debug)]
pub struct Point {
    /// Milliseconds since 1970 in UTC.
    pub at_ms: i64,
    /// What they say then.
    pub series: Arc<Vec<Series>>,
}
