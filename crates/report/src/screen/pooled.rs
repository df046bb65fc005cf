//! The screen of several sessions of one experiment.

use dnslab_analysis::Pooled;

use super::line::{Line, Look, Piece, WIDEST, wrapped};
use super::rows;
use crate::pooled::{answer, answering_table, beside, notes};
use crate::table::Table;

/// The screen of sessions that are pooled, at most `width` columns wide.
#[must_use]
pub fn pooled_screen(pooled: &Pooled, width: usize) -> Vec<Line> {
    let width = width.clamp(40, WIDEST);
    let mut lines = wrapped(&answer(pooled), Look::Strong, 0, width);
    for table in [answering_table(pooled), beside(pooled)] {
        if !table.rows.is_empty() {
            lines.push(Line::new());
            lines.extend(laid_out(&table, width));
        }
    }
    lines.push(Line::new());
    for note in notes(pooled) {
        lines.extend(wrapped(&format!("- {note}"), Look::Plain, 2, width));
    }
    lines
}

/// A table with its legend.
pub(super) fn laid_out(table: &Table, width: usize) -> Vec<Line> {
    let heading = table.header.iter().map(|text| Piece::new(Look::Dim, text.clone()));
    let mut shown: Vec<Vec<Piece>> = vec![heading.collect()];
    let rows = table.rows.iter();
    shown.extend(rows.map(|row| {
        row.iter().map(|text| Piece::new(Look::Plain, text.clone())).collect::<Vec<_>>()
    }));
    let mut lines = rows::laid_out(&rows::fitting(shown, width));
    let indent = || vec![Piece::new(Look::Plain, "  ")];
    let legend = wrapped(&table.legend, Look::Dim, 0, width - 2).into_iter();
    lines.extend(legend.map(|line| [indent(), line].concat()));
    lines
}
