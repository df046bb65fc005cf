//! Why something that was read is no query.

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
        /// It is in more tunnels within each other than anybody has.
        NestedTunnels = "nested-tunnels",
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
        /// A packet that was captured twice.
        Duplicate = "duplicate",
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
