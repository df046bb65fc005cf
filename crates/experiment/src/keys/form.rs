//! What may be written as the value of a key.

use std::time::Duration;

use dnslab_wire::units::{duration, number};

/// What may be written as the value of a key, and within which bounds (both included).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A whole number; TOML lets one write `200_000`.
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
        /// DNS counts it in seconds, so parts of a second cannot be kept.
        whole_seconds: bool,
    },
    /// Queries per second, above 0 and at most [`Form::HIGHEST_RATE`], or in quotes how they change:
    /// [`dnslab_traffic::Rate`].
    Rate,
    /// A share: a number in [0, 1] or a percentage in quotes.
    Share,
    /// Any text.
    Text,
    /// Text that is safe as the name of a folder: `a-z`, `0-9` and `-`, at most
    /// [`Form::MAX_FOLDER`] of them.
    FolderName,
    /// A domain name below the root, of letters, digits, `-` and `_`.
    DomainName,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of different words of these, at least one; their order means something.
    Words(&'static [&'static str]),
    /// A list of different CPU numbers, at most [`Form::HIGHEST_CPU`].
    Cpus,
    /// A path, relative to the folder of the experiment file.
    Path,
    /// `true` or `false`.
    Boolean,
    /// An IP address or a host name, with or without a port.
    Address,
    /// A list of EDNS options, each as code and octets in hexadecimal.
    EdnsOptions,
    /// `true`, `false`, or a number of octets up to [`Form::MAX_PADDING`].
    Padding,
    /// The path of an HTTP resource, with its first `/`.
    HttpPath,
}

impl Form {
    /// The highest rate in queries per second: one query in each nanosecond of the schedule.
    pub const HIGHEST_RATE: f64 = 1e9;

    /// Most letters in the name of a folder; file systems take 255, and a run number is added.
    pub const MAX_FOLDER: usize = 64;

    /// Largest block that queries are padded to, octets: no path takes larger datagrams unfragmented,
    /// and the recommended sizes are 128 and 468 (RFC 8467, section 4.1).
    pub const MAX_PADDING: u16 = 4_096;

    /// Block that queries are padded to unless another one is named, octets (RFC 8467, section 4.1).
    pub const PADDING: u16 = 128;

    /// Most letters in a path of HTTP.
    pub const MAX_PATH: usize = 512;

    /// Highest CPU number; Linux is built for at most 8,192 CPUs.
    pub const HIGHEST_CPU: u64 = 8_191;

    /// The form with its article, for "must be ...".
    #[must_use]
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Count { .. } => "a whole number",
            Self::Duration { .. } => "a duration",
            Self::Rate => "a rate in queries per second",
            Self::Share => "a share",
            Self::Text => "text",
            Self::FolderName => "a name",
            Self::DomainName => "a domain name",
            Self::Choice(_) => "a word",
            Self::Words(_) => "a list of words",
            Self::Cpus => "a list of CPU numbers",
            Self::Path => "a path",
            Self::Boolean => "true or false",
            Self::Address => "an IP address or a host name",
            Self::EdnsOptions => "a list of EDNS options",
            Self::Padding => "true, false or a number of octets",
            Self::HttpPath => "a path",
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
            Self::Text => "\"...\"".to_owned(),
            Self::FolderName => "\"two-threads\"".to_owned(),
            Self::DomainName => "\"melmac.univ\"".to_owned(),
            Self::Choice(words) => format!("\"{}\"", words.first().unwrap_or(&"")),
            Self::Words(words) => format!("[\"{}\"]", words.first().unwrap_or(&"")),
            Self::Cpus => "[0, 1]".to_owned(),
            Self::Path => "\"queries.txt\"".to_owned(),
            Self::Boolean => "true".to_owned(),
            Self::Address => "\"192.0.2.1\"".to_owned(),
            Self::EdnsOptions => "[\"65001:c0ffee\"]".to_owned(),
            Self::Padding => "128".to_owned(),
            Self::HttpPath => "\"/dns-query\"".to_owned(),
        }
    }

    /// The form with its bounds, for the reference.
    #[must_use]
    pub fn description(&self) -> String {
        match self {
            // Nobody reads nineteen digits.
            Self::Count { least, most } if *most > u64::from(u32::MAX) => {
                format!("count from {least}")
            }
            Self::Count { least, most } => {
                format!("count, {least} to {}", number::count(*most))
            }
            Self::Duration { least, most, whole_seconds } => {
                let whole = if *whole_seconds { ", whole seconds" } else { "" };
                let (least, most) = (duration::write(*least), duration::write(*most));
                format!("duration, {least} to {most}{whole}")
            }
            Self::Rate => "queries per second, above 0; or `\"steps:10000,20000/5s\"`, \
                           `\"ramp:1000..100000/30s\"`"
                .to_owned(),
            Self::Share => "share, 0 to 1 or `\"0%\"` to `\"100%\"`".to_owned(),
            Self::Text => "text".to_owned(),
            Self::FolderName => "name of `a-z`, `0-9`, `-`".to_owned(),
            Self::DomainName => "domain name".to_owned(),
            Self::Choice(words) => {
                words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
            }
            Self::Words(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                format!("list of {}", words.join(", "))
            }
            Self::Cpus => "list of CPU numbers".to_owned(),
            Self::Path => "path".to_owned(),
            Self::Boolean => "`true` or `false`".to_owned(),
            Self::Address => "IP address or host name".to_owned(),
            Self::EdnsOptions => "list of `\"CODE:HEX\"`".to_owned(),
            Self::Padding => {
                let most = number::count(Self::MAX_PADDING.into());
                format!("`true`, `false`, or octets, 1 to {most}")
            }
            Self::HttpPath => "path that begins with `/`".to_owned(),
        }
    }
}
