//! A simulated load, the faults in it, and its result.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dnslab_figures::AnswerRecord;
use dnslab_settings::{Load, Mode, QuotaKind};
use dnslab_traffic::{Connect, Pace, QueryList, Rate, Selection, TimeWindows, Truncated};
use dnslab_wire::{Edns, Method, QueryOptions, Transport};
use rand::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::addresses::target;
use super::network::{Faults, Net, Simulated};
use super::server::{Manners, Server};
use crate::time::{Nanos, nanos};
use crate::{ClientTraffic, Job, Shard, TlsSettings, Verification, Worker, WorkerEnd};

#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) job: Job,
    /// The clients of [`Job::played`].
    pub(super) clients: Option<Arc<dyn ClientTraffic>>,
    pub(super) faults: Faults,
    pub(super) manners: Manners,
    /// The load is interrupted at this look at the clock.
    pub(super) interrupted: bool,
}

pub(super) struct Played {
    pub(super) end: WorkerEnd,
    /// Answers that the server gave, and queries that it saw.
    pub(super) right: u64,
    pub(super) asked: u64,
    /// What each socket asked for ([`Server::labels`]).
    pub(super) labels: BTreeMap<usize, BTreeSet<Vec<u8>>>,
    pub(super) now: Nanos,
    /// What the queries were told.
    pub(super) transcript: Vec<AnswerRecord>,
}

pub(super) const MS: u64 = 1_000_000;

impl Scenario {
    /// Clients with queries of their own.
    pub(super) fn play_clients(&mut self, clients: impl ClientTraffic + 'static) {
        self.job.played = Some(clients.known());
        self.clients = Some(Arc::new(clients));
    }

    /// Other settings, with their timeline.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut Load)) {
        self.job = self.job.clone().with(change);
    }

    pub(super) fn drawn(seed: u64, transport: Transport) -> Self {
        let random = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
        let faults = Faults {
            lost: share(random, 0.3),
            doubled: share(random, 0.2),
            late: share(random, 0.2),
            partial: share(random, 0.5),
            icmp: share(random, 0.05),
            refused: share(random, 0.3),
            unheard: share(random, 0.2),
            reset: share(random, 0.02),
            descheduled: share(random, 0.001),
            away: MS..80 * MS,
            ..Faults::default()
        };
        let manners = Manners {
            silent: share(random, 0.3),
            late: share(random, 0.2),
            twice: share(random, 0.2),
            other_id: share(random, 0.2),
            other_question: share(random, 0.2),
            truncated: share(random, 0.3),
            truncated_again: 0.2,
            garbage: share(random, 0.2),
            closes: share(random, 0.05),
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
    pub(super) fn quiet(settings: Load) -> Self {
        let transport = settings.transport;
        let tls = transport.is_encrypted().then(|| tls(true, false));
        let job = Job { tls, ..Job::new(settings, target(), queries(false)) };
        let (faults, manners) = (Faults::default(), Manners::default());
        Self { job, clients: None, faults, manners, interrupted: false }
    }

    /// Makes the queries ask for the server's idle time-out (RFC 7828).
    pub(super) fn keepalive(&mut self) {
        self.job.settings.keepalive = true;
        self.job.queries = queries(true);
    }

    pub(super) fn play(&self) -> Played {
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
        let records = net.transcript.as_chunks().0.iter();
        let records = records.map(|octets| AnswerRecord::read(octets).expect("as it was written"));
        Played {
            end,
            right: *right,
            asked: *asked,
            labels: labels.clone(),
            now: net.now,
            transcript: records.collect(),
        }
    }
}

/// How often something goes wrong, less than `most`. Half of what can go wrong does not.
fn share(random: &mut Xoshiro256PlusPlus, most: f64) -> f64 {
    match random.random_bool(0.5) {
        true => 0.0,
        false => random.random_range(0.0..most),
    }
}

/// Three time windows: the halves of the measured window, and all of it.
pub(super) fn halves_and_all(duration: Duration) -> TimeWindows {
    let (half, all) = (nanos(duration) / 2, nanos(duration));
    let text = format!("first:0ns..{half}ns,second:{half}ns..{all}ns,all:0ns..{all}ns");
    text.parse().expect("the halves are no longer than all of it")
}

/// Four queries. They ask for the server's idle time-out (RFC 7828) or have no EDNS.
pub(super) fn queries(keepalive: bool) -> Arc<QueryList> {
    static MADE: [OnceLock<Arc<QueryList>>; 2] = [OnceLock::new(), OnceLock::new()];
    Arc::clone(MADE[usize::from(keepalive)].get_or_init(|| {
        let text = "a.example A\nbb.example AAAA\na.long.name.example MX\nc.example TXT\n";
        let edns = keepalive.then(|| Edns { keepalive, ..Edns::default() });
        let options = QueryOptions { edns, ..QueryOptions::default() };
        let queries = QueryList::from_text(text.as_bytes(), "the simulation", &options);
        Arc::new(queries.unwrap())
    }))
}

pub(super) fn tls(resumption: bool, early_data: bool) -> TlsSettings {
    static MADE: OnceLock<TlsSettings> = OnceLock::new();
    let settings = MADE.get_or_init(|| TlsSettings::new("localhost", &Verification::Off).unwrap());
    settings.clone().of_load(&Load { resumption, early_data, ..Load::default() })
}
