//! DNS over UDP: batches of datagrams in, batches out.

use std::net::UdpSocket;
use std::os::fd::AsFd;

use super::respond::Responder;
use crate::counters::Counters;
use crate::sys::{BATCH, DatagramBatch};

/// Batches of one socket before the others, and the delay queue, have their turn.
const ROUNDS: usize = 4;

/// Answers what has queued up on a socket.
pub(super) fn serve(
    socket: &UdpSocket,
    number: u32,
    batch: &mut DatagramBatch,
    responder: &mut Responder,
) {
    for _ in 0..ROUNDS {
        // Errors that an ICMP message left on the socket concern answers that already left
        // (udp(7)); whatever else it is, epoll calls again as long as something is there.
        let Ok(count) = batch.receive(socket.as_fd()) else { return };
        responder.datagrams(batch, count, number);
        send(socket, batch, &mut responder.counters);
        if count < BATCH {
            return;
        }
    }
}

/// Sends the queued answers and counts them.
pub(super) fn send(socket: &UdpSocket, batch: &mut DatagramBatch, counters: &mut Counters) {
    let outcome = batch.send(socket.as_fd());
    counters.udp.answered += outcome.sent;
    counters.udp.unsent += outcome.refused;
}
