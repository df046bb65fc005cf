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
    /// Queues that the device receives by.
    pub receive_queues: u32,
    /// What it carries, Mbit/s; `None` if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_mbit: Option<u32>,
    /// What the device or the kernel does for many packets at once, by the names of ethtool(8); `None` without ethtool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offloads: Option<Vec<String>>,
    /// Packets that the device received and dropped during the load: a queue was full. (`/proc/net/dev`)
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

    /// This path with what was counted since an earlier reading; `None` if it was not read then.
    #[must_use]
    pub fn since(self, earlier: &[Self]) -> Option<Self> {
        let is_same = |path: &&Self| (&path.host, &path.to) == (&self.host, &self.to);
        let earlier = earlier.iter().find(is_same)?;
        let dropped = self.dropped.saturating_sub(earlier.dropped);
        let both = self.untracked.zip(earlier.untracked);
        let untracked = both.map(|(now, then)| now.saturating_sub(then));
        Some(Self { dropped, untracked, ..self })
    }
}

/// From where to where, by what, and what that is like.
impl fmt::Display for NetworkPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, next_hop, mtu, receive_queues, .. } = self;
        write!(formatter, "from {from} to {to} by {}", self.device())?;
        if !next_hop.is_empty() {
            write!(formatter, " and {next_hop}")?;
        }
        if let Some(speed) = self.speed_mbit {
            write!(formatter, ", {speed} Mbit/s")?;
        }
        let queues = if *receive_queues == 1 { "queue" } else { "queues" };
        write!(formatter, ", MTU {mtu}, {receive_queues} receive {queues}")?;
        match self.offloads.as_deref() {
            Some([]) => formatter.write_str(", no offloads")?,
            Some(offloads) => write!(formatter, ", {}", offloads.join(", "))?,
            None => {}
        }
        if self.dropped > 0 {
            write!(formatter, "; the device dropped {} packets", self.dropped)?;
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
        let expected = "from 192.0.2.2 to 198.51.100.1 by eth0 (virtio_net) and 192.0.2.1, 10000 Mbit/s, MTU 1500, 4 receive \
                        queues, gro; the device dropped 3 packets; connections are tracked";
        let before = NetworkPath { to: after.to.clone(), ..before };
        assert_eq!(after.clone().since(&[]), None);
        assert_eq!(after.since(&[before]).unwrap().to_string(), expected);
    }
}
