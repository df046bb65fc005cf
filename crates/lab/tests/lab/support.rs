//! Helpers of the laboratory's tests: a guard, a zone, a probe, and whether a process or a group is left.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dnslab_lab::{
    GuardProgram, GuardSpec, LabError, RunningServer, ServerKind, ServerSpec, ZoneFile,
    certificate, ports,
};
use dnslab_wire::Transport;

use crate::program::{guard, program};

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A guard that becomes `nobody` before it starts the server of `spec`, with a folder that this user may
/// write. Only root can become somebody else.
pub(crate) fn nobody(spec: &ServerSpec, folder: &Path) -> GuardProgram {
    fs::create_dir(&spec.directory).expect("the folder is new");
    for path in [folder, &spec.directory] {
        let mode = fs::Permissions::from_mode(0o777);
        fs::set_permissions(path, mode).expect("the folder is the test's own");
    }
    // `nobody` in every Linux distribution. The guard is copied to where that user may read.
    let copy = folder.join("guard");
    copy_program(&program(), &copy);
    let drop = ["--reuid=65534", "--regid=65534", "--clear-groups"].map(Into::into);
    let arguments = drop.into_iter().chain([copy.into(), "guard".into()]).collect();
    GuardProgram { path: "setpriv".into(), arguments }
}

/// Not by this process: a child that another test starts meanwhile would inherit the copy, open for writing,
/// and then the program could not be executed.
pub(crate) fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "cannot copy {from:?} to {to:?}");
}

pub(crate) fn zone(folder: &Path) -> ZoneFile {
    let path = folder.join("zone-of-the-test");
    let text = "$ORIGIN example.test.\n$TTL 1\n@ SOA ns hostmaster 1 3600 600 86400 1\n@ NS ns\n\
                ns A 192.0.2.1\nalf A 192.0.2.7\n";
    fs::write(&path, text).expect("a temporary folder can be written");
    ZoneFile { origin: "example.test".to_owned(), path, signatures: None }
}

pub(crate) fn spec(
    kind: ServerKind,
    folder: &Path,
    address: &str,
    transports: &[Transport],
) -> ServerSpec {
    let address = address.parse().expect("the tests write addresses rightly");
    let ports = ports::free(address).expect("loopback has free ports");
    let spec = ServerSpec::new(kind, folder.join("server"), (address, ports), transports);
    ServerSpec { zone: Some(zone(folder)), connections: 4, ..spec }
}

/// A server that answers [`ask`] over each of its transports; or why there is none.
pub(crate) fn start(spec: &ServerSpec, folder: &Path) -> Result<RunningServer, LabError> {
    let probe = |transport, address| ask(folder, transport, address);
    RunningServer::start(spec, &guard(), &probe, PATIENCE)
}

#[track_caller]
pub(crate) fn started(spec: &ServerSpec, folder: &Path) -> RunningServer {
    start(spec, folder).unwrap_or_else(|error| panic!("{error}"))
}

/// Why a server does not start, even if its probe would be content with anything.
#[track_caller]
pub(crate) fn refused(spec: &ServerSpec) -> LabError {
    RunningServer::start(spec, &guard(), &|_, _| Ok(()), PATIENCE).unwrap_err()
}

/// A command for the guard, with `server.log` in `folder`.
pub(crate) fn guarded(folder: &Path, command: &[&str]) -> GuardSpec {
    let command = command.iter().map(|&word| word.to_owned()).collect();
    GuardSpec::new(command, folder.to_owned(), folder.join("server.log"))
}

/// Asks for `alf.example.test A` with `kdig`, encrypted with the run's own authority. (Not with `dig`: its
/// socket may get the port of a server, and then it asks itself.)
pub(crate) fn ask(folder: &Path, transport: Transport, address: SocketAddr) -> Result<(), String> {
    // A probe must return soon.
    ask_for("alf.example.test", "192.0.2.7", folder, (transport, address), 1)
}

/// Like [`ask`], for the address of `name`: one query, `seconds` of patience, and the answer must be
/// `expected`.
pub(crate) fn ask_for(
    name: &str,
    expected: &str,
    folder: &Path,
    (transport, address): (Transport, SocketAddr),
    seconds: u64,
) -> Result<(), String> {
    let mut command = Command::new("kdig");
    command.args([format!("@{}", address.ip()), "-p".to_owned(), address.port().to_string()]);
    command.arg("+retry=0");
    match transport {
        Transport::Udp => {}
        Transport::Tcp => {
            command.arg("+tcp");
        }
        encrypted => {
            let authority = folder.join("server").join(certificate::AUTHORITY);
            let authority = authority.to_str().expect("temporary folders have UTF-8 names");
            let hostname = format!("+tls-hostname={}", certificate::NAME);
            command.args([&format!("+tls-ca={authority}"), &hostname]);
            match encrypted {
                Transport::Doh2 => command.arg("+https=/dns-query"),
                Transport::Doq => command.arg("+quic"),
                _ => &mut command,
            };
        }
    }
    command.args([&format!("+time={seconds}"), "+short", name, "A"]);
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("kdig: {error}: apt-get install knot-dnsutils"));
    let text = String::from_utf8_lossy(&output.stdout);
    if text.trim() == expected { Ok(()) } else { Err(format!("the answer is `{text}`")) }
}

/// False for a zombie.
pub(crate) fn alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Fails the test after [`PATIENCE`].
#[track_caller]
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Groups that this guard has made and not removed.
pub(crate) fn groups_of(guard: u32) -> Vec<PathBuf> {
    let output = Command::new("find")
        .args(["/sys/fs/cgroup", "-type", "d", "-name", &format!("dnslab-{guard}*")])
        .stderr(Stdio::null())
        .output()
        .expect("`find` is a part of every system");
    String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from).collect()
}

pub(crate) fn parent(pid: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process is there");
    let (_, rest) = stat.rsplit_once(") ").expect("a stat line has a name");
    let field = rest.split(' ').nth(1).expect("a stat line has a parent");
    field.parse().expect("a parent is a number")
}
