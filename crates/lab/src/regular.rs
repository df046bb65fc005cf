//! Files in folders that somebody else may write, such as a server that is not root.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file and never waits: no symbolic link is followed, and no pipe or device opened.
///
/// # Errors
/// When it is something else, is not there, or may not be opened.
pub fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = options.custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no regular file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_pipes_are_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        let pipe = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), pipe, 0o600.into(), 0).unwrap();
        let open = |name: &str| open_regular(&at(name), OpenOptions::new().read(true));
        assert!(open("file").is_ok());
        for name in ["link", "pipe", "missing", "."] {
            assert!(open(name).is_err(), "{name}");
        }
    }
}
