//! The clients of a capture, as a load plays them.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dnslab_capture::{CaptureError, CaptureOptions, CaptureReader};
use dnslab_load::{ClientTraffic, Feed, read_ahead};
use dnslab_settings::Load;
use dnslab_traffic::population::{Profile, ProfileError, Profiler, ProfilerLimits};
use dnslab_traffic::{QueryList, ReplayPlan, SeenQuery};
use dnslab_wire::units::{duration, number};
use dnslab_wire::{NotAQuery, Query};

use super::queries::QueriesError;

/// A capture may have a query so much later than one that was sent after it. Network cards with several queues
/// and the threads of a server that writes dnstap hand over what they have in turn.
const DISORDER: Duration = Duration::from_millis(100);

/// A load of a whole capture is so much longer than it.
const ROUNDING: Duration = Duration::from_millis(10);

/// Octets that are read at once.
const BUFFER: usize = 1 << 20;

/// The clients of a capture.
#[derive(Debug)]
pub(super) struct CapturedClients {
    path: PathBuf,
    plan: ReplayPlan,
    begin_ns: u64,
    description: String,
    rate_qps: f64,
}

/// What a capture has, found by reading it once.
#[derive(Clone, Debug, PartialEq)]
pub struct Census {
    /// The instant of the first query, nanoseconds since 1970 in UTC.
    pub begin_ns: u64,
    /// From the first query to the last.
    pub length: Duration,
    /// Queries that can be sent again.
    pub queries: u64,
    /// Addresses that they came from.
    pub clients: u64,
    /// What was left out, as a sentence; empty if nothing was.
    pub left_out: String,
    /// Why reading ended before the end of the file.
    pub cut: Option<String>,
    /// There are later queries than were asked for.
    pub goes_on: bool,
    first: Vec<Query>,
}

/// Queries at the beginning of which most say when a capture begins, whatever the clocks of the others said. A
/// server is asked them before the load.
const SAMPLE: usize = 16;

/// The earliest instant near which most of these queries were sent. A query whose clock was wrong, or that has no
/// time, is not near it.
fn beginning(sample: &[SeenQuery]) -> u64 {
    const DAY_NS: u64 = 24 * 3_600 * 1_000_000_000;
    let mut times: Vec<u64> = sample.iter().map(|query| query.at_ns).collect();
    times.sort_unstable();
    let near = |begin: u64| times.iter().filter(|at| (begin..=begin + DAY_NS).contains(at)).count();
    let most = times.iter().copied().find(|begin| 2 * near(*begin) > times.len());
    most.or(times.first().copied()).unwrap_or(0)
}

impl Census {
    /// Reads a whole capture, or its queries within `within` of the first.
    ///
    /// # Errors
    /// When the file is no capture, or has no query.
    pub fn take(path: &Path, within: Duration) -> Result<Self, QueriesError> {
        let mut seen = SeenQueries::open(path)?;
        let sample: Vec<SeenQuery> = seen.by_ref().take(SAMPLE).collect();
        if sample.is_empty() {
            return Err(match seen.end {
                Some(source) => QueriesError::Capture { path: path.to_owned(), source },
                None => QueriesError::NoQuery { path: path.to_owned(), left_out: seen.left_out() },
            });
        }
        let begin_ns = beginning(&sample);
        let end_of_all =
            begin_ns.saturating_add(u64::try_from(within.as_nanos()).unwrap_or(u64::MAX));
        let (mut end_ns, mut queries, mut out_of_time, mut beyond) = (begin_ns, 0, 0, 0);
        let mut clients: HashSet<IpAddr> = HashSet::new();
        let first: Vec<Query> = sample.iter().map(|query| query.query.clone()).collect();
        for query in sample.into_iter().chain(seen.by_ref()) {
            if query.at_ns >= end_of_all {
                beyond += 1;
                if beyond == ReplayPlan::BEYOND {
                    break;
                }
                continue;
            }
            out_of_time += u64::from(std::mem::take(&mut beyond));
            if query.at_ns < begin_ns {
                out_of_time += 1;
                continue;
            }
            end_ns = end_ns.max(query.at_ns);
            queries += 1;
            clients.insert(query.client);
        }
        let mut left_out = seen.left_out();
        if out_of_time > 0 {
            let comma = if left_out.is_empty() { "" } else { ", " };
            left_out.push_str(&format!(
                "{comma}{} (before the beginning or after the end)",
                number::count(out_of_time)
            ));
        }
        Ok(Self {
            begin_ns,
            length: Duration::from_nanos(end_ns - begin_ns),
            queries,
            clients: clients.len() as u64,
            left_out,
            cut: seen.end.map(|error| error.to_string()),
            goes_on: beyond > 0,
            first,
        })
    }
}

/// The population that is found in a capture.
#[derive(Clone, Debug, PartialEq)]
pub struct CaptureProfile {
    /// The population, and what to know about it.
    pub profile: Profile,
    /// What was left out, as a sentence; empty if nothing was.
    pub left_out: String,
    /// Why reading ended before the end of the file.
    pub cut: Option<String>,
}

impl CaptureProfile {
    /// Reads a whole capture. Only queries are read, so it is not known which names do not exist.
    ///
    /// # Errors
    /// When the file is no capture, or has too few queries.
    pub fn find(path: &Path) -> Result<Self, QueriesError> {
        let mut seen = SeenQueries::open(path)?;
        let mut profiler = Profiler::new(ProfilerLimits::default());
        loop {
            match seen.reader.next() {
                Ok(Some(captured)) => profiler.observe(
                    captured.at_ns,
                    captured.client.ip(),
                    captured.message,
                    captured.transport,
                ),
                Ok(None) => break,
                Err(error) => {
                    seen.end = Some(error);
                    break;
                }
            }
        }
        let left_out = seen.left_out();
        let profile = profiler.finish().map_err(|source: ProfileError| {
            match (source.queries, seen.end.take()) {
                (0, Some(source)) => QueriesError::Capture { path: path.to_owned(), source },
                (0, None) => {
                    let left_out = left_out.clone();
                    QueriesError::NoQuery { path: path.to_owned(), left_out }
                }
                (_, _) => QueriesError::Profile { path: path.to_owned(), source },
            }
        })?;
        let cut = seen.end.map(|error| error.to_string());
        Ok(Self { profile, left_out, cut })
    }
}

impl CapturedClients {
    /// Reads as much of the capture as the load plays, to know its clients and its rate.
    ///
    /// # Errors
    /// When the file is no capture, or is too short for the load.
    pub(super) fn open(
        path: &Path,
        load: &Load,
        seed: u64,
    ) -> Result<(Self, QueryList), QueriesError> {
        let plan = ReplayPlan {
            factor: load.factor.0,
            speed: load.speed.0,
            length: load.warm_up.saturating_add(load.duration),
            disorder: DISORDER,
            seed,
        };
        let wanted = plan.chunk().saturating_mul(plan.chunks());
        let census = Census::take(path, wanted)?;
        // The last query may come a little before the end.
        let needed = wanted.saturating_sub(plan.chunk() / 10 + ROUNDING * plan.chunks());
        if census.length < needed {
            return Err(QueriesError::ShortCapture {
                path: path.to_owned(),
                has: rounded(census.length),
                chunks: plan.chunks(),
                chunk: rounded(plan.chunk()),
            });
        }
        let seconds = plan.length.as_secs_f64().max(f64::MIN_POSITIVE);
        let share = plan.factor / f64::from(plan.chunks());
        let description = described(path, &plan, &census);
        let list = QueryList::from_queries(census.first, description.clone());
        let clients = Self {
            path: path.to_owned(),
            plan,
            begin_ns: census.begin_ns,
            description,
            rate_qps: census.queries as f64 * share / seconds,
        };
        Ok((clients, list))
    }
}

fn rounded(length: Duration) -> String {
    duration::rounded(length.as_nanos() as f64)
}

fn described(path: &Path, plan: &ReplayPlan, census: &Census) -> String {
    let (queries, clients) = (number::count(census.queries), number::count(census.clients));
    let mut text = format!(
        "{queries} queries of {clients} clients in {} of the capture {}",
        rounded(census.length),
        path.display()
    );
    if plan.factor != 1.0 {
        text.push_str(&format!(
            ", its chunks of {} played {} times side by side",
            rounded(plan.chunk()),
            plan.factor
        ));
    }
    if plan.speed != 1.0 {
        text.push_str(&format!(", {} times as fast", plan.speed));
    }
    if !census.left_out.is_empty() {
        text.push_str(&format!("; left out: {}", census.left_out));
    }
    if let Some(cut) = &census.cut {
        text.push_str(&format!("; {cut}"));
    }
    text
}

impl ClientTraffic for CapturedClients {
    fn begin(&self, workers: u32, cpus: &[usize]) -> io::Result<Vec<Box<dyn Feed>>> {
        let open = || SeenQueries::open(&self.path).map_err(io::Error::other);
        let chunks: io::Result<Vec<SeenQueries>> =
            std::iter::repeat_with(open).take(self.plan.chunks() as usize).collect();
        let mut chunks = chunks?.into_iter();
        let queries =
            self.plan.play(self.begin_ns, move || chunks.next().expect("one for each chunk"));
        read_ahead(queries, workers, cpus)
    }

    fn description(&self) -> String {
        self.description.clone()
    }

    fn rate_qps(&self) -> f64 {
        self.rate_qps
    }
}

/// The queries of a capture that can be sent again, from its first.
struct SeenQueries {
    reader: CaptureReader<BufReader<File>>,
    /// Why each query that cannot be sent again was left out, with how many.
    unfit: Vec<(NotAQuery, u64)>,
    /// Why there is no more, if that is not the end of the file.
    end: Option<CaptureError>,
}

impl SeenQueries {
    fn open(path: &Path) -> Result<Self, QueriesError> {
        let file = File::open(path).map_err(QueriesError::unreadable("capture", path))?;
        let file = BufReader::with_capacity(BUFFER, file);
        let reader = CaptureReader::new(file, CaptureOptions::default())
            .map_err(|source| QueriesError::Capture { path: path.to_owned(), source })?;
        Ok(Self { reader, unfit: Vec::new(), end: None })
    }

    fn left_out(&self) -> String {
        let skipped = self.reader.counts().reasons();
        let skipped = skipped.map(|(reason, count)| (reason.to_string(), count));
        let unfit = self.unfit.iter().map(|(why, count)| (why.to_string(), *count));
        let parts = skipped.chain(unfit).filter(|(_, count)| *count > 0);
        let parts: Vec<String> =
            parts.map(|(reason, count)| format!("{} ({reason})", number::count(count))).collect();
        parts.join(", ")
    }
}

impl Iterator for SeenQueries {
    type Item = SeenQuery;

    fn next(&mut self) -> Option<SeenQuery> {
        if self.end.is_some() {
            return None;
        }
        loop {
            match self.reader.next() {
                Ok(Some(captured)) => match Query::from_message(captured.message) {
                    Ok(query) => {
                        let client = captured.client.ip();
                        return Some(SeenQuery { at_ns: captured.at_ns, client, query });
                    }
                    Err(why) => match self.unfit.iter_mut().find(|(known, _)| *known == why) {
                        Some((_, count)) => *count += 1,
                        None => self.unfit.push((why, 1)),
                    },
                },
                Ok(None) => return None,
                Err(error) => {
                    self.end = Some(error);
                    return None;
                }
            }
        }
    }
}
