//! The answers of two servers to the same queries, compared.

use std::fmt::Write as _;

use dnslab_record::{AnswerComparison, AnswerExample, ClassCount};

use super::html::{collapsed_text, escape};
use crate::number;
use crate::words::answers::{PairSums, class_name, text};

const HEADER: [&str; 7] = [
    "difference",
    "queries",
    "share",
    "questions",
    "differ again",
    "do not differ again",
    "not asked again",
];

const HINT: &str = "Each query has one place: the first of these in which its two answers differ. The order of \
                    records, TTLs, the case of names and compression do not count, and of EDNS not the payload \
                    size, cookies and padding. Different questions were asked again of both servers, twice, the \
                    most frequent first. What differs each time differs again. The rest are answers that change by \
                    themselves: addresses in turn, caches, lost packets.";

/// Nothing if no answers were compared.
pub(super) fn section(comparisons: &[AnswerComparison]) -> String {
    let pairs = PairSums::of(comparisons);
    if pairs.is_empty() {
        return String::new();
    }
    let mut html = format!(
        "<section id=\"answers\">\n<h2>Answers compared</h2>\n<p class=\"hint\">{}</p>\n",
        escape(HINT)
    );
    for sums in &pairs {
        let _ = writeln!(html, "<p>{}</p>", escape(&text(sums)));
        html.push_str(&table(sums));
        let of_pair = comparisons.iter().filter(|comparison| {
            (comparison.variant.as_str(), comparison.against.as_str())
                == (sums.variant, sums.against)
        });
        html.push_str(&examples(sums, of_pair.flat_map(|comparison| &comparison.examples)));
    }
    html.push_str("</section>\n");
    html
}

fn table(sums: &PairSums<'_>) -> String {
    if sums.classes.is_empty() {
        return String::new();
    }
    let header: String =
        HEADER.iter().map(|heading| format!("<th scope=\"col\">{heading}</th>")).collect();
    let label = escape(&format!("Answers of {} and {}", sums.variant, sums.against));
    let mut html = format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\">\n\
         <table class=\"figures\">\n<thead><tr>{header}</tr></thead>\n<tbody>\n"
    );
    for class in &sums.classes {
        let share = class.queries as f64 / sums.compared.max(1) as f64;
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", class_name(class.class));
        for cell in [
            number::count(class.queries),
            number::share(share),
            number::count(class.questions),
            queries_and_questions(class.again, class.questions_again),
            queries_and_questions(class.not_again, class.questions_not_again),
            number::count(ClassCount::not_asked(class)),
        ] {
            let _ = write!(html, "<td>{}</td>", escape(&cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n</div>\n");
    html
}

fn queries_and_questions(queries: u64, questions: u64) -> String {
    match queries {
        0 => "0".to_owned(),
        queries => {
            let questions = number::counted(questions, "question", "questions");
            format!("{} ({questions})", number::count(queries))
        }
    }
}

/// Questions with both answers, which are what servers sent, collapsed.
fn examples<'a>(sums: &PairSums<'_>, examples: impl Iterator<Item = &'a AnswerExample>) -> String {
    let mut html = String::new();
    for example in examples {
        let AnswerExample { class, class_again, question, queries, said, against_said } = example;
        let again = match class == class_again {
            true => String::new(),
            false => format!(", when asked again {}", class_name(*class_again)),
        };
        let times = if *queries == 1 { "time" } else { "times" };
        let title = format!(
            "{question}: {}{again}, {} {times}",
            class_name(*class),
            number::count(*queries)
        );
        let both = format!(
            ";; {} says\n\n{said}\n;; {} says\n\n{against_said}",
            sums.variant, sums.against
        );
        html.push_str(&collapsed_text(&title, &both));
    }
    if html.is_empty() {
        return html;
    }
    format!("<details><summary>What differs again, with both answers</summary>\n{html}</details>\n")
}
