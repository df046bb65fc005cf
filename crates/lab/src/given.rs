//! Files that a user names: none is waited for that nobody writes, and none is read beyond a bound.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, major, minor};
use rustix::termios::isatty;

/// Why a file is not read, in an [`io::Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GivenFault {
    /// A named pipe that no process has opened to write.
    #[error("it is a pipe, and nobody writes into it")]
    NoWriter,
    /// A folder.
    #[error("it is a folder: name a file in it")]
    Folder,
    /// A device or a socket, which may have no end.
    #[error("it is a device or a socket, and not a file")]
    Device,
    /// What comes through a pipe can be read only once.
    #[error("it is a pipe, and dnslab reads it more than once: write it into a file first")]
    Pipe,
    /// What stands for standard input elsewhere.
    #[error("there is no such file, and standard input is not read: write it into a file first")]
    StandardInput,
    /// More octets than anybody needs.
    #[error("it has more than {0} octets")]
    TooLarge(u64),
    /// Other octets than those of UTF-8.
    #[error("it is no text in UTF-8")]
    NoText,
}

impl From<GivenFault> for io::Error {
    fn from(fault: GivenFault) -> Self {
        Self::other(fault)
    }
}

/// So long a process may take to write into a pipe that it waits for.
const WRITER: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Opens a file to be read more than once.
///
/// # Errors
/// When it is none, is not there, or may not be read.
pub fn open_given(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    match file.metadata()?.file_type().is_fifo() {
        true => Err(GivenFault::Pipe.into()),
        false => Ok(file),
    }
}

/// A file or a pipe that is read once.
#[derive(Debug)]
pub struct Given {
    /// Of a pipe, what was read to know that somebody writes.
    first: Option<u8>,
    file: File,
}

impl Given {
    /// Opens a file or a pipe.
    ///
    /// # Errors
    /// When it is neither, is not there, may not be read, or is a pipe without a writer.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = open(path)?;
        let first = match file.metadata()?.file_type().is_fifo() {
            true => first_octet(&mut file)?,
            false => None,
        };
        // From here on, to read is to wait for the writer.
        fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
        Ok(Self { first, file })
    }

    /// The file itself.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl From<File> for Given {
    fn from(file: File) -> Self {
        Self { first: None, file }
    }
}

impl io::Read for Given {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match (to.first_mut(), self.first) {
            (Some(place), Some(first)) => {
                (*place, self.first) = (first, None);
                Ok(1)
            }
            _ => self.file.read(to),
        }
    }
}

/// Reads a whole file or pipe of at most `most` octets.
///
/// # Errors
/// As [`Given::open`], and when it has more.
pub fn read_given(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    Given::open(path)?.take(most.saturating_add(1)).read_to_end(&mut octets)?;
    match octets.len() as u64 > most {
        true => Err(GivenFault::TooLarge(most).into()),
        false => Ok(octets),
    }
}

/// Reads a text of at most `most` octets.
///
/// # Errors
/// As [`read_given`], and when it is no UTF-8.
pub fn read_given_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read_given(path, most)?).map_err(|_| GivenFault::NoText.into())
}

/// Opens without a wait for the other end of a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let is_dash = path.file_name().is_some_and(|name| name == "-");
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_dash => {
            return Err(GivenFault::StandardInput.into());
        }
        opened => opened?,
    };
    let facts = file.metadata()?;
    let kind = facts.file_type();
    let is_null = (major(facts.rdev()), minor(facts.rdev())) == (1, 3);
    if kind.is_dir() {
        return Err(GivenFault::Folder.into());
    }
    let is_readable = kind.is_file() || kind.is_fifo() || is_null || isatty(&file);
    if is_readable { Ok(file) } else { Err(GivenFault::Device.into()) }
}

/// The first octet of a pipe, if it is there already; an end without one counts only if it stays.
fn first_octet(file: &mut File) -> io::Result<Option<u8>> {
    let mut octet = [0];
    for is_last in [false, true] {
        match file.read(&mut octet) {
            Ok(0) if is_last => return Err(GivenFault::NoWriter.into()),
            // A writer that was waiting for a reader opens the pipe now.
            Ok(0) => {
                poll(&mut [PollFd::from_borrowed_fd(file.as_fd(), PollFlags::IN)], Some(&WRITER))?;
            }
            Ok(_) => return Ok(Some(octet[0])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::thread;
    use std::time::Duration;

    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    fn pipe(folder: &tempfile::TempDir) -> PathBuf {
        let path = folder.path().join("pipe");
        mknodat(CWD, &path, FileType::Fifo, 0o600.into(), 0).unwrap();
        path
    }

    #[test]
    fn what_is_no_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, zero) = (pipe(&folder), folder.path().join("zero"));
        std::os::unix::fs::symlink("/dev/zero", &zero).unwrap();
        let fault = |path: &Path| read_given(path, 8).unwrap_err().to_string();
        assert_eq!(fault(&pipe), GivenFault::NoWriter.to_string());
        assert_eq!(fault(&zero), GivenFault::Device.to_string());
        assert_eq!(fault(folder.path()), GivenFault::Folder.to_string());
        assert!(fault(Path::new("/nowhere/x")).contains("No such file"));
        assert_eq!(open_given(&pipe).unwrap_err().to_string(), GivenFault::Pipe.to_string());
        assert_eq!(read_given(Path::new("/dev/null"), 8).unwrap(), b"");
        assert_eq!(fault(Path::new("-")), GivenFault::StandardInput.to_string());
    }

    #[test]
    fn files_are_read_up_to_their_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, b"12345678").unwrap();
        assert_eq!(read_given_text(&path, 8).unwrap(), "12345678");
        let fault = read_given(&path, 7).unwrap_err().to_string();
        assert_eq!(fault, GivenFault::TooLarge(7).to_string());
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(
            read_given_text(&path, 8).unwrap_err().to_string(),
            GivenFault::NoText.to_string()
        );
    }

    #[test]
    fn a_pipe_is_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = pipe(&folder);
        let writer = {
            let path = path.clone();
            thread::spawn(move || {
                let mut file = OpenOptions::new().write(true).open(path).unwrap();
                // A reader that is there waits for what comes later.
                thread::sleep(Duration::from_millis(50));
                io::Write::write_all(&mut file, b"token").unwrap();
            })
        };
        assert_eq!(read_given_text(&path, 8).unwrap(), "token");
        writer.join().unwrap();
    }
}
