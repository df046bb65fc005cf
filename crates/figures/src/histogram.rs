//! Mergeable histograms of durations.

use std::borrow::Cow;
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// The largest duration kept exactly, in nanoseconds (100 s); longer ones are recorded as this.
const HIGHEST_NS: u64 = 100_000_000_000;

const DIGITS: u8 = 3;

/// Octets of the encoding before compression, at most: each of the 27,648 counts of these bounds takes up to
/// nine. A histogram of anything more is not ours.
const MAX_SIZE: u64 = 256 * 1024;

/// Octets of the base64 text, at most; what cannot be compressed grows a little.
const MAX_TEXT: usize = 400 * 1024;

/// Values in one histogram, at most: sums of as many as there may be in a session stay below 2^63.
const MAX_VALUES: u64 = 1 << 48;

/// What a compressed V2 encoding begins with, before its length.
const COMPRESSED: [u8; 4] = 0x1c84_9314_u32.to_be_bytes();

/// Durations in nanoseconds, kept with three significant digits (relative error below 0.1 %).
///
/// Serialised as the base64 text of HdrHistogram's compressed V2 encoding, which the HdrHistogram
/// libraries of other languages read as it is. One that was read, or holds nothing, takes no more memory than
/// that encoding; one that is recorded into takes 216 KiB.
#[derive(Clone, Debug)]
pub struct Histogram(Form);

/// How many durations lie within bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyBucket {
    /// Shortest duration, nanoseconds.
    pub from_ns: u64,
    /// The end of the bucket, which is no part of it, nanoseconds.
    pub to_ns: u64,
    /// How many.
    pub count: u64,
}

/// How the counts are held.
#[derive(Clone, Debug)]
enum Form {
    Empty,
    /// As they were read: the compressed V2 encoding, which was checked, and how many values it has.
    Packed(Box<[u8]>, u64),
    /// One number for each place.
    Open(Counts),
}

/// The counts of all 27,648 places.
type Counts = hdrhistogram::Histogram<u64>;

/// Why a serialised histogram could not be read.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// The text is not base64.
    #[error("histogram is not base64: {0}")]
    Base64(#[from] base64::DecodeError),
    /// The octets are not an HdrHistogram V2 encoding.
    #[error("histogram is not an HdrHistogram V2 encoding: {0}")]
    Encoding(String),
    /// It is larger than any that dnslab writes, or has other bounds: memory would be taken for what is not
    /// there.
    #[error("histogram is larger than those of dnslab")]
    TooLarge,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram.
    #[must_use]
    pub const fn new() -> Self {
        Self(Form::Empty)
    }

    /// An empty histogram that has its memory already, so that its first value takes no longer than others.
    #[must_use]
    pub fn allocated() -> Self {
        Self(Form::Open(no_counts()))
    }

    #[inline]
    fn open(&mut self) -> &mut Counts {
        if !matches!(self.0, Form::Open(_)) {
            self.unpack();
        }
        match &mut self.0 {
            Form::Open(counts) => counts,
            Form::Empty | Form::Packed(..) => unreachable!("it was unpacked"),
        }
    }

    #[cold]
    fn unpack(&mut self) {
        self.0 = Form::Open(self.counts().map_or_else(no_counts, Cow::into_owned));
    }

    fn counts(&self) -> Option<Cow<'_, Counts>> {
        let counts = match &self.0 {
            Form::Empty => return None,
            Form::Packed(octets, _) => {
                let encoded = inflate(octets).and_then(|encoded| decode(&encoded));
                Cow::Owned(encoded.expect("it was decoded when it was read"))
            }
            Form::Open(counts) => Cow::Borrowed(counts),
        };
        Some(counts).filter(|counts| !counts.is_empty())
    }

    /// The histogram for many questions: one that was read is unpacked for each of them otherwise.
    #[must_use]
    pub fn unpacked(&self) -> Cow<'_, Self> {
        match (&self.0, self.counts()) {
            (Form::Packed(..), Some(counts)) => Cow::Owned(Self(Form::Open(counts.into_owned()))),
            _ => Cow::Borrowed(self),
        }
    }

    /// Adds one duration in nanoseconds; beyond 100 s it counts as 100 s.
    #[inline]
    pub fn record_ns(&mut self, ns: u64) {
        self.open().saturating_record(ns);
    }

    /// Adds one duration in nanoseconds `count` times; beyond 100 s it counts as 100 s.
    pub fn record_many_ns(&mut self, ns: u64, count: u64) {
        self.open().saturating_record_n(ns, count);
    }

    /// Adds every value of `other`.
    pub fn merge(&mut self, other: &Self) {
        if let Some(other) = other.counts() {
            self.open().add(&*other).expect("all histograms have the same bounds");
        }
    }

    /// Forgets every value; the memory stays.
    pub fn clear(&mut self) {
        match &mut self.0 {
            // It has 27,000 places.
            Form::Open(counts) if !counts.is_empty() => counts.reset(),
            Form::Open(_) => {}
            Form::Empty | Form::Packed(..) => self.0 = Form::Empty,
        }
    }

    /// Calls `take` with each duration that was recorded, nanoseconds, from the shortest, and how often it was.
    /// Durations that cannot be told apart are one, by the largest that it may be.
    pub fn for_each(&self, mut take: impl FnMut(u64, u64)) {
        if let Some(counts) = self.counts() {
            for value in counts.iter_recorded() {
                take(value.value_iterated_to(), value.count_since_last_iteration());
            }
        }
    }

    /// How many durations were recorded.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.0 {
            Form::Empty => 0,
            Form::Packed(_, length) => *length,
            Form::Open(counts) => counts.len(),
        }
    }

    /// True if nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The duration in nanoseconds that the share `quantile` (in [0, 1]) of all values does not
    /// exceed; `None` if nothing was recorded.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        self.counts().map(|counts| counts.value_at_quantile(quantile))
    }

    /// The arithmetic mean in nanoseconds; `None` if nothing was recorded.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        self.counts().map(|counts| counts.mean())
    }

    /// The largest recorded duration in nanoseconds; `None` if nothing was recorded.
    #[must_use]
    pub fn max_ns(&self) -> Option<u64> {
        self.counts().map(|counts| counts.max())
    }

    /// The smallest recorded duration in nanoseconds; `None` if nothing was recorded.
    #[must_use]
    pub fn min_ns(&self) -> Option<u64> {
        self.counts().map(|counts| counts.min())
    }

    /// How many values lie in each part of the axis that these bounds cut it into, in order: those up to the
    /// first bound, those above it and up to the second, and so on, last those above all of them. The bounds
    /// ascend and are in nanoseconds. A value is as exact as the histogram holds it.
    #[must_use]
    pub fn counts_between(&self, bounds_ns: &[u64]) -> Vec<u64> {
        let mut counts = vec![0; bounds_ns.len() + 1];
        let mut place = 0;
        self.for_each(|ns, count| {
            while bounds_ns.get(place).is_some_and(|bound| *bound < ns) {
                place += 1;
            }
            counts[place] += count;
        });
        counts
    }

    /// The standard deviation in nanoseconds; `None` if nothing was recorded.
    #[must_use]
    pub fn stddev_ns(&self) -> Option<f64> {
        self.counts().map(|counts| counts.stdev())
    }

    /// How many durations are in each place that has any, in their order.
    #[must_use]
    pub fn buckets(&self) -> Vec<LatencyBucket> {
        let Some(counts) = self.counts() else { return Vec::new() };
        let buckets = counts.iter_recorded().map(|step| LatencyBucket {
            from_ns: counts.lowest_equivalent(step.value_iterated_to()),
            to_ns: counts.highest_equivalent(step.value_iterated_to()) + 1,
            count: step.count_at_value(),
        });
        buckets.collect()
    }

    /// The share of values (in [0, 1]) that are at most `ns`; 1 if nothing was recorded.
    #[must_use]
    pub fn share_at_most(&self, ns: u64) -> f64 {
        self.counts().map_or(1.0, |counts| counts.quantile_below(ns))
    }

    /// The base64 text of the compressed V2 encoding.
    #[must_use]
    pub fn to_base64(&self) -> String {
        match &self.0 {
            Form::Empty => base64(&no_counts()),
            Form::Packed(octets, _) => BASE64.encode(octets),
            Form::Open(counts) => base64(counts),
        }
    }

    /// Reads what [`Histogram::to_base64`] wrote.
    ///
    /// # Errors
    /// When the text is not base64 or not an HdrHistogram.
    pub fn from_base64(text: &str) -> Result<Self, HistogramError> {
        if text.len() > MAX_TEXT {
            return Err(HistogramError::TooLarge);
        }
        let octets = BASE64.decode(text)?;
        let encoded = inflate(&octets)?;
        check_counts(payload(&encoded)?)?;
        Ok(Self(match decode(&encoded)?.len() {
            0 => Form::Empty,
            length => Form::Packed(octets.into(), length),
        }))
    }
}

fn base64(counts: &Counts) -> String {
    let mut octets = Vec::new();
    V2DeflateSerializer::new()
        .serialize(counts, &mut octets)
        .expect("writing to memory does not fail");
    BASE64.encode(octets)
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.counts() == other.counts()
    }
}

fn no_counts() -> Counts {
    let counts = Counts::new_with_bounds(1, HIGHEST_NS, DIGITS);
    counts.expect("the bounds are constants that HdrHistogram accepts")
}

/// The counts out of a V2 encoding that was checked. Their bounds are ours, so any two merge.
fn decode(mut encoded: &[u8]) -> Result<Counts, HistogramError> {
    Deserializer::new()
        .deserialize(&mut encoded)
        .map_err(|error| HistogramError::Encoding(error.to_string()))
}

/// The V2 encoding out of its compressed form.
fn inflate(octets: &[u8]) -> Result<Vec<u8>, HistogramError> {
    let encoding = |error: &str| HistogramError::Encoding(error.to_owned());
    let compressed =
        octets.strip_prefix(&COMPRESSED).ok_or_else(|| encoding("it is not compressed"))?;
    let compressed = compressed.get(4..).ok_or_else(|| encoding("it ends early"))?;
    let mut encoded = Vec::new();
    let read = ZlibDecoder::new(compressed).take(MAX_SIZE + 1).read_to_end(&mut encoded);
    read.map_err(|error| encoding(&error.to_string()))?;
    if encoded.len() as u64 > MAX_SIZE {
        return Err(HistogramError::TooLarge);
    }
    Ok(encoded)
}

/// What follows the head of a V2 encoding (40 octets), after a check of what that head says, for which the
/// decoder takes memory: the length of what follows, the digits, and the lowest and highest value.
fn payload(encoded: &[u8]) -> Result<&[u8], HistogramError> {
    let early = || HistogramError::Encoding("it ends early".to_owned());
    let number = |from: usize| {
        let octets = encoded.get(from..from + 4).and_then(|octets| octets.try_into().ok());
        octets.map(u32::from_be_bytes).map(u64::from).ok_or_else(early)
    };
    let long = |from: usize| Ok::<_, HistogramError>(number(from)? << 32 | number(from + 4)?);
    let rest = encoded.len().checked_sub(40).ok_or_else(early)?;
    let ours = (number(12)?, long(16)?, long(24)?) == (u64::from(DIGITS), 1, HIGHEST_NS);
    let length = usize::try_from(number(4)?).unwrap_or(usize::MAX);
    match ours && length <= rest {
        true => Ok(&encoded[40..40 + length]),
        false => Err(HistogramError::TooLarge),
    }
}

/// Checks the counts of a payload, which the decoder negates and adds up: each is a zigzag LEB128 number of at
/// most nine octets, and one below zero is that many empty places.
fn check_counts(payload: &[u8]) -> Result<(), HistogramError> {
    let (mut total, mut octets) = (0_u64, payload.iter());
    while let Some(first) = octets.next() {
        let (mut number, mut octet, mut shift) = (u64::from(first & 0x7f), *first, 7);
        while octet & 0x80 != 0 && shift < 63 {
            octet = match octets.next() {
                Some(next) => *next,
                None => return Err(HistogramError::Encoding("it ends early".to_owned())),
            };
            // The ninth octet has no mark that another one follows.
            let bits = if shift == 56 { octet } else { octet & 0x7f };
            number |= u64::from(bits) << shift;
            shift += 7;
        }
        let count = (number >> 1) as i64 ^ -((number & 1) as i64);
        if count.unsigned_abs() > MAX_VALUES {
            return Err(HistogramError::TooLarge);
        }
        total = total.saturating_add(count.max(0) as u64);
    }
    if total > MAX_VALUES { Err(HistogramError::TooLarge) } else { Ok(()) }
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_base64())
    }
}

impl schemars::JsonSchema for Histogram {
    fn schema_name() -> Cow<'static, str> {
        "Histogram".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Durations in nanoseconds: HdrHistogram's V2 encoding, compressed",
            "type": "string",
            "contentEncoding": "base64",
        })
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
    fn bounds_cut_the_axis() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.counts_between(&[10]), [0, 0]);
        for ns in [1, 10, 11, 100, 100, 101, 5_000_000] {
            histogram.record_ns(ns);
        }
        assert_eq!(histogram.counts_between(&[10, 50, 100]), [2, 1, 2, 2]);
        assert_eq!(histogram.counts_between(&[]), [7]);
    }

    #[test]
    fn an_empty_histogram_has_no_quantile() {
        assert_eq!(Histogram::new().quantile_ns(0.5), None);
        assert!(Histogram::from_base64("no base64!").is_err());
        assert!(Histogram::from_base64("AAAA").is_err());
    }

    fn compressed(digits: u32, highest_ns: u64, length: u32, payload: &[u8]) -> String {
        let mut encoded = 0x1c84_9313_u32.to_be_bytes().to_vec();
        for number in [length, 0, digits] {
            encoded.extend(number.to_be_bytes());
        }
        encoded.extend(1_u64.to_be_bytes());
        encoded.extend(highest_ns.to_be_bytes());
        encoded.extend(1_f64.to_be_bytes());
        encoded.extend(payload);
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut zlib, &encoded).unwrap();
        let packed = zlib.finish().unwrap();
        let mut octets = COMPRESSED.to_vec();
        octets.extend((packed.len() as u32).to_be_bytes());
        octets.extend(packed);
        BASE64.encode(octets)
    }

    #[test]
    fn no_memory_is_taken_for_what_is_not_there() {
        let read = |text: String| Histogram::from_base64(&text).map_err(|error| error.to_string());
        assert_eq!(read(compressed(3, HIGHEST_NS, 1, &[0])).unwrap(), Histogram::new());
        let too_large = Err("histogram is larger than those of dnslab".to_owned());
        // Four gigabytes of counts; as much of payload; as much after decompression.
        assert_eq!(read(compressed(5, u64::MAX / 2, 1, &[0])), too_large);
        assert_eq!(read(compressed(3, HIGHEST_NS, u32::MAX, &[0])), too_large);
        let bomb = compressed(3, HIGHEST_NS, 1, &vec![0; 50_000_000]);
        assert!(bomb.len() < 100_000);
        assert_eq!(read(bomb), too_large);
        assert_eq!(read("A".repeat(MAX_TEXT + 1)), too_large);
        // Counts that nobody can add up: the lowest number, and the highest one twice.
        let lowest = [0xff; 9];
        let highest = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        for counts in [lowest.to_vec(), highest.repeat(2)] {
            let length = counts.len() as u32;
            assert_eq!(read(compressed(3, HIGHEST_NS, length, &counts)), too_large);
        }
        assert!(read(compressed(3, HIGHEST_NS, 1, &[0x80])).is_err());
        for length in 0..40 {
            let octets = BASE64.decode(compressed(3, HIGHEST_NS, 1, &[0])).unwrap();
            assert!(Histogram::from_base64(&BASE64.encode(&octets[..length])).is_err());
        }
    }

    #[test]
    fn buckets_hold_what_was_recorded() {
        let mut histogram = Histogram::new();
        histogram.record_many_ns(5, 3);
        histogram.record_ns(1_000_000);
        let [first, second] = histogram.buckets()[..] else { panic!("two places") };
        assert_eq!(first, LatencyBucket { from_ns: 5, to_ns: 6, count: 3 });
        assert!((second.from_ns..second.to_ns).contains(&1_000_000) && second.count == 1);
        assert!(second.to_ns - second.from_ns < 1_000);
        assert_eq!(Histogram::new().buckets(), []);
        assert!(histogram.stddev_ns().is_some_and(|ns| (433_000.0..434_000.0).contains(&ns)));
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
