//! From the experiment as written to the experiment as checked.

mod hosts;
mod load;
mod server;

use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};

use dnslab_traffic::population::Population;
use dnslab_wire::Transport;
use dnslab_wire::units::duration;

use crate::document::{Document, WrittenPublished};
use crate::entry::Layer;
use crate::key::{Field, Setting, Unused, When};
use crate::problem::shown;
use crate::suggestion::{listed, near};
use crate::{
    CommonDraft, Experiment, HostDefaults, HostDefaultsDraft, LEAST_ROUNDS, LogTarget, MAX_PAIRS,
    MAX_RUNS, Mark, Metric, Origin, Place, Problem, Problems, Published, PublishedKind,
    RepeatDraft, Rounds, ServerChoice, ServerKind, TopDraft, Variant, VariantDraft, VariantNames,
    Written, find,
};

/// What the check asks of the machine that it runs on. By default nothing: relative paths stay as they are,
/// every file is there, and no name has an address.
pub trait Machine {
    /// Folder that relative paths in the file start from.
    fn file_folder(&self) -> &Path {
        Path::new("")
    }

    /// Folder that relative paths on the command line start from.
    fn current_folder(&self) -> &Path {
        Path::new("")
    }

    /// What this path leads to.
    fn kind_of(&self, path: &Path) -> PathKind {
        let _ = path;
        PathKind::File
    }

    /// The name of the zone in this file; that of the keys' default where no file is read.
    ///
    /// # Errors
    /// Why it has none.
    fn read_zone_name(&self, path: &Path) -> Result<String, String> {
        let _ = path;
        Ok(crate::ZoneDraft::of(&crate::entry::Entries::default()).name.value)
    }

    /// The population that this file describes; that of [`Population::typical`] where no file is read.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read_population(&self, path: &Path) -> Result<Population, String> {
        let _ = path;
        Ok(Population::typical())
    }

    /// Looks for a root folder, by its path or its name.
    ///
    /// # Errors
    /// Why it is not there, and what to do about it.
    fn find_root(&self, root: &Path) -> Result<(), (String, String)> {
        let _ = root;
        Ok(())
    }

    /// The number of the interface on whose link an address is meant.
    ///
    /// # Errors
    /// Why there is none.
    fn find_link(&self, address: Ipv6Addr, name: &str) -> Result<u32, String> {
        let _ = address;
        Err(format!("no interface is looked up here, so `{name}` is unknown"))
    }

    /// The address of a host.
    ///
    /// # Errors
    /// Why the name has none.
    fn find_address(&self, name: &str) -> Result<IpAddr, String> {
        Err(format!("no name is looked up here, so `{name}` is unknown"))
    }
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// A file.
    File,
    /// Nothing.
    Missing,
    /// Something that this user may not see.
    Forbidden,
    /// A folder.
    Folder,
    /// A pipe.
    Pipe,
    /// A device or a socket.
    Device,
}

/// Answers with the defaults of [`Machine`].
#[derive(Clone, Copy, Debug)]
pub struct AnyMachine;

impl Machine for AnyMachine {}

/// Checks the text of an experiment file with the overrides of the command line.
///
/// Never panics, whatever the text. It looks at no other file: relative paths stay as they are.
///
/// # Errors
/// Everything that is wrong, at once.
pub fn check_text(text: &str, sets: &[&str]) -> Result<Experiment, Problems> {
    let mut document = Document::of_file(text)?;
    sets.iter().for_each(|set| document.set(set));
    document.check(&AnyMachine)
}

/// An experiment as written, with the layers of each variant put together. The program can put its own values
/// into it before the check.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Keys of the experiment as a whole.
    pub top: TopDraft,
    /// Keys of `[common]`.
    pub common: CommonDraft,
    /// Keys of `[repeat]`.
    pub repeat: RepeatDraft,
    /// Keys of `[hosts]`.
    pub hosts: HostDefaultsDraft,
    /// In the order of the file.
    pub variants: Vec<VariantDraft>,
    document: Document,
}

impl Document {
    /// Puts the layers of each variant together.
    #[must_use]
    pub fn draft(self) -> Draft {
        let variants = self.variants.iter().map(|variant| {
            let name = variant.name.as_deref().unwrap_or_default();
            VariantDraft::of(name, &self.entries, &variant.entries)
        });
        Draft {
            top: TopDraft::of(&self.entries),
            common: CommonDraft::of(&self.entries),
            repeat: RepeatDraft::of(&self.entries),
            hosts: HostDefaultsDraft::of(&self.entries),
            variants: variants.collect(),
            document: self,
        }
    }

    /// # Errors
    /// Everything that is wrong, at once.
    pub fn check(self, machine: &dyn Machine) -> Result<Experiment, Problems> {
        self.draft().check(machine)
    }
}

impl Draft {
    /// Adds a variant of this name that is written as the first one is, and returns its place.
    pub fn add(&mut self, name: &str) -> usize {
        let place = self.variants.len();
        self.variants.push(self.variants[0].clone());
        self.document.variants.push(self.document.variants[0].clone());
        self.rename(place, name);
        place
    }

    /// Renames the variant at this place of the list.
    pub fn rename(&mut self, place: usize, name: &str) {
        name.clone_into(&mut self.variants[place].name);
        self.document.variants[place].name = Some(name.to_owned());
    }

    /// # Errors
    /// Everything that is wrong, at once.
    pub fn check(mut self, machine: &dyn Machine) -> Result<Experiment, Problems> {
        let problems = std::mem::take(&mut self.document.problems);
        let mut check =
            Check { machine, problems, uses: vec![], names: vec![], compared: HashSet::new() };
        let experiment = check.experiment(self);
        match Problems::of(check.problems) {
            Some(problems) => Err(problems),
            None => Ok(experiment),
        }
    }
}

/// A place where a key was written, and whether one of the variants under it uses it.
#[derive(Debug)]
struct Use {
    place: Place,
    is_used: bool,
    /// What is wrong if no variant uses it.
    message: String,
    label: &'static str,
    help: String,
}

/// A check in progress. After a problem its methods go on with the default, so that all problems come to
/// light.
struct Check<'a> {
    machine: &'a dyn Machine,
    problems: Vec<Problem>,
    /// Keys that only some variants use.
    uses: Vec<Use>,
    /// Host names that were looked up, each with its answer.
    names: Vec<(String, Result<IpAddr, String>)>,
    /// Where `compare.with` was written that was looked at already.
    compared: HashSet<Place>,
}

impl Check<'_> {
    fn experiment(&mut self, draft: Draft) -> Experiment {
        let Draft { top, common, mut repeat, hosts, variants: mut drafts, document } = draft;
        if !top.name.is_written() {
            self.problem("the experiment has no name", [], "add `name = \"...\"` at the top");
        }
        let mut held: HashSet<Place> = HashSet::new();
        let host_defaults = hosts.checked();
        let known_hosts = self.hosts(&document, host_defaults.clone());
        let variants: Vec<Variant> = drafts
            .iter_mut()
            .map(|draft| {
                self.exclusives(draft);
                self.place_hosts(draft, &known_hosts);
                self.population(draft);
                held.extend(draft.fields().iter().filter_map(|field| field.place().cloned()));
                self.fit(draft);
                self.server(draft);
                self.zone(&mut draft.zone);
                self.load(draft);
                self.chain(draft);
                self.event(draft);
                self.search(draft);
                self.compared_with(draft, &document);
                draft.checked()
            })
            .collect();
        if document.variants.is_empty() && !document.has_unreadable_variant {
            let help = "add at least one, for example:\n\n[[variant]]\nname = \"udp\"\n\
                        load.transport = \"udp\"";
            self.problem("the experiment has no variant", [], help);
        }
        self.variant_names(&document);
        self.size(&repeat, &variants);
        self.slices(&mut repeat);
        self.until(&repeat);
        self.shares(&common);
        self.unused();
        self.idle_overrides(&document, &held);
        let top_values = top.checked();
        let experiment = Experiment {
            name: top_values.name,
            question: top_values.question,
            baseline: self.baseline(&top, &document),
            answered_by: top_values.answered_by,
            repeat: repeat.checked(),
            common: common.checked(),
            host_defaults,
            variants,
            published: self.published(&document),
        };
        self.answers(&experiment, &drafts);
        experiment
    }

    /// Checks that answers are compared with those to the same queries.
    fn answers(&mut self, experiment: &Experiment, drafts: &[VariantDraft]) {
        let wanted: Vec<(&Variant, &VariantDraft)> = experiment
            .variants
            .iter()
            .zip(drafts)
            .filter(|(variant, _)| variant.compare.answers)
            .collect();
        let is_alone =
            |(variant, _): &(&Variant, &VariantDraft)| experiment.compared_with(variant).is_empty();
        if let Some((_, draft)) = wanted.first().filter(|_| wanted.iter().all(is_alone)) {
            self.problem(
                "`compare.answers` has no effect: no variant is compared with another",
                [draft.compare.answers.mark("whose answers?")],
                "add a `[[variant]]` with the other server, or remove it",
            );
        }
        for (variant, draft) in wanted {
            let others = experiment.compared_with(variant);
            let other =
                others.iter().find_map(|other| Some((other, variant.other_queries(other)?)));
            let Some((other, key)) = other else { continue };
            self.problem(
                format!(
                    "the answers of `{}` cannot be compared with those of `{}`: their loads do not ask the same",
                    variant.name, other.name
                ),
                [draft.compare.answers.mark("the same queries are needed")],
                format!("give both the same `{key}`, or switch `compare.answers` off in this variant"),
            );
        }
    }

    /// The first place is the culprit. A field that nobody wrote has none.
    fn problem<const MARKS: usize>(
        &mut self,
        message: impl Into<String>,
        marks: [Option<Mark>; MARKS],
        help: impl Into<String>,
    ) {
        let marks = marks.into_iter().flatten().collect();
        let problem = Problem { message: message.into(), marks, help: None };
        self.problems.push(problem.help(help));
    }

    /// Decides between keys that exclude each other, before other checks use them.
    fn exclusives(&mut self, draft: &mut VariantDraft) {
        let (server, load) = (&mut draft.server, &mut draft.load);
        let has_rate = load.rate.is_written();
        self.exclude(
            "`load.outstanding` and `load.rate` exclude each other",
            (&mut load.rate, "open loop"),
            (&mut load.outstanding, "closed loop"),
            "keep `outstanding` to send when an answer comes, or `rate` to send by the clock",
        );
        if load.rate.is_written() {
            load.outstanding.value = None;
            load.pace.value.get_or_insert_default();
        } else if has_rate {
            // This pace belongs to a rate that another layer displaced.
            load.pace.forget();
        }
        self.exclude(
            "`load.queries` and `load.popular_names` exclude each other",
            (&mut load.popular_names, "made-up names"),
            (&mut load.queries, "a query file"),
            "remove one of them",
        );
        self.exclude(
            "`load.names` and `load.popular_names` exclude each other",
            (&mut load.popular_names, "made-up names"),
            (&mut load.names, "names"),
            "remove one of them",
        );
        self.exclude(
            "`load.queries` and `load.names` exclude each other",
            (&mut load.names, "names"),
            (&mut load.queries, "a query file"),
            "remove one of them",
        );
        self.exclude(
            "`load.capture` and `load.population` exclude each other",
            (&mut load.population, "clients of a population"),
            (&mut load.capture, "clients of a capture"),
            "remove one of them",
        );
        self.exclude(
            "`load.tsig` and `load.tsig_file` exclude each other",
            (&mut load.tsig_file, "a file with a key"),
            (&mut load.tsig, "a key"),
            "keep one of them",
        );
        self.exclude(
            "`server.binary` and `server.root` exclude each other",
            (&mut server.binary, "a program of this system"),
            (&mut server.root, "has the server's program in it"),
            "remove one of them",
        );
        self.exclude(
            "`server.pid` and `server.unit` exclude each other",
            (&mut server.pid, "one process"),
            (&mut server.unit, "all processes of a unit"),
            "remove one of them",
        );
        self.exclude(
            "`server.query_log` and `server.log.to` say the same",
            (&mut server.query_log, "into a file, or not at all"),
            (&mut draft.log.to, "where to"),
            "remove `server.query_log`",
        );
        if server.query_log.value && draft.log.to.value == LogTarget::None {
            draft.log.to.value = LogTarget::File;
        }
    }

    /// Of two keys that exclude each other, the later layer holds, and the other key is forgotten. If both were
    /// written in the same layer, it is a problem with these marks.
    fn exclude<A: Setting, B: Setting>(
        &mut self,
        message: &str,
        (first, of_first): (&mut Written<A>, &str),
        (second, of_second): (&mut Written<B>, &str),
        help: &str,
    ) {
        match (first.layer(), second.layer()) {
            (Some(a), Some(b)) if a == b => {
                self.problem(message, [first.mark(of_first), second.mark(of_second)], help);
            }
            (Some(a), Some(b)) if a > b => second.forget(),
            (Some(_), Some(_)) => first.forget(),
            _ => {}
        }
    }

    /// Keys that mean nothing to the variant. They are a problem if they look like a slip, and get their
    /// defaults.
    fn fit(&mut self, draft: &mut VariantDraft) {
        let variant = draft.checked();
        let kind_place = Field::place(&draft.server.kind).cloned();
        let knows_kind = !draft.server.kind.is_broken();
        let knows_transport = !draft.load.transport.is_broken();
        let upstream = draft.upstream.kind.layer();
        for field in draft.fields() {
            let (key, place) = (field.key(), field.place().cloned());
            let mut uses_here: Vec<Use> = Vec::new();
            for when in key.when {
                // A key written with its default is no slip.
                let is_of_another =
                    key.path.starts_with(UPSTREAM) && is_replaced(field.layer(), upstream);
                let says_something = field.is_broken() || !field.is_default() && !is_of_another;
                let place = place.as_ref().filter(|_| says_something);
                match (when, place) {
                    (When::Server(fits), Some(place)) if knows_kind => {
                        let kind = variant.server.kind.started();
                        if !fits(kind) {
                            self.unfit(key.path, place, (kind, kind_place.as_ref()), *fits);
                        }
                    }
                    (When::Transport { uses, why }, Some(place))
                        if knows_transport && !field.is_broken() =>
                    {
                        let with = Transport::ALL.into_iter().filter(|transport| uses(*transport));
                        let with: Vec<&str> = with.map(Transport::name).collect();
                        let with = match with.as_slice() {
                            [only] => format!("the transport {only}"),
                            _ => format!("one of the transports {}", with.join(", ")),
                        };
                        uses_here.push(Use {
                            place: place.clone(),
                            is_used: variant.load.transports().any(*uses),
                            message: format!("`{}` has no effect: {why}", key.path),
                            label: "no load here uses it",
                            help: format!("remove it, or choose {with}"),
                        });
                    }
                    (When::Variant(condition), Some(place)) if !field.is_broken() => {
                        let unused = condition.check(&variant).err();
                        let is_used = unused.is_none();
                        let Unused { why, help } = unused.unwrap_or_default();
                        let message = format!("`{}` has no effect: {why}", key.path);
                        let label = "no variant here uses it";
                        let place = place.clone();
                        uses_here.push(Use { place, is_used, message, label, help });
                    }
                    _ => {}
                }
            }
            // A variant uses what fits it in every respect.
            let unfit = uses_here.iter().position(|key_use| !key_use.is_used).unwrap_or(0);
            self.uses.extend(uses_here.into_iter().nth(unfit));
            if !key.is_used(&variant) {
                field.forget();
            }
        }
    }

    /// The problem of a key that only another kind of server understands.
    fn unfit(
        &mut self,
        path: &str,
        place: &Place,
        (kind, kind_place): (Option<ServerKind>, Option<&Place>),
        fits: fn(Option<ServerKind>) -> bool,
    ) {
        let all = ServerKind::ALL.into_iter().map(Some).chain([None]);
        let names: Vec<&str> = all.filter(|kind| fits(*kind)).map(ServerChoice::name_of).collect();
        let names = names.join(", ");
        let why = if kind_place.is_some() { "" } else { ", the default" };
        let word = ServerChoice::name_of(kind);
        self.problem(
            format!("`{path}` does not fit a server of kind `{word}`{why}"),
            [
                Some(place.mark(format!("only for {names}"))),
                kind_place.map(|place| place.mark("the kind")),
            ],
            format!(
                "remove it, or write it only in variants whose `server.kind` is one of: {names}"
            ),
        );
    }

    fn unused(&mut self) {
        let uses = std::mem::take(&mut self.uses);
        let used = uses.iter().filter(|one| one.is_used).map(|one| &one.place);
        let mut done: HashSet<&Place> = used.collect();
        for one in &uses {
            if done.insert(&one.place) {
                self.problem(
                    one.message.as_str(),
                    [Some(one.place.mark(one.label))],
                    one.help.as_str(),
                );
            }
        }
    }

    /// Otherwise an override that no variant takes would be lost without a word.
    fn idle_overrides(&mut self, document: &Document, held: &HashSet<Place>) {
        for (path, entry) in &document.entries {
            let reaches_variants = find(path).is_some_and(crate::Key::is_overridable);
            let is_set = entry.layer == Layer::CommandLine;
            let is_idle = reaches_variants && !document.variants.is_empty();
            if is_set && is_idle && !held.contains(&entry.place) {
                self.problem(
                    format!("`--set {path}` has no effect: every variant overrides it"),
                    [Some(entry.place.mark("reaches no variant"))],
                    format!("`--set variant.NAME.{path}=...` reaches into one variant"),
                );
            }
        }
    }

    /// Checks that the guard leaves something of each slice.
    fn slices(&mut self, repeat: &mut RepeatDraft) {
        let RepeatDraft { slice, guard, .. } = repeat;
        let is_broken = slice.is_broken() || guard.is_broken();
        let mark = guard.mark("here").or_else(|| slice.mark("here"));
        if guard.value >= slice.value && mark.is_some() && !is_broken {
            let (guard, slice) = (duration::write(guard.value), duration::write(slice.value));
            self.problem(
                format!("a guard of {guard} leaves nothing of a slice of {slice}"),
                [mark],
                "make `repeat.slice` some ten times as long as `repeat.guard`",
            );
        }
    }

    /// Checks that a variant is compared with others of the same experiment.
    fn compared_with(&mut self, draft: &mut VariantDraft, document: &Document) {
        let mark = draft.compare.with.mark("no such variant");
        let Some(VariantNames(wanted)) = &mut draft.compare.with.value else { return };
        wanted.retain(|name| *name != draft.name);
        // What is wrong at the top is wrong in every variant.
        if mark.as_ref().is_some_and(|mark| !self.compared.insert(mark.place.clone())) {
            return;
        }
        let names: Vec<&str> = document.names().collect();
        let known: HashSet<&str> = names.iter().copied().collect();
        for name in wanted.iter().filter(|name| !known.contains(name.as_str())) {
            let message = format!("`{}` in `compare.with` is not a variant", shown(name));
            let help = near_name(name, &names, self.problems.len());
            self.problem(message, [mark.clone()], help);
        }
    }

    /// Checks that there are rounds to end before.
    fn until(&mut self, repeat: &RepeatDraft) {
        let RepeatDraft { until, runs, .. } = repeat;
        let Rounds::Count(runs) = runs.value else { return };
        if until.value > 0.0 && runs < LEAST_ROUNDS {
            self.problem(
                format!("of {runs} rounds no interval is bounded that holds though somebody looked"),
                [until.mark("after each round")],
                "with `repeat.until`, `repeat.runs` is the most rounds that are made: 40, for instance",
            );
        }
    }

    /// Checks that the loads at shares of a rate last.
    fn shares(&mut self, common: &CommonDraft) {
        if common.shares.value.is_some() && common.duration.value.is_zero() {
            self.problem(
                "loads at shares of a variant's own rate are as long as the common load, and there is none",
                [common.shares.mark("for how long?")],
                "add `common.duration`: 1s, for instance",
            );
        }
    }

    /// Checks that a report can hold the runs and pairs.
    fn size(&mut self, repeat: &RepeatDraft, variants: &[Variant]) {
        let rounds = match repeat.runs.value {
            Rounds::Count(rounds) => rounds,
            Rounds::Within(_) => LEAST_ROUNDS,
        };
        let runs = variants.len() * rounds as usize;
        if runs > MAX_RUNS {
            self.problem(
                format!("{runs} runs are more than a report can hold"),
                [repeat.runs.mark("of each variant")],
                format!("at most {MAX_RUNS}: lower `repeat.runs`, or name fewer variants"),
            );
        }
        let pairs = variants
            .iter()
            .map(|variant| variant.compare.with.as_ref().map_or(1, |with| with.0.len()));
        let pairs: usize = pairs.sum();
        if pairs > MAX_PAIRS {
            let message = format!("{pairs} pairs of variants are more than a report can compare");
            self.problem(message, [], format!("at most {MAX_PAIRS}: name fewer in `compare.with`"));
        }
    }

    /// Checks that no name is there twice.
    fn variant_names(&mut self, document: &Document) {
        for (at, variant) in document.variants.iter().enumerate() {
            let Some(name) = &variant.name else { continue };
            let earlier = document.variants[..at].iter();
            if let Some(first) = earlier.into_iter().find(|other| other.name.as_ref() == Some(name))
            {
                let mark = |place: &Option<Place>, label: &str| Some(place.as_ref()?.mark(label));
                self.problem(
                    format!("two variants are called `{name}`"),
                    [mark(&variant.name_place, "the second"), mark(&first.name_place, "the first")],
                    format!("results are kept by name: call one `{name}-2`"),
                );
            }
        }
    }

    fn baseline(&mut self, top: &TopDraft, document: &Document) -> String {
        let names: Vec<&str> = document.names().collect();
        let Some(baseline) = &top.baseline.value else {
            return names.first().copied().unwrap_or_default().to_owned();
        };
        // A variant with a wrong name may be the one that is meant.
        let all_named = names.len() == document.variants.len();
        if all_named && !names.is_empty() && !names.contains(&baseline.as_str()) {
            let message = format!("the baseline `{}` is not a variant", shown(baseline));
            let mark = top.baseline.mark("no such variant");
            let help = near_name(baseline, &names, 0);
            self.problem(message, [mark], help);
        }
        baseline.clone()
    }

    /// What was published, of variants that are there and with values that can be read.
    fn published(&mut self, document: &Document) -> Vec<Published> {
        document
            .published
            .iter()
            .filter_map(|written| self.one_published(written, document))
            .collect()
    }

    fn one_published(
        &mut self,
        written: &WrittenPublished,
        document: &Document,
    ) -> Option<Published> {
        let names: Vec<&str> = document.names().collect();
        for key in ["variant", "against"] {
            if let Some(name) = written.text(key).filter(|name| !names.contains(name)) {
                let message =
                    format!("a figure was published of `{}`, which is no variant", shown(name));
                let mark = written.place_of(key).mark("no such variant");
                let help = near_name(name, &names, self.problems.len());
                self.problem(message, [Some(mark)], help);
                return None;
            }
        }
        let (word, value) = (written.text("figure")?, written.text("value")?);
        let figure = Metric::COMPARED.into_iter().find(|metric| metric.word() == Some(word))?;
        let against = written.text("against").map(str::to_owned);
        let Some((kind, low, high)) = PublishedKind::read(value, figure, against.is_some()) else {
            let example = figure.unit().example();
            let help = match against {
                None => format!("{example}; a range is written `1ms..2ms`"),
                Some(_) => format!(
                    "a difference is a percentage, `-20%`, or has the unit of `{word}`: {example}"
                ),
            };
            let mark = written.place_of("value").mark("not read");
            self.problem(format!("`{}` is no value of `{word}`", shown(value)), [Some(mark)], help);
            return None;
        };
        let text = |key: &str| written.text(key).unwrap_or_default().to_owned();
        Some(Published {
            variant: written.text("variant")?.to_owned(),
            figure,
            kind,
            low,
            high,
            against,
            source: text("source"),
            place: text("place"),
            differs: text("differs"),
        })
    }

    /// The folder that a relative path written at this place starts from.
    fn folder_of(&self, place: &Place) -> &Path {
        match place.origin {
            Origin::File => self.machine.file_folder(),
            Origin::CommandLine(_) | Origin::Option(_) => self.machine.current_folder(),
        }
    }

    /// Makes the path whole. A missing file is a problem.
    fn file(&mut self, field: &mut Written<Option<PathBuf>>, what: &str) {
        if let (Some(path), Some(place)) = (&field.value, Field::place(field)) {
            field.value = Some(self.file_at(path, &place.clone(), what));
        }
    }

    fn file_at(&mut self, path: &Path, place: &Place, what: &str) -> PathBuf {
        let whole = self.folder_of(place).join(path);
        let named = shown(&path.to_string_lossy());
        let once = || {
            "dnslab reads it more than once: write it into a file first, and name that".to_owned()
        };
        let (message, label, help) = match self.machine.kind_of(&whole) {
            PathKind::File => return whole,
            // What stands for standard input elsewhere.
            PathKind::Missing if path == Path::new("-") => {
                (format!("the {what} `-` would be standard input"), "no file", once())
            }
            PathKind::Missing => (
                format!("there is no {what} `{named}`"),
                "no such file",
                format!("looked for {}", whole.display()),
            ),
            PathKind::Forbidden => (
                format!("the {what} `{named}` may not be read"),
                "permission denied",
                format!(
                    "whoever runs dnslab must be allowed into the folders of {}",
                    whole.display()
                ),
            ),
            PathKind::Folder => (
                format!("the {what} `{named}` is a folder"),
                "a folder",
                "name a file in it".to_owned(),
            ),
            PathKind::Pipe => (format!("the {what} `{named}` is a pipe"), "a pipe", once()),
            PathKind::Device => {
                (format!("the {what} `{named}` is a device or a socket"), "not a file", once())
            }
        };
        self.problem(message, [Some(place.mark(label))], help);
        whole
    }
}

/// How the keys of the upstream begin.
const UPSTREAM: &str = "upstream.";

/// True if the file says something of an upstream in whose place the command line puts another one: that is no slip.
fn is_replaced(said: Option<Layer>, kind: Option<Layer>) -> bool {
    let is_in_file = matches!(said, Some(Layer::File | Layer::Variant));
    is_in_file && matches!(kind, Some(Layer::CommandLine | Layer::VariantCommandLine))
}

/// Help for a name that no variant has; `found` is how many problems there were before.
fn near_name(name: &str, names: &[&str], found: usize) -> String {
    let list = listed(names);
    match near(name, names, found) {
        Some(near) => format!("did you mean \"{near}\"? The variants are {list}"),
        None => format!("the variants are {list}"),
    }
}

/// True for the name of a root folder in the cache. A path has a `/`.
#[must_use]
pub fn is_name(root: &Path) -> bool {
    root.to_str().is_some_and(|text| !text.is_empty() && !text.contains('/') && text != ".")
}
