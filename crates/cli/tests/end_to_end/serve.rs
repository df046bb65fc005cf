//! `dnslab serve` seen by others: foreign clients ask, SIGTERM ends it.

use std::fs;
use std::io::Read as _;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::Command;
use std::time::Duration;

use dnslab_lab::certificate;
use dnslab_wire::{TRUST_ANCHOR_DNSKEY, Transport};
use rustix::process::Signal;
use serde_json::Value;

use crate::processes::wait_for;
use crate::room::Room;
use crate::running_server::{ask, serve as start, serve_what as start_what, zone};

#[test]
fn foreign_clients_get_their_answers_and_sigterm_ends_it() {
    for (address, signal) in [("127.0.0.1", Signal::TERM), ("::1", Signal::INT)] {
        let room = Room::quiet();
        let (mut running, at) = start(&room, address, &[]);
        let authority = room.path().join(certificate::AUTHORITY);
        // Debian has no client for HTTP/3.
        let asked_over =
            Transport::ALL.into_iter().filter(|transport| *transport != Transport::Doh3);
        for transport in asked_over.clone() {
            let asked = |name| ask(transport, at(transport), Some(&authority), name);
            let context = || format!("over {transport}: {}", running.so_far());
            assert_eq!(asked("host42.example.test"), "192.0.2.7", "{}", context());
            assert_eq!(asked("HOST42.Example.TEST"), "192.0.2.7", "{}", context());
            assert_eq!(asked("absent.example.test"), "", "{}", context());
        }
        running.signal(signal);
        let done = running.finish().exits_with(0);
        for transport in asked_over {
            let line = format!("{transport}: 3 received, 3 answered, 0 lost by program");
            assert!(done.stderr.contains(&line), "no `{line}`: {done}");
        }
    }
}

#[test]
fn a_lossy_responder_loses() {
    let room = Room::quiet();
    let (mut running, at) = start(&room, "127.0.0.1", &["--loss", "100%"]);
    assert_eq!(ask(Transport::Udp, at(Transport::Udp), None, "host1.example.test"), "");
    running.signal(Signal::TERM);
    let done = running.finish().exits_with(0);
    done.complains("udp: 1 received, 0 answered, 1 lost by program");
}

fn kdig(address: SocketAddr, options: &[&str]) -> String {
    let (ip, port) = (format!("@{}", address.ip()), address.port().to_string());
    let output = Command::new("kdig")
        .args([&*ip, "-p", &port, "+time=5", "+retry=0"])
        .args(options)
        .output()
        .unwrap_or_else(|error| panic!("kdig: {error}: apt-get install knot-dnsutils"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A validating client sees the small DNS that is made from a list of names.
#[test]
fn a_list_of_names_becomes_a_resolver() {
    let room = Room::quiet();
    room.write("names", "; as dnsperf has it\nwww.example.com A\nmail.example.org MX\n");
    let what = ["--names", "names", "--sign"];
    let (mut running, at) = start_what(&room, "127.0.0.1", &what, &[]);
    let address = at(Transport::Udp);
    let check = |answer: &str, parts: &[&str]| {
        let missing: Vec<_> = parts.iter().filter(|part| !answer.contains(**part)).collect();
        assert!(missing.is_empty(), "no {missing:?} in {answer}; {}", running.so_far());
    };
    let signed = kdig(address, &["+dnssec", "www.example.com", "A"]);
    check(&signed, &["NOERROR", "Flags: qr rd ra ad;", "203.0.113.35", "RRSIG"]);
    let plain = kdig(address, &["+noadflag", "www.example.com", "AAAA"]);
    check(&plain, &["NOERROR", "Flags: qr rd ra;", "2001:db8::eb15:79da:8d3c:8b3c"]);
    assert!(!plain.contains("RRSIG"), "{plain}");
    check(&kdig(address, &["+tcp", "mail.example.org", "A"]), &["NOERROR", "ANSWER: 1"]);
    check(&kdig(address, &["+dnssec", "nothing.example.org", "A"]), &["NXDOMAIN", "NSEC", "SOA"]);
    let key = TRUST_ANCHOR_DNSKEY.split(' ').next_back().expect("a record has parts");
    check(&kdig(address, &["+short", ".", "DNSKEY"]).replace([' ', '\n'], ""), &[key]);
    running.signal(Signal::TERM);
    running.finish().exits_with(0).complains("2 names in 7 zones with ");
}

/// The counters of a running server are those of what foreign clients asked.
#[test]
fn counters_can_be_watched() {
    let room = Room::quiet();
    let further = ["--counters", "counters.json", "--queries-per-connection", "2"];
    let (mut running, at) = start(&room, "127.0.0.1", &further);
    let authority = room.path().join(certificate::AUTHORITY);
    let file = room.path().join("counters.json");
    let read = || -> Value {
        let text = fs::read_to_string(&file).expect("it is there from the beginning");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let before = read()["at_ns"].as_u64().unwrap();
    let asked_over = [Transport::Udp, Transport::Tcp, Transport::Dot, Transport::Doq];
    for transport in asked_over {
        for name in ["host1.example.test", "host2.example.test"] {
            let answer = ask(transport, at(transport), Some(&authority), name);
            assert_eq!(answer, "192.0.2.7", "over {transport}: {}", running.so_far());
        }
    }
    // Two queries on one connection use up its quota.
    let dot = at(Transport::Dot);
    let both = ["host3.example.test", "A", "host4.example.test", "A"];
    let addresses = kdig(dot, &[&["+tls", "+keepopen", "+short"], &both[..]].concat());
    assert_eq!(addresses, "192.0.2.7\n192.0.2.7\n");
    let expected = [("udp", 2), ("tcp", 2), ("dot", 4), ("doq", 2), ("doh2", 0)];
    let is_so = |counters: &Value| {
        let mut each = expected.iter().map(|(name, count)| (&counters["transports"][name], *count));
        each.all(|(found, count)| found["received"] == count && found["answered"] == count)
            && counters["connections"]["open"] == 0
    };
    let counters = wait_for("the counters", || read().to_string(), || Some(read()).filter(is_so));
    assert!(counters["at_ns"].as_u64().unwrap() > before);
    let life = &counters["connections"];
    let count = |what: &str| life[what].as_u64().unwrap_or_else(|| panic!("no {what}: {life}"));
    // Two over TCP, three over DoT, two over DoQ; one of them had two queries.
    assert_eq!((count("accepted"), count("closed_by_quota")), (7, 1), "{life}");
    assert_eq!(count("full_handshakes") + count("resumed_handshakes"), 5, "{life}");
    let queries = &life["queries"];
    assert_eq!(
        [&queries["connections"], &queries["sum"], &queries["least"], &queries["most"]],
        [7, 8, 1, 2],
        "{life}"
    );
    running.signal(Signal::TERM);
    running.finish().exits_with(0);
    let last = read();
    assert_eq!((&last["transports"], &last["connections"]), (&counters["transports"], life));
    assert!(!room.path().join("counters.json.new").exists());
}

#[test]
fn an_idle_connection_is_closed() {
    let room = Room::quiet();
    let further = ["--idle-timeout", "100ms", "--counters", "counters.json"];
    let (mut running, at) = start(&room, "127.0.0.1", &further);
    let mut idle = TcpStream::connect(at(Transport::Tcp)).unwrap();
    idle.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert_eq!(idle.read(&mut [0; 16]).unwrap(), 0, "{}", running.so_far());
    running.signal(Signal::TERM);
    running.finish().exits_with(0);
    let last = fs::read_to_string(room.path().join("counters.json")).unwrap();
    assert!(last.contains("\"timed_out\":1"), "{last}");
}

#[test]
fn what_cannot_be_served_is_said() {
    let room = Room::quiet();
    room.write("zone", &zone());
    room.write("broken", "$ORIGIN example.test.\n@ SOA ns hostmaster 1 2 3\n");
    let owner = UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = owner.local_addr().unwrap().to_string();
    room.write("names", "www.example.com BOGUS\n");
    let cases: [(&[&str], i32, &str); 13] = [
        (&[], 2, "--zone"),
        (&["--zone", "zone", "--names", "names"], 2, "--names"),
        (&["--zone", "zone", "--sign"], 2, "--sign"),
        (&["--names", "names"], 2, "line 1: `BOGUS` is no type"),
        (&["--names", "absent"], 2, "absent"),
        (&["--zone", "zone", "--idle-timeout", "1ns"], 2, "--idle-timeout"),
        (&["--zone", "zone", "--listen", "127.0.0.1:0", "--counters", "no/file"], 2, "no/file"),
        (&["--zone", "absent"], 2, "absent"),
        (&["--zone", "broken"], 2, "broken"),
        (&["--zone", "zone", "--delay", "5"], 2, "--delay"),
        (&["--zone", "zone", "--loss", "200%"], 2, "--loss"),
        (&["--zone", "zone", "--listen", "192.0.2.1:53"], 1, "192.0.2.1:53"),
        (&["--zone", "zone", "--listen", &taken], 1, &taken),
    ];
    for (further, code, text) in cases {
        let arguments = [&["serve"], further].concat();
        room.dnslab(&arguments).exits_with(code).errors(1).complains(text);
    }
}
