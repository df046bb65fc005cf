//! Names of response codes.

use std::borrow::Cow;

/// The extended response code of a server that wants another cookie (RFC 7873, section 8).
pub const BADCOOKIE: u16 = 23;

/// The mnemonic of a response code (IANA DNS RCODEs): of the header, 0 to 15, or extended by an OPT
/// record to 12 bits (RFC 6891, section 6.1.3). Code 16 is BADVERS, as it is in OPT records; TSIG
/// records call it BADSIG.
#[must_use]
pub fn rcode_name(rcode: u16) -> Cow<'static, str> {
    Cow::Borrowed(match rcode {
        0 => "NOERROR",
        1 => "FORMERR",
        2 => "SERVFAIL",
        3 => "NXDOMAIN",
        4 => "NOTIMP",
        5 => "REFUSED",
        6 => "YXDOMAIN",
        7 => "YXRRSET",
        8 => "NXRRSET",
        9 => "NOTAUTH",
        10 => "NOTZONE",
        11 => "DSOTYPENI",
        16 => "BADVERS",
        17 => "BADKEY",
        18 => "BADTIME",
        19 => "BADMODE",
        20 => "BADNAME",
        21 => "BADALG",
        22 => "BADTRUNC",
        BADCOOKIE => "BADCOOKIE",
        other => return Cow::Owned(format!("RCODE{other}")),
    })
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
}
