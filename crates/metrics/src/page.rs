//! The page of the documents that lists all metrics.

use std::fmt::Write as _;

use crate::{FAMILIES, Kind};

/// The table in `docs/METRICS.md`.
#[must_use]
pub fn page() -> String {
    let mut page =
        "| metric | type | unit | labels | meaning |\n| --- | --- | --- | --- | --- |\n".to_owned();
    for family in FAMILIES {
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Info => "info",
        };
        let quoted = |label: &&str| format!("`{label}`");
        let labels = family.scope.labels().iter().chain(family.labels);
        let labels: Vec<String> = labels.map(quoted).collect();
        let (name, unit, labels) = (family.full_name(), family.unit.name(), labels.join(", "));
        writeln!(page, "| `{name}` | {kind} | {unit} | {labels} | {} |", family.help).ok();
    }
    page
}
