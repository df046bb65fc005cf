//! Variants by name, by loop, and in a list.

use std::borrow::{Borrow, Cow};
use std::fmt::Display;

use dnslab_analysis::{NotCompared, VariantSummary};
use dnslab_record::{RunRecord, Session};

use crate::number;

/// Above this share of answers with an error there is a column for it: they are not what the figures are of.
pub(crate) const ERRORS: f64 = 0.001;

/// The records in the order of the variants, and of their repetitions. The order of the runs is random: what is listed
/// by it says nothing, and differs from one session to the next.
pub(crate) fn in_order<'a>(session: &Session, records: &'a [RunRecord]) -> Vec<&'a RunRecord> {
    let place =
        |record: &RunRecord| session.variants.iter().position(|variant| *variant == record.variant);
    let mut ordered: Vec<&RunRecord> = records.iter().collect();
    ordered.sort_by_cached_key(|record| (place(record), record.repetition));
    ordered
}

/// True if its answered rate is a lower bound of what the server answers.
pub(crate) fn is_at_least(variant: &VariantSummary) -> bool {
    variant.not_compared == Some(NotCompared::Generator)
}

/// The variant as it is to be shown: where no run counts, the figures of the invalid ones, under a name that says so.
pub(crate) fn shown(variant: &VariantSummary) -> Cow<'_, VariantSummary> {
    match &variant.of_invalid {
        None => Cow::Borrowed(variant),
        Some(invalid) => {
            let name = format!("{} ({INVALID})", variant.name);
            Cow::Owned(VariantSummary { name, ..(**invalid).clone() })
        }
    }
}

/// What marks figures of runs that do not count.
pub(crate) const INVALID: &str = "INVALID";

/// From this share of the answers on, a response code other than NOERROR is told.
const TOLD: f64 = 0.001;

/// The response codes of the answers with their shares, the most frequent first: `80.0 % NOERROR, 20.0 % NXDOMAIN`.
/// Empty if nearly all were NOERROR.
pub(crate) fn code_shares(variant: &VariantSummary) -> String {
    let all: u64 = variant.rcodes.values().sum();
    let share = |count: &u64| *count as f64 / all.max(1) as f64;
    let mut codes: Vec<(&String, f64)> =
        variant.rcodes.iter().map(|(code, count)| (code, share(count))).collect();
    codes.retain(|(_, share)| *share >= TOLD);
    codes.sort_by(|one, other| other.1.total_cmp(&one.1));
    if codes.iter().all(|(code, _)| *code == "NOERROR") {
        return String::new();
    }
    let texts = codes.iter().map(|(code, share)| format!("{} {code}", number::share(*share)));
    texts.collect::<Vec<_>>().join(", ")
}

/// Names as people list them: `udp, tcp and dot`; of more than eight the first four and how many
/// others: `a, b, c, d and 5 others`.
pub(crate) fn listed<T: Borrow<str> + Display>(names: &[T]) -> String {
    const MAX_COUNT: usize = 8;
    const TOLD: usize = 4;
    if names.len() > MAX_COUNT {
        return format!("{} and {} others", names[..TOLD].join(", "), names.len() - TOLD);
    }
    match names {
        [] => String::new(),
        [one] => one.to_string(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Values by their keys, in the order in which the keys are met.
pub(crate) fn grouped<K: PartialEq, V>(
    pairs: impl IntoIterator<Item = (K, V)>,
) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
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
