//! unbound.conf(5).

use std::path::Path;

use super::clauses::{Clause, Language};
use super::{Found, OwnConfigurationError, fault, unquoted};

const LANGUAGE: Language = Language {
    clauses: &[
        "server",
        "remote-control",
        "stub-zone",
        "forward-zone",
        "auth-zone",
        "rpz",
        "view",
        "python",
        "dynlib",
        "dnscrypt",
        "cachedb",
        "ipset",
        "dnstap",
    ],
    directory: Some("directory"),
};

/// Clauses that say where it is reached and whom it tells.
const AWAY: [&str; 2] = ["remote-control", "dnstap"];

/// Clauses of what others keep.
const FOREIGN: [&str; 2] = ["cachedb", "ipset"];

/// Attributes of `server` that say where it is reached, who it is, and what it writes.
const SERVER: [&str; 27] = [
    "chroot",
    "directory",
    "do-ip4",
    "do-ip6",
    "do-tcp",
    "do-udp",
    "http-endpoint",
    "http-notls-downstream",
    "https-port",
    "interface",
    "interface-automatic",
    "interface-automatic-ports",
    "ip-address",
    "ip-dscp",
    "ip-freebind",
    "ip-transparent",
    "logfile",
    "outgoing-interface",
    "pidfile",
    "port",
    "proxy-protocol-port",
    "quic-port",
    "tls-port",
    "tls-service-key",
    "tls-service-pem",
    "use-syslog",
    "username",
];

/// Files that are copied.
const COPIED: [&str; 6] = [
    "auto-trust-anchor-file",
    "root-hints",
    "tls-cert-bundle",
    "trust-anchor-file",
    "trusted-keys-file",
    "zonefile",
];

/// Files that are read where they are.
const READ: [&str; 3] = ["dynlib-file", "python-script", "tls-session-ticket-keys"];

/// Attributes of an own zone that name other servers. Its file is what is served.
const OTHERS: [&str; 5] = ["allow-notify", "fallback-enabled", "master", "primary", "url"];

/// The attributes of `server`, and all other clauses.
pub(super) fn read(path: &Path, found: &mut Found) -> Result<[String; 2], OwnConfigurationError> {
    let (clauses, folder) = LANGUAGE.read(path, found)?;
    let mut text = [String::new(), String::new()];
    for clause in clauses {
        let name = clause.name.as_str();
        if AWAY.contains(&name) {
            found.remove(&format!("{name}: {}", clause.lines().trim()));
            continue;
        }
        if FOREIGN.contains(&name) {
            let reason = format!(
                "`{name}:` would read and fill what belongs to your own server: leave it out"
            );
            return Err(fault(path, reason));
        }
        let is_own_zone = ["auth-zone", "rpz"].contains(&name);
        if is_own_zone && clause.value("zonefile").is_none_or(str::is_empty) {
            let zone = clause.value("name").unwrap_or_default();
            let reason = format!(
                "`{name}:` of `{zone}` has no `zonefile`: it is only where it comes from, and dnslab transfers nothing"
            );
            return Err(fault(path, reason));
        }
        let left = kept(clause, is_own_zone, (path, &folder), found)?;
        match left.name.as_str() {
            "server" => text[0].push_str(&left.lines()),
            name => text[1].push_str(&format!("{name}:\n{}\n", left.lines())),
        }
    }
    Ok(text)
}

/// What is left of a clause.
fn kept(
    clause: Clause,
    is_own_zone: bool,
    (path, folder): (&Path, &Path),
    found: &mut Found,
) -> Result<Clause, OwnConfigurationError> {
    let is_server = clause.name == "server";
    let mut left = Clause { name: clause.name, attributes: Vec::new() };
    for mut attribute in clause.attributes {
        let name = attribute.name.as_str();
        if is_server && SERVER.contains(&name) {
            found.remove(&attribute.line());
            continue;
        }
        if is_own_zone && OTHERS.contains(&name) {
            // An address may have a password in it.
            found.remove(&format!("{name}: ..."));
            continue;
        }
        if is_server && name.starts_with("interface-") {
            let reason = format!(
                "`{}` is for an address that the server does not have here: write it for the clients, as `access-control`",
                attribute.line()
            );
            return Err(fault(path, reason));
        }
        if let Some(value) =
            attribute.values.first_mut().filter(|value| !unquoted(value).is_empty())
        {
            let whole = folder.join(unquoted(value));
            if COPIED.contains(&name) {
                *value = format!("\"{}\"", found.copy(whole));
            } else if READ.contains(&name) {
                *value = format!("\"{}\"", whole.display());
            }
        }
        left.attributes.push(attribute);
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use dnslab_settings::ServerKind;

    use super::super::tests::{refused, shown};

    #[test]
    fn addresses_and_paths_go_and_the_rest_stays() {
        let main = "server:
    directory: \"FOLDER/etc\"
    interface:192.0.2.1@53
    interface: ::0
    access-control: 10.0.0.0/8 allow
    num-threads: 4
    do-ip6: no
    auto-trust-anchor-file: \"root.key\"
    root-hints: \"\"
    local-data: 'a.example. TXT \"x # y\"'
include-toplevel: \"more/*.conf\"
remote-control:
    control-enable: yes
";
        let more = "rpz:\n    name: block.example\n    url:https://user:word@192.0.2.7/block\n    \
                    zonefile: block.zone\nforward-zone:\n    name: \".\"\n    \
                    forward-addr: 192.0.2.8@853#dns.example\n";
        let files = [
            ("unbound.conf", main),
            ("etc/more/a.conf", more),
            ("etc/root.key", ""),
            ("etc/block.zone", ""),
        ];
        insta::assert_snapshot!(shown((ServerKind::Unbound, true), &files));
    }

    #[test]
    fn what_belongs_to_others_is_refused() {
        let check = |text: &str, expected: &str| {
            refused(ServerKind::Unbound, &[("unbound.conf", text)], expected);
        };
        check("cachedb:\n backend: redis\n", "`cachedb:` would read and fill");
        check("rpz:\n name: b\n url: https://f/b\n", "`rpz:` of `b` has no `zonefile`");
        check("server:\n interface-action: 192.0.2.1 allow\n", "as `access-control`");
    }
}
