//! The hosts of an experiment.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use dnslab_wire::words;

use crate::{Key, Kind};

/// The keys of a `[host.NAME]`.
pub static HOST_KEYS: [Key; 3] = [
    Key::new(
        "at",
        "How the host is reached: `ssh:` and what you give to `ssh`; `netns:` and the name of a network namespace of this \
         machine, or its path; `here` for this machine",
        Kind::Text,
        || None,
    )
    .absent("`ssh:` and its name"),
    Key::new("program", "Path of dnslab there, of letters, digits and `/._+-`", Kind::Text, || None)
        .absent("`hosts.program`"),
    Key::new(
        "install",
        "Whether dnslab is there: `present`, or `copy` as in `hosts.install`",
        Kind::Choice(&Install::NAMES),
        || None,
    )
    .absent("`hosts.install`"),
];

words! {
    /// How dnslab comes to a host.
    #[derive(Default)]
    pub enum Install as "way to install" {
        /// It is there.
        #[default]
        Present = "present",
        /// The running program is copied there, and is gone when it has begun.
        Copy = "copy",
    }
}

/// A host of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPlace {
    /// What the experiment calls it.
    pub name: String,
    /// Where it is.
    pub at: HostAt,
    /// The path of dnslab there; `None` for the usual one.
    pub program: Option<PathBuf>,
    /// How dnslab comes there.
    pub install: Install,
}

/// Where a host is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostAt {
    /// It is this machine.
    Here,
    /// It is a network namespace of this machine: a path as that of `/proc/17/ns/net`.
    Namespace(PathBuf),
    /// What ssh(1) is given: `ns1.example.net`, `admin@ns1`, an address, or a name of its configuration.
    Ssh(String),
}

/// A text that names no host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoHostPlace;

impl fmt::Display for NoHostPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("write what you give to ssh: \"ns1.example.net\", or \"admin@ns1\"")
    }
}

impl std::error::Error for NoHostPlace {}

const HERE: &str = "here";
const SSH: &str = "ssh:";
const NAMESPACE: &str = "netns:";

/// Where ip(8) keeps network namespaces by their names.
const NAMESPACES: &str = "/run/netns";

/// Octets of a name at most.
const MAX_NAME: usize = 255;

/// Whether a text begins with a letter or a digit or `first`, and has nothing but these and `others`.
fn is_of(text: &str, first: u8, others: &[u8]) -> bool {
    let is_first = |octet: &u8| octet.is_ascii_alphanumeric() || *octet == first;
    let is_one = |octet: u8| octet.is_ascii_alphanumeric() || others.contains(&octet);
    text.as_bytes().first().is_some_and(is_first)
        && text.bytes().all(|octet| octet == first || is_one(octet))
        && text.len() <= MAX_NAME
}

impl FromStr for HostAt {
    type Err = NoHostPlace;

    fn from_str(text: &str) -> Result<Self, NoHostPlace> {
        if text == HERE {
            return Ok(Self::Here);
        }
        if let Some(name) = text.strip_prefix(NAMESPACE) {
            let path = Path::new(NAMESPACES).join(name);
            return is_of(name, b'/', b"._-").then_some(Self::Namespace(path)).ok_or(NoHostPlace);
        }
        let destination = text.strip_prefix(SSH).unwrap_or(text);
        let is_one = is_of(destination, b'[', b"@._-:%]");
        is_one.then(|| Self::Ssh(destination.to_owned())).ok_or(NoHostPlace)
    }
}

impl fmt::Display for HostAt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here => formatter.write_str(HERE),
            Self::Namespace(path) => {
                let short = path.strip_prefix(NAMESPACES).unwrap_or(path);
                write!(formatter, "{NAMESPACE}{}", short.display())
            }
            Self::Ssh(destination) => write!(formatter, "{SSH}{destination}"),
        }
    }
}

impl FromStr for HostPlace {
    type Err = NoHostPlace;

    /// The host of this name, of which nothing else is said.
    fn from_str(text: &str) -> Result<Self, NoHostPlace> {
        let at: HostAt = text.parse()?;
        let name = text.strip_prefix(SSH).unwrap_or(text).to_owned();
        Ok(Self { name, at, program: None, install: Install::default() })
    }
}

impl fmt::Display for HostPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

impl HostPlace {
    /// The path of dnslab there, as a plan shows it.
    #[must_use]
    pub fn program(&self) -> &Path {
        self.program.as_deref().unwrap_or(Path::new("dnslab"))
    }

    /// Whether the running program is copied there: not where it is already.
    #[must_use]
    pub fn is_copied(&self) -> bool {
        self.install == Install::Copy && matches!(self.at, HostAt::Ssh(_))
    }

    /// Whether its name says all of it.
    fn is_plain(&self) -> bool {
        self.name.parse().is_ok_and(|plain: Self| plain == *self)
    }

    /// The `[host.NAME]` that is read as this one; `None` where its name says all.
    pub(crate) fn to_toml(&self) -> Option<String> {
        let text = |text: String| toml::Value::String(text);
        let (name, at) = (text(self.name.clone()), text(self.at.to_string()));
        let program = self.program.as_ref().map(|path| text(path.display().to_string()));
        let program = program.map(|path| format!("program = {path}\n")).unwrap_or_default();
        let install = self.install;
        let whole = format!("\n[host.{name}]\nat = {at}\n{program}install = \"{install}\"\n");
        (!self.is_plain()).then_some(whole)
    }
}

/// Hosts, at least one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPlaces(
    /// Each once.
    pub Vec<HostPlace>,
);

/// A text that names no hosts, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoHostPlaces(String);

impl fmt::Display for NoHostPlaces {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for NoHostPlaces {}

impl HostPlaces {
    /// Hosts at most.
    pub const MAX: usize = 256;

    /// Two of them that are at one place, if there are two.
    pub(crate) fn twice(&self) -> Option<(&HostPlace, &HostPlace)> {
        let before = |(place, host): (usize, _)| (&self.0[..place], host);
        let mut all = self.0.iter().enumerate().map(before);
        all.find_map(|(before, host)| {
            Some((before.iter().find(|other| other.at == host.at)?, host))
        })
    }
}

impl FromStr for HostPlaces {
    type Err = NoHostPlaces;

    fn from_str(text: &str) -> Result<Self, NoHostPlaces> {
        let hosts = text.split(',').map(|part| part.trim().parse());
        let hosts: Result<Vec<HostPlace>, NoHostPlace> = hosts.collect();
        let hosts = Self(hosts.map_err(|none| NoHostPlaces(none.to_string()))?);
        if let Some((_, again)) = hosts.twice() {
            return Err(NoHostPlaces(format!("name `{again}` once: each host has one share")));
        }
        match hosts.0.len() {
            many if many > Self::MAX => {
                Err(NoHostPlaces(format!("name at most {} hosts: these are {many}", Self::MAX)))
            }
            _ => Ok(hosts),
        }
    }
}

impl fmt::Display for HostPlaces {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|host| host.name.as_str()).collect();
        formatter.write_str(&names.join(","))
    }
}
