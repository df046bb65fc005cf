//! `dnslab import`: a results directory from what another load generator printed.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::anyhow;
use dnslab_import::{ImportFacts, ImportSource, read, results_of};
use dnslab_lab::{GivenFault, read_given};
use dnslab_results::{FolderName, ResultsDirectory};

use crate::arguments::{Import, ImportDnsperf, Imported};
use crate::exit::{Exit, Failure};
use crate::{first_screen, session};

/// Octets of a file that is read, at most.
const MAX_FILE: u64 = 64 << 20;

pub(crate) fn import(arguments: Import) -> Result<Exit, Failure> {
    match arguments.from {
        Imported::Dnsperf(arguments) => import_dnsperf(&arguments),
    }
}

fn import_dnsperf(arguments: &ImportDnsperf) -> Result<Exit, Failure> {
    // All of them are read before anything is made.
    let mut sources = Vec::new();
    for word in &arguments.files {
        let (variant, path) = named(word)?;
        let octets = octets_of(&path)?;
        let runs = read(&octets).map_err(|error| {
            Failure::bad_input(anyhow!(
                "{}: {error}\n  hint:    give the whole output of `dnsperf`, or its JSON; \
                 dnslab writes nothing before it has read all files",
                path.display()
            ))
        })?;
        let file = path.display().to_string();
        sources.extend(runs.into_iter().map(|run| ImportSource {
            variant: variant.as_str().to_owned(),
            file: file.clone(),
            run,
        }));
    }
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let path = match &arguments.out {
        Some(path) => path.clone(),
        None => dnslab_experiment::results_path(Path::new("results"), &now, &arguments.name),
    };
    let facts = ImportFacts {
        name: arguments.name.as_str().to_owned(),
        dnslab: env!("CARGO_PKG_VERSION").to_owned(),
        command: session::command_line(),
        imported: now,
    };
    let (session, records) = results_of(facts, sources);
    let results = ResultsDirectory::create(&path, &session)?;
    for record in &records {
        results.write_run(record)?;
    }
    first_screen::show((&results, true), None, arguments.output)?;
    Ok(Exit::Fine)
}

/// The variant and the file of an argument: `NAME=FILE`, or a file, by whose name without its ending the variant
/// is called.
fn named(word: &str) -> Result<(FolderName, PathBuf), Failure> {
    let path = PathBuf::from(word);
    let (name, path) = match word.split_once('=') {
        Some((name, file)) if !path.exists() => (name.to_owned(), PathBuf::from(file)),
        _ => {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            (stem, path)
        }
    };
    match name.parse() {
        Ok(name) => Ok((name, path)),
        Err(error) => Err(Failure::bad_input(anyhow!(
            "{error}\n  hint:    give the variant another one: NAME={}",
            path.display()
        ))),
    }
}

fn octets_of(path: &Path) -> Result<Vec<u8>, Failure> {
    let refused = |error| Failure::bad_input(anyhow!("cannot read {}: {error}", path.display()));
    read_given(path, MAX_FILE).map_err(|error| match error.get_ref() {
        Some(fault) if fault.downcast_ref() == Some(&GivenFault::TooLarge(MAX_FILE)) => {
            Failure::bad_input(anyhow!(
                "{} is larger than {} MiB\n  hint:    leave out the lines for single queries (dnsperf -v)",
                path.display(),
                MAX_FILE >> 20
            ))
        }
        _ => refused(error),
    })
}
