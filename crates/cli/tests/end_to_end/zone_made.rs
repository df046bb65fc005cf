//! `dnslab make zone`: what it writes where, and what it refuses.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::command::{Running, program, unshare};
use crate::room::Room;

/// The arguments are one text.
#[track_caller]
fn make(room: &Room, arguments: &str) -> crate::command::Done {
    let words: Vec<&str> = ["make", "zone"].into_iter().chain(arguments.split(' ')).collect();
    room.dnslab(&words)
}

#[test]
fn the_zone_goes_to_the_standard_output_or_a_file() {
    let room = Room::quiet();
    let done = make(&room, "example.test --records 3 --ttl 1h").exits_with(0);
    assert!(done.stdout.starts_with("$ORIGIN example.test.\n$TTL 3600\n@ IN SOA "), "{done}");
    assert!(done.stdout.ends_with("host-000003 IN A 10.0.0.3\n"), "{done}");
    let written = make(&room, "example.test --records 3 --ttl 1h --output a.zone").exits_with(0);
    assert!(written.stdout.is_empty() && written.stderr.is_empty(), "{written}");
    assert_eq!(fs::read_to_string(room.path().join("a.zone")).unwrap(), done.stdout);
    // A pipe is no file that could be lost.
    let mut command = Command::new("sh");
    command.args(["-c", "\"$0\" make zone x --output /dev/stdout | head -n 1"]).arg(program());
    let done = Running::start(command, room.path()).finish().exits_with(0);
    assert_eq!((&*done.stdout, &*done.stderr), ("$ORIGIN x.\n", ""), "{done}");
}

/// BIND's own checker takes it.
#[test]
fn bind_takes_the_zone_for_one() {
    let room = Room::quiet();
    for (argument, name) in [("example.test", "example.test"), (r"a\;b.x\032y", r"a\;b.x\032y")] {
        let output = ["make", "zone", argument, "--records", "20", "--output", "z", "--force"];
        room.dnslab(&output).exits_with(0);
        let mut command = Command::new("/usr/bin/named-checkzone");
        command.args([name, "z"]);
        Running::start(command, room.path()).finish().exits_with(0).prints("loaded serial 1");
    }
}

#[test]
fn a_file_is_replaced_only_with_force_and_only_by_a_whole_one() {
    let room = Room::quiet();
    let path = room.write("z", "mine\n");
    make(&room, "x --output z").exits_with(2).errors(1).complains("z exists").complains("--force");
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine\n");
    make(&room, "x --output z --force").exits_with(0);
    assert!(fs::read_to_string(&path).unwrap().starts_with("$ORIGIN x.\n"));
    make(&room, "x --output . --force").exits_with(2).errors(1).complains("is a folder");
    // A link stays one.
    std::os::unix::fs::symlink("z", room.path().join("link")).unwrap();
    make(&room, "y --output link").exits_with(2).errors(1).complains("link exists");
    make(&room, "y --output link --force").exits_with(0);
    assert!(room.path().join("link").is_symlink());
    assert!(fs::read_to_string(&path).unwrap().starts_with("$ORIGIN y.\n"));
}

#[test]
fn a_disk_without_room_keeps_what_was_there() {
    let room = Room::quiet();
    let mut command = unshare();
    let script = "mkdir disk; mount -t tmpfs -o size=64k tmpfs disk || exit 99
        echo mine > disk/z; \"$0\" make zone x --records 100000 --output disk/z --force; code=$?
        cat disk/z; ls -A disk; exit $code";
    command.args(["--mount", "sh", "-c", script]).arg(program());
    let done = Running::start(command, room.path()).finish().exits_with(1).errors(1);
    let done = done.complains("cannot write disk/z").complains("No space left on device");
    assert_eq!(done.stdout, "mine\nz\n", "{done}");
    let full = make(&room, "x --output /dev/full").exits_with(1).errors(1);
    full.complains("cannot write /dev/full").complains("No space left on device");
}

#[test]
fn a_reader_that_has_read_enough_is_no_error() {
    let mut child = Command::new(program())
        .args(["make", "zone", "x", "--records", "1000000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "$ORIGIN x.\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn mistakes_are_named() {
    let room = Room::quiet();
    for (arguments, part) in [
        ("a..b", "`a..b` is no zone name"),
        ("ä.example", "is no zone name"),
        ("x --records 0", "--records"),
        ("x --records 16777215", "too large: 10.0.0.0/8 has addresses for 16777214"),
        ("x --ttl 5", "`5` is no TTL"),
        ("x --ttl 500ms", "500ms is not possible: it is a whole number of seconds"),
        ("x --format zonefile", "--format"),
        ("x --format ldif", "--suffix dc=example,dc=test"),
        ("x --format ldif --suffix example.test", "`example.test` has no `=`"),
        ("x --suffix dc=x", "--suffix is only for --format ldif"),
        ("x --format ipa --server ::1", "--server is only for --format nsupdate"),
        ("x --format nsupdate --server ns1:x", "`x` is no port"),
        ("x --batch 5", "--batch is only for --format ipa and --format nsupdate"),
        ("x --format ipa --batch 0", "--batch"),
        ("x --force", "--output <FILE>"),
    ] {
        let done = make(&room, arguments).exits_with(2).errors(1).complains(part);
        assert!(done.stdout.is_empty(), "{done}");
    }
    let done = make(&room, "x --output absent/z").exits_with(1).errors(1);
    done.complains("cannot write absent/z").complains("No such file or directory");
}
