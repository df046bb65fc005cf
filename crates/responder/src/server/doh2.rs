//! DNS over HTTPS with HTTP/2: what lies between the TLS session of a connection and the answers.

use dnslab_carrier::http2::{Http2Error, RequestId, Server};
use dnslab_wire::Transport;

use super::delayed::Destination;
use super::poller::ConnectionId;
use super::respond::{Reaction, Responder};

/// The HTTP session of a connection.
pub(super) struct Http(Box<Server>);

/// Requests that a client may have open at once. BIND's default is 100; this is more, because a
/// request that the program loses stays open until the client gives it up.
const MOST_REQUESTS: u32 = 1024;

/// What a message that is no query is refused with: 400 Bad Request (RFC 9110, section 15.5.1).
const BAD_REQUEST: u16 = 400;

impl Http {
    /// A new connection of a server that serves this path.
    pub(super) fn new(path: &str) -> Self {
        Self(Box::new(Server::with_streams(path, MOST_REQUESTS)))
    }

    /// Takes decrypted octets.
    pub(super) fn receive(&mut self, octets: &[u8]) {
        self.0.receive(octets);
    }

    /// Appends what must be written to `out`, and reads requests.
    ///
    /// # Errors
    /// When the connection is over.
    pub(super) fn poll(&mut self, out: &mut Vec<u8>) -> Result<(), Http2Error> {
        self.0.poll(out)
    }

    /// Answers requests until none is left, or `room` answers are held back; how many are, and
    /// whether it stopped before the last request.
    pub(super) fn answer_requests(
        &mut self,
        id: ConnectionId,
        responder: &mut Responder,
        room: u32,
    ) -> (u32, bool) {
        let transport = Transport::Doh2;
        let mut held = 0;
        while held < room {
            let Some(request) = self.0.next_request() else { return (held, false) };
            let destination = Destination::Stream { id, transport, request: request.id.0 };
            let mut is_gone = false;
            let server = &mut self.0;
            let put = |octets: &[u8]| is_gone = !server.answer(request.id, octets);
            match responder.message(&request.message, transport, destination, put) {
                Reaction::Done if is_gone => {
                    let messages = responder.counters.messages_mut(transport);
                    messages.answered -= 1;
                    messages.unsent += 1;
                }
                Reaction::Done => {}
                Reaction::Held => held += 1,
                Reaction::NoQuery => self.0.refuse(request.id, BAD_REQUEST),
            }
        }
        (held, true)
    }

    /// Answers a request that was held back; false if its client has given it up.
    pub(super) fn answer(&mut self, request: u32, message: &[u8]) -> bool {
        self.0.answer(RequestId(request), message)
    }

    /// Says good-bye (GOAWAY).
    pub(super) fn close(&mut self, out: &mut Vec<u8>) {
        self.0.close();
        // A connection that is over says nothing more.
        let _ = self.0.poll(out);
    }
}
