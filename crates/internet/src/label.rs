//! Made-up labels. Each is a number in syllables, so that a server can tell from a label alone which domain it
//! is, and whether there is one.

use crate::draw::{About, Draws};

/// The beginnings of a syllable. None of them is the beginning of another plus a vowel.
const ONSETS: [&str; 16] =
    ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "ch", "st"];

const VOWELS: [u8; 4] = *b"aeio";

/// Bits that a syllable carries.
const BITS: u32 = 6;

/// Rounds of the permutation. Four make it indistinguishable from random to whoever has no key (Luby and
/// Rackoff 1988); here it must only look so.
const ROUNDS: u64 = 4;

/// The labels of one internet: a bijection between the numbers below `2^bits` and labels of so many syllables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Labels {
    draws: Draws,
    syllables: u32,
}

impl Labels {
    /// With at least four times as many labels as `numbers`: of labels that look right, most do not exist.
    pub(crate) fn new(draws: Draws, numbers: u64) -> Self {
        let bits = 64 - numbers.saturating_mul(4).leading_zeros();
        Self { draws, syllables: bits.div_ceil(BITS).max(2) }
    }

    /// How many labels there are.
    pub(crate) fn count(&self) -> u64 {
        1 << (BITS * self.syllables)
    }

    /// Appends the label of a number below [`Labels::count`], without its length.
    pub(crate) fn write(&self, number: u64, out: &mut Vec<u8>) {
        syllables(self.permute(number), self.syllables, out);
    }

    /// The number of a lower-cased label; `None` if it is not one of these.
    pub(crate) fn read(&self, label: &[u8]) -> Option<u64> {
        let (value, count) = value_of(label)?;
        (count == self.syllables).then(|| self.restore(value))
    }

    fn half(&self) -> u32 {
        BITS * self.syllables / 2
    }

    fn round(&self, round: u64, half: u64) -> u64 {
        self.draws.of_part(About::Permutation, round, half) & ((1 << self.half()) - 1)
    }

    fn permute(&self, number: u64) -> u64 {
        let half = self.half();
        let (mut left, mut right) = (number >> half, number & ((1 << half) - 1));
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ self.round(round, right));
        }
        left << half | right
    }

    fn restore(&self, number: u64) -> u64 {
        let half = self.half();
        let (mut left, mut right) = (number >> half, number & ((1 << half) - 1));
        for round in (0..ROUNDS).rev() {
            (left, right) = (right ^ self.round(round, left), left);
        }
        left << half | right
    }
}

/// Appends the last `count` syllables of a number.
pub(crate) fn syllables(number: u64, count: u32, out: &mut Vec<u8>) {
    for place in (0..count).rev() {
        let syllable = (number >> (BITS * place)) as usize & ((1 << BITS) - 1);
        out.extend_from_slice(ONSETS[syllable >> 2].as_bytes());
        out.push(VOWELS[syllable & 3]);
    }
}

/// The number that is written in syllables, and how many there are.
fn value_of(mut label: &[u8]) -> Option<(u64, u32)> {
    let (mut value, mut count) = (0_u64, 0);
    while !label.is_empty() {
        let length = label.iter().position(|octet| VOWELS.contains(octet))?;
        let onset = ONSETS.iter().position(|onset| onset.as_bytes() == &label[..length])?;
        let vowel = VOWELS.iter().position(|vowel| *vowel == label[length])?;
        count += 1;
        if count * BITS > 60 {
            return None;
        }
        value = value << BITS | (onset << 2 | vowel) as u64;
        label = &label[length + 1..];
    }
    Some((value, count))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn labels_are_words() {
        let labels = Labels::new(Draws::new(1), 350_000_000);
        assert_eq!((labels.syllables, labels.count()), (6, 1 << 36));
        let mut label = Vec::new();
        labels.write(0, &mut label);
        assert!(label.len() >= 12 && label.iter().all(u8::is_ascii_lowercase), "{label:?}");
        for other in [&b""[..], b"nic", b"www", b"bab", b"baba", b"\0\xff", &[b'b'; 63]] {
            assert_eq!(labels.read(other), None);
        }
    }

    proptest! {
        #[test]
        fn each_number_has_its_label(seed: u64, numbers in 1_u64..1 << 50, number: u64) {
            let labels = Labels::new(Draws::new(seed), numbers);
            prop_assert!(labels.count() / 4 >= numbers);
            let number = number % labels.count();
            let mut label = Vec::new();
            labels.write(number, &mut label);
            prop_assert!(label.len() <= 63);
            prop_assert_eq!(labels.read(&label), Some(number));
        }

        #[test]
        fn no_label_panics(label: Vec<u8>) {
            Labels::new(Draws::new(1), 1_000).read(&label);
        }
    }
}
