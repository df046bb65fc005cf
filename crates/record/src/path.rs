//! The way that packets take from one host to another, as far as the first one knows.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The way from a host to an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkPath {
    /// The name by which the host is reached; empty for that of whoever measured.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// The address that it leads to.
    pub to: String,
    /// The address that the host has on it.
    pub from: String,
    /// The device that packets leave by.
    pub device: String,
    /// Its driver, or the kind of device: `virtio_net`, `veth`; empty if that is unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The next hop (RFC 1812, section 2.2.1); empty for a neighbour.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next_hop: String,
    /// Octets of a packet at most.
    pub mtu: u32,
    /// Queues that the device receives by now.
    pub receive_queues: u32,
    /// Queues that it can have; `None` where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_queues: Option<u32>,
    /// Whether the kernel spreads over CPUs what the first queue receives (RPS); `None` where that cannot be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_steered: Option<bool>,
    /// Whether ports have a part in which queue a datagram over IPv4 is received by; `None` where the device does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spreads_ports: Option<bool>,
    /// What it carries, Mbit/s; `None` if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_mbit: Option<u32>,
    /// What the device or the kernel does for many packets at once, by the names of ethtool(8); `None` without ethtool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offloads: Option<Vec<String>>,
    /// Packets that came during the load while the queue was full (`rx_missed_errors`, `rx_fifo_errors` and
    /// `rx_over_errors` of ip(8)).
    #[serde(default)]
    pub missed: u64,
    /// Packets that were received during the load and dropped, some perhaps of protocols that nobody has (`rx_dropped`).
    #[serde(default)]
    pub dropped: u64,
    /// Packets that connection tracking dropped during the load, or could not track; `None` where nothing is tracked.
    /// (`/proc/net/stat/nf_conntrack`)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untracked: Option<u64>,
}

impl NetworkPath {
    /// The device, in a word or two: `eth0 (virtio_net)`.
    #[must_use]
    pub fn device(&self) -> String {
        match (self.device.as_str(), self.kind.as_str()) {
            ("lo", _) => "loopback".to_owned(),
            (device, "") => device.to_owned(),
            (device, kind) => format!("{device} ({kind})"),
        }
    }

    /// The device with its host: `eth0 of ns1`.
    #[must_use]
    pub fn device_there(&self) -> String {
        let host = if self.host.is_empty() { "this machine" } else { &self.host };
        format!("{} of {host}", self.device)
    }

    /// This path with what was counted since an earlier reading; `None` if it was not read then.
    #[must_use]
    pub fn since(self, earlier: &[Self]) -> Option<Self> {
        let is_same = |path: &&Self| (&path.host, &path.to) == (&self.host, &self.to);
        let earlier = earlier.iter().find(is_same)?;
        let dropped = self.dropped.saturating_sub(earlier.dropped);
        let missed = self.missed.saturating_sub(earlier.missed);
        let both = self.untracked.zip(earlier.untracked);
        let untracked = both.map(|(now, then)| now.saturating_sub(then));
        Some(Self { missed, dropped, untracked, ..self })
    }
}

/// From where to where, by what, and what that is like.
impl fmt::Display for NetworkPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, from, to, next_hop, mtu, receive_queues, .. } = self;
        if !host.is_empty() {
            write!(formatter, "{host}: ")?;
        }
        write!(formatter, "from {from} to {to}")?;
        if !next_hop.is_empty() {
            write!(formatter, " through the gateway {next_hop}")?;
        }
        write!(formatter, " by {}", self.device())?;
        if let Some(speed) = self.speed_mbit {
            write!(formatter, ", {speed} Mbit/s")?;
        }
        let queues = if *receive_queues == 1 { "queue" } else { "queues" };
        write!(formatter, ", MTU {mtu}, {receive_queues} receive {queues}")?;
        match self.offloads.as_deref() {
            Some([]) => formatter.write_str(", no offloads")?,
            Some(offloads) => write!(formatter, ", offloads {}", offloads.join(" "))?,
            None => {}
        }
        if self.missed > 0 {
            write!(formatter, "; {} packets found its queue full", self.missed)?;
        }
        if self.dropped > 0 {
            write!(formatter, "; {} were dropped, some perhaps of other protocols", self.dropped)?;
        }
        match self.untracked {
            Some(0) => formatter.write_str("; connections are tracked"),
            Some(count) => write!(formatter, "; connection tracking failed for {count} packets"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_sentence_and_counts_what_was_dropped_since() {
        let before = NetworkPath { dropped: 7, untracked: Some(2), ..NetworkPath::default() };
        let after = NetworkPath {
            from: "192.0.2.2".to_owned(),
            to: "198.51.100.1".to_owned(),
            device: "eth0".to_owned(),
            kind: "virtio_net".to_owned(),
            next_hop: "192.0.2.1".to_owned(),
            mtu: 1_500,
            receive_queues: 4,
            speed_mbit: Some(10_000),
            offloads: Some(vec!["gro".to_owned()]),
            dropped: 10,
            untracked: Some(2),
            ..NetworkPath::default()
        };
        let expected = "from 192.0.2.2 to 198.51.100.1 through the gateway 192.0.2.1 by eth0 (virtio_net), 10000 Mbit/s, MTU \
                        1500, 4 receive queues, offloads gro; 3 were dropped, some perhaps of other protocols; \
                        connections are tracked";
        let before = NetworkPath { to: after.to.clone(), ..before };
        assert_eq!(after.clone().since(&[]), None);
        assert_eq!(after.since(&[before]).unwrap().to_string(), expected);
    }
}
