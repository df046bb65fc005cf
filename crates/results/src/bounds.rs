//! How large results may be. They are read before anything is known of who wrote them.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::str::FromStr;

use dnslab_record::{
    AnswerComparison, ChainPart, CommonLoad, CounterSeries, CpuProfiles, DifferenceClass,
    LoadHostSeries, Measured, ResourceSeries, RunRecord, Session, Watched, visible,
};
use dnslab_settings::{
    HostPlaces, MAX_PAIRS, MAX_RUNS, MAX_SHARES, MAX_TIME_WINDOWS, MAX_VARIANTS,
};
use serde::Serialize;

use crate::error::ResultsError;

/// What a session file may be, and that of a search: those of [`MAX_RUNS`] with long names. Both list
/// runs; a step of a search has some thirty values.
pub(crate) const SESSION: Budget = Budget { file: 16 << 20, octets: 16 << 20, values: 500_000 };

/// What the records of a session may be, which are all held at once.
///
/// One grows by 5 kB for each second of load: ten samples, a second's interval, a reading of the server's own
/// counters. It is 15 kB where 32 CPUs are watched, and up to 5 kB more for each server of a chain. So a record
/// of 512 MiB is that of a load of a day, and all records together are of two days of load. A bound of tens of
/// megabytes would refuse a load of three hours.
///
/// Octets alone are no bound of memory: `0,` takes two in the file, and 33 in a list that is put aside until
/// the kind of an enum is known; `"a",` takes four in the file, and 56 in a list of texts. What dnslab wrote has
/// 30 octets or more for each value, and 17 if somebody removed the white space. Values are counted before the
/// first of them is read; so many take 1 to 3 GB.
pub(crate) const RECORDS: Budget = Budget { file: 512 << 20, octets: 1 << 30, values: 40_000_000 };

/// Octets of what the records of a session say in words: all but series and histograms. The page repeats it,
/// with up to six octets for one. A record has 5 kB of it and 1 kB for each server of a chain; this is 13 kB
/// for each of [`MAX_RUNS`].
pub(crate) const MAX_WORDS: usize = 64 << 20;

/// What the comparisons of answers may be, which are all held at once: each has a hundred examples of 10 kB at
/// most.
pub(crate) const COMPARISONS: Budget =
    Budget { file: 4 << 20, octets: 256 << 20, values: 4_000_000 };

/// What the profiles of a session may be: [`dnslab_record::MAX_PROFILE_STACKS`] stacks of 48 frames each, with
/// their names.
pub(crate) const CPU_PROFILES: Budget =
    Budget { file: 64 << 20, octets: 64 << 20, values: 4_000_000 };

/// Questions of a comparison with the answers in full.
const MAX_EXAMPLES: usize = 100;

/// Octets of a file that is given back as it is: larger than all reports of [`RECORDS`].
pub(crate) const MAX_WRITTEN: u64 = 1 << 30;

/// Octets of a configuration or log that is shown.
pub(crate) const MAX_SERVER_FILE: u64 = 64 * 1024;

/// Configurations and logs of one server that are shown.
pub(crate) const MAX_SERVER_FILES: usize = 32;

/// Octets of a variant's name, which is that of a folder.
const MAX_NAME: usize = 200;

/// Servers behind the one under test.
const MAX_IN_CHAIN: usize = 16;

/// Reasons to doubt a run, each of which is held against all others. There are some forty kinds.
const MAX_CAVEATS: usize = 1_000;

/// CPUs that are watched one by one: no more ever were. Each is a curve of each variant.
const MAX_CPUS: usize = 32;

/// Intervals of a load, which are made so long that there are 200 of them and the rest of one.
const MAX_INTERVALS: usize = 1_000;

/// A time of a load, nanoseconds (115 days). A load lasts up to a week; sums of such times do not overflow.
const MAX_NS: usize = 10_000_000_000_000_000;

/// What may still be read of files of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) file: u64,
    pub(crate) octets: u64,
    /// JSON values in all of them together.
    pub(crate) values: usize,
}

impl Budget {
    /// Octets that the next file may have.
    pub(crate) fn next(&self) -> u64 {
        self.file.min(self.octets)
    }

    /// Takes off a file that was read and has at most [`Budget::next`] octets.
    ///
    /// # Errors
    /// When it has too many values.
    pub(crate) fn take(&mut self, json: &[u8], path: &Path) -> Result<(), ResultsError> {
        // Each value but the outermost follows one of these, or a name that does. Those in texts count, too.
        let values = json.iter().filter(|octet| matches!(octet, b'[' | b'{' | b',')).count();
        at_most(path, "values", values, self.values)?;
        self.values -= values;
        self.octets = self.octets.saturating_sub(json.len() as u64);
        Ok(())
    }
}

/// Checks a session that somebody may have changed: names that are those of folders, lists within
/// bounds, and a plan of its own variants in which no run is there twice.
pub(crate) fn check_session(session: &Session, path: &Path) -> Result<(), ResultsError> {
    at_most(path, "variants", session.variants.len(), MAX_VARIANTS)?;
    at_most(path, "variants left out", session.skipped.len(), MAX_VARIANTS)?;
    at_most(path, "pairs of variants to compare", session.compared.len(), MAX_PAIRS)?;
    at_most(path, "controls", session.controls.len(), MAX_PAIRS)?;
    at_most(path, "limits", session.limits.len(), MAX_VARIANTS)?;
    let in_sweeps = session.sweeps.iter().map(|sweep| sweep.variants.len()).sum();
    at_most(path, "variants in sweeps", in_sweeps, MAX_VARIANTS)?;
    at_most(path, "sweeps", session.sweeps.len(), MAX_VARIANTS)?;
    let of_threads = session.scaling.iter().map(|sweep| sweep.variants.len()).sum();
    at_most(path, "variants in sweeps over threads", of_threads, MAX_VARIANTS)?;
    at_most(path, "sweeps over threads", session.scaling.len(), MAX_VARIANTS)?;
    at_most(path, "runs", session.plan.len(), MAX_RUNS)?;
    let wrong = |what: String| Err(ResultsError::Contradiction { path: path.to_owned(), what });
    let mut variants = HashSet::new();
    for name in &session.variants {
        if name.parse::<FolderName>().is_err() {
            return wrong(format!("`{}` cannot be the name of a variant", visible(name)));
        }
        if !variants.insert(name.as_str()) {
            return wrong(format!("variant `{name}` is there twice"));
        }
    }
    let mut planned = HashSet::new();
    for case in &session.plan {
        if !variants.contains(case.variant.as_str()) {
            return wrong(format!(
                "the plan has a run of variant `{}`, which the list of variants lacks",
                visible(&case.variant)
            ));
        }
        if !planned.insert(case) {
            return wrong(format!("run {} is planned twice", case.folder()));
        }
    }
    Ok(())
}

/// A name that is that of a folder too: no path, and without characters that act on a terminal.
///
/// ```
/// use dnslab_results::FolderName;
///
/// assert_eq!("udp".parse::<FolderName>().unwrap().as_str(), "udp");
/// assert!("../../x".parse::<FolderName>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderName(String);

/// The text cannot be the name of a folder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` cannot be a name, since a folder is named so: write up to {MAX_NAME} octets without a `/`", visible(.0)
)]
pub struct FolderNameError(String);

impl FolderName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for FolderName {
    type Err = FolderNameError;

    fn from_str(name: &str) -> Result<Self, FolderNameError> {
        let is_plain = !name.contains('/') && !matches!(name, "" | "." | "..");
        match is_plain && name.len() <= MAX_NAME && visible(name) == name {
            true => Ok(Self(name.to_owned())),
            false => Err(FolderNameError(name.to_owned())),
        }
    }
}

/// Checks the lists of a comparison of answers.
pub(crate) fn check_comparison(
    comparison: &AnswerComparison,
    path: &Path,
) -> Result<(), ResultsError> {
    at_most(path, "examples", comparison.examples.len(), MAX_EXAMPLES)?;
    at_most(path, "classes", comparison.classes.len(), DifferenceClass::ALL.len())?;
    let counted = comparison.classes.iter().map(|class| class.queries);
    let mut counted = counted.chain([comparison.same, comparison.neither]);
    let sum = counted.try_fold(0u64, u64::checked_add);
    match sum == Some(comparison.compared) {
        true => Ok(()),
        false => {
            let what = "its counts do not add up to the queries that were compared".to_owned();
            Err(ResultsError::Contradiction { path: path.to_owned(), what })
        }
    }
}

/// Checks the profiles of a session.
pub(crate) fn check_profiles(profiles: &CpuProfiles, path: &Path) -> Result<(), ResultsError> {
    at_most(path, "profiles", profiles.profiles.len(), MAX_VARIANTS)?;
    at_most(path, "variants without a profile", profiles.failed.len(), MAX_VARIANTS)?;
    for profile in &profiles.profiles {
        if let Some(fault) = profile.fault() {
            let what = format!("the profile of `{}`: {fault}", visible(&profile.variant));
            return Err(ResultsError::Contradiction { path: path.to_owned(), what });
        }
    }
    Ok(())
}

/// Checks the lists of a record that cost more than their length, and its words, of which there may be
/// `words_left` octets.
pub(crate) fn check_record(
    record: &RunRecord,
    words_left: &mut usize,
    path: &Path,
) -> Result<(), ResultsError> {
    let words = words(record);
    at_most(path, "octets of text", words, *words_left)?;
    *words_left -= words;
    at_most(path, "loads at shares of its rate", record.share_loads.len(), MAX_SHARES)?;
    let caveats: usize = record.open_loads().map(|open| open.caveats.len()).sum();
    let open = record.open_loads().map(|open| &open.watched);
    let watched: Vec<&Watched> = std::iter::once(&record.watched).chain(open).collect();
    let chained = watched.iter().map(|watched| watched.chain.len()).max().unwrap_or(0);
    at_most(path, "servers in its chain", chained, MAX_IN_CHAIN)?;
    at_most(path, "caveats", record.caveats.len() + caveats, MAX_CAVEATS)?;
    for watched in watched {
        check_samples(&watched.resources, watched.counters.as_ref(), path)?;
        at_most(path, "hosts of the load", watched.load_hosts.len(), HostPlaces::MAX)?;
        at_most(path, "paths", watched.paths.len(), HostPlaces::MAX + 1)?;
        for LoadHostSeries { resources, .. } in &watched.load_hosts {
            check_samples(resources, None, path)?;
        }
        for part in &watched.chain {
            check_samples(&part.resources, part.counters.as_ref(), path)?;
        }
    }
    let open = record.open_loads().map(|open| &open.measured);
    for measured in record.measured.iter().chain(open) {
        at_most(path, "intervals", measured.intervals.len(), MAX_INTERVALS)?;
        at_most(path, "time windows", measured.windows.len(), MAX_TIME_WINDOWS)?;
        let intervals = measured.intervals.iter().chain(&measured.seconds);
        let of_intervals = intervals.flat_map(|interval| [interval.at_ns, interval.length_ns]);
        let times = [measured.window_start_ns, measured.window_ns].into_iter().chain(of_intervals);
        let longest = usize::try_from(times.max().unwrap_or(0)).unwrap_or(usize::MAX);
        at_most(path, "nanoseconds of load", longest, MAX_NS)?;
    }
    Ok(())
}

/// Octets of a record as JSON without its series and histograms.
fn words(record: &RunRecord) -> usize {
    let RunRecord { started, status, load, server, testbed, imported, watched, .. } = record;
    let open = record.open_loads().map(|open| {
        let CommonLoad { load, measured, watched, caveats, bottleneck } = open;
        length(&(load, caveats, bottleneck)) + of_load(measured) + of_servers(watched)
    });
    length(&(started, status, load, server, testbed, imported))
        + length(&(&record.caveats, &record.bottleneck))
        + record.measured.as_ref().map_or(0, of_load)
        + of_servers(watched)
        + open.sum::<usize>()
}

fn of_load(measured: &Measured) -> usize {
    let Measured { counters, warm_up, windows, tls, .. } = measured;
    let of_windows = windows.iter().map(|window| length(&(&window.name, &window.rcodes)));
    length(&(counters, warm_up, tls)) + of_windows.sum::<usize>()
}

fn of_servers(watched: &Watched) -> usize {
    let behind = watched.chain.iter().map(|part| {
        let ChainPart { role, host, transport, server, resources, counters } = part;
        length(&(role, host, transport, server)) + words_of_series(resources, counters.as_ref())
    });
    let load_hosts = watched.load_hosts.iter();
    let load_hosts = load_hosts
        .map(|LoadHostSeries { host, resources }| host.len() + words_of_series(resources, None));
    words_of_series(&watched.resources, watched.counters.as_ref())
        + behind.chain(load_hosts).sum::<usize>()
}

fn words_of_series(resources: &ResourceSeries, counters: Option<&CounterSeries>) -> usize {
    let ResourceSeries { cpu_source, memory_source, threads, load_cpus, .. } = resources;
    let counters = counters.map(|counters| (&counters.source, &counters.failure));
    length(&(cpu_source, memory_source, threads, load_cpus, counters))
}

fn length(value: &impl Serialize) -> usize {
    struct Counted(usize);
    impl io::Write for Counted {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            self.0 += octets.len();
            Ok(octets.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counted = Counted(0);
    serde_json::to_writer(&mut counted, value).expect("our types have string keys only");
    counted.0
}

/// Checks that samples are in order of time, in which they are looked for, at times that can be subtracted.
fn check_samples(
    resources: &ResourceSeries,
    counters: Option<&CounterSeries>,
    path: &Path,
) -> Result<(), ResultsError> {
    at_most(path, "CPUs", resources.core_cpus.len(), MAX_CPUS)?;
    check_times("resources", resources.samples.iter().map(|sample| sample.at_ns), path)?;
    let readings = counters.map_or(&[][..], |counters| &counters.samples);
    check_times("server's own counters", readings.iter().map(|sample| sample.at_ns), path)
}

fn check_times(
    source: &str,
    times: impl DoubleEndedIterator<Item = i64> + Clone,
    path: &Path,
) -> Result<(), ResultsError> {
    if !times.clone().is_sorted() {
        let what = format!("the samples of the {source} are not in order of time");
        return Err(ResultsError::Contradiction { path: path.to_owned(), what });
    }
    for end in [times.clone().next(), times.clone().next_back()].into_iter().flatten() {
        let ns = usize::try_from(end.unsigned_abs()).unwrap_or(usize::MAX);
        at_most(path, "nanoseconds between a sample and the load", ns, MAX_NS)?;
    }
    Ok(())
}

fn at_most(path: &Path, what: &'static str, found: usize, most: usize) -> Result<(), ResultsError> {
    match found > most {
        true => Err(ResultsError::TooMany { path: path.to_owned(), what, found, most }),
        false => Ok(()),
    }
}
