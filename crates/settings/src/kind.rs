//! What may be written as the value of a key: its description, its bounds and its TOML.

use std::net::IpAddr;
use std::time::Duration;

use dnslab_traffic::Rate;
use dnslab_wire::EdnsOption;
use dnslab_wire::units::{duration, number, share};
use serde_json::json;

use crate::MAX_RUNS;

/// What may be written as the value of a key. Bounds are included.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A whole number. TOML allows `200_000`.
    Count {
        /// Smallest.
        least: u64,
        /// Largest.
        most: u64,
    },
    /// A number and a unit in quotes.
    Duration {
        /// Shortest.
        least: Duration,
        /// Longest.
        most: Duration,
        /// True if DNS counts it in seconds, so that parts of a second cannot be kept.
        whole_seconds: bool,
    },
    /// Queries per second, above 0 and at most [`Kind::MAX_RATE`], or a changing [`Rate`] in quotes.
    Rate,
    /// A share: a number in [0, 1] or a percentage in quotes.
    Share,
    /// A number above 0, at most [`Kind::MAX_FACTOR`].
    Factor,
    /// Any text.
    Text,
    /// Text that this function accepts.
    Parsed(fn(&str) -> Result<(), Unread>),
    /// Text that is safe as the name of a folder: 1 to [`Kind::MAX_FOLDER`] of `a-z`, `0-9` and `-`.
    FolderName,
    /// A domain name below the root, of letters, digits, `-` and `_`.
    DomainName,
    /// The name of a zone: the root, or a domain name that may have `/` too (RFC 2317).
    ZoneName,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// At least one of these words, each once. Their order means something.
    Words(&'static [&'static str]),
    /// Different CPU numbers, each at most [`Kind::MAX_CPU`].
    Cpus,
    /// A path, relative to the folder of the experiment file.
    Path,
    /// `true` or `false`.
    Boolean,
    /// An IP address or a host name, with or without a port.
    Address,
    /// A list of EDNS options, each as code and octets in hexadecimal.
    EdnsOptions,
    /// `true`, `false`, or a number of octets up to [`Kind::MAX_PADDING`].
    Padding,
    /// The path of an HTTP resource, with its first `/`.
    HttpPath,
    /// `true`, `false`, a number of entries up to [`Kind::MAX_CACHE_ENTRIES`], or memory in quotes, at most
    /// [`Kind::MAX_CACHE_MIB`].
    CacheSize,
    /// A whole number up to [`MAX_RUNS`], or in quotes a duration from a second to [`Kind::LONGEST_PLAN`].
    Rounds,
}

/// One value, read by the kind of its key.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of [`Kind::Count`], [`Kind::CacheSize`] and [`Kind::Rounds`], and of [`Kind::Padding`] as the size of a block in octets, 0 for
    /// none.
    Count(u64),
    /// Of [`Kind::Duration`] and [`Kind::Rounds`].
    Duration(Duration),
    /// Of [`Kind::Share`], in [0, 1].
    Share(f64),
    /// Of [`Kind::Factor`].
    Factor(f64),
    /// Of [`Kind::Rate`].
    Rate(Rate),
    /// Of every kind that is written as text.
    Text(String),
    /// Of [`Kind::Words`].
    Words(Vec<String>),
    /// Of [`Kind::Cpus`].
    Cpus(Vec<usize>),
    /// Of [`Kind::Boolean`], and of [`Kind::CacheSize`].
    Boolean(bool),
    /// Of [`Kind::Address`].
    Address(HostAddress),
    /// Of [`Kind::EdnsOptions`].
    EdnsOptions(Vec<EdnsOption>),
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAddress {
    /// Its address or name.
    pub host: Host,
    /// Of a link-local address.
    pub link: Option<Interface>,
    /// Not 0; `None` if none was written.
    pub port: Option<u16>,
}

/// The link on which a link-local address is meant, by an interface of this host: its zone (RFC 4007, section 11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// As it was written: the name of the interface, or its number.
    pub name: String,
    /// The number of the interface; 0 until the check looks it up.
    pub index: u32,
}

/// A host by address or name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// Its address.
    Address(IpAddr),
    /// Its name, to be looked up.
    Name(String),
}

/// A number as [`number::read`] takes it, from 0 on.
const NUMBER: &str = r"\+?([0-9_]+(\.[0-9_]*)?|\.[0-9_]+)([eE][+-]?[0-9_]+)?";

/// A duration in the schema.
fn duration_pattern() -> String {
    format!(r"^\s*{NUMBER}\s*(ns|us|ms|s|m|h)\s*$")
}

/// Why a text cannot be read, for [`Kind::Parsed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// What is wrong; `None` if there is no more to say than that it cannot be read.
    pub message: Option<&'static str>,
    /// A few words to stand below the text.
    pub label: &'static str,
    /// What to do about it.
    pub help: String,
}

impl Kind {
    /// Queries per second: one query in each nanosecond of the schedule.
    pub const MAX_RATE: f64 = 1e9;

    /// Chunks of a capture side by side, and how much faster than real clients they may ask.
    pub const MAX_FACTOR: f64 = 100.0;

    /// Letters. File systems take 255, and a run number is added.
    pub const MAX_FOLDER: usize = 64;

    /// Largest block of padding, octets. No path takes larger datagrams unfragmented, and the recommended
    /// sizes are 128 and 468 (RFC 8467, section 4.1).
    pub const MAX_PADDING: u16 = 4_096;

    /// Default block of padding, octets (RFC 8467, section 4.1).
    pub const PADDING: u16 = 128;

    /// Most entries of a cache.
    pub const MAX_CACHE_ENTRIES: u64 = 1_000_000_000;

    /// Most memory of a cache, in units of 1,048,576 octets: a tebibyte.
    pub const MAX_CACHE_MIB: u64 = 1 << 20;

    /// Longest time that rounds are to fill: a week.
    pub const LONGEST_PLAN: Duration = Duration::from_secs(7 * 24 * 3_600);

    /// Letters of a path of HTTP.
    pub const MAX_PATH: usize = 512;

    /// Linux is built for at most 8,192 CPUs.
    pub const MAX_CPU: u64 = 8_191;

    /// Octets of EDNS options with their codes and lengths. The rest of a message holds a name and what else
    /// is added.
    pub(crate) const MAX_OPTION_OCTETS: usize = 32_768;

    /// With its article, for "must be ...".
    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Self::Count { .. } => "a whole number",
            Self::Duration { .. } => "a duration",
            Self::Rate => "a rate in queries per second",
            Self::Share => "a share",
            Self::Factor => "a number",
            Self::Text | Self::Parsed(_) => "text",
            Self::FolderName => "a name",
            Self::DomainName | Self::ZoneName => "a domain name",
            Self::Choice(_) => "a word",
            Self::Words(_) => "a list of words",
            Self::Cpus => "a list of CPU numbers",
            Self::Path | Self::HttpPath => "a path",
            Self::Boolean => "true or false",
            Self::Address => "an IP address or a host name",
            Self::EdnsOptions => "a list of EDNS options",
            Self::Padding => "true, false or a number of octets",
            Self::CacheSize => "true, false, a number of entries or an amount of memory",
            Self::Rounds => "a number of rounds or a duration",
        }
    }

    /// A right value as TOML.
    #[must_use]
    pub fn example(&self) -> String {
        match self {
            Self::Count { least, most } => 1_000.clamp(*least, *most).to_string(),
            Self::Duration { most, .. } => {
                format!("\"{}\"", duration::write(Duration::from_secs(10).min(*most)))
            }
            Self::Rate => "50_000".to_owned(),
            Self::Share => "\"2%\"".to_owned(),
            Self::Factor => "1.5".to_owned(),
            Self::Text | Self::Parsed(_) => "\"...\"".to_owned(),
            Self::FolderName => "\"two-threads\"".to_owned(),
            Self::DomainName | Self::ZoneName => "\"example.test\"".to_owned(),
            Self::Choice(words) => format!("\"{}\"", words.first().unwrap_or(&"")),
            Self::Words(words) => format!("[\"{}\"]", words.first().unwrap_or(&"")),
            Self::Cpus => "[0, 1]".to_owned(),
            Self::Path => "\"queries.txt\"".to_owned(),
            Self::Boolean => "true".to_owned(),
            Self::Address => "\"192.0.2.1\"".to_owned(),
            Self::EdnsOptions => "[\"65001:c0ffee\"]".to_owned(),
            Self::Padding => "128".to_owned(),
            Self::CacheSize => "\"64MiB\"".to_owned(),
            Self::HttpPath => "\"/dns-query\"".to_owned(),
            Self::Rounds => "10".to_owned(),
        }
    }

    /// The kind with its bounds, for the reference.
    #[must_use]
    pub fn description(&self) -> String {
        let quoted = |words: &[&str]| {
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        };
        match self {
            // Nobody reads the nineteen digits of the largest count.
            Self::Count { least, most } if *most > u64::from(u32::MAX) => {
                format!("count from {least}")
            }
            Self::Count { least, most } => format!("count, {least} to {}", number::count(*most)),
            Self::Duration { least, most, whole_seconds } => {
                let whole = if *whole_seconds { ", whole seconds" } else { "" };
                let (least, most) = (duration::write(*least), duration::write(*most));
                format!("duration, {least} to {most}{whole}")
            }
            Self::Rate => "queries per second, above 0; or `\"steps:10000,20000/5s\"`, \
                           `\"ramp:1000..100000/30s\"`"
                .to_owned(),
            Self::Factor => format!("number above 0, at most {}", number::write(Self::MAX_FACTOR)),
            Self::Share => "share, 0 to 1 or `\"0%\"` to `\"100%\"`".to_owned(),
            Self::Text | Self::Parsed(_) => "text".to_owned(),
            Self::FolderName => "name of `a-z`, `0-9`, `-`".to_owned(),
            Self::DomainName => "domain name".to_owned(),
            Self::ZoneName => "domain name, or `.` for the root".to_owned(),
            Self::Choice(words) => quoted(words),
            Self::Words(words) => format!("list of {}", quoted(words)),
            Self::Cpus => "list of CPU numbers".to_owned(),
            Self::Path => "path".to_owned(),
            Self::Boolean => "`true` or `false`".to_owned(),
            Self::Address => "IP address or host name".to_owned(),
            Self::EdnsOptions => "list of `\"CODE:HEX\"`".to_owned(),
            Self::Padding => {
                format!(
                    "`true`, `false`, or octets, 1 to {}",
                    number::count(Self::MAX_PADDING.into())
                )
            }
            Self::HttpPath => "path that begins with `/`".to_owned(),
            Self::CacheSize => format!(
                "`true`, `false`, entries, 1 to {}, or memory, `\"1MiB\"` to `\"{}GiB\"`",
                number::count(Self::MAX_CACHE_ENTRIES),
                Self::MAX_CACHE_MIB >> 10
            ),
            Self::Rounds => format!(
                "count, 1 to {}, or duration, `\"1s\"` to `\"{}\"`",
                number::count(MAX_RUNS as u64),
                duration::write(Self::LONGEST_PLAN)
            ),
        }
    }

    pub(crate) fn schema(&self) -> serde_json::Value {
        match self {
            Self::Count { least, most } => {
                json!({ "type": "integer", "minimum": least, "maximum": most })
            }
            Self::Duration { .. } => json!({
                "type": "string",
                "pattern": duration_pattern(),
            }),
            Self::Rounds => json!({ "anyOf": [
                { "type": "integer", "minimum": 1, "maximum": MAX_RUNS },
                { "type": "string", "pattern": duration_pattern() },
            ]}),
            Self::Rate => json!({ "anyOf": [
                { "type": "number", "exclusiveMinimum": 0, "maximum": Self::MAX_RATE },
                { "type": "string", "pattern": format!(r"^\s*({NUMBER}|steps:.*/.*|ramp:.*\.\..*/.*)\s*$") },
            ]}),
            Self::Factor => {
                json!({ "type": "number", "exclusiveMinimum": 0, "maximum": Self::MAX_FACTOR })
            }
            Self::Share => json!({ "anyOf": [
                { "type": "number", "minimum": 0, "maximum": 1 },
                { "type": "string", "pattern": format!(r"^\s*{NUMBER}\s*%?\s*$") },
            ]}),
            Self::Text
            | Self::Parsed(_)
            | Self::Path
            | Self::Address
            | Self::DomainName
            | Self::ZoneName => {
                json!({ "type": "string", "minLength": 1 })
            }
            Self::FolderName => json!({
                "type": "string", "pattern": "^[a-z0-9-]+$", "maxLength": Self::MAX_FOLDER,
            }),
            Self::Choice(words) => json!({ "enum": words }),
            Self::Words(words) => json!({
                "type": "array",
                "minItems": 1,
                "uniqueItems": true,
                "items": { "enum": words },
            }),
            Self::Cpus => json!({
                "type": "array",
                "minItems": 1,
                "uniqueItems": true,
                "items": { "type": "integer", "minimum": 0, "maximum": Self::MAX_CPU },
            }),
            Self::Boolean => json!({ "type": "boolean" }),
            Self::EdnsOptions => json!({
                "type": "array",
                "items": { "type": "string", "pattern": "^[0-9]+:([0-9a-fA-F]{2})*$" },
            }),
            Self::Padding => json!({ "anyOf": [
                { "type": "boolean" },
                { "type": "integer", "minimum": 1, "maximum": Self::MAX_PADDING },
            ]}),
            Self::HttpPath => json!({ "type": "string", "pattern": "^/[A-Za-z0-9._~/-]*$" }),
            Self::CacheSize => json!({ "anyOf": [
                { "type": "boolean" },
                { "type": "integer", "minimum": 1, "maximum": Self::MAX_CACHE_ENTRIES },
                { "type": "string", "pattern": r"^\s*[0-9]+\s*(MiB|GiB)\s*$" },
            ]}),
        }
    }

    /// True if a command line may give it as text without quotes.
    pub(crate) fn is_text(&self) -> bool {
        matches!(
            self,
            Self::Text
                | Self::Parsed(_)
                | Self::FolderName
                | Self::DomainName
                | Self::ZoneName
                | Self::Choice(_)
                | Self::Path
                | Self::HttpPath
                | Self::Address
        )
    }

    /// TOML that reads back as the same value.
    #[must_use]
    pub fn write(&self, value: &Value) -> String {
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let list = |texts: &[String]| {
            let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
            format!("[{}]", texts.join(", "))
        };
        match value {
            Value::Count(0) if matches!(self, Self::Padding) => "false".to_owned(),
            Value::Count(count) => count.to_string(),
            Value::Duration(duration) => quoted(&match self {
                Self::Duration { whole_seconds: true, .. } => format!("{}s", duration.as_secs()),
                _ => duration::write(*duration),
            }),
            // The shortest form that reads back as the same number.
            Value::Share(number) | Value::Factor(number) | Value::Rate(Rate::Constant(number)) => {
                format!("{number:?}")
            }
            Value::Rate(changing) => quoted(&changing.to_string()),
            Value::Text(text) => quoted(text),
            Value::Words(words) => list(words),
            Value::Cpus(cpus) => format!("{cpus:?}"),
            Value::Boolean(value) => value.to_string(),
            Value::Address(HostAddress { host, link, port }) => {
                let host = match (host, link) {
                    (Host::Address(address), None) => address.to_string(),
                    (Host::Address(address), Some(link)) => format!("{address}%{}", link.name),
                    (Host::Name(name), _) => name.clone(),
                };
                quoted(&match port {
                    None => host,
                    Some(port) if host.contains(':') => format!("[{host}]:{port}"),
                    Some(port) => format!("{host}:{port}"),
                })
            }
            Value::EdnsOptions(options) => {
                let hex = |data: &[u8]| -> String {
                    data.iter().map(|octet| format!("{octet:02x}")).collect()
                };
                let option = |edns_option: &EdnsOption| {
                    format!("{}:{}", edns_option.code, hex(&edns_option.data))
                };
                list(&options.iter().map(option).collect::<Vec<_>>())
            }
        }
    }

    /// A value as people write it: shares in percent, digits in groups.
    #[must_use]
    pub fn shown(&self, value: &Value) -> String {
        match value {
            Value::Share(share) => format!("\"{}\"", share::write(*share)),
            Value::Count(count) if *count > 0 => number::count(*count).replace(',', "_"),
            _ => self.write(value),
        }
    }
}
