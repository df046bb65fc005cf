//! Clients whose queries come while the load runs, as a capture or a population gives them.

use std::collections::VecDeque;
use std::fmt::Debug;

use dnslab_traffic::{ClientQuery, QueryList};
use dnslab_wire::Query;

use crate::played::PlayedClients;
use crate::time::Nanos;

/// How long a worker leaves a source alone that had nothing ready.
const POLL: Nanos = 200_000;

/// Clients with their queries, before the load begins.
pub trait ClientTraffic: Debug + Send + Sync {
    /// Begins from the first query, with a part for each worker. Worker `n` of `workers` gets the clients
    /// `n`, `n + workers`, ... What takes CPU time for it stays on these CPUs.
    ///
    /// # Errors
    /// When the source cannot be read.
    fn begin(&self, workers: u32, cpus: &[usize]) -> std::io::Result<Vec<Box<dyn Feed>>>;

    /// What is known of them before the load.
    fn known(&self) -> PlayedClients;
}

/// What [`Feed::fill`] has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fed {
    /// There are more queries.
    Some,
    /// Nothing is ready yet: the source is slower than the load.
    Nothing,
    /// No query follows.
    End,
    /// The source cannot be read further: the load is not the one that was asked for.
    Failed {
        /// What is wrong with which source, as half a sentence.
        reason: String,
    },
}

/// The queries of one worker's clients, in order of time.
pub trait Feed: Send {
    /// Appends the next queries, if any are ready. It does not wait for them.
    fn fill(&mut self, ready: &mut VecDeque<ClientQuery>) -> Fed;
}

/// The queries that a worker has not taken up yet.
pub(crate) struct Upcoming {
    feed: Box<dyn Feed>,
    ready: VecDeque<ClientQuery>,
    is_over: bool,
    /// Why there is no more, if that is not the end.
    failure: Option<String>,
}

impl Upcoming {
    pub(crate) fn new(feed: Box<dyn Feed>) -> Self {
        Self { feed, ready: VecDeque::new(), is_over: false, failure: None }
    }

    pub(crate) fn failure(&self) -> Option<&String> {
        self.failure.as_ref()
    }

    /// The next query, if it is due at `now`.
    pub(crate) fn next_if_due(&mut self, now: Nanos) -> Option<ClientQuery> {
        self.fill();
        let is_due = self.ready.front().is_some_and(|query| query.due_ns <= now);
        if is_due { self.ready.pop_front() } else { None }
    }

    /// All queries that are due before `until` were taken up.
    pub(crate) fn is_read_until(&mut self, until: Nanos) -> bool {
        self.fill();
        match self.ready.front() {
            Some(query) => query.due_ns >= until,
            None => self.is_over,
        }
    }

    /// When to look for the next query; `None` at the end.
    pub(crate) fn next_due(&mut self, now: Nanos) -> Option<Nanos> {
        self.fill();
        match self.ready.front() {
            Some(query) => Some(query.due_ns),
            None => (!self.is_over).then_some(now + POLL),
        }
    }

    fn fill(&mut self) {
        if self.ready.is_empty() && !self.is_over {
            match self.feed.fill(&mut self.ready) {
                Fed::Some | Fed::Nothing => {}
                Fed::End => self.is_over = true,
                Fed::Failed { reason } => {
                    self.is_over = true;
                    self.failure = Some(reason);
                }
            }
        }
    }
}

/// The queries of the clients that may still be asked about: those in flight, and those that a late or second
/// answer may belong to.
///
/// Queries are numbered in the order in which they were taken up. After 2^32 of them the numbers begin again.
pub(crate) struct RecentQueries {
    queries: VecDeque<TakenUp>,
    /// Number of the first of them.
    first: u32,
    /// Stands for queries that were forgotten. No answer is its.
    forgotten: Query,
    /// When the worker's last round began.
    last_round: Nanos,
    /// The longest time between the beginnings of two rounds.
    longest_round: Nanos,
}

struct TakenUp {
    at: Nanos,
    query: Query,
}

impl RecentQueries {
    pub(crate) fn new() -> Self {
        let forgotten = Query::reserved();
        Self { queries: VecDeque::new(), first: 0, forgotten, last_round: 0, longest_round: 0 }
    }

    /// Keeps a query that is taken up at `now`, and returns its number.
    pub(crate) fn keep(&mut self, now: Nanos, query: Query) -> u32 {
        self.queries.push_back(TakenUp { at: now, query });
        self.first.wrapping_add(self.queries.len() as u32 - 1)
    }

    /// Keeps a query that is to be asked again as one that is taken up at `now`, and returns its new number.
    pub(crate) fn keep_again(&mut self, now: Nanos, number: u32) -> u32 {
        let query = self.get(number).clone();
        self.keep(now, query)
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> &Query {
        self.kept(number).unwrap_or(&self.forgotten)
    }

    /// `None` for a query that was forgotten.
    #[inline]
    fn kept(&self, number: u32) -> Option<&Query> {
        let place = number.wrapping_sub(self.first) as usize;
        self.queries.get(place).map(|taken_up| &taken_up.query)
    }

    /// Number of the first query that is not forgotten.
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    /// Begins a round of the worker at `now`. Returns the longest time between two rounds so far.
    pub(crate) fn begin_round(&mut self, now: Nanos) -> Nanos {
        self.longest_round = self.longest_round.max(now.saturating_sub(self.last_round));
        self.last_round = now;
        self.longest_round
    }

    /// Forgets the queries that were taken up before `before`.
    pub(crate) fn forget(&mut self, before: Nanos) {
        while self.queries.front().is_some_and(|taken_up| taken_up.at < before) {
            self.queries.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }
}

/// The queries of a load, by number.
pub(crate) enum Queries<'a> {
    /// Known before the load begins.
    List(&'a QueryList),
    /// Come while the load runs.
    Recent(RecentQueries),
}

impl Queries<'_> {
    #[inline]
    pub(crate) fn get(&self, number: u32) -> &Query {
        match self {
            Self::List(list) => list.get(number),
            Self::Recent(recent) => recent.get(number),
        }
    }

    /// Whether the question of a query is no longer known. A resolver that gives up says so after 10 s, long after its
    /// client: the message id must do to tell whose answer it is.
    pub(crate) fn has_forgotten(&self, number: u32) -> bool {
        match self {
            Self::List(_) => false,
            Self::Recent(recent) => recent.kept(number).is_none(),
        }
    }
}
