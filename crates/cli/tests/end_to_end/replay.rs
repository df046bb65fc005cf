//! `dnslab replay`: the clients of captures that the tests write.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use dnslab_capture::{CaptureWriter, Captured};
use dnslab_measure::{LoadMode, RunRecord};
use dnslab_wire::{Query, QueryOptions, Transport};
use domain::base::Name;
use domain::base::iana::Rtype;

use crate::evidence::{measured, report_is_whole, valid_records};
use crate::room::Room;
use crate::running_server::serve;

/// Whole seconds since 1970 at which the captures begin.
const BEGIN: u64 = 1_700_000_000;

/// Writes a capture: each of `clients` asks once in each of the periods, for names of the tests' zone. Clients have
/// addresses of both families.
fn capture(room: &Room, clients: u32, periods: u64, period_ns: u64) -> PathBuf {
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
            let name: Name<Vec<u8>> = format!("host{}.melmac.univ", client % 10).parse().unwrap();
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
    // How late the generator is on a busy machine is not what is tested.
    let patient = ["--set", "expect.lag_limit=1m"];
    let words = [&["replay", "capture.pcap", &target][..], &patient, further].concat();
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
        assert_eq!(pace, LoadMode::CLIENTS);
        let measured = measured(&record);
        let counters = &measured.counters;
        assert_eq!((counters.outcomes.due, counters.outcomes.answered), (80, 80), "{transport}");
        assert_eq!(measured.start_lag.len(), 80);
        assert_eq!(counters.answers.rcodes.get("NOERROR"), Some(&80), "{transport}");
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
    assert_eq!((record.load.transport.as_str(), record.load.mix.as_str()), ("udp", "dot:50%"));
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
        "repeat.runs = 2\nexpect.lag_limit = \"1m\"\nload.capture = \"capture.pcap\"\nload.warm_up = \"0s\"\n\
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
    let of = |words: &[&str]| {
        let all = [&["replay", "capture.pcap", "127.0.0.1:1"], words].concat();
        room.dnslab(&all).exits_with(2)
    };
    of(&[]).complains("this is no capture that dnslab reads");
    room.dnslab(&["replay", "nowhere.pcap", "127.0.0.1:1"]).exits_with(2).complains("nowhere.pcap");
    capture(&room, 3, 2, 100_000_000);
    of(&["--factor", "3", "--duration", "1s"]).complains("too short for 3 chunks of");
    of(&["--clients", "7"]).complains("the capture says who asks what, and when");
    of(&["--mix", "udp:30%"]).complains("`udp` is `load.transport`");
    CaptureWriter::pcap(File::create(room.path().join("capture.pcap")).unwrap())
        .unwrap()
        .finish()
        .unwrap();
    of(&[]).complains("has no DNS query");
}
