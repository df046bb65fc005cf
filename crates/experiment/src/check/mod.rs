//! From the experiment as written to the experiment as checked.

mod chain;
mod clients;
mod experiment;
mod fits;
mod load;
mod logging;
mod query;
mod server;
mod settings;
mod topology;

use std::fmt::Display;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use dnslab_lab::RootError;
use dnslab_measure::statistics::Metric;
use dnslab_measure::{MAX_PAIRS, MAX_RUNS, Quantity};
use dnslab_traffic::SlicePlan;
use dnslab_wire::rcode;
use dnslab_wire::units::duration;

pub use experiment::{
    Alternate, CommonSettings, Expectation, Experiment, LoadSettings, ProcessSettings, Queries,
    Server, ServerSettings, Subnets, TlsChoice, Tsig, Variant, Verification, ZoneSettings,
};
pub(crate) use query::SECRET_NOT_KEPT;
pub use server::port_key;
pub use topology::{ChainRole, ChainServer, HostsChoice, Topology, UpstreamBehaviour};

use crate::error::{Origin, Place, Problem, Problems, on_one_line, shown};
use crate::file::{self, Layer, Value, Written, WrittenVariant};
use crate::keys::{self, closest_word};
use fits::Use;
use settings::Settings;

/// What `compare.with` says of a variant that is compared with none.
pub(crate) const COMPARED_WITH_NONE: &str = "-";

/// Checks the text of an experiment file with the overrides of the command line.
///
/// Looks at no other file: relative paths stay as they are, and whether files exist is left to
/// [`crate::load`]. Never panics, whatever the text.
///
/// # Errors
/// Everything that is wrong, at once.
pub fn check_text(text: &str, sets: &[String]) -> Result<Experiment, Problems> {
    let anywhere = PathRules {
        file_folder: Path::new(""),
        current_folder: Path::new(""),
        is_file: &|_| true,
        find_root: &|root| Ok(root.to_owned()),
        find_address: &|name| Err(format!("no name is looked up here, so `{name}` is unknown")),
    };
    check(text, sets, &anywhere)
}

/// The metric that answers the question, if the experiment names one.
fn answered_by(top: &Settings) -> Option<Metric> {
    top.text("answered_by")?.parse::<Quantity>().ok()?.metric()
}

/// The load at one rate for all variants, if there is one.
fn common(top: &Settings) -> Option<CommonSettings> {
    let duration = top.duration("common.duration");
    (!duration.is_zero()).then(|| CommonSettings {
        rate_qps: top.count("common.rate"),
        duration,
        warm_up: top.duration("common.warm_up"),
    })
}

/// What the check must know about the host that it runs on.
pub(crate) struct PathRules<'a> {
    /// Folder that relative paths in the file start from.
    pub(crate) file_folder: &'a Path,
    /// Folder that relative paths on the command line start from.
    pub(crate) current_folder: &'a Path,
    /// Tells whether a file is there.
    pub(crate) is_file: &'a dyn Fn(&Path) -> bool,
    /// Finds a root folder by its path or its name.
    pub(crate) find_root: &'a dyn Fn(&Path) -> Result<PathBuf, RootError>,
    /// Finds the address of a host by its name; why there is none.
    pub(crate) find_address: &'a dyn Fn(&str) -> Result<IpAddr, String>,
}

/// Checks the text of an experiment file with the overrides of the command line.
///
/// # Errors
/// Everything that is wrong, at once.
pub(crate) fn check(
    text: &str,
    sets: &[String],
    paths: &PathRules<'_>,
) -> Result<Experiment, Problems> {
    let mut written = file::read(text)?;
    for set in sets {
        file::apply(&mut written, set);
    }
    let mut check = Check {
        paths,
        problems: std::mem::take(&mut written.problems),
        uses: vec![],
        names: vec![],
    };
    let experiment = check.experiment(&written);
    match Problems::of(check.problems) {
        Some(problems) => Err(problems),
        None => Ok(experiment),
    }
}

/// A check in progress. Its methods go on after a problem, with the preset in the place of what is
/// wrong, so that all problems come to light.
pub(crate) struct Check<'a> {
    /// About the host.
    paths: &'a PathRules<'a>,
    /// What was wrong so far.
    problems: Vec<Problem>,
    /// Keys that only some transports use, and whether a variant's transport does.
    uses: Vec<Use>,
    /// Host names that were looked up, and what came of it.
    names: Vec<(String, Result<IpAddr, String>)>,
}

impl Check<'_> {
    /// The whole experiment.
    fn experiment(&mut self, written: &Written) -> Experiment {
        let top = Settings::new(&written.entries, &file::Entries::new());
        if top.place("name").is_none() {
            self.missing("the experiment has no name", "add `name = \"...\"` at the top");
        }
        let mut held: Vec<Place> = Vec::new();
        let variants: Vec<Variant> = written
            .variants
            .iter()
            .map(|variant| {
                let mut settings = Settings::new(&written.entries, &variant.entries);
                let mut checked = self.variant(variant, &mut settings);
                checked.compared_with = self.compared_with(&settings, &checked.name, written);
                held.extend(settings.holding().map(|entry| entry.place.clone()));
                checked
            })
            .collect();
        if written.variants.is_empty() && !written.has_unreadable_variant {
            let help = "add at least one, for example:\n\n[[variant]]\nname = \"udp\"\n\
                        load.transport = \"udp\"";
            self.missing("the experiment has no variant", help);
        }
        self.variant_names(&written.variants);
        self.size(&top, &variants);
        self.unused();
        self.idle_overrides(written, &held);
        Experiment {
            name: top.text("name").unwrap_or_default(),
            question: top.text("question").unwrap_or_default(),
            baseline: self.baseline(&top, written),
            answered_by: answered_by(&top),
            margin: top.number("repeat.margin").unwrap_or_default(),
            runs: top.count("repeat.runs").unwrap_or(1),
            seed: top.large_count("repeat.seed").unwrap_or_default(),
            alternate: match top.text("repeat.alternate").as_deref() {
                Some("slices") => Alternate::Slices,
                Some("runs") => Alternate::Runs,
                _ => Alternate::Auto,
            },
            slices: self.slices(&top),
            common: common(&top),
            variants,
        }
    }

    /// The slices: the guard leaves something of each.
    fn slices(&mut self, top: &Settings) -> SlicePlan {
        let (slice, lead) = (top.duration("repeat.slice"), top.duration("repeat.guard"));
        let is_broken = top.is_broken("repeat.slice") || top.is_broken("repeat.guard");
        let place = top.place("repeat.guard").or_else(|| top.place("repeat.slice"));
        if let Some(place) = place.filter(|_| lead >= slice && !is_broken) {
            let message = format!(
                "a guard of {} leaves nothing of a slice of {}",
                duration::write(lead),
                duration::write(slice)
            );
            let help = "make `repeat.slice` some ten times as long as `repeat.guard`";
            self.problems.push(Problem::new(message, place.mark("here")).help(help));
        }
        SlicePlan { slice, lead, tail: Duration::ZERO, mirrored: true }
    }

    /// The variants that a variant is compared with: others of the same experiment. `-` stands for none.
    fn compared_with(
        &mut self,
        settings: &Settings,
        own: &str,
        written: &Written,
    ) -> Option<Vec<String>> {
        let text = settings.text("compare.with")?;
        let place = settings.place("compare.with")?;
        let names: Vec<&str> = written
            .variants
            .iter()
            .filter_map(|variant| variant.name.as_ref().map(|(name, _)| name.as_str()))
            .collect();
        if text.trim() == COMPARED_WITH_NONE {
            return Some(Vec::new());
        }
        let wanted: Vec<String> =
            text.split(',').map(|name| name.trim().to_owned()).filter(|name| name != own).collect();
        for name in wanted.iter().filter(|name| !names.contains(&name.as_str())) {
            let list = names.join(", ");
            let help = match closest_word(name, names.iter().copied()) {
                Some(near) => format!("did you mean \"{near}\"? The variants are {list}"),
                None => format!("the variants are {list}"),
            };
            let message = format!("`{}` in `compare.with` is not a variant", shown(name));
            self.problems.push(Problem::new(message, place.mark("no such variant")).help(help));
        }
        Some(wanted)
    }

    /// One variant, complete in itself.
    fn variant(&mut self, written: &WrittenVariant, settings: &mut Settings) -> Variant {
        let load = self.load(settings);
        let server = self.server(settings, load.transport);
        let topology = self.topology(settings, &server, &load);
        self.sources(settings, &load, &server);
        self.signatures(settings, &load, &server);
        let rcode = settings.text("expect.rcode").and_then(|name| rcode::by_name(&name));
        let expect = Expectation {
            rcode: rcode.and_then(|code| u8::try_from(code).ok()).unwrap_or_default(),
            wrong_limit: settings.number("expect.wrong_limit").unwrap_or_default(),
            lost_limit: settings.number("expect.lost_limit").unwrap_or_default(),
        };
        let name = written.name.as_ref().map(|(name, _)| name.clone()).unwrap_or_default();
        Variant { name, server, topology, load, expect, compared_with: None }
    }

    /// Something that is not there and so has no place.
    fn missing(&mut self, message: &str, help: &str) {
        let problem = Problem { message: message.to_owned(), marks: vec![], help: None };
        self.problems.push(problem.help(help));
    }

    /// Not more runs and pairs than a report can hold.
    fn size(&mut self, top: &Settings, variants: &[Variant]) {
        let runs = variants.len() * top.count("repeat.runs").unwrap_or(1) as usize;
        if runs > MAX_RUNS {
            let message = format!("{runs} runs are more than a report can hold");
            let help = format!("at most {MAX_RUNS}: lower `repeat.runs`, or name fewer variants");
            match top.place("repeat.runs") {
                Some(place) => {
                    let problem = Problem::new(message, place.mark("of each variant"));
                    self.problems.push(problem.help(help));
                }
                None => self.missing(&message, &help),
            }
        }
        let pairs = variants.iter().map(|it| it.compared_with.as_ref().map_or(1, Vec::len));
        let pairs: usize = pairs.sum();
        if pairs > MAX_PAIRS {
            let message = format!("{pairs} pairs of variants are more than a report can compare");
            let help = format!("at most {MAX_PAIRS}: name fewer in `compare.with`");
            self.missing(&message, &help);
        }
    }

    /// No name is there twice.
    fn variant_names(&mut self, variants: &[WrittenVariant]) {
        for (at, variant) in variants.iter().enumerate() {
            let Some((name, place)) = &variant.name else { continue };
            let earlier = variants[..at].iter().filter_map(|other| other.name.as_ref());
            if let Some((_, first)) = earlier.into_iter().find(|(other, _)| other == name) {
                let message = format!("two variants are called `{name}`");
                let problem = Problem::new(message, place.mark("the second"))
                    .with(first.mark("the first"))
                    .help(format!("results are kept by name: call one `{name}-2`"));
                self.problems.push(problem);
            }
        }
    }

    /// The variant that the others are compared with.
    fn baseline(&mut self, top: &Settings, written: &Written) -> String {
        let names: Vec<&str> = written
            .variants
            .iter()
            .filter_map(|variant| variant.name.as_ref().map(|(name, _)| name.as_str()))
            .collect();
        let Some(place) = top.place("baseline") else {
            return names.first().copied().unwrap_or_default().to_owned();
        };
        let Some(baseline) = top.text("baseline") else { return String::new() };
        // A variant whose name is wrong itself may be the one that is meant.
        let all_named = names.len() == written.variants.len();
        if all_named && !names.is_empty() && !names.contains(&baseline.as_str()) {
            let list = names.join(", ");
            let help = match closest_word(&baseline, names) {
                Some(near) => format!("did you mean \"{near}\"? The variants are {list}"),
                None => format!("the variants are {list}"),
            };
            let message = format!("the baseline `{}` is not a variant", shown(&baseline));
            self.problems.push(Problem::new(message, place.mark("no such variant")).help(help));
        }
        baseline
    }

    /// An override that no variant takes would be lost without a word.
    fn idle_overrides(&mut self, written: &Written, held: &[Place]) {
        for (path, entry) in &written.entries {
            let reaches_variants = keys::find(path).is_some_and(keys::Key::is_overridable);
            let from_command_line = entry.layer == Layer::CommandLine;
            if !from_command_line || !reaches_variants || written.variants.is_empty() {
                continue;
            }
            if !held.contains(&entry.place) {
                let message = format!("`--set {path}` has no effect: every variant overrides it");
                let help = format!("`--set variant.NAME.{path}=...` reaches into one variant");
                let mark = entry.place.mark("reaches no variant");
                self.problems.push(Problem::new(message, mark).help(help));
            }
        }
    }

    /// What was written for a key that takes text, read; a problem if it cannot be.
    fn parsed<T>(&mut self, settings: &Settings, path: &str) -> Option<T>
    where
        T: FromStr,
        T::Err: Display,
    {
        let place = settings.place(path)?;
        match settings.text(path)?.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                let message = format!("`{path}` cannot be read");
                let mark = place.mark("here");
                self.problems
                    .push(Problem::new(message, mark).help(on_one_line(&error.to_string())));
                None
            }
        }
    }

    /// The folder that a relative path written at this place starts from.
    fn folder_of(&self, place: &Place) -> &Path {
        match place.origin {
            Origin::File => self.paths.file_folder,
            Origin::CommandLine(_) => self.paths.current_folder,
        }
    }

    /// The path written for a key, from the folder that it starts from; a problem if there is no
    /// such file.
    fn file(&mut self, settings: &Settings, path: &str, what: &str) -> Option<PathBuf> {
        let entry = settings.entry(path)?;
        let Some(Value::Text(text)) = &entry.value else { return None };
        let whole = self.folder_of(&entry.place).join(text);
        if !(self.paths.is_file)(&whole) {
            let message = format!("there is no {what} `{}`", shown(text));
            let help = format!("looked for {}", whole.display());
            let mark = entry.place.mark("no such file");
            self.problems.push(Problem::new(message, mark).help(help));
        }
        Some(whole)
    }
}
