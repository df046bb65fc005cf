//! Variants by name, by loop, and in a list.

use dnslab_measure::{Caveat, LoadMode, Summary, VariantSummary};

pub(crate) fn find<'a>(summary: &'a Summary, name: &str) -> Option<&'a VariantSummary> {
    summary.variants.iter().find(|variant| variant.name == name)
}

/// True if any variant was measured by a schedule that does not wait for the server. Its answered
/// rate is the asked one, or says only that the server fell behind.
pub(crate) fn has_open_loop(summary: &Summary) -> bool {
    summary.variants.iter().any(|variant| matches!(variant.mode, Some(LoadMode::Open { .. })))
}

/// True if a variant asked one query after the other, so that its rate is only its latency again.
pub(crate) fn asks_one_by_one(variant: &VariantSummary) -> bool {
    variant.caveats.iter().any(|of| of.worst == Caveat::ClosedLoop { window: 1 })
}

/// Names as people list them: `udp, tcp and dot`; of more than eight the first four and how many
/// others: `a, b, c, d and 5 others`.
pub(crate) fn listed(names: &[&str]) -> String {
    const MAX_COUNT: usize = 8;
    const TOLD: usize = 4;
    if names.len() > MAX_COUNT {
        return format!("{} and {} others", names[..TOLD].join(", "), names.len() - TOLD);
    }
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed() {
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(listed(&["a", "b"]), "a and b");
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
        assert_eq!(listed(&["a", "b", "c", "d", "e", "f", "g", "h"]), "a, b, c, d, e, f, g and h");
        assert_eq!(
            listed(&["a", "b", "c", "d", "e", "f", "g", "h", "i"]),
            "a, b, c, d and 5 others"
        );
    }
}
