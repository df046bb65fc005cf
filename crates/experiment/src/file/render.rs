//! Problems as people read them: the reason, the marked line, what to do.

use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

use crate::error::{Mark, Origin, Problem};

/// Renders problems without colour. `source` is the text of the experiment file and `file_name`
/// what it is called.
#[must_use]
pub fn render(problems: &[Problem], source: &str, file_name: &str) -> String {
    render_with(&Renderer::plain(), problems, source, file_name)
}

/// Renders problems with colour, for a terminal.
#[must_use]
pub fn render_styled(problems: &[Problem], source: &str, file_name: &str) -> String {
    render_with(&Renderer::styled(), problems, source, file_name)
}

/// Renders each problem with one empty line between two.
fn render_with(renderer: &Renderer, problems: &[Problem], source: &str, name: &str) -> String {
    let rendered: Vec<String> = problems
        .iter()
        .map(|problem| renderer.render(&[group(problem, source, name)]).trim_end().to_owned())
        .collect();
    rendered.join("\n\n")
}

/// One problem as annotate-snippets sees it.
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
            Origin::CommandLine(set) => (set.as_str(), "--set"),
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

/// One mark; the first is the culprit.
fn annotation<'a>(is_culprit: bool, mark: &'a Mark, text: &str) -> Annotation<'a> {
    let kind = if is_culprit { AnnotationKind::Primary } else { AnnotationKind::Context };
    let annotation = kind.span(within(&mark.place.span, text));
    if mark.label.is_empty() { annotation } else { annotation.label(mark.label.as_str()) }
}

/// The span cut to its first line, to the text, and to borders of characters.
///
/// A value of many lines would fill the screen, and a place that is not in the text would make
/// the renderer panic.
fn within(span: &Range<usize>, text: &str) -> Range<usize> {
    let border = |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    let (start, end) = (border(span.start).unwrap_or(0), border(span.end).unwrap_or(0));
    let end = end.max(start);
    let line_end = text[start..end].find(['\n', '\r']).map_or(end, |length| start + length);
    start..line_end
}
