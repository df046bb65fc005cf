//! The options of servers that bound what a load can ask of them, by the program. Each is named
//! in the manual of that server; the defaults are those of the versions in docs/SERVERS.md.

/// What bounds the connections that a server has at once, as half a sentence; of one that is
/// not known, what it may be.
pub(super) fn connection_bound(program: &str) -> &'static str {
    match program {
        "bind" => {
            "BIND bounds them by `tcp-clients` (default 150), over HTTPS by `http-listener-clients` \
             (300)"
        }
        "knot" => "Knot DNS bounds them by `tcp-max-clients`, over QUIC by `quic-max-clients`",
        "nsd" => "NSD bounds them by `tcp-count` (default 100)",
        "unbound" => "Unbound bounds them by `incoming-num-tcp` (default 10 for each thread)",
        "knot-resolver" => "Knot Resolver bounds them by its file descriptors (`ulimit -n`)",
        "dnsdist" => {
            "dnsdist bounds them by `maxConcurrentTCPConnections` of each listener and by \
             `setMaxTCPConnectionsPerClient` (no limit by default), and those that wait for a thread by \
             `setMaxTCPQueuedConnections` (10,000)"
        }
        "pdns-recursor" => {
            "PowerDNS Recursor bounds them by `max-tcp-clients` (default 128) and \
             `max-tcp-per-client`"
        }
        "pdns-auth" => {
            "PowerDNS Authoritative Server bounds them by `max-tcp-connections` (default 20) and \
             `max-tcp-connections-per-client`"
        }
        "dnsmasq" => "dnsmasq bounds them by `max-tcp-connections` (default 20)",
        "coredns" => {
            "CoreDNS bounds them over HTTPS, HTTP/3 and QUIC by `max_connections` of the plugins `https`, \
             `https3` and `quic` (default 200), over TCP and TLS by its file descriptors (`ulimit -n`)"
        }
        "stubby" => "Stubby bounds them by its file descriptors (`ulimit -n`)",
        "embedded" => "the embedded server bounds them by `--max-connections`",
        _ => {
            "BIND bounds them by `tcp-clients` (default 150), Unbound by `incoming-num-tcp` (10), NSD \
             by `tcp-count` (100), Knot DNS by `tcp-max-clients`, dnsdist by \
             `maxConcurrentTCPConnections`, PowerDNS by `max-tcp-clients` (Recursor, 128) or \
             `max-tcp-connections` (20)"
        }
    }
}

/// The option for the receive buffer of the server's UDP sockets, if it has one.
pub(super) fn socket_buffer(program: &str) -> Option<&'static str> {
    match program {
        "bind" => Some("udp-receive-buffer"),
        "nsd" => Some("receive-buffer-size"),
        "unbound" => Some("so-rcvbuf"),
        "dnsdist" => Some("setUDPSocketBufferSizes"),
        _ => None,
    }
}
