//! What to know before one believes the figures.

use dnslab_measure::{
    BottleneckKind, Caveat, LoadMode, RunRecord, RunStatus, Session, Summary, VariantCaveat,
    VariantSummary,
};

use crate::number;
use crate::variants::{asks_one_by_one, listed};
use crate::words::invalid::{http_statuses, invalid_text};

struct Doubt<'a> {
    rank: u8,
    variants: Vec<&'a str>,
    /// In how many of the valid runs of those variants, and how many these are.
    runs: (u32, u32),
    said: Said,
}

pub(crate) struct Note {
    pub(crate) text: String,
    /// The same in fewer words, where there is little room.
    pub(super) short: String,
}

impl Note {
    /// A note whose parts are divided by semicolons, the first of which says what is wrong.
    fn brief(text: String) -> Self {
        let short = text.split_once("; ").map(|(first, _)| format!("{first}."));
        Self { short: short.unwrap_or_else(|| text.clone()), text }
    }
}

#[derive(Clone, Copy)]
struct Setting {
    workers: u32,
    /// CPUs that these are pinned to; 0 for none.
    load_cpus: usize,
    clients: u32,
    warm_up_s: f64,
    /// Offered rate of the load or of the common load, queries per second.
    rate_qps: Option<f64>,
    /// It is that of the common load.
    is_common: bool,
    /// The server is not started by dnslab, so it cannot be told where to run.
    is_running: bool,
}

impl Setting {
    fn of(session: &Session, record: &RunRecord) -> Self {
        let own = match record.load.mode {
            LoadMode::Open { rate_qps, .. } => Some(rate_qps),
            LoadMode::Closed { .. } => None,
        };
        Self {
            workers: record.load.workers,
            load_cpus: record.load.cpus.len(),
            clients: record.load.clients,
            warm_up_s: record.load.warm_up_ns as f64 / 1e9,
            rate_qps: own.or(session.common_rate_qps),
            is_common: own.is_none(),
            is_running: record.server.kind == "external",
        }
    }

    fn more_workers(self) -> String {
        if self.load_cpus > 0 && self.workers as usize >= self.load_cpus {
            return "Give the load more CPUs (`load.cpus`), on a machine that has them".to_owned();
        }
        format!("Add a worker with `--set load.workers={}`", self.workers + 1)
    }

    fn lower_rate(self) -> String {
        let key = if self.is_common { "common.rate" } else { "load.rate" };
        let rate = self.rate_qps.map_or_else(|| "N".to_owned(), |qps| format!("{:.0}", qps / 2.0));
        format!("Lower the rate with `--set {key}={rate}`.")
    }

    fn other_cpus(self, has_chain: bool) -> &'static str {
        match (self.is_running, has_chain) {
            (true, _) => "Give the load CPUs that the server does not use: `--set load.cpus=1`.",
            (false, false) => "Give them different ones: `--set server.cpus=0 --set load.cpus=1`.",
            (false, true) => {
                "Each server of a chain wants a CPU of its own beside that of the load: `server.cpus`, \
                 `upstream.cpus`, `load.cpus`."
            }
        }
    }
}

struct Said {
    /// What is wrong, without a full stop; doubts that say the same are one.
    what: &'static str,
    figure: String,
    action: String,
}

/// The notes, the gravest first, without what stands before them.
pub(super) fn notes(session: &Session, summary: &Summary, records: &[RunRecord]) -> Vec<Note> {
    let mut notes: Vec<Note> = not_made(session, records).into_iter().map(Note::brief).collect();
    notes.extend(missing(summary, records).into_iter().map(Note::brief));
    let all = summary.variants.iter().filter(|variant| variant.valid_runs > 0).count();
    let doubts = doubts(session, summary, records, Wanted::All);
    notes.extend(doubts.iter().map(|doubt| text(doubt, Some(all))));
    notes
}

/// What the notes of a search say: only of the machine and of how the server was watched. Where rates are
/// tried until one is not kept, losses are no doubt; and its runs are no variants, so they are not named.
pub(super) fn of_search(session: &Session, summary: &Summary, records: &[RunRecord]) -> Vec<Note> {
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
                    | Caveat::OtherProcesses { .. }
                    | Caveat::ServerNotWatched { .. }
                    | Caveat::CertificateNotVerified
            )
    }
}

fn doubts<'a>(
    session: &Session,
    summary: &'a Summary,
    records: &[RunRecord],
    wanted: Wanted,
) -> Vec<Doubt<'a>> {
    let counted = || summary.variants.iter().filter(|variant| variant.valid_runs > 0);
    let mut doubts: Vec<Doubt<'_>> = Vec::new();
    for variant in counted() {
        // Who shares CPUs waits for them.
        let shares = variant.caveats.iter().any(|caveat| caveat.worst == Caveat::SharedCpus);
        let has_chain = variant.chain.len() > 1;
        let Some(record) = records.iter().find(|record| record.variant == variant.name) else {
            continue;
        };
        let setting = Setting::of(session, record);
        // Whether it answers more is told by the bottleneck, where the server was at its end as well.
        let is_held_back = variant
            .bottlenecks
            .first()
            .is_some_and(|first| first.kind == BottleneckKind::Generator);
        let is_told = |of: &&VariantCaveat| match of.worst {
            Caveat::Crowded { .. } if shares => false,
            Caveat::GeneratorLimited { .. } if !is_held_back => false,
            _ => wanted.has(&of.worst),
        };
        let caveats = variant.caveats.iter().filter(is_told);
        let caveats = caveats
            .filter_map(|caveat| Some((said(&caveat.worst, setting, has_chain)?, caveat.runs)));
        // Who cannot carry these clients gets no more of them.
        let is_full = |of: &VariantCaveat| {
            matches!(of.worst, Caveat::Lost { .. } | Caveat::ConnectionsFailed { .. })
        };
        let bottleneck = of_bottleneck(variant, setting)
            .filter(|_| wanted == Wanted::All && !variant.caveats.iter().any(is_full));
        let bottleneck = bottleneck.map(|said| (said, variant.valid_runs));
        for ((rank, said), runs) in caveats.chain(bottleneck) {
            match doubts.iter_mut().find(|known| known.said.what == said.what) {
                Some(known) if known.variants.contains(&variant.name.as_str()) => {}
                Some(known) => {
                    known.variants.push(&variant.name);
                    known.runs.0 += runs;
                    known.runs.1 += variant.valid_runs;
                }
                None => {
                    let runs = (runs, variant.valid_runs);
                    doubts.push(Doubt { rank, variants: vec![&variant.name], runs, said });
                }
            }
        }
    }
    doubts.sort_by_key(|doubt| doubt.rank);
    doubts
}

/// What the bottleneck of a closed loop means for its rate, where it was not the server's.
fn of_bottleneck(variant: &VariantSummary, setting: Setting) -> Option<(u8, Said)> {
    let is_closed = matches!(variant.mode, Some(LoadMode::Closed { .. }));
    let is_window =
        variant.bottlenecks.first().is_some_and(|first| first.kind == BottleneckKind::Window);
    (is_closed && is_window && !asks_one_by_one(variant)).then(|| {
        let said = Said {
            what: "neither the server nor the load was busy, so more clients get a higher rate",
            figure: String::new(),
            action: format!("Ask with more: `--set load.clients={}`.", setting.clients * 10),
        };
        (3, said)
    })
}

/// Variants beyond so many are counted in a short note.
const FEW: usize = 2;

/// A doubt as a note. A doubt about all variants, which are `all`, names none; without `all`, none is
/// named in any case.
fn text(doubt: &Doubt<'_>, all: Option<usize>) -> Note {
    let Said { what, figure, action } = &doubt.said;
    let (found, runs) = doubt.runs;
    let of_runs = if found < runs { format!("in {found} of {runs} runs") } else { String::new() };
    let asides: Vec<&str> =
        [figure, &of_runs].into_iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
    let figure =
        if asides.is_empty() { String::new() } else { format!(" ({})", asides.join("; ")) };
    let (of, of_short) = match doubt.variants.len() {
        named if all.is_none_or(|all| named == all) => (String::new(), String::new()),
        named => {
            let of = format!("{}: ", listed(&doubt.variants));
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
    let text = "`dnslab run --resume` with the results directory makes the others.";
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
            let counted = format!("{} of {all} runs count: {reason}.", variant.valid_runs);
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

/// A caveat in few words, and how grave it is; `None` for what the screen says elsewhere, or what only
/// the page tells.
fn said(caveat: &Caveat, setting: Setting, has_chain: bool) -> Option<(u8, Said)> {
    const QUIETER: &str = "End what else runs on this machine, and measure again.";
    let of = |rank, what, figure: String, action: &str| {
        Some((rank, Said { what, figure, action: action.to_owned() }))
    };
    let share = |share: &f64| number::share(*share);
    match caveat {
        Caveat::WrongAnswers { example, .. } => of(
            0,
            "some answers were not the expected ones",
            example.clone(),
            "Correct the zone, or what `expect` asks for.",
        ),
        Caveat::MalformedAnswers { example, .. } => of(
            0,
            "some answers did not hold what their header promised",
            example.clone(),
            "Look at the answer with `dig`: the server makes it wrongly, or something on the path.",
        ),
        Caveat::BadSignatures { example, .. } => of(
            0,
            "signatures (TSIG) were refused or missing",
            example.clone(),
            "Give server and load the same key, and look at both clocks.",
        ),
        Caveat::HttpErrors { statuses } => of(
            0,
            "queries were refused",
            http_statuses(statuses),
            "Look at the server's log from that time on, and at its bounds on requests.",
        ),
        Caveat::Lost { share: lost } => of(
            1,
            "queries were lost",
            share(lost),
            "Each counts in the latency with its time-out. Ask for a lower rate, or fewer at a time.",
        ),
        Caveat::ConnectionsFailed { failed, lost, example, .. } => of(
            1,
            "connections failed or were lost",
            format!("{} and {}; {example}", number::count(*failed), number::count(*lost)),
            "Look at the server's bound on connections, or ask with fewer `load.clients`.",
        ),
        Caveat::CountsDiffer { sent, counted } => of(
            1,
            "the server counted other queries than were sent",
            format!("{} and {}", number::count(*counted), number::count(*sent)),
            "See in the report how the queries ended, and who else asks this server.",
        ),
        Caveat::CutShort { .. } => of(
            1,
            "a run was ended before its time",
            String::new(),
            "`dnslab run --resume` with the results directory makes it again.",
        ),
        Caveat::SharedCpus => of(
            2,
            "server and load shared a CPU, so each took time from the other",
            String::new(),
            setting.other_cpus(has_chain),
        ),
        Caveat::SharedCore { .. } => of(
            2,
            "server and load were on two threads of one core, which slow each other",
            String::new(),
            "Name CPUs of different cores with `server.cpus` and `load.cpus`.",
        ),
        Caveat::Steal { share: stolen } => of(
            2,
            "the hypervisor kept time from this machine",
            share(stolen),
            "Measure at a quieter hour, or on a machine of your own.",
        ),
        Caveat::Crowded { waited_share } => of(
            2,
            "other programs used the CPUs of the load generator",
            format!("{} of the time", share(waited_share)),
            QUIETER,
        ),
        Caveat::OtherProcesses { cpus } => of(
            3,
            "other processes used this machine",
            format!("{} CPUs", number::three_digits(*cpus)),
            QUIETER,
        ),
        Caveat::AnswersWaitForNextQuery { share: waited, .. } => of(
            1,
            "answers waited for the next query of their connection (Nagle's algorithm in the server, \
             delayed acknowledgements in the client)",
            format!("{} of them", share(waited)),
            "`--set load.quickack=open-loop` shows the latency without that.",
        ),
        Caveat::FirstAnswersWait { share: waited, .. } => of(
            3,
            "the first answer of new connections came after 40 ms (Nagle's algorithm in the server, \
             delayed acknowledgements in the client)",
            format!("{} of all answers", share(waited)),
            "`--set load.quickack=always` shows the latency without that.",
        ),
        Caveat::GeneratorLimited { .. } => of(
            1,
            "the load generator was the bottleneck, so the server may answer more",
            String::new(),
            &(setting.more_workers() + "."),
        ),
        Caveat::RateMissed { intended_qps, offered_qps } => of(
            3,
            "fewer queries were sent than asked for",
            format!("{} of {}", number::qps(*offered_qps), number::qps(*intended_qps)),
            &setting.lower_rate(),
        ),
        Caveat::SendLag { .. } => of(
            4,
            "queries left later than they were due, which is in the latency",
            String::new(),
            &setting.lower_rate(),
        ),
        Caveat::Pacing { .. } => of(
            5,
            "the rate was met on average but came in bursts",
            String::new(),
            &setting.lower_rate(),
        ),
        Caveat::ClientsNotConnected { open, clients } => of(
            3,
            "not all clients were connected at the start",
            format!("{} of {}", number::count(*open), number::count(*clients)),
            &format!(
                "Lengthen the warm-up: `--set load.warm_up={}s`.",
                (2.0 * setting.warm_up_s).max(1.0)
            ),
        ),
        Caveat::ConnectionsHeld { share: held } => of(
            4,
            "connections waited for their turn in the load generator",
            format!("{} of the time", share(held)),
            &(setting.more_workers() + "."),
        ),
        Caveat::GeneratorDrops { datagrams } => of(
            2,
            "full sockets of the load generator dropped answers",
            number::count(*datagrams),
            "Raise `net.core.rmem_max`, or ask with fewer queries at a time.",
        ),
        // Most servers have the system's default, and those that ask for more get `rmem_max` at most.
        Caveat::HostDrops { datagrams, of_server } => of(
            2,
            if 2 * of_server > *datagrams {
                "the server's socket buffer was full, and dropped queries"
            } else {
                "full sockets on this host dropped datagrams"
            },
            number::count(*datagrams),
            "Ask with fewer queries at a time, or raise `net.core.rmem_default` and `net.core.rmem_max`.",
        ),
        Caveat::DnstapDropped { share: dropped } => of(
            2,
            "the server dropped dnstap messages, so logging all of them costs more",
            share(dropped),
            "Ask for a lower rate, or put the results on a faster disk.",
        ),
        Caveat::Truncated { share: truncated } => of(
            3,
            "answers were truncated, and nobody asked again over TCP",
            share(truncated),
            "`--set load.truncated=ask-over-tcp` does so.",
        ),
        Caveat::EmptyAnswers { share: empty } => of(
            4,
            "answers had no record",
            share(empty),
            "Make sure that this server knows these names.",
        ),
        Caveat::Unsteady { .. } => of(
            4,
            "the rate broke down for a while",
            String::new(),
            "The report shows when; measure longer.",
        ),
        Caveat::StrayAnswers { late, .. } if *late > 0 => of(
            5,
            "answers came after the time-out",
            number::count(*late),
            "Raise `load.timeout` if they matter.",
        ),
        Caveat::LinksNotPlayed { .. } => of(
            2,
            "there were no network namespaces, so the links had no delay and no loss",
            String::new(),
            "Run as root; do not compare UDP with TCP here.",
        ),
        Caveat::ServerNotWatched { reason } => of(
            3,
            "the server's CPU and memory were not watched",
            reason.trim_end_matches('.').to_owned(),
            "Run on its machine, as root or as its owner.",
        ),
        Caveat::Imported { generator, lost_share } => of(
            1,
            "the figures are those of another load generator, its latencies those of answered queries alone",
            match *lost_share > 0.0 {
                true => format!("{generator}; {} were lost", share(lost_share)),
                false => generator.clone(),
            },
            "CPU, memory and send lag are not known. Compare these runs with each other alone.",
        ),
        Caveat::CertificateNotVerified => of(
            5,
            "the server's certificate was not verified, and what that costs is in no figure",
            String::new(),
            "Name its authority with `server.authority`.",
        ),
        Caveat::ClosedLoop { .. }
        | Caveat::WindowNotFull { .. }
        | Caveat::BatchDelay { .. }
        | Caveat::StrayAnswers { .. }
        | Caveat::TurnBacklog { .. }
        | Caveat::CommonLoadInvalid { .. }
        | Caveat::Other { .. } => None,
    }
}
