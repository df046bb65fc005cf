//! The screen of several sessions of one experiment.

use dnslab_analysis::Pooled;

use super::line::{Line, Look, WIDEST, wrapped};
use super::rows;
use crate::pooled::{answer, answering_table, beside, notes};

/// The screen of sessions that are pooled, at most `width` columns wide.
#[must_use]
pub fn pooled_screen(pooled: &Pooled, width: usize) -> Vec<Line> {
    let width = width.clamp(40, WIDEST);
    let mut lines = wrapped(&answer(pooled), Look::Strong, 0, width);
    for table in [answering_table(pooled), beside(pooled)] {
        if !table.rows.is_empty() {
            lines.push(Line::new());
            lines.extend(rows::of_text(&table.header, &table.rows, |_| Look::Plain, width));
            lines.extend(rows::below(&table.legend, width));
        }
    }
    lines.push(Line::new());
    for note in notes(pooled) {
        lines.extend(wrapped(&format!("- {note}"), Look::Plain, 2, width));
    }
    lines
}
