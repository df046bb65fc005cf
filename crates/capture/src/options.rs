//! What a reader looks for.

/// What a [`crate::CaptureReader`] looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Ports of servers, over UDP and TCP. They mean nothing for dnstap.
    pub ports: Vec<u16>,
    /// The dnstap messages that count.
    pub dnstap_kinds: Vec<DnstapKind>,
    /// Where dnstap queries come from.
    pub dnstap_source: DnstapSource,
}

impl Default for CaptureOptions {
    /// Port 53, and the queries that clients sent to the server that wrote dnstap.
    fn default() -> Self {
        Self {
            ports: vec![53],
            dnstap_kinds: vec![DnstapKind::Client, DnstapKind::Auth],
            dnstap_source: DnstapSource::default(),
        }
    }
}

dnslab_wire::words! {
    /// Who sent a query to whom, in the words of dnstap.
    pub enum DnstapKind as "kind of dnstap message" {
        /// A client to this server, which is asked to resolve (CLIENT_QUERY).
        Client = "client",
        /// A client to this server, which is authoritative (AUTH_QUERY).
        Auth = "auth",
        /// This server, as a recursive resolver, to an authoritative server (RESOLVER_QUERY).
        Resolver = "resolver",
        /// This server, as a forwarder, to an upstream server (FORWARDER_QUERY).
        Forwarder = "forwarder",
        /// A stub resolver that wrote dnstap itself (STUB_QUERY).
        Stub = "stub",
        /// A tool that wrote dnstap itself (TOOL_QUERY).
        Tool = "tool",
    }
}

dnslab_wire::words! {
    /// Which dnstap messages queries are taken from. A server that writes both would have each query twice.
    #[derive(Default)]
    pub enum DnstapSource as "source of dnstap queries" {
        /// Those about queries.
        #[default]
        Queries = "queries",
        /// Those about responses, for servers that write no others. The time is that of the query if the frame
        /// has it. If the frame lacks the query, it is made: id, RD, CD and question of the response, and an
        /// OPT record with its DO bit and a payload size of 1232 if the response has one.
        Responses = "responses",
    }
}
