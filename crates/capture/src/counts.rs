//! What became of everything that was read.

dnslab_wire::words! {
    /// Why something that was read is no query.
    pub enum Reason as "reason to skip a packet" {
        /// It came from a DNS port, or its QR bit is set: it goes to a client.
        Response = "response",
        /// Neither of its ports is one of those that are read.
        OtherPort = "other-port",
        /// It went to another server than those that are looked for.
        OtherServer = "other-server",
        /// It is IP, but neither UDP nor TCP.
        OtherProtocol = "other-protocol",
        /// It is no IP, as ARP.
        NotIp = "not-ip",
        /// The link type of its interface is none that is read.
        UnknownLinkType = "unknown-link-type",
        /// The capture holds only its first octets (the snap length), and too few of them.
        SnapLength = "snap-length",
        /// A header of IP, UDP or TCP is broken, or its lengths contradict each other.
        MalformedPacket = "malformed-packet",
        /// It is shorter than a DNS header, or its question is broken.
        MalformedMessage = "malformed-message",
        /// Its opcode is not QUERY (RFC 1035, section 4.1.1).
        OtherOpcode = "other-opcode",
        /// It has no question, or more than one.
        QuestionCount = "question-count",
        /// A fragment of a datagram that never became whole, or whose fragments contradict each other.
        Fragment = "fragment",
        /// A segment of a TCP connection whose beginning was not captured.
        StreamStart = "stream-start",
        /// A segment of a TCP connection after octets that were never captured.
        StreamGap = "stream-gap",
        /// A message over TCP whose end is missing.
        StreamCut = "stream-cut",
        /// A query over TCP that repeats one over UDP, whose answer was truncated.
        RepeatedOverTcp = "repeated-over-tcp",
        /// A dnstap frame of a kind that is not asked for.
        DnstapKind = "dnstap-kind",
        /// A dnstap frame over DNSCrypt, or over no transport that is known.
        DnstapTransport = "dnstap-transport",
        /// A dnstap frame without the message or the client's address.
        DnstapIncomplete = "dnstap-incomplete",
        /// A frame that is no dnstap.
        DnstapMalformed = "dnstap-malformed",
    }
}

/// What became of everything that was read so far.
///
/// A packet is a packet of a capture or a data frame of dnstap. It is a query, or it is skipped for one
/// [`Reason`], or it carries a part of something that is counted by itself: it is a TCP segment, or a fragment.
/// Each whole message of a TCP stream is then a query or skipped, too. So at any time
/// `packets + stream_messages = queries + carriers + skipped`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets read.
    pub packets: u64,
    /// Messages in TCP streams, with those whose end is missing.
    pub stream_messages: u64,
    /// Queries given.
    pub queries: u64,
    /// TCP segments, also without data, that went to a server, and fragments except the last one of each datagram.
    pub carriers: u64,
    skipped: [u64; Reason::ALL.len()],
    /// TCP connections whose beginning was captured.
    pub connections: u64,
    /// TCP connections whose beginning was not captured.
    pub connections_without_start: u64,
    /// How often octets of a TCP stream were never captured.
    pub gaps: u64,
    /// How often a TCP stream was read on after a gap or from its middle, where a segment was whole messages.
    pub resumed: u64,
}

impl Counts {
    /// How many were skipped for this reason.
    #[must_use]
    pub fn skipped(&self, reason: Reason) -> u64 {
        self.skipped[reason as usize]
    }

    /// Reasons that occurred and how often, in the order of [`Reason::ALL`].
    pub fn reasons(&self) -> impl Iterator<Item = (Reason, u64)> {
        let all = Reason::ALL.into_iter().zip(self.skipped);
        all.filter(|(_, count)| *count > 0)
    }

    /// How many were skipped.
    #[must_use]
    pub fn all_skipped(&self) -> u64 {
        self.skipped.iter().sum()
    }

    /// True if nothing was lost or counted twice, which always holds.
    #[must_use]
    pub fn add_up(&self) -> bool {
        self.packets + self.stream_messages == self.queries + self.carriers + self.all_skipped()
    }

    #[inline]
    pub(crate) fn skip(&mut self, reason: Reason) {
        self.skipped[reason as usize] += 1;
    }

    /// Packets that were taken as carriers, but nothing came of what they carried.
    pub(crate) fn carried_nothing(&mut self, packets: u64, reason: Reason) {
        self.carriers -= packets;
        self.skipped[reason as usize] += packets;
    }

    /// A message of a stream that is no query.
    pub(crate) fn skip_message(&mut self, reason: Reason) {
        self.stream_messages += 1;
        self.skip(reason);
    }
}
