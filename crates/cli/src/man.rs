//! `dnslab man`: a man page for each command, from what clap knows.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use crate::arguments;
use crate::exit::{Exit, Failure};

/// Writes `dnslab.1`, `dnslab-run.1`, `dnslab-make-zone.1` and so on into the folder, which is made. Pages that are
/// there are replaced: they are those of an earlier version.
pub(crate) fn man(folder: &Path) -> Result<Exit, Failure> {
    let cannot_write = || format!("cannot write man pages into {}", folder.display());
    fs::create_dir_all(folder).with_context(cannot_write)?;
    clap_mangen::generate_to(arguments::program(), folder).with_context(cannot_write)?;
    Ok(Exit::Fine)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The name of each page with its text. Fonts are left out, and hyphens are plain.
    fn pages() -> BTreeMap<String, String> {
        let folder = tempfile::tempdir().unwrap();
        man(&folder.path().join("man1")).unwrap();
        let files = fs::read_dir(folder.path().join("man1")).unwrap().flatten();
        let pages = files.map(|file| {
            let text = fs::read_to_string(file.path()).unwrap().replace("\\-", "-");
            let text =
                ["\\fB", "\\fI", "\\fR"].iter().fold(text, |text, font| text.replace(font, ""));
            (file.file_name().into_string().unwrap(), text)
        });
        pages.collect()
    }

    /// Each command that a user may give, with the words before it.
    fn commands(command: &clap::Command, name: &str, found: &mut Vec<(String, clap::Command)>) {
        found.push((name.to_owned(), command.clone()));
        for below in command.get_subcommands().filter(|command| command.get_name() != "help") {
            commands(below, &format!("{name}-{}", below.get_name()), found);
        }
    }

    #[test]
    fn each_command_has_a_page_with_each_of_its_options() {
        let pages = pages();
        let mut program = arguments::program();
        program.build();
        let mut expected = Vec::new();
        commands(&program, "dnslab", &mut expected);
        let names: Vec<&String> = pages.keys().collect();
        let mut files: Vec<String> = expected.iter().map(|(name, _)| format!("{name}.1")).collect();
        files.sort();
        assert_eq!(names, files.iter().collect::<Vec<_>>());
        let goes_on =
            |rest: &str| rest.starts_with(|next: char| next == '-' || next.is_alphanumeric());
        let is_there = |word: &str, page: &str| page.split(word).skip(1).any(|rest| !goes_on(rest));
        for (name, command) in expected {
            let page = &pages[&format!("{name}.1")];
            let longs = command
                .get_arguments()
                .filter(|argument| !argument.is_hide_set())
                .filter_map(clap::Arg::get_long);
            for option in longs.map(|long| format!("--{long}")) {
                assert!(is_there(&option, page), "{name}.1 lacks {option}:\n{page}");
            }
            for argument in command.get_positionals() {
                let named = argument.get_value_names().and_then(|names| names.first());
                let word = match named {
                    Some(name) => name.to_string(),
                    None => argument.get_id().as_str().to_uppercase(),
                };
                assert!(is_there(&word, page), "{name}.1 lacks {word}:\n{page}");
            }
            for below in command.get_subcommands().filter(|command| command.get_name() != "help") {
                let word = format!("{name}-{}", below.get_name());
                assert!(is_there(&word, page), "{name}.1 lacks {word}:\n{page}");
            }
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let failure = man(&file.path().join("man1")).unwrap_err();
        assert_eq!(failure.exit, Exit::Impossible);
        let text = format!("{:#}", failure.error);
        assert!(text.contains(&file.path().display().to_string()), "{text}");
    }
}
