//! What can be checked of the sources themselves: the rules of `docs/ARCHITECTURE.md` and
//! `CONTRIBUTING.md` that neither the compiler nor Clippy knows.
//!
//! Every rule is a function from one file's text to findings, and is shown a text that breaks it
//! and one that keeps it. Rules look at code only: comments and the contents of strings are
//! blanked out first. Each finding says where, what, and what to do instead.

use std::fs;
use std::path::Path;

/// A breach of a rule.
#[derive(Debug, PartialEq)]
struct Finding {
    /// Line in the file, from 1.
    line: usize,
    /// What is there, and what to do instead.
    message: String,
}

/// One Rust file as the rules see it.
struct Source<'a> {
    /// Path from the root of the workspace, with `/` between its parts.
    path: &'a str,
    /// The code: comments, strings and characters are blank, the lines are where they were.
    code: String,
}

/// All rules for Rust files.
const RULES: [fn(&Source<'_>) -> Vec<Finding>; 9] = [
    unsafe_outside_sys,
    clock_outside_its_module,
    process_outside_lab,
    socket_outside_its_module,
    ignored_test,
    allowed_lint,
    unfinished_code,
    vague_name,
    long_file,
];

/// A file longer than this many lines is to be divided: it holds more than one subject, or one that
/// nobody reads in one go.
const MAX_FILE: usize = 600;

/// Files that are longer than [`MAX_FILE`], with their present length: it may only fall, and
/// the entry with it.
const LONG_FILES: &[(&str, usize)] = &[];

/// On which of the workspace's crates each one may depend (`docs/ARCHITECTURE.md`, "The house").
/// Dependencies of tests alone are free.
const EDGES: [(&str, &[&str]); 11] = [
    ("wire", &[]),
    ("traffic", &["wire"]),
    ("measure", &["wire"]),
    ("transport", &[]),
    ("responder", &["wire", "traffic", "transport"]),
    ("report", &["measure"]),
    ("load", &["wire", "traffic", "measure", "transport"]),
    ("lab", &["wire", "measure"]),
    ("experiment", &["wire", "traffic", "measure", "load", "lab"]),
    // Outside the house: it measures the binary, and may use whatever helps it.
    ("xtask", &["wire", "traffic", "measure", "lab"]),
    ("cli", &["wire", "traffic", "measure", "load", "responder", "lab", "experiment", "report"]),
];

/// Crates that get the time as an argument.
const CRATES_WITHOUT_CLOCK: [&str; 5] = ["wire", "traffic", "measure", "report", "transport"];

/// The files of `load` that may read a clock: the timeline, and where its zero is set.
const CLOCKS_OF_LOAD: [&str; 3] = [
    "crates/load/src/clock.rs",
    "crates/load/src/engine.rs",
    // The zero of a simulated timeline: no figure depends on it.
    "crates/load/src/simulation/network.rs",
];

/// The files outside `load` and `responder` that may open a socket: they look which ports are free,
/// and who has them, and ask servers for what they counted.
const SOCKETS_OF_LAB: [&str; 4] = [
    "crates/lab/src/ports.rs",
    "crates/lab/src/sockets.rs",
    "crates/lab/src/server/chaos.rs",
    "crates/lab/src/server/http.rs",
];

/// Packages that must not be in the dependency tree, with what to use instead; `deny.toml` has the
/// reasons.
const BANNED_PACKAGES: [(&str, &str); 5] = [
    ("aws-lc-rs", "ring"),
    ("aws-lc-sys", "ring"),
    ("openssl", "rustls"),
    ("openssl-sys", "rustls"),
    ("native-tls", "rustls"),
];

#[test]
fn sources_keep_the_rules() {
    let root = root();
    let mut complaints = Vec::new();
    let mut paths = Vec::new();
    for folder in ["crates", "fuzz", "docs", "deploy"] {
        collect(&root.join(folder), folder, &mut paths);
    }
    for entry in fs::read_dir(&root).unwrap().flatten() {
        paths.push(entry.file_name().into_string().unwrap());
    }
    let mut rust_files = 0;
    for path in &paths {
        let read = || fs::read_to_string(root.join(path)).unwrap();
        let findings = if path.ends_with(".rs") {
            rust_files += 1;
            let source = Source::new(path, &read());
            RULES.iter().flat_map(|rule| rule(&source)).collect()
        } else if path.ends_with("/Cargo.toml") && path.starts_with("crates/") {
            forbidden_edges(part_of_path(path, 1), &read())
        } else if path.ends_with(".md") {
            let folder = Path::new(path).parent().unwrap_or(Path::new(""));
            dead_links(&read(), &|link| root.join(folder).join(link).exists())
        } else if path == "Cargo.lock" {
            banned_packages(&read())
        } else {
            Vec::new()
        };
        complaints.extend(findings.iter().map(|it| format!("{path}:{}: {}", it.line, it.message)));
    }
    for (path, _) in LONG_FILES {
        if !paths.iter().any(|known| known == path) {
            complaints.push(format!("{path}: is gone; take it out of LONG_FILES in this test"));
        }
    }
    assert!(rust_files > 100, "only {rust_files} Rust files found: the walk is broken");
    complaints.sort();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// The folder of the workspace.
fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Adds the paths of all files below `folder` that people wrote; `name` is its path from the root.
fn collect(folder: &Path, name: &str, paths: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let file_name = entry.file_name().into_string().unwrap();
        let path = format!("{name}/{file_name}");
        match file_name.as_str() {
            "node_modules" | "target" | "corpus" | "artifacts" => {}
            _ if entry.path().is_dir() => collect(&entry.path(), &path, paths),
            _ => paths.push(path),
        }
    }
}

/// The part of a path with this number, from 0; empty if there is none.
fn part_of_path(path: &str, number: usize) -> &str {
    path.split('/').nth(number).unwrap_or_default()
}

/// `unsafe` belongs into the `sys` modules of `load` and `responder`, where batch system calls are,
/// of `lab`, which opens TUN devices, and of `xtask`, which reads a BPF map.
fn unsafe_outside_sys(source: &Source<'_>) -> Vec<Finding> {
    let may = matches!(source.crate_name(), "lab" | "load" | "responder" | "xtask");
    if may && source.path.contains("/src/sys/") {
        return Vec::new();
    }
    source.each(&source.code, &["unsafe"], |word| {
        format!("`{word}`: use a safe call (rustix has most), or move it into load's `sys`")
    })
}

/// Pure crates read no clock; the load engine has one timeline.
fn clock_outside_its_module(source: &Source<'_>) -> Vec<Finding> {
    let name = source.crate_name();
    let bound = CRATES_WITHOUT_CLOCK.contains(&name)
        || (name == "load" && !CLOCKS_OF_LOAD.contains(&source.path));
    if !bound {
        return Vec::new();
    }
    let readings = ["Instant::now", "SystemTime::now", ".elapsed()", "clock_gettime"];
    source.each(source.production(), &readings, |call| {
        format!("`{call}` reads a clock: take the time as an argument (in load, from `Clock`)")
    })
}

/// Only `lab` starts processes: there they have a guard, and are counted and ended. `xtask` builds
/// and compares whole programs.
fn process_outside_lab(source: &Source<'_>) -> Vec<Finding> {
    if matches!(source.crate_name(), "lab" | "xtask") {
        return Vec::new();
    }
    let mut found = Vec::new();
    for at in words(source.production(), "process") {
        let rest = source.production()[at + "process".len()..].strip_prefix("::");
        let imports = |list: &str| {
            let list = list.split('}').next().unwrap_or_default();
            !words(list, "Command").is_empty()
        };
        let names = rest.is_some_and(|rest| {
            words(rest, "Command").first() == Some(&0)
                || rest.strip_prefix('{').is_some_and(imports)
        });
        if names {
            let message = "`process::Command`: only lab starts processes; call `dnslab_lab`";
            found.push(source.finding(at, message.to_owned()));
        }
    }
    found
}

/// Client sockets are `load`'s, server sockets `responder`'s.
fn socket_outside_its_module(source: &Source<'_>) -> Vec<Finding> {
    let owner = matches!(source.crate_name(), "load" | "responder");
    if owner || SOCKETS_OF_LAB.contains(&source.path) {
        return Vec::new();
    }
    let kinds = ["TcpStream", "TcpListener", "UdpSocket", "socket2", "rustix::net"];
    source.each(source.production(), &kinds, |kind| {
        format!("`{kind}`: client sockets belong to load (`dnslab_load::ask`), the others to lab")
    })
}

/// A test that cannot run says so, or fails; it is never left out in silence.
fn ignored_test(source: &Source<'_>) -> Vec<Finding> {
    source.attributes_with("ignore", "an ignored test: run it, or say in its output why it cannot")
}

/// `#[expect]` complains when its reason is gone, `#[allow]` never.
fn allowed_lint(source: &Source<'_>) -> Vec<Finding> {
    source.attributes_with("allow", "an allowed lint: write #[expect(lint, reason = \"...\")]")
}

/// What was left over from writing it.
fn unfinished_code(source: &Source<'_>) -> Vec<Finding> {
    source.each(&source.code, &["todo!", "unimplemented!", "dbg!"], |left| {
        format!("`{left}`: finish it, or return an error that says what is missing")
    })
}

/// A module is named for what it holds, in the field's words.
fn vague_name(source: &Source<'_>) -> Vec<Finding> {
    const VAGUE: [&str; 6] = ["util", "utils", "common", "misc", "helpers", "imp"];
    let message = |name: &str| format!("`{name}` says nothing: name the module for what it holds");
    let stem = source.path.strip_suffix(".rs").unwrap_or(source.path);
    let in_path = stem.split('/').filter(|part| VAGUE.contains(part));
    let mut found: Vec<Finding> =
        in_path.map(|name| Finding { line: 1, message: message(name) }).collect();
    for name in VAGUE {
        for at in words(&source.code, name) {
            if source.code[..at].trim_end().ends_with("mod") {
                found.push(source.finding(at, message(name)));
            }
        }
    }
    found
}

/// Files of `src` stay short enough to be read at one sitting.
fn long_file(source: &Source<'_>) -> Vec<Finding> {
    if !source.path.contains("/src/") {
        return Vec::new();
    }
    let known = LONG_FILES.iter().find(|(path, _)| *path == source.path);
    length_within(source.code.lines().count(), known.map(|(_, length)| *length))
}

/// Holds the length of a file against its entry in [`LONG_FILES`], if it has one.
fn length_within(lines: usize, known: Option<usize>) -> Vec<Finding> {
    let message = match known {
        Some(known) if lines > known => format!("{lines} lines, it had {known}: divide it"),
        Some(known) if lines < known && lines > MAX_FILE => {
            format!("{lines} lines, fewer than before: write {lines} in LONG_FILES of this test")
        }
        Some(_) if lines <= MAX_FILE => {
            "short enough now: take it out of LONG_FILES in this test".to_owned()
        }
        None if lines > MAX_FILE => {
            format!("{lines} lines, more than {MAX_FILE}: divide it by what it holds")
        }
        _ => return Vec::new(),
    };
    vec![Finding { line: lines, message }]
}

/// Dependencies of the crate `name` on others of the workspace that the house has no stairs for.
fn forbidden_edges(name: &str, manifest: &str) -> Vec<Finding> {
    let Some((_, allowed)) = EDGES.iter().find(|(known, _)| *known == name) else {
        let message = format!("crate `{name}` has no entry in EDGES of this test: give it one");
        return vec![Finding { line: 1, message }];
    };
    let (mut found, mut counts) = (Vec::new(), false);
    for (number, line) in manifest.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        if line.starts_with('[') {
            counts = line.contains("dependencies") && !line.contains("dev-dependencies");
        }
        if !counts {
            continue;
        }
        // The name may be a key, the end of a table's name, or what `package` renames.
        for (at, prefix) in line.match_indices("dnslab-") {
            let rest = &line[at + prefix.len()..];
            let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric());
            let other = &rest[..end.unwrap_or(rest.len())];
            if !allowed.contains(&other) {
                let message = format!(
                    "{name} must not depend on {other}: take what it needs as an argument, or \
                     move the type down to a crate that both may use"
                );
                found.push(Finding { line: number + 1, message });
            }
        }
    }
    found
}

/// Packages of a `Cargo.lock` that are banned, or come from elsewhere than crates.io.
fn banned_packages(lock: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, line) in lock.lines().enumerate() {
        let value_of = |key: &str| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"');
        let message = match (value_of("name"), value_of("source")) {
            (Some(name), _) => {
                let banned = BANNED_PACKAGES.iter().find(|(banned, _)| *banned == name);
                banned.map(|(_, instead)| {
                    format!("`{name}` is banned, use {instead}: `cargo tree -i {name}` tells whose it is")
                })
            }
            (_, Some(source)) if !source.contains("crates.io-index") => {
                Some(format!("`{source}` is not crates.io: use a published version"))
            }
            _ => None,
        };
        found.extend(message.map(|message| Finding { line: number + 1, message }));
    }
    found
}

/// Links of a Markdown file to files that do not exist; `exists` is asked for paths relative to
/// the file's own folder. Pictures are left to the eye.
fn dead_links(text: &str, exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut rest = line;
        while let Some(at) = rest.find("](") {
            let is_picture = rest[..at].rfind('[').is_some_and(|it| rest[..it].ends_with('!'));
            let target = rest[at + 2..].split(')').next().unwrap_or_default();
            rest = &rest[at + 2..];
            let file = target.split('#').next().unwrap_or_default();
            let elsewhere = file.is_empty() || file.contains("://") || file.contains('<');
            if !is_picture && !elsewhere && !exists(file) {
                let message = format!("`{file}` does not exist: mend the link");
                found.push(Finding { line: number + 1, message });
            }
        }
    }
    found
}

impl<'a> Source<'a> {
    /// Takes a file apart.
    fn new(path: &'a str, text: &str) -> Self {
        Self { path, code: code_of(text) }
    }

    /// Name of the folder under `crates`; `fuzz` for the fuzz targets.
    fn crate_name(&self) -> &str {
        if self.path.starts_with("crates/") { part_of_path(self.path, 1) } else { "fuzz" }
    }

    /// The code without the tests, which stand last in a file, or fill it.
    fn production(&self) -> &str {
        let holds_tests = ["/tests/", "/tests.rs", "/examples/", "/benches/"];
        if holds_tests.iter().any(|part| self.path.contains(part)) {
            return "";
        }
        let attribute = "#[cfg(test)]";
        let tests = self.code.match_indices(attribute).find(|(at, _)| {
            let rest = self.code[at + attribute.len()..].trim_start();
            rest.trim_start_matches("pub(crate) ").starts_with("mod ")
        });
        tests.map_or(self.code.as_str(), |(at, _)| &self.code[..at])
    }

    /// A finding for every place in `code`, a beginning of the file's code, where a word stands.
    fn each(&self, code: &str, wanted: &[&str], message: impl Fn(&str) -> String) -> Vec<Finding> {
        let places =
            wanted.iter().flat_map(|word| words(code, word).into_iter().map(move |at| (at, word)));
        places.map(|(at, word)| self.finding(at, message(word))).collect()
    }

    /// A finding for every attribute that holds a word.
    fn attributes_with(&self, word: &str, message: &str) -> Vec<Finding> {
        let mut found = Vec::new();
        for (at, _) in self.code.match_indices('#') {
            let rest = self.code[at + 1..].trim_start_matches('!');
            let mut depth = 0;
            let end = rest.find(|letter| {
                depth += i32::from(letter == '[') - i32::from(letter == ']');
                depth == 0
            });
            if rest.starts_with('[') && !words(&rest[..end.unwrap_or(rest.len())], word).is_empty()
            {
                found.push(self.finding(at, message.to_owned()));
            }
        }
        found
    }

    /// A finding at an offset in the code.
    fn finding(&self, at: usize, message: String) -> Finding {
        Finding { line: self.code[..at].matches('\n').count() + 1, message }
    }
}

/// Offsets at which `word` stands by itself, not as a part of a longer one.
fn words(code: &str, word: &str) -> Vec<usize> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let alone = |at: usize| {
        let goes_on = word.ends_with(is_part) && code[at + word.len()..].starts_with(is_part);
        let began_before = word.starts_with(is_part) && code[..at].ends_with(is_part);
        !goes_on && !began_before
    };
    code.match_indices(word).map(|(at, _)| at).filter(|at| alone(*at)).collect()
}

/// The text with every comment, string and character literal blanked out.
fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let (length, is_code) = token(rest);
        let (token, after) = rest.split_at(length);
        if is_code {
            code.push_str(token);
        } else {
            code.extend(token.chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }));
        }
        rest = after;
    }
    code
}

/// The length in octets of the first token of a text that is not empty, and whether it is code
/// (The Rust Reference, "Tokens" and "Comments").
fn token(text: &str) -> (usize, bool) {
    let first = text.chars().next().expect("the text is not empty");
    let until = |end: Option<usize>| (end.unwrap_or(text.len()), false);
    if text.starts_with("//") {
        return until(text.find('\n'));
    }
    if text.starts_with("/*") {
        return until(end_of_block(text));
    }
    if first == '"' {
        return until(end_of_quoted(text, '"'));
    }
    if first == '\'' {
        let mut following = text.chars().skip(1);
        let (one, two) = (following.next(), following.next());
        let is_character = one == Some('\\') || two == Some('\'');
        return if is_character { until(end_of_quoted(text, '\'')) } else { (1, true) };
    }
    if first.is_alphanumeric() || first == '_' {
        let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let (word, rest) = text.split_at(end.unwrap_or(text.len()));
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        if matches!(word, "r" | "br" | "cr") && rest[hashes..].starts_with('"') {
            let closing = format!("\"{}", "#".repeat(hashes));
            let start = word.len() + hashes + 1;
            return until(text[start..].find(&closing).map(|at| start + at + closing.len()));
        }
        return (word.len(), true);
    }
    (first.len_utf8(), true)
}

/// Where a quoted text ends, behind its closing `quote`.
fn end_of_quoted(text: &str, quote: char) -> Option<usize> {
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' {
            letters.next();
        } else if letter == quote {
            return Some(at + 1);
        }
    }
    None
}

/// Where a block comment ends; they nest.
fn end_of_block(text: &str) -> Option<usize> {
    let (mut depth, mut at) = (0, 0);
    while let Some(next) = text[at..].find(['/', '*']) {
        at += next;
        let step = match &text.as_bytes()[at..] {
            [b'/', b'*', ..] => 1,
            [b'*', b'/', ..] => -1,
            _ => 0,
        };
        depth += step;
        at += if step == 0 { 1 } else { 2 };
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

mod tests {
    use super::*;

    /// The lines of `text` that a rule complains about, in order.
    #[track_caller]
    fn check(rule: fn(&Source<'_>) -> Vec<Finding>, path: &str, text: &str, lines: &[usize]) {
        let mut found: Vec<usize> =
            rule(&Source::new(path, text)).iter().map(|finding| finding.line).collect();
        found.sort_unstable();
        assert_eq!(found, lines, "{path}:\n{text}");
    }

    #[test]
    fn unsafe_code_is_found() {
        let text = "fn a() {\n    unsafe { b() }\n}\n";
        check(unsafe_outside_sys, "crates/load/src/worker/mod.rs", text, &[2]);
        check(unsafe_outside_sys, "crates/report/src/sys/mod.rs", text, &[2]);
        check(unsafe_outside_sys, "crates/wire/tests/a.rs", text, &[2]);
        check(unsafe_outside_sys, "crates/load/src/sys/mod.rs", text, &[]);
        let words = "// unsafe\n#![deny(unsafe_code)]\nlet a = \"unsafe\"; /* unsafe */";
        check(unsafe_outside_sys, "crates/wire/src/lib.rs", words, &[]);
    }

    #[test]
    fn clocks_are_found() {
        let text = "let a = Instant::now();\nSystemTime::now();\na.elapsed();\nend.elapsed;";
        check(clock_outside_its_module, "crates/report/src/page.rs", text, &[1, 2, 3]);
        check(clock_outside_its_module, "crates/load/src/worker/mod.rs", text, &[1, 2, 3]);
        check(clock_outside_its_module, "crates/load/src/clock.rs", text, &[]);
        check(clock_outside_its_module, "crates/lab/src/sampler.rs", text, &[]);
        check(clock_outside_its_module, "crates/load/tests/outcomes.rs", text, &[]);
        let test = "use std::time::Instant;\n#[cfg(test)]\nmod tests { Instant::now() }";
        check(clock_outside_its_module, "crates/wire/src/lib.rs", test, &[]);
        // Only a module of tests ends the production code.
        let one = "#[cfg(test)]\nuse a::B;\nfn c() { Instant::now(); }";
        check(clock_outside_its_module, "crates/wire/src/lib.rs", one, &[3]);
    }

    #[test]
    fn processes_are_found() {
        let text = "use std::process::Command;\nuse std::process::{\n  Child, Command,\n};\n";
        check(process_outside_lab, "crates/cli/src/run.rs", text, &[1, 2]);
        check(process_outside_lab, "crates/lab/src/guard.rs", text, &[]);
        check(process_outside_lab, "crates/cli/tests/run.rs", text, &[]);
        let others = "use std::process::{ExitCode, id};\nuse clap::Command;\nprocess::exit(1);";
        check(process_outside_lab, "crates/cli/src/main.rs", others, &[]);
    }

    #[test]
    fn sockets_are_found() {
        let text = "use std::net::{SocketAddr, UdpSocket};\nlet a = socket2::Socket::new();\n";
        check(socket_outside_its_module, "crates/experiment/src/run/case.rs", text, &[1, 2]);
        check(socket_outside_its_module, "crates/lab/src/ready.rs", text, &[1, 2]);
        check(socket_outside_its_module, "crates/lab/src/ports.rs", text, &[]);
        check(socket_outside_its_module, "crates/load/src/ask.rs", text, &[]);
        let test =
            "use std::net::SocketAddr;\n#[cfg(test)]\nmod tests { use std::net::UdpSocket; }";
        check(socket_outside_its_module, "crates/lab/src/readings.rs", test, &[]);
    }

    #[test]
    fn attributes_are_found() {
        let path = "crates/wire/tests/a.rs";
        let ignored = "#[test]\n#[ignore = \"slow\"]\nfn a() {}\n#[cfg_attr(x, ignore)]\nfn b() {}";
        check(ignored_test, path, ignored, &[2, 4]);
        check(ignored_test, path, "// #[ignore]\n#[test]\nfn ignore() { a[ignore] }", &[]);
        let allowed = "#![allow(dead_code)]\n#[cfg_attr(x,\n    allow(b))]\nfn a() {}";
        check(allowed_lint, path, allowed, &[1, 2]);
        let expected = "#[expect(a, reason = \"allow(b)\")]\n#[warn(allow_attributes)]\nallow(1);";
        check(allowed_lint, path, expected, &[]);
    }

    #[test]
    fn unfinished_code_is_found() {
        let path = "crates/wire/src/lib.rs";
        check(unfinished_code, path, "todo!();\ndbg!(1);\nunimplemented!(\"x\");", &[1, 2, 3]);
        check(unfinished_code, path, "// todo!()\nlet todo = \"dbg!(1)\"; my_todo!();", &[]);
    }

    #[test]
    fn vague_names_are_found() {
        check(vague_name, "crates/wire/src/utils.rs", "", &[1]);
        check(vague_name, "crates/wire/tests/common/mod.rs", "", &[1]);
        check(vague_name, "crates/wire/src/lib.rs", "mod a;\npub(crate) mod misc {}", &[2]);
        check(vague_name, "crates/wire/src/commonly.rs", "mod framing; let common = 1;", &[]);
    }

    #[test]
    fn long_files_are_found() {
        let lines = |count: usize| "\n".repeat(count);
        check(long_file, "crates/wire/src/a.rs", &lines(MAX_FILE), &[]);
        check(long_file, "crates/wire/src/a.rs", &lines(MAX_FILE + 1), &[MAX_FILE + 1]);
        check(long_file, "crates/wire/tests/a.rs", &lines(MAX_FILE + 1), &[]);
        let complains = |lines, known| !length_within(lines, known).is_empty();
        assert!(!complains(700, Some(700)));
        assert!(complains(701, Some(700)));
        assert!(complains(699, Some(700)));
        assert!(complains(MAX_FILE, Some(700)));
    }

    #[test]
    fn edges_are_found() {
        let check = |name: &str, manifest: &str, lines: &[usize]| {
            let found: Vec<_> = forbidden_edges(name, manifest).iter().map(|it| it.line).collect();
            assert_eq!(found, lines, "{name}:\n{manifest}");
        };
        let load =
            "[package]\nname = \"dnslab-lab\"\n[dependencies]\ndnslab-load.workspace = true\n";
        check("lab", load, &[4]);
        check("experiment", load, &[]);
        check("stranger", load, &[1]);
        check("lab", "[dependencies.dnslab-load]\nworkspace = true", &[1]);
        check("lab", "[target.'cfg(unix)'.dependencies]\nx = { package = \"dnslab-load\" }", &[2]);
        check("lab", "[build-dependencies]\ndnslab-load = \"1\"", &[2]);
        check("lab", "[dev-dependencies]\ndnslab-load.workspace = true", &[]);
        check("lab", "[dependencies]\n# dnslab-load\ndnslab-wire.workspace = true", &[]);
    }

    #[test]
    fn banned_packages_are_found() {
        let check = |lock: &str, lines: &[usize]| {
            let found = banned_packages(lock);
            assert_eq!(found.iter().map(|it| it.line).collect::<Vec<_>>(), lines, "{lock}");
        };
        let index = "source = \"registry+https://example.net/crates.io-index\"\n";
        check(&format!("[[package]]\nname = \"openssl\"\n{index}"), &[2]);
        check(&format!("[[package]]\nname = \"openssl-probe\"\n{index}"), &[]);
        check("[[package]]\nname = \"a\"\nsource = \"git+https://example.net/a\"", &[3]);
        check("[[package]]\nname = \"dnslab-wire\"\nversion = \"0.1.0\"", &[]);
    }

    #[test]
    fn dead_links_are_found() {
        let check = |text: &str, lines: &[usize]| {
            let found = dead_links(text, &|path| path == "docs/HERE.md");
            assert_eq!(found.iter().map(|it| it.line).collect::<Vec<_>>(), lines, "{text}");
        };
        check("[a](docs/HERE.md) [b](docs/GONE.md)\n\n[c](GONE.md#d)", &[1, 3]);
        check("[a](docs/HERE.md#b) [c](#d) [e](https://example.net/f) ![g](gone.png)", &[]);
    }

    #[test]
    fn comments_and_literals_are_blank() {
        let check = |text: &str, expected: &str| {
            let code = code_of(text);
            let words: Vec<&str> = code.split_whitespace().collect();
            assert_eq!(words.join(" "), expected, "{text}");
            assert_eq!(code.matches('\n').count(), text.matches('\n').count(), "{text}");
        };
        check("a // b\nc /* d /* e */ f\n*/ g", "a c g");
        check("a \"b\\\" // c\" d", "a d");
        check("a r#\"b\" c\"# d r#type", "a d r#type");
        check("br\"\\\" c b\"d\" e", "c b e");
        check("'a' x '\\'' y 'é' &'d z", "x y &'d z");
        check("\"a\nb\" c", "c");
        check("\"never ended", "");
    }
}
