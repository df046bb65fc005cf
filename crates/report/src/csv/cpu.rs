//! Where the CPU time goes: a row for each part of each variant that was sampled.

use dnslab_analysis::{CostSummary, PartCost, VariantCost};

use super::field::push_row;

const HEADER: [&str; 13] = [
    "variant",
    "part",
    "samples",
    "share",
    "ns_per_query",
    "ns_per_query_low",
    "ns_per_query_high",
    "cpu_per_query_ns",
    "sampled_cpu_per_query_ns",
    "answered_qps",
    "sampled_answered_qps",
    "samples_lost",
    "sampling_hz",
];

pub(crate) fn cpu(cost: &CostSummary) -> String {
    let mut text = String::new();
    push_row(&mut text, HEADER.map(str::to_owned));
    for variant in &cost.variants {
        for part in &variant.parts {
            push_row(&mut text, row(variant, part));
        }
    }
    text
}

fn row(variant: &VariantCost, part: &PartCost) -> [String; HEADER.len()] {
    let [without, with] = variant.answered_qps;
    [
        variant.variant.clone(),
        part.part.name().to_owned(),
        part.samples.to_string(),
        part.share.to_string(),
        part.ns.value.to_string(),
        part.ns.low.to_string(),
        part.ns.high.to_string(),
        variant.cpu_per_query_ns.value.to_string(),
        variant.sampled_cpu_per_query_ns.to_string(),
        without.to_string(),
        with.to_string(),
        variant.lost.to_string(),
        variant.rate_hz.to_string(),
    ]
}
