//! Disks of many sizes, which fill up at different files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::{PATIENCE, Room, experiment, folders, processes_of};
use crate::process::{Finished, run};

/// A disk with room for everything, octets.
const LARGE: u64 = 64 << 20;

pub(super) struct Disk {
    /// Octets.
    pub(super) size: u64,
    /// The file that did not fit, without numbers in its name; `None` if all did.
    pub(super) refused: Option<String>,
    /// Runs with a whole record.
    pub(super) finished: usize,
    /// What did not hold.
    pub(super) faults: Vec<String>,
}

/// Runs the experiment on this many disks, from hardly any room to enough.
///
/// # Errors
/// When dnslab cannot be run, or this process may not mount.
pub(super) fn fill(disks: u32, room: &Room<'_>) -> Result<Vec<Disk>> {
    let (done, kept) = run_on(LARGE, room)?;
    if !done.ended.status.success() {
        bail!("the experiment on a large disk did not succeed: {}", done.tail());
    }
    // A file that is rewritten takes room twice for a moment.
    let enough = octets(kept.path()) * 3 / 2;
    (1..=disks)
        .map(|number| fill_one(enough * u64::from(number) / u64::from(disks), room))
        .collect()
}

fn fill_one(size: u64, room: &Room<'_>) -> Result<Disk> {
    room.stop.check()?;
    let (done, kept) = run_on(size, room)?;
    let mut faults = Vec::new();
    let errors: Vec<&str> = done.output.lines().filter(|line| line.starts_with("error")).collect();
    if done.output.contains("panicked") || errors.len() > 1 {
        faults.push(done.tail());
    }
    if !done.ended.status.success() && errors.is_empty() && !done.output.contains("No space left") {
        faults.push(format!("no error names the cause: {}", done.tail()));
    }
    faults.extend(processes_of(kept.path()).iter().map(|name| format!("{name} was left running")));
    let whole = done.output.lines().find(|line| line.contains("No space left"));
    // The log of a server names what the server could not write.
    let of_server = || (!done.ended.status.success()).then(|| "a file of the server".to_owned());
    let refused = whole.map(file_of).or_else(of_server);
    let results = folders(kept.path()).into_iter().next();
    let finished = match results.filter(|path| path.join("session.json").exists()) {
        Some(path) => {
            // With room again, the report must cover all finished runs.
            let words = ["report", &*path.to_string_lossy()];
            let reported = room.dnslab(kept.path(), &words)?;
            if !reported.ended.status.success() {
                faults.push(format!("report: {}", reported.tail()));
            }
            let runs = folders(&path.join("runs"));
            runs.iter().filter(|run| run.join("record.json").exists()).count()
        }
        None => 0,
    };
    Ok(Disk { size, refused, finished, faults })
}

/// Runs the experiment on a disk of this size in a mount namespace, and returns what was on the disk then.
fn run_on(size: u64, room: &Room<'_>) -> Result<(Finished, tempfile::TempDir)> {
    let place = tempfile::tempdir_in(room.folder).context("cannot make a folder")?;
    let kept = tempfile::tempdir_in(room.folder).context("cannot make a folder")?;
    fs::write(place.path().join("x.toml"), experiment("bind")).context("cannot write x.toml")?;
    fs::create_dir(place.path().join("disk")).context("cannot make a folder")?;
    let script = "mount -t tmpfs -o size=$0 tmpfs disk || exit 99; kept=$1; shift
        \"$@\"; code=$?; cp -a disk/. \"$kept\" || exit 98; exit $code";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, &size.to_string()]).arg(kept.path());
    command.arg(&room.dnslab.path).args(["run", "./x.toml", "--results", "disk"]);
    let done = run(command.current_dir(place.path()), room.folder, PATIENCE, room.stop)?;
    match done.ended.status.code() {
        Some(98 | 99) => bail!("cannot try a full disk (root is needed): {}", done.tail()),
        _ => Ok((done, kept)),
    }
}

/// The file that an error is about: the last part of the last path in it.
fn file_of(error: &str) -> String {
    let mut words = error.split([' ', ':', '`', '"', '\'', ',']);
    let path = words.rfind(|word| word.contains("disk/")).unwrap_or("another file");
    path.rsplit('/').next().unwrap_or(path).trim_end_matches(".part").to_owned()
}

/// Octets of all files in a folder, each rounded up to a page of memory.
fn octets(folder: &Path) -> u64 {
    const PAGE: u64 = 4_096;
    let mut total = 0;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        total += match path.is_dir() {
            true => octets(&path),
            false => fs::metadata(&path).map_or(0, |facts| facts.len().next_multiple_of(PAGE)),
        };
    }
    total
}

/// How often each file did not fit.
pub(super) fn by_file(disks: &[Disk]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for name in disks.iter().filter_map(|disk| disk.refused.as_deref()) {
        *counts.entry(name).or_default() += 1;
    }
    counts
}
