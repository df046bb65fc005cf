//! What a variant asks, made once and shared by its runs, and what its queries need from files.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::Arc;

use dnslab_settings::{Load, Queries, Subnets, Variant, Zone};
use dnslab_traffic::{
    ClientSubnets, ClientSubnetsError, QueryFileError, QueryList, SyntheticZone, ZoneError,
    popular_names,
};
use dnslab_wire::{QueryOptions, TsigKey, TsigKeyError};
use domain::base::Name;

use super::internet::{InternetError, PrivateInternet};

/// Why there is nothing to ask.
#[derive(Debug, thiserror::Error)]
pub enum QueriesError {
    /// A file cannot be read.
    #[error("cannot read the {what} {}: {source}", path.display())]
    Unreadable {
        /// `query file`, `client subnets` or `TSIG key`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The query file is no query file: which lines, and why.
    #[error(transparent)]
    Malformed(#[from] QueryFileError),
    /// The file of client subnets holds something else.
    #[error("{}: {source}", path.display())]
    Subnets {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ClientSubnetsError,
    },
    /// The file of the TSIG key holds something else.
    #[error("{}: {source}", path.display())]
    Tsig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: TsigKeyError,
    },
    /// There is no private Internet whose names could be asked for.
    #[error(transparent)]
    Internet(#[from] InternetError),
    /// The zone is impossible.
    #[error("zone `{name}`: {reason}")]
    Zone {
        /// Its name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl QueriesError {
    /// Makes the error of a file of this kind.
    pub(super) fn unreadable(
        what: &'static str,
        path: &Path,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Unreadable { what, path, source }
    }
}

/// The zone that a started server serves.
pub(super) fn zone(settings: &Zone) -> Result<SyntheticZone, QueriesError> {
    let wrong = |reason: String| QueriesError::Zone { name: settings.name.clone(), reason };
    let name = Name::from_str(&settings.name)
        .map_err(|error: domain::base::name::FromStrError| wrong(error.to_string()))?;
    SyntheticZone::new(name, settings.records, settings.ttl)
        .map_err(|error: ZoneError| wrong(error.to_string()))
}

/// Query lists by their source. A list of a million queries takes a second to make, and variants mostly share
/// one.
#[derive(Debug, Default)]
pub(super) struct QueryLists {
    made: Vec<(Source, Arc<QueryList>)>,
}

#[derive(Clone, Debug, PartialEq)]
struct Source {
    queries: Queries,
    zone: Zone,
    options: QueryOptions,
    /// The description of the private Internet whose names are asked for; `None` without one.
    internet: Option<String>,
    /// `None` if nothing is drawn: neither names nor the order of several types.
    seed: Option<u64>,
}

impl QueryLists {
    /// The list of a variant in the repetition with this seed. Lists of other seeds are dropped.
    pub(super) fn of(
        &mut self,
        variant: &Variant,
        seed: u64,
    ) -> Result<Arc<QueryList>, QueriesError> {
        let queries = variant.load.asked();
        let internet = match &queries {
            Queries::Popular(_) => PrivateInternet::of(&variant.upstream)?,
            Queries::Zone(_) | Queries::File(_) => None,
        };
        let is_drawn = match &queries {
            Queries::Popular(_) => internet.is_none(),
            Queries::Zone(types) => types.weights().len() > 1,
            Queries::File(_) => false,
        };
        let source = Source {
            seed: is_drawn.then_some(seed),
            queries,
            zone: variant.zone.clone(),
            options: variant.load.query_options(),
            internet: internet.as_ref().map(|it| it.description.clone()),
        };
        self.made.retain(|(made_from, _)| made_from.seed.is_none_or(|its| its == seed));
        if let Some((_, list)) = self.made.iter().find(|(made_from, _)| *made_from == source) {
            return Ok(Arc::clone(list));
        }
        let list = match (&source.queries, internet) {
            (Queries::Popular(count), Some(internet)) => {
                internet.popular(*count, &source.options)?
            }
            _ => make(&source.queries, &source.zone, &source.options, seed)?,
        };
        let list = Arc::new(list);
        self.made.push((source, Arc::clone(&list)));
        Ok(list)
    }
}

fn make(
    queries: &Queries,
    settings: &Zone,
    options: &QueryOptions,
    seed: u64,
) -> Result<QueryList, QueriesError> {
    let path = match queries {
        Queries::Popular(count) => {
            return Ok(QueryList::from_popular(&popular_names(*count, seed), options));
        }
        Queries::Zone(types) => {
            return Ok(QueryList::from_zone(&zone(settings)?, types, seed, options));
        }
        Queries::File(path) => path,
    };
    let file = File::open(path).map_err(QueriesError::unreadable("query file", path))?;
    Ok(QueryList::from_text(BufReader::new(file), &path.to_string_lossy(), options)?)
}

/// The load of a variant, with what its files hold in place of their names.
pub(super) fn with_files(variant: &Variant) -> Result<Load, QueriesError> {
    let mut load = variant.load.clone();
    if let Some(Subnets::File(path)) = &variant.load.client_subnets {
        let read = fs::read_to_string(path);
        let text = read.map_err(QueriesError::unreadable("client subnets", path))?;
        let subnets = ClientSubnets::from_lines(&text)
            .map_err(|source| QueriesError::Subnets { path: path.clone(), source })?;
        load.client_subnets = Some(Subnets::Written(subnets));
    }
    if let Some(path) = &variant.load.tsig_file {
        let text = fs::read_to_string(path).map_err(QueriesError::unreadable("TSIG key", path))?;
        let key = text.trim().parse::<TsigKey>();
        let key = key.map_err(|source| QueriesError::Tsig { path: path.clone(), source })?;
        load.tsig = Some(key);
    }
    Ok(load)
}
