//! dnstap: what servers write about their queries (<https://dnstap.info>, `dnstap.proto`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use dnslab_wire::{ResponseOptions, Transport, rtype};
use prost::Message as _;

use crate::message::{HEADER, question_length};
use crate::{CaptureOptions, DnstapKind, DnstapSource, Reason};

/// The payload size of a query that is made from its response: that of DNS flag day 2020.
const PAYLOAD_SIZE: u16 = 1232;

/// The fields of a `Dnstap` that are read and written. None of them is optional here, so that their memory is used
/// again: what is missing is empty, or 0.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Dnstap {
    #[prost(message, required, tag = "14")]
    pub(crate) message: Message,
    /// 1: there is a message.
    #[prost(int32, tag = "15")]
    pub(crate) kind: i32,
}

/// The fields of a `Message` that are read and written.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Message {
    #[prost(int32, tag = "1")]
    pub(crate) kind: i32,
    #[prost(int32, tag = "2")]
    pub(crate) socket_family: i32,
    #[prost(int32, tag = "3")]
    pub(crate) socket_protocol: i32,
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) query_address: Vec<u8>,
    #[prost(bytes = "vec", tag = "5")]
    pub(crate) response_address: Vec<u8>,
    #[prost(uint32, tag = "6")]
    pub(crate) query_port: u32,
    #[prost(uint32, tag = "7")]
    pub(crate) response_port: u32,
    #[prost(uint64, tag = "8")]
    pub(crate) query_time_sec: u64,
    #[prost(fixed32, tag = "9")]
    pub(crate) query_time_nsec: u32,
    #[prost(bytes = "vec", tag = "10")]
    pub(crate) query_message: Vec<u8>,
    #[prost(uint64, tag = "12")]
    pub(crate) response_time_sec: u64,
    #[prost(fixed32, tag = "13")]
    pub(crate) response_time_nsec: u32,
    #[prost(bytes = "vec", tag = "14")]
    pub(crate) response_message: Vec<u8>,
    #[prost(int32, tag = "16")]
    pub(crate) http_protocol: i32,
}

/// `Type.MESSAGE`.
pub(crate) const MESSAGE: i32 = 1;

/// `Message.Type.CLIENT_QUERY`.
pub(crate) const CLIENT_QUERY: i32 = 5;

/// `HttpProtocol.HTTP3`.
const HTTP3: i32 = 3;

/// A query in a frame. Its message is in the [`FrameReader`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameQuery {
    pub(crate) at_ns: u64,
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    pub(crate) transport: Transport,
}

/// Reads one frame after another without new memory.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    frame: Dnstap,
}

impl FrameReader {
    /// The DNS message of the last frame.
    pub(crate) fn message(&self) -> &[u8] {
        &self.frame.message.query_message
    }

    /// What the last frame is about; `None` for a dynamic update, or what is not known.
    pub(crate) fn kind(&self) -> Option<(DnstapKind, DnstapSource)> {
        kind_and_source(self.frame.message.kind)
    }

    /// Of a frame about a response over UDP: the client, and the response.
    pub(crate) fn udp_response(&self) -> Option<(IpAddr, &[u8])> {
        let message = &self.frame.message;
        let (_, source) = kind_and_source(message.kind)?;
        let is_udp = message.transport() == Some(Transport::Udp);
        let client = address(&message.query_address, message.query_port)?;
        (is_udp && source == DnstapSource::Responses)
            .then_some((client.ip(), message.response_message.as_slice()))
    }

    /// Reads the octets of a frame. Whether the message is a query is for the caller to check.
    pub(crate) fn read(
        &mut self,
        octets: &[u8],
        options: &CaptureOptions,
    ) -> Result<FrameQuery, Reason> {
        self.frame.clear();
        let read = self.frame.merge(octets);
        if read.is_err() || self.frame.kind != MESSAGE {
            return Err(Reason::DnstapMalformed);
        }
        let message = &mut self.frame.message;
        let (kind, source) = kind_and_source(message.kind).ok_or(Reason::DnstapKind)?;
        if source != options.dnstap_source || !options.dnstap_kinds.contains(&kind) {
            return Err(Reason::DnstapKind);
        }
        let transport = message.transport().ok_or(Reason::DnstapTransport)?;
        let client = address(&message.query_address, message.query_port);
        let server = address(&message.response_address, message.response_port);
        // A server that asks others need not say from where.
        let is_own = !matches!(kind, DnstapKind::Client | DnstapKind::Auth);
        let unspecified = |other: Option<SocketAddr>, port| match other {
            Some(SocketAddr::V6(_)) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
            _ => SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
        };
        let query = FrameQuery {
            at_ns: message.at_ns(),
            client: match client {
                None if is_own => unspecified(server, port(message.query_port)),
                client => client.ok_or(Reason::DnstapIncomplete)?,
            },
            server: server.unwrap_or_else(|| match port(message.response_port) {
                0 => unspecified(client, transport.default_port()),
                port => unspecified(client, port),
            }),
            transport,
        };
        if options.servers.as_ref().is_some_and(|servers| !servers.contains(query.server)) {
            return Err(Reason::OtherServer);
        }
        if message.query_message.is_empty() {
            if source == DnstapSource::Queries || message.response_message.is_empty() {
                return Err(Reason::DnstapIncomplete);
            }
            query_of_response(&message.response_message, &mut message.query_message)?;
        }
        Ok(query)
    }
}

impl Message {
    fn transport(&self) -> Option<Transport> {
        Some(match self.socket_protocol {
            1 => Transport::Udp,
            2 => Transport::Tcp,
            3 => Transport::Dot,
            4 if self.http_protocol == HTTP3 => Transport::Doh3,
            4 => Transport::Doh2,
            // 5 and 6 are DNSCrypt.
            7 => Transport::Doq,
            _ => return None,
        })
    }

    /// The number of a transport, and of the version of HTTP.
    pub(crate) fn protocols(transport: Transport) -> (i32, i32) {
        match transport {
            Transport::Udp => (1, 0),
            Transport::Tcp => (2, 0),
            Transport::Dot => (3, 0),
            Transport::Doh2 => (4, 2),
            Transport::Doh3 => (4, HTTP3),
            Transport::Doq => (7, 0),
        }
    }

    /// When the query came; when the response went if nobody wrote down the former.
    fn at_ns(&self) -> u64 {
        let ns =
            |sec: u64, nsec: u32| sec.saturating_mul(1_000_000_000).saturating_add(nsec.into());
        match (self.query_time_sec, self.query_time_nsec) {
            (0, 0) => ns(self.response_time_sec, self.response_time_nsec),
            (sec, nsec) => ns(sec, nsec),
        }
    }
}

/// `Message.Type`, except dynamic updates, which are no queries.
fn kind_and_source(number: i32) -> Option<(DnstapKind, DnstapSource)> {
    use DnstapKind::{Auth, Client, Forwarder, Resolver, Stub, Tool};
    let kinds = [Auth, Resolver, Client, Forwarder, Stub, Tool];
    let index = usize::try_from(number.checked_sub(1)?).ok()?;
    let source = [DnstapSource::Queries, DnstapSource::Responses][index % 2];
    Some((*kinds.get(index / 2)?, source))
}

/// 0 if it is none.
fn port(number: u32) -> u16 {
    u16::try_from(number).unwrap_or(0)
}

fn address(octets: &[u8], number: u32) -> Option<SocketAddr> {
    let address = match octets.len() {
        4 => IpAddr::from(*octets.first_chunk::<4>()?),
        16 => IpAddr::from(*octets.first_chunk::<16>()?),
        _ => return None,
    };
    Some((address, port(number)).into())
}

/// Makes the query that a response answers, as far as the response tells. A server repeats the id, RD, CD and the
/// question (RFC 1035, section 4.1.1; RFC 4035, section 3.2.2), and sends an OPT record only to a client that has
/// sent one, with the client's DO bit (RFC 6891, section 7; RFC 3225, section 3).
fn query_of_response(response: &[u8], query: &mut Vec<u8>) -> Result<(), Reason> {
    let Some((header, rest)) = response.split_first_chunk::<HEADER>() else {
        return Err(Reason::MalformedMessage);
    };
    if [header[4], header[5]] != [0, 1] {
        return Err(Reason::QuestionCount);
    }
    let question = question_length(rest).ok_or(Reason::MalformedMessage)?;
    let options = ResponseOptions::read(response);
    query.clear();
    query.extend_from_slice(&header[..2]);
    query.extend([header[2] & 0x79, header[3] & 0x10]);
    query.extend([0, 1, 0, 0, 0, 0, 0, options.is_some().into()]);
    query.extend_from_slice(&rest[..question]);
    if let Some(options) = options {
        query.push(0);
        query.extend(rtype::OPT.to_be_bytes());
        query.extend(PAYLOAD_SIZE.to_be_bytes());
        query.extend([0, 0, u8::from(options.dnssec_ok) << 7, 0, 0, 0]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::check;

    const QUERY: &[u8] = b"\x12\x34\x01\x10\0\x01\0\0\0\0\0\0\x03www\0\0\x01\0\x01";

    fn message(kind: i32) -> Message {
        Message {
            kind,
            socket_family: 1,
            socket_protocol: 1,
            query_address: vec![192, 0, 2, 1],
            response_address: vec![192, 0, 2, 53],
            query_port: 40_000,
            response_port: 53,
            query_time_sec: 5,
            query_time_nsec: 6,
            query_message: QUERY.to_vec(),
            ..Message::default()
        }
    }

    fn read(message: Message, options: &CaptureOptions) -> Result<(FrameQuery, Vec<u8>), Reason> {
        let frame = Dnstap { message, kind: MESSAGE }.encode_to_vec();
        let mut reader = FrameReader::default();
        let query = reader.read(&frame, options)?;
        Ok((query, reader.message().to_vec()))
    }

    #[test]
    fn queries_of_clients_are_read() {
        for kind in [1, CLIENT_QUERY] {
            let (query, octets) = read(message(kind), &CaptureOptions::default()).unwrap();
            assert_eq!(octets, QUERY);
            assert_eq!((query.at_ns, query.transport), (5_000_000_006, Transport::Udp));
            assert_eq!(query.client, "192.0.2.1:40000".parse().unwrap());
            assert_eq!(query.server, "192.0.2.53:53".parse().unwrap());
        }
    }

    #[test]
    fn each_kind_is_read_where_it_is_asked_for_and_nowhere_else() {
        for number in -1..=16 {
            for kind in DnstapKind::ALL {
                for source in DnstapSource::ALL {
                    let options = CaptureOptions {
                        dnstap_kinds: vec![kind],
                        dnstap_source: source,
                        ..CaptureOptions::default()
                    };
                    let is_read = read(message(number), &options).is_ok();
                    let expected = kind_and_source(number) == Some((kind, source));
                    assert_eq!(is_read, expected, "{number} {kind} {source}");
                }
            }
        }
        let all: Vec<_> = (1..=12).filter_map(kind_and_source).collect();
        assert_eq!(all.len(), 12);
        assert_eq!(all[4], (DnstapKind::Client, DnstapSource::Queries));
        assert_eq!(all[11], (DnstapKind::Tool, DnstapSource::Responses));
    }

    #[test]
    fn transports_are_read_and_dnscrypt_is_none() {
        for transport in Transport::ALL {
            let (socket_protocol, http_protocol) = Message::protocols(transport);
            let message = Message { socket_protocol, http_protocol, ..message(5) };
            assert_eq!(read(message, &CaptureOptions::default()).unwrap().0.transport, transport);
        }
        for socket_protocol in [0, 5, 6, 8, -1] {
            let message = Message { socket_protocol, ..message(5) };
            let found = read(message, &CaptureOptions::default()).map(|_| ());
            assert_eq!(found, Err(Reason::DnstapTransport));
        }
    }

    #[test]
    fn what_is_missing_is_said_or_stood_in_for() {
        let options = CaptureOptions::default();
        let no_client = Message { query_address: Vec::new(), ..message(5) };
        assert_eq!(read(no_client, &options).map(|_| ()), Err(Reason::DnstapIncomplete));
        let no_message = Message { query_message: Vec::new(), ..message(5) };
        assert_eq!(read(no_message, &options).map(|_| ()), Err(Reason::DnstapIncomplete));
        let mut no_server = message(5);
        no_server.response_address = Vec::new();
        (no_server.response_port, no_server.socket_protocol) = (0, 3);
        let query = read(no_server, &options).unwrap().0;
        assert_eq!(query.server, "0.0.0.0:853".parse().unwrap());
        let options = CaptureOptions { dnstap_kinds: vec![DnstapKind::Resolver], ..options };
        let mut own = message(3);
        own.query_address = Vec::new();
        own.response_address = vec![1; 16];
        let query = read(own, &options).unwrap().0;
        assert_eq!(query.client, "[::]:40000".parse().unwrap());
        let mut reader = FrameReader::default();
        assert_eq!(reader.read(b"\xff\xff", &options).map(|_| ()), Err(Reason::DnstapMalformed));
        assert_eq!(reader.read(b"", &options).map(|_| ()), Err(Reason::DnstapMalformed));
    }

    #[track_caller]
    fn check_servers(servers: &str, expected: Result<(), Reason>) {
        let servers = Some(servers.parse().unwrap());
        let options = CaptureOptions { servers, ..CaptureOptions::default() };
        assert_eq!(read(message(5), &options).map(|_| ()), expected);
        let nameless = Message { response_address: Vec::new(), ..message(5) };
        assert_eq!(read(nameless, &options).map(|_| ()), Err(Reason::OtherServer));
    }

    #[test]
    fn other_servers_are_left_out() {
        check_servers("192.0.2.53", Ok(()));
        check_servers("198.51.100.1, 192.0.2.53:53", Ok(()));
        check_servers("192.0.2.53:5353", Err(Reason::OtherServer));
        check_servers("2001:db8::/32", Err(Reason::OtherServer));
    }

    #[test]
    fn nothing_of_the_frame_before_is_left() {
        let mut reader = FrameReader::default();
        let options = CaptureOptions::default();
        let frame = |message| Dnstap { message, kind: MESSAGE }.encode_to_vec();
        reader.read(&frame(message(5)), &options).unwrap();
        let empty = Message { kind: 5, socket_protocol: 1, ..Message::default() };
        let found = reader.read(&frame(empty), &options).map(|_| ());
        assert_eq!(found, Err(Reason::DnstapIncomplete));
        assert!(reader.message().is_empty());
    }

    fn from_response(response: &[u8]) -> Result<(u64, Vec<u8>), Reason> {
        let options =
            CaptureOptions { dnstap_source: DnstapSource::Responses, ..CaptureOptions::default() };
        let mut message = message(6);
        message.query_message = Vec::new();
        message.response_message = response.to_vec();
        (message.query_time_sec, message.query_time_nsec) = (0, 0);
        (message.response_time_sec, message.response_time_nsec) = (7, 8);
        read(message, &options).map(|(query, octets)| (query.at_ns, octets))
    }

    #[test]
    fn a_query_is_made_from_its_response() {
        let answer = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x01".as_slice();
        // QR, AA, RD, RA, AD, CD, NOERROR, one answer, no OPT record.
        let head = b"\x12\x34\x85\xb0\0\x01\0\x01\0\0\0\0\x03www\0\0\x01\0\x01".as_slice();
        let (at_ns, query) = from_response(&[head, answer].concat()).unwrap();
        assert_eq!(at_ns, 7_000_000_008);
        assert_eq!(query, QUERY);
        assert_eq!(check(&query), Ok(()));
        // The same with an OPT record of the server, which has the DO bit.
        let head = b"\x12\x34\x85\xb0\0\x01\0\x01\0\0\0\x01\x03www\0\0\x01\0\x01".as_slice();
        let opt = b"\0\0\x29\x10\0\0\0\x80\0\0\x04\0\x0f\0\0".as_slice();
        let (_, query) = from_response(&[head, answer, opt].concat()).unwrap();
        assert_eq!(query[..10], QUERY[..10]);
        assert_eq!(query[QUERY.len()..], *b"\0\0\x29\x04\xd0\0\0\x80\0\0\0");
        assert_eq!(check(&query), Ok(()));
        let refused = from_response(b"\x12\x34\x81\x05\0\0\0\0\0\0\0\0");
        assert_eq!(refused.map(|_| ()), Err(Reason::QuestionCount));
        assert_eq!(from_response(b"\x12\x34\x81\x05").map(|_| ()), Err(Reason::MalformedMessage));
    }
}
