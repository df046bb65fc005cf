//! The cache of the servers that `dnslab lab get` has fetched: one folder per name. A folder that is there is
//! complete.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The file in each folder of the cache that says what is in it. It is written last.
pub(crate) const FACTS: &str = "dnslab.json";

/// One folder of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// As in `server.root`, e.g. `bind-9.16`.
    pub name: String,
    /// Path of the folder.
    pub path: PathBuf,
    /// What it holds.
    pub facts: EntryFacts,
}

/// What was fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryFacts {
    /// Version of the server, as its program says it.
    pub version: String,
    /// Path of the program inside the folder.
    pub program: PathBuf,
    /// How it was made: the release and the mirror, or the module.
    pub source: String,
    /// Space on disk, octets.
    pub octets: u64,
}

/// The folder of the cache: `$DNSLAB_CACHE`, else `$XDG_CACHE_HOME/dnslab`, else `~/.cache/dnslab`. `None` if
/// not even `HOME` is set. It may not exist yet.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    folder_by(&|name| env::var_os(name))
}

/// An empty variable counts as unset. A relative path in `XDG_CACHE_HOME` is to be ignored (XDG Base
/// Directory Specification 0.8).
fn folder_by(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(own) = path("DNSLAB_CACHE") {
        return Some(std::path::absolute(&own).unwrap_or(own));
    }
    let of_user = path("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let of_user = of_user.or_else(|| path("HOME").map(|home| home.join(".cache")));
    Some(of_user?.join("dnslab"))
}

/// The folder of the cached server `name`.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    Some(entry(name)?.path)
}

pub(crate) fn entry(name: &str) -> Option<Entry> {
    read(&folder()?, name)
}

/// All servers in the cache `folder`, by name; none if there is no such folder.
#[must_use]
pub fn entries(folder: &Path) -> Vec<Entry> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let mut found: Vec<Entry> = names.filter_map(|name| read(folder, &name)).collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

/// The server `name` in the cache `folder`, if it is complete. Names that begin with a dot belong to what is
/// being made.
pub(crate) fn read(folder: &Path, name: &str) -> Option<Entry> {
    if name.starts_with('.') || name.contains('/') {
        return None;
    }
    let path = folder.join(name);
    let facts = serde_json::from_slice(&fs::read(path.join(FACTS)).ok()?).ok()?;
    Some(Entry { name: name.to_owned(), path, facts })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], expected: Option<&str>) {
        let variable = |name: &str| {
            let found = variables.iter().find(|(its, _)| *its == name);
            found.map(|(_, value)| OsString::from(value))
        };
        assert_eq!(folder_by(&variable), expected.map(PathBuf::from), "{variables:?}");
    }

    #[test]
    fn the_folder_follows_the_environment() {
        let (own, user, home) =
            (("DNSLAB_CACHE", "/var/roots"), ("XDG_CACHE_HOME", "/c"), ("HOME", "/root"));
        check(&[own, user, home], Some("/var/roots"));
        check(&[user, home], Some("/c/dnslab"));
        check(&[("XDG_CACHE_HOME", ""), home], Some("/root/.cache/dnslab"));
        check(&[("XDG_CACHE_HOME", "relative"), home], Some("/root/.cache/dnslab"));
        check(&[], None);
    }

    #[test]
    fn only_what_is_whole_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let facts = EntryFacts {
            version: "9.16.50".to_owned(),
            program: "usr/sbin/named".into(),
            source: "bullseye".to_owned(),
            octets: 7,
        };
        for name in ["b", "a", ".a.part-1", "half"] {
            let path = folder.path().join(name);
            fs::create_dir(&path).unwrap();
            if name != "half" {
                fs::write(path.join(FACTS), serde_json::to_vec(&facts).unwrap()).unwrap();
            }
        }
        let found = entries(folder.path());
        let names: Vec<&str> = found.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(found[0].facts, facts);
        assert_eq!(read(folder.path(), "../a"), None);
        assert_eq!(entries(Path::new("/nonexistent")), []);
    }
}
