//! The answers of two servers to the same queries, compared.
//!
//! A load that was asked to leaves a file of [`AnswerRecord`]s, one for each query. [`join`] reads two of them and
//! finds what differs. What came of it, with what the servers said when they were asked again, is an
//! [`AnswerComparison`], a file in the folder of the variant's run.

use dnslab_figures::{AnswerRecord, HowEnded};
use serde::{Deserialize, Serialize};

/// Version of the form of an [`AnswerComparison`]; see [`crate::run::RECORD_FORMAT`] for the rule.
pub const COMPARISON_FORMAT: u32 = 1;

/// In what two answers to the same query differ first, in the order in which they are looked at.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceClass {
    /// One of the servers gave no answer: the query timed out, was refused, or its connection ended.
    NoAnswer,
    /// One of the answers is malformed.
    Malformed,
    /// The response codes.
    Code,
    /// The flags of the header.
    Flags,
    /// The records of the answer section, without signatures.
    Answer,
    /// The records of the authority section, without signatures.
    Authority,
    /// The records of the additional section, without signatures.
    Additional,
    /// The RRSIG records of any section.
    Signatures,
    /// The OPT record.
    Edns,
}

impl DifferenceClass {
    /// All of them, in the order in which they are looked at.
    pub const ALL: [Self; 9] = [
        Self::NoAnswer,
        Self::Malformed,
        Self::Code,
        Self::Flags,
        Self::Answer,
        Self::Authority,
        Self::Additional,
        Self::Signatures,
        Self::Edns,
    ];
}

/// How two records of the same query relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerRelation {
    /// Both servers say the same.
    Same,
    /// Neither gave an answer that can be compared: none came, or both are malformed.
    Neither,
    /// They differ.
    Differs(DifferenceClass),
}

impl AnswerRelation {
    /// Compares the outcomes of one query at two servers.
    #[must_use]
    pub fn of(one: &AnswerRecord, other: &AnswerRecord) -> Self {
        match [one, other]
            .map(|record| matches!(record.ended, HowEnded::Answered | HowEnded::Malformed))
        {
            [false, false] => return Self::Neither,
            [true, true] => {}
            _ => return Self::Differs(DifferenceClass::NoAnswer),
        }
        match (one.ended == HowEnded::Malformed, other.ended == HowEnded::Malformed) {
            (true, true) => return Self::Neither,
            (false, false) => {}
            _ => return Self::Differs(DifferenceClass::Malformed),
        }
        let (one, other) = (&one.digest, &other.digest);
        let parts = [
            (one.rcode == other.rcode, DifferenceClass::Code),
            (one.flags == other.flags, DifferenceClass::Flags),
            (one.answer == other.answer, DifferenceClass::Answer),
            (one.authority == other.authority, DifferenceClass::Authority),
            (one.additional == other.additional, DifferenceClass::Additional),
            (one.signatures == other.signatures, DifferenceClass::Signatures),
            (one.edns == other.edns, DifferenceClass::Edns),
        ];
        let first = parts.into_iter().find(|(is_same, _)| !is_same);
        first.map_or(Self::Same, |(_, class)| Self::Differs(class))
    }
}

/// The answers of the servers of two variants to the queries of one repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AnswerComparison {
    /// [`COMPARISON_FORMAT`] at the time of writing.
    pub format: u32,
    /// The variant whose answers are compared.
    pub variant: String,
    /// The variant that they are compared with.
    pub against: String,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Queries that both were asked. Each is in one of the three following counts.
    pub compared: u64,
    /// Queries with the same answer from both.
    pub same: u64,
    /// Queries to which neither gave an answer that can be compared.
    pub neither: u64,
    /// Queries whose answers differ, by class, in the order of [`DifferenceClass`]. Classes without one are
    /// left out.
    pub classes: Vec<ClassCount>,
    /// Queries that only one of the two was asked, or whose end was not noted: of the variant, and of the other.
    pub alone: [u64; 2],
    /// Differing queries whose question was not kept, because there were too many different ones.
    #[serde(default)]
    pub not_kept: u64,
    /// Why nothing was asked again; `None` if something was, or there was nothing to ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_asked_because: Option<String>,
    /// Questions that differ again when asked again, the most frequent first; not all, if there are many.
    pub examples: Vec<AnswerExample>,
}

/// The differences of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClassCount {
    /// The class, as it was during the load.
    pub class: DifferenceClass,
    /// Queries of this class.
    pub queries: u64,
    /// Different questions among them, without [`AnswerComparison::not_kept`].
    pub questions: u64,
    /// Those of the queries whose question was asked again, and differed each time.
    pub again: u64,
    /// Different questions among those.
    pub questions_again: u64,
    /// Those of the queries whose question was asked again, and did not differ each time: answers that change by
    /// themselves.
    pub not_again: u64,
    /// Different questions among those.
    pub questions_not_again: u64,
}

impl ClassCount {
    /// Queries whose question was not asked again.
    #[must_use]
    pub fn not_asked(&self) -> u64 {
        self.queries.saturating_sub(self.again).saturating_sub(self.not_again)
    }
}

/// A question that two servers answer differently whenever they are asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AnswerExample {
    /// In what the answers differed during the load.
    pub class: DifferenceClass,
    /// In what they differed when they were last asked.
    pub class_again: DifferenceClass,
    /// Name and type.
    pub question: String,
    /// How often it was asked during the load with a difference of this class.
    pub queries: u64,
    /// What the server of the variant said when it was last asked, or why it said nothing.
    pub said: String,
    /// What the other server said.
    pub against_said: String,
}

impl AnswerComparison {
    /// Queries whose answers differ.
    #[must_use]
    pub fn differing(&self) -> u64 {
        self.classes.iter().map(|class| class.queries).sum()
    }

    /// Those of them whose question differed again each time that it was asked again.
    #[must_use]
    pub fn again(&self) -> u64 {
        self.classes.iter().map(|class| class.again).sum()
    }

    /// Those of them whose question did not differ again.
    #[must_use]
    pub fn not_again(&self) -> u64 {
        self.classes.iter().map(|class| class.not_again).sum()
    }

    /// Those of them whose question was not asked again.
    #[must_use]
    pub fn not_asked(&self) -> u64 {
        self.classes.iter().map(ClassCount::not_asked).sum()
    }
}

#[cfg(test)]
mod tests {
    use dnslab_wire::AnswerDigest;

    use super::*;

    fn record(ended: HowEnded, digest: AnswerDigest) -> AnswerRecord {
        AnswerRecord { client: 1, number: 2, question: 3, ended, digest }
    }

    #[track_caller]
    fn check(
        one: (HowEnded, AnswerDigest),
        other: (HowEnded, AnswerDigest),
        expected: AnswerRelation,
    ) {
        let (one, other) = (record(one.0, one.1), record(other.0, other.1));
        assert_eq!(AnswerRelation::of(&one, &other), expected);
        assert_eq!(AnswerRelation::of(&other, &one), expected);
    }

    #[test]
    fn the_first_that_differs_is_the_class() {
        use DifferenceClass as Class;
        use HowEnded::{Answered, ConnectionLost, Malformed, NotSent, Refused, TimedOut};
        let none = AnswerDigest::default();
        let all = AnswerDigest {
            rcode: 3,
            flags: 1,
            answer: 1,
            authority: 1,
            additional: 1,
            signatures: 1,
            edns: 1,
        };
        check((Answered, all), (Answered, all), AnswerRelation::Same);
        for missing in [TimedOut, NotSent, ConnectionLost, Refused] {
            check((missing, none), (Answered, all), AnswerRelation::Differs(Class::NoAnswer));
            check((missing, none), (Malformed, none), AnswerRelation::Differs(Class::NoAnswer));
            check((missing, none), (TimedOut, none), AnswerRelation::Neither);
        }
        check((Malformed, none), (Malformed, none), AnswerRelation::Neither);
        check((Malformed, none), (Answered, none), AnswerRelation::Differs(Class::Malformed));
        // From the last to the first: each hides those behind it.
        let mut digest = none;
        let mut step = |change: fn(&mut AnswerDigest), class| {
            change(&mut digest);
            check((Answered, none), (Answered, digest), AnswerRelation::Differs(class));
        };
        step(|digest| digest.edns = 1, Class::Edns);
        step(|digest| digest.signatures = 1, Class::Signatures);
        step(|digest| digest.additional = 1, Class::Additional);
        step(|digest| digest.authority = 1, Class::Authority);
        step(|digest| digest.answer = 1, Class::Answer);
        step(|digest| digest.flags = 1, Class::Flags);
        step(|digest| digest.rcode = 1, Class::Code);
    }
}
