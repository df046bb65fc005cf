//! A zone as LDIF (RFC 2849): the entries that FreeIPA keeps in its directory for a zone, and that
//! bind-dyndb-ldap reads for BIND.
//!
//! Object classes and attributes are those of FreeIPA's schema for DNS (`60ipadns.ldif`). The values that are
//! no records are those that `ipa dnszone-add` sets by default.

use std::fmt::{Display, Write as _};
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::directory_suffix::DirectorySuffix;
use super::synthetic::{SERVER_ADDRESS, SyntheticZone};
use super::text::ZoneText;

/// Lines are folded to this many octets, as `ldapsearch` does by default.
const MAX_LINE: usize = 76;

pub(super) fn write(
    zone: &SyntheticZone,
    suffix: &DirectorySuffix,
    file: &mut impl Write,
) -> io::Result<()> {
    let text = ZoneText::of(zone);
    let ttl = zone.ttl.as_secs();
    let base = format!("idnsname={},cn=dns,{suffix}", relative_value(&text.origin));
    let mut ldif = Ldif::begin(file)?;
    zone_entry(zone, &text, &base, &mut ldif)?;
    record_entry(&"ns", &SERVER_ADDRESS, ttl, &base, &mut ldif)?;
    for (host, address) in zone.hosts() {
        record_entry(&host, &address, ttl, &base, &mut ldif)?;
    }
    Ok(())
}

/// The entry of the zone, with the records of its apex. Its parent `cn=dns` is there once FreeIPA's DNS is
/// set up.
fn zone_entry(
    zone: &SyntheticZone,
    text: &ZoneText,
    base: &str,
    ldif: &mut Ldif<impl Write>,
) -> io::Result<()> {
    let soa = zone.soa();
    ldif.entry(&base)?;
    for class in ["top", "idnsRecord", "idnsZone"] {
        ldif.attribute("objectClass", &class)?;
    }
    ldif.attribute("idnsName", &text.origin)?;
    ldif.attribute("idnsZoneActive", &"TRUE")?;
    ldif.attribute("idnsSOAmName", &text.name_server)?;
    ldif.attribute("idnsSOArName", &text.mailbox)?;
    ldif.attribute("idnsSOAserial", &soa.serial())?;
    ldif.attribute("idnsSOArefresh", &soa.refresh().as_secs())?;
    ldif.attribute("idnsSOAretry", &soa.retry().as_secs())?;
    ldif.attribute("idnsSOAexpire", &soa.expire().as_secs())?;
    ldif.attribute("idnsSOAminimum", &soa.minimum().as_secs())?;
    ldif.attribute("idnsAllowQuery", &"any;")?;
    ldif.attribute("idnsAllowTransfer", &"none;")?;
    ldif.attribute("idnsAllowDynUpdate", &"FALSE")?;
    ldif.attribute("dNSTTL", &zone.ttl.as_secs())?;
    ldif.attribute("nSRecord", &text.name_server)
}

fn record_entry(
    label: &impl Display,
    address: &impl Display,
    ttl_s: u32,
    base: &str,
    ldif: &mut Ldif<impl Write>,
) -> io::Result<()> {
    ldif.entry(&format_args!("idnsname={label},{base}"))?;
    ldif.attribute("objectClass", &"top")?;
    ldif.attribute("objectClass", &"idnsRecord")?;
    ldif.attribute("idnsName", label)?;
    ldif.attribute("dNSTTL", &ttl_s)?;
    ldif.attribute("aRecord", address)
}

/// A value as it stands in a distinguished name (RFC 4514, section 2.4). That of a zone has no space, no
/// control character and nothing beyond ASCII (see [`ZoneText`]).
fn relative_value(value: &str) -> String {
    let mut text = String::new();
    for (place, letter) in value.char_indices() {
        if matches!(letter, '"' | '+' | ',' | ';' | '<' | '>' | '\\') || (place, letter) == (0, '#')
        {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

struct Ldif<'a, W> {
    file: &'a mut W,
    /// The line before it is folded. It is kept, so that an entry costs no memory.
    line: String,
    value: String,
}

impl<'a, W: Write> Ldif<'a, W> {
    fn begin(file: &'a mut W) -> io::Result<Self> {
        writeln!(file, "version: 1")?;
        Ok(Self { file, line: String::new(), value: String::new() })
    }

    fn entry(&mut self, name: &impl Display) -> io::Result<()> {
        writeln!(self.file)?;
        self.attribute("dn", name)
    }

    /// Writes an attribute: in base64 if the value cannot stand as it is, folded if it is long.
    fn attribute(&mut self, name: &str, value: &impl Display) -> io::Result<()> {
        self.value.clear();
        write!(self.value, "{value}").expect("a string takes any text");
        self.line.clear();
        self.line.push_str(name);
        if is_safe(&self.value) {
            self.line.push_str(": ");
            self.line.push_str(&self.value);
        } else {
            self.line.push_str(":: ");
            STANDARD.encode_string(&self.value, &mut self.line);
        }
        self.fold()
    }

    /// Writes the line, which is ASCII. What is longer than the first line goes on after a space.
    fn fold(&mut self) -> io::Result<()> {
        let (first, mut rest) = self.line.split_at(self.line.len().min(MAX_LINE));
        self.file.write_all(first.as_bytes())?;
        while !rest.is_empty() {
            let (next, later) = rest.split_at(rest.len().min(MAX_LINE - 1));
            self.file.write_all(b"\n ")?;
            self.file.write_all(next.as_bytes())?;
            rest = later;
        }
        self.file.write_all(b"\n")
    }
}

/// True for a SAFE-STRING (RFC 2849) from which no reader could strip a space.
fn is_safe(value: &str) -> bool {
    let has_safe_ends = !value.starts_with([' ', ':', '<']) && !value.ends_with(' ');
    let is_plain = |octet: u8| octet.is_ascii() && !matches!(octet, b'\0' | b'\n' | b'\r');
    has_safe_ends && value.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ZoneFormat;

    fn text(zone: &str, records: u32, suffix: &str) -> String {
        let zone = SyntheticZone::named(zone, records, Duration::from_secs(5)).unwrap();
        let mut octets = Vec::new();
        let format = ZoneFormat::Ldif { suffix: suffix.parse().unwrap() };
        zone.write_as(&format, &mut octets).unwrap();
        String::from_utf8(octets).unwrap()
    }

    #[test]
    fn the_entries() {
        let expected = "\
            version: 1\n\
            \n\
            dn: idnsname=example.test.,cn=dns,dc=example,dc=test\n\
            objectClass: top\n\
            objectClass: idnsRecord\n\
            objectClass: idnsZone\n\
            idnsName: example.test.\n\
            idnsZoneActive: TRUE\n\
            idnsSOAmName: ns.example.test.\n\
            idnsSOArName: hostmaster.example.test.\n\
            idnsSOAserial: 1\n\
            idnsSOArefresh: 3600\n\
            idnsSOAretry: 3600\n\
            idnsSOAexpire: 86400\n\
            idnsSOAminimum: 5\n\
            idnsAllowQuery: any;\n\
            idnsAllowTransfer: none;\n\
            idnsAllowDynUpdate: FALSE\n\
            dNSTTL: 5\n\
            nSRecord: ns.example.test.\n\
            \n\
            dn: idnsname=ns,idnsname=example.test.,cn=dns,dc=example,dc=test\n\
            objectClass: top\n\
            objectClass: idnsRecord\n\
            idnsName: ns\n\
            dNSTTL: 5\n\
            aRecord: 192.0.2.53\n\
            \n\
            dn: idnsname=host-000001,idnsname=example.test.,cn=dns,dc=example,dc=test\n\
            objectClass: top\n\
            objectClass: idnsRecord\n\
            idnsName: host-000001\n\
            dNSTTL: 5\n\
            aRecord: 10.0.0.1\n";
        assert_eq!(text("example.test", 1, "dc=example,dc=test"), expected);
    }

    fn read(ldif: &str) -> Vec<(String, String)> {
        let unfolded = ldif.replace("\n ", "");
        let lines = unfolded.lines().filter(|line| !line.is_empty()).map(|line| {
            let (name, value) = line.split_once(':').expect("every line has a colon");
            let value = match value.strip_prefix(": ") {
                Some(coded) => String::from_utf8(STANDARD.decode(coded).unwrap()).unwrap(),
                None => value.strip_prefix(' ').unwrap().to_owned(),
            };
            (name.to_owned(), value)
        });
        lines.collect()
    }

    #[track_caller]
    fn check_names(zone: &str, suffix: &str, name: &str, base: &str) {
        let text = text(zone, 1, suffix);
        assert!(text.is_ascii() && text.lines().all(|line| line.len() <= MAX_LINE), "{text}");
        let read = read(&text);
        let values = |wanted: &str| {
            let all = read.iter().filter(|(name, _)| name == wanted);
            all.map(|(_, value)| value.clone()).collect::<Vec<_>>()
        };
        assert_eq!(values("idnsName"), [name, "ns", "host-000001"]);
        let below = |label: &str| format!("idnsname={label},{base}");
        assert_eq!(values("dn"), [base.to_owned(), below("ns"), below("host-000001")]);
    }

    #[test]
    fn odd_names_come_back_as_they_were() {
        check_names(".", "dc=x", ".", "idnsname=.,cn=dns,dc=x");
        // A colon or an angle bracket at the start would be taken for LDIF's own.
        check_names(":a.x", "dc=x", ":a.x.", "idnsname=:a.x.,cn=dns,dc=x");
        check_names("<a.x", "dc=x", "<a.x.", r"idnsname=\<a.x.,cn=dns,dc=x");
        check_names("#a,b.x", "dc=x", "#a,b.x.", r"idnsname=\#a\,b.x.,cn=dns,dc=x");
        check_names(
            r"a\.b\032.x",
            "o=Größe",
            r"a\.b\032.x.",
            r"idnsname=a\\.b\\032.x.,cn=dns,o=Größe",
        );
        let long = ["abcdefghijklmnopqrstuvwxyz"; 8].join(".");
        let base = format!("idnsname={long}.,cn=dns,dc=example,dc=test");
        check_names(&long, "dc=example,dc=test", &format!("{long}."), &base);
    }

    #[test]
    fn what_cannot_stand_as_it_is() {
        for value in ["", "x", "a b", "a:<b", "x\u{7f}"] {
            assert!(is_safe(value), "{value:?}");
        }
        for value in [" x", "x ", ":x", "<x", "a\nb", "a\rb", "a\0b", "ö"] {
            assert!(!is_safe(value), "{value:?}");
        }
    }
}
