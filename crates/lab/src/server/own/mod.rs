//! Configurations that a user wrote for a server of his own, as they are run here.
//!
//! What they say of addresses, ports and paths is taken out, and the adapter adds its own. So is what would reach other
//! machines: transfers, notifies and updates, and questions, unless that is wanted. Everything else stays, limits and views
//! and logs with it. Files that a configuration names are copied into the server's folder, so that nothing of the user's is
//! written, and keys are replaced, so that none is in the results.

mod bind;
mod clauses;
mod knot;
mod nsd;
mod unbound;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use dnslab_settings::ServerKind;

use crate::given::read_given;

/// Octets of a file of a configuration.
const MAX_FILE: u64 = 256 << 20;

/// Files that include others, one in the other.
const MAX_DEPTH: u32 = 10;

/// Stands in place of each secret: 32 octets in base64.
const NO_SECRET: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// What the names of files in the server's folder begin with that come from a configuration of the user's own.
pub const OWN_FILE: &str = "own-";

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
    /// It may ask other servers, as it says.
    pub(super) asks_others: bool,
    /// Files to copy into the server's folder.
    files: Vec<OwnFile>,
    /// Statements that were taken out, and how often.
    removed: BTreeMap<String, u32>,
    /// Patterns that include no file.
    empty: Vec<String>,
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
    /// Reads a configuration with all that it includes. `asks_others` leaves in it whom it asks.
    ///
    /// # Errors
    /// When a file cannot be read, or the server of this configuration would do more than answer: sign its zones, or
    /// take them from other programs.
    pub fn read(
        kind: ServerKind,
        path: &Path,
        asks_others: bool,
    ) -> Result<Self, OwnConfigurationError> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut found = Found::default();
        let [options, text] = match kind {
            ServerKind::Bind => bind::read(&path, asks_others, &mut found)?,
            ServerKind::Nsd => nsd::read(&path, &mut found)?,
            ServerKind::Knot => knot::read(&path, &mut found)?,
            ServerKind::Unbound => unbound::read(&path, &mut found)?,
            _ => {
                let reason = format!("dnslab runs no configuration of your own of `{kind}`");
                return Err(OwnConfigurationError { path, reason });
            }
        };
        let Found { files, removed, empty, .. } = found;
        files.iter().try_for_each(check_file)?;
        Ok(Self { path, text, options, asks_others, files, removed, empty })
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
        let asks = match self.asks_others {
            true => "it asks the servers that it says",
            false => "it asks no other server",
        };
        let mut notes = vec![format!(
            "the configuration is {}: addresses, ports, paths and keys are dnslab's, and nothing of it reaches other servers by \
             transfers, notifies or updates; {asks}",
            self.path.display()
        )];
        if !self.files.is_empty() {
            let (few, most) = (self.files.iter().take(3), self.files.len());
            let names: Vec<String> = few.map(|file| file.from.display().to_string()).collect();
            let and = if most > 3 { ", ..." } else { "" };
            notes.push(format!("{most} of its files are copies: {}{and}", names.join(", ")));
        }
        notes
            .extend(self.empty.iter().map(|pattern| format!("no file is included by `{pattern}`")));
        notes.extend(self.removed.iter().map(|(statement, times)| match times {
            1 => format!("left out of it: `{statement}`"),
            times => format!("left out of it, in {times} places: `{statement}`"),
        }));
        notes
    }
}

/// A zone file that includes others would look for them in the server's folder.
fn check_file(file: &OwnFile) -> Result<(), OwnConfigurationError> {
    let wrong = |error: std::io::Error| fault(&file.from, error.to_string());
    let reader = BufReader::new(File::open(&file.from).map_err(wrong)?);
    for (number, line) in (1..).zip(reader.split(b'\n')) {
        let line = line.map_err(wrong)?;
        if line.get(..8).is_some_and(|start| start.eq_ignore_ascii_case(b"$INCLUDE")) {
            let reason = format!(
                "line {number} has `$INCLUDE`: write the zone into one file, by `named-compilezone` for instance"
            );
            return Err(fault(&file.from, reason));
        }
    }
    Ok(())
}

/// What was found on the way through a configuration.
#[derive(Debug, Default)]
struct Found {
    files: Vec<OwnFile>,
    removed: BTreeMap<String, u32>,
    empty: Vec<String>,
    /// Names that were given.
    names: u32,
}

impl Found {
    /// The name that a copy of this file gets in the server's folder. A journal beside it is copied too.
    fn copy(&mut self, from: PathBuf) -> String {
        let name = self.name(&from);
        let journal = PathBuf::from(format!("{}.jnl", from.display()));
        if journal.exists() {
            self.files.push(OwnFile { from: journal, name: format!("{name}.jnl") });
        }
        self.files.push(OwnFile { from, name: name.clone() });
        name
    }

    /// A name in the server's folder that no other file has, for one that is written instead of this one.
    fn name(&mut self, path: &Path) -> String {
        self.names += 1;
        let end = path.file_name().unwrap_or_default().to_string_lossy();
        let plain = |letter| if is_plain(letter) { letter } else { '_' };
        format!("{OWN_FILE}{}-{}", self.names, end.chars().map(plain).collect::<String>())
    }

    /// A statement was taken out.
    fn remove(&mut self, statement: &str) {
        let words: Vec<&str> = statement.split_whitespace().collect();
        *self.removed.entry(words.join(" ")).or_insert(0) += 1;
    }

    /// The files that a pattern names, in order. A pattern without wildcards names one file, which must be there.
    fn included(
        &mut self,
        pattern: &str,
        folder: &Path,
        (by, depth): (&Path, u32),
    ) -> Result<Vec<PathBuf>, OwnConfigurationError> {
        if depth >= MAX_DEPTH {
            let reason =
                format!("`{pattern}` is included {MAX_DEPTH} files deep, or includes itself");
            return Err(fault(by, reason));
        }
        let whole = folder.join(pattern);
        if !pattern.contains(['*', '?', '[']) {
            return Ok(vec![whole]);
        }
        let as_glob = glob::MatchOptions {
            require_literal_separator: true,
            require_literal_leading_dot: true,
            ..glob::MatchOptions::default()
        };
        let found = glob::glob_with(&whole.to_string_lossy(), as_glob)
            .map_err(|error| fault(by, format!("`{pattern}` is no pattern of names: {error}")))?;
        let found: Result<Vec<PathBuf>, _> = found.collect();
        let found = found.map_err(|error| fault(error.path(), error.error().to_string()))?;
        if found.is_empty() {
            self.empty.push(whole.display().to_string());
        }
        Ok(found)
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

/// The text of a file. Comments may be in other encodings than UTF-8.
fn read_file(path: &Path) -> Result<String, OwnConfigurationError> {
    let octets = read_given(path, MAX_FILE).map_err(|error| fault(path, error.to_string()))?;
    Ok(String::from_utf8_lossy(&octets).into_owned())
}

/// The folder of a file.
fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// A word of a configuration without its quotes.
fn unquoted(word: &str) -> &str {
    let inside = |quote| word.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inside('"').or_else(|| inside('\'')).unwrap_or(word)
}

/// The name of a zone's file by its form: `part` has what stands for the letter behind a `%`, of those that are `known`.
fn file_name(
    (form, known): (&str, &str),
    (zone, by): (&str, &Path),
    part: impl Fn(char) -> Option<String>,
) -> Result<String, OwnConfigurationError> {
    let (mut file, mut rest) = (String::new(), form);
    while let Some((before, after)) = rest.split_once('%') {
        let Some(part) = after.chars().next().and_then(&part) else {
            let reason = format!(
                "`{form}` is the file of the zone `{zone}`, and dnslab knows only {known} in it: write the name of the file \
                 for that zone"
            );
            return Err(fault(by, reason));
        };
        file.push_str(before);
        file.push_str(&part);
        rest = &after[1..];
    }
    file.push_str(rest);
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Reads `files[0]`, which may include the others.
    pub(super) fn read(
        (kind, asks_others): (ServerKind, bool),
        files: &[(&str, &str)],
    ) -> (tempfile::TempDir, Result<OwnConfiguration, OwnConfigurationError>) {
        let folder = tempfile::tempdir().unwrap();
        let whole = folder.path().to_string_lossy().into_owned();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.replace("FOLDER", &whole)).unwrap();
        }
        let read = OwnConfiguration::read(kind, &folder.path().join(files[0].0), asks_others);
        (folder, read)
    }

    /// What is left of `files[0]`, with the folder as `FOLDER`.
    #[track_caller]
    pub(super) fn shown(how: (ServerKind, bool), files: &[(&str, &str)]) -> String {
        let (folder, read) = read(how, files);
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
        let (_folder, read) = read((kind, false), files);
        let error = read.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }

    const KINDS: [(ServerKind, &str); 4] = [
        (ServerKind::Bind, "include \"a\";\n"),
        (ServerKind::Nsd, "include: a\n"),
        (ServerKind::Unbound, "include: \"a\"\n"),
        (ServerKind::Knot, "include: a\n"),
    ];

    #[test]
    fn a_file_that_includes_itself_ends() {
        for (kind, line) in KINDS {
            refused(kind, &[("a", line)], "includes itself");
        }
        refused(ServerKind::Bind, &[("a", "include \"nothing\";\n")], "nothing: No such file");
        refused(ServerKind::Stubby, &[("a", "")], "no configuration of your own");
    }

    /// As glob(3), which leaves out names with a dot in front.
    #[test]
    fn patterns_name_files() {
        for (kind, line) in KINDS {
            let line = line.replace("\"a\"", "\"d/*\"").replace(" a\n", " d/*\n");
            let (_folder, read) =
                read((kind, true), &[("main", line.as_str()), ("d/.hidden", "}")]);
            let notes = read.unwrap_or_else(|error| panic!("{kind}: {error}")).notes();
            assert!(notes.join("\n").contains("no file is included by"), "{notes:?}");
        }
    }

    #[test]
    fn a_zone_file_that_includes_others_is_refused() {
        let zone = "$TTL 60\n$include more\n";
        let text = "zone \"a\" { type primary; file \"FOLDER/zone\"; };\n";
        refused(ServerKind::Bind, &[("main", text), ("zone", zone)], "zone: line 2 has `$INCLUDE`");
        refused(ServerKind::Bind, &[("main", text)], "zone: No such file");
    }
}
