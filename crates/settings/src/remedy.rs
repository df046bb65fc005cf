//! What a reader may do: keys with values, in the form of the command at hand.

use std::fmt;

use crate::key::FlagForm;
use crate::{Key, find};

/// The form of options in a remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionForm {
    /// As every command with a load takes it: `--set server.authority=FILE`.
    Set,
    /// As `dnslab load`, `replay` and `capacity` take it: `--authority FILE`.
    Flag,
}

impl OptionForm {
    /// What a key is called, in backticks: its option, or its path.
    ///
    /// # Panics
    /// When there is no such key.
    #[must_use]
    pub fn name(self, path: &str) -> String {
        let key = find(path).expect("remedies name keys that are there");
        match key.flag.filter(|_| self == Self::Flag) {
            Some(flag) => format!("`--{}`", flag.name),
            None => format!("`{}`", key.path),
        }
    }
}

/// Keys with values that a reader may set. A test follows each that dnslab prints, so the words of a remedy are made
/// here and not written by hand.
///
/// ```
/// use dnslab_settings::{OptionForm, Remedy};
///
/// let remedy = Remedy::set("load.http_method", "get");
/// assert_eq!(remedy.options(OptionForm::Flag), "`--http-method get`");
/// assert_eq!(remedy.to_string(), "`--set load.http_method=get`");
/// ```
#[derive(Clone, Debug)]
pub struct Remedy(Vec<(&'static Key, String)>);

impl Remedy {
    /// Sets a key.
    ///
    /// # Panics
    /// When there is no such key.
    #[must_use]
    pub fn set(path: &str, value: impl ToString) -> Self {
        Self(Vec::new()).and(path, value)
    }

    /// Sets another key too.
    ///
    /// # Panics
    /// When there is no such key.
    #[must_use]
    pub fn and(mut self, path: &str, value: impl ToString) -> Self {
        let key = find(path).expect("remedies name keys that are there");
        self.0.push((key, value.to_string()));
        self
    }

    /// As options that can be copied behind a command, in backticks.
    #[must_use]
    pub fn options(&self, form: OptionForm) -> String {
        let options: Vec<String> =
            self.0.iter().map(|(key, value)| option(key, value, form)).collect();
        format!("`{}`", options.join(" "))
    }
}

impl fmt::Display for Remedy {
    /// As options that every command with a load takes.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.options(OptionForm::Set))
    }
}

fn option(key: &Key, value: &str, form: OptionForm) -> String {
    match key.flag.filter(|_| form == OptionForm::Flag) {
        None => in_shell(&format!("--set {}=", key.path), value),
        Some(flag) => match flag.form {
            FlagForm::Switch(_) => format!("--{}", flag.name),
            FlagForm::Optional(_) => in_shell(&format!("--{}=", flag.name), value),
            FlagForm::Value | FlagForm::OnOff | FlagForm::Repeated => {
                in_shell(&format!("--{} ", flag.name), value)
            }
        },
    }
}

/// The option with its value, in quotes if a shell would take it apart.
fn in_shell(option: &str, value: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:,=%+@[]".contains(letter);
    if value.chars().all(is_plain) {
        return format!("{option}{value}");
    }
    let quoted = value.replace('\'', r"'\''");
    match option.rsplit_once(' ') {
        // A key and its value are one word.
        Some((name, key)) if !key.is_empty() => format!("{name} '{key}{quoted}'"),
        _ => format!("{option}'{quoted}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_has_the_form_of_its_command() {
        let check = |remedy: Remedy, set: &str, flag: &str| {
            assert_eq!(remedy.to_string(), set);
            assert_eq!(remedy.options(OptionForm::Flag), flag);
        };
        check(
            Remedy::set("server.authority", "FILE"),
            "`--set server.authority=FILE`",
            "`--authority FILE`",
        );
        check(Remedy::set("server.insecure", true), "`--set server.insecure=true`", "`--insecure`");
        // A key without an option.
        check(
            Remedy::set("server.cpus", 0).and("load.cpus", 1),
            "`--set server.cpus=0 --set load.cpus=1`",
            "`--set server.cpus=0 --set load.cpus=1`",
        );
        check(Remedy::set("load.padding", 468), "`--set load.padding=468`", "`--padding=468`");
        check(
            Remedy::set("server.tls_name", "a;b"),
            "`--set 'server.tls_name=a;b'`",
            "`--tls-name 'a;b'`",
        );
    }
}
