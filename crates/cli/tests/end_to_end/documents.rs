//! What the documents tell their readers to type: the commands in the fenced blocks `sh` and `console`, and the files
//! that other blocks show. The unit tests of the command line read them too, so this file stands on its own.

use std::fs;
use std::path::{Path, PathBuf};

/// Programs of others whose calls are read as well.
const OTHERS: [&str; 3] = ["dnsperf", "dig", "openssl"];

/// A call of `dnslab` or one of [`OTHERS`] in a document.
#[derive(Debug, PartialEq)]
pub(crate) struct DocumentCommand {
    /// Path from the root of the repository and line, from 1: `docs/START.md:12`.
    pub(crate) place: String,
    pub(crate) program: String,
    /// Without the program, and without redirections.
    pub(crate) words: Vec<String>,
    /// The whole line of the shell, in which the command stands.
    pub(crate) line: String,
    /// What follows it is typed while it runs: `&` is behind it, or nothing else in its block.
    pub(crate) is_left: bool,
}

/// A word that sets something, `--set=zone=FILE` or `KEY=VALUE`, up to its last `=` and behind it.
pub(crate) fn key_and_value(word: &str) -> (&str, &str) {
    word.split_at(word.rfind('=').map_or(0, |at| at + 1))
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README.md and all documents, in order: paths from the root of the repository.
pub(crate) fn documents() -> Vec<String> {
    let entries = fs::read_dir(root().join("docs")).expect("the documents are there").flatten();
    let names = entries.map(|entry| entry.file_name().into_string().expect("names are UTF-8"));
    let paths = names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}"));
    let mut found: Vec<String> = paths.chain(["README.md".to_owned()]).collect();
    found.sort();
    found
}

/// The commands of one document, in order.
pub(crate) fn commands_of(document: &str) -> Vec<DocumentCommand> {
    let text = fs::read_to_string(root().join(document)).expect("it is there");
    commands(document, &text)
}

/// Files that a document shows: the blocks whose first line is `# NAME`, where the name has a dot and no space.
pub(crate) fn files_of(document: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(root().join(document)).expect("it is there");
    let named = blocks(&text).into_iter().filter(|block| !is_shell(block.language));
    let with_name = named.filter_map(|block| {
        let name = block.lines.first()?.1.strip_prefix("# ")?;
        let is_name = name.contains('.') && !name.contains([' ', '/']);
        let lines = block.lines.iter().map(|(_, line)| format!("{line}\n"));
        is_name.then(|| (name.to_owned(), lines.collect()))
    });
    with_name.collect()
}

struct Block<'a> {
    language: &'a str,
    /// With their numbers from 1. The indentation of the fence is left out.
    lines: Vec<(usize, &'a str)>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found: Vec<Block> = Vec::new();
    let mut open = None;
    for (number, line) in text.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (open, fence) {
            (None, Some(language)) => {
                open = Some(line.len() - line.trim_start().len());
                found.push(Block { language: language.trim(), lines: Vec::new() });
            }
            (Some(_), Some(_)) => open = None,
            (Some(indentation), None) => {
                let block = found.last_mut().expect("it was opened");
                block.lines.push((number + 1, line.get(indentation..).unwrap_or_default()));
            }
            (None, None) => {}
        }
    }
    found
}

fn is_shell(language: &str) -> bool {
    matches!(language, "sh" | "console")
}

fn commands(document: &str, text: &str) -> Vec<DocumentCommand> {
    let mut found = Vec::new();
    for block in blocks(text).into_iter().filter(|block| is_shell(block.language)) {
        let mut lines = block.lines.into_iter();
        let mut last = None;
        while let Some((number, line)) = lines.next() {
            // In a console only what follows a prompt was typed.
            let typed = match block.language {
                "console" => line.strip_prefix("$ ").or_else(|| line.strip_prefix("# ")),
                _ => Some(line),
            };
            let Some(typed) = typed else { continue };
            let mut whole = typed.to_owned();
            while whole.ends_with('\\') {
                whole.pop();
                whole.push_str(lines.next().map_or("", |(_, line)| line));
            }
            let place = format!("{document}:{number}");
            for simple in
                simple_commands(&whole).into_iter().filter(|simple| !simple.words.is_empty())
            {
                last = None;
                if let Some((program, words)) = called(&simple.words) {
                    let is_plain = !words.iter().any(|word| word.contains(['$', '`']));
                    assert!(is_plain, "{place}: write out what `{typed}` expands");
                    let (place, line) = (place.clone(), whole.clone());
                    let is_left = simple.is_background;
                    last = Some(found.len());
                    found.push(DocumentCommand { place, program, words, line, is_left });
                }
            }
        }
        if let Some(last) = last {
            found[last].is_left = true;
        }
    }
    found
}

#[derive(Default)]
struct Simple {
    words: Vec<String>,
    is_background: bool,
}

/// The commands of a line of a shell. Quotes, comments, lists, pipes and redirections are known; nothing is expanded.
fn simple_commands(line: &str) -> Vec<Simple> {
    let mut found = Vec::new();
    let mut command = Simple::default();
    let mut word: Option<String> = None;
    // The next word is the target of a redirection.
    let mut is_target = false;
    let mut letters = line.chars().peekable();
    loop {
        let letter = letters.next().filter(|letter| *letter != '#' || word.is_some());
        if matches!(letter, None | Some(' ' | '\t' | '>' | '<' | '&' | '|' | ';')) {
            // `2>` has a number that is no word.
            let is_number = letter == Some('>') && word.as_deref() == Some("2");
            if let Some(word) = word.take().filter(|_| !is_number)
                && !std::mem::take(&mut is_target)
            {
                command.words.push(word);
            }
        }
        match letter {
            None => break,
            Some(' ' | '\t') => {}
            Some('>' | '<') => {
                letters.next_if(|letter| ['>', '&'].contains(letter));
                is_target = true;
            }
            Some(end @ ('&' | '|' | ';')) => {
                let is_double = letters.next_if_eq(&end).is_some();
                command.is_background = end == '&' && !is_double;
                found.push(std::mem::take(&mut command));
            }
            Some(quote @ ('\'' | '"')) => {
                let inside = letters.by_ref().take_while(|letter| *letter != quote);
                word.get_or_insert_default().extend(inside);
            }
            Some(other) => word.get_or_insert_default().push(other),
        }
    }
    found.push(command);
    found
}

/// The program and the words after it, if it is `dnslab` or one of [`OTHERS`]: by itself, by root, with variables, or in
/// a namespace.
fn called(words: &[String]) -> Option<(String, Vec<String>)> {
    let is_name = |letter: char| letter.is_ascii_uppercase() || letter == '_';
    let is_setting = |word: &String| {
        let name = word.split_once('=').map_or("", |(name, _)| name);
        !name.is_empty() && name.chars().all(is_name)
    };
    let words: Vec<&String> = words.iter().skip_while(|word| is_setting(word)).collect();
    let before = match words.iter().map(|word| word.as_str()).collect::<Vec<_>>()[..] {
        ["sudo" | "time", ..] => 1,
        ["ip", "netns", "exec", _, ..] => 4,
        _ => 0,
    };
    let (program, rest) = words[before..].split_first()?;
    let is_known = *program == "dnslab" || OTHERS.contains(&program.as_str());
    is_known.then(|| ((*program).clone(), rest.iter().map(|word| (*word).clone()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&[&str]]) {
        let found: Vec<_> =
            commands("a.md", text).into_iter().map(|command| command.words).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn commands_of_dnslab_are_found() {
        check("```sh\ndnslab run a # b\nls dnslab\n\ndnslab\n```\ndnslab c", &[&["run", "a"], &[]]);
        check(
            "```sh\ndnslab load x \\\n    --set 'a b' \"c<1%, d\"e\n```",
            &[&["load", "x", "--set", "a b", "c<1%, de"]],
        );
        check(
            "```text\ndnslab run\n```\n   ```console\n   $ dnslab plan b\n   dnslab c\n   ```",
            &[&["plan", "b"]],
        );
        check("```sh\ndig @a b | ls\nip netns exec c dig d\n```", &[&["@a", "b"], &["d"]]);
        check(
            "```sh\nA=b dnslab plan c > d 2>> e 2>&1; ip netns exec f dnslab serve & dnslab g#h|cat\n```",
            &[&["plan", "c"], &["serve"], &["g#h"]],
        );
        let background =
            commands("a.md", "```sh\n\ndnslab serve &\ndnslab run && dnslab doctor\n```");
        let found: Vec<_> =
            background.iter().map(|command| (&*command.place, command.is_left)).collect();
        assert_eq!(found, [("a.md:3", true), ("a.md:4", false), ("a.md:4", true)]);
        let followed = commands("a.md", "```sh\ndnslab serve # on\nls\n```");
        assert!(!followed[0].is_left);
    }

    #[test]
    #[should_panic(expected = "a.md:2: write out")]
    fn what_would_be_expanded_is_refused() {
        commands("a.md", "```sh\ndnslab report $FOLDER\n```");
    }
}
