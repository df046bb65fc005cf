//! One query after another.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use dnslab_wire::{ServerAddresses, Transport};

use crate::compression::{Corrupt, Decoder};
use crate::container::{Container, Item};
use crate::datagram::{Segment, UDP_HEADER, ports, udp_end};
use crate::dnstap::{FrameQuery, FrameReader};
use crate::duplicates::Duplicates;
use crate::error::Fault;
use crate::fragments::{Fragments, Whose};
use crate::ip::{self, TCP, UDP};
use crate::link::{LinkType, ip_start};
use crate::message::{check, segment_length};
use crate::packet::Packet;
use crate::repeats::Repeats;
use crate::streams::{StreamQuery, Streams};
use crate::tunnels::{Inner, MAX_TUNNELS, in_datagram, in_protocol};
use crate::window::Window;
use crate::{CaptureError, CaptureOptions, Counts, Reason};

/// Octets that are read at once.
const CAPACITY: usize = 256 * 1024;

/// A query as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured<'a> {
    /// When its last octet was captured, in nanoseconds since 1970. It need not rise from one query to the next:
    /// the order is that of the capture.
    pub at_ns: u64,
    /// Who asked. An IPv4-mapped IPv6 address stays one.
    pub client: SocketAddr,
    /// Who was asked. With dnstap that does not say it: the unspecified address.
    pub server: SocketAddr,
    /// How it travelled. DoH of dnstap is DoH3 if the frame names HTTP/3, otherwise DoH2. A packet is UDP or TCP.
    pub transport: Transport,
    /// The message as it was sent, without length prefix.
    pub message: &'a [u8],
}

/// Reads the queries of a capture in bounded memory: about 120 MiB at most for what is not whole yet, and 128 MiB for
/// Zstandard. A usual capture takes less than 1 MiB.
pub struct CaptureReader<R: Read> {
    window: Window<Decoder<R>>,
    container: Container,
    parts: Parts,
    options: CaptureOptions,
    frames: FrameReader,
    /// The last datagram that was put together from fragments.
    whole: Vec<u8>,
    /// The datagram whose queries are given out.
    datagram: Option<Datagram>,
    end: Option<Result<(), Fault>>,
}

/// Where the message of a query is.
enum Found {
    /// In the window.
    Packet(Ends, Range<usize>),
    /// In the datagram that was put together.
    Whole(Ends, Range<usize>),
    Stream(StreamQuery),
    Frame(FrameQuery),
}

#[derive(Clone, Copy)]
struct Ends {
    at_ns: u64,
    client: SocketAddr,
    server: SocketAddr,
}

impl Ends {
    /// A query in a datagram between these ends.
    fn query(self, message: &[u8]) -> Captured<'_> {
        let Self { at_ns, client, server } = self;
        Captured { at_ns, client, server, transport: Transport::Udp, message }
    }
}

/// A datagram to a server, which begins with a query.
struct Datagram {
    ends: Ends,
    ip_id: u32,
    /// True if it is in the datagram that was put together, false if in the window.
    is_whole: bool,
    /// Where the queries are that were not given out.
    rest: Range<usize>,
    /// Octets of each of them, of which the last may have fewer.
    length: usize,
    /// The first was given out.
    goes_on: bool,
}

/// What is known of packets before.
struct Parts {
    ports: Ports,
    servers: Option<ServerAddresses>,
    /// Where packets that were captured twice are left out.
    duplicates: Option<Duplicates>,
    /// Where queries that are repeated over TCP are left out.
    repeats: Option<Repeats>,
    counts: Counts,
    fragments: Fragments,
    streams: Streams,
}

/// Ports as bits.
struct Ports(Box<[u64; 1024]>);

impl Ports {
    fn new(ports: &[u16]) -> Self {
        let mut bits = Box::new([0; 1024]);
        for port in ports {
            bits[usize::from(port >> 6)] |= 1 << (port & 63);
        }
        Self(bits)
    }

    #[inline]
    fn contains(&self, port: u16) -> bool {
        self.0[usize::from(port >> 6)] >> (port & 63) & 1 == 1
    }
}

/// A packet on its way through its tunnels.
#[derive(Clone, Copy)]
struct Journey {
    at_ns: u64,
    /// The reason if octets are missing.
    missing: Reason,
    /// Tunnels that it is in.
    tunnels: usize,
}

/// Addresses and payload of a packet.
struct Payload<'a> {
    at_ns: u64,
    /// The identification of IP, if it has one.
    ip_id: u32,
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    octets: &'a [u8],
    /// The reason if it was longer.
    missing: Option<Reason>,
}

impl<R: Read> CaptureReader<R> {
    /// Reads the first octets and finds out what they are. It waits for them if the reader does.
    ///
    /// # Errors
    /// When the octets are no capture, or the reader fails.
    pub fn new(reader: R, options: CaptureOptions) -> Result<Self, CaptureError> {
        let failed = |source| CaptureError::Read { packets: 0, source };
        let decoder = Decoder::new(reader).map_err(failed)?;
        let mut window = Window::new(decoder, CAPACITY);
        let container = match Container::open(&mut window) {
            Ok(Some(container)) => container,
            Ok(None) if window.data().len() < 4 && window.is_cut() => {
                let cut = Fault::Cut("the header of a file");
                return Err(error_of(cut, 0, window.offset()));
            }
            Ok(None) if window.data().is_empty() => return Err(CaptureError::Empty),
            Ok(None) => {
                let first = window.data()[..window.data().len().min(4)].to_vec();
                return Err(CaptureError::Unknown { first });
            }
            Err(fault) => return Err(error_of(fault, 0, window.offset())),
        };
        let parts = Parts {
            ports: Ports::new(&options.ports),
            servers: options.servers.clone(),
            duplicates: options.skips_repeats.then(Duplicates::new),
            repeats: options.skips_repeats.then(Repeats::new),
            counts: Counts::default(),
            fragments: Fragments::new(),
            streams: Streams::new(),
        };
        let frames = FrameReader::default();
        let (whole, datagram, end) = (Vec::new(), None, None);
        Ok(Self { window, container, parts, options, frames, whole, datagram, end })
    }

    /// The next query; `None` at the end. After an error there is nothing more.
    ///
    /// # Errors
    /// When the capture cannot be read further. All queries before were given. [`CaptureError::Cut`] may be taken as
    /// an end.
    #[expect(clippy::should_implement_trait, reason = "a query is borrowed from the reader")]
    pub fn next(&mut self) -> Result<Option<Captured<'_>>, CaptureError> {
        let found = match self.find() {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(fault) => {
                let packets = self.parts.counts.packets;
                return Err(error_of(fault, packets, self.window.offset()));
            }
        };
        self.parts.counts.queries += 1;
        Ok(Some(match found {
            Found::Packet(ends, range) => ends.query(&self.window.buffer()[range]),
            Found::Whole(ends, range) => ends.query(&self.whole[range]),
            Found::Stream(StreamQuery { at_ns, client, server, message }) => {
                self.parts.counts.stream_messages += 1;
                let message = &self.parts.streams.octets()[message];
                Captured { at_ns, client, server, transport: Transport::Tcp, message }
            }
            Found::Frame(FrameQuery { at_ns, client, server, transport }) => {
                Captured { at_ns, client, server, transport, message: self.frames.message() }
            }
        }))
    }

    /// What became of everything that was read so far. Once the end or an error was given, nothing is left open.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.parts.counts
    }

    /// True if it is dnstap, which has no packets.
    #[must_use]
    pub fn is_dnstap(&self) -> bool {
        matches!(self.container, Container::FrameStream(_))
    }

    fn find(&mut self) -> Result<Option<Found>, Fault> {
        loop {
            if let Some(query) = self.next_of_datagram() {
                return Ok(Some(query));
            }
            if let Some(query) = self.parts.streams.next_query() {
                if self.parts.is_repeated(&query) {
                    self.parts.counts.skip_message(Reason::RepeatedOverTcp);
                    continue;
                }
                return Ok(Some(Found::Stream(query)));
            }
            match self.end.take() {
                None => {}
                Some(end) => {
                    self.end = Some(Ok(()));
                    return end.map(|()| None);
                }
            }
            let found = match self.container.next(&mut self.window) {
                Ok(Some(Item::Packet(packet))) => self.packet(&packet),
                Ok(Some(Item::Frame(range))) => self.frame(range),
                Ok(None) => {
                    self.finish(Ok(()));
                    continue;
                }
                Err(fault) => {
                    self.finish(Err(fault));
                    continue;
                }
            };
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    /// Nothing more is read. What is open may still give queries.
    #[cold]
    fn finish(&mut self, end: Result<(), Fault>) {
        self.parts.fragments.finish(&mut self.parts.counts);
        self.parts.streams.finish(&mut self.parts.counts);
        self.end = Some(end);
    }

    #[inline]
    fn packet(&mut self, packet: &Packet) -> Option<Found> {
        let start = packet.octets.start;
        let octets = &self.window.buffer()[packet.octets.clone()];
        self.parts.counts.packets += 1;
        match self.parts.packet(packet, octets) {
            Ok(Some(Part::Queries(mut datagram))) => {
                datagram.rest = start + datagram.rest.start..start + datagram.rest.end;
                self.datagram = Some(datagram);
                self.next_of_datagram()
            }
            Ok(Some(Part::Whole(packet, octets))) => self.whole(packet, octets),
            Ok(None) => None,
            Err(reason) => {
                self.parts.counts.skip(reason);
                None
            }
        }
    }

    /// What is in a datagram that was put together. It counts as the packet with its last fragment.
    #[cold]
    fn whole(&mut self, mut packet: WholePacket, mut octets: Vec<u8>) -> Option<Found> {
        loop {
            match self.parts.whole(&packet, &octets) {
                Ok(Some(Part::Queries(datagram))) => {
                    self.whole = octets;
                    self.datagram = Some(Datagram { is_whole: true, ..datagram });
                    return self.next_of_datagram();
                }
                // It was a tunnel, and had the last fragment of another one. Tunnels have a limit.
                Ok(Some(Part::Whole(inner, inner_octets))) => {
                    (packet, octets) = (inner, inner_octets)
                }
                Ok(None) => return None,
                Err(reason) => {
                    self.parts.counts.skip(reason);
                    return None;
                }
            }
        }
    }

    /// The next query of the last datagram.
    #[inline]
    fn next_of_datagram(&mut self) -> Option<Found> {
        while let Some(datagram) = &mut self.datagram {
            let counts = &mut self.parts.counts;
            counts.segments += u64::from(std::mem::replace(&mut datagram.goes_on, true));
            let end = datagram.rest.end.min(datagram.rest.start + datagram.length);
            let range = datagram.rest.start..end;
            datagram.rest.start = end;
            let (ends, ip_id, is_whole) = (datagram.ends, datagram.ip_id, datagram.is_whole);
            if datagram.rest.is_empty() {
                self.datagram = None;
            }
            let octets = if is_whole { &self.whole[..] } else { self.window.buffer() };
            match self.parts.take(&ends, ip_id, &octets[range.clone()]) {
                Ok(()) if is_whole => return Some(Found::Whole(ends, range)),
                Ok(()) => return Some(Found::Packet(ends, range)),
                Err(reason) => self.parts.counts.skip(reason),
            }
        }
        None
    }

    fn frame(&mut self, range: Range<usize>) -> Option<Found> {
        self.parts.counts.packets += 1;
        let octets = &self.window.buffer()[range];
        let query = query_of(&mut self.frames, octets, &self.options);
        let query = match &mut self.parts.repeats {
            Some(repeats) => leave_out_repeats(repeats, query, &self.frames),
            None => query,
        };
        match query {
            Ok(query) => Some(Found::Frame(query)),
            Err(reason) => {
                skip_frame(&mut self.parts.counts, &self.frames, reason);
                None
            }
        }
    }
}

/// Counts the last frame as none.
fn skip_frame(counts: &mut Counts, frames: &FrameReader, reason: Reason) {
    match reason {
        Reason::DnstapKind => counts.skip_dnstap(frames.kind()),
        reason => counts.skip(reason),
    }
}

/// The query of a dnstap frame. Its message is in `frames`.
fn query_of(
    frames: &mut FrameReader,
    octets: &[u8],
    options: &CaptureOptions,
) -> Result<FrameQuery, Reason> {
    let query = frames.read(octets, options)?;
    check(frames.message()).map(|()| query)
}

/// A query, unless it is left out because it repeats another one over TCP.
fn leave_out_repeats(
    repeats: &mut Repeats,
    query: Result<FrameQuery, Reason>,
    frames: &FrameReader,
) -> Result<FrameQuery, Reason> {
    if let Ok(FrameQuery { at_ns, client, transport, .. }) = query {
        match transport {
            Transport::Udp => repeats.asked(at_ns, client.ip(), frames.message()),
            Transport::Tcp if repeats.is_repeated(at_ns, client.ip(), frames.message()) => {
                return Err(Reason::RepeatedOverTcp);
            }
            _ => {}
        }
    }
    if let Some((client, response)) = frames.udp_response() {
        repeats.answered(client, response);
    }
    query
}

/// Says of dnstap frames what they are, for one who writes them down as they are.
#[derive(Debug)]
pub struct FrameCounter {
    frames: FrameReader,
    options: CaptureOptions,
    counts: Counts,
}

impl FrameCounter {
    /// Counts the queries that these options look for.
    #[must_use]
    pub fn new(options: CaptureOptions) -> Self {
        Self { frames: FrameReader::default(), options, counts: Counts::default() }
    }

    /// Counts a frame as a query.
    ///
    /// # Errors
    /// The reason why it is none, for which it is counted then.
    pub fn count(&mut self, frame: &[u8]) -> Result<(), Reason> {
        self.counts.packets += 1;
        match query_of(&mut self.frames, frame, &self.options) {
            Ok(_) => {
                self.counts.queries += 1;
                Ok(())
            }
            Err(reason) => {
                skip_frame(&mut self.counts, &self.frames, reason);
                Err(reason)
            }
        }
    }

    /// What all frames were.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}

/// What a packet has.
enum Part {
    /// One query or several, which are in the octets that were read.
    Queries(Datagram),
    /// The last fragment of a payload.
    Whole(WholePacket, Vec<u8>),
}

/// What a payload has.
enum Carried {
    /// One query or several, which are in the payload.
    Queries(Datagram),
    Packet(Inner),
    /// It is counted.
    Nothing,
}

/// Whose payload was put together.
#[derive(Clone, Copy)]
struct WholePacket {
    journey: Journey,
    whose: Whose,
}

impl Parts {
    #[inline]
    fn is_repeated(&mut self, query: &StreamQuery) -> bool {
        let Some(repeats) = &mut self.repeats else { return false };
        let message = &self.streams.octets()[query.message.clone()];
        repeats.is_repeated(query.at_ns, query.client.ip(), message)
    }

    /// Reads a packet and counts it, unless it has queries, the last fragment of something, or an error.
    #[inline]
    fn packet(&mut self, packet: &Packet, octets: &[u8]) -> Result<Option<Part>, Reason> {
        if let LinkType::Unknown(number) = packet.link_type {
            self.counts.skip_link_type(number);
            return Ok(None);
        }
        let missing = if packet.is_snapped { Reason::SnapLength } else { Reason::MalformedPacket };
        let start = packet.link_type.ip_start(octets, missing)?;
        self.ip(Journey { at_ns: packet.at_ns, missing, tunnels: 0 }, octets, start)
    }

    /// Reads the packet of IP that begins at `start`, and what it is a tunnel of.
    #[inline]
    fn ip(
        &mut self,
        mut journey: Journey,
        mut octets: &[u8],
        mut start: usize,
    ) -> Result<Option<Part>, Reason> {
        loop {
            let ip = ip::read(octets, start, journey.missing)?;
            let payload = ip.payload.clone();
            if let Some(fragment) = ip.fragment {
                return self.fragment(journey, &ip, fragment, &octets[payload]);
            }
            let carried = self.payload(&Payload {
                at_ns: journey.at_ns,
                ip_id: ip.id,
                source: ip.source,
                destination: ip.destination,
                protocol: ip.protocol,
                octets: &octets[payload.clone()],
                missing: ip.missing,
            })?;
            match carried {
                Carried::Queries(datagram) => return Ok(Some(queries(datagram, payload.start))),
                Carried::Nothing => return Ok(None),
                Carried::Packet(inner) => {
                    octets = &octets[..payload.end];
                    journey.missing = ip.missing.unwrap_or(Reason::MalformedPacket);
                    start = self.enter(&mut journey, inner, octets, payload.start)?;
                }
            }
        }
    }

    /// Where the packet begins that is in the tunnel whose octets begin at `start`.
    #[cold]
    fn enter(
        &mut self,
        journey: &mut Journey,
        inner: Inner,
        octets: &[u8],
        start: usize,
    ) -> Result<usize, Reason> {
        journey.tunnels += 1;
        if journey.tunnels > MAX_TUNNELS {
            return Err(Reason::NestedTunnels);
        }
        self.counts.enter(inner.tunnel);
        ip_start(octets, start + inner.at, inner.inside, journey.missing)
    }

    #[cold]
    fn fragment(
        &mut self,
        journey: Journey,
        ip: &ip::IpPacket,
        fragment: ip::Fragment,
        octets: &[u8],
    ) -> Result<Option<Part>, Reason> {
        if let Some(missing) = ip.missing {
            return Err(missing);
        }
        let whose = Whose {
            source: ip.source,
            destination: ip.destination,
            protocol: ip.protocol,
            id: fragment.id,
        };
        let whole = self.fragments.add(journey.at_ns, whose, fragment, octets, &mut self.counts);
        Ok(whole.map(|octets| Part::Whole(WholePacket { journey, whose }, octets)))
    }

    /// What is in a payload that was put together.
    fn whole(&mut self, packet: &WholePacket, octets: &[u8]) -> Result<Option<Part>, Reason> {
        let WholePacket { mut journey, whose } = *packet;
        journey.missing = Reason::MalformedPacket;
        // The headers that follow the fragment header of IPv6.
        let (protocol, start, fragment) = ip::upper(octets, 0, whose.protocol, journey.missing)?;
        if fragment.is_some() {
            return Err(Reason::MalformedPacket);
        }
        let carried = self.payload(&Payload {
            at_ns: journey.at_ns,
            ip_id: whose.id,
            source: whose.source,
            destination: whose.destination,
            protocol,
            octets: &octets[start..],
            missing: None,
        })?;
        match carried {
            Carried::Queries(datagram) => Ok(Some(queries(datagram, start))),
            Carried::Nothing => Ok(None),
            Carried::Packet(inner) => {
                let start = self.enter(&mut journey, inner, octets, start)?;
                self.ip(journey, octets, start)
            }
        }
    }

    /// What is in a payload. A TCP segment is counted, and its queries wait.
    #[inline]
    fn payload(&mut self, payload: &Payload<'_>) -> Result<Carried, Reason> {
        let reason = payload.missing.unwrap_or(Reason::MalformedPacket);
        if !matches!(payload.protocol, UDP | TCP) {
            let inner = in_protocol(payload.protocol, payload.octets, reason);
            return inner.unwrap_or(Err(Reason::OtherProtocol)).map(Carried::Packet);
        }
        let (source, destination) = ports(payload.octets, reason)?;
        if !self.ports.contains(destination) {
            return self.no_server(payload, (source, destination), reason);
        }
        let client = SocketAddr::new(payload.source, source);
        let server = SocketAddr::new(payload.destination, destination);
        if self.servers.as_ref().is_some_and(|servers| !servers.contains(server)) {
            return Err(Reason::OtherServer);
        }
        if payload.protocol == TCP {
            let segment = Segment::read(payload.octets, payload.missing)?;
            self.streams.add(payload.at_ns, (client, server), &segment, &mut self.counts);
            return Ok(Carried::Nothing);
        }
        let end = udp_end(payload.octets, payload.missing)?;
        let data = &payload.octets[UDP_HEADER..end];
        check(data)?;
        let length = segment_length(data);
        self.counts.segmented += u64::from(length.is_some());
        Ok(Carried::Queries(Datagram {
            ends: Ends { at_ns: payload.at_ns, client, server },
            ip_id: payload.ip_id,
            is_whole: false,
            rest: UDP_HEADER..end,
            length: length.unwrap_or(data.len()),
            goes_on: false,
        }))
    }

    /// What is in a payload that does not go to the port of a server.
    #[inline]
    fn no_server(
        &mut self,
        payload: &Payload<'_>,
        (source, destination): (u16, u16),
        missing: Reason,
    ) -> Result<Carried, Reason> {
        let data = payload.octets.get(UDP_HEADER..).unwrap_or_default();
        let is_udp = payload.protocol == UDP;
        if self.ports.contains(source) {
            if let Some(repeats) = self.repeats.as_mut().filter(|_| is_udp) {
                repeats.answered(payload.destination, data);
            }
            return Err(Reason::Response);
        }
        let inner = if is_udp { in_datagram(destination, data, missing) } else { None };
        let Inner { tunnel, at, inside } = inner.unwrap_or(Err(Reason::OtherPort))?;
        Ok(Carried::Packet(Inner { tunnel, at: UDP_HEADER + at, inside }))
    }

    /// Takes a query over UDP, unless it was captured before.
    #[inline]
    fn take(&mut self, ends: &Ends, ip_id: u32, message: &[u8]) -> Result<(), Reason> {
        let Ends { at_ns, client, server } = *ends;
        if let Some(duplicates) = &mut self.duplicates
            && duplicates.is_duplicate(at_ns, (client, server), ip_id, message)
        {
            return Err(Reason::Duplicate);
        }
        if let Some(repeats) = &mut self.repeats {
            repeats.asked(at_ns, client.ip(), message);
        }
        Ok(())
    }
}

/// The queries of a payload that begins at `start`.
#[inline]
fn queries(datagram: Datagram, start: usize) -> Part {
    let rest = start + datagram.rest.start..start + datagram.rest.end;
    Part::Queries(Datagram { rest, ..datagram })
}

fn error_of(fault: Fault, packets: u64, offset: u64) -> CaptureError {
    match fault {
        Fault::Cut(expected) => CaptureError::Cut { packets, offset, expected },
        Fault::Damaged(what) => CaptureError::Damaged { packets, offset, what },
        Fault::ContentType(found) => CaptureError::ContentType { found },
        Fault::Read(source) => read_error(source, packets),
    }
}

fn read_error(source: io::Error, packets: u64) -> CaptureError {
    match source.get_ref().and_then(|inner| inner.downcast_ref::<Corrupt>()) {
        Some(Corrupt { name, reason }) => {
            CaptureError::Compressed { packets, compression: name, reason: reason.clone() }
        }
        None => CaptureError::Read { packets, source },
    }
}
