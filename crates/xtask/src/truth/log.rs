//! The log of all played experiments: a file with one line of JSON for each.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::plan::Kind;

/// Raised when something changes that can move a figure of the page: the load engine, the schedule of a
/// round, the statistics, the default experiment, the kinds of experiments. Lines of other versions stay in
/// the log, and the page has a table of them.
pub(crate) const METHOD: u32 = 8;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Played {
    /// [`METHOD`] when it was played.
    pub(crate) method: u32,
    /// As in 2026-11-22; empty without results.
    pub(crate) date: String,
    /// Model of the CPU.
    pub(crate) cpu: String,
    pub(crate) kernel: String,
    /// Output of `dnslab --version`.
    pub(crate) dnslab: String,
    /// Length of the experiment.
    pub(crate) seconds: f64,
    /// Share of the time of all CPUs that the hypervisor took, in [0, 1].
    pub(crate) stolen: f64,
    pub(crate) kind: Kind,
    pub(crate) transport: String,
    /// `repeat.seed`.
    pub(crate) seed: u64,
    /// CPU time of each answer, if the kind plants one.
    #[serde(default)]
    pub(crate) busy_ns: Option<u64>,
    #[serde(default)]
    pub(crate) comparisons: Vec<Compared>,
    /// Lost queries and all queries of the last variant, over all rounds.
    #[serde(default)]
    pub(crate) lost: Option<[u64; 2]>,
    /// The limit of each valid run, if the kind plants one.
    #[serde(default)]
    pub(crate) limits: Vec<String>,
    /// Runs that were not valid.
    #[serde(default)]
    pub(crate) invalid_runs: u64,
    /// Why there is no report.
    #[serde(default)]
    pub(crate) failure: Option<String>,
}

/// One difference of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Compared {
    /// The variant that is compared.
    pub(crate) variant: String,
    pub(crate) metric: String,
    /// Relative to the other variant.
    pub(crate) difference: Estimate,
    /// In the metric's own unit: ns, qps, octets.
    #[serde(default)]
    pub(crate) absolute: Option<Estimate>,
    /// `costs`, `gains`, `equal-within`, `cannot-tell` or `control`.
    pub(crate) verdict: String,
}

/// A value with its 95 % interval. A missing end is unbounded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Estimate {
    pub(crate) value: Option<f64>,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

impl Estimate {
    pub(crate) fn holds(self, truth: f64) -> bool {
        self.low.is_none_or(|low| low <= truth) && self.high.is_none_or(|high| truth <= high)
    }

    /// `None` if the interval is unbounded.
    pub(crate) fn half_width(self) -> Option<f64> {
        Some((self.high? - self.low?) / 2.0)
    }
}

impl Compared {
    /// The report says that there is a difference.
    pub(crate) fn is_mark(&self) -> bool {
        matches!(self.verdict.as_str(), "costs" | "gains")
    }
}

/// What is read of an experiment of another method, whose kinds and figures may be others.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Earlier {
    pub(crate) method: u32,
    /// By its name then.
    pub(crate) kind: String,
    pub(crate) seconds: f64,
    /// Planted CPU time of each answer, if the kind had one.
    pub(crate) busy_ns: Option<u64>,
    pub(crate) comparisons: Vec<Compared>,
    /// Why there is no report.
    pub(crate) failure: Option<String>,
}

/// In the order of the lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Log {
    /// Of the present method.
    pub(crate) played: Vec<Played>,
    /// Of all other methods.
    pub(crate) earlier: Vec<Earlier>,
}

/// Empty if there is no file at `path`.
///
/// # Errors
/// When the log cannot be read, or a line is damaged.
pub(crate) fn read(path: &Path) -> Result<Log> {
    /// Every line has this, of whatever method.
    #[derive(Deserialize)]
    struct Version {
        method: u32,
    }
    let mut log = Log::default();
    if !path.exists() {
        return Ok(log);
    }
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        let place = || format!("{}:{}: not a line of this log", path.display(), number + 1);
        let version: Version = serde_json::from_str(line).with_context(place)?;
        if version.method == METHOD {
            log.played.push(serde_json::from_str(line).with_context(place)?);
        } else {
            log.earlier.push(serde_json::from_str(line).with_context(place)?);
        }
    }
    Ok(log)
}
/// # Errors
/// When the log cannot be written.
pub(crate) fn append(path: &Path, played: &Played) -> Result<()> {
    let line = serde_json::to_string(played).context("cannot write an experiment as JSON")? + "\n";
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    file.write_all(line.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}

/// The experiments that count: the first of each kind in the log, up to its target.
pub(crate) fn counted(played: &[Played]) -> Vec<&Played> {
    let mut done: HashMap<Kind, u32> = HashMap::new();
    let is_counted = |played: &&Played| {
        let number = done.entry(played.kind).or_default();
        *number += 1;
        *number <= played.kind.target()
    };
    played.iter().filter(is_counted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_other_methods_are_kept_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("truth.jsonl");
        assert_eq!(read(&path).unwrap(), Log::default());
        let played = crate::truth::page::tests::played(Kind::Cost5, 7);
        fs::write(&path, format!("{{\"method\":{},\"kind\":\"gone\"}}\n", METHOD + 1)).unwrap();
        append(&path, &played).unwrap();
        let gone = Earlier { method: METHOD + 1, kind: "gone".into(), ..Earlier::default() };
        assert_eq!(read(&path).unwrap(), Log { played: vec![played], earlier: vec![gone] });
        fs::write(&path, "{}\n").unwrap();
        let error = format!("{:#}", read(&path).unwrap_err());
        assert!(error.contains("truth.jsonl:1"), "{error}");
    }

    #[test]
    fn lines_beyond_a_target_are_not_counted() {
        let mut log: Vec<Played> =
            (0..7).map(|_| crate::truth::page::tests::played(Kind::LimitRate, 0)).collect();
        log[6].seed = 7;
        log.push(crate::truth::page::tests::played(Kind::Loss, 0));
        let found = counted(&log);
        assert_eq!(found.len(), 6);
        assert!(found.iter().all(|played| played.seed != 7));
    }

    #[test]
    fn an_unbounded_interval_holds_everything() {
        let estimate = |low, high| Estimate { value: Some(0.0), low, high };
        assert!(estimate(None, None).holds(9.0));
        assert!(estimate(Some(-1.0), Some(1.0)).holds(1.0));
        assert!(!estimate(Some(-1.0), Some(1.0)).holds(1.1));
        assert_eq!(estimate(Some(-1.0), Some(2.0)).half_width(), Some(1.5));
        assert_eq!(estimate(Some(-1.0), None).half_width(), None);
    }
}
