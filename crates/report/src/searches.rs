//! How many queries a name costs where clients have search lists, in a sentence.

use dnslab_analysis::{Summary, VariantSummary};

use crate::number;

/// Of more variants the table tells.
const MAX_VARIANTS: usize = 8;

/// Queries for each name that was answered, of each type; nothing where no client had asked for a second name.
pub(crate) fn sentence(summary: &Summary) -> Option<String> {
    let counted = summary.variants.iter().filter(|variant| variant.outcomes.answered > 0);
    let counted: Vec<&VariantSummary> = counted.collect();
    if counted.len() > MAX_VARIANTS || counted.iter().all(|variant| variant.searched == 0) {
        return None;
    }
    let costs = counted.iter().map(|variant| {
        let more = variant.searched as f64 / variant.outcomes.answered as f64;
        format!("{} in {}", number::three_digits(1.0 + more), variant.name)
    });
    let costs: Vec<String> = costs.collect();
    Some(format!("Queries for each name and type: {}.", costs.join(", ")))
}
