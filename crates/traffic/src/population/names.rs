//! Which concrete names the clients of a population ask for.

use std::collections::HashSet;

use domain::base::Name;
use domain::base::iana::Rtype;

use crate::{QueryList, SyntheticZone};

/// A name as a population chooses it. Numbers begin at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameChoice {
    /// The name of this popularity among those that exist; 0 is the most popular one.
    Popular(u32),
    /// The name of this popularity among those that do not exist.
    Missing(u32),
    /// A name that nobody else asks for.
    Random(u64),
}

/// Gives the names that a population asks for: the same name for the same choice.
///
/// A closure will do:
///
/// ```
/// use dnslab_traffic::population::{NameChoice, Names};
/// use domain::base::Name;
///
/// let names = |choice: NameChoice| -> Name<Vec<u8>> {
///     let text = match choice {
///         NameChoice::Popular(rank) => format!("www{rank}.example."),
///         NameChoice::Missing(number) => format!("gone{number}.example."),
///         NameChoice::Random(number) => format!("{number:x}.example."),
///     };
///     text.parse().expect("all of these are names")
/// };
/// assert_eq!(names.name(NameChoice::Popular(3)).to_string(), "www3.example");
/// ```
pub trait Names {
    /// The name of a choice.
    fn name(&self, choice: NameChoice) -> Name<Vec<u8>>;

    /// The name of a choice in a lookup of this type. Clients ask for the PTR record of an address, say, and
    /// not of a host; but most sets of names have hosts only.
    fn name_for(&self, choice: NameChoice, rtype: Rtype) -> Name<Vec<u8>> {
        let _ = rtype;
        self.name(choice)
    }
}

impl<F: Fn(NameChoice) -> Name<Vec<u8>>> Names for F {
    fn name(&self, choice: NameChoice) -> Name<Vec<u8>> {
        self(choice)
    }
}

/// Names cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamesError {
    /// There is no room for labels below the zone.
    #[error("the zone name {zone} is too long: names below it would have over 255 octets")]
    ZoneTooLong {
        /// The zone name.
        zone: String,
    },
    /// An empty list.
    #[error("there is no name in the list")]
    Empty,
}

/// The names of a [`SyntheticZone`], as its servers know them.
///
/// The popular name of rank `r` is host `r`. From [`SyntheticZone::records`] on, the zone has no such host: give
/// it as many as the population has popular names. Missing names are `missing-000001` and on, below the zone.
/// Random ones are 16 hexadecimal digits below `random`.
#[derive(Clone, Debug)]
pub struct ZoneNames {
    digits: usize,
    below: Below,
}

impl ZoneNames {
    /// The names of this zone.
    ///
    /// # Errors
    /// When its name is too long.
    pub fn new(zone: &SyntheticZone) -> Result<Self, NamesError> {
        let first = zone.name(0);
        let digits = first.first().len() - HOST.len();
        Ok(Self { digits, below: Below::new(zone.origin().clone())? })
    }
}

impl Names for ZoneNames {
    fn name(&self, choice: NameChoice) -> Name<Vec<u8>> {
        match choice {
            NameChoice::Popular(rank) => self.below.numbered(HOST, rank, self.digits),
            choice => self.below.made_up(choice),
        }
    }
}

/// Names of a list, the most popular first.
///
/// A rank beyond the end of the list begins again at its start, which changes the popularity of its names: the
/// list should have as many as the population has popular names. Missing and random names lie below a zone of
/// their own, as those of [`ZoneNames`].
#[derive(Clone, Debug)]
pub struct ListNames {
    names: Vec<Name<Vec<u8>>>,
    below: Below,
}

impl ListNames {
    /// The names of a list. Names that do not exist lie below `zone`.
    ///
    /// # Errors
    /// When the list is empty, or the name of the zone too long.
    pub fn new(names: Vec<Name<Vec<u8>>>, zone: Name<Vec<u8>>) -> Result<Self, NamesError> {
        if names.is_empty() {
            return Err(NamesError::Empty);
        }
        Ok(Self { names, below: Below::new(zone)? })
    }

    /// The names that a query list asks for, each once, in its order.
    ///
    /// # Errors
    /// As [`ListNames::new`].
    pub fn of_queries(queries: &QueryList, zone: Name<Vec<u8>>) -> Result<Self, NamesError> {
        let mut seen = HashSet::new();
        let mut names = Vec::new();
        for query in queries.iter() {
            let name = query.name();
            if seen.insert(name.clone()) {
                let octets = name.as_slice().to_vec();
                names.push(Name::from_octets(octets).expect("the octets are a name already"));
            }
        }
        Self::new(names, zone)
    }

    /// How many names there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.names.len()
    }
}

impl Names for ListNames {
    fn name(&self, choice: NameChoice) -> Name<Vec<u8>> {
        match choice {
            NameChoice::Popular(rank) => self.names[rank as usize % self.names.len()].clone(),
            choice => self.below.made_up(choice),
        }
    }
}

/// As in the names of a [`SyntheticZone`].
const HOST: &str = "host-";

/// Digits of a missing name, at least.
const MISSING_DIGITS: usize = 6;

/// Makes names below a zone.
#[derive(Clone, Debug)]
struct Below {
    zone: Name<Vec<u8>>,
    random: Name<Vec<u8>>,
}

impl Below {
    fn new(zone: Name<Vec<u8>>) -> Result<Self, NamesError> {
        let too_long = || NamesError::ZoneTooLong { zone: zone.to_string() };
        let random = [b"\x06random".as_slice(), zone.as_slice()].concat();
        let random = Name::from_octets(random).map_err(|_| too_long())?;
        // The longest label is that of a random name, or a host with the most digits.
        if random.len() + 1 + 16 > Name::MAX_LEN || zone.len() + 1 + HOST.len() + 20 > Name::MAX_LEN
        {
            return Err(too_long());
        }
        Ok(Self { zone, random })
    }

    /// A missing or random name.
    fn made_up(&self, choice: NameChoice) -> Name<Vec<u8>> {
        match choice {
            NameChoice::Popular(number) | NameChoice::Missing(number) => {
                self.numbered("missing-", number, MISSING_DIGITS)
            }
            NameChoice::Random(number) => {
                let mut label = [0; 16];
                for (at, digit) in label.iter_mut().enumerate() {
                    let value = (number >> (60 - 4 * at)) & 15;
                    *digit = b"0123456789abcdef"[value as usize];
                }
                join(&[&label], &self.random)
            }
        }
    }

    /// A label of a word and a number, which people count from 1.
    fn numbered(&self, word: &str, number: u32, digits: usize) -> Name<Vec<u8>> {
        // Ten digits are the most of a number here, and no zone asks for more.
        let mut text = [b'0'; 20];
        let (mut left, mut at) = (u64::from(number) + 1, text.len());
        while left > 0 {
            at -= 1;
            text[at] = b'0' + (left % 10) as u8;
            left /= 10;
        }
        let from = at.min(text.len() - digits.min(text.len()));
        join(&[word.as_bytes(), &text[from..]], &self.zone)
    }
}

/// The name whose first label has these parts.
fn join(parts: &[&[u8]], below: &Name<Vec<u8>>) -> Name<Vec<u8>> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut octets = Vec::with_capacity(1 + length + below.len());
    octets.push(length as u8);
    for part in parts {
        octets.extend_from_slice(part);
    }
    octets.extend_from_slice(below.as_slice());
    Name::from_octets(octets)
        .expect("labels of this file are short, and the zone leaves room for them")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dnslab_wire::QueryOptions;

    use super::*;

    #[test]
    fn zones_have_the_names() {
        for (records, ranks) in [(10, [0, 9, 4_000_000]), (16_000_000, [0, 999_999, u32::MAX])] {
            let zone =
                SyntheticZone::named("example.test", records, Duration::from_secs(1)).unwrap();
            let names = ZoneNames::new(&zone).unwrap();
            for rank in ranks {
                assert_eq!(names.name(NameChoice::Popular(rank)), zone.name(rank));
            }
            let name = |choice| names.name(choice).to_string();
            assert_eq!(name(NameChoice::Missing(0)), "missing-000001.example.test");
            assert_eq!(name(NameChoice::Random(0xbeef)), "000000000000beef.random.example.test");
            assert_eq!(name(NameChoice::Random(u64::MAX)), "ffffffffffffffff.random.example.test");
        }
    }

    #[test]
    fn lists_have_each_name_once() {
        let text = &b"b.example A\na.example A\nb.example AAAA\nB.example A"[..];
        let queries = QueryList::from_text(text, "q", &QueryOptions::default()).unwrap();
        let names = ListNames::of_queries(&queries, "x.".parse().unwrap()).unwrap();
        assert_eq!(names.count(), 2);
        let name = |choice| names.name(choice).to_string();
        assert_eq!(name(NameChoice::Popular(0)), "b.example");
        assert_eq!(name(NameChoice::Popular(3)), "a.example");
        assert_eq!(name(NameChoice::Missing(41)), "missing-000042.x");
        let empty = ListNames::new(Vec::new(), "x.".parse().unwrap());
        assert_eq!(empty.unwrap_err(), NamesError::Empty);
    }

    #[test]
    fn long_zones_are_refused() {
        // Labels of one letter, and where that does not give the length, of two at its beginning.
        let zone = |length: usize| -> Name<Vec<u8>> {
            ["a".repeat(1 - length % 2), "a.".repeat((length - 1) / 2)].concat().parse().unwrap()
        };
        let names = ListNames::new(vec![zone(5)], zone(229)).unwrap();
        assert!(names.name(NameChoice::Random(1)).len() <= 255);
        assert!(names.name(NameChoice::Missing(u32::MAX)).len() <= 255);
        let error = ListNames::new(vec![zone(5)], zone(235)).unwrap_err().to_string();
        assert!(error.contains("is too long"), "{error}");
    }
}
