//! named.conf: BIND 9 Administrator Reference Manual, chapter 8.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::{Found, OwnConfigurationError, fault, included, read_file, unquoted};
use crate::server::named_conf::tokens;

/// Statements at the top that say where others reach the server.
const TOP: [&str; 2] = ["controls", "statistics-channels"];

/// Statements in `options` and `view` that say where the server is reached and what it writes, and those by which it
/// tells others of its zones.
const OPTIONS: [&str; 35] = [
    "alt-transfer-source",
    "alt-transfer-source-v6",
    "allow-new-zones",
    "also-notify",
    "catalog-zones",
    "directory",
    "dump-file",
    "heartbeat-interval",
    "dialup",
    "http-port",
    "https-port",
    "journal",
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

/// Statements of a zone that name other servers or files that are written.
const ZONE: [&str; 10] = [
    "also-notify",
    "dialup",
    "journal",
    "notify",
    "notify-source",
    "notify-source-v6",
    "notify-to-soa",
    "notify-delay",
    "parental-agents",
    "checkds",
];

/// Statements that only a secondary zone has.
const SECONDARY: [&str; 21] = [
    "allow-notify",
    "allow-update-forwarding",
    "alt-transfer-source",
    "alt-transfer-source-v6",
    "masters",
    "max-refresh-time",
    "max-retry-time",
    "max-transfer-idle-in",
    "max-transfer-time-in",
    "min-refresh-time",
    "min-retry-time",
    "multi-master",
    "primaries",
    "request-expire",
    "request-ixfr",
    "transfer-source",
    "transfer-source-v6",
    "try-tcp-refresh",
    "use-alt-transfer-source",
    "ixfr-from-differences",
    "masterfile-style",
];

/// Statements by which BIND signs a zone itself.
const SIGNING: [&str; 3] = ["dnssec-policy", "inline-signing", "auto-dnssec"];

/// The statements of `options`, and all other statements.
pub(super) fn read(path: &Path, found: &mut Found) -> Result<[String; 2], OwnConfigurationError> {
    let text = whole(path, path.parent().unwrap_or(Path::new("/")), 0)?;
    let statements = statements(&text, path)?;
    let options = statements.iter().find(|statement| statement.name() == "options");
    let folder =
        options.and_then(|options| options.block()?.iter().find(|one| one.name() == "directory"));
    let folder = folder.and_then(|folder| folder.words().nth(1)).map(unquoted);
    let base = path.parent().unwrap_or(Path::new("/"));
    let mut own = Own {
        path,
        folder: base.join(folder.unwrap_or("")),
        text: &text,
        found,
        edits: BTreeMap::new(),
    };
    let mut inside = String::new();
    for statement in &statements {
        let name = statement.name();
        match (name, statement.block()) {
            (name, _) if TOP.contains(&name) => own.remove(statement),
            ("options", Some(block)) => {
                own.options(block)?;
                let body = block.first().zip(block.last());
                let body = body.map(|(first, last)| first.place.start..last.place.end);
                inside.extend(body.map(|body| format!("    {}\n", own.edited(body).trim())));
                own.edits.insert(statement.place.start, (statement.place.end, String::new()));
            }
            ("logging", Some(block)) => own.logging(block),
            ("view", Some(block)) => {
                own.options(block)?;
                for zone in block.iter().filter(|one| one.name() == "zone") {
                    own.zone(zone)?;
                }
            }
            ("zone", _) => own.zone(statement)?,
            _ => {}
        }
    }
    let others = own.edited(0..text.len());
    Ok([inside, others])
}

/// The text of a file with those that it includes.
fn whole(path: &Path, folder: &Path, depth: u32) -> Result<String, OwnConfigurationError> {
    let text = read_file(path)?;
    let (mut whole, mut done, mut before) = (String::new(), 0, None);
    let mut found = tokens(&text).peekable();
    while let Some((token, place)) = found.next() {
        let begins = before.is_none_or(|before| [";", "{", "}"].contains(&before));
        before = Some(token);
        if token != "include" || !begins {
            continue;
        }
        let Some((pattern, _)) = found.next() else { break };
        let end = found.next_if(|(token, _)| *token == ";").map_or(text.len(), |(_, end)| end.end);
        whole.push_str(&text[done..place.start]);
        for file in included(unquoted(pattern), folder, path, depth)? {
            whole.push_str(&self::whole(&file, folder, depth + 1)?);
            whole.push('\n');
        }
        (done, before) = (end, Some(";"));
    }
    whole.push_str(&text[done..]);
    Ok(whole)
}

/// A statement with its semicolon, if it has one.
struct Statement<'a> {
    parts: Vec<Part<'a>>,
    place: Range<usize>,
}

enum Part<'a> {
    Word(&'a str, Range<usize>),
    Block(Vec<Statement<'a>>),
}

impl<'a> Statement<'a> {
    fn words(&self) -> impl Iterator<Item = &'a str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Word(word, _) => Some(*word),
            Part::Block(_) => None,
        })
    }

    fn name(&self) -> &'a str {
        self.words().next().unwrap_or_default()
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
                let parts = std::mem::take(&mut parts);
                statements.push(Statement { parts, place: begun..place.end });
                start = None;
            }
            "{" => parts.push(Part::Block(block(tokens).0)),
            "}" => return (statements, true),
            word => parts.push(Part::Word(word, place)),
        }
    }
    // What does not end is BIND's to name.
    if let Some(start) = start {
        statements.push(Statement { parts, place: start..last });
    }
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
        for statement in block {
            match statement.name() {
                name if OPTIONS.contains(&name) => self.remove(statement),
                "dnssec-policy" => self.is_unsigned("options", statement)?,
                "key-directory" | "geoip-directory" | "bindkeys-file" => self.absolute(statement),
                "dnstap-output" => self.output(statement, &["file"]),
                _ => {}
            }
        }
        Ok(())
    }

    /// A path that is only read.
    fn absolute(&mut self, statement: &Statement<'_>) {
        if let Some((path, place)) = statement.value() {
            let whole = self.folder.join(unquoted(path));
            self.replace(place, format!("\"{}\"", whole.display()));
        }
    }

    /// A file that is written, behind one of these words: it goes into the server's folder.
    fn output(&mut self, statement: &Statement<'_>, behind: &[&str]) {
        let mut is_next = false;
        for part in &statement.parts {
            let Part::Word(word, place) = part else { continue };
            if is_next {
                let name = Path::new(unquoted(word)).file_name().unwrap_or_default();
                let name = name.to_string_lossy().into_owned();
                self.replace(place.clone(), format!("\"{name}\""));
            }
            is_next = behind.contains(word);
        }
    }

    fn logging(&mut self, block: &[Statement<'_>]) {
        let channels = block.iter().filter(|statement| statement.name() == "channel");
        for statement in channels.filter_map(|channel| channel.block()).flatten() {
            if statement.name() == "file" {
                self.output(statement, &["file"]);
            }
        }
    }

    fn is_unsigned(
        &self,
        place: &str,
        statement: &Statement<'_>,
    ) -> Result<(), OwnConfigurationError> {
        match statement.value().map(|(value, _)| unquoted(value)) {
            Some("none" | "no" | "off" | "insecure") => Ok(()),
            value => Err(fault(
                self.path,
                format!(
                    "{place} has `{} {}`, so BIND would sign while it is measured: write its signed file (`named-compilezone`, \
                     or a transfer) and a zone without that statement into a configuration of its own",
                    statement.name(),
                    value.unwrap_or("{ ... }")
                ),
            )),
        }
    }

    fn zone(&mut self, zone: &Statement<'_>) -> Result<(), OwnConfigurationError> {
        let Some(block) = zone.block() else { return Ok(()) };
        let name = zone.value().map_or("", |(name, _)| unquoted(name));
        let find = |name: &str| block.iter().find(|statement| statement.name() == name);
        let kind = find("type").and_then(|kind| kind.value());
        let is_secondary = matches!(&kind, Some(("secondary" | "slave" | "mirror", _)));
        let is_primary = matches!(&kind, Some(("primary" | "master" | "hint" | "redirect", _)));
        if !is_secondary && !is_primary {
            return Ok(());
        }
        let place = format!("the zone `{name}`");
        for statement in block {
            match statement.name() {
                key if ZONE.contains(&key) => self.remove(statement),
                key if SIGNING.contains(&key) => self.is_unsigned(&place, statement)?,
                key if is_secondary && SECONDARY.contains(&key) => self.remove(statement),
                "file" => {
                    if let Some((file, at)) = statement.value() {
                        let copy = self.found.copy(self.folder.join(unquoted(file)));
                        self.replace(at, format!("\"{copy}\""));
                    }
                }
                _ => {}
            }
        }
        let Some((kind, at)) = kind.filter(|_| is_secondary) else { return Ok(()) };
        if find("file").is_none() {
            let reason = format!(
                "{place} has no `file`: it is only where its primary is, and dnslab transfers nothing"
            );
            return Err(fault(self.path, reason));
        }
        self.found.remove(&format!("type {kind};"));
        // The file of a secondary zone is raw by default.
        let raw = if find("masterfile-format").is_some() { "" } else { "; masterfile-format raw" };
        self.replace(at, format!("primary{raw}"));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{refused, shown};
    use crate::server::ServerKind;

    #[test]
    fn addresses_and_paths_go_and_the_rest_stays() {
        let main = "// The server of example.org.
include \"keys.conf\";
options {
    directory \"/var/cache/bind\"; /* as Debian has it */
    listen-on port 53 { 192.0.2.1; };
    listen-on-v6 { any; };
    pid-file \"/run/named.pid\";
    recursion no;
    rate-limit { responses-per-second 20; };
    also-notify { 192.0.2.9; };
    allow-transfer { key partner; };
};
controls { inet 127.0.0.1 allow { localhost; } keys { rndc; }; };
logging {
    channel queries { file \"/var/log/named/queries.log\" versions 3 size 5m; print-time yes; };
    category queries { queries; };
};
view \"inside\" {
    match-clients { 10.0.0.0/8; };
    notify yes;
    zone \"example.org\" { type master; file \"db.example.org\"; notify explicit; };
};
view \"outside\" {
    zone \"example.org\" IN { type slave; masters { 192.0.2.3 key partner; }; file \"/srv/raw\"; };
    zone \"example.net\" { type secondary; masterfile-format text; primaries { 192.0.2.3; }; file \"net\"; };
    zone \"internal\" { type forward; forwarders { 10.0.0.1; }; };
    zone \".\" { type hint; file \"/usr/share/dns/root.hints\"; };
};
";
        let keys = "key partner { algorithm hmac-sha256; secret \"c2VjcmV0\"; };\n";
        insta::assert_snapshot!(shown(
            ServerKind::Bind,
            &[("named.conf", main), ("keys.conf", keys)]
        ));
    }

    #[test]
    fn what_needs_others_is_refused() {
        let check = |text: &str, expected: &str| {
            refused(ServerKind::Bind, &[("named.conf", text)], expected);
        };
        check("zone \"a\" { type primary; file \"f\"; dnssec-policy default; };", "would sign");
        check("options { dnssec-policy \"mine\"; };", "options has `dnssec-policy mine`");
        check("zone a { type slave; masters { 192.0.2.1; }; };", "the zone `a` has no `file`");
        check("options { recursion no; }; };", "a `}` has no `{`");
    }

    #[test]
    fn a_configuration_without_options_has_none() {
        let text = "zone \"a\" { type primary; file \"f\"; dnssec-policy none; };\n";
        insta::assert_snapshot!(shown(ServerKind::Bind, &[("named.conf", text)]));
    }
}
