//! Text for a person at a terminal.

use std::io::IsTerminal as _;

use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent, presets};

/// Shows an error: the first line after `error:`, the causes that it does not name itself below.
pub(crate) fn error(error: &anyhow::Error) {
    let text = error.to_string();
    if text.starts_with("error") {
        eprintln!("{text}");
    } else {
        eprintln!("error: {text}");
    }
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            eprintln!("  cause:   {cause}");
        }
    }
}

/// True if the standard error is a terminal that a live view can be drawn on.
pub(crate) fn is_live() -> bool {
    std::io::stderr().is_terminal()
}

/// Lays out a table: the first column left, figures right.
pub(crate) fn table(header: &[String], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_style(TableComponent::HeaderLines, '─');
    table.set_style(TableComponent::MiddleHeaderIntersections, '─');
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

/// Lays out a table that may be wider than the terminal: too wide, it is shown with one column for
/// each row.
pub(crate) fn table_or_turned(header: &[String], rows: &[Vec<String>]) -> String {
    let wide = table(header, rows);
    let width = wide.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    let room = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    if room.is_none_or(|room| width <= room) {
        return wide;
    }
    let turned: Vec<Vec<String>> = (1..header.len())
        .map(|column| {
            let cells = rows.iter().map(|row| row[column].clone());
            std::iter::once(header[column].clone()).chain(cells).collect()
        })
        .collect();
    let names: Vec<String> =
        std::iter::once(String::new()).chain(rows.iter().map(|row| row[0].clone())).collect();
    table(&names, &turned)
}
