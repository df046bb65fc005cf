//! Text of others, so that it can be shown.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Text in which characters that act on a terminal, or on the text around them, are escaped: control
/// characters (C0, DEL, C1), the directional ones of bidirectional text (Unicode Standard Annex 9) and
/// the separators of lines and paragraphs. An escape character is shown as `\u{1b}`, a line feed as `\n`.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, acts)
}

/// [`visible`] for text of several lines, which keeps its line feeds and tabs.
#[must_use]
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |character| acts(character) && !matches!(character, '\n' | '\t'))
}

/// [`visible`] for JSON: the characters are escaped as JSON has it, and what is read is the same.
#[must_use]
pub fn visible_json(json: &str) -> Cow<'_, str> {
    // Between values JSON has line feeds and blanks; in strings C0 is escaped already.
    let hidden = |character: char| acts(character) && !character.is_ascii_whitespace();
    if !json.contains(hidden) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if hidden(character) {
            write!(text, "\\u{:04x}", u32::from(character)).expect("a string takes all");
        } else {
            text.push(character);
        }
    }
    Cow::Owned(text)
}

/// True for characters that are not shown themselves but act on others.
fn acts(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_escaped(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_shown() {
        let check = |text: &str, expected: &str| assert_eq!(visible(text), expected);
        check("grün µs 千 \u{a0}%", "grün µs 千 \u{a0}%");
        check("\u{1b}[31m\u{7}", "\\u{1b}[31m\\u{7}");
        check("\u{9b}2J\u{7f}\0", "\\u{9b}2J\\u{7f}\\u{0}");
        check("a\u{202e}b\u{2066}c\u{200f}", "a\\u{202e}b\\u{2066}c\\u{200f}");
        check("a\nb\tc\r", "a\\nb\\tc\\r");
        assert_eq!(visible_lines("a\nb\tc\r\u{1b}"), "a\nb\tc\\r\\u{1b}");
    }

    #[test]
    fn json_stays_json() {
        let text = "\u{9b}2J \u{7f} \u{202e} \u{1b} µ";
        let json = serde_json::to_string_pretty(&[text]).unwrap();
        let shown = visible_json(&json);
        assert!(!shown.contains(['\u{9b}', '\u{7f}', '\u{202e}', '\u{1b}']), "{shown}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&shown).unwrap(), [text]);
    }
}
