//! unbound.conf(5).

use std::path::Path;

use super::clauses::{self, Clause};
use super::{Found, OwnConfigurationError, unquoted};

const CLAUSES: [&str; 13] = [
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
];

/// Attributes of `server` that say where it is reached, who it is, and what it writes.
const SERVER: [&str; 22] = [
    "chroot",
    "directory",
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

/// Files that Unbound reads, and for the second list writes.
const READ: [&str; 6] = [
    "root-hints",
    "trust-anchor-file",
    "trusted-keys-file",
    "tls-cert-bundle",
    "python-script",
    "dynlib-file",
];
const WRITTEN: [&str; 2] = ["auto-trust-anchor-file", "zonefile"];

/// Attributes of an own zone that name other servers. Its file is what is served.
const OTHERS: [&str; 5] = ["primary", "master", "url", "allow-notify", "fallback-enabled"];

/// The attributes of `server`, and all other clauses.
pub(super) fn read(path: &Path, found: &mut Found) -> Result<[String; 2], OwnConfigurationError> {
    let clauses = clauses::read(path, |name| CLAUSES.contains(&name))?;
    let folder = clauses.iter().filter(|clause| clause.name == "server");
    let folder = folder.rev().find_map(|server| server.value("directory"));
    let folder = path.parent().unwrap_or(Path::new("/")).join(folder.unwrap_or(""));
    let mut text = [String::new(), String::new()];
    for clause in clauses {
        if clause.name == "remote-control" {
            found.remove(&format!("{}: {}", clause.name, clause.lines().trim()));
            continue;
        }
        let is_own_zone = ["auth-zone", "rpz"].contains(&clause.name.as_str());
        let mut left = Clause { name: clause.name, attributes: Vec::new() };
        for mut attribute in clause.attributes {
            let name = attribute.name.as_str();
            let goes = match left.name.as_str() {
                "server" => SERVER.contains(&name),
                _ => is_own_zone && OTHERS.contains(&name),
            };
            if goes {
                found.remove(&attribute.line());
                continue;
            }
            if let Some(value) = attribute.values.first_mut() {
                let whole = folder.join(unquoted(value));
                if READ.contains(&name) {
                    *value = format!("\"{}\"", whole.display());
                } else if WRITTEN.contains(&name) {
                    *value = format!("\"{}\"", found.copy(whole));
                }
            }
            left.attributes.push(attribute);
        }
        match left.name.as_str() {
            "server" => text[0].push_str(&left.lines()),
            name => text[1].push_str(&format!("{name}:\n{}\n", left.lines())),
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::tests::shown;
    use crate::server::ServerKind;

    #[test]
    fn addresses_and_paths_go_and_the_rest_stays() {
        let main = "server:
    directory: \"/etc/unbound\"
    interface: 192.0.2.1@53
    interface: ::0
    access-control: 10.0.0.0/8 allow
    num-threads: 4
    auto-trust-anchor-file: \"root.key\"
    root-hints: root.hints
    local-data: 'a.example. TXT \"x # y\"'
include-toplevel: \"more/*.conf\"
remote-control:
    control-enable: yes
";
        let more = "rpz:\n    name: block.example\n    url: https://192.0.2.7/block\n    zonefile: block.zone\n\
                    forward-zone:\n    name: \".\"\n    forward-addr: 192.0.2.8@853#dns.example\n";
        let files = [("unbound.conf", main), ("more/a.conf", more)];
        insta::assert_snapshot!(shown(ServerKind::Unbound, &files));
    }
}
