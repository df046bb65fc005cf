//! Each remedy that dnslab prints about a run or a server, followed: what stands in backticks is given to the command that
//! printed it, by its real parser and with the real check of the settings. A remedy that the command refuses, that sets a
//! key which means nothing there, or that is none of a known program, fails here.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{bail, ensure};
use dnslab_analysis::Summary;
use dnslab_experiment::{FirstQueryError, WrongAnswer};
use dnslab_load::{AskError, CertificateFault, ConnectionEnd, Refusal, TlsRefusal};
use dnslab_record::{Caveat, Fact, InvalidReason, LoadMode, OpenPace, RunRecord, Session};
use dnslab_report::{Terminal, invalid_text, screen, table};
use dnslab_settings::{Experiment, OptionForm, find, keys};
use dnslab_traffic::Pace;
use dnslab_wire::{Method, Transport};

use crate::arguments::{self, Command};
use crate::{capacity, load, replay, run};

/// A command line as a remedy is printed for it.
#[derive(Clone, Copy, Debug)]
struct Line {
    words: &'static str,
    /// The transport of its load.
    transport: &'static str,
    is_running: bool,
    is_open: bool,
    /// As in `LoadFacts`.
    played: &'static str,
}

const RUN: Line = Line {
    words: "run encryption",
    transport: "tcp",
    is_running: false,
    is_open: false,
    played: "",
};
const LOAD: Line = Line {
    words: "load 192.0.2.7 --clients 10",
    transport: "udp",
    is_running: true,
    is_open: false,
    played: "",
};
const LINES: [Line; 7] = [
    RUN,
    LOAD,
    Line { words: "load 192.0.2.7 --clients 10 --rate 1000", is_open: true, ..LOAD },
    Line {
        words: "load 192.0.2.7 --clients 10 --rate 1000 --transport tcp",
        transport: "tcp",
        is_open: true,
        ..LOAD
    },
    Line {
        words: "load 192.0.2.7 --clients 10 --transport dot --insecure",
        transport: "dot",
        ..LOAD
    },
    Line {
        words: "load 192.0.2.7 --clients 10 --population typical --rate 1000",
        is_open: true,
        played: "population",
        ..LOAD
    },
    Line {
        words: "replay /etc/passwd 192.0.2.7 --duration 60s",
        is_open: true,
        played: "capture",
        ..LOAD
    },
];

impl Line {
    /// Whether this kind of caveat or reason can be that of such a load.
    fn can_have(&self, kind: &str) -> bool {
        let is_stream = self.transport != "udp";
        match kind {
            "closed-loop" | "window-not-full" => !self.is_open,
            "rate-missed" | "send-lag" | "pacing" => self.is_open,
            "answers-wait-for-next-query" => self.is_open && is_stream,
            "first-answers-wait" => is_stream,
            "certificate-not-verified" => self.transport == "dot",
            // Only several variants of servers that are started take turns.
            "turn-backlog" | "slower-than-slices" | "links-not-played" | "common-load-invalid" => {
                !self.is_running
            }
            "wrong-answers" | "wrong" => self.played.is_empty(),
            "late" => !self.played.is_empty(),
            "imported" => false,
            _ => true,
        }
    }
}

/// What is said of a run of this load with this caveat, on the screen, and on the page.
fn said(line: &Line, caveat: &Caveat, cpus: &str) -> [(Told, String); 2] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/samples/v1");
    let read = |name: &str| std::fs::read(folder.join(name)).expect("the sample is there");
    let session: Session = serde_json::from_slice(&read("session.json")).unwrap();
    let mut record: RunRecord = serde_json::from_slice(&read("runs/tcp-1/record.json")).unwrap();
    let session = Session {
        variants: vec!["tcp".to_owned()],
        baseline: "tcp".to_owned(),
        host: vec![Fact { name: "CPUs".to_owned(), value: cpus.to_owned() }],
        plan: session.plan.into_iter().filter(|case| case.variant == "tcp").take(1).collect(),
        ..session
    };
    record.load.transport = line.transport.parse().ok();
    record.load.played = line.played.parse().ok();
    if line.is_open {
        let pace = match record.load.played {
            None => OpenPace::constant(Pace::Constant),
            Some(_) => OpenPace::Clients,
        };
        record.load.mode = LoadMode::Open { rate_qps: 1_000.0, pace };
    }
    if line.is_running {
        record.server.kind = "external".to_owned();
    }
    record.caveats = vec![caveat.clone()];
    let summary = Summary::of(&session, std::slice::from_ref(&record));
    let lines = screen(&session, &[record], &summary, Terminal { width: 100, following: 0 });
    let pieces = lines.iter().map(|line| line.iter().map(|piece| piece.text.as_str()).collect());
    let screen: Vec<String> = pieces.collect();
    // A line break is no part of an option.
    let screen = screen.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    [(Told::OfThisLoad, screen), (Told::OfAnyLoad, table(&summary).notes.join("\n"))]
}

/// How much is known where a remedy is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// The load that was called. Each key must mean something to it.
    OfThisLoad,
    /// The words are the same for all loads, and may name keys with where they belong: "`server.cpus` of a server that
    /// is started".
    OfAnyLoad,
}

/// The texts in backticks.
fn spans(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Words of others: options of servers, variables of systemd, values.
const OTHERS: [&str; 9] = [
    "true",
    "reuseport",
    "CPUAffinity=",
    "CPUQuota=",
    "cpu.max",
    "cpu.cfs_quota_us",
    "encryption",
    "udp",
    "tcp",
];

/// Programs that remedies name.
const PROGRAMS: [&str; 9] =
    ["ip", "iptables", "nft", "sysctl", "openssl", "curl", "dig", "kdig", "taskset"];

/// Stands for what a reader has to fill in.
fn filled_in(option: &str) -> String {
    let values = [
        ("FILE", "/etc/passwd"),
        ("PATH", "/ask"),
        ("ZONE", "example.test"),
        ("NAME", "ns1.example.test"),
        ("ADDRESSES", "192.0.2.8,192.0.2.9"),
        ("DIRECTORY", "/tmp"),
    ];
    let filled = |word: &str| {
        let (before, last) = word.rsplit_once('=').map_or(("", word), |(key, last)| (key, last));
        let value = values.iter().find(|(name, _)| *name == last).map_or(last, |(_, value)| *value);
        if before.is_empty() { value.to_owned() } else { format!("{before}={value}") }
    };
    option.split(' ').map(filled).collect::<Vec<_>>().join(" ")
}

/// Words as a shell makes them.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    let mut words: Vec<String> = Vec::new();
    for (number, part) in parts {
        match number % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// The experiment of a command line, or what its parser or the check says.
fn experiment(line: &str) -> anyhow::Result<Experiment> {
    let words = std::iter::once("dnslab".to_owned()).chain(words(line));
    let arguments = arguments::parse(words)?;
    let found = match arguments.command.unwrap_or_default() {
        Command::Load(arguments) => load::experiment(&arguments),
        Command::Replay(arguments) => replay::experiment(&arguments),
        Command::Run(arguments) => run::experiment(&arguments).map(|(experiment, _)| experiment),
        Command::Capacity(arguments) => capacity::plan(&arguments)
            .and_then(|plan| plan.first_experiment().map_err(capacity::failure)),
        other => panic!("{other:?} has no experiment"),
    };
    found.map_err(|failure| failure.error)
}

fn has_option(command: &str, option: &str) -> bool {
    let program = arguments::program();
    let command = program.find_subcommand(command).expect("lines begin with commands");
    command
        .get_arguments()
        .any(|argument| argument.get_long() == Some(option.trim_start_matches("--")))
}

/// Follows what a text advises to somebody who called this line.
#[track_caller]
fn follow(line: &str, (scope, text): (Told, &str)) {
    for span in spans(text) {
        if let Err(why) = follow_one(line, scope, span) {
            panic!("`{span}` behind `dnslab {line}`: {why}\nin: {text}");
        }
    }
}

fn follow_one(line: &str, scope: Told, span: &str) -> anyhow::Result<()> {
    let accept = |option: &str| experiment(&format!("{line} {}", filled_in(option))).map(drop);
    let first = span.split(' ').next().unwrap_or_default();
    let command = line.split(' ').next().unwrap_or_default();
    if span.starts_with("--") {
        let is_bare = !span.contains([' ', '=']);
        return match is_bare {
            // Named, and not to be given as it stands.
            true if has_option(command, span) => Ok(()),
            _ => accept(span),
        };
    }
    if first == "dnslab" {
        let line = filled_in(span.trim_start_matches("dnslab ")).replace("--resume", "");
        return match line.trim() {
            "run" if has_option("run", "--resume") => Ok(()),
            line => experiment(line).map(drop),
        };
    }
    if let Some((key, value)) = span.split_once(" = ") {
        return accept(&format!("--set '{key}={}'", value.trim_matches('"')));
    }
    if let Some(key) = find(span) {
        let experiment = experiment(line)?;
        let is_used = scope == Told::OfAnyLoad
            || !key.is_overridable()
            || experiment.variants.iter().any(|variant| key.is_used(variant));
        ensure!(is_used, "the key means nothing there");
        return Ok(());
    }
    if let Some(rest) = span.strip_prefix("net.") {
        let path = format!("/proc/sys/net/{}", rest.replace('.', "/"));
        ensure!(Path::new(&path).exists(), "no {path}");
        return Ok(());
    }
    if PROGRAMS.contains(&first) || OTHERS.contains(&span) {
        return Ok(());
    }
    // The option of a server has no dots. The end of a key is a key that was cut short.
    match keys().find(|key| key.name() == span || key.path.split('.').next() == Some(span)) {
        Some(key) => bail!("`{}` is meant, and not written out", key.path),
        None if span.contains('.') => bail!("there is no such key"),
        None => Ok(()),
    }
}

/// The cases of a file of the report's own tests, each with its name.
fn cases(text: &'static str, name: &str) -> Vec<(String, serde_json::Value)> {
    let values = text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON"));
    let named = |value: serde_json::Value| Some((value.get(name)?.as_str()?.to_owned(), value));
    values.filter_map(named).collect()
}

#[test]
fn what_is_said_of_a_run_can_be_done() {
    let caveats = cases(include_str!("../../report/tests/words/caveats.jsonl"), "kind");
    let reasons = cases(include_str!("../../report/tests/words/reasons.jsonl"), "why");
    let mut followed = 0;
    for line in LINES {
        for (kind, case) in caveats.iter().filter(|(kind, _)| line.can_have(kind)) {
            let caveat: Caveat = serde_json::from_value(case.clone()).unwrap();
            let is_truncated_udp = kind == "truncated" && case.get("then").is_none();
            if is_truncated_udp && line.transport != "udp" {
                continue;
            }
            // A machine with room for more, and those without.
            for cpus in ["8: 0-7", "2: 0-1", "1: 0"] {
                for (scope, text) in said(&line, &caveat, cpus) {
                    followed += spans(&text).len();
                    follow(line.words, (scope, &text));
                }
            }
        }
        for (_, case) in reasons.iter().filter(|(kind, _)| line.can_have(kind)) {
            let reason: InvalidReason = serde_json::from_value(case.clone()).unwrap();
            let text = invalid_text(&reason);
            // A server whose options are named, or dnslab's own.
            let text = text.replace("`--max-connections`", "");
            followed += spans(&text).len();
            follow(line.words, (Told::OfThisLoad, &text));
        }
    }
    assert!(followed > 200, "only {followed} remedies were found: are they still in backticks?");
}

/// A kind without a case would be followed by nobody.
#[test]
fn every_caveat_has_a_case() {
    let schema: serde_json::Value = serde_json::from_str(&dnslab_report::summary_schema()).unwrap();
    let text = schema["$defs"]["Caveat"].to_string();
    let named = cases(include_str!("../../report/tests/words/caveats.jsonl"), "kind");
    let known: BTreeSet<&str> = named.iter().map(|(kind, _)| kind.as_str()).collect();
    let kinds: BTreeSet<&str> =
        text.split("\"const\":\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let missing: Vec<_> = kinds.difference(&known).collect();
    assert!(kinds.len() > 30 && missing.is_empty(), "no case for {missing:?}");
}

/// The errors of a first query, with the line that they are printed for.
fn first_queries() -> Vec<(String, FirstQueryError)> {
    let target: SocketAddr = "192.0.2.7:853".parse().unwrap();
    let line = |transport: Transport| match transport.is_encrypted() {
        false => format!("load 192.0.2.7 --transport {transport}"),
        true => format!("load 192.0.2.7 --transport {transport} --insecure"),
    };
    let mut all: Vec<(String, FirstQueryError)> = Vec::new();
    let mut add = |line: String, error: AskError| all.push((line, error.into()));
    for transport in Transport::ALL {
        for code in [
            libc_code::EPERM,
            libc_code::EACCES,
            libc_code::ENETUNREACH,
            libc_code::EHOSTUNREACH,
            libc_code::EINVAL,
            libc_code::ECONNREFUSED,
            libc_code::EIO,
        ] {
            let source = io::Error::from_raw_os_error(code);
            add(line(transport), AskError::Exchange { transport, target, source });
        }
        let source = io::Error::from(io::ErrorKind::TimedOut);
        add(line(transport), AskError::Exchange { transport, target, source });
        let refusals = [301, 400, 403, 404, 405, 413, 415, 418, 429, 503].map(Refusal::Status);
        let others = [Refusal::NoMessage, Refusal::Reset, Refusal::NotProcessed, Refusal::TooEarly];
        for method in [Method::Get, Method::Post].into_iter().filter(|_| transport.is_http()) {
            for refusal in refusals.into_iter().chain(others) {
                add(line(transport), AskError::Refused { transport, target, method, refusal });
            }
        }
        for refusal in [
            TlsRefusal::WantsCertificate,
            TlsRefusal::NoVersion,
            TlsRefusal::NoParameters,
            TlsRefusal::NoProtocol,
            TlsRefusal::UnknownName,
        ] {
            for has_own_offer in [false, true] {
                if transport.is_encrypted() && !(transport != Transport::Dot && has_own_offer) {
                    let end = ConnectionEnd::Closed;
                    let error = AskError::Tls { transport, target, refusal, has_own_offer, end };
                    add(line(transport), error);
                }
            }
        }
    }
    for fault in [
        CertificateFault::SelfSigned { would_do_as_authority: true },
        CertificateFault::SelfSigned { would_do_as_authority: false },
        CertificateFault::UnknownAuthority { issuer: String::new() },
        CertificateFault::Expired(Duration::ZERO),
        CertificateFault::NotYetValid(Duration::ZERO),
        wrong_name(Some("ns1.example.test")),
        wrong_name(None),
        CertificateFault::Other("odd".to_owned()),
    ] {
        // The option that is in force is replaced by another one of the two.
        let line = "load 192.0.2.7 --transport dot".to_owned();
        add(line, AskError::Certificate { target, fault });
    }
    let codes = (0..=24).map(WrongAnswer::Code);
    let edns = [1, 4, 16].map(WrongAnswer::Edns);
    for found in codes.chain(edns).chain([WrongAnswer::NoRecord(0)]) {
        let error = FirstQueryError::Wrong {
            target,
            transport: Transport::Udp,
            query: "ns1.example.test. A".to_owned(),
            found,
            expected: "NOERROR".to_owned(),
            asked: 1,
        };
        all.push((line(Transport::Udp), error));
    }
    all
}

fn wrong_name(would_do: Option<&str>) -> CertificateFault {
    CertificateFault::WrongName {
        asked: "192.0.2.7".to_owned(),
        is_address: true,
        names: vec!["ns1.example.test".to_owned()],
        has_address_as_name: false,
        would_do: would_do.map(str::to_owned),
    }
}

/// Numbers of Linux, the same on all its machines (errno(3)).
mod libc_code {
    pub(super) const EPERM: i32 = 1;
    pub(super) const EIO: i32 = 5;
    pub(super) const EACCES: i32 = 13;
    pub(super) const EINVAL: i32 = 22;
    pub(super) const ENETUNREACH: i32 = 101;
    pub(super) const ECONNREFUSED: i32 = 111;
    pub(super) const EHOSTUNREACH: i32 = 113;
}

#[test]
fn what_is_said_of_a_first_query_can_be_done() {
    let mut followed = 0;
    for (line, error) in first_queries() {
        for form in [OptionForm::Flag, OptionForm::Set] {
            let Some(remedy) = error.remedy(form) else { continue };
            // Without one of both options there is no encrypted load: each remedy adds it.
            let is_bare = line.ends_with("--transport dot");
            for span in spans(&remedy) {
                followed += 1;
                let gives_trust = ["authority", "insecure"].iter().any(|key| span.contains(key));
                let line = match is_bare && !gives_trust {
                    true => format!("{line} --insecure"),
                    false => line.clone(),
                };
                if let Err(why) = follow_one(&line, Told::OfThisLoad, span) {
                    panic!("`{span}` behind `dnslab {line}`: {why}\nin: {remedy}");
                }
            }
        }
    }
    assert!(followed > 200, "only {followed} remedies were found");
}

/// Remedies of other texts, and what must not pass here.
#[test]
fn other_hints_can_be_followed() {
    let scope = Told::OfThisLoad;
    let of_experiments = "`--set repeat.runs=8` `--set server.kind=bind` `--set baseline=tcp` `--set common.rate=2000`";
    follow("run encryption", (scope, of_experiments));
    let capacity = "capacity 192.0.2.7";
    follow(capacity, (scope, "`--max` `--from` `--repeats` `--workers`"));
    let refused = |line: &str, span: &str| {
        assert!(follow_one(line, scope, span).is_err(), "`{span}` behind `{line}`");
    };
    refused(capacity, "--no-such");
    refused("replay /etc/passwd 192.0.2.7 --duration 1s", "--set load.rate=5");
    refused("load 192.0.2.7", "load.truncatd");
    refused("load 192.0.2.7", "rate");
    refused("load 192.0.2.7 --transport tcp", "load.truncated");
    refused("load 192.0.2.7", "--expect BADVRS");
}

/// What the check of settings advises names keys that are there. Whether they fit depends on the rest of the file, which
/// its own tests have.
#[test]
fn helps_of_settings_name_keys_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for folder in ["../settings/tests/settings/snapshots", "src/snapshots"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("snapshots are there") {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            let helps = text.split("= help:").skip(1).map(|help| {
                help.split("\n\n")
                    .next()
                    .unwrap_or_default()
                    .split("\nerror")
                    .next()
                    .unwrap_or_default()
            });
            for span in helps.flat_map(spans) {
                let path = span.trim_start_matches("--set ").trim_matches('\'');
                let path = path.split(['=', ' ']).next().unwrap_or_default();
                let path = match path.strip_prefix("variant.") {
                    Some(within) => within.split_once('.').map_or(within, |(_, path)| path),
                    None => path,
                };
                let is_key = path.contains('.')
                    && path.split('.').all(|part| !part.is_empty())
                    && path.chars().all(|character| {
                        character.is_ascii_lowercase() || "._".contains(character)
                    });
                if is_key {
                    assert!(find(path).is_some(), "`{span}` names no key");
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 50, "only {seen} keys were found in helps");
}
