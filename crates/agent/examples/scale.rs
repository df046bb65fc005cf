//! What a coordinator takes to put many hosts together: `cargo run --profile dist -p dnslab-agent --example scale -- 200 10`.
//!
//! Each host is a process that speaks as an agent does, and counts what it likes: an interval each tenth of a second, with
//! the latencies of 100,000 queries. Nothing is asked. What is printed is of the coordinator alone.

use std::collections::HashMap;
use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use dnslab_agent::{Link, LoadHosts};
use dnslab_figures::Histogram;
use dnslab_load::{IntervalRecord, Job, Member, Phases, Progress, Share};
use dnslab_protocol::{
    Answer, Counted, FrameReader, FrameWriter, FromAgent, GREETING, Order, Role, ToAgent, body_of,
    message_of,
};
use dnslab_record::{Measured, MeasuredShare, WorkerFacts};
use dnslab_settings::{HostAt, HostPlace, Install, Load};
use dnslab_traffic::QueryList;
use dnslab_wire::{Query, QueryOptions};

/// Answers in an interval of each host.
const VALUES: u64 = 100_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let hosts = match arguments.next().as_deref() {
        Some("agent") => return agent(),
        given => given.unwrap_or("200").parse::<usize>()?,
    };
    coordinator(hosts, arguments.next().as_deref().unwrap_or("10").parse()?)
}

/// A child of this process.
fn here(number: usize, program: &Path) -> HostPlace {
    let (at, program) = (HostAt::Here, Some(program.to_owned()));
    HostPlace { name: format!("host{number}"), at, program, install: Install::Present, pod: None }
}

fn coordinator(count: usize, seconds: u64) -> Result<(), Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let opened = Instant::now();
    let links = (0..count).map(|number| Link::open(&here(number, &program)).map(Arc::new));
    let hosts = LoadHosts::of(links.collect::<Result<_, _>>()?);
    let opening = opened.elapsed();
    let query = Query::new(
        &"a.example.".parse::<domain::base::Name<Vec<u8>>>()?,
        domain::base::iana::Rtype::A,
        &QueryOptions::default(),
    )?;
    let queries = Arc::new(QueryList::from_queries(vec![query], "one name".to_owned()));
    let (warm_up, duration) = (Duration::ZERO, Duration::from_secs(seconds));
    let settings = Load { clients: 1_000_000, warm_up, duration, ..Load::default() };
    let target: SocketAddr = ([192, 0, 2, 1], 53).into();
    let job = Job { workers: u32::try_from(count)?, ..Job::new(settings, target, queries) };
    let (stop, mut seen) = (AtomicBool::new(false), 0_u64);
    let (before, began) = (cpu_time(), Instant::now());
    let mut results = hosts.run(
        &[Member { job: &job, share: Share::whole(&job), clients: None, stop: &stop, told: None }],
        &mut |_, progress| {
            seen += u64::from(matches!(progress, Progress::Interval(_)));
        },
    );
    let (used, took) = (cpu_time() - before, began.elapsed());
    let result = results.pop().ok_or("one load has one result")??;
    let answered: u64 = result.measured.intervals.iter().map(|interval| interval.answered).sum();
    let expected = VALUES * seen * count as u64;
    assert_eq!(answered, expected, "nothing was lost");
    let octets = body_of(&interval(0, &latencies()))?.len();
    println!("{count} hosts, opened in {opening:.1?}; load of {seconds} s, which took {took:.1?}");
    println!(
        "{seen} intervals of {count} hosts, {octets} octets each: {answered} answers put together"
    );
    println!(
        "CPU time of the coordinator: {used:.2?}, {:.1} % of a CPU",
        100.0 * used.as_secs_f64() / took.as_secs_f64()
    );
    println!("memory of the coordinator at most: {}", peak_memory());
    println!(
        "the last worker of all began {:?} late",
        result.facts.hosts.iter().map(|host| host.late_ns).max()
    );
    Ok(())
}

/// CPU time of this process.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.map_or("unknown", |line| line.trim_start_matches("VmHWM:").trim()).to_owned()
}

/// Latencies as a server has them: most about 100 us, some ten times that.
fn latencies() -> Histogram {
    let mut latency = Histogram::default();
    for number in 0..VALUES {
        let tail = if number % 100 == 0 { 10 } else { 1 };
        latency.record_ns((60_000 + 7 * (number * 7_919 % 11_000)) * tail);
    }
    latency
}

fn interval(number: u64, latency: &Histogram) -> FromAgent {
    let mut record =
        IntervalRecord { number, latency: latency.clone(), ..IntervalRecord::default() };
    (record.events.due, record.events.sent, record.events.answered) = (VALUES, VALUES, VALUES);
    FromAgent::Interval { load: 0, member: 0, record: Box::new(Counted(record)) }
}

/// What it says, from several threads.
type Said = Arc<Mutex<(FrameWriter, std::io::Stdout)>>;

fn say(said: &Said, message: &FromAgent) -> Result<(), Box<dyn Error>> {
    let body = body_of(message)?;
    let mut said = said.lock().map_err(|_| "another thread panicked")?;
    let frame = said.0.frame(&body)?;
    said.1.write_all(&frame)?;
    Ok(said.1.flush()?)
}

/// An agent that asks nothing.
fn agent() -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let now = || i64::try_from(began.elapsed().as_nanos()).unwrap_or(i64::MAX);
    let said: Said = Arc::new(Mutex::new((FrameWriter::default(), std::io::stdout())));
    said.lock().map_err(|_| "no other thread is there")?.1.write_all(GREETING)?;
    let (mut frames, mut octets) = (FrameReader::default(), vec![0; 64 << 10]);
    let mut loads: HashMap<u32, (Job, Share)> = HashMap::new();
    loop {
        let count = std::io::stdin().read(&mut octets)?;
        if count == 0 {
            return Ok(());
        }
        frames.push(&octets[..count]);
        while let Some(body) = frames.next_body()? {
            let done = |id, answer| say(&said, &FromAgent::Done { id, answer });
            match message_of::<ToAgent>(body)? {
                ToAgent::Hello { version } => say(
                    &said,
                    &FromAgent::Welcome {
                        version,
                        roles: Role::ALL.to_vec(),
                        host: "nobody".to_owned(),
                        facts: Vec::new(),
                        cpus: vec![0],
                        address: None,
                        boot_id: String::new(),
                        network: String::new(),
                        pid: 0,
                    },
                )?,
                ToAgent::Clock { sent_ns } => {
                    let at = now();
                    say(&said, &FromAgent::Clock { sent_ns, received_ns: at, answered_ns: now() })?;
                }
                ToAgent::Beat => {}
                ToAgent::Bye { .. } => return Ok(()),
                ToAgent::Order { id, order: Order::Load { load, mut members } } => {
                    let none = Arc::new(QueryList::from_queries(Vec::new(), String::new()));
                    let first = members.remove(0);
                    loads.insert(load, (first.job.with_queries(none)?, first.share));
                    done(id, Answer::Ready)?;
                }
                ToAgent::Order { id, order: Order::Begin { load, at_ns } } => {
                    done(id, Answer::Told)?;
                    let Some((job, share)) = loads.remove(&load) else { continue };
                    let (said, from) = (Arc::clone(&said), began);
                    let at = from + Duration::from_nanos(at_ns.unsigned_abs());
                    thread::Builder::new()
                        .spawn(move || tell(&said, (load, at), &job, share).ok())?;
                }
                ToAgent::Order { id, order: Order::Queries { .. } } => done(id, Answer::Taken)?,
                ToAgent::Order { id, .. } => done(id, Answer::Forgotten)?,
            }
        }
    }
}

fn tell(
    said: &Said,
    (load, at): (u32, Instant),
    job: &Job,
    share: Share,
) -> Result<(), Box<dyn Error>> {
    let (phases, latency) = (Phases::of(job), latencies());
    for number in 0..phases.until / phases.interval {
        let end = at + Duration::from_nanos((number + 1) * phases.interval);
        thread::sleep(end.saturating_duration_since(Instant::now()));
        let FromAgent::Interval { record, .. } = interval(number, &latency) else { continue };
        say(said, &FromAgent::Interval { load, member: 0, record })?;
    }
    let workers = vec![WorkerFacts::default(); share.count as usize];
    let counted = Measured { workers, ..Measured::default() };
    let share = MeasuredShare { until_ns: phases.until, counted, ..MeasuredShare::default() };
    say(said, &FromAgent::Ended { load, member: 0, share: Ok(Box::new(Counted(share))) })
}
