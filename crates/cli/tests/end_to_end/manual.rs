//! The commands of the chapters that a newcomer types, run one after another as they stand there.
//!
//! Four things differ, so that they take seconds and meet nobody else:
//! - Loads are short: whatever a command says of [`SHORT`] is replaced, and what it does not say is added ([`ADDED`]).
//! - The port 5300 is a free one.
//! - `results/2...`, the results of the author's machine, are the newest ones here.
//! - What a command starts in the background ends with the chapter.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};

use dnslab_lab::ports;

use crate::command::Running;
use crate::documents::{DocumentCommand, commands_of, files_of};
use crate::processes::wait_for;
use crate::room::Room;

/// Options and keys of a load, and what they become: `--duration 5s` and `load.duration=5s` become 200 ms.
const SHORT: [(&str, &str); 6] = [
    ("--duration", "200ms"),
    ("load.duration", "200ms"),
    ("load.warm_up", "100ms"),
    ("load.clients", "10"),
    ("common.duration", "200ms"),
    ("repeat.runs", "1"),
];

/// Keys that are set for commands that begin like this, unless they say them themselves.
const ADDED: [(&[&str], &[&str]); 3] = [
    (&["run"], &["load.duration", "load.warm_up", "load.clients", "repeat.runs"]),
    (&["run", "encryption"], &["common.duration"]),
    (&["load"], &["load.duration", "load.warm_up", "load.clients"]),
];

fn shortened(command: &DocumentCommand, port: u16) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut said = Vec::new();
    for word in &command.words {
        let of_option = SHORT.iter().find(|(name, _)| words.last().is_some_and(|it| it == name));
        let of_key = SHORT.iter().find(|(name, _)| word.starts_with(&format!("{name}=")));
        words.push(match (of_option, of_key) {
            (Some((_, short)), _) => (*short).to_owned(),
            (_, Some((name, short))) => format!("{name}={short}"),
            _ => word.replace("5300", &port.to_string()),
        });
        said.extend(of_option.or(of_key).map(|(name, _)| name.replace("--", "load.")));
    }
    let begins_with = |begin: &[&str]| {
        command.words.iter().map(String::as_str).take(begin.len()).eq(begin.iter().copied())
    };
    for key in ADDED.iter().filter(|(begin, _)| begins_with(begin)).flat_map(|(_, keys)| *keys) {
        if !said.iter().any(|it| it == key) {
            let (_, short) = SHORT.iter().find(|(name, _)| name == key).expect("it is in the list");
            words.extend(["--set".to_owned(), format!("{key}={short}")]);
        }
    }
    words
}

/// Runs all commands of a chapter in one folder.
#[track_caller]
fn chapter(document: &str, at_least: usize) {
    let room = Room::with_load();
    for (name, content) in files_of(document) {
        room.write(&name, &content);
    }
    let port = ports::free(Ipv4Addr::LOCALHOST.into()).expect("there are free ports").plain;
    let commands = commands_of(document);
    assert!(commands.len() >= at_least, "{document} has only {} commands", commands.len());
    let mut background: Vec<Running> = Vec::new();
    for command in commands {
        let words = with_results(shortened(&command, port), &room);
        let mut running = room.start(&words);
        if command.is_background {
            let answers = || {
                assert!(running.is_running(), "{}: {}", command.place, running.so_far());
                TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok().then_some(())
            };
            wait_for("the server listens", || command.place.clone(), answers);
            background.push(running);
            continue;
        }
        eprintln!("{}: {}", command.place, words.join(" "));
        running.finish().exits_with(0);
    }
    drop(background);
}

/// A results directory has its time in its name: the one of the document becomes the newest one here.
fn with_results(words: Vec<String>, room: &Room) -> Vec<String> {
    let newest = || {
        let entries = fs::read_dir(room.path().join("results")).into_iter().flatten().flatten();
        entries.map(|entry| format!("results/{}", entry.file_name().display())).max()
    };
    let is_results = |word: &str| word.starts_with("results/2");
    words
        .into_iter()
        .map(|word| if is_results(&word) { newest().unwrap_or(word) } else { word })
        .collect()
}

#[test]
fn the_first_measurement_works_as_it_is_written() {
    chapter("docs/FIRST.md", 6);
}

#[test]
fn what_is_read_in_a_report_can_be_made() {
    chapter("docs/READING.md", 3);
}
