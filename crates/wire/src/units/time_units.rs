//! The units of time.

/// In nanoseconds, shortest first. `s` comes after the others that end with it.
pub(super) const UNITS: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Units up to a second.
pub(super) const TO_SECONDS: usize = 4;

/// By what to divide a number of this unit, and the unit that it then has: rounding may have brought it to one of the
/// next unit.
pub(super) fn carried(number: f64, unit: &str) -> (f64, &str) {
    let next = UNITS[..TO_SECONDS].windows(2).find(|pair| pair[0].0 == unit);
    match next {
        Some(pair) if number.abs() >= 1_000.0 => (1_000.0, pair[1].0),
        _ => (1.0, unit),
    }
}
