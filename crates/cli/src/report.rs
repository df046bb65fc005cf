//! `dnslab report`: the report again, from the results directory alone.

use dnslab_measure::ResultsDirectory;
use dnslab_report::write_report;

use crate::arguments::Report;
use crate::exit::{Exit, Failure};

/// Writes the report.
pub(crate) fn report(arguments: &Report) -> Result<Exit, Failure> {
    let results = ResultsDirectory::open(&arguments.results).map_err(Failure::bad_input)?;
    let paths = write_report(&results)?;
    say!("report: {}", paths.page.display());
    Ok(Exit::Fine)
}
