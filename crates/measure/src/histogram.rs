//! Mergeable histograms of durations.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// The largest duration kept exactly, in nanoseconds (100 s); longer ones are recorded as this.
const HIGHEST_NS: u64 = 100_000_000_000;

/// Durations in nanoseconds, kept with three significant digits (relative error below 0.1 %).
///
/// Serialised as the base64 text of HdrHistogram's compressed V2 encoding, which the HdrHistogram
/// libraries of other languages read as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

/// Why a serialised histogram could not be read.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// The text is not base64.
    #[error("histogram is not base64: {0}")]
    Base64(#[from] base64::DecodeError),
    /// The octets are not an HdrHistogram V2 encoding.
    #[error("histogram is not an HdrHistogram V2 encoding: {0}")]
    Encoding(String),
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        let inner = hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, 3);
        Self(inner.expect("the bounds are constants that HdrHistogram accepts"))
    }

    /// Adds one duration in nanoseconds; beyond 100 s it counts as 100 s.
    #[inline]
    pub fn record_ns(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    /// Adds one duration in nanoseconds `count` times; beyond 100 s it counts as 100 s.
    pub fn record_many_ns(&mut self, ns: u64, count: u64) {
        self.0.saturating_record_n(ns, count);
    }

    /// Adds every value of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all histograms have the same bounds");
    }

    /// Forgets every value; the memory stays.
    pub fn clear(&mut self) {
        // It has 27,000 places.
        if !self.is_empty() {
            self.0.reset();
        }
    }

    /// How many durations were recorded.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// True if nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The duration in nanoseconds that the share `quantile` (in [0, 1]) of all values does not
    /// exceed; `None` if nothing was recorded.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        (!self.is_empty()).then(|| self.0.value_at_quantile(quantile))
    }

    /// The arithmetic mean in nanoseconds; `None` if nothing was recorded.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.0.mean())
    }

    /// The largest recorded duration in nanoseconds; `None` if nothing was recorded.
    #[must_use]
    pub fn max_ns(&self) -> Option<u64> {
        (!self.is_empty()).then(|| self.0.max())
    }

    /// The smallest recorded duration in nanoseconds; `None` if nothing was recorded.
    #[must_use]
    pub fn min_ns(&self) -> Option<u64> {
        (!self.is_empty()).then(|| self.0.min())
    }

    /// The share of values (in [0, 1]) that are at most `ns`; 1 if nothing was recorded.
    #[must_use]
    pub fn share_at_most(&self, ns: u64) -> f64 {
        self.0.quantile_below(ns)
    }

    /// The base64 text of the compressed V2 encoding.
    #[must_use]
    pub fn to_base64(&self) -> String {
        let mut octets = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.0, &mut octets)
            .expect("writing to memory does not fail");
        BASE64.encode(octets)
    }

    /// Reads what [`Histogram::to_base64`] wrote.
    ///
    /// # Errors
    /// When the text is not base64 or not an HdrHistogram.
    pub fn from_base64(text: &str) -> Result<Self, HistogramError> {
        let octets = BASE64.decode(text)?;
        let inner: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut octets.as_slice())
            .map_err(|error| HistogramError::Encoding(error.to_string()))?;
        // Read back into our own bounds, so that two histograms always merge.
        let mut own = Self::new();
        own.0.add(&inner).map_err(|error| HistogramError::Encoding(error.to_string()))?;
        Ok(own)
    }
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_base64())
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_base64(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let mut histogram = Histogram::new();
        for ns in [1, 1_000, 25_000_000, 2_000_000_000, u64::MAX] {
            histogram.record_ns(ns);
        }
        let read = Histogram::from_base64(&histogram.to_base64()).unwrap();
        assert_eq!(read, histogram);
        assert_eq!(read.max_ns().unwrap() / 1_000_000_000, 100);
    }

    #[test]
    fn an_empty_histogram_has_no_quantile() {
        assert_eq!(Histogram::new().quantile_ns(0.5), None);
        assert!(Histogram::from_base64("no base64!").is_err());
        assert!(Histogram::from_base64("AAAA").is_err());
    }

    #[test]
    fn merging_is_recording_both() {
        let (mut a, mut b, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
        for ns in 1..1_000 {
            if ns % 3 == 0 {
                a.record_ns(ns * 977)
            } else {
                b.record_ns(ns * 977)
            }
            both.record_ns(ns * 977);
        }
        a.merge(&b);
        assert_eq!(a, both);
    }
}
