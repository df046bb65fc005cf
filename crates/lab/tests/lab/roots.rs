//! Servers of another release in a root folder, which `./test` fetches into `target/tools/cache`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::program::{guard, program};
use crate::support::{alive, ask, groups_of, parent, refused, spec, started, wait_until};
use dnslab_lab::{LabError, RootError, ServerKind, find_in_root, sockets};
use dnslab_wire::Transport::{Doh2, Dot, Tcp, Udp};

pub(crate) fn root(name: &str) -> PathBuf {
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/cache");
    let root = cache.join(name);
    let what = "./test fetches it as root; or: DNSLAB_CACHE=target/tools/cache dnslab lab get";
    assert!(root.is_dir(), "{} is missing: {what} {name}", root.display());
    root.canonicalize().expect("it is there")
}

/// The mounts that this process sees; nothing of a root may ever be among them.
fn mounts() -> String {
    fs::read_to_string("/proc/self/mounts").expect("Linux has it")
}

fn root_of(pid: u32) -> PathBuf {
    fs::read_link(format!("/proc/{pid}/root")).expect("the process is there")
}

#[test]
fn bind_of_an_older_release_answers_from_its_root() {
    let (folder, root, before) = (tempfile::tempdir().unwrap(), root("bind-9.16"), mounts());
    let mut spec = spec(ServerKind::Bind, folder.path(), "127.0.0.1", &[Udp, Tcp]);
    spec.root = Some(root.clone());
    let server = started(&spec, folder.path());
    let facts = server.facts().clone();
    assert!(facts.version.starts_with("9.16."), "{facts:?}");
    assert_eq!(facts.command[0], "/usr/sbin/named");
    let note = format!("runs by chroot in {}", root.display());
    assert!(facts.notes.iter().any(|its| its.starts_with(&note)), "{facts:?}");
    let (pid, guard) = (server.process().pid(), parent(server.process().pid()));
    // That process answers, with the libraries of the root.
    let (owner, _) = sockets::owner(Udp, spec.socket_address(Udp)).unwrap().process.unwrap();
    assert_eq!((owner, root_of(pid)), (pid, root.clone()));
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let library = maps.lines().find(|line| line.contains("/libdns-")).expect("named has libdns");
    assert!(library.contains("libdns-9.16."), "{library}");
    for transport in [Udp, Tcp] {
        ask(folder.path(), transport, server.address(transport).unwrap()).unwrap();
    }
    assert_eq!(mounts(), before, "the server's mounts are its own");
    assert!(fs::read_to_string(server.log()).unwrap().contains("BIND 9.16."));
    let report = server.stop().unwrap();
    assert!(report.requested && !report.killed, "{report:?}");
    assert!(!alive(pid) && !alive(guard) && groups_of(guard).is_empty());
    assert_eq!(mounts(), before);
    // The run's folder was bound into the root, not written there.
    assert_eq!(fs::read_dir(root.join("mnt")).unwrap().count(), 0);
    // The server's files are in the run's folder.
    assert!(spec.directory.join("named.conf").exists());
}

#[test]
fn the_release_decides_which_transports_there_are() {
    let (old, new) = (root("bind-9.16"), root("bind-9.20"));
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec(ServerKind::Bind, folder.path(), "127.0.0.1", &[Dot]);
    spec.root = Some(old);
    let error = refused(&spec);
    let text = error.to_string();
    assert!(matches!(error, LabError::Unsupported(_)), "{text}");
    assert!(text.starts_with("BIND 9.16."), "{text}");
    assert!(text.ends_with(" has no DNS over TLS: it came with 9.18"), "{text}");

    (spec.root, spec.transports) = (Some(new), vec![Udp, Dot, Doh2]);
    let server = started(&spec, folder.path());
    assert!(server.facts().version.starts_with("9.20."), "{:?}", server.facts());
    server.stop().unwrap();
}

/// Debian 12's own Knot has no DNS over TLS.
#[test]
fn knot_of_a_newer_release_speaks_tls() {
    let (folder, root) = (tempfile::tempdir().unwrap(), root("knot-3.4"));
    let mut spec = spec(ServerKind::Knot, folder.path(), "127.0.0.1", &[Udp, Dot]);
    spec.root = Some(root);
    let server = started(&spec, folder.path());
    assert!(server.facts().version.starts_with("3.4."), "{:?}", server.facts());
    server.stop().unwrap();
}

#[test]
fn a_server_in_a_root_ends_with_dnslab() {
    let (folder, root, before) = (tempfile::tempdir().unwrap(), root("bind-9.16"), mounts());
    let mut holder = Command::new(program())
        .args(["hold-in-root", root.to_str().unwrap(), folder.path().to_str().unwrap()])
        .args(["/usr/bin/tail", "-f", "/dev/null"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let pid: u32 = line.trim().parse().unwrap();
    let guard = parent(pid);
    wait_until("it is in the root", || alive(pid) && root_of(pid) == root);
    let its = fs::read_to_string(format!("/proc/{pid}/mounts")).unwrap();
    // Seen from inside, the run's folder is bound to `/mnt`, and the kernel's are there.
    for mounted in [" /mnt ", " /dev ", " /proc "] {
        assert!(its.contains(mounted), "no `{mounted}` in {its}");
    }
    holder.kill().unwrap();
    holder.wait().unwrap();
    wait_until("server and guard are gone", || !alive(pid) && !alive(guard));
    assert!(groups_of(guard).is_empty());
    assert_eq!(mounts(), before);
    assert_eq!(fs::read_dir(root.join("mnt")).unwrap().count(), 0);
}

#[test]
fn what_is_not_in_a_root_is_named() {
    let root = root("bind-9.16");
    let error = find_in_root(ServerKind::Knot, &root, &guard()).unwrap_err();
    assert!(matches!(error, LabError::Root(RootError::NoProgram { .. })), "{error}");
    assert!(error.to_string().starts_with("there is no knot in /"), "{error}");
    let error = find_in_root(ServerKind::Embedded, &root, &guard()).unwrap_err().to_string();
    assert!(error.contains("it is dnslab itself"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec(ServerKind::Bind, folder.path(), "127.0.0.1", &[Udp]);
    (spec.root, spec.binary) = (Some(root), Some("named".into()));
    let error = refused(&spec);
    assert!(error.to_string().contains("the root has its own program"), "{error}");
}

#[test]
fn without_rights_a_root_is_refused() {
    let root = root("bind-9.16");
    let output = Command::new("setpriv")
        .args(["--bounding-set=-sys_admin,-sys_chroot", "--inh-caps=-sys_admin,-sys_chroot"])
        .args([program().to_str().unwrap(), "find-in-root", root.to_str().unwrap()])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        text.contains("(CAP_SYS_ADMIN, CAP_SYS_CHROOT)\n  hint:    run dnslab as root"),
        "{text}"
    );
}
