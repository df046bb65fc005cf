//! What a record does not write.

/// Of a count that older records do not have.
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}
