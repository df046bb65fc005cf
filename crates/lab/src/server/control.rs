//! Commands over a server's Unix socket.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long each reading and writing of a command may take, and about how long all the reading of an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Most octets of an answer: BIND's statistics, the longest, have about 20 kB.
const MAX_COUNT: usize = 1 << 20;

/// Connects to the Unix socket `name` in `directory` through a file descriptor: the path may be longer than
/// the 107 octets that the kernel takes (unix(7)).
pub(super) fn connect(directory: &Path, name: &str) -> io::Result<UnixStream> {
    let folder = File::open(directory)?;
    let socket = UnixStream::connect(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// Sends `command` and returns all that comes until the server closes the connection. Fails with half a
/// sentence.
pub(super) fn ask(directory: &Path, name: &str, command: &str) -> Result<String, String> {
    let exchange = || {
        let mut socket = connect(directory, name)?;
        socket.write_all(command.as_bytes())?;
        read_answer(socket, |_| false)
    };
    exchange().map_err(|error| format!("its control socket {name}: {error}"))
}

/// Reads from a socket whose reads wait for [`PATIENCE`] at most, until it ends or `is_whole` is true of the
/// text. Fails if the other side takes too long, even by sending little at a time, or sends more than
/// [`MAX_COUNT`] octets.
pub(super) fn read_answer(
    mut socket: impl Read,
    is_whole: impl Fn(&str) -> bool,
) -> io::Result<String> {
    let late = Instant::now() + PATIENCE;
    let (mut octets, mut buffer) = (Vec::new(), [0; 16 * 1024]);
    loop {
        let length = socket.read(&mut buffer)?;
        octets.extend_from_slice(&buffer[..length]);
        let text = String::from_utf8_lossy(&octets);
        if length == 0 || is_whole(&text) {
            return Ok(text.into_owned());
        }
        if octets.len() > MAX_COUNT {
            return Err(io::Error::other("the answer does not end"));
        }
        if Instant::now() > late {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
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
    fn an_answer_without_end_is_given_up() {
        let error = read_answer(io::repeat(b'x'), |_| false).unwrap_err();
        assert_eq!(error.to_string(), "the answer does not end");
        struct Slow;
        impl Read for Slow {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                std::thread::sleep(PATIENCE / 10);
                buffer[0] = b'x';
                Ok(1)
            }
        }
        let error = read_answer(Slow, |_| false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(read_answer(io::repeat(b'x'), |text| text.len() > 9).unwrap().len(), 16 * 1024);
    }

    #[test]
    fn a_folder_of_any_depth_is_reached() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("x".repeat(200));
        std::fs::create_dir(&deep).unwrap();
        // Bound where the path is short enough, then moved.
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
