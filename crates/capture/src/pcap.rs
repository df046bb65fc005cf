//! The classic format of tcpdump (pcap-savefile(5)).

use std::io::Read;

use crate::error::Fault;
use crate::link::LinkType;
use crate::order::Order;
use crate::packet::{MAX_PACKET, Packet, end_or_cut, too_long};
use crate::window::Window;

/// Octets of the header of the file.
const FILE_HEADER: usize = 24;

/// Octets of the header of a packet.
const PACKET_HEADER: usize = 16;

/// The magic number of files with nanoseconds; with microseconds it is `0xa1b2c3d4`.
const NANOSECONDS: u32 = 0xa1b2_3c4d;

/// A pcap file.
#[derive(Debug)]
pub(crate) struct Pcap {
    order: Order,
    /// Nanoseconds of a unit of the fraction of a second.
    unit_ns: u64,
    link_type: LinkType,
}

impl Pcap {
    /// Reads the header; `None` if the magic number is none.
    pub(crate) fn open<R: Read>(window: &mut Window<R>) -> Result<Option<Self>, Fault> {
        if !window.fill(FILE_HEADER)? {
            return Err(Fault::Cut("the header of a pcap file"));
        }
        let header = window.data();
        let order = if header[0] == 0xa1 { Order::Big } else { Order::Little };
        let unit_ns = match order.u32(header, 0) {
            0xa1b2_c3d4 => 1_000,
            NANOSECONDS => 1,
            _ => return Ok(None),
        };
        // The upper half says whether a checksum of the link follows each packet, and how long it is. The lengths of
        // IP leave it out.
        let link_type = LinkType::from_number(order.u32(header, 20) & 0xffff, order);
        window.consume(FILE_HEADER);
        Ok(Some(Self { order, unit_ns, link_type }))
    }

    #[inline]
    pub(crate) fn next<R: Read>(
        &mut self,
        window: &mut Window<R>,
    ) -> Result<Option<Packet>, Fault> {
        if !window.fill(PACKET_HEADER)? {
            return end_or_cut(window, "the header of a packet").map(|()| None);
        }
        let header = &window.data()[..PACKET_HEADER];
        let [seconds, fraction, captured, original] =
            [0, 4, 8, 12].map(|at| self.order.u32(header, at));
        let length = captured as usize;
        if length > MAX_PACKET {
            return Err(Fault::Damaged(too_long(length)));
        }
        if !window.fill(PACKET_HEADER + length)? {
            return Err(Fault::Cut("a whole packet"));
        }
        let from = window.start() + PACKET_HEADER;
        window.consume(PACKET_HEADER + length);
        Ok(Some(Packet {
            at_ns: u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.unit_ns,
            link_type: self.link_type,
            octets: from..from + length,
            is_snapped: captured < original,
        }))
    }
}
