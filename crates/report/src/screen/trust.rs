//! How far to trust the figures, in one line.

use dnslab_measure::{LimitKind, RunRecord, Summary};

use crate::doubt::limit_name;
use crate::number;
use crate::variants::listed;

/// What bounded the variants, and how much of the machine's time was taken away.
pub(super) fn trust(records: &[RunRecord], summary: &Summary) -> String {
    let mut parts: Vec<String> = Vec::new();
    let limits = limits(summary);
    if !limits.is_empty() {
        parts.push(format!("Limit: {limits}."));
    }
    let stolen = records.iter().filter_map(RunRecord::stolen_share).reduce(f64::max);
    if let Some(share) = stolen {
        parts.push(format!("CPU steal (by the hypervisor): {}.", number::share(share)));
    }
    let mut floors: Vec<f64> = records.iter().filter_map(RunRecord::latency_floor_ns).collect();
    floors.sort_by(f64::total_cmp);
    if let Some(ns) = floors.get(floors.len() / 2) {
        parts.push(format!("dnslab itself may add {} to a latency.", number::duration(*ns)));
    }
    parts.join(" ")
}

/// The most frequent limit of each variant, those with the same one together.
fn limits(summary: &Summary) -> String {
    let mut kinds: Vec<(LimitKind, Vec<&str>)> = Vec::new();
    let counted = summary.variants.iter().filter(|variant| variant.valid_runs > 0);
    for variant in counted.clone() {
        let Some(limit) = variant.limits.first() else { continue };
        match kinds.iter_mut().find(|(kind, _)| *kind == limit.kind) {
            Some((_, names)) => names.push(&variant.name),
            None => kinds.push((limit.kind, vec![&variant.name])),
        }
    }
    let all = counted.count();
    let told: Vec<String> = kinds
        .iter()
        .map(|(kind, names)| match names.len() == all {
            true => limit_name(*kind).to_owned(),
            false => format!("{} ({})", limit_name(*kind), listed(names)),
        })
        .collect();
    told.join(", ")
}
