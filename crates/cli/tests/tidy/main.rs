//! Rules of `docs/ARCHITECTURE.md` and `CONTRIBUTING.md` that neither the compiler nor Clippy checks:
//! dependencies, the lock file, links, messages of commits, and a few lines of Rust.
//!
//! Every rule is a function from one file's text to findings, and has a test with a text that breaks it and
//! one that keeps it. Each finding says where, what, and what to do instead.

mod bindings;
mod circles;
mod closures;
mod commits;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use dnslab_settings::{Kind, find, keys};

#[derive(Debug, PartialEq)]
struct Finding {
    /// From 1.
    line: usize,
    /// What is there, and what to do instead.
    message: String,
}

/// Beginnings of lines that no lint finds, the folders where they may stand, and what to do instead.
/// rustfmt begins a line with each attribute.
const LINES: [(&[&str], &[&str], &str); 3] = [
    (&["#[ignore"], &[], "run the test, or say in its output why it cannot run"),
    // Clippy finds the outer ones.
    (&["#![allow("], &[], "write #![expect(lint, reason = \"...\")]"),
    (
        &["#[expect(unsafe_code", "#![expect(unsafe_code", "unsafe_code,"],
        &["crates/socket/src/", "crates/lab/src/sys/", "crates/xtask/src/sys/"],
        "use a safe call (rustix has most), or move it into `socket`",
    ),
];

/// The line in the root file of each crate that applies `clippy.toml` to its code. Tests are exempt.
const EFFECTS: &str =
    "#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]";

/// Names of modules and folders that say nothing.
const VAGUE: [&str; 6] = ["util", "utils", "common", "misc", "helpers", "imp"];

/// Packages that must not be in the dependency tree, and their replacements. `deny.toml` has the reasons.
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
    let architecture = fs::read_to_string(root.join("docs/ARCHITECTURE.md")).unwrap();
    for folder in ["crates", "fuzz", "docs", "evidence", "kubernetes"] {
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
            let text = read();
            let mut found = rust(path, &text);
            found.extend(wrong_settings(&text));
            found
        } else if path.ends_with("/Cargo.toml") && path.starts_with("crates/") {
            wrong_edges(part_of_path(path, 1), &read(), &drawn_edges(&architecture))
        } else if path.ends_with(".md") {
            let folder = Path::new(path).parent().unwrap_or(Path::new(""));
            let text = read();
            let in_crates = |path: &str| root.join("crates").join(path).exists();
            let mut found = dead_links(&text, &|link| root.join(folder).join(link).exists());
            let read_other = |link: &str| fs::read_to_string(root.join(folder).join(link)).ok();
            found.extend(dead_anchors(&text, &read_other));
            // What the changelog tells of is past.
            if path != "CHANGELOG.md" {
                found.extend(dead_sources(&text, &in_crates));
            }
            found.extend(wrong_settings(&text));
            found
        } else if path == "Cargo.lock" {
            banned_packages(&read())
        } else {
            Vec::new()
        };
        complaints.extend(
            findings.iter().map(|finding| format!("{path}:{}: {}", finding.line, finding.message)),
        );
    }
    assert!(rust_files > 100, "only {rust_files} Rust files found: the walk is broken");
    complaints.sort();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn the_summary_names_each_document_once() {
    let docs = root().join("docs");
    let entries = fs::read_dir(&docs).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    let names: Vec<String> =
        names.filter(|name| name.ends_with(".md") && name != "SUMMARY.md").collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    assert_eq!(wrong_summary(&summary, &names), [], "in docs/SUMMARY.md");
}

#[test]
fn the_files_of_a_crate_make_no_circle() {
    let crates = root().join("crates");
    for entry in fs::read_dir(&crates).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let mut paths = Vec::new();
        collect(&entry.path().join("src"), "", &mut paths);
        let sources = paths.iter().filter_map(|path| path.strip_suffix(".rs"));
        let files = sources.filter(|path| !path.ends_with("/tests")).map(|path| {
            let text = fs::read_to_string(entry.path().join(format!("src{path}.rs"))).unwrap();
            let parts =
                path.split('/').filter(|part| !matches!(*part, "" | "lib" | "main" | "mod"));
            (parts.map(str::to_owned).collect(), text)
        });
        let found = circles::circles(&files.collect::<BTreeMap<_, _>>());
        assert_eq!(found, [[""; 0]; 0], "{name}: move what they share into a file below");
    }
}

#[test]
fn what_has_a_name_and_many_lines_is_a_function() {
    for entry in fs::read_dir(root().join("crates")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let mut paths = Vec::new();
        collect(&entry.path(), &name, &mut paths);
        let mut found = Vec::new();
        for path in paths.iter().filter(|path| path.ends_with(".rs")) {
            let text = fs::read_to_string(root().join("crates").join(path)).unwrap();
            let long = closures::long(&text).into_iter();
            found.extend(long.map(|(line, name)| format!("{path}:{line}: {name}")));
        }
        assert_eq!(found, [""; 0], "long closures: make each a function");
    }
}

/// Places that name the version of a release, and no other one.
#[test]
fn the_version_is_named_alike() {
    let version = env!("CARGO_PKG_VERSION");
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let changes = read("CHANGELOG.md");
    let mut headings = changes.lines().filter_map(|line| line.strip_prefix("## "));
    let heading = headings.find(|heading| *heading != "Unreleased").unwrap();
    let date = heading.strip_prefix(&format!("{version}, "));
    let date = date.unwrap_or_else(|| panic!("CHANGELOG.md begins with `{heading}`"));
    let citation = match date {
        "not yet released" => format!("\nversion: {version}\nlicense"),
        date => format!("\nversion: {version}\ndate-released: {date}\n"),
    };
    for (path, text) in [
        ("CITATION.cff", citation),
        ("README.md", format!("/dnslab_{version}_amd64.deb ")),
        ("docs/VERSIONS.md", format!("  version = {{{version}}}")),
        ("docs/VERSIONS.md", format!("Measured with dnslab {version},")),
        ("action.yml", format!("default: {version}\n")),
        ("templates/gate.yml", format!("default: {version}\n")),
        ("docs/GATE.md", format!("/dnslab/{version}\n")),
        ("kubernetes/README.md", format!("dnslab-{version}-oci.tar")),
        ("kubernetes/nightly.yaml", format!("dnslab:{version}\n")),
    ] {
        assert!(read(path).contains(&text), "{path} lacks `{}`", text.trim());
    }
}

#[test]
fn messages_of_commits_keep_the_rules() {
    let wrong = commits::since_the_rule(&root()).as_deref().map(commits::wrong);
    assert_eq!(wrong.unwrap_or_default(), [""; 0]);
}

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Adds the paths of all files below `folder` that people wrote. `name` is its path from the root.
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

/// Numbered from 0; empty if there is none.
fn part_of_path(path: &str, number: usize) -> &str {
    path.split('/').nth(number).unwrap_or_default()
}

fn rust(path: &str, text: &str) -> Vec<Finding> {
    let (mut found, mut before) = (Vec::new(), "");
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let is_first = !before.starts_with("///");
        before = line;
        if is_first && line.starts_with("/// The same") {
            let message = format!("`{line}`: say what it is, for readers who come here first");
            found.push(Finding { line: number + 1, message });
        }
        for (beginnings, allowed, instead) in LINES {
            let is_here = beginnings.iter().any(|beginning| line.starts_with(beginning));
            if is_here && !allowed.iter().any(|folder| path.starts_with(folder)) {
                let message = format!("`{line}`: {instead}");
                found.push(Finding { line: number + 1, message });
            }
        }
    }
    for (line, name) in bindings::vague(text) {
        let message = format!("`{name}` names nothing here: take a noun that says what is bound");
        found.push(Finding { line, message });
    }
    let mut add = |message| found.push(Finding { line: 1, message });
    let is_root = ["src/lib.rs", "src/main.rs"].contains(&path.splitn(3, '/').last().unwrap_or(""));
    if path.starts_with("crates/") && is_root && !text.lines().any(|line| line == EFFECTS) {
        add(format!("nothing holds this crate against clippy.toml: add `{EFFECTS}`"));
    }
    for name in path.strip_suffix(".rs").unwrap_or(path).split('/') {
        if VAGUE.contains(&name) {
            add(format!("`{name}` says nothing: name the module for what it holds"));
        }
    }
    found
}

/// The edges of the picture in `docs/ARCHITECTURE.md`: each crate with those that it depends on, from the bottom up.
/// A line has a crate's name and a mark below the place of each crate above it: `x`, or `.` for none.
fn drawn_edges(architecture: &str) -> Vec<(&str, Vec<&str>)> {
    let picture = architecture.split("```text").find(|block| block.starts_with("\nwire"));
    let lines = picture.unwrap_or_default().split("```").next().unwrap_or_default().lines();
    let mut drawn: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in lines {
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        let marks = drawn.iter().zip(words).filter(|(_, mark)| *mark == "x");
        let below = marks.map(|((other, _), _)| *other).collect();
        drawn.push((name, below));
    }
    drawn
}

/// Dependencies of the crate `name` on others of the workspace that the picture has not, and the other way
/// round. What only its tests depend on does not count.
fn wrong_edges(name: &str, manifest: &str, drawn: &[(&str, Vec<&str>)]) -> Vec<Finding> {
    let Some((_, below)) = drawn.iter().find(|(known, _)| *known == name) else {
        let message = format!("crate `{name}` is not in the picture of docs/ARCHITECTURE.md");
        return vec![Finding { line: 1, message }];
    };
    let (mut found, mut seen, mut counts) = (Vec::new(), Vec::new(), false);
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
            seen.push(other);
            if !below.contains(&other) {
                let message = format!(
                    "{name} must not depend on {other}: take what it needs as an argument, or \
                     move the type down to a crate that both may use"
                );
                found.push(Finding { line: number + 1, message });
            }
        }
    }
    for other in below.iter().filter(|other| !seen.contains(other)) {
        let message = format!("{name} does not depend on {other}: mend the picture of the crates");
        found.push(Finding { line: 1, message });
    }
    found
}

/// Packages of a `Cargo.lock` that are banned, or not from crates.io.
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

/// Links of a Markdown file to missing files. `exists` takes paths relative to the file's folder. Pictures
/// are not checked.
fn dead_links(text: &str, exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut rest = line;
        while let Some(at) = rest.find("](") {
            let is_picture =
                rest[..at].rfind('[').is_some_and(|bracket| rest[..bracket].ends_with('!'));
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

/// Links of a Markdown file to headings that are not there, in this file or in another one. `read` takes paths
/// relative to the file's folder; files that cannot be read are the matter of [`dead_links`].
fn dead_anchors(text: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for (at, _) in line.match_indices("](") {
            let target = line[at + 2..].split(')').next().unwrap_or_default();
            let Some((file, anchor)) =
                target.split_once('#').filter(|parts| !parts.0.contains("://"))
            else {
                continue;
            };
            let other = if file.is_empty() { Some(text.to_owned()) } else { read(file) };
            if other.is_some_and(|other| !anchors(&other).iter().any(|heading| heading == anchor)) {
                let message = format!("`{target}`: there is no such heading: mend the link");
                found.push(Finding { line: number + 1, message });
            }
        }
    }
    found
}

/// The anchors of the headings of a Markdown file, as mdBook and GitHub make them.
fn anchors(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut found: Vec<String> = Vec::new();
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        if is_code || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        // Of a link only its text is seen.
        let seen = title.split("](").enumerate().map(|(part, text)| match part {
            0 => text,
            _ => text.split_once(')').map_or("", |(_, after)| after),
        });
        let seen = seen.collect::<String>().trim().to_lowercase();
        let letters =
            seen.chars().filter(|letter| letter.is_alphanumeric() || "-_ ".contains(*letter));
        let anchor: String =
            letters.map(|letter| if letter == ' ' { '-' } else { letter }).collect();
        let times = found.iter().filter(|earlier| **earlier == anchor).count();
        found.push(if times == 0 { anchor } else { format!("{anchor}-{times}") });
    }
    found
}

/// What is wrong with a summary of mdBook: documents that it names more or less than once, and links with an anchor,
/// which it would take for files. Whether what lies in other folders exists is the matter of [`dead_links`].
fn wrong_summary(summary: &str, documents: &[&str]) -> Vec<Finding> {
    let links = summary.lines().enumerate().filter_map(|(number, line)| {
        let target = line.split_once("](")?.1.split(')').next()?;
        Some((number + 1, target))
    });
    let links: Vec<(usize, &str)> = links.collect();
    let mut found = Vec::new();
    for (place, (line, target)) in links.iter().enumerate() {
        let message = if target.contains('#') {
            format!("`{target}`: a chapter is a whole file: leave the anchor out")
        } else if links[..place].iter().any(|(_, earlier)| earlier == target) {
            format!("`{target}` is a chapter already: name it once")
        } else if !documents.contains(target) && !target.starts_with("../") {
            format!("`{target}` is no document: mend the line")
        } else {
            continue;
        };
        found.push(Finding { line: *line, message });
    }
    for missing in
        documents.iter().filter(|document| !links.iter().any(|(_, target)| target == *document))
    {
        found.push(Finding { line: 1, message: format!("{missing} is no chapter: add a line") });
    }
    found
}

/// Sources that a Markdown file names and that do not exist: `crate/src/file.rs`, with or without `crates/` before it.
fn dead_sources(text: &str, exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for code in line.split('`').skip(1).step_by(2) {
            let path = code.strip_prefix("crates/").unwrap_or(code);
            let is_source = path.split('/').nth(1) == Some("src") && !path.contains(' ');
            if is_source && !exists(path) {
                let message = format!("`{code}` does not exist: mend its path");
                found.push(Finding { line: number + 1, message });
            }
        }
    }
    found
}

/// Settings in backquotes, as messages and documents advise them, that no experiment may have:
/// `KEY = VALUE` with an unknown key or word.
fn wrong_settings(text: &str) -> Vec<Finding> {
    let is_key = |path: &str| {
        let group = path.split_once('.').map_or("", |(group, _)| group);
        let plain = |letter: char| letter.is_ascii_lowercase() || "._".contains(letter);
        path.chars().all(plain) && keys().any(|key| key.path.split('.').next() == Some(group))
    };
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for code in line.split('`').skip(1).step_by(2) {
            let Some((path, value)) = code.split_once(" = ").filter(|setting| is_key(setting.0))
            else {
                continue;
            };
            let value = value.replace('\\', "");
            let word = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
            let is_right = match (find(path).map(|key| key.kind), word) {
                (None, _) => false,
                (Some(Kind::Choice(words)), Some(word)) => words.contains(&word),
                _ => true,
            };
            if !is_right {
                let message =
                    format!("an experiment cannot have `{path} = {value}`: mend the text");
                found.push(Finding { line: number + 1, message });
            }
        }
    }
    found
}

mod tests {
    use super::*;

    fn lines_of(findings: &[Finding]) -> Vec<usize> {
        findings.iter().map(|finding| finding.line).collect()
    }

    /// `lines` are those that the rules for Rust complain about.
    #[track_caller]
    fn check(path: &str, text: &str, lines: &[usize]) {
        assert_eq!(lines_of(&rust(path, text)), lines, "{path}:\n{text}");
    }

    #[test]
    fn lines_are_found() {
        let path = "crates/wire/tests/a.rs";
        check(path, "#[test]\n    #[ignore = \"slow\"]\n// #[ignore]\nfn ignore() {}", &[2]);
        check(path, "//! Text.\n#![allow(dead_code)]\n#![expect(b)]\nallow(1);", &[2]);
        let unsafe_code = "#![expect(unsafe_code, reason = \"\")]\n#[expect(\n    unsafe_code,";
        check("crates/client/src/worker/mod.rs", unsafe_code, &[1, 3]);
        check("crates/socket/src/send.rs", unsafe_code, &[]);
    }

    #[test]
    fn docstrings_that_lean_on_the_one_above_are_found() {
        let path = "crates/wire/src/a.rs";
        check(path, "/// Of one.\nfn a() {}\n    /// The same of all.\n    fn b() {}", &[3]);
        check(path, "/// Of one.\n/// The same words.\nfn a() {}\n// The same.\n", &[]);
    }

    #[test]
    fn roots_without_the_rules_of_clippy_are_found() {
        check("crates/wire/src/lib.rs", "mod a;", &[1]);
        check("crates/cli/src/main.rs", &format!("// {EFFECTS}"), &[1]);
        check("crates/cli/src/main.rs", &format!("//! A.\n\n{EFFECTS}\nmod a;"), &[]);
        check("crates/wire/src/a/lib.rs", "mod a;", &[]);
    }

    #[test]
    fn vague_names_are_found() {
        check("crates/wire/src/a.rs", "fn a() {\n    b(|it| it.x);\n    let told = 1;\n}", &[2, 3]);
        check("crates/wire/src/utils.rs", "", &[1]);
        check("crates/wire/tests/common/mod.rs", "", &[1]);
        check("crates/wire/src/commonly.rs", "mod framing;", &[]);
    }

    #[test]
    fn edges_are_found() {
        let picture =
            "# A\n```text\nother\n```\n```text\nwire\nload  x\nlab   x .\ntop   . x x\n```\n";
        let drawn = drawn_edges(picture);
        assert_eq!(drawn[3], ("top", vec!["load", "lab"]));
        let check = |name: &str, manifest: &str, lines: &[usize]| {
            let wire = if name == "lab" { "\n[dependencies.dnslab-wire]" } else { "" };
            let found = wrong_edges(name, &format!("{manifest}{wire}"), &drawn);
            assert_eq!(lines_of(&found), lines, "{name}:\n{manifest}");
        };
        let load =
            "[package]\nname = \"dnslab-lab\"\n[dependencies]\ndnslab-load.workspace = true\n";
        check("lab", load, &[4]);
        check("stranger", load, &[1]);
        // It is drawn above lab too.
        check("top", load, &[1]);
        check("lab", "[dependencies.dnslab-load]\nworkspace = true", &[1]);
        check("lab", "[target.'cfg(unix)'.dependencies]\nx = { package = \"dnslab-load\" }", &[2]);
        check("lab", "[build-dependencies]\ndnslab-load = \"1\"", &[2]);
        check("lab", "[dev-dependencies]\ndnslab-load.workspace = true", &[]);
        check("lab", "[dependencies]\n# dnslab-load\ndnslab-wire.workspace = true", &[]);
    }

    #[test]
    fn banned_packages_are_found() {
        let check = |lock: &str, lines: &[usize]| {
            assert_eq!(lines_of(&banned_packages(lock)), lines, "{lock}");
        };
        let index = "source = \"registry+https://example.net/crates.io-index\"\n";
        check(&format!("[[package]]\nname = \"openssl\"\n{index}"), &[2]);
        check(&format!("[[package]]\nname = \"openssl-probe\"\n{index}"), &[]);
        check("[[package]]\nname = \"a\"\nsource = \"git+https://example.net/a\"", &[3]);
        check("[[package]]\nname = \"dnslab-wire\"\nversion = \"0.1.0\"", &[]);
    }

    #[test]
    fn dead_sources_are_found() {
        let text = "`wire/src/name.rs` and `crates/wire/src/`\n`wire/src/gone.rs`, src/gone.rs\n`cat a/src/b c`";
        let exists = |path: &str| ["wire/src/name.rs", "wire/src/"].contains(&path);
        assert_eq!(lines_of(&dead_sources(text, &exists)), [2]);
    }

    #[test]
    fn wrong_settings_are_found() {
        let tick = '`';
        for (text, is_wrong) in [
            ("load.connect = \"on-demand\"", false),
            ("load.connect = \\\"on-demand\\\"", false),
            ("load.connect = \\\"on-query_source\\\"", true),
            ("load.conect = \"on-demand\"", true),
            ("server.root = \"NAME\"", false),
            ("load.clients = 200", false),
            ("record.name = \"x\"", false),
        ] {
            let found = wrong_settings(&format!("a {tick}{text}{tick} b"));
            assert_eq!(!found.is_empty(), is_wrong, "{text}: {found:?}");
        }
    }

    #[test]
    fn dead_links_are_found() {
        let check = |text: &str, lines: &[usize]| {
            let found = dead_links(text, &|path| path == "docs/HERE.md");
            assert_eq!(lines_of(&found), lines, "{text}");
        };
        check("[a](docs/HERE.md) [b](docs/GONE.md)\n\n[c](GONE.md#d)", &[1, 3]);
        check("[a](docs/HERE.md#b) [c](#d) [e](https://example.net/f) ![g](gone.png)", &[]);
    }

    #[test]
    fn dead_anchors_are_found() {
        let other = "# A b\n## `[c]`: D, e-f?\n## [G](h.md) i\n```sh\n# k\n```\n## A b\n#l\n";
        let read = |path: &str| (path == "O.md").then(|| other.to_owned());
        let check = |text: &str, lines: &[usize]| {
            assert_eq!(lines_of(&dead_anchors(text, &read)), lines, "{text}");
        };
        check("[a](O.md#a-b) [a](O.md#a-b-1) [b](O.md#c-d-e-f) [c](O.md#g-i) [d](O.md)", &[]);
        check("[a](O.md#k)\n[b](O.md#l)\n[c](O.md#a-b-2)\n[d](O.md#)", &[1, 2, 3, 4]);
        check("## Here\n[a](#here) [b](gone.md#a) [c](https://example.net/#d)\n[e](#there)", &[3]);
    }

    #[test]
    fn wrong_lines_of_the_summary_are_found() {
        let check = |summary: &str, lines: &[usize]| {
            assert_eq!(lines_of(&wrong_summary(summary, &["A.md", "B.md"])), lines, "{summary}");
        };
        check("# Summary\n[a](A.md)\n- [b](B.md)\n", &[]);
        check("# Summary\n[a](A.md)\n- [b](B.md)\n  - [a](A.md)\n- [c](C.md)\n", &[4, 5]);
        check("[a](A.md#b)\n[b](B.md)", &[1, 1]);
        check("[a](A.md)\n[b](B.md)\n[c](../C.md)\n[c](../C.md)", &[4]);
    }
}
