//! Configurations that a user wrote for a server of his own, as they are run here.
//!
//! What they say of addresses, ports and paths is taken out, and the adapter adds its own. So is what would reach other
//! machines: transfers, notifies and updates. Everything else stays, limits and views and logs with it. Files that a
//! configuration names are copied into the server's folder, so that nothing of the user's is written.

mod bind;
mod clauses;
mod knot;
mod nsd;
mod unbound;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::ServerKind;
use crate::given::read_given_text;

/// Octets of a file of a configuration.
const MAX_FILE: u64 = 256 << 20;

/// Files that include others, one in the other.
const MAX_DEPTH: u32 = 10;

/// A configuration that a user wrote, without what dnslab decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnConfiguration {
    /// Where it was read.
    pub path: PathBuf,
    /// What is left of it; for [`ServerKind::Bind`] without the block `options`, for the others without the section
    /// `server`.
    pub(super) text: String,
    /// What is left of that block or section.
    pub(super) options: String,
    /// Files to copy into the server's folder.
    pub(super) files: Vec<OwnFile>,
    /// Statements that were taken out, and how often.
    pub(super) removed: BTreeMap<String, u32>,
}

/// A file that a configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFile {
    /// Where it is.
    pub from: PathBuf,
    /// Its name in the server's folder.
    pub name: String,
}

/// Why a configuration cannot be run here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct OwnConfigurationError {
    /// The file in which it is.
    pub path: PathBuf,
    /// Why, as a sentence.
    pub reason: String,
}

impl fmt::Display for OwnConfigurationError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path.display(), self.reason)
    }
}

impl OwnConfiguration {
    /// Reads a configuration with all that it includes.
    ///
    /// # Errors
    /// When a file cannot be read, or the server of this configuration would do more than answer: sign its zones, or
    /// make them from those of others.
    pub fn read(kind: ServerKind, path: &Path) -> Result<Self, OwnConfigurationError> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut found = Found::default();
        let [options, text] = match kind {
            ServerKind::Bind => bind::read(&path, &mut found)?,
            ServerKind::Nsd => nsd::read(&path, &mut found)?,
            ServerKind::Knot => knot::read(&path, &mut found)?,
            ServerKind::Unbound => unbound::read(&path, &mut found)?,
            _ => {
                let reason = format!("dnslab runs no configuration of your own of `{kind}`");
                return Err(OwnConfigurationError { path, reason });
            }
        };
        let Found { files, removed } = found;
        Ok(Self { path, text, options, files, removed })
    }

    /// What is left of it, with all that it includes.
    #[must_use]
    pub fn whole(&self) -> String {
        format!("{}{}", self.options, self.text)
    }

    /// Files that are copied into the server's folder.
    #[must_use]
    pub fn files(&self) -> &[OwnFile] {
        &self.files
    }

    /// What was changed, a sentence each, for the notes of a server.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!(
            "the configuration is {}: addresses, ports and paths are dnslab's, and nothing of it reaches other servers by \
             transfers, notifies or updates; limits, threads, logs and all else are as it says",
            self.path.display()
        )];
        if !self.files.is_empty() {
            let (few, most) = (self.files.iter().take(3), self.files.len());
            let names: Vec<String> = few.map(|file| file.from.display().to_string()).collect();
            let and = if most > 3 { ", ..." } else { "" };
            notes.push(format!("{most} of its files are copies: {}{and}", names.join(", ")));
        }
        notes.extend(self.removed.iter().map(|(statement, times)| match times {
            1 => format!("left out of it: `{statement}`"),
            times => format!("left out of it, in {times} places: `{statement}`"),
        }));
        notes
    }
}

/// What was found on the way through a configuration.
#[derive(Debug, Default)]
struct Found {
    files: Vec<OwnFile>,
    removed: BTreeMap<String, u32>,
}

impl Found {
    /// The name that a copy of this file gets in the server's folder. The number keeps apart files of one name, and copies
    /// of one file: BIND takes none for two zones.
    fn copy(&mut self, from: PathBuf) -> String {
        let end = from.file_name().unwrap_or_default().to_string_lossy();
        let end: String =
            end.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
        let name = format!("own-{}-{end}", self.files.len() + 1);
        self.files.push(OwnFile { from, name: name.clone() });
        name
    }

    /// A statement was taken out.
    fn remove(&mut self, statement: &str) {
        let words: Vec<&str> = statement.split_whitespace().collect();
        *self.removed.entry(words.join(" ")).or_insert(0) += 1;
    }
}

/// True if a file name may have it in every language of a configuration.
fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-_.".contains(letter)
}

/// A fault in a file.
fn fault(path: &Path, reason: impl Into<String>) -> OwnConfigurationError {
    OwnConfigurationError { path: path.to_owned(), reason: reason.into() }
}

/// The text of a file.
fn read_file(path: &Path) -> Result<String, OwnConfigurationError> {
    read_given_text(path, MAX_FILE).map_err(|error| fault(path, error.to_string()))
}

/// The files that a pattern names, in order. A pattern without wildcards names one file, which must be there.
fn included(
    pattern: &str,
    folder: &Path,
    by: &Path,
    depth: u32,
) -> Result<Vec<PathBuf>, OwnConfigurationError> {
    if depth >= MAX_DEPTH {
        return Err(fault(
            by,
            format!("`{pattern}` is included {MAX_DEPTH} files deep, or includes itself"),
        ));
    }
    let whole = folder.join(pattern);
    if !pattern.contains(['*', '?', '[']) {
        return Ok(vec![whole]);
    }
    let wrong = |error: glob::PatternError| {
        fault(by, format!("`{pattern}` is no pattern of names: {error}"))
    };
    let found = glob::glob(&whole.to_string_lossy()).map_err(wrong)?;
    Ok(found.flatten().collect())
}

/// A word of a configuration without its quotes.
fn unquoted(word: &str) -> &str {
    let inside = |quote| word.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inside('"').or_else(|| inside('\'')).unwrap_or(word)
}

/// The file of a zone whose name may stand in the pattern as `%s`.
fn zone_file(pattern: &str, zone: &str, by: &Path) -> Result<String, OwnConfigurationError> {
    let name = zone.trim_end_matches('.');
    let file = pattern.replace("%s", if name.is_empty() { "." } else { name });
    if file.contains('%') {
        let reason = format!(
            "`{pattern}` is the file of the zone `{zone}`, and dnslab knows only `%s` in it"
        );
        return Err(fault(by, reason));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Reads `files[0]`, which may include the others.
    pub(super) fn read(
        kind: ServerKind,
        files: &[(&str, &str)],
    ) -> (tempfile::TempDir, Result<OwnConfiguration, OwnConfigurationError>) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let read = OwnConfiguration::read(kind, &folder.path().join(files[0].0));
        (folder, read)
    }

    /// What is left of `files[0]`, with the folder as `FOLDER`.
    #[track_caller]
    pub(super) fn shown(kind: ServerKind, files: &[(&str, &str)]) -> String {
        let (folder, read) = read(kind, files);
        let own = read.unwrap_or_else(|error| panic!("{error}"));
        let copies =
            own.files.iter().map(|file| format!("{} <- {}\n", file.name, file.from.display()));
        let notes = own.notes().join("\n");
        let text = format!(
            "--- options\n{}\n--- text\n{}\n--- files\n{}--- notes\n{notes}\n",
            own.options,
            own.text,
            copies.collect::<String>()
        );
        text.replace(&*folder.path().to_string_lossy(), "FOLDER")
    }

    #[track_caller]
    pub(super) fn refused(kind: ServerKind, files: &[(&str, &str)], expected: &str) {
        let (_folder, read) = read(kind, files);
        let error = read.unwrap_err();
        assert!(error.reason.contains(expected), "{error}");
    }

    #[test]
    fn a_file_that_includes_itself_ends() {
        for (kind, line) in [
            (ServerKind::Bind, "include \"a\";\n"),
            (ServerKind::Nsd, "include: a\n"),
            (ServerKind::Unbound, "include: \"a\"\n"),
            (ServerKind::Knot, "include: a\n"),
        ] {
            refused(kind, &[("a", line)], "includes itself");
        }
        refused(ServerKind::Bind, &[("a", "include \"nothing\";\n")], "No such file");
        refused(ServerKind::Stubby, &[("a", "")], "no configuration of your own");
    }
}
