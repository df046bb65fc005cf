//! A worker with a seeded network and a clock of its own, over every transport.
//!
//! Whatever the network, the server and the machine do, each query that became due has one outcome, and no
//! answer counts for another query. A seed decides everything but the octets of TLS, whose keys are the
//! system's. So a failure names its seed, and `DNSLAB_SEED=n cargo test -p dnslab-client simulation` plays it
//! again. `DNSLAB_SEEDS=10000` plays so many over each transport.

mod attempts;
mod broken;
mod clients;
mod clock;
mod digests;
mod idle;
mod network;
mod server;
mod turns;
mod window;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use digests::Digests;
use dnslab_figures::{AnswerRecord, Connections, Counters, HowEnded, Outcomes, WindowCounts};
use dnslab_settings::{Load, Mode, QuotaKind};
use dnslab_traffic::{Connect, Pace, QueryList, Rate, Selection, TimeWindows, Truncated};
use dnslab_wire::{Edns, Method, QueryOptions, Transport};
use rand::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::time::{Nanos, nanos};
use crate::{ClientTraffic, Job, Shard, TlsSettings, Verification, Worker, WorkerEnd};
pub(crate) use network::Simulated;
use network::{Faults, Net};
use server::{Manners, Server};

#[derive(Clone, Debug)]
struct Scenario {
    job: Job,
    /// The clients of [`Job::played`].
    clients: Option<Arc<dyn ClientTraffic>>,
    faults: Faults,
    manners: Manners,
    /// The load is interrupted at this look at the clock.
    interrupted: bool,
}

struct Played {
    end: WorkerEnd,
    /// Answers that the server gave, and queries that it saw.
    right: u64,
    asked: u64,
    /// What each socket asked for ([`Server::labels`]).
    labels: BTreeMap<usize, BTreeSet<Vec<u8>>>,
    now: Nanos,
    /// What the queries were told.
    told: Vec<AnswerRecord>,
}

const MS: u64 = 1_000_000;

impl Scenario {
    /// Clients with queries of their own.
    fn play_clients(&mut self, clients: impl ClientTraffic + 'static) {
        self.job.played = Some(clients.known());
        self.clients = Some(Arc::new(clients));
    }

    /// Other settings, with their timeline.
    fn change(&mut self, change: impl FnOnce(&mut Load)) {
        self.job = self.job.clone().with(change);
    }

    fn drawn(seed: u64, transport: Transport) -> Self {
        let random = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
        // Half of what can go wrong does not.
        let mut share = |most: f64| match random.random_bool(0.5) {
            true => 0.0,
            false => random.random_range(0.0..most),
        };
        let faults = Faults {
            lost: share(0.3),
            doubled: share(0.2),
            late: share(0.2),
            partial: share(0.5),
            icmp: share(0.05),
            refused: share(0.3),
            unheard: share(0.2),
            reset: share(0.02),
            descheduled: share(0.001),
            away: MS..80 * MS,
            ..Faults::default()
        };
        let manners = Manners {
            silent: share(0.3),
            late: share(0.2),
            twice: share(0.2),
            other_id: share(0.2),
            other_question: share(0.2),
            truncated: share(0.3),
            truncated_again: 0.2,
            garbage: share(0.2),
            closes: share(0.05),
            resets: 0.5,
            ..Manners::default()
        };
        let least = random.random_range(5_000..2 * MS);
        let faults = Faults { delay: least..2 * least, ..faults };
        let stall = random.random_range(0..200 * MS);
        let manners = Manners {
            work: 1..random.random_range(2..5 * MS),
            stall: random
                .random_bool(0.3)
                .then_some((stall, stall + random.random_range(0..100 * MS))),
            ..manners
        };
        // The order of drawing stays, so that a seed means the same load as before.
        let connections = random.random_range(1..=2);
        let quota = random.random_bool(0.5).then(|| {
            let queries = random.random_range(1..20);
            (queries, if random.random() { QuotaKind::Exact } else { QuotaKind::Random })
        });
        let mut settings = Load {
            transport,
            connections,
            queries_per_connection: quota.map(|(queries, _)| queries),
            connection_quota: quota.map_or(QuotaKind::Random, |(_, kind)| kind),
            idle: random
                .random_bool(0.3)
                .then(|| Duration::from_millis(random.random_range(1..50))),
            connect: if random.random() { Connect::AtStart } else { Connect::OnDemand },
            truncated: match transport == Transport::Udp && random.random() {
                true => Truncated::AskOverTcp,
                false => Truncated::Count,
            },
            ..Load::default()
        };
        if random.random() {
            let outstanding = random.random_range(connections..=12);
            settings.mode = Mode::Closed { outstanding };
        } else {
            let rate = Rate::Constant(random.random_range(100.0..10_000.0));
            let pace = if random.random() { Pace::Constant } else { Pace::Poisson };
            settings.mode = Mode::Open { rate, pace };
        }
        let keepalive =
            matches!(transport, Transport::Tcp | Transport::Dot) && random.random_bool(0.3);
        let manners = Manners { idle: keepalive.then(|| random.random_range(0..3)), ..manners };
        let resumption = random.random_bool(0.7);
        let early_data = resumption && random.random();
        let method = if early_data || random.random() { Method::Get } else { Method::Post };
        let clients = random.random_range(1..=6);
        let duration = Duration::from_millis(random.random_range(20..150));
        let settings = Load {
            clients,
            duration,
            windows: Some(halves_and_all(duration)),
            warm_up: Duration::from_millis(random.random_range(0..50)),
            timeout: Duration::from_millis(random.random_range(10..100)),
            queries_in_all: random.random_bool(0.2).then(|| random.random_range(1..200)),
            selection: if random.random() { Selection::InOrder } else { Selection::Uniform },
            batch_delay: Duration::from_micros(random.random_range(0..60)),
            keepalive,
            http_method: method,
            ..settings
        };
        let tls = transport.is_encrypted().then(|| tls(resumption, early_data));
        // What is told is kept in every other load.
        let tells = seed % 2 == 1;
        let job = Job { seed, tls, tells, ..Job::new(settings, target(), queries(keepalive)) };
        let interrupted = random.random_bool(0.1);
        Self { job, clients: None, faults, manners, interrupted }
    }

    /// One worker with these settings. Nothing goes wrong.
    fn quiet(settings: Load) -> Self {
        let transport = settings.transport;
        let tls = transport.is_encrypted().then(|| tls(true, false));
        let job = Job { tls, ..Job::new(settings, target(), queries(false)) };
        let (faults, manners) = (Faults::default(), Manners::default());
        Self { job, clients: None, faults, manners, interrupted: false }
    }

    /// Makes the queries ask for the server's idle time-out (RFC 7828).
    fn keepalive(&mut self) {
        self.job.settings.keepalive = true;
        self.job.queries = queries(true);
    }

    fn play(&self) -> Played {
        let Self { job, faults, manners, .. } = self;
        let load = &job.settings;
        let is_exact = load.connection_quota == QuotaKind::Exact && !load.transport.is_quic();
        let quota = load.queries_per_connection.filter(|_| is_exact);
        let timeout = nanos(load.timeout);
        let server = Server::new(job.seed, load.transport, manners.clone(), timeout, quota);
        let net = Net::new(job.seed, load.transport, faults.clone(), server);
        let net = Rc::new(RefCell::new(net));
        let stop = AtomicBool::new(self.interrupted);
        let mut shard = Shard::new(job, 0, 100_000, &stop);
        if let Some(clients) = &self.clients {
            shard = shard.fed_by(clients.begin(1, &[]).unwrap().remove(0));
        }
        let clients = shard.clients();
        let mut worker = Worker::new(Simulated(Rc::clone(&net)), shard, clients);
        if job.seed % 4 < 2 {
            worker.open_early();
        }
        let end = worker.run().expect("the simulated kernel has all that is needed");
        let net = net.borrow();
        let Server { right, asked, labels, .. } = &net.server;
        let records = net.told.as_chunks().0.iter();
        let told = records.map(|octets| AnswerRecord::read(octets).expect("as it was written"));
        Played {
            end,
            right: *right,
            asked: *asked,
            labels: labels.clone(),
            now: net.now,
            told: told.collect(),
        }
    }
}

/// Three time windows: the halves of the measured window, and all of it.
fn halves_and_all(duration: Duration) -> TimeWindows {
    let (half, all) = (nanos(duration) / 2, nanos(duration));
    let text = format!("first:0ns..{half}ns,second:{half}ns..{all}ns,all:0ns..{all}ns");
    text.parse().expect("the halves are no longer than all of it")
}

fn target() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 53))
}

/// An address at which no server is.
fn nobody() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 99], 53))
}

/// Four queries. They ask for the server's idle time-out (RFC 7828) or have no EDNS.
fn queries(keepalive: bool) -> Arc<QueryList> {
    static MADE: [OnceLock<Arc<QueryList>>; 2] = [OnceLock::new(), OnceLock::new()];
    Arc::clone(MADE[usize::from(keepalive)].get_or_init(|| {
        let text = "a.example A\nbb.example AAAA\na.long.name.example MX\nc.example TXT\n";
        let edns = keepalive.then(|| Edns { keepalive, ..Edns::default() });
        let options = QueryOptions { edns, ..QueryOptions::default() };
        let queries = QueryList::from_text(text.as_bytes(), "the simulation", &options);
        Arc::new(queries.unwrap())
    }))
}

fn tls(resumption: bool, early_data: bool) -> TlsSettings {
    static MADE: OnceLock<TlsSettings> = OnceLock::new();
    let settings = MADE.get_or_init(|| TlsSettings::new("localhost", &Verification::Off).unwrap());
    settings.clone().with_resumption(resumption).with_early_data(early_data)
}

/// What must hold whatever happened.
fn check(scenario: &Scenario, played: Played) {
    let Scenario { job, faults, .. } = scenario;
    let Played { end, right, asked, now, told, .. } = played;
    let timeout = nanos(job.attempts().waits().max().unwrap_or_default());
    let patience = nanos(job.attempts().patience());
    let rest = job.timeline.until_ns() + 6 * patience + 30_000 * MS;
    assert!(now < rest, "it ended at {now} ns only");
    check_windows(&end, nanos(job.settings.timeout));
    let (mut latency, mut service, mut lag) = Default::default();
    end.recorder.add_times(&mut latency, &mut service, &mut lag);
    let all = sums(end);
    let (least, most) = (service.min_ns(), service.max_ns());
    // Histograms have three digits.
    assert!(most.is_none_or(|most| most <= timeout + timeout / 500), "{most:?} ns: too late");
    let round_trip = 2 * faults.delay.start;
    assert!(
        least.is_none_or(|least| least >= round_trip - round_trip / 500),
        "{least:?} ns: too soon"
    );
    let rcodes = &all.answers.rcodes;
    let fails = scenario.manners.failing > 0.0;
    let is_right = |code: &String| code == "NOERROR" || fails && code == "SERVFAIL";
    assert!(rcodes.keys().all(is_right), "an answer to another query: {rcodes:?}");
    let all = all.outcomes;
    if job.tells && !job.settings.mode.is_closed() {
        check_told(&told, &all);
    } else {
        assert!(told.is_empty());
    }
    assert!(all.answered <= right, "{} answered, the server gave {right}: {all:?}", all.answered);
    assert!(asked > 0 || all.answered == 0);
}

/// The halves of the measured window make the whole, and the whole is what is counted of the measured window.
fn check_windows(end: &WorkerEnd, timeout: Nanos) {
    let mut windows = [(); 3].map(|()| WindowCounts::default());
    end.recorder.add_windows(&mut windows);
    for window in &windows {
        let WindowCounts { outcomes, rcodes, latency, service_time, .. } = window;
        outcomes.check().unwrap_or_else(|error| panic!("{error}: {window:?}"));
        assert_eq!(rcodes.values().sum::<u64>(), outcomes.answered);
        assert_eq!(latency.len(), outcomes.due, "each due query counts");
        assert_eq!(service_time.len(), outcomes.answered);
        // Histograms have three digits.
        let longest = latency.max_ns().unwrap_or(0);
        assert!(outcomes.lost() == 0 || longest >= timeout - timeout / 500, "{longest} ns");
    }
    let [first, second, all] = windows;
    let mut both = first.outcomes;
    both.merge(&second.outcomes);
    let measured = end.recorder.clone().into_counters().1;
    assert_eq!(both, all.outcomes);
    assert_eq!(all.outcomes, measured.outcomes);
    assert_eq!(all.rcodes, measured.answers.rcodes);
}

/// Each query that became due is told something once, under its own name, and that is its outcome.
#[track_caller]
fn check_told(told: &[AnswerRecord], outcomes: &Outcomes) {
    let count = |ended| told.iter().filter(|record| record.ended == ended).count() as u64;
    assert_eq!(told.len() as u64, outcomes.due, "{outcomes:?}");
    // Whether an answer is whole is found out later.
    let answered = count(HowEnded::Answered) + count(HowEnded::Malformed);
    assert_eq!(answered, outcomes.answered + outcomes.malformed, "{outcomes:?}");
    assert!(count(HowEnded::Malformed) >= outcomes.malformed, "{outcomes:?}");
    for (ended, counted) in [
        (HowEnded::TimedOut, outcomes.timed_out),
        (HowEnded::NotSent, outcomes.not_sent),
        (HowEnded::ConnectionLost, outcomes.connection_lost),
        (HowEnded::Refused, outcomes.refused),
    ] {
        assert_eq!(count(ended), counted, "{ended:?} of {outcomes:?}");
    }
    // The names of each client's queries are the first numbers, each once.
    let names: BTreeSet<(u32, u32)> =
        told.iter().map(|record| (record.client, record.number)).collect();
    assert_eq!(names.len(), told.len(), "a query was told twice");
    let mut before = None;
    for (client, number) in names {
        let expected = match before {
            Some((its, last)) if its == client => last + 1,
            _ => 0,
        };
        assert_eq!(number, expected, "client {client}");
        before = Some((client, number));
    }
}

/// The counts of warm-up and measured window together, which must add up whatever happened.
#[track_caller]
fn sums(end: WorkerEnd) -> Counters {
    let (mut latency, mut service, mut lag) = Default::default();
    end.recorder.add_times(&mut latency, &mut service, &mut lag);
    let (mut all, measured) = end.recorder.into_counters();
    assert_eq!(latency.len(), measured.outcomes.due, "each due query counts");
    assert_eq!(service.len(), measured.outcomes.answered);
    for counters in [&all, &measured] {
        let Counters { outcomes, answers, .. } = counters;
        outcomes.check().unwrap_or_else(|error| panic!("{error}: {outcomes:?}"));
        let most = outcomes.due + counters.asked_again;
        assert!(counters.sent <= most, "more was sent than was due: {counters:?}");
        let least = outcomes.due - outcomes.not_sent;
        assert!(counters.sent >= least, "what was not sent has another outcome: {counters:?}");
        let answered: u64 = answers.rcodes.values().sum();
        assert_eq!(answered, outcomes.answered, "each answer has a response code");
    }
    all.merge(&measured);
    let Connections { attempted, opened, failed, refused, lost, closed, .. } = all.connections;
    assert!(refused <= failed + lost, "{:?}", all.connections);
    assert!(opened + failed <= attempted && lost + closed <= opened, "{:?}", all.connections);
    let handshakes = all.connections.full_handshakes + all.connections.resumed_handshakes;
    let early = all.connections.early_data;
    assert!(handshakes <= opened && early <= handshakes, "{:?}", all.connections);
    all
}

/// Plays `seeds` seeds, unless the environment asks for a number of seeds or for one seed.
fn play_all(transport: Transport, seeds: u64) {
    let digests = Digests::of(transport);
    play_each(transport, seeds, Scenario::drawn, |scenario, played| {
        digests.add(scenario.job.seed, &played);
        check(scenario, played);
    });
    digests.compare();
}

/// Plays each scenario that is drawn from so many seeds, and checks it.
fn play_each(
    transport: Transport,
    seeds: u64,
    drawn: impl Fn(u64, Transport) -> Scenario,
    check: impl Fn(&Scenario, Played),
) {
    let asked = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = asked("DNSLAB_SEEDS").unwrap_or(seeds);
    let seeds = asked("DNSLAB_SEED").map_or(0..seeds, |seed| seed..seed + 1);
    for seed in seeds {
        let scenario = drawn(seed, transport);
        let play = || check(&scenario, scenario.play());
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(play));
        if played.is_err() {
            panic!("DNSLAB_SEED={seed} over {transport}: {scenario:#?}");
        }
    }
}

#[test]
fn udp() {
    play_all(Transport::Udp, 100);
}

#[test]
fn tcp() {
    play_all(Transport::Tcp, 150);
}

#[test]
fn dot() {
    play_all(Transport::Dot, 100);
}

#[test]
fn doh2() {
    play_all(Transport::Doh2, 80);
}

#[test]
fn doq() {
    play_all(Transport::Doq, 25);
}

#[test]
fn doh3() {
    play_all(Transport::Doh3, 25);
}
