//! The queries that a load asks.

use std::io::BufRead;

use dnslab_wire::{Query, QueryOptions};
use domain::base::iana::Rtype;

use crate::query_file::{QueryFileError, read};
use crate::{Selection, SyntheticZone};

/// Queries encoded once, to be shared by all workers and never changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryList {
    queries: Vec<Query>,
    description: String,
}

impl QueryList {
    /// One query of type A for each host of the zone, in the order of the zone.
    #[must_use]
    pub fn from_zone(zone: &SyntheticZone, options: &QueryOptions) -> Self {
        let query = |index| {
            Query::new(&zone.name(index), Rtype::A, options)
                .expect("one question with a legal name fits in a message")
        };
        let queries = (0..zone.records()).map(query).collect();
        let origin = zone.origin().fmt_with_dot();
        let description =
            format!("{} names of the zone {origin}, type A{}", zone.records(), described(options));
        Self { queries, description }
    }

    /// Reads dnsperf's query file format: a name and a type on each line.
    ///
    /// As dnsperf 2.10 does it: the class is IN; a name is absolute with or without its last dot;
    /// mnemonics of types are read in any case, and `TYPE123` (RFC 3597, section 5); what follows
    /// the type is not looked at; empty lines and lines that begin with `;` are skipped. `#` is a
    /// character like any other. Beyond dnsperf, lines may end in CR LF and begin with white space,
    /// and lines of white space alone are skipped. `\032` is the octet with the decimal value 32,
    /// as RFC 1035, section 5.1, has it; dnsperf 2.10 reads another one.
    ///
    /// What dnsperf passes over with a warning is an error here: a load that silently leaves out
    /// part of its queries is not the one that was asked for. `file` is the name of the file in
    /// errors and in [`QueryList::description`].
    ///
    /// # Errors
    /// When the file cannot be read, holds no query or more than 2^32 - 1, or has lines that are no
    /// queries: all of them are counted, and the first 20 named.
    pub fn from_text(
        reader: impl BufRead,
        file: &str,
        options: &QueryOptions,
    ) -> Result<Self, QueryFileError> {
        let queries = read(reader, file, options)?;
        let count = queries.len();
        let description = format!("{count} queries of the file {file}{}", described(options));
        Ok(Self { queries, description })
    }

    /// How many queries there are; 0 only for a zone without hosts.
    #[must_use]
    pub fn len(&self) -> u32 {
        u32::try_from(self.queries.len()).expect("a zone or a file has fewer than 2^32 queries")
    }

    /// True if there is nothing to ask.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }

    /// The query with this index, from 0.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    #[inline]
    pub fn get(&self, index: u32) -> &Query {
        &self.queries[index as usize]
    }

    /// All queries in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Query> {
        self.queries.iter()
    }

    /// Where the queries came from and what they have in common, for the provenance: `1000 names of
    /// the zone melmac.univ., type A`.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The description with the way in which the queries are chosen.
    #[must_use]
    pub fn described_with(&self, selection: Selection) -> String {
        match selection {
            Selection::InOrder => format!("{}; in order", self.description),
            Selection::Uniform => format!("{}; uniformly at random", self.description),
        }
    }
}

/// What the queries ask besides their question, to be put behind a description.
fn described(options: &QueryOptions) -> String {
    let mut text = String::new();
    if options.recursion_desired {
        text.push_str(", recursion desired");
    }
    if let Some(edns) = options.edns {
        text.push_str(&format!(", EDNS with a payload size of {} octets", edns.payload_size));
        if edns.dnssec_ok {
            text.push_str(" and DNSSEC OK");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dnslab_wire::Edns;

    use super::*;

    #[test]
    fn a_zone_is_asked_for_its_hosts() {
        let origin = "melmac.univ".parse().unwrap();
        let zone = SyntheticZone::new(origin, 1_000, Duration::from_secs(1)).unwrap();
        let queries = QueryList::from_zone(&zone, &QueryOptions::default());
        assert_eq!(queries.len(), 1_000);
        assert_eq!(queries.get(999).to_string(), "host-001000.melmac.univ. A");
        assert_eq!(queries.description(), "1000 names of the zone melmac.univ., type A");
        let length = queries.get(0).octets().len();
        assert!(queries.iter().all(|query| query.octets().len() == length));
    }

    #[test]
    fn options_are_in_the_description() {
        let edns = Some(Edns { payload_size: 1232, dnssec_ok: true });
        let options = QueryOptions { recursion_desired: true, edns };
        let queries = QueryList::from_text(&b"a. A\nb. A"[..], "q.txt", &options).unwrap();
        assert_eq!(
            queries.described_with(Selection::Uniform),
            "2 queries of the file q.txt, recursion desired, EDNS with a payload size of 1232 \
             octets and DNSSEC OK; uniformly at random"
        );
        assert_eq!(queries.get(1).octets().len(), 12 + 3 + 4 + 11);
    }
}
