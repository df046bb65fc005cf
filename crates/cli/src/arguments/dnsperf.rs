//! Options of dnsperf on a command line of dnslab: most would be unknown here, and some would mean another thing. They
//! are answered with ours.
//!
//! The words are those of docs/OTHER_TOOLS.md, so document and error cannot differ.

use std::ffi::OsString;

/// Has a row for each option: of dnsperf, of dnslab, and what differs.
const DOCUMENT: &str = include_str!("../../../../docs/OTHER_TOOLS.md");

/// The commands that a person who knows dnsperf writes them after.
const COMMANDS: [&str; 3] = ["load", "capacity", "replay"];

/// An option of dnsperf 2.10 to 2.14.
struct Known {
    letter: char,
    takes_value: bool,
    ours: Ours,
}

/// What does the same in `dnslab load`.
#[derive(Clone, Copy)]
enum Ours {
    Target,
    Port,
    Transport,
    Outstanding,
    Clients,
    /// A time in seconds.
    Seconds(&'static str),
    /// A value that both write in one way.
    Value(&'static str),
    /// Words without a value.
    Words(&'static [&'static str]),
    /// `NAME=VALUE`, each with an option of its own.
    Long,
    /// Nothing has to be said here, or it is not there.
    Nothing,
}

const fn known(letter: char, takes_value: bool, ours: Ours) -> Known {
    Known { letter, takes_value, ours }
}

const KNOWN: [Known; 27] = [
    known('f', true, Ours::Nothing),
    known('m', true, Ours::Transport),
    known('s', true, Ours::Target),
    known('p', true, Ours::Port),
    known('a', true, Ours::Value("--sources")),
    known('x', true, Ours::Nothing),
    known('d', true, Ours::Value("--queries")),
    known('c', true, Ours::Clients),
    known('T', true, Ours::Value("--workers")),
    known('n', true, Ours::Nothing),
    known('l', true, Ours::Seconds("--duration")),
    known('b', true, Ours::Nothing),
    known('t', true, Ours::Seconds("--timeout")),
    known('e', false, Ours::Words(&["--edns-payload", "4096"])),
    known('E', true, Ours::Value("--edns-option")),
    known('D', false, Ours::Words(&["--dnssec-ok"])),
    known('y', true, Ours::Value("--tsig")),
    known('q', true, Ours::Outstanding),
    known('Q', true, Ours::Value("--rate")),
    known('S', true, Ours::Nothing),
    known('u', false, Ours::Nothing),
    known('B', false, Ours::Nothing),
    known('v', false, Ours::Nothing),
    known('W', false, Ours::Nothing),
    known('h', false, Ours::Nothing),
    known('H', false, Ours::Nothing),
    known('O', true, Ours::Long),
];

/// Queries that dnsperf keeps outstanding over all clients without `-q`.
const WINDOW: u64 = 100;

/// One that was given.
struct Given {
    known: &'static Known,
    value: String,
}

/// What to say of a command line that is wrong, if it has options of dnsperf. `words` begin with the program.
pub(crate) fn answer(words: &[OsString]) -> Option<String> {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let command = words.get(1).filter(|command| COMMANDS.contains(&command.as_str()))?;
    let (given, rest) = divided(&words[2..]);
    if given.is_empty() {
        return None;
    }
    let mut text = String::from("error: options of dnsperf have other names here\n");
    for Given { known, value } in &given {
        let name = value.split('=').next().unwrap_or_default();
        // resperf has another `-m`.
        let is_maximum = known.letter == 'm' && value.parse::<f64>().is_ok();
        let table = match command == "capacity" && is_maximum {
            true => Table::Resperf,
            false => Table::Dnsperf,
        };
        let (ours, differs) = row(table, known.letter, name).unwrap_or(("not there", ""));
        let option = format!("-{} {value}", known.letter);
        let colon = if differs.is_empty() { "" } else { ": " };
        text.push_str(&format!(
            "  {}  {}{colon}{}\n",
            option.trim_end(),
            plain(ours),
            plain(differs)
        ));
    }
    match command.as_str() {
        "load" => {
            let same = same_load(&given, &rest).join(" ");
            text.push_str(&format!("  hint:    dnslab load {same}\n"));
        }
        other => text.push_str(&format!("  hint:    dnslab {other} --help has the options\n")),
    }
    text.push_str("  more:    docs/OTHER_TOOLS.md\n");
    Some(text)
}

/// Divides the words into options of dnsperf and all others.
fn divided(words: &[String]) -> (Vec<Given>, Vec<String>) {
    let (mut given, mut rest) = (Vec::new(), Vec::new());
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let mut letters = word.strip_prefix('-').unwrap_or_default().chars();
        let Some(known) = letters.next().and_then(find) else {
            rest.push(word.clone());
            continue;
        };
        let attached = letters.as_str().to_owned();
        // Both programs have it. Here it takes no value.
        let is_quiet =
            |value: Option<&&String>| value.is_none_or(|value| value.parse::<u64>().is_err());
        if known.letter == 'q' && attached.is_empty() && is_quiet(words.peek()) {
            rest.push(word.clone());
            continue;
        }
        let value = match known.takes_value && attached.is_empty() {
            true => words.next().cloned().unwrap_or_default(),
            false => attached,
        };
        given.push(Given { known, value });
    }
    (given, rest)
}

fn find(letter: char) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.letter == letter)
}

/// Whose options a table of the document is about.
#[derive(Clone, Copy, PartialEq)]
enum Table {
    Dnsperf,
    Resperf,
}

/// The second and the third column of the row for an option. A long option has a row for each name.
fn row(table: Table, letter: char, name: &str) -> Option<(&'static str, &'static str)> {
    let option = format!("-{letter}");
    let (dnsperf, resperf) = DOCUMENT.split_once("\n## resperf\n").unwrap_or((DOCUMENT, ""));
    let text = if table == Table::Dnsperf { dnsperf } else { resperf };
    let words = |cells: &[&'static str]| cells[0].split(['`', ' ']);
    let rows = text.lines().filter_map(cells);
    let rows: Vec<_> = rows.filter(|cells| words(cells).any(|word| word == option)).collect();
    let is_named = |cells: &&Vec<&'static str>| {
        letter == 'O'
            && !name.is_empty()
            && words(cells).any(|word| word.split('=').next() == Some(name))
    };
    let cells = rows.iter().find(is_named).or(rows.first())?;
    let cell = |place: usize| cells.get(place).copied().unwrap_or_default();
    Some((cell(1), cells.last().copied().unwrap_or_default()))
}

/// The cells of a row of a table. A bar with a backslash before it is one in the text.
fn cells(line: &'static str) -> Option<Vec<&'static str>> {
    let row = line.strip_prefix('|')?.strip_suffix('|')?;
    let (mut cells, mut from) = (Vec::new(), 0);
    for (place, _) in row.match_indices('|').filter(|(place, _)| !row[..*place].ends_with('\\')) {
        cells.push(row[from..place].trim());
        from = place + 1;
    }
    cells.push(row[from..].trim());
    Some(cells)
}

/// The first sentence of a cell, without marks.
fn plain(cell: &str) -> String {
    let sentence = cell.split_once(". ").map_or(cell, |(first, _)| first);
    let text = sentence.replace(['`', '*'], "").replace("\\|", "|");
    match text.trim() {
        "" => "nothing has to be said".to_owned(),
        text => text.to_owned(),
    }
}

/// The words of the same load here, after `dnslab load`.
fn same_load(given: &[Given], rest: &[String]) -> Vec<String> {
    let value = |letter: char| {
        let found = given.iter().rev().find(|given| given.known.letter == letter);
        found.map(|given| given.value.as_str())
    };
    let number = |letter: char| value(letter).and_then(|text| text.parse::<u64>().ok());
    let mut words = Vec::new();
    let is_named = rest.first().is_some_and(|word| !word.starts_with('-'));
    let server = value('s').or(rest.is_empty().then_some("127.0.0.1"));
    if let Some(server) = server.filter(|_| !is_named) {
        words.push(match (value('p'), server.contains(':')) {
            (Some(port), true) => format!("[{server}]:{port}"),
            (Some(port), false) => format!("{server}:{port}"),
            (None, _) => server.to_owned(),
        });
    }
    words.extend_from_slice(rest);
    // dnsperf has one window for all clients.
    let clients = number('c').unwrap_or(1).max(1);
    let window = match value('Q') {
        Some(_) => None,
        None => number('q').or(number('c').map(|_| WINDOW)),
    };
    let outstanding = window.map(|all| (all / clients).max(1).to_string());
    for Given { known, value } in given {
        let mut add = |option: &str, value: &str| words.extend([option, value].map(str::to_owned));
        match known.ours {
            Ours::Clients => {
                add(
                    "--clients",
                    &window.map_or(clients, |all| clients.min(all.max(1))).to_string(),
                );
                if let (Some(outstanding), None) = (&outstanding, number('q')) {
                    add("--outstanding", outstanding);
                }
            }
            Ours::Outstanding => {
                if let Some(outstanding) = &outstanding {
                    if number('c').is_none() {
                        add("--clients", "1");
                    }
                    add("--outstanding", outstanding);
                }
            }
            Ours::Seconds(option) => add(option, &format!("{value}s")),
            Ours::Value(option) => add(option, value),
            Ours::Words(own) => words.extend(own.iter().map(|word| (*word).to_owned())),
            Ours::Transport => {
                let transport = if value == "doh" { "doh2" } else { value.as_str() };
                add("--transport", transport);
                if !["udp", "tcp"].contains(&transport) {
                    words.push("--insecure".to_owned());
                }
            }
            Ours::Long => words.extend(long(value)),
            Ours::Target | Ours::Port | Ours::Nothing => {}
        }
    }
    // As always in dnsperf.
    words.push("--recursion-desired".to_owned());
    words
}

/// A long option of dnsperf, in words of ours.
fn long(option: &str) -> Vec<String> {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    match name {
        "doh-uri" => {
            let path = value.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
            path.map(|(_, path)| vec!["--http-path".to_owned(), format!("/{path}")])
                .unwrap_or_default()
        }
        "doh-method" => ["--http-method".to_owned(), value.to_lowercase()].to_vec(),
        "tls-sni" => ["--tls-name", value].map(str::to_owned).to_vec(),
        "num-queries-per-conn" => {
            ["--queries-per-connection", value, "--connection-quota", "exact"]
                .map(str::to_owned)
                .to_vec()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::{arguments, load};

    fn said(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        assert!(arguments::parse(&words).is_err(), "{line} is accepted");
        answer(&words)
    }

    /// The command that the answer names does what the user wanted: it is accepted.
    #[track_caller]
    fn check_hint(text: &str) -> String {
        let hint = text.lines().find_map(|line| line.strip_prefix("  hint:    "));
        let hint = hint.unwrap_or_else(|| panic!("no hint: {text}"));
        let words = hint.split(' ').map(str::to_owned);
        let parsed = arguments::parse(words).unwrap_or_else(|error| panic!("{hint}: {error}"));
        let Some(arguments::Command::Load(load)) = parsed.command else { panic!("{hint}") };
        load::experiment(&load).unwrap_or_else(|failure| panic!("{hint}: {}", failure.error));
        hint.to_owned()
    }

    /// What each option is given; those without a value are given nothing.
    fn example(letter: char) -> &'static str {
        match letter {
            's' => "192.0.2.7",
            'f' => "inet",
            'm' => "dot",
            'a' => "192.0.2.1",
            'd' => "/etc/passwd",
            'E' => "65001:c0ffee",
            'y' => "hmac-sha256:key.test:c2VjcmV0",
            'O' => "doh-method=GET",
            _ => "3",
        }
    }

    #[test]
    fn every_option_of_dnsperf_is_answered() {
        let help = Command::new("dnsperf").arg("-h").output().expect("dnsperf is installed");
        let help = String::from_utf8_lossy(&[help.stdout, help.stderr].concat()).into_owned();
        let options = help.lines().filter_map(|line| line.strip_prefix("  -")?.chars().next());
        let mut letters: Vec<char> = options.collect();
        assert_eq!(letters.len(), KNOWN.len(), "{help}");
        letters.sort_unstable();
        let mut ours: Vec<char> = KNOWN.iter().map(|known| known.letter).collect();
        ours.sort_unstable();
        assert_eq!(letters, ours);
        // Help is help in both.
        for known in KNOWN.iter().filter(|known| known.letter != 'h') {
            let letter = known.letter;
            assert!(
                row(Table::Dnsperf, letter, "").is_some(),
                "-{letter} has no row in the document"
            );
            let value =
                if known.takes_value { format!(" {}", example(letter)) } else { String::new() };
            for command in COMMANDS {
                // Too many words for each of them.
                let text = said(&format!("dnslab {command} 192.0.2.7 192.0.2.8 -{letter}{value}"));
                let text = text.unwrap_or_else(|| panic!("{command} -{letter} has no answer"));
                assert!(text.contains(&format!("  -{letter}{value}  ")), "{text}");
            }
            let doh = if letter == 'O' { "-m doh " } else { "" };
            let target = if letter == 's' { "" } else { "-s 192.0.2.7 " };
            let text = said(&format!("dnslab load {target}{doh}-{letter}{value}")).unwrap();
            let hint = check_hint(&text);
            if let Ours::Seconds(option) | Ours::Value(option) = known.ours {
                assert!(hint.contains(option), "-{letter}: {hint}");
                let (ours, _) = row(Table::Dnsperf, letter, "").unwrap();
                assert!(
                    ours.contains(option),
                    "-{letter} is {option} here, and the document says {ours}"
                );
            }
        }
    }

    #[test]
    fn a_command_line_of_dnsperf_becomes_one_of_dnslab() {
        let check = |line: &str, expected: &str| {
            let text = said(&format!("dnslab load {line}")).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(check_hint(&text), format!("dnslab load {expected} --recursion-desired"));
        };
        check("-s 127.0.0.1", "127.0.0.1");
        check("-s ::1 -p 5300 -c4 -q 400", "[::1]:5300 --clients 4 --outstanding 100");
        check("-s 192.0.2.7 -q 50", "192.0.2.7 --clients 1 --outstanding 50");
        check(
            "-s 192.0.2.7 -c 100 -q 10 -l 2.5",
            "192.0.2.7 --clients 10 --outstanding 1 --duration 2.5s",
        );
        check(
            "192.0.2.7 --warm-up 0s -Q 500 -q 10 -t 1",
            "192.0.2.7 --warm-up 0s --rate 500 --timeout 1s",
        );
        check("192.0.2.7 -q -v", "192.0.2.7 -q");
        check("192.0.2.7:5300 -s 127.0.0.1", "192.0.2.7:5300");
        check("-s 192.0.2.7 -c 10", "192.0.2.7 --clients 10 --outstanding 10");
        check("-s 192.0.2.7 -c 10 -Q 500", "192.0.2.7 --clients 10 --rate 500");
        check(
            "-s 192.0.2.7 -m doh -O doh-uri=https://dns.example.test/resolve -O doh-method=GET",
            "192.0.2.7 --transport doh2 --insecure --http-path /resolve --http-method get",
        );
        let text = said("dnslab capacity 192.0.2.7 -m 20000").unwrap();
        assert!(text.contains("-m 20000  dnslab capacity --max"), "{text}");
        let text = said("dnslab load -s 127.0.0.1").unwrap();
        assert!(text.contains("the server is an argument of its own"), "{text}");
        // What is wrong otherwise is clap's to say.
        assert_eq!(said("dnslab load"), None);
        assert_eq!(said("dnslab load 192.0.2.7 --durration 5s"), None);
        assert_eq!(said("dnslab run -s 127.0.0.1"), None);
    }
}
