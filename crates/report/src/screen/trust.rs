//! How far to trust the figures, in one line.

use dnslab_analysis::{Summary, VariantSummary, latency_floor_of_runs_ns};
use dnslab_record::{BottleneckKind, Metric, RunRecord};

use crate::number;
use crate::variants::{grouped, listed};
use crate::words::bottleneck::bottleneck_name;

/// What bounded the variants, and how much of the machine's time was taken away.
pub(super) fn trust(records: &[RunRecord], summary: &Summary) -> String {
    let mut parts: Vec<String> = Vec::new();
    let bottlenecks = bottlenecks(summary);
    if !bottlenecks.is_empty() {
        parts.push(format!("Bottleneck: {bottlenecks}."));
    }
    parts.extend(of_the_machine(records, summary));
    parts.join(" ")
}

/// How much of the machine's time was taken away, and what dnslab's own work adds to a latency.
pub(super) fn of_the_machine(records: &[RunRecord], summary: &Summary) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let stolen = records.iter().filter_map(RunRecord::stolen_share).reduce(f64::max);
    if let Some(share) = stolen {
        parts.push(format!("CPU steal: {}.", number::share(share)));
    }
    let floors = [(Metric::LatencyP50, "median"), (Metric::LatencyP99, "p99")];
    let additions = floors.into_iter().filter_map(|(metric, name)| {
        Some(format!(
            "{} to a {name}",
            number::duration(latency_floor_ns(metric, records, summary)?)
        ))
    });
    let additions: Vec<String> = additions.collect();
    if !additions.is_empty() {
        parts.push(format!("dnslab itself may add {}.", additions.join(" and ")));
    }
    parts
}

/// By how much dnslab itself may have moved a latency: that of the reference, since where connections come and go
/// queries wait for the server, too. A search has none; there it is over all runs.
fn latency_floor_ns(metric: Metric, records: &[RunRecord], summary: &Summary) -> Option<f64> {
    let reference = summary.variant(&summary.baseline).filter(|variant| variant.valid_runs > 0);
    let own = records.iter().filter(|record| record.imported.is_none());
    match reference {
        Some(variant) if variant.imported.is_some() => None,
        Some(variant) => variant.latency_floors_ns.get(&metric).copied(),
        None => latency_floor_of_runs_ns(own, metric),
    }
}

/// The most frequent bottleneck of each variant, those with the same one together.
fn bottlenecks(summary: &Summary) -> String {
    let counted = summary.variants.iter().filter(|variant| variant.valid_runs > 0);
    let kinds = grouped(counted.clone().filter_map(|variant| {
        let first = variant.bottlenecks.first()?;
        Some((first.kind, variant.name.as_str()))
    }));
    let all = counted.count();
    let is_one_by_one = summary.variants.iter().any(VariantSummary::asks_one_by_one);
    let mut texts: Vec<String> = Vec::new();
    for (kind, names) in kinds {
        let name = match kind {
            BottleneckKind::Rate => "none at the offered rate",
            BottleneckKind::Window if is_one_by_one => "one query at a time",
            BottleneckKind::Unknown if summary.has_imported() => "not known",
            kind => bottleneck_name(kind),
        };
        texts.push(match names.len() == all {
            true => name.to_owned(),
            false => format!("{name} ({})", listed(&names)),
        });
    }
    texts.join(", ")
}
