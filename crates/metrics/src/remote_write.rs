//! Requests of Prometheus remote write 1.0 (`WriteRequest` of `remote.proto`), before their compression.

use std::collections::BTreeMap;

use prost::Message as _;

use crate::text::real;
use crate::{Point, Series, Value};

#[derive(Clone, PartialEq, prost::Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, prost::Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

/// A request as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedRequest {
    /// Its octets.
    pub octets: Vec<u8>,
    /// How many samples are in it.
    pub samples: u64,
}

/// A request with all samples of these points, which are in the order of time. `job` is the label that Prometheus gives
/// what it scrapes itself.
#[must_use]
pub fn write_request(points: &[Point], job: &str) -> EncodedRequest {
    let mut all: BTreeMap<Vec<Label>, Vec<Sample>> = BTreeMap::new();
    for point in points {
        for series in point.series.iter() {
            each(series, |name, more, value| {
                let samples = all.entry(labels(series, name, more, job)).or_default();
                samples.push(Sample { value, timestamp: point.at_ms });
            });
        }
    }
    let samples = all.values().map(|samples| samples.len() as u64).sum();
    let timeseries = all.into_iter().map(|(labels, samples)| TimeSeries { labels, samples });
    let octets = WriteRequest { timeseries: timeseries.collect() }.encode_to_vec();
    EncodedRequest { octets, samples }
}

/// Each series of Prometheus that one of ours is, with the bound of a bucket.
fn each(series: &Series, mut take: impl FnMut(String, Option<String>, f64)) {
    let name = series.family.full_name();
    match &series.value {
        Value::Whole(number) => take(name, None, *number as f64),
        Value::Real(number) => take(name, None, *number),
        Value::Histogram(buckets) => {
            for (bound, count) in buckets.cumulative() {
                take(format!("{name}_bucket"), Some(real(bound)), count as f64);
            }
            take(format!("{name}_sum"), None, buckets.sum_seconds());
            take(format!("{name}_count"), None, buckets.count() as f64);
        }
    }
}

/// Sorted by name, as the protocol asks for it. An empty value is no label.
fn labels(series: &Series, name: String, bound: Option<String>, job: &str) -> Vec<Label> {
    let label = |name: &str, value: String| Label { name: name.to_owned(), value };
    let own = series.labels().filter(|(_, value)| !value.is_empty());
    let own = own.map(|(name, value)| label(name, value.to_owned()));
    let bound = bound.map(|value| label("le", value));
    let further = [label("__name__", name), label("job", job.to_owned())];
    let mut all: Vec<Label> = own.chain(bound).chain(further).collect();
    all.sort();
    all
}
