//! Captures that other programs wrote, read beside what tshark and dnstap-read say of them. It needs root, BIND,
//! Unbound, tcpdump and the programs of Wireshark: checks/debian-packages.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::thread;

use dnslab_capture::{
    CaptureError, CaptureOptions, CaptureReader, CaptureWriter, Captured, Counts, DnstapSource,
    FrameReceiver, FrameWriter, Reason,
};
use dnslab_wire::Transport;
use tempfile::TempDir;

/// Message id, transport and name of a query.
type Asked = (u16, Transport, String);

/// Each query of a capture in order of ids and names, and what became of the rest.
fn read(path: &Path, options: CaptureOptions) -> (Vec<Asked>, Counts) {
    let mut reader = CaptureReader::new(File::open(path).unwrap(), options).unwrap();
    let mut asked = Vec::new();
    while let Some(query) = reader.next().unwrap() {
        asked.push(asked_by(&query));
    }
    asked.sort();
    let counts = reader.counts().clone();
    assert!(counts.add_up(), "{counts:?}");
    (asked, counts)
}

fn read_to_error(file: File) -> Result<(), CaptureError> {
    let mut reader = CaptureReader::new(file, CaptureOptions::default())?;
    while reader.next()?.is_some() {}
    Ok(())
}

fn asked_by(query: &Captured<'_>) -> Asked {
    let id = u16::from_be_bytes([query.message[0], query.message[1]]);
    let (mut name, mut rest) = (Vec::new(), &query.message[12..]);
    while let [length, behind @ ..] = rest
        && *length > 0
    {
        let (label, behind) = behind.split_at(usize::from(*length));
        name.push(String::from_utf8(label.to_vec()).unwrap());
        rest = behind;
    }
    (id, query.transport, name.join("."))
}

/// The queries that tshark finds.
fn read_by_tshark(path: &Path) -> Vec<Asked> {
    let filter = "dns.flags.response == 0 && dns.flags.opcode == 0";
    let mut command = Command::new("tshark");
    command.arg("-r").arg(path).args(["-Y", filter, "-T", "fields", "-E", "occurrence=a"]);
    command.args(["-e", "udp.srcport", "-e", "dns.id", "-e", "dns.qry.name"]);
    let mut asked = Vec::new();
    for line in text(&run(&mut command)).lines() {
        let [port, ids, names] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let transport = if port.is_empty() { Transport::Tcp } else { Transport::Udp };
        // A packet may have several messages.
        for (id, name) in ids.split(',').zip(names.split(',')) {
            let id = u16::from_str_radix(id.trim_start_matches("0x"), 16).unwrap();
            asked.push((id, transport, name.to_owned()));
        }
    }
    asked.sort();
    asked
}

fn run(command: &mut Command) -> Output {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Runs a script in an empty network namespace and a folder that is its own.
fn run_isolated(folder: &Path, script: &str) {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "120", "unshare", "--net", "bash", "-c", script]);
    let output = command.current_dir(folder).output().expect("unshare of util-linux is there");
    let log = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    assert!(
        output.status.success(),
        "{}\n{}\n{}",
        String::from_utf8_lossy(&output.stderr),
        log("named.log"),
        log("unbound.log"),
    );
}

/// A configuration of BIND with one zone, which has all names.
fn configure_bind(folder: &Path, dnstap_output: &str) {
    let options = format!(
        "options {{ directory \"{}\"; pid-file none; session-keyfile none; recursion no; \
         dnssec-validation no; listen-on port 53 {{ 127.0.0.1; }}; listen-on-v6 port 53 {{ ::1; }}; \
         dnstap {{ client; auth; }}; dnstap-output {dnstap_output}; }};\ncontrols {{ }};\n\
         zone \"example\" {{ type primary; file \"example.zone\"; }};\n",
        folder.display(),
    );
    fs::write(folder.join("named.conf"), options).unwrap();
    let zone =
        "$TTL 60\n@ SOA ns hostmaster 1 3600 600 86400 60\n@ NS ns\nns A 127.0.0.1\n* TXT hello\n";
    fs::write(folder.join("example.zone"), zone).unwrap();
}

/// The captures of one exchange between dig and BIND.
static CAPTURES: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    configure_bind(folder.path(), "file \"bind.dnstap\"");
    for name in ["fragments-4", "fragments-6"] {
        fs::write(folder.path().join(name), large_query(name)).unwrap();
    }
    run_isolated(folder.path(), include_str!("capture.sh"));
    folder
});

/// A query for TXT of `NAME.example`, with 3,000 octets of an option.
fn large_query(name: &str) -> Vec<u8> {
    let mut message = b"\x12\x34\0\0\0\x01\0\0\0\0\0\x01".to_vec();
    for label in [name, "example", ""] {
        message.push(label.len() as u8);
        message.extend(label.as_bytes());
    }
    message.extend(b"\0\x10\0\x01\0\0\x29\x04\xd0\0\0\0\0");
    for number in [3_004_u16, 65_001, 3_000] {
        message.extend(number.to_be_bytes());
    }
    message.resize(message.len() + 3_000, 7);
    message
}

/// The names that dig asks for over each transport.
fn expected() -> BTreeMap<(String, Transport), usize> {
    let mut names = BTreeMap::new();
    for number in 1..=20 {
        for transport in [Transport::Udp, Transport::Tcp] {
            names.insert((format!("name-{number}.example"), transport), 2);
        }
    }
    for name in ["fragments-4", "fragments-6", "last"] {
        names.insert((format!("{name}.example"), Transport::Udp), 1);
    }
    names.insert(("segments.example".to_owned(), Transport::Tcp), 1);
    names
}

fn names(asked: &[Asked]) -> BTreeMap<(String, Transport), usize> {
    let mut names = BTreeMap::new();
    for (_, transport, name) in asked {
        *names.entry((name.clone(), *transport)).or_default() += 1;
    }
    names
}

#[test]
fn captures_of_tcpdump_are_read_as_tshark_reads_them() {
    for name in ["lo.pcap", "cooked.pcap", "cooked2.pcap"] {
        let path = CAPTURES.path().join(name);
        let (asked, counts) = read(&path, CaptureOptions::default());
        assert_eq!(names(&asked), expected(), "{name}: {counts:?}");
        assert_eq!(asked, read_by_tshark(&path), "{name}");
        // One connection for twenty queries, then one for each.
        assert_eq!((counts.connections, counts.connections_without_start, counts.gaps), (22, 0, 0));
        assert_eq!(counts.skipped(Reason::OtherOpcode), 1);
        assert_eq!(counts.stream_messages, 41);
        assert_eq!(counts.skipped(Reason::Fragment), 0);
        let packets = text(&run(Command::new("capinfos").args(["-TrcM"]).arg(&path)));
        let packets: u64 = packets.split_whitespace().last().unwrap().parse().unwrap();
        assert_eq!(counts.packets, packets, "{name}");
    }
}

#[test]
fn a_capture_of_dumpcap_with_two_interfaces_has_everything_twice() {
    let path = CAPTURES.path().join("two.pcapng");
    let (asked, counts) = read(&path, CaptureOptions::default());
    let mut twice = expected();
    for ((_, transport), count) in &mut twice {
        // The same segments come from both interfaces, and are one stream.
        *count *= if *transport == Transport::Udp { 2 } else { 1 };
    }
    // Both have the same fragments, of which each is needed once.
    twice.insert(("fragments-4.example".to_owned(), Transport::Udp), 1);
    twice.insert(("fragments-6.example".to_owned(), Transport::Udp), 1);
    let found = names(&asked);
    for (name, count) in &twice {
        let seen = found.get(name).copied().unwrap_or(0);
        let is_fragment = name.0.starts_with("fragments");
        assert!(seen == *count || (is_fragment && seen == 2), "{name:?}: {seen}");
    }
    assert_eq!(found.len(), twice.len());
    assert_eq!(counts.gaps, 0);
    // For one who plays them each packet is there once.
    let options = CaptureOptions { skips_repeats: true, ..CaptureOptions::default() };
    let (asked, counts) = read(&path, options);
    assert_eq!(names(&asked), expected());
    assert!(counts.skipped(Reason::Duplicate) >= 41, "{counts:?}");
}

#[test]
fn a_snap_length_leaves_what_is_whole() {
    let path = CAPTURES.path().join("snapped.pcap");
    let (asked, counts) = read(&path, CaptureOptions::default());
    // The shortest query has 20 octets of names and 42 to 62 of headers, besides its own 16.
    assert_eq!(asked, []);
    assert!(counts.skipped(Reason::SnapLength) > 40, "{counts:?}");
}

#[test]
fn other_forms_of_the_same_capture_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let capture = CAPTURES.path().join("lo.pcap");
    let (asked, counts) = read(&capture, CaptureOptions::default());
    let made = |name: &str| folder.path().join(name);
    for format in ["pcap", "nsecpcap", "pcapng"] {
        let path = made(format);
        run(Command::new("editcap").args(["-F", format]).arg(&capture).arg(&path));
        assert_eq!(
            read(&path, CaptureOptions::default()),
            (asked.clone(), counts.clone()),
            "{format}"
        );
    }
    // Two sections, with a comment on the first packet.
    let (first, second) = (made("first"), made("second"));
    run(Command::new("editcap")
        .args(["-F", "pcapng", "-a", "1:hello", "-r"])
        .arg(&capture)
        .arg(&first)
        .arg("1-50"));
    run(Command::new("editcap")
        .args(["-F", "pcapng", "-r"])
        .arg(&capture)
        .arg(&second)
        .arg("51-9999"));
    let both = made("both");
    fs::write(&both, [fs::read(&first).unwrap(), fs::read(&second).unwrap()].concat()).unwrap();
    assert_eq!(read(&both, CaptureOptions::default()), (asked.clone(), counts.clone()));
    let merged = made("merged");
    run(Command::new("mergecap").arg("-w").arg(&merged).arg(&second).arg(&first));
    assert_eq!(read(&merged, CaptureOptions::default()), (asked.clone(), counts.clone()));
    for (program, options) in [("gzip", vec!["-9"]), ("zstd", vec!["-19", "--long=27"])] {
        let whole = run(Command::new(program).args(&options).arg("-c").arg(&both)).stdout;
        let path = made("compressed");
        fs::write(&path, &whole).unwrap();
        assert_eq!(
            read(&path, CaptureOptions::default()),
            (asked.clone(), counts.clone()),
            "{program}"
        );
        // Members or frames one after another.
        let parts =
            [&first, &second].map(|path| run(Command::new(program).arg("-c").arg(path)).stdout);
        fs::write(&path, parts.concat()).unwrap();
        assert_eq!(
            read(&path, CaptureOptions::default()),
            (asked.clone(), counts.clone()),
            "{program}"
        );
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        let file = File::open(&path).unwrap();
        let end = read_to_error(file).expect_err("half a file is not whole");
        assert!(matches!(end, CaptureError::Cut { .. }), "{program}: {end}");
    }
}

/// Queries and responses that dnstap-read finds, by their two letters.
fn read_by_dnstap_read(path: &Path, kinds: [&str; 2]) -> usize {
    let lines = text(&run(Command::new("dnstap-read").arg(path)));
    let is_asked = |line: &&str| line.split_whitespace().any(|word| kinds.contains(&word));
    lines.lines().filter(is_asked).count()
}

#[test]
fn the_dnstap_of_bind_is_read_as_dnstap_read_reads_it() {
    let path = CAPTURES.path().join("bind.dnstap");
    let (asked, counts) = read(&path, CaptureOptions::default());
    // The query for `ready.example` is in it, too, and BIND takes NOTIFY as a query.
    let number = read_by_dnstap_read(&path, ["CQ", "AQ"]);
    assert_eq!(asked.len() as u64, number as u64 - counts.skipped(Reason::OtherOpcode));
    let mut found = names(&asked);
    found.retain(|(name, _), _| name != "ready.example");
    assert_eq!(found, expected());
    // What the wire says is what BIND says, except for what was asked before the capture began.
    let (on_wire, _) = read(&CAPTURES.path().join("lo.pcap"), CaptureOptions::default());
    let asked: Vec<_> = asked.into_iter().filter(|(_, _, name)| name != "ready.example").collect();
    assert_eq!(asked, on_wire);
    let options =
        CaptureOptions { dnstap_source: DnstapSource::Responses, ..CaptureOptions::default() };
    let (answered, _) = read(&path, options);
    let answered: Vec<_> =
        answered.into_iter().filter(|(_, _, name)| name != "ready.example").collect();
    assert_eq!(answered, on_wire);
}

/// The queries in frames of dnstap, by the file that is made of them.
fn asked_in(frames: &[Vec<u8>]) -> Vec<Asked> {
    let mut writer = FrameWriter::new(Vec::new()).unwrap();
    frames.iter().for_each(|frame| writer.write(frame).unwrap());
    let file = writer.finish().unwrap();
    let mut reader = CaptureReader::new(&file[..], CaptureOptions::default()).unwrap();
    let mut asked = Vec::new();
    while let Some(query) = reader.next().unwrap() {
        asked.push(asked_by(&query));
    }
    asked
}

/// Lets a server send dnstap to a socket, and gives the names that it was asked for.
fn receive(folder: &Path, script: &str) -> BTreeMap<(String, Transport), usize> {
    let listener = UnixListener::bind(folder.join("dnstap.sock")).unwrap();
    // Servers do not stay root.
    run(Command::new("chmod").args(["-R", "a+rwX"]).arg(folder));
    let received = folder.join("received");
    let receiver = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut receiver, mut frames) = (FrameReceiver::default(), Vec::new());
        let mut octets = [0; 4_096];
        while !receiver.is_over() {
            let count = stream.read(&mut octets).unwrap();
            assert!(count > 0, "the stream ends without STOP");
            let mut take = |frame: &[u8]| frames.push(frame.to_vec());
            let reply = receiver.receive(&octets[..count], &mut take).unwrap();
            // Unbound does not wait for FINISH.
            let written = stream.write_all(&reply);
            assert!(written.is_ok() || receiver.is_over());
            let asked = asked_in(&frames);
            if asked.iter().filter(|(_, _, name)| name != "ready.example").count() == 10 {
                fs::write(&received, "").unwrap();
            }
        }
        asked_in(&frames)
    });
    run_isolated(folder, script);
    let mut found = names(&receiver.join().unwrap());
    found.retain(|(name, _), _| name != "ready.example");
    found
}

/// What is asked of a server that runs: each name over UDP and TCP.
const ASK: &str = "
    for number in $(seq 5); do echo \"name-$number.example TXT\"; done > names
    dig @127.0.0.1 -f names > dig.log
    dig @127.0.0.1 +tcp +keepopen -f names >> dig.log
    # A server may keep messages for a while, and may lose them when it ends.
    for _ in $(seq 200); do [ -e received ] && break; sleep 0.1; done
";

fn check_asked(found: &BTreeMap<(String, Transport), usize>) {
    let transports = [Transport::Udp, Transport::Tcp];
    let names =
        (1..=5).flat_map(|number| transports.map(|by| (format!("name-{number}.example"), by)));
    let expected: BTreeMap<_, _> = names.map(|name| (name, 1)).collect();
    assert_eq!(*found, expected);
}

#[test]
fn bind_sends_dnstap_to_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    configure_bind(folder.path(), "unix \"dnstap.sock\"");
    let script = format!(
        "set -eu
        ip link set lo up
        named -g -c named.conf -n 1 2> named.log &
        until dig @127.0.0.1 +tries=1 +time=1 ready.example SOA > /dev/null; do kill -0 $!; sleep 0.1; done
        {ASK}
        kill $!
        wait $! || true"
    );
    check_asked(&receive(folder.path(), &script));
}

#[test]
fn unbound_sends_dnstap_to_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let configuration = format!(
        "server:\n  directory: \"{0}\"\n  chroot: \"\"\n  username: \"\"\n  pidfile: \"\"\n  use-syslog: no\n  \
         interface: 127.0.0.1\n  local-zone: \"example.\" redirect\n  local-data: \"example. TXT hello\"\n\
         remote-control:\n  control-enable: no\n\
         dnstap:\n  dnstap-enable: yes\n  dnstap-socket-path: \"{0}/dnstap.sock\"\n  \
         dnstap-log-client-query-messages: yes\n  dnstap-log-client-response-messages: yes\n",
        folder.path().display(),
    );
    fs::write(folder.path().join("unbound.conf"), configuration).unwrap();
    let script = format!(
        "set -eu
        ip link set lo up
        unbound -d -d -c unbound.conf 2> unbound.log &
        until dig @127.0.0.1 +tries=1 +time=1 ready.example TXT > /dev/null; do kill -0 $!; sleep 0.1; done
        {ASK}
        kill $!
        wait $! || true"
    );
    check_asked(&receive(folder.path(), &script));
}

/// A query that is whole for tshark and dnstap-read.
fn query(number: u16) -> Vec<u8> {
    let mut message = b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x01\0\x01".to_vec();
    message[..2].copy_from_slice(&number.to_be_bytes());
    message
}

#[test]
fn what_the_writer_writes_is_right_in_the_eyes_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let (pcap, dnstap) = (folder.path().join("pcap"), folder.path().join("dnstap"));
    let mut pcap_writer = CaptureWriter::pcap(File::create(&pcap).unwrap()).unwrap();
    let mut dnstap_writer = CaptureWriter::dnstap(File::create(&dnstap).unwrap()).unwrap();
    for number in 0..500 {
        let is_v4 = number % 2 == 0;
        let (client, server) = if is_v4 {
            ("192.0.2.1", "198.51.100.53:53")
        } else {
            ("2001:db8::1", "[2001:db8::53]:53")
        };
        let message = query(number);
        let captured = Captured {
            at_ns: 1_700_000_000_123_456_789 + u64::from(number) * 1_000,
            client: (client.parse::<std::net::IpAddr>().unwrap(), 1_024 + number).into(),
            server: server.parse().unwrap(),
            transport: Transport::Udp,
            message: &message,
        };
        pcap_writer.write(&captured).unwrap();
        dnstap_writer.write(&captured).unwrap();
    }
    pcap_writer.finish().unwrap();
    dnstap_writer.finish().unwrap();
    assert_eq!(read_by_tshark(&pcap), read(&pcap, CaptureOptions::default()).0);
    // All checksums are right, and nothing else is wrong.
    let mut command = Command::new("tshark");
    command
        .args(["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-r"])
        .arg(&pcap);
    command.args([
        "-Y",
        "_ws.expert.severity == error || udp.checksum.status != 1",
        "-T",
        "fields",
    ]);
    command.args(["-e", "frame.number"]);
    assert_eq!(text(&run(&mut command)), "");
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&pcap).args(["-c", "1", "-T", "fields", "-e", "frame.time_epoch"]);
    command.args(["-e", "ip.src", "-e", "udp.srcport"]);
    assert_eq!(text(&run(&mut command)).trim(), "1700000000.123456789\t192.0.2.1\t1024");
    let lines = text(&run(Command::new("dnstap-read").arg(&dnstap)));
    assert_eq!(lines.lines().count(), 500);
    let second = lines.lines().nth(1).unwrap();
    assert!(second.contains("CQ 2001:db8::1:1025 -> 2001:db8::53:53 UDP"), "{second}");
    assert!(second.ends_with("www.example/IN/A"), "{second}");
    assert_eq!(read(&dnstap, CaptureOptions::default()).0.len(), 500);
}
