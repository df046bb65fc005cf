//! Every command in README.md and the documents is one that dnslab takes: subcommands, options and their values, and
//! for those that measure, the keys of `--set` and the whole experiment.

#[path = "../tests/end_to_end/documents.rs"]
mod documents;

use std::fs;
use std::path::Path;

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::arguments::{Arguments, Command, Plan, Run};
use crate::exit::Failure;
use crate::{capacity, load, replay, run};
use documents::{DocumentCommand, commands_of, files_of, root};

/// Files that commands of the documents read and that no document shows.
const FILES: [&str; 6] = ["queries.txt", "names.txt", "ca.pem", "ca.crt", "monday.pcap", "key.pem"];

/// What the documents call a population that was made or found.
const POPULATIONS: [&str; 2] = ["homes.toml", "monday.toml"];

#[test]
fn commands_in_the_documents_are_ones_that_dnslab_takes() {
    let folder = tempfile::tempdir().unwrap();
    for name in FILES {
        fs::write(folder.path().join(name), "www.example.org A\n").unwrap();
    }
    let population = dnslab_traffic::population::Population::typical().to_commented_toml();
    for name in POPULATIONS {
        fs::write(folder.path().join(name), &population).unwrap();
    }
    let (mut complaints, mut count) = (Vec::new(), 0);
    for document in documents() {
        for (name, content) in files_of(&document) {
            fs::write(folder.path().join(name), content).unwrap();
        }
        for command in commands_of(&document) {
            count += 1;
            if let Err(complaint) = check(&command, folder.path()) {
                let words = command.words.join(" ");
                complaints.push(format!("{}: dnslab {words}\n{complaint}", command.place));
            }
        }
    }
    assert!(count > 50, "only {count} commands found: they are not read");
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// The paths from the root of README.md and of all documents, in order.
fn documents() -> Vec<String> {
    let entries = fs::read_dir(root().join("docs")).expect("the documents are there").flatten();
    let names = entries.map(|entry| entry.file_name().into_string().expect("names are UTF-8"));
    let paths = names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}"));
    let mut found: Vec<String> = paths.chain(["README.md".to_owned()]).collect();
    found.sort();
    found
}

/// Files are those of `folder`, and those of the repository.
fn check(command: &DocumentCommand, folder: &Path) -> Result<(), String> {
    let mut words = vec!["dnslab".to_owned()];
    words.extend(command.words.iter().map(|word| with_paths(word, folder)));
    if command.words.first().is_some_and(|it| it == "replay")
        && !words.contains(&"--duration".into())
    {
        // Otherwise the capture would be read.
        words.extend(["--duration".to_owned(), "60s".to_owned()]);
    }
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(error) if is_asked_for(&error) => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    let checked = experiment(arguments.command.unwrap_or_default());
    match checked.map_err(|failure| failure.error.to_string()) {
        Err(problems) if are_of_this_machine(&problems) => Ok(()),
        checked => checked,
    }
}

/// The only problems are that this machine is no member of a FreeIPA domain, or that `dnslab lab get` has not fetched
/// a release.
fn are_of_this_machine(problems: &str) -> bool {
    const MISSING: [&str; 2] =
        ["error: there is no root folder `", "error: there is no authority file `/etc/ipa/"];
    let mut errors = problems.lines().filter(|line| line.starts_with("error")).peekable();
    errors.peek().is_some() && errors.all(|line| MISSING.iter().any(|it| line.starts_with(it)))
}

/// The help or the version.
fn is_asked_for(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
}

/// Checks the experiment of a command that measures.
fn experiment(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(Run { resume: Some(_), .. }) => {}
        Command::Run(arguments) => drop(run::experiment(&arguments)?),
        Command::Plan(Plan { experiment, set }) => {
            drop(run::experiment(&Run { experiment, set, ..Run::default() })?);
        }
        Command::Load(arguments) => drop(load::experiment(&arguments)?),
        Command::Capacity(arguments) => drop(capacity::plan(&arguments)?),
        Command::Replay(arguments) if replay::live_address(&arguments.capture)?.is_none() => {
            drop(replay::experiment(&arguments)?);
        }
        _ => {}
    }
    Ok(())
}

/// A word, or what follows its last `=`, as a path of a file that is there.
fn with_paths(word: &str, folder: &Path) -> String {
    let (key, value) = word.rsplit_once('=').map_or(("", word), |(key, value)| (key, value));
    // A build of the reader's.
    if value.starts_with("/opt/") {
        return format!("{key}=/bin/sh");
    }
    let is_of_repository = value.starts_with("experiments/") || value.starts_with("deploy/");
    let base = if is_of_repository { root() } else { folder.to_owned() };
    let path = base.join(value.trim_start_matches("./"));
    if value.is_empty() || !path.is_file() {
        return word.to_owned();
    }
    let separator = if key.is_empty() { "" } else { "=" };
    format!("{key}{separator}{}", path.display())
}
