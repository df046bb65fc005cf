//! The hosts of an experiment.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use dnslab_wire::words;

use crate::{Key, Kind, Value};

/// A text, or nothing.
const fn text(path: &'static str, meaning: &'static str, absent: &'static str) -> Key {
    Key::new(path, meaning, Kind::Text, || None).absent(absent)
}

/// The keys of a `[host.NAME]`.
pub static HOST_KEYS: [Key; 12] = [
    text(
        "at",
        "How the host is reached: `ssh:` and what you give to `ssh`; `kubernetes` for a pod that is made for it; `netns:` \
         and the name of a network namespace of this machine, or its path; `here` for this machine",
        "`ssh:` and its name",
    ),
    Key::new("program", "Path of dnslab there, of letters, digits and `/._+-`", Kind::Text, || {
        None
    })
    .absent("`hosts.program`"),
    Key::new(
        "install",
        "Whether dnslab is there: `present`, or `copy` as in `hosts.install`",
        Kind::Choice(&Install::NAMES),
        || None,
    )
    .absent("`hosts.install`"),
    text("context", "Context of kubectl for a pod", "`hosts.context`"),
    text("namespace", "Namespace of a pod", "`hosts.namespace`"),
    text("image", "Image of a pod that has dnslab in it", "`hosts.image`"),
    text(
        "server_image",
        "Image with the server that is started in a pod, as `registry.k8s.io/coredns/coredns:v1.12.1`: dnslab is put into \
         its container. Its user and its programs are those of the image",
        "the image of dnslab",
    ),
    text("nodes", "Labels of the nodes that a pod may be on: `key=value`, with commas", "any"),
    Key::new(
        "cpus",
        "Whole CPUs of a pod: request and limit",
        Kind::Count { least: 1, most: 1_024 },
        || Some(Value::Count(1)),
    ),
    text("memory", "Memory of a pod, as Kubernetes writes it: request and limit", "`1Gi`"),
    text("runtime_class", "Runtime class of a pod", "that of the cluster"),
    Key::new("host_network", "A pod has the network of its node", Kind::Boolean, || {
        Some(Value::Boolean(false))
    }),
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
    /// What it is in a cluster; nothing of a host that is reached otherwise.
    pub pod: Option<Box<Pod>>,
}

/// A pod that is made to be a host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pod {
    /// The context of kubectl(1); `None` for the current one.
    pub context: Option<String>,
    /// Its namespace; `None` for that of the context.
    pub namespace: Option<String>,
    /// The image that has dnslab in it.
    pub image: String,
    /// The image that its container is made from; `None` for that of dnslab.
    pub server_image: Option<String>,
    /// Labels of the nodes that it may be on.
    pub nodes: Vec<(String, String)>,
    /// Whole CPUs.
    pub cpus: u32,
    /// A quantity of Kubernetes.
    pub memory: String,
    /// How it is run; `None` for how the cluster runs pods.
    pub runtime_class: Option<String>,
    /// It has the network of its node.
    pub has_host_network: bool,
}

/// The image of a release.
const IMAGE: &str = concat!("dnslab:", env!("CARGO_PKG_VERSION"));

impl Default for Pod {
    fn default() -> Self {
        Self {
            context: None,
            namespace: None,
            image: IMAGE.to_owned(),
            server_image: None,
            nodes: Vec::new(),
            cpus: 1,
            memory: "1Gi".to_owned(),
            runtime_class: None,
            has_host_network: false,
        }
    }
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
    /// It is a pod that is made for it, and reached by kubectl(1).
    Kubernetes,
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
const KUBERNETES: &str = "kubernetes";
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
        if text == KUBERNETES {
            return Ok(Self::Kubernetes);
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
            Self::Kubernetes => formatter.write_str(KUBERNETES),
        }
    }
}

impl FromStr for HostPlace {
    type Err = NoHostPlace;

    /// The host of this name, of which nothing else is said.
    fn from_str(text: &str) -> Result<Self, NoHostPlace> {
        let at: HostAt = text.parse()?;
        let name = text.strip_prefix(SSH).unwrap_or(text).to_owned();
        let pod = (at == HostAt::Kubernetes).then(Box::default);
        Ok(Self { name, at, program: None, install: Install::default(), pod })
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

    /// Whether both are one host. Each pod is another one.
    pub(crate) fn is_at_the_place_of(&self, other: &Self) -> bool {
        self.at == other.at && (self.at != HostAt::Kubernetes || self.name == other.name)
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
        let pod = self.pod.as_deref().map(Pod::lines).unwrap_or_default();
        let whole = format!("\n[host.{name}]\nat = {at}\n{program}install = \"{install}\"\n{pod}");
        (!self.is_plain()).then_some(whole)
    }
}

impl Pod {
    /// The lines of a `[host.NAME]` that are read as this one.
    fn lines(&self) -> String {
        let nodes = (!self.nodes.is_empty()).then(|| written_labels(&self.nodes));
        let texts = [
            ("context", self.context.as_ref()),
            ("namespace", self.namespace.as_ref()),
            ("image", Some(&self.image)),
            ("server_image", self.server_image.as_ref()),
            ("nodes", nodes.as_ref()),
            ("memory", Some(&self.memory)),
            ("runtime_class", self.runtime_class.as_ref()),
        ];
        let mut lines = String::new();
        for (key, text) in texts {
            let line = text.map(|text| format!("{key} = {}\n", toml::Value::String(text.clone())));
            lines.push_str(&line.unwrap_or_default());
        }
        let (cpus, has_host_network) = (self.cpus, self.has_host_network);
        format!("{lines}cpus = {cpus}\nhost_network = {has_host_network}\n")
    }
}

/// Labels as a user writes them; `None` if they are none (Kubernetes, "Labels and Selectors").
pub(crate) fn labels(text: &str) -> Option<Vec<(String, String)>> {
    let is_of = |part: &str| {
        part.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"./_-".contains(&octet))
    };
    let all = text.split(',').map(|label| {
        let (key, value) = label.trim().split_once('=')?;
        let is_one = !key.is_empty() && is_of(key) && is_of(value);
        is_one.then(|| (key.to_owned(), value.to_owned()))
    });
    all.collect()
}

fn written_labels(labels: &[(String, String)]) -> String {
    let all: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    all.join(",")
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
            Some((before.iter().find(|other| other.is_at_the_place_of(host))?, host))
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
