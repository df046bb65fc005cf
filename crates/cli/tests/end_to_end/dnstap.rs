//! dnstap from live sockets: BIND, Unbound and dnsdist send it to `dnslab record`, `replay` and `profile`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use dnslab_capture::{CaptureError, CaptureOptions, CaptureReader, CaptureWriter, Captured};
use dnslab_wire::Transport;
use rustix::process::Signal;

use crate::command::{Guarded, Running};
use crate::evidence::{measured, valid_records};
use crate::processes::wait_for;
use crate::room::{Room, free_port};
use crate::running_server::{RunningBind, ask, serve};

/// Starts `dnslab` with these words, and waits until it listens.
#[track_caller]
fn listen(room: &Room, words: &[&str]) -> Running {
    let running = room.start(words);
    let listens = || running.stderr().contains("waiting for servers").then_some(());
    wait_for("it listens", || running.so_far(), listens);
    running
}

/// What stands behind this in a line that the command has written.
#[track_caller]
fn said(running: &Running, before: &str) -> String {
    let text = running.stderr();
    let behind = text.split_once(before).unwrap_or_else(|| panic!("{}", running.so_far())).1;
    behind.split([';', ' ']).next().unwrap_or_default().to_owned()
}

/// BIND that sends dnstap to this socket.
#[track_caller]
fn bind(room: &Room, name: &str, socket: &Path) -> RunningBind {
    let options =
        format!("dnstap {{ client; auth; }}; dnstap-output unix \"{}\";", socket.display());
    RunningBind::start_with(&room.path().join(name), "127.0.0.1", &options)
}

/// Starts a server in a folder of its own, and waits until it answers.
#[track_caller]
fn start(
    folder: &Path,
    (program, arguments): (&str, &[&str]),
    address: SocketAddr,
    name: &str,
) -> Guarded {
    let log = File::create(folder.join("log")).unwrap();
    let child = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn();
    let child = Guarded(child.unwrap_or_else(|error| panic!("{program}: {error}")));
    let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
    wait_for("it answers", log, || {
        (ask(Transport::Udp, address, None, name) == "192.0.2.7").then_some(())
    });
    child
}

/// Unbound, which knows all names of `example.test`, with these lines for dnstap.
#[track_caller]
fn unbound(room: &Room, dnstap: &str) -> (Guarded, SocketAddr) {
    let folder = room.path().join("unbound");
    fs::create_dir(&folder).unwrap();
    let port = free_port();
    let configuration = format!(
        "server:\n  directory: \"{}\"\n  chroot: \"\"\n  username: \"\"\n  pidfile: \"\"\n  use-syslog: no\n  \
         interface: 127.0.0.1@{port}\n  local-zone: \"example.test.\" redirect\n  \
         local-data: \"example.test. A 192.0.2.7\"\nremote-control:\n  control-enable: no\n\
         dnstap:\n  dnstap-enable: yes\n  {dnstap}\n  dnstap-log-client-query-messages: yes\n  \
         dnstap-log-client-response-messages: yes\n",
        folder.display()
    );
    fs::write(folder.join("unbound.conf"), configuration).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let arguments = ["-d", "-d", "-c", "unbound.conf"];
    let ready = "ready.example.test";
    (start(&folder, ("/usr/sbin/unbound", &arguments), address, ready), address)
}

/// dnsdist before another server, which sends dnstap to this socket.
#[track_caller]
fn dnsdist(room: &Room, behind: SocketAddr, socket: &Path) -> (Guarded, SocketAddr) {
    let folder = room.path().join("dnsdist");
    fs::create_dir(&folder).unwrap();
    let port = free_port();
    let configuration = format!(
        "setLocal(\"127.0.0.1:{port}\")\nnewServer(\"{behind}\")\n\
         log = newFrameStreamUnixLogger(\"{}\")\naddAction(AllRule(), DnstapLogAction(\"test\", log))\n",
        socket.display()
    );
    fs::write(folder.join("dnsdist.conf"), configuration).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let arguments = ["--supervised", "--disable-syslog", "-C", "dnsdist.conf"];
    (start(&folder, ("/usr/bin/dnsdist", &arguments), address, "host7.example.test"), address)
}

/// Names that were asked for, with how reading ended.
fn asked(capture: &Path) -> (Vec<String>, Result<(), CaptureError>) {
    let file = File::open(capture).unwrap();
    let mut reader = CaptureReader::new(file, CaptureOptions::default()).unwrap();
    let mut names = Vec::new();
    loop {
        match reader.next() {
            Ok(Some(query)) => names.push(name_of(query.message)),
            Ok(None) => return (names, Ok(())),
            Err(error) => return (names, Err(error)),
        }
    }
}

fn name_of(message: &[u8]) -> String {
    let (mut name, mut rest) = (String::new(), &message[12..]);
    while let [length, behind @ ..] = rest
        && *length > 0
    {
        let (label, behind) = behind.split_at(usize::from(*length));
        name.push_str(&format!("{}.", String::from_utf8_lossy(label)));
        rest = behind;
    }
    name
}

/// Asks each server for names of the zone, and waits until each of them is in the file so often.
#[track_caller]
fn ask_until_written(servers: &[SocketAddr], names: &[&str], times: usize, capture: &Path) {
    for server in servers {
        for name in names {
            assert_eq!(ask(Transport::Udp, *server, None, name), "192.0.2.7", "{server} {name}");
        }
    }
    // Unbound sends after a second.
    let state = || format!("{:?}", asked(capture).0);
    wait_for("all is in the file", state, || {
        let (found, _) = asked(capture);
        let all = |name: &&str| {
            let count =
                found.iter().filter(|asked_name| **asked_name == format!("{name}.")).count();
            count >= times
        };
        names.iter().all(all).then_some(())
    });
}

#[test]
fn servers_are_recorded_one_after_another_and_at_once() {
    let room = Room::quiet();
    let (socket, file) = (room.path().join("dnstap.sock"), room.path().join("live.dnstap"));
    let place = format!("unix:{}", socket.display());
    let mut recording = listen(&room, &["record", &place, "live.dnstap", "--socket-mode", "666"]);
    assert!(recording.stderr().contains("everybody on this machine may connect; Ctrl-C ends it"));
    let first = bind(&room, "first", &socket);
    ask_until_written(&[first.plain], &["host1.example.test", "host2.example.test"], 1, &file);
    drop(first);
    let second = bind(&room, "second", &socket);
    let (_unbound, resolver) =
        unbound(&room, &format!("dnstap-socket-path: \"{}\"", socket.display()));
    let (_dnsdist, balancer) = dnsdist(&room, second.plain, &socket);
    let servers = [second.plain, resolver, balancer];
    // BIND knows of what dnsdist asks it, and both write it down.
    ask_until_written(&servers, &["host3.example.test", "host4.example.test"], 4, &file);
    recording.press_ctrl_c();
    let done = recording.finish().exits_with(0);
    let done = done.complains("a server has begun to send").complains("live.dnstap");
    let (names, end) = asked(&file);
    end.unwrap();
    assert!(!socket.exists(), "{done}");
    let count = |name: &str| names.iter().filter(|other| *other == name).count();
    assert_eq!((count("host1.example.test."), count("host3.example.test.")), (1, 4), "{done}");
    // What another reader says of it.
    let output = Command::new("dnstap-read").arg(&file).output().unwrap();
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let queries = lines.lines().filter(|line| line.contains(" CQ ") || line.contains(" AQ "));
    assert_eq!(queries.count(), names.len(), "{lines}");
    assert!(lines.contains(" CR "), "responses are kept too: {lines}");
}

#[test]
fn what_came_before_a_kill_can_be_read() {
    let room = Room::quiet();
    let (socket, file) = (room.path().join("dnstap.sock"), room.path().join("live.dnstap"));
    let place = format!("unix:{}", socket.display());
    let mut recording = listen(&room, &["record", &place, "live.dnstap"]);
    let server = bind(&room, "bind", &socket);
    ask_until_written(&[server.plain], &["host1.example.test", "host2.example.test"], 1, &file);
    recording.signal(Signal::KILL);
    recording.finish();
    let (names, end) = asked(&file);
    assert!(names.contains(&"host2.example.test.".to_owned()), "{names:?}");
    assert!(matches!(end, Err(CaptureError::Cut { .. })), "{end:?}");
    // The socket that was left is replaced.
    assert!(socket.exists());
    let mut again = listen(&room, &["record", &place, "again.dnstap"]);
    again.press_ctrl_c();
    again.finish().exits_with(1).complains("no message came to unix:");
    room.dnslab(&["record", &place, "live.dnstap"]).exits_with(2).complains("live.dnstap exists");
    room.write("precious", "");
    let precious = format!("unix:{}", room.path().join("precious").display());
    room.dnslab(&["record", &precious, "x"]).exits_with(1).complains("is no socket");
}

#[test]
fn live_clients_are_played_and_can_be_played_again() {
    let room = Room::with_load();
    let (_running, at) = serve(&room, "127.0.0.1", &[]);
    let target = at(Transport::Udp).to_string();
    let replaying = listen(&room, &["replay", "tcp:0", &target, "--duration", "2s"]);
    let place = said(&replaying, "dnstap to tcp:").replace(':', "@");
    let (_unbound, resolver) = unbound(&room, &format!("dnstap-ip: \"{place}\"\n  dnstap-tls: no"));
    for _ in 0..8 {
        for name in ["host1.example.test", "host2.example.test"] {
            ask(Transport::Udp, resolver, None, name);
        }
    }
    let done = replaying.finish().exits_with(0).complains("a server has begun to send");
    let results = room.results();
    let record = valid_records(&results, 1).remove(0);
    let capture = results.path().join("capture.dnstap");
    assert!(record.load.queries.contains(&*capture.to_string_lossy()), "{}", record.load.queries);
    let counters = &measured(&record).counters;
    assert!(counters.outcomes.answered >= 16, "{:?}{done}", counters.outcomes);
    let names: BTreeSet<String> = asked(&capture).0.into_iter().collect();
    assert!(names.contains("host2.example.test."), "{names:?}");
    let left = fs::read_dir(room.path().join("results")).unwrap().count();
    assert_eq!(left, 1, "the recording has moved");
    // The whole of it, and once more with the experiment that was kept.
    let again = ["replay", capture.to_str().unwrap(), &target, "--results", "again"];
    room.dnslab(&again).exits_with(0);
    let path = results.path().join("experiment.toml");
    let kept = fs::read_to_string(&path).unwrap();
    assert!(kept.contains(&format!("load.capture = \"{}\"", capture.display())), "{kept}");
}

/// Sends a stream of dnstap that is made here: clients that ask now and then.
fn send_clients(socket: &Path, clients: u32, queries: u64) {
    let mut writer = CaptureWriter::dnstap(Vec::new()).unwrap();
    for number in 0..queries {
        let client = (number % u64::from(clients)) as u32;
        let name = format!("name{}", number % 37);
        let mut message = b"\0\0\x01\0\0\x01\0\0\0\0\0\0".to_vec();
        message.push(name.len() as u8);
        message.extend(name.as_bytes());
        message.extend(b"\x07example\x04test\0\0\x01\0\x01");
        let captured = Captured {
            at_ns: 1_700_000_000_000_000_000 + number * 7_000_000,
            client: (Ipv4Addr::from_bits(0x0a00_0000 + client), 40_000).into(),
            server: "192.0.2.53:53".parse().unwrap(),
            transport: Transport::Udp,
            message: &message,
        };
        writer.write(&captured).unwrap();
    }
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(&writer.finish().unwrap()).unwrap();
}

#[test]
fn a_population_is_found_behind_a_socket() {
    let room = Room::quiet();
    let socket = room.path().join("dnstap.sock");
    let place = format!("unix:{}", socket.display());
    let profiling = listen(&room, &["profile", &place, "--duration", "300ms", "-o", "population"]);
    send_clients(&socket, 50, 2_000);
    profiling.finish().exits_with(0).complains("2,000 queries");
    let population = fs::read_to_string(room.path().join("population")).unwrap();
    // Some of them are repetitions.
    assert!(population.contains(" queries of 50 clients in 14.0 s;"), "{population}");
}

#[test]
fn what_cannot_be_is_said_before_anybody_waits() {
    let room = Room::quiet();
    let refused = |words: &[&str], expected: &str| {
        room.dnslab(words).exits_with(2).complains(expected);
        let left = fs::read_dir(room.path().join("results")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "{words:?}");
    };
    refused(&["replay", "unix:socket", "127.0.0.1:1"], "a socket has no end: say how long");
    refused(&["replay", "tcp:x", "127.0.0.1:1", "--duration", "1s"], "`tcp:x` names no socket");
    let many = ["replay", "unix:socket", "127.0.0.1:1", "--duration", "1s", "--clients", "5"];
    refused(&many, "the capture says who asks what, and when");
    refused(&["profile", "capture", "--duration", "1s"], "--duration is for a socket");
    refused(&["record", "socket", "x"], "begins neither with `unix:` nor with `tcp:`");
    let owner = ["record", "unix:socket", "x", "--socket-owner", "nobody-of-this-name"];
    refused(&owner, "there is no user `nobody-of-this-name`");
    refused(&["record", "unix:socket", "x", "--socket-mode", "9"], "write three octal digits");
}

#[test]
fn an_interrupted_recording_is_kept() {
    let room = Room::quiet();
    let socket = room.path().join("dnstap.sock");
    let place = format!("unix:{}", socket.display());
    let words = ["replay", &place, "127.0.0.1:1", "--duration", "60s"];
    let mut replaying = listen(&room, &words);
    send_clients(&socket, 50, 2_000);
    let recording = wait_for(
        "all is in the file",
        || replaying.so_far(),
        || {
            let entry = fs::read_dir(room.path().join("results")).ok()?.next()?.ok()?;
            // Nothing is in it at first.
            let has_begun = entry.metadata().ok()?.len() > 100;
            (has_begun && asked(&entry.path()).0.len() == 2_000).then(|| entry.path())
        },
    );
    replaying.press_ctrl_c();
    let kept = format!("interrupted; to play what came: dnslab replay {}", recording.display());
    replaying.finish().exits_with(130).complains(&kept);
    let (names, end) = asked(&recording);
    end.unwrap();
    assert_eq!(names.len(), 2_000);
    assert!(!socket.exists());
}
