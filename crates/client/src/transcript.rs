//! What the queries of a load are told, for a comparison with what another server tells them.
//!
//! A worker only copies each answer into a block, with the name of its query. Somebody else makes records of it
//! ([`records_of`]), so that parsing takes no time between two answers.

use std::collections::VecDeque;

use dnslab_figures::{AnswerRecord, HowEnded};
use dnslab_wire::{AnswerDigest, Query};

/// A block is passed on when it has so many octets.
const BLOCK: usize = 128 * 1024;

/// Octets before an answer: client, number, question, how it ended, and the length of the answer.
const HEAD: usize = 12 + 1 + 4;

/// What the queries of one worker are told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transcript {
    /// Of each query that may still have an outcome; numbered as in [`crate::replay::RecentQueries`].
    names: VecDeque<Name>,
    /// Number of the first of them.
    first: u32,
    /// How many queries each client has asked, by its place among those of the worker.
    asked: Vec<u32>,
    block: Vec<u8>,
}

/// The name of a query that is the same in each load with the same queries.
#[derive(Clone, Copy, Debug)]
struct Name {
    /// Counted over all workers.
    client: u32,
    /// Which query of the client, from 0.
    number: u32,
    question: u32,
}

impl Transcript {
    /// A query is taken up, and gets the next number. `place` is that of its client among those of the worker,
    /// `client` its number over all workers.
    pub(crate) fn take_up(&mut self, place: u32, client: u32, query: &Query) {
        let place = place as usize;
        if place >= self.asked.len() {
            self.asked.resize(place + 1, 0);
        }
        let number = self.asked[place];
        self.asked[place] += 1;
        self.names.push_back(Name { client, number, question: query.digest() });
    }

    /// The query `number` is asked again, under the next number.
    pub(crate) fn take_up_again(&mut self, number: u32) {
        // Of a query that has its outcome nothing follows, and the numbers go on all the same.
        let name = self.name(number).unwrap_or(Name { client: 0, number: 0, question: 0 });
        self.names.push_back(name);
    }

    /// Forgets the queries before `first`.
    pub(crate) fn forget_before(&mut self, first: u32) {
        while self.first != first && self.names.pop_front().is_some() {
            self.first = self.first.wrapping_add(1);
        }
    }

    /// Query `number` has ended. `answer` is the whole answer, if there is one.
    pub(crate) fn ended(&mut self, number: u32, ended: HowEnded, answer: &[u8]) {
        let Some(Name { client, number, question }) = self.name(number) else { return };
        for part in [client, number, question] {
            self.block.extend_from_slice(&part.to_le_bytes());
        }
        self.block.push(ended.number());
        self.block.extend_from_slice(&(answer.len() as u32).to_le_bytes());
        self.block.extend_from_slice(answer);
    }

    /// A block that is full. At the end of the load, whatever is left.
    pub(crate) fn full_block(&mut self, is_end: bool) -> Option<Vec<u8>> {
        let is_full = self.block.len() >= BLOCK || (is_end && !self.block.is_empty());
        let spare = || Vec::with_capacity(if is_end { 0 } else { BLOCK + BLOCK / 8 });
        is_full.then(|| std::mem::replace(&mut self.block, spare()))
    }

    fn name(&self, number: u32) -> Option<Name> {
        self.names.get(number.wrapping_sub(self.first) as usize).copied()
    }
}

/// Makes records of a block that [`crate::Runtime::told`] was given, and appends their octets.
///
/// # Panics
/// When it is no such block.
pub fn records_of(block: &[u8], records: &mut Vec<u8>) {
    let mut scratch = Vec::new();
    let mut rest = block;
    while let Some((head, behind)) = rest.split_first_chunk::<HEAD>() {
        let number =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (answer, behind) = behind.split_at(number(13) as usize);
        rest = behind;
        let ended = HowEnded::of(head[12]).expect("the worker wrote it");
        let digest = match ended {
            HowEnded::Answered => AnswerDigest::of(answer, &mut scratch).ok(),
            _ => None,
        };
        // What looked like an answer by its header may hold less than that says.
        let is_broken = ended == HowEnded::Answered && digest.is_none();
        let record = AnswerRecord {
            client: number(0),
            number: number(4),
            question: number(8),
            ended: if is_broken { HowEnded::Malformed } else { ended },
            digest: digest.unwrap_or_default(),
        };
        records.extend_from_slice(&record.octets());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnslab_wire::{Additions, QueryOptions};
    use domain::base::Name as DomainName;
    use domain::base::iana::Rtype;

    fn query(name: &str) -> Query {
        let name: DomainName<Vec<u8>> = name.parse().unwrap();
        Query::new(&name, Rtype::A, &QueryOptions::default()).unwrap()
    }

    fn records(transcript: &mut Transcript) -> Vec<AnswerRecord> {
        let mut octets = Vec::new();
        if let Some(block) = transcript.full_block(true) {
            records_of(&block, &mut octets);
        }
        octets.as_chunks().0.iter().map(|octets| AnswerRecord::read(octets).unwrap()).collect()
    }

    #[test]
    fn a_query_keeps_its_name_when_it_is_asked_again() {
        let mut transcript = Transcript::default();
        let query = query("a.example");
        for (place, client) in [(0, 4), (1, 6), (0, 4)] {
            transcript.take_up(place, client, &query);
        }
        transcript.take_up_again(2);
        let mut answer = Vec::new();
        query.append_to(9, &Additions::default(), &mut answer);
        answer[2] |= 0x80;
        transcript.ended(3, HowEnded::Answered, &answer);
        transcript.ended(1, HowEnded::TimedOut, &[]);
        transcript.ended(0, HowEnded::Answered, &answer[..20]);
        let found = records(&mut transcript);
        let names: Vec<_> =
            found.iter().map(|record| (record.client, record.number, record.ended)).collect();
        let expected =
            [(4, 1, HowEnded::Answered), (6, 0, HowEnded::TimedOut), (4, 0, HowEnded::Malformed)];
        assert_eq!(names, expected);
        assert!(found.iter().all(|record| record.question == query.digest()));
        assert_eq!(transcript.full_block(true), None);
    }

    #[test]
    fn what_is_forgotten_leaves_the_numbers_as_they_are() {
        let mut transcript = Transcript { first: u32::MAX, ..Transcript::default() };
        let names = ["a.example", "b.example", "c.example"].map(query);
        (0..).zip(&names).for_each(|(place, query)| transcript.take_up(place, place, query));
        transcript.forget_before(0);
        assert_eq!(transcript.names.len(), 2);
        transcript.ended(1, HowEnded::Refused, &[]);
        transcript.ended(u32::MAX, HowEnded::Refused, &[]);
        let found = records(&mut transcript);
        assert_eq!(found.len(), 1, "what was forgotten is passed over");
        assert_eq!((found[0].client, found[0].question), (2, names[2].digest()));
    }

    #[test]
    fn blocks_are_passed_on_when_they_are_full() {
        let mut transcript = Transcript::default();
        transcript.take_up(0, 0, &query("a.example"));
        let mut blocks = 0;
        for _ in 0..BLOCK / HEAD {
            transcript.ended(0, HowEnded::TimedOut, &[]);
            blocks += usize::from(transcript.full_block(false).is_some());
        }
        assert_eq!(blocks, 0);
        transcript.ended(0, HowEnded::TimedOut, &[]);
        assert!(transcript.full_block(false).is_some_and(|block| block.len() >= BLOCK));
    }
}
