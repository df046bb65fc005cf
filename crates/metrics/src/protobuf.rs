//! The exposition in protocol buffers (`metrics.proto` of Prometheus' client_model): messages with their length before
//! them. Only this form has native histograms.

use std::collections::BTreeMap;

use prost::Message;

use crate::buckets::SCHEMA;
use crate::{Buckets, FAMILIES, Family, Kind, Series, Snapshot, Value};

#[derive(Clone, PartialEq, Message)]
struct MetricFamily {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    help: String,
    /// 0 counter, 1 gauge, 4 histogram. The message is of an older syntax: a type that is 0 is written too.
    #[prost(int32, optional, tag = "3")]
    kind: Option<i32>,
    #[prost(message, repeated, tag = "4")]
    metric: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(message, repeated, tag = "1")]
    label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    counter: Option<Number>,
    #[prost(message, optional, tag = "7")]
    histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
struct LabelPair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Number {
    #[prost(double, optional, tag = "1")]
    value: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
struct Histogram {
    #[prost(uint64, optional, tag = "1")]
    sample_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    sample_sum: Option<f64>,
    #[prost(message, repeated, tag = "3")]
    bucket: Vec<Bucket>,
    #[prost(sint32, optional, tag = "5")]
    schema: Option<i32>,
    #[prost(double, optional, tag = "6")]
    zero_threshold: Option<f64>,
    #[prost(uint64, optional, tag = "7")]
    zero_count: Option<u64>,
    #[prost(message, repeated, tag = "12")]
    positive_span: Vec<Span>,
    #[prost(sint64, repeated, tag = "13")]
    positive_delta: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Bucket {
    #[prost(uint64, optional, tag = "1")]
    cumulative_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    upper_bound: Option<f64>,
}

/// Neighbouring native buckets.
#[derive(Clone, PartialEq, Message)]
struct Span {
    /// Empty buckets since the span before; of the first span, the index of its first bucket.
    #[prost(sint32, optional, tag = "1")]
    offset: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    length: Option<u32>,
}

/// The whole exposition.
pub(crate) fn families(snapshot: &Snapshot) -> Vec<u8> {
    let mut octets = Vec::new();
    for family in FAMILIES {
        let metric: Vec<Metric> = snapshot.of(family).map(metric).collect();
        if !metric.is_empty() {
            let family = MetricFamily { metric, ..head(family) };
            let written = family.encode_length_delimited(&mut octets);
            written.expect("a vector takes as much as there is");
        }
    }
    octets
}

fn head(family: &Family) -> MetricFamily {
    let kind = match family.kind {
        Kind::Counter => 0,
        Kind::Gauge | Kind::Info => 1,
        Kind::Histogram => 4,
    };
    let (name, help) = (family.full_name(), family.help.to_owned());
    MetricFamily { name, help, kind: Some(kind), metric: Vec::new() }
}

fn metric(series: &Series) -> Metric {
    let labels = series
        .labels()
        .map(|(name, value)| LabelPair { name: name.to_owned(), value: value.to_owned() });
    let mut metric = Metric { label: labels.collect(), ..Metric::default() };
    let number = match &series.value {
        Value::Whole(number) => *number as f64,
        Value::Real(number) => *number,
        Value::Histogram(buckets) => {
            metric.histogram = Some(histogram(buckets));
            return metric;
        }
    };
    let number = Some(Number { value: Some(number) });
    match series.family.kind {
        Kind::Counter => metric.counter = number,
        _ => metric.gauge = number,
    }
    metric
}

fn histogram(buckets: &Buckets) -> Histogram {
    let bucket =
        |(bound, count)| Bucket { cumulative_count: Some(count), upper_bound: Some(bound) };
    let (positive_span, positive_delta) = spans(&buckets.native);
    Histogram {
        sample_count: Some(buckets.count()),
        sample_sum: Some(buckets.sum_seconds()),
        bucket: buckets.cumulative().map(bucket).collect(),
        schema: Some(SCHEMA),
        // No duration is 0: the clock has nanoseconds. The threshold says that the histogram is a native one, also
        // while it is empty.
        zero_threshold: Some(f64::from(2.0_f32.powi(-128))),
        zero_count: Some(0),
        positive_span,
        positive_delta,
    }
}

/// Native buckets as spans of neighbours, and each count as its difference from the one before.
fn spans(native: &BTreeMap<i32, u64>) -> (Vec<Span>, Vec<i64>) {
    let (mut spans, mut deltas) = (Vec::<Span>::new(), Vec::new());
    let (mut next, mut before) = (0, 0);
    for (index, count) in native {
        match spans.last_mut() {
            Some(Span { length: Some(length), .. }) if *index == next => *length += 1,
            _ => spans.push(Span { offset: Some(index - next), length: Some(1) }),
        }
        next = index + 1;
        deltas.push(*count as i64 - before);
        before = *count as i64;
    }
    (spans, deltas)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_span() {
        let native = BTreeMap::from([(-3, 5), (-2, 7), (4, 1)]);
        let (spans, deltas) = spans(&native);
        let spans: Vec<_> = spans.iter().map(|span| (span.offset(), span.length())).collect();
        assert_eq!((spans, deltas), (vec![(-3, 2), (5, 1)], vec![5, 2, -6]));
    }
}
