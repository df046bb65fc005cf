//! Keys out of the octets that a terminal sends.
//!
//! Whatever comes, the next key is understood: a sequence that does not end is given up, and octets that are no key
//! are passed over.

use std::time::{Duration, Instant};

/// What the view does on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A letter or a sign of ASCII, or Tab.
    Sign(char),
    /// The key F1.
    Help,
    /// Another key.
    Other,
}

/// A terminal sends a sequence at once. What comes later than this after its beginning is a key of its own.
const SEQUENCE: Duration = Duration::from_millis(50);

/// Longest sequence, in octets.
const LONGEST: usize = 16;

/// Reads sequences of ECMA-48, as xterm sends them.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// The sequence so far, from the escape on, and when it began.
    begun: Option<(Vec<u8>, Instant)>,
}

impl Keys {
    /// The keys that these octets complete. `now` is when they came.
    pub(super) fn read(&mut self, octets: &[u8], now: Instant) -> Vec<Key> {
        let mut keys = Vec::from_iter(self.give_up(now));
        keys.extend(octets.iter().filter_map(|octet| self.take(*octet, now)));
        keys
    }

    /// The key of a sequence that has not gone on for too long.
    pub(super) fn give_up(&mut self, now: Instant) -> Option<Key> {
        let is_over = |(_, began): &mut (Vec<u8>, Instant)| now.duration_since(*began) >= SEQUENCE;
        self.begun.take_if(is_over).map(|_| Key::Other)
    }

    fn take(&mut self, octet: u8, now: Instant) -> Option<Key> {
        const ESCAPE: u8 = 0x1b;
        if octet == ESCAPE {
            let earlier = self.begun.replace((vec![ESCAPE], now));
            return earlier.map(|_| Key::Other);
        }
        let Some((sequence, _)) = &mut self.begun else { return key_of(octet) };
        sequence.push(octet);
        let key = match (&sequence[1..], octet) {
            ([b'[' | b'O'], _) => return None,
            (b"OP" | b"[11~" | b"[P", _) => Key::Help,
            // No terminal sends a sequence of such a letter alone: it is that key after Alt and a bracket.
            ([b'[', letter], b'a'..=b'z') => Key::Sign(char::from(*letter)),
            // Parameters of a sequence, and what stands between them and its last octet.
            ([b'[', ..], 0x20..=0x3f) if sequence.len() < LONGEST => return None,
            _ => Key::Other,
        };
        self.begun = None;
        Some(key)
    }
}

/// The key of an octet by itself. What is not ASCII is none, whether it is UTF-8 or not.
fn key_of(octet: u8) -> Option<Key> {
    match octet {
        b'\t' | b' '..=b'~' => Some(Key::Sign(char::from(octet))),
        0x80.. => None,
        _ => Some(Key::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces come one right after the other; a pause is longer than a sequence may last.
    #[track_caller]
    fn check(pieces: &[&[u8]], expected: &[Key]) {
        let (mut keys, mut now) = (Keys::default(), Instant::now());
        let mut found = Vec::new();
        for piece in pieces {
            if *piece == PAUSE {
                now += 2 * SEQUENCE;
                found.extend(keys.give_up(now));
            } else {
                found.extend(keys.read(piece, now));
            }
        }
        assert_eq!(found, expected, "{pieces:?}");
    }

    const PAUSE: &[u8] = b"...";
    const Q: Key = Key::Sign('q');

    #[test]
    fn keys_are_read() {
        check(&[b"q p?\t"], &[Q, Key::Sign(' '), Key::Sign('p'), Key::Sign('?'), Key::Sign('\t')]);
        for help in [&b"\x1bOP"[..], b"\x1b[11~", b"\x1b[P"] {
            check(&[help], &[Key::Help]);
        }
        // An arrow, one with Shift, a key of the keypad, in one piece or in two.
        check(&[b"\x1b[A\x1b[1;2B\x1bOqq"], &[Key::Other, Key::Other, Key::Other, Q]);
        check(&[b"\x1b[1", b";5Cq"], &[Key::Other, Q]);
        // Alt and a letter is not that letter.
        check(&[b"\x1bqq"], &[Key::Other, Q]);
        check(&[b"\x1b", PAUSE, b"q"], &[Key::Other, Q]);
    }

    #[test]
    fn nothing_swallows_the_next_key() {
        check(&[b"\x1b[", PAUSE, b"q"], &[Key::Other, Q]);
        check(&[b"\x1b[q"], &[Q]);
        check(&[b"\xffq\xc3q\xe2\x82"], &[Q, Q]);
        // A paste that does not end, and a sequence that does not.
        check(&[b"\x1b[200~q"], &[Key::Other, Q]);
        let endless = [&b"\x1b["[..], &[b'1'; LONGEST], b"q"].concat();
        check(&[&endless], &[Key::Other, Key::Sign('1'), Key::Sign('1'), Q]);
        check(
            &[b"\x1b\x1b\x1b[\x1b", PAUSE, b"q"],
            &[Key::Other, Key::Other, Key::Other, Key::Other, Q],
        );
    }
}
