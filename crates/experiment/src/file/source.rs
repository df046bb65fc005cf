//! An experiment as it was read.

use super::owner::Untrusted;

/// The text of an experiment and its name in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path, or the name of a built-in in angle brackets.
    pub name: String,
    /// The text.
    pub text: String,
    /// Why it is not run without a question: it names code and may be somebody else's. `None` for built-ins,
    /// for the user's own file, and for a file that names no code.
    pub untrusted: Option<Box<Untrusted>>,
}

impl Source {
    /// The arguments of a command, which are an experiment too.
    #[must_use]
    pub fn of_arguments() -> Self {
        Self { name: "<arguments>".to_owned(), text: String::new(), untrusted: None }
    }
}
