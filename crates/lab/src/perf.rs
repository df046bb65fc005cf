//! Samples of where a server spends its CPU time, taken by `perf`.
//!
//! `perf record` runs under a guard, on the CPUs of the load, and samples the processes of the server by the software
//! clock `cpu-clock`, which virtual machines have too. `perf script` then writes the samples as text, with bounds on
//! time and size. `script` reads that text, `parts` says which part of the server each sample belongs to, and
//! `tally` counts.

mod parts;
mod script;
mod tally;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use dnslab_record::{CpuProfile, Span};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::thread::CapabilitySet;
use rustix::time::{ClockId, clock_gettime};
use tally::Tally;

use crate::asked::Question;
use crate::ending::Ending;
use crate::error::{LabError, refused};
use crate::guarded::{GuardProgram, GuardSpec};
use crate::privileges;
use crate::process::RunningProcess;
use crate::running::log_tail;
use crate::sampler::Watched;
use crate::server::{ServerKind, is_executable, look_up};

/// Samples for each second of CPU time, from which one is chosen. They are primes, so that what a server does every
/// millisecond is not always at the same place when a sample is taken.
const RATES: [u32; 6] = [997, 499, 251, 127, 61, 31];

/// No more samples than these are wanted: a share of a half then has an interval of 0.4 % to either side.
const ENOUGH: f64 = 120_000.0;

/// How long perf may take to begin. It first reads which files each process has mapped.
const BEGINS_WITHIN: Duration = Duration::from_secs(20);
/// How long perf may take to end, which is when it looks for the names of those files.
const ENDS_WITHIN: Duration = Duration::from_secs(30);
/// How long `perf script` may take, and octets that it may write. A sample has about 1,000.
const SCRIPT_WITHIN: Duration = Duration::from_secs(120);
const MAX_SCRIPT: u64 = 512 << 20;
/// Octets that `perf record` may write, in its own words. A sample has some 300.
const MAX_DATA: &str = "256M";

const LOOK: Duration = Duration::from_millis(5);

/// The setting of the kernel that says who may sample what.
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

const CONTROL: &str = "control";
const ACKNOWLEDGED: &str = "acknowledged";
const DATA: &str = "perf.data";
const SCRIPT: &str = "script.txt";

/// Why a server could not be sampled. Each says what would help.
#[derive(Debug, thiserror::Error)]
pub enum PerfError {
    /// There is no perf.
    #[error(
        "perf is not installed: on Debian, `apt-get install linux-perf`; on Ubuntu, \
         `apt-get install linux-tools-$(uname -r)`; on Fedora, `dnf install perf`"
    )]
    NotInstalled,
    /// The program does not work.
    #[error(
        "{} does not work ({reason}): install the perf of this kernel, on Debian `linux-perf`", program.display()
    )]
    Broken {
        /// The program.
        program: PathBuf,
        /// What it said.
        reason: String,
    },
    /// The kernel does not allow this user to sample.
    #[error(
        "this user may not sample the kernel (kernel.perf_event_paranoid is {paranoid}): run dnslab as root, or \
         `sysctl kernel.perf_event_paranoid=1`; in a container, give it the capability PERFMON"
    )]
    NotAllowed {
        /// The setting.
        paranoid: i32,
    },
    /// perf ended before it was asked to, or never began.
    #[error(
        "perf could not sample the server ({reason}): in a container, give it the capability PERFMON and a seccomp \
         profile that allows perf_event_open"
    )]
    Refused {
        /// What it said last.
        reason: String,
    },
    /// `perf script` did not do its work within its bounds.
    #[error(
        "perf could not write its samples as text ({reason}): a shorter load has fewer samples"
    )]
    Unreadable {
        /// What happened.
        reason: String,
    },
    /// There are no samples in the measured window.
    #[error("perf took no sample in the measured window: a longer load has more")]
    NoSamples,
    /// The server has no process that is known here.
    #[error(
        "the server has no process on this machine that dnslab knows: name one with `server.pid`"
    )]
    NoProcess,
    /// perf could not be started, or a file not be made.
    #[error(transparent)]
    Lab(#[from] LabError),
}

/// A perf that is installed and may sample here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Perf {
    program: PathBuf,
    /// `perf version 6.1.192`.
    version: String,
}

impl Perf {
    /// Finds perf, and finds out whether this user may sample servers with the kernel's part of them.
    ///
    /// # Errors
    /// When there is none, none works with this kernel, or the kernel does not allow it.
    pub fn find(guard: &GuardProgram) -> Result<Self, PerfError> {
        let mut error = PerfError::NotInstalled;
        let found = candidates().into_iter().find_map(|program| {
            let found = Self::at(program, guard);
            found.map_err(|broken| error = broken).ok()
        });
        let found = found.ok_or(error)?;
        allowed()?;
        Ok(found)
    }

    /// Asks the program at a path for its version. Wrappers of distributions fail here if they have no perf for this kernel.
    ///
    /// # Errors
    /// When it cannot be executed, or is no perf that works.
    pub fn at(program: PathBuf, guard: &GuardProgram) -> Result<Self, PerfError> {
        let broken = |program: PathBuf, reason: String| PerfError::Broken { program, reason };
        match Question::new(&program, ["--version"]).ask(guard) {
            Ok(said) if said.succeeded && said.output.starts_with("perf version") => {
                let version = said.output.lines().next().unwrap_or_default().trim().to_owned();
                Ok(Self { program, version: version.replace(" version", "") })
            }
            Ok(said) => {
                let text = said.error + &said.output;
                let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                Err(broken(program, line.trim().to_owned()))
            }
            Err(error) => Err(broken(program, error.to_string())),
        }
    }

    /// What sampled, for the record.
    fn described(&self) -> String {
        format!("{}, event cpu-clock", self.version)
    }

    /// Begins to sample the processes of a server with those that they start. It samples already when this returns.
    /// All files lie in `folder`, which is made. perf itself runs on `cpus`.
    ///
    /// # Errors
    /// When the server has no processes, or perf does not begin.
    pub fn record(
        &self,
        watched: &Watched,
        rate_hz: u32,
        (guard, folder, cpus): (&GuardProgram, &Path, &[usize]),
    ) -> Result<Recording, PerfError> {
        let processes = watched.processes.now();
        if processes.is_empty() {
            return Err(PerfError::NoProcess);
        }
        fs::create_dir_all(folder).map_err(refused("create", folder))?;
        let folder = folder.canonicalize().map_err(refused("find", folder))?;
        let control = pipe(&folder.join(CONTROL))?;
        let acknowledged = pipe(&folder.join(ACKNOWLEDGED))?;
        let processes: Vec<String> = processes.iter().map(ToString::to_string).collect();
        let arguments = [
            "record",
            "--event=cpu-clock",
            &format!("--freq={rate_hz}"),
            "--call-graph=fp",
            "--clockid=CLOCK_MONOTONIC",
            "--no-buildid-cache",
            &format!("--max-size={MAX_DATA}"),
            // Nothing before it is told to.
            "--delay=-1",
            &format!("--control=fifo:{CONTROL},{ACKNOWLEDGED}"),
            &format!("--pid={}", processes.join(",")),
            &format!("--output={DATA}"),
        ];
        let log = folder.join("record.log");
        let spec = GuardSpec {
            cpus: cpus.to_vec(),
            ..GuardSpec::new(self.command(&arguments), folder.clone(), log.clone())
        };
        let process = RunningProcess::start(guard, &spec)?;
        let (perf, guard, cpus) = (self.clone(), guard.clone(), cpus.to_vec());
        let recording = Recording { perf, process, folder, log, guard, cpus, rate_hz };
        recording.enable(control, acknowledged)?;
        Ok(recording)
    }

    /// A command line without what the user's settings and symbol servers would change.
    fn command(&self, arguments: &[&str]) -> Vec<String> {
        let clean = ["env", "PERF_CONFIG=/dev/null", "DEBUGINFOD_URLS="];
        let program = self.program.display().to_string();
        let words = clean.into_iter().chain([program.as_str()]).chain(arguments.iter().copied());
        words.map(str::to_owned).collect()
    }
}

/// How often to sample a load of this length on so many CPUs: often for a short one, so that there are enough
/// samples, and seldom for a long one, so that there are not too many.
#[must_use]
pub fn rate_hz(length: Duration, cpus: usize) -> u32 {
    let seconds = length.as_secs_f64() * cpus.max(1) as f64;
    let fits = |rate: &&u32| f64::from(**rate) * seconds <= ENOUGH;
    *RATES.iter().find(fits).unwrap_or(&RATES[RATES.len() - 1])
}

/// What is in a folder, by and large the newest first.
fn newest_first(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.reverse();
    paths
}

/// True if the last part of a path begins so.
fn is_named(path: &Path, beginning: &str) -> bool {
    path.file_name().unwrap_or_default().to_string_lossy().starts_with(beginning)
}

/// Programs that may be perf, the likeliest first. Ubuntu has one for each kernel in a folder of its own, and older
/// releases of Debian have one for each version.
fn candidates() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = look_up("perf".as_ref()).into_iter().collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    for folder in std::env::split_paths(&path) {
        found.extend(newest_first(&folder).into_iter().filter(|path| is_named(path, "perf_")));
    }
    for folder in newest_first(Path::new("/usr/lib")) {
        if is_named(&folder, "linux-tools") {
            found.push(folder.join("perf"));
            found.extend(newest_first(&folder).into_iter().map(|below| below.join("perf")));
        }
    }
    found.retain(|path| is_executable(path));
    found
}

/// Whether this user may sample the kernel's part of its own processes. Without the kernel, most of what a server
/// costs would be left out.
fn allowed() -> Result<(), PerfError> {
    let paranoid = fs::read_to_string(PARANOID).ok();
    let paranoid = paranoid.and_then(|text| text.trim().parse().ok()).unwrap_or(2);
    let may = [(CapabilitySet::PERFMON, "PERFMON"), (CapabilitySet::SYS_ADMIN, "SYS_ADMIN")];
    let has_one = may.iter().any(|one| privileges::lacking(&[*one]).is_empty());
    // From 2 on, the kernel is left out (perf_event_open(2)).
    if has_one || paranoid < 2 { Ok(()) } else { Err(PerfError::NotAllowed { paranoid }) }
}

/// Makes a named pipe and opens it for both directions, so that opening waits for nobody.
fn pipe(path: &Path) -> Result<File, LabError> {
    let made = rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0);
    made.map_err(io::Error::from).map_err(refused("create", path))?;
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let opened = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
    opened.map_err(refused("open", path))
}

/// A perf that samples a server. It is ended when this is dropped.
#[derive(Debug)]
pub struct Recording {
    perf: Perf,
    process: RunningProcess,
    folder: PathBuf,
    log: PathBuf,
    guard: GuardProgram,
    cpus: Vec<usize>,
    rate_hz: u32,
}

/// What a server said of itself, to know its parts by, and which samples count.
#[derive(Clone, Copy, Debug)]
pub struct Sampled {
    /// Which server; `None` for one that somebody else started.
    pub kind: Option<ServerKind>,
    /// The start of the load.
    pub origin: Instant,
    /// The measured window of it.
    pub window: Span,
    /// Stacks that may be kept.
    pub max_stacks: usize,
}

impl Recording {
    /// Tells perf to begin, and waits until it says that it did.
    fn enable(&self, mut control: File, mut acknowledged: File) -> Result<(), PerfError> {
        // It stays in the pipe until perf is ready to read it.
        control.write_all(b"enable\n").map_err(refused("write", &self.folder.join(CONTROL)))?;
        let deadline = Instant::now() + BEGINS_WITHIN;
        let mut word = Vec::new();
        loop {
            let mut octets = [0; 16];
            match acknowledged.read(&mut octets) {
                Ok(count) => word.extend_from_slice(&octets[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(LOOK),
                Err(error) => {
                    return Err(refused("read", &self.folder.join(ACKNOWLEDGED))(error).into());
                }
            }
            if word.starts_with(b"ack\n") {
                return Ok(());
            }
            if self.process.exited().is_some() || Instant::now() >= deadline {
                return Err(self.refusal());
            }
        }
    }

    /// With what perf said, after its end.
    fn refusal(&self) -> PerfError {
        self.process.stop(ENDS_WITHIN);
        let tail = log_tail(&self.log, 20).unwrap_or_default();
        let own = ["[ perf record", "Events "];
        let says = |line: &&String| {
            !line.trim().is_empty() && !own.iter().any(|own| line.starts_with(own))
        };
        let reason = tail.iter().find(says).map_or("it said nothing", |line| line.trim());
        PerfError::Refused { reason: reason.to_owned() }
    }

    /// Ends the sampling, and counts the samples. Rate and CPU time for each query are left to the caller.
    ///
    /// # Errors
    /// When perf has ended by itself, `perf script` fails, or there is no sample in the window.
    pub fn finish(self, sampled: &Sampled) -> Result<CpuProfile, PerfError> {
        if !self.process.stop(ENDS_WITHIN).requested {
            return Err(self.refusal());
        }
        let script = self.script()?;
        let opened = File::open(&script).map_err(refused("read", &script))?;
        let window = on_monotonic_clock(sampled.origin, sampled.window);
        let mut profile =
            profile_of(BufReader::new(opened), sampled.kind, window, sampled.max_stacks)
                .map_err(refused("read", &script))?;
        if profile.samples == 0 {
            return Err(PerfError::NoSamples);
        }
        profile.sampler = self.perf.described();
        profile.rate_hz = self.rate_hz;
        Ok(profile)
    }

    /// Writes the samples as text, and returns the file.
    fn script(&self) -> Result<PathBuf, PerfError> {
        let arguments = [
            "script",
            &format!("--input={DATA}"),
            "--fields=pid,tid,time,ip,sym,dso",
            "--ns",
            "--no-inline",
            "--show-lost-events",
            // The data is root's, which an ordinary user's perf would refuse, and the other way round.
            "--force",
        ];
        let (text, errors) = (self.folder.join(SCRIPT), self.folder.join("script.log"));
        let spec = GuardSpec {
            cpus: self.cpus.clone(),
            standard_error: Some(errors.clone()),
            ..GuardSpec::new(self.perf.command(&arguments), self.folder.clone(), text.clone())
        };
        let process = RunningProcess::start(&self.guard, &spec)?;
        let deadline = Instant::now() + SCRIPT_WITHIN;
        let unreadable = |reason: String| Err(PerfError::Unreadable { reason });
        loop {
            if let Some(report) = process.exited() {
                return match report.ending {
                    Ending::Exited(0) => Ok(text),
                    ending => {
                        let tail = log_tail(&errors, 1).unwrap_or_default();
                        unreadable(format!("it {ending}: {}", tail.join(" ")))
                    }
                };
            }
            let octets = text.metadata().map_or(0, |facts| facts.len());
            if octets > MAX_SCRIPT || Instant::now() >= deadline {
                process.stop(Duration::ZERO);
                return unreadable(format!("{octets} octets are too many, or took too long"));
            }
            thread::sleep(LOOK);
        }
    }
}

/// A window of a load on the clock that perf was given, nanoseconds.
fn on_monotonic_clock(origin: Instant, window: Span) -> (u64, u64) {
    // Both are the same clock on Linux, but `Instant` does not tell its number.
    let (now, clock) = (Instant::now(), clock_gettime(ClockId::Monotonic));
    let clock_ns = i128::from(clock.tv_sec) * 1_000_000_000 + i128::from(clock.tv_nsec);
    let origin_ns = clock_ns - now.saturating_duration_since(origin).as_nanos() as i128;
    let on_clock = |ns: i64| u64::try_from(origin_ns + i128::from(ns)).unwrap_or(0);
    (on_clock(window.from_ns), on_clock(window.to_ns))
}

/// Reads what `perf script` writes, and counts the samples of a window of its clock in nanoseconds. The text may be
/// anything: the profile has bounds, and its counts add up. At most `max_stacks` stacks are kept.
///
/// # Errors
/// When the text cannot be read.
pub fn profile_of(
    text: impl BufRead,
    kind: Option<ServerKind>,
    window: (u64, u64),
    max_stacks: usize,
) -> io::Result<CpuProfile> {
    let mut tally = Tally::new(parts::Parts::of(kind));
    script::read(text, &mut |found| match found {
        script::Found::Sample { at_ns, frames } if (window.0..=window.1).contains(&at_ns) => {
            tally.count(frames);
        }
        script::Found::Sample { .. } => {}
        script::Found::Lost(count) => tally.lose(count),
    })?;
    Ok(tally.profile(max_stacks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_loads_are_sampled_less_often() {
        let seconds = Duration::from_secs;
        assert_eq!(rate_hz(seconds(10), 1), 997);
        assert_eq!(rate_hz(seconds(10), 0), 997);
        assert_eq!(rate_hz(seconds(120), 2), 499);
        assert_eq!(rate_hz(seconds(24 * 3_600), 64), 31);
    }

    fn allowed_without_rights() -> Result<(), PerfError> {
        for one in [CapabilitySet::PERFMON, CapabilitySet::SYS_ADMIN] {
            let mut sets = rustix::thread::capabilities(None).unwrap();
            sets.effective.remove(one);
            rustix::thread::set_capabilities(None, sets).unwrap();
        }
        allowed()
    }

    #[test]
    fn who_may_sample_is_told_by_capabilities() {
        let paranoid: i32 = fs::read_to_string(PARANOID).unwrap().trim().parse().unwrap();
        let found = thread::spawn(allowed_without_rights).join().unwrap();
        match found {
            Ok(()) => assert!(paranoid < 2, "{paranoid}"),
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains(&format!("perf_event_paranoid is {paranoid}")), "{text}");
            }
        }
    }

    /// A window of the load is the same instant on both clocks, within what reading them takes.
    #[test]
    fn the_clock_is_that_of_instants() {
        let origin = Instant::now();
        let clock = clock_gettime(ClockId::Monotonic);
        let now = clock.tv_sec as u64 * 1_000_000_000 + clock.tv_nsec as u64;
        thread::sleep(Duration::from_millis(2));
        let (from, to) = on_monotonic_clock(origin, Span::between(0, 1_000));
        assert_eq!(to - from, 1_000);
        assert!(from.abs_diff(now) < 500_000_000, "{from} {now}");
    }
}
