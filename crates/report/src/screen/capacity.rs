//! The screen of a search for the capacity: the answer, and the rates or windows around it.

use dnslab_analysis::{Answer, Summary, answer};
use dnslab_record::{Capacity, RunRecord, Session, tried};

use super::line::{Line, Look, MAX_LINES, Piece, Room, Terminal, WIDEST, push_notes, wrapped};
use super::{conditions, notes, rows, trust};
use crate::capacity::capacity_table;
use crate::words::capacity::capacity_answer;

/// So many rates are shown, those next to the answer; all of them are on the page.
const MAX_ROWS: usize = 8;

/// The screen of a search, at most `width` columns wide; `following` lines will be printed after it.
#[must_use]
pub fn capacity_screen(
    session: &Session,
    records: &[RunRecord],
    capacity: &Capacity,
    terminal: Terminal,
) -> Vec<Line> {
    let width = terminal.width.clamp(40, WIDEST);
    let summary = Summary::of(session, records);
    let mut lines = wrapped(&capacity_answer(capacity).to_string(), Look::Strong, 0, width);
    lines.extend(wrapped(&conditions::of_search(records), Look::Dim, 0, width));
    lines.push(Line::new());
    let table = capacity_table(capacity);
    let all = table.rows.len();
    let (from, to) = around(edge(capacity), all);
    let piece = |text: &String| Piece::new(Look::Plain, text.clone());
    let mut shown: Vec<Vec<Piece>> =
        vec![table.header.iter().map(|text| Piece::new(Look::Dim, text.clone())).collect()];
    shown.extend(table.rows[from..to].iter().map(|row| row.iter().map(piece).collect()));
    lines.extend(rows::laid_out(&rows::fitting(shown, width)));
    if to - from < all {
        let text = format!("  {} of {all} rates; all of them are in the report", to - from);
        lines.push(vec![Piece::new(Look::Dim, text)]);
    }
    lines.push(Line::new());
    let trust = trust::of_the_machine(records, &summary).join(" ");
    lines.extend(wrapped(&trust, Look::Plain, 0, width));
    let notes = notes::of_search(session, &summary, records);
    let room = Room { width, lines: MAX_LINES.saturating_sub(terminal.following) };
    push_notes(&mut lines, &notes, true, room);
    lines
}

/// The place in the table of what was found; the last one where nothing was.
fn edge(capacity: &Capacity) -> usize {
    let values = tried(&capacity.steps);
    let found = match answer(capacity) {
        Answer::Found { qps } => qps.value,
        Answer::AtLeast { qps, .. } | Answer::Below { qps, .. } => qps,
        Answer::Window(_) | Answer::Nothing { .. } => return values.len(),
    };
    values.iter().filter(|at| **at <= found).count()
}

/// The ends of at most [`MAX_ROWS`] of `all` places around one.
fn around(place: usize, all: usize) -> (usize, usize) {
    let from = place.saturating_sub(MAX_ROWS / 2).min(all.saturating_sub(MAX_ROWS));
    (from, (from + MAX_ROWS).min(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_next_to_the_answer_are_shown() {
        assert_eq!(around(0, 5), (0, 5));
        assert_eq!(around(3, 20), (0, 8));
        assert_eq!(around(15, 20), (11, 19));
        assert_eq!(around(20, 20), (12, 20));
        assert_eq!(around(10, 30), (6, 14));
    }
}
