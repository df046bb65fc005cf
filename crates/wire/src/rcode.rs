//! Response codes: of the header, 0 to 15, or extended by an OPT record to 12 bits (RFC 6891, section 6.1.3).
//!
//! The table is IANA's "DNS RCODEs" (RFC 6895, section 2.3). Code 16 is BADVERS, as in OPT records; TSIG
//! records call it BADSIG.

use std::borrow::Cow;

macro_rules! rcodes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        $($(#[$doc])* pub const $name: u16 = $code;)*

        const TABLE: &[(u16, &str)] = &[$(($code, stringify!($name))),*];
    };
}

rcodes! {
    /// No error (RFC 1035)
    NOERROR = 0;
    /// The query is broken (RFC 1035)
    FORMERR = 1;
    /// The server cannot answer now (RFC 1035)
    SERVFAIL = 2;
    /// The name does not exist (RFC 1035)
    NXDOMAIN = 3;
    /// The opcode or the type is not implemented (RFC 1035)
    NOTIMP = 4;
    /// The server does not answer this to this client (RFC 1035)
    REFUSED = 5;
    /// A name exists that must not (RFC 2136), or becomes too long by a DNAME record (RFC 6672)
    YXDOMAIN = 6;
    /// An RRset exists that must not (RFC 2136)
    YXRRSET = 7;
    /// An RRset does not exist that must (RFC 2136)
    NXRRSET = 8;
    /// The server is not authoritative for the zone (RFC 2136), or refuses a signature (RFC 8945)
    NOTAUTH = 9;
    /// A name is not in the zone (RFC 2136)
    NOTZONE = 10;
    /// A type of DNS Stateful Operations is not implemented (RFC 8490)
    DSOTYPENI = 11;
    /// The version of EDNS is not known (RFC 6891)
    BADVERS = 16;
    /// The key is not known (RFC 8945)
    BADKEY = 17;
    /// The signature is out of its time (RFC 8945)
    BADTIME = 18;
    /// The mode of the TKEY record is not known (RFC 2930)
    BADMODE = 19;
    /// The name of the key is there already (RFC 2930)
    BADNAME = 20;
    /// The algorithm is not known (RFC 2930)
    BADALG = 21;
    /// The signature is cut too short (RFC 8945)
    BADTRUNC = 22;
    /// The server wants another cookie (RFC 7873)
    BADCOOKIE = 23;
}

/// The mnemonic of a response code; `RCODE12` for one that has none.
#[must_use]
pub fn rcode_name(rcode: u16) -> Cow<'static, str> {
    match TABLE.iter().find(|(code, _)| *code == rcode) {
        Some((_, name)) => Cow::Borrowed(name),
        None => Cow::Owned(format!("RCODE{rcode}")),
    }
}

/// The response code with this mnemonic, as [`rcode_name`] writes it. The case of letters does not matter.
#[must_use]
pub fn by_name(name: &str) -> Option<u16> {
    let known = TABLE.iter().find(|(_, known)| known.eq_ignore_ascii_case(name));
    known.map(|(code, _)| *code).or_else(|| by_number(name))
}

/// A code that has no mnemonic: `RCODE12`.
fn by_number(name: &str) -> Option<u16> {
    let (prefix, digits) = name.split_at_checked("RCODE".len())?;
    let is_plain = !digits.starts_with('0') && digits.bytes().all(|digit| digit.is_ascii_digit());
    let code = digits.parse().ok().filter(|code| *code < 1 << 12)?;
    let is_unnamed = TABLE.iter().all(|(known, _)| *known != code);
    (prefix.eq_ignore_ascii_case("RCODE") && is_plain && is_unnamed).then_some(code)
}

/// The mnemonics of all codes that have one.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_without_a_name_are_numbered() {
        for (rcode, name) in [(0, "NOERROR"), (12, "RCODE12"), (16, "BADVERS"), (24, "RCODE24")] {
            assert_eq!(rcode_name(rcode), name);
        }
        let names: std::collections::HashSet<_> = (0..4096).map(rcode_name).collect();
        assert_eq!(names.len(), 4096, "two codes have one name");
    }

    #[test]
    fn names_are_found() {
        for (code, name) in TABLE {
            assert_eq!(by_name(name), Some(*code));
        }
        for code in 0..1 << 12 {
            assert_eq!(by_name(&rcode_name(code)), Some(code));
        }
        assert_eq!(by_name("badvers"), Some(BADVERS));
        for wrong in ["RCODE3", "RCODE4096", "RCODE012", "RCODE+12", "RCODE", "BADSIG", ""] {
            assert_eq!(by_name(wrong), None, "{wrong}");
        }
        assert!(names().all(|name| by_name(name).is_some()));
    }

    /// `domain` has the same registry, without DSOTYPENI.
    #[test]
    fn names_are_those_of_the_registry() {
        use domain::base::iana::{OptRcode, Rcode, TsigRcode};
        for (code, name) in TABLE {
            let theirs = match *code {
                code @ 0..16 => Rcode::masked_from_int(code as u8).to_mnemonic_str(),
                BADVERS => OptRcode::BADVERS.to_mnemonic_str(),
                code => TsigRcode::from_int(code).to_mnemonic_str(),
            };
            assert!(theirs == Some(*name) || *code == DSOTYPENI, "{name}: {theirs:?}");
        }
    }
}
