//! What the operator's work during a load cost its clients, in a sentence.

use dnslab_analysis::{Summary, VariantSummary};

use crate::number;
use crate::variants::listed;

/// Of more variants the time windows tell.
const MAX_VARIANTS: usize = 6;

/// How long what was done went on, and what was lost meanwhile; nothing if nothing was done.
pub(crate) fn sentence(summary: &Summary) -> Option<String> {
    let counted = summary.variants.iter().filter(|variant| variant.valid_runs > 0);
    let (done, alone): (Vec<&VariantSummary>, Vec<&VariantSummary>) =
        counted.partition(|variant| variant.event.is_some());
    if done.is_empty() || done.len() > MAX_VARIANTS {
        return None;
    }
    let mut clauses: Vec<String> = done.iter().copied().filter_map(clause).collect();
    if let Some(first) = clauses.first_mut() {
        *first = format!("The work in {first}");
    }
    let without: Vec<String> = alone
        .iter()
        .filter(|variant| variant.outcomes.lost() == 0)
        .map(|variant| variant.name.clone())
        .collect();
    if !without.is_empty() {
        let verb = if without.len() == 1 { "loses" } else { "lose" };
        clauses.push(format!("{} {verb} none", listed(&without)));
    }
    Some(format!("{}.", clauses.join("; ")))
}

fn clause(variant: &VariantSummary) -> Option<String> {
    let event = variant.event.as_ref()?;
    let length = number::duration(event.length_ns);
    let name = &variant.name;
    Some(match event.lost > 0.0 {
        false => format!("{name} takes {length} and loses no query"),
        true => format!(
            "{name} takes {length} and loses the queries of {} ({} in each run)",
            number::duration(event.lost_ns),
            number::three_digits(event.lost)
        ),
    })
}
