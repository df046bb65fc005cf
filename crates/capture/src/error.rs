//! Why reading a capture ends early.

use std::io;

/// A capture cannot be read further. All queries before it were given.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// There is nothing to read.
    #[error("the capture is empty: not even the header of a file is there")]
    Empty,
    /// The octets are no capture.
    #[error("{}", unknown(first))]
    Unknown {
        /// The first octets, at most 4.
        first: Vec<u8>,
    },
    /// The capture ends before its own end: it was cut, or is being written. A caller may take it as an end.
    #[error(
        "the capture ends at octet {offset}, after {packets} packets, where {expected} was expected: it was cut, \
         or somebody is still writing it"
    )]
    Cut {
        /// Packets before it, all of which were read.
        packets: u64,
        /// Where the part that is not whole begins, in octets after decompression.
        offset: u64,
        /// What is not whole.
        expected: &'static str,
    },
    /// The octets break the rules of their format, so nobody can tell where the next packet begins.
    #[error(
        "the capture is damaged at octet {offset}, after {packets} packets: {what}; tools such as `pcapfix` may \
         mend it"
    )]
    Damaged {
        /// Packets before it, all of which were read.
        packets: u64,
        /// Where the damage was seen, in octets after decompression.
        offset: u64,
        /// What is there, and what was expected.
        what: String,
    },
    /// The compressed octets are damaged.
    #[error(
        "the compressed capture is damaged after {packets} packets ({compression}: {reason}); copy it again, or \
         save what can be saved with `{compression} -dc`"
    )]
    Compressed {
        /// Packets before it, all of which were read.
        packets: u64,
        /// The program whose format it is: `gzip` or `zstd`.
        compression: &'static str,
        /// What its decoder says.
        reason: String,
    },
    /// A frame stream does not carry dnstap.
    #[error("the frame stream carries `{found}`, not `protobuf:dnstap.Dnstap`")]
    ContentType {
        /// What it says it carries; empty if it does not say.
        found: String,
    },
    /// The reader failed.
    #[error("cannot read the capture after {packets} packets: {source}")]
    Read {
        /// Packets before it, all of which were read.
        packets: u64,
        /// Why.
        source: io::Error,
    },
}

/// What a container says about octets that it cannot read.
#[derive(Debug)]
pub(crate) enum Fault {
    Cut(&'static str),
    Damaged(String),
    ContentType(String),
    Read(io::Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

/// Beginnings of files that somebody may take for captures: their names, and what to do.
const KNOWN: [(&[u8], &str); 19] = [
    (b"BZh", "it is compressed with bzip2: decompress it first (`bzip2 -dc FILE > OTHER`)"),
    (b"\xfd7zX", "it is compressed with xz: decompress it first (`xz -dc FILE > OTHER`)"),
    (b"\x5d\0\0", "it is compressed with LZMA: decompress it first (`xz -dc FILE > OTHER`)"),
    (
        b"\x04\x22\x4d\x18",
        "it is compressed with lz4: decompress it first (`lz4 -dc FILE > OTHER`)",
    ),
    (
        b"\x02\x21\x4c\x18",
        "it is compressed with lz4: decompress it first (`lz4 -dc FILE > OTHER`)",
    ),
    (b"\x1f\x9d", "it is compressed with compress: decompress it first (`gzip -dc FILE > OTHER`)"),
    (b"PK\x03\x04", "it is a zip archive: unpack it first"),
    (b"snoo", "it is a capture of snoop: `editcap -F pcap` converts it"),
    (b"GMBU", "it is a capture of Network Monitor: `editcap -F pcap` converts it"),
    (b"\xa1\xb2\xcd\x34", "it is a modified pcap: `editcap -F pcap` converts it"),
    (b"\x34\xcd\xb2\xa1", "it is a modified pcap: `editcap -F pcap` converts it"),
    (b"\x1c\0\x01", "it is a pcap of IXIA: `editcap -F pcap` converts it"),
    (b"\xac\x01\0\x1c", "it is a pcap of IXIA: `editcap -F pcap` converts it"),
    (b"\xab\x01\0\x1c", "it is a pcap of IXIA: `editcap -F pcap` converts it"),
    (b"\x83\x65C-", "it is C-DNS: `inspector` of DNS-STATS Compactor converts it into pcap"),
    (b"\xff\xfe", "it is text in UTF-16"),
    (b"\xfe\xff", "it is text in UTF-16"),
    (b"\xef\xbb\xbf", "it is text"),
    (b"\0\0\0\0", "it begins with zeros as a frame stream, but has no START frame of dnstap"),
];

fn unknown(first: &[u8]) -> String {
    let known = KNOWN.iter().find(|(beginning, _)| first.starts_with(beginning));
    let hint = match known {
        Some((_, hint)) => (*hint).to_owned(),
        None => format!("it begins with `{}`", first.escape_ascii()),
    };
    format!(
        "this is no capture that dnslab reads: {hint}; pcap, pcapng and dnstap are read, plain or compressed with \
         gzip or zstd"
    )
}
