//! Messages of commits: a first line that fits, and a reason where sources change.

use std::path::Path;
use std::process::{Command, Output};

/// Characters of a first line: `git log --oneline` shows them whole in 80 columns.
const MAX_FIRST: usize = 72;

/// Before each commit, and between its message and the paths of its files.
const COMMIT: char = '\x1e';
const FILES: char = '\x1f';

/// This file. The commit that adds it brings the rule, which older ones do not keep.
const RULE: &str = "crates/cli/tests/tidy/commits.rs";

/// The commits that were made on top of the rule, as [`wrong`] takes them; merges are not among them. `None`, with the
/// reason on the standard output, where the history is not known.
pub(crate) fn since_the_rule(root: &Path) -> Option<String> {
    let git = |arguments: &[&str]| Command::new("git").current_dir(root).args(arguments).output();
    let shallow = match git(&["rev-parse", "--is-shallow-repository"]) {
        Ok(output) if output.status.success() => text(output),
        _ => {
            println!("messages of commits are not checked: this is no clone, or git is missing");
            return None;
        }
    };
    if shallow.trim() == "true" {
        println!("messages of commits are not checked: the clone is shallow");
        return None;
    }
    let added = ["log", "--diff-filter=A", "--format=%H", "--", RULE];
    let added = text(git(&added).expect("git ran before"));
    let Some(first) = added.lines().last() else {
        println!("messages of commits are not checked: no commit has {RULE}");
        return None;
    };
    let format = format!("--format={COMMIT}%h %B{FILES}");
    let range = format!("{first}..HEAD");
    let log = ["log", "--no-merges", "--ancestry-path", "--name-only", &format, &range];
    Some(text(git(&log).expect("git ran before")))
}

fn text(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What is wrong with the messages of a log.
pub(crate) fn wrong(log: &str) -> Vec<String> {
    log.split(COMMIT).skip(1).flat_map(wrong_with).collect()
}

/// What is wrong with a commit: its short hash, its message, and the paths of its files.
fn wrong_with(commit: &str) -> Vec<String> {
    let (message, files) = commit.split_once(FILES).unwrap_or((commit, ""));
    let (hash, message) = message.split_once(' ').unwrap_or((message, ""));
    let mut lines = message.lines();
    let first = lines.next().unwrap_or_default();
    let body: Vec<&str> = lines.collect();
    let mut found = Vec::new();
    let length = first.chars().count();
    if length > MAX_FIRST {
        found.push(format!("{hash}: the first line has {length} characters: {MAX_FIRST} at most"));
    }
    if body.first().is_some_and(|line| !line.trim().is_empty()) {
        found.push(format!("{hash}: leave a line blank behind the first one"));
    }
    let changes_sources = files.lines().any(|path| {
        path.strip_prefix("crates/").and_then(|rest| rest.split('/').nth(1)) == Some("src")
    });
    if changes_sources && body.iter().all(|line| line.trim().is_empty()) {
        found.push(format!("{hash}: sources change: say why in the body"));
    }
    found
}

#[test]
fn messages_are_short_and_give_the_reason() {
    let wrong_with = |message: &str, files: &str| {
        wrong(&format!("{COMMIT}1a2b3c {message}\n{FILES}\n\n{files}\n"))
    };
    let sources = "docs/METHOD.md\ncrates/wire/src/name.rs";
    let reason = "\n\nA name was read twice.";
    let longest = "a".repeat(MAX_FIRST);
    assert_eq!(wrong(""), [""; 0]);
    assert_eq!(wrong_with("wire: names are read once", "crates/wire/tests/name.rs"), [""; 0]);
    assert_eq!(wrong_with(&format!("{longest}{reason}"), sources), [""; 0]);
    assert_eq!(
        wrong_with(&format!("{longest}b{reason}"), sources),
        ["1a2b3c: the first line has 73 characters: 72 at most"]
    );
    let no_reason = ["1a2b3c: sources change: say why in the body"];
    assert_eq!(wrong_with("wire: names are read once", sources), no_reason);
    assert_eq!(wrong_with("wire: names are read once\n\n", sources), no_reason);
    assert_eq!(
        wrong_with("wire: names are read once,\nsince that is faster", "README.md"),
        ["1a2b3c: leave a line blank behind the first one"]
    );
    let both = format!("{COMMIT}1 good\n{FILES}\nREADME.md\n{COMMIT}2 bad\n{FILES}\n{sources}\n");
    assert_eq!(wrong(&both), ["2: sources change: say why in the body"]);
}
