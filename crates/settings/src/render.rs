//! Problems as people read them: the reason, the marked line, the help.

use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

use crate::document::floor;
use crate::{Mark, Origin, Problem};

/// Renders problems without colour. `source` is the text of the experiment file and `file_name` its name.
#[must_use]
pub fn render(problems: &[Problem], source: &str, file_name: &str) -> String {
    render_with(&Renderer::plain(), problems, source, file_name)
}

/// [`render`] with colour, for a terminal.
#[must_use]
pub fn render_styled(problems: &[Problem], source: &str, file_name: &str) -> String {
    render_with(&Renderer::styled(), problems, source, file_name)
}

/// Puts one empty line between two problems.
fn render_with(renderer: &Renderer, problems: &[Problem], source: &str, name: &str) -> String {
    let source = without_secrets(source);
    let rendered: Vec<String> = problems
        .iter()
        .map(|problem| {
            let problem =
                Problem { marks: problem.marks.iter().map(masked).collect(), ..problem.clone() };
            renderer.render(&[group(&problem, &source, name)]).trim_end().to_owned()
        })
        .collect();
    rendered.join("\n\n")
}

fn masked(mark: &Mark) -> Mark {
    let mut mark = mark.clone();
    match &mut mark.place.origin {
        Origin::File => {}
        Origin::CommandLine(text) | Origin::Option(text) => *text = without_secrets(text).into(),
    }
    mark
}

/// Masks with stars what may be the secret of a TSIG key: in a value of `tsig`, what follows the last colon,
/// or all if there is none. The length stays the same, so that places keep their meaning.
#[must_use]
pub fn without_secrets(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(TSIG) {
        let (before, after) = rest.split_at(at + TSIG.len());
        shown.push_str(before);
        // Closing quotes of a quoted key and white space may stand before the `=`.
        let to_value = after.trim_start_matches(['"', '\'', ' ', '\t']);
        let Some(value) =
            to_value.strip_prefix('=').map(|rest| rest.trim_start_matches([' ', '\t']))
        else {
            rest = after;
            continue;
        };
        shown.push_str(&after[..after.len() - value.len()]);
        let length = value_length(value);
        shown.push_str(&masked_value(&value[..length]));
        rest = &value[length..];
    }
    shown.push_str(rest);
    shown
}

/// The last part of the key whose value is a secret.
const TSIG: &str = "tsig";

/// Octets of the value at the start of the text: to its closing quote, or without quotes to the end of the
/// line.
fn value_length(text: &str) -> usize {
    let line = text.find(['\n', '\r']).unwrap_or(text.len());
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''));
    let closing = quote.and_then(|quote| text[1..line].find(quote));
    closing.map_or(line, |at| at + 2)
}

fn masked_value(value: &str) -> String {
    let secret_at = value.rfind(':').map_or(0, |colon| colon + 1);
    let star = |letter: char| match letter {
        '"' | '\'' => letter.to_string(),
        other => "*".repeat(other.len_utf8()),
    };
    let (plain, secret) = value.split_at(secret_at);
    format!("{plain}{}", secret.chars().map(star).collect::<String>())
}

fn group<'a>(problem: &'a Problem, source: &'a str, name: &'a str) -> Group<'a> {
    let mut group = Group::with_title(Level::ERROR.primary_title(problem.message.as_str()));
    let mut origins: Vec<&Origin> = Vec::new();
    for mark in &problem.marks {
        if !origins.contains(&&mark.place.origin) {
            origins.push(&mark.place.origin);
        }
    }
    for origin in origins {
        let (text, path) = match origin {
            Origin::File => (source, name),
            Origin::CommandLine(set) => (&**set, "--set"),
            Origin::Option(option) => (&**option, "<arguments>"),
        };
        // There is nothing to point at in an empty text.
        if text.is_empty() {
            continue;
        }
        let of_this = |(_, mark): &(usize, &Mark)| mark.place.origin == *origin;
        let annotations = problem.marks.iter().enumerate().filter(of_this);
        let annotations = annotations.map(|(at, mark)| annotation(at == 0, mark, text));
        group = group.element(Snippet::source(text).path(path).annotations(annotations));
    }
    if problem.marks.is_empty() && !name.is_empty() {
        group = group.element(annotate_snippets::Origin::path(name));
    }
    match &problem.help {
        Some(help) => group.element(Level::HELP.message(help.as_str())),
        None => group,
    }
}

fn annotation<'a>(is_culprit: bool, mark: &'a Mark, text: &str) -> Annotation<'a> {
    let kind = if is_culprit { AnnotationKind::Primary } else { AnnotationKind::Context };
    let annotation = kind.span(within(&mark.place.span, text));
    if mark.label.is_empty() { annotation } else { annotation.label(mark.label.as_str()) }
}

/// The span cut to its first line, to the text, and to borders of characters.
///
/// A value of many lines would fill the screen. A place outside the text would make the renderer panic.
fn within(span: &Range<usize>, text: &str) -> Range<usize> {
    let (start, end) = (floor(text, span.start), floor(text, span.end));
    let end = end.max(start);
    let line_end = text[start..end].find(['\n', '\r']).map_or(end, |length| start + length);
    start..line_end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_in_place() {
        let check = |text: &str, expected: &str| {
            let masked = without_secrets(text);
            assert_eq!(masked, expected);
            assert_eq!(masked.len(), text.len());
        };
        check("load.tsig=key:c2VjcmV0", "load.tsig=key:********");
        check("load.tsig=c2VjcmV0", "load.tsig=********");
        check(
            "x = 1\ntsig = \"hmac-md5:a.b:Zm9v\" # é\ny = 2",
            "x = 1\ntsig = \"hmac-md5:a.b:****\" # é\ny = 2",
        );
        check("{ tsig = 'a:é', tsig = \"b:c\" }", "{ tsig = 'a:**', tsig = \"b:*\" }");
        check("\"tsig\"= 'a:b", "\"tsig\"= 'a:*");
        check("load.tsig_file=key:x", "load.tsig_file=key:x");
        check("server.address=::1", "server.address=::1");
    }
}
