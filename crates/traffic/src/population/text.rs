//! The text form of a population, TOML.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::time::Duration;

use dnslab_wire::Transport;
use dnslab_wire::rtype::is_transfer;
use dnslab_wire::units::duration;
use domain::base::iana::Rtype;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{
    Activity, ActivityDistribution, Bursts, LookupKind, Lookups, MAX_TYPES, PopularNames,
    Population, Stubs, Zipf,
};
use crate::query_file::rtype;

/// The version of the form.
const FORMAT: i64 = 1;

/// The most entries of a list: kinds of lookups, sizes, busiest clients.
const MAX_ENTRIES: usize = 64;

/// The longest text of a population, octets: many times what the lists need.
const MAX_TEXT: usize = 1 << 20;

/// A text is no population.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PopulationError {
    /// Not a text of this form: TOML, with all keys and no others.
    #[error("line {line}: {reason}")]
    Form {
        /// From 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// A value that is not possible.
    #[error("line {line}: {unfit}")]
    Value {
        /// From 1.
        line: usize,
        /// Which and why.
        unfit: Unfit,
    },
    /// A later version.
    #[error(
        "line {line}: format {format} is not known: this version of dnslab reads format {FORMAT}"
    )]
    Format {
        /// From 1.
        line: usize,
        /// The format.
        format: String,
    },
    /// Too long to be one.
    #[error("a text of {octets} octets is no population: it has at most {MAX_TEXT}")]
    TooLong {
        /// Its length.
        octets: usize,
    },
}

/// A value of a population that is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` is {value}: it must be {needed}")]
pub struct Unfit {
    /// The path of the key in the text form; entries of lists have a number, from 0.
    pub key: String,
    /// The value.
    pub value: String,
    /// What it must be.
    pub needed: Cow<'static, str>,
}

impl Unfit {
    fn new(
        key: impl Into<String>,
        value: impl fmt::Display,
        needed: impl Into<Cow<'static, str>>,
    ) -> Self {
        let value: String =
            value.to_string().chars().take(64).flat_map(char::escape_debug).collect();
        Self { key: key.into(), value, needed: needed.into() }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(rename = "format")]
    _format: i64,
    clients: u32,
    rate: f64,
    activity: WrittenActivity,
    bursts: WrittenBursts,
    lookups: WrittenLookups,
    names: WrittenNames,
    stubs: WrittenStubs,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenActivity {
    distribution: String,
    spread: Option<f64>,
    shape: Option<f64>,
    #[serde(default)]
    busiest: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenBursts {
    lookups: WrittenCount,
    gap: WrittenGap,
    silence: WrittenSilence,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCount {
    median: f64,
    spread: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenGap {
    median: String,
    spread: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSilence {
    least: String,
    shape: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLookups {
    gap: String,
    kinds: Vec<WrittenKind>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenKind {
    types: Vec<String>,
    weight: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenNames {
    popular: WrittenPopular,
    missing: WrittenMissing,
    random: WrittenRandom,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPopular {
    count: u32,
    exponent: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenMissing {
    share: f64,
    count: u32,
    exponent: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRandom {
    share: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenStubs {
    recursion_desired: f64,
    edns: f64,
    dnssec_ok: f64,
    payload_sizes: Vec<WrittenSize>,
    transports: Vec<WrittenTransport>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSize {
    octets: u16,
    weight: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTransport {
    name: String,
    weight: f64,
}

impl FromStr for Population {
    type Err = PopulationError;

    /// Reads the text form. A key that is not known, or missing, is an error with its line.
    fn from_str(text: &str) -> Result<Self, PopulationError> {
        if text.len() > MAX_TEXT {
            return Err(PopulationError::TooLong { octets: text.len() });
        }
        let form = |error: toml::de::Error| PopulationError::Form {
            line: line(text, error.span().map_or(0, |span| span.start)),
            reason: error.message().lines().collect::<Vec<_>>().join(", "),
        };
        let table = DeTable::parse(text).map_err(form)?;
        if let Some(format) = find(table.get_ref(), "format") {
            let known = matches!(format.get_ref(), DeValue::Integer(number)
                if i64::from_str_radix(number.as_str(), number.radix()) == Ok(FORMAT));
            if !known {
                let line = line(text, format.span().start);
                let format = text.get(format.span()).unwrap_or_default();
                let format = format.chars().take(64).flat_map(char::escape_debug).collect();
                return Err(PopulationError::Format { line, format });
            }
        }
        let written: Written = toml::from_str(text).map_err(form)?;
        let population = Self::of_written(written).and_then(|population| {
            population.check()?;
            Ok(population)
        });
        population.map_err(|unfit| PopulationError::Value {
            line: line_of(text, table.get_ref(), &unfit.key),
            unfit,
        })
    }
}

/// From 1.
fn line(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|octet| **octet == b'\n').count() + 1
}

fn find<'a, 'i>(table: &'a DeTable<'i>, key: &str) -> Option<&'a Spanned<DeValue<'i>>> {
    table.iter().find(|(known, _)| known.get_ref() == key).map(|(_, value)| value)
}

/// The line of the value at this path, or of the innermost table on the way that is there.
fn line_of(text: &str, table: &DeTable<'_>, path: &str) -> usize {
    let mut parts = path.split('.');
    let Some(mut place) = parts.next().and_then(|key| find(table, key)) else { return 1 };
    for part in parts {
        let inner = match place.get_ref() {
            DeValue::Table(table) => find(table, part),
            DeValue::Array(list) => part.parse().ok().and_then(|at: usize| list.get(at)),
            _ => None,
        };
        let Some(inner) = inner else { break };
        place = inner;
    }
    line(text, place.span().start)
}

impl Population {
    fn of_written(written: Written) -> Result<Self, Unfit> {
        let Written { clients, rate, activity, bursts, lookups, names, stubs, .. } = written;
        let kinds = lookups.kinds.iter().enumerate().map(|(at, kind)| {
            let types = kind.types.iter().enumerate().map(|(place, word)| {
                let key = || format!("lookups.kinds.{at}.types.{place}");
                let needed = "a query type: a mnemonic such as A or AAAA, or TYPE65280";
                let rtype = rtype(word).filter(|rtype| !is_transfer(rtype.to_int()));
                rtype.ok_or_else(|| Unfit::new(key(), format!("`{word}`"), needed))
            });
            Ok(LookupKind { types: types.collect::<Result<_, _>>()?, weight: kind.weight })
        });
        let transports = stubs.transports.iter().enumerate().map(|(at, transport)| {
            let name = transport.name.parse().map_err(|_| {
                let needed = format!("one of {}", Transport::NAMES.join(", "));
                Unfit::new(
                    format!("stubs.transports.{at}.name"),
                    format!("`{}`", transport.name),
                    needed,
                )
            })?;
            Ok((name, transport.weight))
        });
        Ok(Self {
            clients,
            rate_qps: rate,
            activity: Activity {
                distribution: activity.distribution()?,
                busiest: activity.busiest,
            },
            bursts: Bursts {
                lookups_median: bursts.lookups.median,
                lookups_spread: bursts.lookups.spread,
                gap_median: read_duration("bursts.gap.median", &bursts.gap.median)?,
                gap_spread: bursts.gap.spread,
                silence: read_duration("bursts.silence.least", &bursts.silence.least)?,
                silence_shape: bursts.silence.shape,
            },
            lookups: Lookups {
                gap: read_duration("lookups.gap", &lookups.gap)?,
                kinds: kinds.collect::<Result<_, _>>()?,
            },
            names: PopularNames {
                popular: Zipf { count: names.popular.count, exponent: names.popular.exponent },
                missing_share: names.missing.share,
                missing: Zipf { count: names.missing.count, exponent: names.missing.exponent },
                random_share: names.random.share,
            },
            stubs: Stubs {
                recursion_desired: stubs.recursion_desired,
                edns: stubs.edns,
                dnssec_ok: stubs.dnssec_ok,
                payload_sizes: stubs
                    .payload_sizes
                    .iter()
                    .map(|size| (size.octets, size.weight))
                    .collect(),
                transports: transports.collect::<Result<_, _>>()?,
            },
        })
    }

    /// Says whether such a population is possible.
    ///
    /// # Errors
    /// The first value that is not.
    pub fn check(&self) -> Result<(), Unfit> {
        let Self { clients, rate_qps, activity, bursts, lookups, names, stubs } = self;
        if *clients == 0 {
            return Err(Unfit::new("clients", clients, "1 or more"));
        }
        within("rate", *rate_qps, f64::MIN_POSITIVE, 1e9, "above 0 and at most 1,000,000,000")?;
        match activity.distribution {
            ActivityDistribution::LogNormal { spread } => {
                within("activity.spread", spread, 0.0, 4.0, "0 to 4")?;
            }
            ActivityDistribution::Pareto { shape } => {
                within("activity.shape", shape, 0.5, 10.0, "0.5 to 10")?;
            }
        }
        let busiest = activity.busiest.len();
        if busiest > MAX_ENTRIES || busiest >= *clients as usize {
            let needed = format!("of at most {MAX_ENTRIES} shares, fewer than there are clients");
            return Err(Unfit::new("activity.busiest", format!("a list of {busiest}"), needed));
        }
        let mut sum = 0.0;
        for (at, share) in activity.busiest.iter().enumerate() {
            sum += share;
            let key = format!("activity.busiest.{at}");
            within(&key, *share, f64::MIN_POSITIVE, 1.0, "above 0, and with those before below 1")?;
            // The others need a part.
            within(&key, sum, 0.0, 0.999, "at most 0.999 together with those before")?;
        }
        within("bursts.lookups.median", bursts.lookups_median, 0.1, 500.0, "0.1 to 500")?;
        within("bursts.lookups.spread", bursts.lookups_spread, 0.0, 3.0, "0 to 3")?;
        within("bursts.gap.spread", bursts.gap_spread, 0.0, 4.0, "0 to 4")?;
        let (least, most) = (Duration::from_millis(10), Duration::from_secs(60));
        within_time("bursts.silence.least", bursts.silence, least, most, "10ms to 60s")?;
        let (least, most) = (Duration::from_nanos(1), bursts.silence / 2);
        let needed = "above 0 and at most half of `bursts.silence.least`";
        within_time("bursts.gap.median", bursts.gap_median, least, most, needed)?;
        within("bursts.silence.shape", bursts.silence_shape, 0.2, 2.0, "0.2 to 2")?;
        let most = Duration::from_millis(50);
        within_time("lookups.gap", lookups.gap, Duration::ZERO, most, "at most 50ms")?;
        check_list("lookups.kinds", lookups.kinds.iter().map(|kind| kind.weight))?;
        for (at, kind) in lookups.kinds.iter().enumerate() {
            let types = &kind.types;
            let is_twice = |place: usize| types[..place].contains(&types[place]);
            if types.is_empty() || types.len() > MAX_TYPES || (0..types.len()).any(is_twice) {
                let words: Vec<String> =
                    types.iter().take(MAX_TYPES + 1).map(Rtype::to_string).collect();
                let needed = format!("1 to {MAX_TYPES} different types");
                let value = format!("[{}]", words.join(", "));
                return Err(Unfit::new(format!("lookups.kinds.{at}.types"), value, needed));
            }
        }
        for (key, zipf) in [("names.popular", &names.popular), ("names.missing", &names.missing)] {
            if zipf.count == 0 {
                return Err(Unfit::new(format!("{key}.count"), 0, "1 or more"));
            }
            within(&format!("{key}.exponent"), zipf.exponent, 0.0, 3.0, "0 to 3")?;
        }
        share("names.missing.share", names.missing_share)?;
        share("names.random.share", names.random_share)?;
        if names.missing_share + names.random_share > 1.0 {
            let needed = "at most what `names.missing.share` leaves";
            return Err(Unfit::new("names.random.share", names.random_share, needed));
        }
        share("stubs.recursion_desired", stubs.recursion_desired)?;
        share("stubs.edns", stubs.edns)?;
        share("stubs.dnssec_ok", stubs.dnssec_ok)?;
        check_list("stubs.payload_sizes", stubs.payload_sizes.iter().map(|(_, weight)| *weight))?;
        check_list("stubs.transports", stubs.transports.iter().map(|(_, weight)| *weight))?;
        for (at, (transport, _)) in stubs.transports.iter().enumerate() {
            if stubs.transports[..at].iter().any(|(known, _)| known == transport) {
                let key = format!("stubs.transports.{at}.name");
                return Err(Unfit::new(key, format!("`{transport}` again"), "there once"));
            }
        }
        Ok(())
    }

    /// The text form, which [`Population::from_str`] reads back as the same population.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let Self { clients, rate_qps, activity, bursts, lookups, names, stubs } = self;
        let mut text = String::from(
            "# A population of DNS clients for dnslab. docs/POPULATIONS.md explains the keys.\n",
        );
        let mut put = |arguments: fmt::Arguments<'_>| {
            text.write_fmt(arguments).expect("a text can grow");
            text.push('\n');
        };
        put(format_args!("format = {FORMAT}"));
        put(format_args!("clients = {clients}"));
        put(format_args!("rate = {rate_qps:?}"));
        put(format_args!("\n[activity]"));
        match activity.distribution {
            ActivityDistribution::LogNormal { spread } => {
                put(format_args!("distribution = \"{LOG_NORMAL}\"\nspread = {spread:?}"));
            }
            ActivityDistribution::Pareto { shape } => {
                put(format_args!("distribution = \"{PARETO}\"\nshape = {shape:?}"));
            }
        }
        if !activity.busiest.is_empty() {
            put(format_args!("busiest = {:?}", activity.busiest));
        }
        put(format_args!("\n[bursts]"));
        let (median, spread) = (bursts.lookups_median, bursts.lookups_spread);
        put(format_args!("lookups = {{ median = {median:?}, spread = {spread:?} }}"));
        let (median, spread) = (duration::write(bursts.gap_median), bursts.gap_spread);
        put(format_args!("gap = {{ median = \"{median}\", spread = {spread:?} }}"));
        let (least, shape) = (duration::write(bursts.silence), bursts.silence_shape);
        put(format_args!("silence = {{ least = \"{least}\", shape = {shape:?} }}"));
        put(format_args!("\n[lookups]"));
        put(format_args!("gap = \"{}\"\nkinds = [", duration::write(lookups.gap)));
        for LookupKind { types, weight } in &lookups.kinds {
            let types: Vec<String> = types.iter().map(|rtype| format!("\"{rtype}\"")).collect();
            put(format_args!("    {{ types = [{}], weight = {weight:?} }},", types.join(", ")));
        }
        put(format_args!("]\n\n[names]"));
        let Zipf { count, exponent } = names.popular;
        put(format_args!("popular = {{ count = {count}, exponent = {exponent:?} }}"));
        let (share, Zipf { count, exponent }) = (names.missing_share, names.missing);
        put(format_args!(
            "missing = {{ share = {share:?}, count = {count}, exponent = {exponent:?} }}"
        ));
        put(format_args!("random = {{ share = {:?} }}", names.random_share));
        put(format_args!("\n[stubs]"));
        put(format_args!("recursion_desired = {:?}", stubs.recursion_desired));
        put(format_args!("edns = {:?}\ndnssec_ok = {:?}", stubs.edns, stubs.dnssec_ok));
        put(format_args!("payload_sizes = ["));
        for (octets, weight) in &stubs.payload_sizes {
            put(format_args!("    {{ octets = {octets}, weight = {weight:?} }},"));
        }
        put(format_args!("]\ntransports = ["));
        for (transport, weight) in &stubs.transports {
            put(format_args!("    {{ name = \"{transport}\", weight = {weight:?} }},"));
        }
        put(format_args!("]"));
        text
    }
}

/// What stands above the lines of the text form that begin so, for people who edit it.
const COMMENTS: [(&str, &str); 19] = [
    ("clients = ", "How many clients there are; `load.clients` of an experiment takes its place."),
    ("rate = ", "Queries per second of all clients together; `load.rate` takes its place."),
    ("[activity]", "How the queries are spread over the clients."),
    (
        "distribution = ",
        "\"log-normal\" with a spread from 0 (all alike) to 4, or \"pareto\" with a shape from 0.5 (few make \
         most of the queries) to 10.",
    ),
    ("busiest = ", "Shares of all queries that single clients make, such as forwarders."),
    ("[bursts]", "A client is silent, asks for several names in a burst, and is silent again."),
    ("lookups = ", "Lookups in a burst: the median, and the spread of the logarithm."),
    ("gap = { ", "The time from one lookup of a burst to the next."),
    (
        "silence = ",
        "The shortest time between two bursts. With a shape of 1 longer ones are random, below 1 in groups.",
    ),
    ("[lookups]", "Which types a client asks for at once, for one name."),
    ("gap = \"", "The mean time from one query of a lookup to the next."),
    (
        "[names]",
        "How often which names are asked for (Zipf's law: the higher the exponent, the more often the first ones).",
    ),
    ("popular = ", "Names that exist. A load with fewer names asks for those that it has."),
    (
        "missing = ",
        "The share of lookups for names that do not exist and are asked for again and again.",
    ),
    ("random = ", "The share of lookups for names that are asked for once and never again."),
    ("[stubs]", "Shares of the clients whose stub resolver does so."),
    ("dnssec_ok = ", "Of those that send EDNS."),
    ("payload_sizes = ", "Sizes of UDP answers that they take, octets, with weights."),
    ("transports = ", "They hold where an experiment has neither `load.transport` nor `load.mix`."),
];

impl Population {
    /// The text form with a comment above most of its lines.
    #[must_use]
    pub fn to_commented_toml(&self) -> String {
        let mut text = String::new();
        for line in self.to_toml().lines() {
            let comment = COMMENTS.iter().find(|(begin, _)| line.starts_with(begin));
            if let Some((_, comment)) = comment {
                text.push_str(&format!("# {comment}\n"));
            }
            text.push_str(line);
            text.push('\n');
        }
        text
    }
}

const LOG_NORMAL: &str = "log-normal";
const PARETO: &str = "pareto";

impl WrittenActivity {
    fn distribution(&self) -> Result<ActivityDistribution, Unfit> {
        let absent =
            |key, word| Unfit::new(key, "absent", format!("there if the distribution is `{word}`"));
        let extra = |key, value: f64, word| {
            Unfit::new(key, value, format!("absent if the distribution is `{word}`"))
        };
        match (self.distribution.as_str(), self.spread, self.shape) {
            (LOG_NORMAL, Some(spread), None) => Ok(ActivityDistribution::LogNormal { spread }),
            (PARETO, None, Some(shape)) => Ok(ActivityDistribution::Pareto { shape }),
            (LOG_NORMAL, None, _) => Err(absent("activity.spread", LOG_NORMAL)),
            (LOG_NORMAL, _, Some(shape)) => Err(extra("activity.shape", shape, LOG_NORMAL)),
            (PARETO, _, None) => Err(absent("activity.shape", PARETO)),
            (PARETO, Some(spread), _) => Err(extra("activity.spread", spread, PARETO)),
            (word, ..) => {
                let needed = format!("one of {LOG_NORMAL}, {PARETO}");
                Err(Unfit::new("activity.distribution", format!("`{word}`"), needed))
            }
        }
    }
}

fn read_duration(key: &str, text: &str) -> Result<Duration, Unfit> {
    let needed = "a time with one of the units ns, us, ms, s, m, h";
    duration::read(text).map_err(|_| Unfit::new(key, format!("`{text}`"), needed))
}

fn within(key: &str, value: f64, least: f64, most: f64, needed: &'static str) -> Result<(), Unfit> {
    if (least..=most).contains(&value) { Ok(()) } else { Err(Unfit::new(key, value, needed)) }
}

fn within_time(
    key: &str,
    value: Duration,
    least: Duration,
    most: Duration,
    needed: &'static str,
) -> Result<(), Unfit> {
    let fits = (least..=most).contains(&value);
    if fits { Ok(()) } else { Err(Unfit::new(key, duration::write(value), needed)) }
}

fn share(key: &str, value: f64) -> Result<(), Unfit> {
    within(key, value, 0.0, 1.0, "0 to 1")
}

/// Checks the weights of a list, and their number.
fn check_list(key: &str, weights: impl ExactSizeIterator<Item = f64>) -> Result<(), Unfit> {
    let count = weights.len();
    if count == 0 || count > MAX_ENTRIES {
        let needed = format!("of 1 to {MAX_ENTRIES} entries");
        return Err(Unfit::new(key, format!("a list of {count}"), needed));
    }
    for (at, weight) in weights.enumerate() {
        within(&format!("{key}.{at}.weight"), weight, 1e-12, 1e12, "above 0")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TYPICAL: &str = "\
# A population of DNS clients for dnslab. docs/POPULATIONS.md explains the keys.
format = 1
clients = 10000
rate = 1000.0

[activity]
distribution = \"log-normal\"
spread = 1.5

[bursts]
lookups = { median = 3.0, spread = 1.2 }
gap = { median = \"60ms\", spread = 1.5 }
silence = { least = \"2s\", shape = 0.6 }

[lookups]
gap = \"1ms\"
kinds = [
    { types = [\"A\", \"AAAA\"], weight = 40.0 },
    { types = [\"A\"], weight = 30.0 },
    { types = [\"A\", \"AAAA\", \"HTTPS\"], weight = 20.0 },
    { types = [\"A\", \"HTTPS\"], weight = 4.0 },
    { types = [\"PTR\"], weight = 3.0 },
    { types = [\"TXT\"], weight = 1.0 },
    { types = [\"SRV\"], weight = 1.0 },
    { types = [\"MX\"], weight = 1.0 },
]

[names]
popular = { count = 1000000, exponent = 0.91 }
missing = { share = 0.06, count = 5000, exponent = 1.0 }
random = { share = 0.02 }

[stubs]
recursion_desired = 1.0
edns = 0.3
dnssec_ok = 0.1
payload_sizes = [
    { octets = 1232, weight = 60.0 },
    { octets = 4096, weight = 25.0 },
    { octets = 512, weight = 15.0 },
]
transports = [
    { name = \"udp\", weight = 1.0 },
]
";

    #[test]
    fn the_form() {
        assert_eq!(Population::typical().to_toml(), TYPICAL);
        let mut population = Population::typical();
        population.activity.busiest = vec![0.2];
        let commented = population.to_commented_toml();
        assert_eq!(commented.parse(), Ok(population));
        for (_, comment) in COMMENTS {
            assert_eq!(commented.matches(&format!("# {comment}\n")).count(), 1, "{comment}");
        }
        assert_eq!(TYPICAL.parse(), Ok(Population::typical()));
    }

    fn check_error(from: &str, to: &str, expected: &str) {
        let text = TYPICAL.replacen(from, to, 1);
        assert_ne!(text, TYPICAL, "{from}");
        let error = text.parse::<Population>().unwrap_err().to_string();
        assert!(error.starts_with(expected), "{from} -> {to}: {error}");
    }

    #[test]
    fn errors_have_their_line_and_reason() {
        check_error(
            "format = 1",
            "format = 2",
            "line 2: format 2 is not known: this version of dnslab reads format 1",
        );
        check_error("format = 1\n", "", "line 1: missing field `format`");
        check_error(
            "spread = 1.5",
            "spred = 1.5",
            "line 8: unknown field `spred`, expected one of",
        );
        check_error("rate = 1000.0", "rate = \"fast\"", "line 4: invalid type: string \"fast\"");
        check_error(
            "rate = 1000.0",
            "rate = 0",
            "line 4: `rate` is 0: it must be above 0 and at most",
        );
        check_error("rate = 1000.0", "rate = nan", "line 4: `rate` is NaN");
        check_error(
            "clients = 10000",
            "clients = 0",
            "line 3: `clients` is 0: it must be 1 or more",
        );
        check_error("clients = 10000", "clients = -1", "line 3: invalid value: integer `-1`");
        check_error(
            "log-normal",
            "normal",
            "line 7: `activity.distribution` is `normal`: it must be one of",
        );
        check_error(
            "log-normal",
            "pareto",
            "line 6: `activity.shape` is absent: it must be there if",
        );
        check_error(
            "spread = 1.5\n",
            "spread = 1.5\nshape = 1.0\n",
            "line 9: `activity.shape` is 1: it must be absent",
        );
        check_error(
            "spread = 1.5\n",
            "spread = 1.5\nbusiest = [0.6, 0.5]\n",
            "line 9: `activity.busiest.1` is 1.1",
        );
        check_error(
            "\"60ms\"",
            "\"60\"",
            "line 12: `bursts.gap.median` is `60`: it must be a time with one",
        );
        check_error(
            "\"60ms\"",
            "\"1.5s\"",
            "line 12: `bursts.gap.median` is 1500ms: it must be above 0 and at most half",
        );
        check_error(
            "\"2s\"",
            "\"2h\"",
            "line 13: `bursts.silence.least` is 120m: it must be 10ms to 60s",
        );
        check_error(
            "\"TXT\"",
            "\"TEXT\"",
            "line 23: `lookups.kinds.5.types.0` is `TEXT`: it must be a query type",
        );
        check_error(
            "\"A\", \"HTTPS\"",
            "\"A\", \"A\"",
            "line 21: `lookups.kinds.3.types` is [A, A]: it must be 1 to 6 different",
        );
        check_error(
            "weight = 20.0",
            "weight = 0",
            "line 20: `lookups.kinds.2.weight` is 0: it must be above 0",
        );
        check_error(
            "share = 0.02",
            "share = 0.95",
            "line 31: `names.random.share` is 0.95: it must be at most what",
        );
        check_error("count = 5000", "count = 0", "line 30: `names.missing.count` is 0");
        check_error(
            "\"udp\"",
            "\"quic\"",
            "line 43: `stubs.transports.0.name` is `quic`: it must be one of udp, tcp",
        );
        check_error("edns = 0.3", "edns = 3", "line 35: `stubs.edns` is 3: it must be 0 to 1");
        check_error("[names]", "[names]\n[names]", "line 29: ");
        check_error("[stubs]", "[stubs", "line 33: ");
        let long = "#".repeat(MAX_TEXT + 1).parse::<Population>().unwrap_err();
        assert_eq!(long, PopulationError::TooLong { octets: MAX_TEXT + 1 });
    }

    #[test]
    fn whole_numbers_are_numbers_too() {
        let text = TYPICAL.replace(".0\n", "\n").replace(".0 }", " }");
        assert!(text.contains("rate = 1000\n") && text.contains("weight = 40 }"), "{text}");
        assert_eq!(text.parse(), Ok(Population::typical()));
    }

    fn weighted(values: &'static [u16]) -> impl Strategy<Value = Vec<(u16, f64)>> {
        prop::sample::subsequence(values, 1..=values.len())
            .prop_flat_map(|values| {
                let count = values.len();
                (Just(values), prop::collection::vec(1e-3..1e6f64, count))
            })
            .prop_map(|(values, weights)| values.into_iter().zip(weights).collect::<Vec<_>>())
    }

    fn populations() -> impl Strategy<Value = Population> {
        let share = 0.0..=1.0f64;
        let distribution = prop_oneof![
            (0.0..=4.0f64).prop_map(|spread| ActivityDistribution::LogNormal { spread }),
            (0.5..=10.0f64).prop_map(|shape| ActivityDistribution::Pareto { shape }),
        ];
        let activity = (distribution, prop::collection::vec(1e-9..0.01f64, 0..60));
        let bursts =
            (0.1..=500.0f64, 0.0..=3.0f64, 1..1_000_000_000u64, 0.0..=4.0f64, 0.2..=2.0f64);
        let kinds =
            prop::collection::vec((weighted(&[1, 28, 65, 12, 16, 65_280]), 1e-9..1e9f64), 1..=64);
        let names = (1..=u32::MAX, 0.0..=3.0f64, 0.0..=0.5f64, 1..=u32::MAX, 0.0..=0.5f64);
        let stubs = (
            share.clone(),
            share.clone(),
            share,
            weighted(&[0, 512, 1232, 4096]),
            weighted(&[0, 1, 2, 3, 4, 5]),
        );
        (100..=u32::MAX, 1e-6..1e9f64, activity, bursts, (0..=50_000_000u64, kinds), names, stubs)
            .prop_map(
                |(
                    clients,
                    rate_qps,
                    (distribution, busiest),
                    bursts,
                    (gap, kinds),
                    names,
                    stubs,
                )| Population {
                    clients,
                    rate_qps,
                    activity: Activity { distribution, busiest },
                    bursts: Bursts {
                        lookups_median: bursts.0,
                        lookups_spread: bursts.1,
                        gap_median: Duration::from_nanos(bursts.2),
                        gap_spread: bursts.3,
                        silence: Duration::from_secs(2),
                        silence_shape: bursts.4,
                    },
                    lookups: Lookups {
                        gap: Duration::from_nanos(gap),
                        kinds: kinds
                            .into_iter()
                            .map(|(types, weight)| LookupKind {
                                types: types
                                    .into_iter()
                                    .map(|(number, _)| Rtype::from_int(number))
                                    .collect(),
                                weight,
                            })
                            .collect(),
                    },
                    names: PopularNames {
                        popular: Zipf { count: names.0, exponent: names.1 },
                        missing_share: names.2,
                        missing: Zipf { count: names.3, exponent: names.1 },
                        random_share: names.4,
                    },
                    stubs: Stubs {
                        recursion_desired: stubs.0,
                        edns: stubs.1,
                        dnssec_ok: stubs.2,
                        payload_sizes: stubs.3,
                        transports: stubs
                            .4
                            .into_iter()
                            .map(|(at, weight)| (Transport::ALL[usize::from(at)], weight))
                            .collect(),
                    },
                },
            )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(population in populations()) {
            prop_assert_eq!(population.check(), Ok(()));
            let text = population.to_toml();
            prop_assert_eq!(text.parse(), Ok(population), "{}", text);
        }

        #[test]
        fn no_text_panics(at in 0..TYPICAL.len(), with in "\\PC{0,3}") {
            let mut text = TYPICAL.to_owned();
            text.replace_range(at..=at, &with);
            if let Ok(population) = text.parse::<Population>() {
                prop_assert_eq!(population.to_toml().parse(), Ok(population));
            }
        }
    }
}
