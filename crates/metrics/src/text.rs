//! Expositions: what a scraper reads.

use std::fmt::Write as _;
use std::iter;

use crate::{FAMILIES, Family, Kind, Point, Series, Snapshot, Unit, Value, protobuf};

/// Forms in which metrics are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The text that Prometheus had before, which everything reads.
    Text,
    /// Protocol buffers, the only form with native histograms.
    Protobuf,
}

impl Format {
    /// The form for what a request accepts (RFC 9110, section 12.5.1): that with the highest weight, of several the
    /// first.
    #[must_use]
    pub fn accepted(accept: &str) -> Self {
        let mut best = (0.0, Self::Text);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let format = match parts.next() {
                Some("application/openmetrics-text") => Self::OpenMetrics,
                Some("application/vnd.google.protobuf") if range.contains("MetricFamily") => {
                    Self::Protobuf
                }
                Some("text/plain" | "text/*" | "*/*") => Self::Text,
                _ => continue,
            };
            let weight =
                parts.find_map(|part| part.strip_prefix("q=")?.parse().ok()).unwrap_or(1.0);
            if weight > best.0 {
                best = (weight, format);
            }
        }
        best.1
    }

    /// The media type of what is served.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }
}

impl Snapshot {
    /// The exposition in one of its forms.
    #[must_use]
    pub fn encode(&self, format: Format) -> Vec<u8> {
        if format == Format::Protobuf {
            return protobuf::families(self);
        }
        let mut text = String::new();
        for family in FAMILIES {
            let mut series = self.of(family).peekable();
            if series.peek().is_none() {
                continue;
            }
            head(&mut text, family, format);
            series.for_each(|series| lines(&mut text, series, None));
        }
        if format == Format::OpenMetrics {
            text.push_str("# EOF\n");
        }
        text.into_bytes()
    }
}

/// Points as OpenMetrics with time stamps, which `promtool tsdb create-blocks-from openmetrics` reads: one series after
/// another, each in the order of time.
#[must_use]
pub fn timed_text(points: &[Point]) -> String {
    let mut text = String::new();
    for family in FAMILIES {
        let all =
            points.iter().flat_map(|point| point.series.iter().zip(iter::repeat(point.at_ms)));
        let mut own: Vec<(&Series, i64)> =
            all.filter(|(series, _)| std::ptr::eq(series.family, *family)).collect();
        if own.is_empty() {
            continue;
        }
        head(&mut text, family, Format::OpenMetrics);
        own.sort_by_cached_key(|(series, at_ms)| (labels(series, None), *at_ms));
        own.iter().for_each(|(series, at_ms)| lines(&mut text, series, Some(*at_ms)));
    }
    text.push_str("# EOF\n");
    text
}

/// OpenMetrics names a family without the ending that its type adds; the older text names what is to be queried, and
/// knows no `info`.
fn head(text: &mut String, family: &Family, format: Format) {
    let (name, kind) = match (format, family.kind) {
        (Format::OpenMetrics, kind) => (family.name.to_owned(), kind),
        (_, Kind::Info) => (family.full_name(), Kind::Gauge),
        (_, kind) => (family.full_name(), kind),
    };
    let kind = match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
        Kind::Info => "info",
    };
    writeln!(text, "# HELP {name} {}", family.help).ok();
    writeln!(text, "# TYPE {name} {kind}").ok();
    if format == Format::OpenMetrics && family.unit != Unit::None {
        writeln!(text, "# UNIT {name} {}", family.unit.name()).ok();
    }
}

/// What a series is served as: of a histogram, one line for each bucket, its sum and its count.
fn lines(text: &mut String, series: &Series, at_ms: Option<i64>) {
    let stamp = at_ms.map_or_else(String::new, |at_ms| format!(" {}", at_ms as f64 / 1e3));
    let own = labels(series, None);
    let name = series.family.name;
    match &series.value {
        Value::Whole(number) => {
            writeln!(text, "{}{own} {number}{stamp}", series.family.full_name()).ok();
        }
        Value::Real(number) => {
            writeln!(text, "{}{own} {}{stamp}", series.family.full_name(), real(*number)).ok();
        }
        Value::Histogram(buckets) => {
            for (bound, count) in buckets.cumulative() {
                let labels = labels(series, Some(("le", &real(bound))));
                writeln!(text, "{name}_bucket{labels} {count}{stamp}").ok();
            }
            writeln!(text, "{name}_sum{own} {}{stamp}", real(buckets.sum_seconds())).ok();
            writeln!(text, "{name}_count{own} {}{stamp}", buckets.count()).ok();
        }
    }
}

fn labels(series: &Series, more: Option<(&'static str, &str)>) -> String {
    let all = series.labels().chain(more);
    let all: Vec<String> = all.map(|(name, value)| label(name, value)).collect();
    if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
}

fn label(name: &str, value: &str) -> String {
    let value = value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
    format!("{name}=\"{value}\"")
}

/// A number of OpenMetrics; one without a fraction gets one, as its bounds of buckets want it.
pub(crate) fn real(number: f64) -> String {
    match number {
        _ if number == f64::INFINITY => "+Inf".to_owned(),
        _ if number.fract() == 0.0 => format!("{number:.1}"),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_with_the_highest_weight_is_served() {
        let check =
            |accept: &str, expected| assert_eq!(Format::accepted(accept), expected, "{accept}");
        check("", Format::Text);
        check("*/*", Format::Text);
        check("application/json", Format::Text);
        // Prometheus 2.42, without and with native histograms.
        check(
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
             text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            Format::OpenMetrics,
        );
        check(
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,\
             application/openmetrics-text;version=1.0.0;q=0.8,*/*;q=0.1",
            Format::Protobuf,
        );
        check("text/plain;q=0.2, application/openmetrics-text; q=0.3", Format::OpenMetrics);
    }

    #[test]
    fn numbers_are_those_of_openmetrics() {
        let texts = [real(1.0), real(0.000_01), real(f64::INFINITY), real(1.5)];
        assert_eq!(texts, ["1.0", "0.00001", "+Inf", "1.5"]);
    }
}
