//! The options of servers that bound what a load can ask of them, by the kind of server. Each is named
//! in the manual of that server; the defaults are those of the versions in docs/SERVERS.md.

use crate::ServerFacts;

/// The kind of a server as in [`ServerFacts::kind`]; of one that runs already that of its program, where
/// that is known.
pub(crate) fn kind(server: &ServerFacts) -> &str {
    if server.kind != "external" {
        return &server.kind;
    }
    let path = server.command.first().map_or("", String::as_str);
    match path.rsplit('/').next().unwrap_or(path) {
        "named" => "bind",
        "knotd" => "knot",
        "kresd" => "knot-resolver",
        "pdns_recursor" => "pdns-recursor",
        "pdns_server" => "pdns-auth",
        program @ ("nsd" | "unbound" | "dnsdist" | "dnsmasq" | "coredns" | "stubby") => program,
        _ => "external",
    }
}

/// What bounds the connections that a server of this kind has at once, as half a sentence; of one that is
/// not known, what it may be.
pub(crate) fn connection_bound(kind: &str) -> &'static str {
    match kind {
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

/// The option for the receive buffer of the server's UDP sockets, if a server of this kind has one.
pub(crate) fn socket_buffer(kind: &str) -> Option<&'static str> {
    match kind {
        "bind" => Some("udp-receive-buffer"),
        "nsd" => Some("receive-buffer-size"),
        "unbound" => Some("so-rcvbuf"),
        "dnsdist" => Some("setUDPSocketBufferSizes"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_server_is_known_by_its_program() {
        let of = |kind: &str, program: &str| ServerFacts {
            kind: kind.to_owned(),
            command: vec![program.to_owned()],
            ..ServerFacts::default()
        };
        assert_eq!(kind(&of("external", "/usr/sbin/named")), "bind");
        assert_eq!(kind(&of("external", "unbound")), "unbound");
        assert_eq!(kind(&of("external", "python3")), "external");
        assert_eq!(kind(&of("nsd", "/usr/sbin/named")), "nsd");
        assert_eq!(kind(&ServerFacts { command: Vec::new(), ..of("external", "") }), "external");
    }
}
