//! The one table of keys of an experiment file.
//!
//! Everything that knows a key by name comes from here: reading and checking, suggestions, the
//! overrides of variants and of the command line, the JSON schema and the reference.

mod chain;
mod form;
mod load;
mod reference;
mod schema;
mod table;

pub use form::Form;
pub use reference::reference;
pub use schema::schema;
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

/// The key that somebody who wrote `path` most likely meant.
///
/// A right last part in a wrong place (`clients` for `load.clients`) counts as much as a slip of
/// the finger.
#[must_use]
pub(crate) fn closest_key(path: &str) -> Option<&'static Key> {
    let last = path.rsplit('.').next().unwrap_or(path);
    let score = |key: &Key| {
        // Slightly less than a whole path of the same likeness, so that the right group wins.
        likeness(path, key.path).max(likeness(last, key.last_part()) * 0.98)
    };
    KEYS.iter()
        .map(|key| (score(key), key))
        .filter(|(likeness, _)| *likeness >= CLOSE_ENOUGH)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, key)| key)
}

/// The table of keys that somebody who wrote a table at `path` most likely meant.
pub(crate) fn closest_group(path: &str) -> Option<&'static str> {
    closest_word(path, KEYS.iter().filter_map(|key| Some(key.path.rsplit_once('.')?.0)))
}

/// The word of `words` that somebody who wrote `word` most likely meant.
pub(crate) fn closest_word<'a>(
    word: &str,
    words: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_lowercase();
    words
        .into_iter()
        .map(|known| (likeness(&word, &known.to_lowercase()), known))
        .filter(|(likeness, _)| *likeness >= CLOSE_ENOUGH)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}

/// How alike two words are, in [0, 1]: by Jaro-Winkler, which knows nothing of a swap in a word as
/// short as `upd`, or one slip of the finger apart.
fn likeness(written: &str, known: &str) -> f64 {
    let one_slip = known.len() >= 3 && strsim::osa_distance(written, known) == 1;
    strsim::jaro_winkler(written, known).max(if one_slip { 0.9 } else { 0.0 })
}

/// Likeness in [0, 1] from which a suggestion helps rather than puzzles: `clinets`
/// and `clients` have 0.95, `colour` and `clients` 0.60.
const CLOSE_ENOUGH: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_their_key() {
        let check = |written: &str, meant: Option<&str>| {
            assert_eq!(closest_key(written).map(|key| key.path), meant, "for `{written}`");
        };
        check("load.clinets", Some("load.clients"));
        check("clients", Some("load.clients"));
        check("load.warmup", Some("load.warm_up"));
        check("server.zone.record", Some("server.zone.records"));
        check("runs", Some("repeat.runs"));
        check("zone.ttl", Some("server.zone.ttl"));
        check("xyzzy", None);
    }

    #[test]
    fn slips_find_their_word() {
        let check = |written: &str, meant: Option<&str>| {
            assert_eq!(closest_word(written, ["udp", "tcp", "dot"]), meant, "for `{written}`");
        };
        check("upd", Some("udp"));
        check("UDP", Some("udp"));
        check("doq", Some("dot"));
        check("https", None);
        assert_eq!(closest_group("laod"), Some("load"));
        assert_eq!(closest_group("sever.zone"), Some("server.zone"));
        assert_eq!(closest_group("xyzzy"), None);
    }

    #[test]
    fn paths_are_groups_or_keys() {
        assert!(is_group("server") && is_group("server.zone"));
        assert!(!is_group("load.clients") && !is_group("serv") && !is_group(""));
        for key in KEYS {
            assert!(!is_group(key.path), "`{}` is a key and a group", key.path);
            assert_eq!(KEYS.iter().filter(|other| other.path == key.path).count(), 1);
        }
    }
}
