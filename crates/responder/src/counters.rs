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
    /// Life of the connections.
    pub connections: Connections,
    /// How much later than programmed answers were handed to the kernel.
    pub lateness: Lateness,
    /// Datagrams that the kernel dropped because a receive buffer was full, as far as it tells.
    pub receive_drops: u64,
}

/// Messages of one transport. Once the server has stopped, `received` is the sum of `answered`,
/// `lost_by_program`, `ignored` and `unsent`.
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
    /// Answers that the kernel refused, whose connection was gone, or that were still held back when the
    /// server stopped.
    pub unsent: u64,
    /// Steps of the loop of [`crate::Program::busy`], over all answers.
    pub busy_steps: u64,
}

/// Life of the TCP, TLS and QUIC connections: `accepted` is the sum of `open`, `closed_by_quota`,
/// `closed_by_client`, `timed_out`, `broken` and `failed_handshakes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Accepted.
    pub accepted: u64,
    /// Open now, or when the server was stopped.
    pub open: u64,
    /// Closed, by either side, after their quota of queries was used up.
    pub closed_by_quota: u64,
    /// Closed by their clients.
    pub closed_by_client: u64,
    /// Cut: the client was gone without a word, did not speak the protocol, or held too much memory
    /// ([`crate::Config::memory_per_thread`]).
    pub broken: u64,
    /// Queries of each connection, open ones included.
    pub queries: QueriesPerConnection,
    /// How often accepting paused: too many connections, or no descriptor or memory left.
    pub accept_pauses: u64,
    /// Closed for idleness, or for not reading their answers.
    pub timed_out: u64,
    /// Full TLS handshakes.
    pub full_handshakes: u64,
    /// TLS handshakes resumed from a ticket.
    pub resumed_handshakes: u64,
    /// Connections whose queries came before the handshake ended, and were taken.
    pub early_data: u64,
    /// TLS handshakes that failed.
    pub failed_handshakes: u64,
}

/// How a connection ended. None of these is an error of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Closed,
    /// The client is gone, does not speak DNS, or holds too much memory.
    Broken,
    /// The TLS handshake failed.
    Handshake,
    Quota,
    Idle,
}

/// How many queries connections carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueriesPerConnection {
    /// Connections.
    pub connections: u64,
    /// Queries on all of them.
    pub sum: u64,
    /// The fewest on one; 0 without connections.
    pub least: u64,
    /// The most on one.
    pub most: u64,
    /// Connections by number of queries, in powers of two: 0, 1, 2 or 3, 4 to 7, and so on; the last class
    /// has all with more.
    pub powers: [u64; POWERS],
}

/// Classes of [`QueriesPerConnection`]: the last begins at a million queries.
const POWERS: usize = 22;

/// How much later than programmed delayed answers were handed to the kernel, nanoseconds.
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
        own.open += more.open;
        own.closed_by_quota += more.closed_by_quota;
        own.closed_by_client += more.closed_by_client;
        own.broken += more.broken;
        own.queries.merge(&more.queries);
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
    fn merge(&mut self, other: &Self) {
        self.received += other.received;
        self.answered += other.answered;
        self.lost_by_program += other.lost_by_program;
        self.ignored += other.ignored;
        self.unsent += other.unsent;
        self.busy_steps += other.busy_steps;
    }
}

impl Connections {
    pub(crate) fn end(&mut self, how: Ended, queries: u64) {
        *match how {
            Ended::Closed => &mut self.closed_by_client,
            Ended::Broken => &mut self.broken,
            Ended::Handshake => &mut self.failed_handshakes,
            Ended::Quota => &mut self.closed_by_quota,
            Ended::Idle => &mut self.timed_out,
        } += 1;
        self.queries.record(queries);
    }
}

impl QueriesPerConnection {
    pub(crate) fn record(&mut self, queries: u64) {
        self.least = if self.connections == 0 { queries } else { self.least.min(queries) };
        self.most = self.most.max(queries);
        self.connections += 1;
        self.sum += queries;
        // The bits of the number: 0 for 0, 1 for 1, 2 for 2 and 3.
        let bits = (u64::BITS - queries.leading_zeros()) as usize;
        self.powers[bits.min(POWERS - 1)] += 1;
    }

    fn merge(&mut self, other: &Self) {
        if other.connections == 0 {
            return;
        }
        self.least = if self.connections == 0 { other.least } else { self.least.min(other.least) };
        self.most = self.most.max(other.most);
        self.connections += other.connections;
        self.sum += other.sum;
        for (own, more) in self.powers.iter_mut().zip(other.powers) {
            *own += more;
        }
    }
}

impl Lateness {
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

    fn merge(&mut self, other: &Self) {
        self.answers += other.answers;
        self.sum_ns += other.sum_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_counted_by_connection_and_power_of_two() {
        let tally = |numbers: &[u64]| {
            let mut tally = QueriesPerConnection::default();
            numbers.iter().for_each(|queries| tally.record(*queries));
            tally
        };
        let all = tally(&[3, 1, 2, 100, 1 << 30]);
        let seen = (all.connections, all.sum, all.least, all.most);
        assert_eq!(seen, (5, 106 + (1 << 30), 1, 1 << 30));
        let mut powers = [0; POWERS];
        for (class, count) in [(1, 1), (2, 2), (7, 1), (POWERS - 1, 1)] {
            powers[class] = count;
        }
        assert_eq!(all.powers, powers);
        let parts: [&[u64]; 3] = [&[3, 1], &[], &[2, 100, 1 << 30]];
        let mut merged = QueriesPerConnection::default();
        parts.into_iter().for_each(|part| merged.merge(&tally(part)));
        assert_eq!(merged, all);
        assert_eq!(tally(&[0, 5]).least, 0);
    }
}
