//! What a client can ask of a zone file.

use std::collections::HashSet;
use std::ops::ControlFlow;

use domain::base::iana::Rtype;
use domain::base::{Name, ToName};

use super::entries::read_zone_file;
use super::error::ZoneFileError;

/// The owner of the SOA record, which is the name of the zone, as text without the final dot.
///
/// # Errors
/// When the file cannot be read up to there, or has none.
pub fn zone_file_apex(text: &[u8]) -> Result<String, ZoneFileError> {
    let mut apex = None;
    read_zone_file(text, None, |record, _| {
        if record.rtype() == Rtype::SOA {
            apex = Some(record.owner().to_string());
            return Ok::<_, ZoneFileError>(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    apex.ok_or(ZoneFileError::NO_SOA)
}

const OTHER_SOA: &str = "the SOA record is that of another zone than the one that was named";

/// A label that a zone hardly has, for names that a wildcard or a DNAME stands for.
const MADE: &[u8] = b"dnslab-any";

/// Types that a server adds to its answers by itself, and clients do not ask for (RFC 4034, RFC 5155).
const NOT_ASKED: [Rtype; 4] = [Rtype::RRSIG, Rtype::NSEC, Rtype::NSEC3, Rtype::NSEC3PARAM];

/// What a client can ask.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    pub(crate) name: Name<Vec<u8>>,
    pub(crate) rtype: Rtype,
}

/// What a client asks of a zone, in the order of the file, each once: the owner and the type of each RRset for which the
/// zone is authoritative. Of a CNAME the address is asked for, of a wildcard and of what is below a DNAME a name of
/// [`MADE`]. With `referrals`, the NS records of cuts are asked for too. Without what is below a cut or a DNAME, and without
/// [`NOT_ASKED`].
pub(crate) fn questions(
    text: &[u8],
    origin: &str,
    referrals: bool,
) -> Result<Vec<Question>, ZoneFileError> {
    let mut sets: Vec<Question> = Vec::new();
    read_zone_file(text, Some(origin), |record, _| {
        let set = Question { name: record.owner().to_canonical_name(), rtype: record.rtype() };
        // Records of one set mostly follow each other.
        if sets.last() != Some(&set) {
            sets.push(set);
        }
        Ok::<_, ZoneFileError>(ControlFlow::Continue(()))
    })?;
    let soa = sets.iter().find(|set| set.rtype == Rtype::SOA);
    let apex = soa.ok_or(ZoneFileError::NO_SOA)?.name.clone();
    let named: Name<Vec<u8>> =
        Name::from_chars(origin.chars()).map_err(|_| ZoneFileError::Origin(origin.to_owned()))?;
    if named != apex {
        return Err(ZoneFileError::Zone(OTHER_SOA));
    }
    let owners = |rtype: Rtype| -> HashSet<Name<Vec<u8>>> {
        let sets = sets.iter().filter(|set| set.rtype == rtype && set.name != apex);
        sets.map(|set| set.name.clone()).collect()
    };
    let (cuts, dnames) = (owners(Rtype::NS), owners(Rtype::DNAME));
    let is_below = |name: &Name<Vec<u8>>| {
        let above = name.iter_suffixes().skip(1).take_while(|name| name.ends_with(&apex));
        let mut above = above.map(|name| name.to_name::<Vec<u8>>());
        above.any(|name| cuts.contains(&name) || dnames.contains(&name))
    };
    sets.retain(|Question { name, rtype }| {
        let is_of_cut = match *rtype {
            Rtype::NS => referrals || !cuts.contains(name),
            rtype => rtype == Rtype::DS || !cuts.contains(name),
        };
        let is_ours = name.ends_with(&apex) && is_of_cut && !is_below(name);
        is_ours && !NOT_ASKED.contains(rtype)
    });
    let mut seen = HashSet::new();
    let asked = sets.into_iter().map(asked).filter(|set| seen.insert(set.clone()));
    Ok(asked.collect())
}

/// What a client asks for where the zone has this set.
fn asked(set: Question) -> Question {
    let Question { name, rtype } = set;
    let is_wildcard = name.first().as_slice() == b"*";
    let (parent, rtype) = match rtype {
        Rtype::DNAME => (Some(name.clone()), Rtype::A),
        rtype if is_wildcard => (name.parent().map(|parent| parent.to_name()), rtype),
        rtype => (None, rtype),
    };
    let rtype = if rtype == Rtype::CNAME { Rtype::A } else { rtype };
    let below = parent.and_then(|parent| {
        let mut octets = vec![MADE.len() as u8];
        octets.extend_from_slice(MADE);
        octets.extend_from_slice(parent.as_slice());
        Name::from_octets(octets).ok()
    });
    Question { name: below.unwrap_or(name), rtype }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZONE: &str = "$TTL 60\n\
        @ SOA ns host 1 2 3 4 5\n\
        @ NS ns\n\
        ns A 192.0.2.1\nns AAAA 2001:db8::1\nns A 192.0.2.2\n\
        WWW A 192.0.2.3\nwww TXT a\nwww RRSIG A 13 3 60 20300101000000 20200101000000 1 example. AAAA\n\
        www NSEC ns A\n\
        sub NS ns.sub\nsub DS 1 13 2 00\nns.sub A 192.0.2.4\nsub A 192.0.2.5\n\
        old DNAME other.test.\nold TXT b\na.old TXT c\n\
        *.wild A 192.0.2.6\nalias CNAME www\n";

    #[test]
    fn each_set_of_the_zone_is_asked_once() {
        let asked = questions(ZONE.as_bytes(), "example", true).unwrap();
        let asked: Vec<String> =
            asked.iter().map(|set| format!("{} {}", set.name, set.rtype)).collect();
        assert_eq!(
            asked,
            [
                "example SOA",
                "example NS",
                "ns.example A",
                "ns.example AAAA",
                "www.example A",
                "www.example TXT",
                "sub.example NS",
                "sub.example DS",
                "dnslab-any.old.example A",
                "old.example TXT",
                "dnslab-any.wild.example A",
                "alias.example A",
            ]
        );
        let forwarded = questions(ZONE.as_bytes(), "Example", false).unwrap();
        assert_eq!(forwarded.len() + 1, asked.len(), "without the referral");
        let error = questions(ZONE.as_bytes().strip_prefix(b"$TTL 60\n").unwrap(), "other", true);
        assert!(error.is_ok(), "a relative SOA record has the name that is given");
        let absolute = b"example. 60 SOA ns host 1 2 3 4 5\n";
        let error = questions(absolute, "other", true).unwrap_err().to_string();
        assert!(error.contains("another zone"), "{error}");
        let error = questions(b"a 60 A 192.0.2.1\n", "example", true).unwrap_err();
        assert!(error.to_string().contains("no SOA"), "{error}");
    }

    #[test]
    fn the_zone_is_named_by_its_soa() {
        let check = |text: &str, apex: &str| {
            assert_eq!(zone_file_apex(text.as_bytes()).unwrap(), apex);
        };
        check("$ORIGIN Example.\n@ 60 SOA ns host 1 2 3 4 5\nbroken", "Example");
        check("; a\nexample.test. 60 IN SOA ns host (\n1 2 3 4 5 )\n", "example.test");
        assert!(zone_file_apex(b"@ 60 SOA ns host 1 2 3 4 5\n").is_err());
        assert!(zone_file_apex(b"").is_err());
    }
}
