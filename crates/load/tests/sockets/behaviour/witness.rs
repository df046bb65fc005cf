//! A server that records who asks what, and answers what it is told.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use dnslab_test_support::bind_both;
use dnslab_wire::Transport;

#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Queries of each UDP peer and each TCP connection, in their order.
    pub(crate) queries: Vec<(SocketAddr, Vec<u8>)>,
    /// TCP connections that were open at the same time, at most.
    pub(crate) max_open: usize,
    open: usize,
}

impl Seen {
    /// How many queries came from each peer.
    pub(crate) fn of_each_peer(&self) -> HashMap<SocketAddr, usize> {
        let mut counts = HashMap::new();
        for (peer, _) in &self.queries {
            *counts.entry(*peer).or_default() += 1;
        }
        counts
    }
}

pub(crate) type Shared = Arc<Mutex<Seen>>;

pub(crate) fn lock(seen: &Shared) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server on one port over UDP and TCP: `answer` makes the answer of each query.
pub(crate) fn server(
    address: &str,
    answer: impl Fn(Transport, &[u8]) -> Vec<u8> + Send + Sync + 'static,
) -> (SocketAddr, Shared) {
    let (listener, socket) = bind_both(address.trim_matches(['[', ']']).parse().unwrap());
    let bound = listener.local_addr().unwrap();
    let (seen, answer) = (Shared::default(), Arc::new(answer));
    let (udp_seen, udp_answer) = (Arc::clone(&seen), Arc::clone(&answer));
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        loop {
            let (length, peer) = socket.recv_from(&mut buffer).unwrap();
            lock(&udp_seen).queries.push((peer, buffer[..length].to_vec()));
            let answer = udp_answer(Transport::Udp, &buffer[..length]);
            socket.send_to(&answer, peer).ok();
        }
    });
    let tcp_seen = Arc::clone(&seen);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (seen, answer) = (Arc::clone(&tcp_seen), Arc::clone(&answer));
            let stream = stream.unwrap();
            thread::spawn(move || serve(stream, &seen, &*answer));
        }
    });
    (bound, seen)
}

fn serve(mut stream: TcpStream, seen: &Shared, answer: &dyn Fn(Transport, &[u8]) -> Vec<u8>) {
    let peer = stream.peer_addr().unwrap();
    {
        let mut seen = lock(seen);
        seen.open += 1;
        seen.max_open = seen.max_open.max(seen.open);
    }
    let mut length = [0; 2];
    while stream.read_exact(&mut length).is_ok() {
        let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
        if stream.read_exact(&mut query).is_err() {
            break;
        }
        lock(seen).queries.push((peer, query.clone()));
        let answer = answer(Transport::Tcp, &query);
        let mut framed = (answer.len() as u16).to_be_bytes().to_vec();
        framed.extend_from_slice(&answer);
        if stream.write_all(&framed).is_err() {
            break;
        }
    }
    lock(seen).open -= 1;
}

/// The query sent back as an answer with these bits and this code.
pub(crate) fn echo(query: &[u8], bits: u8, rcode: u8) -> Vec<u8> {
    let mut answer = query.to_vec();
    answer[2] |= 0x80 | bits;
    answer[3] = rcode;
    answer
}
