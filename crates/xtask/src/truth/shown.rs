//! Shares as cells of a table.

use super::figures::Share;

/// Two cells of a table, for a share of independent facts.
pub(crate) fn shown(share: Share) -> String {
    shown_in(share, share.interval())
}

/// Two cells of a table.
pub(crate) fn shown_in(share: Share, (low, high): (f64, f64)) -> String {
    if share.of == 0 {
        return "- | -".to_owned();
    }
    format!("{} | {} to {}", counts(share), percent(low), percent(high))
}

pub(crate) fn counts(share: Share) -> String {
    if share.of == 0 {
        return "-".to_owned();
    }
    format!("{} of {} ({})", share.part, share.of, percent(share.value()))
}

/// In percent, with one digit after the point below 9.95 %.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    let text = if value.abs() < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") };
    let text = text.strip_suffix(".0").unwrap_or(&text);
    let text = if text == "-0" { "0" } else { text };
    format!("{text} %")
}
