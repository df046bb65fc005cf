//! Every command in README.md and the documents is one that dnslab takes: subcommands, options and their values, and
//! for those that measure, the keys of `--set` and the whole experiment. So is every option in their text.

#[path = "../tests/end_to_end/documents.rs"]
mod documents;

use std::fs;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};
use documents::{DocumentCommand, commands_of, documents, files_of, key_and_value, root};

use crate::arguments::{Arguments, Command, Plan, Run};
use crate::exit::Failure;
use crate::{capacity, load, replay, run};

/// Files that commands of the documents read and that no document shows.
const FILES: [&str; 7] =
    ["queries.txt", "names.txt", "ca.pem", "ca.crt", "monday.pcap", "key.pem", "named.conf"];

/// What the documents call a population that was made or found.
const POPULATIONS: [&str; 2] = ["homes.toml", "monday.toml"];

#[test]
fn commands_in_the_documents_are_ones_that_dnslab_takes() {
    let folder = tempfile::tempdir().unwrap();
    for name in FILES {
        fs::write(folder.path().join(name), "www.example.test A\n").unwrap();
    }
    let zone = "corp.test. 60 SOA ns.corp.test. hostmaster.corp.test. 1 3600 600 86400 60\n";
    fs::write(folder.path().join("corp.zone"), zone).unwrap();
    let population = dnslab_traffic::population::Population::typical().to_commented_toml();
    for name in POPULATIONS {
        fs::write(folder.path().join(name), &population).unwrap();
    }
    let (mut complaints, mut count) = (Vec::new(), 0);
    for document in documents() {
        for (name, content) in files_of(&document) {
            fs::write(folder.path().join(name), content).unwrap();
        }
        for command in
            commands_of(&document).into_iter().filter(|command| command.program == "dnslab")
        {
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

#[test]
fn options_and_keys_in_the_documents_exist() {
    let mut known = vec!["--help".to_owned(), "--version".to_owned()];
    add_options(&Arguments::command(), &mut known);
    let (mut complaints, mut count) = (Vec::new(), 0);
    for document in documents() {
        // The first cell of its tables has the options of the other tool, and `|` within.
        let is_from = document == "docs/OTHER_TOOLS.md";
        let text = fs::read_to_string(root().join(&document)).unwrap();
        for (number, line) in text.lines().enumerate() {
            let line = line.replace("\\|", "/");
            let is_row = is_from && line.starts_with('|');
            let own: &str =
                if is_row { line.splitn(3, '|').last().unwrap_or_default() } else { &line };
            for code in own.split('`').skip(1).step_by(2) {
                let unknown = unknown_option(code, &known).or_else(|| unknown_key(code, is_row));
                complaints.extend(unknown.map(|name| format!("{document}:{}: {name}", number + 1)));
                count += usize::from(code.starts_with("--"));
            }
        }
    }
    assert!(count > 100, "only {count} options found: they are not read");
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// Adds the options of a command and of those below it.
fn add_options(command: &clap::Command, known: &mut Vec<String>) {
    let longs = command.get_arguments().filter_map(clap::Arg::get_long);
    known.extend(longs.map(|long| format!("--{long}")));
    command.get_subcommands().for_each(|below| add_options(below, known));
}

/// An option in code that begins with an option, or with `dnslab`.
fn unknown_option(code: &str, known: &[String]) -> Option<String> {
    if !code.starts_with("--") && !code.starts_with("dnslab ") {
        return None;
    }
    let mut options = code.split_whitespace().filter(|word| word.starts_with("--"));
    let unknown = options.find(|word| {
        let name = word.split(['=', '[', '.', ',']).next().unwrap_or_default();
        !known.iter().any(|other| other == name)
    });
    unknown.map(|word| format!("there is no option `{word}`"))
}

/// A key that stands alone in a cell of a table with keys.
fn unknown_key(code: &str, is_row: bool) -> Option<String> {
    let (group, name) = code.split_once('.').filter(|_| is_row)?;
    let is_word = |text: &str| {
        text.chars().all(|character| character.is_ascii_lowercase() || character == '_')
    };
    let is_group = dnslab_settings::keys().any(|key| key.path.split('.').next() == Some(group));
    let is_key = is_group && is_word(name) && !["json", "csv", "html"].contains(&name);
    (is_key && dnslab_settings::find(code).is_none()).then(|| format!("there is no key `{code}`"))
}

/// Files are those of `folder`, and those of the repository.
fn check(command: &DocumentCommand, folder: &Path) -> anyhow::Result<()> {
    let mut words = vec!["dnslab".to_owned()];
    words.extend(command.words.iter().map(|word| with_paths(word, folder)));
    if command.words.first().is_some_and(|word| word == "replay")
        && !words.contains(&"--duration".into())
    {
        // Otherwise the capture would be read.
        words.extend(["--duration".to_owned(), "60s".to_owned()]);
    }
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(error) if is_asked_for(&error) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    match experiment(arguments.command.unwrap_or_default()) {
        Err(failure) if !are_of_this_machine(&failure.error.to_string()) => Err(failure.error),
        _ => Ok(()),
    }
}

/// The only problems are that this machine is no member of a FreeIPA domain, or that `dnslab lab get` has not fetched
/// a release.
fn are_of_this_machine(problems: &str) -> bool {
    const MISSING: [&str; 2] =
        ["error: there is no root folder `", "error: there is no authority file `/etc/ipa/"];
    let mut errors = problems.lines().filter(|line| line.starts_with("error")).peekable();
    errors.peek().is_some()
        && errors.all(|line| MISSING.iter().any(|beginning| line.starts_with(beginning)))
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
        Command::Plan(Plan { asked }) => {
            drop(run::experiment(&Run { asked, ..Run::default() })?);
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
    let (key, value) = key_and_value(word);
    // A build of the reader's.
    if ["/opt/", "./old/", "./new/"].iter().any(|folder| value.starts_with(folder)) {
        return format!("{key}/bin/sh");
    }
    let is_of_repository = value.starts_with("experiments/") || value.starts_with("docs/");
    let base = if is_of_repository { root() } else { folder.to_owned() };
    let path = base.join(value.trim_start_matches("./"));
    if value.is_empty() || !path.is_file() {
        return word.to_owned();
    }
    format!("{key}{}", path.display())
}
