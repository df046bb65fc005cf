//! The clients of a capture, as a load plays them.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dnslab_capture::{
    CaptureError, CaptureOptions, CaptureReader, Captured, Counts, Reason, ServerAddresses,
};
use dnslab_lab::open_given;
use dnslab_load::{ClientTraffic, Feed, PlayedClients, read_ahead};
use dnslab_settings::Load;
use dnslab_traffic::population::{Profile, ProfileError, Profiler, ProfilerLimits};
use dnslab_traffic::{CaptureClock, QueryList, ReplayPlan, SeenQuery};
use dnslab_wire::units::{duration, number};
use dnslab_wire::{NotAQuery, Query, Transport};

use super::error::QueriesError;

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
    /// What was found in other packets than usual.
    notes: Vec<String>,
    /// Why reading ended before the end of the file.
    pub cut: Option<String>,
    /// There are later queries than were asked for.
    pub goes_on: bool,
    /// How much later than a query that was sent after it a query stands, at most.
    disorder: Duration,
    first: Vec<Query>,
    identity: FileIdentity,
}

/// Queries that a server is asked before the load: the first of the capture.
const SAMPLE: usize = 16;

impl Census {
    /// What of the capture is not played, or not as it is there, in sentences.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let Self { left_out, notes, cut, .. } = self;
        let left_out = Some(left_out).filter(|text| !text.is_empty());
        let left_out = left_out.map(|text| format!("left out: {text}"));
        let cut = cut.as_ref().map(|cut| format!("the capture was not read to its end: {cut}"));
        left_out.into_iter().chain(notes.iter().cloned()).chain(cut).collect()
    }

    /// Reads a whole capture, or its queries within `within` of the first.
    ///
    /// # Errors
    /// When the file is no capture, or has no query.
    pub fn take(
        path: &Path,
        options: &CaptureOptions,
        within: Duration,
    ) -> Result<Self, QueriesError> {
        if std::fs::metadata(path).is_ok_and(|facts| !facts.is_file() && !facts.is_dir()) {
            return Err(QueriesError::Passing { path: path.to_owned() });
        }
        let mut seen = SeenQueries::open(path, options, seen_query)?;
        let Some(earliest) = seen.next() else {
            return Err(match seen.end {
                Some(source) => QueriesError::Capture { path: path.to_owned(), source },
                None => no_query(path, options, &seen),
            });
        };
        let begin_ns = seen.clock.begin_ns();
        let end_of_all =
            begin_ns.saturating_add(u64::try_from(within.as_nanos()).unwrap_or(u64::MAX));
        let (mut end_ns, mut queries, mut disorder_ns) = (begin_ns, 0, 0);
        let (mut goes_on, mut beyond) = (false, 0);
        let mut clients: HashSet<IpAddr> = HashSet::new();
        let mut first: Vec<Query> = Vec::new();
        for query in std::iter::once(earliest).chain(seen.by_ref()) {
            if query.at_ns >= end_of_all {
                goes_on = true;
                beyond += 1;
                if beyond == ReplayPlan::BEYOND {
                    break;
                }
                continue;
            }
            beyond = 0;
            end_ns = end_ns.max(query.at_ns);
            disorder_ns = disorder_ns.max(end_ns - query.at_ns);
            queries += 1;
            clients.insert(query.client);
            if first.len() < SAMPLE {
                first.push(query.query);
            }
        }
        Ok(Self {
            begin_ns,
            length: Duration::from_nanos(end_ns - begin_ns),
            queries,
            clients: clients.len() as u64,
            left_out: seen.left_out(),
            notes: seen.notes(),
            identity: seen.identity,
            cut: seen.end.map(|error| error.to_string()),
            goes_on,
            disorder: Duration::from_nanos(disorder_ns),
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
    /// What was found in other packets than usual, in sentences.
    pub notes: Vec<String>,
    /// Why reading ended before the end of the file.
    pub cut: Option<String>,
}

/// What a profile takes from a query.
struct ProfiledQuery {
    at_ns: u64,
    client: IpAddr,
    message: Vec<u8>,
    transport: Transport,
}

impl ProfiledQuery {
    fn take(captured: &Captured<'_>, _: Query) -> Self {
        let Captured { at_ns, client, message, transport, .. } = *captured;
        Self { at_ns, client: client.ip(), message: message.to_vec(), transport }
    }
}

impl CaptureProfile {
    /// Reads a whole capture. Only queries are read, so it is not known which names do not exist.
    ///
    /// # Errors
    /// When the file is no capture, or has too few queries.
    pub fn find(path: &Path, options: &CaptureOptions) -> Result<Self, QueriesError> {
        let mut seen = SeenQueries::open(path, options, ProfiledQuery::take)?;
        let mut profiler = Profiler::new(ProfilerLimits::default());
        for ProfiledQuery { at_ns, client, message, transport } in seen.by_ref() {
            profiler.observe(at_ns, client, &message, transport);
        }
        let profile = match profiler.finish() {
            Ok(profile) => profile,
            Err(ProfileError { queries: 0, .. }) => {
                return Err(match seen.end {
                    Some(source) => QueriesError::Capture { path: path.to_owned(), source },
                    None => no_query(path, options, &seen),
                });
            }
            Err(source) => {
                let (path, left_out) = (path.to_owned(), seen.left_out());
                let cut = seen.end.map(|error| error.to_string());
                return Err(QueriesError::Profile { path, source, left_out, cut });
            }
        };
        let (left_out, notes) = (seen.left_out(), seen.notes());
        let cut = seen.end.map(|error| error.to_string());
        Ok(Self { profile, left_out, notes, cut })
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
        plan.disorder = census.disorder.clamp(DISORDER, CaptureClock::<()>::DISORDER);
        // The last query may come a little before the end.
        let needed = wanted.saturating_sub(plan.chunk() / 10 + ROUNDING * plan.chunks());
        // Silence is a part of the capture.
        if census.length < needed && !census.goes_on {
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

fn no_query<T>(path: &Path, options: &CaptureOptions, seen: &SeenQueries<T>) -> QueriesError {
    let looked_for = match seen.reader.is_dnstap() {
        true => options.of_dnstap(),
        false => options.to_string(),
    };
    QueriesError::NoQuery {
        path: path.to_owned(),
        looked_for,
        left_out: seen.left_out(),
        remedy: remedy(seen.reader.counts(), options),
    }
}

/// What to change so that most of what was left out has queries.
fn remedy(counts: &Counts, options: &CaptureOptions) -> Option<String> {
    // Of equally frequent ones the first: messages about queries stand before those about their responses.
    let (reason, _) = counts.reasons().min_by_key(|(_, count)| Reverse(*count))?;
    match reason {
        Reason::DnstapKind => {
            let ((kind, source), _) = counts.unwanted_dnstap().min_by_key(|(_, count)| Reverse(*count))?;
            let mut words = Vec::new();
            if source != options.dnstap_source {
                words.push(format!("--dnstap-source {source}"));
            }
            if !options.dnstap_kinds.contains(&kind) {
                words.push(format!("--dnstap-messages {kind}"));
            }
            Some(format!("`{}` takes them", words.join(" ")))
        }
        Reason::UnknownLinkType => Some(
            "docs/REPLAY.md names the link types that are read; `tcpdump -i any` captures with one of them".to_owned(),
        ),
        Reason::OtherPort => Some("`--capture-ports` names other ports of servers".to_owned()),
        Reason::OtherServer => Some("`--capture-server` names other servers".to_owned()),
        Reason::SnapLength => Some("capture all octets of a packet (`tcpdump -s 0`)".to_owned()),
        _ => None,
    }
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
    let mut text = format!(
        "{} of {} in {} of the capture {}",
        number::counted(census.queries, "query", "queries"),
        number::counted(census.clients, "client", "clients"),
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
    for note in &census.notes {
        text.push_str(&format!("; {note}"));
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
        let seen = SeenQueries::of(file, &self.options, seen_query).map_err(io::Error::other)?;
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

    fn known(&self) -> PlayedClients {
        PlayedClients { description: self.description.clone(), rate_qps: self.rate_qps }
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
        let file = open_given(path)?;
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

/// Why a capture that was counted cannot be read again.
#[derive(Debug, thiserror::Error)]
enum ReadAgainError {
    /// It says itself which file is meant.
    #[error(transparent)]
    Changed(#[from] io::Error),
    #[error("{}: {error}", path.display())]
    Capture { path: PathBuf, error: CaptureError },
}

/// The queries of a capture that was counted. It must end where it ended then.
struct SeenAgain {
    seen: SeenQueries<SeenQuery>,
    path: PathBuf,
    cut: Option<String>,
}

impl Iterator for SeenAgain {
    type Item = Result<SeenQuery, ReadAgainError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(query) = self.seen.next() {
            return Some(Ok(query));
        }
        let error = self.seen.end.as_ref()?;
        if self.cut.as_ref() == Some(&error.to_string()) {
            return None;
        }
        let error = self.seen.end.take()?;
        Some(Err(match error {
            CaptureError::Read { source, .. } if source.get_ref().is_some() => source.into(),
            error => ReadAgainError::Capture { path: self.path.clone(), error },
        }))
    }
}

/// The queries of a capture that can be sent again and whose time is right, from its first: one rule for all who read
/// captures.
struct SeenQueries<T> {
    reader: CaptureReader<BufReader<CaptureFile>>,
    identity: FileIdentity,
    /// What is taken from each query.
    take: fn(&Captured<'_>, Query) -> T,
    clock: CaptureClock<T>,
    /// Why each query that cannot be sent again was left out, with how many.
    unfit: Vec<(NotAQuery, u64)>,
    /// Those that came otherwise than as a datagram of UDP.
    over_others: u64,
    /// Why there is no more, if that is not the end of the file.
    end: Option<CaptureError>,
}

fn seen_query(captured: &Captured<'_>, query: Query) -> SeenQuery {
    SeenQuery { at_ns: captured.at_ns, client: captured.client.ip(), query }
}

impl<T> SeenQueries<T> {
    fn open(
        path: &Path,
        options: &CaptureOptions,
        take: fn(&Captured<'_>, Query) -> T,
    ) -> Result<Self, QueriesError> {
        let file = CaptureFile::open(path).map_err(QueriesError::unreadable("capture", path))?;
        Self::of(file, options, take)
    }

    fn of(
        file: CaptureFile,
        options: &CaptureOptions,
        take: fn(&Captured<'_>, Query) -> T,
    ) -> Result<Self, QueriesError> {
        let (path, identity) = (file.path.clone(), file.identity);
        let file = BufReader::with_capacity(BUFFER, file);
        let reader = CaptureReader::new(file, options.clone())
            .map_err(|source| QueriesError::Capture { path, source })?;
        let clock = CaptureClock::new();
        Ok(Self { reader, identity, take, clock, unfit: Vec::new(), over_others: 0, end: None })
    }

    /// What was left out, as a sentence; empty if nothing was.
    fn left_out(&self) -> String {
        let skipped = self.reader.counts().left_out().into_iter();
        let unfit = self.unfit.iter().map(|(why, count)| (why.to_string(), *count));
        let out_of_time = ("out-of-time".to_owned(), self.clock.left_out());
        let parts = skipped.chain(unfit).chain([out_of_time]).filter(|(_, count)| *count > 0);
        let parts: Vec<String> =
            parts.map(|(reason, count)| format!("{} ({reason})", number::count(count))).collect();
        parts.join(", ")
    }

    /// What was found in other packets than usual, in sentences.
    fn notes(&self) -> Vec<String> {
        let counts = self.reader.counts();
        let mut notes: Vec<String> = counts
            .tunnels()
            .map(|(tunnel, count)| {
                format!("unpacked: {} of {tunnel}", number::counted(count, "packet", "packets"))
            })
            .collect();
        if self.over_others > 0 {
            notes.push(format!(
                "over other transports than UDP in the capture: {}; all travel as `load.transport` and `load.mix` say",
                number::counted(self.over_others, "query", "queries")
            ));
        }
        if counts.segmented > 0 {
            notes.push(format!(
                "taken apart: {} with {} (UDP_SEGMENT)",
                number::counted(counts.segmented, "datagram", "datagrams"),
                number::counted(counts.segmented + counts.segments, "query", "queries"),
            ));
        }
        notes
    }

    /// The next query that can be sent again; `None` at the end, or if reading ends before.
    fn read(&mut self) -> Option<(u64, T)> {
        if self.end.is_some() {
            return None;
        }
        loop {
            match self.reader.next() {
                Ok(Some(captured)) => match Query::from_message(captured.message) {
                    Ok(query) => {
                        self.over_others += u64::from(captured.transport != Transport::Udp);
                        return Some((captured.at_ns, (self.take)(&captured, query)));
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

impl<T> Iterator for SeenQueries<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        while let Some((at_ns, query)) = self.read() {
            if let Some((_, query)) = self.clock.push(at_ns, query) {
                return Some(query);
            }
        }
        self.clock.pop().map(|(_, query)| query)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::fs;
    use std::io::Write as _;

    use super::*;
    use dnslab_capture::{CaptureWriter, Captured};
    use dnslab_load::Fed;
    use dnslab_wire::Transport;
    use tempfile::TempDir;

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
