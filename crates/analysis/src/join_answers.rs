//! Two files of answers, joined by the names of their queries.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::Read;

use dnslab_figures::{AnswerRecord, AnswerRecords, AnswersError};
use dnslab_record::{AnswerRelation, DifferenceClass};

/// Different questions with a difference of one class that are kept.
pub const MAX_QUESTIONS: usize = 100_000;

/// Records that may wait for those of the other load, about 1 GB of memory. Both loads ask in the same order,
/// so what waits is what one of them has answered and the other has not, up to its time-out.
const MAX_WAITING: usize = 16_000_000;

/// What two loads with the same queries have in common, and what not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Joined {
    /// Queries that both loads asked.
    pub compared: u64,
    /// Those with the same answer.
    pub same: u64,
    /// Those without an answer that can be compared on either side.
    pub neither: u64,
    /// Those that differ, by class and question; those of the most frequent questions first. At most
    /// [`MAX_QUESTIONS`].
    pub differences: Vec<Difference>,
    /// Those that differ and are not among these, by class.
    pub not_kept: Vec<(DifferenceClass, u64)>,
    /// Queries of one load alone: of the first, of the second.
    pub alone: [u64; 2],
}

/// The queries with one question whose answers differ in one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The class.
    pub class: DifferenceClass,
    /// What was asked ([`dnslab_wire::Query::digest`]).
    pub question: u32,
    /// How many queries.
    pub queries: u64,
}

/// Joins the answers of two loads. Memory is bounded, whatever the length of the files.
///
/// # Errors
/// When a file cannot be read or is none, when the loads had different queries, or when they answered in
/// orders that have nothing to do with each other.
pub fn join<One: Read, Other: Read>(one: One, other: Other) -> Result<Joined, AnswersError> {
    let mut joiner = Joiner::default();
    let (mut one, mut other) = (AnswerRecords::open(one)?, AnswerRecords::open(other)?);
    let mut left = [true, true];
    while left.contains(&true) {
        for side in [0, 1] {
            if !left[side] {
                continue;
            }
            let next = if side == 0 { one.next_record()? } else { other.next_record()? };
            match next {
                // What the load that has ended did not ask need not wait for it.
                Some(record) => joiner.take(side, record, left[1 - side])?,
                None => left[side] = false,
            }
        }
    }
    Ok(joiner.finish())
}

#[derive(Default)]
struct Joiner {
    /// Of each side, the queries that the other side has not had yet.
    waiting: [HashMap<(u32, u32), AnswerRecord>; 2],
    found: HashMap<(DifferenceClass, u32), u64>,
    joined: Joined,
}

impl Joiner {
    fn take(
        &mut self,
        side: usize,
        record: AnswerRecord,
        other_goes_on: bool,
    ) -> Result<(), AnswersError> {
        let name = (record.client, record.number);
        let Some(other) = self.waiting[1 - side].remove(&name) else {
            if other_goes_on {
                self.waiting[side].insert(name, record);
                let waiting = self.waiting[side].len();
                if waiting > MAX_WAITING {
                    return Err(AnswersError::Apart { waiting, most: MAX_WAITING });
                }
            } else {
                self.joined.alone[side] += 1;
            }
            return Ok(());
        };
        if record.question != other.question {
            let (client, number) = name;
            return Err(AnswersError::OtherQuestion { client, number });
        }
        self.joined.compared += 1;
        match AnswerRelation::of(&record, &other) {
            AnswerRelation::Same => self.joined.same += 1,
            AnswerRelation::Neither => self.joined.neither += 1,
            AnswerRelation::Differs(class) => self.note(class, record.question),
        }
        Ok(())
    }

    fn note(&mut self, class: DifferenceClass, question: u32) {
        let has_room = self.found.len() < MAX_QUESTIONS;
        match self.found.entry((class, question)) {
            Entry::Occupied(mut known) => *known.get_mut() += 1,
            Entry::Vacant(new) if has_room => {
                new.insert(1);
            }
            Entry::Vacant(_) => {
                let not_kept = &mut self.joined.not_kept;
                match not_kept.iter_mut().find(|(its, _)| *its == class) {
                    Some((_, count)) => *count += 1,
                    None => not_kept.push((class, 1)),
                }
            }
        }
    }

    fn finish(self) -> Joined {
        let Self { waiting, found, mut joined } = self;
        for (alone, waiting) in joined.alone.iter_mut().zip(&waiting) {
            *alone += waiting.len() as u64;
        }
        let difference = |((class, question), queries)| Difference { class, question, queries };
        joined.differences = found.into_iter().map(difference).collect();
        // The order of a map is another each time.
        joined.differences.sort_unstable_by_key(|difference| {
            (std::cmp::Reverse(difference.queries), difference.class, difference.question)
        });
        joined.not_kept.sort_unstable();
        joined
    }
}

#[cfg(test)]
mod tests {
    use dnslab_wire::AnswerDigest;

    use super::*;
    use dnslab_figures::{HowEnded, answers_header as header};

    fn record(client: u32, number: u32, answer: u32) -> AnswerRecord {
        let digest = AnswerDigest { answer, ..AnswerDigest::default() };
        let ended = HowEnded::Answered;
        AnswerRecord { client, number, question: 100 * client + number, ended, digest }
    }

    fn file(records: impl IntoIterator<Item = AnswerRecord>) -> Vec<u8> {
        let records = records.into_iter().flat_map(|record| record.octets());
        header().into_iter().chain(records).collect()
    }

    #[test]
    fn queries_are_joined_by_name_in_any_order() {
        let one = file([record(1, 0, 7), record(1, 1, 7), record(2, 0, 7), record(9, 0, 1)]);
        let other = file([record(2, 0, 7), record(1, 1, 8), record(1, 0, 7)]);
        let joined = join(&one[..], &other[..]).unwrap();
        let difference = Difference { class: DifferenceClass::Answer, question: 101, queries: 1 };
        let expected = Joined {
            compared: 3,
            same: 2,
            neither: 0,
            differences: vec![difference],
            not_kept: Vec::new(),
            alone: [1, 0],
        };
        assert_eq!(joined, expected);
        let turned = join(&other[..], &one[..]).unwrap();
        assert_eq!(turned, Joined { alone: [0, 1], ..expected });
    }

    #[test]
    fn the_same_question_of_many_clients_counts_once() {
        let asked = |answer| {
            file((0..50).map(|client| AnswerRecord { question: 5, ..record(client, 0, answer) }))
        };
        let joined = join(&asked(1)[..], &asked(2)[..]).unwrap();
        let expected = Difference { class: DifferenceClass::Answer, question: 5, queries: 50 };
        assert_eq!(joined.differences, [expected]);
        assert_eq!((joined.compared, joined.same), (50, 0));
    }

    #[test]
    fn what_ended_without_an_answer_is_in_a_class_of_its_own() {
        let lost = |record| AnswerRecord {
            ended: HowEnded::TimedOut,
            digest: AnswerDigest::default(),
            ..record
        };
        let one = file([lost(record(1, 0, 7)), lost(record(1, 1, 7))]);
        let other = file([record(1, 0, 7), lost(record(1, 1, 7))]);
        let joined = join(&one[..], &other[..]).unwrap();
        assert_eq!((joined.compared, joined.same, joined.neither), (2, 0, 1));
        assert_eq!(joined.differences[0].class, DifferenceClass::NoAnswer);
    }

    #[test]
    fn loads_with_other_queries_are_not_compared() {
        let other = AnswerRecord { question: 1, ..record(1, 0, 7) };
        let error = join(&file([record(1, 0, 7)])[..], &file([other])[..]).unwrap_err();
        assert!(error.to_string().contains("did not have the same queries"), "{error}");
    }

    #[test]
    fn a_load_that_ended_early_makes_nothing_wait() {
        let (short, long) = (file([record(0, 0, 1)]), file((0..2_000).map(|n| record(0, n, 1))));
        let joined = join(&short[..], &long[..]).unwrap();
        assert_eq!((joined.compared, joined.alone), (1, [0, 1_999]));
    }

    #[test]
    fn questions_beyond_the_bound_are_counted() {
        let many = MAX_QUESTIONS as u32 + 3;
        let asked =
            |answer| file((0..many).map(|n| AnswerRecord { question: n, ..record(0, n, answer) }));
        let joined = join(&asked(1)[..], &asked(2)[..]).unwrap();
        assert_eq!(joined.differences.len(), MAX_QUESTIONS);
        assert_eq!(joined.not_kept, [(DifferenceClass::Answer, 3)]);
        assert_eq!(joined.compared, u64::from(many));
    }
}
