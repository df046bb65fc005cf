//! The shares of loads that an agent has.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use dnslab_figures::Histogram;
use dnslab_load::{ClientTraffic, IntervalRecord, LoadError, Member, run_shares};
use dnslab_protocol::{
    Answer, Counted, Failure, FromAgent, SentFill, SentQueries, SentShare, UnusableJob, body_of,
};
use dnslab_record::MeasuredShare;
use dnslab_traffic::QueryList;
use dnslab_wire::Query;

use crate::feeds::{FedClients, Feeders, Waiting};
use crate::handed::{Handed, HandedLoad, LoadNews, OwnShare, Spares};
use crate::output::{Output, tell_answer};
use crate::permission::{Permission, Use};
use crate::threads;

/// Lists of queries, and loads that are ready or run, at most.
const MOST: usize = 64;

/// Queries of all lists together, at most: some 2 GB.
const MAX_QUERIES: usize = 20_000_000;

/// Intervals that wait for the coordinator, at most. Those that follow wait in the thread that adds them up, and hold up
/// no worker.
const UNTOLD: usize = 64;

/// A list of queries, of which further parts may come until it is first used.
#[derive(Debug)]
enum List {
    Coming { description: String, queries: Vec<Query>, octets: usize },
    Whole { list: Arc<QueryList>, octets: usize },
}

impl List {
    fn len(&self) -> usize {
        match self {
            Self::Coming { queries, .. } => queries.len(),
            Self::Whole { list, .. } => list.len() as usize,
        }
    }

    /// Of its messages.
    fn octets(&self) -> usize {
        match self {
            Self::Coming { octets, .. } | Self::Whole { octets, .. } => *octets,
        }
    }

    fn whole(&mut self) -> Arc<QueryList> {
        if let Self::Coming { description, queries, octets } = self {
            let (description, queries) = (std::mem::take(description), std::mem::take(queries));
            let list = Arc::new(QueryList::from_queries(queries, description));
            *self = Self::Whole { list, octets: *octets };
        }
        match self {
            Self::Whole { list, .. } => Arc::clone(list),
            Self::Coming { .. } => unreachable!("it was made whole"),
        }
    }
}

/// Loads that are ready or run.
#[derive(Debug)]
struct Running {
    /// `None` once they are given up.
    begin: Option<mpsc::Sender<Instant>>,
    stops: Arc<Vec<AtomicBool>>,
    use_of: Use,
    /// Of each load; `None` where its clients have no queries of their own.
    feeders: Vec<Option<Feeders>>,
}

/// Where what the queries of each load were told is written; `None` of one that does not tell.
type Told = Vec<Option<Arc<File>>>;

/// Octets of a record of what a query was told ([`dnslab_client::AnswerRecord`]).
pub(crate) const TOLD_RECORD: usize = 36;

/// Records that are said at once. Fewer are the last.
pub(crate) const TOLD_AT_ONCE: usize = 30_000;

/// Octets of the messages of all lists together, at most.
const MAX_OCTETS: usize = 2 << 30;

/// Clients of a capture or a population that a host has, at most.
const MAX_PLAYED_CLIENTS: u32 = 10_000_000;

/// Loads begin at most so long before they are told to, and so long after.
const BEGINS_BEFORE: Duration = Duration::from_secs(1);
const BEGINS_WITHIN: Duration = Duration::from_secs(60);

/// The lists of queries and the shares of loads of an agent.
#[derive(Debug)]
pub(crate) struct Shares {
    /// Where the coordinator puts loads that it does not send, if both are one process.
    handed: Option<Arc<Handed>>,
    lists: HashMap<u32, List>,
    running: Arc<Mutex<HashMap<u32, Running>>>,
    /// Of loads that are there or have ended, until they are left.
    told: HashMap<u32, Told>,
    waiting: Waiting,
}

impl Drop for Shares {
    /// What runs ends soon.
    fn drop(&mut self) {
        for running in self.running().values() {
            running.stops.iter().for_each(|stop| stop.store(true, Ordering::Relaxed));
        }
    }
}

impl Shares {
    pub(crate) fn with(handed: Option<Arc<Handed>>) -> Self {
        let (lists, running) = (HashMap::new(), Arc::default());
        Self { handed, lists, running, told: HashMap::new(), waiting: Waiting::default() }
    }

    /// Takes a part of a list.
    pub(crate) fn take(&mut self, list: u32, part: SentQueries) -> Result<Answer, Failure> {
        let known: usize = self.lists.values().map(List::len).sum();
        let is_new = !self.lists.contains_key(&list);
        if is_new && self.lists.len() >= MOST {
            return Err(Failure::of(format!("it has {MOST} lists of queries already")));
        }
        let known_octets: usize = self.lists.values().map(List::octets).sum();
        let description = part.description.clone();
        let coming = List::Coming { description, queries: Vec::new(), octets: 0 };
        let found = self.lists.entry(list).or_insert(coming);
        let List::Coming { queries, octets, .. } = found else {
            return Err(Failure::of(format!("list {list} is in use: it takes no further queries")));
        };
        let further = part.queries(queries.len() + 1).map_err(unusable)?;
        let more: usize = further.iter().map(|query| query.octets().len()).sum();
        if known + further.len() > MAX_QUERIES || known_octets + more > MAX_OCTETS {
            let most = format!("it has {MAX_QUERIES} queries of {MAX_OCTETS} octets at most");
            return Err(Failure::of(most));
        }
        *octets += more;
        queries.extend(further);
        Ok(Answer::Taken)
    }

    /// Makes loads ready on threads of their own, and says so by `output` as the answer to order `id`. They wait for
    /// [`Shares::begin`].
    pub(crate) fn ready<W: Write + Send + 'static>(
        &mut self,
        (id, load): (u32, u32),
        members: Vec<SentShare>,
        permission: &Permission,
        output: Arc<Output<W>>,
    ) -> Result<(), Failure> {
        let handed = self.handed.as_ref().and_then(|handed| handed.take(load));
        let is_known = self.running().contains_key(&load) || self.told.contains_key(&load);
        if self.running().len().max(self.told.len()) >= MOST || is_known {
            return Err(Failure::of(format!("it has {MOST} loads, or one of number {load}")));
        }
        let handed = handed.map(|HandedLoad { members, news, spares }| (members, (news, spares)));
        let (handed, news) = handed.unzip();
        let (members, feeders) = match handed {
            Some(handed) => handed.into_iter().map(|member| (member, None)).unzip(),
            None => {
                let made = members.into_iter().map(|member| self.member(member, permission));
                made.collect::<Result<Vec<_>, Failure>>()?.into_iter().unzip()
            }
        };
        let members: Vec<OwnShare> = members;
        let uses = members.iter().map(|member| Use::of(&member.job, member.share));
        let use_of = uses.fold(Use::NONE, Use::and);
        let all = self.running().values().map(|running| running.use_of).fold(use_of, Use::and);
        let stops = members.iter().map(|_| AtomicBool::new(false)).collect::<Vec<_>>();
        let (stops, (begin, begun)) = (Arc::new(stops), mpsc::channel());
        // What is handed over is of this process, which would do it without asking, and has what its queries are told.
        if news.is_none() {
            permission.check_use(all)?;
            let answers: Told = members.iter().map(|member| member.told.clone()).collect();
            if answers.iter().any(Option::is_some) {
                self.told.insert(load, answers);
            }
        }
        let ready = Ready { id, load, members, news, stops: Arc::clone(&stops), begun };
        self.running().insert(load, Running { begin: Some(begin), stops, use_of, feeders });
        let running = Arc::clone(&self.running);
        let started = threads::start(move || {
            ready.apply_or_say(&output);
            running.lock().unwrap_or_else(PoisonError::into_inner).remove(&load);
        });
        started.map(drop).map_err(|error| {
            self.running().remove(&load);
            Failure::of(error.to_string())
        })
    }

    /// A share that was sent, with what brings the queries of its clients if they have their own.
    fn member(
        &mut self,
        sent: SentShare,
        permission: &Permission,
    ) -> Result<(OwnShare, Option<Feeders>), Failure> {
        let SentShare { job, list, share } = sent;
        let found = self.lists.get_mut(&list);
        let list = found.ok_or_else(|| Failure::of(format!("it has no list {list}")))?;
        let job = job.with_queries(list.whole()).map_err(unusable)?;
        let end = share.first.checked_add(share.count);
        if share.count == 0 || end.is_none_or(|end| end > job.workers) {
            return Err(Failure::of(format!(
                "a load of {} workers has no such share",
                job.workers
            )));
        }
        permission.check(&job)?;
        let answers = job.tells.then(tempfile::tempfile).transpose();
        let answers =
            answers.map_err(|error| Failure::of(format!("no temporary file: {error}")))?;
        let most = (MAX_PLAYED_CLIENTS / share.count).saturating_mul(job.workers);
        let fed = job.played.clone();
        let fed = fed.map(|known| FedClients::make(known, share.count, most, &self.waiting));
        let (clients, feeders) = fed.unzip();
        let clients = clients.map(|clients| Arc::new(clients) as Arc<dyn ClientTraffic>);
        Ok((OwnShare { job, share, clients, told: answers.map(Arc::new) }, feeders))
    }

    /// Lets loads begin that are ready.
    pub(crate) fn begin(&self, load: u32, at: Instant) -> Result<Answer, Failure> {
        let now = Instant::now();
        // This process may have been stopped meanwhile (SIGSTOP).
        let is_own = self.handed.is_some();
        if !is_own && (at + BEGINS_BEFORE < now || at > now + BEGINS_WITHIN) {
            return Err(Failure::of("a load begins within a minute of being told to"));
        }
        let running = self.running();
        let begin = running.get(&load).and_then(|running| running.begin.as_ref());
        let sent = begin.ok_or_else(|| no_load(load))?.send(at);
        sent.map(|()| Answer::Told).map_err(|_| no_load(load))
    }

    pub(crate) fn stop(&self, load: u32, member: usize) -> Result<Answer, Failure> {
        let running = self.running();
        let stop = running.get(&load).and_then(|running| running.stops.get(member));
        stop.ok_or_else(|| no_load(load))?.store(true, Ordering::Relaxed);
        Ok(Answer::Told)
    }

    /// What the queries of a share were told, from an octet on.
    pub(crate) fn told(&self, load: u32, member: usize, from: u64) -> Result<Answer, Failure> {
        let file = self.told.get(&load).and_then(|files| files.get(member)?.as_ref());
        let file = file.ok_or_else(|| no_load(load))?;
        let mut part = vec![0; TOLD_AT_ONCE * TOLD_RECORD];
        let mut count = 0;
        loop {
            let at = from.saturating_add(count as u64);
            match file.read_at(&mut part[count..], at) {
                Ok(0) => break,
                Ok(more) => count += more,
                Err(error) => return Err(Failure::of(error.to_string())),
            }
        }
        Ok(Answer::ToldRecords(BASE64.encode(&part[..count])))
    }

    /// Gives a worker what its clients send next.
    pub(crate) fn feed(
        &self,
        load: u32,
        (member, worker): (usize, usize),
        fill: SentFill,
    ) -> Result<Answer, Failure> {
        let mut running = self.running();
        let found = running.get_mut(&load).and_then(|running| running.feeders.get_mut(member));
        let feeders = found.and_then(Option::as_mut).ok_or_else(|| no_load(load))?;
        feeders.take(worker, fill).map(|()| Answer::Told)
    }

    /// Whether a load is ready or runs.
    pub(crate) fn is_busy(&self) -> bool {
        !self.running().is_empty()
    }

    /// Whoever tells what its workers have taken up.
    pub(crate) fn taking(&self) -> Taking {
        Taking(Arc::clone(&self.running))
    }

    /// Gives up a list or loads, if there are any of this number.
    pub(crate) fn leave(&mut self, number: u32) {
        self.lists.remove(&number);
        self.told.remove(&number);
        // They are there until their threads have ended.
        if let Some(left) = self.running().get_mut(&number) {
            left.stops.iter().for_each(|stop| stop.store(true, Ordering::Relaxed));
            left.begin = None;
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<u32, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the workers of an agent take up of what is sent ahead.
#[derive(Debug)]
pub(crate) struct Taking(Arc<Mutex<HashMap<u32, Running>>>);

impl Taking {
    pub(crate) fn news(&self) -> Vec<FromAgent> {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fed = running.iter().filter(|(_, load)| load.feeders.iter().any(Option::is_some));
        let taken =
            |feeders: &Option<Feeders>| feeders.as_ref().map(Feeders::taken).unwrap_or_default();
        let news = fed.map(|(load, running)| FromAgent::Taken {
            load: *load,
            taken: running.feeders.iter().map(taken).collect(),
        });
        news.collect()
    }
}

fn no_load(load: u32) -> Failure {
    Failure::of(format!("it has no load {load}"))
}

fn unusable(error: UnusableJob) -> Failure {
    Failure::from(&error as &(dyn std::error::Error + 'static))
}

/// Shares that an agent is about to apply.
struct Ready {
    /// The order that is answered when all workers are ready.
    id: u32,
    load: u32,
    members: Vec<OwnShare>,
    /// Where its news go, if they are not to be said.
    news: Option<(SyncSender<LoadNews>, Spares)>,
    stops: Arc<Vec<AtomicBool>>,
    begun: mpsc::Receiver<Instant>,
}

/// Where what is told of loads goes.
struct Telling<W> {
    load: u32,
    output: Arc<Output<W>>,
    news: Option<(SyncSender<LoadNews>, Spares)>,
    /// The coordinator knows that all workers are ready.
    is_ready: AtomicBool,
}

impl<W: Write> Telling<W> {
    /// An interval that all workers here have finished. Returns a histogram of which nothing is needed.
    fn interval(
        &self,
        bodies: &SyncSender<Vec<u8>>,
        member: usize,
        record: IntervalRecord,
    ) -> Histogram {
        let record = Box::new(Counted(record));
        let Some((news, spares)) = &self.news else {
            let interval = FromAgent::Interval { load: self.load, member, record };
            // The thread that writes is another.
            body_of(&interval).ok().map(|body| bodies.send(body));
            let FromAgent::Interval { record, .. } = interval else { return Histogram::default() };
            return record.0.latency;
        };
        // Whoever has left the load hears no more of it.
        news.send(LoadNews::Interval { member, record }).ok();
        spares.take()
    }

    fn ended(
        &self,
        member: usize,
        share: Result<Box<Counted<MeasuredShare>>, Failure>,
    ) -> io::Result<()> {
        let Some((news, _)) = &self.news else {
            return self.output.say(&FromAgent::Ended { load: self.load, member, share });
        };
        let share = share.map_err(|failure| failure.reason);
        news.send(LoadNews::Ended { member, share }).ok();
        Ok(())
    }
}

impl Ready {
    /// What fails is said of each load, once the coordinator knows that they are ready, or in place of that.
    fn apply_or_say<W: Write + Send + 'static>(mut self, output: &Arc<Output<W>>) {
        let (id, load, news) = (self.id, self.load, self.news.take());
        let (output, is_ready) = (Arc::clone(output), AtomicBool::new(false));
        let (telling, count) = (Telling { load, output, news, is_ready }, self.members.len());
        let failure = match catch_unwind(AssertUnwindSafe(|| self.apply(&telling))) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => Failure::of(error.to_string()),
            Err(_) => Failure::of("a worker failed: please report this fault"),
        };
        // The reading thread notices that nobody is there.
        if !telling.is_ready.load(Ordering::Relaxed) {
            tell_answer(&telling.output, id, Err(failure)).ok();
            return;
        }
        for member in 0..count {
            telling.ended(member, Err(failure.clone())).ok();
        }
    }

    fn apply<W: Write + Send + 'static>(self, telling: &Telling<W>) -> io::Result<()> {
        let (Self { id, members, stops, begun, .. }, output) = (self, &telling.output);
        let (bodies, to_tell) = mpsc::sync_channel::<Vec<u8>>(UNTOLD);
        // What adds up runs only where no other thread has work, and must hold nothing that others wait for.
        let teller = telling.news.is_none().then(|| {
            let output = Arc::clone(output);
            threads::start(move || {
                to_tell.iter().try_for_each(|body| output.say_body(&body)).ok();
            })
        });
        let teller = teller.transpose()?;
        let relay =
            |member: usize, record: IntervalRecord| telling.interval(&bodies, member, record);
        let is_ready = &telling.is_ready;
        let mut begin = || {
            is_ready.store(true, Ordering::Relaxed);
            tell_answer(output, id, Ok(Answer::Ready)).ok()?;
            begun.recv().ok()
        };
        let applied = members.iter().zip(&*stops).map(|(member, stop)| Member {
            job: &member.job,
            share: member.share,
            clients: member.clients.as_ref(),
            stop,
            told: member.told.as_deref(),
        });
        let shares = run_shares(&applied.collect::<Vec<_>>(), &mut begin, &relay);
        drop(bodies);
        teller.map(thread::JoinHandle::join);
        let failure =
            |error: LoadError| Failure::from(&error as &(dyn std::error::Error + 'static));
        let shares: Vec<_> = shares.into_iter().map(|share| share.map_err(failure)).collect();
        if !is_ready.load(Ordering::Relaxed) {
            let why = |share: &Result<_, Failure>| share.as_ref().err().cloned();
            // What did not begin because of another load says less.
            let failures: Vec<Failure> = shares.iter().filter_map(why).collect();
            let not_begun = LoadError::NotBegun.to_string();
            let first = failures.iter().find(|failure| failure.reason != not_begun);
            let first = first.or(failures.first()).cloned();
            let first = first.unwrap_or_else(|| Failure::of(not_begun));
            return tell_answer(output, id, Err(first));
        }
        for (member, share) in shares.into_iter().enumerate() {
            let share = share.map(|share| Box::new(Counted(share)));
            telling.ended(member, share)?;
        }
        Ok(())
    }
}
