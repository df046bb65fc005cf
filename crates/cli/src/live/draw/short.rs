//! Numbers where there is little room.

/// A number with at most three digits before a unit of a thousand or a million: `147k`, `1.5M`.
pub(super) fn short(number: f64) -> String {
    let (scaled, unit) = match number {
        _ if number < 999.5 => (number, ""),
        _ if number < 999_500.0 => (number / 1e3, "k"),
        _ => (number / 1e6, "M"),
    };
    let digits = if scaled < 9.95 && !unit.is_empty() { 1 } else { 0 };
    let text = format!("{scaled:.digits$}");
    format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
}
