//! The first screen: what a person at a terminal reads after an experiment.
//!
//! The answer comes first, in one sentence. Then the conditions, once; one row for each variant, the
//! reference with its figures and the others with their differences; what to make of them; and at most
//! three notes. Everything else is on the page.

mod capacity;
mod cell;
mod conditions;
mod notes;
mod rows;
mod trust;

use dnslab_measure::{RunRecord, Session, Summary};

use crate::answer::answer;
pub use capacity::capacity_screen;

/// Widest line, in columns.
const WIDEST: usize = 100;
/// Most lines for up to [`FEW`] variants; each further one has one more. Two more are for the path of the
/// report and a hint.
const MOST_LINES: usize = 18;
/// So many variants fit.
const FEW: usize = 6;
/// More notes are on the page.
const MOST_NOTES: usize = 3;

/// How a piece of a line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    /// As text is.
    #[default]
    Plain,
    /// What is to be read first.
    Strong,
    /// What is not certain, and what only accompanies.
    Dim,
}

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// How it looks.
    pub look: Look,
    /// What it says.
    pub text: String,
}

impl Piece {
    fn new(look: Look, text: impl Into<String>) -> Self {
        Self { look, text: text.into() }
    }
}

/// A line, without the line break.
pub type Line = Vec<Piece>;

/// What is to be said first of an experiment, whatever it is written on.
pub(crate) struct Parts {
    /// The answer to its question.
    pub(crate) answer: String,
    /// Under which conditions it was measured.
    pub(crate) conditions: String,
    /// A heading and a row for each variant, as many columns as have room.
    pub(crate) table: Vec<Vec<Piece>>,
    /// What the signs in the table mean.
    pub(crate) legend: Option<String>,
    /// How far to trust it.
    pub(crate) trust: String,
    /// What to know besides, the gravest first.
    pub(crate) notes: Vec<String>,
}

impl Parts {
    /// Of an experiment, with a table of at most `width` columns of text.
    pub(crate) fn of(
        session: &Session,
        records: &[RunRecord],
        summary: &Summary,
        width: usize,
    ) -> Self {
        let table = rows::table(summary, width);
        Self {
            answer: answer(summary, session.margin),
            conditions: conditions::conditions(session, records),
            legend: rows::legend(&table),
            table,
            trust: trust::trust(records, summary),
            notes: notes::notes(session, summary, records),
        }
    }
}

/// The screen of an experiment, at most `width` columns wide where its names allow that, and 100 in
/// any case.
#[must_use]
pub fn screen(
    session: &Session,
    records: &[RunRecord],
    summary: &Summary,
    width: usize,
) -> Vec<Line> {
    let width = width.clamp(40, WIDEST);
    let parts = Parts::of(session, records, summary, width);
    let text = |text: &str, look| wrapped(text, look, 0, width);
    let mut lines = text(&parts.answer, Look::Strong);
    lines.extend(text(&parts.conditions, Look::Dim));
    lines.push(Line::new());
    lines.extend(rows::laid_out(&parts.table));
    if let Some(legend) = &parts.legend {
        let legend = wrapped(legend, Look::Dim, 0, width.saturating_sub(2));
        lines.extend(
            legend.into_iter().map(|line| [vec![Piece::new(Look::Plain, "  ")], line].concat()),
        );
    }
    lines.push(Line::new());
    lines.extend(text(&parts.trust, Look::Plain));
    let most = MOST_LINES + summary.variants.len().saturating_sub(FEW);
    let all = parts.notes.len();
    for (told, note) in parts.notes.into_iter().enumerate() {
        let note = wrapped(&format!("- {note}"), Look::Plain, 2, width);
        // The last line says how many there are besides.
        let rest = usize::from(told + 1 < all);
        // The gravest is told in any case.
        let fits = told == 0 || lines.len() + note.len() + rest <= most;
        if told == MOST_NOTES || !fits {
            let more = all - told;
            let plural = if more == 1 { "" } else { "s" };
            lines.extend(text(&format!("- {more} more note{plural} in the report"), Look::Dim));
            break;
        }
        lines.extend(note);
    }
    // Where there is much to say, it stands closer.
    while lines.len() > most
        && let Some(blank) = lines.iter().rposition(Vec::is_empty)
    {
        lines.remove(blank);
    }
    lines
}

/// What is not parted from the figure before it.
const UNITS: [&str; 9] = ["%", "x", "ns", "us", "ms", "s", "KiB", "MiB", "GiB"];

/// Running text in lines; all but the first are indented.
fn wrapped(text: &str, look: Look, indent: usize, width: usize) -> Vec<Line> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    let words: Vec<&str> = text.split_whitespace().collect();
    for (place, word) in words.iter().enumerate() {
        let is_first = line.trim().is_empty();
        // A figure and its unit stay together.
        let unit = words
            .get(place + 1)
            .map_or("", |next| next.trim_end_matches([',', '.', ';', ')', ':']));
        let unit = if UNITS.contains(&unit) { unit.len() + 1 } else { 0 };
        if !is_first && line.chars().count() + 1 + word.chars().count() + unit > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
        } else if !is_first {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.trim().is_empty() {
        lines.push(line);
    }
    lines.into_iter().map(|text| vec![Piece::new(look, text)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_between_words() {
        let lines = wrapped("- one two three four", Look::Plain, 2, 10);
        let texts: Vec<&str> = lines.iter().map(|line| line[0].text.as_str()).collect();
        assert_eq!(texts, ["- one two", "  three", "  four"]);
        assert!(wrapped("", Look::Plain, 0, 80).is_empty());
        let lines = wrapped("at most 0.05 %.", Look::Plain, 0, 13);
        let texts: Vec<&str> = lines.iter().map(|line| line[0].text.as_str()).collect();
        assert_eq!(texts, ["at most", "0.05 %."]);
        // A word that is too long stands alone, and is not broken.
        assert_eq!(wrapped("a abcdefghijkl b", Look::Plain, 0, 5).len(), 3);
    }
}
