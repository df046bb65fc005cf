//! How values become fields, and fields a row.

use std::collections::BTreeMap;

use dnslab_figures::Histogram;
use dnslab_record::{RunStatus, visible_lines};

use crate::words::invalid::invalid_text;

/// Counts by response code: `NOERROR=12 NXDOMAIN=3`.
pub(super) fn rcodes(counts: &BTreeMap<String, u64>) -> String {
    let pairs: Vec<String> =
        counts.iter().map(|(rcode, count)| format!("{rcode}={count}")).collect();
    pairs.join(" ")
}

pub(super) fn histogram_fields(name: &str, histogram: Option<&Histogram>) -> Vec<(String, String)> {
    let histogram = histogram.map(Histogram::unpacked);
    let histogram = histogram.as_deref();
    let quantile = |share| whole(histogram.and_then(|all| all.quantile_ns(share)));
    [
        ("mean", number(histogram.and_then(Histogram::mean_ns))),
        ("p50", quantile(0.5)),
        ("p90", quantile(0.9)),
        ("p95", quantile(0.95)),
        ("p99", quantile(0.99)),
        ("p999", quantile(0.999)),
        ("max", whole(histogram.and_then(Histogram::max_ns))),
    ]
    .into_iter()
    .map(|(figure, value)| (format!("{name}_{figure}_ns"), value))
    .collect()
}

pub(crate) fn status(status: &RunStatus) -> (&'static str, String) {
    match status {
        RunStatus::Valid => ("valid", String::new()),
        RunStatus::Invalid { reason } => ("invalid", invalid_text(reason)),
        RunStatus::Failed { reason, .. } => ("failed", reason.clone()),
    }
}

pub(super) fn text<T>(value: Option<&T>, write: impl Fn(&T) -> String) -> String {
    value.map_or_else(String::new, write)
}

/// A number with all the digits that it needs; empty if missing or unbounded.
pub(super) fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string())
}

pub(super) fn whole(value: Option<u64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

pub(super) fn seconds(ns: u64) -> String {
    (ns as f64 / 1e9).to_string()
}

/// Adds one row; fields with a comma, a quotation mark or a line break are quoted. Characters that act on a
/// terminal are shown instead.
pub(crate) fn push_row(text: &mut String, fields: impl IntoIterator<Item = String>) {
    for (place, field) in fields.into_iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        let shown = visible_lines(&field);
        let mark = if is_formula(&shown) { "'" } else { "" };
        if shown.contains([',', '"', '\n']) {
            text.push('"');
            text.push_str(mark);
            text.push_str(&shown.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(mark);
            text.push_str(&shown);
        }
    }
    text.push('\n');
}

/// True for text that a spreadsheet would calculate. What begins like a formula and is a number is one.
fn is_formula(field: &str) -> bool {
    field.starts_with(['=', '+', '-', '@', '\t', '\n']) && field.parse::<f64>().is_err()
}
