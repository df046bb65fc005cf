//! Clients that have their own queries, on other hosts than what reads these: they are sent ahead of the load.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use dnslab_load::{ClientTraffic, Fed, Feed, PlayedClients};
use dnslab_protocol::{Failure, Order, PackedQueries, SentFill};
use dnslab_traffic::ClientQuery;

use crate::link::{Link, told};
use crate::threads;

/// Queries that may wait on a host for one of its workers. At 100,000 queries per second they last for more than a second,
/// which is as long as a packet that TCP has to send twice may take.
const AHEAD: u64 = 1 << 17;

/// Queries that are sent together.
const TOGETHER: usize = 512;

/// How long a reader is left alone that had nothing ready.
const PAUSE: Duration = Duration::from_millis(1);

/// A worker on another host, with what its clients ask.
pub(crate) struct FedWorker {
    /// The place of its load.
    pub(crate) member: usize,
    /// Its place in the share of the host.
    pub(crate) worker: usize,
    pub(crate) feed: Box<dyn Feed>,
    pub(crate) sent: u64,
}

/// What brings the queries to a host. Dropping it ends that.
pub(crate) struct Feeding(Arc<State>);

#[derive(Default)]
struct State {
    is_over: AtomicBool,
    /// What is sent would be in the way of something else.
    is_held: AtomicBool,
}

impl Drop for Feeding {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

impl Feeding {
    /// Sends what the workers of these loads on a host take up, from a thread of its own, until all has been sent.
    pub(crate) fn begin(link: &Arc<Link>, load: u32, workers: Vec<FedWorker>) -> io::Result<Self> {
        let state = Arc::new(State::default());
        if !workers.is_empty() {
            let (link, of_thread) = (Arc::downgrade(link), Arc::clone(&state));
            threads::start(move || feed(&link, load, workers, &of_thread))?;
        }
        Ok(Self(state))
    }

    /// Sends nothing more until it goes on: clocks are compared meanwhile.
    pub(crate) fn hold(&self, is_held: bool) {
        self.0.is_held.store(is_held, Ordering::Relaxed);
    }
}

fn feed(link: &Weak<Link>, load: u32, mut workers: Vec<FedWorker>, state: &State) {
    while !workers.is_empty() && !state.is_over.load(Ordering::Relaxed) {
        if state.is_held.load(Ordering::Relaxed) {
            thread::sleep(PAUSE);
            continue;
        }
        let Some(link) = link.upgrade().filter(|link| link.ended().is_none()) else { return };
        let before: u64 = workers.iter().map(|worker| worker.sent).sum();
        workers.retain_mut(|worker| worker.go_on(&link, load));
        let after: u64 = workers.iter().map(|worker| worker.sent).sum();
        if after == before {
            thread::sleep(PAUSE);
        }
    }
}

impl FedWorker {
    /// Sends what is ready and may be sent. False at the end.
    fn go_on(&mut self, link: &Link, load: u32) -> bool {
        let Self { member, worker, feed, sent } = self;
        if *sent - link.taken(load, *member, *worker).min(*sent) >= AHEAD {
            return true;
        }
        let mut ready = VecDeque::new();
        let end = loop {
            match feed.fill(&mut ready) {
                Fed::Some if ready.len() < TOGETHER => {}
                Fed::Some | Fed::Nothing => break None,
                Fed::End => {
                    let queries = *sent + ready.len() as u64;
                    break Some(SentFill::End { queries });
                }
                Fed::Failed { reason } => break Some(SentFill::Failed { reason }),
            }
        };
        *sent += ready.len() as u64;
        let queries = (!ready.is_empty()).then(|| SentFill::Queries(ready.iter().collect()));
        let is_end = end.is_some();
        for fill in queries.into_iter().chain(end) {
            link.order_only(Order::Feed { load, member: *member, worker: *worker, fill });
        }
        !is_end
    }
}

/// The clients of a share whose queries come from another host.
#[derive(Debug)]
pub(crate) struct FedClients {
    known: PlayedClients,
    /// One for each worker, until they have begun.
    feeds: Mutex<Vec<FedFeed>>,
}

/// Octets of the messages that wait on a host, of all loads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting(Arc<AtomicU64>);

impl Waiting {
    /// At most.
    const MAX: u64 = 1 << 30;
}

/// What the workers of a share get their queries by.
#[derive(Debug)]
pub(crate) struct Feeders {
    feeders: Vec<Feeder>,
    /// The number that no client has, nor any beyond.
    clients: u32,
    waiting: Waiting,
}

#[derive(Debug)]
struct Feeder {
    fills: Sender<Fill>,
    sent: u64,
    is_over: bool,
    taken: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Fill {
    Queries(Vec<ClientQuery>),
    End,
    Failed(String),
}

#[derive(Debug)]
struct FedFeed {
    fills: Receiver<Fill>,
    taken: Arc<AtomicU64>,
    waiting: Waiting,
}

impl FedClients {
    /// The clients of so many workers, of which this host has a share. No client has the number `clients`.
    pub(crate) fn make(
        known: PlayedClients,
        workers: u32,
        clients: u32,
        waiting: &Waiting,
    ) -> (Self, Feeders) {
        let (feeds, feeders) = (0..workers).map(|_| Feeder::make(waiting)).unzip();
        let feeders = Feeders { feeders, clients, waiting: waiting.clone() };
        (Self { known, feeds: Mutex::new(feeds) }, feeders)
    }
}

impl ClientTraffic for FedClients {
    fn begin(&self, _workers: u32, _cpus: &[usize]) -> io::Result<Vec<Box<dyn Feed>>> {
        let feeds = std::mem::take(&mut *self.feeds.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(feeds.into_iter().map(|feed| Box::new(feed) as Box<dyn Feed>).collect())
    }

    fn known(&self) -> PlayedClients {
        self.known.clone()
    }
}

fn octets(queries: &[ClientQuery]) -> u64 {
    queries.iter().map(|query| query.query.octets().len() as u64).sum()
}

impl Feeders {
    /// Gives a worker what came for it. What cannot be ends its queries with a failure.
    pub(crate) fn take(&mut self, worker: usize, fill: SentFill) -> Result<(), Failure> {
        let feeder = self.feeders.get_mut(worker);
        let feeder = feeder.ok_or_else(|| Failure::of(format!("it has no worker {worker}")))?;
        if feeder.is_over {
            return Err(Failure::of("no query follows the last one"));
        }
        let fill = match fill {
            SentFill::Queries(packed) => {
                feeder.queries(&packed, self.clients, &self.waiting).map(Fill::Queries)
            }
            SentFill::End { queries } if queries == feeder.sent => Ok(Fill::End),
            SentFill::End { queries } => {
                Err(format!("{} of its {queries} queries came", feeder.sent))
            }
            SentFill::Failed { reason } => Ok(Fill::Failed(told(&reason))),
        };
        feeder.is_over = !matches!(fill, Ok(Fill::Queries(_)));
        let failure = fill.as_ref().err().cloned();
        // A worker that has ended takes nothing more.
        feeder.fills.send(fill.unwrap_or_else(Fill::Failed)).ok();
        failure.map_or(Ok(()), |reason| Err(Failure::of(reason)))
    }

    /// How many queries each worker has taken up.
    pub(crate) fn taken(&self) -> Vec<u64> {
        self.feeders.iter().map(|feeder| feeder.taken.load(Ordering::Relaxed)).collect()
    }
}

impl Feeder {
    /// One with what it feeds.
    fn make(waiting: &Waiting) -> (FedFeed, Self) {
        let ((fills, filled), taken) = (mpsc::channel(), Arc::new(AtomicU64::new(0)));
        let (of_feed, waiting) = (Arc::clone(&taken), waiting.clone());
        let feed = FedFeed { fills: filled, taken: of_feed, waiting };
        (feed, Self { fills, sent: 0, is_over: false, taken })
    }

    fn queries(
        &mut self,
        packed: &PackedQueries,
        clients: u32,
        Waiting(waiting): &Waiting,
    ) -> Result<Vec<ClientQuery>, String> {
        let queries = packed.queries().map_err(|error| error.to_string())?;
        if let Some(query) = queries.iter().find(|query| query.client >= clients) {
            return Err(format!(
                "a client has the number {}, and there are {clients}",
                query.client
            ));
        }
        self.sent += queries.len() as u64;
        let octets = octets(&queries);
        let known = waiting.fetch_add(octets, Ordering::Relaxed);
        let is_too_much = self.sent - self.taken.load(Ordering::Relaxed) > 2 * AHEAD;
        if is_too_much || known + octets > Waiting::MAX {
            waiting.fetch_sub(octets, Ordering::Relaxed);
            return Err("more queries are sent ahead than it takes".to_owned());
        }
        Ok(queries)
    }
}

impl FedFeed {
    fn takes(&self, queries: &[ClientQuery]) {
        self.taken.fetch_add(queries.len() as u64, Ordering::Relaxed);
        self.waiting.0.fetch_sub(octets(queries), Ordering::Relaxed);
    }
}

impl Drop for FedFeed {
    fn drop(&mut self) {
        while let Ok(fill) = self.fills.try_recv() {
            if let Fill::Queries(queries) = fill {
                self.takes(&queries);
            }
        }
    }
}

impl Feed for FedFeed {
    fn fill(&mut self, ready: &mut VecDeque<ClientQuery>) -> Fed {
        match self.fills.try_recv() {
            Ok(Fill::Queries(queries)) => {
                self.takes(&queries);
                ready.extend(queries);
                Fed::Some
            }
            Ok(Fill::End) => Fed::End,
            Ok(Fill::Failed(reason)) => Fed::Failed { reason },
            Err(TryRecvError::Empty) => Fed::Nothing,
            Err(TryRecvError::Disconnected) => {
                Fed::Failed { reason: "nobody sends its queries any more".to_owned() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use dnslab_wire::Query;
    use dnslab_wire::QueryOptions;
    use domain::base::Name;
    use domain::base::iana::Rtype;

    use super::*;

    fn asked() -> Query {
        let name: Name<Vec<u8>> = "www.example.".parse().unwrap();
        Query::new(&name, Rtype::A, &QueryOptions::default()).unwrap()
    }

    #[test]
    fn queries_come_in_order_and_no_more_of_them_than_may_wait() {
        let known = PlayedClients { description: "clients".to_owned(), rate_qps: 1.0 };
        let waiting = Waiting::default();
        let (clients, mut feeders) = FedClients::make(known.clone(), 2, 2, &waiting);
        let mut feeds = clients.begin(2, &[]).unwrap();
        let query = |due_ns| ClientQuery { due_ns, client: 1, query: asked() };
        let queries: Vec<ClientQuery> = (0..1_000).map(query).collect();
        let fill = || SentFill::Queries(queries.iter().collect());
        let mut ready = VecDeque::new();
        assert_eq!(feeds[1].fill(&mut ready), Fed::Nothing);
        feeders.take(1, fill()).unwrap();
        feeders.take(1, SentFill::End { queries: 1_000 }).unwrap();
        assert!(feeders.take(1, fill()).is_err(), "none follows the last one");
        assert_eq!(feeds[1].fill(&mut ready), Fed::Some);
        assert_eq!((feeds[1].fill(&mut ready), feeders.taken()), (Fed::End, vec![0, 1_000]));
        assert_eq!(Vec::from(ready), queries);
        let refused =
            (0..).find_map(|times| feeders.take(0, fill()).err().map(|error| (times, error)));
        let (times, error) = refused.unwrap();
        assert!(times == 2 * AHEAD / 1_000 && error.reason.contains("sent ahead"), "{times}");
        assert!(feeders.take(2, SentFill::End { queries: 0 }).is_err());
        let mut left = feeds.remove(0);
        let end = std::iter::repeat_with(|| left.fill(&mut VecDeque::new()));
        let end = end.into_iter().find(|fed| *fed != Fed::Some);
        assert!(matches!(end, Some(Fed::Failed { .. })), "{end:?}");
        assert_eq!(waiting.0.load(Ordering::Relaxed), 0);
        drop(feeds);
        // What was lost on the way, and a client that is none, end the queries of a worker.
        for wrong in [SentFill::End { queries: 7 }, fill()] {
            let (clients, mut feeders) = FedClients::make(known.clone(), 1, 1, &waiting);
            let mut feeds = clients.begin(1, &[]).unwrap();
            assert!(feeders.take(0, wrong).is_err());
            let fed = feeds[0].fill(&mut VecDeque::new());
            assert!(matches!(fed, Fed::Failed { .. }), "{fed:?}");
        }
    }
}
