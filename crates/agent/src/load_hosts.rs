//! The hosts that share a load, as their coordinator has them.

use std::fs::File;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use dnslab_figures::{Histogram, are_words};
use dnslab_load::{
    Feed, IntervalRecord, Job, LoadResult, Member, Phases, Progress, Reports, Share, run_elsewhere,
};
use dnslab_protocol::clock::Offset;
use dnslab_protocol::{Answer, Counted, Order, SentJob, SentShare};
use dnslab_record::{LoadHost, MeasuredShare, NetworkPath};
use dnslab_settings::HostPlaces;

use crate::agents::Agents;
use crate::feeds::{FedWorker, Feeding};
use crate::handed::{HandedLoad, LoadNews, OwnShare, Spares};
use crate::link::{LATER_WITHIN, Link, LinkError};
use crate::shares::{TOLD_AT_ONCE, TOLD_RECORD};
use crate::threads;
use crate::watching::{ServerWatch, WatchedServer};

/// Time between the last host's readiness and the zero of the timeline: each must have been told by then.
const LEAD: Duration = Duration::from_millis(300);

/// Time until zero of the timeline where all agents are children of this process.
const NEAR_LEAD: Duration = Duration::from_millis(100);

/// Time until zero of the timeline where this process has the load.
const OWN_LEAD: Duration = Duration::from_millis(10);

/// Attempts at the offset of a clock that is needed better than it is known.
const ATTEMPTS: u32 = 4;

/// How often a load is looked after that says nothing.
const LOOK: Duration = Duration::from_millis(50);

/// Time beyond the end of a load and its time-outs after which a host must have said what it counted.
const SAID_WITHIN: Duration = Duration::from_secs(60);

/// How much ahead of its end an interval may be told: two clocks are not known better.
const AHEAD: Duration = Duration::from_secs(1);

/// The hosts that share a load.
#[derive(Clone, Debug)]
pub struct LoadHosts {
    links: Vec<Arc<Link>>,
    /// CPUs of this machine for the load, if this process has it, or the one host of clients in its laboratory.
    own_cpus: Option<Vec<usize>>,
}

/// Shares that are ready on a host. Dropping it gives them up, if they still run.
struct ReadyHost {
    link: Arc<Link>,
    load: u32,
    news: Receiver<LoadNews>,
    /// Where empty histograms go, in place of those that come with news.
    to_spare: Sender<Histogram>,
    shares: Vec<Share>,
    is_of_this_machine: bool,
}

/// A host whose loads have begun.
struct BegunHost {
    ready: ReadyHost,
    /// What brings its workers their queries.
    feeding: Feeding,
    /// Its clock just before the loads began.
    before: Offset,
    /// Zero of their timeline by its clock, as it was told, nanoseconds.
    begins_ns: i64,
}

impl ReadyHost {
    /// What the queries of a share were told, from the first record to the last: one for each that was due, in the
    /// uncounted ends of turns, too.
    fn fetch_told(
        &self,
        (member, job): (usize, &Member<'_>),
        due: u64,
        to: &mut &File,
    ) -> Result<(), String> {
        let (load, mut from) = (self.load, 0);
        let most = due.saturating_mul(2).saturating_add(1_000_000) * TOLD_RECORD as u64;
        while !job.stop.load(Ordering::Relaxed) {
            let answer = self.link.order(Order::Told { load, member, from });
            let Answer::ToldRecords(part) = answer.map_err(|error| error.to_string())? else {
                return Err(self.link.misunderstood().to_string());
            };
            let part = BASE64.decode(part).map_err(|error| error.to_string())?;
            if from > most || part.len() % TOLD_RECORD != 0 {
                return Err(self.link.contradicted("its answers are no such records").to_string());
            }
            to.write_all(&part).map_err(|error| error.to_string())?;
            from += part.len() as u64;
            if part.len() < TOLD_AT_ONCE * TOLD_RECORD {
                break;
            }
        }
        Ok(())
    }
}

impl Drop for ReadyHost {
    fn drop(&mut self) {
        self.link.handed().map(|handed| handed.take(self.load));
        self.link.forget_load(self.load);
        self.link.order_only(Order::Leave { number: self.load });
    }
}

/// What a host said of its shares; `None` of one that it did not end.
type Said = Vec<Option<Result<MeasuredShare, String>>>;

impl LoadHosts {
    /// Reaches the hosts.
    ///
    /// # Errors
    /// When one of them cannot be reached.
    pub fn reach(agents: &Agents, hosts: &HostPlaces) -> Result<Self, LinkError> {
        let links = agents.all(&hosts.0)?;
        for (place, link) in links.iter().enumerate() {
            if let Some(same) = links[..place].iter().find(|other| link.is_same_host(other)) {
                return Err(LinkError::Refused {
                    host: link.name().to_owned(),
                    reason: format!("it is the same host as {}: name it once", same.name()),
                });
            }
        }
        Ok(Self { links, own_cpus: None })
    }

    /// Hosts that have been reached.
    #[must_use]
    pub fn of(links: Vec<Arc<Link>>) -> Self {
        Self { links, own_cpus: None }
    }

    /// The agent of this process, or the host of the clients in a laboratory of this machine, with CPUs of this machine. What
    /// is seen of it is seen of this machine.
    #[must_use]
    pub fn own(client: Arc<Link>, cpus: &[usize]) -> Self {
        Self { links: vec![client], own_cpus: Some(cpus.to_vec()) }
    }

    /// Whether what they do is seen of this machine.
    #[must_use]
    pub fn is_of_this_machine(&self) -> bool {
        self.own_cpus.is_some()
    }

    /// The links to them; at least one.
    #[must_use]
    pub fn links(&self) -> &[Arc<Link>] {
        &self.links
    }

    fn cpus_of(&self, link: &Link) -> Vec<usize> {
        self.own_cpus.clone().unwrap_or_else(|| link.cpus().to_vec())
    }

    /// One of them that is also another host, if one is.
    #[must_use]
    pub fn same_as(&self, other: &Link) -> Option<&str> {
        self.links.iter().find(|link| link.is_same_host(other)).map(|link| link.name())
    }

    /// One of them that this process runs on, if one is.
    #[must_use]
    pub fn here(&self) -> Option<&str> {
        self.links.iter().find(|link| link.is_here()).map(|link| link.name())
    }

    /// Whether one of them is the host of a server.
    #[must_use]
    pub fn has_server(&self, server: &WatchedServer) -> bool {
        self.links.iter().any(|link| Arc::ptr_eq(link, server.link()))
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.links.len()).unwrap_or(u32::MAX)
    }

    /// CPUs of all of them.
    #[must_use]
    pub fn cpus(&self) -> u32 {
        u32::try_from(self.cpus_of_each().iter().sum::<usize>()).unwrap_or(u32::MAX)
    }

    fn cpus_of_each(&self) -> Vec<usize> {
        self.links.iter().map(|link| self.cpus_of(link).len().max(1)).collect()
    }

    /// Why one of them is lost; `None` while all are there.
    #[must_use]
    pub fn lost(&self) -> Option<LinkError> {
        self.links.iter().find_map(|link| link.ended())
    }

    /// Watches the CPUs of each from here on, with the name of the host; `None` where that cannot be. Whoever watches a server
    /// of this machine sees this machine's own.
    #[must_use]
    pub fn watch(&self, server_is_elsewhere: bool) -> Vec<(String, Option<ServerWatch>)> {
        if self.is_of_this_machine() && !server_is_elsewhere {
            return Vec::new();
        }
        let watch = |link: &Arc<Link>| {
            (link.name().to_owned(), ServerWatch::of_load(link, &self.cpus_of(link)).ok())
        };
        self.links.iter().map(watch).collect()
    }

    /// The ways of their packets to an address, as far as the hosts know them.
    #[must_use]
    pub fn paths_to(&self, to: IpAddr) -> Vec<NetworkPath> {
        let paths = self.links.iter().filter_map(|link| link.path_to(to).ok().flatten());
        paths.collect()
    }

    /// Applies loads on one timeline, each shared by all hosts, and waits until all have ended. `observe` is told of the
    /// progress, with the number of the load.
    ///
    /// Returns one result for each load, in order. Of a host that is lost meanwhile nothing is in it.
    pub fn run(
        &self,
        loads: &[Member<'_>],
        observe: &mut dyn FnMut(usize, Progress<'_>),
    ) -> Vec<Result<LoadResult, String>> {
        let begun = self.ready(loads, observe).and_then(|ready| begin(ready, loads));
        let (origin, begun) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                // A host that is late has failed as one that is lost has.
                self.links.iter().filter(|link| error.is_of(link)).for_each(|link| {
                    error.link.iter().for_each(|error| link.give_up_after(error));
                });
                return loads.iter().map(|_| Err(error.reason.clone())).collect();
            }
        };
        let jobs: Vec<&Job> = loads.iter().map(|load| load.job).collect();
        let mut facts = Vec::new();
        let gather = |reports: Vec<Vec<Reports>>| {
            let (gathered, of_hosts) = gather(begun, loads, origin, reports);
            facts = of_hosts;
            gathered
        };
        let results = run_elsewhere(&jobs, self.count(), origin, gather, observe);
        let with_facts = results.into_iter().enumerate().map(|(load, result)| {
            let mut result = result?;
            for host in &facts {
                let clock = host.clock.as_ref().map_err(Clone::clone)?;
                let named = host.of_load(load, *clock).filter(|_| !self.is_of_this_machine());
                result.facts.hosts.extend(named);
            }
            Ok(result)
        });
        with_facts.collect()
    }

    /// Has each host make its shares ready. `observe` is told of the time that passes.
    fn ready(
        &self,
        loads: &[Member<'_>],
        observe: &mut dyn FnMut(usize, Progress<'_>),
    ) -> Result<Vec<(ReadyHost, Feeding)>, NotBegun> {
        let cpus = self.cpus_of_each();
        let dealt: Vec<Vec<Share>> =
            loads.iter().map(|load| Share::deal(load.job.workers, &cpus)).collect();
        let queries: Vec<_> = loads.iter().map(|hosted| &hosted.job.queries).collect();
        // Whoever is handed its clients reads what they ask by itself.
        let sent = if self.links.iter().all(|link| link.is_own()) { &[] } else { loads };
        let mut feeds = sent.iter().map(feeds_of).collect::<Result<Vec<_>, _>>()?;
        let mut ready = Vec::new();
        for (place, link) in self.links.iter().enumerate() {
            let shares: Vec<Share> = dealt.iter().map(|shares| shares[place]).collect();
            let load = link.number();
            let ((to_here, news), (spares, to_spare)) = (link.expect_load(load), Spares::new());
            // From here on they are given up whatever happens.
            let is_of_this_machine = self.is_of_this_machine();
            let (link_of, dealt_here) = (Arc::clone(link), shares.clone());
            let host = ReadyHost {
                link: link_of,
                load,
                news,
                to_spare,
                shares: dealt_here,
                is_of_this_machine,
            };
            let members = match link.handed() {
                Some(handed) => {
                    let own = loads.iter().zip(&shares).map(|(load, share)| own(load, *share));
                    let members = own.collect::<io::Result<_>>().map_err(not_begun)?;
                    handed.put(load, HandedLoad { members, news: to_here, spares });
                    Vec::new()
                }
                None => {
                    let lists = link.lists(&queries)?;
                    let sent = loads.iter().zip(&shares).zip(lists);
                    let sent = sent.map(|((hosted, share), list)| {
                        let job = SentJob::from(hosted.job).on_cpus(self.cpus_of(link));
                        SentShare { job, list, share: *share }
                    });
                    sent.collect()
                }
            };
            let fed =
                feeds.iter_mut().zip(&shares).enumerate().flat_map(|(member, (feeds, share))| {
                    let own = feeds.by_ref().take(share.count as usize).enumerate();
                    own.map(move |(worker, feed)| FedWorker { member, worker, feed, sent: 0 })
                });
            let fed: Vec<FedWorker> = fed.collect();
            let id = link.begin_order(Order::Load { load, members });
            let feeding = Feeding::begin(link, load, fed);
            ready.push((id, host, feeding.map_err(not_begun)?));
        }
        let deadline = Instant::now() + LATER_WITHIN;
        let awaited = ready.into_iter().map(|(id, host, feeding)| {
            let answer = loop {
                if let Some(answer) = host.link.ready_within(id, LOOK) {
                    break answer?;
                }
                (0..loads.len()).for_each(|load| observe(load, Progress::Tick));
                if loads.iter().all(|load| load.stop.load(Ordering::Relaxed)) {
                    return Err(NotBegun::of("interrupted before the load began"));
                }
                // What this process has is ready when it is.
                if Instant::now() > deadline && !host.link.is_own() {
                    return Err(host.link.is_late(LATER_WITHIN).into());
                }
            };
            match answer {
                Answer::Ready => Ok((host, feeding)),
                _ => Err(host.link.misunderstood().into()),
            }
        });
        awaited.collect()
    }
}

/// A share for the agent of this process.
fn own(load: &Member<'_>, share: Share) -> io::Result<OwnShare> {
    let answers = load.told.filter(|_| load.job.tells).map(File::try_clone).transpose()?;
    let (job, clients) = (load.job.clone(), load.clients.cloned());
    Ok(OwnShare { job, share, clients, told: answers.map(Arc::new) })
}

fn not_begun(error: io::Error) -> NotBegun {
    NotBegun::of(error.to_string())
}

/// Why loads did not begin.
struct NotBegun {
    reason: String,
    /// The fault of a host, if it was one.
    link: Option<LinkError>,
}

impl NotBegun {
    fn of(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), link: None }
    }

    fn is_of(&self, link: &Link) -> bool {
        self.link.as_ref().is_some_and(|error| error.host() == link.name())
    }
}

impl From<LinkError> for NotBegun {
    fn from(error: LinkError) -> Self {
        Self { reason: error.to_string(), link: Some(error) }
    }
}

/// Has all hosts begin at one instant, by their own clocks as they are now.
fn begin(
    ready: Vec<(ReadyHost, Feeding)>,
    loads: &[Member<'_>],
) -> Result<(Instant, Vec<BegunHost>), NotBegun> {
    ready.iter().for_each(|(_, feeding)| feeding.hold(true));
    let clocks = ready.iter().map(|(host, _)| clock_of(&host.link, loads));
    let clocks = clocks.collect::<Result<Vec<Offset>, NotBegun>>()?;
    let slowest_ns = clocks.iter().map(|clock| clock.bound_ns).max().unwrap_or(0);
    let leads = ready.iter().map(|(host, _)| lead(&host.link));
    let lead = leads.max().unwrap_or_default();
    let origin = Instant::now() + lead + 4 * Duration::from_nanos(slowest_ns);
    let ordered = ready.into_iter().zip(clocks).map(|((ready, feeding), before)| {
        let begins_ns = ready.link.instant_there(before, origin)?;
        let order = Order::Begin { load: ready.load, at_ns: begins_ns };
        Ok((ready.link.begin_order(order), BegunHost { ready, feeding, before, begins_ns }))
    });
    let ordered = ordered.collect::<Result<Vec<_>, LinkError>>()?;
    let begun = ordered.into_iter().map(|(id, host)| match host.ready.link.done(id)? {
        Answer::Told => {
            host.feeding.hold(false);
            Ok(host)
        }
        _ => Err(host.ready.link.misunderstood()),
    });
    Ok((origin, begun.collect::<Result<_, LinkError>>()?))
}

/// Time from now to the zero of the timeline, by which a host must have been told it.
fn lead(link: &Link) -> Duration {
    match link.pid() {
        Some(_) if link.is_own() => OWN_LEAD,
        Some(_) => NEAR_LEAD,
        None => LEAD,
    }
}

/// The clock of a host, as well as its loads need it. A busy machine answers late now and then.
fn clock_of(link: &Link, loads: &[Member<'_>]) -> Result<Offset, NotBegun> {
    let mut attempts = ATTEMPTS;
    loop {
        let clock = link.offset()?;
        attempts -= 1;
        match check_clock(link, clock.bound_ns, loads) {
            Ok(()) => return Ok(clock),
            Err(reason) if attempts == 0 => return Err(NotBegun::of(reason)),
            Err(_) => {}
        }
    }
}

/// The queries of a load's clients, if they have their own, for each worker.
fn feeds_of(hosted: &Member<'_>) -> Result<std::vec::IntoIter<Box<dyn Feed>>, NotBegun> {
    let job = hosted.job;
    let feeds = hosted.clients.map(|clients| clients.begin(job.workers, &job.cpus));
    let feeds = feeds.transpose().map_err(not_begun)?;
    Ok(feeds.unwrap_or_default().into_iter())
}

/// Whether a clock that is known within this is known well enough for loads. Those that take turns share the time between
/// two slices; of others it is what a window may be off by.
fn check_clock(link: &Link, bound_ns: u64, loads: &[Member<'_>]) -> Result<(), String> {
    let most = loads.iter().map(|load| match load.job.timeline.turns() {
        Some(turns) => turns.lead_ns().max(turns.slice_ns() / 20),
        None => load.job.timeline.own_window_ns() / 200,
    });
    match most.min().filter(|most| bound_ns > *most) {
        None => Ok(()),
        Some(most) => Err(format!(
            "{}: its clock is known within {bound_ns} ns only, and such a load needs {most} ns: take a longer load, whole \
             runs (`repeat.alternate = \"runs\"`), or a nearer host",
            link.name()
        )),
    }
}

/// What a host says of a load that it has ended.
#[derive(Clone, Copy)]
struct Ended {
    /// How late its last worker began, nanoseconds.
    late_ns: u64,
    /// Queries, in the warm-up too.
    sent: u64,
    /// Queries of the measured window.
    answered: u64,
}

impl Ended {
    fn of(share: &MeasuredShare) -> Self {
        let MeasuredShare { late_ns, counted, .. } = share;
        let sent = counted.warm_up.sent + counted.counters.sent;
        Self { late_ns: *late_ns, sent, answered: counted.counters.outcomes.answered }
    }
}

/// What is known of a host after its loads.
struct HostFacts {
    link: Arc<Link>,
    shares: Vec<Share>,
    /// What it counted of each load; `None` of one that it did not end.
    ended: Vec<Option<Ended>>,
    /// How far its clock was known, nanoseconds; an error if it was known too badly.
    clock: Result<u64, String>,
}

impl HostFacts {
    /// `None` for a host whose workers are not in the load.
    fn of_load(&self, load: usize, clock_bound_ns: u64) -> Option<LoadHost> {
        let (cpus, workers) = (self.link.cpus(), self.shares[load].count);
        let Ended { late_ns, sent, answered } = self.ended[load]?;
        Some(LoadHost {
            host: self.link.name().to_owned(),
            workers,
            cpus: cpus.iter().copied().cycle().take(cpus.len().min(1) * workers as usize).collect(),
            clock_bound_ns,
            late_ns,
            sent,
            answered,
        })
    }
}

/// Hears all hosts until they have said what they counted. Returns that for each load, and what is known of the hosts.
fn gather(
    begun: Vec<BegunHost>,
    loads: &[Member<'_>],
    origin: Instant,
    mut reports: Vec<Vec<Reports>>,
) -> (Vec<Result<Vec<MeasuredShare>, String>>, Vec<HostFacts>) {
    let is_broken = &loads.iter().map(|_| AtomicBool::new(false)).collect::<Vec<_>>()[..];
    let heard = thread::scope(|scope| {
        let mut threads = Vec::new();
        // From the last host to the first, as that takes reports off their ends.
        for host in begun.into_iter().rev() {
            let own: Vec<Reports> = reports.iter_mut().filter_map(Vec::pop).collect();
            let hear = move || host.hear((loads, is_broken), origin, &own);
            threads.push(thread::Builder::new().spawn_scoped(scope, hear)?);
        }
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        Ok::<Vec<(Said, HostFacts)>, io::Error>(threads.into_iter().rev().map(join).collect())
    });
    let heard = match heard {
        Ok(heard) => heard,
        Err(error) => {
            let reason = threads::none_left(error).to_string();
            return (loads.iter().map(|_| Err(reason.clone())).collect(), Vec::new());
        }
    };
    let (mut said, facts): (Vec<Said>, Vec<HostFacts>) = heard.into_iter().unzip();
    ((0..loads.len()).map(|load| shares_of(load, &mut said)).collect(), facts)
}

/// What all hosts counted of a load.
fn shares_of(load: usize, said: &mut [Said]) -> Result<Vec<MeasuredShare>, String> {
    let shares = said.iter_mut().filter_map(|said| said[load].take());
    let shares = shares.collect::<Result<Vec<_>, _>>()?;
    match shares.is_empty() {
        true => Err("none of the hosts of the load said what it counted".to_owned()),
        false => Ok(shares),
    }
}

impl BegunHost {
    /// Hears the host until all its shares have ended, or it is lost.
    fn hear(
        self,
        (loads, is_broken): (&[Member<'_>], &[AtomicBool]),
        origin: Instant,
        reports: &[Reports],
    ) -> (Said, HostFacts) {
        let mut hearing = Hearing::of(&self.ready, (loads, is_broken), origin, reports);
        while hearing.said.iter().any(Option::is_none) {
            hearing.pass_on_stops();
            match self.ready.news.recv_timeout(LOOK) {
                Ok(news) => {
                    if let Err(fault) = hearing.take(news) {
                        self.ready.link.give_up(fault);
                        break;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout)
                    if !self.ready.link.is_own() && hearing.is_overdue() =>
                {
                    self.ready.link.give_up("its load does not end");
                    break;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        let mut said = hearing.said;
        self.fetch_told(loads, &mut said);
        let ended = said.iter().map(|said| Some(Ended::of(said.as_ref()?.as_ref().ok()?)));
        let ended: Vec<Option<Ended>> = ended.collect();
        let facts = HostFacts {
            clock: self.clock(loads, &ended, origin),
            ended,
            shares: self.ready.shares.clone(),
            link: Arc::clone(&self.ready.link),
        };
        (said, facts)
    }

    /// Writes what the queries of the host's shares were told. Where that fails, so has the share.
    fn fetch_told(&self, loads: &[Member<'_>], said: &mut Said) {
        for (member, (load, said)) in loads.iter().zip(said).enumerate() {
            let Some(mut to) = load.told.filter(|_| load.job.tells) else { continue };
            // Answers of a load that was cut short are not compared.
            let Some(Ok(share)) = said else { continue };
            if load.stop.load(Ordering::Relaxed) || self.ready.link.is_own() {
                continue;
            }
            let due = share.counted.warm_up.outcomes.due + share.counted.counters.outcomes.due;
            if let Err(reason) = self.ready.fetch_told((member, load), due, &mut to) {
                *said = Some(Err(reason));
            }
        }
    }

    /// How far the instant at which the host began was known, nanoseconds; that of a host which is lost is no error of its
    /// own.
    fn clock(
        &self,
        loads: &[Member<'_>],
        ended: &[Option<Ended>],
        origin: Instant,
    ) -> Result<u64, String> {
        let bound_ns = match self.ready.link.there(self.before, origin) {
            Ok((there_ns, bound_ns)) => bound_ns + there_ns.abs_diff(self.begins_ns),
            Err(_) if self.ready.link.ended().is_some() => return Ok(0),
            Err(error) => return Err(error.to_string()),
        };
        check_clock(&self.ready.link, bound_ns, loads)?;
        if self.ready.link.pid().is_some() {
            // It has this clock, by which what is late is late.
            return Ok(bound_ns);
        }
        for (load, ended) in loads.iter().zip(ended) {
            // Later turns are by the clock.
            let timeline = &load.job.timeline;
            let most_ns = timeline.measured_from_ns().max(timeline.own_window_ns() / 200);
            let late_ns = ended.map(|ended| ended.late_ns);
            if let Some(late_ns) = late_ns.filter(|late_ns| *late_ns > most_ns) {
                return Err(format!(
                    "{}: its last worker began {late_ns} ns late, and such a load bears {most_ns} ns: lengthen the \
                     warm-up (`load.warm_up`), or end what else runs there",
                    self.ready.link.name()
                ));
            }
        }
        Ok(bound_ns)
    }
}

/// What was heard of a host.
struct Hearing<'a> {
    host: &'a ReadyHost,
    loads: &'a [Member<'a>],
    /// A share of a load has failed, so nothing comes of it on any host.
    is_broken: &'a [AtomicBool],
    phases: Vec<Phases>,
    origin: Instant,
    reports: &'a [Reports],
    said: Said,
    /// The interval that each load may tell next.
    next: Vec<u64>,
    is_stopped: Vec<bool>,
    /// When the last of them was.
    stopped: Option<Instant>,
}

impl<'a> Hearing<'a> {
    fn of(
        host: &'a ReadyHost,
        (loads, is_broken): (&'a [Member<'a>], &'a [AtomicBool]),
        origin: Instant,
        reports: &'a [Reports],
    ) -> Self {
        let count = loads.len();
        Self {
            host,
            loads,
            is_broken,
            phases: loads.iter().map(|load| Phases::of(load.job)).collect(),
            origin,
            reports,
            said: vec![None; count],
            next: vec![0; count],
            is_stopped: vec![false; count],
            stopped: None,
        }
    }

    fn pass_on_stops(&mut self) {
        for (member, load) in self.loads.iter().enumerate() {
            let is_broken = self.is_broken[member].load(Ordering::Relaxed);
            let is_wanted = !load.stop.load(Ordering::Relaxed) && !is_broken;
            if !self.is_stopped[member] && !is_wanted {
                self.is_stopped[member] = true;
                self.stopped = Some(Instant::now());
                self.host.link.order_only(Order::StopLoad { load: self.host.load, member });
            }
        }
    }

    fn is_overdue(&self) -> bool {
        let patience = self
            .loads
            .iter()
            .map(|load| load.job.attempts().patience().max(load.job.settings.timeout));
        let patience = patience.max().unwrap_or_default() + SAID_WITHIN;
        let length = self.loads.iter().map(|load| load.job.timeline.length()).max();
        let is_after_end = self.origin.elapsed() > length.unwrap_or_default() + patience;
        let is_after_stop = self.stopped.is_some_and(|stopped| stopped.elapsed() > patience);
        let all_are_stopped = self.is_stopped.iter().all(|is_stopped| *is_stopped);
        is_after_end || (all_are_stopped && is_after_stop)
    }

    /// An error says what cannot be.
    fn take(&mut self, news: LoadNews) -> Result<(), &'static str> {
        let member = match &news {
            LoadNews::Interval { member, .. } | LoadNews::Ended { member, .. } => *member,
        };
        if self.said.get(member).is_none_or(Option::is_some) {
            return Err("it tells of a load that is none, or has ended");
        }
        match news {
            LoadNews::Interval { record, .. } => self.interval(member, *record),
            LoadNews::Ended { share: Err(failure), .. } => {
                self.is_broken[member].store(true, Ordering::Relaxed);
                self.said[member] = Some(Err(failure));
                Ok(())
            }
            LoadNews::Ended { share: Ok(share), .. } => self.share(member, *share),
        }
    }

    fn interval(
        &mut self,
        member: usize,
        Counted(record): Counted<IntervalRecord>,
    ) -> Result<(), &'static str> {
        let now = u64::try_from((self.origin.elapsed() + AHEAD).as_nanos()).unwrap_or(u64::MAX);
        if let Some(fault) = record.fault(&self.phases[member], now) {
            return Err(fault);
        }
        if record.number != self.next[member] {
            return Err("it tells of an interval twice, or leaves one out");
        }
        self.next[member] = record.number + 1;
        self.reports[member].send(record);
        if let Some(spare) = self.reports[member].spare() {
            // Whoever has ended needs none.
            self.host.to_spare.send(spare).ok();
        }
        Ok(())
    }

    fn share(
        &mut self,
        member: usize,
        Counted(share): Counted<MeasuredShare>,
    ) -> Result<(), &'static str> {
        let counted = &share.counted;
        let windows = self.loads[member].job.settings.windows.iter();
        let windows: usize = windows.map(|windows| windows.as_slice().len()).sum();
        if counted.workers.len() != self.host.shares[member].count as usize {
            return Err("it had other workers than it was given");
        }
        if counted.windows.len() != windows || share.until_ns > self.phases[member].until {
            return Err("it measured other windows than it was given");
        }
        if !counted.intervals.is_empty() || !counted.seconds.is_empty() {
            return Err("it has a series of its own");
        }
        let words = counted.windows.iter().all(|window| are_words(&window.rcodes));
        if !words || !counted.counters.is_possible() || !counted.warm_up.is_possible() {
            return Err("it counts more than there is to count");
        }
        self.said[member] = Some(Ok(self.shown(share)));
        Ok(())
    }

    /// With texts of others as they can be shown.
    fn shown(&self, mut share: MeasuredShare) -> MeasuredShare {
        if self.host.link.is_own() {
            return share;
        }
        let name = self.host.link.name();
        if let Some(tls) = &mut share.counted.tls {
            let certificate = tls.certificate.iter_mut();
            let of_certificate =
                certificate.flat_map(|facts| [&mut facts.key, &mut facts.signature]);
            let own = [&mut tls.version, &mut tls.cipher_suite, &mut tls.group];
            own.into_iter().chain(of_certificate).for_each(|text| *text = crate::link::told(text));
        }
        let shown = |text: Option<String>| text.map(|text| crate::link::told(&text));
        MeasuredShare {
            send_path: shown(share.send_path),
            wrong_example: shown(share.wrong_example),
            malformed_example: shown(share.malformed_example),
            signature_example: shown(share.signature_example),
            last_connection_end: shown(share.last_connection_end).map(|end| {
                if self.host.is_of_this_machine { end } else { format!("{end} (on {name})") }
            }),
            ..share
        }
    }
}
