//! The experiment file as written: parsed, walked by the table of keys, every value read by the
//! form of its key, every problem kept with its place.

mod built_in;
mod command_line;
mod owner;
mod render;
mod value;
mod write;

use std::collections::BTreeMap;
use std::ops::Range;

use dnslab_measure::MAX_VARIANTS;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use built_in::{BUILT_IN, Source, load};
pub(crate) use built_in::{Purpose, load_file};
pub(crate) use command_line::apply;
pub use owner::Untrusted;
pub use render::{render, render_styled, without_secrets};
use value::Syntax;
pub(crate) use value::{Host, Value};

use crate::error::{Origin, Place, Problem, Problems, shown};
use crate::keys::{Key, Preset, VARIANT_NAME, closest_group, closest_key, find, is_group};

/// One key with the value that was written for it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// The value; `None` if it could not be read, which is a problem already noted.
    pub(crate) value: Option<Value>,
    /// Where the value stands.
    pub(crate) place: Place,
    /// How near to the run it was written.
    pub(crate) layer: Layer,
}

/// Where a value was written; a later layer wins over an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    /// At the top of the file.
    File,
    /// By `--set key=value`.
    CommandLine,
    /// In a `[[variant]]`.
    Variant,
    /// By `--set variant.NAME.key=value`.
    VariantCommandLine,
}

/// Entries by the path of their key.
pub(crate) type Entries = BTreeMap<&'static str, Entry>;

/// A `[[variant]]` as written.
#[derive(Clone, Debug)]
pub(crate) struct WrittenVariant {
    /// Its name and where that stands; `None` if it has no readable one.
    pub(crate) name: Option<(String, Place)>,
    /// What it overrides.
    pub(crate) entries: Entries,
}

/// The experiment as written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written {
    /// Keys at the top.
    pub(crate) entries: Entries,
    /// The variants, in the order of the file.
    pub(crate) variants: Vec<WrittenVariant>,
    /// True if something stands for a variant that is none.
    pub(crate) has_unreadable_variant: bool,
    /// What was wrong so far.
    pub(crate) problems: Vec<Problem>,
}

/// A piece of the experiment file.
fn in_file(span: Range<usize>) -> Place {
    Place { origin: Origin::File, span }
}

/// Reads a file, with every problem that one table of keys can tell.
///
/// # Errors
/// A text that is not TOML gives the parser's problems only: what is left of it would bring about
/// others that are none.
pub(crate) fn read(text: &str) -> Result<Written, Problems> {
    let (table, errors) = DeTable::parse_recoverable(text);
    // After any other error the parser may have lost the borders of tables, and see keys twice.
    // Neither `toml` nor `toml_parser` gives a kind: the words are all that tells such an error.
    let is_twice = |error: &&toml::de::Error| error.message().starts_with("duplicate key");
    let all_twice = errors.iter().all(|error| is_twice(&error));
    let told = errors.iter().filter(|error| all_twice || !is_twice(error));
    if let Some(problems) = Problems::of(told.map(|error| not_toml(error, text)).collect()) {
        return Err(problems);
    }
    let mut written = Written::default();
    let mut walk = Walk { entries: Entries::new(), problems: Vec::new(), scope: Layer::File };
    for (key, value) in table.get_ref() {
        if key.get_ref() == "variant" {
            let found = walk.problems.len();
            written.variants = read_variants(value, &mut walk.problems);
            written.has_unreadable_variant = walk.problems.len() > found;
        } else {
            walk.visit("", key, value);
        }
    }
    written.entries = walk.entries;
    written.problems = walk.problems;
    Ok(written)
}

/// The keys that are code ([`Key::is_code`]) and have a value that is written in the file itself, each once, in
/// the order of the reference. Values of the command line are the user's own.
pub(crate) fn code_keys(text: &str, sets: &[String]) -> Vec<&'static str> {
    // A text that is not TOML names nothing; whoever reads it is told so elsewhere.
    let Ok(mut written) = read(text) else { return Vec::new() };
    sets.iter().for_each(|set| apply(&mut written, set));
    let of_variants = written.variants.iter().map(|variant| &variant.entries);
    let all: Vec<&Entries> = std::iter::once(&written.entries).chain(of_variants).collect();
    let is_in_file = |path: &str| {
        let mut entries = all.iter().filter_map(|entries| entries.get(path));
        entries.any(|entry| entry.place.origin == Origin::File)
    };
    let code = crate::keys::KEYS.iter().filter(|key| key.is_code());
    code.map(|key| key.path).filter(|path| is_in_file(path)).collect()
}

/// The problem of a text that is no TOML, with a hint when a value lacks its quotes.
fn not_toml(error: &toml::de::Error, text: &str) -> Problem {
    let message = error.message().lines().collect::<Vec<_>>().join(", ");
    let span = error.span().unwrap_or(0..0);
    let line_start = text[..floor(text, span.start)].rfind('\n').map_or(0, |at| at + 1);
    let line = text[line_start..].lines().next().unwrap_or("");
    let bare = line.split_once('=').map(|(_, value)| value.split('#').next().unwrap_or("").trim());
    let needs_quotes = bare.filter(|value| {
        let starts = value.starts_with(|first: char| first.is_ascii_alphanumeric());
        let word = |letter: char| letter.is_ascii_alphanumeric() || ".%:-_/".contains(letter);
        starts && value.chars().all(word)
    });
    let problem = Problem::new(format!("the file is not TOML: {message}"), in_file(span).mark(""));
    match needs_quotes {
        Some(value) => {
            problem.help(format!("text and values with a unit need quotes: \"{value}\""))
        }
        None => problem,
    }
}

/// The nearest border of a character at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Reads the list of variants.
fn read_variants(value: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> Vec<WrittenVariant> {
    let mut variants = Vec::new();
    let not_a_list = |span: Range<usize>| {
        Problem::new("`variant` must be a list of tables", in_file(span).mark("not a list"))
            .help("begin each variant with a line `[[variant]]`, in two pairs of brackets")
    };
    let DeValue::Array(list) = value.get_ref() else {
        problems.push(not_a_list(value.span()));
        return variants;
    };
    if list.len() > MAX_VARIANTS {
        let count = list.len();
        let message = format!("{count} variants are more than a report can tell apart");
        let mark = in_file(value.span()).mark("");
        let help = format!("at most {MAX_VARIANTS} fit; divide them among several experiments");
        problems.push(Problem::new(message, mark).help(help));
        return variants;
    }
    for entry in list.iter() {
        match entry.get_ref() {
            DeValue::Table(table) => {
                variants.push(read_variant(table, entry.span(), problems));
            }
            _ => problems.push(not_a_list(entry.span())),
        }
    }
    variants
}

/// Reads one variant, whose table stands at `span`.
fn read_variant(
    table: &DeTable<'_>,
    span: Range<usize>,
    problems: &mut Vec<Problem>,
) -> WrittenVariant {
    let mut walk = Walk { entries: Entries::new(), problems: Vec::new(), scope: Layer::Variant };
    let mut name = None;
    let mut named = false;
    for (key, value) in table {
        if key.get_ref() != VARIANT_NAME.path {
            walk.visit("", key, value);
            continue;
        }
        named = true;
        let entry = walk.read(&VARIANT_NAME, value);
        if let Some(Value::Text(text)) = entry.value {
            name = Some((text, entry.place));
        }
    }
    if !named {
        let mark = in_file(span).mark("this variant");
        problems.push(Problem::new("a variant has no name", mark).help("add `name = \"...\"`"));
    }
    problems.append(&mut walk.problems);
    WrittenVariant { name, entries: walk.entries }
}

/// A walk over the tables of the file.
struct Walk {
    /// What was read.
    entries: Entries,
    /// What was wrong.
    problems: Vec<Problem>,
    /// [`Layer::File`] or [`Layer::Variant`].
    scope: Layer,
}

impl Walk {
    /// Visits one key below the path `above` (empty at the top). The depth is that of the table of
    /// keys, three at most.
    fn visit(
        &mut self,
        above: &str,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
    ) {
        let path = match above {
            "" => key.get_ref().to_string(),
            _ => format!("{above}.{}", key.get_ref()),
        };
        if let Some(known) = find(&path) {
            if self.scope == Layer::Variant && !known.is_overridable() {
                self.problems.push(not_overridable(known, in_file(key.span())));
                return;
            }
            let entry = self.read(known, value);
            self.entries.insert(known.path, entry);
        } else if is_group(&path) {
            match value.get_ref() {
                DeValue::Table(table) => {
                    for (key, value) in table {
                        self.visit(&path, key, value);
                    }
                }
                _ => {
                    let mark = in_file(value.span()).mark("not a table");
                    let message = format!("`{path}` must be a table of keys");
                    let example = example_below(&path);
                    self.problems
                        .push(Problem::new(message, mark).help(format!("for example {example}")));
                }
            }
        } else {
            let is_table = value.get_ref().is_table();
            let problem = unknown_key(&path, in_file(key.span()));
            self.problems.push(match closest_group(&path).filter(|_| is_table) {
                Some(group) => problem.help(format!("did you mean `{group}`?")),
                None => problem,
            });
        }
    }

    /// Reads a value; a fault becomes a problem.
    fn read(&mut self, key: &Key, value: &Spanned<DeValue<'_>>) -> Entry {
        let place = in_file(value.span());
        let value = match value::read(key, value.get_ref(), Syntax::File) {
            Ok(value) => Some(value),
            Err(fault) => {
                let mark = place.mark(fault.label);
                self.problems.push(Problem::new(fault.message, mark).help(fault.help));
                None
            }
        };
        Entry { value, place, layer: self.scope }
    }
}

/// The first key below a group, written whole: `server.kind = "embedded"`.
fn example_below(group: &str) -> String {
    let below = |key: &&Key| key.path.strip_prefix(group).is_some_and(|rest| rest.starts_with('.'));
    crate::keys::KEYS
        .iter()
        .find(below)
        .map_or_else(String::new, |key| format!("`{} = {}`", key.path, key.form.example()))
}

/// The problem of a key that is not in the table.
fn unknown_key(path: &str, place: Place) -> Problem {
    let problem = Problem::new(format!("unknown key `{}`", shown(path)), place.mark("unknown key"));
    // The likeness of `variants` to the keys is small, the slip frequent.
    if path == "variants" {
        return problem.help("did you mean `[[variant]]`?");
    }
    match closest_key(path) {
        Some(key) => problem.help(format!("did you mean `{}`?", key.path)),
        None => problem.help("docs/EXPERIMENT.md lists all keys"),
    }
}

/// The problem of a variant that overrides what belongs to the whole.
fn not_overridable(key: &Key, place: Place) -> Problem {
    let message = format!("`{}` belongs to the whole experiment", key.path);
    Problem::new(message, place.mark("not in a variant"))
        .help(format!("write `{}` above the first `[[variant]]`", key.path))
}

/// The value that holds when the key is not written, if it has one.
pub(crate) fn preset(key: &Key) -> Option<Value> {
    let Preset::Value(text) = key.preset else { return None };
    let value = DeValue::parse(text).ok()?;
    value::read(key, value.get_ref(), Syntax::File).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_in_the_file_is_told_from_that_of_the_command_line() {
        let text = "name = \"x\"\n[server]\nkind = \"bind\"\nbinary = \"./named\"\n\
                    [[variant]]\nname = \"a\"\nserver.extra = \"x\"\nupstream.extra = \"\"\n\
                    [[variant]]\nname = \"b\"\nserver.extra = 7\n";
        let check = |sets: &[&str], expected: &[&str]| {
            let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
            assert_eq!(code_keys(text, &sets), expected, "{sets:?}");
        };
        check(&[], &["server.binary", "server.extra", "upstream.extra"]);
        check(&["server.binary=named"], &["server.extra", "upstream.extra"]);
        // One of the two that the file has is left.
        let both = ["server.binary=named", "variant.a.server.extra=y"];
        check(&both, &["server.extra", "upstream.extra"]);
        check(&["server.root=./x"], &["server.binary", "server.extra", "upstream.extra"]);
        assert_eq!(code_keys("no toml", &[]), Vec::<&str>::new());
        assert_eq!(code_keys("name = \"x\"", &["server.extra=y".to_owned()]), Vec::<&str>::new());
    }

    #[test]
    fn presets_and_examples_can_be_read() {
        for key in crate::keys::KEYS {
            assert_eq!(preset(key).is_some(), matches!(key.preset, Preset::Value(_)), "{key:?}");
            let example = key.form.example();
            let value = DeValue::parse(&example).unwrap();
            let read = value::read(key, value.get_ref(), Syntax::File);
            assert!(read.is_ok(), "{example} for {key:?}");
        }
    }
}
