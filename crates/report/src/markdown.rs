//! A Markdown table and sentences, for a pull request.

use std::fmt::Write as _;

use crate::table::{Table, mark};

/// The question, the answer, the table with its legend, the sentences (those of the second list
/// collapsed), the notes of the table, and further tables with their titles.
pub(crate) fn document(
    question: &str,
    answer: &str,
    table: &Table,
    (sentences, others): (Vec<String>, Vec<String>),
    further: &[(&str, Table)],
) -> String {
    let mut text = format!("**{}**\n\n{}\n\n", escape(question), escape(answer));
    push_table(&mut text, table);
    for sentence in &sentences {
        let _ = writeln!(text, "- {}", escape(sentence));
    }
    if !others.is_empty() {
        let _ = write!(text, "\n<details><summary>the other metrics</summary>\n\n");
        for sentence in &others {
            let _ = writeln!(text, "- {}", escape(sentence));
        }
        let _ = write!(text, "\n</details>\n");
    }
    if !table.notes.is_empty() {
        text.push('\n');
    }
    for (place, note) in table.notes.iter().enumerate() {
        // Two spaces at the end break the line without opening a paragraph.
        let _ = writeln!(text, "[{}] {}  ", mark(place), escape(note));
    }
    for (title, table) in further {
        let _ = write!(text, "\n**{}**\n\n", escape(title));
        push_table(&mut text, table);
    }
    text
}

/// What the limits say: its first word in bold, at the end.
pub(crate) fn push_gate(text: &mut String, gate: &str) {
    let (ruling, rest) = gate.split_once(' ').unwrap_or((gate, ""));
    text.truncate(text.trim_end().len());
    let _ = writeln!(text, "\n\n**{}** {}", escape(ruling), escape(rest));
}

/// A table and its legend.
fn push_table(text: &mut String, table: &Table) {
    push_row(text, &table.header);
    let rules = table.header.iter().enumerate().map(|(place, _)| match place {
        0 => "---",
        _ => "---:",
    });
    let _ = writeln!(text, "| {} |", rules.collect::<Vec<_>>().join(" | "));
    for row in &table.rows {
        push_row(text, row);
    }
    let _ = writeln!(text, "\n{}\n", escape(&table.legend));
}

/// One row of a table.
fn push_row(text: &mut String, cells: &[String]) {
    let cells: Vec<_> = cells.iter().map(|cell| escape(cell)).collect();
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

/// Takes their meaning from the characters that would break a table or open HTML. Line breaks
/// become spaces.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '|' | '\\' | '*' | '_' => {
                escaped.push('\\');
                escaped.push(character);
            }
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '\n' | '\r' => escaped.push(' '),
            _ => escaped.push(character),
        }
    }
    escaped
}
