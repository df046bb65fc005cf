//! Lines of a screen, and how text is put into them.

use super::notes::Note;
use crate::number;

/// Widest line, in columns.
pub(super) const WIDEST: usize = 100;
/// Most lines for up to six variants, those that follow the screen included; each further one has one
/// more.
pub(super) const MAX_LINES: usize = 20;
/// More notes are on the page.
const MAX_NOTES: usize = 3;

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
    pub(super) fn new(look: Look, text: impl Into<String>) -> Self {
        Self { look, text: text.into() }
    }
}

/// A line, without the line break.
pub type Line = Vec<Piece>;

/// Adds the notes that have room in `most` lines of `width` columns; the gravest in any case, `is_short` in
/// few words.
pub(super) fn push_notes(
    lines: &mut Vec<Line>,
    notes: &[Note],
    is_short: bool,
    (width, most): (usize, usize),
) {
    let all = notes.len();
    for (told, Note { text, short }) in notes.iter().enumerate() {
        let as_lines = |text: &str| wrapped(&format!("- {text}"), Look::Plain, 2, width);
        // The last line says how many there are besides.
        let rest = usize::from(told + 1 < all);
        let note = as_lines(if told == 0 && is_short { short } else { text });
        if told == MAX_NOTES || told > 0 && lines.len() + note.len() + rest > most {
            let more = all - told;
            let more = number::counted(more as u64, "more note", "more notes");
            let more = format!("- {more} in the report");
            lines.extend(wrapped(&more, Look::Dim, 2, width));
            break;
        }
        lines.extend(note);
    }
}

/// What is not parted from the figure before it.
const UNITS: [&str; 9] = ["%", "x", "ns", "us", "ms", "s", "KiB", "MiB", "GiB"];

pub(super) fn wrapped(text: &str, look: Look, indent: usize, width: usize) -> Vec<Line> {
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
