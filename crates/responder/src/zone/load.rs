//! From a zone file (RFC 1035, section 5) to a [`Zone`].

use std::ops::ControlFlow;

use dnslab_traffic::{ZoneFileError, read_zone_file};

use super::data::Zone;
use super::draft::Draft;

impl Zone {
    /// Reads the text of a zone file. `origin` is the name for relative names before the first `$ORIGIN`; without it, the
    /// owner of the SOA record is. The records of one RRset get its smallest TTL (RFC 2181, section 5.2);
    /// duplicates are dropped.
    ///
    /// # Errors
    /// When the text holds what cannot be served.
    pub fn parse(text: &[u8], origin: Option<&str>) -> Result<Self, ZoneFileError> {
        let mut draft = Draft::default();
        read_zone_file(text, origin, |record, line| {
            draft.push(record, line)?;
            Ok::<_, ZoneFileError>(ControlFlow::Continue(()))
        })?;
        let apex = draft.apex()?;
        draft.check_owners(&apex)?;
        draft.check_denial()?;
        draft.sort();
        draft.check_aliases(&apex)?;
        draft.build(apex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_name_their_line() {
        let soa = "$ORIGIN example.\n@ 60 IN SOA ns host 1 2 3 4 5\n";
        let check = |rest: &str, expected: &str| {
            let text = format!("{soa}{rest}");
            let error = Zone::parse(text.as_bytes(), None).unwrap_err().to_string();
            assert!(error.contains(expected), "{rest:?} gave {error:?}");
        };
        check("a 60 IN A 192.0.2.300\n", "line 3:");
        check("\n\na 60 IN A 192.0.2.1\nb 60 IN BOGUS 1\n", "line 6:");
        check("a 60 IN A 192.0.2.1\nb.other. 60 IN A 192.0.2.1\n", "line 4: b.other. A: the owner");
        check("; a\nb.other. 60 IN TXT (\n a\n b )\n", "line 6: b.other. TXT");
        check("b.other. 60 IN A 192.0.2.1", "line 3: b.other. A");
        check("a IN CNAME b\na IN A 192.0.2.1\n", "line 3: a.example. CNAME: a CNAME with other");
        check("b 60 IN SOA ns host 1 2 3 4 5\n", "line 3: b.example. SOA: a second SOA");
        check("b 60 CH TXT a\n", "line 3");
        check("b DNAME c\nb TXT a\nb DNAME d\n", "line 5: b.example. DNAME: a second DNAME");
        check("b DNAME c\nb CNAME d\n", "line 4: b.example. CNAME: a CNAME with other");
        check(
            "b NS ns.other.\nb DNAME d\n",
            "line 4: b.example. DNAME: a DNAME where the zone is cut",
        );
        let hashed =
            "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom NSEC3 1 0 0 - 2t7b4g4vsa5smi47k61mv5bv1a22bojr A\n";
        check(
            &format!("a A 192.0.2.1\n{hashed}"),
            "line 4: 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom.example",
        );
        check(
            "a A 192.0.2.1\n@ NSEC3PARAM 1 0 0 -\n",
            "line 4: example. NSEC3PARAM: a zone signed",
        );
        check("b 60 A 192.0.2.300\na 60 A 192.0.2.1\n", "line 3: expected");
        check("a 60 A 192.0.2.1\n$BOGUS 1\n", "line 4: unknown control");
        check("$INCLUDE other.zone\n", "line 3: $INCLUDE");
        let error = Zone::parse(b"$ORIGIN example.\na 60 IN A 192.0.2.1\n", None).unwrap_err();
        assert!(error.to_string().contains("no SOA"));
        let error = Zone::parse(b"a 60 IN A 192.0.2.1\n", None).unwrap_err();
        assert!(error.to_string().contains("origin"), "{error}");
        assert!(matches!(Zone::parse(b"", Some("a..b")), Err(ZoneFileError::Origin(_))));
    }

    #[test]
    fn an_origin_can_be_given() {
        let zone = Zone::parse(b"@ 60 SOA ns host 1 2 3 4 5\nns A 192.0.2.1\n", Some("Example"));
        assert_eq!(zone.unwrap().apex(), "example.");
    }

    #[test]
    fn a_large_zone_stays_compact() {
        use std::fmt::Write;
        let mut text = "$ORIGIN example.test.\n$TTL 1\n@ SOA ns host 1 2 3 4 5\n".to_owned();
        for host in 0..50_000 {
            writeln!(text, "host{host} A 192.0.2.{}", host % 256).unwrap();
        }
        let zone = Zone::parse(text.as_bytes(), None).unwrap();
        assert_eq!(zone.record_count(), 50_001);
        assert!(zone.memory() / zone.record_count() < 100, "{} octets", zone.memory());
        for host in 0..50_000 {
            let label = format!("host{host}");
            let name = format!("{}{label}\x07example\x04test\0", char::from(label.len() as u8));
            assert!(zone.node(name.as_bytes()).unwrap().rrset(1).is_some());
        }
    }
}
