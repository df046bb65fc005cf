//! Servers that do anything to clients that behave in any way.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use dnslab_load::{LoadSpec, Mode};
use dnslab_traffic::{ClientBehaviour, Connect, Quota, Truncated};
use dnslab_wire::Transport;
use proptest::prelude::*;

use crate::applied::{apply, open, spec};
use crate::one_port;
use crate::server::{answer, frame, read_query};

/// What a server does with a query.
#[derive(Clone, Copy, Debug)]
enum Act {
    Answer,
    Drop,
    AnswerTwice,
    /// With the TC bit, over UDP.
    Truncate,
    /// To a question that was not asked.
    AnswerAnother,
    Garble,
    /// After some milliseconds, in which nothing else is done.
    Wait(u64),
    /// Over UDP: nothing.
    Close,
}

/// The messages in return for a query; `None` to close the connection.
fn act(act: Act, query: &[u8], is_datagram: bool) -> Option<Vec<Vec<u8>>> {
    let right = answer(query, 0);
    let changed = |octet: usize, bits: u8| {
        let mut changed = right.clone();
        changed[octet] ^= bits;
        vec![changed]
    };
    Some(match act {
        Act::Answer => vec![right],
        Act::Drop => Vec::new(),
        Act::AnswerTwice => vec![right.clone(), right],
        Act::Truncate => changed(2, if is_datagram { 2 } else { 0 }),
        Act::AnswerAnother => changed(13, 1),
        Act::Garble => vec![right[..right.len().min(11)].to_vec()],
        Act::Wait(time) => {
            thread::sleep(Duration::from_millis(time));
            vec![right]
        }
        Act::Close => return is_datagram.then(Vec::new),
    })
}

/// A server over UDP and TCP that does these things in turn, over all clients.
fn server(acts: Vec<Act>) -> SocketAddr {
    let (listener, socket) = one_port::bind("127.0.0.1");
    let address = listener.local_addr().unwrap();
    let number = Arc::new(AtomicUsize::new(0));
    let next = move || acts[number.fetch_add(1, Ordering::Relaxed) % acts.len()];
    let next = Arc::new(next);
    let of_datagrams = Arc::clone(&next);
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        loop {
            let (length, client) = socket.recv_from(&mut buffer).unwrap();
            for message in act(of_datagrams(), &buffer[..length], true).unwrap_or_default() {
                socket.send_to(&message, client).ok();
            }
        }
    });
    thread::spawn(move || {
        for stream in listener.incoming() {
            let next = Arc::clone(&next);
            thread::spawn(move || serve(stream.unwrap(), &*next));
        }
    });
    address
}

/// Serves one connection until either side ends it.
fn serve(mut stream: TcpStream, next: &dyn Fn() -> Act) {
    while let Some(query) = read_query(&mut stream) {
        let Some(messages) = act(next(), &query, false) else { return };
        for message in messages {
            if stream.write_all(&frame(&message)).is_err() {
                return;
            }
        }
    }
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => Just(Act::Answer),
        1 => Just(Act::Drop),
        1 => Just(Act::AnswerTwice),
        1 => Just(Act::Truncate),
        1 => Just(Act::AnswerAnother),
        1 => Just(Act::Garble),
        1 => (0..30_u64).prop_map(Act::Wait),
        1 => Just(Act::Close),
    ]
}

fn any_quota() -> impl Strategy<Value = Quota> {
    (1..20_u32, any::<bool>())
        .prop_map(|(mean, exact)| if exact { Quota::Exact(mean) } else { Quota::Random(mean) })
}

fn any_behaviour() -> impl Strategy<Value = ClientBehaviour> {
    let connect = prop_oneof![Just(Connect::AtStart), Just(Connect::OnDemand)];
    let truncated = prop_oneof![Just(Truncated::Count), Just(Truncated::AskOverTcp)];
    let idle = prop::option::of((1..40_u64).prop_map(Duration::from_millis));
    (1..4_u32, prop::option::of(any_quota()), idle, connect, truncated).prop_map(
        |(connections, queries_per_connection, idle, connect, truncated)| ClientBehaviour {
            connections,
            queries_per_connection,
            idle,
            connect,
            truncated,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// [`apply`] checks the sums.
    #[test]
    fn the_sums_hold_whatever_happens(
        acts in prop::collection::vec(any_act(), 1..12),
        behaviour in any_behaviour(),
        transport in prop_oneof![Just(Transport::Udp), Just(Transport::Tcp)],
        closed in prop::option::of(0..20_u32),
        clients in 1..20_u32,
        timeout_ms in 5..80_u64,
        keepalive in any::<bool>(),
    ) {
        let outstanding = closed.map(|more| behaviour.connections + more);
        let mode = outstanding.map_or(open(3_000.0), |outstanding| Mode::Closed { outstanding });
        let target = server(acts);
        apply(&LoadSpec {
            clients,
            mode,
            duration: Duration::from_millis(150),
            warm_up: Duration::from_millis(50),
            timeout: Duration::from_millis(timeout_ms),
            workers: clients.min(2),
            behaviour,
            keepalive,
            ..spec(target, transport)
        });
    }
}
