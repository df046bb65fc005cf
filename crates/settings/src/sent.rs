//! A checked load as text, which another host reads.

use crate::writing::{lines, push_lines};
use crate::{Document, Load, LoadDraft, Problem, Problems};

impl Load {
    /// Every key that has a value, a line for each, as an experiment file has it. The secret of a key is not
    /// written out, so a load with [`Load::tsig`] cannot be read again, nor are the hosts: each has a share.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let own = Self { hosts: None, ..self.clone() };
        push_lines(&mut text, &lines(Self::KEYS, own.values()));
        text
    }

    /// The load of such lines. Each value is held to the kind and the bounds of its key. That they go together was
    /// checked where the load was made.
    ///
    /// # Errors
    /// Everything that is wrong with the text, at once.
    pub fn of_toml(text: &str) -> Result<Self, Problems> {
        let mut document = Document::of_file(text)?;
        let others = document.entries.keys().filter(|path| !path.starts_with("load."));
        let variant = document.variants.first().map(|_| "variant");
        let others = others.copied().chain(variant).map(|path| Problem {
            message: format!("`{path}` is no key of a load"),
            marks: Vec::new(),
            help: None,
        });
        document.problems.extend(others.collect::<Vec<_>>());
        match Problems::of(document.problems) {
            Some(problems) => Err(problems),
            None => Ok(LoadDraft::of(&document.entries).checked()),
        }
    }
}
