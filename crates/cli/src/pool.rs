//! `dnslab pool`: what holds over several sessions of one experiment.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use dnslab_analysis::{Pooled, WholeSession};
use dnslab_report::{pooled_json, pooled_page, pooled_screen};
use dnslab_results::{ResultsDirectory, ResultsError};

use crate::arguments::Pool;
use crate::compare::{Read, write};
use crate::exit::{Exit, Failure};
use crate::terminal;

pub(crate) fn pool(arguments: &Pool) -> Result<Exit, Failure> {
    let pooled = pooled(&arguments.results)?;
    match arguments.json {
        true => say!("{}", pooled_json(&pooled).trim_end()),
        false => terminal::show(&pooled_screen(&pooled, terminal::width())),
    }
    if let Some(path) = &arguments.page {
        write(path, &pooled_page(&pooled))?;
        if !arguments.json {
            say!("page: {}", path.display());
        }
    }
    Ok(Exit::Fine)
}

/// The sessions of these results directories, and of those in these folders.
pub(crate) fn pooled(paths: &[PathBuf]) -> Result<Pooled, Failure> {
    let mut read: Vec<Read> = Vec::new();
    for path in paths {
        for path in results_in(path)? {
            let further = Read::of(&path)?;
            if !read.iter().any(|known| known.is_same_as(&further)) {
                read.push(further);
            }
        }
    }
    let sessions: Vec<WholeSession<'_>> = read.iter().map(Read::whole).collect();
    Pooled::of(&sessions).map_err(Failure::bad_input)
}

/// A results directory itself, or those in a folder.
fn results_in(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    match ResultsDirectory::open(path) {
        Err(ResultsError::NotResults { .. }) if path.is_dir() => {}
        _ => return Ok(vec![path.to_owned()]),
    }
    let entries = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    let folders = entries.flatten().map(|entry| entry.path());
    let mut results: Vec<PathBuf> =
        folders.filter(|folder| ResultsDirectory::open(folder).is_ok()).collect();
    results.sort();
    if results.is_empty() {
        return Err(Failure::bad_input(anyhow!(
            "{} is no results directory, and has none in it\n  hint:    name what `dnslab run` has made",
            path.display()
        )));
    }
    Ok(results)
}
