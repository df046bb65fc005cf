//! Servers in a root folder of their own: the programs and libraries of another release of a distribution,
//! run here by chroot.
//!
//! The stage of `crate::launch` gives the server mounts of its own, in which the run's folder and the
//! kernel's file systems are bound into the root, and moves into it. All of these mounts belong to that
//! process and its children and go away with the last of them: nobody has to unmount anything, and no other
//! process sees them. Configurations name only relative paths, so they mean the same inside.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use dnslab_settings::is_name;

use crate::asked::Question;
use crate::error::LabError;
use crate::file_system::{FileSystem, KERNEL_FOLDERS, RUN_FOLDER};
use crate::get::Recipe;
use crate::guarded::GuardProgram;
use crate::root_error::{PROGRAM_FOLDERS, RootError};
use crate::server::{Installed, ServerKind, Version, adapter, ask_version, is_executable};
use crate::users::User;
use crate::{cache, privileges};

/// It changes the root of a process that asks for a version, and the user then.
const CHROOT: &str = "/usr/sbin/chroot";

/// A root folder that is there and can be entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// Its absolute path, without symbolic links.
    folder: PathBuf,
}

impl Root {
    /// Opens `root`: a folder, or the name of one that `dnslab lab get` has made. Fails if there is none, or
    /// this process may not enter it.
    pub(crate) fn open(root: &Path) -> Result<Self, RootError> {
        let folder = locate(root)?;
        let missing = privileges::missing_rights();
        if missing.is_empty() {
            return Ok(Self { folder });
        }
        Err(RootError::NotPrivileged { root: folder, missing })
    }

    pub(crate) fn file_system(&self) -> FileSystem {
        FileSystem::Root(self.folder.clone())
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// For the record of a server that runs in it.
    pub(crate) fn note(&self) -> String {
        format!(
            "runs by chroot in {}: with the libraries of that release, OpenSSL among them",
            self.folder.display()
        )
    }

    /// Finds a server's program inside and asks it for its version, with the libraries of the root.
    pub(crate) fn find(
        &self,
        kind: ServerKind,
        guard: &GuardProgram,
    ) -> Result<Installed, LabError> {
        let binary = self.program(kind)?;
        let argument = adapter(kind).facts().version_argument;
        let version = self.ask_version(&binary, argument, guard)?;
        Ok(Installed { kind, binary, version })
    }

    /// The path of a server's program inside, from this root.
    fn program(&self, kind: ServerKind) -> Result<PathBuf, RootError> {
        if kind == ServerKind::Embedded {
            let (what, why) = ("the embedded server", "it is dnslab itself");
            return Err(RootError::Senseless { what, why });
        }
        let program = kind.profile().program;
        let inside = PROGRAM_FOLDERS
            .iter()
            .map(|folder| Path::new(folder).join(program))
            .find(|path| is_executable(&self.folder.join(path)))
            .ok_or_else(|| RootError::NoProgram {
                kind: kind.name(),
                program,
                root: self.folder.clone(),
            })?;
        Ok(Path::new("/").join(inside))
    }

    pub(crate) fn ask_version(
        &self,
        binary: &Path,
        argument: &str,
        guard: &GuardProgram,
    ) -> Result<Version, LabError> {
        // Only root may enter, so the tool gives up root and not its caller.
        let user = privileges::to_ask_as(binary, Some(&self.folder));
        let user = user.map(|User { uid, gid }| format!("--userspec=+{uid}:+{gid}"));
        let options = user.iter().flat_map(|user| [user.as_str(), "--groups="].map(OsStr::new));
        let command = [self.folder.as_os_str(), binary.as_os_str(), OsStr::new(argument)];
        let outside = self.folder.join(binary.strip_prefix("/").unwrap_or(binary));
        ask_version(
            &Question::new(Path::new(CHROOT), options.chain(command)),
            &outside,
            argument,
            guard,
        )
    }
}

/// Finds the program of a server in a root folder (or one in the cache, by its name) and asks it for its
/// version, under `guard`.
///
/// # Errors
/// When the folder, the program, a right or the version is missing.
pub fn find_in_root(
    kind: ServerKind,
    root: &Path,
    guard: &GuardProgram,
) -> Result<Installed, LabError> {
    Root::open(root)?.find(kind, guard)
}

/// Finds the program of a server in a root folder without running it. Returns its path with that of the root,
/// and its version if `dnslab lab get` has fetched the root and written that down.
///
/// # Errors
/// When the folder, the program or a right is missing.
pub fn program_in_root(
    kind: ServerKind,
    root: &Path,
) -> Result<(PathBuf, Option<Version>), RootError> {
    let fetched = root.to_str().filter(|_| is_name(root)).and_then(cache::entry);
    let root = Root::open(root)?;
    let inside = root.program(kind)?;
    let inside = inside.strip_prefix("/").unwrap_or(&inside);
    let fetched = fetched.filter(|entry| entry.facts.program == inside);
    let version = fetched.and_then(|entry| Version::find(&entry.facts.version));
    Ok((root.folder.join(inside), version))
}

/// Finds a root folder by its path, or by its name in the cache; starts nothing. The path is absolute and
/// without symbolic links.
///
/// # Errors
/// When there is none.
pub fn locate(root: &Path) -> Result<PathBuf, RootError> {
    // A name never means a folder in the working directory: that would depend on where dnslab runs.
    let by_name = is_name(root);
    let cached = root.to_str().filter(|_| by_name).and_then(cache::find);
    let path = if by_name { cached } else { Some(root.to_owned()) };
    let found = path.and_then(|path| path.canonicalize().ok()).filter(|path| path.is_dir());
    let Some(folder) = found else {
        return Err(RootError::Missing { root: root.to_owned(), hint: hint(root, by_name) });
    };
    for inside in KERNEL_FOLDERS.into_iter().chain(["usr", RUN_FOLDER]) {
        if !folder.join(inside).is_dir() {
            return Err(RootError::Incomplete { root: folder, folder: inside });
        }
    }
    Ok(folder)
}

/// How to get a root that is not there.
fn hint(root: &Path, by_name: bool) -> String {
    if !by_name {
        return "the path is wrong, or nothing was put there yet: debootstrap makes root folders, and \
                `dnslab lab get` calls it"
            .to_owned();
    }
    let name = root.display();
    if Recipe::find(&name.to_string()).is_some_and(Recipe::is_root) {
        return format!("as root: dnslab lab get {name}");
    }
    let known: Vec<&str> =
        Recipe::all().filter(|recipe| recipe.is_root()).map(|recipe| recipe.name()).collect();
    format!("a path has `/`; the names are {}: dnslab lab get NAME", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_no_root_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = locate(&folder.path().join("absent")).unwrap_err();
        assert!(error.to_string().ends_with("/absent`"), "{error}");
        assert!(error.hint().unwrap().starts_with("the path is wrong"), "{error:?}");
        let error = locate(folder.path()).unwrap_err().to_string();
        assert!(error.contains("it has no folder `dev`"), "{error}");
        for inside in ["dev", "proc", "sys", "usr", "mnt"] {
            std::fs::create_dir(folder.path().join(inside)).unwrap();
        }
        assert_eq!(locate(folder.path()).unwrap(), folder.path().canonicalize().unwrap());
    }

    #[test]
    fn a_name_that_is_not_there_says_how_to_get_it() {
        let hint_of = |name| locate(Path::new(name)).unwrap_err().hint().unwrap().to_owned();
        let unknown = hint_of("bind-8.4");
        assert!(unknown.contains("the names are bind-9.16, bind-9.20, "), "{unknown}");
        // No root is made for it, but a program.
        let program = hint_of("coredns");
        assert!(program.contains("a path has `/`"), "{program}");
        assert!(hint(Path::new("bind-9.16"), true).ends_with("dnslab lab get bind-9.16"));
    }

    #[test]
    fn names_are_told_from_paths() {
        let cases = [("bind-9.16", true), ("./bind", false), ("/srv/root", false), (".", false)];
        for (text, expected) in cases {
            assert_eq!(is_name(Path::new(text)), expected, "{text}");
        }
    }
}
