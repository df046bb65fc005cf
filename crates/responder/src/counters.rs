//! What a server did, counted.

use dnslab_wire::Transport;

/// Counts of a whole server, read when it has stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages over UDP.
    pub udp: Messages,
    /// Messages over TCP.
    pub tcp: Messages,
    /// Messages over DNS over TLS.
    pub dot: Messages,
    /// Messages over DNS over HTTPS with HTTP/2.
    pub doh2: Messages,
    /// Messages over DNS over QUIC.
    pub doq: Messages,
    /// Messages over DNS over HTTPS with HTTP/3.
    pub doh3: Messages,
    /// Life of the TCP and TLS connections.
    pub connections: Connections,
    /// How much later than programmed delayed answers were handed to the kernel.
    pub lateness: Lateness,
    /// Datagrams that the kernel dropped because a receive buffer was full, as far as it tells.
    pub receive_drops: u64,
}

/// Messages of one transport. Once the server has stopped, `received` is the sum of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// Messages read.
    pub received: u64,
    /// Answers handed to the kernel, or to the connection's write buffer.
    pub answered: u64,
    /// Answers dropped because the program says so.
    pub lost_by_program: u64,
    /// Messages that get no answer: shorter than a header, or responses themselves.
    pub ignored: u64,
    /// Answers that the kernel refused, or whose connection was gone, or that were still being held
    /// back when the server stopped.
    pub unsent: u64,
}

/// Life of the connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Accepted, both kinds.
    pub accepted: u64,
    /// Times at which accepting paused: too many connections, or the kernel had no descriptor or
    /// memory left.
    pub accept_pauses: u64,
    /// Closed for idleness, or for not reading their answers.
    pub timed_out: u64,
    /// Full TLS handshakes.
    pub full_handshakes: u64,
    /// TLS handshakes resumed from a ticket.
    pub resumed_handshakes: u64,
    /// Connections whose client sent queries before the handshake ended, and they were taken.
    pub early_data: u64,
    /// TLS handshakes that failed.
    pub failed_handshakes: u64,
}

/// Distance between programmed and real departure of delayed answers, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Delayed answers.
    pub answers: u64,
    /// Sum over them.
    pub sum_ns: u64,
    /// The worst.
    pub longest_ns: u64,
}

impl Counters {
    /// The messages of one transport.
    #[must_use]
    pub fn messages(&self, transport: Transport) -> &Messages {
        match transport {
            Transport::Udp => &self.udp,
            Transport::Tcp => &self.tcp,
            Transport::Dot => &self.dot,
            Transport::Doh2 => &self.doh2,
            Transport::Doq => &self.doq,
            Transport::Doh3 => &self.doh3,
        }
    }

    /// The messages of one transport, to be counted on.
    pub(crate) fn messages_mut(&mut self, transport: Transport) -> &mut Messages {
        match transport {
            Transport::Udp => &mut self.udp,
            Transport::Tcp => &mut self.tcp,
            Transport::Dot => &mut self.dot,
            Transport::Doh2 => &mut self.doh2,
            Transport::Doq => &mut self.doq,
            Transport::Doh3 => &mut self.doh3,
        }
    }

    /// True once any message has come.
    pub(crate) fn has_received(&self) -> bool {
        Transport::ALL.into_iter().any(|transport| self.messages(transport).received > 0)
    }

    /// Adds the counts of another worker.
    pub fn merge(&mut self, other: &Self) {
        for transport in Transport::ALL {
            self.messages_mut(transport).merge(other.messages(transport));
        }
        let (own, more) = (&mut self.connections, &other.connections);
        own.accepted += more.accepted;
        own.accept_pauses += more.accept_pauses;
        own.timed_out += more.timed_out;
        own.full_handshakes += more.full_handshakes;
        own.resumed_handshakes += more.resumed_handshakes;
        own.early_data += more.early_data;
        own.failed_handshakes += more.failed_handshakes;
        self.lateness.merge(&other.lateness);
        self.receive_drops += other.receive_drops;
    }
}

impl Messages {
    /// Adds the counts of another worker.
    fn merge(&mut self, other: &Self) {
        self.received += other.received;
        self.answered += other.answered;
        self.lost_by_program += other.lost_by_program;
        self.ignored += other.ignored;
        self.unsent += other.unsent;
    }
}

impl Lateness {
    /// Takes note of one delayed answer.
    pub(crate) fn record(&mut self, late_ns: u64) {
        self.answers += 1;
        self.sum_ns += late_ns;
        self.longest_ns = self.longest_ns.max(late_ns);
    }

    /// Mean lateness in nanoseconds; `None` without delayed answers.
    #[must_use]
    pub fn mean_ns(&self) -> Option<u64> {
        self.sum_ns.checked_div(self.answers)
    }

    /// Adds the figures of another worker.
    fn merge(&mut self, other: &Self) {
        self.answers += other.answers;
        self.sum_ns += other.sum_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}
