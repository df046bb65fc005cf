//! Programs that are asked for their version have nothing of the asker's: no terminal, no variables, no rights, and
//! nothing of them lives on.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use crate::program::{guard, program};
use crate::support::{alive, copy_program};
use dnslab_lab::perf::Perf;
use dnslab_lab::{LabError, ServerKind, find_in_root, users};

/// Makes a program that everybody may execute, in a folder that everybody may write.
fn script(folder: &Path, text: &str) -> String {
    fs::set_permissions(folder, Permissions::from_mode(0o777)).unwrap();
    let path = folder.join("nsd");
    fs::write(&path, format!("#!/bin/sh\ncd {}\n{text}", folder.display())).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

/// Asks a program for its version in a terminal of its own, as a user does at his.
fn ask_at_a_terminal(nsd: &str) -> Output {
    let command = format!("{} find {nsd}", program().display());
    Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .env("SECRET_TOKEN", "of CI")
        .output()
        .unwrap()
}

#[test]
fn a_program_has_nothing_of_who_asks_it() {
    let folder = tempfile::tempdir().unwrap();
    let nsd = script(
        folder.path(),
        "if (: < /dev/tty) 2> /dev/null; then touch terminal; fi\n\
         env > environment\n\
         cp /proc/self/status status\n\
         (id -u; id -g; id -G) > ids\n\
         setsid sh -c 'echo $$ > left; exec sleep 1000' > /dev/null 2>&1 &\n\
         while [ ! -s left ]; do sleep 0.01; done\n\
         echo NSD version 4.6.1\n",
    );
    let output = ask_at_a_terminal(&nsd);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("4.6.1"), "{said}");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(!folder.path().join("terminal").exists(), "it opened the terminal of the asker");
    assert!(read("environment").contains("PATH="));
    assert!(!read("environment").contains("SECRET_TOKEN"), "{}", read("environment"));
    assert!(!alive(read("left").trim().parse().unwrap()), "what it started lives on");
    if users::own() == 0 {
        let status = read("status");
        for expected in ["NoNewPrivs:\t1", "CapBnd:\t0000000000000000", "CapEff:\t0000000000000000"]
        {
            assert!(status.contains(expected), "{status}");
        }
        let ids = read("ids");
        let ids: Vec<&str> = ids.lines().collect();
        let [uid, gid, groups] = ids.as_slice() else { panic!("{ids:?}") };
        let number: u32 = uid.parse().unwrap();
        assert!((61_184..=65_519).contains(&number), "it is no unused user: {number}");
        assert_eq!((gid, groups), (uid, uid), "it has other groups than its own");
    }
}

/// A path is what the kernel takes, which need not be text.
#[test]
fn a_program_is_asked_wherever_it_is() {
    let name = OsStr::from_bytes(b"caf\xe9");
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let root = folder.path().join(name);
    // With a shell and what it is linked to, this is a root.
    for inside in ["dev", "proc", "sys", "usr/sbin", "mnt"] {
        fs::create_dir_all(root.join(inside)).unwrap();
    }
    let linked = Command::new("ldd").arg("/bin/sh").output().unwrap();
    let linked = String::from_utf8(linked.stdout).unwrap();
    let libraries = linked.split_ascii_whitespace().filter(|word| word.starts_with('/'));
    for file in libraries.chain(["/bin/sh"]) {
        let inside = root.join(file.trim_start_matches('/'));
        fs::create_dir_all(inside.parent().unwrap()).unwrap();
        copy_program(file.as_ref(), &inside);
    }
    let nsd = root.join("usr/sbin/nsd");
    fs::write(&nsd, "#!/bin/sh\necho NSD version 4.6.1\n").unwrap();
    fs::set_permissions(&nsd, Permissions::from_mode(0o755)).unwrap();
    let found = dnslab_lab::find(ServerKind::Nsd, Some(&nsd), &guard()).unwrap();
    assert_eq!((found.version.text.as_str(), found.binary), ("4.6.1", nsd));
    if users::own() == 0 {
        let found = find_in_root(ServerKind::Nsd, &root, &guard()).unwrap();
        assert_eq!(found.version.text, "4.6.1");
    }
}

#[test]
fn what_is_read_of_an_output_ends_at_a_mebibyte() {
    let folder = tempfile::tempdir().unwrap();
    let nsd = script(folder.path(), "printf '%1048572s%s\\n' '' 1.234\n");
    let found = dnslab_lab::find(ServerKind::Nsd, Some(nsd.as_ref()), &guard()).unwrap();
    assert_eq!(found.version.text, "1.23", "the last digit is behind the bound");
}

#[test]
fn a_program_that_ends_with_an_error_has_not_succeeded() {
    let folder = tempfile::tempdir().unwrap();
    let at = |status: u8| {
        let perf = script(folder.path(), &format!("echo perf version 6.1; exit {status}\n"));
        Perf::at(perf.into(), &guard()).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(at(0), Ok(()));
    let error = at(3).unwrap_err();
    assert!(error.contains("does not work (perf version 6.1)"), "{error}");
}

#[test]
fn a_program_that_closes_its_outputs_and_stays_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let stays = "echo NSD version 4.6.1; echo $$ > left; exec >&- 2>&-; sleep 1000\n";
    let nsd = script(folder.path(), stays);
    let found = dnslab_lab::find(ServerKind::Nsd, Some(nsd.as_ref()), &guard());
    let Err(LabError::Version { reason, .. }) = found else { panic!("{found:?}") };
    assert_eq!(reason, "it does not end by itself");
    let left = fs::read_to_string(folder.path().join("left")).unwrap();
    assert!(!alive(left.trim().parse().unwrap()), "it lives on");
}

#[test]
fn a_program_that_does_not_end_is_ended_with_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let nsd = script(
        folder.path(),
        "setsid sh -c 'echo $$ > left; exec sleep 1000' &\n\
         while [ ! -s left ]; do sleep 0.01; done\n\
         exec sleep 1000\n",
    );
    let found = dnslab_lab::find(ServerKind::Nsd, Some(nsd.as_ref()), &guard());
    let Err(LabError::Version { reason, .. }) = found else { panic!("{found:?}") };
    assert_eq!(reason, "it does not end by itself");
    let left = fs::read_to_string(folder.path().join("left")).unwrap();
    assert!(!alive(left.trim().parse().unwrap()), "what it started lives on");
}

#[test]
fn a_program_that_is_no_perf_is_named() {
    let error = |path: &str| Perf::at(path.into(), &guard()).unwrap_err().to_string();
    assert!(error("/bin/false").starts_with("/bin/false does not work"));
    assert!(error("/nonexistent/perf").contains("No such file"));
}

#[track_caller]
fn refuse(text: &str, expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let nsd = script(folder.path(), text);
    let error = dnslab_lab::find(ServerKind::Nsd, Some(nsd.as_ref()), &guard()).unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn what_cannot_be_executed_and_what_says_no_version_is_told() {
    refuse("echo Name Server; echo 1 >&2", "`-v` printed `Name Server`");
    refuse("head -c 3000000 /dev/zero", "`-v` printed ");
    let folder = tempfile::tempdir().unwrap();
    let nsd = script(folder.path(), "");
    fs::write(&nsd, "#!/nonexistent/interpreter-9.18\n").unwrap();
    let error = dnslab_lab::find(ServerKind::Nsd, Some(nsd.as_ref()), &guard()).unwrap_err();
    assert!(error.to_string().contains("cannot execute"), "{error}");
}
