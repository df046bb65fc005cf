//! The keys of an experiment file, and the fields of structs that are keys.

use std::fmt;

use dnslab_wire::Transport;

use crate::entry::{Entries, Layer};
use crate::kind::{Kind, Value};
use crate::problem::{Mark, Place};
use crate::server_kind::ServerKind;

/// One key of an experiment file.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Dotted path from the top of the file, e.g. `load.clients`.
    pub path: &'static str,
    meaning: &'static str,
    /// What may be written, and within which bounds.
    pub kind: Kind,
    /// What holds when nothing is written.
    pub default: DefaultValue,
    /// Where it means something; everywhere if empty.
    pub when: &'static [When],
    /// The option of `dnslab load` and `dnslab capacity` that sets it.
    pub flag: Option<Flag>,
    /// True if its value is code: a program, a root folder whose programs run, a folder that is written to,
    /// or text of a configuration, which may name programs too.
    pub is_code: bool,
    /// True if another key says the same in more words. That one is written out in its place.
    pub is_short_form: bool,
}

/// What holds when a key is not written.
#[derive(Clone, Copy, Debug)]
pub enum DefaultValue {
    /// The key must be written.
    Required,
    /// This value.
    Value(fn() -> Option<Value>),
    /// No value; what that means, in words.
    Absent(&'static str),
}

/// Where a key means something.
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// With some transports only.
    Transport {
        /// True for the transports that use it.
        uses: fn(Transport) -> bool,
        /// Why the others do not use it.
        why: &'static str,
    },
    /// With some kinds of server only; `None` is a server that runs already.
    Server(fn(Option<ServerKind>) -> bool),
    /// With the variants that this condition holds for.
    Variant(Condition),
}

/// What decides whether a key means something to a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Clients ask more than once.
    AsksAgain,
    /// The clients know further servers.
    KnowsFurther,
    /// Clients do not wait for answers.
    OpenLoop,
    /// The server under test has a query log.
    Logs,
    /// Its query log is a file.
    LogsToFile,
    /// Its query log is a file that is rotated.
    RotatesLogs,
    /// The server under test forwards or resolves.
    AsksOthers,
    /// A started server has the zone.
    ZoneServed,
    /// There is a relay.
    Relay,
    /// The upstream is a server that is forwarded to.
    ForwardedTo,
    /// dnslab starts the upstream.
    StartedUpstream,
    /// dnslab starts an upstream that somebody else wrote.
    InstalledUpstream,
    /// The upstream is the embedded server.
    EmbeddedUpstream,
    /// The upstream is the embedded server or a private Internet.
    ProgrammedUpstream,
    /// The upstream is a private Internet.
    PrivateInternet,
    /// The upstream runs already.
    ExternalUpstream,
    /// The upstream runs already, and is asked over TLS.
    ExternalTlsUpstream,
    /// The servers have hosts.
    Hosts,
    /// Clients may have connections over TCP.
    Tcp,
    /// A capture is played.
    Replayed,
    /// No capture is played, which says it itself.
    NotReplayed,
    /// No population is played, which says it itself.
    NotOfPopulation,
    /// Queries are drawn by Zipf's law.
    Zipf,
    /// Queries do not depend on answers.
    CommonQueries,
    /// Clients close connections after a number of queries.
    Quota,
    /// Something is done during the load.
    Event,
    /// Some names are asked for that are listed.
    Names,
}

/// Why a key means nothing to a variant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unused {
    /// Half a sentence.
    pub why: String,
    /// What to do about it.
    pub help: String,
}

/// An option of a command line that sets a key.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Without the dashes.
    pub name: &'static str,
    /// What stands for its value in the help.
    pub value_name: &'static str,
    /// The heading that it stands under in the help; empty for none.
    pub heading: &'static str,
    /// How its value is written.
    pub form: FlagForm,
    /// True if a search for the capacity decides it or cannot have it. Then only `dnslab load` and `replay` have the
    /// option.
    pub is_searched: bool,
    /// An option that cannot stand beside it.
    pub conflict: Option<&'static str>,
}

/// How an option is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagForm {
    /// With the value: `--clients 4`.
    Value,
    /// By itself, for this value: `--cookies`.
    Switch(&'static str),
    /// With the value, or by itself for this value: `--padding=468`.
    Optional(&'static str),
    /// With `on` or `off`.
    OnOff,
    /// With one entry of a list, as often as there are entries.
    Repeated,
}

impl Key {
    pub(crate) const fn new(
        path: &'static str,
        meaning: &'static str,
        kind: Kind,
        default: fn() -> Option<Value>,
    ) -> Self {
        let default = DefaultValue::Value(default);
        Self {
            path,
            meaning,
            kind,
            default,
            when: &[],
            flag: None,
            is_code: false,
            is_short_form: false,
        }
    }

    pub(crate) const fn required(self) -> Self {
        Self { default: DefaultValue::Required, ..self }
    }

    /// Without a value; `words` say what that means.
    pub(crate) const fn absent(self, words: &'static str) -> Self {
        Self { default: DefaultValue::Absent(words), ..self }
    }

    pub(crate) const fn kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    pub(crate) const fn count(self, least: u64, most: u64) -> Self {
        self.kind(Kind::Count { least, most })
    }

    pub(crate) const fn lasting(
        self,
        least: std::time::Duration,
        most: std::time::Duration,
    ) -> Self {
        self.kind(Kind::Duration { least, most, whole_seconds: false })
    }

    pub(crate) const fn when(self, when: &'static [When]) -> Self {
        Self { when, ..self }
    }

    pub(crate) const fn code(self) -> Self {
        Self { is_code: true, ..self }
    }

    pub(crate) const fn short_form(self) -> Self {
        Self { is_short_form: true, ..self }
    }

    pub(crate) const fn flag(self, name: &'static str, value_name: &'static str) -> Self {
        let (heading, form) = ("", FlagForm::Value);
        let flag = Flag { name, value_name, heading, form, is_searched: false, conflict: None };
        Self { flag: Some(flag), ..self }
    }

    pub(crate) const fn form(self, form: FlagForm) -> Self {
        self.with_flag(Flag { form, ..self.own_flag() })
    }

    pub(crate) const fn under(self, heading: &'static str) -> Self {
        self.with_flag(Flag { heading, ..self.own_flag() })
    }

    pub(crate) const fn searched(self) -> Self {
        self.with_flag(Flag { is_searched: true, ..self.own_flag() })
    }

    pub(crate) const fn conflicts(self, other: &'static str) -> Self {
        self.with_flag(Flag { conflict: Some(other), ..self.own_flag() })
    }

    const fn own_flag(&self) -> Flag {
        self.flag.expect("the row names the option first")
    }

    const fn with_flag(self, flag: Flag) -> Self {
        Self { flag: Some(flag), ..self }
    }

    /// What it is for, in one line without a full stop.
    #[must_use]
    pub fn meaning(&self) -> &'static str {
        self.meaning.trim()
    }

    /// `None` for a key without a default value.
    #[must_use]
    pub fn default_value(&self) -> Option<Value> {
        match self.default {
            DefaultValue::Value(value) => value(),
            DefaultValue::Required | DefaultValue::Absent(_) => None,
        }
    }

    /// The last part of the path, e.g. `clients`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    /// True if a variant may have its own value. Other keys belong to the experiment as a whole.
    #[must_use]
    pub fn is_overridable(&self) -> bool {
        let of_all = ["repeat.", "common.", "hosts."];
        self.path.contains('.') && !of_all.iter().any(|group| self.path.starts_with(group))
    }
}

/// A Rust type that is the value of a key.
pub trait Setting: Clone + fmt::Debug + PartialEq + Sized {
    /// What may be written, unless a key has its own bounds.
    const KIND: Kind;

    /// `None` if the value is of another kind, which the kind of the key rules out.
    fn of(value: &Value) -> Option<Self>;

    /// The value to be written; `None` if there is nothing to write.
    fn value(&self) -> Option<Value>;

    /// What stands for a key without a value; `None` if it must have one.
    fn absent() -> Option<Self> {
        None
    }
}

/// A field of a draft.
#[derive(Clone, Debug)]
pub struct Written<T> {
    /// The default stands in for a value that could not be read, so that the rest can be checked.
    pub value: T,
    key: &'static Key,
    origin: Option<Provenance>,
}

#[derive(Clone, Debug)]
struct Provenance {
    place: Option<Place>,
    layer: Layer,
    is_broken: bool,
}

pub(crate) trait Field {
    fn key(&self) -> &'static Key;

    /// `None` if it was not written.
    fn place(&self) -> Option<&Place>;

    /// `None` for a default.
    fn layer(&self) -> Option<Layer>;

    /// True if what was written could not be read, which is a problem already noted.
    fn is_broken(&self) -> bool;

    /// True if the value equals the default.
    fn is_default(&self) -> bool;

    /// Puts the default in the place of what was written.
    fn forget(&mut self);
}

/// The fields of a draft, in the order of the keys.
pub(crate) trait Fields {
    fn fields(&mut self) -> Vec<&mut dyn Field>;
}

impl<T: Setting> Written<T> {
    /// What was written for the key, or the default.
    pub(crate) fn of(key: &'static Key, default: T, entries: &Entries) -> Self {
        let entry = entries.get(key.path);
        let value = entry.and_then(|entry| T::of(entry.value.as_ref()?)).unwrap_or(default);
        let origin = entry.map(|entry| Provenance {
            place: Some(entry.place.clone()),
            layer: entry.layer,
            is_broken: entry.value.is_none(),
        });
        Self { value, key, origin }
    }

    /// True if a value was written, in whatever layer.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.origin.is_some()
    }

    /// The layer that the value is from; `None` for a default.
    #[must_use]
    pub fn layer(&self) -> Option<Layer> {
        self.origin.as_ref().map(|origin| origin.layer)
    }

    /// `None` if nobody wrote it.
    pub(crate) fn mark(&self, label: impl Into<String>) -> Option<Mark> {
        Some(Field::place(self)?.mark(label))
    }

    /// Sets a value of the program's own, which wins over whatever was written.
    pub fn set(&mut self, value: T) {
        self.value = value;
        let layer = Layer::VariantCommandLine;
        self.origin = Some(Provenance { place: None, layer, is_broken: false });
    }

    /// [`Written::set`] where nothing was written.
    pub fn set_default(&mut self, value: T) {
        if !self.is_written() {
            self.set(value);
        }
    }
}

impl<T: Setting> Field for Written<T> {
    fn key(&self) -> &'static Key {
        self.key
    }

    fn place(&self) -> Option<&Place> {
        self.origin.as_ref()?.place.as_ref()
    }

    fn layer(&self) -> Option<Layer> {
        self.layer()
    }

    fn is_broken(&self) -> bool {
        self.origin.as_ref().is_some_and(|origin| origin.is_broken)
    }

    fn is_default(&self) -> bool {
        self.value.value() == self.key.default_value()
    }

    fn forget(&mut self) {
        let default = self.key.default_value();
        let default = default.map_or_else(T::absent, |value| T::of(&value));
        self.value = default.expect("a key that can be forgotten has a default");
        self.origin = None;
    }
}

/// Makes a struct of rows, each of which states one key: its meaning, name, type and default, and more by the
/// methods of [`Key`]. It also makes the draft of the struct, in which each field knows where it was written.
///
/// Keys that say one thing together are parts of one field of the checked struct: their rows begin with its name in
/// brackets, it is declared by `with`, the draft's method of that name makes it, and its own methods say what each key
/// was.
macro_rules! settings {
    (
        $(#[$of_struct:meta])*
        pub struct $name:ident, draft $draft:ident, at $path:literal
            $(, with $(#[doc = $about:literal])+ $part:ident: $part_type:ty)?
        {
            $(
                $(#[doc = $meaning:literal])+
                $([$whole:ident])? $field:ident: $type:ty = $default:expr
                    $(, $option:ident $(($($argument:expr),* $(,)?))?)*;
            )+
        }
    ) => {
        $crate::key::checked! {
            { $(#[$of_struct])* $name $draft $($(#[doc = $about])+ $part: $part_type)? } {}
            $($(#[doc = $meaning])+ $([$whole])? $field: $type = $default;)+
        }

        impl $name {
            /// In the order of the fields.
            pub const KEYS: &'static [Key] = &[$(
                Key::new(
                    concat!($path, stringify!($field)),
                    concat!($($meaning),+),
                    <$type as Setting>::KIND,
                    || {
                        let default: $type = $default;
                        Setting::value(&default)
                    },
                )$(.$option($($($argument),*)?))*,
            )+];

            pub(crate) fn values(&self) -> Vec<Option<Value>> {
                vec![$($crate::key::value_of!(self $field $($whole)?)),+]
            }
        }

        #[doc = concat!("[`", stringify!($name), "`] as written.")]
        #[derive(Clone, Debug)]
        pub struct $draft {
            $($(#[doc = $meaning])+ pub $field: Written<$type>,)+
        }

        impl $draft {
            pub(crate) fn of(entries: &Entries) -> Self {
                let mut keys = $name::KEYS.iter();
                $(
                    let default: $type = $default;
                    let key = keys.next().expect("each field has its key");
                    let $field = Written::of(key, default, entries);
                )+
                Self { $($field),+ }
            }
        }

        impl Fields for $draft {
            fn fields(&mut self) -> Vec<&mut dyn Field> {
                vec![$(&mut self.$field),+]
            }
        }
    };
}

/// The checked struct of [`settings!`]: the rows are read one after the other, and those that are part of another field
/// are left out.
macro_rules! checked {
    (
        $head:tt { $($done:tt)* }
        $(#[doc = $meaning:literal])+ [$whole:ident] $field:ident: $type:ty = $default:expr;
        $($rest:tt)*
    ) => {
        $crate::key::checked! { $head { $($done)* } $($rest)* }
    };
    (
        $head:tt { $($done:tt)* }
        $(#[doc = $meaning:literal])+ $field:ident: $type:ty = $default:expr;
        $($rest:tt)*
    ) => {
        $crate::key::checked! {
            $head { $($done)* $(#[doc = $meaning])+ $field: $type = $default; } $($rest)*
        }
    };
    (
        {
            $(#[$of_struct:meta])* $name:ident $draft:ident
            $($(#[doc = $about:literal])+ $part:ident: $part_type:ty)?
        }
        { $($(#[doc = $meaning:literal])+ $field:ident: $type:ty = $default:expr;)* }
    ) => {
        $(#[$of_struct])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[doc = $about])+ pub $part: $part_type,)?
            $($(#[doc = $meaning])+ pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($part: <$part_type>::default(),)?
                    $($field: $default,)*
                }
            }
        }

        impl $draft {
            /// The values alone.
            #[must_use]
            pub fn checked(&self) -> $name {
                $name {
                    $($part: self.$part(),)?
                    $($field: self.$field.value.clone(),)*
                }
            }
        }
    };
}

/// The value of a key in a checked struct, which may be part of another field there.
macro_rules! value_of {
    ($self:ident $field:ident) => {
        Setting::value(&$self.$field)
    };
    ($self:ident $field:ident $whole:ident) => {
        Setting::value(&$self.$whole.$field().map(|part| part.to_owned()))
    };
}

pub(crate) use {checked, settings, value_of};
