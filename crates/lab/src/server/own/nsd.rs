//! nsd.conf(5).

use std::path::{Path, PathBuf};

use super::clauses::{Attribute, Clause, Language};
use super::{Found, NO_SECRET, OwnConfigurationError, fault, file_name, folder_of, unquoted};

const LANGUAGE: Language = Language {
    clauses: &[
        "server",
        "remote-control",
        "dnstap",
        "zone",
        "pattern",
        "key",
        "tls-auth",
        "verify",
    ],
    directory: None,
};

/// Clauses that say where it is reached and whom it tells.
const AWAY: [&str; 3] = ["remote-control", "verify", "dnstap"];

/// Attributes of `server` that say where it is reached, who it is, and what it writes.
const SERVER: [&str; 27] = [
    "bindtodevice",
    "chroot",
    "cpu-affinity",
    "database",
    "interface",
    "ip-address",
    "log-only-syslog",
    "logfile",
    "metrics-enable",
    "metrics-interface",
    "metrics-path",
    "metrics-port",
    "pidfile",
    "port",
    "proxy-protocol-port",
    "proxy_protocol_port",
    "quic-port",
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
];

/// Those of several processes, of cards, and of files.
const SERVER_KINDS: [&str; 4] = ["server-", "xfrd-", "xdp-", "zones"];

/// Attributes of a zone or a pattern that name other servers.
const OTHERS: [&str; 11] = [
    "allow-axfr-fallback",
    "allow-notify",
    "multi-primary-check",
    "multi-master-check",
    "notify",
    "notify-retry",
    "outgoing-interface",
    "provide-xfr",
    "request-xfr",
    "verify-zone",
    "zonestats-file",
];

/// The attributes of `server`, and all other clauses.
pub(super) fn read(path: &Path, found: &mut Found) -> Result<[String; 2], OwnConfigurationError> {
    let (clauses, _) = LANGUAGE.read(path, found)?;
    let zones_dir = clauses.iter().rev().filter(|clause| clause.name == "server");
    let zones_dir = zones_dir.filter_map(|server| server.value("zonesdir")).next();
    let folder = folder_of(path).join(zones_dir.unwrap_or("/etc/nsd"));
    let patterns: Vec<&Clause> = clauses.iter().filter(|clause| clause.name == "pattern").collect();
    let mut text = [String::new(), String::new()];
    for clause in &clauses {
        if AWAY.contains(&clause.name.as_str()) {
            found.remove(&format!("{}: {}", clause.name, clause.lines().trim()));
            continue;
        }
        let mut left = Clause { name: clause.name.clone(), attributes: kept(clause, path, found)? };
        match clause.name.as_str() {
            "server" => {
                text[0].push_str(&left.lines());
                continue;
            }
            "zone" => {
                let copy = found.copy(file_of(clause, &patterns, &folder, path)?);
                let values = vec![format!("\"{copy}\"")];
                left.attributes.push(Attribute { name: "zonefile".to_owned(), values });
            }
            _ => {}
        }
        text[1].push_str(&format!("{}:\n{}\n", left.name, left.lines()));
    }
    Ok(text)
}

/// What is left of the attributes of a clause.
fn kept(
    clause: &Clause,
    path: &Path,
    found: &mut Found,
) -> Result<Vec<Attribute>, OwnConfigurationError> {
    let is_zone = ["zone", "pattern"].contains(&clause.name.as_str());
    let mut left = Vec::new();
    for attribute in &clause.attributes {
        let name = attribute.name.as_str();
        let mut attribute = attribute.clone();
        match clause.name.as_str() {
            "server" if is_of_server(name) => {
                found.remove(&attribute.line());
                continue;
            }
            "key" if name == "secret" => attribute.values = vec![NO_SECRET.to_owned()],
            _ if is_zone && name.starts_with("catalog") => {
                let reason = format!(
                    "the {} `{}` has `{}`: zones that come from elsewhere would be taken from there while it is measured; \
                     give their files to a configuration without it",
                    clause.name,
                    clause.value("name").unwrap_or_default(),
                    attribute.line()
                );
                return Err(fault(path, reason));
            }
            _ if is_zone && (OTHERS.contains(&name) || name.starts_with("verifier")) => {
                found.remove(&attribute.line());
                continue;
            }
            // Where its file is, the copy says.
            _ if is_zone && name == "zonefile" => continue,
            _ => {}
        }
        left.push(attribute);
    }
    Ok(left)
}

/// `server-count` is how many processes answer.
fn is_of_server(name: &str) -> bool {
    let is_of_kind = SERVER_KINDS.iter().any(|kind| name.starts_with(kind));
    SERVER.contains(&name) || (is_of_kind && name != "server-count")
}

/// The file of a zone, which it or a pattern names.
fn file_of(
    zone: &Clause,
    patterns: &[&Clause],
    folder: &Path,
    path: &Path,
) -> Result<PathBuf, OwnConfigurationError> {
    let name = zone.value("name").unwrap_or_default();
    let form = form_of(zone, patterns, patterns.len());
    let form = form.ok_or_else(|| fault(path, format!("the zone `{name}` has no `zonefile`")))?;
    Ok(folder.join(written(form, name, path)?))
}

/// The last form of a file's name that a clause or a pattern in it says, in the order of the lines.
fn form_of<'a>(clause: &'a Clause, patterns: &[&'a Clause], depth: usize) -> Option<&'a str> {
    let mut form = None;
    for attribute in &clause.attributes {
        let value = attribute.values.first().map_or("", |value| unquoted(value));
        match attribute.name.as_str() {
            "zonefile" => form = Some(value),
            "include-pattern" if depth > 0 => {
                let pattern = patterns.iter().find(|pattern| pattern.value("name") == Some(value));
                form = pattern.and_then(|pattern| form_of(pattern, patterns, depth - 1)).or(form);
            }
            _ => {}
        }
    }
    form
}

/// The name of a file of this form: `%s` is the zone, `%1` to `%3` its first letters, `%z` to `%x` its last labels.
fn written(form: &str, zone: &str, path: &Path) -> Result<String, OwnConfigurationError> {
    let name = if zone == "." { "." } else { zone.trim_end_matches('.') };
    let letter = |place: usize| name.chars().nth(place).unwrap_or('.').to_string();
    let label = |place: usize| name.rsplit('.').nth(place).unwrap_or(".").to_owned();
    let known = "`%s`, `%1` to `%3` and `%x` to `%z`";
    file_name((form, known), (zone, path), |part| {
        Some(match part {
            's' => name.to_owned(),
            '1' => letter(0),
            '2' => letter(1),
            '3' => letter(2),
            'z' => label(0),
            'y' => label(1),
            'x' => label(2),
            _ => return None,
        })
    })
}

#[cfg(test)]
mod tests {
    use dnslab_settings::ServerKind;

    use super::super::tests::{refused, shown};

    #[test]
    fn addresses_and_paths_go_and_the_rest_stays() {
        let main = "# The server of example.org.
server:
    server-count: 2
    server-1-cpu-affinity: 1
    ip-address: 192.0.2.1
    ip-address: fd00::1
    zonesdir: \"FOLDER/zones\"
    username: nsd
    log-only-syslog: yes
    rrl-ratelimit: 100
remote-control:
    control-enable: yes
include: \"zones.d/*.conf\"
key:
    name: partner
    algorithm: hmac-sha256
    secret: c2VjcmV0
pattern:
    name: \"all\"
    zonefile: \"%1/%s.%z\"
    notify: 192.0.2.9 NOKEY
pattern:
    name: more
    include-pattern: all
    verifier: ldns-verify-zone
    verifier-count: 2
verify:
    enable: yes
dnstap:
    dnstap-enable: yes
";
        let zones = "zone:\n  name: example.org\n  include-pattern: more\n  provide-xfr: 192.0.2.3 NOKEY\n\
                     zone:\n\tname: \"example.net\"\n\tzonefile: FOLDER/net # there\n\trrl-whitelist: all\n";
        let files = [
            ("nsd.conf", main),
            ("zones.d/own.conf", zones),
            ("zones/e/example.org.org", ""),
            ("net", ""),
        ];
        insta::assert_snapshot!(shown((ServerKind::Nsd, false), &files));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let check = |text: &str, expected: &str| {
            refused(ServerKind::Nsd, &[("nsd.conf", text)], expected);
        };
        check(
            "zone:\n name: a\n include-pattern: b\npattern:\n name: b\n include-pattern: b\n",
            "no `zonefile`",
        );
        check("zone:\n name: a\n zonefile: %q/%s\n", "knows only `%s`");
        check("zone:\n name: a\n catalog: consumer\n zonefile: a\n", "has `catalog: consumer`");
        check("port: 53\n", "stands in no clause");
    }
}
