//! The report that the first page shows: of the default experiment, which needs neither root nor an installed server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use dnslab_record::Session;
use dnslab_results::ResultsDirectory;

use crate::process::{Stop, run, write};
use crate::versus::dnslab::{Dnslab, only_folder};

const EXPERIMENT: &str = "encryption";
const FILE: &str = "report.html";

/// The default experiment takes about a minute.
const PATIENCE: Duration = Duration::from_secs(600);

/// The picture of the first page, which the report is named below.
const PICTURE: &str = "](docs/pictures/report.png)\n";

/// Runs the experiment, and returns its results directory, which is below `scratch`.
///
/// # Errors
/// When there is no dnslab, or the experiment fails.
pub(super) fn measure(dnslab: Option<&Path>, scratch: &Path, stop: &Stop) -> Result<PathBuf> {
    let dnslab = Dnslab::find(dnslab)?;
    println!("dnslab run {EXPERIMENT}, about a minute");
    let results = scratch.join("results");
    let mut command = Command::new(&dnslab.path);
    command.args(["run", EXPERIMENT, "--quiet", "--results"]).arg(&results);
    let finished = run(&mut command, scratch, PATIENCE, stop)?;
    if !finished.ended.status.success() {
        bail!("dnslab run {EXPERIMENT} failed: {}", finished.tail());
    }
    only_folder(&results).context("dnslab left no results")
}

/// Puts the report of a results directory into the site, and names it on the first page.
///
/// # Errors
/// When it cannot be read, or the first page has no place for it.
pub(super) fn show(results: &Path, sources: &Path) -> Result<()> {
    let session = ResultsDirectory::open(results)?.session()?;
    let report = results.join(FILE);
    fs::copy(&report, sources.join(FILE))
        .with_context(|| format!("cannot copy {}: `dnslab report` writes it", report.display()))?;
    let page = sources.join("index.md");
    let text = fs::read_to_string(&page).context("cannot read the first page")?;
    let (before, after) =
        text.split_once(PICTURE).context("README.md has no picture of a report")?;
    write(&page, format!("{before}{PICTURE}\n{}\n{after}", sentence(&session)))
}

fn sentence(session: &Session) -> String {
    let facts = ["CPU", "CPUs", "kernel", "virtualisation"].map(|name| {
        let fact = session.host.iter().find(|fact| fact.name == name);
        format!("{name}: {}", fact.map_or("unknown", |fact| fact.value.as_str()))
    });
    format!(
        "**[Open a report]({FILE})** of the experiment `{}`: made on {} by dnslab {}. {}. It is one file, and asks no \
         other host for anything.\n",
        session.name,
        session.started.split('T').next().unwrap_or_default(),
        session.dnslab,
        facts.join("; "),
    )
}
