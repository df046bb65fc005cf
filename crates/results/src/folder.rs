//! A folder of the results, reached by its descriptor: no link is followed, and nothing but regular
//! files is read.
//!
//! A results directory may come from a stranger. What is opened below it is resolved by the kernel
//! with `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS` (openat2(2), Linux 5.6), so that a link which is
//! put there in the meantime is not followed either. A hard link cannot be told from a file; nothing
//! is written through one, since each file is written beside its place and then renamed.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::error::{ResultsError, io_error};

/// Entries of a folder that are looked at, at most: servers leave some ten.
pub(crate) const MAX_ENTRIES: usize = 10_000;

/// A file that is not in its place yet.
struct Part {
    file: File,
    is_named: bool,
}

/// An open folder. Each name that it is given is that of something directly in it.
#[derive(Debug)]
pub(crate) struct Folder {
    /// For messages, and for the processes of a run.
    path: PathBuf,
    descriptor: OwnedFd,
}

impl Folder {
    /// Opens a folder by the path that the user gave, which may be a link.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self { path: path.to_owned(), descriptor })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of this name; `None` if there is none.
    ///
    /// # Errors
    /// When it is no folder, a link to one included, or cannot be opened.
    pub(crate) fn folder(&self, name: &str) -> Result<Option<Self>, ResultsError> {
        let path = self.place(name)?;
        match self.open_beneath(name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()) {
            Ok(descriptor) => Ok(Some(Self { path, descriptor })),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => Err(self.foreign(name, path)),
            Err(error) => Err(io_error("open", &path)(error.into())),
        }
    }

    /// The folder of this name, made if there is none.
    ///
    /// # Errors
    /// As [`Folder::folder`], and when it cannot be made.
    pub(crate) fn make(&self, name: &str) -> Result<Self, ResultsError> {
        let path = self.place(name)?;
        match rustix::fs::mkdirat(&self.descriptor, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(io_error("create", &path)(error.into())),
        }
        let gone = || io_error("create", &path)(io::ErrorKind::NotFound.into());
        self.folder(name)?.ok_or_else(gone)
    }

    /// A regular file, opened to be read; `None` if there is none.
    ///
    /// # Errors
    /// When it is no regular file, or cannot be opened.
    pub(crate) fn open_file(&self, name: &str) -> Result<Option<File>, ResultsError> {
        Ok(self.open_regular(name, OFlags::RDONLY)?.map(|(file, _)| file))
    }

    /// The content of a regular file of at most `most` octets; `None` if there is none.
    ///
    /// # Errors
    /// When it is no regular file, is larger, or cannot be read.
    pub(crate) fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, ResultsError> {
        let path = self.place(name)?;
        let Some((file, length)) = self.open_regular(name, OFlags::RDONLY)? else {
            return Ok(None);
        };
        let too_large = |found| ResultsError::TooLarge { path: path.clone(), found, most };
        if length > most {
            return Err(too_large(length));
        }
        let mut content = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
        // It may grow meanwhile.
        file.take(most.saturating_add(1))
            .read_to_end(&mut content)
            .map_err(io_error("read", &path))?;
        match content.len() as u64 {
            found if found > most => Err(too_large(found)),
            _ => Ok(Some(content)),
        }
    }

    /// True if there is a regular file of this name.
    ///
    /// # Errors
    /// When something else has this name.
    pub(crate) fn has_file(&self, name: &str) -> Result<bool, ResultsError> {
        Ok(self.open_regular(name, OFlags::RDONLY)?.is_some())
    }

    /// Writes a file beside its place, syncs, then renames: a reader sees the old file or the new
    /// one. A link of this name is replaced, not followed. A process that is killed meanwhile leaves nothing.
    ///
    /// # Errors
    /// When the disk refuses; an earlier file stays as it was.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<(), ResultsError> {
        let path = self.place(name)?;
        // Two processes may write the report of one directory at once.
        let part = format!("{name}.{}.part", std::process::id());
        let written = (|| {
            // What a process of this number left when it was killed, or somebody put there.
            self.unlink(&part)?;
            let mut file = self.open_part(&part)?;
            file.file.write_all(content)?;
            file.file.sync_all()?;
            if !file.is_named {
                let unnamed = format!("/proc/self/fd/{}", file.file.as_raw_fd());
                let follow = AtFlags::SYMLINK_FOLLOW;
                rustix::fs::linkat(rustix::fs::CWD, unnamed, &self.descriptor, &part, follow)?;
            }
            rustix::fs::renameat(&self.descriptor, &part, &self.descriptor, name)?;
            rustix::fs::fsync(&self.descriptor)?;
            Ok(())
        })();
        if written.is_err() {
            // A half-written file helps nobody, least of all on a full disk.
            self.unlink(&part).ok();
        }
        written.map_err(io_error("write", &path))
    }

    /// A new file without a name (O_TMPFILE, open(2)), or of the name `part` where the file system knows no such ones.
    fn open_part(&self, part: &str) -> io::Result<Part> {
        let mode = Mode::from_raw_mode(0o666);
        match self.open_beneath(".", OFlags::WRONLY | OFlags::TMPFILE, mode) {
            Ok(file) => Ok(Part { file: file.into(), is_named: false }),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
                let file = self.open_beneath(part, flags, mode)?;
                Ok(Part { file: file.into(), is_named: true })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A new file to be written bit by bit, in the place of one of this name.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(crate) fn create_file(&self, name: &str) -> Result<File, ResultsError> {
        let path = self.place(name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let created = self
            .unlink(name)
            .and_then(|()| self.open_beneath(name, flags, Mode::from_raw_mode(0o666)));
        created.map(File::from).map_err(|error| io_error("create", &path)(error.into()))
    }

    /// Moves a file here under this name.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(crate) fn take_in(&self, name: &str, file: &Path) -> Result<PathBuf, ResultsError> {
        let path = self.place(name)?;
        rustix::fs::renameat(rustix::fs::CWD, file, &self.descriptor, name)
            .map_err(|error| io_error("write", &path)(error.into()))?;
        Ok(path)
    }

    /// A file to lock, made if there is none; it has no other name.
    ///
    /// # Errors
    /// When it is no regular file, has another name too, or cannot be opened.
    pub(crate) fn open_lock(&self, name: &str) -> Result<File, ResultsError> {
        let path = self.place(name)?;
        let flags = OFlags::RDWR | OFlags::CREATE;
        let opened = self.open_as_regular(name, flags, Mode::from_raw_mode(0o666))?;
        let (file, facts) = opened.expect("it is made if there is none");
        match facts.st_nlink {
            // It is written in place, and a second name may be that of any file.
            2.. => Err(ResultsError::Foreign { path, what: "a file with two names" }),
            _ => Ok(file),
        }
    }

    /// True if this name still is that of `file`.
    pub(crate) fn is_named(&self, name: &str, file: &File) -> bool {
        let named = rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW);
        let own = rustix::fs::fstat(file);
        matches!((named, own), (Ok(named), Ok(own))
            if (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino))
    }

    /// Names of what is in the folder, sorted, and whether there are more than [`MAX_ENTRIES`]; then these are some
    /// of them.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn names(&self) -> Result<(Vec<OsString>, bool), ResultsError> {
        let refused = io_error("read", &self.path);
        let listed = Dir::read_from(&self.descriptor).map_err(|error| refused(error.into()))?;
        let (mut names, mut are_more) = (Vec::new(), false);
        for entry in listed {
            let entry = entry.map_err(|error| refused(error.into()))?;
            let octets = entry.file_name().to_bytes();
            if matches!(octets, b"." | b"..") {
                continue;
            }
            if names.len() == MAX_ENTRIES {
                are_more = true;
                break;
            }
            names.push(std::os::unix::ffi::OsStringExt::from_vec(octets.to_vec()));
        }
        names.sort();
        Ok((names, are_more))
    }

    /// Gives a folder or file another name, in the place of a file that has it.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn rename(
        &self,
        action: &'static str,
        from: &str,
        to: &str,
    ) -> Result<(), ResultsError> {
        let path = self.place(from)?;
        self.place(to)?;
        rustix::fs::renameat(&self.descriptor, from, &self.descriptor, to)
            .map_err(|error| io_error(action, &path)(error.into()))
    }

    /// Removes what has this name, if something has: a folder with all that is in it, of a link the
    /// link.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn remove(&self, name: &str) -> Result<(), ResultsError> {
        let path = self.place(name)?;
        // The standard library follows no link below the path that it is given, and this one leads to
        // the open folder.
        let here = PathBuf::from(format!("/proc/self/fd/{}", self.descriptor.as_raw_fd()));
        let removed = match fs::remove_dir_all(here.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                self.unlink(name).map_err(io::Error::from)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        };
        removed.map_err(io_error("remove", &path))
    }

    pub(crate) fn unlink(&self, name: &str) -> Result<(), Errno> {
        match rustix::fs::unlinkat(&self.descriptor, name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            other => other,
        }
    }

    /// Path of what has this name.
    ///
    /// # Errors
    /// When it is no name of something in a folder.
    fn place(&self, name: &str) -> Result<PathBuf, ResultsError> {
        match name {
            "" | "." | ".." => {}
            _ if name.contains(['/', '\0']) => {}
            _ => return Ok(self.path.join(name)),
        }
        Err(ResultsError::Outside { path: self.path.clone(), name: name.to_owned() })
    }

    /// Opens a regular file; with its length.
    fn open_regular(&self, name: &str, flags: OFlags) -> Result<Option<(File, u64)>, ResultsError> {
        let opened = self.open_as_regular(name, flags, Mode::empty())?;
        Ok(opened.map(|(file, facts)| (file, u64::try_from(facts.st_size).unwrap_or(0))))
    }

    fn open_as_regular(
        &self,
        name: &str,
        flags: OFlags,
        mode: Mode,
    ) -> Result<Option<(File, rustix::fs::Stat)>, ResultsError> {
        let path = self.place(name)?;
        // A pipe without a writer must not hold us up.
        match self.open_beneath(name, flags | OFlags::NONBLOCK | OFlags::NOCTTY, mode) {
            Ok(descriptor) => {
                let facts = rustix::fs::fstat(&descriptor)
                    .map_err(|error| io_error("read", &path)(error.into()))?;
                match FileType::from_raw_mode(facts.st_mode) {
                    FileType::RegularFile => Ok(Some((descriptor.into(), facts))),
                    _ => Err(self.foreign(name, path)),
                }
            }
            Err(Errno::NOENT) => Ok(None),
            // A link; a socket, or a device without a driver; a folder that should be written.
            Err(Errno::LOOP | Errno::NXIO | Errno::NODEV | Errno::ISDIR) => {
                Err(self.foreign(name, path))
            }
            Err(error) => Err(io_error("open", &path)(error.into())),
        }
    }

    fn open_beneath(&self, name: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        loop {
            match rustix::fs::openat2(self.descriptor.as_fd(), name, flags, mode, resolve) {
                // The kernel could not tell for sure, since something was renamed meanwhile.
                Err(Errno::AGAIN | Errno::INTR) => {}
                other => return other,
            }
        }
    }

    /// The error of something that is not what it should be.
    fn foreign(&self, name: &str, path: PathBuf) -> ResultsError {
        let facts = rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW);
        let what = match facts.map(|facts| FileType::from_raw_mode(facts.st_mode)) {
            Ok(FileType::Symlink) => "a symbolic link",
            Ok(FileType::Directory) => "a folder",
            Ok(FileType::RegularFile) => "a file",
            Ok(FileType::Fifo) => "a pipe",
            Ok(FileType::Socket) => "a socket",
            _ => "a device",
        };
        ResultsError::Foreign { path, what }
    }
}
