//! DNS over UDP: batches of datagrams in, batches out.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;

use dnslab_socket::{ReceiveBatch, SendBatch};

use super::respond::Responder;
use crate::counters::Counters;

/// Datagrams that one system call carries. At 64 the call costs less than a twentieth of what the kernel
/// spends on the datagrams.
pub(super) const BATCH: usize = 64;

/// Batches of one socket before it is the turn of the others and the delay queue.
const ROUNDS: usize = 4;

/// Datagrams that are read together are answered together; `one_by_one` reads them alone.
pub(super) fn queries(one_by_one: bool) -> ReceiveBatch {
    /// Octets kept of a query. Longer ones are cut, and so found broken; queries with an OPT record and
    /// padding (RFC 8467) are much shorter.
    const QUERY: usize = 2048;
    ReceiveBatch::unconnected(if one_by_one { 1 } else { BATCH }, QUERY)
}

pub(super) fn serve(
    socket: &UdpSocket,
    number: u32,
    queries: &mut ReceiveBatch,
    answers: &mut SendBatch,
    responder: &mut Responder,
) {
    for _ in 0..ROUNDS {
        // An error that an ICMP message left on the socket is about answers that already left (udp(7)). After
        // any other, epoll calls again as long as something is there.
        let Ok(more) = queries.receive(socket.as_fd()) else { return };
        responder.datagrams(queries, answers, number);
        send(socket, answers, &mut responder.counters);
        if !more {
            return;
        }
    }
}

/// Sends the answers and counts them. What the kernel refuses, for lack of buffer space or of a route back,
/// is not tried again: the client sees a loss, as on the network.
pub(super) fn send(socket: &UdpSocket, answers: &mut SendBatch, counters: &mut Counters) {
    let mut done = 0;
    while done < answers.len() {
        match answers.send(socket.as_fd(), done) {
            Ok(count) => {
                counters.udp.answered += count as u64;
                done += count;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The error is that of the first answer that is left.
            Err(_) => {
                counters.udp.unsent += 1;
                done += 1;
            }
        }
    }
    answers.clear();
}
