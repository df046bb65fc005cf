//! `dnslab report`: writes the report again from the results directory alone.

use dnslab_results::ResultsDirectory;

use crate::arguments::Report;
use crate::exit::{Exit, Failure};
use crate::first_screen;

pub(crate) fn report(arguments: &Report) -> Result<Exit, Failure> {
    let results = ResultsDirectory::open(&arguments.results).map_err(Failure::bad_input)?;
    match results.capacity()? {
        Some(capacity) => first_screen::show_search((&results, true), &capacity, arguments.output)?,
        None => {
            first_screen::show((&results, true), None, arguments.output)?;
        }
    }
    Ok(Exit::Fine)
}
