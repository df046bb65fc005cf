//! The documents of the book: those that `docs/SUMMARY.md` names, and what they link to. A Markdown file or a folder that
//! the summary does not name is a chapter below the first one that links to it; another file is copied.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::evidence;
use crate::process::write;

const SUMMARY: &str = "docs/SUMMARY.md";

/// All paths are relative to the root of the repository, which is that of the site too.
#[derive(Debug, Default)]
pub(super) struct Book {
    /// The table of contents, as mdBook reads it.
    summary: String,
    /// Chapters by their place in the book, with links to places in the book.
    chapters: BTreeMap<PathBuf, String>,
    /// Files that chapters link to.
    files: BTreeSet<PathBuf>,
}

/// What is read to make a book.
struct Reader<'a> {
    root: &'a Path,
    /// The places of those chapters that the summary names.
    named: BTreeSet<PathBuf>,
    book: Book,
    /// Links that lead nowhere, with their documents.
    dead: Vec<String>,
}

/// A chapter that the summary does not name.
struct Found {
    path: PathBuf,
    below: Vec<Found>,
}

impl Book {
    /// # Errors
    /// When a document cannot be read, or links lead nowhere: each is named with its document.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let text = read(&root.join(SUMMARY))?;
        let mut named = BTreeSet::new();
        for target in links(&text) {
            let path = resolved(Path::new(SUMMARY), target).context("a path of SUMMARY.md")?;
            named.insert(place(root, &path));
        }
        let mut reader = Reader { root, named, book: Self::default(), dead: Vec::new() };
        for line in text.lines() {
            reader.take_line(line)?;
        }
        if !reader.dead.is_empty() {
            bail!("links lead nowhere:\n{}", reader.dead.join("\n"));
        }
        Ok(reader.book)
    }

    /// Writes the sources of mdBook.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub(super) fn write(&self, root: &Path, to: &Path) -> Result<()> {
        for (path, text) in &self.chapters {
            write(&in_folder(&to.join(path))?, text)?;
        }
        write(&to.join("SUMMARY.md"), &self.summary)?;
        for path in &self.files {
            let copied = fs::copy(root.join(path), in_folder(&to.join(place(root, path)))?);
            copied.with_context(|| format!("cannot copy {}", path.display()))?;
        }
        Ok(())
    }
}

impl Reader<'_> {
    fn take_line(&mut self, line: &str) -> Result<()> {
        let Some(target) = links(line).into_iter().next() else {
            self.book.summary += &format!("{line}\n");
            return Ok(());
        };
        let path = resolved(Path::new(SUMMARY), target).context("a path of SUMMARY.md")?;
        let link = format!("({})", place(self.root, &path).display());
        self.book.summary += &format!("{}\n", line.replace(&format!("({target})"), &link));
        let below = self.take(&path)?;
        // mdBook puts nothing below a chapter that has no number.
        let indentation = line.find("- [");
        match indentation {
            Some(indentation) => self.list(&below, indentation + 2),
            None => self.dead.extend(below.iter().map(|found| {
                format!(
                    "{}: {} is no chapter: name it in {SUMMARY}",
                    path.display(),
                    found.path.display()
                )
            })),
        }
        Ok(())
    }

    /// Adds lines to the summary.
    fn list(&mut self, chapters: &[Found], indentation: usize) {
        for Found { path, below } in chapters {
            let place = place(self.root, path);
            let title = self.book.chapters.get(&place).and_then(|text| title(text));
            let title = title.unwrap_or_else(|| path.display().to_string());
            let spaces = " ".repeat(indentation);
            self.book.summary += &format!("{spaces}- [{title}]({})\n", place.display());
            self.list(below, indentation + 2);
        }
    }

    /// Reads a document or folder with all that it links to, and returns the chapters that are to stand below it.
    fn take(&mut self, path: &Path) -> Result<Vec<Found>> {
        let own_place = place(self.root, path);
        let mut text = match self.root.join(path).is_dir() {
            true => self.folder(path)?,
            false => read(&self.root.join(path))?,
        };
        // Those that are on their way are not taken twice.
        self.book.chapters.insert(own_place.clone(), String::new());
        let mut below = Vec::new();
        let targets: BTreeSet<String> = links(&text).into_iter().map(str::to_owned).collect();
        for target in targets {
            let file = target.split('#').next().unwrap_or_default();
            let to = resolved(&own_place, file).filter(|to| self.root.join(to).exists());
            let Some(to) = to else {
                self.dead.push(format!("{}: {target}", path.display()));
                continue;
            };
            let place = place(self.root, &to);
            let way = format!("]({}{})", way(file, &to, &place), &target[file.len()..]);
            text = text.replace(&format!("]({target})"), &way);
            if !is_markdown(&place) {
                self.book.files.insert(to);
            } else if !self.named.contains(&place) && !self.book.chapters.contains_key(&place) {
                let further = self.take(&to)?;
                below.push(Found { path: to, below: further });
            }
        }
        self.book.chapters.insert(own_place, text);
        Ok(below)
    }

    /// The page of a folder without one of its own: its files.
    fn folder(&self, path: &Path) -> Result<String> {
        let own = self.root.join(path).join("README.md");
        if own.exists() {
            return read(&own);
        }
        if path == Path::new(evidence::FOLDER) {
            return evidence::page(&self.root.join(path));
        }
        let mut files = Vec::new();
        collect(&self.root.join(path), Path::new(""), &mut files)?;
        files.sort();
        let lines = files.iter().map(|file| format!("- [{0}]({0})\n", file.display()));
        Ok(format!("# Files of {}\n\n{}", path.display(), lines.collect::<String>()))
    }
}

/// Endings of files that a browser shows; it would store others, and not show them.
const SHOWN: [&str; 4] = ["png", "svg", "json", "md"];

/// Where a file or folder lies in the book. A web server shows `index.html` where it is asked for a folder.
fn place(root: &Path, path: &Path) -> PathBuf {
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    if root.join(path).is_dir() {
        path.join("index.md")
    } else if path.ends_with("README.md") {
        path.with_file_name("index.md")
    } else if SHOWN.contains(&ending) {
        path.to_owned()
    } else {
        PathBuf::from(format!("{}.txt", path.display()))
    }
}

/// The link `file` to the path `to`, which has this place in the book.
fn way(file: &str, to: &Path, place: &Path) -> String {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let is_folder = to != place && place.starts_with(to);
    let folder = match is_folder {
        true => file.trim_end_matches('/'),
        false => file.rsplit_once('/').map_or("", |(folder, _)| folder),
    };
    if folder.is_empty() { name.into_owned() } else { format!("{folder}/{name}") }
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "md")
}

/// Adds all files below a folder. `path` is that of the folder from where the search began.
fn collect(folder: &Path, path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = path.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Makes the folder of a file.
fn in_folder(path: &Path) -> Result<PathBuf> {
    let folder = path.parent().context("a file is in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(path.to_owned())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The first heading of a document.
fn title(text: &str) -> Option<String> {
    text.lines().find_map(|line| line.strip_prefix("# ")).map(str::to_owned)
}

/// Targets of links and pictures of a Markdown text that are files of the repository.
fn links(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code {
            continue;
        }
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        found.extend(targets.filter(|to| !to.starts_with('#') && !to.contains("://")));
    }
    found
}

/// The path from the root of a link in the file `from`; `None` if it leads out of the repository.
fn resolved(from: &Path, target: &str) -> Option<PathBuf> {
    let mut path = from.parent()?.to_owned();
    for part in Path::new(target).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir if path.pop() => {}
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository of these files.
    fn repository(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn what_is_linked_is_in_the_book() {
        let root = repository(&[
            (
                SUMMARY,
                "# Summary\n[First](../README.md)\n# Part\n- [A](A.md)\n- [Files](../more)\n",
            ),
            (
                "README.md",
                "# First\n[a](docs/A.md#b) [l](LICENSE) [m](more) [n](https://example.net)",
            ),
            ("LICENSE", "free"),
            (
                "docs/A.md",
                "# A\n[up](../README.md#c) [here](#d) [d](decisions/README.md)\n```\n[x](y)\n```\n",
            ),
            ("docs/decisions/README.md", "# Decisions\n[1](0001.md) ![p](p.png)"),
            ("docs/decisions/0001.md", "# One\n[all](README.md)"),
            ("docs/decisions/p.png", ""),
            ("more/deep/a.json", "{}"),
        ]);
        let book = Book::read(root.path()).unwrap();
        assert_eq!(
            book.summary,
            "# Summary\n[First](index.md)\n# Part\n- [A](docs/A.md)\n  - [Decisions](docs/decisions/index.md)\n    \
             - [One](docs/decisions/0001.md)\n- [Files](more/index.md)\n"
        );
        let chapter =
            |path: &str| book.chapters[Path::new(path)].lines().nth(1).unwrap_or_default();
        assert_eq!(
            chapter("index.md"),
            "[a](docs/A.md#b) [l](LICENSE.txt) [m](more/index.md) [n](https://example.net)"
        );
        assert_eq!(chapter("docs/A.md"), "[up](../index.md#c) [here](#d) [d](decisions/index.md)");
        let page = &book.chapters[Path::new("more/index.md")];
        assert_eq!(page, "# Files of more\n\n- [deep/a.json](deep/a.json)\n");
        let files: Vec<&str> = book.files.iter().filter_map(|path| path.to_str()).collect();
        assert_eq!(files, ["LICENSE", "docs/decisions/p.png", "more/deep/a.json"]);
    }

    #[test]
    fn dead_links_are_named_with_their_documents() {
        let root = repository(&[
            (SUMMARY, "[First](../README.md)\n- [A](A.md)\n"),
            ("README.md", "[b](B.md)"),
            ("B.md", "# B"),
            ("docs/A.md", "[g](gone.md#a)\n[out](../../x)"),
        ]);
        let error = Book::read(root.path()).unwrap_err().to_string();
        assert_eq!(
            error,
            "links lead nowhere:\nREADME.md: B.md is no chapter: name it in docs/SUMMARY.md\n\
             docs/A.md: ../../x\ndocs/A.md: gone.md#a"
        );
    }
}
