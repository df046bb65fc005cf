//! Computes a summary from the records of a session, and from nothing else.

use std::borrow::Cow;
use std::cmp::Reverse;

use dnslab_figures::{Counters, Histogram, NetworkDrops, Outcomes, Pacing};
use dnslab_record::{
    AnswerComparison, Bottleneck, Caveat, Compared, CpuProfiles, Indicator, LoadMode, Looks,
    Measured, Metric, Observation, RunFigure, RunRecord, RunStatus, Session,
};

use crate::agreement::Agreement;
use crate::cache_counts::CacheCounts;
use crate::chain::ServerFigures;
use crate::connections::ConnectionFigures;
use crate::cost::CostSummary;
use crate::disturbed::are_disturbed;
use crate::event::EventFigures;
use crate::gate::judge;
use crate::latency_floor::{floor_of_runs, latency_floor_of_runs_ns};
use crate::memory::{MemoryLog, RunMemory};
use crate::not_compared::NotCompared;
use crate::pods::ServicePods;
use crate::published::beside_published;
use crate::quantiles::RunFigures;
use crate::scaling::{ScalingLine, VariantRate};
use crate::self_check::VariantSelfCheck;
use crate::shares::{ShareOfVariant, ShareSummary};
use crate::statistics::{Comparison, Estimate, Pair, Paired, ValuePair, drift, mean_of};
use crate::summary::{Summary, VariantSummary};
use crate::sweep::SweepLine;
use crate::variant_caveat::VariantCaveat;
use crate::windows::{WindowOfVariant, WindowSummary};

/// From this share of the rate that another load generator was told on, it kept to it.
const RATE_KEPT: f64 = 0.98;

impl Summary {
    /// Computes the figures from the runs in any order; the same runs give the same figures, since
    /// the bootstrap takes the seed of the session. Differences are taken inside each repetition, and
    /// their words have one error rate ([`Comparison::of_report`]).
    ///
    /// Only valid runs enter a figure, a limit or a caveat; the others are counted. Records of
    /// variants that the session does not know are left out.
    #[must_use]
    pub fn of(session: &Session, records: &[RunRecord]) -> Self {
        let mut records: Vec<&RunRecord> = records.iter().collect();
        records.sort_by_key(|record| record.position);
        let runs: Vec<VariantRuns> =
            session.variants.iter().map(|name| VariantRuns::of(name, &records)).collect();
        let memory = MemoryLog::of(&records);
        let variants: Vec<VariantSummary> = runs
            .iter()
            .map(|runs| VariantSummary {
                skipped: session
                    .skipped
                    .iter()
                    .find_map(|skip| (skip.variant == runs.name).then(|| skip.reason.clone())),
                ..runs.summarise(&memory, session.seed)
            })
            .collect();
        let find = |name: &str| runs.iter().find(|runs| runs.name == name);
        let compared: Vec<VariantPair<'_>> = session
            .compared()
            .iter()
            .filter_map(|pair| {
                let Compared { variant, against } = pair;
                let is_control = session.controls.contains(pair);
                let (own, reference) = (find(variant)?, find(against)?);
                Some(VariantPair { own, reference, is_control, looks: session.looks })
            })
            .collect();
        let mut windows = windows(&runs);
        let mut groups: Vec<Vec<Pair>> =
            vec![compared.iter().flat_map(VariantPair::of_runs).collect()];
        for window in &mut windows {
            window.variants =
                runs.iter().filter_map(|runs| runs.in_window(window, session.seed)).collect();
            groups.push(compared.iter().flat_map(|pair| pair.of_window(window)).collect());
        }
        let mut shares = ShareSummary::all(runs.iter().flat_map(VariantRuns::records));
        for share in &mut shares {
            share.variants =
                runs.iter().filter_map(|runs| runs.at_share(share, session.seed)).collect();
            groups.push(compared.iter().flat_map(|pair| pair.of_share(share)).collect());
        }
        let mut groups = compare(groups, session).into_iter();
        let comparisons = groups.next().unwrap_or_default();
        let of_windows = windows.iter_mut().map(|window| &mut window.comparisons);
        let of_shares = shares.iter_mut().map(|share| &mut share.comparisons);
        for (place, comparisons) in of_windows.chain(of_shares).zip(groups) {
            *place = comparisons;
        }
        let figure = |name: &str, metric: Metric| {
            let variant = variants.iter().find(|variant| variant.name == name)?;
            variant.metrics.get(&metric).copied()
        };
        let published = beside_published(session, &figure, &comparisons);
        let rate = |name: &str| {
            let variant = variants.iter().find(|variant| variant.name == name)?;
            let answered_qps = variant.metrics.get(&Metric::AnsweredQps).copied();
            Some(VariantRate { answered_qps, not_compared: variant.not_compared })
        };
        let scaling = ScalingLine::all(session, &records, &rate);
        let mut summary = Self {
            name: session.name.clone(),
            baseline: session.baseline.clone(),
            answered_by: session.answered_by,
            variants,
            comparisons,
            windows,
            shares,
            sweep: SweepLine::all(&session.sweeps, &records),
            scaling,
            rulings: Vec::new(),
            answers: Vec::new(),
            cpu: None,
            published,
            missing_runs: session.plan.len().saturating_sub(records.len()) as u32,
        };
        summary.rulings =
            session.limits.iter().map(|limit| judge(limit, &summary, &records, session)).collect();
        summary
    }

    /// [`Summary::of`] with what stands in files of its own beside the records: the answers that were compared, and
    /// where the CPU time goes.
    #[must_use]
    pub fn whole(
        session: &Session,
        records: &[RunRecord],
        answers: Vec<AnswerComparison>,
        profiles: Option<&CpuProfiles>,
    ) -> Self {
        let mut summary = Self::of(session, records);
        summary.answers = answers;
        summary.cpu = profiles
            .map(|profiles| CostSummary::of(session, records, &summary.comparisons, profiles));
        summary
    }
}

/// The comparisons of each group of pairs, which all have one error rate.
fn compare(groups: Vec<Vec<Pair>>, session: &Session) -> Vec<Vec<Comparison>> {
    let counts: Vec<usize> = groups.iter().map(Vec::len).collect();
    let pairs = groups.into_iter().flatten().collect();
    let mut all = Comparison::of_report(pairs, session.margin, session.answered_by).into_iter();
    counts.into_iter().map(|count| all.by_ref().take(count).collect()).collect()
}

/// A run that was measured.
#[derive(Clone, Copy)]
struct MeasuredRun<'a> {
    record: &'a RunRecord,
    measured: &'a Measured,
}

impl<'a> MeasuredRun<'a> {
    fn of(record: &'a RunRecord) -> Option<Self> {
        Some(Self { record, measured: record.measured.as_ref()? })
    }
}

struct VariantRuns<'a> {
    name: &'a str,
    valid: Vec<MeasuredRun<'a>>,
    /// Those that were measured and do not count.
    invalid: Vec<MeasuredRun<'a>>,
    others: usize,
    mode: Option<&'a LoadMode>,
    /// Others held up half of the valid runs, or more.
    is_disturbed: bool,
}

impl<'a> VariantRuns<'a> {
    fn of(name: &'a str, records: &[&'a RunRecord]) -> Self {
        let own: Vec<&RunRecord> =
            records.iter().copied().filter(|record| record.variant == name).collect();
        let measured = own.iter().filter_map(|record| MeasuredRun::of(record));
        let (valid, other): (Vec<_>, Vec<_>) = measured.partition(|run| run.record.is_valid());
        let is_invalid =
            |run: &MeasuredRun<'_>| matches!(run.record.status, RunStatus::Invalid { .. });
        Self {
            name,
            others: own.len() - valid.len(),
            mode: own.first().map(|record| &record.load.mode),
            is_disturbed: are_disturbed(valid.iter().map(|run| run.record)),
            invalid: other.into_iter().filter(is_invalid).collect(),
            valid,
        }
    }

    /// The variant with its invalid runs in the place of the valid ones; `None` unless only invalid ones were
    /// measured.
    fn of_invalid(&self) -> Option<Self> {
        (self.valid.is_empty() && !self.invalid.is_empty()).then(|| Self {
            valid: self.invalid.clone(),
            invalid: Vec::new(),
            others: 0,
            is_disturbed: are_disturbed(self.invalid.iter().map(|run| run.record)),
            ..*self
        })
    }

    /// The valid runs.
    fn records(&self) -> impl Iterator<Item = &'a RunRecord> + Clone {
        self.valid.iter().map(|run| run.record)
    }

    fn figures(&self, metric: Metric) -> RunFigures {
        self.figures_by(|record| record.figure(metric))
    }

    fn figures_by(&self, figure: impl Fn(&RunRecord) -> Option<RunFigure>) -> RunFigures {
        self.records().filter_map(figure).collect()
    }

    /// A quantile of the latencies that are compared.
    fn quantile(&self, quantile: f64) -> RunFigures {
        self.figures_by(|record| record.latency_quantiles()?.at(quantile))
    }

    /// What bounded it so that some of its figures are not the server's.
    fn not_compared(&self) -> Option<NotCompared> {
        NotCompared::of(self.records().map(|record| &record.bottleneck))
    }

    fn summarise(&self, memory: &MemoryLog<'_>, seed: u64) -> VariantSummary {
        let not_compared = self.not_compared();
        let is_lower_bound = not_compared == Some(NotCompared::Generator);
        let figures = Metric::COMPARED.map(|metric| (metric, self.figures(metric)));
        let metrics = figures.iter().filter_map(|(metric, figures)| {
            let figure = figures.mean(seed)?;
            let is_bound = is_lower_bound && *metric == Metric::AnsweredQps;
            Some((*metric, if is_bound { Estimate::unbounded(figure.value) } else { figure }))
        });
        let (p90, p999) = (self.quantile(0.9), self.quantile(0.999));
        let far = [(Indicator::Percentile(90.0), &p90), (Indicator::Percentile(99.9), &p999)];
        let time_outs = figures
            .iter()
            .map(|(metric, figures)| (Indicator::Metric(*metric), figures))
            .chain(far)
            .filter_map(|(indicator, figures)| Some((indicator.to_string(), figures.time_outs()?)));
        let floors = Metric::COMPARED
            .into_iter()
            .filter_map(|metric| Some((metric, self.latency_floor_ns(metric)?)));
        let mut outcomes = Outcomes::default();
        let (mut counters, mut of_common) = (Counters::default(), Counters::default());
        let (mut latency, mut send_lag) = (Histogram::new(), Histogram::new());
        let mut start_lag = Histogram::new();
        let mut connections = ConnectionFigures::default();
        let network = self.measured().try_fold(NetworkDrops::default(), |mut sum, measured| {
            sum.merge(measured.network.as_ref()?);
            Some(sum)
        });
        for MeasuredRun { record, measured } in &self.valid {
            counters.merge(&measured.counters);
            if let Some(common) = &record.common_load {
                of_common.merge(&common.measured.counters);
            }
            if let Some(compared) = record.compared_times() {
                latency.merge(&compared.latency);
                outcomes.merge(&compared.counters.outcomes);
                if record.load.window().is_none() || record.common_load.is_some() {
                    send_lag.merge(&compared.send_lag);
                }
            }
            start_lag.merge(&measured.start_lag);
            connections.add(measured);
        }
        let counts = &connections.counts;
        let handshakes = counts.full_handshakes + counts.resumed_handshakes;
        let mut caveats = caveats(self.records().map(|record| match &record.common_load {
            None => Cow::Borrowed(record.caveats.as_slice()),
            Some(_) => Cow::Owned(record.all_caveats()),
        }));
        let rates = self.figures(Metric::AnsweredQps).measured();
        let drift = rates.and_then(|rates| drift(&rates)).filter(|_| !is_lower_bound);
        let memories: Vec<RunMemory> = self.records().map(|record| memory.in_run(record)).collect();
        let peak_memory_octets = memories.iter().filter_map(|memory| memory.peak_octets).max();
        let per_connection = memories.iter().filter_map(|memory| memory.per_connection_octets);
        let kept = memories.iter().filter(|memory| memory.is_kept).count();
        if peak_memory_octets.is_none() && kept > 0 {
            caveats.push(VariantCaveat { worst: Caveat::MemoryKept, runs: count(kept) });
        }
        VariantSummary {
            name: self.name.to_owned(),
            skipped: None,
            valid_runs: count(self.valid.len()),
            other_runs: count(self.others),
            mode: self.mode.cloned(),
            metrics: metrics.collect(),
            common_rate_qps: self.common_rate_qps(),
            not_compared,
            drift,
            p90_ns: p90.value(),
            p999_ns: p999.value(),
            time_outs: time_outs.collect(),
            latency_floors_ns: floors.collect(),
            outcomes,
            error_share: error_share(&counters).max(error_share(&of_common)),
            rcodes: counters.answers.rcodes,
            latency,
            server_busy_share: mean_of(
                &self.seen().filter_map(|run| run.server_busy_share()).collect::<Vec<f64>>(),
            ),
            server_waited_share: self
                .seen()
                .filter_map(|run| run.measured.waited_share_of(&run.watched.resources))
                .reduce(f64::max),
            is_disturbed: self.is_disturbed,
            peak_memory_octets,
            memory_per_connection_octets: per_connection.reduce(f64::max),
            generator_cpu_per_query_ns: mean_of(
                &self
                    .measured()
                    .filter_map(Measured::generator_cpu_per_query_ns)
                    .collect::<Vec<f64>>(),
            ),
            handshakes,
            asked_again: counters.asked_again,
            searched: counters.searched,
            attempts: counters.attempts,
            checked_answers: counters.answers.checked,
            malformed_answers: counters.answers.malformed,
            bad_signature: counters.answers.bad_signature,
            connections,
            network,
            send_lag,
            start_lag,
            pacing: Pacing::of_runs(
                self.records().filter_map(|record| record.compared_times()?.pacing.as_ref()),
            ),
            agreement: Agreement::sum(self.seen().filter_map(|run| Agreement::of(&run))),
            cache: CacheCounts::sum(self.seen().filter_map(|run| CacheCounts::of(&run))),
            chain: ServerFigures::over_runs(self.records()),
            pods: ServicePods::over_runs(self.records()),
            event: EventFigures::over_runs(self.records()),
            bottlenecks: bottlenecks(self.records().map(|record| &record.bottleneck)),
            self_check: VariantSelfCheck::of(self.records(), &caveats),
            of_invalid: self.of_invalid().map(|runs| Box::new(runs.summarise(memory, seed))),
            imported: self.records().find_map(|record| Some(record.imported.as_ref()?.title())),
            caveats,
        }
    }

    /// Whether all is of another load generator.
    fn is_imported(&self) -> bool {
        self.records().any(|record| record.imported.is_some())
    }

    /// Whether another load generator kept to a rate that it was told (`-Q` of dnsperf), and all of it was answered:
    /// then that says nothing of the server.
    fn is_as_asked(&self) -> bool {
        self.records().any(|record| {
            let most = record.imported.as_ref().and_then(|imported| imported.max_qps);
            let answered = record.figure(Metric::AnsweredQps).and_then(RunFigure::measured);
            most.zip(answered).is_some_and(|(most, answered)| answered >= RATE_KEPT * most)
        })
    }

    /// By how much dnslab itself may have moved this metric, or in what steps it is measured, in its unit.
    fn floor(&self, metric: Metric) -> Option<f64> {
        floor_of_runs(self.records(), metric)
    }

    /// By how much the engine may have moved this metric; `None` for what is no latency.
    fn latency_floor_ns(&self, metric: Metric) -> Option<f64> {
        latency_floor_of_runs_ns(self.records(), metric)
    }

    /// The intended rate of the common load, as in the first valid run that has one.
    fn common_rate_qps(&self) -> Option<f64> {
        self.records().find_map(|record| match record.common_load.as_ref()?.load.mode {
            LoadMode::Open { rate_qps, .. } => Some(rate_qps),
            LoadMode::Closed { .. } => None,
        })
    }

    fn seen(&self) -> impl Iterator<Item = Observation<'a>> {
        self.records().filter_map(RunRecord::observation)
    }

    fn measured(&self) -> impl Iterator<Item = &'a Measured> {
        self.valid.iter().map(|run| run.measured)
    }

    /// Its figures of a time window; `None` if no valid run has it.
    fn in_window(&self, window: &WindowSummary, seed: u64) -> Option<WindowOfVariant> {
        window.over(self.name, self.records(), seed)
    }

    /// Its figures at a share of its own rate; `None` if no valid run has them.
    fn at_share(&self, share: &ShareSummary, seed: u64) -> Option<ShareOfVariant> {
        share.over(self.name, self.records(), seed)
    }
}

/// A variant and what it is compared with.
struct VariantPair<'a> {
    own: &'a VariantRuns<'a>,
    reference: &'a VariantRuns<'a>,
    /// The two do the same in the main load ([`Session::controls`]).
    is_control: bool,
    looks: Looks,
}

impl VariantPair<'_> {
    /// Every metric that both could measure in the same repetition, that is the server's on both sides and the time-out
    /// in no run of either.
    fn of_runs(&self) -> Vec<Pair> {
        let has_common_load = self.own.common_rate_qps().is_some();
        let metrics = Metric::COMPARED.into_iter().filter(|metric| self.is_compared(*metric));
        let pairs = metrics.filter_map(|metric| {
            let is_of_main_load = !metric.is_latency() || !has_common_load;
            let pair = self.pair(metric, &|record| record.figure(metric))?;
            Some(Pair { is_control: self.is_control && is_of_main_load, ..pair })
        });
        pairs.collect()
    }

    fn is_compared(&self, metric: Metric) -> bool {
        let sides = [self.own, self.reference];
        let mut why = sides.iter().filter_map(|side| side.not_compared());
        let is_asked = || sides.iter().any(|side| side.is_as_asked());
        !why.any(|why| why.includes(metric)) && (metric != Metric::AnsweredQps || !is_asked())
    }

    /// The pairs of a time window of the main load.
    fn of_window(&self, window: &WindowSummary) -> Vec<Pair> {
        self.of_part(&Metric::OF_WINDOWS, &|metric, record| window.figure(metric, record))
    }

    /// The pairs at a share of each one's own rate.
    fn of_share(&self, share: &ShareSummary) -> Vec<Pair> {
        self.of_part(&ShareSummary::COMPARED, &|metric, record| share.figure(metric, record))
    }

    /// The pairs of a part of the runs, by these metrics.
    fn of_part(
        &self,
        metrics: &[Metric],
        figure: &dyn Fn(Metric, &RunRecord) -> Option<RunFigure>,
    ) -> Vec<Pair> {
        let pair = |metric: &Metric| self.pair(*metric, &|record| figure(*metric, record));
        metrics.iter().filter_map(pair).collect()
    }

    fn pair(
        &self,
        metric: Metric,
        figure: &dyn Fn(&RunRecord) -> Option<RunFigure>,
    ) -> Option<Pair> {
        let Self { own, reference, is_control, looks } = *self;
        let figures = [reference, own].map(|side| side.figures_by(figure));
        if figures.iter().any(|figures| figures.time_outs().is_some()) {
            return None;
        }
        // Runs of another load generator are as they came.
        let paired = match own.is_imported() || reference.is_imported() {
            true => {
                let [below, own] = figures.map(|figures| figures.at_least());
                Paired::of_unpaired(&below, &own)
            }
            false => Paired::of(&self.value_pairs(figure), looks),
        };
        let floors = [own, reference].into_iter().filter_map(|side| side.floor(metric));
        Some(Pair {
            variant: own.name.to_owned(),
            against: reference.name.to_owned(),
            metric,
            paired: paired?,
            floor: floors.fold(0.0, f64::max),
            is_control,
            is_disturbed: own.is_disturbed || reference.is_disturbed,
        })
    }

    /// A figure of both in each round that counts for both.
    fn value_pairs(&self, figure: &dyn Fn(&RunRecord) -> Option<RunFigure>) -> Vec<ValuePair> {
        let rounds = self.own.records().filter_map(|record| {
            let mut references = self.reference.records();
            let below = references.find(|other| other.repetition == record.repetition)?;
            Some(ValuePair {
                reference: figure(below)?.measured()?,
                own: figure(record)?.measured()?,
            })
        });
        rounds.collect()
    }
}

/// The time windows that the variants have, without figures yet.
fn windows(runs: &[VariantRuns<'_>]) -> Vec<WindowSummary> {
    let mut windows: Vec<WindowSummary> = Vec::new();
    for window in runs.iter().flat_map(VariantRuns::measured).flat_map(|measured| &measured.windows)
    {
        if !windows.iter().any(|known| known.is(window)) {
            windows.push(WindowSummary::like(window));
        }
    }
    windows
}

fn error_share(counters: &Counters) -> f64 {
    counters.outcomes.error_share(&counters.answers.rcodes)
}

/// The first bottleneck of each kind, the most frequent kind first; of equally frequent ones the one
/// seen first.
fn bottlenecks<'a>(runs: impl Iterator<Item = &'a Bottleneck>) -> Vec<Bottleneck> {
    let mut kinds: Vec<(&Bottleneck, u32)> = Vec::new();
    for of_run in runs {
        match kinds.iter_mut().find(|(seen, _)| seen.kind == of_run.kind) {
            Some((_, times)) => *times += 1,
            None => kinds.push((of_run, 1)),
        }
    }
    kinds.sort_by_key(|(_, times)| Reverse(*times));
    kinds.into_iter().map(|(first, _)| first.clone()).collect()
}

/// The worst caveat of each kind and the number of runs that have one, in the order in which the
/// kinds were seen; of equally bad ones the first.
fn caveats<'a>(runs: impl Iterator<Item = Cow<'a, [Caveat]>>) -> Vec<VariantCaveat> {
    let mut kinds: Vec<VariantCaveat> = Vec::new();
    for of_run in runs {
        // A run counts once for each kind, though it may say one twice.
        let mut counted = vec![false; kinds.len()];
        for caveat in of_run.iter() {
            let known = kinds.iter().position(|kind| kind.worst.is_same_kind(caveat));
            let Some(place) = known else {
                kinds.push(VariantCaveat { worst: caveat.clone(), runs: 1 });
                counted.push(true);
                continue;
            };
            let kind = &mut kinds[place];
            kind.runs += u32::from(!std::mem::replace(&mut counted[place], true));
            if caveat.severity() > kind.worst.severity() {
                kind.worst = caveat.clone();
            }
        }
    }
    kinds
}

fn count(runs: usize) -> u32 {
    u32::try_from(runs).expect("nobody makes four billion runs")
}
