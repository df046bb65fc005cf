//! One connection of a server, and how it handles its events.

use std::time::Instant;

use bytes::Bytes;
use quinn_proto::{Connection, Event, StreamEvent, VarInt};

use super::facts::ServerFacts;
use super::protocol::{Answer, Reaction, ServerProtocol};
use super::queries::{Queries, RequestId};
use crate::quic::error::{QuicError, code};
use crate::quic::settings::{SERVER_RECEIVE_WINDOW, STREAM_WINDOW, UNIDIRECTIONAL};
use crate::quic::tls::HandshakeFacts;

pub(super) struct ServerConnection {
    /// Tells it from others that had the same place.
    pub(super) serial: u64,
    pub(super) connection: Connection,
    pub(super) protocol: Box<dyn ServerProtocol>,
    /// It stands in the list of connections with something to do.
    pub(super) is_touched: bool,
    /// The earliest instant at which the heap of timers has it.
    pub(super) timer: Option<Instant>,
    /// The handshake has ended well.
    pub(super) is_established: bool,
    pub(super) queries: Queries,
    /// It has come to its end, and only waits for stray packets.
    pub(super) has_ended: bool,
    pub(super) arrivals: Arrivals,
    /// Octets of memory as they were added up last.
    pub(super) noted_memory: usize,
}

/// Octets that came on a connection and that QUIC may still keep: pieces of streams that wait for what stands
/// before them. QUIC does not say how many there are; this is an upper bound.
#[derive(Default)]
pub(super) struct Arrivals {
    /// Octets of all datagrams since no query was half-read.
    since_all_read: usize,
    /// Octets of datagrams with which something came on another stream that could not be read.
    on_other_streams: usize,
    /// [`ServerProtocol::gaps`] at the last look.
    gaps: u64,
}

/// Octets of datagrams that quinn-proto keeps for a stream beside a half more than its octets
/// (`Assembler::insert`).
const SLACK: usize = 32 * 1024;

/// Octets of memory that QUIC keeps for so many streams at most.
fn most_of(streams: usize) -> usize {
    let octets = (streams * STREAM_WINDOW as usize).min(SERVER_RECEIVE_WINDOW as usize);
    streams * SLACK + octets * 5 / 2
}

impl Arrivals {
    pub(super) fn add(&mut self, octets: usize) {
        self.since_all_read += octets;
    }

    fn note(&mut self, protocol: &dyn ServerProtocol, is_established: bool) {
        let gaps = protocol.gaps();
        if gaps != self.gaps {
            self.gaps = gaps;
            self.on_other_streams += self.since_all_read;
        }
        if is_established && protocol.unread() == 0 {
            self.since_all_read = 0;
        }
    }

    /// Octets of memory, at most.
    fn memory(&self, protocol: &dyn ServerProtocol) -> usize {
        // A handshake has no stream yet.
        let of_queries = most_of(protocol.unread().max(1));
        let of_others = most_of(UNIDIRECTIONAL as usize);
        self.since_all_read.min(of_queries) + self.on_other_streams.min(of_others)
    }
}

impl ServerConnection {
    /// Looks at what happened, asks for the answers to whole queries, and closes the connection if that is
    /// due. True if it has ended by that. `place` is its own at the end point.
    pub(super) fn poll(
        &mut self,
        place: usize,
        now: Instant,
        facts: &mut ServerFacts,
        answer: Answer<'_, RequestId>,
    ) -> bool {
        let ServerConnection {
            serial,
            connection,
            protocol,
            is_established,
            queries,
            has_ended,
            arrivals,
            ..
        } = self;
        let had_ended = *has_ended;
        while let Some(event) = connection.poll() {
            let outcome = match event {
                Event::Connected => {
                    *is_established = true;
                    count_handshake(connection, facts);
                    Ok(())
                }
                // The client's name and protocol are known, and with them the keys: the first
                // answers may go out before the handshake ends.
                Event::HandshakeDataReady => protocol.begin(connection),
                // What comes on streams after the end is not looked at.
                Event::Stream(_) if *has_ended => Ok(()),
                Event::Stream(event) => {
                    if let StreamEvent::Finished { id } | StreamEvent::Stopped { id, .. } = event {
                        queries.end(id);
                    }
                    let goes_away = protocol.goes_away();
                    protocol.stream_event(connection, event, &mut |stream, query, out| {
                        if queries.are_used_up() && !goes_away {
                            return Reaction::Never;
                        }
                        let place = u32::try_from(place).expect("memory ends before 4 G places");
                        let request = RequestId { place, serial: *serial, stream };
                        let reaction = answer(request, query, out);
                        queries.take(stream, reaction);
                        reaction
                    })
                }
                // This side closed it, which is counted already.
                Event::ConnectionLost { .. } if had_ended => break,
                Event::ConnectionLost { reason } => {
                    match (QuicError::new(reason, protocol.codes()), *is_established) {
                        (_, false) => facts.failed_handshakes += 1,
                        (QuicError::Silent, true) => facts.timed_out += 1,
                        (
                            QuicError::Closed | QuicError::ClosedWith { .. } | QuicError::Reset,
                            true,
                        ) => match queries.are_used_up() {
                            true => facts.closed_by_quota += 1,
                            false => facts.closed_by_client += 1,
                        },
                        (_, true) => facts.broken += 1,
                    }
                    *has_ended = true;
                    break;
                }
                Event::DatagramReceived | Event::DatagramsUnblocked => Ok(()),
            };
            if let Err(error) = outcome {
                let codes = protocol.codes();
                let error_code = VarInt::from_u32(match error {
                    QuicError::ExcessiveLoad => codes.excessive_load,
                    _ => codes.protocol_error,
                });
                connection.close(now, error_code, Bytes::new());
                facts.broken += 1;
                *has_ended = true;
                break;
            }
        }
        if queries.are_used_up() && !*has_ended && !queries.is_leaving {
            queries.is_leaving = true;
            protocol.go_away(connection);
        }
        if queries.are_done() && !*has_ended {
            connection.close(now, code(protocol.codes().no_error), Bytes::new());
            facts.closed_by_quota += 1;
            *has_ended = true;
        }
        arrivals.note(&**protocol, *is_established);
        *has_ended && !had_ended
    }

    /// Octets of memory that the client makes it hold. What an idle connection needs is not counted.
    pub(super) fn memory(&self) -> usize {
        self.protocol.memory() + self.arrivals.memory(&*self.protocol)
    }
}

fn count_handshake(connection: &Connection, facts: &mut ServerFacts) {
    let data = connection.crypto_session().handshake_data();
    match data.and_then(|data| data.downcast::<HandshakeFacts>().ok()) {
        Some(data) if data.resumed => facts.resumed_handshakes += 1,
        _ => facts.full_handshakes += 1,
    }
}
