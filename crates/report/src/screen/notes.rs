//! What to know before one believes the figures.

use dnslab_analysis::{NotCompared, Summary, VariantSummary};
use dnslab_record::{
    BottleneckKind, Caveat, LoadMode, OpenPace, Played, RunRecord, RunStatus, Session, WorkerFacts,
};
use dnslab_settings::Remedy;

use crate::number;
use crate::variants::{code_shares, grouped, is_at_least, listed};
use crate::words::caveat::{About, Action, Short, words};
use crate::words::invalid::invalid_text;
use crate::words::{Amount, amounts};

/// What is to be said of some variants.
struct Doubt {
    rank: u8,
    what: String,
    /// That for the first of the variants.
    action: String,
    /// How much of it, for each variant that has it.
    amounts: Vec<Amount>,
    /// In how many of the valid runs of those variants.
    found_runs: u32,
    /// The valid runs of those variants.
    valid_runs: u32,
}

/// What is to be said of one variant.
struct Said {
    /// As [`Short::rank`].
    rank: u8,
    /// What is wrong, without a full stop; what is the same of several variants is said once.
    what: String,
    figure: String,
    action: String,
    /// In how many of its valid runs.
    runs: u32,
    /// As [`Amount::size`].
    size: f64,
}

pub(crate) struct Note {
    pub(crate) text: String,
    /// In fewer words, where there is little room.
    pub(super) short: String,
}

impl Note {
    /// A note whose parts are divided by semicolons, the first of which says what is wrong.
    fn brief(text: String) -> Self {
        let short = text.split_once("; ").map(|(first, _)| format!("{first}."));
        Self { short: short.unwrap_or_else(|| text.clone()), text }
    }
}

/// What the remedies of a variant depend on: one of its runs, and the machine. A remedy that is in force already, or
/// that the machine has no room for, leads nowhere.
struct Setting<'a> {
    record: &'a RunRecord,
    /// The CPUs that dnslab may use; none if the session does not say.
    host_cpus: Vec<usize>,
    /// The rate of the load is the common one.
    is_common: bool,
    has_chain: bool,
    /// Others held up so many runs that no difference from this variant is certain, and there is one.
    is_disturbed: bool,
}

/// Below this share of its CPU a worker was late for another reason than its work.
const BUSY: f64 = 0.5;

impl<'a> Setting<'a> {
    /// Of a variant, by one of its runs. `is_alone` if no other variant counts.
    fn new(
        session: &Session,
        variant: &VariantSummary,
        record: &'a RunRecord,
        is_alone: bool,
    ) -> Self {
        Self {
            record,
            host_cpus: host_cpus(session),
            is_common: matches!(record.load.mode, LoadMode::Closed { .. }),
            has_chain: variant.chain.len() > 1,
            is_disturbed: variant.is_disturbed && !is_alone,
        }
    }

    fn action(&self, action: Action) -> String {
        match action {
            Action::Any(text) => text,
            Action::ByServer { running, started } => {
                if self.is_running() { running } else { started }.to_owned()
            }
            Action::SeparateCpus => self.other_cpus(),
            Action::AddWorker => self.more_workers(),
            Action::LowerRate { offered_qps } => self.lower_rate(offered_qps),
            Action::SendInTime => self.later_than_due(),
            Action::LengthenWarmUp => self.longer_warm_up(),
        }
    }

    /// The server is not started by dnslab, so it cannot be told where to run.
    fn is_running(&self) -> bool {
        self.record.server.is_external()
    }

    /// The CPUs of the machine that neither servers nor load have.
    fn free_cpus(&self) -> Vec<usize> {
        let RunRecord { load, server, watched, .. } = self.record;
        let behind = watched.chain.iter().flat_map(|part| &part.server.cpus);
        let is_apart = server.is_elsewhere() || !load.hosts.is_empty();
        let of_server = if is_apart { &[][..] } else { &server.cpus };
        let used: Vec<usize> = load.cpus.iter().chain(of_server).chain(behind).copied().collect();
        self.host_cpus.iter().copied().filter(|cpu| !used.contains(cpu)).collect()
    }

    fn more_workers(&self) -> String {
        let RunRecord { load, .. } = self.record;
        if !load.hosts.is_empty() {
            return "Give the load more hosts (`load.hosts`), or hosts with more CPUs.".to_owned();
        }
        let free = self.free_cpus();
        // A worker without a client has nothing to do.
        let Some(next) = free.first().filter(|_| load.workers < load.clients) else {
            return "Give the load more CPUs (`load.cpus`), on a machine that has them.".to_owned();
        };
        let mut cpus = load.cpus.clone();
        cpus.push(*next);
        cpus.sort_unstable();
        cpus.dedup();
        let workers = Remedy::set("load.workers", load.workers + 1);
        format!("Add a worker: {}.", workers.and("load.cpus", listed_cpus(&cpus)))
    }

    /// What to do where not all that was asked for was sent: ask for what was.
    fn lower_rate(&self, offered_qps: f64) -> String {
        let RunRecord { load, .. } = self.record;
        let key = if self.is_common { "common.rate" } else { "load.rate" };
        let changes = matches!(
            &load.mode,
            LoadMode::Open { pace: OpenPace::Schedule { changing: Some(_), .. }, .. }
        );
        let rate = two_digits(offered_qps);
        match load.played {
            Some(Played::Capture) => "Play fewer clients, by a smaller `load.factor`.".to_owned(),
            _ if changes || rate < 1.0 => format!("Ask for a lower `{key}`."),
            _ => format!("Ask for what was sent: {}.", Remedy::set(key, format!("{rate:.0}"))),
        }
    }

    /// What to do where queries left late though the rate was kept. A lower rate helps only a worker that had much to
    /// do.
    fn later_than_due(&self) -> String {
        let workers = self.record.measured.iter().flat_map(|measured| &measured.workers);
        let busiest = workers.map(WorkerFacts::busy_share).fold(0.0, f64::max);
        if busiest >= BUSY {
            return self.more_workers();
        }
        "The load had CPU time left, so this machine woke it late: end what else runs there, or take another machine."
            .to_owned()
    }

    /// Twice the warm-up, a second at least.
    fn longer_warm_up(&self) -> String {
        let ms = (2 * self.record.load.warm_up_ns / 1_000_000).max(1_000);
        format!("Lengthen the warm-up: {}.", Remedy::set("load.warm_up", format!("{ms}ms")))
    }

    fn other_cpus(&self) -> String {
        let server = &self.record.server.cpus;
        let others: Vec<usize> =
            self.host_cpus.iter().copied().filter(|cpu| !server.contains(cpu)).collect();
        let set_load = |cpus: &[usize]| Remedy::set("load.cpus", listed_cpus(cpus));
        match (self.is_running(), self.has_chain, self.host_cpus.as_slice()) {
            (_, _, [_]) => "Take a machine with more CPUs.".to_owned(),
            (true, _, _) if !others.is_empty() => {
                format!("Give the load CPUs that the server does not use: {}.", set_load(&others))
            }
            (true, _, _) => "Pin the server to some of the CPUs (`taskset`, or `CPUAffinity=` of its unit), and give the \
                             load others (`load.cpus`), or ask from another machine."
                .to_owned(),
            (false, false, [first, rest @ ..]) => {
                let both = Remedy::set("server.cpus", first).and("load.cpus", listed_cpus(rest));
                format!("Give them different ones: {both}.")
            }
            (false, false, []) => {
                "Give them different ones: `server.cpus` and `load.cpus`.".to_owned()
            }
            (false, true, _) => "Each server of a chain wants a CPU of its own beside that of the load: `server.cpus`, \
                                 `upstream.cpus`, `load.cpus`."
                .to_owned(),
        }
    }
}

/// As `load.cpus` takes them.
fn listed_cpus(cpus: &[usize]) -> String {
    cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

/// Rounded down to two digits.
fn two_digits(rate: f64) -> f64 {
    let unit = 10f64.powf(rate.max(1.0).log10().floor() - 1.0);
    (rate / unit).floor() * unit
}

/// The CPUs that dnslab may use, as the session has them: `4: 0-3, of which allowed 0-1`.
fn host_cpus(session: &Session) -> Vec<usize> {
    let fact = session.host.iter().find(|fact| fact.name == "CPUs");
    let Some((_, all)) = fact.and_then(|fact| fact.value.split_once(": ")) else {
        return Vec::new();
    };
    let list = all.rsplit_once("allowed ").map_or(all, |(_, allowed)| allowed);
    let range = |part: &str| -> Option<std::ops::RangeInclusive<usize>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// The notes, the gravest first, without what stands before them.
pub(super) fn notes(session: &Session, summary: &Summary, records: &[RunRecord]) -> Vec<Note> {
    let all = summary.variants.iter().filter(|variant| variant.valid_runs > 0).count();
    let mut doubts = doubts(session, summary, records, Wanted::All);
    let others = doubts.split_off(doubts.partition_point(|doubt| doubt.rank == Short::MACHINE));
    let machine = doubts.iter().map(|doubt| text(doubt, Some(all)));
    let made = not_made(session, records).into_iter().chain(missing(summary, records));
    let others = others.iter().map(|doubt| text(doubt, Some(all)));
    machine.chain(made.map(Note::brief)).chain(others).collect()
}

/// What the notes of a search say: only of the machine and of how the server was watched. Where rates are
/// tried until one is not kept, losses are no doubt; and its runs are no variants, so they are not named.
pub(crate) fn of_search(session: &Session, summary: &Summary, records: &[RunRecord]) -> Vec<Note> {
    let doubts = doubts(session, summary, records, Wanted::Only(About::Setup));
    doubts.iter().map(|doubt| text(doubt, None)).collect()
}

/// Which caveats are told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    All,
    Only(About),
}

fn doubts(
    session: &Session,
    summary: &Summary,
    records: &[RunRecord],
    wanted: Wanted,
) -> Vec<Doubt> {
    let counted: Vec<&VariantSummary> =
        summary.variants.iter().filter(|variant| variant.valid_runs > 0).collect();
    let mut doubts: Vec<Doubt> = Vec::new();
    for variant in &counted {
        let Some(record) = records.iter().find(|record| record.variant == variant.name) else {
            continue;
        };
        let setting = Setting::new(session, variant, record, counted.len() == 1);
        let caveats = of_caveats(variant, &setting, wanted);
        let bottleneck = of_bottleneck(variant, &setting).filter(|_| wanted == Wanted::All);
        for said in caveats.into_iter().chain(bottleneck) {
            add(&mut doubts, variant, said);
        }
    }
    doubts.sort_by_key(|doubt| doubt.rank);
    doubts
}

/// Adds what is said of a variant to the doubt that says it already, else as a new one.
fn add(doubts: &mut Vec<Doubt>, variant: &VariantSummary, said: Said) {
    let Said { rank, what, figure, action, runs, size } = said;
    let amount = Amount { variant: variant.name.clone(), figure, size };
    match doubts.iter_mut().find(|doubt| doubt.what == what) {
        Some(known) if known.amounts.iter().any(|amount| amount.variant == variant.name) => {}
        Some(known) => {
            known.amounts.push(amount);
            known.found_runs += runs;
            known.valid_runs += variant.valid_runs;
        }
        None => doubts.push(Doubt {
            rank,
            what,
            action,
            amounts: vec![amount],
            found_runs: runs,
            valid_runs: variant.valid_runs,
        }),
    }
}

/// What the caveats of a variant mean for its figures.
fn of_caveats(variant: &VariantSummary, setting: &Setting<'_>, wanted: Wanted) -> Vec<Said> {
    // Who shares CPUs waits for them.
    let shares = variant.caveats.iter().any(|caveat| caveat.worst == Caveat::SharedCpus);
    // Whether it answers more is told by the bottleneck, where the server was at its end as well.
    let is_held_back = is_at_least(variant);
    let mut all = Vec::new();
    for caveat in &variant.caveats {
        let words = words(&caveat.worst);
        let is_wanted = match caveat.worst {
            Caveat::Crowded { .. } if shares => false,
            Caveat::GeneratorLimited { .. } if !is_held_back => false,
            _ => wanted == Wanted::All || wanted == Wanted::Only(words.about),
        };
        let Some(short) = words.short.filter(|_| is_wanted) else { continue };
        let is_certain = short.rank != Short::MACHINE || !setting.is_disturbed;
        let meaning = if is_certain { "" } else { ", so no difference is certain" };
        all.push(Said {
            rank: short.rank,
            what: format!("{}{meaning}", short.what),
            figure: short.figure,
            action: setting.action(short.action),
            runs: caveat.runs,
            size: caveat.worst.severity(),
        });
    }
    all
}

/// What the bottleneck means for the figures, where it was not the server's.
fn of_bottleneck(variant: &VariantSummary, setting: &Setting<'_>) -> Option<Said> {
    if variant.not_compared == Some(NotCompared::ConnectionsRefused) {
        let counts = &variant.connections.counts;
        let figure = match counts.refused {
            0 => String::new(),
            refused => format!("{} of {}", number::count(refused), number::count(counts.attempted)),
        };
        return Some(Said {
            rank: 1,
            what: "the server turned connections away, so its rate and its CPU time are compared with none"
                .to_owned(),
            figure,
            action: "Raise its bound on connections, or ask with fewer clients.".to_owned(),
            runs: variant.valid_runs,
            size: 0.0,
        });
    }
    let is_closed = matches!(variant.mode, Some(LoadMode::Closed { .. }));
    let is_window =
        variant.bottlenecks.first().is_some_and(|first| first.kind == BottleneckKind::Window);
    // Who cannot carry these clients gets no more of them, nor who does not get a CPU for them.
    let is_full = variant.caveats.iter().any(|caveat| {
        matches!(caveat.worst, Caveat::Lost { .. } | Caveat::ConnectionsFailed { .. })
            || caveat.worst.keeps_from_cpu()
    });
    (is_closed && is_window && !is_full && !variant.asks_one_by_one()).then(|| {
        let action = match setting.record.load.clients.saturating_mul(10) {
            clients @ ..=MAX_CLIENTS => {
                format!("Ask with more: {}.", Remedy::set("load.clients", clients))
            }
            _ => "Ask from further machines.".to_owned(),
        };
        Said {
            rank: 4,
            what: "neither the server nor the load was busy, so more clients get a higher rate"
                .to_owned(),
            figure: String::new(),
            action,
            runs: variant.valid_runs,
            size: 0.0,
        }
    })
}

/// The most that `load.clients` takes.
const MAX_CLIENTS: u32 = 1_000_000;

/// Variants beyond so many are counted in a short note.
const FEW: usize = 2;

/// A doubt as a note. A doubt about all variants, which are `all`, names none; without `all`, none is
/// named in any case.
fn text(doubt: &Doubt, all: Option<usize>) -> Note {
    let Doubt { what, action, found_runs, valid_runs, .. } = doubt;
    let figure = match all {
        Some(_) => amounts(&doubt.amounts),
        // Runs of a search are no variants.
        None => doubt.amounts[0].figure.clone(),
    };
    let in_runs = match found_runs < valid_runs {
        true => format!("in {found_runs} of {valid_runs} runs"),
        false => String::new(),
    };
    let asides: Vec<&str> = [&figure, &in_runs]
        .into_iter()
        .map(String::as_str)
        .filter(|text| !text.is_empty())
        .collect();
    let figure =
        if asides.is_empty() { String::new() } else { format!(" ({})", asides.join("; ")) };
    let variants: Vec<&str> = doubt.amounts.iter().map(|amount| amount.variant.as_str()).collect();
    let (who, who_short) = match variants.len() {
        named if all.is_none_or(|all| named == all) => (String::new(), String::new()),
        named => {
            let who = format!("{}: ", listed(&variants));
            (who.clone(), if named > FEW { format!("{named} variants: ") } else { who })
        }
    };
    Note {
        text: format!("{who}{what}{figure}. {action}"),
        short: format!("{who_short}{what}. {action}"),
    }
}

fn not_made(session: &Session, records: &[RunRecord]) -> Option<String> {
    let (made, planned) = (records.len(), session.plan.len());
    let text = "Where the results are kept, `dnslab run --resume` makes the others.";
    (made < planned).then(|| format!("{made} of {planned} runs were made. {text}"))
}

fn missing(summary: &Summary, records: &[RunRecord]) -> Vec<String> {
    let mut notes: Vec<(String, &str)> = Vec::new();
    for variant in &summary.variants {
        if let VariantSummary { skipped: Some(reason), .. } = variant {
            notes.push((format!("not run: {}.", first_line(reason)), &variant.name));
        } else if variant.other_runs > 0 {
            let all = variant.valid_runs + variant.other_runs;
            let own = records.iter().filter(|record| record.variant == variant.name);
            let reason = own.filter_map(reason).next().unwrap_or_default();
            let codes = variant.of_invalid.as_deref().map(code_shares).unwrap_or_default();
            let codes = if codes.is_empty() { codes } else { format!(". They were {codes}") };
            let counted = format!("{} of {all} runs count: {reason}{codes}.", variant.valid_runs);
            notes.push((counted, &variant.name));
        }
    }
    grouped(notes).iter().map(|(text, names)| format!("{}: {text}", listed(names))).collect()
}

fn reason(record: &RunRecord) -> Option<String> {
    match &record.status {
        RunStatus::Valid => None,
        RunStatus::Invalid { reason } => Some(first_line(&invalid_text(reason)).to_owned()),
        RunStatus::Failed { reason, .. } => Some(first_line(reason).to_owned()),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_end_matches('.')
}
