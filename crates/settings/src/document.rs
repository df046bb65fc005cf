//! An experiment as written: every value read by the kind of its key, every problem kept with its place.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::entry::{Entries, Entry, Layer};
use crate::experiment::keys;
use crate::keys::VARIANT_NAME;
use crate::problem::{MAX_SHOWN, shown};
use crate::reading::{Fault, Syntax};
use crate::suggestion::{closest_group, closest_key, listed, near};
use crate::{
    DefaultValue, FlagForm, HOST_KEYS, Key, Kind, MAX_VARIANTS, Origin, PUBLISHED_KEYS, Place,
    Problem, Problems, Value,
};

/// The name of the tables of hosts.
const HOST: &str = "host";

/// A `[[variant]]` as written.
#[derive(Clone, Debug, Default)]
pub(crate) struct WrittenVariant {
    /// `None` if it has no readable one.
    pub(crate) name: Option<String>,
    pub(crate) name_place: Option<Place>,
    pub(crate) entries: Entries,
}

/// A `[[published]]` as written.
#[derive(Clone, Debug)]
pub(crate) struct WrittenPublished {
    pub(crate) place: Place,
    pub(crate) entries: Entries,
}

impl WrittenPublished {
    /// The place of a key; that of the whole where the key is missing.
    pub(crate) fn place_of(&self, path: &str) -> &Place {
        self.entries.get(path).map_or(&self.place, |entry| &entry.place)
    }

    /// The text of a key; `None` if it is missing, or could not be read.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.entries.get(path)?.text()
    }
}

/// A `[host.NAME]` as written.
#[derive(Clone, Debug)]
pub(crate) struct WrittenHost {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) entries: Entries,
}

/// The experiment as the file and the command line have it.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// Keys at the top.
    pub(crate) entries: Entries,
    /// In the order of the file.
    pub(crate) variants: Vec<WrittenVariant>,
    /// In the order of the file.
    pub(crate) published: Vec<WrittenPublished>,
    /// In the order of the file.
    pub(crate) hosts: Vec<WrittenHost>,
    /// True if an entry of `variant` could not be read as a variant.
    pub(crate) has_unreadable_variant: bool,
    pub(crate) problems: Vec<Problem>,
}

/// The key with this dotted path.
#[must_use]
pub fn find(path: &str) -> Option<&'static Key> {
    keys().find(|key| key.path == path)
}

/// True if keys lie below this path, e.g. `server.zone`.
pub(crate) fn is_group(path: &str) -> bool {
    keys().any(|key| {
        key.path.strip_prefix(path).is_some_and(|rest| !path.is_empty() && rest.starts_with('.'))
    })
}

impl Document {
    /// Reads a file.
    ///
    /// # Errors
    /// A text that is not TOML gives the parser's problems only: the rest of it would cause false ones. All
    /// other problems come with those of the check.
    pub fn of_file(text: &str) -> Result<Self, Problems> {
        let (table, errors) = DeTable::parse_recoverable(text);
        // After any other error the parser may have lost the borders of tables and see keys twice.
        let is_twice = |error: &&toml::de::Error| error.message().starts_with("duplicate key");
        let all_twice = errors.iter().all(|error| is_twice(&error));
        let mut distinct = errors.iter().filter(|error| all_twice || !is_twice(error));
        let shown: Vec<Problem> =
            distinct.by_ref().take(MAX_SHOWN).map(|error| not_toml(error, text)).collect();
        if let Some(problems) = Problems::with_others(shown, distinct.count()) {
            return Err(problems);
        }
        let mut walk = Walk { entries: Entries::new(), problems: Vec::new(), scope: Layer::File };
        let mut document = Self::default();
        for (key, value) in table.get_ref() {
            if key.get_ref() == "variant" {
                let found = walk.problems.len();
                document.variants = read_variants(value, &mut walk.problems);
                document.has_unreadable_variant = walk.problems.len() > found;
            } else if key.get_ref() == "published" {
                let list = Tables { name: "published", noun: "figure" };
                document.published = list.read(value, &mut walk.problems, read_published);
            } else if key.get_ref() == HOST {
                document.hosts = read_hosts(value, &mut walk.problems);
            } else {
                walk.visit("", key, value);
            }
        }
        (document.entries, document.problems) = (walk.entries, walk.problems);
        Ok(document)
    }

    /// An experiment of one variant, described by options.
    #[must_use]
    pub fn of_options(variant: &str) -> Self {
        let variant =
            WrittenVariant { name: Some(variant.to_owned()), ..WrittenVariant::default() };
        Self { variants: vec![variant], ..Self::default() }
    }

    /// Takes an option of the command line, with its value if it was given one.
    ///
    /// # Panics
    /// When the key has no option.
    pub fn option(&mut self, key: &'static Key, value: Option<&str>) {
        let flag = key.flag.expect("the key has an option");
        let option = format!("--{}", flag.name);
        let (text, from) = match value {
            Some(value) => (format!("{option}={value}"), option.len() + 1),
            None => (option.clone(), 0),
        };
        let value = match (flag.form, value) {
            (FlagForm::Switch(value) | FlagForm::Optional(value), None) => value,
            (FlagForm::OnOff, Some("on")) => "true",
            (FlagForm::OnOff, Some("off")) => "false",
            (_, value) => value.unwrap_or_default(),
        };
        let place = Place { span: from..text.len(), origin: Origin::Option(text.into()) };
        let read = read(key, value, Syntax::Option(&option));
        let entry = Entry::of(read, place, Layer::File, &mut self.problems);
        self.entries.insert(key.path, entry);
    }

    /// Takes an argument of the command line that has no option, as it stands. What is wrong with it becomes a
    /// problem.
    pub fn argument(&mut self, key: &'static Key, text: &str) {
        let place = Place { span: 0..text.len(), origin: Origin::Option(text.into()) };
        let read = read(key, text, Syntax::Option(""));
        let entry = Entry::of(read, place, Layer::File, &mut self.problems);
        self.entries.insert(key.path, entry);
    }

    /// Takes one `--set`. What is wrong with it becomes a problem.
    ///
    /// The value is TOML. What is not TOML is taken as text, so that nobody has to quote quotes for the
    /// shell. `variant.NAME.key=value` reaches into one variant.
    pub fn set(&mut self, set: &str) {
        if let Err(problem) = self.try_set(set) {
            self.problems.push(problem);
        }
    }

    fn try_set(&mut self, set: &str) -> Result<(), Problem> {
        let text: Arc<str> = set.into();
        let place = |from: usize, to: usize| Place {
            origin: Origin::CommandLine(Arc::clone(&text)),
            span: from..to,
        };
        let Some((path, text)) = set.split_once('=') else {
            let message = format!("`{}` has no `=`", shown(set));
            return Err(Problem::new(message, place(0, set.len()).mark("no value"))
                .help("write `--set key=value`, for example `--set load.duration=10s`"));
        };
        let (key_place, value_place) = (place(0, path.len()), place(path.len() + 1, set.len()));
        let full_path = path.trim();
        if let Some((name, path)) =
            full_path.strip_prefix("host.").and_then(|rest| rest.rsplit_once('.'))
        {
            let key = find_of(&HOST_KEYS, HOST, path, key_place.clone())?;
            let read = read(key, text, Syntax::Set(full_path));
            let entry = Entry::of(read, value_place, Layer::CommandLine, &mut self.problems);
            self.host_at(name, key_place).entries.insert(key.path, entry);
            return Ok(());
        }
        let within = full_path.strip_prefix("variant.").and_then(|rest| rest.split_once('.'));
        let (variant, path) = match within {
            Some((name, path)) => (Some(self.variant_at(name, &key_place)?), path),
            None => (None, full_path),
        };
        let key =
            find(path).ok_or_else(|| unknown_key(path, key_place.clone(), self.problems.len()))?;
        if variant.is_some() && !key.is_overridable() {
            let help = format!("write `--set {}=...`", key.path);
            return Err(not_overridable(key, key_place).help(help));
        }
        let layer = variant.map_or(Layer::CommandLine, |_| Layer::VariantCommandLine);
        let read = read(key, text, Syntax::Set(full_path));
        let entry = Entry::of(read, value_place, layer, &mut self.problems);
        let entries = match variant {
            Some(at) => &mut self.variants[at].entries,
            None => &mut self.entries,
        };
        entries.insert(key.path, entry);
        Ok(())
    }

    /// The host of this name, which is a new one if it has no table.
    fn host_at(&mut self, name: &str, place: Place) -> &mut WrittenHost {
        let found = self.hosts.iter().position(|host| host.name == name);
        let at = found.unwrap_or_else(|| {
            let (name, entries) = (name.to_owned(), Entries::new());
            self.hosts.push(WrittenHost { name, place, entries });
            self.hosts.len() - 1
        });
        &mut self.hosts[at]
    }

    fn variant_at(&self, name: &str, place: &Place) -> Result<usize, Problem> {
        let found = self.variants.iter().position(|variant| variant.name.as_deref() == Some(name));
        found.ok_or_else(|| {
            let message = format!("there is no variant `{}`", shown(name));
            let names: Vec<&str> = self.names().collect();
            let help = match near(name, &names, self.problems.len()) {
                Some(near) => format!("did you mean `variant.{near}`?"),
                None => format!("the variants are {}", listed(&names)),
            };
            Problem::new(message, place.mark("no such variant")).help(help)
        })
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.variants.iter().filter_map(|variant| variant.name.as_deref())
    }

    /// The keys that are code ([`Key::is_code`]) and have a value in the file itself, each once, in the order
    /// of the reference, and `host` for tables of hosts. Values of the command line are the user's own.
    #[must_use]
    pub fn code_keys(&self) -> Vec<&'static str> {
        let of_variants = self.variants.iter().map(|variant| &variant.entries);
        let all: Vec<&Entries> = std::iter::once(&self.entries).chain(of_variants).collect();
        let is_in_file = |path: &str| {
            let mut entries = all.iter().filter_map(|entries| entries.get(path));
            entries.any(|entry| entry.place.origin == Origin::File)
        };
        let code = keys().filter(|key| key.is_code);
        let mut found: Vec<&str> =
            code.map(|key| key.path).filter(|path| is_in_file(path)).collect();
        let mut of_hosts = self.hosts.iter().flat_map(|host| host.entries.values());
        if of_hosts.any(|entry| entry.place.origin == Origin::File) {
            found.push(HOST);
        }
        found
    }
}

impl Entry {
    /// A value that could not be read is a problem.
    pub(crate) fn of(
        read: Result<Value, Fault>,
        place: Place,
        layer: Layer,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let problem =
            |fault: Fault| Problem::new(fault.message, place.mark(fault.label)).help(fault.help);
        let value = read.map_err(|fault| problems.push(problem(fault))).ok();
        Self { value, place, layer }
    }
}

/// Reads `text` as TOML if it is one value and the key does not take text. Otherwise takes it as text.
pub(crate) fn read(key: &Key, text: &str, syntax: Syntax<'_>) -> Result<Value, Fault> {
    let text = text.trim();
    // `--set server.cpus=0,1` needs no brackets.
    let document = match key.kind {
        Kind::Cpus if !text.starts_with('[') => format!("value = [{text}]"),
        _ => format!("value = {text}"),
    };
    let parsed = DeTable::parse(&document).ok();
    // A line break in the text could smuggle in a second key.
    let single = parsed.as_ref().filter(|table| table.get_ref().len() == 1);
    let written =
        single.and_then(|table| table.get_ref().values().next()).map(|value| value.get_ref());
    match written {
        Some(value) if value.is_str() || !key.kind.is_text() => key.read(value, syntax),
        _ => key.read(&DeValue::String(text.into()), syntax),
    }
}

fn in_file(span: Range<usize>) -> Place {
    Place { origin: Origin::File, span }
}

/// Adds a hint if a value lacks its quotes.
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
            let value = shown(value);
            problem.help(format!("text and values with a unit need quotes: \"{value}\""))
        }
        None => problem,
    }
}

/// The border of characters at or before this place, within the text.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn read_variants(value: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> Vec<WrittenVariant> {
    if let DeValue::Array(list) = value.get_ref()
        && list.len() > MAX_VARIANTS
    {
        let count = list.len();
        let message = format!("{count} variants are more than a report can tell apart");
        let mark = in_file(value.span()).mark("");
        let help = format!("at most {MAX_VARIANTS} fit; divide them among several experiments");
        problems.push(Problem::new(message, mark).help(help));
        return Vec::new();
    }
    let list = Tables { name: "variant", noun: "variant" };
    list.read(value, problems, read_variant)
}

/// A list of tables: `[[name]]`, and what each of them is called.
struct Tables {
    name: &'static str,
    noun: &'static str,
}

impl Tables {
    /// What `read` makes of each table and of where it stands. What is no table is a problem.
    fn read<T>(
        &self,
        value: &Spanned<DeValue<'_>>,
        problems: &mut Vec<Problem>,
        read: fn(&DeTable<'_>, Range<usize>, &mut Vec<Problem>) -> T,
    ) -> Vec<T> {
        let DeValue::Array(list) = value.get_ref() else {
            problems.push(self.not_a_list(value.span()));
            return Vec::new();
        };
        let mut tables = Vec::new();
        for entry in list.iter() {
            match entry.get_ref() {
                DeValue::Table(table) => tables.push(read(table, entry.span(), problems)),
                _ => problems.push(self.not_a_list(entry.span())),
            }
        }
        tables
    }

    fn not_a_list(&self, span: Range<usize>) -> Problem {
        let Self { name, noun } = self;
        let mark = in_file(span).mark("not a list");
        Problem::new(format!("`{name}` must be a list of tables"), mark)
            .help(format!("begin each {noun} with a line `[[{name}]]`, in two pairs of brackets"))
    }
}

/// `span` is where the table stands.
fn read_variant(
    table: &DeTable<'_>,
    span: Range<usize>,
    problems: &mut Vec<Problem>,
) -> WrittenVariant {
    let found = std::mem::take(problems);
    let mut walk = Walk { entries: Entries::new(), problems: found, scope: Layer::Variant };
    let mut variant = WrittenVariant::default();
    let mut named = false;
    for (key, value) in table {
        if key.get_ref() != VARIANT_NAME.path {
            walk.visit("", key, value);
            continue;
        }
        named = true;
        let entry = walk.read(&VARIANT_NAME, value);
        if let Some(Value::Text(text)) = entry.value {
            (variant.name, variant.name_place) = (Some(text), Some(entry.place));
        }
    }
    if !named {
        let mark = in_file(span).mark("this variant");
        let problem = Problem::new("a variant has no name", mark);
        walk.problems.push(problem.help("add `name = \"...\"`"));
    }
    *problems = walk.problems;
    WrittenVariant { entries: walk.entries, ..variant }
}

/// `span` is where the table stands.
fn read_published(
    table: &DeTable<'_>,
    span: Range<usize>,
    problems: &mut Vec<Problem>,
) -> WrittenPublished {
    let found = std::mem::take(problems);
    let mut walk = Walk { entries: Entries::new(), problems: found, scope: Layer::File };
    for (name, value) in table {
        let key = find_of(&PUBLISHED_KEYS, "[published]", name.get_ref(), in_file(name.span()));
        let key = match key {
            Ok(key) => key,
            Err(problem) => {
                walk.problems.push(problem);
                continue;
            }
        };
        let entry = walk.read(key, value);
        walk.entries.insert(key.path, entry);
    }
    let place = in_file(span);
    for key in PUBLISHED_KEYS.iter().filter(|key| matches!(key.default, DefaultValue::Required)) {
        if !walk.entries.contains_key(key.path) {
            let message = format!("a published figure has no `{}`", key.path);
            let problem = Problem::new(message, place.mark("this figure"));
            walk.problems.push(problem.help(format!(
                "add `{} = {}`",
                key.path,
                key.kind.example()
            )));
        }
    }
    *problems = walk.problems;
    WrittenPublished { place, entries: walk.entries }
}

/// The tables of hosts, each below its name.
fn read_hosts(value: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> Vec<WrittenHost> {
    let DeValue::Table(tables) = value.get_ref() else {
        problems.push(no_host(value.span()));
        return Vec::new();
    };
    let mut hosts = Vec::new();
    for (name, value) in tables {
        let DeValue::Table(table) = value.get_ref() else {
            problems.push(no_host(value.span()));
            continue;
        };
        let found = std::mem::take(problems);
        let mut walk = Walk { entries: Entries::new(), problems: found, scope: Layer::File };
        for (key, value) in table {
            match find_of(&HOST_KEYS, HOST, key.get_ref(), in_file(key.span())) {
                Ok(known) => {
                    let entry = walk.read(known, value);
                    walk.entries.insert(known.path, entry);
                }
                Err(problem) => walk.problems.push(problem),
            }
        }
        *problems = walk.problems;
        let (name, place) = (name.get_ref().to_string(), in_file(name.span()));
        hosts.push(WrittenHost { name, place, entries: walk.entries });
    }
    hosts
}

/// A host that is no table.
fn no_host(span: Range<usize>) -> Problem {
    let mark = in_file(span).mark("no table");
    let problem = Problem::new("a host must be a table of keys", mark);
    problem.help("begin each host with a line `[host.NAME]`")
}

/// A key of a table that has keys of its own.
fn find_of(
    keys: &'static [Key],
    table: &str,
    path: &str,
    place: Place,
) -> Result<&'static Key, Problem> {
    keys.iter().find(|key| key.path == path).ok_or_else(|| {
        let names: Vec<&str> = keys.iter().map(|key| key.path).collect();
        let message = format!("unknown key `{}` of `[{table}]`", shown(path));
        let problem = Problem::new(message, place.mark("unknown key"));
        problem.help(format!("its keys are {}", listed(&names)))
    })
}

struct Walk {
    entries: Entries,
    problems: Vec<Problem>,
    /// [`Layer::File`] or [`Layer::Variant`].
    scope: Layer,
}

impl Walk {
    /// Visits one key below the path `above`, which is empty at the top. Keys are at most three levels deep.
    fn visit(&mut self, above: &str, key: &Spanned<Cow<'_, str>>, value: &Spanned<DeValue<'_>>) {
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
            if self.entries.insert(known.path, entry).is_some() {
                // TOML refuses a name that is there twice, so one of the two is the name of before.
                let message = format!("`{}` is there twice, under two names", known.path);
                let mark = in_file(key.span()).mark("the same key");
                let help = format!("keep `{}`", known.path);
                self.problems.push(Problem::new(message, mark).help(help));
            }
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
                    let help = format!("for example {}", example_below(&path));
                    self.problems.push(Problem::new(message, mark).help(help));
                }
            }
        } else {
            let is_table = value.get_ref().is_table() && self.problems.len() < MAX_SHOWN;
            let problem = unknown_key(&path, in_file(key.span()), self.problems.len());
            let group = if is_table { closest_group(&path, keys()) } else { None };
            self.problems.push(match group {
                Some(group) => problem.help(format!("did you mean `{group}`?")),
                None => problem,
            });
        }
    }

    fn read(&mut self, key: &Key, value: &Spanned<DeValue<'_>>) -> Entry {
        let read = key.read(value.get_ref(), Syntax::File);
        Entry::of(read, in_file(value.span()), self.scope, &mut self.problems)
    }
}

/// The first key below a group, written in full: `server.kind = "embedded"`.
fn example_below(group: &str) -> String {
    let below = |key: &&Key| key.path.strip_prefix(group).is_some_and(|rest| rest.starts_with('.'));
    keys()
        .find(below)
        .map_or_else(String::new, |key| format!("`{} = {}`", key.path, key.kind.example()))
}

/// `found` is how many problems there were before: of many, no more than are shown need a suggestion.
fn unknown_key(path: &str, place: Place, found: usize) -> Problem {
    let problem = Problem::new(format!("unknown key `{}`", shown(path)), place.mark("unknown key"));
    // `variants` looks little like any key, but is a frequent slip.
    if path == "variants" {
        return problem.help("did you mean `[[variant]]`?");
    }
    let closest = if found < MAX_SHOWN { closest_key(path, keys()) } else { None };
    match closest {
        Some(key) => problem.help(format!("did you mean `{}`?", key.path)),
        None => problem.help("docs/EXPERIMENT.md lists all keys"),
    }
}

fn not_overridable(key: &Key, place: Place) -> Problem {
    let message = format!("`{}` belongs to the whole experiment", key.path);
    Problem::new(message, place.mark("not in a variant"))
        .help(format!("write `{}` above the first `[[variant]]`", key.path))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{DefaultValue, Host, HostAddress};
    use dnslab_traffic::Rate;
    use dnslab_wire::EdnsOption;

    #[test]
    fn paths_are_groups_or_keys() {
        assert!(is_group("server") && is_group("server.zone"));
        assert!(!is_group("load.clients") && !is_group("serv") && !is_group(""));
        for key in keys() {
            assert!(!is_group(key.path), "`{}` is a key and a group", key.path);
            assert_eq!(keys().filter(|other| other.path == key.path).count(), 1);
        }
    }

    /// Whoever adds a key that takes text or a path puts it into one of the two lists.
    #[test]
    fn keys_that_are_code_are_known() {
        let harmless = [
            "question",
            "baseline",
            // Files that are read.
            "server.authority",
            "upstream.authority",
            "load.capture",
            "load.queries",
            "load.tsig_file",
            "upstream.hierarchy",
            "hosts.namespace",
            // Read by dnslab's own parser.
            "server.unit",
        ];
        let code = [
            "server.host",
            "server.manifest",
            "server.image",
            "server.binary",
            "server.root",
            "server.config",
            "server.extra",
            "server.policy_zone",
            "server.log.folder",
            "server.zone.file",
            "relay.binary",
            "relay.extra",
            "upstream.host",
            "upstream.binary",
            "upstream.extra",
            "load.hosts",
            "event.command",
            "event.until",
            "hosts.program",
            "hosts.context",
            "hosts.image",
        ];
        for key in keys().filter(|key| matches!(key.kind, Kind::Text | Kind::Path)) {
            let is_known = harmless.contains(&key.path) != code.contains(&key.path);
            assert!(is_known, "`{}` is in none of the lists, or in both", key.path);
        }
        let found: Vec<&str> = keys().filter(|key| key.is_code).map(|key| key.path).collect();
        assert_eq!(found, code);
    }

    #[test]
    fn code_in_the_file_is_told_from_that_of_the_command_line() {
        let text = "name = \"x\"\n[server]\nkind = \"bind\"\nbinary = \"./named\"\n\
                    [[variant]]\nname = \"a\"\nserver.extra = \"x\"\nupstream.extra = \"\"\n\
                    [[variant]]\nname = \"b\"\nserver.extra = 7\n";
        let check = |text: &str, sets: &[&str], expected: &[&str]| {
            let mut document = Document::of_file(text).unwrap();
            sets.iter().for_each(|set| document.set(set));
            assert_eq!(document.code_keys(), expected, "{sets:?}");
        };
        check(text, &[], &["server.binary", "server.extra", "upstream.extra"]);
        check(text, &["server.binary=named"], &["server.extra", "upstream.extra"]);
        // One of the two that the file has is left.
        let both = ["server.binary=named", "variant.a.server.extra=y"];
        check(text, &both, &["server.extra", "upstream.extra"]);
        let all = ["server.binary", "server.extra", "upstream.extra"];
        check(text, &["server.root=./x"], &all);
        check("name = \"x\"", &["server.extra=y"], &[]);
    }

    #[test]
    fn defaults_and_examples_can_be_read() {
        for key in keys() {
            let default = key.default_value();
            assert_eq!(default.is_some(), matches!(key.default, DefaultValue::Value(_)), "{key:?}");
            for text in
                default.iter().flat_map(|value| [key.kind.write(value), key.kind.shown(value)])
            {
                let value = DeValue::parse(&text).unwrap();
                assert_eq!(key.read(value.get_ref(), Syntax::File).ok(), default, "{text}");
            }
            let example = key.kind.example();
            let value = DeValue::parse(&example).unwrap();
            let is_read = key.read(value.get_ref(), Syntax::File).is_ok();
            assert!(is_read || matches!(key.kind, Kind::Parsed(_)), "{example} for {key:?}");
        }
    }

    #[test]
    fn bare_words_are_text() {
        let check = |path: &str, text: &str, expected: Value| {
            let read = read(find(path).unwrap(), text, Syntax::Set(path));
            assert_eq!(read, Ok(expected), "for `{path}={text}`");
        };
        check("server.kind", "bind", Value::Text("bind".into()));
        check("server.kind", "\"bind\"", Value::Text("bind".into()));
        check("load.duration", "120s", Value::Duration(Duration::from_secs(120)));
        check("load.clients", "1_000", Value::Count(1_000));
        check("load.rate", "50000", Value::Rate(Rate::Constant(50_000.0)));
        let steps = Rate::Steps { rates: vec![1.0, 2.5], every: Duration::from_secs(5) };
        check("load.rate", "steps:1,2.5/5s", Value::Rate(steps));
        let option = |code, data: &[u8]| EdnsOption { code, data: data.to_vec() };
        let two = Value::EdnsOptions(vec![option(65_001, &[0xc0, 0xff, 0xee]), option(3, &[])]);
        check("load.edns_options", "65001:c0FFee,3:", two.clone());
        check("load.edns_options", "[\"65001:c0ffee\", \"3:\"]", two);
        check("load.padding", "true", Value::Count(128));
        check("load.padding", "468", Value::Count(468));
        check("load.tls_versions", "1.2", Value::Text("1.2".into()));
        check("load.http_path", "/dns-query", Value::Text("/dns-query".into()));
        check("server.cpus", "0,1", Value::Cpus(vec![0, 1]));
        check("server.cpus", "[0, 1]", Value::Cpus(vec![0, 1]));
        check("server.cpus", "3", Value::Cpus(vec![3]));
        let address = |host, port| Value::Address(HostAddress { host, link: None, port });
        check("server.address", "::1", address(Host::Address("::1".parse().unwrap()), None));
        let name = Host::Name("ns1.example".to_owned());
        check("server.address", "ns1.example:5300", address(name, Some(5300)));
        check("name", "2024", Value::Text("2024".into()));
        check("repeat.margin", "5%", Value::Share(0.05));
        check("server.extra", "a = 1\nb = 2", Value::Text("a = 1\nb = 2".into()));
        check("load.dnssec_ok", "true", Value::Boolean(true));
    }

    #[test]
    fn wrong_values_are_refused() {
        #[track_caller]
        fn check(path: &str, text: &str, message: &str) {
            let fault = read(find(path).unwrap(), text, Syntax::Set(path)).unwrap_err();
            assert_eq!(fault.message, message, "{path}={text}");
        }
        check("load.clients", "0", "`load.clients` is out of range: 0");
        check("load.clients", "many", "`load.clients` must be a whole number, not text");
        check("load.clients", "4\nx = 5", "`load.clients` must be a whole number, not text");
        check("load.clients", "", "`load.clients` must be a whole number, not text");
        check("load.duration", "10", "`load.duration` has no unit: 10");
        check("server.cpus", "0,0", "`server.cpus` names CPU 0 twice");
        check("load.dnssec_ok", "yes", "`load.dnssec_ok` must be true or false, not text");
        check("load.rate", "ramp:1/5s", "`load.rate` cannot be `ramp:1/5s`");
        check(
            "load.edns_options",
            "65536:00",
            "`load.edns_options` is no list of EDNS options: `65536:00`",
        );
        check("load.edns_options", "1:0", "`load.edns_options` is no list of EDNS options: `1:0`");
        check("load.padding", "0", "`load.padding` is out of range: 0");
        check("load.http_path", "dns", "`load.http_path` is no path: `dns`");
        check("load.tsig", "c2VjcmV0", "`load.tsig` cannot be read");
    }
}
