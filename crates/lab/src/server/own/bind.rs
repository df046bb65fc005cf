//! named.conf: BIND 9 Administrator Reference Manual, chapter 8.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::{Found, NO_SECRET, OwnConfigurationError, fault, folder_of, read_file, unquoted};
use crate::server::named_conf::tokens;

/// Statements at the top that say where others reach the server.
const TOP: [&str; 2] = ["controls", "statistics-channels"];

/// Statements in `options` and `view` that say where the server is reached and what it writes, and those by which it
/// tells others of its zones.
const OPTIONS: [&str; 35] = [
    "allow-new-zones",
    "also-notify",
    "alt-transfer-source",
    "alt-transfer-source-v6",
    "dialup",
    "directory",
    "dump-file",
    "heartbeat-interval",
    "http-port",
    "https-port",
    "journal",
    "key-directory",
    "listen-on",
    "listen-on-v6",
    "lmdb-mapsize",
    "lock-file",
    "managed-keys-directory",
    "memstatistics-file",
    "new-zones-directory",
    "notify",
    "notify-source",
    "notify-source-v6",
    "parental-source",
    "parental-source-v6",
    "pid-file",
    "port",
    "query-source",
    "query-source-v6",
    "recursing-file",
    "secroots-file",
    "session-keyfile",
    "statistics-file",
    "tls-port",
    "transfer-source",
    "transfer-source-v6",
];

/// Statements in `options` and `view` by which it asks others.
const ASKING: [&str; 5] =
    ["dnssec-validation", "forward", "forwarders", "recursion", "trust-anchor-telemetry"];

/// What takes the data of zones from other programs.
const FOREIGN: [&str; 3] = ["dlz", "dyndb", "catalog-zones"];

/// Statements of a zone, beside [`OPTIONS`], that name other servers.
const ZONE: [&str; 4] = ["notify-to-soa", "notify-delay", "parental-agents", "checkds"];

/// Statements that only a secondary zone has, beside [`OPTIONS`].
const SECONDARY: [&str; 18] = [
    "allow-notify",
    "allow-update-forwarding",
    "ixfr-from-differences",
    "masterfile-style",
    "masters",
    "max-refresh-time",
    "max-retry-time",
    "max-transfer-idle-in",
    "max-transfer-time-in",
    "min-refresh-time",
    "min-retry-time",
    "min-transfer-rate-in",
    "multi-master",
    "primaries",
    "request-expire",
    "request-ixfr",
    "try-tcp-refresh",
    "use-alt-transfer-source",
];

/// Statements by which BIND signs a zone itself.
const SIGNING: [&str; 3] = ["dnssec-policy", "inline-signing", "auto-dnssec"];

/// The statements of `options`, and all other statements.
pub(super) fn read(
    path: &Path,
    asks_others: bool,
    found: &mut Found,
) -> Result<[String; 2], OwnConfigurationError> {
    let mut folder = folder_of(path).to_owned();
    let text = whole(path, &mut folder, 0, found)?;
    let statements = statements(&text, path)?;
    let options = statements.iter().find(|statement| statement.name == "options");
    let options = options.and_then(Statement::block).unwrap_or_default();
    let edits = BTreeMap::new();
    let mut own = Own { path, folder, text: &text, found, edits, asks_others };
    let mut inside = String::new();
    for statement in &statements {
        let block = statement.block().unwrap_or_default();
        match statement.name.as_str() {
            name if TOP.contains(&name) => own.remove(statement),
            name if FOREIGN.contains(&name) => {
                return Err(own.foreign("the configuration", statement));
            }
            "options" => {
                own.options(block)?;
                let body = block.first().zip(block.last());
                let body = body.map(|(first, last)| first.place.start..last.place.end);
                inside.extend(body.map(|body| format!("    {}\n", own.edited(body).trim())));
                own.edits.insert(statement.place.start, (statement.place.end, String::new()));
            }
            "logging" => own.logging(block),
            "key" => own.key(block),
            "view" => {
                own.options(block)?;
                block.iter().filter(|one| one.name == "key").for_each(|key| {
                    own.key(key.block().unwrap_or_default());
                });
                for zone in block.iter().filter(|one| one.name == "zone") {
                    own.zone(zone, [block, options])?;
                }
            }
            "zone" => own.zone(statement, [&[], options])?,
            _ => {}
        }
    }
    let others = own.edited(0..text.len());
    Ok([inside, others])
}

/// The text of a file with those that it includes. BIND looks for a file from the folder of `directory`, as soon as it has
/// read that.
fn whole(
    path: &Path,
    folder: &mut PathBuf,
    depth: u32,
    found: &mut Found,
) -> Result<String, OwnConfigurationError> {
    let text = read_file(path)?;
    let (mut whole, mut done, mut begins) = (String::new(), 0, true);
    let mut tokens = tokens(&text).peekable();
    while let Some((token, place)) = tokens.next() {
        let is_first = std::mem::replace(&mut begins, [";", "{", "}"].contains(&token));
        if !is_first {
            continue;
        }
        if token.eq_ignore_ascii_case("directory") {
            if let Some((named, _)) = tokens.peek() {
                *folder = folder_of(path).join(unquoted(named));
            }
        } else if token.eq_ignore_ascii_case("include") {
            let Some((pattern, _)) = tokens.next() else { break };
            let end = tokens.next_if(|(token, _)| *token == ";");
            whole.push_str(&text[done..place.start]);
            for file in found.included(unquoted(pattern), folder, (path, depth))? {
                whole.push_str(&self::whole(&file, folder, depth + 1, found)?);
                whole.push('\n');
            }
            (done, begins) = (end.map_or(text.len(), |(_, end)| end.end), true);
        }
    }
    whole.push_str(&text[done..]);
    Ok(whole)
}

/// A statement with its semicolon, if it has one.
struct Statement<'a> {
    /// Its first word, in lower case: BIND reads words in either.
    name: String,
    parts: Vec<Part<'a>>,
    place: Range<usize>,
}

enum Part<'a> {
    Word(&'a str, Range<usize>),
    Block(Vec<Statement<'a>>),
}

impl<'a> Statement<'a> {
    fn of(parts: Vec<Part<'a>>, place: Range<usize>) -> Self {
        let name = match parts.first() {
            Some(Part::Word(word, _)) => word.to_ascii_lowercase(),
            Some(Part::Block(_)) | None => String::new(),
        };
        Self { name, parts, place }
    }

    /// Its first block.
    fn block(&self) -> Option<&[Self]> {
        self.parts.iter().find_map(|part| match part {
            Part::Block(statements) => Some(statements.as_slice()),
            Part::Word(..) => None,
        })
    }

    /// The word behind its name.
    fn value(&self) -> Option<(&'a str, Range<usize>)> {
        self.parts.iter().skip(1).find_map(|part| match part {
            Part::Word(word, place) => Some((*word, place.clone())),
            Part::Block(_) => None,
        })
    }
}

fn statements<'a>(text: &'a str, path: &Path) -> Result<Vec<Statement<'a>>, OwnConfigurationError> {
    let mut tokens = tokens(text);
    let (read, ended) = block(&mut tokens);
    match ended {
        false => Ok(read),
        true => Err(fault(path, "a `}` has no `{` before it")),
    }
}

/// The statements up to the `}` of a block, which is found or not.
fn block<'a>(
    tokens: &mut impl Iterator<Item = (&'a str, Range<usize>)>,
) -> (Vec<Statement<'a>>, bool) {
    let (mut statements, mut parts) = (Vec::new(), Vec::new());
    let mut start = None;
    let mut last = 0;
    while let Some((token, place)) = tokens.next() {
        let begun = *start.get_or_insert(place.start);
        last = place.end;
        match token {
            ";" => {
                statements.push(Statement::of(std::mem::take(&mut parts), begun..place.end));
                start = None;
            }
            "{" => parts.push(Part::Block(block(tokens).0)),
            "}" => return (statements, true),
            word => parts.push(Part::Word(word, place)),
        }
    }
    // What does not end is BIND's to name.
    statements.extend(start.map(|start| Statement::of(parts, start..last)));
    (statements, false)
}

struct Own<'a> {
    path: &'a Path,
    /// Where relative paths start.
    folder: PathBuf,
    text: &'a str,
    found: &'a mut Found,
    /// What stands instead of a part of the text, by its start: the end of the part, and the text.
    edits: BTreeMap<usize, (usize, String)>,
    asks_others: bool,
}

impl Own<'_> {
    fn remove(&mut self, statement: &Statement<'_>) {
        self.found.remove(&self.text[statement.place.clone()]);
        self.edits.insert(statement.place.start, (statement.place.end, String::new()));
    }

    fn replace(&mut self, place: Range<usize>, text: String) {
        self.edits.insert(place.start, (place.end, text));
    }

    /// A part of the text with its edits.
    fn edited(&self, part: Range<usize>) -> String {
        let (mut text, mut done) = (String::new(), part.start);
        for (start, (end, instead)) in self.edits.range(part.clone()) {
            // One that stands in another was taken out with it.
            if *start >= done {
                text.push_str(&self.text[done..*start]);
                text.push_str(instead);
                done = *end;
            }
        }
        text.push_str(&self.text[done.min(part.end)..part.end]);
        // Lines of which only their indentation is left.
        let lines = text.lines().filter(|line| line.is_empty() || !line.trim().is_empty());
        lines.map(|line| format!("{line}\n")).collect()
    }

    fn options(&mut self, block: &[Statement<'_>]) -> Result<(), OwnConfigurationError> {
        let is_socket = |statement: &Statement<'_>| {
            statement.name == "dnstap-output"
                && statement.value().is_some_and(|(way, _)| way.eq_ignore_ascii_case("unix"))
        };
        let taps_elsewhere = block.iter().any(is_socket);
        for statement in block {
            match statement.name.as_str() {
                name if OPTIONS.contains(&name) => self.remove(statement),
                name if ASKING.contains(&name) && !self.asks_others => self.remove(statement),
                name if SIGNING.contains(&name) => {
                    self.is_unsigned("the configuration", statement)?
                }
                name if FOREIGN.contains(&name) => {
                    return Err(self.foreign("the configuration", statement));
                }
                name if name.starts_with("dnstap") && taps_elsewhere => self.remove(statement),
                "dnstap-output" => self.output(statement, "file"),
                "bindkeys-file" => self.copied(statement),
                "geoip-directory" => self.absolute(statement),
                _ => {}
            }
        }
        Ok(())
    }

    /// A path that is only read.
    fn absolute(&mut self, statement: &Statement<'_>) {
        let value = statement.value().filter(|(path, _)| !["none", "\"\""].contains(path));
        if let Some((path, place)) = value {
            let whole = self.folder.join(unquoted(path));
            self.replace(place, format!("\"{}\"", whole.display()));
        }
    }

    /// A file that is copied.
    fn copied(&mut self, statement: &Statement<'_>) {
        if let Some((path, place)) = statement.value() {
            let copy = self.found.copy(self.folder.join(unquoted(path)));
            self.replace(place, format!("\"{copy}\""));
        }
    }

    /// A file that is written, behind this word: it goes into the server's folder.
    fn output(&mut self, statement: &Statement<'_>, behind: &str) {
        let mut is_next = false;
        for part in &statement.parts {
            let Part::Word(word, place) = part else { continue };
            if is_next {
                let name = self.found.name(Path::new(unquoted(word)));
                self.replace(place.clone(), format!("\"{name}\""));
            }
            is_next = word.eq_ignore_ascii_case(behind);
        }
    }

    /// A key keeps its name alone.
    fn key(&mut self, block: &[Statement<'_>]) {
        let secrets = block.iter().filter(|statement| statement.name == "secret");
        for (_, place) in secrets.filter_map(Statement::value) {
            self.replace(place, format!("\"{NO_SECRET}\""));
        }
    }

    fn foreign(&self, place: &str, statement: &Statement<'_>) -> OwnConfigurationError {
        let reason = format!(
            "{place} has `{}`: zones that come from elsewhere would be taken from there while it is measured; give their \
             files to a configuration without it",
            statement.name
        );
        fault(self.path, reason)
    }

    fn logging(&mut self, block: &[Statement<'_>]) {
        let channels = block.iter().filter(|statement| statement.name == "channel");
        for statement in channels.filter_map(Statement::block).flatten() {
            if statement.name == "file" {
                self.output(statement, "file");
            }
        }
    }

    fn is_unsigned(
        &self,
        place: &str,
        statement: &Statement<'_>,
    ) -> Result<(), OwnConfigurationError> {
        match statement.value().map(|(value, _)| unquoted(value)) {
            Some("none" | "no" | "off") => Ok(()),
            value => Err(fault(
                self.path,
                format!(
                    "{place} has `{} {}`, so BIND would sign while it is measured: write its signed file (`named-compilezone`, \
                     or a transfer) and a zone without that statement into a configuration of its own",
                    statement.name,
                    value.unwrap_or("{ ... }")
                ),
            )),
        }
    }

    /// `around` are the statements of its view and of the options, which hold where it says nothing.
    fn zone(
        &mut self,
        zone: &Statement<'_>,
        around: [&[Statement<'_>]; 2],
    ) -> Result<(), OwnConfigurationError> {
        let Some(block) = zone.block() else { return Ok(()) };
        let name = zone.value().map_or("", |(name, _)| unquoted(name));
        let find = |name: &str| block.iter().find(|statement| statement.name == name);
        let has = |name: &str| {
            let outside = around.iter().any(|around| around.iter().any(|one| one.name == name));
            outside || find(name).is_some()
        };
        let place = format!("the zone `{name}`");
        if let Some(foreign) = find("dlz").or_else(|| find("database"))
            && !foreign.value().is_some_and(|(way, _)| unquoted(way).starts_with("_builtin"))
        {
            return Err(self.foreign(&place, foreign));
        }
        let kind = find("type").and_then(Statement::value);
        let kind_name =
            kind.as_ref().map(|(kind, _)| kind.to_ascii_lowercase()).unwrap_or_default();
        let has_primaries = find("primaries").or_else(|| find("masters")).is_some();
        let is_secondary = match kind_name.as_str() {
            "secondary" | "slave" | "mirror" => true,
            "redirect" if has_primaries => true,
            "primary" | "master" | "hint" | "redirect" => false,
            // It asks others, and a stub keeps in a file what they say.
            "stub" | "static-stub" | "forward" if !self.asks_others => {
                self.remove(zone);
                return Ok(());
            }
            _ => {
                block.iter().filter(|one| one.name == "file").for_each(|file| self.remove(file));
                return Ok(());
            }
        };
        for statement in block {
            match statement.name.as_str() {
                key if OPTIONS.contains(&key) || ZONE.contains(&key) => self.remove(statement),
                key if SIGNING.contains(&key) => self.is_unsigned(&place, statement)?,
                key if is_secondary && SECONDARY.contains(&key) => self.remove(statement),
                "file" => self.copied(statement),
                _ => {}
            }
        }
        let Some((_, at)) = kind.filter(|_| is_secondary) else { return Ok(()) };
        if find("file").is_none() {
            let reason = format!(
                "{place} has no `file`: it is only where its primary is, and dnslab transfers nothing"
            );
            return Err(fault(self.path, reason));
        }
        self.found.remove(&format!("type {kind_name};"));
        let kind = if kind_name == "redirect" { "redirect" } else { "primary" };
        // The file of a secondary zone is raw by default, and nobody asked whether its names are good ones.
        let defaults =
            [("masterfile-format", "raw"), ("check-names", "ignore"), ("check-integrity", "no")];
        let defaults = defaults.into_iter().filter(|(name, _)| !has(name));
        let defaults: String = defaults.map(|(name, value)| format!("; {name} {value}")).collect();
        self.replace(at, format!("{kind}{defaults}"));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use dnslab_settings::ServerKind;

    use super::super::tests::{refused, shown};

    const MAIN: &str = "// The server of example.org.
include \"keys.conf\";
options {
    Directory \"FOLDER/cache\"; /* as Debian has it */
    listen-on port 53 { 192.0.2.1; };
    Listen-On-v6 { any; };
    pid-file \"/run/named.pid\";
    recursion yes;
    forwarders { 192.0.2.8; };
    rate-limit { responses-per-second 20; };
    also-notify { 192.0.2.9; };
    allow-transfer { key partner; };
    dnstap { client; };
    dnstap-output unix \"/run/dnstap.sock\";
    version \"5\\\" wide\";
};
controls { inet 127.0.0.1 allow { localhost; } keys { rndc; }; };
logging {
    channel queries { file \"/var/log/named/queries.log\" versions 3 size 5m; print-time yes; };
    channel others { file \"queries.log\"; };
    category queries { queries; };
};
include \"zones/*.conf\";
view \"inside\" {
    match-clients { 10.0.0.0/8; };
    notify yes;
    zone \"example.org\" { type master; file \"db.example.org\"; notify explicit; };
};
view \"outside\" {
    masterfile-format text;
    zone \"example.org\" IN { type slave; masters { 192.0.2.3 key partner; }; file \"FOLDER/raw\"; };
    zone \"internal\" { type forward; forwarders { 10.0.0.1; }; };
    zone \"x\" { type stub; primaries { 192.0.2.3; }; file \"x.stub\"; };
    zone \".\" { type hint; file \"FOLDER/root.hints\"; };
};
";

    const FILES: [(&str, &str); 8] = [
        ("named.conf", MAIN),
        ("keys.conf", "key partner { algorithm hmac-sha256; secret \"c2VjcmV0\"; };\n"),
        (
            "cache/zones/net.conf",
            "Zone net { Type Secondary; primaries { 192.0.2.3; }; check-names warn; File net; };\n",
        ),
        ("cache/net", ""),
        ("cache/db.example.org", ""),
        ("cache/db.example.org.jnl", ""),
        ("raw", ""),
        ("root.hints", ""),
    ];

    #[test]
    fn addresses_and_paths_go_and_the_rest_stays() {
        insta::assert_snapshot!(shown((ServerKind::Bind, false), &FILES));
    }

    #[test]
    fn whom_it_asks_stays_where_that_is_wanted() {
        insta::assert_snapshot!(shown((ServerKind::Bind, true), &FILES));
    }

    #[test]
    fn what_needs_others_is_refused() {
        let check = |text: &str, expected: &str| {
            refused(ServerKind::Bind, &[("named.conf", text), ("f", "")], expected);
        };
        check("zone \"a\" { type primary; file \"f\"; dnssec-policy default; };", "would sign");
        check("zone \"a\" { type primary; file \"f\"; dnssec-policy insecure; };", "would sign");
        check("options { dnssec-policy \"mine\"; };", "has `dnssec-policy mine`");
        check("view v { auto-dnssec maintain; };", "has `auto-dnssec maintain`");
        check("zone a { type slave; masters { 192.0.2.1; }; };", "the zone `a` has no `file`");
        check("options { recursion no; }; };", "a `}` has no `{`");
        check("dyndb \"ipa\" \"ldap.so\" { uri \"ldapi://x\"; };", "has `dyndb`");
        check("zone a { type primary; database \"dlopen x\"; };", "the zone `a` has `database`");
        check("options { catalog-zones { zone \"c\"; }; };", "has `catalog-zones`");
    }

    #[test]
    fn a_configuration_without_options_has_none() {
        let text = "zone \"a\" { type primary; file \"f\"; dnssec-policy none; };\n";
        let files = [("named.conf", text), ("f", "")];
        insta::assert_snapshot!(shown((ServerKind::Bind, false), &files));
    }
}
