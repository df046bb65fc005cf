//! What to know before one believes the figures.

use dnslab_measure::{
    Caveat, LimitKind, LoadMode, RunRecord, RunStatus, Session, Summary, VariantCaveat,
    VariantSummary,
};

use crate::number;
use crate::variants::{asks_one_by_one, listed};

/// One doubt about some variants.
struct Doubt<'a> {
    /// The gravest has 0.
    rank: u8,
    variants: Vec<&'a str>,
    /// In how many of the valid runs of those variants, and how many these are.
    runs: (u32, u32),
    said: Said,
}

/// A doubt in words.
struct Said {
    /// What is wrong, without a full stop; doubts that say the same are one.
    what: &'static str,
    /// Its figure.
    figure: String,
    /// What to do.
    action: String,
}

/// The notes, the gravest first, without what stands before them.
pub(super) fn notes(session: &Session, summary: &Summary, records: &[RunRecord]) -> Vec<String> {
    let mut notes: Vec<String> = not_made(session, records).into_iter().collect();
    notes.extend(missing(summary, records));
    let counted = || summary.variants.iter().filter(|variant| variant.valid_runs > 0);
    let mut doubts: Vec<Doubt<'_>> = Vec::new();
    for variant in counted() {
        // Who shares CPUs waits for them.
        let shares = variant.caveats.iter().any(|caveat| caveat.worst == Caveat::SharedCpus);
        let has_chain = variant.chain.len() > 1;
        let is_told = |of: &&VariantCaveat| !(shares && matches!(of.worst, Caveat::Crowded { .. }));
        let caveats = variant.caveats.iter().filter(is_told);
        let caveats =
            caveats.filter_map(|caveat| Some((said(&caveat.worst, has_chain)?, caveat.runs)));
        let limit = of_limit(variant).map(|said| (said, variant.valid_runs));
        for ((rank, said), runs) in caveats.chain(limit) {
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
    notes.extend(doubts.iter().map(|doubt| text(doubt, counted().count())));
    notes
}

/// What the limit of a closed loop means for its rate, where it was not the server's.
fn of_limit(variant: &VariantSummary) -> Option<(u8, Said)> {
    let is_closed = matches!(variant.mode, Some(LoadMode::Closed { .. }));
    let is_window = variant.limits.first().is_some_and(|limit| limit.kind == LimitKind::Window);
    (is_closed && is_window && !asks_one_by_one(variant)).then(|| {
        let said = Said {
            what: "neither the server nor the load was busy, so more clients get a higher rate",
            figure: String::new(),
            action: "Ask with more: `--set load.clients=1000`.".to_owned(),
        };
        (3, said)
    })
}

/// A doubt as a note.
fn text(doubt: &Doubt<'_>, all: usize) -> String {
    let Said { what, figure, action } = &doubt.said;
    let (found, runs) = doubt.runs;
    let of_runs = if found < runs { format!("in {found} of {runs} runs") } else { String::new() };
    let asides: Vec<&str> =
        [figure, &of_runs].into_iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
    let figure =
        if asides.is_empty() { String::new() } else { format!(" ({})", asides.join("; ")) };
    let of = match doubt.variants.len() {
        named if named == all => String::new(),
        _ => format!("{}: ", listed(&doubt.variants)),
    };
    format!("{of}{what}{figure}. {action}")
}

/// That runs of the plan are missing.
fn not_made(session: &Session, records: &[RunRecord]) -> Option<String> {
    let (made, planned) = (records.len(), session.plan.len());
    let text = "`dnslab run --resume` with the results directory makes the others.";
    (made < planned).then(|| format!("{made} of {planned} runs were made. {text}"))
}

/// Variants that were not run, and runs that do not count, with the first reason.
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

/// Why a run does not count.
fn reason(record: &RunRecord) -> Option<&str> {
    match &record.status {
        RunStatus::Valid => None,
        RunStatus::Invalid { reason } | RunStatus::Failed { reason, .. } => {
            Some(first_line(reason))
        }
    }
}

/// The first line of a text, without its full stop.
fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_end_matches('.')
}

/// A caveat in few words, and how grave it is; `None` for what the screen says elsewhere, or what only
/// the page tells.
#[expect(clippy::too_many_lines, reason = "one row for each caveat")]
fn said(caveat: &Caveat, has_chain: bool) -> Option<(u8, Said)> {
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
        Caveat::BadSignatures { example, .. } => of(
            0,
            "signatures (TSIG) were refused or missing",
            example.clone(),
            "Give server and load the same key, and look at both clocks.",
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
            match has_chain {
                false => "Give them different ones: `--set server.cpus=0 --set load.cpus=1`.",
                true => {
                    "Each server of a chain wants a CPU of its own beside that of the load: \
                     `server.cpus`, `upstream.cpus`, `load.cpus`."
                }
            },
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
            "the load generator was at its limit, so the server may answer more",
            String::new(),
            "Add a worker with `--set load.workers=2`, or give the server fewer CPUs.",
        ),
        Caveat::RateMissed { intended_qps, offered_qps } => of(
            3,
            "fewer queries were sent than asked for",
            format!("{} of {}", number::qps(*offered_qps), number::qps(*intended_qps)),
            "Lower the rate with `--set load.rate=N`, or add a worker with `--set load.workers=2`.",
        ),
        Caveat::SendLag { .. } => of(
            4,
            "queries left later than they were due, which is in the latency",
            String::new(),
            "Lower the rate with `--set load.rate=N`, or add a worker with `--set load.workers=2`.",
        ),
        Caveat::Pacing { .. } => of(
            5,
            "the rate was met on average but came in bursts",
            String::new(),
            "Lower the rate with `--set load.rate=N`, or add a worker with `--set load.workers=2`.",
        ),
        Caveat::ClientsNotConnected { open, clients } => of(
            3,
            "not all clients were connected at the start",
            format!("{} of {}", number::count(*open), number::count(*clients)),
            "Lengthen the warm-up: `--set load.warm_up=5s`.",
        ),
        Caveat::ConnectionsHeld { share: held } => of(
            4,
            "connections waited for their turn in the load generator",
            format!("{} of the time", share(held)),
            "Add a worker with `--set load.workers=2`.",
        ),
        Caveat::GeneratorDrops { datagrams } | Caveat::HostDrops { datagrams, .. } => of(
            2,
            "full sockets on this host dropped datagrams",
            number::count(*datagrams),
            "Raise `net.core.rmem_max`, or ask with fewer queries at a time.",
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
        Caveat::CertificateNotVerified => of(
            5,
            "the server's certificate was not verified, and what that costs is in no figure",
            String::new(),
            "Name its authority with `server.authority`.",
        ),
        Caveat::ClosedLoop { .. }
        | Caveat::WindowNotFull { .. }
        | Caveat::Horizon { .. }
        | Caveat::StrayAnswers { .. }
        | Caveat::Other { .. } => None,
    }
}
