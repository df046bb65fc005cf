//! `dnslab serve` as others see it: foreign clients ask, SIGTERM ends it.

use std::net::UdpSocket;

use dnslab_lab::certificate;
use dnslab_wire::Transport;
use rustix::process::Signal;

use crate::room::Room;
use crate::running_server::{ask, serve as start, zone};

#[test]
fn foreign_clients_get_their_answers_and_sigterm_ends_it() {
    for (address, signal) in [("127.0.0.1", Signal::TERM), ("::1", Signal::INT)] {
        let room = Room::quiet();
        let (mut running, at) = start(&room, address, &[]);
        let authority = room.path().join(certificate::AUTHORITY);
        // Debian has no client that asks over HTTP/3.
        let asked_over = Transport::ALL.into_iter().filter(|it| *it != Transport::Doh3);
        for transport in asked_over.clone() {
            let asked = |name| ask(transport, at(transport), Some(&authority), name);
            let context = || format!("over {transport}: {}", running.so_far());
            assert_eq!(asked("host42.melmac.univ"), "192.0.2.7", "{}", context());
            assert_eq!(asked("HOST42.Melmac.UNIV"), "192.0.2.7", "{}", context());
            assert_eq!(asked("absent.melmac.univ"), "", "{}", context());
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
    assert_eq!(ask(Transport::Udp, at(Transport::Udp), None, "host1.melmac.univ"), "");
    running.signal(Signal::TERM);
    let done = running.finish().exits_with(0);
    done.complains("udp: 1 received, 0 answered, 1 lost by program");
}

#[test]
fn what_cannot_be_served_is_said() {
    let room = Room::quiet();
    room.write("zone", &zone());
    room.write("broken", "$ORIGIN melmac.univ.\n@ SOA ns hostmaster 1 2 3\n");
    let owner = UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = owner.local_addr().unwrap().to_string();
    let cases: [(&[&str], i32, &str); 6] = [
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
