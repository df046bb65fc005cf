//! The clients of a capture, as a load plays them.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dnslab_capture::{CaptureError, CaptureOptions, CaptureReader, ServerAddresses};
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

/// Where there is more, so much is put in order at most: the threads of Unbound, or several servers, send their dnstap up
/// to a second later than each other, and what stands after a gap in a TCP stream waits for 5 seconds. All queries of
/// that time are in memory.
const MAX_DISORDER: Duration = Duration::from_secs(6);

/// A load of a whole capture is so much longer than it.
const ROUNDING: Duration = Duration::from_millis(10);

/// Octets that are read at once.
const BUFFER: usize = 1 << 20;

/// The clients of a capture.
#[derive(Debug)]
pub(super) struct CapturedClients {
    path: PathBuf,
    options: CaptureOptions,
    /// The file as it was counted, and how reading ended then.
    counted: (FileIdentity, Option<String>),
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
    /// How much later than a query that was sent after it a query stands, at most.
    disorder: Duration,
    first: Vec<Query>,
    identity: FileIdentity,
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
    pub fn take(
        path: &Path,
        options: &CaptureOptions,
        within: Duration,
    ) -> Result<Self, QueriesError> {
        let mut seen = SeenQueries::open(path, options)?;
        let sample: Vec<SeenQuery> = seen.by_ref().take(SAMPLE).collect();
        if sample.is_empty() {
            return Err(match seen.end {
                Some(source) => QueriesError::Capture { path: path.to_owned(), source },
                None => no_query(path, options, seen.left_out()),
            });
        }
        let identity = seen.identity;
        let begin_ns = beginning(&sample);
        let end_of_all =
            begin_ns.saturating_add(u64::try_from(within.as_nanos()).unwrap_or(u64::MAX));
        let (mut end_ns, mut queries, mut out_of_time, mut beyond) = (begin_ns, 0, 0, 0);
        let mut disorder_ns = 0;
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
            disorder_ns = disorder_ns.max(end_ns - query.at_ns);
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
            disorder: Duration::from_nanos(disorder_ns),
            first,
            identity,
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
    pub fn find(path: &Path, options: &CaptureOptions) -> Result<Self, QueriesError> {
        let mut seen = SeenQueries::open(path, options)?;
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
                (0, None) => no_query(path, options, left_out.clone()),
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
        let mut plan = ReplayPlan {
            factor: load.factor.0,
            speed: load.speed.0,
            length: load.warm_up.saturating_add(load.duration),
            disorder: DISORDER,
            seed,
        };
        let wanted = plan.chunk().saturating_mul(plan.chunks());
        let options = capture_options(load);
        let census = Census::take(path, &options, wanted)?;
        plan.disorder = census.disorder.clamp(DISORDER, MAX_DISORDER);
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
        let description = described(path, (&plan, &options), &census);
        let list = QueryList::from_queries(census.first, description.clone());
        let clients = Self {
            path: path.to_owned(),
            options,
            counted: (census.identity, census.cut.clone()),
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

fn no_query(path: &Path, options: &CaptureOptions, left_out: String) -> QueriesError {
    QueriesError::NoQuery { path: path.to_owned(), looked_for: options.to_string(), left_out }
}

/// Which queries of its capture a load plays.
#[must_use]
pub fn capture_options(load: &Load) -> CaptureOptions {
    let servers = load.capture_server.clone();
    let mut ports = load.capture_ports.0.clone();
    // Of a draft, the ports that servers are named with are not among them yet.
    ports.extend(servers.iter().flat_map(ServerAddresses::ports));
    ports.sort_unstable();
    ports.dedup();
    CaptureOptions {
        ports,
        servers,
        dnstap_kinds: load.dnstap_messages.clone(),
        dnstap_source: load.dnstap_source,
        // The clients ask again by themselves, or not at all.
        skips_repeats: true,
    }
}

fn described(
    path: &Path,
    (plan, options): (&ReplayPlan, &CaptureOptions),
    census: &Census,
) -> String {
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
    let usual =
        CaptureOptions { skips_repeats: options.skips_repeats, ..CaptureOptions::default() };
    if *options != usual {
        text.push_str(&format!("; only those {options}"));
    }
    if !census.left_out.is_empty() {
        text.push_str(&format!("; left out: {}", census.left_out));
    }
    if let Some(cut) = &census.cut {
        text.push_str(&format!("; {cut}"));
    }
    text
}

impl CapturedClients {
    /// Opens the file that was counted.
    fn open_again(&self) -> io::Result<SeenAgain> {
        let (counted, cut) = &self.counted;
        let file = CaptureFile::open_again(&self.path, *counted)?;
        let seen = SeenQueries::of(file, &self.options).map_err(io::Error::other)?;
        Ok(SeenAgain { seen, path: self.path.clone(), cut: cut.clone() })
    }
}

impl ClientTraffic for CapturedClients {
    fn begin(&self, workers: u32, cpus: &[usize]) -> io::Result<Vec<Box<dyn Feed>>> {
        let open = || self.open_again();
        let chunks: io::Result<Vec<SeenAgain>> =
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

/// Which file it is, and whether it was written since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileIdentity {
    /// Device and inode.
    file: (u64, u64),
    octets: u64,
    /// When it was written last, seconds and nanoseconds since 1970.
    written: (i64, i64),
}

impl FileIdentity {
    fn of(file: &File) -> io::Result<Self> {
        let facts = file.metadata()?;
        Ok(Self {
            file: (facts.dev(), facts.ino()),
            octets: facts.len(),
            written: (facts.mtime(), facts.mtime_nsec()),
        })
    }
}

/// A capture is not the one any more that the load was planned for.
#[derive(Debug, thiserror::Error)]
#[error(
    "the capture {} has changed since its queries were counted: {}; play a copy that nobody writes", path.display(),
    difference(then, now)
)]
struct ChangedFile {
    path: PathBuf,
    then: FileIdentity,
    now: FileIdentity,
}

fn difference(then: &FileIdentity, now: &FileIdentity) -> String {
    if then.file != now.file {
        return "another file has taken its place".to_owned();
    }
    match then.octets == now.octets {
        true => "somebody has written into it".to_owned(),
        false => format!(
            "it had {} octets, and now has {}",
            number::count(then.octets),
            number::count(now.octets)
        ),
    }
}

/// A file that is read. One that was counted before must stay as it was: a change is found each time it is read from.
struct CaptureFile {
    file: File,
    path: PathBuf,
    identity: FileIdentity,
    must_stay: bool,
}

impl CaptureFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let identity = FileIdentity::of(&file)?;
        Ok(Self { file, path: path.to_owned(), identity, must_stay: false })
    }

    /// Opens the file that was counted.
    fn open_again(path: &Path, counted: FileIdentity) -> io::Result<Self> {
        let file = Self { identity: counted, must_stay: true, ..Self::open(path)? };
        file.check()?;
        Ok(file)
    }

    fn check(&self) -> io::Result<()> {
        let (path, then, now) = (self.path.clone(), self.identity, FileIdentity::of(&self.file)?);
        if now == then { Ok(()) } else { Err(io::Error::other(ChangedFile { path, then, now })) }
    }
}

impl Read for CaptureFile {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(to)?;
        if self.must_stay {
            self.check()?;
        }
        Ok(count)
    }
}

/// The queries of a capture that was counted. It must end where it ended then.
struct SeenAgain {
    seen: SeenQueries,
    path: PathBuf,
    cut: Option<String>,
}

impl Iterator for SeenAgain {
    type Item = Result<SeenQuery, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(query) = self.seen.next() {
            return Some(Ok(query));
        }
        let error = self.seen.end.as_ref()?;
        if self.cut.as_ref() == Some(&error.to_string()) {
            return None;
        }
        let reason = match error {
            CaptureError::Read { source, .. } if source.get_ref().is_some() => source.to_string(),
            error => format!("{}: {error}", self.path.display()),
        };
        self.seen.end = None;
        Some(Err(reason))
    }
}

/// The queries of a capture that can be sent again, from its first.
struct SeenQueries {
    reader: CaptureReader<BufReader<CaptureFile>>,
    identity: FileIdentity,
    /// Why each query that cannot be sent again was left out, with how many.
    unfit: Vec<(NotAQuery, u64)>,
    /// Why there is no more, if that is not the end of the file.
    end: Option<CaptureError>,
}

impl SeenQueries {
    fn open(path: &Path, options: &CaptureOptions) -> Result<Self, QueriesError> {
        let file = CaptureFile::open(path).map_err(QueriesError::unreadable("capture", path))?;
        Self::of(file, options)
    }

    fn of(file: CaptureFile, options: &CaptureOptions) -> Result<Self, QueriesError> {
        let (path, identity) = (file.path.clone(), file.identity);
        let file = BufReader::with_capacity(BUFFER, file);
        let reader = CaptureReader::new(file, options.clone())
            .map_err(|source| QueriesError::Capture { path, source })?;
        Ok(Self { reader, identity, unfit: Vec::new(), end: None })
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::fs;
    use std::io::Write as _;

    use dnslab_capture::{CaptureWriter, Captured};
    use dnslab_load::Fed;
    use dnslab_wire::Transport;
    use tempfile::TempDir;

    use super::*;

    /// More than a thread reads ahead of a worker that takes nothing.
    const QUERIES: u64 = 100_000;

    fn capture(folder: &TempDir, name: &str, queries: u64) -> PathBuf {
        let path = folder.path().join(name);
        let mut writer = CaptureWriter::pcap(File::create(&path).unwrap()).unwrap();
        let message = b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x01\0\x01";
        for number in 0..queries {
            let captured = Captured {
                at_ns: 1_700_000_000_000_000_000 + number * 10_000,
                client: ([10, 0, 0, (number % 250) as u8], 40_000).into(),
                server: ([192, 0, 2, 53], 53).into(),
                transport: Transport::Udp,
                message,
            };
            writer.write(&captured).unwrap();
        }
        writer.finish().unwrap();
        path
    }

    fn clients(path: &Path) -> CapturedClients {
        let length = Duration::from_micros(QUERIES * 10);
        let load = Load { duration: length, warm_up: Duration::ZERO, ..Load::default() };
        CapturedClients::open(path, &load, 1).unwrap().0
    }

    /// How many queries the feed gives, and how it ends.
    fn take(feed: &mut Box<dyn Feed>) -> (usize, Fed) {
        let mut ready = VecDeque::new();
        loop {
            match feed.fill(&mut ready) {
                Fed::Some | Fed::Nothing => std::thread::yield_now(),
                end => return (ready.len(), end),
            }
        }
    }

    #[track_caller]
    fn check_failure(end: Fed, path: &Path, expected: &str) {
        let Fed::Failed { reason } = end else { panic!("{end:?}") };
        let named = format!("the capture {} has changed", path.display());
        assert!(reason.contains(&named) && reason.contains(expected), "{reason}");
    }

    #[test]
    fn a_file_that_stays_is_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let clients = clients(&capture(&folder, "capture", QUERIES));
        let mut feed = clients.begin(1, &[]).unwrap().remove(0);
        assert_eq!(take(&mut feed), (QUERIES as usize, Fed::End));
    }

    #[test]
    fn what_servers_send_a_second_later_is_put_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("capture");
        let mut writer = CaptureWriter::dnstap(File::create(&path).unwrap()).unwrap();
        // One of two threads hands over a second of its queries at a time.
        for second in 0..3_u64 {
            for thread in 0..2 {
                for number in 0..100 {
                    let captured = Captured {
                        at_ns: 1_700_000_000_000_000_000
                            + second * 1_000_000_000
                            + number * 10_000_000
                            + thread,
                        client: ([10, 0, 0, thread as u8], 40_000).into(),
                        server: ([192, 0, 2, 53], 53).into(),
                        transport: Transport::Udp,
                        message: b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x01\0\x01",
                    };
                    writer.write(&captured).unwrap();
                }
            }
        }
        writer.finish().unwrap();
        let load =
            Load { duration: Duration::from_secs(3), warm_up: Duration::ZERO, ..Load::default() };
        let clients = CapturedClients::open(&path, &load, 1).unwrap().0;
        let mut feed = clients.begin(1, &[]).unwrap().remove(0);
        let mut ready = VecDeque::new();
        while feed.fill(&mut ready) != Fed::End {
            std::thread::yield_now();
        }
        assert_eq!(ready.len(), 600);
        assert!(ready.iter().is_sorted_by_key(|query| query.due_ns));
    }

    #[test]
    fn a_capture_that_was_cut_ends_where_it_ended_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = capture(&folder, "capture", QUERIES);
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(fs::metadata(&path).unwrap().len() - 3).unwrap();
        let mut feed = clients(&path).begin(1, &[]).unwrap().remove(0);
        assert_eq!(take(&mut feed), (QUERIES as usize - 1, Fed::End));
    }

    #[test]
    fn a_file_that_changes_while_it_is_played_is_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let path = capture(&folder, "capture", QUERIES);
        let length = fs::metadata(&path).unwrap().len();
        // The first query is there, and the reader waits until somebody takes it.
        let mut feed = clients(&path).begin(1, &[]).unwrap().remove(0);
        File::options().write(true).open(&path).unwrap().set_len(length - 1_000_000).unwrap();
        let (queries, end) = take(&mut feed);
        assert!(queries > 0 && (queries as u64) < QUERIES, "{queries}");
        check_failure(end, &path, "octets, and now has");
        let path = capture(&folder, "capture", QUERIES);
        let mut feed = clients(&path).begin(1, &[]).unwrap().remove(0);
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"more").unwrap();
        check_failure(take(&mut feed).1, &path, "octets, and now has");
    }

    #[test]
    fn another_file_in_its_place_is_found_before_the_load() {
        let folder = tempfile::tempdir().unwrap();
        let path = capture(&folder, "capture", QUERIES);
        let counted = clients(&path);
        let other = capture(&folder, "other", QUERIES);
        fs::rename(&other, &path).unwrap();
        let error = counted.begin(1, &[]).err().unwrap().to_string();
        assert!(error.contains("another file has taken its place"), "{error}");
        fs::remove_file(&path).unwrap();
        assert_eq!(counted.begin(1, &[]).err().unwrap().kind(), io::ErrorKind::NotFound);
    }
}
