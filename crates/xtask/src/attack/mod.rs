//! Attacks that take many tries: kills at many instants, disks of many sizes, results and experiments of many
//! parts. What one try shows is an ordinary test, and the page names those too.

mod disks;
mod kills;
mod page;
mod sizes;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::arguments::AttackOptions;
use crate::process::{Finished, Stop, publish, run, scratch};
use crate::versus::dnslab::Dnslab;

const PAGE: &str = "ATTACKS.md";

/// Limit for every command here.
const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Clone, Copy)]
struct Room<'a> {
    dnslab: &'a Dnslab,
    /// Shared by everything.
    folder: &'a Path,
    stop: &'a Stop,
}

impl Room<'_> {
    fn dnslab(&self, folder: &Path, words: &[&str]) -> Result<Finished> {
        let mut command = Command::new(&self.dnslab.path);
        command.args(words).current_dir(folder);
        run(&mut command, self.folder, PATIENCE, self.stop)
    }
}

/// Attacks, and writes the page. Returns whether everything was survived.
///
/// # Errors
/// When dnslab cannot be run, or a file cannot be written.
pub(crate) fn attack(options: &AttackOptions) -> Result<bool> {
    let stop = Stop::listen()?;
    let scratch = scratch("attack")?;
    let dnslab = Dnslab::find(options.dnslab.as_deref())?;
    let room = Room { dnslab: &dnslab, folder: scratch.path(), stop: &stop };
    let (instants, disks, runs) =
        if options.smoke { (4, 4, 50) } else { (options.instants, options.disks, 5_000) };
    let found = page::Found {
        kills: kills::kill(instants, &room)?,
        disks: disks::fill(disks, &room)?,
        sizes: sizes::grow(runs, &room)?,
    };
    let page = page::page(&found, &dnslab.version);
    publish(&page, options.folder.as_deref(), PAGE)?;
    found.faults().for_each(|fault| println!("{fault}"));
    Ok(found.faults().next().is_none())
}

/// An experiment of four short runs, one after the other, on a server of this kind.
fn experiment(kind: &str) -> String {
    format!(
        "name = \"attack\"\nquestion = \"What is left?\"\nserver.kind = \"{kind}\"\n\
         repeat = {{ runs = 2, alternate = \"runs\" }}\n\
         load = {{ duration = \"200ms\", warm_up = \"0s\", clients = 4 }}\n\
         [[variant]]\nname = \"udp\"\n[[variant]]\nname = \"dot\"\nload.transport = \"dot\"\n"
    )
}

/// Empty if `path` does not exist.
fn folders(path: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// Processes, except this one, that work in a folder or have it in their command line.
fn processes_of(folder: &Path) -> Vec<String> {
    let own = std::process::id().to_string();
    let name = folder.to_string_lossy();
    let is_there = |path: &Path| {
        let works_there = fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        let words = fs::read(path.join("cmdline")).unwrap_or_default();
        works_there || String::from_utf8_lossy(&words).contains(&*name)
    };
    let is_process = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.bytes().all(|octet| octet.is_ascii_digit()) && name != own
    };
    let found =
        folders(Path::new("/proc")).into_iter().filter(|path| is_process(path) && is_there(path));
    found
        .map(|path| fs::read_to_string(path.join("comm")).unwrap_or_default().trim().to_owned())
        .collect()
}
