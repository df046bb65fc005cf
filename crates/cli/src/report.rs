//! `dnslab report`: the report again, from the results directory alone.

use dnslab_measure::ResultsDirectory;
use dnslab_report::write_report;

use crate::arguments::Report;
use crate::exit::{Exit, Failure};
use crate::first_screen;

/// Writes the report, and shows the first screen of an experiment.
pub(crate) fn report(arguments: &Report) -> Result<Exit, Failure> {
    let results = ResultsDirectory::open(&arguments.results).map_err(Failure::bad_input)?;
    if results.capacity()?.is_none() {
        first_screen::show(&results, None, arguments.output)?;
        return Ok(Exit::Fine);
    }
    let paths = write_report(&results)?;
    if arguments.output.json {
        first_screen::print_json(&paths)?;
    } else {
        say!("report: {}", paths.page.display());
    }
    Ok(Exit::Fine)
}
