//! What bounded the answered rate of a run.

use serde::{Deserialize, Serialize};

use crate::evidence::Evidence;

/// What bounded the answered rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BottleneckKind {
    /// The server under test used all the CPU it was given.
    ServerCpu,
    /// The relay between it and its upstream did.
    RelayCpu,
    /// The upstream server did.
    UpstreamCpu,
    /// Servers of a chain that share CPUs used all of those together.
    ServersCpu,
    /// Servers and load workers that share CPUs used all of those together.
    SharedCpu,
    /// A server used up the CPU quota of its control group.
    ServerCpuLimit,
    /// Other programs held the CPUs of a server or of the load.
    OtherPrograms,
    /// One thread of a server used a whole CPU, while the server did not use all of its CPUs.
    ServerThread,
    /// The server turned connections away: it refused or reset them, or did not accept them in time.
    ConnectionsRefused,
    /// The load generator used all the CPU it was given, dropped answers, or kept connections
    /// waiting for their turn.
    Generator,
    /// The window of outstanding queries: neither side was busy (Little's law).
    Window,
    /// The offered rate: everything asked was answered.
    Rate,
    /// Datagrams were lost between the two.
    Network,
    /// The buffer of the server's UDP socket was full, while neither side was busy.
    ServerSocket,
    /// The figures name none, or contradict each other, although both sides were watched.
    Unclear,
    /// The server was not watched, and without its figures the bottleneck cannot be told.
    Unknown,
}

impl BottleneckKind {
    /// True if a server, or the thread of it that has the work, had no CPU left, the one under test or
    /// another of its chain: then no other window of queries would show a higher rate.
    #[must_use]
    pub fn has_servers_full(self) -> bool {
        matches!(
            self,
            Self::ServerCpu
                | Self::RelayCpu
                | Self::UpstreamCpu
                | Self::ServersCpu
                | Self::SharedCpu
                | Self::ServerCpuLimit
                | Self::ServerThread
        )
    }
}

/// The bottleneck and the figures that name it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Bottleneck {
    /// Which.
    pub kind: BottleneckKind,
    /// The figures, the first of which names it.
    pub evidence: Vec<Evidence>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_their_names_on_disk() {
        use BottleneckKind::{
            ConnectionsRefused, Generator, Network, OtherPrograms, Rate, RelayCpu, ServerCpu,
            ServerCpuLimit, ServerSocket, ServersCpu, SharedCpu, Unclear, Unknown, UpstreamCpu,
            Window,
        };
        let names = [
            (ServerCpu, "server-cpu"),
            (RelayCpu, "relay-cpu"),
            (UpstreamCpu, "upstream-cpu"),
            (ServersCpu, "servers-cpu"),
            (SharedCpu, "shared-cpu"),
            (ConnectionsRefused, "connections-refused"),
            (ServerCpuLimit, "server-cpu-limit"),
            (OtherPrograms, "other-programs"),
            (Generator, "generator"),
            (Window, "window"),
            (Rate, "rate"),
            (Network, "network"),
            (ServerSocket, "server-socket"),
            (Unclear, "unclear"),
            (Unknown, "unknown"),
        ];
        for (kind, name) in names {
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{name}\""));
        }
    }
}
