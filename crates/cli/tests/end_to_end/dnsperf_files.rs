//! One query file, sent by dnsperf and by dnslab: the same names and types are on the wire.

use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::command::Running;
use crate::room::Room;

/// Octets before the question of a DNS message (RFC 1035, section 4.1.1).
const HEADER: usize = 12;

/// Answers each query with its own question, and remembers the questions.
struct Capture {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<BTreeSet<Vec<u8>>>,
}

impl Capture {
    fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("the loopback device has free ports");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("it is not zero");
        let (address, stop) = (socket.local_addr().expect("it is bound"), Arc::default());
        let until = Arc::clone(&stop);
        let thread = thread::spawn(move || capture(&socket, &until));
        Self { address, stop, thread }
    }

    fn questions(self) -> BTreeSet<Vec<u8>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("it does not panic")
    }
}

fn capture(socket: &UdpSocket, until: &AtomicBool) -> BTreeSet<Vec<u8>> {
    let (mut questions, mut buffer) = (BTreeSet::new(), [0; 2_048]);
    while !until.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
        let message = &mut buffer[..length];
        // dnslab also asks a server on this machine for its version, in the class CHAOS.
        if message.ends_with(&[0, 1]) {
            questions.insert(message[HEADER..].to_vec());
        }
        // QR (RFC 1035, section 4.1.1).
        message[2] |= 0x80;
        socket.send_to(message, from).ok();
    }
    questions
}

/// What both take. Escapes with three digits are left out: dnsperf 2.10 sends another octet for them than RFC
/// 1035, section 5.1, requires.
const SENT: &[u8] = b"; a comment\n\n;another\n#x A\na.example A\nb.example.\tAAAA\nc TYPE65\n\
    \xc3\xa9.utf8 A\n\xe9.latin1 A\na\\.b.x A\n\"q\".x A\nx\\@ TXT\n@ A\nd A what follows\n\
    *.x ANY\nadd A\n";

#[test]
fn names_on_the_wire_are_those_of_dnsperf() {
    let room = Room::with_load();
    std::fs::write(room.path().join("queries.txt"), SENT).unwrap();
    let theirs = Capture::start();
    let port = theirs.address.port().to_string();
    let mut dnsperf = Command::new("dnsperf");
    dnsperf.args(["-s", "127.0.0.1", "-p", &port, "-d", "queries.txt", "-n", "1", "-q", "1"]);
    let done = Running::start(dnsperf, room.path()).finish().exits_with(0);
    assert!(!done.stdout.contains("Warning") && !done.stderr.contains("Warning"), "{done}");
    let ours = Capture::start();
    let target = ours.address.to_string();
    let words = ["--queries", "queries.txt", "--clients", "1", "--duration", "300ms"];
    let words: Vec<&str> = ["load", &target, "--warm-up", "0s"].into_iter().chain(words).collect();
    let done = room.dnslab(&words).exits_with(0);
    let (theirs, ours) = (theirs.questions(), ours.questions());
    assert_eq!(theirs.len(), 13, "{theirs:?}");
    assert_eq!(ours, theirs, "{done}");
}

/// dnsperf skips such lines with a warning, or reads other octets than are written. dnslab reports each with
/// its line.
#[test]
fn what_dnsperf_reads_wrongly_is_named() {
    let room = Room::quiet();
    let check = |file: &[u8], complaint: &str| {
        std::fs::write(room.path().join("queries.txt"), file).unwrap();
        let words = ["load", "127.0.0.1:9", "--queries", "queries.txt"];
        room.dnslab(&words).exits_with(2).errors(1).complains(complaint);
    };
    check(b"a A\nb\\256 A\n", "line 2: `b\\\\256` is no domain name");
    check(b"a A\rb A\r", "line 1: a carriage return (CR) stands in it");
    check(
        b"example.com\nadd www 3600 A 10.1.2.3\nsend\n",
        "holds dynamic updates (dnsperf -u): `add` in line 2",
    );
}
