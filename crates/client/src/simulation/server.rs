//! The server at the end of the simulated link: all six transports, well-behaved or not.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use dnslab_transport::http2;
use dnslab_transport::quic::{QuicServer, QuicServerSettings, Reaction, RequestId};
use dnslab_transport::{ALPN_DOQ, ALPN_H3};
use dnslab_wire::{Frames, Transport, push_frame};
use domain::base::iana::Rcode;
use domain::base::{Message, MessageBuilder};
use domain::rdata::tsig::Time48;
use domain::tsig::{Key, ServerTransaction};
use rand::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustls::{ServerConfig, ServerConnection};

use super::addresses::{address_of, socket_of};
use crate::time::Nanos;
use crate::tls::alpn;

/// What the server does wrong; shares of the queries in [0, 1].
#[derive(Clone, Debug)]
pub(super) struct Manners {
    /// How long an answer takes, nanoseconds.
    pub(super) work: std::ops::Range<Nanos>,
    /// Queries that are never answered; that are answered after the time-out; twice; with another id; to
    /// another question; with TC; with octets that are no message.
    pub(super) silent: f64,
    pub(super) late: f64,
    pub(super) twice: f64,
    pub(super) other_id: f64,
    pub(super) other_question: f64,
    pub(super) truncated: f64,
    /// Of the queries that come again over TCP after an answer with TC: those whose answer has TC again.
    pub(super) truncated_again: f64,
    pub(super) garbage: f64,
    /// Queries that are answered with SERVFAIL.
    pub(super) failing: f64,
    /// How long it keeps idle connections, 100 ms (RFC 7828, section 3.1). It tells clients that ask, and
    /// does not close the connections.
    pub(super) idle: Option<u8>,
    /// Queries at which it closes the connection, and the share of these closes that are resets.
    pub(super) closes: f64,
    pub(super) resets: f64,
    /// The instants between which it does nothing, once.
    pub(super) stall: Option<(Nanos, Nanos)>,
    /// Queries must be signed with it (RFC 8945), and answers are.
    pub(super) key: Option<Arc<Key>>,
}

/// A server that does nothing wrong.
impl Default for Manners {
    fn default() -> Self {
        Self {
            work: 1..2,
            silent: 0.0,
            late: 0.0,
            twice: 0.0,
            other_id: 0.0,
            other_question: 0.0,
            truncated: 0.0,
            truncated_again: 0.0,
            garbage: 0.0,
            failing: 0.0,
            idle: None,
            closes: 0.0,
            resets: 0.0,
            stall: None,
            key: None,
        }
    }
}

#[derive(Debug)]
pub(super) enum ToClient {
    Octets(Vec<u8>),
    Close { by_reset: bool },
}

#[derive(Clone, Copy, Debug)]
enum Asker {
    Datagram,
    Frame,
    Http2(http2::RequestId),
    Quic(RequestId),
}

/// What lies above a connection's octets.
enum Above {
    Datagrams,
    Plain,
    Tls(Box<ServerConnection>),
    Http2(Box<ServerConnection>, Box<http2::Server>),
}

struct Connection {
    above: Above,
    /// The beginning of a message whose rest has not come.
    partial: Vec<u8>,
    /// Queries that came on it.
    queries: u32,
    /// The ids of queries that are in flight, with the instant at which they came or were sent.
    in_flight: HashMap<u16, Nanos>,
    is_closed: bool,
}

/// What the server sends.
struct Answer {
    /// When it leaves.
    at: Nanos,
    message: Vec<u8>,
}

pub(super) struct Server {
    random: Xoshiro256PlusPlus,
    manners: Manners,
    timeout: Nanos,
    /// The client's limit on queries per connection, if it is exact.
    pub(super) quota: Option<u32>,
    transport: Transport,
    connections: BTreeMap<usize, Connection>,
    quic: Option<QuicServer>,
    /// Nanoseconds since 1970.
    pub(super) time_of_day: u64,
    /// Answers that are due later.
    later: BTreeMap<(Nanos, u64), (usize, Asker, Vec<u8>)>,
    count: u64,
    pub(super) out: Vec<(usize, ToClient)>,
    /// Upper bound on right answers that left the server within the time-out of their query.
    pub(super) right: u64,
    /// Messages that came with a right header.
    pub(super) asked: u64,
    /// The first labels of the names that each socket asked for. Over QUIC a query does not tell its socket.
    pub(super) labels: BTreeMap<usize, BTreeSet<Vec<u8>>>,
}

/// Certificate and key, made once. Ed25519, so that signatures have one length in each run.
fn certificate() -> &'static (rcgen::Certificate, rcgen::KeyPair) {
    static MADE: OnceLock<(rcgen::Certificate, rcgen::KeyPair)> = OnceLock::new();
    MADE.get_or_init(|| {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        (parameters.self_signed(&key).unwrap(), key)
    })
}

fn tls(transport: Transport) -> Arc<ServerConfig> {
    let key = certificate().1.serialize_der().try_into().unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate().0.der().clone()], key)
        .unwrap();
    let name = match transport {
        Transport::Doq => ALPN_DOQ,
        Transport::Doh3 => ALPN_H3,
        Transport::Doh2 => alpn::DOH2,
        _ => alpn::DOT,
    };
    config.alpn_protocols = vec![name.to_vec()];
    config.max_early_data_size = if transport.is_quic() { u32::MAX } else { 16_384 };
    Arc::new(config)
}

impl Server {
    pub(super) fn new(
        seed: u64,
        transport: Transport,
        manners: Manners,
        timeout: Nanos,
        quota: Option<u32>,
    ) -> Self {
        let quic = transport.is_quic().then(|| {
            let tls = tls(transport);
            let mut settings = match transport {
                Transport::Doq => QuicServerSettings::doq(tls),
                _ => QuicServerSettings::http3(tls, "/dns-query"),
            }
            .unwrap();
            settings.seed = Some([seed as u8; 32]);
            QuicServer::new(&settings)
        });
        Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x5e17),
            manners,
            timeout,
            quota,
            transport,
            connections: BTreeMap::new(),
            quic,
            time_of_day: 0,
            later: BTreeMap::new(),
            count: 0,
            out: Vec::new(),
            right: 0,
            asked: 0,
            labels: BTreeMap::new(),
        }
    }

    fn chance(&mut self, share: f64) -> bool {
        share > 0.0 && self.random.random_bool(share)
    }

    /// A client has a new socket. What is asked again over TCP comes on a stream.
    pub(super) fn opened(&mut self, transport: Transport, number: usize, is_stream: bool) {
        let above = match transport {
            Transport::Udp if is_stream => Above::Plain,
            Transport::Udp | Transport::Doq | Transport::Doh3 => Above::Datagrams,
            Transport::Tcp => Above::Plain,
            Transport::Dot => {
                Above::Tls(Box::new(ServerConnection::new(tls_once(transport)).unwrap()))
            }
            Transport::Doh2 => Above::Http2(
                Box::new(ServerConnection::new(tls_once(transport)).unwrap()),
                Box::new(http2::Server::new("/dns-query")),
            ),
        };
        let connection = Connection {
            above,
            partial: Vec::new(),
            queries: 0,
            in_flight: HashMap::new(),
            is_closed: false,
        };
        self.connections.insert(number, connection);
    }

    pub(super) fn forget(&mut self, number: usize) {
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.is_closed = true;
        }
    }

    /// Until when it does nothing, if it does nothing now.
    pub(super) fn end_of_stall(&self, now: Nanos) -> Option<Nanos> {
        self.manners.stall.filter(|(from, to)| (*from..*to).contains(&now)).map(|(_, to)| to)
    }

    /// The client sends a query over UDP. No query in flight on this socket may have its id.
    pub(super) fn sent(&mut self, now: Nanos, number: usize, query: &[u8]) {
        let id = u16::from_be_bytes([query[0], query[1]]);
        let (timeout, quota) = (self.timeout, self.quota);
        let Some(connection) = self.connections.get_mut(&number) else { return };
        connection.note_query(now, Some(id), timeout, quota);
    }

    /// The client has read a datagram over UDP.
    pub(super) fn read(&mut self, number: usize, answer: &[u8]) {
        if let (Some(connection), [high, low, ..]) = (self.connections.get_mut(&number), answer) {
            connection.in_flight.remove(&u16::from_be_bytes([*high, *low]));
        }
    }

    /// Octets have come, or a datagram.
    pub(super) fn receive(&mut self, now: Nanos, origin: Instant, number: usize, octets: &[u8]) {
        // What comes in a stall is looked at after it.
        let now = self.end_of_stall(now).unwrap_or(now);
        if let Some(quic) = &mut self.quic {
            let at = origin + Duration::from_nanos(now);
            quic.receive(at, address_of(number), None, octets, octets.len());
            return self.serve_quic(now, origin);
        }
        let Some(mut connection) = self.connections.remove(&number) else { return };
        if !connection.is_closed {
            self.receive_on(now, number, &mut connection, octets);
        }
        self.connections.insert(number, connection);
    }

    fn receive_on(
        &mut self,
        now: Nanos,
        number: usize,
        connection: &mut Connection,
        octets: &[u8],
    ) {
        let mut plain = Vec::new();
        match &mut connection.above {
            Above::Datagrams => {
                return self.query(now, number, connection, Asker::Datagram, octets);
            }
            Above::Plain => plain.extend_from_slice(octets),
            Above::Tls(tls) | Above::Http2(tls, _) => {
                let mut rest = octets;
                while !rest.is_empty() {
                    tls.read_tls(&mut rest).unwrap();
                    let Ok(state) = tls.process_new_packets() else {
                        connection.is_closed = true;
                        let (mut alert, by_reset) = (Vec::new(), false);
                        while tls.wants_write() {
                            tls.write_tls(&mut alert).unwrap();
                        }
                        self.out.push((number, ToClient::Octets(alert)));
                        return self.out.push((number, ToClient::Close { by_reset }));
                    };
                    if let Some(mut early) = tls.early_data() {
                        early.read_to_end(&mut plain).unwrap();
                    }
                    let start = plain.len();
                    plain.resize(start + state.plaintext_bytes_to_read(), 0);
                    tls.reader().read_exact(&mut plain[start..]).unwrap();
                }
            }
        }
        if let Above::Http2(_, http) = &mut connection.above {
            http.receive(&plain);
            let mut reply = Vec::new();
            let is_over = http.poll(&mut reply).is_err();
            let mut requests = Vec::new();
            while let Some(request) = http.next_request() {
                requests.push(request);
            }
            self.seal(number, connection, &reply);
            for request in requests {
                self.query(now, number, connection, Asker::Http2(request.id), &request.message);
            }
            if is_over && !connection.is_closed {
                connection.is_closed = true;
                self.out.push((number, ToClient::Close { by_reset: false }));
            }
            return;
        }
        self.seal(number, connection, &[]);
        let mut all = std::mem::take(&mut connection.partial);
        all.extend(plain);
        let mut frames = Frames::new(&all);
        for query in frames.by_ref() {
            self.query(now, number, connection, Asker::Frame, query);
        }
        connection.partial = frames.rest().to_vec();
    }

    /// Puts octets into TLS, if there is any, and on the way.
    fn seal(&mut self, number: usize, connection: &mut Connection, octets: &[u8]) {
        let mut sealed = Vec::new();
        match &mut connection.above {
            Above::Datagrams | Above::Plain => sealed.extend_from_slice(octets),
            Above::Tls(tls) | Above::Http2(tls, _) => {
                tls.writer().write_all(octets).unwrap();
                while tls.wants_write() {
                    tls.write_tls(&mut sealed).unwrap();
                }
            }
        }
        if !sealed.is_empty() && !connection.is_closed {
            self.out.push((number, ToClient::Octets(sealed)));
        }
    }

    fn query(
        &mut self,
        now: Nanos,
        number: usize,
        connection: &mut Connection,
        asker: Asker,
        query: &[u8],
    ) {
        let id = u16::from_be_bytes([query[0], query[1]]);
        let label = &query[13..13 + usize::from(query[12])];
        self.labels.entry(number).or_default().insert(label.to_vec());
        match asker {
            // Noted when it was sent.
            Asker::Datagram => {}
            Asker::Frame => {
                // When what had waited was sent is not known. Its id may be free since.
                let has_waited = self
                    .manners
                    .stall
                    .is_some_and(|(_, end)| (end..end + self.timeout).contains(&now));
                let id = (!has_waited).then_some(id);
                connection.note_query(now, id, self.timeout, self.quota);
            }
            // All ids are 0 over HTTP and QUIC (RFC 8484, section 4.1; RFC 9250, section 4.2.1).
            Asker::Http2(_) | Asker::Quic(_) => {
                connection.note_query(now, None, self.timeout, self.quota);
            }
        }
        if self.chance(self.manners.closes) && !matches!(asker, Asker::Datagram) {
            connection.is_closed = true;
            let by_reset = self.chance(self.manners.resets);
            return self.out.push((number, ToClient::Close { by_reset }));
        }
        let truncated = match (asker, self.transport) {
            (Asker::Frame, Transport::Udp) => self.manners.truncated_again,
            _ => self.manners.truncated,
        };
        for Answer { at, message } in self.answers(now, query, truncated) {
            self.put_off(at, number, asker, message);
        }
    }

    fn put_off(&mut self, at: Nanos, number: usize, asker: Asker, answer: Vec<u8>) {
        self.count += 1;
        self.later.insert((at, self.count), (number, asker, answer));
    }

    fn answers(&mut self, now: Nanos, query: &[u8], truncated: f64) -> Vec<Answer> {
        self.asked += 1;
        let manners = self.manners.clone();
        let mut at = now + self.random.random_range(manners.work.clone());
        if self.chance(manners.silent) {
            return Vec::new();
        }
        if self.chance(manners.late) {
            at += self.timeout;
        }
        let mut answer = match &manners.key {
            Some(key) => signed_answer(key, query, self.time_of_day),
            None => query.to_vec(),
        };
        answer[2] |= 0x80;
        // The query ends with the empty option. Its length is also that of its record.
        if let (Some(idle), Some(length)) = (manners.idle, answer.len().checked_sub(1)) {
            answer[length] = 2;
            answer[length - 4] += 2;
            answer.extend_from_slice(&[0, idle]);
        }
        if self.chance(truncated) {
            answer[2] |= 0x02;
        }
        if self.chance(manners.failing) {
            answer[3] |= 0x02;
        }
        let mut answers = Vec::new();
        if self.chance(manners.other_id) {
            // The question is another one too. With the id and the question of another query in flight it
            // would be that query's answer.
            let mut stray = stray(&answer);
            stray[1] ^= 0x55;
            stray[13] ^= 0x02;
            answers.push(Answer { at, message: stray });
        }
        if self.chance(manners.other_question) {
            let mut stray = stray(&answer);
            stray[13] ^= 0x01;
            answers.push(Answer { at, message: stray });
        }
        if self.chance(manners.garbage) {
            let length = self.random.random_range(0..answer.len());
            answers.push(Answer { at, message: answer[..length].to_vec() });
        }
        if self.chance(manners.twice) {
            answers.push(Answer { at: at + 1_000, message: answer.clone() });
        }
        self.right += 1;
        answers.push(Answer { at, message: answer });
        answers
    }

    /// When there is something to do.
    pub(super) fn next_time(&self, origin: Instant) -> Option<Nanos> {
        let later = self.later.first_key_value().map(|((at, _), _)| *at);
        let quic = self.quic.as_ref().and_then(QuicServer::next_timeout);
        let quic = quic.map(|at| at.saturating_duration_since(origin).as_nanos() as Nanos);
        [later, quic].into_iter().flatten().min()
    }

    pub(super) fn look_at_the_time(&mut self, now: Nanos, origin: Instant) {
        while let Some(entry) = self.later.first_entry()
            && entry.key().0 <= now
        {
            let (number, asker, answer) = entry.remove();
            if let Asker::Quic(request) = asker {
                self.quic.as_mut().expect("it was asked over QUIC").answer(request, &answer);
                continue;
            }
            let Some(mut connection) = self.connections.remove(&number) else { continue };
            if !connection.is_closed {
                self.reply(number, &mut connection, asker, &answer);
            }
            self.connections.insert(number, connection);
        }
        if let Some(quic) = &mut self.quic {
            quic.handle_timeouts(origin + Duration::from_nanos(now));
            self.serve_quic(now, origin);
        }
    }

    fn reply(&mut self, number: usize, connection: &mut Connection, asker: Asker, answer: &[u8]) {
        if let [high, low, ..] = answer
            && !matches!(asker, Asker::Datagram)
        {
            connection.in_flight.remove(&u16::from_be_bytes([*high, *low]));
        }
        let mut octets = Vec::new();
        match (asker, &mut connection.above) {
            (Asker::Http2(request), Above::Http2(_, http)) => {
                http.answer(request, answer);
                if http.poll(&mut octets).is_err() {
                    connection.is_closed = true;
                }
            }
            (Asker::Frame, _) => push_frame(&mut octets, answer),
            _ => octets.extend_from_slice(answer),
        }
        self.seal(number, connection, &octets);
    }

    /// Takes queries over QUIC, and sends packets.
    fn serve_quic(&mut self, now: Nanos, origin: Instant) {
        let at = origin + Duration::from_nanos(now);
        let Some(mut quic) = self.quic.take() else { return };
        let mut asked: Vec<(RequestId, Vec<u8>)> = Vec::new();
        let never = self.manners.silent;
        let random = &mut self.random;
        quic.poll(at, &mut |request, query, _| {
            if never > 0.0 && random.random_bool(never) {
                return Reaction::Never;
            }
            asked.push((request, query.to_vec()));
            Reaction::Later
        });
        for (request, query) in asked {
            for Answer { at, message } in self.answers(now, &query, self.manners.truncated) {
                self.put_off(at, usize::MAX, Asker::Quic(request), message);
            }
        }
        let mut packets = Vec::new();
        while let Some(outgoing) = quic.transmit(at, &mut packets) {
            let peer: SocketAddr = outgoing.peer;
            for packet in packets.chunks(outgoing.segment.max(1)) {
                self.out.push((socket_of(peer), ToClient::Octets(packet.to_vec())));
            }
            packets.clear();
        }
        self.quic = Some(quic);
    }
}

impl Connection {
    /// Checks a query against those before it.
    #[track_caller]
    fn note_query(&mut self, now: Nanos, id: Option<u16>, timeout: Nanos, quota: Option<u32>) {
        self.queries += 1;
        if let Some(quota) = quota {
            assert!(self.queries <= quota, "query {} on a connection for {quota}", self.queries);
        }
        let Some(id) = id else { return };
        let before = self.in_flight.insert(id, now);
        let is_free = before.is_none_or(|before| before + timeout / 2 <= now);
        assert!(is_free, "id {id:#06x} is in flight since {before:?}, and sent again at {now}");
    }
}

/// A signed answer without a record, or the refusal of a query that was not signed well or at another time.
fn signed_answer(key: &Arc<Key>, query: &[u8], time_of_day: u64) -> Vec<u8> {
    let now = Time48::from_u64(time_of_day / 1_000_000_000);
    let mut query = Message::from_octets(query.to_vec()).unwrap();
    let answer = MessageBuilder::new_vec();
    match ServerTransaction::request(key, &mut query, now) {
        Ok(transaction) => {
            let answer = answer.start_answer(&query, Rcode::NOERROR).unwrap();
            let mut answer = answer.additional();
            transaction.expect("the query is signed").answer(&mut answer, now).unwrap();
            answer.finish()
        }
        Err(refusal) => refusal.build_message(&query, answer).unwrap().finish(),
    }
}

/// An answer with the code REFUSED, which marks an answer to something else.
fn stray(answer: &[u8]) -> Vec<u8> {
    let mut stray = answer.to_vec();
    stray[3] |= 5;
    stray
}

/// Made once for each transport, with the tickets that they hand out.
fn tls_once(transport: Transport) -> Arc<ServerConfig> {
    static MADE: OnceLock<[Arc<ServerConfig>; 2]> = OnceLock::new();
    let made = MADE.get_or_init(|| [tls(Transport::Dot), tls(Transport::Doh2)]);
    Arc::clone(&made[usize::from(transport == Transport::Doh2)])
}
