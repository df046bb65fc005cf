//! Files that a user names: compressed ones, pipes, devices, other encodings, and names that become paths.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use dnslab_wire::Transport;
use rustix::fs::{CWD, FileType, mknodat};

use crate::command::{Running, program};
use crate::evidence::{measured, valid_records};
use crate::room::Room;
use crate::running_server::{queries, serve};

const SHORT: [&str; 6] = ["--clients", "1", "--duration", "100ms", "--warm-up", "0s"];

/// Compresses the file by a program, which writes to its standard output.
fn compressed(room: &Room, program: &str, name: &str) -> Vec<u8> {
    let output = Command::new(program).args(["-c", name]).current_dir(room.path()).output();
    output.unwrap_or_else(|error| panic!("{program}: {error}")).stdout
}

#[test]
fn query_files_may_be_compressed_and_marked() {
    let room = Room::with_load();
    let (_running, at) = serve(&room, "127.0.0.1", &[]);
    let target = at(Transport::Udp).to_string();
    room.write("queries", &queries());
    for (name, program) in [("queries.gz", "gzip"), ("queries.zst", "zstd")] {
        fs::write(room.path().join(name), compressed(&room, program, "queries")).unwrap();
    }
    room.write("marked", &format!("\u{feff}{}", queries()));
    for name in ["queries", "queries.gz", "queries.zst", "marked"] {
        let results = format!("results-{name}");
        let words = ["load", &target, "--queries", name, "--results", &results];
        room.dnslab(&[&words[..], &SHORT].concat()).exits_with(0);
        let folder = crate::room::folders(&room.path().join(&results)).remove(0);
        let results = dnslab_results::ResultsDirectory::open(&folder).unwrap();
        let record = valid_records(&results, 1).remove(0);
        let queries = record.load.queries.clone();
        assert!(queries.starts_with("102 queries of the file "), "{queries}");
        assert!(measured(&record).counters.outcomes.answered > 0);
    }
}

#[test]
fn query_files_that_are_none_are_named_with_a_remedy() {
    let room = Room::quiet();
    let utf16: Vec<u8> =
        "\u{feff}www.example A\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(room.path().join("utf16.txt"), utf16).unwrap();
    room.write("axfr.txt", "big AXFR\n");
    fs::write(room.path().join("cut.gz"), b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b").unwrap();
    fs::create_dir(room.path().join("folder")).unwrap();
    mknodat(CWD, room.path().join("pipe"), FileType::Fifo, 0o600.into(), 0).unwrap();
    std::os::unix::fs::symlink("/dev/zero", room.path().join("zero")).unwrap();
    for (name, expected) in [
        ("utf16.txt", "is UTF-16: write it again as UTF-8, `iconv -f UTF-16LE -t UTF-8 "),
        ("axfr.txt", "line 1: `big AXFR` asks for a zone transfer"),
        ("cut.gz", "cannot read query file"),
        ("folder", "the query file `folder` is a folder"),
        ("pipe", "the query file `pipe` is a pipe"),
        ("zero", "the query file `zero` is a device"),
        ("-", "the query file `-` would be standard input"),
    ] {
        let words = ["load", "127.0.0.1:9", "--queries", name];
        room.dnslab(&[&words[..], &SHORT].concat()).exits_with(2).complains(expected);
    }
    let transfer = room.dnslab(&["load", "127.0.0.1:9", "--types", "AXFR"]).exits_with(2);
    transfer.complains("type AXFR asks for a zone transfer");
    // What iconv makes of it is read, up to the query that nobody answers.
    let iconv = Command::new("iconv")
        .args(["-f", "UTF-16LE", "-t", "UTF-8", "utf16.txt"])
        .current_dir(room.path())
        .output()
        .unwrap();
    fs::write(room.path().join("queries.txt"), iconv.stdout).unwrap();
    let words = ["load", "127.0.0.1:9", "--queries", "queries.txt"];
    room.dnslab(&[&words[..], &SHORT].concat()).exits_with(1).complains("does not answer");
}

fn call(room: &Room, words: &[&str], input: &[u8]) -> (Option<i32>, String) {
    let mut command = Command::new(program());
    command.args(words).current_dir(room.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // One that refuses a pipe does not read it.
    let _ = child.stdin.take().unwrap().write_all(input);
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.code(), said)
}

/// The standard input, as `/dev/stdin` leads to it.
#[test]
fn pipes_are_read_where_once_is_enough() {
    let room = Room::quiet();
    let sample = include_bytes!("../../../import/tests/dnsperf/2.10-udp.txt");
    let (code, said) =
        call(&room, &["import", "dnsperf", "udp=/dev/stdin", "--out", "out"], sample);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = call(&room, &["replay", "/dev/stdin", "127.0.0.1:9"], b"");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("/dev/stdin is no regular file"), "{said}");
    let (code, said) = call(&room, &["load", "127.0.0.1:9", "--queries", "/dev/stdin"], b"a A\n");
    assert_eq!(code, Some(2), "{said}");
    let expected = "dnslab reads it more than once: write it into a file first";
    assert!(
        said.contains("the query file `/dev/stdin` is a pipe") && said.contains(expected),
        "{said}"
    );
}

#[test]
fn nobody_waits_for_a_pipe_without_a_writer_or_reads_without_an_end() {
    let room = Room::quiet();
    mknodat(CWD, room.path().join("pipe"), FileType::Fifo, 0o600.into(), 0).unwrap();
    std::os::unix::fs::symlink("/dev/zero", room.path().join("zero")).unwrap();
    let url = ["--remote-write", "http://127.0.0.1:9/"];
    for (file, reason) in [("pipe", "nobody writes into it"), ("zero", "it is a device")] {
        let load = [&["load", "127.0.0.1:9"][..], &SHORT, &url].concat();
        for words in [
            [&load[..], &["--remote-write-token", file]].concat(),
            [&load[..], &["--remote-write-headers", file]].concat(),
            vec!["import", "dnsperf", file],
            vec!["serve", "--zone", file, "--listen", "127.0.0.1:0"],
            vec!["serve", "--names", file, "--listen", "127.0.0.1:0"],
            vec!["serve", "--hierarchy", file],
            vec!["make", "internet", file, "--folder", "made"],
        ] {
            room.dnslab(&words).exits_with(2).complains(reason);
        }
    }
    room.dnslab(&["plan", "./pipe"]).exits_with(2).complains("nobody writes into it");
    let replay = room.dnslab(&["replay", "pipe", "127.0.0.1:9"]).exits_with(2);
    replay.complains("pipe is no regular file");
}

#[test]
fn secrets_that_others_can_read_are_remarked() {
    let room = Room::quiet();
    room.write("token", "geheim");
    let mode = |mode| {
        fs::set_permissions(room.path().join("token"), fs::Permissions::from_mode(mode)).unwrap();
    };
    let call = |url: &str| {
        let words = ["load", "127.0.0.1:9", "--remote-write-token", "token", "--remote-write", url];
        room.dnslab(&[&words[..], &SHORT].concat()).exits_with_one_of(&[1, 2])
    };
    let (read, heard) = ("every user of this machine can read token", "unencrypted");
    mode(0o644);
    let done = call("http://192.0.2.1:9090/w").complains(read).complains(heard);
    assert!(!done.stderr.contains("geheim"), "{done}");
    mode(0o600);
    for url in ["http://127.0.0.1:9/", "http://[::1]:9/", "https://192.0.2.1/"] {
        let done = call(url);
        assert!(!done.stderr.contains(read) && !done.stderr.contains(heard), "{done}");
    }
    for url in ["http://127.0.0.1:99999/", "http://127.0.0.1:0/", "http://[::1]:x/"] {
        let done = call(url).exits_with(2);
        let is_named = done.stderr.contains("a port that cannot be")
            || done.stderr.contains("is no address to push to");
        assert!(is_named, "{done}");
    }
}

#[test]
fn names_lead_nowhere_else() {
    let room = Room::quiet();
    room.write("udp.txt", include_str!("../../../import/tests/dnsperf/2.10-udp.txt"));
    fs::create_dir(room.path().join("inside")).unwrap();
    let inside = |words: &[&str]| {
        let mut command = Command::new(program());
        command.args(words);
        Running::start(command, &room.path().join("inside")).finish()
    };
    for name in ["../../x", "/tmp/x", "..", "", "a\nb"] {
        let option = format!("--name={name}");
        let done = inside(&["import", "dnsperf", "../udp.txt", &option]).exits_with(2);
        done.complains("cannot be a name, since a folder is named so");
        let word = format!("{name}=../udp.txt");
        let done = inside(&["import", "dnsperf", &word]).exits_with(2);
        done.complains("cannot be a name, since a folder is named so");
    }
    let names: Vec<_> =
        fs::read_dir(room.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}
