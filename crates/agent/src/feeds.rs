//! Clients that have their own queries, on other hosts than what reads these: they are sent ahead of the load.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use dnslab_load::{ClientTraffic, Fed, Feed, PlayedClients};
use dnslab_protocol::{Failure, Order, SentFill};
use dnslab_traffic::ClientQuery;

use crate::link::Link;

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
pub(crate) struct Feeding(Arc<AtomicBool>);

impl Drop for Feeding {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Feeding {
    /// Sends what the workers of these loads on a host take up, from a thread of its own, until all has been sent.
    pub(crate) fn begin(link: &Arc<Link>, load: u32, workers: Vec<FedWorker>) -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        if !workers.is_empty() {
            let (link, ended) = (Arc::clone(link), Arc::clone(&is_over));
            thread::Builder::new().spawn(move || feed(&link, load, workers, &ended))?;
        }
        Ok(Self(is_over))
    }
}

fn feed(link: &Link, load: u32, mut workers: Vec<FedWorker>, is_over: &AtomicBool) {
    while !workers.is_empty() && !is_over.load(Ordering::Relaxed) && link.ended().is_none() {
        let before: u64 = workers.iter().map(|worker| worker.sent).sum();
        workers.retain_mut(|worker| worker.go_on(link, load));
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
                Fed::End => break Some(SentFill::End),
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

/// What the workers of a share get their queries by.
#[derive(Debug)]
pub(crate) struct Feeders(Vec<Feeder>);

#[derive(Debug)]
struct Feeder {
    fills: Sender<Fill>,
    sent: u64,
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
}

impl FedClients {
    /// The clients of so many workers.
    pub(crate) fn make(known: PlayedClients, workers: u32) -> (Self, Feeders) {
        let pair = |_| {
            let ((fills, filled), taken) = (mpsc::channel(), Arc::new(AtomicU64::new(0)));
            let feed = FedFeed { fills: filled, taken: Arc::clone(&taken) };
            (feed, Feeder { fills, sent: 0, taken })
        };
        let (feeds, feeders) = (0..workers).map(pair).unzip();
        (Self { known, feeds: Mutex::new(feeds) }, Feeders(feeders))
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

impl Feeders {
    /// Gives a worker what came for it.
    pub(crate) fn take(&mut self, worker: usize, fill: SentFill) -> Result<(), Failure> {
        let feeder = self.0.get_mut(worker);
        let feeder = feeder.ok_or_else(|| Failure::of(format!("it has no worker {worker}")))?;
        let fill = match fill {
            SentFill::Queries(packed) => {
                let queries = packed.queries();
                let queries = queries.map_err(|error| Failure::of(error.to_string()))?;
                feeder.sent += queries.len() as u64;
                if feeder.sent - feeder.taken.load(Ordering::Relaxed) > 2 * AHEAD {
                    return Err(Failure::of("more queries are sent ahead than it takes"));
                }
                Fill::Queries(queries)
            }
            SentFill::End => Fill::End,
            SentFill::Failed { reason } => Fill::Failed(reason),
        };
        // A worker that has ended takes nothing more.
        feeder.fills.send(fill).ok();
        Ok(())
    }

    /// How many queries each worker has taken up.
    pub(crate) fn taken(&self) -> Vec<u64> {
        self.0.iter().map(|feeder| feeder.taken.load(Ordering::Relaxed)).collect()
    }
}

impl Feed for FedFeed {
    fn fill(&mut self, ready: &mut VecDeque<ClientQuery>) -> Fed {
        match self.fills.try_recv() {
            Ok(Fill::Queries(queries)) => {
                self.taken.fetch_add(queries.len() as u64, Ordering::Relaxed);
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
        let (clients, mut feeders) = FedClients::make(known, 2);
        let mut feeds = clients.begin(2, &[]).unwrap();
        let query = |due_ns| ClientQuery { due_ns, client: 1, query: asked() };
        let queries: Vec<ClientQuery> = (0..1_000).map(query).collect();
        let fill = || SentFill::Queries(queries.iter().collect());
        let mut ready = VecDeque::new();
        assert_eq!(feeds[1].fill(&mut ready), Fed::Nothing);
        feeders.take(1, fill()).unwrap();
        feeders.take(1, SentFill::End).unwrap();
        assert_eq!(feeds[1].fill(&mut ready), Fed::Some);
        assert_eq!((feeds[1].fill(&mut ready), feeders.taken()), (Fed::End, vec![0, 1_000]));
        assert_eq!(Vec::from(ready), queries);
        let refused =
            (0..).find_map(|times| feeders.take(0, fill()).err().map(|error| (times, error)));
        let (times, error) = refused.unwrap();
        assert!(times == 2 * AHEAD / 1_000 && error.reason.contains("sent ahead"), "{times}");
        assert!(feeders.take(2, SentFill::End).is_err());
        drop(feeders);
        let mut left = feeds.remove(0);
        let end = std::iter::repeat_with(|| left.fill(&mut VecDeque::new()));
        let end = end.into_iter().find(|fed| *fed != Fed::Some);
        assert!(matches!(end, Some(Fed::Failed { .. })), "{end:?}");
    }
}
