//! The answers of two variants compared: a row for each class of each comparison, and one for the queries with
//! the same answer.

use dnslab_record::{AnswerComparison, ClassCount};

use super::field::push_row;

/// Headings.
const HEADER: [&str; 11] = [
    "variant",
    "against",
    "repetition",
    "compared",
    "class",
    "queries",
    "questions",
    "queries_differing_again",
    "questions_differing_again",
    "queries_not_differing_again",
    "questions_not_differing_again",
];

pub(crate) fn answers(comparisons: &[AnswerComparison]) -> String {
    let mut text = String::new();
    push_row(&mut text, HEADER.map(str::to_owned));
    for comparison in comparisons {
        let AnswerComparison { same, neither, alone, classes, .. } = comparison;
        push_row(&mut text, row(comparison, "same", *same, None));
        for class in classes {
            let name = serde_json::to_value(class.class).unwrap_or_default();
            let name = name.as_str().unwrap_or_default();
            push_row(&mut text, row(comparison, name, class.queries, Some(class)));
        }
        push_row(&mut text, row(comparison, "neither-answered", *neither, None));
        push_row(&mut text, row(comparison, "of-variant-alone", alone[0], None));
        push_row(&mut text, row(comparison, "of-against-alone", alone[1], None));
    }
    text
}

fn row(
    comparison: &AnswerComparison,
    name: &str,
    queries: u64,
    class: Option<&ClassCount>,
) -> [String; HEADER.len()] {
    let text_of = |count: fn(&ClassCount) -> u64| {
        class.map_or_else(String::new, |class| count(class).to_string())
    };
    [
        comparison.variant.clone(),
        comparison.against.clone(),
        comparison.repetition.to_string(),
        comparison.compared.to_string(),
        name.to_owned(),
        queries.to_string(),
        text_of(|class| class.questions),
        text_of(|class| class.again),
        text_of(|class| class.questions_again),
        text_of(|class| class.not_again),
        text_of(|class| class.questions_not_again),
    ]
}
