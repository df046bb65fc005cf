//! The costs of experiments of many variants, and of results of many runs.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{Room, folders};
use crate::sys::Ended;

pub(super) struct Size {
    pub(super) what: String,
    pub(super) took: Duration,
    pub(super) ended: Ended,
    /// It was refused with the bound.
    pub(super) is_refused: bool,
    /// What did not hold.
    pub(super) faults: Vec<String>,
}

/// `runs` is the number of runs in the results directory.
///
/// # Errors
/// When dnslab cannot be run, or a file cannot be written.
pub(super) fn grow(runs: u32, room: &Room<'_>) -> Result<Vec<Size>> {
    Ok(vec![
        variants(1_000, false, room)?,
        variants(5_000, true, room)?,
        variants(16_000, true, room)?,
        report(runs, room)?,
    ])
}

fn variants(count: u32, is_too_many: bool, room: &Room<'_>) -> Result<Size> {
    let mut text = String::from("name = \"large\"\nquestion = \"Which?\"\n");
    for number in 0..count {
        write!(text, "[[variant]]\nname = \"v{number}\"\nload.clients = {}\n", 1 + number)?;
    }
    fs::write(room.folder.join("large.toml"), text).context("cannot write large.toml")?;
    let what = format!("`dnslab plan` of {count} variants");
    attempt(what, is_too_many, &["plan", "./large.toml"], room)
}

fn attempt(what: String, is_too_many: bool, words: &[&str], room: &Room<'_>) -> Result<Size> {
    let begun = Instant::now();
    let done = room.dnslab(room.folder, words)?;
    let is_refused = done.output.contains("error: ") && !done.ended.status.success();
    let is_clear = !done.output.contains("panicked") && is_refused == is_too_many;
    let faults = if is_clear { Vec::new() } else { vec![format!("{what}: {}", done.tail())] };
    Ok(Size { what, took: begun.elapsed(), ended: done.ended, is_refused, faults })
}

/// Reports a session of many runs, whose records are all copies of a real one.
fn report(runs: u32, room: &Room<'_>) -> Result<Size> {
    let text = "name = \"many\"\nquestion = \"How many?\"\nrepeat.runs = 1\n\
                load = { duration = \"500ms\", warm_up = \"0s\" }\n[[variant]]\nname = \"dot\"\n\
                load.transport = \"dot\"\n";
    fs::write(room.folder.join("many.toml"), text).context("cannot write many.toml")?;
    let done = room.dnslab(room.folder, &["run", "./many.toml", "--results", "many"])?;
    let results = folders(&room.folder.join("many")).into_iter().next();
    let Some(results) = results.filter(|_| done.ended.status.success()) else {
        bail!("the experiment of one run did not succeed: {}", done.tail());
    };
    multiply(&results, runs)?;
    let path = results.to_string_lossy();
    attempt(format!("`dnslab report` of {runs} runs"), false, &["report", &path], room)
}

/// Makes a session of many runs from a session of one.
fn multiply(results: &Path, runs: u32) -> Result<()> {
    let read = |path: &Path| -> Result<Value> {
        let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(serde_json::from_slice(&text)?)
    };
    let session_path = results.join("session.json");
    let mut session = read(&session_path)?;
    let case = session["plan"][0].clone();
    let record = read(&results.join("runs/dot-1/record.json"))?;
    let mut plan = Vec::new();
    for repetition in 1..=runs {
        let (mut case, mut record) = (case.clone(), record.clone());
        for value in [&mut case, &mut record] {
            value["repetition"] = repetition.into();
        }
        record["position"] = (repetition - 1).into();
        let folder = results.join(format!("runs/dot-{repetition}"));
        fs::create_dir_all(&folder).context("cannot make a folder")?;
        fs::write(folder.join("record.json"), serde_json::to_vec(&record)?)
            .context("cannot write a record")?;
        plan.push(case);
    }
    session["plan"] = plan.into();
    fs::write(&session_path, serde_json::to_vec(&session)?).context("cannot write session.json")
}
