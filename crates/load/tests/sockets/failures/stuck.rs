//! Servers that accept and say nothing, or stop reading.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use dnslab_load::{Job, TlsSettings, Verification};
use dnslab_wire::Transport;

use crate::failures::applied::{apply, both, closed_and_open, job, last_end, open};
use crate::failures::process::{alone, status_kib};
use crate::failures::server::tcp_server;

#[test]
fn a_server_that_accepts_and_says_nothing() {
    // The kernel accepts; nobody takes the connections from its queue.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    for transport in [Transport::Tcp, Transport::Dot, Transport::Doh2] {
        let tls = Some(TlsSettings::new("localhost", &Verification::Off).unwrap());
        for job in closed_and_open(Job { tls, ..job(target, transport) }) {
            let result = apply(&job);
            let counters = both(&result);
            let (outcomes, connections) = (counters.outcomes, counters.connections);
            if transport == Transport::Tcp {
                assert!(outcomes.timed_out > 0, "{outcomes:?}");
                assert_eq!(outcomes.timed_out, outcomes.due, "{outcomes:?}");
                assert_eq!(connections.opened, 3, "{connections:?}");
            } else {
                // The handshake does not end.
                assert_eq!(outcomes.not_sent, outcomes.due, "{transport}: {outcomes:?}");
                assert!(connections.failed >= 3, "{transport}: {connections:?}");
                assert_eq!(last_end(&result), "cannot connect: timed out", "{transport}");
            }
        }
    }
}

#[test]
fn a_server_that_stops_reading_leaves_queries_unsent_and_memory_bounded() {
    let name =
        "failures::stuck::a_server_that_stops_reading_leaves_queries_unsent_and_memory_bounded";
    alone(&[], name, || {
        let target = tcp_server(|stream| {
            thread::sleep(Duration::from_secs(30));
            drop(stream);
        });
        let before = status_kib("VmRSS");
        let result = apply(&job(target, Transport::Tcp).with(|load| {
            load.duration = Duration::from_secs(2);
            open(load, 1e6);
        }));
        let grown = status_kib("VmHWM").saturating_sub(before);
        let outcomes = both(&result).outcomes;
        assert_eq!(outcomes.answered, 0);
        assert!(outcomes.not_sent > 0 && outcomes.timed_out > 0, "{outcomes:?}");
        println!("found: {outcomes:?}, {grown} KiB");
        // A query waits for 150 ms at most, in 24 octets; a busy machine lets more of them wait.
        assert!(grown < 96 * 1024, "{grown} KiB for what waits");
    });
}
