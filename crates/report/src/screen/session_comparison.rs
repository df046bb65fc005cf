//! The screen of two sessions against each other.

use dnslab_analysis::{Ruling, SessionComparison};

use super::line::{Line, Look, Piece, WIDEST, wrapped};
use super::rows;
use crate::session_comparison::{LEGEND, limits_table};
use crate::words::session_comparison as words;

/// More rows than these are not shown; those that are not within their limit come first.
const MAX_ROWS: usize = 16;

/// The screen of a comparison, at most `width` columns wide.
#[must_use]
pub fn session_comparison_screen(comparison: &SessionComparison, width: usize) -> Vec<Line> {
    let width = width.clamp(40, WIDEST);
    let answer = words::answer(comparison);
    let mut lines = wrapped(&words::overall(comparison), Look::Strong, 0, width);
    lines.extend(wrapped(&answer, Look::Strong, 0, width));
    lines.extend(wrapped(&words::conditions(comparison), Look::Dim, 0, width));
    let table = limits_table(comparison);
    let all = table.rows.len();
    if all > 0 {
        let heading = table.header.iter().map(|text| Piece::new(Look::Dim, text.clone()));
        let mut shown: Vec<Vec<Piece>> = vec![heading.collect()];
        let mut body = table.rows;
        if all > MAX_ROWS {
            let within = words::word_of(Ruling::Pass);
            body.sort_by_key(|row| row.last().is_some_and(|result| result == within));
        }
        shown.extend(body.into_iter().take(MAX_ROWS).map(styled));
        lines.push(Line::new());
        lines.extend(rows::laid_out(&rows::fitting(shown, width)));
        if all > MAX_ROWS {
            let text = format!("  {MAX_ROWS} of {all} rows; all of them are in --markdown FILE");
            lines.push(vec![Piece::new(Look::Dim, text)]);
        }
        let legend = wrapped(LEGEND, Look::Dim, 0, width - 2);
        let indent = || vec![Piece::new(Look::Plain, "  ")];
        lines.extend(legend.into_iter().map(|line| [indent(), line].concat()));
    }
    let notes = words::notes(comparison);
    if !notes.is_empty() {
        lines.push(Line::new());
    }
    for note in notes {
        lines.extend(wrapped(&format!("- {note}"), Look::Plain, 2, width));
    }
    lines
}

/// What is worse stands out, and what is within its limit steps back.
fn styled(row: Vec<String>) -> Vec<Piece> {
    let result = row.last().cloned().unwrap_or_default();
    let look = match result {
        result if result == words::word_of(Ruling::Fail) => Look::Strong,
        result if result == words::word_of(Ruling::Pass) => Look::Dim,
        _ => Look::Plain,
    };
    let last = row.len() - 1;
    let piece = |(place, text)| Piece::new(if place == last { look } else { Look::Plain }, text);
    row.into_iter().enumerate().map(piece).collect()
}
