//! nsd.conf(5).

use std::path::{Path, PathBuf};

use super::clauses::{self, Attribute, Clause};
use super::{Found, OwnConfigurationError, fault, zone_file};

const CLAUSES: [&str; 9] = [
    "server",
    "remote-control",
    "dnstap",
    "zone",
    "pattern",
    "key",
    "tls-auth",
    "verify",
    "verifier",
];

/// Attributes of `server` that say where it is reached, who it is, and what it writes.
const SERVER: [&str; 26] = [
    "chroot",
    "cpu-affinity",
    "database",
    "interface",
    "ip-address",
    "logfile",
    "pidfile",
    "port",
    "server-cpu-affinity",
    "tls-auth-port",
    "tls-auth-xfr-only",
    "tls-port",
    "tls-service-key",
    "tls-service-ocsp",
    "tls-service-pem",
    "username",
    "xfrdfile",
    "xfrdir",
    "zonelistfile",
    "zonesdir",
    "zonefiles-write",
    "xfrd-cpu-affinity",
    "xfrd-reload-timeout",
    "proxy_protocol_port",
    "quic-port",
    "bindtodevice",
];

/// Attributes of a zone or a pattern that name other servers.
const OTHERS: [&str; 10] = [
    "allow-axfr-fallback",
    "allow-notify",
    "notify",
    "notify-retry",
    "outgoing-interface",
    "provide-xfr",
    "request-xfr",
    "catalog",
    "catalog-producer-zone",
    "catalog-member-pattern",
];

/// The attributes of `server`, and all other clauses.
pub(super) fn read(path: &Path, found: &mut Found) -> Result<[String; 2], OwnConfigurationError> {
    let clauses = clauses::read(path, |name| CLAUSES.contains(&name))?;
    let zones_dir = clauses.iter().filter(|clause| clause.name == "server");
    let zones_dir = zones_dir.rev().find_map(|server| server.value("zonesdir"));
    let folder = path.parent().unwrap_or(Path::new("/")).join(zones_dir.unwrap_or("/etc/nsd"));
    let patterns: Vec<&Clause> = clauses.iter().filter(|clause| clause.name == "pattern").collect();
    let mut text = [String::new(), String::new()];
    for clause in &clauses {
        let kept = |attribute: &&Attribute, found: &mut Found| {
            let name = attribute.name.as_str();
            let goes = match clause.name.as_str() {
                "server" => SERVER.contains(&name),
                "zone" | "pattern" => OTHERS.contains(&name) || name == "zonefile",
                _ => false,
            };
            if goes && name != "zonefile" {
                found.remove(&attribute.line());
            }
            !goes
        };
        let attributes =
            clause.attributes.iter().filter(|attribute| kept(attribute, found)).cloned();
        let mut left = Clause { name: clause.name.clone(), attributes: attributes.collect() };
        match clause.name.as_str() {
            "server" => {
                text[0].push_str(&left.lines());
                continue;
            }
            "remote-control" | "verify" => {
                found.remove(&format!("{}: {}", clause.name, clause.lines().trim()));
                continue;
            }
            "zone" => {
                let copy = found.copy(file_of(clause, &patterns, &folder, path)?);
                let values = vec![format!("\"{copy}\"")];
                left.attributes.push(Attribute {
                    name: "zonefile".to_owned(),
                    values,
                    path: path.to_owned(),
                });
            }
            _ => {}
        }
        text[1].push_str(&format!("{}:\n{}\n", left.name, left.lines()));
    }
    Ok(text)
}

/// The file of a zone, which it or a pattern names.
fn file_of(
    zone: &Clause,
    patterns: &[&Clause],
    folder: &Path,
    path: &Path,
) -> Result<PathBuf, OwnConfigurationError> {
    let name = zone.value("name").unwrap_or_default();
    let mut sources = vec![zone];
    // A pattern may include another one.
    for _ in 0..=patterns.len() {
        let included = sources.last().and_then(|last| last.value("include-pattern"));
        let Some(next) = included else { break };
        sources.extend(patterns.iter().find(|pattern| pattern.value("name") == Some(next)));
    }
    match sources.iter().find_map(|source| source.value("zonefile")) {
        Some(pattern) => Ok(folder.join(zone_file(pattern, name, path)?)),
        None => Err(fault(path, format!("the zone `{name}` has no `zonefile`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{refused, shown};
    use crate::server::ServerKind;

    #[test]
    fn addresses_and_paths_go_and_the_rest_stays() {
        let main = "# The server of example.org.
server:
    server-count: 2
    ip-address: 192.0.2.1
    ip-address: fd00::1
    zonesdir: \"/etc/nsd/zones\"
    username: nsd
    rrl-ratelimit: 100
remote-control:
    control-enable: yes
include: \"zones.d/*.conf\"
pattern:
    name: \"all\"
    zonefile: \"%s.zone\"
    notify: 192.0.2.9 NOKEY
";
        let zones = "zone:\n  name: example.org\n  include-pattern: all\n  provide-xfr: 192.0.2.3 NOKEY\n\
                     zone:\n\tname: \"example.net\"\n\tzonefile: /srv/net # there\n\trrl-whitelist: all\n";
        let files = [("nsd.conf", main), ("zones.d/own.conf", zones)];
        insta::assert_snapshot!(shown(ServerKind::Nsd, &files));
    }

    #[test]
    fn a_zone_without_a_file_is_refused() {
        let check = |text: &str, expected: &str| {
            refused(ServerKind::Nsd, &[("nsd.conf", text)], expected);
        };
        check(
            "zone:\n name: a\n include-pattern: b\npattern:\n name: b\n include-pattern: b\n",
            "no `zonefile`",
        );
        check("zone:\n name: a\n zonefile: %1/%s\n", "knows only `%s`");
    }
}
