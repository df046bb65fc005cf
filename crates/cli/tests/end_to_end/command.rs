//! Calls of the binary, and their outcome.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dnslab_lab::GuardProgram;
use rustix::process::{Pid, Signal};

/// A call that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(240);

pub(crate) fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_dnslab").into()
}

/// What programs are asked under.
pub(crate) fn guard() -> GuardProgram {
    GuardProgram { path: program(), arguments: vec!["guard".into()] }
}

/// Begins a command line with namespaces of its own, as any user may have them.
pub(crate) fn unshare() -> Command {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command
}

/// `./test` builds it.
#[track_caller]
pub(crate) fn coredns() -> PathBuf {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/coredns");
    assert!(program.exists(), "{} is missing; ./test builds it", program.display());
    program.canonicalize().expect("it is there")
}

/// The cache that `./test` has filled, with these root folders.
#[track_caller]
pub(crate) fn cache(names: &[&str]) -> PathBuf {
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/cache");
    for name in names {
        let what = "./test fetches it as root; or: DNSLAB_CACHE=target/tools/cache dnslab lab get";
        assert!(cache.join(name).is_dir(), "{name} is missing in {}: {what}", cache.display());
    }
    cache.canonicalize().expect("it is there")
}

/// A call under way. Dropping it kills the command.
pub(crate) struct Running {
    /// For messages.
    line: String,
    folder: PathBuf,
    child: Guarded,
    stdout: PathBuf,
    stderr: PathBuf,
}

pub(crate) struct Done {
    /// For example `exit status: 0`.
    status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// For messages.
    line: String,
    folder: PathBuf,
}

impl Running {
    /// Starts `command` in `folder`. Its output goes into files there, so that it can be read while the
    /// command runs, and never blocks it.
    #[track_caller]
    pub(crate) fn start(mut command: Command, folder: &Path) -> Self {
        let number = (1..).find(|number| !folder.join(format!("{number}.stdout")).exists());
        let path = |name: &str| folder.join(format!("{}.{name}", number.unwrap_or(0)));
        let (stdout, stderr) = (path("stdout"), path("stderr"));
        let create = |path: &Path| File::create(path).expect("the folder can be written");
        command
            .current_dir(folder)
            // As a shell does with a job, so that Ctrl-C can reach all of it.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(create(&stdout))
            .stderr(create(&stderr));
        let line = format!("{command:?}");
        let child = Guarded(command.spawn().unwrap_or_else(|error| panic!("{line}: {error}")));
        Self { line, folder: folder.to_owned(), child, stdout, stderr }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.0.try_wait().expect("our own child can be waited for").is_none()
    }

    #[track_caller]
    pub(crate) fn signal(&mut self, signal: Signal) {
        assert!(self.is_running(), "it has ended already: {}", self.so_far());
        let pid = Pid::from_child(&self.child.0);
        rustix::process::kill_process(pid, signal).expect("our own child takes signals");
    }

    /// SIGINT to every process of the job, as Ctrl-C at a terminal.
    #[track_caller]
    pub(crate) fn press_ctrl_c(&mut self) {
        assert!(self.is_running(), "it has ended already: {}", self.so_far());
        rustix::process::kill_process_group(Pid::from_child(&self.child.0), Signal::INT)
            .expect("our own job takes signals");
    }

    /// The command line and its output so far.
    pub(crate) fn so_far(&self) -> String {
        let (stdout, stderr) = (read(&self.stdout), read(&self.stderr));
        shown(&self.line, &self.folder, "under way", &stdout, &stderr)
    }

    pub(crate) fn stderr(&self) -> String {
        read(&self.stderr)
    }

    #[track_caller]
    pub(crate) fn finish(mut self) -> Done {
        let deadline = Instant::now() + PATIENCE;
        while self.is_running() {
            assert!(Instant::now() < deadline, "it hangs: {}", self.so_far());
            thread::sleep(Duration::from_millis(5));
        }
        let status = self.child.0.wait().expect("our own child can be waited for");
        let (stdout, stderr) = (read(&self.stdout), read(&self.stderr));
        Done { status, stdout, stderr, line: self.line.clone(), folder: self.folder.clone() }
    }
}

/// A process that ends with this value.
pub(crate) struct Guarded(pub(crate) Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        // Both fail after its end, which is the usual case.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Done {
    #[track_caller]
    pub(crate) fn exits_with(self, code: i32) -> Self {
        self.exits_with_one_of(&[code])
    }

    #[track_caller]
    pub(crate) fn exits_with_one_of(self, codes: &[i32]) -> Self {
        let is_one = self.status.code().is_some_and(|code| codes.contains(&code));
        assert!(is_one, "the wrong exit code, it should be of {codes:?}: {self}");
        assert!(!self.stderr.contains("panicked at"), "a panic: {self}");
        self
    }

    /// White space does not matter. A screen has three notes, and those of the machine come first: others are in the
    /// table then.
    #[track_caller]
    pub(crate) fn prints(self, text: &str) -> Self {
        let in_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let has = |said: &str| in_one_line(said).contains(&in_one_line(text));
        let is_there = has(&self.stdout) || self.table().is_some_and(|table| has(&table));
        assert!(is_there, "`{text}` is not printed: {self}");
        self
    }

    /// The table of results whose notes do not all fit on the screen.
    fn table(&self) -> Option<String> {
        let lines: Vec<&str> = self.stdout.lines().collect();
        let is_rest = |line: &&str| {
            line.ends_with("notes in the report") || line.ends_with("note in the report")
        };
        lines.iter().find(|line| is_rest(line))?;
        let page = lines.iter().find_map(|line| line.strip_prefix("report: "))?;
        std::fs::read_to_string(self.folder.join(page).with_file_name("table.md")).ok()
    }

    #[track_caller]
    pub(crate) fn complains(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "no complaint says `{text}`: {self}");
        self
    }

    /// Counts lines that begin with `error`.
    #[track_caller]
    pub(crate) fn errors(self, count: usize) -> Self {
        let found = self.stderr.lines().filter(|line| line.starts_with("error")).count();
        assert_eq!(found, count, "the wrong number of errors: {self}");
        self
    }
}

impl fmt::Display for Done {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, stdout, stderr, line, folder } = self;
        formatter.write_str(&shown(line, folder, &status.to_string(), stdout, stderr))
    }
}

fn shown(line: &str, folder: &Path, status: &str, stdout: &str, stderr: &str) -> String {
    let folder = folder.display();
    format!(
        "\n--- command: {line}\n--- folder:  {folder}\n--- status:  {status}\n--- standard output:\n\
         {stdout}\n--- standard error:\n{stderr}\n---"
    )
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
