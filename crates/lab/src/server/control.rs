//! Commands over a server's Unix socket.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long each reading and writing of a command may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Connects to the Unix socket `name` in `directory`, whose path may be longer than the 107 octets
/// that the kernel takes (unix(7)): so it is named by way of a file descriptor.
///
/// # Errors
/// When nobody listens there.
pub(super) fn connect(directory: &Path, name: &str) -> io::Result<UnixStream> {
    let folder = File::open(directory)?;
    let socket = UnixStream::connect(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// Sends `command`, and gives all that comes until the server closes the connection.
///
/// # Errors
/// When nobody listens, or the server does not answer in time; what, as half a sentence.
pub(super) fn ask(directory: &Path, name: &str, command: &str) -> Result<String, String> {
    let exchange = || {
        let mut socket = connect(directory, name)?;
        socket.write_all(command.as_bytes())?;
        let mut text = String::new();
        socket.read_to_string(&mut text)?;
        io::Result::Ok(text)
    };
    exchange().map_err(|error| format!("its control socket {name}: {error}"))
}

/// The whole numbers among lines `NAME=NUMBER`.
pub(super) fn numbers(text: &str) -> BTreeMap<&str, u64> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_folder_of_any_depth_is_reached() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("x".repeat(200));
        std::fs::create_dir(&deep).unwrap();
        // Bound where the name is short enough, then moved.
        let short = folder.path().join("ctl");
        let listener = UnixListener::bind(&short).unwrap();
        std::fs::rename(&short, deep.join("ctl")).unwrap();
        let server = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut command = [0; 6];
            socket.read_exact(&mut command).unwrap();
            socket.write_all(b"pong").unwrap();
            command
        });
        assert_eq!(ask(&deep, "ctl", "ping 1").unwrap(), "pong");
        assert_eq!(&server.join().unwrap(), b"ping 1");
        let error = ask(&deep, "no", "ping 1").unwrap_err();
        assert!(error.starts_with("its control socket no: No such file"), "{error}");
    }
}
