//! BIND, over UDP and TCP.

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dnslab_test_support::free_address;

use crate::load::zone;

/// Patience with things that take milliseconds on a quiet machine.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Bind {
    pub(crate) address: SocketAddr,
    folder: tempfile::TempDir,
    process: Child,
}

impl Bind {
    /// Starts it with these statements outside and these inside of `options`.
    pub(crate) fn start(outside: &str, inside: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = free_address([127, 0, 0, 1].into());
        let configuration = format!(
            r#"
options {{
    directory "{folder}"; pid-file "named.pid"; session-keyfile "session.key";
    managed-keys-directory "."; recursion no; dnssec-validation no; notify no;
    listen-on-v6 {{ none; }}; listen-on port {port} {{ 127.0.0.1; }};
    interface-interval 0; {inside}
}};
controls {{ }};
{outside}
zone "example" {{ type primary; file "example.zone"; }};
"#,
            folder = folder.path().display(),
            port = address.port(),
        );
        std::fs::write(folder.path().join("example.zone"), zone()).unwrap();
        std::fs::write(folder.path().join("named.conf"), configuration).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let process = Command::new("named")
            .args(["-g", "-n", "1", "-c"])
            .arg(folder.path().join("named.conf"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run named: {error}; install bind9"));
        let mut server = Self { address, folder, process };
        server.wait();
        server
    }

    fn wait(&mut self) {
        let until = Instant::now() + PATIENCE;
        let log = || std::fs::read_to_string(self.folder.path().join("log")).unwrap();
        while !log().contains("all zones loaded") || TcpStream::connect(self.address).is_err() {
            assert!(Instant::now() < until, "named is not ready: {}", log());
            assert!(self.process.try_wait().unwrap().is_none(), "named ended: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Bind {
    fn drop(&mut self) {
        // It has nothing to save.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
