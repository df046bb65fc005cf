//! One round: the servers of its cases start, the load goes to them, and they stop.
//!
//! A round of several cases has all their servers up together, and the load goes to them in turns, slice by
//! slice. A round of one case is a run by itself.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dnslab_analysis::slice_needed_ns;
use dnslab_load::{Job, LoadResult, Member, Progress};
use dnslab_record::{CpuProfile, LiveLoad, LoadPart, ResourceSeries, RunRecord, Span};
use dnslab_traffic::SlicePlan;

use super::case::{Applied, Case, Fault, Prepared, Watching};
use super::common_rate::CommonRate;
use super::timeline::{RoundTimeline, SAMPLES_AROUND, lengthened};

pub(super) struct Round<'a> {
    pub(super) cases: Vec<Case<'a>>,
    /// How the load goes from one case to the next. Slices that turn out to be too short become longer, for the
    /// rounds that follow, too.
    pub(super) slices: &'a Cell<SlicePlan>,
    /// What follows the load that each case asks for.
    pub(super) common: Option<CommonRate>,
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
        let mut told = |member: usize, live: &LiveLoad<'_>| observe(places[member], live);
        pause(&members);
        let slices = self.slices.get();
        let mut main = self.apply(&members, (slices, None), stop, &mut told);
        // In a noisy hour answers take longer than slices allow. The servers are up, and all loads are made again.
        let may_be_repeated =
            self.cases.iter().all(|case| case.told.is_none() && case.sampling.is_none());
        if let Some(longer) = longer_slices(&main, slices) {
            self.slices.set(longer);
            if may_be_repeated && !stop.load(Ordering::Relaxed) {
                main = self.apply(&members, (longer, None), stop, &mut told);
            }
        }
        let is_closed = |of: &Prepared<'_>| of.case.variant.load.mode.rate().is_none();
        let common = self.common.filter(|_| members.iter().all(is_closed));
        let went_well =
            main.iter().all(|applied| applied.fault.is_none() && applied.result.is_ok());
        let wants_common = common.is_some();
        let common: Vec<Option<Applied>> = match common {
            Some(rate) if went_well && !stop.load(Ordering::Relaxed) => self
                .apply(&members, (slices, Some(rate)), stop, &mut told)
                .into_iter()
                .map(Some)
                .collect(),
            _ => members.iter().map(|_| None).collect(),
        };
        let interrupted = stop.load(Ordering::Relaxed);
        for (((place, member), mut main), common) in
            places.into_iter().zip(members).zip(main).zip(common)
        {
            let profile = main.profile.take();
            let is_whole = !interrupted || self.common.is_none() || common.is_some();
            let record = member.finish(main, common, (is_whole, wants_common));
            records[place] = Some(Played { record, profile });
        }
        records.into_iter().map(|record| record.expect("each case has its record")).collect()
    }

    /// The load goes to the members in turns if there are several.
    fn apply(
        &self,
        members: &[Prepared<'_>],
        (slices, common): (SlicePlan, Option<CommonRate>),
        stop: &AtomicBool,
        observe: &mut dyn FnMut(usize, &LiveLoad<'_>),
    ) -> Vec<Applied> {
        let jobs = self.jobs(members, slices, common);
        let mut watching: Vec<Watching> = members.iter().map(Prepared::watch).collect();
        // Counting begins after a pause: what the embedded server reports is up to 100 ms old, and readiness
        // probes or the load before must not count.
        for (member, watching) in members.iter().zip(&mut watching) {
            member.count(watching);
            member.sample(watching);
        }
        let stops: Vec<AtomicBool> = members.iter().map(|_| AtomicBool::new(false)).collect();
        let mut faults: Vec<Option<Fault>> = members.iter().map(|_| None).collect();
        let results = visit_and_run(members, &jobs, &stops, &mut |member, progress| {
            let fault = &mut faults[member];
            *fault = fault.take().or_else(|| members[member].fault());
            if fault.is_some() || stop.load(Ordering::Relaxed) {
                stops[member].store(true, Ordering::Relaxed);
            }
            if let Progress::Interval(latest) = progress {
                let part = if common.is_some() { LoadPart::Common } else { LoadPart::Main };
                let (server, load_cpus) = watching[member].latest().unzip();
                let load_cpus = load_cpus.unwrap_or_default();
                observe(member, &LiveLoad { part, latest, server, load_cpus });
            }
        });
        pause(members);
        let ended = members.iter().zip(watching).zip(results).zip(faults);
        let seen = |(((member, watching), result), fault): (((&Prepared<'_>, _), _), Option<_>)| {
            member.seen(watching, result, fault.or_else(|| member.fault()))
        };
        let mut applied: Vec<Applied> = ended.map(seen).collect();
        note_others(&mut applied);
        applied
    }

    /// The loads as they are asked for, with the turns of each.
    fn jobs(
        &self,
        members: &[Prepared<'_>],
        slices: SlicePlan,
        common: Option<CommonRate>,
    ) -> Vec<Result<Job, String>> {
        let job = |member: &Prepared<'_>| member.job(common).map_err(|error| error.to_string());
        let mut jobs: Vec<Result<Job, String>> = members.iter().map(job).collect();
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
    if members.iter().any(|member| member.target.server.is_some()) {
        std::thread::sleep(SAMPLES_AROUND);
    }
}

/// Applies the loads from the clients' host, which several members share.
fn visit_and_run(
    members: &[Prepared<'_>],
    jobs: &[Result<Job, String>],
    stops: &[AtomicBool],
    observe: &mut dyn FnMut(usize, Progress<'_>),
) -> Vec<Result<LoadResult, String>> {
    let visit = members.first().map(|member| member.testbed.visit("client")).transpose();
    let _visit = match visit {
        Ok(visit) => visit,
        Err(error) => return members.iter().map(|_| Err(error.to_string())).collect(),
    };
    let fit: Vec<usize> = (0..jobs.len()).filter(|place| jobs[*place].is_ok()).collect();
    let loads: Vec<Member<'_>> = jobs
        .iter()
        .zip(stops)
        .zip(members)
        .filter_map(|((job, stop), member)| {
            let case = member.case;
            let (clients, told) = (case.queries.clients.as_deref(), case.told.as_ref());
            Some(Member { job: job.as_ref().ok()?, clients, stop, told })
        })
        .collect();
    let mut told = |load: usize, progress: Progress<'_>| observe(fit[load], progress);
    let mut results = dnslab_load::run_together(&loads, &mut told).into_iter();
    let result = |job: &Result<Job, String>| match job {
        Ok(_) => {
            let result = results.next().expect("each load has a result");
            result.map_err(|error| error.to_string())
        }
        Err(reason) => Err(reason.clone()),
    };
    jobs.iter().map(result).collect()
}

/// What a server used in a span, nanoseconds. Of one that ended in between all that was seen of it, which
/// may be more: it must not count as use by others.
fn used_ns(series: &ResourceSeries, span: Span) -> u64 {
    series.cpu_ns(span).unwrap_or_else(|| {
        let ends = series.samples.first().zip(series.samples.last());
        ends.map_or(0, |(first, last)| last.cpu_ns.saturating_sub(first.cpu_ns))
    })
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
        .map(|(own, of)| {
            let Ok(LoadResult { measured, .. }) = &of.result else { return 0 };
            let others = applied.iter().enumerate().filter(|(place, _)| *place != own);
            others.map(|(_, other)| used(other, measured.window())).sum()
        })
        .collect();
    for (applied, others) in applied.iter_mut().zip(others) {
        if applied.result.as_ref().is_ok_and(|result| result.measured.turns.is_some()) {
            applied.watched.others_cpu_ns = others;
        }
    }
}
