//! The checkout of a job: experiments, results, and programs of servers.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tempfile::TempDir;

use crate::beside::dnslab;

/// Limits that a server and itself keep on a busy machine, too.
pub(crate) const OF_EQUAL: &str = "memory<+300%, lost<50%";

/// A short closed loop over UDP.
const SHORT: &str = "name = \"gate\"\nload.clients = 10\nload.outstanding = 1\nload.duration = \"500ms\"\n\
    load.warm_up = \"100ms\"\ncommon.duration = \"0s\"\n";

const MAX_ATTEMPTS: u32 = 5;

pub(crate) enum State {
    Quiet,
    /// Nothing that others may have moved is called worse.
    Disturbed,
    /// A run does not count: in its short time nothing was answered.
    Invalid,
}

/// Jobs that measure disturb each other.
static MEASURES: Mutex<()> = Mutex::new(());

pub(crate) struct Servers {
    folder: TempDir,
    _measures: MutexGuard<'static, ()>,
}

impl Servers {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Servers run as a user of their own.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        // A test that failed has left nothing there.
        let _measures = MEASURES.lock().unwrap_or_else(PoisonError::into_inner);
        Self { folder, _measures }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn experiment(&self, name: &str, keys: &str) {
        let text = format!("{SHORT}{keys}[[variant]]\nname = \"udp\"\n");
        let path = self.path().join(name);
        fs::write(&path, text).unwrap();
        // As a runner of GitLab leaves what it fetches.
        fs::set_permissions(path, Permissions::from_mode(0o666)).unwrap();
    }

    /// Measures the embedded server so often. Returns the results directory.
    pub(crate) fn session(&self, name: &str, runs: u32, keys: &str) -> String {
        self.experiment("session.toml", &format!("repeat.runs = {runs}\n{keys}\n"));
        let mut run = Command::new(dnslab());
        run.args(["run", "./session.toml", "--quiet", "--results", name]).current_dir(self.path());
        // In the short time of a run a busy machine may answer nothing.
        let has_succeeded = (0..MAX_ATTEMPTS).any(|_| {
            let _ = fs::remove_dir_all(self.path().join(name));
            run.output().unwrap().status.success()
        });
        assert!(has_succeeded, "{name} was not measured");
        let results = folders(&self.path().join(name)).remove(0);
        forget_others(&results);
        results.to_str().unwrap().to_owned()
    }

    /// A copy of a results directory, in whose summary one run does not count.
    pub(crate) fn with_an_invalid_run(&self, results: &str) -> String {
        let copy = format!("{results}-invalid");
        let copied = Command::new("cp").args(["-r", results, &copy]).status();
        assert!(copied.unwrap().success());
        let path = Path::new(&copy).join("summary.json");
        let text = fs::read_to_string(&path).unwrap();
        let changed = text.replace("\"other_runs\": 0", "\"other_runs\": 1");
        assert_ne!(text, changed);
        fs::write(path, changed).unwrap();
        copy
    }

    /// A copy of BIND.
    pub(crate) fn old(&self) -> String {
        let path = self.path().join("named-old");
        fs::copy("/usr/sbin/named", &path)
            .expect("BIND is missing; checks/debian-packages lists it");
        path.to_str().unwrap().to_owned()
    }

    /// What a busy machine has done to the one session in a folder.
    pub(crate) fn state(&self, folder: &str) -> State {
        let path = folders(&self.path().join(folder)).remove(0).join("summary.json");
        let summary: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let variants = summary["variants"].as_array().unwrap();
        if variants.iter().any(|variant| variant["other_runs"] != 0) {
            State::Invalid
        } else if variants.iter().any(|variant| variant["is_disturbed"] == true) {
            State::Disturbed
        } else {
            State::Quiet
        }
    }

    /// Removes what a job has made.
    pub(crate) fn forget(&self) {
        for folder in folders(self.path()) {
            fs::remove_dir_all(folder).unwrap();
        }
    }
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

/// Takes out of the records that others used the machine, which they may do while tests run: nothing would be called
/// worse then.
fn forget_others(results: &Path) {
    for run in folders(&results.join("runs")) {
        let path = run.join("record.json");
        let text = fs::read_to_string(&path).unwrap();
        let mut record: Value = serde_json::from_str(&text).unwrap();
        let others = ["steal", "crowded", "server-held-up", "other-processes"];
        let caveats = record["caveats"].as_array_mut().unwrap();
        caveats.retain(|caveat| !others.iter().any(|kind| caveat["kind"] == *kind));
        fs::write(path, record.to_string()).unwrap();
    }
}
