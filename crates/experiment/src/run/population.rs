//! The clients of a population, as a load plays them.

use std::collections::VecDeque;
use std::io;
use std::iter::Peekable;
use std::path::Path;
use std::str::FromStr as _;
use std::sync::Arc;

use dnslab_internet::Internet;
use dnslab_lab::read_given_text;
use dnslab_load::{ClientTraffic, Fed, Feed, PlayedClients};
use dnslab_settings::{PopulationSource, Queries, Variant};
use dnslab_traffic::population::{
    ListNames, NameChoice, Names, NamesError, Population, PopulationLoad, ZoneNames,
};
use dnslab_traffic::{ClientQuery, QueryList};
use dnslab_wire::Query;
use dnslab_wire::units::number;
use domain::base::Name;
use domain::base::iana::Rtype;

use super::error::{PopulationFileError, QueriesError};
use super::zone::zone;

/// Octets of a file that are read at most: more than a population has.
const MAX_FILE: u64 = 2 << 20;

/// Reads a population file.
pub(crate) fn read_population(path: &Path) -> Result<Population, PopulationFileError> {
    let unreadable = |source| PopulationFileError::Unreadable { path: path.to_owned(), source };
    let text = read_given_text(path, MAX_FILE).map_err(unreadable)?;
    Population::from_str(&text)
        .map_err(|source| PopulationFileError::Malformed { path: path.to_owned(), source })
}

/// Where the names come from that a population asks for.
#[derive(Debug)]
pub(super) enum NameSource {
    /// The zone of the variant.
    Zone,
    /// The queries of a list, the most popular first.
    List(QueryList),
    /// A private Internet.
    Internet(Arc<Internet>),
}

/// The names that a population asks for.
#[derive(Clone, Debug)]
enum PopulationNames {
    Zone(ZoneNames),
    List(Arc<ListNames>),
    Internet(Arc<Internet>),
}

impl Names for PopulationNames {
    fn name(&self, choice: NameChoice) -> Name<Vec<u8>> {
        self.name_for(choice, Rtype::A)
    }

    fn name_for(&self, choice: NameChoice, rtype: Rtype) -> Name<Vec<u8>> {
        let rtype = rtype.to_int();
        let name = match (self, choice) {
            (Self::Zone(names), _) => return names.name(choice),
            (Self::List(names), _) => return names.name(choice),
            (Self::Internet(internet), NameChoice::Popular(rank)) => {
                internet.existing_name(rank.into(), rtype)
            }
            (Self::Internet(internet), NameChoice::Missing(number)) => {
                internet.missing_name(number.into(), rtype)
            }
            (Self::Internet(internet), NameChoice::Random(number)) => internet.random_name(number),
        };
        Name::from_octets(name.octets().to_vec()).expect("names of an Internet are names")
    }
}

/// The clients of a population.
#[derive(Debug)]
pub(super) struct PopulationClients {
    population: Population,
    load: PopulationLoad,
    names: PopulationNames,
    description: String,
}

impl PopulationClients {
    /// The clients of a variant's population.
    ///
    /// Also returns a query for the most popular name, as the first.
    ///
    /// # Errors
    /// When the population cannot be read, or the zone leaves no room for names below it.
    pub(super) fn open(
        source: &PopulationSource,
        variant: &Variant,
        names: &NameSource,
        seed: u64,
    ) -> Result<(Self, Query), QueriesError> {
        let mut population = match source {
            PopulationSource::Typical => Population::typical(),
            PopulationSource::File(path) => read_population(path)?,
        };
        let load = &variant.load;
        let wrong = |error: NamesError| QueriesError::Zone {
            name: variant.zone.name.clone(),
            reason: error.to_string(),
        };
        let (names, known, source_of_names) = match names {
            NameSource::Zone => {
                let names = ZoneNames::new(&zone(&variant.zone)?).map_err(wrong)?;
                let source = format!("the zone {}", variant.zone.name);
                (PopulationNames::Zone(names), variant.zone.records, source)
            }
            NameSource::List(list) => {
                let zone = zone(&variant.zone)?;
                let names = ListNames::of_queries(list, zone.origin().clone()).map_err(wrong)?;
                let known = u32::try_from(names.count()).unwrap_or(u32::MAX);
                (PopulationNames::List(Arc::new(names)), known, source_of(variant))
            }
            NameSource::Internet(internet) => {
                let known = match variant.asked() {
                    Queries::Popular(count) => count,
                    _ => u32::try_from(internet.name_count()).unwrap_or(u32::MAX),
                };
                let names = PopulationNames::Internet(Arc::clone(internet));
                (names, known, "the private Internet".to_owned())
            }
        };
        // The clients ask for names that there are. Fewer names are each asked more often.
        let popular = &mut population.names.popular.count;
        *popular = (*popular).min(known);
        let popular = *popular;
        let rate_qps = match load.mode.rate() {
            Some(rate) => rate.mean(load.warm_up + load.duration),
            None => population.rate_of(load.clients),
        };
        let description = format!(
            "{} of {}, {} on average, for {} of {source_of_names}",
            number::counted(load.clients.into(), "client", "clients"),
            described(source),
            number::queries_per_second(rate_qps),
            number::counted(popular.into(), "name", "names"),
        );
        let first = names.name(NameChoice::Popular(0));
        let first = Query::new(&first, Rtype::A, &load.query_options())
            .expect("a question and an OPT record fit in a message");
        let load = PopulationLoad {
            clients: load.clients,
            rate_qps,
            length: load.warm_up.saturating_add(load.duration),
            seed,
            worker: 0,
            of: 1,
        };
        Ok((Self { population, load, names, description }, first))
    }
}

/// Where the names of a population without a zone are from.
fn source_of(variant: &Variant) -> String {
    match variant.asked() {
        Queries::File(path) | Queries::ZoneFile { path, .. } => path.display().to_string(),
        _ => "many domains".to_owned(),
    }
}

/// A population, in a sentence.
pub(crate) fn described(source: &PopulationSource) -> String {
    match source {
        PopulationSource::Typical => "a typical population".to_owned(),
        PopulationSource::File(path) => format!("the population {}", path.display()),
    }
}

impl ClientTraffic for PopulationClients {
    fn begin(&self, workers: u32, _cpus: &[usize]) -> io::Result<Vec<Box<dyn Feed>>> {
        let feeds = (0..workers).map(|worker| {
            let load = PopulationLoad { worker, of: workers, ..self.load.clone() };
            let mut queries = self.population.queries(&load, self.names.clone()).peekable();
            // Bursts that began before the load are found here, and not when the first query is due.
            queries.peek();
            Box::new(MadeQueries { queries }) as Box<dyn Feed>
        });
        Ok(feeds.collect())
    }

    fn known(&self) -> PlayedClients {
        PlayedClients { description: self.description.clone(), rate_qps: self.load.rate_qps }
    }
}

/// Queries that are made together. Each takes half a microsecond (`cargo run --release -p dnslab-traffic --example
/// population`), so the worker turns to its sockets again in time.
const AT_ONCE: usize = 16;

/// Each worker makes the queries of its own clients.
///
/// A thread that reads ahead, as for a capture, would keep no core free. By default there is a worker on each CPU
/// of the load, so the thread would run on one of theirs. It would add the way from thread to thread and 32,768
/// queries that wait for each worker, and it would be one thread for all workers, however many there are. A capture
/// needs it because reading a file may wait; making a query does not.
struct MadeQueries<I: Iterator<Item = ClientQuery>> {
    queries: Peekable<I>,
}

impl<I: Iterator<Item = ClientQuery> + Send> Feed for MadeQueries<I> {
    fn fill(&mut self, ready: &mut VecDeque<ClientQuery>) -> Fed {
        let before = ready.len();
        ready.extend(self.queries.by_ref().take(AT_ONCE));
        if ready.len() > before { Fed::Some } else { Fed::End }
    }
}
