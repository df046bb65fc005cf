//! The Rust types of values.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use dnslab_traffic::{
    ClientSubnets, ClientSubnetsError, Connect, Delay, FurtherServers, Loss, NameList, Pace, Rate,
    Selection, ServerOrder, SourceAddresses, Stall, TimeWindows, TransportMix, Truncated, TypeMix,
};
use dnslab_wire::rcode::{self, by_name};
use dnslab_wire::units::share;
use dnslab_wire::{
    DnstapKind, DnstapSource, EdnsOption, Method, ServerAddresses, ServerPorts, TlsGroup,
    Transport, TsigKey, rcode_name,
};

use crate::key::Setting;
use crate::problem::on_one_line;
use crate::suggestion::closest_word;
use crate::{
    Alternate, CertificateKind, Host, HostAddress, HostPlace, HostPlaces, HostsChoice, Install,
    Interface, Kind, LogSuffix, LogTarget, MAX_SHARES, MAX_VARIANTS, Metric, Quickack, QuotaKind,
    ReceiveTime, Records, ServerKind, ServicePlace, TimeForm, TlsVersions, Unread, Value,
    ZoneSigning,
};

/// A type with its own variant of [`Value`].
macro_rules! as_it_is {
    ($($type:ty: $kind:expr, $variant:ident;)+) => {$(
        impl Setting for $type {
            const KIND: Kind = $kind;

            fn of(value: &Value) -> Option<Self> {
                match value {
                    Value::$variant(value) => Some(value.clone()),
                    _ => None,
                }
            }

            fn value(&self) -> Option<Value> {
                Some(Value::$variant(self.clone()))
            }
        }
    )+};
}

as_it_is! {
    u64: Kind::Count { least: 0, most: u64::MAX }, Count;
    Duration: Kind::Duration { least: Duration::ZERO, most: Duration::MAX, whole_seconds: false }, Duration;
    f64: Kind::Share, Share;
    Rate: Kind::Rate, Rate;
    String: Kind::Text, Text;
    bool: Kind::Boolean, Boolean;
    HostAddress: Kind::Address, Address;
}

/// A list. An empty one counts as not written.
macro_rules! lists {
    ($($type:ty: $kind:ident;)+) => {$(
        impl Setting for Vec<$type> {
            const KIND: Kind = Kind::$kind;

            fn of(value: &Value) -> Option<Self> {
                match value {
                    Value::$kind(list) => Some(list.clone()),
                    _ => None,
                }
            }

            fn value(&self) -> Option<Value> {
                (!self.is_empty()).then(|| Value::$kind(self.clone()))
            }

            fn absent() -> Option<Self> {
                Some(Vec::new())
            }
        }
    )+};
}

lists! {
    usize: Cpus;
    EdnsOption: EdnsOptions;
}

/// Numbers that are narrower than the 64 bits of [`Value::Count`].
macro_rules! counts {
    ($($type:ty),+) => {$(
        impl Setting for $type {
            const KIND: Kind = Kind::Count { least: 0, most: <$type>::MAX as u64 };

            fn of(value: &Value) -> Option<Self> {
                <$type>::try_from(u64::of(value)?).ok()
            }

            fn value(&self) -> Option<Value> {
                Some(Value::Count((*self).into()))
            }
        }
    )+};
}

counts!(u16, u32);

/// A value of a type that is read from text.
fn parsed<T: FromStr>(value: &Value) -> Option<T> {
    match value {
        Value::Text(text) => text.parse().ok(),
        _ => None,
    }
}

macro_rules! choices {
    ($($type:ty),+ $(,)?) => {$(
        impl Setting for $type {
            const KIND: Kind = Kind::Choice(&Self::NAMES);

            fn of(value: &Value) -> Option<Self> {
                parsed(value)
            }

            fn value(&self) -> Option<Value> {
                Some(Value::Text(self.name().to_owned()))
            }
        }
    )+};
}

choices! {
    Alternate, CertificateKind, Connect, DnstapSource, HostsChoice, Install, LogSuffix, LogTarget, Method, Pace, Quickack, QuotaKind, ReceiveTime, Records, Selection, ServerKind, ServerOrder, TimeForm, TlsVersions, Transport,
    Truncated, ZoneSigning,
}

impl Setting for Metric {
    const KIND: Kind = Kind::Choice(&Self::WORDS);

    fn of(value: &Value) -> Option<Self> {
        let Value::Text(text) = value else { return None };
        let named = |metric: &Self| metric.to_string().eq_ignore_ascii_case(text);
        Self::COMPARED.into_iter().find(named)
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Text(self.to_string()))
    }
}

/// Text that `FromStr` reads and `Display` writes.
macro_rules! texts {
    ($($type:ty),+ $(,)?) => {$(
        impl Setting for $type {
            const KIND: Kind = Kind::Parsed(read::<$type>);

            fn of(value: &Value) -> Option<Self> {
                parsed(value)
            }

            fn value(&self) -> Option<Value> {
                Some(Value::Text(self.to_string()))
            }
        }
    )+};
}

texts!(
    Delay,
    ExpectedCode,
    Loss,
    PopulationSource,
    FurtherServers,
    HostPlace,
    HostPlaces,
    NameList,
    ServicePlace,
    ServerAddresses,
    ServerPorts,
    SourceAddresses,
    Stall,
    Subnets,
    TimeWindows,
    TransportMix,
    TypeMix,
    LoadShares,
    VariantNames,
);

fn read<T>(text: &str) -> Result<(), Unread>
where
    T: FromStr,
    T::Err: fmt::Display,
{
    let unread = |error: T::Err| Unread {
        message: None,
        label: "here",
        help: on_one_line(&error.to_string()),
    };
    text.parse::<T>().map(drop).map_err(unread)
}

impl<T: Setting> Setting for Option<T> {
    const KIND: Kind = T::KIND;

    fn of(value: &Value) -> Option<Self> {
        T::of(value).map(Some)
    }

    fn value(&self) -> Option<Value> {
        self.as_ref()?.value()
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl Setting for PathBuf {
    const KIND: Kind = Kind::Path;

    fn of(value: &Value) -> Option<Self> {
        String::of(value).map(Self::from)
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Text(self.to_string_lossy().into_owned()))
    }
}

/// Lists of words, whose order means something.
macro_rules! word_lists {
    ($($type:ty),+) => {$(
        impl Setting for Vec<$type> {
            const KIND: Kind = Kind::Words(&<$type>::NAMES);

            fn of(value: &Value) -> Option<Self> {
                match value {
                    Value::Words(words) => words.iter().map(|word| word.parse().ok()).collect(),
                    _ => None,
                }
            }

            fn value(&self) -> Option<Value> {
                Some(Value::Words(self.iter().map(ToString::to_string).collect()))
            }
        }
    )+};
}

word_lists!(TlsGroup, DnstapKind);

/// Which server is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerChoice {
    /// One that dnslab starts.
    Started(ServerKind),
    /// One that runs already.
    External,
}

impl ServerChoice {
    const EXTERNAL: &'static str = "external";

    const NAMES: [&'static str; ServerKind::ALL.len() + 1] = {
        let mut names = [Self::EXTERNAL; ServerKind::ALL.len() + 1];
        let mut at = 0;
        while at < ServerKind::ALL.len() {
            names[at] = ServerKind::NAMES[at];
            at += 1;
        }
        names
    };

    /// `None` for a server that runs already.
    #[must_use]
    pub fn started(self) -> Option<ServerKind> {
        match self {
            Self::Started(kind) => Some(kind),
            Self::External => None,
        }
    }

    /// `None` is a server that runs already.
    #[must_use]
    pub fn name_of(kind: Option<ServerKind>) -> &'static str {
        kind.map_or(Self::EXTERNAL, ServerKind::name)
    }
}

impl Setting for ServerChoice {
    const KIND: Kind = Kind::Choice(&Self::NAMES);

    fn of(value: &Value) -> Option<Self> {
        Some(ServerKind::of(value).map_or(Self::External, Self::Started))
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Text(Self::name_of(self.started()).to_owned()))
    }
}

/// Where a server gets what it does not know itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamChoice {
    /// From a server that it forwards to, and that dnslab starts.
    Server(ServerKind),
    /// From the root servers, TLDs and authoritative servers of a private Internet, which dnslab starts as one
    /// process. The server resolves by itself.
    Internet,
    /// From the servers of the Internet, beginning at the root servers that the server was built with. The
    /// server resolves by itself.
    Live,
    /// From a server that it forwards to, and that runs already.
    External,
}

impl UpstreamChoice {
    const INTERNET: &'static str = "internet";
    const LIVE: &'static str = "live";

    const NAMES: [&'static str; ServerKind::ALL.len() + 3] = {
        let mut names = [Self::INTERNET; ServerKind::ALL.len() + 3];
        let mut at = 0;
        while at < ServerKind::ALL.len() {
            names[at] = ServerKind::NAMES[at];
            at += 1;
        }
        names[at + 1] = Self::LIVE;
        names[at + 2] = ServerChoice::EXTERNAL;
        names
    };

    /// The server that dnslab starts to be forwarded to; `None` if there is none.
    #[must_use]
    pub fn server(self) -> Option<ServerKind> {
        match self {
            Self::Server(kind) => Some(kind),
            Self::Internet | Self::Live | Self::External => None,
        }
    }

    /// True if the server under test forwards there; false if it resolves by itself.
    #[must_use]
    pub fn is_forwarded_to(self) -> bool {
        matches!(self, Self::Server(_) | Self::External)
    }

    /// What dnslab starts at the end of the chain; `None` if the end is elsewhere.
    #[must_use]
    pub fn started(self) -> Option<ServerKind> {
        match self {
            Self::Server(kind) => Some(kind),
            Self::Internet => Some(ServerKind::Embedded),
            Self::Live | Self::External => None,
        }
    }

    /// The word of the experiment file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Server(kind) => kind.name(),
            Self::Internet => Self::INTERNET,
            Self::Live => Self::LIVE,
            Self::External => ServerChoice::EXTERNAL,
        }
    }
}

impl Setting for UpstreamChoice {
    const KIND: Kind = Kind::Choice(&Self::NAMES);

    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Text(word) if word == Self::INTERNET => Some(Self::Internet),
            Value::Text(word) if word == Self::LIVE => Some(Self::Live),
            Value::Text(word) if word == ServerChoice::EXTERNAL => Some(Self::External),
            other => ServerKind::of(other).map(Self::Server),
        }
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Text(self.name().to_owned()))
    }
}

impl HostAddress {
    pub(crate) const LOCAL: Self =
        Self { host: Host::Address(IpAddr::V4(Ipv4Addr::LOCALHOST)), link: None, port: None };

    /// Reads an IP address, with or without a link and a port: `192.0.2.1:5300`, `fe80::1%eth0`, `[fe80::1%eth0]:5300`.
    /// `None` if it is none.
    #[must_use]
    pub fn of_ip(text: &str) -> Option<Self> {
        let number = |port: &str| port.parse().ok().filter(|port| *port != 0);
        let (bare, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
            Some(bracketed) => match bracketed? {
                (bare, "") => (bare, None),
                (bare, after) => (bare, Some(number(after.strip_prefix(':')?)?)),
            },
            None => match text.split_once(':') {
                Some((bare, port)) if bare.parse::<Ipv4Addr>().is_ok() => {
                    (bare, Some(number(port)?))
                }
                _ => (text, None),
            },
        };
        let (address, link) = match bare.split_once('%') {
            None => (bare.parse().ok()?, None),
            Some((_, "")) => return None,
            Some((address, name)) => {
                let link = Interface { name: name.to_owned(), index: 0 };
                (IpAddr::V6(address.parse().ok()?), Some(link))
            }
        };
        Some(Self { host: Host::Address(address), link, port })
    }

    /// The address with this port, and the link once it is known.
    #[must_use]
    pub fn at(&self, port: u16) -> SocketAddr {
        match (self.ip(), &self.link) {
            (IpAddr::V6(ip), Some(link)) => SocketAddrV6::new(ip, port, 0, link.index).into(),
            (ip, _) => (ip, port).into(),
        }
    }

    /// A name stands for the loopback address until the check looks it up.
    #[must_use]
    pub fn ip(&self) -> IpAddr {
        match self.host {
            Host::Address(address) => address,
            Host::Name(_) => Ipv4Addr::LOCALHOST.into(),
        }
    }
}

/// Which response code a right answer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedCode {
    /// Any.
    Any,
    /// This one, extended by EDNS or not (RFC 6891, section 6.1.3).
    One(u16),
}

/// The text is no response code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoCode {
    /// The name of a code that is written nearly like it.
    pub near: Option<&'static str>,
}

impl ExpectedCode {
    const ANY: &'static str = "any";
}

impl FromStr for ExpectedCode {
    type Err = NoCode;

    fn from_str(text: &str) -> Result<Self, NoCode> {
        match text {
            any if any.eq_ignore_ascii_case(Self::ANY) => Ok(Self::Any),
            name => {
                let near = || closest_word(&name.to_ascii_uppercase(), rcode::names());
                by_name(name).map(Self::One).ok_or_else(|| NoCode { near: near() })
            }
        }
    }
}

impl fmt::Display for ExpectedCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => formatter.write_str(Self::ANY),
            Self::One(code) => formatter.write_str(&rcode_name(*code)),
        }
    }
}

impl fmt::Display for NoCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(near) = self.near {
            return write!(formatter, "did you mean {near}?");
        }
        formatter.write_str(
            "write NOERROR, NXDOMAIN, SERVFAIL, REFUSED, BADVERS or another name of IANA's table of response \
             codes, RCODE12 for one without a name, or any",
        )
    }
}

/// The response codes that are right for a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RightCodes {
    /// All.
    Any,
    /// This one.
    One(u16),
    /// NOERROR and NXDOMAIN: whoever brings names may bring some that do not exist.
    Answers,
}

impl RightCodes {
    /// True if an answer with this code is right.
    #[must_use]
    pub fn has(self, code: u16) -> bool {
        match self {
            Self::Any => true,
            Self::One(right) => code == right,
            Self::Answers => matches!(code, rcode::NOERROR | rcode::NXDOMAIN),
        }
    }
}

impl fmt::Display for RightCodes {
    /// Behind "not with" or "not".
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => formatter.write_str("any code"),
            Self::One(code) => formatter.write_str(&rcode_name(*code)),
            Self::Answers => formatter.write_str("NOERROR or NXDOMAIN"),
        }
    }
}

/// A number above 0, at most [`Kind::MAX_FACTOR`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor(
    /// The number.
    pub f64,
);

impl Setting for Factor {
    const KIND: Kind = Kind::Factor;

    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Factor(number) => Some(Self(*number)),
            _ => None,
        }
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Factor(self.0))
    }
}

/// How many rounds an experiment has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// So many.
    Count(u32),
    /// As many as the plan fits into this time.
    Within(Duration),
}

impl Setting for Rounds {
    const KIND: Kind = Kind::Rounds;

    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Count(count) => u32::try_from(*count).ok().map(Self::Count),
            Value::Duration(time) => Some(Self::Within(*time)),
            _ => None,
        }
    }

    fn value(&self) -> Option<Value> {
        Some(match self {
            Self::Count(count) => Value::Count((*count).into()),
            Self::Within(time) => Value::Duration(*time),
        })
    }
}

/// How much a forwarder or resolver keeps of what it is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheSize {
    /// As much as it does by default.
    #[default]
    Default,
    /// Nothing: each query goes upstream.
    None,
    /// At most so many entries, as the server counts them; at least 1.
    Entries(u64),
    /// At most so much memory, in units of 1,048,576 octets; at least 1.
    Mebibytes(u64),
}

/// Why a text is no size of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheSizeError {
    /// It is not a number and a unit.
    Form,
    /// It is nothing, or more than anybody has.
    Range,
}

/// Memory alone: entries are a number, and no text.
impl FromStr for CacheSize {
    type Err = CacheSizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let (number, factor) = match (text.strip_suffix("MiB"), text.strip_suffix("GiB")) {
            (Some(number), _) => (number, 1),
            (None, Some(number)) => (number, 1_024),
            (None, None) => return Err(CacheSizeError::Form),
        };
        let number = number.trim_end();
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(CacheSizeError::Form);
        }
        let mebibytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
        let mebibytes = mebibytes.filter(|size| (1..=Kind::MAX_CACHE_MIB).contains(size));
        mebibytes.map(Self::Mebibytes).ok_or(CacheSizeError::Range)
    }
}

impl fmt::Display for CacheSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("true"),
            Self::None => formatter.write_str("false"),
            Self::Entries(count) => write!(formatter, "{count}"),
            Self::Mebibytes(count) if count % 1_024 == 0 => {
                write!(formatter, "{}GiB", count / 1_024)
            }
            Self::Mebibytes(count) => write!(formatter, "{count}MiB"),
        }
    }
}

impl Setting for CacheSize {
    const KIND: Kind = Kind::CacheSize;

    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Boolean(true) => Some(Self::Default),
            Value::Boolean(false) => Some(Self::None),
            Value::Count(count) => Some(Self::Entries(*count)),
            other => parsed(other),
        }
    }

    fn value(&self) -> Option<Value> {
        Some(match self {
            Self::Default => Value::Boolean(true),
            Self::None => Value::Boolean(false),
            Self::Entries(count) => Value::Count(*count),
            Self::Mebibytes(_) => Value::Text(self.to_string()),
        })
    }
}

/// The source of client subnets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subnets {
    /// Written in the experiment.
    Written(ClientSubnets),
    /// The lines of this file.
    File(PathBuf),
}

impl FromStr for Subnets {
    type Err = ClientSubnetsError;

    fn from_str(text: &str) -> Result<Self, ClientSubnetsError> {
        // A path may have a `/` too, but only a subnet has an address before the first one.
        let before = text.split(['/', ',', ' ']).next().unwrap_or_default();
        match before.parse::<IpAddr>() {
            Ok(_) => text.parse().map(Self::Written),
            Err(_) => Ok(Self::File(PathBuf::from(text))),
        }
    }
}

impl fmt::Display for Subnets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Written(subnets) => subnets.fmt(formatter),
            Self::File(path) => path.display().fmt(formatter),
        }
    }
}

/// How the processes of a server are found that somebody else started.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Identity {
    /// By the address that it answers at.
    #[default]
    Address,
    /// By its first process.
    Process(u32),
    /// By the name of its systemd unit, e.g. `named.service`.
    Unit(String),
}

/// Where a population is described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PopulationSource {
    /// In dnslab ([`dnslab_traffic::population::Population::typical`]).
    Typical,
    /// In this file.
    File(PathBuf),
}

impl PopulationSource {
    const TYPICAL: &'static str = "typical";
}

/// A text that names no population.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPopulation;

impl fmt::Display for NoPopulation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("write \"typical\", or the path of a population file")
    }
}

impl std::error::Error for NoPopulation {}

impl FromStr for PopulationSource {
    type Err = NoPopulation;

    /// A file that is called `typical` is read by another path, such as `./typical`.
    fn from_str(text: &str) -> Result<Self, NoPopulation> {
        match text {
            "" => Err(NoPopulation),
            Self::TYPICAL => Ok(Self::Typical),
            path => Ok(Self::File(PathBuf::from(path))),
        }
    }
}

impl fmt::Display for PopulationSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Typical => formatter.write_str(Self::TYPICAL),
            Self::File(path) => path.display().fmt(formatter),
        }
    }
}

/// Names of variants; empty for a comparison with nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantNames(
    /// The names.
    pub Vec<String>,
);

impl VariantNames {
    const NONE: &'static str = "-";
}

/// A text that names more variants than an experiment has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyNames(
    /// So many.
    pub usize,
);

impl fmt::Display for TooManyNames {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(count) = self;
        write!(
            formatter,
            "it names {count} variants, and an experiment has at most {MAX_VARIANTS}: name fewer"
        )
    }
}

impl std::error::Error for TooManyNames {}

impl FromStr for VariantNames {
    type Err = TooManyNames;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names = text.split(',').map(|name| name.trim().to_owned());
        let count = names.clone().count();
        if count > MAX_VARIANTS {
            return Err(TooManyNames(count));
        }
        Ok(Self(if text.trim() == Self::NONE { Vec::new() } else { names.collect() }))
    }
}

impl fmt::Display for VariantNames {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.is_empty() {
            true => formatter.write_str(Self::NONE),
            false => formatter.write_str(&self.0.join(", ")),
        }
    }
}

/// Shares of a rate, ascending, each in (0, 1).
#[derive(Clone, Debug, PartialEq)]
pub struct LoadShares(
    /// The shares.
    pub Vec<f64>,
);

/// A text that is no list of shares of a rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnreadShares {
    /// Not a percentage between the two ends.
    NoShare(String),
    /// Not in order, or the same again.
    Unordered,
    /// More than anybody needs.
    TooMany(usize),
}

impl fmt::Display for UnreadShares {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoShare(word) => write!(
                formatter,
                "`{word}` is no share of a rate: write percentages between 0% and 100%, as in `10%,50%,80%`"
            ),
            Self::Unordered => {
                formatter.write_str("write the shares from the smallest to the largest, each once")
            }
            Self::TooMany(count) => write!(
                formatter,
                "it names {count} shares, and {MAX_SHARES} are the most: name fewer"
            ),
        }
    }
}

impl std::error::Error for UnreadShares {}

impl FromStr for LoadShares {
    type Err = UnreadShares;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        if words.len() > MAX_SHARES {
            return Err(UnreadShares::TooMany(words.len()));
        }
        let shares = words.iter().map(|word| {
            let share = share::read(word).filter(|share| 0.0 < *share && *share < 1.0);
            share.ok_or_else(|| UnreadShares::NoShare((*word).to_owned()))
        });
        let shares = shares.collect::<Result<Vec<f64>, UnreadShares>>()?;
        match shares.is_sorted_by(|low, high| low < high) {
            true => Ok(Self(shares)),
            false => Err(UnreadShares::Unordered),
        }
    }
}

impl fmt::Display for LoadShares {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().copied().map(share::write).collect();
        formatter.write_str(&words.join(","))
    }
}

/// Stands in the place of a secret in the experiment as run. `<` is not in base64, so no secret ends with it.
const SECRET_NOT_KEPT: &str = ":<secret not kept>";

impl Setting for TsigKey {
    const KIND: Kind = Kind::Parsed(|text| {
        match text.ends_with(SECRET_NOT_KEPT) {
        true => Err(Unread {
            message: Some("the secret of the TSIG key is not here: results do not hold it"),
            label: "without its secret",
            help: "begin anew with the key in a file, `load.tsig_file`: such an experiment can be resumed"
                .to_owned(),
        }),
        false => read::<Self>(text),
    }
    });

    fn of(value: &Value) -> Option<Self> {
        parsed(value)
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Text(format!("{self}{SECRET_NOT_KEPT}")))
    }
}
