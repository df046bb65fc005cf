//! The matrix as lines and as a page.

use dnslab_wire::Transport;

#[derive(Debug)]
pub(super) struct Row {
    /// Name and version.
    pub(super) server: String,
    pub(super) transport: Transport,
    /// Clients, and queries outstanding of each.
    pub(super) window: (u32, u32),
    /// Why this server loses queries by design; `None` if none may be lost.
    pub(super) loses: Option<&'static str>,
    pub(super) cell: Cell,
}

#[derive(Debug)]
pub(super) enum Cell {
    Asked(Counts),
    /// Why this version lacks the transport, or why dnslab does not ask for it.
    NotServed(String),
    /// Why it was not asked, although it should have been.
    Failed(String),
}

/// Counts of a load with its warm-up.
#[derive(Debug)]
pub(super) struct Counts {
    /// Queries that the client handed to its kernel.
    pub(super) sent: u64,
    pub(super) answered: u64,
    /// Queries that became due and were not answered.
    pub(super) lost: u64,
    pub(super) wrong: u64,
    /// Queries that the server counted in that time; `None` if it counts none.
    pub(super) counted: Option<u64>,
}

impl Row {
    /// Nothing was lost except by design, nothing was wrong, and both sides counted the same.
    pub(super) fn is_right(&self) -> bool {
        match &self.cell {
            Cell::Asked(counts) => {
                counts.answered > 0
                    && counts.wrong == 0
                    && (counts.lost == 0 || self.loses.is_some())
                    // Nobody counts what is lost on its way to the server.
                    && counts.counted.is_none_or(|counted| {
                        (counts.sent - counts.lost.min(counts.sent)..=counts.sent).contains(&counted)
                    })
            }
            Cell::NotServed(_) => true,
            Cell::Failed(_) => false,
        }
    }

    /// A line of a Markdown table.
    pub(super) fn line(&self) -> String {
        let Self { server, transport, window: (clients, outstanding), loses, cell } = self;
        let cells = match cell {
            Cell::Asked(counts) => {
                let counted = counts.counted.map_or("-".to_owned(), |count| count.to_string());
                let Counts { sent, answered, lost, wrong, .. } = counts;
                let mark = match loses {
                    Some(why) if *lost > 0 && self.is_right() => why,
                    _ if self.is_right() => "yes",
                    _ => "**no**",
                };
                format!("{sent} | {answered} | {lost} | {wrong} | {counted} | {mark}")
            }
            Cell::NotServed(why) => format!("- | - | - | - | - | {why}"),
            Cell::Failed(why) => format!("- | - | - | - | - | **no**: {why}"),
        };
        format!("| {server} | {transport} | {clients} x {outstanding} | {cells} |")
    }
}

/// `machine` says where and when it was measured.
pub(super) fn page(rows: &[Row], machine: &str) -> String {
    let wrong = rows.iter().filter(|row| !row.is_right()).count();
    let asked = rows.iter().filter(|row| matches!(row.cell, Cell::Asked(_))).count();
    let mut page = format!(
        "# Servers and transports\n\n\
         <!-- Written by `cargo xtask matrix`. Changes by hand are lost. -->\n\n\
         Every server is asked over every transport of its installed version, and foreign clients ask \
         dnslab's own server. The load is a closed loop of so many clients with so many queries \
         outstanding each. A row is right if no query was lost, no answer was wrong, and \
         the server counted as many queries as the client sent. A server that loses queries by its design \
         has the reason in its row. Servers that count nothing, or not all transports apart, have a `-`.\n\n\
         {asked} rows were asked, {wrong} rows are not right.\n\n{machine}\n## Served\n\n\
         | server | transport | clients x outstanding | sent | answered | lost | wrong | counted by the \
         server | right |\n| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | --- |\n",
    );
    let is_served = |row: &&Row| !matches!(row.cell, Cell::NotServed(_));
    for row in rows.iter().filter(is_served) {
        page += &row.line();
        page += "\n";
    }
    let not_served = |row: &Row| match &row.cell {
        Cell::NotServed(why) => Some(format!("| {} | {} | {why} |\n", row.server, row.transport)),
        Cell::Asked(_) | Cell::Failed(_) => None,
    };
    let mut lines: Vec<String> = Vec::new();
    for line in rows.iter().filter_map(not_served) {
        // The same at each window.
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    page += "\n## Not served\n\n| server | transport | why |\n| --- | --- | --- |\n";
    page += &lines.concat();
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cell: Cell, is_right: bool, words: &str) {
        let server = "nsd 4.6.1".to_owned();
        let row = Row { server, transport: Transport::Dot, window: (20, 9), loses: None, cell };
        assert_eq!(row.is_right(), is_right, "{row:?}");
        let line = row.line();
        assert!(
            line.starts_with("| nsd 4.6.1 | dot | 20 x 9 | ") && line.contains(words),
            "{line}"
        );
    }

    fn asked(lost: u64, wrong: u64, counted: Option<u64>) -> Cell {
        Cell::Asked(Counts { sent: 100, answered: 100 - lost, lost, wrong, counted })
    }

    #[test]
    fn a_row_is_right_where_both_sides_count_the_same() {
        check(asked(0, 0, Some(100)), true, "| 100 | 100 | 0 | 0 | 100 |");
        check(asked(0, 0, Some(101)), false, "| 101 |");
        check(asked(0, 0, None), true, "| - |");
        check(asked(0, 0, Some(97)), false, "**no**");
        check(asked(1, 0, Some(100)), false, "**no**");
        check(asked(0, 1, Some(100)), false, "**no**");
        check(Cell::NotServed("no DoQ".to_owned()), true, "no DoQ");
        check(Cell::Failed("REFUSED".to_owned()), false, "**no**: REFUSED");
    }
}
