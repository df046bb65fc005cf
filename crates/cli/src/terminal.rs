//! Text for a user at a terminal.

use std::io::{self, IsTerminal as _, Write as _};

use anstyle::{Effects, Style};
use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent, presets};
use dnslab_experiment::{ExperimentError, SessionError};
use dnslab_record::{visible, visible_lines};
use dnslab_report::{Line, Look, Piece};
use dnslab_wire::units::raised_thread_limit;
use indicatif::ProgressBar;
use rustix::io::Errno;

use crate::arguments::Output;
use crate::output;

/// Shows the first line after `error:`, and below it the causes that it does not name.
pub(crate) fn error(error: &anyhow::Error) {
    let text = visible_lines(&error.to_string()).into_owned();
    let mark = if is_rendered(error) { "" } else { "error: " };
    tell!("{mark}{text}");
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        let cause = visible_lines(&cause);
        if !text.contains(&*cause) {
            tell!("  cause:   {cause}");
        }
    }
    if let Some(remedy) = system_remedy(error).filter(|_| !text.contains("ulimit")) {
        tell!("  hint:    {remedy}");
    }
}

/// What to do where a limit of the system stopped it, whoever met it.
fn system_remedy(error: &anyhow::Error) -> Option<&'static str> {
    let cause = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>())?;
    match Errno::from_io_error(cause)? {
        Errno::FBIG => Some(
            "files may not become larger here: raise the limit with `ulimit -f unlimited` in the shell that starts it, or \
             write to another file system",
        ),
        Errno::AGAIN => Some(raised_thread_limit()),
        _ => None,
    }
}

/// True for the problems of an experiment file, which are rendered with their own `error:`.
fn is_rendered(error: &anyhow::Error) -> bool {
    let is_invalid = |error: &ExperimentError| matches!(error, ExperimentError::Invalid { .. });
    match error.downcast_ref() {
        Some(SessionError::Experiment(error)) => is_invalid(error),
        _ => error.downcast_ref().is_some_and(is_invalid),
    }
}

/// Asks a question. Everything but yes is no, also when input or error output is no terminal.
pub(crate) fn confirm(question: &str) -> bool {
    let (input, mut output) = (std::io::stdin(), std::io::stderr());
    if !input.is_terminal() || !output.is_terminal() {
        return false;
    }
    write!(output, "{} [y/N] ", visible(question)).and_then(|()| output.flush()).ok();
    let mut answer = String::new();
    input.read_line(&mut answer).ok();
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Hides the bar if nobody watches or output is not wanted.
pub(crate) fn bar(bar: ProgressBar, output: Output) -> ProgressBar {
    let is_shown = std::io::stderr().is_terminal() && !output.is_quiet();
    if is_shown { bar } else { ProgressBar::hidden() }
}

/// Prints text beside the result. It goes to standard error if the result is JSON.
pub(crate) fn remark(text: &str, output: Output) {
    if output.json.is_some() {
        tell!("{text}");
    } else {
        say!("{text}");
    }
}

/// Columns of a line if the output is no terminal.
const UNKNOWN_WIDTH: usize = 100;

pub(crate) fn width() -> usize {
    terminal_size::terminal_size().map_or(UNKNOWN_WIDTH, |(width, _)| usize::from(width.0))
}

/// Shows lines, with styles if the output is a terminal that wants them.
pub(crate) fn show(lines: &[Line]) {
    output::write(|out| {
        for line in lines {
            for Piece { look, text } in line {
                let style = match look {
                    Look::Plain => Style::new(),
                    Look::Strong => Style::new().effects(Effects::BOLD),
                    Look::Dim => Style::new().effects(Effects::DIMMED),
                };
                write!(out, "{style}{}{style:#}", visible(text))?;
            }
            writeln!(out)?;
        }
        Ok(())
    });
}

/// The first column is left-aligned, the others right-aligned.
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
