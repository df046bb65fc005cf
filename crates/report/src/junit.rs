//! JUnit XML, which GitLab and actions of GitHub show beside a pull request.
//!
//! There is no standard. This is the part that Jenkins' schema, GitLab and the common actions agree on. It is
//! written by hand: a document of five elements does not need a library, and what is in it is escaped here.

use std::fmt::Write as _;

use dnslab_analysis::{Judgement, LimitRuling, Ruling, SessionComparison};
use dnslab_record::{CostLimit, visible_lines};

use crate::gate::change_bound;
use crate::words::session_comparison as words;

/// The comparison as JUnit XML: one case for each limit of each variant. What is worse has failed. What cannot
/// be told is skipped, since it has neither passed nor failed; the exit code tells it from what passed.
#[must_use]
pub fn session_comparison_junit(comparison: &SessionComparison) -> String {
    let name = &comparison.new.name;
    let all = || {
        let rulings = comparison.rulings.iter();
        rulings.flat_map(|ruling| ruling.variants.iter().map(move |judgement| (ruling, judgement)))
    };
    let count = |ruling| all().filter(|(_, judgement)| judgement.ruling == ruling).count();
    let answer = words::answer(comparison);
    // What leaves the whole open, and no limit alone, has a case of its own.
    let is_open = comparison.ruling() == Ruling::Unclear && count(Ruling::Unclear) == 0;
    let tests = all().count() + usize::from(is_open);
    let counts = format!(
        "tests=\"{tests}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
        count(Ruling::Fail),
        count(Ruling::Unclear) + usize::from(is_open)
    );
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(text, "<testsuites name=\"dnslab compare\" {counts} time=\"0\">");
    let started = comparison.new.started.trim_end_matches('Z');
    let _ = writeln!(
        text,
        "  <testsuite name=\"{}\" {counts} time=\"0\" timestamp=\"{}\">",
        escape(name),
        escape(started)
    );
    let _ = writeln!(text, "    <properties>");
    let notes = words::notes(comparison);
    let notes = notes.iter().map(|note| ("note", note.as_str()));
    let conditions = words::conditions(comparison);
    for (key, value) in
        [("answer", answer.as_str()), ("sessions", &conditions)].into_iter().chain(notes)
    {
        let value = escape(value);
        let _ = writeln!(text, "      <property name=\"{key}\" value=\"{value}\"/>");
    }
    let _ = writeln!(text, "    </properties>");
    for (ruling, judgement) in all() {
        push_case(&mut text, name, ruling, judgement);
    }
    if is_open {
        let _ = writeln!(
            text,
            "    <testcase classname=\"{}\" name=\"all runs\" time=\"0\">\n      <skipped message=\"{}\"/>\n    \
             </testcase>",
            escape(name),
            escape(&answer)
        );
    }
    text.push_str("  </testsuite>\n</testsuites>\n");
    text
}

fn push_case(text: &mut String, name: &str, ruling: &LimitRuling, judgement: &Judgement) {
    let limit = change_bound(&ruling.limit);
    let found = match ruling.limit {
        CostLimit::Relative { .. } => {
            format!("{} {}", ruling.metric, words::found(ruling, judgement))
        }
        CostLimit::Absolute(_) => {
            format!("{} is {}", ruling.metric, words::found(ruling, judgement))
        }
    };
    let message = format!("{found}, limit {limit}: {}", words::result(judgement));
    let _ = write!(
        text,
        "    <testcase classname=\"{}.{}\" name=\"{} (limit {})\" time=\"0\"",
        escape(name),
        escape(&judgement.variant),
        escape(&ruling.metric),
        escape(&limit)
    );
    let message = escape(&message);
    let _ = match judgement.ruling {
        Ruling::Pass => {
            writeln!(text, ">\n      <system-out>{message}</system-out>\n    </testcase>")
        }
        Ruling::Fail => writeln!(
            text,
            ">\n      <failure type=\"worse\" message=\"{message}\">{message}</failure>\n    </testcase>"
        ),
        Ruling::Unclear => {
            writeln!(text, ">\n      <skipped message=\"{message}\"/>\n    </testcase>")
        }
    };
}

/// Escapes text for an attribute or an element. Control characters, which XML 1.0 forbids even when escaped,
/// are shown instead, as on a terminal; so are the two that are no characters (section 2.2).
fn escape(text: &str) -> String {
    let text = visible_lines(text);
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            // Else a parser makes blanks of them in an attribute (section 3.3.3).
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            '\u{fffe}' | '\u{ffff}' => escaped.extend(character.escape_default()),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_forbids_is_shown() {
        assert_eq!(
            escape("a<b & \"c\" 'd' ]]>"),
            "a&lt;b &amp; &quot;c&quot; &apos;d&apos; ]]&gt;"
        );
        assert_eq!(escape("\u{0}\u{1b}[2J\u{fffe}é\n"), "\\u{0}\\u{1b}[2J\\u{fffe}é&#10;");
    }
}
