//! The headers of UDP (RFC 768) and TCP (RFC 9293).

use crate::Reason;

/// Octets of a UDP header.
pub(crate) const UDP_HEADER: usize = 8;

/// Octets of a TCP header without options.
const TCP_HEADER: usize = 20;

/// The ports, source first. UDP and TCP both begin with them.
#[inline]
pub(crate) fn ports(payload: &[u8], missing: Reason) -> Result<(u16, u16), Reason> {
    let octets = payload.first_chunk::<4>().ok_or(missing)?;
    let port = |at: usize| u16::from_be_bytes([octets[at], octets[at + 1]]);
    Ok((port(0), port(2)))
}

/// Where the data of a UDP datagram ends in `payload`. `missing` is the reason if the payload is not all there.
#[inline]
pub(crate) fn udp_end(payload: &[u8], missing: Option<Reason>) -> Result<usize, Reason> {
    let reason = missing.unwrap_or(Reason::MalformedPacket);
    let header: &[u8; UDP_HEADER] = payload.first_chunk().ok_or(reason)?;
    match usize::from(u16::from_be_bytes([header[4], header[5]])) {
        length if length < UDP_HEADER => Err(Reason::MalformedPacket),
        length if length > payload.len() => Err(reason),
        length => Ok(length),
    }
}

/// A TCP segment that goes to a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) sequence: u32,
    pub(crate) is_syn: bool,
    pub(crate) is_fin: bool,
    pub(crate) is_reset: bool,
    pub(crate) data: &'a [u8],
}

impl<'a> Segment<'a> {
    pub(crate) fn read(payload: &'a [u8], missing: Option<Reason>) -> Result<Self, Reason> {
        let reason = missing.unwrap_or(Reason::MalformedPacket);
        let header: &[u8; TCP_HEADER] = payload.first_chunk().ok_or(reason)?;
        let data_start = usize::from(header[12] >> 4) * 4;
        if data_start < TCP_HEADER {
            return Err(Reason::MalformedPacket);
        }
        let data = payload.get(data_start..).ok_or(reason)?;
        match missing {
            // The octets are a gap in the stream.
            Some(reason) => Err(reason),
            None => Ok(Self {
                sequence: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
                is_fin: header[13] & 0x01 != 0,
                is_syn: header[13] & 0x02 != 0,
                is_reset: header[13] & 0x04 != 0,
                data,
            }),
        }
    }
}
