//! The report of a results directory, written into it.

use std::path::PathBuf;

use dnslab_analysis::Summary;
use dnslab_record::RunRecord;
use dnslab_results::{ResultsDirectory, ResultsError};

use crate::capacity::{capacity_table, csv as capacity_csv};
use crate::page::{Grouping, Page};
use crate::screen::Parts;
use crate::server_files::{MAX_SHOWN, ServerFiles};
use crate::summary_json::summary_json;
use crate::table::{Table, table};
use crate::words::capacity::capacity_answer;
use crate::words::cpu;
use crate::{chain, counts, csv, markdown, pods, published, scaling, shares, sweep, windows};

/// The files of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportPaths {
    /// `report.html`, for people.
    pub page: PathBuf,
    /// `summary.json`, for programs.
    pub summary: PathBuf,
    /// `runs.csv`, one row per run.
    pub runs: PathBuf,
    /// `series.csv`, one row per run and interval.
    pub series: PathBuf,
    /// `table.md`, for a pull request.
    pub table: PathBuf,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The results cannot be read, or the report cannot be written beside them.
    #[error(transparent)]
    Results(#[from] ResultsError),
}

/// Writes `report.html`, `summary.json`, `runs.csv`, `series.csv` and `table.md` into a results
/// directory, `resources.csv` too where a server was watched, `chain.csv` where a run had a chain of servers,
/// `windows.csv` where the load had time windows, `answers.csv` where answers were compared, `cpu.csv` where servers
/// were sampled, and `capacity.csv` into that of a search, from what is in it. An
/// earlier report is replaced file by file.
///
/// # Errors
/// When a file of the directory cannot be read, was written by a newer dnslab or contradicts
/// another, and when the report cannot be written.
pub fn write_report(results: &ResultsDirectory) -> Result<ReportPaths, ReportError> {
    let session = results.session()?;
    let records = results.runs()?;
    let server_files = ServerFiles::read(results, &records, MAX_SHOWN)?;
    let mut summary = Summary::whole(
        &session,
        &records,
        results.answer_comparisons()?,
        results.cpu_profiles()?.as_ref(),
    );
    let profiles = results.cpu_profiles()?;
    let capacity = results.capacity()?;
    if capacity.is_some() {
        // Its variants are steps: none is a change of another.
        summary.comparisons.clear();
        summary.windows.iter_mut().for_each(|window| window.comparisons.clear());
    }
    let page = Page {
        session: &session,
        records: &records,
        summary: &summary,
        capacity: capacity.as_ref(),
        profiles: profiles.as_ref(),
        grouping: Grouping::of(&summary, &records),
        server_files: &server_files,
    };
    let question = &session.question;
    let (answer, table_text) = match &capacity {
        Some(capacity) => {
            let answer = capacity_answer(capacity).to_string();
            let text = markdown::search(question, &answer, &capacity_table(capacity));
            (answer, text)
        }
        None => {
            let parts = Parts::of(&session, &records, &summary, usize::MAX);
            let further = further_tables(&summary, &records);
            let text = markdown::experiment(question, &parts, &table(&summary), &further);
            (parts.answer, text)
        }
    };
    let write = |name: &str, content: &str| -> Result<PathBuf, ReportError> {
        results.write(name, content.as_bytes())?;
        Ok(results.path().join(name))
    };
    let has_chain = records.iter().any(|record| !record.watched.chain.is_empty());
    let cost = summary.cpu.as_ref().filter(|cost| !cost.variants.is_empty());
    for (name, content) in [
        ("chain.csv", has_chain.then(|| csv::chain(&records))),
        ("resources.csv", csv::has_resources(&records).then(|| csv::resources(&records))),
        ("windows.csv", (!summary.windows.is_empty()).then(|| csv::windows(&records))),
        ("answers.csv", (!summary.answers.is_empty()).then(|| csv::answers(&summary.answers))),
        ("cpu.csv", cost.map(csv::cpu)),
        ("capacity.csv", capacity.as_ref().map(capacity_csv)),
    ] {
        match content {
            Some(content) => drop(write(name, &content)?),
            // That of an earlier report would contradict this one.
            None => results.remove_file(name)?,
        }
    }
    Ok(ReportPaths {
        summary: write("summary.json", &summary_json(&session, &records, &summary, answer))?,
        runs: write("runs.csv", &csv::runs(&records))?,
        series: write("series.csv", &csv::series(&records))?,
        table: write("table.md", &table_text)?,
        // Last, so that a page stands for a whole report.
        page: write("report.html", &page.render())?,
    })
}

/// The tables of loads, time windows, the chain and the servers' own counters with their titles, where there are
/// any.
fn further_tables(summary: &Summary, records: &[RunRecord]) -> Vec<(&'static str, Table)> {
    let owned = |header: &[&str]| header.iter().map(|heading| (*heading).to_owned()).collect();
    let chain = chain::rows(summary);
    let chain = Table {
        header: owned(&chain::HEADER),
        rows: chain.iter().map(|row| row.cells.iter().map(chain::Cell::text).collect()).collect(),
        legend: chain::LEGEND.to_owned(),
        notes: Vec::new(),
    };
    let counts = Table {
        header: owned(&counts::HEADER),
        rows: counts::rows(summary, records).into_iter().map(Vec::from).collect(),
        legend: counts::LEGEND.to_owned(),
        notes: Vec::new(),
    };
    let pods = Table {
        header: owned(&pods::HEADER),
        rows: pods::rows(summary).into_iter().map(Vec::from).collect(),
        legend: pods::LEGEND.to_owned(),
        notes: Vec::new(),
    };
    let order: Vec<usize> = (0..summary.variants.len()).collect();
    let windows = Table {
        header: owned(&windows::HEADER),
        rows: windows::rows(summary, &order).into_iter().map(|row| row.cells.into()).collect(),
        legend: windows::LEGEND.to_owned(),
        notes: Vec::new(),
    };
    let loads = Table {
        header: owned(&sweep::HEADER),
        rows: sweep::rows(summary).into_iter().map(Vec::from).collect(),
        legend: [sweep::sentences(summary), vec![sweep::legend(summary)]].concat().join(" "),
        notes: Vec::new(),
    };
    let threads = Table {
        header: owned(&scaling::HEADER),
        rows: scaling::rows(summary).into_iter().map(Vec::from).collect(),
        legend: [scaling::sentences(summary), vec![scaling::LEGEND.to_owned()]].concat().join(" "),
        notes: Vec::new(),
    };
    let at_shares = Table {
        header: owned(&shares::HEADER),
        rows: shares::rows(summary).into_iter().map(Vec::from).collect(),
        legend: shares::LEGEND.to_owned(),
        notes: Vec::new(),
    };
    let cpu = summary.cpu.as_ref().map(cpu::table).unwrap_or_default();
    let published = Table {
        header: owned(&published::HEADER),
        rows: published::rows(summary).into_iter().map(Vec::from).collect(),
        legend: published::LEGEND.to_owned(),
        notes: Vec::new(),
    };
    let tables = [
        ("Published, and here", published),
        ("Over the load", loads),
        ("Over the threads", threads),
        ("Where the CPU time goes", cpu),
        ("Latency over load", at_shares),
        ("Time windows", windows),
        ("The chain", chain),
        ("The pods behind the Service", pods),
        ("The servers' own counters", counts),
    ];
    tables.into_iter().filter(|(_, table)| !table.rows.is_empty()).collect()
}
