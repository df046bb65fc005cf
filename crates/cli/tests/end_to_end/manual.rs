//! The commands of README.md and the documents, run one after another as they stand there, on the host that they tell
//! of ([`ReadersHost`]). Loads are short: whatever a command says of [`SHORT`] is replaced, and what it does not say is
//! added ([`ADDED`]).

use std::collections::BTreeSet;
use std::fs;

use crate::command::Running;
use crate::documents::{DocumentCommand, commands_of, documents, files_of, root};
use crate::processes::wait_for;
use crate::readers_host::ReadersHost;

/// Options and keys of a load, and what they become: `--duration 5s` and `load.duration=5s` become 200 ms.
const SHORT: [(&str, &str); 13] = [
    ("--duration", "200ms"),
    ("--rate", "500"),
    ("--clients", "10"),
    ("load.duration", "200ms"),
    ("load.warm_up", "100ms"),
    ("load.clients", "10"),
    ("load.rate", "500"),
    ("common.duration", "200ms"),
    ("repeat.runs", "1"),
    ("--step-duration", "200ms"),
    // Whether a rate meets a latency while other tests hold the CPUs is chance, and the search for one that does is long.
    ("--objective", "lost<50%,mean<1s"),
    ("--max", "2000"),
    ("--repeats", "2"),
];

/// What a command says that has failed in a part, though its exit code is that of success.
const FAILURES: [&str; 4] = ["not run: ", "INVALID", "sampled: ", "points could not be pushed"];

/// The first words of commands.
type Begin = &'static [&'static str];

/// Options and keys with their values that are added to commands that begin like this, unless these say them.
const ADDED: [(Begin, &[(&str, &str)]); 10] = [
    (&["run"], &[("load.duration", "200ms"), ("load.warm_up", "100ms"), ("repeat.runs", "1")]),
    (&["run"], &[("load.clients", "10")]),
    (&["run", "encryption"], &[("common.duration", "200ms")]),
    // /etc/ipa/ca.crt, where each machine of the domain has it.
    (&["run", "idm"], &[("server.authority", "ca.crt")]),
    (&["load"], &[("load.duration", "200ms"), ("load.warm_up", "100ms"), ("load.clients", "10")]),
    // How late the generator is on a busy machine is not what is tested.
    (&["run"], &[("expect.lag_limit", "1m")]),
    (&["load"], &[("expect.lag_limit", "1m")]),
    (&["replay"], &[("expect.lag_limit", "1m")]),
    (&["capacity"], &[("expect.lag_limit", "1m")]),
    (&["capacity"], &[("--step-duration", "200ms"), ("--max", "2000"), ("--repeats", "2")]),
];

/// Commands that begin like this are run elsewhere, at a smaller size or with the peers that they need: the file, and
/// words in it.
const ELSEWHERE: [(Begin, &str, &str); 18] = [
    (&["run", "query-logging"], STUDIES, "query-logging"),
    (&["run", "forwarders"], STUDIES, "forwarders"),
    (&["run", "forwarders-idle"], STUDIES, "forwarders-idle"),
    (&["run", "forwarding"], STUDIES, "forwarding"),
    (&["run", "resolvers"], STUDIES, "resolvers"),
    (&["run", "experiments/resolver-versions.toml"], STUDIES, "resolver-versions"),
    (&["run", "scaling"], "crates/cli/tests/end_to_end/scaling.rs", "\"run\", \"scaling\""),
    (&["lab", "get"], "test", "lab get"),
    (&["record"], DNSTAP, "\"record\""),
    (&["replay", "unix:/run/named/dnstap.sock"], DNSTAP, "\"replay\""),
    (&["profile", "unix:/run/unbound/dnstap.sock"], DNSTAP, "\"profile\""),
    (&["load", "--watch"], SSH, "\"--watch\""),
    (&["run", "encryption", "--on"], "crates/cli/tests/end_to_end/served_there.rs", "\"--on\""),
    (&["load", "--hosts"], LOAD_HOSTS, "\"--hosts\""),
    (
        &["run", "encryption", "--set", "load.hosts=gen1.example.net,gen2.example.net"],
        LOAD_HOSTS,
        "load.hosts=gen1,gen2",
    ),
    (&["replay", "--watch"], SSH, "\"replay\""),
    (&["doctor", "--on"], SSH, "\"--on\""),
    (&["@ipa1.example.test"], "crates/cli/tests/end_to_end/zone_by_nsupdate.rs", "\"dig\""),
];
const SSH: &str = "crates/cli/tests/end_to_end/ssh.rs";
const LOAD_HOSTS: &str = "crates/cli/tests/end_to_end/load_hosts.rs";
const STUDIES: &str = "crates/cli/tests/end_to_end/studies.rs";
const DNSTAP: &str = "crates/cli/tests/end_to_end/dnstap.rs";

fn is_elsewhere(command: &DocumentCommand) -> bool {
    ELSEWHERE.iter().any(|(begin, ..)| begins_with(command, begin))
}

fn begins_with(command: &DocumentCommand, begin: &[&str]) -> bool {
    command.words.iter().map(String::as_str).take(begin.len()).eq(begin.iter().copied())
}

/// Runs a program of others with what follows it in its line, as a shell does, but for one second.
#[track_caller]
fn run_by_shell(reader: &ReadersHost, command: &DocumentCommand) {
    let from = command.line.find(&command.program).expect("its line has it");
    let mut words: Vec<&str> = command.line[from..].split(' ').collect();
    if let Some(option) = words.iter().position(|word| *word == "-l") {
        words[option + 1] = "1";
    }
    let printed = reader.output("sh", &["-c", &words.join(" ")]);
    let is_answered = match command.program.as_str() {
        "dig" => printed.contains("status: NOERROR"),
        "openssl" => printed.is_empty() || printed.contains(": OK"),
        // It says so at its end, unless that went into a file.
        _ => printed.is_empty() || !printed.contains("Queries completed:    0 "),
    };
    assert!(is_answered, "{}: no answer: {printed}", command.place);
}

fn shortened(command: &DocumentCommand) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut said = BTreeSet::new();
    for word in &command.words {
        let of_option =
            SHORT.iter().find(|(name, _)| words.last().is_some_and(|last| last == name));
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let of_key = SHORT.iter().find(|(name, _)| !value.is_empty() && key == *name);
        words.push(match (of_option, of_key) {
            (Some((_, short)), _) => (*short).to_owned(),
            (_, Some((name, short))) => format!("{name}={short}"),
            _ => word.clone(),
        });
        // The options of a load are named as its keys are.
        said.insert(key.replace('-', "_").replace("__", "load."));
        said.insert(key.to_owned());
    }
    let all = ADDED.iter().filter(|(begin, _)| begins_with(command, begin));
    for (name, value) in all.flat_map(|(_, added)| *added).filter(|(name, _)| !said.contains(*name))
    {
        match name.starts_with("--") {
            true => words.extend([(*name).to_owned(), (*value).to_owned()]),
            false => words.extend(["--set".to_owned(), format!("{name}={value}")]),
        }
    }
    // One run says nothing of the spread, so no gate could judge it.
    let is_gate = words.iter().any(|word| word == "--against");
    if let Some(runs) = words.iter_mut().find(|word| is_gate && *word == "repeat.runs=1") {
        *runs = "repeat.runs=2".to_owned();
    }
    words
}

/// Runs all commands of a document in one folder.
#[track_caller]
fn chapter(document: &str, prepare: impl FnOnce(&ReadersHost)) {
    let commands = commands_of(document);
    assert!(!commands.is_empty(), "{document} has no command");
    let serves =
        |command: &DocumentCommand| command.program == "dnslab" && command.words[0] == "serve";
    let mut reader = ReadersHost::make().with_servers();
    for (name, content) in files_of(document) {
        reader.room.write(&name, &content);
    }
    prepare(&reader);
    // Of two, one after the other has the addresses, and so have those of the host before the first.
    let mut server: Option<Running> = None;
    for command in commands {
        if is_elsewhere(&command) {
            continue;
        }
        if command.program != "dnslab" {
            run_by_shell(&reader, &command);
            continue;
        }
        let words = shortened(&command);
        eprintln!("{}: {}", command.place, words.join(" "));
        if serves(&command) {
            assert!(command.is_left, "{}: what follows it is never run", command.place);
            drop(server.take());
            reader.end_servers();
            let mut running = reader.start(&words);
            wait_for(
                "the server listens",
                || command.place.clone(),
                || {
                    assert!(running.is_running(), "{}: {}", command.place, running.so_far());
                    running.stderr().contains("serving ").then_some(())
                },
            );
            server = Some(running);
            continue;
        }
        // Whether such short measurements are within a limit, worse or unclear is chance.
        let judges = command.words.iter().any(|word| word == "compare" || word == "--against");
        let codes: &[i32] = if judges { &[0, 3, 4] } else { &[0] };
        let done = reader.start(&words).finish().exits_with_one_of(codes);
        for complaint in FAILURES {
            let said = done.stdout.contains(complaint) || done.stderr.contains(complaint);
            assert!(!said, "{}: `{complaint}`: {done}", command.place);
        }
    }
}

/// One test for each document, and the list of all of them.
macro_rules! chapters {
    ($($test:ident: $document:literal $(, $prepare:expr)?;)*) => {
        const CHAPTERS: &[&str] = &[$($document),*];
        $(
            #[test]
            fn $test() {
                chapter($document, |_reader| { $($prepare(_reader))? });
            }
        )*
    };
}

chapters! {
    readme: "README.md";
    commands: "docs/COMMANDS.md";
    gate: "docs/GATE.md", two_results_are_there;
    laboratory: "docs/LABORATORY.md";
    load: "docs/LOAD.md";
    method: "docs/METHOD.md";
    metrics: "docs/METRICS.md", prometheus_runs;
    other_tools: "docs/OTHER_TOOLS.md", dnsperf_was_run;
    populations: "docs/POPULATIONS.md";
    profile: "docs/PROFILE.md";
    replay: "docs/REPLAY.md";
    servers: "docs/SERVERS.md";
    start: "docs/START.md";
}

/// Old results of a real dnsperf.
fn dnsperf_was_run(reader: &ReadersHost) {
    let printed = reader.output("dnsperf", &["-s", "192.0.2.1", "-d", "queries.txt", "-l", "1"]);
    for name in ["udp.txt", "monday.txt", "tuesday.txt"] {
        reader.room.write(name, &printed);
    }
}

fn two_results_are_there(reader: &ReadersHost) {
    for name in ["main", "branch"] {
        let mut words = vec!["load", "192.0.2.1", "--queries", "queries.txt", "--results", name];
        words.extend(["--duration", "200ms", "--set", "repeat.runs=3"]);
        reader.run(&words);
        let made = fs::read_dir(reader.room.path().join(name)).unwrap().next().unwrap().unwrap();
        fs::create_dir_all(reader.room.path().join("results")).unwrap();
        fs::rename(made.path(), reader.room.path().join("results").join(name)).unwrap();
    }
}

fn prometheus_runs(reader: &ReadersHost) {
    reader.run(&["monitor", "up"]);
}

#[test]
fn every_command_of_every_document_is_run() {
    let with_commands =
        documents().into_iter().filter(|document| !commands_of(document).iter().all(is_elsewhere));
    let documents_run: Vec<String> = with_commands.collect();
    assert_eq!(documents_run, CHAPTERS, "documents with commands, and those that the tests run");
    let commands: Vec<DocumentCommand> =
        documents().iter().flat_map(|document| commands_of(document)).collect();
    for (begin, file, words) in ELSEWHERE {
        let is_there = commands.iter().any(|command| begins_with(command, begin));
        assert!(is_there, "no document has {begin:?} any more");
        let text = fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(words), "{begin:?} is not run in {file}");
    }
}
