//! Made-up names in many domains that look like those which many people ask for.

use std::collections::BTreeSet;

use rand::Rng as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

/// Top-level domains and their weights, about as among the most popular sites. Each is one label: the
/// registered domain of every name is its last two labels.
const TOP_LEVEL: [(&str, u32); 14] = [
    ("com", 52),
    ("org", 9),
    ("net", 8),
    ("io", 4),
    ("de", 4),
    ("gov", 3),
    ("fr", 3),
    ("nl", 3),
    ("edu", 3),
    ("it", 3),
    ("pl", 2),
    ("tv", 2),
    ("jp", 2),
    ("info", 2),
];

/// Hosts below a registered domain and their weights; none is the domain itself.
const HOSTS: [(&str, u32); 6] =
    [("www.", 46), ("", 30), ("api.", 9), ("cdn.", 7), ("static.", 5), ("login.", 3)];

const SYLLABLES: [&str; 32] = [
    "ba", "be", "bo", "ca", "co", "da", "de", "di", "fa", "fi", "ga", "go", "ha", "ka", "ki", "la",
    "le", "lo", "ma", "mi", "na", "no", "pa", "pe", "ra", "ri", "sa", "so", "ta", "ti", "va", "zo",
];

/// Names of so many hosts, each with its final dot, in different registered domains, in the order in which
/// they are asked. The same seed gives the same names.
#[must_use]
pub fn popular_names(count: u32, seed: u64) -> Vec<String> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x706f_7075_6c61_7221);
    let mut domains = BTreeSet::new();
    let mut names = Vec::with_capacity(count as usize);
    while names.len() < count as usize {
        // Longer the more there are: new ones are always found.
        let syllables = random.random_range(2..=3) + domains.len() / 10_000;
        let label: String =
            (0..syllables).map(|_| SYLLABLES[random.random_range(0..SYLLABLES.len())]).collect();
        let domain = format!("{label}.{}", choose(&TOP_LEVEL, &mut random));
        let host = choose(&HOSTS, &mut random);
        if domains.insert(domain.clone()) {
            names.push(format!("{host}{domain}."));
        }
    }
    names
}

/// One of the words, by weight.
fn choose(words: &[(&'static str, u32)], random: &mut Xoshiro256PlusPlus) -> &'static str {
    let sum: u32 = words.iter().map(|(_, weight)| weight).sum();
    let mut place = random.random_range(0..sum);
    for (word, weight) in words {
        if place < *weight {
            return word;
        }
        place -= weight;
    }
    words[0].0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_many_different_domains_and_the_same_for_a_seed() {
        let names = popular_names(2_000, 1);
        assert_eq!(names, popular_names(2_000, 1));
        assert_ne!(names, popular_names(2_000, 2));
        let domain = |name: &String| {
            let labels: Vec<&str> = name.trim_end_matches('.').rsplit('.').take(2).collect();
            labels.join(".")
        };
        let domains: BTreeSet<String> = names.iter().map(domain).collect();
        assert_eq!(domains.len(), 2_000);
        let com = names.iter().filter(|name| name.ends_with(".com.")).count();
        // Five standard deviations of a binomial distribution with p = 0.52.
        assert!((com as f64 - 1_040.0).abs() < 5.0 * (2_000.0 * 0.52 * 0.48_f64).sqrt(), "{com}");
        assert_eq!(popular_names(30_000, 1).len(), 30_000);
        assert!(popular_names(0, 1).is_empty());
    }
}
