//! Reading one value by the form of its key.

mod traffic;

use std::net::{IpAddr, SocketAddr};

use dnslab_traffic::Rate;
use dnslab_wire::EdnsOption;
use dnslab_wire::units::{duration, share};
use toml::de::{DeArray, DeInteger, DeValue};

use crate::error::shown;
use crate::keys::{Form, Key, closest_word};

/// One value, read by the form of its key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Of [`Form::Count`], and of [`Form::Padding`]: the size of a block in octets, 0 for none.
    Count(u64),
    /// Of [`Form::Duration`].
    Duration(std::time::Duration),
    /// Of [`Form::Share`], in [0, 1].
    Number(f64),
    /// Of [`Form::Rate`].
    Rate(Rate),
    /// Of every form that is written as text.
    Text(String),
    /// Of [`Form::Words`].
    Words(Vec<String>),
    /// Of [`Form::Cpus`].
    Cpus(Vec<usize>),
    /// Of [`Form::Boolean`].
    Boolean(bool),
    /// Of [`Form::Address`]: the address and the port, if one was written.
    Address(Host, Option<u16>),
    /// Of [`Form::EdnsOptions`].
    EdnsOptions(Vec<EdnsOption>),
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// Its address.
    Address(IpAddr),
    /// Its name, to be looked up.
    Name(String),
}

/// Why a value cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// What is wrong, naming the key and the value.
    pub(crate) message: String,
    /// A few words to stand below the value.
    pub(crate) label: String,
    /// What to write instead.
    pub(crate) help: String,
}

/// How the user writes, so that advice can be followed as it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Syntax<'a> {
    /// In the file: `clients = 4`.
    File,
    /// On the command line, with what stands before the `=`: `--set load.clients=4`.
    CommandLine(&'a str),
}

/// Reads `written` as a value of `key`; advice is given in `syntax`.
///
/// # Errors
/// When it has another form or lies outside the bounds.
pub(crate) fn read(key: &Key, written: &DeValue<'_>, syntax: Syntax<'_>) -> Result<Value, Fault> {
    let reader = Reader { key, syntax };
    match (key.form, written) {
        (Form::Count { least, most }, DeValue::Integer(count)) => reader.count(count, least, most),
        (Form::Duration { .. }, DeValue::String(text)) => reader.duration(text),
        (Form::Duration { .. }, DeValue::Integer(number)) => {
            Err(reader.no_unit(&number.to_string()))
        }
        (Form::Duration { .. }, DeValue::Float(number)) => Err(reader.no_unit(number.as_str())),
        (Form::Rate, DeValue::Integer(number)) => reader.rate(&number.to_string()),
        (Form::Rate, DeValue::Float(number)) => reader.rate(number.as_str()),
        (Form::Rate, DeValue::String(text)) => reader.changing_rate(text),
        (Form::Share, DeValue::Integer(number)) => reader.share(&number.to_string()),
        (Form::Share, DeValue::Float(number)) => reader.share(number.as_str()),
        (Form::Share, DeValue::String(text)) => reader.share_text(text),
        (Form::Text | Form::Path, DeValue::String(text)) => reader.text(text),
        (Form::FolderName, DeValue::String(text)) => reader.folder_name(text),
        (Form::DomainName, DeValue::String(text)) => reader.domain_name(text),
        (Form::Choice(words), DeValue::String(text)) => reader.choice(text, words),
        (Form::Words(words), DeValue::Array(list)) => reader.words(list, words),
        // The command line needs no brackets.
        (Form::Words(words), DeValue::String(text)) if matches!(syntax, Syntax::CommandLine(_)) => {
            reader.different_words(text.split(',').map(str::trim), words)
        }
        (Form::Cpus, DeValue::Array(list)) => reader.cpus(list),
        (Form::Boolean, DeValue::Boolean(value)) => Ok(Value::Boolean(*value)),
        (Form::Address, DeValue::String(text)) => reader.address(text),
        (Form::EdnsOptions, DeValue::Array(list)) => reader.edns_options(list),
        // The command line needs no brackets.
        (Form::EdnsOptions, DeValue::String(text)) if matches!(syntax, Syntax::CommandLine(_)) => {
            reader.edns_option_words(text)
        }
        (Form::Padding, DeValue::Boolean(on)) => {
            Ok(Value::Count(if *on { Form::PADDING.into() } else { 0 }))
        }
        (Form::Padding, DeValue::Integer(count)) => {
            reader.count(count, 1, Form::MAX_PADDING.into())
        }
        (Form::HttpPath, DeValue::String(text)) => reader.http_path(text),
        (_, other) => Err(reader.wrong_type(other)),
    }
}

/// Reads values of one key; the methods are the forms.
struct Reader<'a> {
    /// The key, for messages and bounds.
    key: &'a Key,
    /// How advice is written.
    syntax: Syntax<'a>,
}

impl Reader<'_> {
    /// A fault of this key; `what` follows the path in the message.
    fn fault(&self, what: &str, label: &str, help: String) -> Fault {
        Fault { message: format!("`{}` {what}", self.key.path), label: label.to_owned(), help }
    }

    /// How to write a right value.
    fn written(&self, value: &str) -> String {
        format!("write {}", self.line(value))
    }

    /// A right value of this form.
    fn for_example(&self) -> String {
        format!("for example {}", self.line(&self.key.form.example()))
    }

    /// The key with a value that is written as TOML.
    fn line(&self, value: &str) -> String {
        match self.syntax {
            Syntax::File => format!("`{} = {value}`", self.key.last_part()),
            Syntax::CommandLine(path) => {
                let bare = value.trim_matches(['"', '[', ']']).replace(", ", ",");
                format!("`--set {}={bare}`", shown(path))
            }
        }
    }

    /// The value has another type than the form asks for.
    fn wrong_type(&self, found: &DeValue<'_>) -> Fault {
        let found_noun = match found {
            DeValue::String(_) => "text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number with a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table of keys",
        };
        // A right value in quotes is the most frequent slip; show it without them.
        let unquoted = match (self.key.form, found) {
            (Form::Count { .. } | Form::Padding, DeValue::String(text)) => {
                text.parse::<u64>().is_ok().then(|| text.to_string())
            }
            (Form::Boolean, DeValue::String(text)) => {
                text.parse::<bool>().is_ok().then(|| text.to_string())
            }
            _ => None,
        };
        let help = match unquoted {
            Some(value) => format!("{}, without quotes", self.written(&value)),
            None => self.for_example(),
        };
        let what = format!("must be {}, not {found_noun}", self.key.form.noun());
        self.fault(&what, &format!("this is {found_noun}"), help)
    }

    /// A count within the bounds.
    fn count(&self, written: &DeInteger<'_>, least: u64, most: u64) -> Result<Value, Fault> {
        u64::from_str_radix(written.as_str(), written.radix())
            .ok()
            .filter(|count| (least..=most).contains(count))
            .map(Value::Count)
            .ok_or_else(|| {
                let what = format!("is out of range: {}", shown(&written.to_string()));
                self.fault(&what, "out of range", format!("it takes a {}", self.bounds()))
            })
    }

    /// The form with its bounds, without marks of code.
    fn bounds(&self) -> String {
        self.key.form.description().replace('`', "")
    }

    /// A number where a duration is asked for.
    fn no_unit(&self, number: &str) -> Fault {
        let number = shown(number);
        let help = format!("{}; the units are ns, us, ms, s, m, h", {
            self.written(&format!("\"{number}s\""))
        });
        self.fault(&format!("has no unit: {number}"), "a duration needs a unit", help)
    }

    /// A duration within the bounds.
    fn duration(&self, text: &str) -> Result<Value, Fault> {
        let number = text.trim();
        if !number.is_empty() && number.chars().all(|letter| letter.is_ascii_digit()) {
            return Err(self.no_unit(number));
        }
        let Ok(duration) = duration::read(text) else {
            let what = format!("is not a duration: `{}`", shown(text));
            let help = format!(
                "it takes a number and one of the units ns, us, ms, s, m, h, {}",
                self.for_example()
            );
            return Err(self.fault(&what, "not a duration", help));
        };
        let Form::Duration { least, most, whole_seconds } = self.key.form else {
            return Ok(Value::Duration(duration));
        };
        if duration < least || duration > most {
            let what = format!("is out of range: `{}`", shown(text));
            return Err(self.fault(&what, "out of range", format!("it takes a {}", self.bounds())));
        }
        if whole_seconds && duration.subsec_nanos() != 0 {
            let help = self.written(&format!("\"{}s\"", duration.as_secs() + 1));
            let what = format!("must be whole seconds: `{}`", duration::write(duration));
            return Err(self.fault(&what, "not whole seconds", help));
        }
        Ok(Value::Duration(duration))
    }

    /// A share written as a number.
    fn share(&self, number: &str) -> Result<Value, Fault> {
        if let Some(share) = share::read(number) {
            return Ok(Value::Number(share));
        }
        let what = format!("is out of range: {}", shown(number));
        let help = if share::read(&format!("{number}%")).is_some() {
            format!("for {number} percent {}", self.written(&format!("\"{number}%\"")))
        } else {
            "it takes a number from 0 to 1, or \"0%\" to \"100%\"".to_owned()
        };
        Err(self.fault(&what, "a share is at most 1", help))
    }

    /// A share written as text.
    fn share_text(&self, text: &str) -> Result<Value, Fault> {
        if let Some(share) = share::read(text) {
            return Ok(Value::Number(share));
        }
        if share::read_percentage(text).is_some() {
            let what = format!("is out of range: `{}`", shown(text));
            let help = "it takes a number from 0 to 1, or \"0%\" to \"100%\"".to_owned();
            return Err(self.fault(&what, "more than the whole", help));
        }
        let what = format!("is not a share: `{}`", shown(text));
        let help = format!("{} or a number from 0 to 1", self.written("\"2%\""));
        Err(self.fault(&what, "not a share", help))
    }

    /// Text that says something.
    fn text(&self, text: &str) -> Result<Value, Fault> {
        if text.trim().is_empty() || text.contains('\0') {
            return Err(self.fault("is empty", "nothing is written here", self.for_example()));
        }
        Ok(Value::Text(text.to_owned()))
    }

    /// The name of a folder.
    fn folder_name(&self, text: &str) -> Result<Value, Fault> {
        let legal = |letter: char| matches!(letter, 'a'..='z' | '0'..='9' | '-');
        if (1..=Form::MAX_FOLDER).contains(&text.len()) && text.chars().all(legal) {
            return Ok(Value::Text(text.to_owned()));
        }
        let near: String = text
            .to_lowercase()
            .chars()
            .map(|letter| if legal(letter) { letter } else { '-' })
            .take(Form::MAX_FOLDER)
            .collect();
        let near = if near.is_empty() { "two-threads" } else { &near };
        let help = format!(
            "it becomes the name of a folder: 1 to {} of `a-z`, `0-9`, `-`, for example \"{near}\"",
            Form::MAX_FOLDER
        );
        Err(self.fault(&format!("cannot be `{}`", shown(text)), "not a folder name", help))
    }

    /// A domain name below the root (RFC 1035, section 2.3.1, and `_`).
    fn domain_name(&self, text: &str) -> Result<Value, Fault> {
        /// Names of a zone have a label more; 255 octets is the whole (RFC 1035, section 2.3.4).
        const LONGEST: usize = 190;
        let name = text.strip_suffix('.').unwrap_or(text);
        let legal = |label: &str| {
            let letter = |octet: u8| octet.is_ascii_alphanumeric() || b"-_".contains(&octet);
            (1..=63).contains(&label.len()) && label.bytes().all(letter)
        };
        if name.len() <= LONGEST && name.split('.').all(legal) {
            return Ok(Value::Text(name.to_ascii_lowercase()));
        }
        let help = format!(
            "it takes labels of letters, digits, `-` and `_`, 1 to 63 long and {LONGEST} in all, \
             for example \"melmac.univ\""
        );
        let what = format!("is not a domain name: `{}`", shown(text));
        Err(self.fault(&what, "not a domain name", help))
    }

    /// One of the words.
    fn choice(&self, text: &str, words: &[&str]) -> Result<Value, Fault> {
        if words.contains(&text) {
            return Ok(Value::Text(text.to_owned()));
        }
        let list = words.join(", ");
        let help = match closest_word(text, words.iter().copied()) {
            Some(word) => format!("did you mean \"{word}\"? It is one of {list}"),
            None => format!("it is one of {list}"),
        };
        let what = format!("cannot be `{}`", shown(text));
        Err(self.fault(&what, "not one of its words", help))
    }

    /// A list of different words.
    fn words(&self, list: &DeArray<'_>, words: &[&str]) -> Result<Value, Fault> {
        let text = |entry: &DeValue<'_>| match entry {
            DeValue::String(text) => Ok(text.to_string()),
            other => Err(self.wrong_type(other)),
        };
        let list: Vec<String> =
            list.iter().map(|it| text(it.get_ref())).collect::<Result<_, _>>()?;
        self.different_words(list.iter().map(String::as_str), words)
    }

    /// Different words, at least one, in their order.
    fn different_words<'t>(
        &self,
        list: impl Iterator<Item = &'t str>,
        words: &[&str],
    ) -> Result<Value, Fault> {
        let mut chosen = Vec::new();
        for text in list {
            self.choice(text, words)?;
            if chosen.iter().any(|earlier| earlier == text) {
                let what = format!("names `{text}` twice");
                return Err(self.fault(&what, "twice", format!("name `{text}` once")));
            }
            chosen.push(text.to_owned());
        }
        match chosen.is_empty() {
            true => Err(self.fault("is empty", "nothing is written here", self.for_example())),
            false => Ok(Value::Words(chosen)),
        }
    }

    /// A list of different CPU numbers; an empty one leaves the choice to dnslab.
    fn cpus(&self, list: &DeArray<'_>) -> Result<Value, Fault> {
        let mut cpus = Vec::with_capacity(list.len());
        for entry in list.iter() {
            let DeValue::Integer(number) = entry.get_ref() else {
                return Err(self.wrong_type(entry.get_ref()));
            };
            let cpu = u64::from_str_radix(number.as_str(), number.radix())
                .ok()
                .filter(|cpu| *cpu <= Form::HIGHEST_CPU)
                .and_then(|cpu| usize::try_from(cpu).ok());
            let Some(cpu) = cpu else {
                let what = format!("has no CPU {}", shown(&number.to_string()));
                let help = format!("CPU numbers go from 0 to {}", Form::HIGHEST_CPU);
                return Err(self.fault(&what, "out of range", help));
            };
            if cpus.contains(&cpu) {
                let what = format!("names CPU {cpu} twice");
                return Err(self.fault(&what, "twice", format!("name CPU {cpu} once")));
            }
            cpus.push(cpu);
        }
        Ok(Value::Cpus(cpus))
    }

    /// What stands for the port behind a host that is right, in a text that is not.
    fn wrong_port<'a>(&self, text: &'a str) -> Option<&'a str> {
        let (host, port) = text.rsplit_once(':')?;
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let is_address = match bare {
            Some(bare) => bare.parse::<std::net::Ipv6Addr>().is_ok(),
            None => host.parse::<std::net::Ipv4Addr>().is_ok(),
        };
        let begins_as_name = host.starts_with(|first: char| first.is_ascii_alphabetic());
        (is_address || begins_as_name && self.domain_name(host).is_ok()).then_some(port)
    }

    /// An IP address or a host name, with or without a port.
    fn address(&self, text: &str) -> Result<Value, Fault> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Ok(Value::Address(Host::Address(address), None));
        }
        match text.parse::<SocketAddr>() {
            Ok(address) if address.port() != 0 => {
                return Ok(Value::Address(Host::Address(address.ip()), Some(address.port())));
            }
            _ => {}
        }
        let (name, port) = match text.split_once(':') {
            None => (text, Some(None)),
            Some((name, port)) => (name, port.parse().ok().filter(|port| *port != 0).map(Some)),
        };
        // Numbers alone are an address that was written wrongly.
        let has_letter = name
            .rsplit('.')
            .next()
            .is_some_and(|last| last.bytes().any(|octet| octet.is_ascii_alphabetic()));
        match (self.domain_name(name), port) {
            (Ok(Value::Text(name)), Some(port)) if has_letter => {
                Ok(Value::Address(Host::Name(name), port))
            }
            _ => {
                if let Some(port) = self.wrong_port(text) {
                    let what = format!("has a port that cannot be: `{}`", shown(port));
                    let help = "a port is a number from 1 to 65535".to_owned();
                    return Err(self.fault(&what, "no such port", help));
                }
                let what = format!("is neither an IP address nor a host name: `{}`", shown(text));
                let help = "write for example \"192.0.2.1\", \"192.0.2.1:5300\", \"2001:db8::1\", \
                            \"[2001:db8::1]:5300\" or \"ns1.example:5300\""
                    .to_owned();
                Err(self.fault(&what, "neither address nor name", help))
            }
        }
    }
}
