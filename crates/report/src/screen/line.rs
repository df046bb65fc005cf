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

/// The terminal that a screen is for.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// Columns. A screen takes between 40 and 100 of them.
    pub width: usize,
    /// Lines that are printed after the screen, such as the path of the report: they count.
    pub following: usize,
}

/// What has to be filled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Columns.
    pub(super) width: usize,
    /// Lines, of which there should be no more.
    pub(super) lines: usize,
}

/// Adds the notes that there is room for; the gravest in any case, `is_short` in few words.
pub(super) fn push_notes(lines: &mut Vec<Line>, notes: &[Note], is_short: bool, room: Room) {
    let all = notes.len();
    for (place, Note { text, short }) in notes.iter().enumerate() {
        let as_lines = |text: &str| wrapped(&format!("- {text}"), Look::Plain, 2, room.width);
        // The last line says how many there are besides.
        let rest = usize::from(place + 1 < all);
        let note = as_lines(if place == 0 && is_short { short } else { text });
        if place == MAX_NOTES || place > 0 && lines.len() + note.len() + rest > room.lines {
            let more = all - place;
            let more = number::counted(more as u64, "more note", "more notes");
            let more = format!("- {more} in the report");
            lines.extend(wrapped(&more, Look::Dim, 2, room.width));
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
