//! Windows of clients whose truncated answers are asked again over TCP: a place is taken as long as
//! its query waits there, and no other place is.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use dnslab_load::{LoadSpec, Mode};
use dnslab_traffic::{ClientBehaviour, Truncated};
use dnslab_wire::Transport;

use crate::applied::{apply, both, spec};
use crate::one_port;
use crate::server::answer;

/// Accepts connections and says nothing on them.
fn stay_silent(listener: TcpListener) {
    thread::spawn(move || {
        let streams: Vec<_> = listener.incoming().collect();
        drop(streams);
    });
}

/// The query given back as an answer that did not fit.
fn truncated(query: &[u8]) -> Vec<u8> {
    let mut answer = answer(query, 0);
    answer[2] |= 2;
    answer
}

/// A server that is silent over TCP and does `serve` over UDP in a thread.
fn server(serve: impl FnOnce(UdpSocket) + Send + 'static) -> SocketAddr {
    let (listener, socket) = one_port::bind("127.0.0.1");
    let address = listener.local_addr().unwrap();
    stay_silent(listener);
    thread::spawn(move || serve(socket));
    address
}

/// One client with a window of eight on two sockets, which asks again over TCP. No query times out
/// while it runs.
fn two_sockets(target: SocketAddr) -> LoadSpec {
    LoadSpec {
        clients: 1,
        workers: 1,
        mode: Mode::Closed { outstanding: 8 },
        timeout: Duration::from_secs(3),
        behaviour: ClientBehaviour {
            connections: 2,
            truncated: Truncated::AskOverTcp,
            ..ClientBehaviour::default()
        },
        ..spec(target, Transport::Udp)
    }
}

#[test]
fn places_whose_queries_wait_for_tcp_are_taken() {
    // All answers to one socket are truncated; the other has none at all.
    let target = server(|socket| {
        let (mut buffer, mut first) = ([0; 4096], None);
        while let Ok((length, client)) = socket.recv_from(&mut buffer) {
            if *first.get_or_insert(client) == client {
                socket.send_to(&truncated(&buffer[..length]), client).ok();
            }
        }
    });
    let counters = both(&apply(&two_sockets(target)));
    assert_eq!(counters.outcomes.due, 8, "{:?}", counters.outcomes);
    assert_eq!(counters.asked_again, 4, "{:?}", counters.outcomes);
}

/// A server that truncates its first two answers, and then answers whenever no query has come for
/// a while; and how many it answers each time.
fn in_rounds() -> (SocketAddr, Receiver<usize>) {
    let (sender, rounds) = mpsc::channel();
    let target = server(move |socket| {
        socket.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
        let (mut buffer, mut left, mut held) = ([0; 4096], 2, Vec::new());
        loop {
            match socket.recv_from(&mut buffer) {
                Ok((length, client)) if left > 0 => {
                    left -= 1;
                    socket.send_to(&truncated(&buffer[..length]), client).ok();
                }
                Ok((length, client)) => held.push((answer(&buffer[..length], 0), client)),
                Err(_) if held.is_empty() => {}
                Err(_) => {
                    sender.send(held.len()).ok();
                    for (answer, client) in held.drain(..) {
                        socket.send_to(&answer, client).ok();
                    }
                }
            }
        }
    });
    (target, rounds)
}

#[test]
fn no_place_is_taken_twice() {
    let (target, rounds) = in_rounds();
    let duration = Duration::from_secs(1);
    apply(&LoadSpec { duration, ..two_sockets(target) });
    // The first round was sent before any answer came.
    let later: Vec<usize> = rounds.try_iter().skip(1).collect();
    assert_eq!(later.iter().max(), Some(&6), "{later:?}");
}
