//! The queries that a load asks.

use std::collections::HashSet;
use std::io::BufRead;

use dnslab_wire::units::number;
use dnslab_wire::{Query, QueryOptions};
use domain::base::Name;
use domain::base::iana::Rtype;

use crate::query_file::{QueryFileError, read};
use crate::zone_file::{Question, questions};
use crate::{NameList, SearchList, SyntheticZone, TypeMix, ZoneFileError};

/// Queries encoded once, shared by all workers and never changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryList {
    queries: Vec<Query>,
    description: String,
}

/// So many names, each with all types in proportion; see [`QueryList::from_zone`].
fn mixed(
    names: u32,
    name: impl Fn(u32) -> Name<Vec<u8>>,
    types: &TypeMix,
    seed: u64,
    options: &QueryOptions,
) -> Vec<Query> {
    let cycle = types.cycle();
    let order = types.shuffled(seed, names);
    let rounds = (MAX_MIXED / names.max(1)).clamp(1, cycle);
    let places = (0..rounds).flat_map(|round| (0..names).map(move |index| (round, index)));
    let queries = places.map(|(round, index)| {
        // Each round goes one place on in the same cycle: all rounds together meet every place.
        let place = index % cycle;
        let rtype = order[(index - place + (place + round) % cycle) as usize];
        asked(&name(index), rtype, options)
    });
    queries.collect()
}

fn asked(name: &Name<Vec<u8>>, rtype: Rtype, options: &QueryOptions) -> Query {
    Query::new(name, rtype, options)
        .expect("a question with a legal name, and options as checked, fit in a message")
}

fn described_types(types: &TypeMix) -> String {
    let plural = if types.weights().len() == 1 { "" } else { "s" };
    format!("type{plural} {types}")
}

/// The most queries of a list that repeats its names with other types: 100 MB of memory.
const MAX_MIXED: u32 = 1 << 20;

impl QueryList {
    /// Queries for the hosts of the zone, in its order. A mix of types repeats the zone until each name was
    /// asked for all types in proportion.
    ///
    /// Types change from name to name in an order drawn from the seed: any stretch of the list has them in
    /// proportion too. A list ends early if it would be longer than 2^20 queries and longer than the zone.
    /// Names are then asked for some of the types only.
    #[must_use]
    pub fn from_zone(
        zone: &SyntheticZone,
        types: &TypeMix,
        seed: u64,
        options: &QueryOptions,
    ) -> Self {
        let names = zone.records();
        let queries = mixed(names, |index| zone.name(index), types, seed, options);
        let origin = zone.origin().fmt_with_dot();
        let description = format!(
            "{names} names of the zone {origin}, {}{}",
            described_types(types),
            described(options)
        );
        Self { queries, description }
    }

    /// Queries for the names of a zone file, in its order: each for the types that it has, once, or for all `types` in
    /// proportion, as [`Self::from_zone`] has them. Of a CNAME the address is asked for, and of a wildcard a made name. With
    /// `referrals`, delegations are asked for too. `origin` is the name of the zone, and `file` names the file in
    /// [`QueryList::description`].
    ///
    /// # Errors
    /// When the text is no zone file, or has no SOA record.
    pub fn from_zone_file(
        text: &[u8],
        (origin, file): (&str, &str),
        types: Option<(&TypeMix, u64)>,
        (referrals, options): (bool, &QueryOptions),
    ) -> Result<Self, ZoneFileError> {
        let questions = questions(text, origin, referrals)?;
        let count = |count: usize, one: &str, many: &str| number::counted(count as u64, one, many);
        let (queries, types) = match types {
            None => {
                let ask = |set: &Question| asked(&set.name, set.rtype, options);
                let sets = count(questions.len(), "RRset", "RRsets");
                (questions.iter().map(ask).collect(), format!("{sets}, each asked for by its type"))
            }
            Some((types, seed)) => {
                let mut seen = HashSet::new();
                let names: Vec<&Name<Vec<u8>>> = questions
                    .iter()
                    .map(|set| &set.name)
                    .filter(|name| seen.insert(*name))
                    .collect();
                let length = u32::try_from(names.len()).unwrap_or(u32::MAX);
                let name = |index: u32| names[index as usize].clone();
                let queries = mixed(length, name, types, seed, options);
                let names = count(names.len(), "name", "names");
                (queries, format!("{names}, {}", described_types(types)))
            }
        };
        let description = format!("the zone file {file}: {types}{}", described(options));
        Ok(Self { queries, description })
    }

    /// These queries, with words for where they come from.
    #[must_use]
    pub fn from_queries(queries: Vec<Query>, description: String) -> Self {
        Self { queries, description }
    }

    /// Asks for the addresses of names from [`crate::popular_names`], in their order.
    ///
    /// # Panics
    /// When a name is not legal, or options do not fit in a message.
    #[must_use]
    pub fn from_popular(names: &[String], options: &QueryOptions) -> Self {
        let query = |name: &String| {
            let name: Name<Vec<u8>> = name.parse().expect("popular names are legal");
            Query::new(&name, Rtype::A, options).expect("a question fits in a message")
        };
        let description = format!(
            "{} popular names in as many domains, made up, type A{}",
            names.len(),
            described(options)
        );
        Self { queries: names.iter().map(query).collect(), description }
    }

    /// Some names, each for each of the types in turn; with a search list all candidates of each, one after the other
    /// ([`crate::Candidates`]).
    ///
    /// # Panics
    /// When a name is not legal, or options do not fit in a message.
    #[must_use]
    pub fn from_names(
        names: &NameList,
        types: &TypeMix,
        search: Option<&SearchList>,
        options: &QueryOptions,
    ) -> Self {
        let mut queries = Vec::new();
        for name in &names.0 {
            let candidates = search.map(|search| search.candidates(name));
            let candidates = candidates.unwrap_or_else(|| vec![name.clone()]);
            for (rtype, _) in types.weights() {
                queries.extend(candidates.iter().map(|candidate| {
                    let name = candidate.parse().expect("listed names are legal");
                    asked(&name, *rtype, options)
                }));
            }
        }
        let search = search
            .map(|search| format!(", search list {}, ndots {}", search.domains, search.ndots));
        let search = search.unwrap_or_default();
        let description = format!("{names}, {types}{search}{}", described(options));
        Self { queries, description }
    }

    /// Reads dnsperf's query file format: a name and a type on each line.
    ///
    /// As in dnsperf 2.10: the class is IN; a name is absolute with or without its last dot; mnemonics of
    /// types are read in any case, and `TYPE123` (RFC 3597, section 5); what follows the type is ignored;
    /// empty lines and lines that begin with `;` are skipped. `#` is a character like any other. Unlike in
    /// dnsperf, lines may end in CR LF and begin with white space, and lines of white space alone are
    /// skipped. `\032` is the octet with the decimal value 32 (RFC 1035, section 5.1); dnsperf 2.10 reads
    /// another one.
    ///
    /// What dnsperf skips with a warning is an error here: a load that leaves out part of its queries is not
    /// the one that was asked for. `file` names the file in errors and in [`QueryList::description`].
    ///
    /// # Errors
    /// When the file cannot be read, holds no query or more than 2^32 - 1, or has lines that are no queries:
    /// all of them are counted, and the first 20 named.
    pub fn from_text(
        reader: impl BufRead,
        file: &str,
        options: &QueryOptions,
    ) -> Result<Self, QueryFileError> {
        let queries = read(reader, file, options)?;
        let count = number::counted(queries.len() as u64, "query", "queries");
        let description = format!("{count} of the file {file}{}", described(options));
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

    /// The source of the queries, and what they share: `1000 names of the zone example.test., type A`.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }
}

/// What the queries ask for beyond their question, to follow a description.
fn described(options: &QueryOptions) -> String {
    let recursion = if options.recursion_desired { ", recursion desired" } else { "" };
    let Some(edns) = &options.edns else { return recursion.to_owned() };
    let mut parts = vec![format!("a payload size of {} octets", edns.payload_size)];
    if edns.dnssec_ok {
        parts.push("DNSSEC OK".to_owned());
    }
    for option in &edns.options {
        parts.push(format!("option {} of {} octets", option.code, option.data.len()));
    }
    if edns.keepalive {
        parts.push("keep-alive".to_owned());
    }
    if let Some(block) = edns.padding {
        parts.push(format!("padding to blocks of {block} octets"));
    }
    let last = parts.pop().unwrap_or_default();
    let and = if parts.is_empty() { "" } else { " and " };
    format!("{recursion}, EDNS with {}{and}{last}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::Duration;

    use dnslab_wire::{Edns, EdnsOption};
    use domain::base::iana::Rtype;

    use super::*;

    #[test]
    fn a_zone_is_asked_for_its_hosts() {
        let origin = "example.test".parse().unwrap();
        let zone = SyntheticZone::new(origin, 1_000, Duration::from_secs(1)).unwrap();
        let queries = QueryList::from_zone(&zone, &TypeMix::default(), 1, &QueryOptions::default());
        assert_eq!(queries.len(), 1_000);
        assert_eq!(queries.get(999).to_string(), "host-001000.example.test. A");
        assert_eq!(queries.description(), "1000 names of the zone example.test., type A");
        let length = queries.get(0).octets().len();
        assert!(queries.iter().all(|query| query.octets().len() == length));
    }

    #[test]
    fn every_name_is_asked_for_all_types_in_proportion() {
        let zone = SyntheticZone::new("x".parse().unwrap(), 57, Duration::from_secs(1)).unwrap();
        let mix: TypeMix = "A:70,AAAA:25,HTTPS:5".parse().unwrap();
        let list = |seed| QueryList::from_zone(&zone, &mix, seed, &QueryOptions::default());
        let queries = list(1);
        assert_eq!(queries, list(1));
        assert_ne!(queries, list(2));
        assert_eq!(queries.description(), "57 names of the zone x., types A:70,AAAA:25,HTTPS:5");
        let mut asked: HashMap<String, usize> = HashMap::new();
        for query in queries.iter() {
            *asked.entry(query.to_string()).or_default() += 1;
        }
        assert_eq!(asked.len(), 57 * 3);
        for (query, count) in asked {
            let expected = match query.rsplit_once(' ').unwrap().1 {
                "A" => 14,
                "AAAA" => 5,
                _ => 1,
            };
            assert_eq!(count, expected, "{query}");
        }
        // Names in the order of the zone, types in proportion in any stretch.
        for (at, query) in (0..).zip(queries.iter()) {
            assert_eq!(query.name().to_string(), zone.name(at % 57).to_string());
        }
        let types: Vec<Rtype> = queries.iter().map(|query| query.rtype()).collect();
        for stretch in types.windows(100) {
            let count = stretch.iter().filter(|rtype| **rtype == Rtype::A).count();
            assert!((55..=85).contains(&count), "{count} of 100");
        }
    }

    fn check_repeated(records: u32, mix: &str, expected: u32) {
        let zone = SyntheticZone::new("x".parse().unwrap(), records, Duration::from_secs(1));
        let (zone, mix) = (zone.unwrap(), mix.parse().unwrap());
        let queries = QueryList::from_zone(&zone, &mix, 1, &QueryOptions::default());
        assert_eq!(queries.len(), expected, "{records} names");
        let count = queries.iter().filter(|query| query.rtype() == Rtype::A).count();
        let share = count as f64 / f64::from(expected.max(1));
        assert!(records == 0 || (share - 0.99).abs() < 0.001, "{share} of {records} names");
    }

    #[test]
    fn a_large_zone_is_not_repeated_for_every_type() {
        check_repeated(0, "A:9900,MX:99,TXT:1", 0);
        check_repeated(10_000, "A:9900,MX:99,TXT:1", 1_040_000);
        check_repeated(50, "A:99,MX:1", 5_000);
    }

    #[test]
    fn options_are_in_the_description() {
        let edns = Some(Edns { dnssec_ok: true, ..Edns::default() });
        let options = QueryOptions { recursion_desired: true, edns };
        let queries = QueryList::from_text(&b"a. A\nb. A"[..], "q.txt", &options).unwrap();
        assert_eq!(
            queries.description(),
            "2 queries of the file q.txt, recursion desired, EDNS with a payload size of 1232 \
             octets and DNSSEC OK"
        );
        assert_eq!(queries.get(1).octets().len(), 12 + 3 + 4 + 11);
        let edns = Some(Edns {
            options: vec![EdnsOption { code: 65_001, data: vec![1, 2] }],
            padding: Some(128),
            keepalive: true,
            ..Edns::default()
        });
        let options = QueryOptions { recursion_desired: false, edns };
        let queries = QueryList::from_text(&b"a. A"[..], "q.txt", &options).unwrap();
        assert_eq!(
            queries.description(),
            "1 query of the file q.txt, EDNS with a payload size of 1232 octets, option 65001 of 2 \
             octets, keep-alive and padding to blocks of 128 octets"
        );
    }
}
