//! Names as text that every program around a zone reads alike.

use std::fmt::Write as _;

use domain::base::Name;

use super::synthetic::SyntheticZone;

/// A zone's names as text. Host names are the label and [`ZoneText::below`], so a record costs no name.
#[derive(Debug)]
pub(super) struct ZoneText {
    /// With the final dot.
    pub(super) origin: String,
    /// What follows the label of a name directly below the zone.
    pub(super) below: String,
    pub(super) name_server: String,
    pub(super) mailbox: String,
}

impl ZoneText {
    pub(super) fn of(zone: &SyntheticZone) -> Self {
        let origin = name_text(zone.origin());
        let below = if zone.origin().is_root() { origin.clone() } else { format!(".{origin}") };
        let soa = zone.soa();
        let (name_server, mailbox) = (name_text(soa.mname()), name_text(soa.rname()));
        Self { origin, below, name_server, mailbox }
    }
}

/// A name in presentation form (RFC 1035, section 5.1), with the final dot.
///
/// The characters with a backslash are those that BIND and dnspython (FreeIPA's reader of names) write so. A
/// space and what cannot be printed is always three digits, since `nsupdate` divides its lines at spaces.
fn name_text(name: &Name<Vec<u8>>) -> String {
    let mut text = String::new();
    for label in name.iter().filter(|label| !label.is_root()) {
        for octet in label.as_slice().iter().copied() {
            match octet {
                b'"' | b'(' | b')' | b'.' | b';' | b'\\' | b'@' | b'$' => {
                    text.extend(['\\', char::from(octet)]);
                }
                0x21..=0x7e => text.push(char::from(octet)),
                other => write!(text, "\\{other:03}").expect("a string takes any text"),
            }
        }
        text.push('.');
    }
    if text.is_empty() { ".".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr as _;

    use super::*;

    #[test]
    fn names_are_written_as_bind_writes_them() {
        for (name, text) in [
            (".", "."),
            ("Example.test", "Example.test."),
            (r"a\.b.x\032y.\007", r"a\.b.x\032y.\007."),
            (r#"\;\$\@.\(\)\"'*.\\.\228"#, r#"\;\$\@.\(\)\"'*.\\.\228."#),
        ] {
            let name = Name::<Vec<u8>>::from_str(name).unwrap();
            assert_eq!(name_text(&name), text);
            assert_eq!(Name::<Vec<u8>>::from_str(text).unwrap(), name);
        }
    }
}
