//! What a variant asks, made once and shared by all its runs.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use dnslab_traffic::{QueryFileError, QueryList, SyntheticZone, ZoneError};
use dnslab_wire::QueryOptions;
use domain::base::Name;

use crate::{Queries, Variant, ZoneSettings};

/// Why there is nothing to ask.
#[derive(Debug, thiserror::Error)]
pub enum QueriesError {
    /// The query file cannot be opened.
    #[error("cannot read the query file {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The query file is no query file: which lines, and why.
    #[error(transparent)]
    Malformed(#[from] QueryFileError),
    /// The zone cannot be.
    #[error("zone `{name}`: {reason}")]
    Zone {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
}

/// The zone that a started server serves.
pub(super) fn zone(settings: &ZoneSettings) -> Result<SyntheticZone, QueriesError> {
    let wrong = |reason: String| QueriesError::Zone { name: settings.name.clone(), reason };
    let name = Name::from_str(&settings.name)
        .map_err(|error: domain::base::name::FromStrError| wrong(error.to_string()))?;
    let ttl = Duration::from_secs(settings.ttl_s.into());
    SyntheticZone::new(name, settings.records, ttl)
        .map_err(|error: ZoneError| wrong(error.to_string()))
}

/// Query lists by what they were made from. A list of a million queries takes a second to make, and
/// variants mostly share one.
#[derive(Debug, Default)]
pub(super) struct QueryLists {
    made: Vec<(Queries, ZoneSettings, QueryOptions, Arc<QueryList>)>,
}

impl QueryLists {
    /// The list of a variant.
    pub(super) fn of(&mut self, variant: &Variant) -> Result<Arc<QueryList>, QueriesError> {
        let (queries, zone, options) =
            (&variant.load.queries, &variant.server.zone, variant.load.options);
        let known = self.made.iter().find(|(made_of, made_zone, made_options, _)| {
            (made_of, made_zone, *made_options) == (queries, zone, options)
        });
        if let Some((_, _, _, list)) = known {
            return Ok(Arc::clone(list));
        }
        let list = Arc::new(make(queries, zone, &options)?);
        self.made.push((queries.clone(), zone.clone(), options, Arc::clone(&list)));
        Ok(list)
    }
}

fn make(
    queries: &Queries,
    settings: &ZoneSettings,
    options: &QueryOptions,
) -> Result<QueryList, QueriesError> {
    let Queries::File(path) = queries else {
        return Ok(QueryList::from_zone(&zone(settings)?, options));
    };
    let file = File::open(path)
        .map_err(|source| QueriesError::Unreadable { path: path.clone(), source })?;
    Ok(QueryList::from_text(BufReader::new(file), &path.to_string_lossy(), options)?)
}
