//! Numbers of octets.

use super::number;

/// In octets; the first three are written.
const UNITS: [(&str, u64); 6] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// Reads a number with a unit, `2GiB`, `500 MB`, or without one.
#[must_use]
pub fn read(text: &str) -> Option<f64> {
    let (number, length) = super::split(text, &UNITS).unwrap_or((text, 1));
    Some(number::read(number)? * length as f64)
}

/// The octets in the largest binary unit of which there is at least one: `976.5625KiB`.
#[must_use]
pub fn write(octets: f64) -> String {
    if octets < 1024.0 { number::write(octets) } else { super::in_largest(octets, &UNITS[..3]) }
}

/// As [`write()`], with three significant digits and up to TiB: `976 KiB`.
#[must_use]
pub fn rounded(octets: u64) -> String {
    const UNITS: [&str; 5] = ["octets", "KiB", "MiB", "GiB", "TiB"];
    let (scaled, unit) = number::scaled(octets as f64, 1024.0, 1023.5, &UNITS);
    format!("{} {unit}", number::three_digits(scaled))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn octets_are_read_and_written() {
        for (text, octets, written) in [
            ("2GiB", 2_147_483_648.0, "2GiB"),
            ("500 MiB", 524_288_000.0, "500MiB"),
            ("1MB", 1e6, "976.5625KiB"),
            ("300", 300.0, "300"),
            ("0", 0.0, "0"),
        ] {
            assert_eq!(read(text), Some(octets), "{text}");
            assert_eq!(write(octets), written);
        }
        for bad in ["", "MiB", "1.2.3MiB", "5m", "2 gib"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn memory_is_binary() {
        let check = |octets, text| assert_eq!(rounded(octets), text);
        check(512, "512 octets");
        check(10 << 20, "10.0 MiB");
        check((1 << 30) - 1, "1.00 GiB");
    }

    proptest! {
        /// As long as ten digits are enough.
        #[test]
        fn what_was_written_is_read(octets in 0u64..1 << 33, power in 0u32..3) {
            let octets = (octets >> 10 << 10) as f64 * 1024_f64.powi(power as i32);
            let read = read(&write(octets)).unwrap();
            prop_assert!((read - octets).abs() <= octets * 1e-9, "{} is read as {}", octets, read);
        }
    }
}
