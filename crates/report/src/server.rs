//! Names of servers.

/// The server's name as its makers write it, with the version.
pub(crate) fn title(kind: &str, version: &str) -> String {
    let name = match kind {
        "embedded" => "dnslab's own server",
        "bind" => "BIND",
        "knot" => "Knot DNS",
        "nsd" => "NSD",
        "pdns-auth" => "PowerDNS Authoritative Server",
        "unbound" => "Unbound",
        "knot-resolver" => "Knot Resolver",
        "pdns-recursor" => "PowerDNS Recursor",
        "coredns" => "CoreDNS",
        "dnsdist" => "dnsdist",
        "external" => "a running server",
        other => other,
    };
    // BIND adds its build to the release: 9.18.49-1~deb12u3-Debian.
    let release = version.split(['-', ' ', '+']).next().unwrap_or_default();
    match kind {
        "embedded" => name.to_owned(),
        "external" if !release.is_empty() => format!("{name} ({release})"),
        _ => format!("{name} {release}").trim().to_owned(),
    }
}
