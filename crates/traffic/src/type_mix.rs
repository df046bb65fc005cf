//! Which types are asked for, in which proportion.

use std::fmt;
use std::str::FromStr;

use dnslab_wire::rtype::is_transfer;
use domain::base::iana::Rtype;
use rand::seq::SliceRandom as _;

use crate::query_file::rtype;
use crate::random::{Purpose, stream};

/// Query types with their weights, at least one.
///
/// ```
/// let mix: dnslab_traffic::TypeMix = "A:70,AAAA:25,HTTPS:5".parse()?;
/// assert_eq!(mix.to_string(), "A:70,AAAA:25,HTTPS:5");
/// assert_eq!(mix.cycle(), 20);
/// # Ok::<(), dnslab_traffic::TypeMixError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeMix {
    /// Each type once, with a weight of at least 1.
    weights: Vec<(Rtype, u32)>,
}

/// The text is no mix of types.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeMixError {
    /// Not a type.
    #[error("`{0}` is no query type: write a mnemonic such as A or AAAA, or TYPE65280")]
    UnknownType(String),
    /// A zone transfer, whose answer is many messages.
    #[error(
        "type {0} asks for a zone transfer, whose answer is a stream of messages: leave it out"
    )]
    Transfer(Rtype),
    /// Not a weight.
    #[error("`{weight}` is no weight for type {rtype}: write a whole number from 1 to {MAX_COUNT}")]
    Weight {
        /// The type.
        rtype: Rtype,
        /// The text.
        weight: String,
    },
    /// A type that is there before.
    #[error("type {0} stands twice in the mix: add its weights")]
    Twice(Rtype),
}

/// The highest weight: with it, a ten-thousandth can be said.
const MAX_COUNT: u32 = 10_000;

impl Default for TypeMix {
    /// Only A.
    fn default() -> Self {
        Self { weights: vec![(Rtype::A, 1)] }
    }
}

impl TypeMix {
    /// The types with their weights, as they were given.
    #[must_use]
    pub fn weights(&self) -> &[(Rtype, u32)] {
        &self.weights
    }

    /// The least number of queries in which the proportions are exact.
    #[must_use]
    pub fn cycle(&self) -> u32 {
        let total: u32 = self.weights.iter().map(|(_, weight)| weight).sum();
        total / self.divisor()
    }

    /// The greatest common divisor of the weights.
    fn divisor(&self) -> u32 {
        self.weights.iter().fold(0, |divisor, (_, weight)| {
            let (mut a, mut b) = (*weight, divisor);
            while b != 0 {
                (a, b) = (b, a % b);
            }
            a
        })
    }

    /// Types for at least `names` names, in whole cycles. In each cycle every type is as often there as its
    /// weight says, in an order of its own drawn from the seed: clients that take turns do not get the same
    /// types again and again.
    pub(crate) fn shuffled(&self, seed: u64, names: u32) -> Vec<Rtype> {
        let divisor = self.divisor();
        let times = |(rtype, weight): &(Rtype, u32)| vec![*rtype; (weight / divisor) as usize];
        let mut cycle: Vec<Rtype> = self.weights.iter().flat_map(times).collect();
        let mut random = stream(seed, Purpose::Types, 0);
        let mut types = Vec::with_capacity(names as usize + cycle.len());
        while types.len() < names as usize {
            cycle.shuffle(&mut random);
            types.extend_from_slice(&cycle);
        }
        types
    }
}

impl FromStr for TypeMix {
    type Err = TypeMixError;

    /// Reads types with their weights, `A:70,AAAA:25,HTTPS:5`; a type without a weight has 1.
    fn from_str(text: &str) -> Result<Self, TypeMixError> {
        let mut weights: Vec<(Rtype, u32)> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (name, weight) = part.split_once(':').unwrap_or((part, "1"));
            let unknown = || TypeMixError::UnknownType(name.trim().to_owned());
            let rtype = rtype(name.trim()).ok_or_else(unknown)?;
            if is_transfer(rtype.to_int()) {
                return Err(TypeMixError::Transfer(rtype));
            }
            let weight = weight.trim();
            let is_number = weight.bytes().all(|octet| octet.is_ascii_digit());
            let weight = weight
                .parse()
                .ok()
                .filter(|weight| is_number && (1..=MAX_COUNT).contains(weight))
                .ok_or_else(|| TypeMixError::Weight { rtype, weight: weight.to_owned() })?;
            if weights.iter().any(|(known, _)| *known == rtype) {
                return Err(TypeMixError::Twice(rtype));
            }
            weights.push((rtype, weight));
        }
        Ok(Self { weights })
    }
}

impl fmt::Display for TypeMix {
    /// As it is read; a single type stands without its weight.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [(rtype, _)] = self.weights[..] {
            return write!(formatter, "{rtype}");
        }
        let weighted = |(rtype, weight): &(Rtype, u32)| format!("{rtype}:{weight}");
        let parts: Vec<String> = self.weights.iter().map(weighted).collect();
        formatter.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_are_read_and_written() {
        for (text, written, cycle) in [
            ("A", "A", 1),
            ("aaaa:7", "AAAA", 1),
            ("A:70, AAAA:25, HTTPS:5", "A:70,AAAA:25,HTTPS:5", 20),
            ("A,TYPE65280:2", "A:1,TYPE65280:2", 3),
            ("NSAP-PTR:3,MX:7", "NSAPPTR:3,MX:7", 10),
        ] {
            let mix: TypeMix = text.parse().unwrap();
            assert_eq!((mix.to_string().as_str(), mix.cycle()), (written, cycle), "{text}");
            // A single type is the same mix with any weight.
            assert_eq!(written.parse::<TypeMix>().unwrap().to_string(), written);
        }
    }

    #[test]
    fn errors_name_the_culprit_and_the_remedy() {
        for (text, part) in [
            ("", "`` is no query type"),
            ("A:70,AAA:30", "`AAA` is no query type: write a mnemonic"),
            ("A,AXFR", "type AXFR asks for a zone transfer"),
            ("A:0", "`0` is no weight for type A: write a whole number from 1 to 10000"),
            ("A:70%", "`70%` is no weight"),
            ("A:+1", "`+1` is no weight"),
            ("A:", "`` is no weight"),
            ("A:10001", "`10001` is no weight"),
            ("A:1,AAAA:1,a:1", "type A stands twice"),
        ] {
            let error = text.parse::<TypeMix>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn the_order_is_drawn_from_the_seed() {
        let mix: TypeMix = "A:70,AAAA:25,HTTPS:5".parse().unwrap();
        let types = mix.shuffled(3, 401);
        assert_eq!(types.len(), 420);
        assert_eq!(types, mix.shuffled(3, 401));
        assert_ne!(types, mix.shuffled(4, 401));
        for cycle in types.chunks(20) {
            let count = |rtype| cycle.iter().filter(|one| **one == rtype).count();
            assert_eq!([Rtype::A, Rtype::AAAA, Rtype::HTTPS].map(count), [14, 5, 1]);
        }
        // Of 20 clients in turn, none is left with the rare type.
        let place = |cycle: &[Rtype]| cycle.iter().position(|one| *one == Rtype::HTTPS);
        let places: std::collections::HashSet<_> = types.chunks(20).map(place).collect();
        assert!(places.len() > 5);
    }
}
