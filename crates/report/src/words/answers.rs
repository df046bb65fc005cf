//! What comparing the answers of two variants came to.

use dnslab_record::{AnswerComparison, ClassCount, DifferenceClass};

use crate::number;

/// In what answers differ, as a noun: `130 differ: 100 in the answer section`.
#[must_use]
pub fn class_name(class: DifferenceClass) -> &'static str {
    match class {
        DifferenceClass::NoAnswer => "no answer from one side",
        DifferenceClass::Malformed => "malformed on one side",
        DifferenceClass::Code => "response code",
        DifferenceClass::Flags => "flags",
        DifferenceClass::Answer => "answer section",
        DifferenceClass::Authority => "authority section",
        DifferenceClass::Additional => "additional section",
        DifferenceClass::Signatures => "signatures",
        DifferenceClass::Edns => "EDNS",
    }
}

/// The comparisons of one pair of variants, added up.
pub(crate) struct PairSums<'a> {
    pub(crate) variant: &'a str,
    pub(crate) against: &'a str,
    pub(crate) compared: u64,
    pub(crate) same: u64,
    pub(crate) neither: u64,
    pub(crate) alone: [u64; 2],
    /// By class, in the order of [`DifferenceClass`]. Questions of several repetitions are counted in each.
    pub(crate) classes: Vec<ClassCount>,
    pub(crate) not_asked_because: Option<&'a str>,
}

impl<'a> PairSums<'a> {
    /// A sum for each pair, in order.
    pub(crate) fn of(comparisons: &'a [AnswerComparison]) -> Vec<Self> {
        let is_same = |one: &AnswerComparison, other: &AnswerComparison| {
            (&one.variant, &one.against) == (&other.variant, &other.against)
        };
        let pairs = comparisons.chunk_by(is_same);
        pairs.filter_map(|of_pair| Self::of_pair(of_pair.first()?, of_pair)).collect()
    }

    fn of_pair(first: &'a AnswerComparison, all: &'a [AnswerComparison]) -> Option<Self> {
        let sum = |count: fn(&AnswerComparison) -> u64| all.iter().map(count).sum();
        Some(Self {
            variant: &first.variant,
            against: &first.against,
            compared: sum(|pair| pair.compared),
            same: sum(|pair| pair.same),
            neither: sum(|pair| pair.neither),
            alone: [sum(|pair| pair.alone[0]), sum(|pair| pair.alone[1])],
            classes: DifferenceClass::ALL
                .into_iter()
                .map(|class| sums_of(class, all))
                .filter(|class| class.queries > 0)
                .collect(),
            not_asked_because: all.iter().find_map(|pair| pair.not_asked_because.as_deref()),
        })
    }

    fn total(&self, count: fn(&ClassCount) -> u64) -> u64 {
        self.classes.iter().map(count).sum()
    }
}

fn sums_of(class: DifferenceClass, all: &[AnswerComparison]) -> ClassCount {
    let classes = || all.iter().flat_map(|comparison| &comparison.classes);
    let sum = |count: fn(&ClassCount) -> u64| {
        classes().filter(|found| found.class == class).map(count).sum()
    };
    ClassCount {
        class,
        queries: sum(|counts| counts.queries),
        questions: sum(|counts| counts.questions),
        again: sum(|counts| counts.again),
        questions_again: sum(|counts| counts.questions_again),
        not_again: sum(|counts| counts.not_again),
        questions_not_again: sum(|counts| counts.questions_not_again),
    }
}

/// What each pair came to, in some sentences.
#[must_use]
pub fn answers_texts(comparisons: &[AnswerComparison]) -> Vec<String> {
    PairSums::of(comparisons).iter().map(text).collect()
}

pub(crate) fn text(sums: &PairSums<'_>) -> String {
    let PairSums { variant, against, compared, same, neither, alone, .. } = sums;
    if *compared == 0 {
        return format!("The answers of {variant} and {against} have no query in common.");
    }
    let queries = number::counted(*compared, "query", "queries");
    let share = |count: u64| number::share(count as f64 / *compared as f64);
    let mut sentences = vec![match same == compared {
        true => format!("{variant} and {against} gave the same answer to all {queries}."),
        false => format!(
            "{variant} and {against} gave the same answer to {} of {queries}.",
            share(*same)
        ),
    }];
    let differing = sums.total(|class| class.queries);
    if differing > 0 {
        let classes = sums
            .classes
            .iter()
            .map(|class| format!("{} {}", class_name(class.class), number::count(class.queries)));
        let classes: Vec<String> = classes.collect();
        let verb = if differing == 1 { "differs" } else { "differ" };
        let count = number::count(differing);
        sentences.push(format!("{count} {verb} ({}).", classes.join(", ")));
        sentences.push(asked_again(sums));
    }
    if *neither > 0 {
        sentences.push(format!("{} had no answer from either.", number::count(*neither)));
    }
    let alone: u64 = alone.iter().sum();
    if alone > 0 {
        let were = if alone == 1 { "was" } else { "were" };
        let queries = number::counted(alone, "query", "queries");
        sentences.push(format!("{queries} {were} asked, or noted, on one side alone."));
    }
    sentences.join(" ")
}

fn asked_again(sums: &PairSums<'_>) -> String {
    let (again, not_again) = (sums.total(|class| class.again), sums.total(|class| class.not_again));
    let (differing, not_asked) =
        (sums.total(|class| class.queries), sums.total(ClassCount::not_asked));
    if let Some(reason) = sums.not_asked_because.filter(|_| again + not_again == 0) {
        return format!("They could not be asked again: {reason}.");
    }
    let questions =
        number::counted(sums.total(|class| class.questions_again), "question", "questions");
    let mut parts = vec![match again {
        0 if differing == 1 => "it does not differ again".to_owned(),
        0 => "none of them differs again".to_owned(),
        1 if differing == 1 => "it differs again".to_owned(),
        again if again == differing => format!("all of them ({questions}) differ again"),
        again => format!("{} of them ({questions}) differ again", number::count(again)),
    }];
    if not_again > 0 && again > 0 {
        parts.push(format!("{} do not", number::count(not_again)));
    }
    if not_asked > 0 {
        parts.push(format!("{} were not asked again", number::count(not_asked)));
    }
    format!("Asked again, {}.", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(classes: &[(DifferenceClass, [u64; 4])]) -> AnswerComparison {
        let classes = classes.iter().map(|&(class, counts)| {
            let [queries, questions, again, not_again] = counts;
            ClassCount {
                class,
                queries,
                questions,
                again,
                questions_again: u64::from(again > 0),
                not_again,
                questions_not_again: u64::from(not_again > 0),
            }
        });
        let classes: Vec<ClassCount> = classes.collect();
        let differing: u64 = classes.iter().map(|class| class.queries).sum();
        AnswerComparison {
            variant: "new".to_owned(),
            against: "old".to_owned(),
            repetition: 1,
            compared: 10_000,
            same: 10_000 - differing,
            classes,
            ..AnswerComparison::default()
        }
    }

    #[track_caller]
    fn check(comparison: AnswerComparison, expected: &str) {
        assert_eq!(answers_texts(&[comparison]), [expected]);
    }

    #[test]
    fn sentences() {
        use DifferenceClass as Class;
        check(comparison(&[]), "new and old gave the same answer to all 10,000 queries.");
        check(
            comparison(&[(Class::Code, [30, 2, 20, 10]), (Class::Answer, [100, 9, 90, 0])]),
            "new and old gave the same answer to 98.7 % of 10,000 queries. 130 differ (response code \
             30, answer section 100). Asked again, 110 of them (2 questions) differ again, 10 do not, 10 were \
             not asked again.",
        );
        check(
            comparison(&[(Class::NoAnswer, [1, 1, 0, 1])]),
            "new and old gave the same answer to > 99.9 % of 10,000 queries. 1 differs (no answer from one \
             side 1). Asked again, it does not differ again.",
        );
        let signed = comparison(&[(Class::Edns, [5, 1, 0, 0])]);
        check(
            AnswerComparison { not_asked_because: Some("they are signed".to_owned()), ..signed },
            "new and old gave the same answer to > 99.9 % of 10,000 queries. 5 differ (EDNS 5). They could \
             not be asked again: they are signed.",
        );
        check(
            AnswerComparison { same: 9_990, neither: 10, alone: [1, 0], ..comparison(&[]) },
            "new and old gave the same answer to 99.9 % of 10,000 queries. 10 had no answer from either. 1 \
             query was asked, or noted, on one side alone.",
        );
        check(
            AnswerComparison { compared: 0, same: 0, alone: [3, 4], ..comparison(&[]) },
            "The answers of new and old have no query in common.",
        );
    }

    #[test]
    fn repetitions_are_added_up_and_pairs_are_kept_apart() {
        let one = comparison(&[(DifferenceClass::Flags, [1, 1, 1, 0])]);
        let other = AnswerComparison { variant: "other".to_owned(), ..one.clone() };
        let second = AnswerComparison { repetition: 2, ..one.clone() };
        let texts = answers_texts(&[one, second, other]);
        assert_eq!(texts.len(), 2);
        assert!(texts[0].contains("of 20,000 queries. 2 differ (flags 2)"), "{}", texts[0]);
        assert!(texts[1].starts_with("other and old"), "{}", texts[1]);
    }
}
