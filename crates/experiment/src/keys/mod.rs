//! The one table of keys of an experiment file.
//!
//! Everything that knows a key by name comes from here: reading and checking, suggestions, the
//! overrides of variants and of the command line, the JSON schema and the reference.

mod chain;
mod form;
mod load;
mod reference;
mod schema;
mod suggestion;
mod table;

pub use form::Form;
pub use reference::reference;
pub use schema::schema;
pub(crate) use suggestion::{closest_group, closest_key, closest_word};
pub use table::{KEYS, VARIANT_NAME};

/// One key of an experiment file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// Dotted path from the top of the file, e.g. `load.clients`.
    pub path: &'static str,
    /// What may be written, and within which bounds.
    pub form: Form,
    /// What holds when nothing is written.
    pub preset: Preset,
    /// What it is for, in one line without a full stop.
    pub meaning: &'static str,
}

/// What holds when a key is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// The key must be written.
    Required,
    /// This value, as TOML.
    Value(&'static str),
    /// No value; what that means, in words.
    Absent(&'static str),
}

impl Key {
    /// A key, in the order in which the table reads best.
    const fn new(path: &'static str, form: Form, preset: Preset, meaning: &'static str) -> Self {
        Self { path, form, preset, meaning }
    }

    /// True if a variant may have its own value. The name, the question, the baseline, the common
    /// load and the repetition belong to the experiment as a whole.
    #[must_use]
    pub fn is_overridable(&self) -> bool {
        let of_all = ["repeat.", "common."];
        self.path.contains('.') && !of_all.iter().any(|group| self.path.starts_with(group))
    }

    /// True if its value is code: it names a program, a root folder whose programs are run or a folder that
    /// is written to, or is text of a configuration, which may name programs in its turn.
    #[must_use]
    pub fn is_code(&self) -> bool {
        matches!(self.last_part(), "binary" | "root" | "extra" | "folder")
    }

    /// The last part of the path, e.g. `clients`.
    #[must_use]
    pub fn last_part(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }
}

/// The key with this path.
#[must_use]
pub(crate) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// True if keys lie below this path, e.g. `server.zone`.
#[must_use]
pub(crate) fn is_group(path: &str) -> bool {
    KEYS.iter().any(|key| {
        key.path.strip_prefix(path).is_some_and(|rest| !path.is_empty() && rest.starts_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_groups_or_keys() {
        assert!(is_group("server") && is_group("server.zone"));
        assert!(!is_group("load.clients") && !is_group("serv") && !is_group(""));
        for key in KEYS {
            assert!(!is_group(key.path), "`{}` is a key and a group", key.path);
            assert_eq!(KEYS.iter().filter(|other| other.path == key.path).count(), 1);
        }
    }

    /// A new key that takes text or a path is put into one of the two lists by whoever adds it.
    #[test]
    fn keys_that_are_code_are_known() {
        let harmless = [
            "question",
            "baseline",
            "compare.with",
            // Files that are read.
            "server.authority",
            "load.queries",
            "load.tsig_file",
            // Read by a parser of dnslab's own.
            "server.unit",
            "server.delay",
            "server.loss",
            "upstream.delay",
            "upstream.loss",
            "load.sources",
            "load.types",
            "load.client_subnets",
            "load.tsig",
        ];
        let code = [
            "server.binary",
            "server.root",
            "server.extra",
            "server.log.folder",
            "relay.binary",
            "relay.extra",
            "upstream.binary",
            "upstream.extra",
        ];
        for key in KEYS.iter().filter(|key| matches!(key.form, Form::Text | Form::Path)) {
            let is_known = harmless.contains(&key.path) != code.contains(&key.path);
            assert!(is_known, "`{}` is in none of the lists, or in both", key.path);
        }
        let found: Vec<&str> =
            KEYS.iter().filter(|key| key.is_code()).map(|key| key.path).collect();
        assert_eq!(found, code);
    }
}
