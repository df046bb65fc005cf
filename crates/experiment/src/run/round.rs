//! One round: the servers of its cases start, the load goes to them, and they stop.
//!
//! A round of several cases has all their servers up together, and the load goes to them in turns, slice by
//! slice. A round of one case is a run by itself.

use std::cell::{Cell, OnceCell};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dnslab_analysis::slice_needed_ns;
use dnslab_lab::event::PlannedEvent;
use dnslab_load::{Job, LoadResult, Member, Progress, Share};
use dnslab_record::{CpuProfile, LiveLoad, LoadPart, ResourceSeries, RunRecord, Span};
use dnslab_traffic::SlicePlan;

use super::case::{Applied, Case, CaseLoads, Fault, OpenApplied, Prepared, Watching};
use super::open_load::{CaseOpenLoad, OpenLoad};
use super::timeline::{RoundTimeline, SAMPLES_AROUND, lengthened};

pub(super) struct Round<'a> {
    pub(super) cases: Vec<Case<'a>>,
    /// How the load goes from one case to the next. Slices that turn out to be too short become longer, for the
    /// rounds that follow, too.
    pub(super) slices: &'a Cell<SlicePlan>,
    /// What follows the load that each case asks for, in this order.
    pub(super) open: &'a [OpenLoad],
    /// Seed of the order of the slices.
    pub(super) seed: u64,
}

/// What a case of a round came to.
pub(super) struct Played {
    pub(super) record: RunRecord,
    /// Where the CPU time of its server went, or why that is not known, if it was sampled.
    pub(super) profile: Option<Result<CpuProfile, String>>,
}

impl Round<'_> {
    /// Returns a record for each case, in order, and its profile if its server was sampled. `observe` gets the place
    /// of the case and its progress.
    pub(super) fn run(
        &self,
        stop: &AtomicBool,
        observe: &mut dyn FnMut(usize, &LiveLoad<'_>),
    ) -> Vec<Played> {
        // Of a case whose servers are not up.
        let mut records: Vec<Option<Played>> = self.cases.iter().map(|_| None).collect();
        let (mut places, mut members) = (Vec::new(), Vec::new());
        for (place, case) in self.cases.iter().enumerate() {
            match case.prepare(stop) {
                Ok(prepared) => {
                    places.push(place);
                    members.push(prepared);
                }
                Err(record) => records[place] = Some(Played { record: *record, profile: None }),
            }
        }
        let mut observe = |member: usize, live: &LiveLoad<'_>| observe(places[member], live);
        pause(&members);
        let slices = self.slices.get();
        let mut main = self.apply(&members, (slices, &[]), stop, &mut observe);
        // In a noisy hour answers take longer than slices allow. The servers are up, and all loads are made again.
        let may_be_repeated =
            self.cases.iter().all(|case| case.told.is_none() && case.max_stacks.is_none());
        if let Some(longer) = longer_slices(&main, slices) {
            self.slices.set(longer);
            if may_be_repeated && !stop.load(Ordering::Relaxed) {
                main = self.apply(&members, (longer, &[]), stop, &mut observe);
            }
        }
        let is_closed = |member: &Prepared<'_>| member.case.variant.load.mode.is_closed();
        let planned = match members.iter().all(is_closed) {
            true => self.open,
            false => &[],
        };
        let mut open: Vec<Vec<OpenApplied>> = members.iter().map(|_| Vec::new()).collect();
        if main.iter().all(Applied::went_well) {
            for load in planned.iter().take_while(|_| !stop.load(Ordering::Relaxed)) {
                let loads = main.iter().map(|main| load.of_case(main.answered_qps()));
                let loads: Vec<CaseOpenLoad> = loads.collect();
                let applied = self.apply(&members, (slices, &loads), stop, &mut observe);
                for (open, applied) in open.iter_mut().zip(applied) {
                    open.push(OpenApplied { rate: load.rate, applied });
                }
            }
        }
        let interrupted = stop.load(Ordering::Relaxed);
        let loads = main.into_iter().zip(open);
        let mut finished = members.into_iter().zip(loads).map(|(member, (mut main, open))| {
            let profile = main.profile.take();
            let is_whole = !interrupted || (main.result.is_ok() && open.len() == planned.len());
            let loads = CaseLoads { main, open, is_whole, planned };
            Played { record: member.finish(loads), profile }
        });
        let mut played = |failed: Option<Played>| {
            failed.or_else(|| finished.next()).expect("each case has its record")
        };
        records.into_iter().map(&mut played).collect()
    }

    /// The load goes to the members in turns if there are several: their main loads, or `open` with one for each.
    fn apply(
        &self,
        members: &[Prepared<'_>],
        (slices, open): (SlicePlan, &[CaseOpenLoad]),
        stop: &AtomicBool,
        observe: &mut dyn FnMut(usize, &LiveLoad<'_>),
    ) -> Vec<Applied> {
        let jobs = self.jobs(members, slices, open);
        let applying = members.iter().zip(jobs).map(|(member, job)| Applying::new(member, job));
        let mut applying: Vec<Applying<'_>> = applying.collect();
        // Counting begins after a pause: what the embedded server reports is up to 100 ms old, and readiness
        // probes or the load before must not count.
        for Applying { member, watching, .. } in &mut applying {
            member.count(watching);
            member.sample(watching);
        }
        let results = run_all(&applying, &mut |place, progress| {
            let load = &applying[place];
            load.notice_fault();
            if load.fault.get().is_some() || stop.load(Ordering::Relaxed) {
                load.stop.store(true, Ordering::Relaxed);
            }
            if let Progress::Interval(latest) = progress {
                if open.is_empty() {
                    load.event.get_or_init(|| load.member.event(latest));
                }
                let part = if open.is_empty() { LoadPart::Main } else { LoadPart::Common };
                let (server, load_cpus) = load.watching.latest().unzip();
                let load_cpus = load_cpus.unwrap_or_default();
                observe(place, &LiveLoad { part, latest, server, load_cpus });
            }
        });
        pause(members);
        let ended = applying.into_iter().zip(results);
        let mut applied: Vec<Applied> = ended.map(|(load, result)| load.seen(result)).collect();
        note_others(&mut applied);
        note_observing(&mut applied);
        applied
    }

    /// The loads as they are asked for, with the turns of each.
    fn jobs(
        &self,
        members: &[Prepared<'_>],
        slices: SlicePlan,
        open: &[CaseOpenLoad],
    ) -> Vec<Result<Job, String>> {
        let jobs = members
            .iter()
            .enumerate()
            .map(|(place, member)| member.job(open.get(place)).map_err(|error| error.to_string()));
        let mut jobs: Vec<Result<Job, String>> = jobs.collect();
        let loads = jobs.iter().flatten().map(|job| &job.settings);
        let timeline = RoundTimeline::of(members.len(), loads, slices);
        for (job, timeline) in jobs.iter_mut().zip(timeline.of_loads(members.len(), self.seed)) {
            if let Ok(job) = job {
                job.timeline = timeline;
            }
        }
        jobs
    }
}

/// A load while it is applied to its servers.
struct Applying<'a> {
    member: &'a Prepared<'a>,
    job: Result<Job, String>,
    watching: Watching,
    /// What is done during its main load; not set before that has begun.
    event: OnceCell<Option<PlannedEvent>>,
    stop: AtomicBool,
    /// What went wrong first.
    fault: OnceCell<Fault>,
}

impl<'a> Applying<'a> {
    fn new(member: &'a Prepared<'a>, job: Result<Job, String>) -> Self {
        let (watching, stop) = (member.watch(), AtomicBool::new(false));
        Self { member, job, watching, event: OnceCell::new(), stop, fault: OnceCell::new() }
    }

    fn notice_fault(&self) {
        if self.fault.get().is_none()
            && let Some(fault) = self.member.fault()
        {
            self.fault.get_or_init(|| fault);
        }
    }

    fn seen(self, result: Result<LoadResult, String>) -> Applied {
        self.notice_fault();
        let event = self.event.into_inner().flatten();
        self.member.seen((self.watching, event), result, self.fault.into_inner())
    }
}

/// Slices as long as the slowest load needs them; `None` if these are long enough, or cannot be longer.
fn longer_slices(applied: &[Applied], slices: SlicePlan) -> Option<SlicePlan> {
    if applied.iter().any(|applied| applied.fault.is_some() || applied.result.is_err()) {
        return None;
    }
    let is_in_slices = |result: &&LoadResult| {
        let turns = result.measured.turns.as_ref();
        turns.is_some_and(|turns| u128::from(turns.slice_ns) == slices.slice.as_nanos())
    };
    let results = || {
        let results = applied.iter().filter_map(|applied| applied.result.as_ref().ok());
        results.filter(is_in_slices)
    };
    let needed = results().filter_map(|result| slice_needed_ns(&result.measured)).max()?;
    // Of the measured window each load has its part.
    let duration_ns = results().map(|result| result.measured.own_ns()).max()?;
    let (needed, duration) = (Duration::from_nanos(needed), Duration::from_nanos(duration_ns));
    let longer = lengthened(slices, needed, duration);
    (longer.slice > slices.slice).then_some(longer)
}

/// Lets the resource samples of the servers reach beyond a load.
fn pause(members: &[Prepared<'_>]) {
    if members.iter().any(|member| member.up.target.server.is_some()) {
        std::thread::sleep(SAMPLES_AROUND);
    }
}

/// Applies the loads, from the hosts that have them: those of several members have the same.
fn run_all(
    applying: &[Applying<'_>],
    observe: &mut dyn FnMut(usize, Progress<'_>),
) -> Vec<Result<LoadResult, String>> {
    let fit = fit(applying);
    let mut observe_fit = |load: usize, progress: Progress<'_>| observe(fit[load], progress);
    let loads = applying.iter().filter_map(|Applying { member, job, stop, .. }| {
        let (case, job) = (member.case, job.as_ref().ok()?);
        let (clients, answers) = (case.queries.clients.as_ref(), case.told.as_ref());
        Some(Member { job, share: Share::whole(job), clients, stop, told: answers })
    });
    let loads: Vec<Member<'_>> = loads.collect();
    let results = applying.first().map(|first| first.member.up.hosts.run(&loads, &mut observe_fit));
    with_unfit(applying, results.unwrap_or_default().into_iter())
}

/// The places of the loads that can be applied.
fn fit(applying: &[Applying<'_>]) -> Vec<usize> {
    (0..applying.len()).filter(|place| applying[*place].job.is_ok()).collect()
}

/// The results of all loads, in order, of those of the fit ones.
fn with_unfit(
    applying: &[Applying<'_>],
    mut results: impl Iterator<Item = Result<LoadResult, String>>,
) -> Vec<Result<LoadResult, String>> {
    let results = applying.iter().map(|load| {
        load.job.as_ref().map_err(Clone::clone)?;
        results.next().expect("each load has a result")
    });
    results.collect()
}

/// What a server used in a span, nanoseconds. Of one that ended in between all that was seen of it, which
/// may be more: it must not count as use by others.
fn used_ns(series: &ResourceSeries, span: Span) -> u64 {
    series.cpu_ns(span).unwrap_or_else(|| {
        let ends = series.samples.first().zip(series.samples.last());
        ends.map_or(0, |(first, last)| last.cpu_ns.saturating_sub(first.cpu_ns))
    })
}

/// Tells each load what dnslab used beside the workers of all loads in its window, so that it does not count as use by
/// unknown processes.
fn note_observing(applied: &mut [Applied]) {
    let by_workers = |applied: &Applied| {
        let measured = &applied.result.as_ref().ok()?.measured;
        let used = measured.workers.iter().map(|worker| worker.cpu_ns);
        Some((measured.window(), used.sum::<u64>()))
    };
    let loads: Vec<Option<(Span, u64)>> = applied.iter().map(by_workers).collect();
    for (applied, own) in applied.iter_mut().zip(&loads) {
        let Some((window, _)) = *own else { continue };
        let is_here = applied.result.as_ref().is_ok_and(|result| result.facts.hosts.is_empty());
        let beside = loads.iter().flatten().filter(|(other, _)| *other == window);
        let workers_ns: u64 = beside.map(|(_, used_ns)| used_ns).sum();
        // On hosts of its own there are the workers, and hardly anything beside them.
        let Some((_, of_host)) = applied.watched.of_load_hosts().next().filter(|_| is_here) else {
            continue;
        };
        let used = of_host.growth(window, |at| at.dnslab_ns).unwrap_or_default();
        applied.watched.observing_cpu_ns = used.saturating_sub(workers_ns);
    }
}

/// Tells each load what the servers of the others used, so that it does not count as use by unknown
/// processes.
fn note_others(applied: &mut [Applied]) {
    let used = |applied: &Applied, window: Span| -> u64 {
        let behind = applied.watched.chain.iter().map(|part| &part.resources);
        let servers = std::iter::once(&applied.watched.resources).chain(behind);
        servers.map(|series| used_ns(series, window)).sum()
    };
    // In the window of each load, which is its own if it has one turn.
    let others: Vec<u64> = applied
        .iter()
        .enumerate()
        .map(|(own, load)| {
            let Ok(LoadResult { measured, .. }) = &load.result else { return 0 };
            // The turns of others may lie between the last sample of a short window and its end.
            let span = load.watched.resources.enclosing(measured.window());
            let span = span.unwrap_or_else(|| measured.window());
            let others = applied.iter().enumerate().filter(|(place, _)| *place != own);
            others.map(|(_, other)| used(other, span)).sum()
        })
        .collect();
    for (applied, others) in applied.iter_mut().zip(others) {
        if applied.result.as_ref().is_ok_and(|result| result.measured.turns.is_some()) {
            applied.watched.others_cpu_ns = others;
        }
    }
}
