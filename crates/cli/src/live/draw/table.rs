//! The figures that an operator looks at first, a row for each load.

use dnslab_report::number;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::{Look, part_of};
use crate::live::view::{Figures, LoadView, View};

/// A column: its title, its width, and how soon it is left out where there is little room (the highest first).
struct Column {
    title: &'static str,
    width: u16,
    rank: u8,
    text: fn(&Row<'_>) -> String,
}

/// One row.
struct Row<'a> {
    name: String,
    figures: &'a Figures,
    load: &'a LoadView,
    style: Style,
}

static COLUMNS: [Column; 8] = [
    Column {
        title: "queries/s",
        width: 10,
        rank: 0,
        text: |row| number::qps(row.figures.answered_qps),
    },
    Column { title: "lost", width: 9, rank: 1, text: |row| number::share(row.figures.lost_share) },
    Column { title: "p50", width: 9, rank: 3, text: |row| quantile(row, 0) },
    Column { title: "p95", width: 9, rank: 5, text: |row| quantile(row, 1) },
    Column { title: "p99", width: 9, rank: 2, text: |row| quantile(row, 2) },
    Column { title: "server CPU", width: 12, rank: 4, text: |row| percent(row.figures.server_cpu) },
    Column { title: "memory", width: 10, rank: 6, text: memory },
    Column {
        title: "generator CPU",
        width: 15,
        rank: 7,
        text: |row| percent(row.figures.load_cpu),
    },
];

fn quantile(row: &Row<'_>, place: usize) -> String {
    let ns = row.figures.quantiles_ns[place];
    ns.map_or_else(|| number::NONE.to_owned(), |ns| number::duration(ns as f64))
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| number::NONE.to_owned(), |share| number::percent(share, 0))
}

fn memory(row: &Row<'_>) -> String {
    let octets = row.load.server.map(|server| server.memory_octets);
    octets.map_or_else(|| number::NONE.to_owned(), number::octets)
}

/// Loads that have a row, at most.
const MAX_ROWS: usize = 8;

/// The narrowest column of names.
const NAME: u16 = 11;

/// Rows with the head.
pub(super) fn height(view: &View) -> u16 {
    match view.loads.len() {
        0 => 1,
        1 => 3,
        loads => 1 + loads.min(MAX_ROWS) as u16,
    }
}

fn rows<'a>(view: &'a View, look: &Look) -> Vec<Row<'a>> {
    let plain = Style::new();
    if let [load] = &view.loads[..] {
        let now = load.now.as_ref().map(|figures| Row {
            name: "last second".to_owned(),
            figures,
            load,
            style: look.paint.strong(),
        });
        let so_far = load.so_far.as_ref().map(|figures| Row {
            name: part_of(load).to_owned(),
            figures,
            load,
            style: plain,
        });
        return now.into_iter().chain(so_far).collect();
    }
    let rows = view.loads.iter().enumerate().filter_map(|(place, load)| {
        let is_selected = place == look.selected % view.loads.len();
        let mark = if is_selected { "> " } else { "  " };
        let style = plain.fg(look.paint.of_load(place));
        let style = if is_selected { style.patch(look.paint.strong()) } else { style };
        Some(Row {
            name: format!("{mark}{}", load.name),
            figures: load.so_far.as_ref()?,
            load,
            style,
        })
    });
    rows.take(MAX_ROWS).collect()
}

/// The columns that fit.
fn columns(width: u16, names: u16) -> Vec<&'static Column> {
    let mut columns: Vec<&Column> = COLUMNS.iter().collect();
    while columns.iter().map(|column| column.width).sum::<u16>() + names > width {
        let Some(least) = columns.iter().map(|column| column.rank).max() else { break };
        columns.retain(|column| column.rank != least);
    }
    columns
}

pub(super) fn render(view: &View, look: &Look, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let rows = rows(view, look);
    let longest = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0) as u16;
    let names = longest.max(NAME).min(area.width);
    let columns = columns(area.width, names);
    let mut x = area.x + names;
    for column in columns {
        let width = usize::from(column.width);
        let mut put = |y: u16, text: &str, style: Style| {
            buffer.set_stringn(x, y, format!("{text:>width$}"), width, style);
        };
        put(area.y, column.title, look.paint.dim());
        for (y, row) in (area.y + 1..area.bottom()).zip(&rows) {
            put(y, &(column.text)(row), row.style);
        }
        x += column.width;
    }
    for (y, row) in (area.y + 1..area.bottom()).zip(&rows) {
        buffer.set_stringn(area.x, y, &row.name, names.into(), row.style);
    }
}
