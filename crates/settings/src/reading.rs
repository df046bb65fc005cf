//! Reading a value by the kind of its key.

use std::time::Duration;

use dnslab_traffic::Rate;
use dnslab_wire::EdnsOption;
use dnslab_wire::units::{duration, number, share};
use toml::de::{DeArray, DeInteger, DeValue};

use crate::problem::{on_one_line, shown};
use crate::suggestion::closest_word;
use crate::{CacheSize, CacheSizeError, Host, HostAddress, Key, Kind, MAX_RUNS, Unread, Value};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Names the key and the value.
    pub(crate) message: String,
    /// A few words to stand below the value.
    pub(crate) label: String,
    pub(crate) help: String,
}

/// How the user writes, so that advice can be followed as it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Syntax<'a> {
    /// In the file: `clients = 4`.
    File,
    /// By `--set`, with the text before the `=`: `--set load.clients=4`.
    Set(&'a str),
    /// By its own option: `--clients 4`.
    Option(&'a str),
}

impl Key {
    /// Reads what was written for the key. Advice is given in `syntax`.
    pub(crate) fn read(&self, written: &DeValue<'_>, syntax: Syntax<'_>) -> Result<Value, Fault> {
        let reader = Reader { key: self, syntax };
        match (self.kind, written) {
            (Kind::Count { least, most }, DeValue::Integer(count)) => {
                reader.count(count, least, most)
            }
            (Kind::Duration { .. }, DeValue::String(text)) => reader.duration(text),
            (Kind::Duration { .. }, DeValue::Integer(number)) => {
                Err(reader.no_unit(&number.to_string()))
            }
            (Kind::Duration { .. }, DeValue::Float(number)) => Err(reader.no_unit(number.as_str())),
            (Kind::Rate, DeValue::Integer(number)) => reader.rate(&number.to_string()),
            (Kind::Rate, DeValue::Float(number)) => reader.rate(number.as_str()),
            (Kind::Rate, DeValue::String(text)) => reader.changing_rate(text),
            (Kind::Share, DeValue::Integer(number)) => reader.share(&number.to_string()),
            (Kind::Share, DeValue::Float(number)) => reader.share(number.as_str()),
            (Kind::Share, DeValue::String(text)) => reader.share_text(text),
            (Kind::Factor, DeValue::Integer(number)) => reader.factor(&number.to_string()),
            (Kind::Factor, DeValue::Float(number)) => reader.factor(number.as_str()),
            (Kind::Text | Kind::Path, DeValue::String(text)) => reader.text(text),
            (Kind::Parsed(read), DeValue::String(text)) => reader.parsed(text, read),
            (Kind::FolderName, DeValue::String(text)) => reader.folder_name(text),
            (Kind::DomainName, DeValue::String(text)) => {
                reader.domain_name(text, HOST_MARKS).map(Value::Text)
            }
            (Kind::ZoneName, DeValue::String(text)) if &**text == "." => {
                Ok(Value::Text(".".to_owned()))
            }
            (Kind::ZoneName, DeValue::String(text)) => {
                reader.domain_name(text, b"-_/").map(Value::Text)
            }
            (Kind::Choice(words), DeValue::String(text)) => {
                reader.choice(text, words).map(Value::Text)
            }
            (Kind::Words(words), DeValue::Array(list)) => {
                let list = reader.texts(list)?;
                reader.different_words(list.iter().map(String::as_str), words)
            }
            (Kind::EdnsOptions, DeValue::Array(list)) => {
                let list = reader.texts(list)?;
                reader.edns_options(list.iter().map(String::as_str))
            }
            // A command line needs no brackets.
            (Kind::Words(words), DeValue::String(text)) if reader.is_on_command_line() => {
                reader.different_words(text.split(',').map(str::trim), words)
            }
            (Kind::EdnsOptions, DeValue::String(text)) if reader.is_on_command_line() => {
                reader.edns_options(text.split(',').map(str::trim))
            }
            (Kind::Cpus, DeValue::Array(list)) => reader.cpus(list),
            (Kind::Boolean, DeValue::Boolean(value)) => Ok(Value::Boolean(*value)),
            (Kind::Address, DeValue::String(text)) => reader.address(text),
            (Kind::Padding, DeValue::Boolean(on)) => {
                Ok(Value::Count(if *on { Kind::PADDING.into() } else { 0 }))
            }
            (Kind::Padding, DeValue::Integer(count)) => {
                reader.count(count, 1, Kind::MAX_PADDING.into())
            }
            (Kind::HttpPath, DeValue::String(text)) => reader.http_path(text),
            (Kind::CacheSize, DeValue::Boolean(on)) => Ok(Value::Boolean(*on)),
            (Kind::CacheSize, DeValue::Integer(count)) => {
                reader.count(count, 1, Kind::MAX_CACHE_ENTRIES)
            }
            (Kind::CacheSize, DeValue::String(text)) => reader.cache_size(text),
            (Kind::Rounds, DeValue::Integer(count)) => reader.count(count, 1, MAX_RUNS as u64),
            (Kind::Rounds, DeValue::String(text)) if text.parse::<u64>().is_err() => {
                reader.duration(text)
            }
            (_, other) => Err(reader.wrong_type(other)),
        }
    }
}

/// What the labels of a host's name have beside letters and digits.
const HOST_MARKS: &[u8] = b"-_";

/// Reads values of one key, with a method for each kind.
struct Reader<'a> {
    key: &'a Key,
    syntax: Syntax<'a>,
}

impl Reader<'_> {
    /// `what` follows the path in the message.
    fn fault(&self, what: &str, label: &str, help: String) -> Fault {
        Fault { message: format!("`{}` {what}", self.key.path), label: label.to_owned(), help }
    }

    fn is_on_command_line(&self) -> bool {
        !matches!(self.syntax, Syntax::File)
    }

    fn written(&self, value: &str) -> String {
        format!("write {}", self.line(value))
    }

    fn for_example(&self) -> String {
        format!("for example {}", self.line(&self.key.kind.example()))
    }

    /// `value` is TOML.
    fn line(&self, value: &str) -> String {
        let bare = || value.trim_matches(['"', '[', ']']).replace(", ", ",");
        match self.syntax {
            Syntax::File => format!("`{} = {value}`", self.key.name()),
            Syntax::Set(path) => format!("`--set {}={}`", shown(path), bare()),
            Syntax::Option(option) => format!("`{option} {}`", bare()),
        }
    }

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
        // Quotes around a right value are the most frequent slip.
        let unquoted = match (self.key.kind, found) {
            (Kind::Count { .. } | Kind::Padding | Kind::Rounds, DeValue::String(text)) => {
                text.parse::<u64>().is_ok().then(|| text.to_string())
            }
            (Kind::Boolean, DeValue::String(text)) => {
                text.parse::<bool>().is_ok().then(|| text.to_string())
            }
            _ => None,
        };
        let help = match unquoted {
            Some(value) => format!("{}, without quotes", self.written(&value)),
            None => self.for_example(),
        };
        let what = format!("must be {}, not {found_noun}", self.key.kind.noun());
        self.fault(&what, &format!("this is {found_noun}"), help)
    }

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

    fn cache_size(&self, text: &str) -> Result<Value, Fault> {
        let written = || shown(text);
        match text.parse::<CacheSize>() {
            Ok(size) => Ok(Value::Text(size.to_string())),
            Err(CacheSizeError::Form) => {
                let what = format!("is no size of a cache: `{}`", written());
                let help =
                    "it takes a number of entries without quotes, or a number and MiB or GiB";
                let help = format!("{help}, {}", self.for_example());
                Err(self.fault(&what, "not a size", help))
            }
            Err(CacheSizeError::Range) => {
                let what = format!("is out of range: `{}`", written());
                Err(self.fault(&what, "out of range", format!("it takes {}", self.bounds())))
            }
        }
    }

    /// The kind with its bounds, without backquotes.
    fn bounds(&self) -> String {
        self.key.kind.description().replace('`', "")
    }

    /// The fault of a duration without a unit.
    fn no_unit(&self, number: &str) -> Fault {
        let number = shown(number);
        let right = self.written(&format!("\"{number}s\""));
        let help = format!("{right}; the units are ns, us, ms, s, m, h");
        self.fault(&format!("has no unit: {number}"), "a duration needs a unit", help)
    }

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
        let (least, most, whole_seconds) = match self.key.kind {
            Kind::Duration { least, most, whole_seconds } => (least, most, whole_seconds),
            Kind::Rounds => (Duration::from_secs(1), Kind::LONGEST_PLAN, false),
            _ => return Ok(Value::Duration(duration)),
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

    fn share(&self, number: &str) -> Result<Value, Fault> {
        if let Some(share) = share::read(number) {
            return Ok(Value::Share(share));
        }
        let what = format!("is out of range: {}", shown(number));
        let help = if share::read(&format!("{number}%")).is_some() {
            format!("for {number} percent {}", self.written(&format!("\"{number}%\"")))
        } else {
            "it takes a number from 0 to 1, or \"0%\" to \"100%\"".to_owned()
        };
        Err(self.fault(&what, "a share is at most 1", help))
    }

    fn share_text(&self, text: &str) -> Result<Value, Fault> {
        if let Some(share) = share::read(text) {
            return Ok(Value::Share(share));
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

    fn factor(&self, number: &str) -> Result<Value, Fault> {
        let factor = number::read(number).unwrap_or(f64::NAN);
        if factor > 0.0 && factor <= Kind::MAX_FACTOR {
            return Ok(Value::Factor(factor));
        }
        let what = format!("is out of range: {}", shown(number));
        Err(self.fault(&what, "out of range", format!("it takes a {}", self.bounds())))
    }

    fn rate(&self, number: &str) -> Result<Value, Fault> {
        let rate = number::read(number).unwrap_or(f64::NAN);
        if rate > 0.0 && rate <= Kind::MAX_RATE && Rate::Constant(rate).check().is_ok() {
            return Ok(Value::Rate(Rate::Constant(rate)));
        }
        let what = format!("is out of range: {}", shown(number));
        let help = "it takes queries per second, above 0 and at most 1,000,000,000".to_owned();
        Err(self.fault(&what, "out of range", help))
    }

    /// Steps, a ramp, or a number in quotes.
    fn changing_rate(&self, text: &str) -> Result<Value, Fault> {
        text.trim().parse::<Rate>().map(Value::Rate).map_err(|error| {
            let what = format!("cannot be `{}`", shown(text));
            self.fault(&what, "no rate", on_one_line(&error.to_string()))
        })
    }

    fn text(&self, text: &str) -> Result<Value, Fault> {
        if text.trim().is_empty() || text.contains('\0') {
            return Err(self.fault("is empty", "nothing is written here", self.for_example()));
        }
        Ok(Value::Text(text.to_owned()))
    }

    fn parsed(&self, text: &str, read: fn(&str) -> Result<(), Unread>) -> Result<Value, Fault> {
        let value = self.text(text)?;
        let Err(Unread { message, label, help }) = read(text) else { return Ok(value) };
        let fault = self.fault("cannot be read", label, help);
        Err(Fault { message: message.map_or(fault.message, str::to_owned), ..fault })
    }

    fn folder_name(&self, text: &str) -> Result<Value, Fault> {
        let legal = |letter: char| matches!(letter, 'a'..='z' | '0'..='9' | '-');
        if (1..=Kind::MAX_FOLDER).contains(&text.len()) && text.chars().all(legal) {
            return Ok(Value::Text(text.to_owned()));
        }
        let lower = text.to_lowercase();
        let letters = lower.chars().map(|letter| if legal(letter) { letter } else { '-' });
        let near: String = letters.take(Kind::MAX_FOLDER).collect();
        let near = if near.is_empty() { "two-threads" } else { &near };
        let help = format!(
            "it becomes the name of a folder: 1 to {} of `a-z`, `0-9`, `-`, for example \"{near}\"",
            Kind::MAX_FOLDER
        );
        Err(self.fault(&format!("cannot be `{}`", shown(text)), "not a folder name", help))
    }

    /// A domain name below the root (RFC 1035, section 2.3.1, and `_`).
    fn domain_name(&self, text: &str, marks: &[u8]) -> Result<String, Fault> {
        /// Names of a zone have one label more. A whole name has 255 octets (RFC 1035, section 2.3.4).
        const MAX_LENGTH: usize = 190;
        let name = text.strip_suffix('.').unwrap_or(text);
        let legal = |label: &str| {
            let letter = |octet: u8| octet.is_ascii_alphanumeric() || marks.contains(&octet);
            (1..=63).contains(&label.len()) && label.bytes().all(letter)
        };
        if name.len() <= MAX_LENGTH && name.split('.').all(legal) {
            return Ok(name.to_ascii_lowercase());
        }
        let help = format!(
            "it takes labels of letters, digits, `-` and `_`, 1 to 63 long and {MAX_LENGTH} in all, \
             for example \"example.test\""
        );
        let what = format!("is not a domain name: `{}`", shown(text));
        Err(self.fault(&what, "not a domain name", help))
    }

    fn choice(&self, text: &str, words: &[&str]) -> Result<String, Fault> {
        // Nobody who writes DoT on a command line means anything else.
        let either_case = self.is_on_command_line();
        let is_meant =
            |word: &&&str| **word == text || (either_case && word.eq_ignore_ascii_case(text));
        if let Some(word) = words.iter().find(is_meant) {
            return Ok((*word).to_owned());
        }
        let list = words.join(", ");
        let help = match closest_word(text, words.iter().copied()) {
            Some(word) => format!("did you mean \"{word}\"? It is one of {list}"),
            None => format!("it is one of {list}"),
        };
        Err(self.fault(&format!("cannot be `{}`", shown(text)), "not one of its words", help))
    }

    fn texts(&self, list: &DeArray<'_>) -> Result<Vec<String>, Fault> {
        let text = |entry: &DeValue<'_>| match entry {
            DeValue::String(text) => Ok(text.to_string()),
            other => Err(self.wrong_type(other)),
        };
        list.iter().map(|item| text(item.get_ref())).collect()
    }

    /// At least one word, each once, in their order.
    fn different_words<'t>(
        &self,
        list: impl Iterator<Item = &'t str>,
        words: &[&str],
    ) -> Result<Value, Fault> {
        let mut chosen: Vec<String> = Vec::new();
        for text in list {
            let word = self.choice(text, words)?;
            if chosen.contains(&word) {
                let what = format!("names `{word}` twice");
                return Err(self.fault(&what, "twice", format!("name `{word}` once")));
            }
            chosen.push(word);
        }
        match chosen.is_empty() {
            true => Err(self.fault("is empty", "nothing is written here", self.for_example())),
            false => Ok(Value::Words(chosen)),
        }
    }

    /// At least one CPU, each once.
    fn cpus(&self, list: &DeArray<'_>) -> Result<Value, Fault> {
        if list.is_empty() {
            let what = "is an empty list: nothing can run on no CPU";
            let help = format!("name CPUs, {}, or remove it", self.for_example());
            return Err(self.fault(what, "no CPU", help));
        }
        let mut cpus = Vec::new();
        for entry in list.iter() {
            let DeValue::Integer(number) = entry.get_ref() else {
                return Err(self.wrong_type(entry.get_ref()));
            };
            let cpu = u64::from_str_radix(number.as_str(), number.radix())
                .ok()
                .filter(|cpu| *cpu <= Kind::MAX_CPU)
                .and_then(|cpu| usize::try_from(cpu).ok());
            let Some(cpu) = cpu else {
                let what = format!("has no CPU {}", shown(&number.to_string()));
                let help = format!("CPU numbers go from 0 to {}", Kind::MAX_CPU);
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

    /// The text in the place of the port, if the host before it is right.
    fn wrong_port<'a>(&self, text: &'a str) -> Option<&'a str> {
        let (host, port) = text.rsplit_once(':')?;
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let is_address = match bare {
            Some(bare) => HostAddress::of_ip(bare).is_some(),
            None => host.parse::<std::net::Ipv4Addr>().is_ok(),
        };
        let begins_as_name = host.starts_with(|first: char| first.is_ascii_alphabetic());
        (is_address || begins_as_name && self.domain_name(host, HOST_MARKS).is_ok()).then_some(port)
    }

    /// An IP address or a host name, with or without a port.
    fn address(&self, text: &str) -> Result<Value, Fault> {
        if let Some(address) = HostAddress::of_ip(text) {
            return Ok(Value::Address(address));
        }
        let (name, port) = match text.split_once(':') {
            None => (text, Some(None)),
            Some((name, port)) => (name, port.parse().ok().filter(|port| *port != 0).map(Some)),
        };
        // Digits alone are an address that is written wrongly.
        let has_letter = name
            .rsplit('.')
            .next()
            .is_some_and(|last| last.bytes().any(|octet| octet.is_ascii_alphabetic()));
        if let (Ok(name), Some(port), true) = (self.domain_name(name, HOST_MARKS), port, has_letter)
        {
            let host = Host::Name(name);
            return Ok(Value::Address(HostAddress { host, link: None, port }));
        }
        if let Some(port) = self.wrong_port(text) {
            let what = format!("has a port that cannot be: `{}`", shown(port));
            let help = "a port is a number from 1 to 65535".to_owned();
            return Err(self.fault(&what, "no such port", help));
        }
        let what = format!("is neither an IP address nor a host name: `{}`", shown(text));
        let help = "write for example \"192.0.2.1\", \"192.0.2.1:5300\", \"2001:db8::1\", \
                    \"[2001:db8::1]:5300\", \"fe80::1%eth0\" or \"ns1.example:5300\"";
        Err(self.fault(&what, "neither address nor name", help.to_owned()))
    }

    /// Options `CODE:HEX` that fit a query together.
    fn edns_options<'t>(&self, list: impl Iterator<Item = &'t str>) -> Result<Value, Fault> {
        let options = list.map(|text| self.edns_option(text)).collect::<Result<Vec<_>, _>>()?;
        let octets: usize = options.iter().map(|option| option.data.len() + 4).sum();
        if octets <= Kind::MAX_OPTION_OCTETS {
            return Ok(Value::EdnsOptions(options));
        }
        let what = format!("has options of {octets} octets in all");
        let help = format!("at most {} fit a query", Kind::MAX_OPTION_OCTETS);
        Err(self.fault(&what, "too long", help))
    }

    fn edns_option(&self, text: &str) -> Result<EdnsOption, Fault> {
        let digits = |text: &str| text.bytes().all(|octet| octet.is_ascii_digit());
        let read = |text: &str| {
            let (code, octets) = text.split_once(':')?;
            let code = Some(code).filter(|code| digits(code))?.parse::<u16>().ok()?;
            Some(EdnsOption { code, data: from_hexadecimal(octets)? })
        };
        read(text).ok_or_else(|| {
            let what = format!("is no list of EDNS options: `{}`", shown(text));
            let help = format!(
                "an option is its code, 0 to 65535, a colon, and its octets in hexadecimal, {}",
                self.for_example()
            );
            self.fault(&what, "not CODE:HEX", help)
        })
    }

    fn http_path(&self, text: &str) -> Result<Value, Fault> {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.~/".contains(letter);
        let is_short = text.len() <= Kind::MAX_PATH;
        if text.starts_with('/') && is_short && text.chars().all(plain) {
            return Ok(Value::Text(text.to_owned()));
        }
        let help = match text.split_once('{') {
            Some((path, _)) if path.starts_with('/') && path.chars().all(plain) => {
                format!("{}; the variable is added by itself", self.written(&format!("\"{path}\"")))
            }
            _ => format!(
                "it begins with `/`, and holds letters, digits, `-`, `_`, `.`, `~` and `/`, {}",
                self.for_example()
            ),
        };
        Err(self.fault(&format!("is no path: `{}`", shown(text)), "not a path", help))
    }
}

fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let value =
        |digit: u8| char::from(digit).to_digit(16).and_then(|number| u8::try_from(number).ok());
    let octet = |pair: &[u8]| Some(value(pair[0])? << 4 | value(pair[1])?);
    let is_even = digits.len().is_multiple_of(2);
    if is_even { digits.chunks_exact(2).map(octet).collect() } else { None }
}
