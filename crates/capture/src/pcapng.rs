//! pcapng (draft-ietf-opsawg-pcapng): sections of blocks, each with interfaces of its own.

use std::io::Read;
use std::ops::Range;

use crate::error::Fault;
use crate::link::LinkType;
use crate::order::Order;
use crate::packet::too_long;
use crate::packet::{MAX_PACKET, Packet, end_or_cut};
use crate::window::Window;

// Block types.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

// Options of an interface.
const END_OF_OPTIONS: u16 = 0;
const RESOLUTION: u16 = 9;
const OFFSET: u16 = 14;

/// Octets of a block before its body: type and length.
const BLOCK_HEADER: usize = 8;

/// The longest block that is held in memory: a packet with its options.
const MAX_BLOCK: usize = MAX_PACKET + 128 * 1024;

/// The most interfaces of a section. An interface takes memory as long as its section lasts.
const MAX_INTERFACES: usize = 65_536;

const NS: i128 = 1_000_000_000;

/// A pcapng file.
#[derive(Debug, Default)]
pub(crate) struct Pcapng {
    /// `None` before the first section.
    order: Option<Order>,
    interfaces: Vec<Interface>,
    /// The time of the last packet that had one.
    last_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interface {
    link_type: LinkType,
    /// Octets that are kept of a packet; 0 for all.
    snap_length: u32,
    unit: Unit,
    /// Seconds added to all times.
    offset: i64,
}

/// What one tick of a clock is, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// `10^-n`, with the nanoseconds of a tick. `n` is at most 9.
    Nanoseconds(u64),
    /// `10^-n`, with the ticks of a nanosecond.
    Finer(u128),
    /// `2^-n`
    Binary(u8),
}

impl Unit {
    /// From the value of the option if_tsresol.
    fn of(resolution: u8) -> Self {
        match resolution {
            0..=9 => Self::Nanoseconds(10_u64.pow(9 - u32::from(resolution))),
            // More than 10^38 has no room, and no number of ticks makes a nanosecond then.
            10..=0x7f => {
                Self::Finer(10_u128.checked_pow(u32::from(resolution) - 9).unwrap_or(u128::MAX))
            }
            0x80.. => Self::Binary(resolution & 0x7f),
        }
    }
}

impl Interface {
    /// Nanoseconds since 1970, within what a `u64` holds.
    #[inline]
    fn at_ns(&self, ticks: u64) -> u64 {
        if let (Unit::Nanoseconds(unit), 0) = (self.unit, self.offset) {
            return ticks.saturating_mul(unit);
        }
        let ns = match self.unit {
            Unit::Nanoseconds(unit) => u128::from(ticks) * u128::from(unit),
            Unit::Finer(ticks_of_ns) => u128::from(ticks) / ticks_of_ns,
            Unit::Binary(bits) => (u128::from(ticks) * NS.unsigned_abs()) >> bits,
        };
        // Both are below 2^94.
        let ns = ns as i128 + i128::from(self.offset) * NS;
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }
}

impl Pcapng {
    pub(crate) fn next<R: Read>(
        &mut self,
        window: &mut Window<R>,
    ) -> Result<Option<Packet>, Fault> {
        loop {
            if !window.fill(BLOCK_HEADER + 4)? {
                return end_or_cut(window, "the header of a block").map(|()| None);
            }
            let (kind, length) = self.block(window.data())?;
            match kind {
                SECTION => self.interfaces.clear(),
                INTERFACE | OLD_PACKET | SIMPLE_PACKET | ENHANCED_PACKET => {
                    if length > MAX_BLOCK {
                        return Err(Fault::Damaged(format!(
                            "a block of {length} octets is announced for a packet or an interface"
                        )));
                    }
                    if !window.fill(length)? {
                        return Err(Fault::Cut("a whole block"));
                    }
                    let packet = self.body(kind, &window.data()[..length])?;
                    let start = window.start();
                    window.consume(length);
                    if let Some(mut packet) = packet {
                        packet.octets = packet.octets.start + start..packet.octets.end + start;
                        return Ok(Some(packet));
                    }
                    continue;
                }
                _ => {}
            }
            // Blocks of any length that say nothing about packets.
            if !window.skip(length as u64 - 4)? || !window.fill(4)? {
                return Err(Fault::Cut("a whole block"));
            }
            self.check_trailer(window.data(), 0, length)?;
            window.consume(4);
        }
    }

    /// Type and length of the block whose first octets are there. A section says in which order its numbers
    /// are.
    fn block(&mut self, header: &[u8]) -> Result<(u32, usize), Fault> {
        // It reads the same in both orders.
        if header[..4] == SECTION.to_be_bytes() {
            self.order = match header[8..12] {
                [0x1a, 0x2b, 0x3c, 0x4d] => Some(Order::Big),
                [0x4d, 0x3c, 0x2b, 0x1a] => Some(Order::Little),
                _ => return Err(Fault::Damaged("a section has no byte-order magic".to_owned())),
            };
        }
        let order = self.order();
        let (kind, length) = (order.u32(header, 0), order.u32(header, 4));
        let least = match kind {
            SECTION => 28,
            INTERFACE => 20,
            OLD_PACKET | ENHANCED_PACKET => 32,
            SIMPLE_PACKET => 16,
            _ => 12,
        };
        if length < least || length % 4 != 0 {
            return Err(Fault::Damaged(format!(
                "a block of type {kind:#x} has a length of {length}, which must be a multiple of 4 and at least \
                 {least}"
            )));
        }
        Ok((kind, length as usize))
    }

    fn order(&self) -> Order {
        self.order.unwrap_or(Order::Little)
    }

    /// The length of a block stands behind it again.
    fn check_trailer(&self, octets: &[u8], at: usize, length: usize) -> Result<(), Fault> {
        match self.order().u32(octets, at) as usize {
            again if again == length => Ok(()),
            again => Err(Fault::Damaged(format!(
                "the length of a block is {length} before it and {again} behind it"
            ))),
        }
    }

    /// An interface or a packet. The octets of a packet are a range of the block.
    #[inline]
    fn body(&mut self, kind: u32, block: &[u8]) -> Result<Option<Packet>, Fault> {
        let order = self.order();
        let end = block.len() - 4;
        self.check_trailer(block, end, block.len())?;
        let u32_at = |at| order.u32(block, at);
        let time = || u64::from(u32_at(12)) << 32 | u64::from(u32_at(16));
        let (number, ticks, captured, original, from) = match kind {
            INTERFACE => {
                self.add_interface(block)?;
                return Ok(None);
            }
            ENHANCED_PACKET => (u32_at(8), Some(time()), Some(u32_at(20)), u32_at(24), 28),
            // The interface has two octets, and two are packets that were lost.
            OLD_PACKET => {
                let number = order.u16(block, 8);
                (number.into(), Some(time()), Some(u32_at(20)), u32_at(24), 28)
            }
            _ => (0, None, None, u32_at(8), 12),
        };
        let Some(interface) = self.interfaces.get(number as usize) else {
            return Err(Fault::Damaged(format!(
                "a packet is from interface {number}, and its section has only {}",
                self.interfaces.len()
            )));
        };
        let captured = captured.unwrap_or_else(|| match interface.snap_length {
            0 => original,
            snap_length => original.min(snap_length),
        });
        let octets = packet_range(from, captured as usize, end)?;
        let at_ns = match ticks {
            Some(ticks) => interface.at_ns(ticks),
            None => self.last_ns,
        };
        self.last_ns = at_ns;
        let link_type = interface.link_type;
        Ok(Some(Packet { at_ns, link_type, octets, is_snapped: captured < original }))
    }

    fn add_interface(&mut self, block: &[u8]) -> Result<(), Fault> {
        if self.interfaces.len() == MAX_INTERFACES {
            return Err(Fault::Damaged(format!(
                "a section has more than {MAX_INTERFACES} interfaces"
            )));
        }
        let order = self.order();
        let mut interface = Interface {
            link_type: LinkType::from_number(order.u16(block, 8).into(), order),
            snap_length: order.u32(block, 12),
            unit: Unit::of(6),
            offset: 0,
        };
        let mut options = &block[16..block.len() - 4];
        while options.len() >= 4 {
            let (code, length) = (order.u16(options, 0), usize::from(order.u16(options, 2)));
            let Some(value) = options.get(4..4 + length) else { break };
            match (code, length) {
                (END_OF_OPTIONS, _) => break,
                (RESOLUTION, 1) => interface.unit = Unit::of(value[0]),
                (OFFSET, 8) => {
                    let (first, second) = (order.u32(value, 0).into(), order.u32(value, 4).into());
                    let (high, low): (u64, u64) = match order {
                        Order::Big => (first, second),
                        Order::Little => (second, first),
                    };
                    interface.offset = (high << 32 | low).cast_signed();
                }
                _ => {}
            }
            let Some(rest) = options.get(4 + length.next_multiple_of(4)..) else { break };
            options = rest;
        }
        self.interfaces.push(interface);
        Ok(())
    }
}

/// Where a packet is in its block, whose body ends at `end`.
fn packet_range(from: usize, length: usize, end: usize) -> Result<Range<usize>, Fault> {
    if length > MAX_PACKET {
        return Err(Fault::Damaged(too_long(length)));
    }
    if from + length > end {
        return Err(Fault::Damaged(format!(
            "a packet of {length} octets is in a block that has room for {}",
            end - from
        )));
    }
    Ok(from..from + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_clock(resolution: u8, offset: i64, ticks: u64, expected: u64) {
        let interface = Interface {
            link_type: LinkType::from_number(1, Order::Little),
            snap_length: 0,
            unit: Unit::of(resolution),
            offset,
        };
        assert_eq!(interface.at_ns(ticks), expected, "{resolution:#x} {offset} {ticks}");
    }

    #[test]
    fn clocks_of_any_resolution_are_read() {
        check_clock(6, 0, 1_700_000_000_123_456, 1_700_000_000_123_456_000);
        check_clock(9, 0, 1_700_000_000_123_456_789, 1_700_000_000_123_456_789);
        check_clock(3, 1_700_000_000, 5, 1_700_000_000_005_000_000);
        check_clock(0, -10, 25, 15_000_000_000);
        check_clock(12, 0, 1_234_567, 1_234);
        check_clock(0x7f, 0, u64::MAX, 0);
        // 2^-10 of a second.
        check_clock(0x8a, 0, 1_536, 1_500_000_000);
        check_clock(0xff, 0, u64::MAX, 0);
        check_clock(0x80, 1, 2, 3_000_000_000);
        // What has no room is at the end of time, or at its beginning.
        check_clock(0, 0, u64::MAX, u64::MAX);
        check_clock(0, i64::MAX, u64::MAX, u64::MAX);
        check_clock(9, i64::MIN, u64::MAX, 0);
    }
}
