//! Options that are keys of an experiment: made from the keys, and checked like them.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use dnslab_settings::{DefaultValue, Document, Flag, FlagForm, Key, Kind, keys};

/// Options that are keys, as given. A search for the capacity lacks those that it decides itself.
#[derive(Debug)]
pub(crate) struct KeyOptions<const IS_SEARCH: bool> {
    given: Vec<(&'static Key, Option<String>)>,
}

impl<const IS_SEARCH: bool> KeyOptions<IS_SEARCH> {
    pub(crate) fn put_into(&self, document: &mut Document) {
        for (key, value) in &self.given {
            document.option(key, value.as_deref());
        }
    }

    fn all() -> impl Iterator<Item = (&'static Key, Flag)> {
        let with_flag = |key: &'static Key| Some((key, key.flag?));
        keys().filter_map(with_flag).filter(|(_, flag)| !(IS_SEARCH && flag.is_searched))
    }
}

/// What people use; `-h` shows these, and `--help` all of them.
const USUAL: [&str; 11] = [
    "transport",
    "clients",
    "outstanding",
    "rate",
    "duration",
    "warm-up",
    "timeout",
    "queries",
    "expect",
    "authority",
    "insecure",
];

/// The help is the meaning and the default of the key.
fn argument(key: &Key, flag: Flag) -> Arg {
    let default = match key.default {
        DefaultValue::Value(value) if takes_value(flag) => {
            let text = value().map(|value| key.kind.shown(&value)).unwrap_or_default();
            format!(" [default: {}]", text.trim_matches('"'))
        }
        _ => String::new(),
    };
    let argument = Arg::new(flag.name)
        .long(flag.name)
        .help(format!("{}{default}", in_options(key.meaning())))
        .hide_short_help(!USUAL.contains(&flag.name))
        .conflicts_with_all(flag.conflict);
    let argument = match flag.heading {
        "" => argument,
        heading => argument.help_heading(heading),
    };
    let argument = match key.kind {
        Kind::Choice(words) if flag.form == FlagForm::Value => argument.value_parser(OneOf(words)),
        _ => argument,
    };
    match flag.form {
        FlagForm::Value => argument.value_name(flag.value_name),
        FlagForm::OnOff => argument.value_name(flag.value_name).value_parser(["on", "off"]),
        FlagForm::Switch(_) => argument.action(ArgAction::SetTrue),
        FlagForm::Optional(_) => argument
            .value_name(flag.value_name)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value(""),
        FlagForm::Repeated => argument.value_name(flag.value_name).action(ArgAction::Append),
    }
}

/// Takes any text. The words are for completions; the check reports a wrong word with all other problems.
#[derive(Clone)]
struct OneOf(&'static [&'static str]);

impl TypedValueParser for OneOf {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

fn takes_value(flag: Flag) -> bool {
    matches!(flag.form, FlagForm::Value | FlagForm::OnOff)
}

/// Replaces keys that have an option by that option.
fn in_options(meaning: &str) -> String {
    let with_flag = |key: &'static Key| Some((key.path, key.flag?.name));
    keys().filter_map(with_flag).fold(meaning.to_owned(), |text, (path, option)| {
        text.replace(&format!("`{path}`"), &format!("--{option}"))
    })
}

impl<const IS_SEARCH: bool> Args for KeyOptions<IS_SEARCH> {
    fn augment_args(command: Command) -> Command {
        Self::all().fold(command, |command, (key, flag)| command.arg(argument(key, flag)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const IS_SEARCH: bool> FromArgMatches for KeyOptions<IS_SEARCH> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = Self::all().filter_map(|(key, flag)| {
            let value = match flag.form {
                FlagForm::Switch(_) => return matches.get_flag(flag.name).then_some((key, None)),
                FlagForm::Repeated => {
                    let values: Vec<&str> =
                        matches.get_many::<String>(flag.name)?.map(String::as_str).collect();
                    values.join(",")
                }
                _ => matches.get_one::<String>(flag.name)?.clone(),
            };
            let is_by_itself = value.is_empty() && matches!(flag.form, FlagForm::Optional(_));
            Some((key, Some(value).filter(|_| !is_by_itself)))
        });
        Ok(Self { given: given.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
