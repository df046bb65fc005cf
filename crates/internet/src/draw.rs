//! Draws: numbers that follow from the seed, a purpose and a subject, and from nothing else.

/// What is drawn. The numbers are part of every internet: a new purpose gets a new number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// The order of the syllables of a label: one for each round of the permutation.
    Permutation = 0x10,
    TopLevelLabel = 1,
    TopLevelServers = 2,
    TopLevelSigned = 3,
    /// The registry in which a domain is registered.
    Registry = 4,
    /// The operator whose servers have a zone.
    Operator = 5,
    OperatorIpv6 = 6,
    OperatorPayload = 7,
    FirstServer = 8,
    ServersOfZone = 9,
    Fault = 10,
    FaultIsWhole = 11,
    FaultySlot = 12,
    OwnNames = 13,
    SubZoneSigned = 14,
    Expired = 15,
    /// Whether a server knows DNS cookies.
    Cookies = 0x100,
    /// What a server's cookie is.
    Cookie = 0x101,
    /// How a top-level domain denies.
    TopLevelDenial = 0x102,
    /// Whether a zone has NSEC3 records.
    Nsec3 = 0x103,
    OptOut = 0x104,
    Hosts = 0x20,
    Deep = 0x21,
    Region = 0x22,
    Cut = 0x23,
    Chain = 0x24,
    ChainInside = 0x25,
    Addresses = 0x26,
    Address = 0x27,
    Ipv6 = 0x28,
    Ttl = 0x29,
    NegativeTtl = 0x2a,
    NameServerTtl = 0x2b,
    Text = 0x2c,
    Mail = 0x2d,
    Truncated = 0x2e,
    Https = 0x2f,
    Services = 0x31,
    Dmarc = 0x32,
    Caa = 0x33,
    Delay = 0x30,
    Absent = 0x40,
    AbsentKind = 0x41,
    AbsentSuffix = 0x42,
    RandomParent = 0x43,
    Key = 0x50,
    /// The algorithm of a zone's key.
    Algorithm = 0x51,
    Node = 0x60,
    Zone = 0x61,
    /// A zone of the reverse tree.
    Reverse = 0x62,
    /// Whether two octets of addresses are one zone.
    Block = 0x63,
    /// Whether a network of a registry is delegated.
    Delegated = 0x64,
    /// The name of an address.
    Pointer = 0x65,
    /// The addresses whose names clients ask for.
    PointerAsked = 0x66,
}

/// The source of all draws of one internet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    keys: [u64; 2],
}

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self { keys: [mix(seed ^ 0x0064_6e73_6c61_6231), mix(seed ^ 0x0064_6e73_6c61_6232)] }
    }

    /// 64 random bits.
    #[inline]
    pub(crate) fn word(&self, about: About, subject: u64) -> u64 {
        let purpose = (about as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.keys[1];
        mix(mix(subject ^ self.keys[0]) ^ purpose)
    }

    /// 64 random bits about a part of the subject.
    #[inline]
    pub(crate) fn of_part(&self, about: About, subject: u64, part: u64) -> u64 {
        self.word(about, self.word(About::Node, subject) ^ part)
    }

    /// A whole number below `bound`, which is not 0.
    #[inline]
    pub(crate) fn below(&self, about: About, subject: u64, bound: u64) -> u64 {
        below(self.word(about, subject), bound)
    }
}

/// A random word as a whole number below `bound`.
#[inline]
pub(crate) fn below(word: u64, bound: u64) -> u64 {
    ((u128::from(word) * u128::from(bound)) >> 64) as u64
}

/// A random word as a number in [0, 1).
pub(crate) fn unit(word: u64) -> f64 {
    (word >> 11) as f64 / (1_u64 << 53) as f64
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a permutation whose output bits each depend on all
/// input bits.
#[inline]
pub(crate) fn mix(mut word: u64) -> u64 {
    word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A share of all subjects, as a bound for words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chance {
    /// Words below it belong to the share; 2^64 for all.
    bound: u128,
}

impl Chance {
    /// `share` is in [0, 1].
    pub(crate) fn new(share: f64) -> Self {
        Self { bound: (share * 2_f64.powi(64)) as u128 }
    }

    #[inline]
    pub(crate) fn includes(self, word: u64) -> bool {
        u128::from(word) < self.bound
    }
}

/// Values with weights.
#[derive(Clone, Debug)]
pub(crate) struct Weighted<T> {
    values: Vec<T>,
    /// Words from the end before up to here choose the value of this place.
    ends: Vec<u64>,
}

impl<T: Copy> Weighted<T> {
    /// There is at least one value, and a weight above 0.
    pub(crate) fn new(values: impl IntoIterator<Item = (T, f64)>) -> Self {
        // The last value is chosen where weights are rounded, so it must have one.
        let weighted = values.into_iter().filter(|(_, weight)| *weight > 0.0);
        let (values, weights): (Vec<T>, Vec<f64>) = weighted.unzip();
        let sum: f64 = weights.iter().sum();
        let mut so_far = 0.0;
        let end = |weight: &f64| {
            so_far += weight;
            (so_far / sum * 2_f64.powi(64)) as u64
        };
        let ends = weights.iter().map(end).collect();
        Self { values, ends }
    }

    #[inline]
    pub(crate) fn pick(&self, word: u64) -> T {
        let place = self.ends.partition_point(|end| *end <= word);
        self.values[place.min(self.values.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_kept() {
        let draws = Draws::new(1);
        for share in [0.0, 0.001, 0.3, 0.999, 1.0] {
            let chance = Chance::new(share);
            let hits =
                (0..100_000).filter(|subject| chance.includes(draws.word(About::Fault, *subject)));
            let found = hits.count() as f64 / 1e5;
            // Six standard deviations.
            let bound = 6.0 * (share * (1.0 - share) / 1e5).sqrt();
            assert!((found - share).abs() <= bound, "{found} in the place of {share}");
        }
    }

    #[test]
    fn weights_are_kept() {
        let weighted = Weighted::new([(1, 3.0), (2, 0.0), (3, 1.0)]);
        let draws = Draws::new(2);
        let mut counts = [0_u32; 4];
        for subject in 0..100_000 {
            counts[weighted.pick(draws.word(About::Ttl, subject))] += 1;
        }
        assert_eq!((counts[0], counts[2]), (0, 0));
        assert!((74_000..76_000).contains(&counts[1]), "{counts:?}");
        assert_eq!(weighted.pick(u64::MAX), 3);
    }

    #[test]
    fn purposes_are_independent() {
        let draws = Draws::new(3);
        let both = |subject: &u64| {
            let [one, other] =
                [About::Fault, About::OwnNames].map(|about| draws.word(about, *subject));
            one >> 63 == other >> 63
        };
        let same = (0..10_000).filter(both).count();
        assert!((4_600..5_400).contains(&same), "{same}");
        assert_ne!(draws.word(About::Ttl, 1), Draws::new(4).word(About::Ttl, 1));
    }
}
