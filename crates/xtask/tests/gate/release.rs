//! An archive as `cargo xtask dist` makes one, of the binary of the tests, on a server that speaks HTTP.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::LazyLock;

use crate::beside::dnslab;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Owner and name of the repository of the action.
pub(crate) const REPOSITORY: &str = "owner/dnslab";

pub(crate) struct Release {
    /// Of the archive.
    pub(crate) sha256: String,
    /// `http://127.0.0.1:PORT`.
    pub(crate) server: String,
}

/// Made once for all tests, since it takes seconds. Its thread ends with the tests.
pub(crate) static RELEASE: LazyLock<Release> = LazyLock::new(make);

/// Where GitHub has the files of a release.
pub(crate) fn path() -> String {
    format!("/{REPOSITORY}/releases/download/v{VERSION}")
}

fn make() -> Release {
    let folder = tempfile::tempdir().unwrap();
    let script = "mkdir -p tree/usr/bin && objcopy --strip-all \"$0\" tree/usr/bin/dnslab && \
        tar -C tree -cf - . | gzip -1 > archive && sha256sum < archive";
    let mut shell = Command::new("sh");
    let output = shell.args(["-ec", script]).arg(dnslab()).current_dir(folder.path()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let archive = fs::read(folder.path().join("archive")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || serve(&listener, &archive));
    let sha256 = String::from_utf8(output.stdout).unwrap()[..64].to_owned();
    Release { sha256, server }
}

/// Answers one request after the other.
fn serve(listener: &TcpListener, archive: &[u8]) {
    let path = format!("{}/dnslab-{VERSION}-x86_64-linux.tar.gz", path());
    for client in listener.incoming() {
        // A client that goes away harms itself.
        let _ = client.and_then(|client| answer(client, &path, archive));
    }
}

fn answer(mut client: TcpStream, path: &str, archive: &[u8]) -> std::io::Result<()> {
    let lines = BufReader::new(client.try_clone()?).lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let asked = head.first().and_then(|line| line.split(' ').nth(1));
    let (status, body) =
        if asked == Some(path) { ("200 OK", archive) } else { ("404 Not Found", &[][..]) };
    let length = body.len();
    write!(client, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
    client.write_all(body)
}
