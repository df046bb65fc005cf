//! Servers of others, as processes.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Patience with things that take milliseconds on a quiet machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process that is killed when this is dropped: it has nothing to save.
pub(crate) struct Foreign(Child);

impl Foreign {
    /// Starts it in a folder, and waits until its log says `ready` and it accepts connections at all addresses.
    pub(crate) fn start(
        command: &mut Command,
        folder: &Path,
        ready: &str,
        addresses: &[SocketAddr],
    ) -> Self {
        let file = File::create(folder.join("log")).unwrap();
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        let child = command.spawn();
        let mut own = Self(child.unwrap_or_else(|error| {
            panic!("cannot run {command:?}: {error}; ./test installs it");
        }));
        let until = Instant::now() + PATIENCE;
        let log = || fs::read_to_string(folder.join("log")).unwrap();
        let is_silent = |address| TcpStream::connect(address).is_err();
        while !log().contains(ready) || addresses.iter().any(is_silent) {
            assert!(Instant::now() < until, "{command:?} is not ready: {}", log());
            assert!(own.0.try_wait().unwrap().is_none(), "{command:?} ended: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
        own
    }

    /// BIND with this configuration, whose zone `example.zone` is.
    pub(crate) fn named(
        folder: &Path,
        configuration: &str,
        zone: &str,
        addresses: &[SocketAddr],
    ) -> Self {
        fs::write(folder.join("example.zone"), zone).unwrap();
        fs::write(folder.join("named.conf"), configuration).unwrap();
        let mut command = Command::new("named");
        command.args(["-g", "-n", "1", "-c"]).arg(folder.join("named.conf"));
        Self::start(&mut command, folder, "all zones loaded", addresses)
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
