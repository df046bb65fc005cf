//! Captures that tests and benchmarks need.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

use dnslab_wire::Transport;
use prost::Message as _;

use crate::Captured;
use crate::dnstap::{CLIENT_QUERY, Dnstap, MESSAGE, Message};
use crate::frame_streams::{CONTENT_TYPE, START, STOP, push_control};

/// Octets that are collected before they are written.
const CAPACITY: usize = 128 * 1024;

/// The link type of Ethernet.
const ETHERNET: u32 = 1;

/// The length of a packet that is not cut, octets: what tcpdump writes.
const SNAP_LENGTH: u32 = 262_144;

/// Octets before a message: Ethernet, IPv6 and UDP.
const MAX_HEADERS: usize = 14 + 40 + 8;

/// Writes queries into a pcap or dnstap file.
///
/// pcap has nanoseconds, Ethernet with made-up addresses, and one UDP packet for each query, however long it is.
/// dnstap is a frame stream with a CLIENT_QUERY for each query.
pub struct CaptureWriter<W: Write> {
    writer: W,
    form: Form,
    buffer: Vec<u8>,
    /// The query, with its memory.
    frame: Dnstap,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Pcap,
    Dnstap,
}

/// A query could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The client's address is of another family than the server's.
    #[error(
        "no packet goes from {client} to {server}: they are of different families of addresses"
    )]
    Families {
        /// The client.
        client: SocketAddr,
        /// The server.
        server: SocketAddr,
    },
    /// pcap is written with UDP alone.
    #[error("a query over {transport} cannot be written into pcap: write dnstap, or UDP")]
    Transport {
        /// Its transport.
        transport: Transport,
    },
    /// The message does not fit into a packet.
    #[error("a message of {length} octets does not fit into a packet, which carries {most}")]
    TooLong {
        /// Its length.
        length: usize,
        /// What fits.
        most: usize,
    },
    /// The time does not fit into pcap, which ends in 2106.
    #[error("{at_ns} ns since 1970 is after the end of pcap's time in 2106")]
    Time {
        /// The time.
        at_ns: u64,
    },
    /// Writing failed.
    #[error("cannot write the capture: {0}")]
    Write(#[from] io::Error),
}

impl<W: Write> CaptureWriter<W> {
    /// Begins a pcap file.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn pcap(writer: W) -> io::Result<Self> {
        let mut writer = Self::new(writer, Form::Pcap);
        let buffer = &mut writer.buffer;
        buffer.extend(0xa1b2_3c4d_u32.to_le_bytes());
        buffer.extend([2, 0, 4, 0]);
        buffer.extend([0; 8]);
        buffer.extend(SNAP_LENGTH.to_le_bytes());
        buffer.extend(ETHERNET.to_le_bytes());
        writer.flush()?;
        Ok(writer)
    }

    /// Begins a dnstap file.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn dnstap(writer: W) -> io::Result<Self> {
        let mut writer = Self::new(writer, Form::Dnstap);
        push_control(&mut writer.buffer, START, Some(CONTENT_TYPE));
        writer.flush()?;
        Ok(writer)
    }

    fn new(writer: W, form: Form) -> Self {
        let mut frame = Dnstap { kind: MESSAGE, ..Dnstap::default() };
        frame.message.kind = CLIENT_QUERY;
        Self { writer, form, buffer: Vec::with_capacity(CAPACITY), frame }
    }

    /// Writes a query. Nothing of it is written if it is refused.
    ///
    /// # Errors
    /// When the form has no room for the query, or the writer fails.
    pub fn write(&mut self, query: &Captured<'_>) -> Result<(), WriteError> {
        match self.form {
            Form::Pcap => self.push_packet(query)?,
            Form::Dnstap => self.push_frame(query)?,
        }
        if self.buffer.len() >= CAPACITY - MAX_HEADERS {
            self.flush()?;
        }
        Ok(())
    }

    /// Ends the file, and gives the writer back.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn finish(mut self) -> io::Result<W> {
        if self.form == Form::Dnstap {
            push_control(&mut self.buffer, STOP, None);
        }
        self.flush()?;
        self.writer.flush()?;
        Ok(self.writer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn push_packet(&mut self, query: &Captured<'_>) -> Result<(), WriteError> {
        let Captured { at_ns, client, server, transport, message } = *query;
        if transport != Transport::Udp {
            return Err(WriteError::Transport { transport });
        }
        let ip = match (client.ip(), server.ip()) {
            (IpAddr::V4(_), IpAddr::V4(_)) => 20,
            (IpAddr::V6(_), IpAddr::V6(_)) => 40,
            _ => return Err(WriteError::Families { client, server }),
        };
        // The length of IPv4 counts its header too.
        let most = 65_535 - 8 - if ip == 20 { 20 } else { 0 };
        if message.len() > most {
            return Err(WriteError::TooLong { length: message.len(), most });
        }
        let Ok(seconds) = u32::try_from(at_ns / 1_000_000_000) else {
            return Err(WriteError::Time { at_ns });
        };
        let fraction = (at_ns % 1_000_000_000) as u32;
        let datagram = 8 + message.len();
        let length = (14 + ip + datagram) as u32;
        let buffer = &mut self.buffer;
        for number in [seconds, fraction, length, length] {
            buffer.extend_from_slice(&number.to_le_bytes());
        }
        // Addresses that are locally administered: to 2, from 1.
        buffer.extend_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
        let mut pseudo = Checksum::default();
        match (client.ip(), server.ip()) {
            (IpAddr::V4(client), IpAddr::V4(server)) => {
                buffer.extend_from_slice(&[8, 0]);
                let [high, low] = ((ip + datagram) as u16).to_be_bytes();
                // Don't fragment; TTL 64; UDP.
                let mut header =
                    [0x45, 0, high, low, 0, 0, 0x40, 0, 64, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
                header[12..16].copy_from_slice(&client.octets());
                header[16..].copy_from_slice(&server.octets());
                let mut checksum = Checksum::default();
                checksum.add(&header);
                header[10..12].copy_from_slice(&checksum.finish().to_be_bytes());
                buffer.extend_from_slice(&header);
                pseudo.add(&header[12..]);
            }
            (client, server) => {
                buffer.extend_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0]);
                buffer.extend_from_slice(&(datagram as u16).to_be_bytes());
                buffer.extend_from_slice(&[17, 64]);
                let addresses = buffer.len();
                for address in [client, server] {
                    if let IpAddr::V6(address) = address {
                        buffer.extend_from_slice(&address.octets());
                    }
                }
                pseudo.add(&buffer[addresses..]);
            }
        }
        let udp = buffer.len();
        for number in [client.port(), server.port(), datagram as u16, 0] {
            buffer.extend_from_slice(&number.to_be_bytes());
        }
        buffer.extend_from_slice(message);
        pseudo.add(&[0, 17]);
        pseudo.add(&(datagram as u16).to_be_bytes());
        pseudo.add(&buffer[udp..]);
        // 0 would say that there is none (RFC 768).
        let checksum = match pseudo.finish() {
            0 => 0xffff,
            checksum => checksum,
        };
        buffer[udp + 6..udp + 8].copy_from_slice(&checksum.to_be_bytes());
        Ok(())
    }

    fn push_frame(&mut self, query: &Captured<'_>) -> Result<(), WriteError> {
        let Captured { at_ns, client, server, transport, message: octets } = *query;
        let most = usize::from(u16::MAX);
        if octets.len() > most {
            return Err(WriteError::TooLong { length: octets.len(), most });
        }
        let message = &mut self.frame.message;
        message.socket_family = if client.is_ipv4() { 1 } else { 2 };
        (message.socket_protocol, message.http_protocol) = Message::protocols(transport);
        put_address(&mut message.query_address, client.ip());
        put_address(&mut message.response_address, server.ip());
        (message.query_port, message.response_port) = (client.port().into(), server.port().into());
        message.query_time_sec = at_ns / 1_000_000_000;
        message.query_time_nsec = (at_ns % 1_000_000_000) as u32;
        message.query_message.clear();
        message.query_message.extend_from_slice(octets);
        let length = self.frame.encoded_len() as u32;
        self.buffer.extend_from_slice(&length.to_be_bytes());
        self.frame.encode(&mut self.buffer).expect("a vector grows");
        Ok(())
    }
}

/// Writes frames into a frame stream as they are: a dnstap file.
pub struct FrameWriter<W: Write> {
    writer: W,
    buffer: Vec<u8>,
    /// Octets that were given to the writer.
    written: u64,
}

impl<W: Write> FrameWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn new(writer: W) -> io::Result<Self> {
        let mut own = Self { writer, buffer: Vec::with_capacity(CAPACITY), written: 0 };
        push_control(&mut own.buffer, START, Some(CONTENT_TYPE));
        own.flush()?;
        Ok(own)
    }

    /// Writes a frame, or keeps it until there are more.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(&(frame.len() as u32).to_be_bytes());
        self.buffer.extend_from_slice(frame);
        if self.buffer.len() >= CAPACITY { self.flush() } else { Ok(()) }
    }

    /// Writes what was kept.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.write_all(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        self.writer.flush()
    }

    /// Length of the file so far, octets.
    #[must_use]
    pub fn octets(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Ends the file, and gives the writer back.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn finish(mut self) -> io::Result<W> {
        push_control(&mut self.buffer, STOP, None);
        self.flush()?;
        Ok(self.writer)
    }
}

fn put_address(to: &mut Vec<u8>, address: IpAddr) {
    to.clear();
    match address {
        IpAddr::V4(address) => to.extend_from_slice(&address.octets()),
        IpAddr::V6(address) => to.extend_from_slice(&address.octets()),
    }
}

/// The checksum of IP and UDP (RFC 1071). Only the last octets that are added may be odd in number.
#[derive(Default)]
struct Checksum(u64);

impl Checksum {
    fn add(&mut self, octets: &[u8]) {
        let (pairs, rest) = octets.as_chunks::<2>();
        self.0 += pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum::<u64>();
        if let [odd] = rest {
            self.0 += u64::from(*odd) << 8;
        }
    }

    fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}
