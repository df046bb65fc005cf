//! Counts of another host, which may say whatever it likes.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The largest number that may be in counts: sums of 256 such numbers do not overflow. A nanosecond clock reaches it after
/// two years.
const MOST: u64 = 1 << 56;

/// Counts of another host. None of their numbers is so large that sums over all hosts overflow.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Counted<T>(
    /// The counts.
    pub T,
);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Counted<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if !is_bounded(&value) {
            return Err(D::Error::custom("a count is too large to be one"));
        }
        T::deserialize(value).map(Self).map_err(D::Error::custom)
    }
}

fn is_bounded(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_u64().is_none_or(|number| number <= MOST),
        Value::Array(values) => values.iter().all(is_bounded),
        Value::Object(values) => values.values().all(is_bounded),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_no_sum_could_hold_is_refused() {
        type Counts = Counted<BTreeMap<u16, (u64, Option<u64>)>>;
        let read = |text: &str| serde_json::from_str::<Counts>(text);
        assert_eq!(read("{\"7\":[72057594037927936,null]}").unwrap().0[&7], (1 << 56, None));
        let refused = read("{\"7\":[1,72057594037927937]}").unwrap_err().to_string();
        assert!(refused.contains("too large"), "{refused}");
    }
}
