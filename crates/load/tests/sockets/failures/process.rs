//! A test in a process of its own: where limits are per process, and where the process itself is measured.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Set in the child; its value is what the child is to be.
const ROLE: &str = "DNSLAB_TEST_ROLE";

/// Starts a command in a network namespace of its own, in which it is root, whoever it is outside.
pub(crate) const IN_NAMESPACE: [&str; 3] = ["unshare", "--map-root-user", "--net"];

/// The role in which a test of this program started this process; `None` in the first process.
pub(crate) fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// This program, running the one test `test` (its path in the program) in the role `role`. `starter` starts
/// it, if there is one (`unshare --net`, for example).
fn command(starter: &[&str], test: &str, role: &str) -> Command {
    let own = std::env::current_exe().unwrap();
    let mut command = match starter {
        [] => Command::new(own),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(own);
            command
        }
    };
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(ROLE, role);
    command
}

/// Runs `body` in a child process that runs nothing else. This process starts the child with the name of the
/// calling test, by `starter` if there is one, and waits for it.
#[track_caller]
pub(crate) fn alone(starter: &[&str], test: &str, body: impl FnOnce()) {
    if role().is_some() {
        return body();
    }
    let output = command(starter, test, "alone").output().unwrap();
    let (out, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{test} failed in its own process:\n{out}\n{error}");
    assert!(out.contains("1 passed"), "{test} is no test of this program:\n{out}");
    // What the child found out.
    let found = out.lines().filter_map(|line| line.split_once("found: "));
    found.for_each(|(_, what)| println!("{test}: {what}"));
}

/// A child process that serves until its standard input ends, which happens when this is dropped.
pub(crate) struct Serving {
    child: Child,
    input: Option<ChildStdin>,
    /// The words after `serving: ` in what it printed.
    pub(crate) words: Vec<String>,
}

impl Serving {
    /// Starts the test `test` of this program in the role `serve`, by the command `starter` if there is one.
    /// Waits until it has said what it serves.
    pub(crate) fn start(starter: &[&str], test: &str) -> Self {
        let mut command = command(starter, test, "serve");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let input = child.stdin.take();
        let said = lines
            .map_while(Result::ok)
            .find_map(|line| line.split_once("serving: ").map(|(_, words)| words.to_owned()))
            .expect("the child says what it serves");
        let words = said.split(' ').map(str::to_owned).collect();
        Self { child, input, words }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.input.take());
        self.child.wait().ok();
    }
}

/// Waits in the child until the parent has dropped its [`Serving`], or is gone.
pub(crate) fn until_input_ends() {
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).ok();
}

/// A figure of `/proc/self/status` in KiB.
pub(crate) fn status_kib(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
