//! Queries over TCP that repeat one over UDP, because its answer was truncated.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::net::IpAddr;

use crate::generations::Generations;
use crate::message::{HEADER, question_length};

/// How long after the query over UDP its repetition comes, at most, in nanoseconds of the capture.
const WITHIN_NS: u64 = 5_000_000_000;

/// The most queries of one generation. Both together take 26 MiB.
const MAX_ENTRIES: usize = 1 << 18;

/// What clients asked last over UDP.
///
/// A client is an address, and a question is compared without the case of letters. Of several queries of a client for
/// one question, the latest counts.
#[derive(Debug)]
pub(crate) struct Repeats {
    asked: Generations<u64, Asked>,
    turned_at: u64,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    at_ns: u64,
    id: u16,
    answer: Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// The capture has none so far.
    Unknown,
    Whole,
    Truncated,
}

impl Repeats {
    pub(crate) fn new() -> Self {
        Self { asked: Generations::new(), turned_at: 0 }
    }

    /// Takes a query over UDP, which is known to be one.
    pub(crate) fn asked(&mut self, at_ns: u64, client: IpAddr, query: &[u8]) {
        let Some(key) = digest(client, query) else { return };
        let is_old = at_ns.saturating_sub(self.turned_at) > WITHIN_NS;
        if is_old || self.asked.young() >= MAX_ENTRIES {
            drop(self.asked.turn());
            self.turned_at = at_ns;
        }
        self.asked.insert(key, Asked { at_ns, id: id(query), answer: Answer::Unknown });
    }

    /// Takes a message that a server sent over UDP. It need not be whole.
    pub(crate) fn answered(&mut self, client: IpAddr, response: &[u8]) {
        let is_response = response.get(2).is_some_and(|flags| flags & 0x80 != 0);
        let Some(key) = digest(client, response).filter(|_| is_response) else { return };
        let Some(asked) = self.asked.get(&key) else { return };
        if response[2] & 0x02 != 0 {
            asked.answer = Answer::Truncated;
        } else if asked.id == id(response) && asked.answer == Answer::Unknown {
            asked.answer = Answer::Whole;
        }
    }

    /// True if this query over TCP repeats one over UDP: the answer of that was truncated; or the capture has no
    /// answer, and both have the same message id, as those of stub resolvers that send the same message again. One
    /// query is repeated once.
    pub(crate) fn is_repeated(&mut self, at_ns: u64, client: IpAddr, query: &[u8]) -> bool {
        let Some(key) = digest(client, query) else { return false };
        let Some(asked) = self.asked.get(&key) else { return false };
        let is_soon = at_ns.checked_sub(asked.at_ns).is_some_and(|later| later <= WITHIN_NS);
        let is_repeated = match asked.answer {
            Answer::Truncated => true,
            Answer::Unknown => asked.id == id(query),
            Answer::Whole => false,
        };
        if is_soon && is_repeated {
            self.asked.remove(&key);
        }
        is_soon && is_repeated
    }
}

/// A number for a client and the only question of a message; `None` if the message has none that is whole. That two
/// differ and have the same is as good as impossible, and then costs a query.
fn digest(client: IpAddr, message: &[u8]) -> Option<u64> {
    let (header, rest) = message.split_at_checked(HEADER)?;
    if header[4..6] != [0, 1] {
        return None;
    }
    let length = question_length(rest)?;
    let mut question = [0; 255 + 4];
    question[..length].copy_from_slice(&rest[..length]);
    // Lengths of labels are below the letters.
    question[..length - 4].make_ascii_lowercase();
    let mut hasher = DefaultHasher::new();
    client.hash(&mut hasher);
    hasher.write(&question[..length]);
    Some(hasher.finish())
}

/// The message id; the message has a header.
fn id(message: &[u8]) -> u16 {
    u16::from_be_bytes([message[0], message[1]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::query;

    const SECOND: u64 = 1_000_000_000;

    fn client(number: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, number])
    }

    /// The answer to a query, with its question alone.
    fn response(query: &[u8], truncated: bool) -> Vec<u8> {
        let mut response = query.to_vec();
        response[2] |= 0x80 | if truncated { 0x02 } else { 0 };
        response
    }

    fn with_id(mut query: Vec<u8>, id: u8) -> Vec<u8> {
        query[..2].copy_from_slice(&[9, id]);
        query
    }

    #[test]
    fn a_truncated_answer_is_followed_by_tcp() {
        let mut repeats = Repeats::new();
        repeats.asked(SECOND, client(1), &query(1));
        repeats.answered(client(1), &response(&query(1), true));
        let again = with_id(query(1).to_ascii_uppercase(), 7);
        assert!(!repeats.is_repeated(2 * SECOND, client(2), &again));
        assert!(!repeats.is_repeated(2 * SECOND, client(1), &with_id(query(2), 7)));
        assert!(!repeats.is_repeated(7 * SECOND, client(1), &again));
        assert!(repeats.is_repeated(2 * SECOND, client(1), &again));
        // Once more is another query.
        assert!(!repeats.is_repeated(2 * SECOND, client(1), &again));
    }

    #[test]
    fn without_answers_the_message_id_tells() {
        let mut repeats = Repeats::new();
        repeats.asked(SECOND, client(1), &query(1));
        assert!(!repeats.is_repeated(2 * SECOND, client(1), &with_id(query(1), 7)));
        assert!(!repeats.is_repeated(0, client(1), &query(1)));
        assert!(repeats.is_repeated(2 * SECOND, client(1), &query(1)));
    }

    #[test]
    fn who_got_a_whole_answer_asks_anew() {
        let mut repeats = Repeats::new();
        repeats.asked(SECOND, client(1), &query(1));
        repeats.answered(client(1), &response(&query(1), false));
        assert!(!repeats.is_repeated(2 * SECOND, client(1), &query(1)));
        // What answers another query, or is none, says nothing of it.
        repeats.asked(SECOND, client(1), &query(1));
        repeats.answered(client(1), &response(&with_id(query(1), 3), false));
        repeats.answered(client(1), &query(1));
        repeats.answered(client(1), b"\x12\x34\x82");
        assert!(repeats.is_repeated(2 * SECOND, client(1), &query(1)));
    }

    #[test]
    fn what_is_long_ago_is_forgotten() {
        let mut repeats = Repeats::new();
        for number in 0..2 * MAX_ENTRIES as u32 + 10 {
            repeats.asked(SECOND, client(1), &query(number));
        }
        assert!(repeats.asked.young() <= MAX_ENTRIES);
        assert!(!repeats.is_repeated(SECOND, client(1), &query(1)));
        let last = 2 * MAX_ENTRIES as u32 + 9;
        assert!(repeats.is_repeated(SECOND, client(1), &query(last)));
    }
}
