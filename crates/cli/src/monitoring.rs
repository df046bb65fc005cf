//! `--metrics-listen` and `--remote-write`: others watch the runs of a command.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use dnslab_experiment::{CapacityObserver, Observer};
use dnslab_lab::read_given_text;
use dnslab_metrics::{Metrics, Point};
use dnslab_monitor::{Endpoint, Listener, PushReport, Pusher};
use dnslab_record::{CaseId, Compared, LiveLoad, Phase, RunRecord, Step};
use dnslab_report::number;
use dnslab_settings::{Experiment, Variant};

use crate::arguments::{MonitorOptions, Output, RemoteWriteOptions};
use crate::exit::Failure;
use crate::terminal;

/// Longest wait for the last fetch where metrics have been fetched before: scrapers come once a minute or more often.
const LINGER: Duration = Duration::from_secs(60);

/// Longest wait at the end for an endpoint that does not take what was pushed.
const PUSH_PATIENCE: Duration = Duration::from_secs(10);

/// Longest wait for such an endpoint after Ctrl-C.
const SHORT_PATIENCE: Duration = Duration::from_secs(2);

/// What watches the runs of a command.
pub(crate) struct Monitor {
    metrics: Metrics,
    /// That of each variant, or `mixed`.
    transports: BTreeMap<String, String>,
    begun: BTreeSet<CaseId>,
    doors: Doors,
}

/// The ways on which metrics leave. They are opened before anything is measured, so that what is wrong with them is
/// said at once.
pub(crate) struct Doors {
    listener: Option<Listener>,
    linger: Option<Duration>,
    pusher: Option<(Pusher, Endpoint)>,
}

impl Doors {
    /// `None` if nobody is to watch.
    pub(crate) fn open(options: &MonitorOptions, output: Output) -> Result<Option<Self>, Failure> {
        let endpoint = endpoint(&options.remote_write)?;
        let listener = options.metrics_listen.map(Listener::start).transpose()?;
        if let Some(listener) = &listener
            && !output.is_quiet()
        {
            say!("metrics: http://{}/metrics", listener.address());
        }
        let start = |endpoint: Endpoint| Ok((Pusher::start(endpoint.clone())?, endpoint));
        let pusher: io::Result<_> = endpoint.map(start).transpose();
        let pusher = pusher.context("cannot push metrics")?;
        let is_open = listener.is_some() || pusher.is_some();
        let linger = options.metrics_linger;
        Ok(is_open.then_some(Self { listener, linger, pusher }))
    }
}

/// The endpoint of the command line.
pub(crate) fn endpoint(options: &RemoteWriteOptions) -> Result<Option<Endpoint>, Failure> {
    let Some(url) = &options.remote_write else { return Ok(None) };
    let headers = options.remote_write_headers.as_deref().map(secret).transpose()?;
    let token = options.remote_write_token.as_deref().map(secret).transpose()?;
    let endpoint = Endpoint::new(url, headers.as_deref(), token.as_deref());
    let endpoint = endpoint.map_err(Failure::bad_input)?;
    if endpoint.is_overheard() && (headers.is_some() || token.is_some()) {
        tell!(
            "note: what --remote-write-token and --remote-write-headers hold goes to {url} unencrypted, so that others on \
             the way can read it: push to https, or to this machine"
        );
    }
    Ok(Some(endpoint))
}

/// Reads a file that holds a secret, and says if others can read it too.
fn secret(path: &Path) -> Result<String, Failure> {
    /// Octets: headers of HTTP servers are shorter.
    const MOST: u64 = 64 << 10;
    let cannot = || format!("cannot read {}", path.display());
    let text = read_given_text(path, MOST).with_context(cannot).map_err(Failure::bad_input)?;
    if path.metadata().is_ok_and(|facts| facts.is_file() && facts.mode() & 0o004 != 0) {
        let path = path.display();
        tell!(
            "note: every user of this machine can read {path}: `chmod 600 {path}` keeps it to its owner"
        );
    }
    Ok(text)
}

impl Monitor {
    /// Watches so many runs of an experiment.
    pub(crate) fn new(doors: Doors, experiment: &Experiment, runs: usize) -> Self {
        let transports = experiment.variants.iter();
        let transports =
            transports.map(|variant| (variant.name.clone(), transport_of(variant))).collect();
        Self::of(&experiment.name, runs, transports, doors)
    }

    /// Watches a search, whose steps are variants with names of their own.
    pub(crate) fn of_search(doors: Doors, experiment: &Experiment) -> Self {
        let own = experiment.variants.first().map(transport_of).unwrap_or_default();
        Self::of(&experiment.name, 0, BTreeMap::from([(String::new(), own)]), doors)
    }

    fn of(name: &str, runs: usize, transports: BTreeMap<String, String>, doors: Doors) -> Self {
        let metrics = Metrics::new(name, env!("CARGO_PKG_VERSION"), runs as u64);
        let monitor = Self { metrics, transports, begun: BTreeSet::new(), doors };
        monitor.publish();
        monitor
    }

    fn interval(&mut self, case: &CaseId, live: &LiveLoad<'_>) {
        if self.begun.insert(case.clone()) {
            let transport = self.transports.get(&case.variant);
            let transport = transport.or_else(|| self.transports.get(""));
            self.metrics.run_begins(case, transport.map_or("", String::as_str));
        }
        let points = self.metrics.interval(case, live);
        self.push(points);
        self.publish();
    }

    fn run_ends(&mut self, record: &RunRecord) {
        let points = self.metrics.run_ends(record);
        self.push(points);
        self.publish();
    }

    fn push(&self, points: Vec<Point>) {
        if let Some((pusher, _)) = &self.doors.pusher {
            pusher.push(points);
        }
    }

    fn publish(&self) {
        if let Some(listener) = &self.doors.listener {
            listener.publish(self.metrics.snapshot());
        }
    }

    /// Lets the last metrics leave, and says what did not. `stop` ends the wait.
    pub(crate) fn finish(self, results: &Path, stop: &AtomicBool, output: Output) {
        let was_interrupted = stop.load(Ordering::Relaxed);
        let is_over = || !was_interrupted && stop.load(Ordering::Relaxed);
        let Doors { listener, linger, pusher } = self.doors;
        if let Some((pusher, endpoint)) = pusher {
            let patience = if was_interrupted { SHORT_PATIENCE } else { PUSH_PATIENCE };
            let report = pusher.finish(patience, &is_over);
            say_missing(&report, &endpoint, Some(results), output);
        }
        if let Some(listener) = listener.filter(|_| !was_interrupted) {
            let default = if listener.was_fetched() { LINGER } else { Duration::ZERO };
            let linger = linger.unwrap_or(default);
            if !listener.wait_for_fetch(Duration::ZERO, &is_over) && !linger.is_zero() {
                let text = "waiting until the last metrics have been fetched; Ctrl-C ends it";
                terminal::remark(text, output);
            }
            if !listener.wait_for_fetch(linger, &is_over) {
                let path = results.display();
                let text = format!(
                    "the last metrics have not been fetched\n  hint:    a longer --metrics-linger waits for it; \
                     `dnslab export prometheus {path} --remote-write URL` pushes them"
                );
                terminal::remark(&text, output);
            }
        }
    }
}

/// The transport of a variant's clients, or `mixed`.
fn transport_of(variant: &Variant) -> String {
    match variant.load.transports().count() {
        0 | 1 => variant.load.transport.to_string(),
        _ => "mixed".to_owned(),
    }
}

/// Says what an endpoint does not have; `results` are those to push it from.
pub(crate) fn say_missing(
    report: &PushReport,
    endpoint: &Endpoint,
    results: Option<&Path>,
    output: Output,
) {
    let missing = report.missing();
    if missing == 0 {
        return;
    }
    let (missing, all) = (number::count(missing), number::count(missing + report.taken));
    let (url, reason) = (endpoint.url(), report.last_error.as_deref().unwrap_or("no answer"));
    let mut text =
        format!("remote write: {missing} of {all} points could not be pushed to {url}: {reason}");
    if let Some(results) = results {
        let results = results.display();
        text.push_str(&format!(
            "\n  hint:    the results are whole; to push them later: \
             dnslab export prometheus {results} --remote-write {url}"
        ));
    }
    terminal::remark(&text, output);
}

/// Tells a view and a monitor of the same events.
pub(crate) struct Both<'a, V: ?Sized> {
    pub(crate) view: &'a mut V,
    pub(crate) monitor: Option<&'a mut Monitor>,
}

impl<V: Observer + ?Sized> Observer for Both<'_, V> {
    fn trial_begins(&mut self) {
        self.view.trial_begins();
    }

    fn round_begins(&mut self, cases: &[CaseId], number: usize, count: usize) {
        self.view.round_begins(cases, number, count);
    }

    fn interval(&mut self, case: &CaseId, live: &LiveLoad<'_>) {
        self.view.interval(case, live);
        // Runs without a number, such as those in which servers are sampled, are in no result.
        if let Some(monitor) = &mut self.monitor
            && case.repetition > 0
        {
            monitor.interval(case, live);
        }
    }

    fn run_ends(&mut self, record: &RunRecord) {
        self.view.run_ends(record);
        if let Some(monitor) = &mut self.monitor {
            monitor.run_ends(record);
        }
    }

    fn profile_begins(&mut self) {
        self.view.profile_begins();
    }

    fn comparison_begins(&mut self, pair: &Compared) {
        self.view.comparison_begins(pair);
    }
}

impl<V: CapacityObserver + ?Sized> CapacityObserver for Both<'_, V> {
    fn step_begins(&mut self, number: usize, phase: Phase, at: f64) {
        self.view.step_begins(number, phase, at);
    }

    fn interval(&mut self, case: &CaseId, live: &LiveLoad<'_>) {
        self.view.interval(case, live);
        if let Some(monitor) = &mut self.monitor {
            monitor.interval(case, live);
        }
    }

    fn run_ends(&mut self, record: &RunRecord) {
        self.view.run_ends(record);
        if let Some(monitor) = &mut self.monitor {
            monitor.run_ends(record);
        }
    }

    fn step_ends(&mut self, number: usize, step: &Step) {
        self.view.step_ends(number, step);
    }
}
