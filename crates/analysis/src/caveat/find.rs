//! The doubts that follow from the figures of a run.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::net::SocketAddr;

use dnslab_figures::PacingWindow;
use dnslab_record::{
    AfterTruncation, Caveat, ChainPart, CpuLimit, LoadFacts, LoadHostSeries, LoadMode, Measured,
    Observation, OpenPace, ResourceSeries, Rise, ServerFacts, WorkerFacts, servers_cpus,
};
use dnslab_traffic::Pace;
use dnslab_wire::Transport;

use super::dnstap::dnstap_dropped;
use super::waiting::{answers_wait, first_answers_wait};
use crate::agreement::Agreement;
use crate::bottleneck::{
    CONNECTIONS_HELD, GENERATOR_BUSY, RATE_MET, ServerUse, WorkerUse, busiest, most_held,
    others_on_load_cpus, share_with_load,
};

/// A stolen share of the time above this can move a figure by as much as a difference that matters.
const STEAL: f64 = 0.01;

/// Share of the measured window for which a worker may wait for its CPU because of others. On a quiet machine it is
/// well below 1 %: a worker has its CPU for itself, dnslab's other threads and the kernel's own.
const CROWDED: f64 = 0.05;

/// How much of a CPU of the load others must use to be blamed for a wait of [`CROWDED`]. It is less than that: the kernel
/// counts the use of a CPU by ticks, which miss some percent of a load that sleeps often.
const OTHERS_ON_LOAD: f64 = 0.02;

/// Of the time for which a server could run, the share that it may wait for a CPU, and the share of its CPUs that
/// others may use, without a doubt: others must have used more, for threads of a server wait for each other, too.
const SERVER_HELD_UP: f64 = 0.05;

/// From this share of the periods of a CPU quota on in which it was used up, the wait for the next period reaches
/// into the 0.99 quantile of the latency.
const THROTTLED: f64 = 0.01;

/// Share of CPUs in common that load and chain may use together without standing in each other's way.
const SHARED_USE: f64 = 0.5;

/// CPUs that other processes may use. The sampler and the live view take some hundredths.
const OTHERS: f64 = 0.1;

/// A send lag above this share of the latency is a visible part of it, in the median as well as in
/// the 0.99 quantile.
const SEND_LAG: f64 = 0.1;

/// Width of the windows in which the pacing of an open loop is judged, nanoseconds.
const PACED_WIDTH_NS: u64 = 10_000_000;

/// Queries that must be due in a window on average to judge it. With fewer, a single query that
/// leaves on the other side of an end of the window is an error of more than 1 %.
const PACED_DUE: f64 = 100.0;

/// Share of the windows that must be within 1 %.
const PACED: f64 = 0.99;

/// Above this share of the queries, datagrams that the host's other sockets dropped are more than
/// an accident of somebody else's.
const HOST_DROPS: f64 = 0.001;

/// A closed loop's window counts as full from this share of it on. Between an answer and the next
/// query of its place lies a part of one round of the worker, which is no service time; more than a
/// tenth of the window is empty for other reasons.
const WINDOW_FULL: f64 = 0.9;

/// Share of a closed loop's window that lost queries may hold until their time-outs, or that may
/// wait for connections and streams.
const HELD: f64 = 0.05;

/// Share of a closed loop's window that is taken to be in the generator's hands where its rounds
/// are not counted, because it never paused.
const IN_HAND: f64 = 0.5;

/// Below this many batch delays, more than a tenth of the median latency is the wait of an answer for the
/// end of its batch, and a closed loop sends the next query by as much later.
const BATCH_DELAYS: u64 = 10;

/// From this share on, lost queries reach into the 0.999 quantile of the latency.
const LOST: f64 = 0.001;

/// From this share on, truncated answers are no single odd name: a real client would ask each of
/// them again over TCP.
const TRUNCATED: f64 = 0.001;

/// Above this share of the answers, those without a record are more than a mix of real queries has
/// by AAAA questions to names without one.
const EMPTY: f64 = 0.1;

/// An interval with less than this share of the median rate is a breakdown, no noise.
const BREAKDOWN: f64 = 0.5;

/// Fewer intervals have no median to speak of.
const LEAST_INTERVALS: usize = 8;

/// With fewer answers in the median interval, the place of each in time decides.
const LEAST_ANSWERS: u64 = 20;

/// How many standard deviations of the count (its square root) an interval of a Poisson process has
/// to be below the median: chance does that in one interval of 30,000.
const BEYOND_CHANCE: f64 = 4.0;

/// Fewer intervals show no trend.
const TREND_INTERVALS: usize = 20;

/// Standard deviations of Mann's statistic that chance gives in one run of a thousand, to either side.
const TREND: f64 = 3.29;

/// A trend by less than this share of the rate is none that matters.
const TREND_MATTERS: f64 = 0.05;

/// Above this share of the queries, two counts that differ do so for a reason that is to be found:
/// what asks a server besides (probes, its own readings) is some queries in a run.
const COUNTS: f64 = 0.01;

/// The doubts that follow from the figures of a load alone, in the order of [`Caveat`]: from a limited generator to
/// dropped dnstap messages. The others (failed connections, wrong answers, an unwatched server, ...) are known only to
/// those who ran it, who add them. `host_cpus` is the number of CPUs of the machine that made the load.
#[must_use]
pub fn caveats(run: &Observation<'_>, host_cpus: usize) -> Vec<Caveat> {
    let servers = ServerUse::of(run);
    let found = [
        generator_limited(run),
        shared_cpus(run, &servers, host_cpus),
        shared_core(run),
        closed_loop(run),
        window_not_full(run),
        clients_not_connected(run),
        answers_wait(run),
        connections_held(run),
        rate_missed(run),
        send_lag(run),
        pacing(run),
        batch_delay(run),
        first_answers_wait(run),
        generator_drops(run),
        host_drops(run),
        steal(run, host_cpus),
        crowded(run),
        server_held_up(&servers),
        server_cpu_limit(&servers),
        load_cpu_limit(run),
        other_processes(run),
        lost(run),
        http_errors(run),
        truncated(run),
        empty_answers(run),
        unsteady(run),
        trend(run),
        stray_answers(run),
        counts_differ(run),
        dnstap_dropped(run),
    ];
    found.into_iter().flatten().collect()
}

fn generator_limited(run: &Observation<'_>) -> Option<Caveat> {
    let busy_share = busiest(run);
    (busy_share >= GENERATOR_BUSY).then_some(Caveat::GeneratorLimited { busy_share })
}

/// Load and server had a CPU in common; or load and a server behind it, and together they used at
/// least half of it. Below that hardly anybody waits for the other: one client that asks one
/// query after another does not keep a CPU from its upstream.
fn shared_cpus(run: &Observation<'_>, servers: &[ServerUse], host_cpus: usize) -> Option<Caveat> {
    let Observation { load, server, watched, .. } = *run;
    let used = || share_with_load(servers, &WorkerUse::of_all(run));
    let is_idle = !shares_cpus(load, server, &[], host_cpus)
        && watched.chain.iter().all(|part| !part.server.cpus.is_empty())
        && used().is_some_and(|share| share < SHARED_USE);
    (shares_cpus(load, server, &watched.chain, host_cpus) && !is_idle).then_some(Caveat::SharedCpus)
}

/// The load, or a server behind the one under test, had the other thread of a core of that server.
fn shared_core(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { load, server, watched, .. } = *run;
    if server.is_elsewhere() {
        return None;
    }
    let behind = watched.chain.iter().flat_map(|part| part.server.cpus.iter());
    let others: BTreeSet<usize> = load.cpus.iter().chain(behind).copied().collect();
    let cpus: Vec<usize> =
        server.core_siblings.iter().copied().filter(|cpu| others.contains(cpu)).collect();
    (!cpus.is_empty()).then_some(Caveat::SharedCore { cpus })
}

fn closed_loop(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { load, .. } = *run;
    load.window().map(|window| Caveat::ClosedLoop { window })
}

/// Less than nine tenths of a closed loop's window were in flight and then answered (Little's
/// law), and the rest is not the generator's own work between an answer and the next query of
/// its place: lost queries held more than a twentieth of it, or more is missing than can be in
/// the generator's hands, and waited for a connection or a stream.
fn window_not_full(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { load, measured, .. } = *run;
    let window = load.window()?;
    // Without an answer, nothing that was in flight was answered.
    let service_ns = measured.service_time.mean_ns().unwrap_or(0.0);
    let in_flight = measured.answered_qps() * service_ns / 1e9;
    let in_hand = in_hand(measured).unwrap_or(IN_HAND * window as f64);
    let waited = window as f64 - in_flight - in_hand;
    let lost = measured.counters.outcomes.lost() + measured.warm_up.outcomes.lost();
    let span_ns = measured.window_start_ns + measured.window_ns;
    let held = lost as f64 * load.timeout_ns as f64 / span_ns as f64;
    let is_explained = held <= HELD * window as f64 && waited <= HELD * window as f64;
    let missed = in_flight < WINDOW_FULL * window as f64 && !is_explained;
    missed.then_some(Caveat::WindowNotFull { in_flight, window })
}

/// A client had no connection when the measured window began.
fn clients_not_connected(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { measured, .. } = *run;
    let sum = |count: fn(&WorkerFacts) -> u32| -> u64 {
        measured.workers.iter().map(|worker| u64::from(count(worker))).sum()
    };
    let (open, clients) = (sum(|worker| worker.open_clients), sum(|worker| worker.clients));
    // Without a warm-up the window begins before anybody could connect.
    let had_time = measured.window_start_ns > 0;
    (had_time && open < clients).then_some(Caveat::ClientsNotConnected { open, clients })
}

fn connections_held(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { measured, .. } = *run;
    let share = most_held(&measured.workers);
    (share > CONNECTIONS_HELD).then_some(Caveat::ConnectionsHeld { share })
}

fn rate_missed(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { load, measured, .. } = *run;
    if load.window().is_some() {
        return None;
    }
    let intended_qps = measured.due_qps();
    let offered_qps = measured.offered_qps();
    let missed = offered_qps < RATE_MET * intended_qps;
    missed.then_some(Caveat::RateMissed { intended_qps, offered_qps })
}

/// The queries of an open loop left late by more than a tenth of their latency, in the median or
/// in the 0.99 quantile. A closed loop has no schedule to lag behind.
fn send_lag(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { load, measured, .. } = *run;
    if load.window().is_some() {
        return None;
    }
    let is_visible = |quantile| {
        let latency_ns = measured.latency.quantile_ns(quantile)?;
        let lag_ns = measured.send_lag.quantile_ns(quantile)?;
        Some(lag_ns as f64 > SEND_LAG * latency_ns as f64)
    };
    let is_late = is_visible(0.5)? || is_visible(0.99)?;
    let (p50_ns, p99_ns) =
        (measured.send_lag.quantile_ns(0.5)?, measured.send_lag.quantile_ns(0.99));
    is_late.then_some(Caveat::SendLag { p50_ns, p99_ns })
}

/// More than one window of a hundred was off by more than 1 %, in windows of 10 ms or, where too
/// few queries are due in those, in the next wider ones. A rate that was not reached at all is
/// said already.
fn pacing(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { measured, .. } = *run;
    if rate_missed(run).is_some() {
        return None;
    }
    let wide_enough = |window: &&PacingWindow| {
        let has_due = window.mean_due().is_some_and(|due| due >= PACED_DUE);
        window.width_ns >= PACED_WIDTH_NS && has_due
    };
    let widths = measured.pacing.as_ref()?.windows.iter().filter(wide_enough);
    let window = widths.min_by_key(|window| window.width_ns)?;
    let share_within = window.share_within_1_percent()?;
    let PacingWindow { width_ns, p99_error, .. } = *window;
    (share_within < PACED).then_some(Caveat::Pacing { width_ns, share_within, p99_error })
}

/// The median latency is below ten times what the batching of sends and receives added to an answer.
fn batch_delay(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { measured, .. } = *run;
    let added = measured.workers.iter().map(WorkerFacts::batching_ns);
    let batch_delay_ns = added.fold(0.0, f64::max) as u64;
    let p50_ns = measured.latency.quantile_ns(0.5)?;
    (p50_ns < BATCH_DELAYS.saturating_mul(batch_delay_ns))
        .then_some(Caveat::BatchDelay { batch_delay_ns, p50_ns })
}

/// The generator's own sockets dropped answers, if only one.
fn generator_drops(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { measured, .. } = *run;
    let datagrams = measured.workers.iter().map(|worker| worker.drops).sum();
    (datagrams > 0).then_some(Caveat::GeneratorDrops { datagrams })
}

/// Sockets of the host that are not the generator's dropped more than 0.1 % as many datagrams as
/// it sent queries. Over TCP there are none of its datagrams to drop. Where the drops of the one server are
/// counted, all others are those of strangers; and where no query was lost, none of them was one of the load.
fn host_drops(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { load, watched, measured, .. } = *run;
    if load.transport.is_none_or(Transport::runs_over_tcp) {
        return None;
    }
    let own: u64 = measured.workers.iter().map(|worker| worker.drops).sum();
    let of_host = measured.network?.udp_receive_buffer.saturating_sub(own);
    // The sockets of a server on another host are not among those of this one.
    let counted = match run.is_apart() {
        true => None,
        false => watched.resources.rise(measured.window(), |at| at.udp_drops),
    };
    let of_server = counted.map_or(0, |dropped| dropped.amount).min(of_host);
    let is_told = counted.is_some() && watched.chain.is_empty();
    let datagrams = if is_told { of_server } else { of_host };
    // A resolver asks its upstream again.
    let may_be_of_load = !watched.chain.is_empty() || measured.counters.outcomes.lost() > 0;
    let any = datagrams as f64 > HOST_DROPS * measured.counters.sent as f64;
    (any && may_be_of_load).then_some(Caveat::HostDrops { datagrams, of_server })
}

/// The hypervisor kept more than 1 % of the time of the CPUs of servers and load in the measured
/// window, if all that it kept was theirs: the machine says how much, and not of which.
fn steal(run: &Observation<'_>, host_cpus: usize) -> Option<Caveat> {
    let (share, host) = run.stolen_share(Some(host_cpus))?;
    (share > STEAL).then(|| Caveat::Steal { share, host: host.to_owned() })
}

/// A worker waits for the other threads of dnslab too, those of loads that take turns with its own for example.
/// So its wait is charged to others only where they used the CPUs of the load, and where no CPU quota made it wait.
fn crowded(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { measured, .. } = *run;
    let waited = measured.workers.iter().map(WorkerFacts::waited_share).fold(0.0, f64::max);
    let others = others_on_load_cpus(run);
    let is_by_others = others.is_none_or(|others| others > OTHERS_ON_LOAD);
    let is_throttled = load_cpu_limit(run).is_some();
    (waited > CROWDED && is_by_others && !is_throttled)
        .then_some(Caveat::Crowded { waited_share: waited })
}

/// A server waited for a CPU for more than 5 % of the time for which it could run, and others used more than
/// 5 % of its CPUs. Of several servers the one that waited most. The wait for the next period of a CPU quota is no
/// wait for others.
fn server_held_up(servers: &[ServerUse]) -> Option<Caveat> {
    let held = servers.iter().filter_map(|server| {
        let waited_share = server.waited_share.filter(|share| *share > SERVER_HELD_UP)?;
        if throttled(server.limit.as_ref()).is_some() {
            return None;
        }
        let others_share = server.cpus_used?.by_others;
        let role = server.role.clone();
        (others_share > SERVER_HELD_UP).then_some(Caveat::ServerHeldUp {
            role,
            waited_share,
            others_share,
        })
    });
    held.max_by(|one, two| one.severity().total_cmp(&two.severity()))
}

/// The CPU quota of a server was used up in more than 1 % of its periods. Of several servers the one where
/// it was in most.
fn server_cpu_limit(servers: &[ServerUse]) -> Option<Caveat> {
    let limited = servers.iter().filter_map(|server| {
        let (cpus, throttled_share) = throttled(server.limit.as_ref())?;
        Some(Caveat::ServerCpuLimit { role: server.role.clone(), cpus, throttled_share })
    });
    limited.max_by(|one, two| one.severity().total_cmp(&two.severity()))
}

/// The CPU quota of dnslab itself was used up in more than 1 % of its periods.
fn load_cpu_limit(run: &Observation<'_>) -> Option<Caveat> {
    let (cpus, throttled_share) = throttled(run.watched.load_cpu_limit.as_ref())?;
    Some(Caveat::LoadCpuLimit { cpus, throttled_share })
}

/// Processes that are neither servers of the chain nor dnslab used more than a tenth of a CPU in
/// the measured window.
fn other_processes(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { server, watched, .. } = *run;
    let beside_load = watched.load_hosts.iter().filter_map(|LoadHostSeries { host, resources }| {
        Some((beside_load(run, resources)?, host.as_str()))
    });
    // The samples of one machine with another's process have the use by that process alone.
    let beside_servers = match !watched.load_hosts.is_empty() && !run.is_apart() {
        true => None,
        false => beside_servers(run).map(|cpus| (cpus, server.host.as_str())),
    };
    let most = beside_load.chain(beside_servers).max_by(|one, other| one.0.total_cmp(&other.0));
    let (cpus, host) = most.filter(|(cpus, _)| *cpus > OTHERS)?;
    Some(Caveat::OtherProcesses { cpus, host: host.to_owned() })
}

/// How many CPUs processes used on the host of the load that are neither dnslab, with all that it has started, nor a
/// server there.
fn beside_load(run: &Observation<'_>, load_host: &ResourceSeries) -> Option<f64> {
    let window = run.measured.window();
    let used = load_host.rise(window, |at| at.machine_ns)?;
    let own = load_host.rise(window, |at| at.cpu_ns)?.amount;
    let server_ns = match run.is_apart() {
        true => 0,
        false => run.watched.resources.rise(window, |at| at.cpu_ns)?.amount,
    };
    let known_ns = own + server_ns + interrupts_ns(run, load_host)?;
    Some(Rise { amount: used.amount.saturating_sub(known_ns), ..used }.cpus())
}

/// Interrupts that a kernel without an account of their time charges to whoever runs, or to nobody: those of a card are
/// of no process.
fn interrupts_ns(run: &Observation<'_>, machine: &ResourceSeries) -> Option<u64> {
    match machine.irq_apart {
        Some(true) => Some(0),
        _ => Some(machine.rise(run.measured.window(), |at| at.irq_ns)?.amount),
    }
}

/// How many CPUs processes used on the host of the servers that are neither those servers nor dnslab.
fn beside_servers(run: &Observation<'_>) -> Option<f64> {
    let Observation { watched, measured, .. } = *run;
    let window = measured.window();
    let used = run.watched.resources.rise(window, |at| at.machine_ns)?;
    let behind = watched.chain.iter().map(|part| &part.resources);
    let servers = std::iter::once(&run.watched.resources).chain(behind);
    let cpu_ns = |series: &ResourceSeries| Some(series.rise(window, |at| at.cpu_ns)?.amount);
    // What one that was not watched used cannot be told from what others did.
    let server_ns: u64 = servers.map(cpu_ns).sum::<Option<u64>>()?;
    let load_ns: u64 = match run.watched.resources.rise(window, |at| at.dnslab_ns) {
        Some(dnslab) if dnslab.amount > 0 => dnslab.amount,
        _ => measured.workers.iter().map(|worker| worker.cpu_ns).sum(),
    };
    let in_turns_ns = run.watched.others_cpu_ns;
    let of_card_ns = match run.is_apart() {
        true => interrupts_ns(run, &watched.resources)?,
        false => 0,
    };
    let known_ns = server_ns + load_ns + in_turns_ns + of_card_ns;
    Some(Rise { amount: used.amount.saturating_sub(known_ns), ..used }.cpus())
}

fn lost(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { measured, .. } = *run;
    let share = measured.counters.outcomes.lost_share();
    (share >= LOST).then_some(Caveat::Lost { share })
}

/// A query was refused with a status of HTTP, in the warm-up too: what begins there goes on.
fn http_errors(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { measured, .. } = *run;
    let statuses = measured.http_refusals();
    (!statuses.is_empty()).then_some(Caveat::HttpErrors { statuses })
}

fn truncated(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { load, measured, .. } = *run;
    let answers = &measured.counters.answers;
    // One that was asked again may have had no answer over TCP.
    let all = measured.counters.outcomes.answered.max(answers.truncated);
    let share = answers.truncated as f64 / all.max(1) as f64;
    let then = match answers.asked_over_tcp {
        0 if load.has_transport(Transport::Udp) => AfterTruncation::Counted,
        0 => AfterTruncation::WasOverConnection,
        asked => AfterTruncation::AskedOverTcp {
            truncated_share: answers.truncated_over_tcp as f64 / asked as f64,
        },
    };
    (share >= TRUNCATED).then_some(Caveat::Truncated { share, then })
}

fn empty_answers(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { measured, .. } = *run;
    let share = share_of_answers(measured, measured.counters.answers.empty);
    (share > EMPTY).then_some(Caveat::EmptyAnswers { share })
}

/// In one whole interval of the measured window, less than half as much was answered as in the
/// median one. Needs 8 intervals and 20 answers in the median one. With `poisson` pace, whose
/// counts scatter by their square root, the interval must be four of that below the median too.
fn unsteady(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { load, measured, .. } = *run;
    let mut whole = measured.whole_intervals();
    if whole.len() < LEAST_INTERVALS {
        return None;
    }
    whole.sort_unstable_by_key(|interval| interval.answered);
    let (lowest, median) = (whole[0], whole[whole.len() / 2]);
    if median.answered < LEAST_ANSWERS {
        return None;
    }
    let answers = median.answered as f64;
    let of_poisson = OpenPace::constant(Pace::Poisson);
    let poisson = matches!(&load.mode, LoadMode::Open { pace, .. } if *pace == of_poisson);
    let chance = if poisson { BEYOND_CHANCE * answers.sqrt() } else { 0.0 };
    let broke_down = (lowest.answered as f64) < (BREAKDOWN * answers).min(answers - chance);
    let (lowest_qps, median_qps) = (lowest.answered_qps(), median.answered_qps());
    broke_down.then_some(Caveat::Unsteady { lowest_qps, median_qps })
}

/// The answered rate of a closed loop rose or fell through the measured window, as caches that fill, logs that grow and
/// processors that warm up make it: by a twentieth or more between its first and its last fifth, and so steadily that
/// chance makes it of one run in a thousand (Mann, "Nonparametric tests against trend", Econometrica 13, 1945). Needs 20
/// whole intervals, and 20 answers in each of them on average.
fn trend(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { load, measured, .. } = *run;
    load.window()?;
    let whole = measured.whole_intervals();
    let rates: Vec<f64> = whole.iter().map(|interval| interval.answered_qps()).collect();
    let answered: u64 = whole.iter().map(|interval| interval.answered).sum();
    let count = rates.len();
    if count < TREND_INTERVALS || answered < LEAST_ANSWERS * count as u64 {
        return None;
    }
    // Pairs of intervals of which the later one is faster, less those of which it is slower.
    let pairs = (0..count).flat_map(|at| rates[at + 1..].iter().map(move |later| (at, *later)));
    let rising: f64 = pairs
        .map(|(at, later)| match later.total_cmp(&rates[at]) {
            Ordering::Greater => 1.0,
            Ordering::Equal => 0.0,
            Ordering::Less => -1.0,
        })
        .sum();
    let n = count as f64;
    let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let fifth = count / 5;
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (first_qps, last_qps) = (mean(&rates[..fifth]), mean(&rates[count - fifth..]));
    let caveat = Caveat::Trend { first_qps, last_qps };
    (rising.abs() >= TREND * deviation && caveat.severity() >= TREND_MATTERS).then_some(caveat)
}

fn stray_answers(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { measured, .. } = *run;
    let answers = &measured.counters.answers;
    let (late, duplicate, unexpected) = (answers.late, answers.duplicate, answers.unexpected);
    let any = late + duplicate + unexpected > 0;
    any.then_some(Caveat::StrayAnswers { late, duplicate, unexpected })
}

fn counts_differ(run: &Observation<'_>) -> Option<Caveat> {
    let agreement = Agreement::of(run)?;
    let Agreement { sent, counted, .. } = agreement;
    // The pods of a Service have other clients, too.
    if run.watched.service.is_some() && counted >= sent {
        return None;
    }
    (agreement.share() > COUNTS).then_some(Caveat::CountsDiffer { sent, counted })
}

/// The CPUs of a quota and the share of its periods in which it was used up, if that is more than [`THROTTLED`].
fn throttled(limit: Option<&CpuLimit>) -> Option<(f64, f64)> {
    let limit = limit?;
    let throttled_share = limit.throttled_share();
    (throttled_share > THROTTLED).then_some((limit.cpus, throttled_share))
}

/// Places of a closed loop's window that are in the generator's hands on average: between an answer
/// and the next query of its place lies at most one of the worker's rounds, whose mean length is the
/// worker's CPU time over its rounds. A round has one pause; `None` for a worker that did not pause.
fn in_hand(measured: &Measured) -> Option<f64> {
    let round_ns = |worker: &WorkerFacts| {
        (worker.pauses > 0).then(|| worker.cpu_ns as f64 / worker.pauses as f64)
    };
    let rounds: Option<Vec<f64>> = measured.workers.iter().map(round_ns).collect();
    let longest_ns = rounds?.into_iter().fold(0.0, f64::max);
    Some(measured.answered_qps() * longest_ns / 1e9)
}

fn share_of_answers(measured: &Measured, count: u64) -> f64 {
    count as f64 / measured.counters.outcomes.answered.max(1) as f64
}

/// True if a server surely shares a CPU with the load: both were pinned and to one in common, or
/// one of them was not pinned and the machine has no second CPU. What the scheduler makes of
/// several CPUs without pinning is not known, nor what it makes of an external server that may use
/// other CPUs besides those of the load. Such a server counts as one on this machine only under a
/// loopback address, or if its CPUs are known.
fn shares_cpus(
    load: &LoadFacts,
    server: &ServerFacts,
    chain: &[ChainPart],
    host_cpus: usize,
) -> bool {
    let is_external = server.is_external();
    let seems_elsewhere = is_external
        && server.cpus.is_empty()
        && !load.target.parse::<SocketAddr>().is_ok_and(|target| target.ip().is_loopback());
    let has_others = server.cpus.iter().any(|cpu| !load.cpus.contains(cpu));
    let is_apart = server.is_elsewhere() || !load.hosts.is_empty();
    if is_apart || seems_elsewhere || (is_external && has_others && host_cpus > 1) {
        false
    } else if load.cpus.is_empty() || servers_cpus(server, chain).any(<[usize]>::is_empty) {
        host_cpus == 1
    } else {
        let mut pinned = servers_cpus(server, chain).flatten();
        pinned.any(|cpu| load.cpus.contains(cpu))
    }
}
