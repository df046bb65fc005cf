//! The first screen in Markdown, for a pull request.

use std::fmt::Write as _;

use dnslab_analysis::SessionComparison;
use dnslab_record::visible_lines;

use crate::screen::{Parts, Piece};
use crate::session_comparison::{figures_table, limits_table};
use crate::table::{Table, mark};
use crate::words::session_comparison as words;

/// What the first screen says, with all notes; then the figures of all variants and further tables with
/// their titles, folded.
pub(crate) fn experiment(
    question: &str,
    parts: &Parts,
    figures: &Table,
    further: &[(&str, Table)],
) -> String {
    let mut text = String::new();
    if let Some(overall) = &parts.overall {
        push_verdict(&mut text, overall, &parts.rulings);
    }
    let _ = write!(text, "**{}**\n\n{}\n\n", escape(question), escape(&parts.answer));
    let _ = writeln!(text, "{}\n", escape(&parts.conditions));
    for cpu in &parts.cpu {
        let _ = writeln!(text, "{}\n", escape(cpu));
    }
    let cells = |row: &Vec<Piece>| row.iter().map(|piece| piece.text.clone()).collect();
    let mut rows: Vec<Vec<String>> = parts.table.iter().map(cells).collect();
    if !rows.is_empty() {
        push_rows(&mut text, &rows.remove(0), &rows);
    }
    let ends = parts.legend(false).into_iter().chain([parts.trust.clone()]);
    ends.filter(|end| !end.is_empty()).for_each(|end| {
        let _ = writeln!(text, "\n{}", escape(&end));
    });
    text.push('\n');
    for note in &parts.notes {
        let _ = writeln!(text, "- {}", escape(&note.text));
    }
    let _ = write!(text, "\n<details><summary>all figures</summary>\n\n");
    push_table(&mut text, figures);
    for (place, note) in figures.notes.iter().enumerate() {
        // Two spaces at the end break the line without opening a paragraph.
        let _ = writeln!(text, "[{}] {}  ", mark(place), escape(note));
    }
    for (title, table) in further {
        let _ = write!(text, "\n**{}**\n\n", escape(title));
        push_table(&mut text, table);
    }
    text.push_str("\n</details>\n");
    text
}

pub(crate) fn search(question: &str, answer: &str, table: &Table) -> String {
    let mut text = format!("**{}**\n\n{}\n\n", escape(question), escape(answer));
    push_table(&mut text, table);
    text
}

/// The comparison in Markdown, for a pull request: the ruling and the answer, the table of the limits, what to know
/// besides, and all figures, folded.
#[must_use]
pub fn session_comparison_markdown(comparison: &SessionComparison) -> String {
    let (overall, answer) = (words::overall(comparison), words::answer(comparison));
    let mut text = format!("**{}**\n\n{}\n\n", escape(&overall), escape(&answer));
    let _ = writeln!(text, "{}\n", escape(&words::conditions(comparison)));
    push_table(&mut text, &limits_table(comparison));
    for note in words::notes(comparison) {
        let _ = writeln!(text, "- {}", escape(&note));
    }
    let _ = write!(text, "\n<details><summary>all figures</summary>\n\n");
    push_table(&mut text, &figures_table(comparison));
    text.push_str("</details>\n");
    text
}

/// What all limits say together, then each of them.
fn push_verdict(text: &mut String, overall: &str, rulings: &[String]) {
    let _ = writeln!(text, "**{}**\n", escape(overall));
    for ruling in rulings {
        let _ = writeln!(text, "- {}", escape(ruling));
    }
    text.push('\n');
}

fn push_table(text: &mut String, table: &Table) {
    push_rows(text, &table.header, &table.rows);
    let _ = writeln!(text, "\n{}\n", escape(&table.legend));
}

fn push_rows(text: &mut String, header: &[String], rows: &[Vec<String>]) {
    push_row(text, header);
    let rules = header.iter().enumerate().map(|(place, _)| match place {
        0 => "---",
        _ => "---:",
    });
    let _ = writeln!(text, "| {} |", rules.collect::<Vec<_>>().join(" | "));
    rows.iter().for_each(|row| push_row(text, row));
}

fn push_row(text: &mut String, cells: &[String]) {
    let cells: Vec<_> = cells.iter().map(|cell| escape(cell)).collect();
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

/// Takes their meaning from the characters that would break a table, open HTML, or act on the text around
/// them. Line breaks become spaces.
fn escape(text: &str) -> String {
    let text = visible_lines(text);
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '|' | '\\' | '*' | '_' => {
                escaped.push('\\');
                escaped.push(character);
            }
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '\n' => escaped.push(' '),
            _ => escaped.push(character),
        }
    }
    escaped
}
