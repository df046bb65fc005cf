//! How much was written to logs whose files are replaced and removed while they are written.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Identifies a file under any name: device, inode, and when it was made (`None` where the file system does
/// not know), because file systems give the inode of a removed file to the next one.
type FileId = (u64, u64, Option<SystemTime>);

/// Counts octets written to logs, over all files that they had.
///
/// A file that comes and goes between two readings is not counted. With files of 1 MiB, one old file kept and
/// readings 0.1 s apart, that takes 20 MiB/s.
#[derive(Debug, Default)]
pub(crate) struct WrittenTally {
    /// The last known size of each file.
    seen: BTreeMap<FileId, u64>,
    /// Octets in files that were emptied later.
    emptied: u64,
}

impl WrittenTally {
    /// Octets written to these logs so far; never fewer than at the reading before.
    pub(crate) fn read(&mut self, logs: &[PathBuf]) -> u64 {
        for facts in logs.iter().flat_map(|log| files_of(log)) {
            self.note((facts.dev(), facts.ino(), facts.created().ok()), facts.len());
        }
        self.emptied + self.seen.values().sum::<u64>()
    }

    fn note(&mut self, file: FileId, size: u64) {
        let before = self.seen.insert(file, size).unwrap_or(0);
        if size < before {
            self.emptied += before;
        }
    }
}

/// The file of a log and its old ones, whose names add a dot and more.
fn files_of(log: &Path) -> Vec<Metadata> {
    let (Some(folder), Some(name)) = (log.parent(), log.file_name()) else { return Vec::new() };
    let name = name.as_encoded_bytes();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let belongs = |entry: &fs::DirEntry| {
        let its = entry.file_name();
        let rest = its.as_encoded_bytes().strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
    };
    // A file that is renamed meanwhile counts with its last size, and is found again the next time.
    entries.filter(belongs).filter_map(|entry| entry.metadata().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn old_files_count_also_when_they_are_gone() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let logs = [at("query.log"), at("dnstap.fstrm")];
        let mut tally = WrittenTally::default();
        assert_eq!(tally.read(&logs), 0);
        fs::write(at("query.log"), "12345").unwrap();
        fs::write(at("dnstap.fstrm"), "12").unwrap();
        fs::write(at("query.logbook"), "123456789").unwrap();
        assert_eq!(tally.read(&logs), 7);
        for round in 1..=5 {
            // File systems stamp with the kernel's tick of some milliseconds.
            thread::sleep(Duration::from_millis(20));
            // As BIND does with one version: the oldest is overwritten.
            fs::rename(at("query.log"), at("query.log.0")).unwrap();
            fs::write(at("query.log"), "1234567890").unwrap();
            assert_eq!(tally.read(&logs), 7 + 10 * round);
        }
        fs::remove_file(at("query.log.0")).unwrap();
        assert_eq!(tally.read(&logs), 57);
    }

    #[test]
    fn an_emptied_file_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let log = [folder.path().join("query.log")];
        let mut tally = WrittenTally::default();
        for (text, expected) in [("1234", 4), ("12", 6), ("123", 7)] {
            fs::write(&log[0], text).unwrap();
            assert_eq!(tally.read(&log), expected);
        }
    }
}
