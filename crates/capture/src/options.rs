//! What a reader looks for.

use std::fmt;

use dnslab_wire::{DnstapKind, DnstapSource, ServerAddresses};

/// What a [`crate::CaptureReader`] looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Ports of servers, over UDP and TCP. They mean nothing for dnstap.
    pub ports: Vec<u16>,
    /// Only queries to these count; `None` for those to any server.
    pub servers: Option<ServerAddresses>,
    /// The dnstap messages that count.
    pub dnstap_kinds: Vec<DnstapKind>,
    /// Where dnstap queries come from.
    pub dnstap_source: DnstapSource,
    /// Leave out what a client did not ask of its own: packets that were captured twice; and queries over TCP that
    /// repeat one over UDP because its answer was truncated, for one who will ask again by itself.
    pub skips_repeats: bool,
}

impl CaptureOptions {
    /// The kinds that count by default: what clients sent to the server that wrote dnstap.
    pub const KINDS: [DnstapKind; 2] = [DnstapKind::Client, DnstapKind::Auth];
}

impl Default for CaptureOptions {
    /// Port 53, and the queries that clients sent to the server that wrote dnstap.
    fn default() -> Self {
        Self {
            ports: vec![53],
            servers: None,
            dnstap_kinds: Self::KINDS.to_vec(),
            dnstap_source: DnstapSource::default(),
            skips_repeats: false,
        }
    }
}

impl CaptureOptions {
    /// What follows "queries" where the capture is dnstap, in which ports mean nothing: `in messages about queries of
    /// the kinds client, auth`.
    #[must_use]
    pub fn of_dnstap(&self) -> String {
        let kinds: Vec<&str> = self.dnstap_kinds.iter().map(|kind| kind.name()).collect();
        let servers =
            self.servers.as_ref().map_or(String::new(), |servers| format!(" to {servers}"));
        format!(
            "{servers} in messages about {} of the kinds {}",
            self.dnstap_source,
            kinds.join(", ")
        )
        .trim_start()
        .to_owned()
    }
}

/// What follows "queries": `to a server at port 53`.
impl fmt::Display for CaptureOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |items: Vec<String>| items.join(", ");
        match &self.servers {
            Some(servers) => write!(formatter, "to {servers}")?,
            None => formatter.write_str("to a server")?,
        }
        let ports = list(self.ports.iter().map(ToString::to_string).collect());
        write!(formatter, " at port {ports}")?;
        if (&*self.dnstap_kinds, self.dnstap_source) != (&Self::KINDS, DnstapSource::Queries) {
            let kinds = list(self.dnstap_kinds.iter().map(ToString::to_string).collect());
            write!(formatter, ", of dnstap the {} {kinds}", self.dnstap_source)?;
        }
        Ok(())
    }
}
