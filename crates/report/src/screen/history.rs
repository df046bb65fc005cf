//! The screen of a metric over many sessions.

use dnslab_analysis::History;

use super::line::{Line, Look, Piece, WIDEST, wrapped};
use super::rows;
use crate::history::{LEGEND, answer, notes, table};

/// So many sessions are shown, the latest; all of them are on the page and in the CSV.
const MAX_ROWS: usize = 24;

/// The screen of a history, at most `width` columns wide.
#[must_use]
pub fn history_screen(history: &History, width: usize) -> Vec<Line> {
    let width = width.clamp(40, WIDEST);
    let mut lines = wrapped(&answer(history), Look::Strong, 0, width);
    let table = table(history);
    let all = table.rows.len();
    let first = all.saturating_sub(MAX_ROWS);
    let look = |text: &str| if text.starts_with('(') { Look::Strong } else { Look::Plain };
    lines.push(Line::new());
    lines.extend(rows::of_text(&table.header, &table.rows[first..], look, width));
    if first > 0 {
        let text =
            format!("  the latest {MAX_ROWS} of {all} sessions; all of them are in the files");
        lines.push(vec![Piece::new(Look::Dim, text)]);
    }
    lines.extend(rows::below(LEGEND, width));
    let notes = notes(history);
    if !notes.is_empty() {
        lines.push(Line::new());
    }
    for note in notes {
        lines.extend(wrapped(&format!("- {note}"), Look::Plain, 2, width));
    }
    lines
}
