//! What the network stack of a host dropped and sent again.

use serde::{Deserialize, Serialize};

/// Cumulative counters of a network namespace since it was made, by every process in it.
///
/// The kernel gives them as text in `/proc/net/snmp`, `/proc/net/netstat` and `/proc/net/snmp6`.
/// Those are links to `/proc/self/net`, so they are the files of the network namespace of whoever
/// reads them (of its main thread: a thread in a namespace of its own reads
/// `/proc/thread-self/net`). Reading is left to the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounters {
    /// `Udp: RcvbufErrors`, over IPv6 too once [`NetworkCounters::with_ipv6`] has seen it.
    udp_receive_buffer: u64,
    /// `Udp: SndbufErrors`.
    udp_send_buffer: u64,
    /// `Udp: NoPorts`.
    udp_no_port: u64,
    /// `TcpExt: ListenOverflows`.
    tcp_listen_overflows: u64,
    /// `Tcp: RetransSegs`.
    tcp_retransmitted: u64,
}

/// What the network stack of a host dropped and sent again during a load, by whatever process: the
/// generator, a server on the same host, and any other.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct NetworkDrops {
    /// Datagrams received and dropped because the buffer of their socket was full.
    pub udp_receive_buffer: u64,
    /// Datagrams that were not sent because there was no buffer for them.
    pub udp_send_buffer: u64,
    /// Datagrams received for a port that no socket had.
    pub udp_no_port: u64,
    /// TCP connections refused because the queue of a listening socket was full.
    pub tcp_listen_overflows: u64,
    /// TCP segments sent again.
    pub tcp_retransmitted: u64,
}

impl NetworkDrops {
    /// Adds the counts of another load.
    pub fn merge(&mut self, other: &Self) {
        self.udp_receive_buffer += other.udp_receive_buffer;
        self.udp_send_buffer += other.udp_send_buffer;
        self.udp_no_port += other.udp_no_port;
        self.tcp_listen_overflows += other.tcp_listen_overflows;
        self.tcp_retransmitted += other.tcp_retransmitted;
    }
}

/// Why the kernel's counters could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// A counter is not there.
    #[error("{file} has no counter `{counter}`: is this the /proc of a Linux kernel since 2.6?")]
    Missing {
        /// The file.
        file: &'static str,
        /// The counter, with the protocol before it.
        counter: String,
    },
    /// A counter is no number.
    #[error("{file}: `{counter}` is `{value}`, which is no whole number from 0 on")]
    NoNumber {
        /// The file.
        file: &'static str,
        /// The counter, with the protocol before it.
        counter: String,
        /// What stands in its place.
        value: String,
    },
}

impl NetworkCounters {
    /// Reads the texts of `/proc/net/snmp` (RFC 4113 and RFC 4022 name its counters) and of
    /// `/proc/net/netstat`. UDP over IPv6 has counters of its own: see
    /// [`NetworkCounters::with_ipv6`]; those of TCP are of both.
    ///
    /// # Errors
    /// When a counter is missing or is no number.
    pub fn parse(snmp: &str, netstat: &str) -> Result<Self, NetworkError> {
        let snmp = Table { file: "/proc/net/snmp", text: snmp };
        let netstat = Table { file: "/proc/net/netstat", text: netstat };
        Ok(Self {
            udp_receive_buffer: snmp.counter("Udp", "RcvbufErrors")?,
            udp_send_buffer: snmp.counter("Udp", "SndbufErrors")?,
            udp_no_port: snmp.counter("Udp", "NoPorts")?,
            tcp_listen_overflows: netstat.counter("TcpExt", "ListenOverflows")?,
            tcp_retransmitted: snmp.counter("Tcp", "RetransSegs")?,
        })
    }

    /// Adds the counters of UDP over IPv6 from the text of `/proc/net/snmp6`. The file is not there
    /// when the kernel has no IPv6.
    ///
    /// # Errors
    /// When a counter is missing or is no number.
    pub fn with_ipv6(self, snmp6: &str) -> Result<Self, NetworkError> {
        Ok(Self {
            udp_receive_buffer: self.udp_receive_buffer + ipv6_counter(snmp6, "Udp6RcvbufErrors")?,
            udp_send_buffer: self.udp_send_buffer + ipv6_counter(snmp6, "Udp6SndbufErrors")?,
            udp_no_port: self.udp_no_port + ipv6_counter(snmp6, "Udp6NoPorts")?,
            ..self
        })
    }

    /// What was counted since `earlier`, in the same network namespace; 0 where a counter is lower
    /// than before.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> NetworkDrops {
        let since = |counter: fn(&Self) -> u64| counter(self).saturating_sub(counter(earlier));
        NetworkDrops {
            udp_receive_buffer: since(|at| at.udp_receive_buffer),
            udp_send_buffer: since(|at| at.udp_send_buffer),
            udp_no_port: since(|at| at.udp_no_port),
            tcp_listen_overflows: since(|at| at.tcp_listen_overflows),
            tcp_retransmitted: since(|at| at.tcp_retransmitted),
        }
    }
}

fn ipv6_counter(snmp6: &str, name: &str) -> Result<u64, NetworkError> {
    let file = "/proc/net/snmp6";
    let mut lines = snmp6.lines().map(str::split_ascii_whitespace);
    let value = lines.find_map(|mut words| (words.next() == Some(name)).then(|| words.next()));
    let missing = || NetworkError::Missing { file, counter: name.to_owned() };
    number(file, name, value.flatten().ok_or_else(missing)?)
}

/// A file in which each protocol has two lines that begin with its name and a colon: the names of
/// its counters, then their values in the same order. Which counters there are depends on the
/// kernel (`net/ipv4/proc.c`), so they are found by name.
struct Table<'a> {
    /// Its path, for errors.
    file: &'static str,
    text: &'a str,
}

impl Table<'_> {
    fn counter(&self, protocol: &str, name: &str) -> Result<u64, NetworkError> {
        let counter = || format!("{protocol}: {name}");
        let missing = || NetworkError::Missing { file: self.file, counter: counter() };
        let mut lines = self.text.lines().filter_map(|line| {
            let (heading, rest) = line.split_once(':')?;
            (heading == protocol).then_some(rest.split_ascii_whitespace())
        });
        let place = lines.next().and_then(|mut names| names.position(|column| column == name));
        let value = lines.next().zip(place).and_then(|(mut values, place)| values.nth(place));
        number(self.file, &counter(), value.ok_or_else(missing)?)
    }
}

/// The value of a counter from its text.
fn number(file: &'static str, counter: &str, value: &str) -> Result<u64, NetworkError> {
    value.parse().map_err(|_| NetworkError::NoNumber {
        file,
        counter: counter.to_owned(),
        value: value.to_owned(),
    })
}

#[cfg(test)]
mod tests;
