//! A folder for one test, and the places for load on the machine.

use std::ffi::OsStr;
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Condvar, Mutex, PoisonError};

use dnslab_record::CaseId;
use dnslab_results::ResultsDirectory;
use dnslab_test_support::free_address;
use tempfile::TempDir;

use crate::command::{Done, Running, program};
use crate::processes::{processes_of, wait_for, working_server};

/// Tests that may put load on the machine at once: starting and stopping servers leaves its CPUs idle. With two, they
/// were idle for more than half of the time.
const PLACES: u32 = 3;

/// How many places are taken.
static TAKEN: Mutex<u32> = Mutex::new(0);
static GIVEN_BACK: Condvar = Condvar::new();

/// Places for load; they are given back when it is dropped.
struct Places(u32);

impl Places {
    fn take(count: u32) -> Self {
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = GIVEN_BACK
            .wait_while(taken, |taken| *taken + count > PLACES)
            .unwrap_or_else(PoisonError::into_inner);
        *taken += count;
        Self(count)
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= self.0;
        GIVEN_BACK.notify_all();
    }
}

/// How late the load generator may be, for tests of anything else: other tests share its CPUs.
const PATIENT: [&str; 2] = ["--set", "expect.lag_limit=1m"];
const PATIENT_KEY: &str = "expect.lag_limit";

/// In the words of an experiment file.
pub(crate) const SHORT: &str =
    "[load]\nclients = 10\noutstanding = 5\nduration = \"300ms\"\nwarm_up = \"100ms\"\n";

pub(crate) const UDP_AND_TCP: &str = "[[variant]]\nname = \"udp\"\nload.transport = \"udp\"\n\
    [[variant]]\nname = \"tcp\"\nload.transport = \"tcp\"\n";

/// Adds `--clients 10`, unless the words say how many.
pub(crate) fn with_few_clients(words: &[&str]) -> Vec<String> {
    let few = if words.contains(&"--clients") { &[][..] } else { &["--clients", "10"] };
    words.iter().chain(few).map(|word| (*word).to_owned()).collect()
}

/// Commands run in this folder. It stays if the test fails.
pub(crate) struct Room {
    folder: TempDir,
    _places: Places,
}

impl Room {
    /// For a test that puts no load on the machine.
    pub(crate) fn quiet() -> Self {
        Self::new(0)
    }

    /// For a test whose load may share the machine with that of another test.
    pub(crate) fn with_load() -> Self {
        Self::new(1)
    }

    /// For a test whose figures must not be those of a shared machine.
    pub(crate) fn alone() -> Self {
        Self::new(PLACES)
    }

    fn new(places: u32) -> Self {
        let folder = tempfile::Builder::new().prefix("dnslab-test-").tempdir();
        let folder = folder.expect("a temporary folder can be made");
        Self { folder, _places: Places::take(places) }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path.
    pub(crate) fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, content).expect("the folder can be written");
        path
    }

    /// Writes `experiment.toml`, named `x`, with these lines.
    pub(crate) fn experiment(&self, lines: &str) -> PathBuf {
        self.write("experiment.toml", &format!("name = \"x\"\n{lines}"))
    }

    /// Lets any user write into the folder, where each can change only their own files.
    pub(crate) fn open_to_all(&self) {
        fs::set_permissions(self.path(), fs::Permissions::from_mode(0o1777))
            .expect("the folder is ours");
    }

    /// The binary under test as `nobody` calls it, from this folder, which that user may write. `nobody` need
    /// not be able to read the build folder.
    pub(crate) fn as_nobody(&self) -> Command {
        self.open_to_all();
        let copy = self.path().join("dnslab");
        if !copy.exists() {
            copy_program(&copy);
        }
        if !rustix::process::geteuid().is_root() {
            return Command::new(copy);
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(copy);
        command
    }

    #[track_caller]
    pub(crate) fn start<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Running {
        Running::start(self.command(arguments), self.path())
    }

    /// The binary under test; its loads may leave late.
    pub(crate) fn command<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments);
        if self.asks_for_a_load(arguments) {
            command.args(PATIENT);
        }
        command
    }

    /// How late the generator is on a busy machine is not what is tested, unless the test says how late it may be.
    fn asks_for_a_load<A: AsRef<OsStr>>(&self, arguments: &[A]) -> bool {
        let words: Vec<&str> = arguments.iter().filter_map(|word| word.as_ref().to_str()).collect();
        let says = |text: &str| text.contains(PATIENT_KEY);
        let has_load =
            words.first().is_some_and(|word| ["run", "load", "replay", "capacity"].contains(word));
        // Options of dnsperf are answered with a command.
        let own = ["-h", "--help", "--resume", "--explain", "-s"];
        let file = fs::read_to_string(self.path().join("experiment.toml")).unwrap_or_default();
        has_load && !words.iter().any(|word| own.contains(word) || says(word)) && !says(&file)
    }

    #[track_caller]
    pub(crate) fn dnslab<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Done {
        self.start(arguments).finish()
    }

    /// Runs UDP and TCP shortly, this often, and opens the results.
    #[track_caller]
    pub(crate) fn short_results(&self, runs: u32) -> ResultsDirectory {
        self.experiment(&format!("repeat.runs = {runs}\n{SHORT}{UDP_AND_TCP}"));
        self.dnslab(&["run", "./experiment.toml"]).exits_with(0);
        self.results()
    }

    /// Waits until this run of the plan is under load. Returns its folder and its server.
    #[track_caller]
    pub(crate) fn wait_for_load(
        &self,
        running: &Running,
        run: impl Fn(&[CaseId]) -> Option<&CaseId>,
    ) -> (PathBuf, u32) {
        let works = || {
            let results = self.results_so_far()?;
            let folder = results.run_path(run(&results.session().ok()?.plan)?);
            Some((folder.clone(), working_server(&folder)?))
        };
        wait_for("the run is under load", || running.so_far(), works)
    }

    #[track_caller]
    pub(crate) fn wait_for_silence(&self) {
        let left = || format!("{:?}", processes_of(self.path()));
        wait_for("no process is left", left, || processes_of(self.path()).is_empty().then_some(()));
    }

    /// The only one under `results`, complete or not; `None` if there is none yet.
    #[track_caller]
    pub(crate) fn results_so_far(&self) -> Option<ResultsDirectory> {
        self.results_below("results")
    }

    /// The only one below a folder.
    #[track_caller]
    fn results_below(&self, folder: &str) -> Option<ResultsDirectory> {
        let found: Vec<PathBuf> = folders(&self.path().join(folder));
        assert!(found.len() <= 1, "more than one experiment: {found:?}");
        ResultsDirectory::open(found.first()?).ok()
    }

    /// The only one that a command with `--results FOLDER` has made.
    #[track_caller]
    pub(crate) fn results_in(&self, folder: &str) -> ResultsDirectory {
        let results = self.results_below(folder);
        results.unwrap_or_else(|| panic!("no results directory in {folder}"))
    }

    /// The only one under `results`.
    #[track_caller]
    pub(crate) fn results(&self) -> ResultsDirectory {
        let results = self.results_so_far();
        results.unwrap_or_else(|| panic!("no results directory in {}", self.path().display()))
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.folder.disable_cleanup(true);
            eprintln!("the folder stays: {}", self.path().display());
        }
    }
}

/// `cp` copies, not this process: a child of another test would inherit the file open for writing, and such a
/// program cannot be executed.
#[track_caller]
pub(crate) fn copy_program(to: &Path) {
    let copied = Command::new("cp").arg(program()).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "cannot copy to {to:?}");
}

/// Nobody has it now at 127.0.0.1, and the kernel gives it to no client, of which other tests have many.
#[track_caller]
pub(crate) fn free_port() -> u16 {
    free_address(Ipv4Addr::LOCALHOST.into()).port()
}

/// Sorted; empty if there is no such folder.
pub(crate) fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}
