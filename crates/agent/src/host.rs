//! The agent: what a host does when it is told to.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use dnslab_lab::pods::ADDRESS;
use dnslab_lab::{CounterWatch, ExternalServer, GuardProgram, NotFound, Sampler, Watched};
use dnslab_load::{Asker, Job, ask};
use dnslab_protocol::{
    Answer, BrokenStream, Failure, FoundServer, FrameReader, FromAgent, GREETING, Order, Role,
    SAMPLES, SentJob, SentQueries, Sought, ToAgent, Unreadable, UnusableJob, message_of,
};
use dnslab_record::{CounterSample, CounterSeries, ResourceSeries, Span};
use dnslab_traffic::QueryList;
use dnslab_wire::{Query, Transport, UnknownWord};

use crate::clock::Clock;
use crate::handed::Handed;
use crate::link::MAX_CPUS;
use crate::output::{BETWEEN_BEATS, Output, READ, tell_answer};
use crate::permission::Permission;
use crate::sampling::Samplings;
use crate::scratch::Scratch;
use crate::servers::{Servers, can_serve};
use crate::shares::{Shares, Taking};
use crate::threads;

/// An agent that hears nothing for so long ends. Packets that are lost for 10 s leave 14 s of silence; after 60 s without
/// packets it is twice as long, as TCP waits longer and longer (RFC 6298, section 5.5).
const SILENCE: Duration = Duration::from_secs(30);

/// How often what the watches see is told.
const BETWEEN_SAMPLES: Duration = Duration::from_millis(100);

/// What other hosts are told to have of a kind at once, at most: servers, files, watches, counts. An own agent has what its
/// process would have.
const MAX_OF_OTHERS: usize = 64;

/// Time for what is under way when the coordinator has left.
const LEFT_WITHIN: Duration = Duration::from_secs(20);

/// Time for an answer to one query, at most.
const MAX_ASKED: Duration = Duration::from_secs(100);

/// Orders that are done on threads of their own, at most.
const MAX_LATER: usize = 64;

/// How an agent ended.
#[derive(Debug, thiserror::Error)]
pub enum AgentEnd {
    /// Its input ended without a farewell: the coordinator, or what led to it, is gone.
    #[error("the coordinator is gone")]
    Gone,
    /// It heard nothing for too long.
    #[error("the coordinator has said nothing for {} s", SILENCE.as_secs())]
    Silent,
    /// What came was not from a coordinator of this version.
    #[error("{0}")]
    Refused(String),
    /// Its input or output failed.
    #[error("cannot speak with the coordinator: {0}")]
    Io(#[from] io::Error),
}

impl From<BrokenStream> for AgentEnd {
    fn from(broken: BrokenStream) -> Self {
        Self::Refused(broken.to_string())
    }
}

impl From<Unreadable> for AgentEnd {
    fn from(unreadable: Unreadable) -> Self {
        Self::Refused(unreadable.to_string())
    }
}

type Watches = Arc<Mutex<HashMap<u32, Sampler>>>;

/// Does what the coordinator says until it says farewell. `silent` is called, on a thread of its own, when nothing was
/// heard for 30 s: it must end the process, since this function may wait for an output that nobody reads.
///
/// # Errors
/// When the coordinator went away without a farewell, or said what cannot be understood.
pub fn serve(
    permission: &Permission,
    input: impl Read,
    output: impl Write + Send + 'static,
    silent: impl FnOnce(AgentEnd) + Send + 'static,
) -> Result<(), AgentEnd> {
    serve_until((permission, None, Clock::start()), (input, output), Some(silent))
}

/// [`serve`] as a thread of the coordinator's process, with its rights: it is there as long as that is. What a load is made
/// of is handed over.
pub(crate) fn serve_own(
    guard: GuardProgram,
    (input, output): (impl Read, impl Write + Send + 'static),
    (handed, clock): (Arc<Handed>, Clock),
) -> Result<(), AgentEnd> {
    let roles = Role::ALL.to_vec();
    let (is_bounded, targets, max_rate_qps) = (false, None, None);
    let permission = Permission { roles, is_bounded, targets, max_rate_qps, guard };
    serve_until((&permission, Some(handed), clock), (input, output), None::<fn(AgentEnd)>)
}

fn serve_until(
    (permission, handed, clock): (&Permission, Option<Arc<Handed>>, Clock),
    (input, output): (impl Read, impl Write + Send + 'static),
    silent: Option<impl FnOnce(AgentEnd) + Send + 'static>,
) -> Result<(), AgentEnd> {
    let heard = Arc::new(AtomicI64::new(clock.now_ns()));
    let output = Arc::new(Output::new(output));
    let watches = Watches::default();
    output.greet(GREETING)?;
    let (ended, end) = mpsc::channel::<()>();
    let scratch = Scratch::begin(permission.guard.clone());
    let most = if handed.is_some() { usize::MAX } else { MAX_OF_OTHERS };
    let servers = Servers::within(scratch.clone(), most);
    let for_silence = (servers.clone(), scratch.clone());
    if let Some(silent) = silent {
        let leave = move |end| {
            for_silence.0.end_all();
            for_silence.1.remove_all();
            silent(end);
        };
        watch_silence(clock, Arc::clone(&heard), end, leave)?;
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let is_own = handed.is_some();
    let shares = Shares::with(handed);
    let seen = (Arc::clone(&watches), servers.clone(), shares.taking());
    let teller = tell(Arc::clone(&output), seen, Arc::clone(&is_over));
    let teller = teller.inspect_err(|error| {
        output.say(&FromAgent::Refused { reason: error.to_string() }).ok();
    })?;
    let mut host = Host {
        permission,
        clock,
        output: Arc::clone(&output),
        is_known: false,
        is_own,
        most,
        servers: servers.clone(),
        counts: Arc::default(),
        watches: &watches,
        samplings: Samplings::within(scratch.clone(), most),
        shares,
        asked: Arc::default(),
        later: Arc::default(),
    };
    let done = host.listen(input, &heard);
    let later = Arc::clone(&host.later);
    drop(host);
    end_servers(&servers, &later);
    scratch.remove_all();
    if let Err(AgentEnd::Refused(reason)) = &done {
        // The coordinator may be gone as well.
        output.say(&FromAgent::Refused { reason: reason.clone() }).ok();
    }
    is_over.store(true, Ordering::Relaxed);
    teller.thread().unpark();
    teller.join().ok();
    drop(ended);
    done?;
    Ok(output.say_with(|frames| FromAgent::Bye { frames })?)
}

/// Ends what was started, and waits for starts and stops that are under way: a folder that a server still writes to
/// cannot be removed.
fn end_servers(servers: &Servers, later: &AtomicUsize) {
    servers.end_all();
    let deadline = Instant::now() + LEFT_WITHIN;
    while later.load(Ordering::Relaxed) > 0 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(20));
    }
    servers.end_all();
}

/// [`serve`] on the standard input and output of this process.
///
/// # Errors
/// As [`serve`].
pub fn serve_standard(
    permission: &Permission,
    silent: impl FnOnce(AgentEnd) + Send + 'static,
) -> Result<(), AgentEnd> {
    serve(permission, io::stdin().lock(), io::stdout(), silent)
}

/// Calls `silent` if nothing was heard for too long before the end.
fn watch_silence(
    clock: Clock,
    heard: Arc<AtomicI64>,
    end: mpsc::Receiver<()>,
    silent: impl FnOnce(AgentEnd) + Send + 'static,
) -> io::Result<()> {
    let limit_ns = i64::try_from(SILENCE.as_nanos()).unwrap_or(i64::MAX);
    threads::start(move || {
        while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(BETWEEN_BEATS) {
            if clock.now_ns() - heard.load(Ordering::Relaxed) > limit_ns {
                return silent(AgentEnd::Silent);
            }
        }
    })?;
    Ok(())
}

/// Says that the agent is there, and what the watches see. The threads that sample wait for nobody.
fn tell(
    output: Arc<Output<impl Write + Send + 'static>>,
    (watches, servers, taking): (Watches, Servers, Taking),
    is_over: Arc<AtomicBool>,
) -> io::Result<thread::JoinHandle<()>> {
    let samples_of_a_beat = BETWEEN_BEATS.as_millis() / BETWEEN_SAMPLES.as_millis();
    threads::start(move || {
        for turn in 1_u128.. {
            // Woken at the end.
            thread::park_timeout(BETWEEN_SAMPLES);
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            let latest: Vec<FromAgent> = {
                let watches = watches.lock().unwrap_or_else(PoisonError::into_inner);
                let latest = watches.iter().filter_map(|(watch, sampler)| {
                    let latest = sampler.latest()?;
                    let (server, cpus) = (latest.server, latest.load_cpus);
                    Some(FromAgent::Latest { watch: *watch, server, cpus })
                });
                latest.collect()
            };
            let beat = (turn % samples_of_a_beat == 0).then_some(FromAgent::Beat);
            let ended = servers.ended();
            let taken = taking.news();
            // The reading thread notices that nobody is there.
            let mut all = latest.iter().chain(&ended).chain(&taken).chain(&beat);
            if all.any(|message| output.say(message).is_err()) {
                return;
            }
        }
    })
}

struct Host<'a, W> {
    permission: &'a Permission,
    clock: Clock,
    output: Arc<Output<W>>,
    /// The coordinator has said its version.
    is_known: bool,
    /// It is a thread of the coordinator's process.
    is_own: bool,
    /// What it has of a kind at once, at most.
    most: usize,
    servers: Servers,
    /// What servers that were started count themselves.
    counts: Arc<Mutex<HashMap<u32, CounterWatch>>>,
    watches: &'a Watches,
    samplings: Samplings,
    shares: Shares,
    /// When a query was asked last by itself.
    asked: Arc<Mutex<Option<Instant>>>,
    /// Orders that are done on threads of their own now.
    later: Arc<AtomicUsize>,
}

impl<W: Write + Send + 'static> Host<'_, W> {
    /// Reads until the farewell.
    fn listen(&mut self, mut input: impl Read, heard: &AtomicI64) -> Result<(), AgentEnd> {
        let (mut frames, mut octets) = (FrameReader::default(), vec![0; READ]);
        loop {
            let count = match input.read(&mut octets) {
                Ok(0) => return Err(AgentEnd::Gone),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            let received_ns = self.clock.now_ns();
            heard.store(received_ns, Ordering::Relaxed);
            frames.push(&octets[..count]);
            loop {
                let before = frames.read();
                let Some(body) = frames.next_body()? else { break };
                match message_of(body)? {
                    ToAgent::Bye { frames } if frames == before => return Ok(()),
                    ToAgent::Bye { frames } => {
                        let reason = format!("the farewell counts {frames} frames, not {before}");
                        return Err(AgentEnd::Refused(reason));
                    }
                    message => self.hear(message, received_ns)?,
                }
            }
        }
    }

    fn hear(&mut self, message: ToAgent, received_ns: i64) -> Result<(), AgentEnd> {
        match message {
            ToAgent::Hello { version } => self.welcome(&version),
            _ if !self.is_known => {
                let reason = "the first message must be a greeting with the version".to_owned();
                Err(AgentEnd::Refused(reason))
            }
            ToAgent::Clock { sent_ns } => {
                let answered_ns = self.clock.now_ns();
                Ok(self.output.say(&FromAgent::Clock { sent_ns, received_ns, answered_ns })?)
            }
            ToAgent::Beat | ToAgent::Bye { .. } => Ok(()),
            ToAgent::Order { id, order } => match self.may(&order) {
                Ok(()) => self.act(id, order),
                refused => self.answer(id, refused.map(|()| Answer::Forgotten)),
            },
        }
    }

    fn answer(&self, id: u32, done: Result<Answer, Failure>) -> Result<(), AgentEnd> {
        Ok(tell_answer(&self.output, id, done)?)
    }

    /// Does on a thread of its own what takes longer than the coordinator may be unheard.
    fn answer_later(
        &self,
        id: u32,
        act: impl FnOnce() -> Result<Answer, Failure> + Send + 'static,
    ) -> Result<(), AgentEnd> {
        if self.later.fetch_add(1, Ordering::Relaxed) >= self.most.max(MAX_LATER) {
            self.later.fetch_sub(1, Ordering::Relaxed);
            return self.answer(id, Err(Failure::of("it does too much at once")));
        }
        let (output, later) = (Arc::clone(&self.output), Arc::clone(&self.later));
        let started = threads::start(move || {
            let done = act();
            later.fetch_sub(1, Ordering::Relaxed);
            // The reading thread notices that nobody is there.
            tell_answer(&output, id, done).ok();
        });
        started.map(drop).or_else(|error| {
            self.later.fetch_sub(1, Ordering::Relaxed);
            self.answer(id, Err(Failure::of(error.to_string())))
        })
    }

    fn welcome(&mut self, version: &str) -> Result<(), AgentEnd> {
        let own = env!("CARGO_PKG_VERSION");
        if version != own {
            return Err(AgentEnd::Refused(format!(
                "this host has dnslab {own}, and the coordinator {version}: install the same on both"
            )));
        }
        self.is_known = true;
        let welcome = FromAgent::Welcome {
            version: own.to_owned(),
            roles: self.permission.roles.clone(),
            host: dnslab_lab::host::name(),
            facts: dnslab_lab::host::facts(),
            cpus: dnslab_lab::cpus::allowed(),
            address: own_address(std::env::var("SSH_CONNECTION").ok().as_deref())
                .or_else(pod_address),
            boot_id: dnslab_lab::host::boot_id(),
            network: dnslab_lab::host::network(),
            pid: std::process::id(),
        };
        Ok(self.output.say(&welcome)?)
    }

    fn may(&self, order: &Order) -> Result<(), Failure> {
        match order.role() {
            None => Ok(()),
            Some(role) if self.permission.roles.contains(&role) => Ok(()),
            Some(role) => Err(Failure::of(format!(
                "its host does not allow it to `{}` (`dnslab agent --allow`)",
                role.name()
            ))),
        }
    }

    fn act(&mut self, id: u32, order: Order) -> Result<(), AgentEnd> {
        let done = match order {
            Order::Find { server, sought } => self.find(server, &sought),
            Order::Forget { server } => {
                let servers = self.servers.clone();
                return self.answer_later(id, move || {
                    servers.forget(server);
                    Ok(Answer::Forgotten)
                });
            }
            Order::File { file, octets } => self.servers.write(file, &octets),
            Order::CanServe { variant, role } => {
                let guard = self.permission.guard.clone();
                let is_bounded = self.permission.is_bounded;
                return self
                    .answer_later(id, move || can_serve(&variant, role, &guard, is_bounded));
            }
            Order::Serve { server, order } => {
                let (servers, guard) = (self.servers.clone(), self.permission.guard.clone());
                let is_bounded = self.permission.is_bounded;
                // What is left before it has begun finds it.
                let awaited = self.servers.await_server(server);
                return self.answer_later(id, move || {
                    servers.serve((server, &*awaited?), *order, &guard, is_bounded)
                });
            }
            Order::Log { server, lines } => {
                self.servers.started(server).map(|started| Answer::Log(started.log(lines)))
            }
            Order::Count { server, count, statistics } => {
                let (servers, counts) = (self.servers.clone(), Arc::clone(&self.counts));
                let (guard, most) = (self.permission.guard.clone(), self.most);
                return self.answer_later(id, move || {
                    let watch = match statistics {
                        Some(at) => Some(servers.count_found(server, at, &guard)?),
                        None => servers.started(server)?.server.count(),
                    };
                    let is_counted = watch.is_some();
                    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
                    if counts.len() >= most {
                        return Err(Failure::of(format!("it has {most} counts already")));
                    }
                    counts.extend(watch.map(|watch| (count, watch)));
                    Ok(Answer::Counting(is_counted))
                });
            }
            Order::EndCount { count, origin_ns } => {
                let (origin, counts) = (self.instant_of(origin_ns), Arc::clone(&self.counts));
                return self.answer_later(id, move || {
                    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
                    let watch = counts.remove(&count);
                    drop(counts);
                    let watch = watch.ok_or_else(|| Failure::of("it has no such count"))?;
                    let CounterSeries { samples, source, failure } = watch.finish(origin?);
                    let samples = thinned(samples);
                    Ok(Answer::Counted(Box::new(CounterSeries { samples, source, failure })))
                });
            }
            Order::Examine { of_load } => {
                let guard = self.permission.guard.clone();
                return self.answer_later(id, move || {
                    Ok(Answer::Examined(match of_load {
                        true => dnslab_lab::doctor::examine(&guard),
                        false => dnslab_lab::doctor::examine_server_host(&guard),
                    }))
                });
            }
            Order::Path { to } => {
                return self.answer_later(id, move || {
                    Ok(Answer::Path(dnslab_lab::way::way_to(to).map(Box::new)))
                });
            }
            Order::Watch { own, load_cpus, .. } if own.len().max(load_cpus.len()) > MAX_CPUS => {
                Err(Failure::of(format!("a watch has {MAX_CPUS} CPUs and processes at most")))
            }
            Order::Watch { server, watch, load_cpus, has_no_interrupts, own } => {
                self.servers.to_watch(server).and_then(|known| {
                    let watched = known.watched.beside_load(&load_cpus).beside_dnslab(own);
                    let watched = if has_no_interrupts { watched.pinned_to(&[]) } else { watched };
                    self.begin_watch(watch, watched)
                })
            }
            Order::WatchLoad { watch, cpus } => {
                self.begin_watch(watch, Watched::of_this_process(&cpus))
            }
            Order::Queries { list, part } => self.shares.take(list, part),
            Order::Load { load, members } => {
                let output = Arc::clone(&self.output);
                match self.shares.ready((id, load), members, self.permission, output) {
                    Ok(()) => return Ok(()),
                    Err(failure) => Err(failure),
                }
            }
            Order::Begin { load, at_ns } => {
                self.instant_of(at_ns).and_then(|at| self.shares.begin(load, at))
            }
            Order::Ask { job, query, client, transport, server, timeout_ns } => {
                let asked = to_ask(*job, query, &transport).and_then(|asked| {
                    self.permission.check(&asked.0)?;
                    if self.permission.max_rate_qps.is_some() && self.shares.is_busy() {
                        return Err(Failure::of("a load has its rate: nothing else is asked"));
                    }
                    Ok(asked)
                });
                let (last, max_rate_qps) = (Arc::clone(&self.asked), self.permission.max_rate_qps);
                return self.answer_later(id, move || {
                    let (job, query, transport) = asked?;
                    let asker = Asker { client, transport, server };
                    let timeout = Duration::from_nanos(timeout_ns).min(MAX_ASKED);
                    wait_for_turn(&last, max_rate_qps);
                    Ok(match ask(&job, asker, &query, timeout) {
                        Ok(octets) => Answer::Asked(BASE64.encode(octets)),
                        Err(error) => Answer::NotAnswered {
                            reason: error.to_string(),
                            is_silence: error.is_silence(),
                            is_transient: error.is_transient(),
                            is_refusal: error.is_refusal(),
                        },
                    })
                });
            }
            Order::Feed { load, member, worker, fill } => {
                self.shares.feed(load, (member, worker), fill)
            }
            Order::StopLoad { load, member } => self.shares.stop(load, member),
            Order::Told { load, member, from } => self.shares.told(load, member, from),
            Order::Leave { number } => {
                self.shares.leave(number);
                self.servers.leave(number);
                self.counts.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
                self.watches.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
                let samplings = self.samplings.clone();
                return self.answer_later(id, move || {
                    samplings.leave(number);
                    Ok(Answer::Forgotten)
                });
            }
            Order::Sample { load_cpus, .. } if load_cpus.len() > MAX_CPUS => {
                Err(Failure::of(format!("a sampling has {MAX_CPUS} CPUs at most")))
            }
            Order::Sample { folder: Some(_), .. } if self.permission.is_bounded => {
                Err(Failure::of("its host does not allow a folder of the coordinator's"))
            }
            Order::Sample { server, sampling, folder, length_ns, load_cpus } => {
                let (samplings, guard) = (self.samplings.clone(), self.permission.guard.clone());
                let server = self.servers.to_watch(server);
                let length = Duration::from_nanos(length_ns);
                return self.answer_later(id, move || {
                    let place = (&guard, folder.as_deref(), &load_cpus[..]);
                    samplings.begin(sampling, server?, length, place)
                });
            }
            Order::EndSample { sampling, origin_ns, from_ns, to_ns, max_stacks } => {
                let (samplings, origin) = (self.samplings.clone(), self.instant_of(origin_ns));
                let window = Span::between(from_ns, to_ns);
                return self.answer_later(id, move || {
                    samplings.end(sampling, (origin?, window), max_stacks)
                });
            }
            Order::EndWatch { watch, origin_ns, from_ns, to_ns } => {
                let sampler = {
                    let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
                    watches.remove(&watch)
                };
                let (origin, output) = (self.instant_of(origin_ns), Arc::clone(&self.output));
                let window = Span::between(from_ns, to_ns);
                return self.answer_later(id, move || {
                    let sampler = sampler.ok_or_else(|| no_watch(watch))?;
                    let series = sampler.finish_over(origin?, window);
                    Ok(Answer::Resources(Box::new(tell_samples(&output, watch, series)?)))
                });
            }
        };
        self.answer(id, done)
    }

    fn instant_of(&self, ns: i64) -> Result<Instant, Failure> {
        let instant = self.clock.instant_of(ns);
        instant.ok_or_else(|| Failure::of("its clock has no such instant"))
    }

    fn find(&mut self, number: u32, sought: &Sought) -> Result<Answer, Failure> {
        let transport: Transport =
            sought.transport.parse().map_err(|word: UnknownWord| Failure::of(word.to_string()))?;
        let server = match ExternalServer::find(&sought.identity, transport, sought.address) {
            Ok(server) => server,
            Err(error) => {
                let (said, is_fault) = (error.to_string(), error.is_fault());
                let reason = if self.is_own { said } else { not_found(&error) };
                return Ok(Answer::NotFound { reason, is_fault });
            }
        };
        let found = FoundServer {
            facts: server.facts().clone(),
            file_limit: server.file_limit(),
            plain: server.plain_address(transport, sought.address),
        };
        self.servers.found(number, server)?;
        Ok(Answer::Found(Box::new(found)))
    }

    fn begin_watch(&self, watch: u32, watched: Watched) -> Result<Answer, Failure> {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        let most = self.most;
        if watches.len() >= most || watches.contains_key(&watch) {
            return Err(Failure::of(format!("it has {most} watches, or one with number {watch}")));
        }
        watches.insert(watch, Sampler::start(watched));
        Ok(Answer::Watching)
    }
}

/// Readings of counters that are told, at most: one has some 650 octets of a server with many counters, and a frame 16 MiB.
const MAX_READINGS: usize = 10_000;

/// Of more readings than can be told each second, third or later one, and the last.
fn thinned(samples: Vec<CounterSample>) -> Vec<CounterSample> {
    let (last, step) = (samples.len().saturating_sub(1), samples.len().div_ceil(MAX_READINGS));
    let is_kept = |place: &usize| place.is_multiple_of(step) || *place == last;
    let kept = samples.into_iter().enumerate().filter(|(place, _)| is_kept(place));
    kept.map(|(_, sample)| sample).collect()
}

/// Waits until a query may be asked at a rate that is bounded.
fn wait_for_turn(last: &Mutex<Option<Instant>>, max_rate_qps: Option<f64>) {
    let Some(rate_qps) = max_rate_qps else { return };
    let gap = Duration::try_from_secs_f64(1.0 / rate_qps).unwrap_or(MAX_ASKED);
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    let turn = last.map_or(now, |last| (last + gap).max(now));
    *last = Some(turn);
    drop(last);
    thread::sleep(turn - now);
}

/// What is to be asked of a server, with its load and how it travels.
fn to_ask(
    job: SentJob,
    query: SentQueries,
    transport: &str,
) -> Result<(Job, Query, Transport), Failure> {
    let failed = |error: UnusableJob| Failure::of(error.to_string());
    let query = query.queries(1).map_err(failed)?.into_iter().next();
    let query = query.ok_or_else(|| Failure::of("nothing is asked"))?;
    let list = QueryList::from_queries(vec![query.clone()], "one query".to_owned());
    let job = job.with_queries(Arc::new(list)).map_err(failed)?;
    let transport = transport.parse().map_err(|word: UnknownWord| Failure::of(word.to_string()))?;
    Ok((job, query, transport))
}

/// Says the samples of a series in parts, and returns the series without them.
fn tell_samples<W: Write>(
    output: &Output<W>,
    watch: u32,
    mut series: ResourceSeries,
) -> Result<ResourceSeries, Failure> {
    let samples = std::mem::take(&mut series.samples);
    for samples in samples.chunks(SAMPLES) {
        let samples = FromAgent::Samples { watch, samples: samples.to_vec() };
        output.say(&samples).map_err(|error| Failure::of(error.to_string()))?;
    }
    Ok(series)
}

/// The address at which ssh(1) was reached: the third word of its variable.
fn own_address(connection: Option<&str>) -> Option<IpAddr> {
    connection?.split_ascii_whitespace().nth(2)?.parse().ok()
}

/// The address of the pod that this process is in.
fn pod_address() -> Option<IpAddr> {
    std::env::var(ADDRESS).ok()?.parse().ok()
}

fn no_watch(watch: u32) -> Failure {
    Failure::of(format!("it has no watch {watch}"))
}

/// Why nothing was found, as it is said of another host.
fn not_found(error: &NotFound) -> String {
    match error {
        NotFound::Elsewhere => {
            "that host does not have the address: if packets reach the server by another one, name it by \
             `server.pid` or `server.unit`"
                .to_owned()
        }
        NotFound::NobodyListens { address, transport } => format!(
            "no process listens there on {address} ({transport}) in the network of the login: if the server is in a \
             container, name its process on that host by `server.pid`"
        ),
        NotFound::Outside { port } => format!(
            "port {port} belongs there to a process outside the container of the login: reach the host itself"
        ),
        NotFound::OtherUser { port } => format!(
            "port {port} belongs there to a process of another user: reach the host as root or as that user, or \
             name the server by `server.pid` or `server.unit`"
        ),
        other => other.to_string(),
    }
}
