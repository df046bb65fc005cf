//! What to know before one believes the figures.

use dnslab_analysis::{NotCompared, Summary, VariantCaveat, VariantSummary};
use dnslab_record::{
    AfterTruncation, BottleneckKind, Caveat, LoadMode, OpenPace, Played, RunRecord, RunStatus,
    Session, UNDER_TEST, WorkerFacts,
};
use dnslab_settings::Remedy;

use crate::number;
use crate::variants::{asks_one_by_one, code_shares, is_at_least, listed};
use crate::words::bottleneck::cpu_limit;
use crate::words::invalid::{http_statuses, invalid_text, left_early};
use crate::words::{Amount, amounts};

/// The rank of a machine that others used. It comes first, for it may explain all others, and takes certainty from
/// every difference.
const MACHINE: u8 = 0;

struct Doubt {
    rank: u8,
    /// How much of it, for each variant that has it.
    amounts: Vec<Amount>,
    /// In how many of the valid runs of those variants, and how many these are.
    runs: (u32, u32),
    said: Said,
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
    /// Others held up so many runs that no difference from this variant is certain, and there is one.
    is_disturbed: bool,
}

/// Below this share of its CPU a worker was late for another reason than its work.
const BUSY: f64 = 0.5;

impl<'a> Setting<'a> {
    fn of(session: &Session, record: &'a RunRecord, is_disturbed: bool) -> Self {
        let is_common = matches!(record.load.mode, LoadMode::Closed { .. });
        Self { record, host_cpus: host_cpus(session), is_common, is_disturbed }
    }

    /// The server is not started by dnslab, so it cannot be told where to run.
    fn is_running(&self) -> bool {
        self.record.server.is_external()
    }

    /// The CPUs of the machine that neither servers nor load have.
    fn free_cpus(&self) -> Vec<usize> {
        let RunRecord { load, server, watched, .. } = self.record;
        let behind = watched.chain.iter().flat_map(|part| &part.server.cpus);
        let used: Vec<usize> =
            load.cpus.iter().chain(&server.cpus).chain(behind).copied().collect();
        self.host_cpus.iter().copied().filter(|cpu| !used.contains(cpu)).collect()
    }

    fn more_workers(&self) -> String {
        let RunRecord { load, .. } = self.record;
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

    fn other_cpus(&self, has_chain: bool) -> String {
        let server = &self.record.server.cpus;
        let others: Vec<usize> =
            self.host_cpus.iter().copied().filter(|cpu| !server.contains(cpu)).collect();
        let set_load = |cpus: &[usize]| Remedy::set("load.cpus", listed_cpus(cpus));
        match (self.is_running(), has_chain, self.host_cpus.as_slice()) {
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

struct Said {
    /// What is wrong, without a full stop; doubts that say the same are one.
    what: &'static str,
    figure: String,
    action: String,
}

/// The notes, the gravest first, without what stands before them.
pub(super) fn notes(session: &Session, summary: &Summary, records: &[RunRecord]) -> Vec<Note> {
    let all = summary.variants.iter().filter(|variant| variant.valid_runs > 0).count();
    let mut doubts = doubts(session, summary, records, Wanted::All);
    let others = doubts.split_off(doubts.partition_point(|doubt| doubt.rank == MACHINE));
    let machine = doubts.iter().map(|doubt| text(doubt, Some(all)));
    let made = not_made(session, records).into_iter().chain(missing(summary, records));
    let others = others.iter().map(|doubt| text(doubt, Some(all)));
    machine.chain(made.map(Note::brief)).chain(others).collect()
}

/// What the notes of a search say: only of the machine and of how the server was watched. Where rates are
/// tried until one is not kept, losses are no doubt; and its runs are no variants, so they are not named.
pub(crate) fn of_search(session: &Session, summary: &Summary, records: &[RunRecord]) -> Vec<Note> {
    let doubts = doubts(session, summary, records, Wanted::OfTheMachine);
    doubts.iter().map(|doubt| text(doubt, None)).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    All,
    /// Those of the machine, and of how the server was watched.
    OfTheMachine,
}

impl Wanted {
    fn has(self, caveat: &Caveat) -> bool {
        self == Self::All
            || matches!(
                caveat,
                Caveat::SharedCpus
                    | Caveat::SharedCore { .. }
                    | Caveat::Steal { .. }
                    | Caveat::Crowded { .. }
                    | Caveat::ServerHeldUp { .. }
                    | Caveat::ServerCpuLimit { .. }
                    | Caveat::LoadCpuLimit { .. }
                    | Caveat::OtherProcesses { .. }
                    | Caveat::ServerNotWatched { .. }
                    | Caveat::CertificateNotVerified
            )
    }
}

fn doubts(
    session: &Session,
    summary: &Summary,
    records: &[RunRecord],
    wanted: Wanted,
) -> Vec<Doubt> {
    let counted = || summary.variants.iter().filter(|variant| variant.valid_runs > 0);
    let mut doubts: Vec<Doubt> = Vec::new();
    for variant in counted() {
        // Who shares CPUs waits for them.
        let shares = variant.caveats.iter().any(|caveat| caveat.worst == Caveat::SharedCpus);
        let has_chain = variant.chain.len() > 1;
        let Some(record) = records.iter().find(|record| record.variant == variant.name) else {
            continue;
        };
        let setting = Setting::of(session, record, variant.is_disturbed && counted().count() > 1);
        // Whether it answers more is told by the bottleneck, where the server was at its end as well.
        let is_held_back = is_at_least(variant);
        let is_told = |of: &&VariantCaveat| match of.worst {
            Caveat::Crowded { .. } if shares => false,
            Caveat::GeneratorLimited { .. } if !is_held_back => false,
            _ => wanted.has(&of.worst),
        };
        let caveats = variant.caveats.iter().filter(is_told);
        let caveats = caveats.filter_map(|caveat| {
            let said = said(&caveat.worst, &setting, has_chain)?;
            Some((said, caveat.runs, caveat.worst.severity()))
        });
        // Who cannot carry these clients gets no more of them, nor who does not get a CPU for them.
        let is_full = |of: &VariantCaveat| {
            matches!(of.worst, Caveat::Lost { .. } | Caveat::ConnectionsFailed { .. })
                || of.worst.keeps_from_cpu()
        };
        let is_refused = variant.not_compared == Some(NotCompared::ConnectionsRefused);
        let is_said = is_refused || !variant.caveats.iter().any(is_full);
        let bottleneck =
            of_bottleneck(variant, &setting).filter(|_| wanted == Wanted::All && is_said);
        let bottleneck = bottleneck.map(|said| (said, variant.valid_runs, 0.0));
        for ((rank, said), runs, size) in caveats.chain(bottleneck) {
            let amount =
                Amount { variant: variant.name.clone(), figure: said.figure.clone(), size };
            match doubts.iter_mut().find(|known| known.said.what == said.what) {
                Some(known) if known.amounts.iter().any(|of| of.variant == variant.name) => {}
                Some(known) => {
                    known.amounts.push(amount);
                    known.runs.0 += runs;
                    known.runs.1 += variant.valid_runs;
                }
                None => {
                    let runs = (runs, variant.valid_runs);
                    doubts.push(Doubt { rank, amounts: vec![amount], runs, said });
                }
            }
        }
    }
    doubts.sort_by_key(|doubt| doubt.rank);
    doubts
}

/// What the bottleneck means for the figures, where it was not the server's.
fn of_bottleneck(variant: &VariantSummary, setting: &Setting<'_>) -> Option<(u8, Said)> {
    let is_closed = matches!(variant.mode, Some(LoadMode::Closed { .. }));
    if variant.not_compared == Some(NotCompared::ConnectionsRefused) {
        let counts = &variant.connections.counts;
        let said = Said {
            what: "the server turned connections away, so its rate and its CPU time are compared with none",
            figure: match counts.refused {
                0 => String::new(),
                refused => {
                    let attempted = number::count(counts.attempted);
                    format!("{} of {attempted}", number::count(refused))
                }
            },
            action: "Raise its bound on connections, or ask with fewer clients.".to_owned(),
        };
        return Some((1, said));
    }
    let is_window =
        variant.bottlenecks.first().is_some_and(|first| first.kind == BottleneckKind::Window);
    (is_closed && is_window && !asks_one_by_one(variant)).then(|| {
        let said = Said {
            what: "neither the server nor the load was busy, so more clients get a higher rate",
            figure: String::new(),
            action: match setting.record.load.clients.saturating_mul(10) {
                clients @ ..=MAX_CLIENTS => {
                    format!("Ask with more: {}.", Remedy::set("load.clients", clients))
                }
                _ => "Ask from further machines.".to_owned(),
            },
        };
        (4, said)
    })
}

/// The most that `load.clients` takes.
const MAX_CLIENTS: u32 = 1_000_000;

/// Variants beyond so many are counted in a short note.
const FEW: usize = 2;

/// A doubt as a note. A doubt about all variants, which are `all`, names none; without `all`, none is
/// named in any case.
fn text(doubt: &Doubt, all: Option<usize>) -> Note {
    let Said { what, action, .. } = &doubt.said;
    let figure = match all {
        Some(_) => amounts(&doubt.amounts),
        // Runs of a search are no variants.
        None => doubt.said.figure.clone(),
    };
    let variants: Vec<&str> = doubt.amounts.iter().map(|of| of.variant.as_str()).collect();
    let (found, runs) = doubt.runs;
    let of_runs = if found < runs { format!("in {found} of {runs} runs") } else { String::new() };
    let asides: Vec<&str> =
        [&figure, &of_runs].into_iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
    let figure =
        if asides.is_empty() { String::new() } else { format!(" ({})", asides.join("; ")) };
    let (of, of_short) = match variants.len() {
        named if all.is_none_or(|all| named == all) => (String::new(), String::new()),
        named => {
            let of = format!("{}: ", listed(&variants));
            (of.clone(), if named > FEW { format!("{named} variants: ") } else { of })
        }
    };
    Note {
        text: format!("{of}{what}{figure}. {action}"),
        short: format!("{of_short}{what}. {action}"),
    }
}

fn not_made(session: &Session, records: &[RunRecord]) -> Option<String> {
    let (made, planned) = (records.len(), session.plan.len());
    let text = "Where the results are kept, `dnslab run --resume` makes the others.";
    (made < planned).then(|| format!("{made} of {planned} runs were made. {text}"))
}

fn missing(summary: &Summary, records: &[RunRecord]) -> Vec<String> {
    let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
    let mut add = |text: String, name| match notes.iter_mut().find(|(known, _)| *known == text) {
        Some((_, names)) => names.push(name),
        None => notes.push((text, vec![name])),
    };
    for variant in &summary.variants {
        if let VariantSummary { skipped: Some(reason), .. } = variant {
            add(format!("not run: {}.", first_line(reason)), variant.name.as_str());
        } else if variant.other_runs > 0 {
            let all = variant.valid_runs + variant.other_runs;
            let own = records.iter().filter(|record| record.variant == variant.name);
            let reason = own.filter_map(reason).next().unwrap_or_default();
            let codes = variant.of_invalid.as_deref().map(code_shares).unwrap_or_default();
            let codes = if codes.is_empty() { codes } else { format!(". They were {codes}") };
            let counted = format!("{} of {all} runs count: {reason}{codes}.", variant.valid_runs);
            add(counted, variant.name.as_str());
        }
    }
    notes.into_iter().map(|(text, names)| format!("{}: {text}", listed(&names))).collect()
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

/// Twice the warm-up of a run, a second at least; milliseconds.
fn longer_ms(record: &RunRecord) -> u64 {
    (2 * record.load.warm_up_ns / 1_000_000).max(1_000)
}

/// A caveat in few words, and how grave it is; `None` for what the screen says elsewhere, or what only
/// the page tells.
fn said(caveat: &Caveat, setting: &Setting<'_>, has_chain: bool) -> Option<(u8, Said)> {
    const QUIETER: &str = "End what else runs on this machine, and measure again.";
    let of = |rank, what, figure: String, action: &str| {
        Some((rank, Said { what, figure, action: action.to_owned() }))
    };
    let share = |share: &f64| number::share(*share);
    match caveat {
        Caveat::WrongAnswers { example, .. } => of(
            1,
            "some answers were not the expected ones",
            example.clone(),
            &format!(
                "Correct the zone, or what is expected: {} takes every code.",
                Remedy::set("expect.rcode", "any")
            ),
        ),
        Caveat::MalformedAnswers { example, .. } => of(
            1,
            "some answers did not hold what their header promised",
            example.clone(),
            "Look at the answer with `dig`: the server makes it wrongly, or something on the path.",
        ),
        Caveat::BadSignatures { example, .. } => of(
            1,
            "signatures (TSIG) were refused or missing",
            example.clone(),
            "Give server and load the same key, and look at both clocks.",
        ),
        Caveat::HttpErrors { statuses } => of(
            1,
            "queries were refused",
            http_statuses(statuses),
            "Look at the server's log from that time on, and at its bounds on requests.",
        ),
        Caveat::Lost { share: lost } => of(
            2,
            "queries were lost",
            share(lost),
            "Each counts in the latency with its time-out. Ask for a lower rate, or fewer at a time.",
        ),
        Caveat::ConnectionsFailed { failed, lost, example, .. } => of(
            2,
            "connections failed or were lost",
            format!("{} and {}; {example}", number::count(*failed), number::count(*lost)),
            "Look at the server's bound on connections, or ask with fewer clients.",
        ),
        Caveat::CountsDiffer { sent, counted } => of(
            2,
            "the server counted other queries than were sent",
            format!("{} and {}", number::count(*counted), number::count(*sent)),
            "See in the report how the queries ended, and who else asks this server.",
        ),
        Caveat::CutShort { measured_ns, asked_ns, .. } => of(
            2,
            "a run was left early",
            left_early(*measured_ns, *asked_ns),
            "Where the results are kept, `dnslab run --resume` makes it again.",
        ),
        Caveat::SharedCpus => of(
            3,
            "server and load shared a CPU, so each took time from the other",
            String::new(),
            &setting.other_cpus(has_chain),
        ),
        Caveat::SharedCore { .. } => of(
            3,
            "server and load were on two threads of one core, which slow each other",
            String::new(),
            match setting.is_running() {
                true => {
                    "Give the load CPUs of other cores (`load.cpus`), on a machine that has them."
                }
                false => {
                    "Name CPUs of different cores (`server.cpus`, `load.cpus`), on a machine that has them."
                }
            },
        ),
        Caveat::Steal { share: stolen } => of(
            MACHINE,
            match setting.is_disturbed {
                true => "the hypervisor kept time from this machine, so no difference is certain",
                false => "the hypervisor kept time from this machine",
            },
            share(stolen),
            "Measure at a quieter hour, or on a machine of your own.",
        ),
        Caveat::Crowded { waited_share } => of(
            MACHINE,
            match setting.is_disturbed {
                true => {
                    "the load generator waited for CPUs that other programs held, so no difference is certain"
                }
                false => "the load generator waited for CPUs that other programs held",
            },
            format!("{} of the time", share(waited_share)),
            QUIETER,
        ),
        Caveat::ServerHeldUp { role, waited_share, .. } => of(
            MACHINE,
            match setting.is_disturbed {
                true => "other programs held the server's CPU, so no difference is certain",
                false => "other programs held the server's CPU",
            },
            match role.as_str() {
                UNDER_TEST => format!("{} of the time for which it had work", share(waited_share)),
                role => {
                    format!("{role}: {} of the time for which it had work", share(waited_share))
                }
            },
            QUIETER,
        ),
        Caveat::ServerCpuLimit { cpus, throttled_share, .. } => of(
            2,
            "the server's CPU limit held it up",
            cpu_limit(*cpus, *throttled_share),
            "Raise that, or take the figures for those of a server with this limit.",
        ),
        Caveat::LoadCpuLimit { cpus, throttled_share } => of(
            2,
            "the CPU limit of dnslab itself held the load up, so the server may answer more",
            cpu_limit(*cpus, *throttled_share),
            "Raise that, or run dnslab outside of this control group.",
        ),
        Caveat::OtherProcesses { cpus } => of(
            4,
            "other processes used this machine",
            format!("{} CPUs", number::three_digits(*cpus)),
            QUIETER,
        ),
        Caveat::AnswersWaitForNextQuery { share: waited, .. } => of(
            2,
            "answers waited for the next query of their connection (Nagle's algorithm in the server, \
             delayed acknowledgements in the client)",
            format!("{} of them", share(waited)),
            &format!(
                "{} shows the latency without that.",
                Remedy::set("load.quickack", "open-loop")
            ),
        ),
        Caveat::FirstAnswersWait { share: waited, .. } => of(
            4,
            "the first answer of new connections came after 40 ms (Nagle's algorithm in the server, \
             delayed acknowledgements in the client)",
            format!("{} of all answers", share(waited)),
            &format!("{} shows the latency without that.", Remedy::set("load.quickack", "always")),
        ),
        Caveat::GeneratorLimited { .. } => of(
            2,
            "the load generator was the bottleneck: the server answers at least this rate, which is compared \
             with none",
            String::new(),
            &setting.more_workers(),
        ),
        Caveat::RateMissed { intended_qps, offered_qps } => of(
            4,
            "fewer queries were sent than asked for",
            format!("{} of {}", number::qps(*offered_qps), number::qps(*intended_qps)),
            &setting.lower_rate(*offered_qps),
        ),
        Caveat::SendLag { .. } => of(
            5,
            "queries left later than they were due, which is in the latency",
            String::new(),
            &setting.later_than_due(),
        ),
        Caveat::Pacing { .. } => of(
            6,
            "the rate was met on average but came in bursts",
            String::new(),
            &setting.later_than_due(),
        ),
        Caveat::ClientsNotConnected { open, clients } => of(
            4,
            "not all clients were connected at the start",
            format!("{} of {}", number::count(*open), number::count(*clients)),
            &format!(
                "Lengthen the warm-up: {}.",
                Remedy::set("load.warm_up", format!("{}ms", longer_ms(setting.record)))
            ),
        ),
        Caveat::ConnectionsHeld { share: held } => of(
            5,
            "connections waited for their turn in the load generator",
            format!("{} of the time", share(held)),
            &setting.more_workers(),
        ),
        Caveat::GeneratorDrops { datagrams } => of(
            3,
            "full sockets of the load generator dropped answers",
            number::count(*datagrams),
            "Raise `net.core.rmem_max`, or ask with fewer queries at a time.",
        ),
        // Most servers have the system's default, and those that ask for more get `rmem_max` at most.
        Caveat::HostDrops { datagrams, of_server } => of(
            3,
            if 2 * of_server > *datagrams {
                "the server's socket buffer was full, and dropped queries"
            } else {
                "full sockets on this host dropped datagrams"
            },
            number::count(*datagrams),
            "Ask with fewer queries at a time, or raise `net.core.rmem_default` and `net.core.rmem_max`.",
        ),
        Caveat::DnstapDropped { share: dropped } => of(
            3,
            "the server dropped dnstap messages, so logging all of them costs more",
            share(dropped),
            "Ask for a lower rate, or put the results on a faster disk.",
        ),
        Caveat::Truncated { share: truncated, then: AfterTruncation::Counted } => of(
            4,
            "answers were truncated, and nobody asked again over TCP",
            share(truncated),
            &format!("{} does so.", Remedy::set("load.truncated", "ask-over-tcp")),
        ),
        // They did what real clients do.
        Caveat::Truncated {
            then: AfterTruncation::AskedOverTcp { truncated_share: 0.0 }, ..
        } => None,
        Caveat::Truncated { then: AfterTruncation::AskedOverTcp { truncated_share }, .. } => of(
            1,
            "answers were truncated over UDP, and over TCP too, where they were asked again",
            format!("{} of those over TCP", share(truncated_share)),
            "No answer over TCP needs to be: `dig +tcp` shows one.",
        ),
        Caveat::Truncated { share: truncated, then: AfterTruncation::WasOverConnection } => of(
            1,
            "answers were truncated, though they came over a connection",
            share(truncated),
            "No such answer needs to be: `dig +tcp` shows one.",
        ),
        Caveat::EmptyAnswers { share: empty } => of(
            5,
            "answers had no record (NODATA, or referrals)",
            share(empty),
            "Names that lack a type, as many lack AAAA, are answered so; if these should have it, ask their own server.",
        ),
        Caveat::Unsteady { .. } => of(
            5,
            "the rate broke down for a while",
            String::new(),
            "The report shows when; measure longer.",
        ),
        Caveat::StrayAnswers { late, .. } if *late > 0 => of(
            6,
            "answers came after the time-out",
            number::count(*late),
            "Raise `load.timeout` if they matter.",
        ),
        Caveat::LinksNotPlayed { .. } => of(
            3,
            "there were no network namespaces, so the links had no delay and no loss",
            String::new(),
            "Run as root; do not compare UDP with TCP here.",
        ),
        Caveat::ServerNotWatched { reason } => of(
            4,
            "the server's CPU and memory were not watched",
            reason.trim_end_matches('.').to_owned(),
            "Run on its machine, as root or as its owner.",
        ),
        Caveat::MemoryKept => of(
            4,
            "the server kept memory that earlier loads had needed, so what these variants need is not known",
            String::new(),
            "Restart it, and measure such a variant alone.",
        ),
        Caveat::Imported { generator, lost_share } => of(
            2,
            "the figures are those of another load generator, its latencies those of answered queries alone",
            match *lost_share > 0.0 {
                true => format!("{generator}; {} were lost", share(lost_share)),
                false => generator.clone(),
            },
            "CPU, memory and send lag are not known. Compare these runs with each other alone.",
        ),
        Caveat::CertificateNotVerified => of(
            6,
            "the server's certificate was not verified, and what that costs is in no figure",
            String::new(),
            match setting.is_running() {
                true => {
                    "Name its authority with `server.authority`, in the place of `server.insecure`."
                }
                false => "Leave `server.insecure` away.",
            },
        ),
        Caveat::ClosedLoop { .. }
        | Caveat::WindowNotFull { .. }
        | Caveat::BatchDelay { .. }
        | Caveat::StrayAnswers { .. }
        | Caveat::TurnBacklog { .. }
        | Caveat::CommonLoadInvalid { .. } => None,
    }
}
