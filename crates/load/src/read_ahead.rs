//! Brings the queries of clients to the workers from a thread that reads ahead of the load.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;

use dnslab_client::{Fed, Feed};
use dnslab_traffic::ClientQuery;

use crate::pin::pin_to;

/// Queries that travel to a worker together.
const BATCH: usize = 256;

/// Batches that wait for a worker at most. At 100,000 queries per second that is a third of a second.
const DEPTH: usize = 128;

/// What is read is passed on after so much time of the load, even if batches are not full; nanoseconds.
const TICK: u64 = 20_000_000;

/// Reads the queries in a thread of its own, and gives each of the workers those of its clients: worker `n` of
/// `workers` those of the clients `n`, `n + workers`, ... Returns when the first are ready, so a source may
/// take its time to find its beginning. The thread stays on these CPUs, or is free if there are none.
///
/// The queries come in order of time. They are read as fast as the workers take them, so memory does not grow
/// with their number. After an error nothing is read, and the workers are told it.
///
/// # Errors
/// When no thread can be had.
///
/// # Panics
/// When there is no worker.
pub fn read_ahead<E: Display>(
    queries: impl Iterator<Item = Result<ClientQuery, E>> + Send + 'static,
    workers: u32,
    cpus: &[usize],
) -> io::Result<Vec<Box<dyn Feed>>> {
    assert!(workers > 0, "somebody must take the queries");
    let (senders, feeds): (Vec<_>, Vec<_>) = (0..workers).map(|_| sync_channel(DEPTH)).unzip();
    let (begun, has_begun) = sync_channel(1);
    let cpus = cpus.to_vec();
    thread::Builder::new().name("read-ahead".to_owned()).spawn(move || {
        // A reader on the server's CPU would be a cost to the server; a reader elsewhere than asked is only
        // less well placed.
        pin_to(&cpus).ok();
        distribute(queries, senders, begun);
    })?;
    // The thread is at the end of its queries if it says nothing.
    has_begun.recv().ok();
    let feed = |batches| Box::new(ReadAhead { batches }) as Box<dyn Feed>;
    Ok(feeds.into_iter().map(feed).collect())
}

/// What travels to a worker.
enum Batch {
    Queries(Vec<ClientQuery>),
    End,
    Failed(String),
}

/// Goes on until the queries end or nobody takes them any more.
fn distribute<E: Display>(
    queries: impl Iterator<Item = Result<ClientQuery, E>>,
    senders: Vec<SyncSender<Batch>>,
    begun: SyncSender<()>,
) {
    let workers = senders.len();
    let mut batches: Vec<Vec<ClientQuery>> = vec![Vec::with_capacity(BATCH); workers];
    let mut passed_on_at = None;
    // Workers that take nothing any more. The others go on.
    let mut gone = vec![false; workers];
    let mut pass_on = |worker: usize, batch: &mut Vec<ClientQuery>| {
        let full = std::mem::replace(batch, Vec::with_capacity(BATCH));
        gone[worker] |= !full.is_empty() && senders[worker].send(Batch::Queries(full)).is_err();
        gone.iter().any(|is_gone| !is_gone)
    };
    let mut failure = None;
    for query in queries {
        let query = match query {
            Ok(query) => query,
            Err(error) => {
                failure = Some(error.to_string());
                break;
            }
        };
        let (worker, due) = (query.client as usize % workers, query.due_ns);
        batches[worker].push(query);
        let is_time = due >= *passed_on_at.get_or_insert(due) + TICK;
        let is_taken = match is_time {
            true => batches
                .iter_mut()
                .enumerate()
                .fold(true, |_, (worker, batch)| pass_on(worker, batch)),
            false if batches[worker].len() == BATCH => pass_on(worker, &mut batches[worker]),
            false => continue,
        };
        if is_time {
            passed_on_at = Some(due);
        }
        if !is_taken {
            return;
        }
        begun.try_send(()).ok();
    }
    for (worker, batch) in batches.iter_mut().enumerate() {
        pass_on(worker, batch);
        let end = failure.clone().map_or(Batch::End, Batch::Failed);
        senders[worker].send(end).ok();
    }
}

struct ReadAhead {
    batches: Receiver<Batch>,
}

impl Feed for ReadAhead {
    fn fill(&mut self, ready: &mut VecDeque<ClientQuery>) -> Fed {
        match self.batches.try_recv() {
            Ok(Batch::Queries(batch)) => {
                ready.extend(batch);
                Fed::Some
            }
            Ok(Batch::End) => Fed::End,
            Ok(Batch::Failed(reason)) => Fed::Failed { reason },
            Err(TryRecvError::Empty) => Fed::Nothing,
            // The thread has panicked.
            Err(TryRecvError::Disconnected) => {
                Fed::Failed { reason: "the thread that reads them has ended".to_owned() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use dnslab_wire::Query;

    use super::*;

    fn query(due_ns: u64, client: u32) -> ClientQuery {
        ClientQuery { due_ns, client, query: Query::reserved() }
    }

    fn take_all(feed: Box<dyn Feed>) -> Vec<ClientQuery> {
        let (taken, end) = take_to_end(feed);
        assert_eq!(end, Fed::End);
        taken
    }

    fn take_to_end(mut feed: Box<dyn Feed>) -> (Vec<ClientQuery>, Fed) {
        let mut ready = VecDeque::new();
        loop {
            match feed.fill(&mut ready) {
                Fed::Some | Fed::Nothing => thread::yield_now(),
                end => return (ready.into(), end),
            }
        }
    }

    #[test]
    fn a_failure_is_no_end() {
        for workers in [1, 3] {
            let queries = (0..1_000).map(|n| match n {
                900 => Err("it is gone".to_owned()),
                n => Ok(query(n, n as u32)),
            });
            let feeds = read_ahead(queries, workers, &[]).unwrap();
            let taken: Vec<_> = feeds.into_iter().map(take_to_end).collect();
            assert_eq!(taken.iter().map(|(queries, _)| queries.len()).sum::<usize>(), 900);
            let failed = Fed::Failed { reason: "it is gone".to_owned() };
            assert!(taken.iter().all(|(_, end)| *end == failed));
        }
        let broken = std::iter::from_fn(|| -> Option<Result<ClientQuery, String>> {
            panic!("a fault of the reader, which the test wants");
        });
        let feed = read_ahead(broken, 1, &[]).unwrap().remove(0);
        assert!(matches!(take_to_end(feed), (queries, Fed::Failed { .. }) if queries.is_empty()));
    }

    #[test]
    fn each_worker_gets_its_clients_in_order() {
        for workers in 1..5 {
            // Some of it densely, some with seconds between.
            let all: Vec<_> = (0..20_000u64)
                .map(|n| {
                    query(n * if n < 10_000 { 1_000 } else { 1_000_000 }, (n * n % 977) as u32)
                })
                .collect();
            let feeds =
                read_ahead(all.clone().into_iter().map(Ok::<_, Infallible>), workers, &[]).unwrap();
            // Each from a thread of its own, as workers do: the reader waits for the slowest.
            let taken: Vec<_> =
                feeds.into_iter().map(|feed| thread::spawn(|| take_all(feed))).collect();
            for (number, taken) in (0..workers).zip(taken) {
                let own = all.iter().filter(|query| query.client % workers == number);
                assert_eq!(taken.join().unwrap(), own.cloned().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_source_without_queries_and_one_that_nobody_wants() {
        for feed in read_ahead(std::iter::empty::<Result<_, Infallible>>(), 2, &[]).unwrap() {
            assert_eq!(take_all(feed), []);
        }
        let (dropped, is_dropped) = sync_channel::<()>(1);
        let endless = (0..).map(move |n| {
            let _held = &dropped;
            Ok::<_, Infallible>(query(n, n as u32))
        });
        drop(read_ahead(endless, 1, &[]).unwrap());
        // The thread ends, and with it what it reads from.
        assert!(is_dropped.recv().is_err());
    }
}
