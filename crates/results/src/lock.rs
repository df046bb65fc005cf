//! One session writes into a results directory.

use std::fmt;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::sync::Arc;

use dnslab_record::visible;
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::directory::ResultsDirectory;
use crate::error::{ResultsError, io_error};
use crate::folder::Folder;

/// Name of the file that is locked. What is in it is for people.
const FILE: &str = "session.lock";

/// Octets of that file that are shown, at most.
const SHOWN: u64 = 300;

/// Who writes into a results directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// Name of its host.
    pub host: String,
    /// Since when, RFC 3339 in UTC.
    pub since: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, host, since } = self;
        write!(formatter, "process {pid} on {host}, since {since}")
    }
}

/// Keeps other sessions out of a results directory until it is dropped. The kernel holds it
/// (flock(2)): whatever ends the process, the directory is free.
#[derive(Debug)]
pub struct SessionLock {
    folder: Arc<Folder>,
    file: File,
}

impl ResultsDirectory {
    /// Keeps other sessions out.
    ///
    /// # Errors
    /// When another session is in it, who is named, or the disk refuses.
    pub fn lock(&self, holder: &Holder) -> Result<SessionLock, ResultsError> {
        let path = self.path().join(FILE);
        loop {
            let mut file = self.root.open_lock(FILE)?;
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => {
                    let mut octets = Vec::new();
                    file.take(SHOWN).read_to_end(&mut octets).map_err(io_error("read", &path))?;
                    let text = String::from_utf8_lossy(&octets);
                    let holder = visible(text.trim()).into_owned();
                    return Err(ResultsError::Held { path: self.path().to_owned(), holder });
                }
                Err(error) => return Err(io_error("lock", &path)(error.into())),
            }
            // The one before removes the file when it goes, maybe between our two steps.
            if !self.root.is_named(FILE, &file) {
                continue;
            }
            let written = file.set_len(0).and_then(|()| writeln!(file, "{holder}"));
            let lock = SessionLock { folder: Arc::clone(&self.root), file };
            return written.map(|()| lock).map_err(io_error("write", &path));
        }
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        // One that stays is locked by nobody, and taken over by the next session. Another one of that name is
        // somebody else's.
        if self.folder.is_named(FILE, &self.file) {
            self.folder.unlink(FILE).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use dnslab_record::Session;

    fn holder(pid: u32) -> Holder {
        Holder { pid, host: "server1".to_owned(), since: "2026-11-01T00:00:00Z".to_owned() }
    }

    fn results(folder: &std::path::Path) -> ResultsDirectory {
        ResultsDirectory::create(&folder.join("x"), &Session::default()).unwrap()
    }

    #[test]
    fn one_session_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let results = results(folder.path());
        let first = results.lock(&holder(7)).unwrap();
        let again = ResultsDirectory::open(results.path()).unwrap();
        let error = again.lock(&holder(8)).unwrap_err().to_string();
        assert!(error.contains("process 7 on server1, since 2026-11-01T00:00:00Z"), "{error}");
        drop(first);
        assert!(!results.path().join(FILE).exists());
        again.lock(&holder(8)).unwrap();
    }

    #[test]
    fn what_a_kill_left_holds_nobody_up() {
        let folder = tempfile::tempdir().unwrap();
        let results = results(folder.path());
        fs::write(results.path().join(FILE), "process 7, ended long ago, with a long name\n")
            .unwrap();
        let _lock = results.lock(&holder(8)).unwrap();
        let text = fs::read_to_string(results.path().join(FILE)).unwrap();
        assert_eq!(text, "process 8 on server1, since 2026-11-01T00:00:00Z\n");
    }

    #[test]
    fn no_other_file_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let results = results(folder.path());
        let (other, file) = (folder.path().join("other"), results.path().join(FILE));
        fs::write(&other, "mine").unwrap();
        let refused = || {
            let error = results.lock(&holder(7)).unwrap_err().to_string();
            fs::remove_file(&file).unwrap();
            error
        };
        std::os::unix::fs::symlink(&other, &file).unwrap();
        assert!(refused().contains("session.lock is a symbolic link"));
        fs::hard_link(&other, &file).unwrap();
        assert!(refused().contains("session.lock is a file with two names"));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &file,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert!(refused().contains("session.lock is a pipe"));
        assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
    }

    #[test]
    fn a_stranger_s_words_are_shown_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let results = results(folder.path());
        let _lock = results.lock(&holder(7)).unwrap();
        fs::write(results.path().join(FILE), "\u{1b}[2Jprocess 9").unwrap();
        let error = results.lock(&holder(8)).unwrap_err().to_string();
        assert!(error.contains("\\u{1b}[2Jprocess 9"), "{error}");
    }
}
