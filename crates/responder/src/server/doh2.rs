//! DNS over HTTPS with HTTP/2: between the TLS session of a connection and the answers.

use dnslab_transport::http2::{RequestId, Server};
use dnslab_wire::Transport;

use super::delayed::Destination;
use super::respond::{Arrival, Reaction, Responder};
use super::token::ConnectionId;

pub(super) struct Http {
    pub(super) server: Box<Server>,
    /// GOAWAY has been said.
    is_leaving: bool,
}

/// Requests that were taken.
pub(super) struct Taken {
    pub(super) requests: u64,
    /// Answers that are held back.
    pub(super) held: u32,
    pub(super) held_octets: usize,
    /// More are there.
    pub(super) stopped_early: bool,
}

/// How much may be answered now.
pub(super) struct Room {
    /// Octets of answers until the client must read.
    pub(super) unwritten: usize,
    /// Held answers until one of them must leave.
    pub(super) held: u32,
    pub(super) held_octets: usize,
}

/// Requests that a client may have open at once. BIND's default is 100. This is more, because a request that
/// the program loses stays open until the client gives it up.
const MAX_REQUESTS: u32 = 1024;

/// What a message that is no query is refused with: 400 Bad Request (RFC 9110, section 15.5.1).
const BAD_REQUEST: u16 = 400;

impl Http {
    pub(super) fn new(path: &str) -> Self {
        let server = Box::new(Server::with_streams(path, MAX_REQUESTS));
        Self { server, is_leaving: false }
    }

    /// Answers requests until none is left, or there is no room.
    pub(super) fn answer_requests(
        &mut self,
        id: ConnectionId,
        responder: &mut Responder,
        room: Room,
    ) -> Taken {
        let transport = Transport::Doh2;
        let arrival = Arrival { transport, local: None };
        let mut taken = Taken { requests: 0, held: 0, held_octets: 0, stopped_early: true };
        let mut unwritten = 0;
        while unwritten < room.unwritten
            && taken.held < room.held
            && taken.held_octets < room.held_octets
        {
            let Some(request) = self.server.next_request() else {
                taken.stopped_early = false;
                break;
            };
            taken.requests += 1;
            let destination = Destination::Stream { id, transport, request: request.id.0 };
            let mut is_gone = false;
            let server = &mut self.server;
            let put = |octets: &[u8]| {
                unwritten += octets.len();
                is_gone = !server.answer(request.id, octets);
            };
            match responder.message(&request.message, arrival, destination, put) {
                Reaction::Done if is_gone => {
                    let messages = responder.counters.messages_mut(transport);
                    messages.answered -= 1;
                    messages.unsent += 1;
                }
                Reaction::Done => {}
                Reaction::Held(octets) => {
                    taken.held += 1;
                    taken.held_octets += octets;
                }
                Reaction::NoQuery => self.server.refuse(request.id, BAD_REQUEST),
            }
        }
        taken
    }

    /// Answers a held request; false if its client has given it up.
    pub(super) fn answer(&mut self, request: u32, message: &[u8]) -> bool {
        self.server.answer(RequestId(request), message)
    }

    /// Asks for no further requests (GOAWAY). Those that the client sends before it knows are answered; then
    /// the session is over.
    pub(super) fn go_away(&mut self) {
        if !self.is_leaving {
            self.is_leaving = true;
            self.server.close();
        }
    }

    pub(super) fn close(&mut self, out: &mut Vec<u8>) {
        self.go_away();
        // A connection that is over says nothing more.
        let _ = self.server.poll(out);
    }
}
