//! `dnslab replay`: the clients of captures that the tests write.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;

use dnslab_capture::{CaptureWriter, Captured};
use dnslab_record::{LoadMode, OpenPace, RunRecord, RunStatus};
use dnslab_wire::{Query, QueryOptions, Transport};
use domain::base::Name;
use domain::base::iana::Rtype;

use crate::evidence::{measured, report_is_whole, valid_records};
use crate::processes::wait_for;
use crate::room::Room;
use crate::running_server::serve;

/// Whole seconds since 1970 at which the captures begin.
const BEGIN: u64 = 1_700_000_000;

/// Writes a capture: each of `clients` asks once in each of the periods, for names of the tests' zone. Clients have
/// addresses of both families.
pub(crate) fn capture(room: &Room, clients: u32, periods: u64, period_ns: u64) -> PathBuf {
    let path = room.path().join("capture.pcap");
    let mut writer = CaptureWriter::pcap(File::create(&path).unwrap()).unwrap();
    for period in 0..periods {
        for client in 0..clients {
            let within = u64::from(client) * period_ns / u64::from(clients);
            let address: IpAddr = match client % 2 {
                0 => Ipv4Addr::from_bits(0x0a00_0000 + client).into(),
                _ => Ipv6Addr::from_bits((0x2001_0db8 << 96) + u128::from(client)).into(),
            };
            let server: IpAddr = match address {
                IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 53).into(),
                IpAddr::V6(_) => Ipv6Addr::from_bits((0x2001_0db8 << 96) + 0x53).into(),
            };
            let options = QueryOptions { recursion_desired: true, edns: None };
            let name: Name<Vec<u8>> = format!("host{}.example.test", client % 10).parse().unwrap();
            let query = Query::new(&name, Rtype::A, &options).unwrap();
            let captured = Captured {
                at_ns: BEGIN * 1_000_000_000 + period * period_ns + within,
                client: SocketAddr::new(address, 40_000),
                server: SocketAddr::new(server, 53),
                transport: Transport::Udp,
                message: query.octets(),
            };
            writer.write(&captured).unwrap();
        }
    }
    writer.finish().unwrap();
    path
}

#[track_caller]
fn replay(room: &Room, target: SocketAddr, further: &[&str]) -> RunRecord {
    let target = target.to_string();
    let words = [&["replay", "capture.pcap", &target][..], further].concat();
    let done = room.dnslab(&words).exits_with(0);
    let results = room.results();
    let record = valid_records(&results, 1).remove(0);
    report_is_whole(&results, &["replay"]);
    done.prints("What does ");
    record
}

#[test]
fn each_client_has_its_own_connection_over_every_transport() {
    for transport in Transport::ALL {
        let room = Room::with_load();
        capture(&room, 20, 4, 250_000_000);
        let (_running, at) = serve(&room, "127.0.0.1", &[]);
        let name = transport.name();
        let mut further = vec!["--transport", name];
        if transport.is_encrypted() {
            further.push("--insecure");
        }
        let record = replay(&room, at(transport), &further);
        assert_eq!(record.load.clients, 20, "{transport}");
        assert!(
            record.load.queries.starts_with("80 queries of 20 clients in "),
            "{}",
            record.load.queries
        );
        let LoadMode::Open { rate_qps, pace } = &record.load.mode else {
            panic!("{:?}", record.load.mode)
        };
        assert!((70.0..100.0).contains(rate_qps), "{rate_qps}");
        assert_eq!(*pace, OpenPace::Clients);
        let measured = measured(&record);
        let counters = &measured.counters;
        assert_eq!((counters.outcomes.due, counters.outcomes.answered), (80, 80), "{transport}");
        assert_eq!(measured.start_lag.len(), 80);
        assert_eq!(counters.answers.rcodes.get("NOERROR"), Some(&80), "{transport}");
        // Stub resolvers pad what they encrypt (RFC 8467).
        let is_padded = record.load.edns.contains("padding to blocks of 128 octets");
        assert_eq!(is_padded, transport.is_encrypted(), "{transport}: {}", record.load.edns);
        assert_eq!(
            counters.sent_octets == 80 * 128,
            is_padded,
            "{transport}: {}",
            counters.sent_octets
        );
        if transport.is_connection() {
            // A client asks every 250 ms, and closes what was idle for 10 s.
            assert_eq!(counters.connections.opened, 20, "{transport}: {:?}", counters.connections);
        }
    }
}

#[test]
fn more_load_is_more_clients() {
    let room = Room::with_load();
    // Three seconds.
    capture(&room, 10, 12, 250_000_000);
    let (_running, at) = serve(&room, "127.0.0.1", &[]);
    let further = ["--factor", "3", "--duration", "1s"];
    let record = replay(&room, at(Transport::Udp), &further);
    assert_eq!((record.load.clients, measured(&record).counters.outcomes.due), (30, 120));
    // Without a duration, the whole capture is played.
    let room = Room::quiet();
    capture(&room, 10, 12, 250_000_000);
    let record = replay(&room, at(Transport::Udp), &["--factor", "2", "--speed", "3"]);
    assert_eq!((record.load.clients, measured(&record).counters.outcomes.due), (20, 120));
    assert!(record.load.duration_ns < 600_000_000, "{}", record.load.duration_ns);
}

#[test]
fn clients_of_several_transports() {
    let room = Room::with_load();
    capture(&room, 60, 3, 300_000_000);
    let (_running, at) = serve(&room, "127.0.0.1", &[]);
    let port = format!("server.dot_port={}", at(Transport::Dot).port());
    let further = ["--mix", "dot:50%", "--set", &port, "--insecure"];
    let record = replay(&room, at(Transport::Udp), &further);
    assert_eq!(
        (record.load.transport, &record.load.mix),
        (Some(Transport::Udp), &"dot:50%".parse().ok())
    );
    let counters = &measured(&record).counters;
    assert_eq!(counters.outcomes.answered, 180);
    // Five standard deviations of a binomial distribution.
    let opened = counters.connections.opened;
    assert!((11..=49).contains(&opened), "{opened} of 60 clients over TLS");
    assert_eq!(counters.connections.full_handshakes, opened);
}

#[test]
fn a_capture_is_a_load_of_an_experiment() {
    let room = Room::with_load();
    capture(&room, 30, 6, 100_000_000);
    room.experiment(
        "repeat.runs = 2\nload.capture = \"capture.pcap\"\nload.warm_up = \"0s\"\n\
         load.duration = \"500ms\"\nserver.kind = \"bind\"\n\
         [[variant]]\nname = \"udp\"\n[[variant]]\nname = \"mixed\"\nload.mix = \"tcp:30%,dot:30%\"\n",
    );
    room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    for record in valid_records(&room.results(), 4) {
        let counters = &measured(&record).counters;
        assert_eq!(
            (record.load.clients, counters.outcomes.answered),
            (30, 150),
            "{}",
            record.variant
        );
        let opened = counters.connections.opened;
        assert_eq!(opened > 0, record.variant == "mixed", "{opened} of {}", record.variant);
    }
    report_is_whole(&room.results(), &["udp", "mixed"]);
}

#[test]
fn what_is_no_capture_says_so() {
    let room = Room::quiet();
    room.write("capture.pcap", "www.example.org A\n");
    let refused = |words: &[&str]| {
        let all = [&["replay", "capture.pcap", "127.0.0.1:1"], words].concat();
        room.dnslab(&all).exits_with(2)
    };
    refused(&[]).complains("this is no capture that dnslab reads");
    room.dnslab(&["replay", "nowhere.pcap", "127.0.0.1:1"]).exits_with(2).complains("nowhere.pcap");
    capture(&room, 3, 2, 100_000_000);
    refused(&["--factor", "3", "--duration", "1s"]).complains("too short for 3 chunks of");
    refused(&["--clients", "7"]).complains("the capture says who asks what, and when");
    refused(&["--mix", "udp:30%"]).complains("`udp` is `load.transport`");
    CaptureWriter::pcap(File::create(room.path().join("capture.pcap")).unwrap())
        .unwrap()
        .finish()
        .unwrap();
    refused(&[]).complains("has no DNS query");
}

#[test]
fn only_clients_of_the_named_servers_are_played() {
    let room = Room::with_load();
    // Half of the clients ask over IPv6.
    capture(&room, 20, 4, 100_000_000);
    let (_running, at) = serve(&room, "127.0.0.1", &[]);
    let further = ["--capture-server", "2001:db8::/32"];
    let record = replay(&room, at(Transport::Udp), &further);
    assert_eq!((record.load.clients, measured(&record).counters.outcomes.due), (10, 40));
    let queries = &record.load.queries;
    assert!(queries.contains("only those to 2001:db8::/32 at port 53"), "{queries}");
    assert!(queries.contains("left out: 40 (other-server)"), "{queries}");
    let room = Room::quiet();
    capture(&room, 2, 2, 100_000_000);
    let nobody = ["replay", "capture.pcap", "127.0.0.1:1", "--capture-server", "192.0.2.54"];
    room.dnslab(&nobody)
        .exits_with(2)
        .complains("no DNS query to 192.0.2.54 at port 53; it has: 4 (other-server)");
    let profile = ["profile", "capture.pcap", "--capture-ports", "5353"];
    room.dnslab(&profile).exits_with(2).complains("no DNS query to a server at port 5353");
}

#[test]
fn a_transport_that_never_answers_makes_a_run_invalid() {
    let room = Room::with_load();
    capture(&room, 60, 3, 200_000_000);
    let (_running, at) = serve(&room, "127.0.0.1", &[]);
    let target = at(Transport::Udp).to_string();
    let words = ["replay", "capture.pcap", &target, "--mix", "dot:20%", "--insecure", "--dot-port"];
    // Nobody listens there. That is said before the load.
    let free = dnslab_lab::ports::free(Ipv4Addr::LOCALHOST.into()).unwrap().plain.to_string();
    let done = room.dnslab(&[&words[..], &[&free, "--results", "none"]].concat()).exits_with(1);
    done.complains("does not answer over dot");
    // Here somebody goes away after the first queries.
    let away = goes_away(at(Transport::Dot)).port().to_string();
    let words = [&words[..], &[&away]].concat();
    let done = room.dnslab(&[&words[..], &["--timeout", "300ms"]].concat()).exits_with(3);
    done.prints("of clients over dot was answered, though other transports answer");
    let record = crate::evidence::records(&room.results()).remove(0);
    let by_transport = &measured(&record).counters.by_transport;
    let udp = by_transport["udp"];
    assert_eq!(udp.due, udp.answered, "{by_transport:?}");
    let sum: u64 = by_transport.values().map(|counts| counts.due).sum();
    assert_eq!((sum, by_transport["dot"].answered), (180, 0), "{by_transport:?}");
}

/// Passes one connection on to a server, and ends all further ones.
fn goes_away(server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut near, _) = listener.accept().unwrap();
        let mut far = TcpStream::connect(server).unwrap();
        let (mut from_near, mut to_far) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut from_near, &mut to_far));
        std::thread::spawn(move || std::io::copy(&mut far, &mut near));
        listener.incoming().map_while(Result::ok).for_each(drop);
    });
    address
}

#[test]
fn a_capture_that_changes_between_two_runs_fails_the_second() {
    let room = Room::with_load();
    let path = capture(&room, 30, 20, 100_000_000);
    room.experiment(
        "repeat.runs = 2\nrepeat.pause = \"5s\"\nload.capture = \"capture.pcap\"\n\
         load.warm_up = \"0s\"\nload.duration = \"1500ms\"\n[[variant]]\nname = \"udp\"\n",
    );
    let running = room.start(&["run", "./experiment.toml"]);
    // Then nothing happens for a while.
    wait_for(
        "the first run is over",
        || running.so_far(),
        || {
            let records = room.results_so_far()?.runs().ok()?;
            (records.len() == 1).then_some(())
        },
    );
    std::io::Write::write_all(&mut File::options().append(true).open(path).unwrap(), b"more")
        .unwrap();
    let done = running.finish().exits_with(3);
    let [first, second] = &crate::evidence::records(&room.results())[..] else { panic!("{done}") };
    assert!(first.is_valid(), "{done}");
    let RunStatus::Failed { reason, .. } = &second.status else {
        panic!("{:?}{done}", second.status)
    };
    assert!(reason.contains("capture.pcap has changed since its queries were counted"), "{reason}");
}
