//! knot.conf: Knot DNS manual, "Configuration Reference". Its language is a part of YAML: sections at the left, items of
//! keys and values in them, each in a line of its own.

use std::path::{Path, PathBuf};

use super::{
    Found, NO_SECRET, OwnConfigurationError, fault, file_name, folder_of, read_file, unquoted,
};

/// Sections that say where it is reached, and what it writes.
const SECTIONS: [&str; 5] = ["control", "database", "log", "statistics", "xdp"];

/// Modules that make signatures, ask other servers, or write for other programs.
const MODULES: [&str; 3] = ["mod-dnsproxy", "mod-dnstap", "mod-onlinesign"];

/// Keys of `server` that do.
const SERVER: [&str; 19] = [
    "listen",
    "listen-tls",
    "listen-quic",
    "listen-xdp",
    "rundir",
    "user",
    "pidfile",
    "cert-file",
    "key-file",
    "ca-file",
    "quic-port",
    "tls-port",
    "automatic-acl",
    "proxy-allowlist",
    "dbus-event",
    "dbus-init-delay",
    "key-cert",
    "quic-idle-close-timeout",
    "quic-max-clients",
];

/// Keys of a zone or a template that name other servers, or files that are written.
const ZONE: [&str; 15] = [
    "master",
    "notify",
    "notify-delay",
    "ddns-master",
    "ds-push",
    "dnskey-sync",
    "ixfr-by-one",
    "ixfr-benevolent",
    "zonefile-sync",
    "zonefile-load",
    "journal-content",
    "storage",
    "file",
    "kaspdb",
    "zonemd-verify",
];

/// Keys by which Knot makes a zone itself, and their values by which it does not.
const MADE: [(&str, &[&str]); 2] =
    [("dnssec-signing", &["off", "false", "no"]), ("catalog-role", &["none", "member"])];

/// A key with its value, as it is written.
#[derive(Clone, Debug)]
struct Pair {
    key: String,
    value: String,
}

/// An item of a section.
type Item = Vec<Pair>;

#[derive(Clone, Debug)]
struct Section {
    name: String,
    items: Vec<Item>,
}

/// The keys of `server`, and all other sections.
pub(super) fn read(path: &Path, found: &mut Found) -> Result<[String; 2], OwnConfigurationError> {
    let mut sections = Vec::new();
    read_into((path, 0), found, &mut sections)?;
    let templates = sections.iter().filter(|section| section.name == "template");
    let templates: Vec<&Item> = templates.flat_map(|section| &section.items).collect();
    let mut text = [String::new(), String::new()];
    for section in &sections {
        let name = section.name.as_str();
        if SECTIONS.contains(&name) {
            let lines = section.items.iter().flatten().map(line).collect::<Vec<_>>();
            found.remove(&format!("{name}: {}", lines.join("; ")));
            continue;
        }
        if MODULES.contains(&name) {
            let reason = format!(
                "`{name}` signs, asks other servers, or writes for other programs while it is measured: leave it out"
            );
            return Err(fault(path, reason));
        }
        let mut items = Vec::new();
        for item in &section.items {
            let mut left = kept(name, item, path, found)?;
            if name == "zone" {
                let copy = found.copy(file_of(item, &templates, path)?);
                left.extend(served_from(&copy));
            }
            items.push(left);
        }
        match name {
            "server" => {
                let lines = items.iter().flatten().map(|pair| format!("    {}\n", line(pair)));
                text[0].extend(lines);
            }
            _ => text[1].push_str(&written(name, &items)),
        }
    }
    Ok(text)
}

/// What is left of an item of a section.
fn kept(
    section: &str,
    item: &Item,
    path: &Path,
    found: &mut Found,
) -> Result<Item, OwnConfigurationError> {
    let is_zone = ["zone", "template"].contains(&section);
    let mut left = Vec::new();
    for pair in item {
        let key = pair.key.as_str();
        let unmade = MADE.iter().find(|(made, _)| is_zone && *made == key);
        if unmade.is_some_and(|(_, unmade)| !unmade.contains(&unquoted(&pair.value))) {
            let what = item.first().map(|first| unquoted(&first.value)).unwrap_or_default();
            let reason = format!(
                "the {section} `{what}` has `{}`, so Knot would make zones while it is measured: write its signed file \
                 (`knotc zone-flush`) and a zone without that key into a configuration of its own",
                line(pair)
            );
            return Err(fault(path, reason));
        }
        let goes =
            (section == "server" && SERVER.contains(&key)) || (is_zone && ZONE.contains(&key));
        match goes {
            false if section == "key" && key == "secret" => {
                left.push(Pair { key: key.to_owned(), value: NO_SECRET.to_owned() });
            }
            false => left.push(pair.clone()),
            // Where its file is, the copy says.
            true if ["storage", "file"].contains(&key) => {}
            true => found.remove(&line(pair)),
        }
    }
    Ok(left)
}

/// A zone's keys by which it comes from a copy of its file.
fn served_from(copy: &str) -> [Pair; 4] {
    let keys = [
        ("storage", "\".\"".to_owned()),
        ("file", format!("\"{copy}\"")),
        ("zonefile-sync", "-1".to_owned()),
        ("journal-content", "none".to_owned()),
    ];
    keys.map(|(key, value)| Pair { key: key.to_owned(), value })
}

fn line(pair: &Pair) -> String {
    format!("{}: {}", pair.key, pair.value)
}

/// A section as text.
fn written(name: &str, items: &[Item]) -> String {
    let mut text = format!("{name}:\n");
    for item in items {
        let begins = ["  - "].into_iter().chain(std::iter::repeat("    "));
        text.extend(
            item.iter().zip(begins).map(|(pair, begin)| format!("{begin}{}\n", line(pair))),
        );
    }
    text.push('\n');
    text
}

/// The file of a zone, by its own keys or those of its template.
fn file_of(
    zone: &Item,
    templates: &[&Item],
    path: &Path,
) -> Result<PathBuf, OwnConfigurationError> {
    let value = |item: &Item, key: &str| {
        let found = item.iter().find(|pair| pair.key == key);
        found.map(|pair| unquoted(&pair.value).to_owned())
    };
    let name = value(zone, "domain").unwrap_or_default();
    let template = value(zone, "template").unwrap_or_else(|| "default".to_owned());
    let template = templates.iter().find(|item| value(item, "id").as_ref() == Some(&template));
    let find = |key: &str| value(zone, key).or_else(|| value(template?, key));
    let storage = find("storage").unwrap_or_else(|| "/var/lib/knot".to_owned());
    let file = find("file").unwrap_or_else(|| "%s.zone".to_owned());
    Ok(folder_of(path).join(storage).join(form_of(&file, &name, path)?))
}

/// The name of a file of this form: `%s` is the zone, and `%%` a `%`.
fn form_of(form: &str, zone: &str, path: &Path) -> Result<String, OwnConfigurationError> {
    // The root is nothing here.
    let name = zone.trim_end_matches('.').replace('/', "_");
    file_name((form, "`%s`"), (zone, path), |part| match part {
        's' => Some(name.clone()),
        '%' => Some("%".to_owned()),
        _ => None,
    })
}

fn read_into(
    (path, depth): (&Path, u32),
    found: &mut Found,
    sections: &mut Vec<Section>,
) -> Result<(), OwnConfigurationError> {
    let text = read_file(path)?;
    for (number, whole) in (1..).zip(text.lines()) {
        let bare = without_comment(whole).trim_end();
        let trimmed = bare.trim_start();
        if trimmed.is_empty() || trimmed == "---" {
            continue;
        }
        let begins = trimmed.strip_prefix("- ");
        let pair = begins.unwrap_or(trimmed).trim_start();
        let Some((key, value)) = pair.split_once(':') else {
            let reason = format!("line {number} is no key with a value: `{trimmed}`");
            return Err(fault(path, reason));
        };
        let pair = Pair { key: key.trim().to_owned(), value: value.trim().to_owned() };
        if pair.key == "include" && bare == trimmed {
            let value = unquoted(&pair.value);
            for file in found.included(value, folder_of(path), (path, depth))? {
                read_into((&file, depth + 1), found, sections)?;
            }
        } else if bare == trimmed && begins.is_none() {
            sections.push(Section { name: pair.key, items: Vec::new() });
        } else {
            let Some(section) = sections.last_mut() else {
                let reason = format!("line {number} stands in no section: `{trimmed}`");
                return Err(fault(path, reason));
            };
            match section.items.last_mut().filter(|_| begins.is_none()) {
                Some(item) => item.push(pair),
                None => section.items.push(vec![pair]),
            }
        }
    }
    Ok(())
}

/// A line up to its comment. In quotes a `#` is none.
fn without_comment(line: &str) -> &str {
    let mut is_quoted = false;
    let end = line.char_indices().find(|(_, letter)| {
        is_quoted ^= *letter == '"';
        *letter == '#' && !is_quoted
    });
    end.map_or(line, |(end, _)| &line[..end])
}

#[cfg(test)]
mod tests {
    use dnslab_settings::ServerKind;

    use super::super::tests::{refused, shown};

    #[test]
    fn addresses_and_paths_go_and_the_rest_stays() {
        let main = "# The server of example.org.
server:
    rundir: \"/run/knot\"
    user: knot:knot
    listen: [ 127.0.0.1@53, ::1@53 ]
    udp-workers: 2    # of four
    version: \"# 1\"

log:
  - target: syslog
    any: info

mod-rrl:
  - id: default
    rate-limit: 200

statistics:
    timer: 60
    file: /var/lib/knot/stats.yaml

key:
  - id: partner
    secret: c2VjcmV0

remote:
  - id: second
    address: 192.0.2.2

template:
  - id: default
    storage: \"FOLDER/lib\"
    notify: second
    global-module: mod-rrl/default
  - id: other
    file: \"%s.db\"
    storage: zones

include: zones.conf
";
        let zones = "zone:\n  - domain: example.org\n  - domain: .\n  - domain: 0/25.2.0.192.in-addr.arpa.\n    template: other\n    zonefile-sync: -1\n";
        let files = [
            ("knot.conf", main),
            ("zones.conf", zones),
            ("lib/example.org.zone", ""),
            ("lib/.zone", ""),
            ("zones/0_25.2.0.192.in-addr.arpa.db", ""),
        ];
        insta::assert_snapshot!(shown((ServerKind::Knot, false), &files));
    }

    #[test]
    fn what_knot_would_make_is_refused() {
        let check = |text: &str, expected: &str| {
            refused(ServerKind::Knot, &[("knot.conf", text)], expected);
        };
        check(
            "zone:\n  - domain: a\n    dnssec-signing: on\n",
            "the zone `a` has `dnssec-signing: on`",
        );
        check("template:\n  - id: c\n    catalog-role: interpret\n", "catalog-role: interpret");
        check("zone:\n  - domain: a\n    file: \"%c[0]\"\n", "knows only `%s`");
        check("mod-onlinesign:\n  - id: a\n", "`mod-onlinesign` signs");
        check("server:\n    listen\n", "line 2 is no key");
        check("  listen: 1\n", "line 1 stands in no section");
    }
}
