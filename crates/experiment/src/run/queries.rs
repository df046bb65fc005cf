//! What a variant asks, made once and shared by its runs, and what its queries need from files.

use std::io::BufReader;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dnslab_capture::{CaptureOptions, Decompressed};
use dnslab_lab::{OwnConfiguration, PolicyZone, open_given, read_given_text};
use dnslab_load::{ClientTraffic, PlayedClients};
use dnslab_settings::{
    Load, PopulationSource, Queries, ServerKind, Subnets, Variant, Zone, ZoneSigning,
};
use dnslab_traffic::{ClientSubnets, QueryList, popular_names};
use dnslab_wire::{QueryOptions, TsigKey};

use super::captured::{CapturedClients, capture_options};
use super::error::QueriesError;
use super::internet::PrivateInternet;
use super::population::{NameSource, PopulationClients};
use super::zone::{OwnZone, policy_zone, read_zone_file, zone};

/// Octets of a file with client subnets: those of 2^20, the longest that there are.
const MAX_SUBNETS: u64 = 64 << 20;

/// Octets of a file with a TSIG key.
const MAX_KEY: u64 = 64 << 10;

/// Query lists by their source. A list of a million queries takes a second to make, and variants mostly share
/// one.
#[derive(Debug, Default)]
pub(super) struct QueryLists {
    made: Vec<(Source, Asked)>,
    /// Zones of files and signed ones, by what they are made of.
    zones: Vec<(Zone, Arc<OwnZone>)>,
    /// Policy zones, by their files.
    policies: Vec<(PathBuf, Arc<PolicyZone>)>,
    /// Configurations of the user's own that were read, by their servers and files, and whether they ask others.
    configurations: Vec<(ServerKind, PathBuf, bool)>,
}

/// What a load asks.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// Its queries. Of clients with queries of their own, the first.
    pub(super) list: Arc<QueryList>,
    /// Clients with queries of their own.
    pub(super) clients: Option<Arc<dyn ClientTraffic>>,
    /// The zone that a started server gets, if it is of a file or signed.
    pub(super) zone: Option<Arc<OwnZone>>,
    /// What a started server denies.
    pub(super) policy: Option<Arc<PolicyZone>>,
}

impl Asked {
    /// What is known of [`Self::clients`] before the load.
    pub(super) fn played(&self) -> Option<PlayedClients> {
        self.clients.as_ref().map(|clients| clients.known())
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Source {
    queries: Queries,
    /// The names of a zone file are asked for with the delegations. A forwarder may fail to resolve them.
    referrals: bool,
    zone: Zone,
    options: QueryOptions,
    /// The description of the private Internet whose names are asked for; `None` without one.
    internet: Option<String>,
    /// How much of a capture or a population is played, and how; 0 without one.
    played: (Duration, [f64; 2]),
    /// Which queries of a capture.
    captured: CaptureOptions,
    population: Option<PopulationSource>,
    /// `None` if nothing is drawn: neither names nor the order of several types.
    seed: Option<u64>,
}

impl QueryLists {
    /// The list of a variant in the repetition with this seed. Lists of other seeds are dropped.
    pub(super) fn of(&mut self, variant: &Variant, seed: u64) -> Result<Asked, QueriesError> {
        let queries = variant.asked();
        let internet = match &queries {
            Queries::Popular(_) | Queries::Internet => PrivateInternet::of(&variant.upstream)?,
            Queries::Zone(_)
            | Queries::ZoneFile { .. }
            | Queries::File(_)
            | Queries::Names { .. }
            | Queries::Capture(_) => None,
        };
        let is_drawn = match &queries {
            Queries::Popular(_) => internet.is_none(),
            Queries::Zone(types) | Queries::ZoneFile { types: Some(types), .. } => {
                types.weights().len() > 1
            }
            Queries::ZoneFile { types: None, .. } => false,
            Queries::File(_) | Queries::Names { .. } | Queries::Internet => false,
            Queries::Capture(_) => variant.load.factor.0.fract() > 0.0,
        };
        let load = &variant.load;
        let length = load.warm_up + load.duration;
        let population = load.mode.population();
        let played = match (&queries, population) {
            (Queries::Capture(_), _) => (length, [load.factor.0, load.speed.0]),
            (_, Some(_)) => {
                let rate_qps = load.mode.rate().map_or(0.0, |rate| rate.mean(length));
                (length, [load.clients.into(), rate_qps])
            }
            (_, None) => Default::default(),
        };
        let is_drawn = is_drawn || population.is_some();
        let source = Source {
            seed: is_drawn.then_some(seed),
            queries,
            referrals: !variant.forwards(),
            zone: variant.zone.clone(),
            options: variant.load.query_options(),
            internet: internet.as_ref().map(|internet| internet.description.clone()),
            played,
            captured: capture_options(load),
            population: population.cloned(),
        };
        // Variants that ask the same may have other servers.
        let (zone, policy) = (self.zone(variant)?, self.policy(variant)?);
        self.check_configuration(variant)?;
        self.made.retain(|(made_from, _)| made_from.seed.is_none_or(|its| its == seed));
        if let Some((_, list)) = self.made.iter().find(|(made_from, _)| *made_from == source) {
            return Ok(Asked { zone, policy, ..list.clone() });
        }
        let asked = match (&source.queries, &source.population) {
            (Queries::Capture(path), _) => {
                let (clients, list) = CapturedClients::open(path, load, seed)?;
                Asked { list: Arc::new(list), clients: Some(Arc::new(clients)), zone, policy }
            }
            (_, None) => {
                let list = make(&source, internet.as_ref(), seed)?;
                Asked { list: Arc::new(list), clients: None, zone, policy }
            }
            (queries, Some(population)) => {
                // A zone and a private Internet have a name for each popularity, and need no list of them.
                let names = match (queries, internet) {
                    (Queries::Zone(_), _) => NameSource::Zone,
                    (_, Some(internet)) => NameSource::Internet(internet.internet),
                    (_, None) => NameSource::List(make(&source, None, seed)?),
                };
                let (clients, first) = PopulationClients::open(population, variant, &names, seed)?;
                let list = match names {
                    NameSource::List(list) => list,
                    NameSource::Zone | NameSource::Internet(_) => {
                        QueryList::from_queries(vec![first], clients.known().description)
                    }
                };
                Asked { list: Arc::new(list), clients: Some(Arc::new(clients)), zone, policy }
            }
        };
        self.made.push((source, asked.clone()));
        Ok(asked)
    }

    /// The zone that a started server of this variant gets, if it is of a file or signed. All variants with one zone have
    /// the same signatures.
    fn zone(&mut self, variant: &Variant) -> Result<Option<Arc<OwnZone>>, QueriesError> {
        let zone = &variant.zone;
        let is_own = zone.file.is_some() || zone.signed != ZoneSigning::No;
        if !is_own || !variant.serves_zone() {
            return Ok(None);
        }
        kept(&mut self.zones, zone.clone(), OwnZone::of).map(Some)
    }

    /// The policy zone of a variant, if it has one. A list of a million names takes a second to read.
    fn policy(&mut self, variant: &Variant) -> Result<Option<Arc<PolicyZone>>, QueriesError> {
        let Some(path) = &variant.server.policy_zone else { return Ok(None) };
        kept(&mut self.policies, path.clone(), |path| policy_zone(path)).map(Some)
    }

    /// Reads the configuration that the user wrote for a variant's server, if he did: a wrong one is found before the first
    /// run. Whoever starts the server reads it by itself.
    fn check_configuration(&mut self, variant: &Variant) -> Result<(), QueriesError> {
        // One on another host is read there.
        let own = variant.own_configuration().filter(|_| variant.server.host.is_none());
        let Some((kind, path)) = own else { return Ok(()) };
        let source = (kind, path.to_owned(), variant.resolves());
        if !self.configurations.contains(&source) {
            OwnConfiguration::read(kind, path, variant.resolves())?;
            self.configurations.push(source);
        }
        Ok(())
    }
}

/// What was made of this source before, or is made of it now.
fn kept<S: PartialEq, M>(
    all: &mut Vec<(S, Arc<M>)>,
    source: S,
    make: impl FnOnce(&S) -> Result<M, QueriesError>,
) -> Result<Arc<M>, QueriesError> {
    if let Some((_, known)) = all.iter().find(|(made_from, _)| *made_from == source) {
        return Ok(Arc::clone(known));
    }
    let made = Arc::new(make(&source)?);
    all.push((source, Arc::clone(&made)));
    Ok(made)
}

/// The queries of a source, in a list.
fn make(
    source: &Source,
    internet: Option<&PrivateInternet>,
    seed: u64,
) -> Result<QueryList, QueriesError> {
    let options = &source.options;
    let path = match (&source.queries, internet) {
        (Queries::Popular(count), Some(internet)) => return internet.popular(*count, options),
        (Queries::Popular(count), None) => {
            return Ok(QueryList::from_popular(&popular_names(*count, seed), options));
        }
        (Queries::Zone(types), _) => {
            return Ok(QueryList::from_zone(&zone(&source.zone)?, types, seed, options));
        }
        (Queries::ZoneFile { path, types }, _) => {
            let text = read_zone_file(path)?;
            let named = (source.zone.name.as_str(), &*path.to_string_lossy());
            let types = types.as_ref().map(|types| (types, seed));
            return QueryList::from_zone_file(&text, named, types, (source.referrals, options))
                .map_err(|source| QueriesError::ZoneFile { path: path.clone(), source });
        }
        (Queries::Names { names, types, search }, _) => {
            return Ok(QueryList::from_names(names, types, search.as_ref(), options));
        }
        (Queries::File(path) | Queries::Capture(path), _) => path,
        (Queries::Internet, _) => unreachable!("only populations ask for all names of an Internet"),
    };
    let file = open_given(path).and_then(Decompressed::new);
    let file = file.map_err(QueriesError::unreadable("query file", path))?;
    Ok(QueryList::from_text(BufReader::new(file), &path.to_string_lossy(), options)?)
}

/// The load of a variant, with what its files hold in place of their names.
pub(super) fn with_files(variant: &Variant) -> Result<Load, QueriesError> {
    let mut load = variant.load.clone();
    if let Some(Subnets::File(path)) = &variant.load.client_subnets {
        let read = read_given_text(path, MAX_SUBNETS);
        let text = read.map_err(QueriesError::unreadable("client subnets", path))?;
        let subnets = ClientSubnets::from_lines(&text)
            .map_err(|source| QueriesError::Subnets { path: path.clone(), source })?;
        load.client_subnets = Some(Subnets::Written(subnets));
    }
    if let Some(path) = &variant.load.tsig_file {
        let text =
            read_given_text(path, MAX_KEY).map_err(QueriesError::unreadable("TSIG key", path))?;
        let key = text.trim().parse::<TsigKey>();
        let key = key.map_err(|source| QueriesError::Tsig { path: path.clone(), source })?;
        load.tsig = Some(key);
    }
    Ok(load)
}
