//! `dnslab export`: results for other programs.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use dnslab_metrics::{Point, points_of, timed_text};
use dnslab_monitor::push_all;
use dnslab_report::{dns_metrics, number};
use dnslab_results::ResultsDirectory;

use crate::arguments::{Export, ExportForm, ExportPrometheus, Output};
use crate::exit::{Exit, Failure};
use crate::monitoring::{endpoint, say_missing};
use crate::output;

/// An endpoint that cannot be reached, or has no room, is tried again for so long.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn export(arguments: &Export) -> Result<Exit, Failure> {
    match &arguments.form {
        ExportForm::Prometheus(arguments) => prometheus(arguments),
        ExportForm::DnsMetrics { results } => print_dns_metrics(results),
    }
}

fn print_dns_metrics(results: &Path) -> Result<Exit, Failure> {
    let results = ResultsDirectory::open(results).map_err(Failure::bad_input)?;
    let text = dns_metrics(&results.session()?, &results.runs()?);
    say!("{}", text.trim_end());
    Ok(Exit::Fine)
}

fn prometheus(arguments: &ExportPrometheus) -> Result<Exit, Failure> {
    let results = ResultsDirectory::open(&arguments.results).map_err(Failure::bad_input)?;
    let endpoint = endpoint(&arguments.remote_write)?;
    let experiment = results.session()?.name;
    let records = results.runs()?;
    let points: Vec<Point> =
        records.iter().flat_map(|record| points_of(&experiment, record)).collect();
    if let Some(path) = &arguments.out {
        write(path, &timed_text(&points))?;
    }
    let Some(endpoint) = endpoint else { return Ok(Exit::Fine) };
    let report = push_all(&endpoint, &points, PATIENCE);
    let is_to_standard_output = arguments.out.as_deref() == Some(Path::new("-"));
    let output = Output { quiet: is_to_standard_output, ..Output::default() };
    let (samples, taken) = (number::count(report.samples), number::count(report.taken));
    let text = format!("pushed {samples} samples, {taken} points, to {}", endpoint.url());
    crate::terminal::remark(&text, output);
    say_missing(&report, &endpoint, None, output);
    if report.refused > 0 {
        let hint = "  hint:    Prometheus refuses samples that are more than about an hour older than its newest \
                    ones: write them with --out FILE, and make blocks of them with `promtool tsdb \
                    create-blocks-from openmetrics FILE DATA`";
        crate::terminal::remark(hint, output);
    }
    Ok(if report.missing() == 0 { Exit::Fine } else { Exit::Impossible })
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if path == Path::new("-") {
        output::write_plain(|output| output.write_all(text.as_bytes()));
        return Ok(());
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
