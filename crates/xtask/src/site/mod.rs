//! The project's pages for a browser: its documents as a book, with a report that was just measured.
//!
//! `chapters` finds what belongs to the book, `evidence` and `report` write what no document holds, and mdBook makes HTML of
//! it. Every folder of the repository that is linked is one of the site, so links of the documents lead the way in both.

mod chapters;
mod evidence;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::arguments::SiteOptions;
use crate::process::{Stop, scratch, write};
use chapters::Book;

/// Settings of mdBook.
const SETTINGS: &str = include_str!("book.toml");
/// What its own style lacks.
const STYLE: &str = include_str!("site.css");

/// Makes the site. False never: what is wrong is an error.
///
/// # Errors
/// When a link is dead, a program fails, or a file cannot be written.
pub(crate) fn site(options: &SiteOptions) -> Result<bool> {
    let stop = Stop::listen()?;
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let folder = place(&root, options.folder.as_deref())?;
    let book = Book::read(&root)?;
    let scratch = scratch("site")?;
    let results = match &options.results {
        Some(results) => results.clone(),
        None => report::measure(options.dnslab.as_deref(), scratch.path(), &stop)?,
    };
    let sources = scratch.path().join("src");
    book.write(&root, &sources)?;
    report::show(&results, &sources)?;
    write(&scratch.path().join("book.toml"), SETTINGS)?;
    write(&scratch.path().join("site.css"), STYLE)?;
    build(scratch.path(), &folder)?;
    println!("{}", folder.join("index.html").display());
    Ok(true)
}

/// The folder of the site, empty: mdBook removes what is in it.
///
/// # Errors
/// When it holds files and was named by hand.
fn place(root: &Path, named: Option<&Path>) -> Result<PathBuf> {
    let Some(named) = named else {
        let own = root.join("target/site");
        if own.exists() {
            fs::remove_dir_all(&own).with_context(|| format!("cannot remove {}", own.display()))?;
        }
        fs::create_dir_all(&own)?;
        return Ok(own);
    };
    fs::create_dir_all(named).with_context(|| format!("cannot make {}", named.display()))?;
    if fs::read_dir(named)?.next().is_some() {
        bail!("{} is not empty: name a new folder", named.display());
    }
    Ok(named.canonicalize()?)
}

/// # Errors
/// When mdBook is missing or fails, or warns: what it warns of is lost on the page.
fn build(sources: &Path, folder: &Path) -> Result<()> {
    let mut mdbook = Command::new("mdbook");
    mdbook.arg("build").arg(sources).arg("--dest-dir").arg(folder);
    let remedy = "cannot start mdbook: cargo install --locked --no-default-features --features \
                  search mdbook@0.5.4";
    let made = mdbook.env_remove("RUST_LOG").output().context(remedy)?;
    let said = String::from_utf8_lossy(&made.stderr);
    let is_complaint = |line: &str| line.contains("WARN") || line.contains("ERROR");
    if !made.status.success() || said.lines().any(is_complaint) {
        bail!("mdbook complains:\n{}", said.trim_end());
    }
    Ok(())
}
