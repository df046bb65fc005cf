//! What can be wrong with an experiment, and where.

use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// One thing that is wrong with an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// A lowercase fragment with the culprit and its value.
    pub message: String,
    /// The first is the culprit. The others are what it clashes with.
    pub marks: Vec<Mark>,
    /// What to do about it.
    pub help: Option<String>,
}

/// A marked piece of the experiment as written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    /// Where it is.
    pub place: Place,
    /// What to say beside it; may be empty.
    pub label: String,
}

/// A piece of the experiment as written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The text that the piece is in.
    pub origin: Origin,
    /// Octets from the start of that text, on borders of characters.
    pub span: Range<usize>,
}

/// A text that the experiment was written in. All places in it share the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The experiment file.
    File,
    /// One `--set` with its text.
    CommandLine(Arc<str>),
    /// An option of a command, with its value.
    Option(Arc<str>),
}

impl Hash for Origin {
    /// Without the text, which may be long and have many places.
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
    }
}

impl Place {
    pub(crate) fn mark(&self, label: impl Into<String>) -> Mark {
        Mark { place: self.clone(), label: label.into() }
    }
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>, mark: Mark) -> Self {
        Self { message: message.into(), marks: vec![mark], help: None }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Line of the culprit in the experiment file `text`, from 1; `None` if it is on the command line.
    #[must_use]
    pub fn line(&self, text: &str) -> Option<usize> {
        let place = &self.marks.first()?.place;
        match place.origin {
            Origin::File => Some(text.get(..place.span.start)?.matches('\n').count() + 1),
            Origin::CommandLine(_) | Origin::Option(_) => None,
        }
    }

    /// The order of reading: the file from the top, then the command line.
    fn position(&self) -> (bool, usize) {
        self.marks.first().map_or((true, usize::MAX), |mark| {
            (mark.place.origin != Origin::File, mark.place.span.start)
        })
    }
}

/// Problems that are shown. Nobody corrects more at once.
pub(crate) const MAX_SHOWN: usize = 100;

/// At least one problem, each once, in the order of reading. Beyond 100 of them, the last one only says how many more
/// there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// `None` if there are no problems.
    #[must_use]
    pub fn of(problems: Vec<Problem>) -> Option<Self> {
        Self::with_others(problems, 0)
    }

    /// With so many others that are not among them; `None` if there are no problems.
    pub(crate) fn with_others(mut problems: Vec<Problem>, others: usize) -> Option<Self> {
        problems.sort_by_key(Problem::position);
        // A fault at the top is found again in every variant.
        let mut seen = HashSet::new();
        let is_first: Vec<bool> = problems.iter().map(|problem| seen.insert(problem)).collect();
        let count = seen.len() + others;
        let mut is_first = is_first.into_iter();
        problems.retain(|_| is_first.next() == Some(true));
        problems.truncate(MAX_SHOWN);
        let further = count - problems.len();
        if further > 0 {
            let message = match further {
                1 => "1 further problem is not shown".to_owned(),
                _ => format!("{further} further problems are not shown"),
            };
            let further = Problem { message, marks: Vec::new(), help: None };
            problems.push(further.help("correct these first"));
        }
        (!problems.is_empty()).then_some(Self(problems))
    }

    /// In the order of reading.
    #[must_use]
    pub fn as_slice(&self) -> &[Problem] {
        &self.0
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "; " };
            write!(formatter, "{comma}{}", problem.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// The value as a message shows it: on one line, without control characters, cut when long.
pub(crate) fn shown(value: &str) -> String {
    /// A longer value would push the reason off the line.
    const MAX_LENGTH: usize = 60;
    let mut text: String = value.chars().take(MAX_LENGTH).flat_map(char::escape_debug).collect();
    if value.chars().nth(MAX_LENGTH).is_some() {
        text.push_str("...");
    }
    // `escape_debug` escapes quotes too, which are no control characters.
    text.replace("\\\"", "\"").replace("\\'", "'")
}

/// Puts spaces in the place of line breaks and other control characters.
#[must_use]
pub fn on_one_line(reason: &str) -> String {
    reason.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_on_one_line() {
        assert_eq!(shown("10 \"s\""), "10 \"s\"");
        assert_eq!(shown("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
        assert_eq!(shown(&"x".repeat(100)).len(), 63);
    }
}
