//! `dnslab history`: one figure over many results directories.

use dnslab_analysis::{History as Figures, WholeSession};
use dnslab_report::{history_csv, history_page, history_screen};

use crate::arguments::History;
use crate::compare::{Read, write};
use crate::exit::{Exit, Failure};
use crate::terminal;

pub(crate) fn history(arguments: &History) -> Result<Exit, Failure> {
    let read: Vec<Read> =
        arguments.results.iter().map(|path| Read::of(path)).collect::<Result<_, _>>()?;
    let sessions: Vec<WholeSession<'_>> = read.iter().map(Read::whole).collect();
    let history = Figures::of(arguments.figure, &sessions);
    terminal::show(&history_screen(&history, terminal::width()));
    if let Some(path) = &arguments.page {
        write(path, &history_page(&history))?;
        say!("page: {}", path.display());
    }
    if let Some(path) = &arguments.csv {
        write(path, &history_csv(&history))?;
        say!("CSV:  {}", path.display());
    }
    Ok(Exit::Fine)
}
