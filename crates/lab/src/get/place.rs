//! Where something is made in the cache: a lock and a temporary folder, whose names begin with a dot, and a
//! log.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;

use super::GetError;
use crate::cache::{self, Entry, EntryFacts, FACTS};
use crate::error::refused;

const TRY_EVERY: Duration = Duration::from_millis(200);

/// How long the removal of a left-over folder is tried. When dnslab was killed, its guard needs some seconds
/// to end the tool, which writes meanwhile.
const REMOVE_PATIENCE: Duration = Duration::from_secs(20);

/// Octets of a block of `stat` (stat(3type)).
const BLOCK: u64 = 512;

/// A place in the cache, held by a lock. Dropping it removes the temporary folder.
#[derive(Debug)]
pub(super) struct Place {
    cache: PathBuf,
    name: &'static str,
    /// This process's id is in its name, so that a tool that is being killed never writes into the folder of
    /// the next call.
    folder: PathBuf,
    log: PathBuf,
    /// Locked while it is open.
    _lock: File,
}

impl Place {
    /// Waits for the lock on `name`, removes what earlier calls have left, and makes the folder. Fails if the
    /// cache cannot be written, something else is in the way, or `stop` is set during the wait.
    pub(super) fn take(
        cache: &Path,
        name: &'static str,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, GetError> {
        fs::create_dir_all(cache).map_err(refused("create", cache))?;
        // The tools get this path and have other working directories.
        let cache = cache.canonicalize().map_err(refused("find", cache))?;
        let lock = lock(&cache.join(format!(".{name}.lock")), name, stop, progress)?;
        remove_left_over(&cache, name)?;
        let folder = cache.join(format!("{}{}", temporary(name), std::process::id()));
        let log = cache.join(format!("{name}.log"));
        let place = Self { cache, name, folder, log, _lock: lock };
        if place.entry().is_none() {
            let target = place.target();
            if target.exists() {
                return Err(GetError::InTheWay { path: target });
            }
            place.remove_log();
            fs::create_dir(&place.folder).map_err(refused("create", &place.folder))?;
        }
        Ok(place)
    }

    /// What another process has made meanwhile.
    pub(super) fn entry(&self) -> Option<Entry> {
        cache::read(&self.cache, self.name)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    pub(super) fn make_folder(&self, name: &str) -> Result<PathBuf, GetError> {
        let path = self.folder.join(name);
        fs::create_dir(&path).map_err(refused("create", &path))?;
        Ok(path)
    }

    /// A log that cannot be written is no further error.
    pub(super) fn append_to_log(&self, octets: &[u8]) {
        let file = OpenOptions::new().append(true).create(true).open(&self.log);
        file.and_then(|mut file| file.write_all(octets)).ok();
    }

    pub(super) fn remove_log(&self) {
        fs::remove_file(&self.log).ok();
    }

    /// Removes what only the making needed: downloaded packages, indices, folders of builds. What cannot be
    /// removed stays and takes space.
    pub(super) fn clear_away_packages(&self) {
        for below in ["var/cache/apt/archives", "var/lib/apt/lists", "tmp"] {
            let entries = fs::read_dir(self.folder.join(below)).into_iter().flatten().flatten();
            for entry in entries {
                let path = entry.path();
                fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path)).ok();
            }
        }
    }

    /// Space on disk, octets. A file with several names counts each time.
    pub(super) fn octets(&self) -> u64 {
        let mut folders = vec![self.folder.clone()];
        let mut octets = 0;
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let Ok(facts) = entry.path().symlink_metadata() else { continue };
                octets += facts.blocks() * BLOCK;
                if facts.is_dir() {
                    folders.push(entry.path());
                }
            }
        }
        octets
    }

    /// Writes the facts and gives the folder its final name.
    pub(super) fn finish(self, facts: &EntryFacts) -> Result<Entry, GetError> {
        let path = self.folder.join(FACTS);
        let text = serde_json::to_vec_pretty(facts).expect("facts have string keys only");
        fs::write(&path, text).map_err(refused("write", &path))?;
        let target = self.target();
        fs::rename(&self.folder, &target).map_err(refused("rename", &self.folder))?;
        self.remove_log();
        Ok(Entry { name: self.name.to_owned(), path: target, facts: facts.clone() })
    }

    fn target(&self) -> PathBuf {
        self.cache.join(self.name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Not there after `finish`. The tool had mounts of its own and has ended, so nothing is mounted in
        // it.
        fs::remove_dir_all(&self.folder).ok();
    }
}

fn temporary(name: &str) -> String {
    format!(".{name}.part-")
}

/// Waits until no other process has the lock.
fn lock(
    path: &Path,
    name: &'static str,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&str),
) -> Result<File, GetError> {
    let file = File::create(path).map_err(refused("create", path))?;
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            Err(error) => return Err(refused("lock", path)(error.into()).into()),
        }
        if stop.load(Ordering::Relaxed) {
            return Err(GetError::Interrupted { name });
        }
        progress("waiting for another process that gets it");
        thread::sleep(TRY_EVERY);
    }
}

fn remove_left_over(cache: &Path, name: &str) -> Result<(), GetError> {
    let deadline = Instant::now() + REMOVE_PATIENCE;
    let beginning = temporary(name);
    for entry in fs::read_dir(cache).map_err(refused("read", cache))?.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(&beginning) {
            continue;
        }
        let path = entry.path();
        while let Err(error) = fs::remove_dir_all(&path) {
            if !path.exists() {
                break;
            }
            if Instant::now() > deadline {
                return Err(refused("remove", &path)(error).into());
            }
            thread::sleep(TRY_EVERY);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(cache: &Path) -> Result<Place, GetError> {
        Place::take(cache, "bind-9.16", &AtomicBool::new(false), &mut |_| {})
    }

    fn facts() -> EntryFacts {
        EntryFacts {
            version: "9.16.50".to_owned(),
            program: "usr/sbin/named".into(),
            source: "a test".to_owned(),
            octets: 0,
        }
    }

    /// Without those of locks.
    fn names(cache: &Path) -> Vec<String> {
        let names = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().file_name());
        let names = names.map(|name| name.into_string().unwrap());
        names.filter(|name| !name.ends_with(".lock")).collect()
    }

    #[test]
    fn what_is_not_finished_is_not_there() {
        let cache = tempfile::tempdir().unwrap();
        let place = take(cache.path()).unwrap();
        fs::write(place.folder().join("half"), "x").unwrap();
        assert_eq!(cache::entries(cache.path()), []);
        drop(place);
        assert_eq!(names(cache.path()), Vec::<String>::new());
    }

    #[test]
    fn what_is_finished_is_there_under_its_name() {
        let cache = tempfile::tempdir().unwrap();
        let left_over = cache.path().join(".bind-9.16.part-1/usr");
        fs::create_dir_all(left_over).unwrap();
        fs::create_dir_all(cache.path().join(".bind-9.20.part-1")).unwrap();
        let place = take(cache.path()).unwrap();
        place.append_to_log(b"a line\n");
        let entry = place.finish(&facts()).unwrap();
        assert_eq!(cache::entries(cache.path()), [entry]);
        let mut names = names(cache.path());
        names.sort();
        // That of another name may be another process's.
        assert_eq!(names, [".bind-9.20.part-1", "bind-9.16"]);
        assert!(take(cache.path()).unwrap().entry().is_some());
    }

    #[test]
    fn somebody_elses_folder_is_left_alone() {
        let cache = tempfile::tempdir().unwrap();
        fs::create_dir(cache.path().join("bind-9.16")).unwrap();
        let error = take(cache.path()).unwrap_err();
        assert!(matches!(error, GetError::InTheWay { .. }), "{error}");
        assert_eq!(names(cache.path()), ["bind-9.16"]);
    }

    #[test]
    fn a_second_call_waits_for_the_first() {
        let cache = tempfile::tempdir().unwrap();
        let first = take(cache.path()).unwrap();
        let stop = AtomicBool::new(false);
        let mut waited = 0;
        let second = Place::take(cache.path(), "bind-9.16", &stop, &mut |text| {
            assert!(text.starts_with("waiting"), "{text}");
            waited += 1;
            stop.store(waited == 2, Ordering::Relaxed);
        });
        assert!(matches!(second, Err(GetError::Interrupted { .. })), "{second:?}");
        assert!(first.folder().exists(), "the other one's folder is left alone");
        drop(first);
        take(cache.path()).unwrap();
    }
}
